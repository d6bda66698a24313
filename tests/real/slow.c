/* SPDX-License-Identifier: MIT */
/* Library functions made slower, for checks of predictions (predict.py). Preloaded into a program,
 * those of zlib and libbz2 do the real one's work CA_REPEAT times; gettimeofday takes CA_DELAY_NS
 * longer. What causal says about them can then be compared with the program without that. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static unsigned repeat(void)
{
	static unsigned n;

	if (!n) {
		const char *text = getenv("CA_REPEAT");

		n = text && atoi(text) > 0 ? (unsigned)atoi(text) : 1;
	}
	return n;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* zlib: checksums */
unsigned long crc32_z(unsigned long crc, const unsigned char *data, size_t size);
unsigned long crc32_z(unsigned long crc, const unsigned char *data, size_t size)
{
	static __typeof__(&crc32_z) real;
	unsigned long result = 0;

	if (!real)
		real = REAL(crc32_z);
	for (unsigned i = 0; i < repeat(); i++)
		result = real(crc, data, size);
	return result;
}

unsigned long crc32(unsigned long crc, const unsigned char *data, unsigned size);
unsigned long crc32(unsigned long crc, const unsigned char *data, unsigned size)
{
	static __typeof__(&crc32) real;
	unsigned long result = 0;

	if (!real)
		real = REAL(crc32);
	for (unsigned i = 0; i < repeat(); i++)
		result = real(crc, data, size);
	return result;
}

/* libbz2: one block */
int BZ2_bzBuffToBuffCompress(char *to, unsigned *to_size, char *from, unsigned size, int block, int verbosity,
			     int work);
int BZ2_bzBuffToBuffCompress(char *to, unsigned *to_size, char *from, unsigned size, int block, int verbosity,
			     int work)
{
	static __typeof__(&BZ2_bzBuffToBuffCompress) real;
	unsigned room = *to_size;
	int result = 0;

	if (!real)
		real = REAL(BZ2_bzBuffToBuffCompress);
	for (unsigned i = 0; i < repeat(); i++) {
		*to_size = room;
		result = real(to, to_size, from, size, block, verbosity, work);
	}
	return result;
}

/* libc: a function of its own, so that its disappearance can be asked for. */
void added_delay(long ns);
__attribute__((noinline)) void added_delay(long ns)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < ns);
}

int gettimeofday(struct timeval *restrict to, void *restrict zone)
{
	static long delay = -1;
	struct timespec now;

	(void)zone;
	if (delay < 0)
		delay = getenv("CA_DELAY_NS") ? atol(getenv("CA_DELAY_NS")) : 0;
	if (delay)
		added_delay(delay);
	clock_gettime(CLOCK_REALTIME, &now);
	to->tv_sec = now.tv_sec;
	to->tv_usec = now.tv_nsec / 1000;
	return 0;
}
