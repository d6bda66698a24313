/* SPDX-License-Identifier: MIT */
/* Timers: what they tell the program of time is virtual (timers.c). Those that start a thread
 * (SIGEV_THREAD), and those of CPU time, are left alone. */
#include "causal/runtime/wrap_timer.h"
#include "causal/runtime/catch_up.h"
#include "causal/runtime/timers.h"
#include "causal/runtime/wrap.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>

CA_EXPORT int timerfd_create(clockid_t clock, int flags)
{
	int fd = REAL(timerfd_create)(clock, flags);

	if (fd >= 0)
		ca_timers_made(CA_TIMERS_FD, fd, clock);
	return fd;
}

/* Kernel's result to libc's. */
static int done(long result)
{
	if (result < 0)
		errno = (int)-result;
	return result < 0 ? -1 : 0;
}

CA_EXPORT int timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *old)
{
	struct ca_deadline deadline;
	struct itimerspec later;
	long result;

	ca_wait_pay();
	if (!(flags & ~TFD_TIMER_ABSTIME) &&
	    ca_timers_set(CA_TIMERS_FD, fd, flags & TFD_TIMER_ABSTIME, to, old, &result))
		return done(result);
	if (!(flags & TFD_TIMER_ABSTIME) || (!to->it_value.tv_sec && !to->it_value.tv_nsec))
		return REAL(timerfd_settime)(fd, flags, to, old);
	/* one that we do not know: its time is virtual all the same */
	deadline = ca_deadline_begin(false);
	ca_catch_up_timed(deadline.lag);
	later.it_interval = to->it_interval;
	later.it_value = *ca_deadline_real(&deadline, &to->it_value, &later.it_value);
	return REAL(timerfd_settime)(fd, flags, &later, old);
}

CA_EXPORT int timerfd_gettime(int fd, struct itimerspec *now)
{
	return ca_timers_get(CA_TIMERS_FD, fd, now) ? 0 : REAL(timerfd_gettime)(fd, now);
}

bool ca_wrap_timer_read(int fd, void *data, size_t n, ssize_t *result)
{
	uint64_t times;

	if (!ca_timers_any() || !ca_timers_has(CA_TIMERS_FD, fd))
		return false;
	for (;;) {
		*result = WAITING(CA_WAIT_OTHERS, -1, REAL(read)(fd, data, n));
		if (*result != sizeof times)
			return true;
		if (!ca_timers_early(CA_TIMERS_FD, fd, &times))
			break;
		if (fcntl(fd, F_GETFL) & O_NONBLOCK) {
			errno = EAGAIN;
			*result = -1;
			return true;
		}
	}
	if (times)
		memcpy(data, &times, sizeof times);
	return true;
}

CA_EXPORT int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer)
{
	int r = REAL(timer_create)(clock, event, timer);

	/* else it is no number of the kernel's */
	if (r == 0 && !(event && event->sigev_notify == SIGEV_THREAD))
		ca_timers_made(CA_TIMERS_POSIX, (long)(intptr_t)*timer, clock);
	return r;
}

CA_EXPORT int timer_settime(timer_t timer, int flags, const struct itimerspec *restrict to,
			    struct itimerspec *restrict old)
{
	long result;

	ca_wait_pay();
	if ((flags & ~TIMER_ABSTIME) ||
	    !ca_timers_set(CA_TIMERS_POSIX, (long)(intptr_t)timer, flags & TIMER_ABSTIME, to, old, &result))
		return REAL(timer_settime)(timer, flags, to, old);
	return done(result);
}

CA_EXPORT int timer_gettime(timer_t timer, struct itimerspec *now)
{
	return ca_timers_get(CA_TIMERS_POSIX, (long)(intptr_t)timer, now) ? 0
									  : REAL(timer_gettime)(timer, now);
}

CA_EXPORT int timer_delete(timer_t timer)
{
	ca_timers_gone(CA_TIMERS_POSIX, (long)(intptr_t)timer);
	return REAL(timer_delete)(timer);
}

static struct timeval to_timeval(struct timespec t)
{
	/* what is left of a us is a us: 0 would mean that it is not armed */
	return (struct timeval){ t.tv_sec + (t.tv_nsec > 999999000), (t.tv_nsec + 999) / 1000 % 1000000 };
}

/* A process has one from the start. */
static bool set_itimer(const struct itimerval *to, struct itimerval *old, long *result)
{
	struct itimerspec before = { { 0, 0 }, { 0, 0 } }, wanted = { { 0, 0 }, { 0, 0 } };

	ca_wait_pay();
	if (to)
		wanted = (struct itimerspec){ { to->it_interval.tv_sec, to->it_interval.tv_usec * 1000 },
					      { to->it_value.tv_sec, to->it_value.tv_usec * 1000 } };
	if (!ca_timers_get(CA_TIMERS_ITIMER, 0, &before))
		ca_timers_made(CA_TIMERS_ITIMER, 0, CLOCK_MONOTONIC);
	if (!ca_timers_set(CA_TIMERS_ITIMER, 0, false, &wanted, &before, result))
		return false;
	if (old)
		*old = (struct itimerval){ to_timeval(before.it_interval), to_timeval(before.it_value) };
	return true;
}

CA_EXPORT int setitimer(__itimer_which_t which, const struct itimerval *restrict to,
			struct itimerval *restrict old)
{
	long result;

	if (which != ITIMER_REAL || !set_itimer(to, old, &result))
		return REAL(setitimer)(which, to, old);
	return done(result);
}

CA_EXPORT int getitimer(__itimer_which_t which, struct itimerval *now)
{
	struct itimerspec spec;

	if (which != ITIMER_REAL || !ca_timers_get(CA_TIMERS_ITIMER, 0, &spec))
		return REAL(getitimer)(which, now);
	*now = (struct itimerval){ to_timeval(spec.it_interval), to_timeval(spec.it_value) };
	return 0;
}

CA_EXPORT unsigned alarm(unsigned s)
{
	struct itimerval to = { { 0, 0 }, { s, 0 } }, old;
	long result;

	if (!set_itimer(&to, &old, &result) || result < 0)
		return REAL(alarm)(s);
	return (unsigned)old.it_value.tv_sec +
	       (old.it_value.tv_usec >= 500000 || (!old.it_value.tv_sec && old.it_value.tv_usec));
}
