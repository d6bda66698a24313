/* SPDX-License-Identifier: MIT */
/* Clocks, and sleeps by them. */
#include "causal/runtime/handler.h"
#include "causal/runtime/virtual_clock.h"
#include "causal/runtime/wrap.h"
#include <errno.h>
#include <sys/time.h>

/* A sleep for a length of time is the sleeper's own: in S it is part of S. */
#define SLEEP(ns, call)                                                                                      \
	__extension__({                                                                                      \
		ca_wait_sleep(ns);                                                                           \
		HELD(CA_WAIT_EXTERNAL, -1, (call));                                                          \
	})

/* Programs that spin on the clock do so in here, most of the time: a tick that comes meanwhile finds them
 * where they call it. */
static __attribute__((noinline)) int look(clockid_t clock, struct timespec *now)
{
	struct ca_thread *t = ca_self;
	uintptr_t outer;
	int r;

	if (!t)
		return LOOKING(ca_virtual_clock(clock, now));
	outer = t->clock_sp;
	t->clock_sp = (uintptr_t)__builtin_frame_address(0);
	r = LOOKING(ca_virtual_clock(clock, now));
	t->clock_sp = outer;
	if (t->late)
		ca_handler_late(t);
	return r;
}

CA_EXPORT int clock_gettime(clockid_t clock, struct timespec *now)
{
	return look(clock, now);
}

CA_EXPORT int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec t;
	int r = zone ? REAL(gettimeofday)(now, zone) : 0;

	if (r)
		return r;
	r = look(CLOCK_REALTIME, &t);
	now->tv_sec = t.tv_sec;
	now->tv_usec = t.tv_nsec / 1000;
	return r;
}

CA_EXPORT time_t time(time_t *now)
{
	struct timespec t;

	if (look(CLOCK_REALTIME, &t))
		return -1;
	if (now)
		*now = t.tv_sec;
	return t.tv_sec;
}

CA_EXPORT int timespec_get(struct timespec *now, int base)
{
	if (base != TIME_UTC)
		return REAL(timespec_get)(now, base);
	return look(CLOCK_REALTIME, now) ? 0 : base;
}

CA_EXPORT int nanosleep(const struct timespec *time, struct timespec *left)
{
	return SLEEP(ca_deadline_ns(time), REAL(nanosleep)(time, left));
}

CA_EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	if (!(flags & TIMER_ABSTIME))
		return SLEEP(ca_deadline_ns(time), REAL(clock_nanosleep)(clock, flags, time, left));
	if (clock == CLOCK_PROCESS_CPUTIME_ID || clock < 0)
		return DOING(SLEEP, NULL,
			     HELD(CA_WAIT_OTHERS, -1, REAL(clock_nanosleep)(clock, flags, time, left)));
	/* until a time of the program's, which the code in S cannot bring nearer */
	return DOING(SLEEP, NULL,
		     HELD_WHILE(time, result_ == 0, REAL(clock_nanosleep)(clock, flags, until_, left)));
}

CA_EXPORT int usleep(useconds_t us)
{
	return SLEEP((uint64_t)us * 1000, REAL(usleep)(us));
}

CA_EXPORT unsigned sleep(unsigned s)
{
	return SLEEP((uint64_t)s * CA_NS_PER_S, REAL(sleep)(s));
}
