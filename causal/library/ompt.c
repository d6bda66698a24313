/* SPDX-License-Identifier: MIT */
/* A tool of OpenMP 5: parallel regions, work sharing, barriers and other waits as regions, tasks as tasks, and
 * both as progress points. The OpenMP runtime loads it: OMP_TOOL_LIBRARIES=libcausal.so (clang's; gcc's has no
 * interface for tools). The declarations are those of the standard's omp-tools.h, of which the compilers that
 * build causal have none. */
#include "causal/library/library.h"
#include "include/causal_user.h"
#include <stdatomic.h>

union data {
	uint64_t value;
	void *pointer;
};
typedef void (*function)(void);
typedef int (*set_callback)(int which, function callback);
struct start {
	int (*initialize)(function (*look_up)(const char *name), int device, union data *tool);
	void (*finalize)(union data *tool);
	union data tool;
};
struct start *ompt_start_tool(unsigned version, const char *runtime);

enum {
	PARALLEL_BEGIN = 3,
	PARALLEL_END = 4,
	TASK_CREATE = 5,
	TASK_SCHEDULE = 6,
	IMPLICIT_TASK = 7,
	SYNC_REGION_WAIT = 16,
	WORK = 20,
	SCOPE_BEGIN = 1,
	TASK_EXPLICIT = 4,
	TASK_INITIAL = 1,
	TASK_COMPLETE = 1,
	TASK_CANCEL = 3,
	TASK_DETACH = 4
};

static void raise_scope(int endpoint, const struct ca_library_key *key)
{
	if (endpoint == SCOPE_BEGIN)
		ca_library_begin(key, 1);
	else
		ca_library_end(key);
}

/* The end has no address in some versions: it is kept where the runtime keeps data for us. */
static void parallel_begin(union data *task, const void *frame, union data *parallel, unsigned requested,
			   int flags, const void *code)
{
	const struct ca_library_key *key;

	(void)task, (void)frame, (void)flags;
	if (!ca_library_is_traced())
		return;
	key = ca_functions_key(code, "omp parallel: ");
	parallel->pointer = (void *)(uintptr_t)key;
	ca_library_begin(key, 1);
	ca_library_point("omp threads", requested);
}

static void parallel_end(union data *parallel, union data *task, int flags, const void *code)
{
	(void)task, (void)flags, (void)code;
	causal_user_progress("omp parallel");
	ca_library_end(parallel->pointer);
}

static void implicit_task(int endpoint, union data *parallel, union data *task, unsigned threads,
			  unsigned index, int flags)
{
	(void)parallel, (void)task, (void)threads, (void)index;
	if (!(flags & TASK_INITIAL) && ca_library_is_traced())
		raise_scope(endpoint, ca_library_key("omp team"));
}

static void work(int kind, int endpoint, union data *parallel, union data *task, uint64_t count,
		 const void *code)
{
	static const char *const names[] = { "omp work",       "omp loop",       "omp sections",
					     "omp single",     "omp not single", "omp workshare",
					     "omp distribute", "omp taskloop",   "omp scope" };
	size_t known = sizeof names / sizeof *names;

	(void)parallel, (void)task, (void)count, (void)code;
	if (ca_library_is_traced())
		raise_scope(endpoint, ca_library_key(names[kind > 0 && (size_t)kind < known ? kind : 0]));
}

static void wait(int kind, int endpoint, union data *parallel, union data *task, const void *code)
{
	static const char *const names[] = { "omp waits",   "omp barrier",  "omp barrier",   "omp barrier",
					     "omp barrier", "omp taskwait", "omp taskgroup", "omp reduction",
					     "omp barrier", "omp barrier",  "omp barrier" };
	size_t known = sizeof names / sizeof *names;

	(void)parallel, (void)task, (void)code;
	if (ca_library_is_traced())
		raise_scope(endpoint, ca_library_key(names[kind > 0 && (size_t)kind < known ? kind : 0]));
}

/* ---- explicit tasks: those that have a number */

static void task_create(union data *by, const void *frame, union data *made, int flags, int depends,
			const void *code)
{
	static _Atomic uint64_t last;

	(void)by, (void)frame, (void)depends, (void)code;
	made->value =
		flags & TASK_EXPLICIT ? 1 + atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) : 0;
}

static void raise_task(unsigned kind, uint64_t task)
{
	static const struct causal_trace_key_ key[] = {
		{ "task", "omp task", "libcausal", 0, CAUSAL_TRACE_KIND_TASK_RUN_ },
		{ "task", NULL, "libcausal", 0, CAUSAL_TRACE_KIND_TASK_PAUSE_ },
		{ "task", NULL, "libcausal", 0, CAUSAL_TRACE_KIND_TASK_DONE_ }
	};
	const struct causal_trace_key_ *of = &key[kind - CAUSAL_TRACE_KIND_TASK_RUN_];

	causal_trace_(of, of, task);
}

static void task_schedule(union data *prior, int status, union data *next)
{
	bool over = status == TASK_COMPLETE || status == TASK_CANCEL || status == TASK_DETACH;

	if (prior && prior->value) {
		raise_task(over ? CAUSAL_TRACE_KIND_TASK_DONE_ : CAUSAL_TRACE_KIND_TASK_PAUSE_, prior->value);
		if (over)
			causal_user_progress("omp task");
	}
	if (next && next->value)
		raise_task(CAUSAL_TRACE_KIND_TASK_RUN_, next->value);
}

/* ---- the tool */

static int initialize(function (*look_up)(const char *name), int device, union data *tool)
{
	set_callback set = (set_callback)look_up("ompt_set_callback");

	(void)device, (void)tool;
	if (!set)
		return 0;
	set(PARALLEL_BEGIN, (function)parallel_begin);
	set(PARALLEL_END, (function)parallel_end);
	set(IMPLICIT_TASK, (function)implicit_task);
	set(WORK, (function)work);
	set(SYNC_REGION_WAIT, (function)wait);
	set(TASK_CREATE, (function)task_create);
	set(TASK_SCHEDULE, (function)task_schedule);
	return 1;
}

static void finalize(union data *tool)
{
	(void)tool;
}

/* Where nobody looks, the OpenMP runtime need not call us. */
__attribute__((visibility("default"))) struct start *ompt_start_tool(unsigned version, const char *runtime)
{
	static struct start start = { initialize, finalize, { 0 } };

	(void)version, (void)runtime;
	return ca_library_is_watched() ? &start : NULL;
}
