/* SPDX-License-Identifier: MIT */
/* Traps: who arrives at one of our int3 (or invalid opcodes) goes on in the trampoline. Runs in
 * the signal handlers of any thread, at the same time as patch.c in another.
 *
 * What is not ours goes on to what the program had installed, as if it were called by the
 * kernel. A synchronous trap that nobody handles ends the program the way it would have. */
#include "causal/runtime/patch_internal.h"
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/* ---- address to record ------------------------------------------------------------------ */

enum { SLOTS = 32768 }; /* > CA_PATCH_RECORDS x (2 + CA_SITE_INSNS) / 2; a power of two */

/* Only ever grows. The key is released after the value and acquired by find. */
struct slot {
	_Atomic uintptr_t key;
	uint32_t record;
	uint32_t insn; /* 0: the site's first byte; else insn[insn - 1], or ON_LANDING */
};
enum { ON_LANDING = CA_SITE_INSNS + 1 };
static struct slot slot[SLOTS];
static uint32_t slots_used;

static size_t hash(uintptr_t key)
{
	return (size_t)((key * 0x9e3779b97f4a7c15u) >> 40) & (SLOTS - 1);
}

static void add(uintptr_t key, uint32_t record, uint32_t insn)
{
	size_t i = hash(key);

	if (++slots_used > SLOTS * 3 / 4)
		return; /* patch.c makes no more records long before that */
	while (atomic_load_explicit(&slot[i].key, memory_order_relaxed))
		i = (i + 1) & (SLOTS - 1);
	slot[i].record = record;
	slot[i].insn = insn;
	atomic_store_explicit(&slot[i].key, key, memory_order_release);
}

bool ca_patch_trap_room(void)
{
	return slots_used + 1 + ON_LANDING <= SLOTS * 3 / 4;
}

void ca_patch_trap_add(uint32_t number)
{
	const struct ca_patch_record *r = &ca_patch_records[number];

	add(r->address, number, 0);
	for (uint32_t i = 0; i < r->site.insns; i++)
		add(r->address + r->site.insn[i].offset, number, i + 1);
	if (r->place.landing != r->place.body)
		add(r->place.landing, number, ON_LANDING);
}

/* The record that has changed the text there at the moment, else any record that ever did. */
static const struct slot *find(uintptr_t key, bool *active)
{
	const struct slot *any = NULL;
	uintptr_t k;

	*active = false;
	for (size_t i = hash(key);; i = (i + 1) & (SLOTS - 1)) {
		k = atomic_load_explicit(&slot[i].key, memory_order_acquire);
		if (!k)
			return any;
		if (k != key)
			continue;
		any = &slot[i];
		if (atomic_load_explicit(&ca_patch_records[any->record].state, memory_order_acquire) !=
		    CA_RECORD_OFF) {
			*active = true;
			return any;
		}
	}
}

/* ---- redirecting ------------------------------------------------------------------------ */

static void redirect(greg_t *reg, const struct slot *s)
{
	const struct ca_patch_record *r = &ca_patch_records[s->record];

	if (s->insn == ON_LANDING) {
		reg[REG_RIP] = (greg_t)r->place.body;
		return;
	}
	if (r->site.flags & CA_SITE_BY_CALL) {
		uintptr_t back = r->address + r->site.length;

		reg[REG_RSP] -= 8;
		memcpy((void *)(uintptr_t)reg[REG_RSP], &back, sizeof(back));
	}
	reg[REG_RIP] = (greg_t)(r->place.body + (s->insn ? r->insn_at[s->insn - 1] : 0));
}

void (*ca_patch_on_trap)(uint32_t point);
uint64_t ca_patch_apart;
bool (*ca_patch_keep)(int signal, siginfo_t *info, void *context);
uint64_t (*ca_patch_blocked)(uintptr_t frame);
void (*ca_patch_handler_begins)(uint64_t blocked, uintptr_t frame);
uint64_t (*ca_patch_handler_ends)(uintptr_t frame, const void *context);

/* Tell of a visit that took a lasting int3 to be counted. */
static void tell(const struct slot *s)
{
	const struct ca_patch_record *r = &ca_patch_records[s->record];

	if (!r->trap || s->insn || !ca_patch_on_trap)
		return;
	for (unsigned i = 0; i < r->site.hooks && i < CA_SITE_HOOKS; i++)
		if (r->site.hook[i].kind == CA_SITE_COUNT || r->site.hook[i].kind == CA_SITE_STAMP ||
		    r->site.hook[i].kind == CA_SITE_VISIT)
			ca_patch_on_trap(r->site.hook[i].point ? r->site.hook[i].point - 1u : r->site.point);
}

static uint8_t byte_at(uintptr_t at)
{
	return *(const volatile uint8_t *)at;
}

bool ca_patch_trap(int sig, const siginfo_t *info, void *context)
{
	greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t at = (uintptr_t)reg[REG_RIP];

	if (sig == SIGTRAP) {
		if (info->si_code != SI_KERNEL)
			return false; /* a single step, a watchpoint, or somebody's kill */
		at--;
	} else if (sig != SIGILL || info->si_code <= 0) {
		return false;
	}
	/* Twice: the text may change hands between the look at the record and at the byte. */
	for (int i = 0; i < 2; i++) {
		bool active;
		const struct slot *s = find(at, &active);

		if (!s)
			return false;
		if (active || s->insn == ON_LANDING) {
			tell(s);
			redirect(reg, s);
			return true;
		}
		/* Taken out since: run what stands there now, unless that is a trap again, which
		 * then is a debugger's. */
		if (sig == SIGILL || byte_at(at) != 0xcc) {
			reg[REG_RIP] = (greg_t)at;
			return true;
		}
	}
	return false;
}

/* ---- the two signals -------------------------------------------------------------------- */

/* As the kernel wants it. */
struct kernel_action {
	void (*handler)(int, siginfo_t *, void *);
	unsigned long flags;
	void (*restore)(void);
	uint64_t mask;
};
enum { KERNEL_RESTORER = 0x04000000 };

/* What the program wants to happen. An even version: stable. */
struct previous {
	_Atomic uint32_t version;
	struct sigaction action;
};
static struct previous previous[2]; /* SIGTRAP, SIGILL */
static _Atomic bool taken[2];

static int which(int sig)
{
	return sig == SIGTRAP ? 0 : 1;
}

static struct sigaction previous_get(int sig)
{
	struct previous *p = &previous[which(sig)];
	struct sigaction copy;
	uint32_t version;

	do {
		version = atomic_load_explicit(&p->version, memory_order_acquire);
		copy = p->action;
		atomic_thread_fence(memory_order_acquire);
	} while ((version & 1) || version != atomic_load_explicit(&p->version, memory_order_relaxed));
	return copy;
}

static void previous_set(int sig, const struct sigaction *action)
{
	struct previous *p = &previous[which(sig)];

	atomic_fetch_add_explicit(&p->version, 1, memory_order_acq_rel);
	p->action = *action;
	atomic_fetch_add_explicit(&p->version, 1, memory_order_release);
}

/* End the program by this signal, as it would have ended without us. */
static void die(int sig, siginfo_t *info)
{
	struct kernel_action action = { 0 };
	long pid = ca_sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
	long tid = ca_sys(SYS_gettid, 0, 0, 0, 0, 0, 0);
	uint64_t mask = (uint64_t)1 << (sig - 1);

	action.flags = KERNEL_RESTORER;
	action.restore = (void (*)(void))(uintptr_t)ca_trampoline_restore;
	ca_sys(SYS_rt_sigaction, sig, (long)&action, 0, 8, 0, 0);
	/* the kernel lets nobody but itself send with its own codes, except to oneself */
	if (ca_sys(SYS_rt_tgsigqueueinfo, pid, tid, sig, (long)info, 0, 0) != 0)
		ca_sys(SYS_tgkill, pid, tid, sig, 0, 0, 0);
	ca_sys(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&mask, 0, 8, 0, 0);
}

/* The handler sees the instruction where the program has it. It goes on in the trampoline, unless the
 * handler says where else. */
static void call_as_original(const struct sigaction *to, int sig, siginfo_t *info, void *context)
{
	greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t pc = (uintptr_t)reg[REG_RIP], original = 0;
	intptr_t shift = 0;
	bool moved = info->si_code > 0 && sig != SIGTRAP && ca_patch_translate(pc, &original, &shift);

	if (moved) {
		reg[REG_RIP] = (greg_t)original;
		reg[REG_RSP] += shift;
		if ((uintptr_t)info->si_addr == pc)
			memcpy(&info->si_addr, &original, sizeof(original));
	}
	if (to->sa_flags & SA_SIGINFO)
		to->sa_sigaction(sig, info, context);
	else
		to->sa_handler(sig);
	if (moved && (uintptr_t)reg[REG_RIP] == original) {
		reg[REG_RIP] = (greg_t)pc;
		reg[REG_RSP] -= shift;
	}
}

static bool is_on(const stack_t *alternate, uintptr_t at)
{
	return !(alternate->ss_flags & SS_DISABLE) && at - (uintptr_t)alternate->ss_sp < alternate->ss_size;
}

static void chain(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *from = context;
	struct sigaction to = previous_get(sig);
	struct sigaction once = { .sa_handler = SIG_DFL };
	const uint64_t bit = (uint64_t)1 << (sig - 1),
		       traps = (uint64_t)1 << (SIGTRAP - 1) | (uint64_t)1 << (SIGILL - 1);
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	uint64_t mask, before, old, blocked = ca_patch_blocked ? ca_patch_blocked(frame) : 0;

	if ((ca_patch_keep && ca_patch_keep(sig, info, context)) ||
	    (to.sa_handler == SIG_IGN && info->si_code <= 0))
		return;
	/* a fault is not put off: where the program blocks it, the kernel ends the program */
	if (to.sa_handler == SIG_DFL || to.sa_handler == SIG_IGN || (info->si_code > 0 && blocked & bit)) {
		die(sig, info);
		return;
	}
	if (to.sa_flags & (int)SA_RESETHAND)
		previous_set(sig, &once);
	memcpy(&mask, &to.sa_mask, sizeof(mask));
	if (ca_patch_handler_begins)
		ca_patch_handler_begins((mask & traps) | (to.sa_flags & SA_NODEFER ? 0 : bit), frame);
	memcpy(&before, &from->uc_sigmask, sizeof before);
	/* an alternate stack may have no room for another one */
	mask = (mask & ~traps) | before | (is_on(&from->uc_stack, frame) ? ca_patch_apart : 0);
	ca_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, (long)&old, 8, 0, 0);
	call_as_original(&to, sig, info, context);
	/* what was sent meanwhile comes once the kernel has gone back: else handlers would lie one in the other */
	if (ca_patch_handler_ends)
		old |= ca_patch_handler_ends(frame, context);
	/* the mask to go back to is in the context; the handler may have changed it there */
	ca_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&old, 0, 8, 0, 0);
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	if (!ca_patch_trap(sig, info, context))
		chain(sig, info, context);
}

bool ca_patch_take_signal(int sig, void (*handler)(int, siginfo_t *, void *), int flags, uint64_t mask,
			  struct sigaction *was)
{
	struct kernel_action now, ours = { .handler = handler, .mask = mask };

	if (ca_sys(SYS_rt_sigaction, sig, 0, (long)&now, 8, 0, 0) != 0)
		return false;
	if (now.handler == handler)
		return true;
	memset(was, 0, sizeof(*was));
	was->sa_sigaction = now.handler;
	was->sa_flags = (int)(now.flags & ~(unsigned long)KERNEL_RESTORER);
	memcpy(&was->sa_mask, &now.mask, sizeof(now.mask));
	ours.flags = (unsigned)flags | SA_SIGINFO | SA_ONSTACK | SA_RESTART | KERNEL_RESTORER;
	ours.restore = (void (*)(void))(uintptr_t)ca_trampoline_restore;
	return ca_sys(SYS_rt_sigaction, sig, (long)&ours, 0, 8, 0, 0) == 0;
}

static bool take(int sig)
{
	struct sigaction was = { .sa_flags = -1 };

	/* NODEFER: a trap met while the signal is blocked would kill the program */
	if (!ca_patch_take_signal(sig, on_trap, SA_NODEFER, ca_patch_apart, &was))
		return false;
	if (was.sa_flags != -1)
		previous_set(sig, &was);
	atomic_store_explicit(&taken[which(sig)], true, memory_order_release);
	return true;
}

bool ca_patch_trap_take(void)
{
	/* both: neither stays blocked from here on, and who sends one finds a handler */
	return take(SIGTRAP) && take(SIGILL);
}

bool ca_patch_sigaction(int sig, const struct sigaction *set, struct sigaction *old)
{
	if ((sig != SIGTRAP && sig != SIGILL) ||
	    !atomic_load_explicit(&taken[which(sig)], memory_order_acquire))
		return false;
	if (old)
		*old = previous_get(sig);
	if (set)
		previous_set(sig, set);
	return true;
}

/* ---- faults of the program's own code, in a trampoline ----------------------------------- */
/* What it has installed: in the kernel's table stands on_fault in its place, with its flags and mask. */
static struct {
	int signal;
	_Atomic(void (*)(int, siginfo_t *, void *)) handler;
	_Atomic int flags;
} faults[] = { { .signal = SIGSEGV }, { .signal = SIGBUS }, { .signal = SIGFPE } };
enum { FAULTS = sizeof(faults) / sizeof(faults[0]) };

static unsigned fault_of(int sig)
{
	unsigned i = 0;

	while (i < FAULTS && faults[i].signal != sig)
		i++;
	return i;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	unsigned i = fault_of(sig);
	struct sigaction to = { .sa_flags = SA_SIGINFO }; /* who takes fewer arguments does not mind */

	to.sa_sigaction = atomic_load_explicit(&faults[i].handler, memory_order_acquire);
	call_as_original(&to, sig, info, context);
}

int ca_patch_fault_action(int sig, struct sigaction *set, struct sigaction *old,
			  int (*install)(int, const struct sigaction *, struct sigaction *))
{
	void (*before)(int, siginfo_t *, void *);
	unsigned i = fault_of(sig);
	int flags, r;

	if (i == FAULTS || !atomic_load_explicit(&taken[0], memory_order_acquire))
		return install(sig, set, old);
	before = atomic_load_explicit(&faults[i].handler, memory_order_relaxed);
	flags = atomic_load_explicit(&faults[i].flags, memory_order_relaxed);
	if (set && set->sa_handler != SIG_DFL && set->sa_handler != SIG_IGN &&
	    set->sa_sigaction != on_fault) {
		atomic_store_explicit(&faults[i].flags, set->sa_flags, memory_order_relaxed);
		atomic_store_explicit(&faults[i].handler, set->sa_sigaction, memory_order_release);
		set->sa_sigaction = on_fault;
		set->sa_flags |= SA_SIGINFO;
	}
	r = install(sig, set, old);
	if (!r && old && old->sa_sigaction == on_fault) {
		old->sa_sigaction = before;
		old->sa_flags &= flags | ~SA_SIGINFO;
	}
	return r;
}

/* ---- the unwinder's question ------------------------------------------------------------ */

bool ca_patch_translate(uintptr_t pc, uintptr_t *original, intptr_t *sp_shift)
{
	const struct ca_patch_record *r;
	const struct ca_site *s;
	int number = ca_patch_mem_record(pc);
	size_t at, insn = 0;
	intptr_t shift = 0;

	if (number < 0)
		return false;
	r = &ca_patch_records[number];
	s = &r->site;
	at = pc - r->place.body;
	for (unsigned i = 0; i < s->hooks; i++) {
		if (at >= r->hook_at[i] && at < r->hook_end[i])
			shift = ca_patch_code_shift(s, i, at - r->hook_at[i], r->hook_end[i] - at);
	}
	for (unsigned i = 0; i < s->insns; i++)
		if (at >= r->insn_at[i])
			insn = s->insn[i].offset;
	if (s->flags & CA_SITE_BY_CALL)
		shift += 8;
	/* a displaced call that brings its own return address: behind its push */
	for (unsigned i = 0; i < s->fixups; i++)
		if (s->fixup[i].type == CA_FIXUP_LOW && at >= r->code_at[s->fixup[i].at + 4])
			shift += 8;
	*original = r->address + insn;
	*sp_shift = shift;
	return true;
}

bool ca_patch_is_hook(uintptr_t pc)
{
	int number = ca_patch_mem_record(pc);
	const struct ca_patch_record *r;
	size_t at;

	if (number < 0)
		return false;
	r = &ca_patch_records[number];
	at = pc - r->place.body;
	for (unsigned i = 0; i < r->site.hooks; i++)
		if (at >= r->hook_at[i] && at < r->hook_end[i])
			return true;
	return false;
}
