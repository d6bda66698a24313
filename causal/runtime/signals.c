/* SPDX-License-Identifier: MIT */
/* Signals that are ours; see signals.h. Ordinary context and handlers. */
#include "causal/runtime/signals.h"
#include "causal/runtime/patch.h"
#include "causal/runtime/real.h"
#include "core/sys.h"
#include <string.h>
#include <ucontext.h>

/* What the program believes to have set for our signal. Written by whoever calls sigaction, as
 * racy as that is in the program itself; odd version: being written. */
static struct sigaction shadow;
static _Atomic uint32_t shadow_version;

/* Signals of ours, as bits, that the program takes for blocked in this thread; and that really are,
 * since one of them was sent meanwhile. */
static __thread uint64_t wanted __attribute__((tls_model("initial-exec")));
static __thread uint64_t kept __attribute__((tls_model("initial-exec")));

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

bool ca_signals_take(void (*handler)(int, siginfo_t *, void *), uint64_t mask)
{
	if (!ca_patch_take_signal(CA_SIGNAL, handler, 0, mask, &shadow))
		return false;
	ca_rt.signal_taken = true;
	return true;
}

CA_SIGSAFE void ca_signals_forward(siginfo_t *info, void *context)
{
	struct sigaction to = shadow_get(), once = { .sa_handler = SIG_DFL };
	uint64_t mask, old;

	if (ca_signals_keep(CA_SIGNAL, info, context) || to.sa_handler == SIG_IGN || to.sa_handler == SIG_DFL)
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

/* Somebody of this process takes our signal in another way than by a handler. */
static _Atomic bool is_taken;

CA_SIGSAFE bool ca_signals_awaited(void)
{
	return atomic_load_explicit(&is_taken, memory_order_relaxed) && wanted & CA_SYS_SIGNAL(CA_SIGNAL);
}

/* Before Linux 5.9 a timer's ticks come in system calls, too, and would be taken there. */
const sigset_t *ca_signals_without_ours(const sigset_t *set, sigset_t *copy)
{
	if (!set || !active() || sigismember(set, CA_SIGNAL) != 1)
		return set;
	atomic_store_explicit(&is_taken, true, memory_order_relaxed);
	if (!ca_self || ca_self->tick.backend != CA_BACKEND_TIMER || !ca_tick_ends_calls())
		return set;
	*copy = *set;
	sigdelset(copy, CA_SIGNAL);
	return copy;
}

/* ---- what the program believes -----------------------------------------------------------*/
static uint64_t bits(const sigset_t *set)
{
	uint64_t b;

	memcpy(&b, set, sizeof b);
	return b;
}

static void add(sigset_t *set, uint64_t b)
{
	b |= bits(set);
	memcpy(set, &b, sizeof b);
}

static uint64_t ours(void)
{
	return active() ? CA_SYS_SIGNAL(CA_SIGNAL) |
				  (ca_rt.patching ? CA_SYS_SIGNAL(SIGTRAP) | CA_SYS_SIGNAL(SIGILL) : 0)
			: 0;
}

bool ca_signals_note_mask(int how, const sigset_t *set, sigset_t *old)
{
	uint64_t before = wanted, b = set ? bits(set) : 0;

	if (set)
		wanted = how == SIG_BLOCK     ? before | (b & ours())
			 : how == SIG_UNBLOCK ? before & ~b
					      : b & ours();
	if (old)
		add(old, before);
	return kept & ~wanted && ca_signals_reopen();
}

void ca_signals_inherit(uint64_t blocked)
{
	wanted = blocked & ours();
	kept = 0;
}

CA_SIGSAFE uint64_t ca_signals_wanted(void)
{
	return wanted;
}

CA_SIGSAFE uint64_t ca_signals_kept(void)
{
	return kept;
}

void ca_signals_note_action(int signal, const struct sigaction *set, struct sigaction *old)
{
	static _Atomic uint64_t masks[65];
	uint64_t before;

	if (signal < 1 || signal > 64)
		return;
	before = set ? atomic_exchange_explicit(&masks[signal], bits(&set->sa_mask) & ours(),
						memory_order_relaxed)
		     : atomic_load_explicit(&masks[signal], memory_order_relaxed);
	if (old)
		add(&old->sa_mask, before);
}

CA_SIGSAFE bool ca_signals_keep(int signal, siginfo_t *info, void *context)
{
	uint64_t bit = CA_SYS_SIGNAL(signal), mask;
	ucontext_t *to = context;

	if (info->si_code > 0 || !(wanted & bit))
		return false;
	memcpy(&mask, &to->uc_sigmask, sizeof mask);
	mask |= bit;
	memcpy(&to->uc_sigmask, &mask, sizeof mask);
	ca_sys_sigmask(SIG_BLOCK, bit);
	kept |= bit;
	if (ca_self) {
		ca_self->held_sp = 1; /* the next meeting looks whether it was taken */
		if (signal == CA_SIGNAL)
			ca_tick_stop(&ca_self->tick);
	}
	/* only a main thread may say who has sent it */
	if (info->si_code == SI_TKILL)
		ca_sys(SYS_rt_tgsigqueueinfo, ca_sys_getpid(), ca_sys_gettid(), signal, (long)(intptr_t)info,
		       0, 0);
	else if (ca_sys(SYS_rt_sigqueueinfo, ca_sys_getpid(), signal, (long)(intptr_t)info, 0, 0, 0) < 0)
		ca_sys(SYS_kill, ca_sys_getpid(), signal, 0, 0, 0, 0);
	return true;
}

CA_SIGSAFE bool ca_signals_reopen(void)
{
	uint64_t pending = 0, open;

	if (!kept)
		return false;
	ca_sys(SYS_rt_sigpending, (long)(intptr_t)&pending, sizeof pending, 0, 0, 0, 0);
	open = kept & ~(pending & wanted);
	kept &= ~open;
	if (kept && ca_self)
		ca_self->held_sp = 1;
	ca_sys_sigmask(SIG_UNBLOCK, open);
	return open & CA_SYS_SIGNAL(CA_SIGNAL);
}

/* ---- handlers that run ---------------------------------------------------------------------*/
/* Nobody but us blocks these. CA_SIGNAL is, too, where handlers run on an alternate stack. */
static uint64_t traps(void)
{
	return ours() & ~CA_SYS_SIGNAL(CA_SIGNAL);
}

enum { HANDLERS = 16 }; /* one in the other; what lies deeper blocks nothing */
static __thread struct {
	uintptr_t frame;
	uint64_t before; /* was wanted */
} handler[HANDLERS] __attribute__((tls_model("initial-exec")));
static __thread unsigned handlers __attribute__((tls_model("initial-exec")));

CA_SIGSAFE static bool on_own_stack(uintptr_t at)
{
	return ca_self && ca_rt_on_own_stack(ca_self, at);
}

/* Does who goes on at sp leave a handler at that frame? On another stack it is not there any more. */
CA_SIGSAFE static bool is_left(uintptr_t frame, uintptr_t sp)
{
	return on_own_stack(frame) == on_own_stack(sp) ? sp > frame : on_own_stack(sp);
}

CA_SIGSAFE static void leave(uintptr_t sp, bool with_mask)
{
	while (handlers && is_left(handler[handlers - 1].frame, sp)) {
		handlers--;
		if (with_mask)
			wanted = handler[handlers].before;
	}
}

/* A handler may have been left by a jump that nobody told of. */
CA_SIGSAFE uint64_t ca_signals_wanted_at(uintptr_t frame)
{
	leave(frame, true);
	return wanted;
}

CA_SIGSAFE void ca_signals_handler_begins(uint64_t blocked, uintptr_t frame)
{
	if (handlers == HANDLERS)
		return;
	handler[handlers].frame = frame;
	handler[handlers++].before = wanted;
	wanted |= blocked & ours();
}

CA_SIGSAFE uint64_t ca_signals_handler_ends(uintptr_t frame, const void *context)
{
	uint64_t in_context, open;

	if (!handlers || handler[handlers - 1].frame != frame)
		return 0;
	memcpy(&in_context, &((const ucontext_t *)context)->uc_sigmask, sizeof in_context);
	wanted = handler[--handlers].before;
	open = kept & traps() & ~in_context;
	kept &= ~open;
	return open;
}

void ca_signals_jump(uintptr_t sp, const void *mask)
{
	uint64_t given;

	leave(sp, mask);
	if (!mask)
		return;
	memcpy(&given, mask, sizeof given);
	kept = (kept & ~traps()) | (given & traps());
	if (kept && ca_self)
		ca_self->held_sp = 1;
}
