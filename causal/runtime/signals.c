/* SPDX-License-Identifier: MIT */
/* Signals that are ours; see signals.h. Ordinary context and handlers. */
#include "causal/runtime/signals.h"
#include "causal/runtime/real.h"
#include "core/sys.h"
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

bool ca_signals_shadow(int signal, const struct sigaction *set, struct sigaction *old)
{
	struct sigaction before;

	if (signal != CA_SIGNAL || !ca_rt.signal_taken)
		return false;
	before = shadow_get();
	if (set)
		shadow_set(set);
	if (old)
		*old = before;
	return true;
}

bool ca_signals_take(const struct sigaction *action)
{
	if (REAL(sigaction)(CA_SIGNAL, action, &shadow))
		return false;
	ca_rt.signal_taken = true;
	return true;
}

CA_SIGSAFE void ca_signals_forward(siginfo_t *info, void *context)
{
	struct sigaction to = shadow_get(), once = { .sa_handler = SIG_DFL };
	uint64_t mask, old;

	if (to.sa_handler == SIG_IGN || to.sa_handler == SIG_DFL)
		return;
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

/* The set with our signal as `ours` says, and with the traps that patched text needs. */
static const sigset_t *changed(const sigset_t *set, sigset_t *copy, int (*ours)(sigset_t *, int))
{
	if (!set || !active())
		return set;
	*copy = *set;
	ours(copy, CA_SIGNAL);
	open_traps(copy);
	return copy;
}

const sigset_t *ca_signals_open_mask(const sigset_t *set, sigset_t *copy)
{
	return changed(set, copy, sigdelset);
}

const sigset_t *ca_signals_wait_mask(const sigset_t *set, sigset_t *copy)
{
	return changed(set, copy, sigaddset);
}

const sigset_t *ca_signals_without_ours(const sigset_t *set, sigset_t *copy)
{
	if (!set || !active() || sigismember(set, CA_SIGNAL) != 1)
		return set;
	*copy = *set;
	sigdelset(copy, CA_SIGNAL);
	return copy;
}
