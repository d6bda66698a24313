/* SPDX-License-Identifier: MIT */
/* Threads of all kinds. */
#include "tests/apps/app.h"
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counted;

static void *a_little(void *unused)
{
	for (int i = 0; i < 3; i++) {
		piece_of_work();
		pthread_mutex_lock(&lock);
		counted++;
		pthread_mutex_unlock(&lock);
		CAUSAL_PROGRESS_NAMED("thread");
	}
	return unused;
}

static void case_churn(void)
{
	enum { ROUNDS = 300, TOGETHER = 12 };

	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread[TOGETHER];

		for (int k = 0; k < TOGETHER; k++)
			CHECK(!pthread_create(&thread[k], NULL, a_little, NULL));
		for (int k = 0; k < TOGETHER; k++)
			CHECK(!pthread_join(thread[k], NULL));
	}
	CHECK(counted == 3L * ROUNDS * TOGETHER);
}

/* more at once than there are places at first */
static void *waits(void *p)
{
	pthread_barrier_wait(p);
	a_little(NULL);
	pthread_barrier_wait(p);
	return NULL;
}

static void case_crowd(void)
{
	enum { CROWD = 500 };
	static pthread_t thread[CROWD];
	pthread_barrier_t barrier;
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	pthread_barrier_init(&barrier, NULL, CROWD + 1);
	for (int i = 0; i < CROWD; i++)
		CHECK(!pthread_create(&thread[i], &small, waits, &barrier));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < CROWD; i++)
		CHECK(!pthread_join(thread[i], NULL));
	CHECK(counted == 3L * CROWD);
}

/* Five thousand alive at once, while short ones come and go: 20,000 of them. Each is seen. */
static void *lives_long(void *p)
{
	a_little(NULL);
	pthread_barrier_wait(p);
	pthread_barrier_wait(p);
	piece_of_work();
	CAUSAL_PROGRESS_NAMED("long");
	return NULL;
}

static void *lives_short(void *unused)
{
	for (int i = 0; i < 3; i++)
		other_work();
	CAUSAL_PROGRESS_NAMED("short");
	return unused;
}

static void case_thousands(void)
{
	enum { LONG = 5000, SHORT = 20000, TOGETHER = 200 };
	static pthread_t thread[LONG], brief[TOGETHER];
	pthread_barrier_t barrier;
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	pthread_barrier_init(&barrier, NULL, LONG + 1);
	for (int i = 0; i < LONG; i++)
		CHECK(!pthread_create(&thread[i], &small, lives_long, &barrier));
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < SHORT / TOGETHER; i++) {
		for (int k = 0; k < TOGETHER; k++)
			CHECK(!pthread_create(&brief[k], &small, lives_short, NULL));
		for (int k = 0; k < TOGETHER; k++)
			CHECK(!pthread_join(brief[k], NULL));
	}
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < LONG; i++)
		CHECK(!pthread_join(thread[i], NULL));
	CHECK(counted == 3L * LONG);
}

/* Each of thousands in its turn, beside a thread that stays in S (-F stays_in_s, at 50 %): how many had at
 * least half of the delay that they owed? It shows in their CPU time. The long ones are all alive at once. */
static _Atomic bool is_over;
static _Atomic long rounds_in_s;
static double round_takes; /* seconds */

static double cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) static void stays_in_s(void)
{
	while (!is_over) {
		for (volatile int i = 0; i < 300; i++)
			;
		rounds_in_s++;
	}
}

static void *in_s(void *unused)
{
	double from = cpu_time();

	stays_in_s();
	round_takes = (cpu_time() - from) / (double)rounds_in_s;
	return unused;
}

struct turn {
	sem_t may;
	bool to_work;
	long rounds;
	double late, waited; /* CPU time beyond its work, and what it was without a CPU */
};
static sem_t had_turn;

static uint64_t cycles(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	uint64_t count;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
	return count;
#endif
}

static int by_length(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Some 150 us, in steps; returns the cycles that they take without delays: as many times the step in the middle, as
 * delays come in few of them. What they took at another time says little: a CPU that others use, too, is slower by
 * half. No clock call: whoever reads a clock has paid. */
static double turn_of_work(void)
{
	enum { STEPS = 31 };
	uint64_t step[STEPS], from = cycles();

	for (int i = 0; i < STEPS; i++) {
		other_work();
		step[i] = cycles() - from;
		from += step[i];
	}
	qsort(step, STEPS, sizeof *step, by_length);
	return STEPS * (double)step[STEPS / 2];
}

static void *has_turn(void *p)
{
	struct turn *t = p;
	double from, began, took, wall, work;
	uint64_t first;
	long rounds;

	while (sem_wait(&t->may))
		;
	if (!t->to_work)
		return NULL;
	began = now();
	from = cpu_time();
	first = cycles();
	rounds = rounds_in_s;
	work = turn_of_work();
	pthread_mutex_lock(&lock); /* whoever meets others has paid */
	pthread_mutex_unlock(&lock);
	work /= (double)(cycles() - first);
	took = cpu_time() - from;
	wall = now() - began;
	t->late = took - work * wall;
	t->waited = wall - took;
	t->rounds = rounds_in_s - rounds;
	sem_post(&had_turn);
	return NULL;
}

static void give_turn(struct turn *t, bool to_work)
{
	t->to_work = to_work;
	sem_post(&t->may);
	while (to_work && sem_wait(&had_turn))
		;
}

static void case_turns(void)
{
	enum { LONG = 5000, SHORT = 1000, ALL = LONG + SHORT };
	static pthread_t thread[LONG];
	static struct turn turn[ALL];
	double end;
	int owed = 0, delayed = 0;
	pthread_attr_t small;
	pthread_t s, brief;

	sem_init(&had_turn, 0, 0);
	for (int i = 0; i < ALL; i++)
		turn[i].to_work = !sem_init(&turn[i].may, 0, i >= LONG);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = 0; i < LONG; i++)
		CHECK(!pthread_create(&thread[i], &small, has_turn, &turn[i]));
	CHECK(!pthread_create(&s, NULL, in_s, NULL));
	usleep(300000); /* until it has been found there */
	end = now() + 3;
	/* on a busy machine those who have no turn in time go without one */
	for (int i = 0; i < LONG; i++)
		give_turn(&turn[i], now() < end - 0.5);
	for (int i = LONG; i < ALL && now() < end; i++) {
		CHECK(!pthread_create(&brief, &small, has_turn, &turn[i]));
		CHECK(!pthread_join(brief, NULL));
	}
	is_over = true;
	CHECK(!pthread_join(s, NULL));
	for (int i = 0; i < LONG; i++)
		CHECK(!pthread_join(thread[i], NULL));
	for (int i = 0; i < ALL; i++) {
		double owes = (double)turn[i].rounds * round_takes / 2;

		/* the one in S had no CPU meanwhile, or it had none itself */
		if (owes < 50e-6 || turn[i].waited > owes / 4)
			continue;
		owed++;
		delayed += turn[i].late > owes / 2;
	}
	printf("%d of %d\n", delayed, owed);
}

static _Atomic int cleaned;

static void clean(void *unused)
{
	(void)unused;
	cleaned++;
}

static void *exits(void *p)
{
	pthread_cleanup_push(clean, NULL);
	work_for(0.02);
	pthread_exit(p);
	pthread_cleanup_pop(0);
	return NULL;
}

static void case_exit(void)
{
	for (int i = 0; i < 20; i++) {
		pthread_t thread;
		void *value;

		CHECK(!pthread_create(&thread, NULL, exits, &lock));
		CHECK(!pthread_join(thread, &value) && value == &lock);
	}
	CHECK(cleaned == 20);
}

static sem_t none, plenty;

static void *sleeps_long(void *unused)
{
	pthread_cleanup_push(clean, NULL);
	work_for(0.01);
	sleep(100);
	pthread_cleanup_pop(0);
	return unused;
}

static void *waits_long(void *unused)
{
	pthread_cleanup_push(clean, NULL);
	work_for(0.01);
	sem_wait(&none);
	pthread_cleanup_pop(0);
	return unused;
}

/* cancelled although the semaphore never makes it wait */
static void *never_waits(void *unused)
{
	pthread_cleanup_push(clean, NULL);
	for (;;) {
		piece_of_work();
		sem_wait(&plenty);
		sem_post(&plenty);
	}
	pthread_cleanup_pop(0);
	return unused;
}

/* cancelled at any instruction of its own */
static void *computes(void *unused)
{
	int old;

	pthread_cleanup_push(clean, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	for (;;)
		piece_of_work();
	pthread_cleanup_pop(0);
	return unused;
}

/* cancellation is pending all the time: none of what happens meanwhile may act on it */
static _Atomic bool all_cancelled;

static void *disabled(void *unused)
{
	int old;

	pthread_cleanup_push(clean, NULL);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	while (!all_cancelled)
		work_once();
	work_for(0.05);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
	/* computing only: no place to be cancelled at */
	for (double end = now() + 0.1; now() < end;)
		work_once();
	counted++;
	pthread_testcancel();
	counted = -1000;
	pthread_cleanup_pop(0);
	return unused;
}

static void case_cancel(void)
{
	void *(*const kinds[])(void *) = { sleeps_long, waits_long, never_waits, computes, disabled };
	enum { KINDS = sizeof kinds / sizeof *kinds, ROUNDS = 6 };

	sem_init(&none, 0, 0);
	sem_init(&plenty, 0, 1);
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t thread[KINDS];

		all_cancelled = false;
		for (int i = 0; i < KINDS; i++)
			CHECK(!pthread_create(&thread[i], NULL, kinds[i], NULL));
		work_for(0.03);
		for (int i = 0; i < KINDS; i++)
			CHECK(!pthread_cancel(thread[i]));
		all_cancelled = true;
		for (int i = 0; i < KINDS; i++) {
			void *value;

			CHECK(!pthread_join(thread[i], &value) && value == PTHREAD_CANCELED);
		}
	}
	CHECK(cleaned == KINDS * ROUNDS && counted == ROUNDS);
}

static void *cancels_main(void *handle)
{
	pthread_t main_thread = *(pthread_t *)handle;
	void *value;

	work_for(0.6);
	CHECK(!pthread_cancel(main_thread));
	CHECK(!pthread_join(main_thread, &value) && value == PTHREAD_CANCELED);
	work_for(0.05);
	CHECK(cleaned == 1);
	printf("cancel_main: good\n");
	exit(0);
}

/* as redis-server does it, and then really cancelled */
static void case_cancel_main(void)
{
	static pthread_t self;
	pthread_t thread;
	int old;

	self = pthread_self();
	pthread_cleanup_push(clean, NULL);
	CHECK(!pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old));
	CHECK(!pthread_create(&thread, NULL, cancels_main, &self));
	for (;;)
		piece_of_work();
	pthread_cleanup_pop(0);
}

static sem_t gone;

static void *detached(void *unused)
{
	a_little(NULL);
	sem_post(&gone);
	return unused;
}

static void case_detached(void)
{
	pthread_attr_t attr;

	sem_init(&gone, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < 200; i++) {
		pthread_t thread;

		CHECK(!pthread_create(&thread, &attr, detached, NULL));
		sem_wait(&gone);
	}
}

static int c11(void *p)
{
	static mtx_t *const unused;

	(void)unused;
	work_for(0.02);
	thrd_exit(*(int *)p);
}

static void case_c11(void)
{
	for (int i = 0; i < 20; i++) {
		thrd_t thread;
		int value;

		CHECK(thrd_create(&thread, c11, &i) == thrd_success);
		CHECK(thrd_join(thread, &value) == thrd_success && value == i);
	}
}

/* a thread that libc knows nothing of; it shares the thread-local storage of its maker */
static int unannounced(void *flag)
{
	for (int i = 0; i < 4000; i++)
		work_once();
	__atomic_store_n((int *)flag, 1, __ATOMIC_RELEASE);
	syscall(SYS_exit, 0);
	return 0;
}

static void case_raw_clone(void)
{
	enum { STACK = 65536 };
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int flag = 0;

	CHECK(stack != MAP_FAILED);
	CHECK(clone(unannounced, stack + STACK,
		    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
		    &flag) > 0);
	while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE))
		work_once();
	usleep(20000);
}

static void fires(union sigval value)
{
	work_for(0.002);
	sem_post(value.sival_ptr);
}

/* threads that libc itself starts */
static void case_notify(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD };
	struct itimerspec every = { { 0, 5000000 }, { 0, 5000000 } };
	timer_t timer;

	sem_init(&gone, 0, 0);
	event.sigev_notify_function = fires;
	event.sigev_value.sival_ptr = &gone;
	CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK(!timer_settime(timer, 0, &every, NULL));
	for (int i = 0; i < 60; i++)
		while (sem_wait(&gone))
			;
	timer_delete(timer);
	usleep(20000);
}

static pthread_key_t late_key;
static _Atomic int late;

/* Runs several rounds: after all other destructors at least once. */
static void destroy(void *p)
{
	long rounds = (long)p;

	work_for(0.003);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	late++;
	if (rounds > 1)
		pthread_setspecific(late_key, (void *)(rounds - 1));
}

static void *with_key(void *unused)
{
	pthread_setspecific(late_key, (void *)3L);
	return unused;
}

static void case_destructors(void)
{
	pthread_key_create(&late_key, destroy);
	for (int i = 0; i < 50; i++) {
		pthread_t thread;

		CHECK(!pthread_create(&thread, NULL, with_key, NULL));
		CHECK(!pthread_join(thread, NULL));
	}
	CHECK(late == 150);
}

static void *tiny(void *p)
{
	char mine[2048];

	memset(mine, 1, sizeof mine);
	work_for(0.05);
	a_little(NULL);
	for (size_t i = 0; i < sizeof mine; i++)
		CHECK(mine[i] == 1);
	return p;
}

/* The smallest stack that there is, below it a page full of a pattern in place of a guard. */
static void case_tiny_stack(void)
{
	size_t size = (size_t)sysconf(_SC_THREAD_STACK_MIN);
	size_t page = 4096;
	unsigned char *memory;

	if (size < 16384)
		size = 16384;
	memory = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	memset(memory, 0x5a, page);
	for (int i = 0; i < 6; i++) {
		pthread_attr_t attr;
		pthread_t thread;

		pthread_attr_init(&attr);
		CHECK(!pthread_attr_setstack(&attr, memory + page, size));
		CHECK(!pthread_create(&thread, &attr, tiny, NULL));
		CHECK(!pthread_join(thread, NULL));
	}
	for (size_t i = 0; i < page; i++)
		CHECK(memory[i] == 0x5a);
}

static char *alternate;
static size_t alternate_size;
static _Atomic int on_alternate;

static void runs_there(int number)
{
	char here;

	(void)number;
	CHECK(&here >= alternate && &here < alternate + alternate_size);
	work_for(0.005); /* ticks come on top of it */
	on_alternate++;
}

/* An alternate stack of the usual size, with a pattern below it. */
static void case_alternate_stack(void)
{
	struct sigaction action;
	stack_t stack = { 0 };
	size_t below = 4096;
	char *memory;

	alternate_size = (size_t)sysconf(_SC_SIGSTKSZ);
	if (alternate_size < 8192)
		alternate_size = 8192;
	memory = malloc(below + alternate_size);
	CHECK(memory);
	memset(memory, 0x5a, below);
	alternate = memory + below;
	stack.ss_sp = alternate;
	stack.ss_size = alternate_size;
	CHECK(!sigaltstack(&stack, NULL));
	memset(&action, 0, sizeof action);
	action.sa_handler = runs_there;
	action.sa_flags = SA_ONSTACK;
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	for (int i = 0; i < 60; i++) {
		work_for(0.005);
		raise(SIGUSR1);
	}
	CHECK(on_alternate == 60);
	for (size_t i = 0; i < below; i++)
		CHECK(memory[i] == 0x5a);
}

static void *outlives(void *unused)
{
	(void)unused;
	work_for(0.4);
	printf("main_exit: good\n");
	exit(0);
}

static void case_main_exit(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, outlives, NULL));
	pthread_exit(NULL);
}

int main(int argc, char **argv)
{
	static const struct app_case cases[] = {
		{ "churn", case_churn },
		{ "crowd", case_crowd },
		{ "thousands", case_thousands },
		{ "turns", case_turns },
		{ "exit", case_exit },
		{ "cancel", case_cancel },
		{ "cancel_main", case_cancel_main },
		{ "detached", case_detached },
		{ "c11", case_c11 },
		{ "raw_clone", case_raw_clone },
		{ "notify", case_notify },
		{ "destructors", case_destructors },
		{ "tiny_stack", case_tiny_stack },
		{ "alternate_stack", case_alternate_stack },
		{ "main_exit", case_main_exit },
	};

	return RUN_CASE(cases, argc, argv);
}
