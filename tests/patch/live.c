/* SPDX-License-Identifier: MIT */
/* Sites are placed and removed, a thousand times and more, under threads that run the patched
 * functions without a pause and are interrupted by a timer whose handler runs them as well. The
 * results must stay right; each thread's counts must end as they began. In between the process
 * forks, and the child runs the same code. In the end text is mapped anew under the patcher.
 *
 *   live [LIBRARY [ROUNDS]] */
#include "causal/runtime/patch.h"
#include "tests/patch/counts.h"
#include "tests/patch/target.h"
#include "tests/patch/victims.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, SEEDS = 16, ROUNDS = 1200, FORKS_EVERY = 100, REPLACED = 600 };

static struct target *target;
static uint64_t expected[SEEDS];
static _Atomic bool stop;
static _Atomic uint64_t wrong, runs, handled;
static unsigned failures;

#define FAIL(...) (failures++, fprintf(stderr, "FAIL " __VA_ARGS__))

static uint64_t (*in_handler)(uint64_t);

static void on_timer(int sig)
{
	int saved = errno;
	uint64_t seed = atomic_fetch_add(&handled, 1) % SEEDS;
	static _Atomic uint64_t sums[SEEDS];
	uint64_t sum = in_handler(seed), none = 0;

	(void)sig;
	if (!atomic_compare_exchange_strong(&sums[seed], &none, sum) && none != sum)
		atomic_fetch_add(&wrong, 1);
	errno = saved;
}

static void *work(void *argument)
{
	uint64_t seed = (uint64_t)(uintptr_t)argument;

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		seed = (seed + 1) % SEEDS;
		if (target->run(seed) != expected[seed])
			atomic_fetch_add(&wrong, 1);
		atomic_fetch_add_explicit(&runs, 1, memory_order_relaxed);
	}
	return NULL;
}

static void check_child(void)
{
	int status = 0;
	pid_t child = fork();

	if (!child) {
		struct itimerval off = { 0 };

		setitimer(ITIMER_REAL, &off, NULL);
		ca_patch_forked();
		for (uint64_t seed = 0; seed < SEEDS; seed++)
			if (target->run(seed) != expected[seed])
				_exit(1);
		if (!ca_patch_remove())
			_exit(2);
		for (size_t i = 0; i < target->functions; i++)
			if (!target_is_clean(&target->function[i]))
				_exit(3);
		_exit(target->run(3) == expected[3] ? 0 : 4);
	}
	if (waitpid(child, &status, 0) != child || status)
		FAIL("a child ended with status %#x\n", (unsigned)status);
}

static size_t choose(unsigned round, struct ca_site *out, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < target->functions; i++) {
		const struct target_function *f = &target->function[i];
		bool line = round % 5 == 4;
		size_t count = line ? f->calls : f->sites;

		/* one function, a half of them, or all */
		if ((round % 3 == 0 && i != round / 3 % target->functions) ||
		    (round % 3 == 1 && (i ^ round >> 2) & 1))
			continue;
		for (size_t k = 0; k < count && n < max; k++) {
			out[n] = line ? f->call[k] : f->site[k];
			if (round % 2) /* traps for good, too */
				out[n].flags &= (uint8_t)~CA_SITE_NO_TRAP;
			n++;
		}
	}
	return n;
}

static void go_round(unsigned rounds)
{
	static struct ca_site site[TARGET_FUNCTIONS * 96];
	unsigned placed = 0, traps = 0, declined = 0, whole = 0;

	for (unsigned round = 0; round < rounds; round++) {
		size_t n = choose(round, site, sizeof site / sizeof *site);
		unsigned failed;
		struct ca_patch_stats stats;
		uint64_t before = atomic_load(&runs);

		failed = ca_patch_install(site, n, target_bias);
		declined += failed;
		whole += n && failed == n;
		stats = ca_patch_stats();
		placed += stats.jumps + stats.traps;
		traps += stats.traps;
		if (round % FORKS_EVERY == FORKS_EVERY - 1)
			check_child();
		while (round % 4 == 0 && atomic_load(&runs) < before + 2)
			usleep(100); /* let them pass all of it */
		if (!ca_patch_remove())
			FAIL("round %u: cannot remove\n", round);
	}
	printf("%u rounds: %u sites placed, %u of them traps, %u declined (all of them in %u rounds); %lu "
	       "runs, %lu in handlers, %u trampolines\n",
	       rounds, placed, traps, declined, whole, (unsigned long)atomic_load(&runs),
	       (unsigned long)atomic_load(&handled), ca_patch_stats().records);
}

/* ---- when not to ------------------------------------------------------------------------------ */
static void *block_traps(void *argument)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_barrier_wait(argument);
	pthread_barrier_wait(argument);
	return NULL;
}

/* A thread that blocks SIGTRAP would be killed by a trap; there is one for a moment in removing, too. */
static void test_blocked(void)
{
	struct target_function *f = &target->function[0], *g = &target->function[1];
	pthread_barrier_t barrier;
	pthread_t thread;

	if (ca_patch_install(g->site, g->sites, target_bias) == g->sites)
		FAIL("not placed although there is one thread only\n");
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, block_traps, &barrier);
	pthread_barrier_wait(&barrier);
	if (ca_patch_install(f->site, f->sites, target_bias) != f->sites)
		FAIL("placed although a thread blocks SIGTRAP\n");
	if (!target_is_clean(f))
		FAIL("declined, but the text has changed\n");
	if (ca_patch_remove() || target_is_clean(g))
		FAIL("removed although a thread blocks SIGTRAP\n");
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	if (!ca_patch_remove() || !target_is_clean(g))
		FAIL("not removed although there is one thread only\n");
}

/* A debugger would be shown our traps. */
static void test_traced(void)
{
	struct target_function *f = &target->function[0], *g = &target->function[1];
	int status = 0;
	pid_t child;

	child = fork();
	if (!child) {
		pthread_t thread;

		stop = false;
		if (ca_patch_install(g->site, g->sites, target_bias) == g->sites)
			_exit(4);
		pthread_create(&thread, NULL, work, NULL);
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(1);
		raise(SIGSTOP);
		if (ca_patch_install(f->site, f->sites, target_bias) != f->sites)
			_exit(2);
		if (ca_patch_remove() || target_is_clean(g))
			_exit(5);
		_exit(target_is_clean(f) ? 0 : 3);
	}
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status))
		ptrace(PTRACE_CONT, child, 0, WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status));
	if (status)
		FAIL("traced: status %#x\n", (unsigned)status);
}

/* ---- text that is mapped anew, as that of a library that is closed and opened again ------------ */
static const Elf64_Phdr *text_segment(void)
{
	const Elf64_Phdr *ph = (const void *)getauxval(AT_PHDR);

	while (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X))
		ph++;
	return ph;
}

static void *patch_all(void *unused)
{
	static struct ca_site site[TARGET_FUNCTIONS * 96];
	size_t n = choose(2, site, sizeof site / sizeof *site);

	while (!stop) {
		ca_patch_install(site, n, target_bias);
		ca_patch_remove();
	}
	return unused;
}

/* Between any two writes of the patcher's: what stands there afterwards is in force as a whole or not at all. */
static void replace_text(int file)
{
	const Elf64_Phdr *ph = text_segment();
	uintptr_t low, bias = 0;
	pthread_t thread;

	target_bias(1, &bias);
	low = ph->p_vaddr + bias;
	stop = false;
	pthread_create(&thread, NULL, patch_all, NULL);
	for (unsigned i = 0; i < REPLACED; i++) {
		if (mmap((void *)low, ph->p_memsz, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file,
			 (off_t)ph->p_offset) == MAP_FAILED)
			_exit(2);
		for (unsigned k = i * 7919 % 128; k > 0; k--)
			if (target->run(k % SEEDS) != expected[k % SEEDS])
				_exit(3);
	}
	stop = true;
	pthread_join(thread, NULL);
	_exit(0);
}

static void test_replaced(void)
{
	int status = 0, file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	pid_t child = fork();

	if (!child)
		replace_text(file);
	waitpid(child, &status, 0);
	if (status)
		FAIL("text mapped anew: status %#x\n", (unsigned)status);
	close(file);
}

int main(int argc, char **argv)
{
	struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
	pthread_t thread[THREADS];
	const char *why;

	setvbuf(stdout, NULL, _IOLBF, 0);
	target = target_open(argc > 1 && *argv[1] ? argv[1] : NULL);
	in_handler = target->in_handler;
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		expected[seed] = target->run(seed);
	counts_set();
	if (!ca_patch_init(&why)) {
		fprintf(stderr, "skipped: %s\n", why);
		return 77;
	}
	test_blocked();
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
	go_round(argc > 2 ? (unsigned)atoi(argv[2]) : ROUNDS);
	stop = true;
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	memset(&timer, 0, sizeof timer);
	setitimer(ITIMER_REAL, &timer, NULL);
	test_traced();
	if (argc < 2 || !*argv[1])
		test_replaced();
	if (wrong)
		FAIL("%lu wrong results\n", (unsigned long)atomic_load(&wrong));
	if (!handled)
		FAIL("no signals came\n");
	return failures != 0;
}
