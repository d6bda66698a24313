/* SPDX-License-Identifier: MIT */
/* Functions and lines of every awkward shape are patched, one at a time and all at once, and
 * must compute what they compute unpatched, be entered as often as they count themselves, and
 * leave no activation behind. Also steps through every trampoline by single instructions: at
 * each of them the unwinder's translation must lead to the frame that the entry reported.
 *
 *   run [LIBRARY]    victims from a shared library; else those linked in */
#include "causal/runtime/patch.h"
#include "tests/patch/counts.h"
#include "tests/patch/target.h"
#include "tests/patch/victims.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { SEEDS = 60 };

static struct target *target;
static uint64_t expected[SEEDS], visits[V_COUNT];
static unsigned failures;

#define FAIL(...) (failures++, fprintf(stderr, "FAIL " __VA_ARGS__))

static const char *const names[] = {
#define X(name) "v_" #name,
	VICTIMS(X)
#undef X
};

static void run_all(const char *what)
{
	memset(target->visits(), 0, sizeof visits);
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		if (target->run(seed) != expected[seed]) {
			FAIL("%s: another result with seed %lu\n", what, (unsigned long)seed);
			return;
		}
}

/* How often a function must have been entered; -1: it does not count exactly. */
static long visits_of(const char *name)
{
	for (unsigned i = 0; i < V_COUNT; i++)
		/* these turn into loops, are counted by callers, or not at all */
		if (!strcmp(names[i], name) && i != V_tiny && i != V_selftail && i != V_fib &&
		    i != V_callbacks)
			return (long)visits[i];
	return -1;
}

static bool leaves_by_jump(const char *name)
{
	return !strcmp(name, "v_jumper") || !strcmp(name, "v_thrower") || !strcmp(name, "v_virtual_");
}

static unsigned install(const struct ca_site *site, size_t n)
{
	memset(&hook_counts, 0, sizeof hook_counts);
	return ca_patch_install(site, n, target_bias);
}

/* Sites that want a jump or nothing may be declined; then there is nothing to be counted. */
static bool may_decline(const struct ca_site *site, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (site[i].flags & CA_SITE_NO_TRAP)
			return true;
	return false;
}

static void test_function(struct target_function *f, unsigned *declined)
{
	unsigned failed = install(f->site, f->sites);
	long times = visits_of(f->name);

	if (failed && !may_decline(f->site, f->sites))
		FAIL("%s: %u of %zu sites could not be placed\n", f->name, failed, f->sites);
	run_all(f->name);
	*declined += failed > 0;
	/* after a longjmp an entry with the same sp looks like a jump to the function's start */
	if (!failed && times >= 0 && hook_counts.enters != (uint64_t)times &&
	    !(leaves_by_jump(f->name) && hook_counts.enters < (uint64_t)times))
		FAIL("%s: entered %lu times, not %ld\n", f->name, (unsigned long)hook_counts.enters, times);
	if (!failed && !leaves_by_jump(f->name) && hook_counts.exits != hook_counts.enters)
		FAIL("%s: entered %lu times, left %lu\n", f->name, (unsigned long)hook_counts.enters,
		     (unsigned long)hook_counts.exits);
	if (!failed && hook_counts.depth && !leaves_by_jump(f->name))
		FAIL("%s: %u activations left\n", f->name, hook_counts.depth);
	if (!failed && !hook_counts.enters)
		FAIL("%s: never entered\n", f->name);
	if (!ca_patch_remove() || !target_is_clean(f))
		FAIL("%s: not as it was\n", f->name);
	memset(&hook_counts, 0, sizeof hook_counts);
	run_all(f->name);
	if (hook_counts.passes)
		FAIL("%s: hooks still called\n", f->name);
}

static void test_line(struct target_function *f, unsigned *declined)
{
	unsigned failed = install(f->call, f->calls);

	run_all(f->name);
	*declined += failed > 0;
	if (failed && !may_decline(f->call, f->calls))
		FAIL("%s: %u of %zu call sites could not be placed\n", f->name, failed, f->calls);
	if (!failed && hook_counts.depth && strcmp(f->name, "v_jumper") && strcmp(f->name, "v_landing") &&
	    !leaves_by_jump(f->name) && strcmp(f->name, "v_catcher"))
		FAIL("%s as a line: %u activations left\n", f->name, hook_counts.depth);
	ca_patch_remove();
}

static void test_each(void)
{
	unsigned functions = 0, lines = 0, declined = 0, declined_lines = 0;

	for (size_t i = 0; i < target->functions; i++) {
		struct target_function *f = &target->function[i];

		if (f->sites) {
			test_function(f, &declined);
			functions++;
		}
		if (f->calls) {
			test_line(f, &declined_lines);
			lines++;
		}
	}
	printf("%u of %zu functions, %u declined; %u lines, %u declined\n", functions, target->functions,
	       declined, lines, declined_lines);
	if (functions * 10 < target->functions * 8 || declined * 4 > functions)
		FAIL("only %u of %zu functions planned, %u declined\n", functions, target->functions,
		     declined);
}

static size_t collect(struct ca_site *out)
{
	size_t n = 0;

	for (size_t i = 0; i < target->functions; i++)
		for (size_t k = 0; k < target->function[i].sites; k++)
			out[n++] = target->function[i].site[k];
	return n;
}

static struct ca_site all[TARGET_FUNCTIONS * 96];

static void test_all(bool traps)
{
	size_t n = collect(all);
	struct ca_patch_stats stats;

	for (size_t i = 0; traps && i < n; i++)
		all[i].flags &= (uint8_t)~CA_SITE_NO_TRAP;
	install(all, n);
	stats = ca_patch_stats();
	run_all(traps ? "all, with traps" : "all");
	if (!hook_counts.enters)
		FAIL("all: never entered\n");
	printf("%zu sites at once: %u jumps, %u traps; %lu enters, %lu exits, %lu strays\n", n, stats.jumps,
	       stats.traps, (unsigned long)hook_counts.enters, (unsigned long)hook_counts.exits,
	       (unsigned long)hook_counts.stray);
	ca_patch_remove();
	for (size_t i = 0; i < target->functions; i++)
		if (!target_is_clean(&target->function[i]))
			FAIL("%s: not as it was\n", target->function[i].name);
}

/* ---- single steps -------------------------------------------------------------------------- */
static uint64_t steps, steps_inside, steps_checked, steps_wrong;
static struct {
	uintptr_t frame, pc, original;
	uint64_t passes;
	bool is;
} pending;

static void complain(uintptr_t pc, uintptr_t original, uintptr_t frame)
{
	if (steps_wrong++ < 5)
		fprintf(stderr, "pc %#lx (text %#lx): frame %#lx, but the hook says %#lx\n",
			(unsigned long)pc, (unsigned long)original, (unsigned long)frame,
			(unsigned long)hook_counts.last);
}

static bool is_victim(uintptr_t address)
{
	for (size_t i = 0; i < target->functions; i++)
		if (address >= target->function[i].range.low && address < target->function[i].range.high)
			return true;
	return false;
}

/* Where the return address is must be what the last hook said or, in front of a hook, what the
 * next one will say. */
static void check_step(uintptr_t pc, uintptr_t sp)
{
	uintptr_t original, bias, frame;
	intptr_t shift;
	int depth;

	steps++;
	target_bias(1, &bias);
	if (!ca_patch_translate(pc, &original, &shift)) {
		if (is_victim(pc - bias)) /* it went on without a hook */
			pending.is = false;
		return;
	}
	steps_inside++;
	depth = ca_text_depth(target->text, original - bias);
	if (depth <= 0)
		return;
	steps_checked++;
	frame = sp + (uintptr_t)shift + (uintptr_t)depth - 8;
	if (pending.is && pending.passes != hook_counts.passes && pending.frame != hook_counts.last)
		complain(pending.pc, pending.original, pending.frame);
	pending.is = frame != hook_counts.last;
	pending.frame = frame;
	pending.pc = pc;
	pending.original = original - bias;
	pending.passes = hook_counts.passes;
}

static void on_step(int sig, siginfo_t *info, void *context)
{
	const greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)sig;
	if (info->si_code == TRAP_TRACE || info->si_code == TRAP_BRKPT)
		check_step((uintptr_t)reg[REG_RIP], (uintptr_t)reg[REG_RSP]);
}

static void set_trap_flag(bool on)
{
	if (on)
		__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
				 "lea 128(%%rsp), %%rsp" ::
					 : "cc", "memory");
	else
		__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\t"
				 "lea 128(%%rsp), %%rsp" ::
					 : "cc", "memory");
}

static void test_steps(void)
{
	struct sigaction step = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
	uint64_t sum;

	/* as the wrapper of sigaction does: SIGTRAP is taken by now */
	if (!ca_patch_sigaction(SIGTRAP, &step, NULL))
		FAIL("SIGTRAP is not taken\n");
	install(all, collect(all));
	set_trap_flag(true);
	sum = target->run(7);
	set_trap_flag(false);
	if (sum != expected[7])
		FAIL("another result when stepped\n");
	ca_patch_remove();
	printf("%lu steps, %lu in trampolines, %lu compared, %lu wrong\n", (unsigned long)steps,
	       (unsigned long)steps_inside, (unsigned long)steps_checked, (unsigned long)steps_wrong);
	if (steps_wrong || !steps_checked)
		FAIL("the unwinder would be led astray\n");
}

/* ---- the program's own traps, and fork ------------------------------------------------------ */
static volatile sig_atomic_t own_traps;

static void on_own_trap(int sig)
{
	(void)sig;
	own_traps++;
}

static void test_own_trap(void)
{
	struct sigaction own = { .sa_handler = on_own_trap }, old;
	size_t n = collect(all);

	for (size_t i = 0; i < n; i++)
		all[i].flags &= (uint8_t)~CA_SITE_NO_TRAP;
	ca_patch_sigaction(SIGTRAP, &own, NULL);
	install(all, n);
	__asm__ volatile("int3");
	run_all("with a handler of its own");
	raise(SIGTRAP);
	if (own_traps != 2)
		FAIL("its own handler ran %d times, not 2\n", (int)own_traps);
	if (!ca_patch_sigaction(SIGTRAP, NULL, &old) || old.sa_handler != on_own_trap)
		FAIL("its own handler is forgotten\n");
	ca_patch_remove();
}

static void test_blocked(void)
{
	size_t n = collect(all);
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	install(all, n); /* alone: placed, but nothing that may trap for good */
	if (ca_patch_stats().traps)
		FAIL("traps in spite of a blocked SIGTRAP\n");
	run_all("with SIGTRAP blocked");
	ca_patch_remove();
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void test_fork(void)
{
	size_t n = collect(all);
	int status = 0;
	pid_t child;

	install(all, n);
	child = fork();
	if (!child) {
		failures = 0;
		ca_patch_forked();
		run_all("in the child");
		ca_patch_remove();
		run_all("in the child, removed");
		install(all, n);
		run_all("in the child, again");
		fflush(NULL);
		_exit(failures != 0);
	}
	waitpid(child, &status, 0);
	if (status)
		FAIL("the child ended with status %#x\n", (unsigned)status);
	run_all("the parent");
	ca_patch_remove();
}

int main(int argc, char **argv)
{
	const char *why;

	setvbuf(stdout, NULL, _IOLBF, 0);
	target = target_open(argc > 1 ? argv[1] : NULL);
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		expected[seed] = target->run(seed);
	memset(target->visits(), 0, sizeof visits);
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		target->run(seed);
	memcpy(visits, target->visits(), sizeof visits);
	counts_set();
	if (!ca_patch_init(&why)) {
		fprintf(stderr, "skipped: %s\n", why);
		return 77;
	}
	test_each();
	test_all(false);
	test_all(true);
	test_steps();
	test_own_trap();
	test_blocked();
	test_fork();
	return failures != 0;
}
