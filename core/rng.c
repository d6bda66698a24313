/* SPDX-License-Identifier: MIT */
/* Random numbers: see core/rng.h. Any thread, handlers included. */
#include "core/rng.h"

static uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

void ca_rng_init(struct ca_rng *rng, uint64_t seed)
{
	/* splitmix64 never gives four zeros in a row, the one state that xoshiro cannot leave */
	for (unsigned i = 0; i < 4; i++)
		rng->s[i] = splitmix64(&seed);
}

uint64_t ca_rng_next(struct ca_rng *rng)
{
	uint64_t *s = rng->s;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

/* Multiply and keep the high half; reject the few low halves that would count one value more
 * often than another (Lemire, "Fast random integer generation in an interval", 2019). */
uint64_t ca_rng_below(struct ca_rng *rng, uint64_t bound)
{
	unsigned __int128 product;
	uint64_t least;

	if (bound == 0)
		return 0;
	least = -bound % bound;
	do
		product = (unsigned __int128)ca_rng_next(rng) * bound;
	while ((uint64_t)product < least);
	return (uint64_t)(product >> 64);
}
