/* SPDX-License-Identifier: MIT */
/* Events by causal_trace.h, in C and in C++; for tests/integration/code_events.sh.
 *   code_events             each macro once, in a known order
 *   code_events threads     four threads with 2,000 bursts each
 *   code_events tasks       a task that begins in one thread and is finished by another
 *   code_events later       events for tasks that go on elsewhere, or begin later, and too many
 *   code_events pauses      four threads that pause and go on with tasks of their own
 *   code_events contend     two threads that take a lock in turns
 *   code_events values      values that are none, which the compiler does not know
 *   code_events states      states of a thread, and of a task that goes on in another one, with a message
 *   code_events several     several keys and values at one time
 *   code_events clash       one id for two names
 *   code_events cost [N]    ns of CPU time for a pair of events, the loop subtracted; N pairs */
#include <causal_trace.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, BURSTS = 2000, PAIRS = 1000000, TURNS = 500 };

volatile uint64_t sink;

static int early(int n)
{
	CAUSAL_TRACE_FUNCTION_NAMED("early");

	if (n > 1)
		return n;
	CAUSAL_TRACE_FUNCTION_UPDATE(2, "the long way");
	sink++;
	return 0;
}

static void scopes(int n)
{
	CAUSAL_TRACE_SCOPE(outer, n);

	for (int i = 1; i < 10; i++) {
		CAUSAL_TRACE_SCOPE(inner, i);

		if (i == 1)
			continue;
		CAUSAL_TRACE_SCOPE_UPDATE(inner, 100, "hundred");
		CAUSAL_TRACE_SCOPE_UPDATE(outer, 7, "seven");
		break;
	}
}

static void events(void)
{
	CAUSAL_TRACE_BEGIN("region");
	CAUSAL_TRACE_EVENT("plain", 42);
	CAUSAL_TRACE_EVENT_ID(12, "twelve", 43);
	CAUSAL_TRACE_END("region");
}

static void locks(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	if (CAUSAL_TRACE_MUTEX_LOCK(&mutex) == 0)
		CAUSAL_TRACE_MUTEX_UNLOCK(&mutex);
	if (CAUSAL_TRACE_MUTEX_TRYLOCK(&mutex) == 0) {
		if (CAUSAL_TRACE_MUTEX_TRYLOCK(&mutex) == 0) /* somebody has it */
			sink++;
		CAUSAL_TRACE_MUTEX_UNLOCK(&mutex);
	}
}

static void *many(void *unused)
{
	(void)unused;
	for (int i = 0; i < BURSTS; i++) {
		CAUSAL_TRACE_SCOPE(burst, i + 1);
		sink++;
	}
	return NULL;
}

static void *pauses(void *first)
{
	uintptr_t from = (uintptr_t)first;

	for (uintptr_t i = from; i < from + BURSTS; i++) {
		CAUSAL_TRACE_TASK_RUN(i, "job");
		CAUSAL_TRACE_BEGIN("piece");
		CAUSAL_TRACE_TASK_PAUSE(i);
		CAUSAL_TRACE_TASK_RUN(i, "job");
		CAUSAL_TRACE_END("piece");
		CAUSAL_TRACE_TASK_DONE(i);
	}
	return NULL;
}

static void threads(void *(*run)(void *))
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run, (void *)(uintptr_t)(1 + i * BURSTS));
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

static void *finish(void *unused)
{
	(void)unused;
	CAUSAL_TRACE_THREAD_NAME("second");
	CAUSAL_TRACE_BEGIN("own");
	CAUSAL_TRACE_TASK_RUN(5, "job");
	CAUSAL_TRACE_END("part");
	CAUSAL_TRACE_TASK_DONE(5);
	CAUSAL_TRACE_END("own");
	return NULL;
}

static void tasks(void)
{
	pthread_t thread;

	CAUSAL_TRACE_PROCESS_NAME("tasks");
	CAUSAL_TRACE_THREAD_NAME("first");
	CAUSAL_TRACE_TASK_RUN(5, "job");
	CAUSAL_TRACE_BEGIN("part");
	CAUSAL_TRACE_TASK_PAUSE(5);
	pthread_create(&thread, NULL, finish, NULL);
	pthread_join(thread, NULL);
}

static void *go_on(void *unused)
{
	(void)unused;
	CAUSAL_TRACE_TASK_RUN(5, "job");
	CAUSAL_TRACE_TASK_DONE(5);
	CAUSAL_TRACE_TASK_RUN(6, "job");
	CAUSAL_TRACE_TASK_DONE(6);
	CAUSAL_TRACE_TASK_RUN(7, "job");
	CAUSAL_TRACE_TASK_DONE(7);
	return NULL;
}

static void later(void)
{
	pthread_t thread;

	CAUSAL_TRACE_TASK_RUN(5, "job");
	CAUSAL_TRACE_TASK_EVENT(5, "for five", 1); /* it runs now, and will be paused */
	CAUSAL_TRACE_BEGIN("part");
	CAUSAL_TRACE_TASK_PAUSE(5);
	CAUSAL_TRACE_TASK_EVENT(5, "for five", 2);
	CAUSAL_TRACE_TASK_EVENT(6, "for six", 3); /* it has yet to begin */
	for (int i = 0; i < 20; i++)
		CAUSAL_TRACE_TASK_EVENT(7, "for seven", i); /* 16 may wait */
	pthread_create(&thread, NULL, go_on, NULL);
	pthread_join(thread, NULL);
}

static void *take_over(void *unused)
{
	(void)unused;
	CAUSAL_TRACE_RECEIVE("letter", 71);
	CAUSAL_TRACE_TASK_RUN(5, "job");
	CAUSAL_TRACE_SUBSTATE_END("detail");
	CAUSAL_TRACE_STATE_END("phase");
	CAUSAL_TRACE_END("part");
	CAUSAL_TRACE_STATE_END("phase");
	CAUSAL_TRACE_TASK_DONE(5);
	return NULL;
}

static void states(void)
{
	pthread_t thread;

	CAUSAL_TRACE_STATE_BEGIN("phase", 1, "begin");
	CAUSAL_TRACE_TASK_RUN(5, "job");
	CAUSAL_TRACE_STATE_BEGIN("phase", 2, "read");
	CAUSAL_TRACE_BEGIN("part");
	CAUSAL_TRACE_STATE_BEGIN("phase", 3, "parse");
	CAUSAL_TRACE_SUBSTATE_BEGIN("detail", 4, "words");
	CAUSAL_TRACE_BEGIN("phase"); /* a burst of that name is another thing */
	CAUSAL_TRACE_END("phase");
	CAUSAL_TRACE_TASK_EVENT(5, "later", 9);
	CAUSAL_TRACE_TASK_PAUSE(5);
	CAUSAL_TRACE_SEND("letter", 71);
	pthread_create(&thread, NULL, take_over, NULL);
	pthread_join(thread, NULL);
	CAUSAL_TRACE_STATE_END("phase");
}

static void several(void)
{
	int evaluated = 0;

	CAUSAL_TRACE_EVENTS("width", 1);
	CAUSAL_TRACE_EVENTS("width", 2, "height", 3);
	CAUSAL_TRACE_EVENTS("width", 4, "height", 5, "depth", 6);
	CAUSAL_TRACE_EVENTS("width", 7, "height", 8, "depth", 9, "time", ++evaluated);
	if (evaluated != 1)
		abort();
}

static void *contend(void *mutex)
{
	for (int i = 0; i < TURNS; i++) {
		CAUSAL_TRACE_MUTEX_LOCK((pthread_mutex_t *)mutex);
		sink++;
		CAUSAL_TRACE_MUTEX_UNLOCK((pthread_mutex_t *)mutex);
	}
	return NULL;
}

static void contention(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_t thread;

	pthread_create(&thread, NULL, contend, &mutex);
	contend(&mutex);
	pthread_join(thread, NULL);
}

static void values(volatile int none, volatile int one)
{
	CAUSAL_TRACE_FUNCTION_NAMED("values");
	CAUSAL_TRACE_SCOPE(scope, none);
	CAUSAL_TRACE_SCOPE_UPDATE(scope, none, "none");
	CAUSAL_TRACE_SCOPE_UPDATE(scope, one + 6, "seven");
	CAUSAL_TRACE_FUNCTION_UPDATE(one, "one");
}

static void clash(void)
{
	CAUSAL_TRACE_EVENT_ID(12, "twelve", 1);
	CAUSAL_TRACE_EVENT_ID(12, "dozen", 2);
	CAUSAL_TRACE_EVENT("still there", 3);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* others may be at work here */
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void cost(int pairs)
{
	double start = now(), middle;

	for (int i = 0; i < pairs; i++)
		sink++;
	middle = now();
	for (int i = 0; i < pairs; i++) {
		CAUSAL_TRACE_SCOPE(pair, 1);
		sink++;
	}
	printf("%.1f\n", (now() - middle - (middle - start)) / pairs);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "threads")) {
		threads(many);
	} else if (!strcmp(what, "pauses")) {
		threads(pauses);
	} else if (!strcmp(what, "tasks")) {
		tasks();
	} else if (!strcmp(what, "later")) {
		later();
	} else if (!strcmp(what, "states")) {
		states();
	} else if (!strcmp(what, "several")) {
		several();
	} else if (!strcmp(what, "contend")) {
		contention();
	} else if (!strcmp(what, "values")) {
		values(0, 1);
	} else if (!strcmp(what, "clash")) {
		clash();
	} else if (!strcmp(what, "cost")) {
		cost(argc > 2 ? atoi(argv[2]) : PAIRS);
	} else {
		early(1);
		early(2);
		scopes(3);
		events();
		locks();
	}
	return 0;
}
