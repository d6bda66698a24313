/* SPDX-License-Identifier: MIT */
/* A preloaded library in which all clocks run twice as fast, as faketime can do it. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
	static struct timespec first[16];
	struct timespec real;
	int r = (int)syscall(SYS_clock_gettime, clock, &real);
	long long ns;

	if (r || clock < 0 || clock >= 16) {
		*now = real;
		return r;
	}
	if (!first[clock].tv_sec)
		first[clock] = real;
	ns = 2 * ((real.tv_sec - first[clock].tv_sec) * 1000000000LL + real.tv_nsec - first[clock].tv_nsec) +
	     first[clock].tv_nsec;
	now->tv_sec = first[clock].tv_sec + ns / 1000000000;
	now->tv_nsec = ns % 1000000000;
	return 0;
}
