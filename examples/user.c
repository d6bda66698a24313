/* SPDX-License-Identifier: MIT */
/* Regions whose names are made at run time, switched off for a while, with annotations, and with a callback of
 * the program's own:
 *   causal trace --events user --sinks callgraph -- ./user
 * Built with -DCAUSAL_OPTIONAL it links nothing, and does the same where libcausal.so is preloaded. */
#include <causal_user.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static volatile unsigned long work;
static struct causal_user_callbacks before;

static void compute(const char *name)
{
	causal_user_push_region(name);
	for (int i = 0; i < 100000; i++)
		work++;
	causal_user_pop_region(name);
}

static void *run(void *name)
{
	compute((const char *)name);
	return NULL;
}

static void in_thread(const char *name)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, run, (void *)name))
		pthread_join(thread, NULL);
}

/* Threads that are created while their creator is stopped are stopped as well; others are not. */
static void switch_off(void)
{
	causal_user_push_region("outer");
	causal_user_stop_thread_trace();
	compute("hidden");
	in_thread("hidden child");
	causal_user_start_thread_trace();
	in_thread("child");
	causal_user_stop_trace();
	compute("hidden, too");
	causal_user_start_trace();
	causal_user_pop_region("outer");
}

static void annotate(void)
{
	const int count = -7;
	const double ratio = 1.5;
	const struct causal_user_annotation list[] = {
		{ "count", CAUSAL_USER_INT32, &count },
		{ "ratio", CAUSAL_USER_DOUBLE, &ratio },
		{ "kind", CAUSAL_USER_STRING, "dense" },
	};

	causal_user_push_annotated_region("solve", list, 3);
	causal_user_pop_annotated_region("solve", NULL, 0);
}

static int push_own(const char *name)
{
	printf("push %s\n", name);
	return before.push_region(name);
}

int main(void)
{
	struct causal_user_callbacks own;
	char name[16];

	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "phase %d", i);
		compute(name);
		causal_user_progress("phase");
	}
	causal_user_push_category_region("io", "read");
	causal_user_pop_category_region("io", "read");
	switch_off();
	annotate();
	memset(&own, 0, sizeof own);
	own.push_region = push_own;
	if (causal_user_configure(CAUSAL_USER_UNION, own, &before) == CAUSAL_USER_SUCCESS)
		compute("custom");
	printf("%s\n", causal_user_error_string(causal_user_push_region("")));
	return 0;
}
