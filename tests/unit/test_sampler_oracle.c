/* SPDX-License-Identifier: MIT */
/* sampler/unwind.c against libunwind: ticks of a timer at any instruction of code that is compiled as programs
 * are, and of libc's own assembler; frame by frame the same callers. */
#include "tests/unit/unit.h"
#include <stdio.h>

#ifdef HAVE_LIBUNWIND
#define UNW_LOCAL_ONLY
#include "sampler/unwind.h"
#include "tests/unit/sampler_fixture.h"
#include <alloca.h>
#include <libunwind.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

enum { FRAMES = 100, TICK = 1000 /* us */, LEAST = 100, PERCENT = 99, ROUNDS = 200000 };

static struct ca_stack stack;
static volatile unsigned ticks, compared, complete, different;
static char difference[400];
static volatile sig_atomic_t busy;

/* libunwind's callers of what was interrupted, that included; 0: it did not come to the end. */
static int ask(ucontext_t *context, uintptr_t ip[FRAMES])
{
	unw_cursor_t cursor;
	int n = 0, more = 1;

	if (unw_init_local2(&cursor, context, UNW_INIT_SIGNAL_FRAME))
		return 0;
	while (more > 0 && n < FRAMES) {
		unw_word_t word;

		if (unw_get_reg(&cursor, UNW_REG_IP, &word) || !word)
			return n;
		ip[n++] = word;
		more = unw_step(&cursor);
	}
	return more == 0 ? n : 0;
}

static void compare(const uintptr_t *ip, int n)
{
	for (int i = 0; i < n || i < (int)stack.depth; i++) {
		uintptr_t bias = 0, ours = 0;

		if (i < (int)stack.depth && ca_modules_bias(CA_PLACE_MODULE(stack.place[i]), &bias))
			ours = bias + CA_PLACE_OFFSET(stack.place[i]);
		/* of a call it is the address before the one to which it returns */
		if (i < n && (ours == ip[i] || (i && ours + 1 == ip[i])))
			continue;
		if (!different++)
			snprintf(
				difference, sizeof difference,
				"frame %d of %u, libunwind's %d: %#lx, libunwind says %#lx; it began at %#lx",
				i, stack.depth, n, ours, i < n ? ip[i] : 0, ip[0]);
		return;
	}
}

static void handle(int signo, siginfo_t *info, void *context)
{
	static uintptr_t ip[FRAMES];
	struct ca_registers r;
	uintptr_t all[16];
	int n;

	(void)signo;
	(void)info;
	if (busy++) { /* another thread is at it */
		busy--;
		return;
	}
	ticks++;
	ca_unwind_registers(&r, all, context);
	ca_unwind(&r, false, &stack);
	complete += stack.complete;
	n = ask(context, ip);
	if (n && n < FRAMES && stack.complete) {
		compared++;
		compare(ip, n);
	}
	busy--;
}

/* ---- what is interrupted ----------------------------------------------------------------------*/
static volatile unsigned sink;

static __attribute__((noinline)) void use(const char *text)
{
	sink += (unsigned)strlen(text);
}

static __attribute__((noinline)) int by_value(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	sink++;
	return x < y ? -1 : x > y;
}

static __attribute__((noinline)) void sorts(void)
{
	int list[300];

	for (int i = 0; i < 300; i++)
		list[i] = (int)(((unsigned)i * 2654435761u) >> 8);
	qsort(list, 300, sizeof *list, by_value);
}

/* Libc's assembler: moves, searches, comparisons of many sizes. */
static __attribute__((noinline)) void copies(size_t n)
{
	char *from = alloca(n + 1), *to = alloca(n + 1);

	memset(from, 'x', n);
	from[n] = '\0';
	memcpy(to, from, n + 1);
	memmove(to, to + n / 2, n - n / 2);
	sink += (unsigned)(memcmp(from, to, n) == 0) + (strchr(from, 'y') == NULL) +
		(strstr(from, "xxy") == NULL);
	use(to);
}

static __attribute__((noinline)) void prints(double value)
{
	char text[200];

	snprintf(text, sizeof text, "%.17g %-20s %08x", value, "left", sink);
	use(text);
}

static __attribute__((noinline)) void deep(int depth)
{
	volatile char room[depth * 24 + 8];

	room[0] = (char)depth;
	if (depth)
		deep(depth - 1);
	else
		copies(3000);
	sink += (unsigned)room[0];
}

/* A tail call: its frame is gone. */
static __attribute__((noinline)) void ends_in_another(int depth)
{
	sink++;
	deep(depth);
}

static void inside(int signo)
{
	(void)signo;
	sorts();
}

static void *work(void *wanted)
{
	for (unsigned i = 0; compared < *(unsigned *)wanted && i < ROUNDS; i++) {
		sorts();
		copies(i % 5000 + 1);
		prints(i / 7.0);
		ends_in_another((int)(i % 40));
		if (i % 4 == 0)
			raise(SIGUSR2);
	}
	return NULL;
}

static void check(const char *where)
{
	print_message("%s: %u ticks, %u compared\n", where, ticks, compared);
	if (different)
		fail_msg("%s: %u stacks of %u differ: %s", where, different, compared, difference);
	assert_true(compared >= LEAST);
	assert_true(100 * complete >= PERCENT * ticks);
}

static void test_against_libunwind(void **state)
{
	struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct itimerval every = { { 0, TICK }, { 0, TICK } }, never = { { 0, 0 }, { 0, 0 } };
	unsigned wanted = 2 * LEAST;
	pthread_t thread;

	(void)state;
	signal(SIGUSR2, inside);
	raise(SIGUSR2); /* all that is bound late is bound */
	prints(1);
	copies(10);
	ca_modules_scan();
	sampler_index_all();
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	work(&wanted);
	setitimer(ITIMER_PROF, &never, NULL);
	check("the main thread");
	wanted += 2 * LEAST;
	setitimer(ITIMER_PROF, &every, NULL);
	assert_int_equal(pthread_create(&thread, NULL, work, &wanted), 0);
	pthread_join(thread, NULL);
	setitimer(ITIMER_PROF, &never, NULL);
	check("and another one");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_against_libunwind) };

	return cmocka_run_group_tests(tests, sampler_set_up, sampler_tear_down);
}
#else
int main(void)
{
	puts("there is no libunwind to compare with");
	return 77;
}
#endif
