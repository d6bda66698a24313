/* SPDX-License-Identifier: MIT */
/* Seeded pseudo-random numbers, the same on every machine.
 *
 * xoshiro256** seeded by splitmix64 (Blackman and Vigna, "Scrambled linear pseudorandom number
 * generators", ACM TOMS 47(4), 2021). Not for secrets. State in the caller's memory, one thread
 * or handler at a time. */
#ifndef CA_CORE_RNG_H
#define CA_CORE_RNG_H
#include "core/status.h"
#include <stdint.h>

struct ca_rng {
	uint64_t s[4];
};

CA_SIGSAFE void ca_rng_init(struct ca_rng *rng, uint64_t seed); /* any seed, 0 included */
CA_SIGSAFE uint64_t ca_rng_next(struct ca_rng *rng);            /* all 64 bits are good */
/* Uniform in [0, bound) without bias; bound 0 gives 0. Bounded time in practice: a draw is
 * repeated with a probability below bound / 2^64. */
CA_SIGSAFE uint64_t ca_rng_below(struct ca_rng *rng, uint64_t bound);
CA_SIGSAFE double ca_rng_unit(struct ca_rng *rng); /* uniform in [0, 1), 53 bits */

#endif
