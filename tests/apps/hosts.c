/* SPDX-License-Identifier: MIT */
/* Healthy programs that are easily broken from within: what each case does is done by programs that
 * people run, and each checks that it finds what it would find alone. */
#include "tests/apps/app.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

/* ---- the main thread leaves, the others go on --------------------------------------------------*/
static void *visits(void *unused)
{
	work_for(0.02);
	return unused;
}

static void *goes_on(void *unused)
{
	enum { TOGETHER = 6 };
	pthread_t thread[TOGETHER];

	for (int i = 0; i < TOGETHER; i++)
		CHECK(!pthread_create(&thread[i], NULL, visits, NULL));
	for (double end = now() + 1.5; now() < end;)
		for (int i = 0; i < TOGETHER; i++) {
			work_once();
			CHECK(!pthread_join(thread[i], NULL));
			CHECK(!pthread_create(&thread[i], NULL, visits, NULL));
		}
	for (int i = 0; i < TOGETHER; i++)
		CHECK(!pthread_join(thread[i], NULL));
	printf("main_leaves: good\n");
	exit(unused != NULL);
}

static void case_main_leaves(void)
{
	pthread_t thread;

	work_for(0.2);
	CHECK(!pthread_create(&thread, NULL, goes_on, NULL));
	pthread_exit(NULL);
}

/* ---- alternate signal stacks that no handler could run on --------------------------------------*/
static void *small_stack(void *unused)
{
	static __thread char room[2560];
	stack_t own = { .ss_sp = room, .ss_size = 2048 }, now_there;

	CHECK(!sigaltstack(&own, NULL));
	work_for(0.2);
	CHECK(!sigaltstack(NULL, &now_there));
	CHECK(now_there.ss_sp == room && now_there.ss_size == 2048 && !now_there.ss_flags);
	own.ss_size = 2560;
	CHECK(!sigaltstack(&own, &now_there) && now_there.ss_size == 2048);
	work_for(0.2);
	own.ss_size = 1000;
	CHECK(sigaltstack(&own, NULL) == -1 && errno == ENOMEM);
	own.ss_flags = SS_DISABLE;
	CHECK(!sigaltstack(&own, &now_there) && now_there.ss_size == 2560);
	CHECK(!sigaltstack(NULL, &now_there) && now_there.ss_flags == SS_DISABLE);
	return unused;
}

static char shared_room[1 << 16];

static void *on_shared_stack(void *alone)
{
	stack_t shared = { .ss_sp = shared_room, .ss_size = sizeof shared_room }, now_there;

	CHECK(!sigaltstack(&shared, NULL));
	if (alone)
		raise(SIGUSR1);
	work_for(0.5);
	CHECK(!sigaltstack(NULL, &now_there));
	CHECK(now_there.ss_sp == shared_room && now_there.ss_size == sizeof shared_room);
	return alone;
}

static volatile sig_atomic_t ran_there;

static void runs_where(int signal)
{
	char here;

	(void)signal;
	ran_there = &here >= shared_room && &here < shared_room + sizeof shared_room;
}

/* one for all, as for a handler that ends the program; and who gives it up leaves it to others */
static void case_shared_stack(void)
{
	stack_t shared = { .ss_sp = shared_room, .ss_size = sizeof shared_room };
	struct sigaction action = { .sa_handler = runs_where, .sa_flags = SA_ONSTACK };
	pthread_t thread[4];

	CHECK(!sigaltstack(&shared, NULL) && !sigaction(SIGUSR1, &action, NULL));
	shared.ss_flags = SS_DISABLE;
	CHECK(!sigaltstack(&shared, NULL));
	CHECK(!pthread_create(&thread[0], NULL, on_shared_stack, &shared) && !pthread_join(thread[0], NULL));
	CHECK(ran_there);
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&thread[i], NULL, on_shared_stack, NULL));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(thread[i], NULL));
}

static void case_small_stack(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, small_stack, NULL));
	small_stack(NULL);
	CHECK(!pthread_join(thread, NULL));
}

static volatile int trapped;

static void on_trap(int signal)
{
	(void)signal;
	trapped++;
}

/* one that has room for a handler, and not for another one in it */
static void case_tight_stack(void)
{
	char *room = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t tight = { .ss_sp = room + 4096, .ss_size = 2560 };
	int times = 0;

	CHECK(room != MAP_FAILED && !mprotect(room, 4096, PROT_NONE));
	CHECK(!sigaltstack(&tight, NULL) && signal(SIGTRAP, on_trap) != SIG_ERR);
	for (double end = now() + 1; now() < end; times += 20) {
		work_once();
		for (int i = 0; i < 20; i++)
			__asm__ volatile("int3");
	}
	CHECK(trapped == times);
}

/* ---- memory ----------------------------------------------------------------------------------*/
static void case_lock_all(void)
{
	struct rlimit limit = { 8 << 20, 8 << 20 };

	if (geteuid() == 0)
		CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit) && !setgid(65534) && !setuid(65534));
	work_for(0.2);
	CHECK(!mlockall(MCL_CURRENT));
	work_for(0.2);
	CHECK(!munlockall() && !mlockall(MCL_CURRENT | MCL_FUTURE));
	work_for(0.1);
}

static void case_address_space(void)
{
	struct rlimit limit = { 200 << 20, 200 << 20 };
	void *room;

	work_for(0.1);
	CHECK(!setrlimit(RLIMIT_AS, &limit));
	room = mmap(NULL, 150 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(room != MAP_FAILED);
	work_for(0.3);
}

/* ---- what is asked of signals ------------------------------------------------------------------*/
static void unchanged(int how, const sigset_t *set, const sigset_t *expected)
{
	sigset_t found;

	CHECK(!pthread_sigmask(how, set, NULL));
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &found));
	for (int i = 1; i < 32; i++)
		if (i != SIGKILL && i != SIGSTOP && sigismember(&found, i) != sigismember(expected, i)) {
			printf("signal %d: blocked %d\n", i, sigismember(&found, i));
			fflush(stdout);
			_exit(99);
		}
}

static void ignores(int number)
{
	(void)number;
}

static void case_asked_masks(void)
{
	struct sigaction action = { .sa_handler = ignores }, old;
	sigset_t all, none, one, expected;

	sigfillset(&all);
	sigemptyset(&none);
	for (int i = 0; i < 20; i++) {
		unchanged(SIG_BLOCK, &all, &all);
		work_for(0.01);
		sigemptyset(&one);
		sigaddset(&one, SIGTRAP);
		expected = all;
		sigdelset(&expected, SIGTRAP);
		unchanged(SIG_UNBLOCK, &one, &expected);
		unchanged(SIG_SETMASK, &none, &none);
		sigaddset(&one, SIGURG);
		sigaddset(&one, SIGILL);
		unchanged(SIG_BLOCK, &one, &one);
		work_for(0.01);
		unchanged(SIG_SETMASK, &none, &none);
	}
	action.sa_mask = all;
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	CHECK(!sigaction(SIGUSR1, NULL, &old));
	CHECK(sigismember(&old.sa_mask, SIGTRAP) && sigismember(&old.sa_mask, SIGILL) &&
	      sigismember(&old.sa_mask, SIGURG));
	CHECK(!raise(SIGUSR1));
}

/* blocked, one of any kind stays pending and is taken from there */
static void case_own_signals(void)
{
	static const int sent[] = { SIGURG, SIGTRAP, SIGILL, SIGUSR1 };
	struct signalfd_siginfo info;
	siginfo_t taken;
	sigset_t all, pending;
	int fd;

	sigfillset(&all);
	CHECK(!sigprocmask(SIG_BLOCK, &all, NULL));
	work_for(0.1);
	fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	CHECK(fd >= 0);
	for (unsigned round = 0; round < 10; round++)
		for (unsigned i = 0; i < sizeof sent / sizeof *sent; i++) {
			CHECK(!kill(getpid(), sent[i]));
			work_for(0.002);
			CHECK(!sigpending(&pending) && sigismember(&pending, sent[i]));
			/* ticks by a timer keep theirs out of descriptors */
			if (sent[i] != SIGURG) {
				CHECK(read(fd, &info, sizeof info) == sizeof info);
				CHECK((int)info.ssi_signo == sent[i] && (pid_t)info.ssi_pid == getpid());
				CHECK(!kill(getpid(), sent[i]));
			}
			CHECK(sigwaitinfo(&all, &taken) == sent[i] && taken.si_pid == getpid());
		}
	work_for(0.1);
}

/* ---- left by a jump, at any instruction --------------------------------------------------------*/
static sigjmp_buf place;

static void jumps(int number)
{
	siglongjmp(place, number);
}

static void case_jumps(void)
{
	struct sigaction action = { .sa_handler = jumps };
	struct itimerval every = { { 0, 3000 }, { 0, 3000 } }, off = { { 0, 0 }, { 0, 0 } };
	static double end;

	end = now() + 2;
	CHECK(!sigaction(SIGALRM, &action, NULL));
	sigsetjmp(place, 1);
	if (now() < end) {
		CHECK(!setitimer(ITIMER_REAL, &every, NULL));
		for (;;) {
			work_once();
			usleep(1);
		}
	}
	CHECK(!setitimer(ITIMER_REAL, &off, NULL));
}

/* ---- sent, what else a fault brings: its handler runs where it would run alone ------------------*/
static __thread char *low __attribute__((tls_model("initial-exec")));
static __thread char *high __attribute__((tls_model("initial-exec")));
static atomic_uint on_stack, elsewhere;
static atomic_bool ready, all_sent;

static void looks(int number)
{
	char *here = __builtin_frame_address(0);

	(void)number;
	if (here >= low && here < high)
		atomic_fetch_add(&on_stack, 1);
	else
		atomic_fetch_add(&elsewhere, 1);
}

static void *is_sent(void *unused)
{
	pthread_attr_t own;
	void *start;
	size_t size;

	CHECK(!pthread_getattr_np(pthread_self(), &own) && !pthread_attr_getstack(&own, &start, &size));
	low = start;
	high = low + size;
	CHECK(!pthread_attr_destroy(&own));
	atomic_store(&ready, true);
	while (!atomic_load(&all_sent))
		work_once();
	return unused;
}

static void case_sent_faults(void)
{
	struct sigaction action = { .sa_handler = looks };
	pthread_t thread;

	CHECK(!sigaction(SIGABRT, &action, NULL) && !sigaction(SIGSEGV, &action, NULL));
	CHECK(!pthread_create(&thread, NULL, is_sent, NULL));
	while (!atomic_load(&ready))
		work_once();
	for (double end = now() + 0.5; now() < end; work_once())
		CHECK(!pthread_kill(thread, SIGABRT) && !pthread_kill(thread, SIGSEGV));
	atomic_store(&all_sent, true);
	CHECK(!pthread_join(thread, NULL));
	CHECK(atomic_load(&on_stack) > 0);
	CHECK(atomic_load(&elsewhere) == 0);
}

/* ---- faults ------------------------------------------------------------------------------------*/
long reads(const long *from);
__asm__(".text\n.globl reads\n.type reads, @function\n"
	"reads: nop\nreads_here: movq (%rdi), %rax\naddq $1, %rax\nret\n.size reads, . - reads\n"
	".globl reads_here");
extern const char reads_here[];
static volatile sig_atomic_t faults;

static void opens_page(int number, siginfo_t *info, void *context)
{
	const greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;

	CHECK(number == SIGSEGV && (uintptr_t)reg[REG_RIP] == (uintptr_t)reads_here);
	CHECK(!mprotect(info->si_addr, 4096, PROT_READ));
	faults++;
}

static void case_faults(void)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO }, old;
	long *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int n = 0;

	action.sa_sigaction = opens_page;
	CHECK(page != MAP_FAILED && !sigaction(SIGSEGV, &action, NULL));
	CHECK(!sigaction(SIGSEGV, NULL, &old) && old.sa_sigaction == opens_page);
	for (double end = now() + 0.5; now() < end; n++) {
		work_once();
		CHECK(!mprotect(page, 4096, PROT_NONE));
		CHECK(reads(page) == 1);
	}
	CHECK(faults == n);
	CHECK(signal(SIGSEGV, SIG_DFL) != SIG_ERR && !sigaction(SIGSEGV, NULL, &old));
	CHECK(old.sa_handler == SIG_DFL);
}

int main(int argc, char **argv)
{
	static const struct app_case cases[] = {
		{ "main_leaves", case_main_leaves },
		{ "small_stack", case_small_stack },
		{ "tight_stack", case_tight_stack },
		{ "shared_stack", case_shared_stack },
		{ "lock_all", case_lock_all },
		{ "address_space", case_address_space },
		{ "asked_masks", case_asked_masks },
		{ "own_signals", case_own_signals },
		{ "jumps", case_jumps },
		{ "sent_faults", case_sent_faults },
		{ "faults", case_faults },
	};

	return RUN_CASE(cases, argc, argv);
}
