/* Signals: the program may do as it likes with all of them but not notice ours. Requests
 * about our signal succeed and are remembered; masks lose it on the way in. */
#include "causal/runtime/wrap.h"
#include "causal/runtime/patch.h"
#include <errno.h>
#include <string.h>

static struct sigaction shadow; /* what the program believes to have set for our signal */

int ca_real_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
	return REAL(sigaction)(signal, action, old);
}

static bool active(void)
{
	return ca_rt.session && atomic_load_explicit(&ca_rt.on, memory_order_relaxed);
}

static const sigset_t *without_ours(const sigset_t *set, sigset_t *copy)
{
	if (!set || !active() || sigismember(set, CA_SIGNAL) != 1)
		return set;
	*copy = *set;
	sigdelset(copy, CA_SIGNAL);
	return copy;
}

CA_EXPORT int sigaction(int signal, const struct sigaction *restrict set, struct sigaction *restrict old)
{
	struct sigaction copy;

	if (!active())
		return REAL(sigaction)(signal, set, old);
	if (signal == CA_SIGNAL) {
		if (old)
			*old = shadow;
		if (set)
			shadow = *set;
		return 0;
	}
	if (ca_patch_sigaction(signal, set, old))
		return 0;
	if (set && sigismember(&set->sa_mask, CA_SIGNAL) == 1) {
		copy = *set;
		sigdelset(&copy.sa_mask, CA_SIGNAL);
		set = &copy;
	}
	return REAL(sigaction)(signal, set, old);
}

CA_EXPORT __sighandler_t signal(int signal_number, __sighandler_t handler)
{
	struct sigaction set, old;

	if (!active() || (signal_number != CA_SIGNAL && signal_number != SIGTRAP && signal_number != SIGILL))
		return REAL(signal)(signal_number, handler);
	memset(&set, 0, sizeof set);
	set.sa_handler = handler;
	set.sa_flags = SA_RESTART;
	return sigaction(signal_number, &set, &old) ? SIG_ERR : old.sa_handler;
}

CA_EXPORT int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	sigset_t copy;

	return REAL(sigprocmask)(how, how == SIG_UNBLOCK ? set : without_ours(set, &copy), old);
}

CA_EXPORT int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	sigset_t copy;

	return REAL(pthread_sigmask)(how, how == SIG_UNBLOCK ? set : without_ours(set, &copy), old);
}

CA_EXPORT int sigwait(const sigset_t *restrict set, int *restrict signal_number)
{
	sigset_t copy;

	return WAITING(CA_WAIT_OTHERS, -1, REAL(sigwait)(without_ours(set, &copy), signal_number));
}

CA_EXPORT int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info)
{
	sigset_t copy;

	return WAITING(CA_WAIT_OTHERS, -1, REAL(sigwaitinfo)(without_ours(set, &copy), info));
}

CA_EXPORT int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
			   const struct timespec *restrict timeout)
{
	sigset_t copy;

	return WAITING(CA_WAIT_OTHERS, -1, REAL(sigtimedwait)(without_ours(set, &copy), info, timeout));
}

CA_EXPORT int sigsuspend(const sigset_t *set)
{
	sigset_t copy;

	return WAITING(CA_WAIT_OTHERS, -1, REAL(sigsuspend)(without_ours(set, &copy)));
}
