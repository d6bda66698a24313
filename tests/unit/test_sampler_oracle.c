/* SPDX-License-Identifier: MIT */
/* sampler/unwind.c against libunwind: at each instruction of programs that are compiled as programs are, of the
 * libraries that they use, of the dynamic linker and of libc's own assembler, frame by frame the same callers. The
 * processor steps through them (the trap flag), so that no instruction is left to chance. */
#include "tests/unit/unit.h"
#include <stdio.h>

#ifdef HAVE_LIBUNWIND
#define UNW_LOCAL_ONLY
#include "sampler/unwind.h"
#include "tests/unit/sampler_fixture.h"
#include <dlfcn.h>
#include <libunwind.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum {
	FRAMES = 200,
	LEAST = 5000,
	TRIES = 20,
	MOST = 300000,
	PER_MILLE = 990,
	TRAP_FLAG = 0x100,
	SHOWN = 8,
	APART = 100
};

/* libunwind in a scope of its own: it has the names of the library that throws exceptions, and blocks signals. */
#define TEXT(name)  #name
#define NAME(macro) TEXT(macro)
static __typeof__(unw_init_local2) *init_local;
static __typeof__(unw_get_reg) *get_reg;
static __typeof__(unw_step) *step_out;
static __typeof__(unw_flush_cache) *flush_cache;
static unw_addr_space_t *space;

static struct ca_stack stack;
static unsigned steps, compared, complete, different;
static atomic_int busy;

/* libunwind's callers of what was interrupted, that included; 0: it did not come to the end. */
static int ask(ucontext_t *context, uintptr_t ip[FRAMES])
{
	unw_cursor_t cursor;
	int n = 0, more = 1;

	if (init_local(&cursor, context, UNW_INIT_SIGNAL_FRAME))
		return 0;
	while (more > 0 && n < FRAMES) {
		unw_word_t word;

		if (get_reg(&cursor, UNW_REG_IP, &word) || !word)
			return n;
		ip[n++] = word;
		more = step_out(&cursor);
	}
	return more == 0 ? n : 0;
}

static uintptr_t ours_at(unsigned i)
{
	uintptr_t bias = 0;

	if (i >= stack.depth || !ca_modules_bias(CA_PLACE_MODULE(stack.place[i]), &bias))
		return 0;
	return bias + CA_PLACE_OFFSET(stack.place[i]);
}

static void show(const char *what, const uintptr_t *ip, int n)
{
	print_message("%s at step %u: ours has %u frames, libunwind's %d\n", what, steps, stack.depth, n);
	for (unsigned i = 0; (int)i < n || i < stack.depth; i++) {
		uintptr_t a = ours_at(i), b = (int)i < n ? ip[i] : 0;
		Dl_info one = { 0 }, other = { 0 };

		dladdr((void *)a, &one);   // NOLINT(performance-no-int-to-ptr)
		dladdr((void *)b, &other); // NOLINT(performance-no-int-to-ptr)
		print_message("  %#lx %s+%#lx (%s) | %#lx %s (%s)\n", a, one.dli_sname ? one.dli_sname : "",
			      one.dli_fbase ? a - (uintptr_t)one.dli_fbase : 0,
			      one.dli_fname ? one.dli_fname : "", b, other.dli_sname ? other.dli_sname : "",
			      other.dli_fname ? other.dli_fname : "");
	}
}

static bool is_same(const uintptr_t *ip, int n)
{
	if (n != (int)stack.depth)
		return false;
	for (unsigned i = 0; i < stack.depth; i++) {
		uintptr_t ours = ours_at(i);

		/* of a call it is the address before the one to which it returns */
		if (ours != ip[i] && (!i || ours + 1 != ip[i]))
			return false;
	}
	return true;
}

static void handle(int signo, siginfo_t *info, void *context)
{
	static uintptr_t ip[FRAMES];
	static unsigned shown;
	static uintptr_t last;
	ucontext_t *interrupted = context;
	struct ca_registers r;
	uintptr_t all[16];
	int n;

	(void)signo;
	(void)info;
	if (atomic_exchange(&busy, 1)) /* another thread is at it */
		return;
	steps++;
	ca_unwind_registers(&r, all, context);
	ca_unwind(&r, false, &stack);
	complete += stack.complete;
	n = ask(interrupted, ip);
	if (n && n < FRAMES && stack.complete) {
		compared++;
		if (!is_same(ip, n)) {
			/* it mixes up an address that is returned to and the same one interrupted */
			flush_cache(*space, 0, 0);
			n = ask(interrupted, ip);
		}
		if (!is_same(ip, n) && different++ < SHOWN)
			show("other callers", ip, n);
	} else if (!stack.complete && shown < SHOWN && r.pc - last > APART) {
		show("incomplete", ip, n);
		last = r.pc;
		shown++;
	}
	if (compared >= MOST)
		interrupted->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	atomic_store(&busy, 0);
}

/* Of the calling thread, from the return on. */
static __attribute__((noinline)) void begin(void)
{
	__asm__ volatile(
		"lea -128(%%rsp), %%rsp\n\tpushfq\n\torq %0, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp"
		:
		: "i"(TRAP_FLAG)
		: "memory", "cc");
}

static __attribute__((noinline)) void end(void)
{
	__asm__ volatile(
		"lea -128(%%rsp), %%rsp\n\tpushfq\n\tandq %0, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp"
		:
		: "i"(~TRAP_FLAG)
		: "memory", "cc");
}

/* Compiled as programs are: without frame pointers, which is what -O2 does. */
static void check(const char *compiler, const char *source)
{
	struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO }, before;
	void (*work)(void (*)(void), void (*)(void));
	void *library;

	if (fixture_run("%s %s/tests/unit/oracle/%s -o %s.so", compiler, TOP_SRCDIR, source, source))
		fail_msg("%s cannot be compiled", source);
	library = dlopen(fixture_path(strcat(strcpy((char[64]){ 0 }, source), ".so")), RTLD_LAZY);
	if (!library)
		fail_msg("%s", dlerror());
	*(void **)&work = dlsym(library, "oracle_work");
	assert_non_null(work);
	ca_modules_scan();
	sampler_index_all();
	steps = compared = complete = different = 0;
	sigaction(SIGTRAP, &action, &before);
	/* of a team the other threads may get nearly all of the work */
	for (unsigned i = 0; i < TRIES && compared < LEAST; i++)
		work(begin, end);
	sigaction(SIGTRAP, &before, NULL);
	print_message("%s: %u steps, %u to the end, %u compared\n", source, steps, complete, compared);
	assert_int_equal(different, 0);
	assert_true(compared >= LEAST);
	assert_true(1000.0 * complete >= 1.0 * PER_MILLE * steps);
}

static const char *options(const char *compiler, const char *more)
{
	static char text[600];

	snprintf(text, sizeof text, "%s -O2 -fomit-frame-pointer -fPIC -shared -pthread %s", compiler, more);
	return text;
}

static void test_c(void **state)
{
	(void)state;
	check(options(fixture_cc(), ""), "plain.c");
}

static void test_cxx(void **state)
{
	(void)state;
	check(options(fixture_cxx(), "-std=gnu++17"), "exceptions.cc");
}

static void test_openmp(void **state)
{
	(void)state;
	setenv("OMP_WAIT_POLICY", "passive", 1);
	check(options("gcc", "-fopenmp"), "teams.c");
}

static void test_rust(void **state)
{
	(void)state;
	if (fixture_run("rustc --version >rustc 2>&1")) {
		print_message("SKIP: there is no rustc\n");
		skip();
	}
	check("rustc --edition 2021 -C opt-level=2 -C force-frame-pointers=no -C prefer-dynamic=no "
	      "--crate-type cdylib",
	      "panics.rs");
}

static int set_up(void **state)
{
	void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return -1;
	*(void **)&init_local = dlsym(library, NAME(unw_init_local2));
	*(void **)&get_reg = dlsym(library, NAME(unw_get_reg));
	*(void **)&flush_cache = dlsym(library, NAME(unw_flush_cache));
	*(void **)&space = dlsym(library, NAME(unw_local_addr_space));
	*(void **)&step_out = dlsym(library, NAME(unw_step));
	return !init_local || !get_reg || !step_out || !flush_cache || !space || sampler_set_up(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_c),
		cmocka_unit_test(test_cxx),
		cmocka_unit_test(test_openmp),
		cmocka_unit_test(test_rust),
	};
	const char *sanitizer = getenv("CA_SANITIZER");

	if (sanitizer && *sanitizer) {
		puts("SKIP: what unwinds has no sanitizer, so that this is a test of the build without one");
		return 77;
	}
	return cmocka_run_group_tests(tests, set_up, sampler_tear_down);
}
#else
int main(void)
{
	puts("there is no libunwind to compare with");
	return 77;
}
#endif
