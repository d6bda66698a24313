/* SPDX-License-Identifier: MIT */
/* A preloaded library in which the time of day is set again and again, an hour forth and back. */
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int steps(struct timespec *now)
{
	int r = (int)syscall(SYS_clock_gettime, CLOCK_REALTIME, now);

	if (now->tv_nsec / 20000000 % 2)
		now->tv_sec += 3600;
	return r;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	return clock == CLOCK_REALTIME ? steps(now) : (int)syscall(SYS_clock_gettime, clock, now);
}

int gettimeofday(struct timeval *now, void *zone)
{
	struct timespec t;
	int r = steps(&t);

	(void)zone;
	now->tv_sec = t.tv_sec;
	now->tv_usec = t.tv_nsec / 1000;
	return r;
}

time_t time(time_t *at)
{
	struct timespec t;

	steps(&t);
	if (at)
		*at = t.tv_sec;
	return t.tv_sec;
}
