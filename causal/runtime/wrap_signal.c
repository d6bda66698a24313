/* Signals: the program may do as it likes with all of them but not notice ours. Requests
 * about our signal succeed and are remembered; masks lose it on the way in, and with it the
 * two that patched code needs (patch.h). */
#include "causal/runtime/wrap.h"
#include "causal/runtime/patch.h"
#include "core/sys.h"
#include <errno.h>
#include <string.h>

/* What the program believes to have set for our signal. Written by whoever calls sigaction, as
 * racy as that is in the program itself; odd version: being written. */
static struct sigaction shadow;
static _Atomic uint32_t shadow_version;

static struct sigaction shadow_get(void)
{
	struct sigaction copy;
	uint32_t version;

	for (int i = 0; i < 1000; i++) {
		version = atomic_load_explicit(&shadow_version, memory_order_acquire);
		copy = shadow;
		atomic_thread_fence(memory_order_acquire);
		if (!(version & 1) && version == atomic_load_explicit(&shadow_version, memory_order_relaxed))
			break;
	}
	return copy;
}

static void shadow_set(const struct sigaction *action)
{
	atomic_fetch_add_explicit(&shadow_version, 1, memory_order_acq_rel);
	shadow = *action;
	atomic_fetch_add_explicit(&shadow_version, 1, memory_order_release);
}

int ca_real_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
	return REAL(sigaction)(signal, action, old);
}

bool ca_signal_take(const struct sigaction *action)
{
	if (REAL(sigaction)(CA_SIGNAL, action, &shadow))
		return false;
	ca_rt.signal_taken = true;
	return true;
}

/* End as the program would have ended without us. */
static void die_of_it(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_handler = SIG_DFL;
	REAL(sigaction)(CA_SIGNAL, &action, NULL);
	ca_sys(SYS_tgkill, ca_sys_getpid(), ca_sys(SYS_gettid, 0, 0, 0, 0, 0, 0), CA_SIGNAL, 0, 0, 0);
	ca_sys_sigmask(SIG_UNBLOCK, CA_SYS_SIGNAL(CA_SIGNAL));
}

CA_SIGSAFE void ca_signal_forward(siginfo_t *info, void *context)
{
	struct sigaction to = shadow_get(), once = { .sa_handler = SIG_DFL };
	uint64_t mask, old;

	if (to.sa_handler == SIG_IGN)
		return;
	if (to.sa_handler == SIG_DFL) {
		die_of_it();
		return;
	}
	if (to.sa_flags & (int)SA_RESETHAND)
		shadow_set(&once);
	/* our own handler runs with nearly all blocked; theirs with what they asked for on top of
	 * what was blocked when it came */
	memcpy(&mask, &((const ucontext_t *)context)->uc_sigmask, sizeof mask);
	memcpy(&old, &to.sa_mask, sizeof old);
	mask = (mask | old | CA_SYS_SIGNAL(CA_SIGNAL)) & ~(CA_SYS_SIGNAL(SIGTRAP) | CA_SYS_SIGNAL(SIGILL));
	old = ca_sys_sigmask(SIG_SETMASK, mask);
	if (to.sa_flags & SA_SIGINFO)
		to.sa_sigaction(CA_SIGNAL, info, context);
	else
		to.sa_handler(CA_SIGNAL);
	ca_sys_sigmask(SIG_SETMASK, old);
}

/* ---- masks ------------------------------------------------------------------------------*/
static bool active(void)
{
	return ca_rt.session && atomic_load_explicit(&ca_rt.on, memory_order_relaxed);
}

static void open_traps(sigset_t *set)
{
	if (ca_rt.patching) {
		sigdelset(set, SIGTRAP);
		sigdelset(set, SIGILL);
	}
}

const sigset_t *ca_signal_open_mask(const sigset_t *set, sigset_t *copy)
{
	if (!set || !active())
		return set;
	*copy = *set;
	sigdelset(copy, CA_SIGNAL);
	open_traps(copy);
	return copy;
}

const sigset_t *ca_signal_wait_mask(const sigset_t *set, sigset_t *copy)
{
	if (!set || !active())
		return set;
	*copy = *set;
	sigaddset(copy, CA_SIGNAL);
	open_traps(copy);
	return copy;
}

/* A set of signals that the program wants to be given: ours does not come to it that way. */
static const sigset_t *without_ours(const sigset_t *set, sigset_t *copy)
{
	if (!set || !active() || sigismember(set, CA_SIGNAL) != 1)
		return set;
	*copy = *set;
	sigdelset(copy, CA_SIGNAL);
	return copy;
}

/* See ca_thread_unhold. */
static void end_stale_hold(void)
{
	if (ca_self && ca_self->held_sp)
		ca_thread_unhold(ca_self);
}

CA_EXPORT int sigaction(int signal, const struct sigaction *restrict set, struct sigaction *restrict old)
{
	struct sigaction copy;

	end_stale_hold();
	if (signal == CA_SIGNAL && ca_rt.signal_taken) {
		copy = shadow_get();
		if (set)
			shadow_set(set);
		if (old)
			*old = copy;
		return 0;
	}
	if (ca_patch_sigaction(signal, set, old))
		return 0;
	if (set && active()) {
		copy = *set;
		ca_signal_open_mask(&set->sa_mask, &copy.sa_mask);
		set = &copy;
	}
	return REAL(sigaction)(signal, set, old);
}

CA_EXPORT __sighandler_t signal(int signal_number, __sighandler_t handler)
{
	struct sigaction set, old;

	if (signal_number != CA_SIGNAL && signal_number != SIGTRAP && signal_number != SIGILL)
		return REAL(signal)(signal_number, handler);
	memset(&set, 0, sizeof set);
	set.sa_handler = handler;
	set.sa_flags = SA_RESTART;
	return sigaction(signal_number, &set, &old) ? SIG_ERR : old.sa_handler;
}

CA_EXPORT int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	sigset_t copy;

	end_stale_hold();
	return REAL(sigprocmask)(how, how == SIG_UNBLOCK ? set : ca_signal_open_mask(set, &copy), old);
}

CA_EXPORT int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	sigset_t copy;

	end_stale_hold();
	return REAL(pthread_sigmask)(how, how == SIG_UNBLOCK ? set : ca_signal_open_mask(set, &copy), old);
}

/* ---- waits for signals --------------------------------------------------------------------*/
CA_EXPORT int sigwait(const sigset_t *restrict set, int *restrict signal_number)
{
	sigset_t copy;

	return HELD(CA_WAIT_OTHERS, -1, REAL(sigwait)(without_ours(set, &copy), signal_number));
}

CA_EXPORT int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info)
{
	sigset_t copy;

	return HELD(CA_WAIT_OTHERS, -1, REAL(sigwaitinfo)(without_ours(set, &copy), info));
}

CA_EXPORT int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
			   const struct timespec *restrict timeout)
{
	sigset_t copy;

	return HELD(CA_WAIT_OTHERS, -1, REAL(sigtimedwait)(without_ours(set, &copy), info, timeout));
}

CA_EXPORT int sigsuspend(const sigset_t *set)
{
	sigset_t copy;

	return WAITING(CA_WAIT_OTHERS, -1, REAL(sigsuspend)(ca_signal_wait_mask(set, &copy)));
}

CA_EXPORT int pause(void)
{
	return HELD(CA_WAIT_OTHERS, -1, REAL(pause)());
}

CA_EXPORT int signalfd(int fd, const sigset_t *set, int flags)
{
	sigset_t copy;

	return REAL(signalfd)(fd, without_ours(set, &copy), flags);
}
