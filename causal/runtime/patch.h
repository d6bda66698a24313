/* SPDX-License-Identifier: MIT */
/* Patching the program's text while it runs. Runtime; libc is not called, only the kernel.
 *
 * A site's bytes become a jump (or call) to a trampoline: hooks, copies of the displaced
 * instructions, jump back. Threads may be anywhere meanwhile, also stopped or in a signal
 * handler above the very bytes, so nobody is waited for. Three steps, a core-serialising
 * membarrier between them:
 *   1. int3 on the first byte of each displaced instruction; whoever arrives traps and is sent
 *      to the copy of that instruction;
 *   2. the bytes between, which nobody can fetch any more, become those of the jump;
 *   3. the first byte becomes the jump's.
 * The int3 on inner instructions stay: the trampoline lies at a distance whose bytes are 0xCC
 * where an instruction begins (where no such place is free: another opcode that traps). So a
 * jump into the middle that the planner did not know of costs a trap, and is still right.
 * Text may be mapped anew between any two writes, as where a library is closed and opened again: but for the first
 * byte of a removal, a trap, each write is of the whole site, so that what stands there is right by itself.
 * Removal goes the same way back. Trampolines are kept for good and used again. Where a short site's jump can
 * lead to one place only, a jump stands there, which the same three steps turn to the trampoline in use.
 *
 * What the rest of the runtime must do:
 *   - keep SIGTRAP and SIGILL out of every signal mask that the program sets (pthread_sigmask,
 *     sigprocmask, sigaction's sa_mask, pselect, ppoll, sigsuspend), and unblock them at start:
 *     a trap that is blocked kills the program. Threads that block them all the same are looked
 *     for before text changes, which is then declined;
 *   - give sigaction(SIGTRAP or SIGILL) to ca_patch_sigaction, all others to ca_patch_fault_action;
 *   - call ca_patch_forked in the child of a fork. */
#ifndef CA_CAUSAL_RUNTIME_PATCH_H
#define CA_CAUSAL_RUNTIME_PATCH_H
#include "core/fine.h"
#include "core/point.h"
#include "core/site.h"
#include "core/status.h"
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Once, in the constructor. Takes SIGTRAP only when the first site is placed (chains to the
 * program's own handler). Returns false if the text cannot be changed safely here (memory,
 * membarrier, shadow stacks): then exact S and nop progress points are off, with the reason in
 * *why (static text). */
bool ca_patch_init(const char **why);

/* How the trampolines call us. Set before the first install; called with all general registers
 * and flags of the program saved, on its stack, aligned; vector and x87 registers are not saved:
 * compile what is called with -mgeneral-regs-only.
 *
 * sp names the activation, the same for its enter and its exit. Function: the stack pointer
 * at its entry, where the return address is. Call: the stack pointer before the call.
 *   - enter with the sp of the innermost open activation: the same one (a function that jumps
 *     back to its own start, or to another part of the selected code): not a new one.
 *   - an open activation whose sp is below the one reported was left by longjmp or an exception.
 *   - exit without a matching open activation is possible (sites appeared in between). */
struct ca_patch_hooks {
	void (*enter)(uintptr_t sp);
	void (*exit)(uintptr_t sp);
	void (*meet)(uintptr_t sp); /* see ca_trampoline_registers */
	void (*stamp)(uint32_t point);
	void (*atomic)(uintptr_t pc); /* in its trampoline: see ca_patch_retire */
	void (*fine)(void);           /* S has been left, and the sum has come to the limit */
};
void ca_patch_set_hooks(const struct ca_patch_hooks *hooks);
/* In the hook `meet`: where in its trampoline the thread is, and the registers that were put aside there, by the numbers of
 * unwind rows. Returns which of them those are, a bit each. */
CA_SIGSAFE unsigned ca_trampoline_registers(uintptr_t sp, uintptr_t *pc, uintptr_t all[16]);

/* Hook COUNT adds one to counters[point] of the calling thread, without a call. Each thread
 * points this at the count[] of its slot; until then visits go nowhere. Never NULL. */
extern __thread uint64_t *ca_patch_counters __attribute__((tls_model("initial-exec")));
/* Hook VISIT does so where counters[CA_PATCH_HOT + point] is not 0, else it calls the hook `stamp`. */
enum { CA_PATCH_HOT = 3 * CA_MAX_POINTS, CA_PATCH_COUNTERS = 4 * CA_MAX_POINTS };
/* What it points at in a thread without a slot: racy, for tests. All points are hot there. */
extern uint64_t ca_patch_nobody[CA_PATCH_COUNTERS];

/* Where hooks FINE_ENTER and FINE_EXIT keep the calling thread's account; until it is set, nowhere.
 * Never NULL. */
extern __thread struct ca_fine *ca_patch_fine __attribute__((tls_model("initial-exec")));
extern struct ca_fine ca_patch_fine_nobody;

/* Called in a signal handler for each visit of a point (hooks COUNT, STAMP and VISIT) at a site that had
 * no room for a jump and stays an int3. NULL: nobody cares. */
extern void (*ca_patch_on_trap)(uint32_t point) __attribute__((visibility("hidden")));
/* Signals, as bits, whose handlers do not come in beside a trap's: on an alternate stack there may be room for one
 * only. Before ca_patch_init. */
extern uint64_t ca_patch_apart __attribute__((visibility("hidden")));
/* A trap's signal was sent by somebody: true if it is to come later. */
extern bool (*ca_patch_keep)(int signal, siginfo_t *info, void *context)
	__attribute__((visibility("hidden")));
/* Signals, as bits, that the program takes for blocked in this thread, where a handler came in at that frame. */
extern uint64_t (*ca_patch_blocked)(uintptr_t frame) __attribute__((visibility("hidden")));
/* The program's handler of a trap's signal runs: see ca_signals_handler_begins. */
extern void (*ca_patch_handler_begins)(uint64_t blocked, uintptr_t frame)
	__attribute__((visibility("hidden")));
extern uint64_t (*ca_patch_handler_ends)(uintptr_t frame, const void *context)
	__attribute__((visibility("hidden")));

/* Place sites; bias of the site's module is asked through `bias` (false: not loaded here; such
 * sites are skipped and do not count as failed). Sites that are in place already stay. Handler-
 * safe; one caller at a time in a process, a second one gets n back at once. When it returns
 * the sites are in force. Returns the number of sites that could not be placed. */
CA_SIGSAFE unsigned ca_patch_install(const struct ca_site *site, size_t n,
				     bool (*bias)(uint32_t module, uintptr_t *bias));
/* Take every non-permanent site (all but those of kinds COUNT and WRAP) out again. Hooks may still be called
 * a little later by threads that were inside a trampoline. False: somebody else is at it, or it may not be done
 * now: a thread blocks our traps, or there is a debugger. */
CA_SIGSAFE bool ca_patch_remove(void);
/* The site whose trampoline holds pc costs too much: no more of it in this process from the next
 * ca_patch_remove_retired on. For hooks: it only leaves a mark. */
CA_SIGSAFE void ca_patch_retire(uintptr_t pc);
/* Takes what has been retired out. Cheap where there is nothing. */
CA_SIGSAFE void ca_patch_remove_retired(void);
/* All sites but WRAP, the permanent ones too (the runtime switches itself off). */
CA_SIGSAFE bool ca_patch_remove_all(void);
/* Text is about to go away: nobody patches until it is released. Waits, within reason, for who is at it;
 * returns whether there is something to be released. Ordinary context. */
bool ca_patch_hold(void);
void ca_patch_release(bool held);
/* The program has little address space: what is set aside for trampolines goes back. Before or while text
 * is patched; ordinary context. */
void ca_patch_trim(void);
/* Is the mapping that begins there one of those? */
bool ca_patch_owns(uintptr_t address);
/* Somebody is at it, or holds it: what is asked for now would be declined. */
CA_SIGSAFE bool ca_patch_is_busy(void);
/* In the child of a fork: completes what another thread of the parent was in the middle of. */
CA_SIGSAFE void ca_patch_forked(void);

/* For the unwinder: is pc inside a trampoline? Then *original is the equivalent address in the
 * program's text and *sp_shift what to add to sp to get the program's own. While a hook runs,
 * the outermost frame of ours returns to such a pc, and sp is the one after that return. */
CA_SIGSAFE bool ca_patch_translate(uintptr_t pc, uintptr_t *original, intptr_t *sp_shift);

/* Is pc in what a trampoline does for us, beside the program's own instructions? */
CA_SIGSAFE bool ca_patch_is_hook(uintptr_t pc);

/* SIGTRAP or SIGILL: was it ours? Then the context has been redirected and the handler just
 * returns. ca_patch takes the two signals itself; this is for a handler that sits in front. */
CA_SIGSAFE bool ca_patch_trap(int sig, const siginfo_t *info, void *context);
/* Put a handler of ours in place, by the kernel's call: a sanitizer's sigaction would hold our signals
 * back. *was: the action before; untouched if the handler is there already. */
bool ca_patch_take_signal(int sig, void (*handler)(int, siginfo_t *, void *), int flags, uint64_t mask,
			  struct sigaction *was);
/* True if sig is taken by ca_patch: then set (may be NULL) becomes what ca_patch chains to and
 * *old (may be NULL) what it was. False: sig is not taken, the caller goes to the kernel. */
CA_SIGSAFE bool ca_patch_sigaction(int sig, const struct sigaction *set, struct sigaction *old);

/* sigaction by the function given, so that a handler of SIGSEGV, SIGBUS or SIGFPE finds a fault in a
 * trampoline where the program has that instruction. *set may be changed. */
int ca_patch_fault_action(int sig, struct sigaction *set, struct sigaction *old,
			  int (*install)(int, const struct sigaction *, struct sigaction *));

/* For functions that the program wraps (causal/library): sites of kind WRAP, whose addresses are those of the
 * run; ordinary context. They stay until they are taken out here. */
struct ca_patch_wrapping {
	/* Where code[copy] has its place; 0: it cannot be done, or not now. Tried for 100 ms. */
	uintptr_t (*wrap)(const struct ca_site *site, unsigned copy);
	/* False: it cannot be done now. */
	bool (*unwrap)(uintptr_t address);
};
extern const struct ca_patch_wrapping ca_patch_wrapping __attribute__((visibility("hidden")));

/* What is in place now. */
struct ca_patch_stats {
	unsigned jumps;   /* sites reached by a jump or call */
	unsigned traps;   /* sites that stay an int3 */
	unsigned records; /* trampolines made so far */
};
CA_SIGSAFE struct ca_patch_stats ca_patch_stats(void);

#endif
