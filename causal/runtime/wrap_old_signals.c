/* SPDX-License-Identifier: MIT */
/* The ways of System V and BSD to block, ignore and wait for signals: in libc they do not go
 * through the functions of wrap_signal.c, and would block or replace the signals that are ours.
 *
 * The BSD form of sigpause is not here: no header offers it any more. */
#include "causal/runtime/patch.h"
#include "causal/runtime/wrap.h"
#include <errno.h>
#include <string.h>
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static bool is_ours(int signal)
{
	return ca_rt.session && atomic_load_explicit(&ca_rt.on, memory_order_relaxed) &&
	       (signal == CA_SIGNAL || (ca_rt.patching && (signal == SIGTRAP || signal == SIGILL)));
}

/* In a mask of 32 bits, as BSD has them. */
static int without_ours(int mask)
{
	static const int ours[] = { CA_SIGNAL, SIGTRAP, SIGILL };

	for (unsigned i = 0; i < sizeof ours / sizeof *ours; i++)
		if (is_ours(ours[i]))
			mask &= (int)~(1u << (ours[i] - 1));
	return mask;
}

CA_EXPORT int sigblock(int mask)
{
	return REAL(sigblock)(without_ours(mask));
}

CA_EXPORT int sigsetmask(int mask)
{
	return REAL(sigsetmask)(without_ours(mask));
}

CA_EXPORT int sighold(int signal)
{
	return is_ours(signal) ? 0 : REAL(sighold)(signal);
}

/* Our own sigaction remembers what the program wants of a signal that is ours. */
CA_EXPORT int sigignore(int signal)
{
	struct sigaction set;

	if (!is_ours(signal))
		return REAL(sigignore)(signal);
	memset(&set, 0, sizeof set);
	set.sa_handler = SIG_IGN;
	return sigaction(signal, &set, NULL);
}

/* One that is ours is never blocked, so the answer is never SIG_HOLD. */
CA_EXPORT __sighandler_t sigset(int signal, __sighandler_t handler)
{
	struct sigaction set, old;

	if (!is_ours(signal))
		return REAL(sigset)(signal, handler);
	memset(&set, 0, sizeof set);
	set.sa_handler = handler;
	return sigaction(signal, handler == SIG_HOLD ? NULL : &set, &old) ? SIG_ERR : old.sa_handler;
}

CA_EXPORT int siginterrupt(int signal, int interrupt)
{
	struct sigaction set;

	if (!is_ours(signal))
		return REAL(siginterrupt)(signal, interrupt);
	if (sigaction(signal, NULL, &set))
		return -1;
	set.sa_flags = interrupt ? set.sa_flags & ~SA_RESTART : set.sa_flags | SA_RESTART;
	return sigaction(signal, &set, NULL);
}

/* What headers call sigpause. It waits with the thread's mask, but for one signal. */
CA_EXPORT int __xpg_sigpause(int signal)
{
	return HELD(CA_WAIT_OTHERS, -1, REAL(__xpg_sigpause)(signal));
}
