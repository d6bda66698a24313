/* SPDX-License-Identifier: MIT */
/* System calls that a program makes through libc's syscall() and that may block, but for futex
 * (wrap_sync.c). Those that a library makes with an instruction of its own (liburing, libaio, Go)
 * pass us by. */
#include "causal/runtime/wrap.h"
#include "core/sys.h"
#include <errno.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

enum {
	NO_MASK = -1,
	/* newer than some headers */
	FUTEX_WAITV = 449,
	FUTEX2_WAKE = 454,
	FUTEX2_WAIT = 455
};

enum how { PASS, MEET, OTHERS, FOR_FD, OUTSIDE };

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
	case SYS_copy_file_range:
	case SYS_fsync:
	case SYS_fdatasync:
		return FOR_FD;
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
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
		return OUTSIDE;
	case SYS_io_uring_enter: /* the ring, how many to submit, how many to wait for, flags */
		return (a[3] & IORING_ENTER_GETEVENTS) && a[2] > 0 ? OUTSIDE : MEET;
	case FUTEX_WAITV:
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

	if (how == FOR_FD)
		return (int)a[0];
#ifdef SYS_poll
	if (number == SYS_poll && a[1] == 1 && fds)
		return fds->fd;
#endif
	return number == SYS_ppoll && a[1] == 1 && fds ? fds->fd : -1;
}

static void tell_length(long number, const long a[6])
{
	const struct timespec *length = NULL;

	if (number == SYS_nanosleep)
		length = (const struct timespec *)a[0];
	else if (number == SYS_clock_nanosleep && !(a[1] & TIMER_ABSTIME))
		length = (const struct timespec *)a[2];
	if (length)
		ca_wait_sleep((uint64_t)length->tv_sec * CA_NS_PER_S + (uint64_t)length->tv_nsec);
}

#define CALL(number, a) REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5])

static long wait_in(long number, enum how how, long a[6])
{
	struct ca_waiting w;
	uint64_t mask;
	long r;
	bool held;
	int at = mask_of(number);

	tell_length(number, a);
	w = ca_wait_begin(how == OTHERS ? CA_WAIT_OTHERS : CA_WAIT_EXTERNAL, waits_for(number, how, a));
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
	if (r < 0 && errno == ETIMEDOUT)
		w.kind = CA_WAIT_EXTERNAL;
	ca_wait_end(&w);
	return r;
}

long ca_wrap_raw(long number, long a[6])
{
	enum how how = how_of(number, a);

	if (how == PASS)
		return CALL(number, a);
	if (how == MEET)
		return MEETING(CALL(number, a));
	return wait_in(number, how, a);
}
