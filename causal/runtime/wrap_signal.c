/* SPDX-License-Identifier: MIT */
/* Signals: the program may do as it likes with all of them but not notice ours. Requests
 * about our signal succeed and are remembered (signals.c); masks lose it on the way in, and with
 * it the two that patched code needs (patch.h). */
#include "causal/runtime/patch.h"
#include "causal/runtime/timers.h"
#include "causal/runtime/wrap.h"
#include "core/sys.h"
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

/* See ca_thread_unhold. */
static void end_stale_hold(void)
{
	if (ca_self && ca_self->held_sp)
		ca_thread_unhold(ca_self);
}

CA_EXPORT int sigaction(int signal, const struct sigaction *restrict set, struct sigaction *restrict old)
{
	struct sigaction copy;
	int r;

	end_stale_hold();
	if (ca_signals_shadow(signal, set, old) || ca_patch_sigaction(signal, set, old))
		return 0;
	if (set) {
		copy = *set;
		ca_signals_open_mask(&set->sa_mask, &copy.sa_mask);
		/* on a stack that is just large enough for one of them, ours would be one too many */
		if (copy.sa_flags & SA_ONSTACK && ca_rt.signal_taken)
			sigaddset(&copy.sa_mask, CA_SIGNAL);
	}
	r = ca_patch_fault_action(signal, set ? &copy : NULL, old, REAL(sigaction));
	if (old && old->sa_flags & SA_ONSTACK && ca_rt.signal_taken)
		sigdelset(&old->sa_mask, CA_SIGNAL);
	if (!r)
		ca_signals_note_action(signal, set, old);
	return r;
}

CA_EXPORT __sighandler_t signal(int signal_number, __sighandler_t handler)
{
	struct sigaction set, old;

	if (signal_number != CA_SIGNAL && signal_number != SIGTRAP && signal_number != SIGILL &&
	    signal_number != SIGSEGV && signal_number != SIGBUS && signal_number != SIGFPE)
		return REAL(signal)(signal_number, handler);
	memset(&set, 0, sizeof set);
	set.sa_handler = handler;
	set.sa_flags = SA_RESTART;
	return sigaction(signal_number, &set, &old) ? SIG_ERR : old.sa_handler;
}

#define MASK(name, how, set, old)                                                                            \
	__extension__({                                                                                      \
		sigset_t copy_, asked_;                                                                      \
		int r_;                                                                                      \
                                                                                                             \
		end_stale_hold();                                                                            \
		if (set)                                                                                     \
			asked_ = *(set);                                                                     \
		r_ = REAL(name)(how, (how) == SIG_UNBLOCK ? (set) : ca_signals_open_mask(set, &copy_), old); \
		if (!r_ && ca_signals_note_mask(how, (set) ? &asked_ : NULL, old))                           \
			ca_thread_resume();                                                                  \
		r_;                                                                                          \
	})

CA_EXPORT int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	return MASK(sigprocmask, how, set, old);
}

CA_EXPORT int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	return MASK(pthread_sigmask, how, set, old);
}

/* ---- the stack for signals ----------------------------------------------------------------*/
/* One that is too small even for what the kernel puts there is never used by a handler of the
 * program's. Ours would have to be: such a one is remembered, and not there; nor is another thread's. */
static __thread stack_t unusable __attribute__((tls_model("initial-exec")));

static bool is_unusable(const stack_t *s)
{
	enum {
		LEAST = 2048, /* that the kernel takes */
		OUR_FRAMES = 640
	};

	return s && !(s->ss_flags & ~(int)SS_ONSTACK) && s->ss_size >= LEAST &&
	       s->ss_size < getauxval(AT_MINSIGSTKSZ) + OUR_FRAMES;
}

/* One for all threads will do for a handler that ends the program (varnishd). Ours would run there in several threads at
 * once: it is that of the first thread, and of the others it is remembered, and not there. */
static struct alternate {
	_Atomic uintptr_t at;
	_Atomic long thread; /* 0: that one has another by now */
} first[1024];
static __thread struct alternate *mine __attribute__((tls_model("initial-exec")));

static bool is_anothers(const stack_t *s)
{
	uintptr_t at;
	long self, thread;
	struct alternate *a;

	if (!s || s->ss_flags & ~(int)SS_ONSTACK)
		return false;
	at = (uintptr_t)s->ss_sp;
	a = &first[(at >> 4 ^ at >> 14) % (sizeof first / sizeof *first)];
	self = ca_sys_gettid();
	thread = atomic_load(&a->thread);
	if (atomic_load(&a->at) == at && thread != self &&
	    !ca_sys(SYS_tgkill, ca_sys_getpid(), thread, 0, 0, 0, 0))
		return true;
	atomic_store(&a->thread, self);
	atomic_store(&a->at, at);
	mine = a;
	return false;
}

CA_EXPORT int sigaltstack(const stack_t *restrict set, stack_t *restrict old)
{
	static const stack_t none = { .ss_flags = SS_DISABLE };
	stack_t before = unusable, asked;
	bool no_use;
	int r;

	if (set)
		asked = *set;
	if (set && mine && atomic_load(&mine->thread) == ca_sys_gettid())
		atomic_store(&mine->thread, 0);
	no_use = is_unusable(set) || is_anothers(set);
	r = REAL(sigaltstack)(no_use ? &none : set, old);
	if (r)
		return r;
	if (old && before.ss_sp)
		*old = before;
	if (set) {
		memset(&unusable, 0, sizeof unusable);
		if (no_use) {
			unusable = asked;
			unusable.ss_flags = 0;
		}
	}
	return 0;
}

/* ---- waits for signals --------------------------------------------------------------------*/
/* A timer's signal that comes before its time, in virtual time, has not come. */
static bool is_early(const siginfo_t *info)
{
	uint64_t times;

	if (info->si_code == SI_TIMER)
		return ca_timers_early(CA_TIMERS_POSIX, info->si_timerid, &times);
	return info->si_code == SI_KERNEL && info->si_signo == SIGALRM &&
	       ca_timers_early(CA_TIMERS_ITIMER, 0, &times);
}

static int on_time(const sigset_t *set, siginfo_t *info)
{
	siginfo_t own;
	int r;

	do {
		r = REAL(sigwaitinfo)(set, &own);
	} while (r >= 0 && is_early(&own));
	if (r >= 0 && info)
		*info = own;
	return r;
}

static int on_time_until(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	uint64_t length = ca_deadline_ns(timeout), ns;
	struct ca_deadline d;
	struct timespec left;
	siginfo_t own;
	int r;

	if (!ca_timers_any())
		return REAL(sigtimedwait)(set, info, timeout);
	d = ca_deadline_begin(length != UINT64_MAX);
	while ((r = REAL(sigtimedwait)(set, &own, timeout)) >= 0 && is_early(&own)) {
		if (length == UINT64_MAX)
			continue;
		ns = ca_deadline_rest(&d, length);
		left = (struct timespec){ (time_t)(ns / CA_NS_PER_S), (long)(ns % CA_NS_PER_S) };
		timeout = &left;
	}
	if (r >= 0 && info)
		*info = own;
	return r;
}

static int wait_for_timer(const sigset_t *set, int *signal_number)
{
	siginfo_t info;
	int r;

	do {
		r = HELD(CA_WAIT_OTHERS, -1, on_time(set, &info));
	} while (r < 0 && errno == EINTR); /* as sigwait does it */
	if (r < 0)
		return errno;
	*signal_number = r;
	return 0;
}

CA_EXPORT int sigwait(const sigset_t *restrict set, int *restrict signal_number)
{
	sigset_t copy;

	set = ca_signals_without_ours(set, &copy);
	if (ca_timers_any())
		return wait_for_timer(set, signal_number);
	return HELD(CA_WAIT_OTHERS, -1, REAL(sigwait)(set, signal_number));
}

CA_EXPORT int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info)
{
	sigset_t copy;

	set = ca_signals_without_ours(set, &copy);
	if (ca_timers_any())
		return HELD(CA_WAIT_OTHERS, -1, on_time(set, info));
	return HELD(CA_WAIT_OTHERS, -1, REAL(sigwaitinfo)(set, info));
}

CA_EXPORT int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
			   const struct timespec *restrict timeout)
{
	sigset_t copy;

	set = ca_signals_without_ours(set, &copy);
	return HELD_FOR(ca_deadline_ns(timeout), EAGAIN, on_time_until(set, info, left_ ? left_ : timeout));
}

CA_EXPORT int sigsuspend(const sigset_t *set)
{
	sigset_t copy;

	return DOING(SIGNAL, NULL,
		     WAITING(CA_WAIT_OTHERS, -1, REAL(sigsuspend)(ca_signals_wait_mask(set, &copy))));
}

CA_EXPORT int pause(void)
{
	return HELD(CA_WAIT_OTHERS, -1, REAL(pause)());
}

CA_EXPORT int signalfd(int fd, const sigset_t *set, int flags)
{
	sigset_t copy;

	return REAL(signalfd)(fd, ca_signals_without_ours(set, &copy), flags);
}
