/* SPDX-License-Identifier: MIT */
/* System calls that a program makes through libc's syscall() and that may block, but for futex
 * (wrap_sync.c). Those that a library makes with an instruction of its own (liburing, libaio, Go)
 * pass us by. */
#include "causal/runtime/start.h"
#include "causal/runtime/wrap.h"
#include "core/sys.h"
#include <errno.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>

enum {
	NO_MASK = -1,
	/* newer than some headers */
	FUTEX_WAITV = 449,
	FUTEX2_WAKE = 454,
	FUTEX2_WAIT = 455
};

enum how { PASS, MEET, OTHERS, FROM, INTO, OUTSIDE };

static enum how how_of_file(long number)
{
	switch (number) {
	case SYS_read:
	case SYS_readv:
	case SYS_pread64:
	case SYS_preadv:
	case SYS_preadv2:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
	case SYS_copy_file_range:
	case SYS_fsync:
	case SYS_fdatasync:
		return FROM;
	case SYS_write:
	case SYS_writev:
	case SYS_pwrite64:
	case SYS_pwritev:
	case SYS_pwritev2:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_sendfile:
	case SYS_splice:
	case SYS_tee:
		return INTO;
	default:
		return PASS;
	}
}

static enum how how_of(long number, const long a[6])
{
	switch (number) {
	case SYS_ppoll:
	case SYS_pselect6:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
#ifdef SYS_poll
	case SYS_poll:
	case SYS_select:
	case SYS_epoll_wait:
#endif
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		return OUTSIDE;
	case SYS_io_uring_enter: /* the ring, how many to submit, how many to wait for, flags */
		return (a[3] & IORING_ENTER_GETEVENTS) && a[2] > 0 ? OUTSIDE : MEET;
	case FUTEX2_WAIT:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_mq_timedsend:
	case SYS_mq_timedreceive:
	case SYS_flock:
	case SYS_sched_yield:
		return OTHERS;
	case FUTEX2_WAKE:
	case SYS_kill:
	case SYS_tkill:
	case SYS_tgkill:
	case SYS_rt_sigqueueinfo:
	case SYS_rt_tgsigqueueinfo:
	case SYS_pidfd_send_signal:
	case SYS_exit:
	case SYS_exit_group:
		return MEET;
	default:
		return how_of_file(number);
	}
}

/* Which argument is a mask of signals for the time of the wait. */
static int mask_of(long number)
{
	switch (number) {
	case SYS_ppoll:
		return 3;
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		return 4;
	default:
		return NO_MASK;
	}
}

static int waits_for(long number, enum how how, const long a[6])
{
	const struct pollfd *fds = (const struct pollfd *)a[0];

	if (how == FROM || how == INTO)
		return (int)(number == SYS_splice ? a[2] : number == SYS_tee ? a[1] : a[0]);
#ifdef SYS_poll
	if (number == SYS_poll && a[1] == 1 && fds)
		return fds->fd;
#endif
	return number == SYS_ppoll && a[1] == 1 && fds ? fds->fd : -1;
}

#define CALL(number, a) REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5])

static long wait_in(long number, enum how how, long a[6])
{
	struct ca_waiting w;
	uint64_t mask;
	long r;
	bool held;
	int at = mask_of(number);

	if (how == INTO)
		w = ca_wait_begin_write(waits_for(number, how, a), number == SYS_write || number == SYS_sendto
									   ? (size_t)a[2]
									   : SIZE_MAX);
	else
		w = ca_wait_begin(how == OTHERS ? CA_WAIT_OTHERS : CA_WAIT_EXTERNAL,
				  waits_for(number, how, a));
	if (at != NO_MASK && a[at] && ca_self) {
		/* as ca_signals_wait_mask does it, in the kernel's own size */
		memcpy(&mask, (const void *)a[at], sizeof mask);
		mask |= CA_SYS_SIGNAL(CA_SIGNAL);
		if (ca_rt.patching)
			mask &= ~(CA_SYS_SIGNAL(SIGTRAP) | CA_SYS_SIGNAL(SIGILL));
		a[at] = (long)(intptr_t)&mask;
	}
	held = ca_thread_hold();
	r = CALL(number, a);
	ca_thread_release(held);
	if (how == FROM)
		w.delivered = r;
	else if (r < 0 && errno == ETIMEDOUT)
		w.kind = CA_WAIT_EXTERNAL;
	ca_wait_end(&w);
	return r;
}

/* Calls that tell the time or go by it: those of libc do all that is needed. True: *result is theirs. */
static bool by_the_clock(long number, const long a[6], long *result)
{
	const struct timespec *limit;
	struct timespec copy;
	int r;

	switch (number) {
	case SYS_clock_gettime:
		*result = clock_gettime((clockid_t)a[0], (struct timespec *)a[1]);
		return true;
#ifdef SYS_time
	case SYS_time:
		*result = time((time_t *)a[0]);
		return true;
#endif
	case SYS_gettimeofday:
		*result = a[0] ? gettimeofday((struct timeval *)a[0], (void *)a[1]) : 0;
		return a[0] != 0;
	case SYS_nanosleep:
		*result = nanosleep((const struct timespec *)a[0], (struct timespec *)a[1]);
		return true;
	case SYS_clock_nanosleep:
		r = clock_nanosleep((clockid_t)a[0], (int)a[1], (const struct timespec *)a[2],
				    (struct timespec *)a[3]);
		if (r)
			errno = r;
		*result = r ? -1 : 0;
		return true;
	case SYS_timerfd_create:
		*result = timerfd_create((clockid_t)a[0], (int)a[1]);
		return true;
	case SYS_timerfd_settime:
		*result = timerfd_settime((int)a[0], (int)a[1], (const struct itimerspec *)a[2],
					  (struct itimerspec *)a[3]);
		return true;
	case SYS_timerfd_gettime:
		*result = timerfd_gettime((int)a[0], (struct itimerspec *)a[1]);
		return true;
	case FUTEX_WAITV:
		limit = ca_deadline_peek(a[3], &copy);
		*result = HELD_UNTIL(limit, ETIMEDOUT,
				     REAL(syscall)(number, a[0], a[1], a[2],
						   until_ ? (long)(intptr_t)until_ : a[3], a[4], a[5]));
		return true;
	default:
		return false;
	}
}

long ca_wrap_raw(long number, long a[6])
{
	enum how how = how_of(number, a);
	long result;

	if (by_the_clock(number, a, &result))
		return result;
	if (how == PASS)
		return CALL(number, a);
	if (how == MEET) {
		ca_wait_meet();
		if (number == SYS_exit_group)
			ca_start_leave();
		return CALL(number, a);
	}
	return wait_in(number, how, a);
}
