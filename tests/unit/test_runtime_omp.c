/* SPDX-License-Identifier: MIT */
/* causal/runtime/wrap_omp.c: what stands between a program and its OpenMP library. That library is
 * stood in for, by way of dlsym: each of its functions notes that it was called and with what. */
#include "causal/runtime/wrap.h"
#include "tests/unit/runtime.h"
#include <stdlib.h>

/* ---- what stands in -------------------------------------------------------------------------------- */
static char trace[64];
static struct ca_thread *waiter;
static bool absent; /* there is no OpenMP library */
static unsigned searches;
static const char *searched;

static void note(char letter)
{
	size_t n = strlen(trace);

	assert_true(n + 1 < sizeof trace);
	trace[n] = letter;
	trace[n + 1] = 0;
}

void ca_wait_meet_from(const void *object, uintptr_t site)
{
	(void)object, (void)site;
	note('m');
}

static const enum ca_wait others = CA_WAIT_OTHERS;

struct ca_waiting ca_wait_begin_from(enum ca_wait kind, int fd, uintptr_t site)
{
	(void)site;
	assert_int_equal(kind, CA_WAIT_OTHERS);
	assert_int_equal(fd, -1);
	note('b');
	if (waiter)
		waiter->waiting = &others;
	return (struct ca_waiting){ .thread = waiter, .in_s = waiter && waiter->depth };
}

void ca_wait_end(struct ca_waiting *w)
{
	note('e');
	assert_true(!w->thread || w->thread == waiter);
}

static long got[8], first_word;
static long answer;

/* Of all but the parallel ones. */
static long library(long a, long b, long c, long d, long e, long f, long g, long h)
{
	long now[8] = { a, b, c, d, e, f, g, h };

	memcpy(got, now, sizeof got);
	note('c');
	return answer;
}

/* Runs the body once, as the only thread, with whatever the region was called with. */
static unsigned region(void (*run)(void *), void *region_data, unsigned long threads, long a, long b, long c,
		       long d, long e)
{
	long now[8] = { (long)(unsigned)threads, a, b, c, d, e };

	memcpy(got, now, sizeof got);
	first_word = *(long *)region_data;
	note('(');
	run(region_data);
	note(')');
	return 3;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
	if (!strstr(name, "GOMP_") && !strstr(name, "omp_") && !strstr(name, "__kmpc_")) {
		void *(*libc)(void *, const char *);

		*(void **)&libc = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
		return libc(handle, name);
	}
	searches++;
	searched = name;
	if (absent)
		return NULL;
	return strstr(name, "GOMP_parallel") ? (void *)region : (void *)library;
}

/* ---- the program's calls --------------------------------------------------------------------------------- */
typedef void body_type(void *);
void GOMP_parallel(body_type *, void *, unsigned, unsigned);
void GOMP_parallel_sections(body_type *, void *, unsigned, unsigned, unsigned);
#define LOOP_CHUNK(name) void name(body_type *, void *, unsigned, long, long, long, long, unsigned);
#define LOOP(name)       void name(body_type *, void *, unsigned, long, long, long, unsigned);
#define CHUNKS(X)                                                                                            \
	X(GOMP_parallel_loop_static)                                                                         \
	X(GOMP_parallel_loop_dynamic)                                                                        \
	X(GOMP_parallel_loop_guided)                                                                         \
	X(GOMP_parallel_loop_nonmonotonic_dynamic)                                                           \
	X(GOMP_parallel_loop_nonmonotonic_guided)
#define LOOPS(X)                                                                                             \
	X(GOMP_parallel_loop_runtime)                                                                        \
	X(GOMP_parallel_loop_nonmonotonic_runtime)                                                           \
	X(GOMP_parallel_loop_maybe_nonmonotonic_runtime)
#define PLAIN(X)                                                                                             \
	X(GOMP_barrier, "bce")                                                                               \
	X(GOMP_loop_end, "bce")                                                                              \
	X(GOMP_sections_end, "bce")                                                                          \
	X(GOMP_critical_start, "bce")                                                                        \
	X(GOMP_critical_end, "mc")                                                                           \
	X(GOMP_atomic_start, "bce")                                                                          \
	X(GOMP_atomic_end, "mc")                                                                             \
	X(GOMP_ordered_start, "bce")                                                                         \
	X(GOMP_ordered_end, "mc")                                                                            \
	X(GOMP_taskwait, "mc")                                                                               \
	X(GOMP_taskgroup_end, "mc")
#define LOCKS(X)                                                                                             \
	X(GOMP_critical_name_start, "bce")                                                                   \
	X(GOMP_critical_name_end, "mc")                                                                      \
	X(omp_set_lock, "mcbce")                                                                             \
	X(omp_unset_lock, "mc")                                                                              \
	X(omp_set_nest_lock, "mcbce")                                                                        \
	X(omp_unset_nest_lock, "mc")                                                                         \
	X(omp_set_lock_, "mcbce")                                                                            \
	X(omp_unset_lock_, "mc")                                                                             \
	X(omp_set_nest_lock_, "mcbce")                                                                       \
	X(omp_unset_nest_lock_, "mc")
#define JUMPS(X)                                                                                             \
	X(GOMP_loop_dynamic_start)                                                                           \
	X(GOMP_loop_dynamic_next)                                                                            \
	X(GOMP_loop_guided_start)                                                                            \
	X(GOMP_loop_guided_next)                                                                             \
	X(GOMP_loop_runtime_start)                                                                           \
	X(GOMP_loop_runtime_next)                                                                            \
	X(GOMP_loop_nonmonotonic_dynamic_start)                                                              \
	X(GOMP_loop_nonmonotonic_dynamic_next)                                                               \
	X(GOMP_loop_nonmonotonic_guided_start)                                                               \
	X(GOMP_loop_nonmonotonic_guided_next)                                                                \
	X(GOMP_loop_nonmonotonic_runtime_start)                                                              \
	X(GOMP_loop_nonmonotonic_runtime_next)                                                               \
	X(GOMP_loop_maybe_nonmonotonic_runtime_start)                                                        \
	X(GOMP_loop_maybe_nonmonotonic_runtime_next)                                                         \
	X(GOMP_loop_ordered_static_start)                                                                    \
	X(GOMP_loop_ordered_static_next)                                                                     \
	X(GOMP_loop_ordered_dynamic_start)                                                                   \
	X(GOMP_loop_ordered_dynamic_next)                                                                    \
	X(GOMP_loop_ordered_guided_start)                                                                    \
	X(GOMP_loop_ordered_guided_next)                                                                     \
	X(GOMP_loop_ordered_runtime_start)                                                                   \
	X(GOMP_loop_ordered_runtime_next)                                                                    \
	X(GOMP_loop_start)                                                                                   \
	X(GOMP_loop_ordered_start)                                                                           \
	X(GOMP_loop_doacross_start)                                                                          \
	X(GOMP_loop_doacross_static_start)                                                                   \
	X(GOMP_loop_doacross_dynamic_start)                                                                  \
	X(GOMP_loop_doacross_guided_start)                                                                   \
	X(GOMP_loop_doacross_runtime_start)                                                                  \
	X(GOMP_loop_ull_dynamic_start)                                                                       \
	X(GOMP_loop_ull_dynamic_next)                                                                        \
	X(GOMP_loop_ull_guided_start)                                                                        \
	X(GOMP_loop_ull_guided_next)                                                                         \
	X(GOMP_loop_ull_runtime_start)                                                                       \
	X(GOMP_loop_ull_runtime_next)                                                                        \
	X(GOMP_loop_ull_nonmonotonic_dynamic_start)                                                          \
	X(GOMP_loop_ull_nonmonotonic_dynamic_next)                                                           \
	X(GOMP_loop_ull_nonmonotonic_guided_start)                                                           \
	X(GOMP_loop_ull_nonmonotonic_guided_next)                                                            \
	X(GOMP_loop_ull_nonmonotonic_runtime_start)                                                          \
	X(GOMP_loop_ull_nonmonotonic_runtime_next)                                                           \
	X(GOMP_loop_ull_maybe_nonmonotonic_runtime_start)                                                    \
	X(GOMP_loop_ull_maybe_nonmonotonic_runtime_next)                                                     \
	X(GOMP_loop_ull_ordered_static_start)                                                                \
	X(GOMP_loop_ull_ordered_static_next)                                                                 \
	X(GOMP_loop_ull_ordered_dynamic_start)                                                               \
	X(GOMP_loop_ull_ordered_dynamic_next)                                                                \
	X(GOMP_loop_ull_ordered_guided_start)                                                                \
	X(GOMP_loop_ull_ordered_guided_next)                                                                 \
	X(GOMP_loop_ull_ordered_runtime_start)                                                               \
	X(GOMP_loop_ull_ordered_runtime_next)                                                                \
	X(GOMP_loop_ull_start)                                                                               \
	X(GOMP_loop_ull_ordered_start)                                                                       \
	X(GOMP_loop_ull_doacross_start)                                                                      \
	X(GOMP_loop_ull_doacross_static_start)                                                               \
	X(GOMP_loop_ull_doacross_dynamic_start)                                                              \
	X(GOMP_loop_ull_doacross_guided_start)                                                               \
	X(GOMP_loop_ull_doacross_runtime_start)                                                              \
	X(GOMP_sections_start)                                                                               \
	X(GOMP_sections2_start)                                                                              \
	X(GOMP_sections_next)                                                                                \
	X(GOMP_doacross_post)                                                                                \
	X(GOMP_doacross_wait)                                                                                \
	X(GOMP_doacross_ull_post)                                                                            \
	X(GOMP_doacross_ull_wait)                                                                            \
	X(GOMP_task)                                                                                         \
	X(GOMP_taskloop)                                                                                     \
	X(GOMP_taskloop_ull)                                                                                 \
	X(GOMP_taskyield)                                                                                    \
	X(GOMP_taskwait_depend)                                                                              \
	X(GOMP_cancel)                                                                                       \
	X(GOMP_single_start)                                                                                 \
	X(omp_test_lock)                                                                                     \
	X(omp_test_nest_lock)                                                                                \
	X(omp_test_lock_)                                                                                    \
	X(omp_test_nest_lock_)                                                                               \
	X(omp_fulfill_event)                                                                                 \
	X(omp_fulfill_event_)                                                                                \
	X(__kmpc_dispatch_next_4)                                                                            \
	X(__kmpc_dispatch_next_4u)                                                                           \
	X(__kmpc_dispatch_next_8)                                                                            \
	X(__kmpc_dispatch_next_8u)                                                                           \
	X(__kmpc_reduce)                                                                                     \
	X(__kmpc_reduce_nowait)
#define CANCELLED(X)                                                                                         \
	X(GOMP_barrier_cancel)                                                                               \
	X(GOMP_loop_end_cancel)                                                                              \
	X(GOMP_sections_end_cancel)
CHUNKS(LOOP_CHUNK)
LOOPS(LOOP)
#define X(name, trace) void name(void);
PLAIN(X)
#undef X
#define X(name, trace) void name(void *);
LOCKS(X)
#undef X
#define X(name) long name(long, long, long, long, long, long, long, long);
JUMPS(X)
#undef X
#define X(name) bool name(void);
CANCELLED(X)
#undef X
void *GOMP_single_copy_start(void);
void GOMP_single_copy_end(void *);
void GOMP_workshare_task_reduction_unregister(bool);
unsigned GOMP_parallel_reductions(body_type *, void *, unsigned, unsigned);
#undef X

static long data;

static void body(void *p)
{
	assert_ptr_equal(p, &data);
	note('B');
}

static int set_up(void **state)
{
	trace[0] = 0;
	absent = false;
	answer = 0;
	if (rt_set_up(state))
		return -1;
	waiter = me;
	return 0;
}

static void traced(const char *expected)
{
	assert_string_equal(trace, expected);
	trace[0] = 0;
}

/* From each thread's arrival at the end of a body to its next one it waits for others. */
static void regions(void **state)
{
	(void)state;
	me->owed = 5;
	GOMP_parallel(body, &data, 3, 9);
	traced("mb(eBb)e");
	assert_int_equal(got[0], 3);
	assert_int_equal(got[1], 9);
	assert_int_equal(me->owed, 0); /* what came up meanwhile is forgiven */
	assert_null(me->waiting);
	GOMP_parallel_sections(body, &data, 3, 7, 9);
	traced("mb(eBb)e");
	assert_int_equal(got[1], 7);
	assert_int_equal(got[2], 9);
#define X(name)                                                                                              \
	name(body, &data, 3, 10, 20, 2, 5, 9);                                                               \
	traced("mb(eBb)e");                                                                                  \
	assert_int_equal(got[0], 3);                                                                         \
	assert_int_equal(got[1], 10);                                                                        \
	assert_int_equal(got[2], 20);                                                                        \
	assert_int_equal(got[3], 2);                                                                         \
	assert_int_equal(got[4], 5);                                                                         \
	assert_int_equal((unsigned)got[5], 9);
	CHUNKS(X)
#undef X
#define X(name)                                                                                              \
	name(body, &data, 3, 10, 20, 2, 9);                                                                  \
	traced("mb(eBb)e");                                                                                  \
	assert_int_equal(got[3], 2);                                                                         \
	assert_int_equal((unsigned)got[4], 9);
	LOOPS(X)
#undef X
}

static void nested_regions(void **state)
{
	(void)state;
	GOMP_barrier(); /* a wait of its own */
	traced("bce");
	waiter = NULL; /* a thread that we do not follow */
	GOMP_parallel(body, &data, 3, 9);
	traced("mb(Bb)");
}

static void other_calls(void **state)
{
	long lock;

	(void)state;
#define X(name, expected)                                                                                    \
	name();                                                                                              \
	traced(expected);
	PLAIN(X)
#undef X
#define X(name, expected)                                                                                    \
	name(&lock);                                                                                         \
	traced(expected);                                                                                    \
	assert_ptr_equal(got[0], &lock);
	LOCKS(X)
#undef X
	answer = 1; /* it was free */
	omp_set_lock(&lock);
	traced("mc");
	assert_ptr_equal(got[0], &lock);
	answer = 0;
}

/* They are passed on with all their arguments and whatever they return. */
static void jumps(void **state)
{
	(void)state;
#define X(name)                                                                                              \
	answer = 0x123456789abcdef;                                                                          \
	assert_int_equal(name(1, 2, 3, 4, 5, 6, 7, 8), answer);                                              \
	traced("mc");                                                                                        \
	assert_string_equal(searched, #name);                                                                \
	for (int i = 0; i < 8; i++)                                                                          \
		assert_int_equal(got[i], i + 1);
	JUMPS(X)
#undef X
}

static void barriers_that_say_something(void **state)
{
	(void)state;
#define X(name)                                                                                              \
	answer = 0;                                                                                          \
	assert_false(name());                                                                                \
	traced("bce");                                                                                       \
	answer = 1;                                                                                          \
	assert_true(name());                                                                                 \
	traced("bce");
	CANCELLED(X)
#undef X
	answer = (long)(intptr_t)&data;
	assert_ptr_equal(GOMP_single_copy_start(), &data);
	traced("bce");
	data = 0x123456;
	GOMP_single_copy_end(&data);
	traced("bce");
	assert_ptr_equal(got[0], &data);
	GOMP_workshare_task_reduction_unregister(true);
	traced("bce");
	assert_int_equal((bool)got[0], true);
	assert_int_equal(GOMP_parallel_reductions(body, &data, 5, 9), 3);
	traced("mb(eBb)e");
	assert_int_equal(first_word, data); /* the library reads that */
	assert_int_equal(got[0], 5);
	assert_int_equal(got[1], 9);
}

__attribute__((noinline)) static void call(void (*volatile function)(void))
{
	for (volatile unsigned i = 0; i < 5; i++)
		function();
}

/* Each function is looked up once for each place that calls it. */
static void looked_up_once(void **state)
{
	(void)state;
	searches = 0;
	call(GOMP_barrier);
	assert_int_equal(searches, 1);
	GOMP_barrier();
	assert_int_equal(searches, 2);
}

/* A program that looks whether a weak name is there finds ours; it is alone, then. */
static void no_library(void **state)
{
	long lock;

	(void)state;
	absent = true;
	GOMP_parallel(body, &data, 3, 9);
	traced("B");
	GOMP_parallel_loop_static(body, &data, 3, 10, 20, 2, 5, 9);
	traced("B");
	GOMP_barrier();
	traced("be");
	omp_set_lock(&lock);
	traced("mbe");
	omp_unset_lock(&lock);
	traced("m");
	assert_int_equal(GOMP_parallel_reductions(body, &data, 5, 9), 1);
	traced("mB");
	answer = 1;
	assert_int_equal((int)GOMP_loop_dynamic_next(1, 2, 3, 4, 5, 6, 7, 8), 0);
	traced("m");
	assert_false(GOMP_barrier_cancel());
	traced("be");
}

/* ---- OMPT ------------------------------------------------------------------------------------------------- */
typedef void callback(void);
struct tool {
	int (*initialize)(callback *(*lookup)(const char *), int device, void *data);
	void (*finalize)(void *data);
};
struct tool *ompt_start_tool(unsigned version, const char *runtime);

static struct {
	int event;
	void *callback;
} callbacks[8];
static unsigned n_callbacks;

static int set_callback(int event, callback *c)
{
	callbacks[n_callbacks].event = event;
	callbacks[n_callbacks++].callback = (void *)c;
	return 5;
}

static callback *look_up(const char *name)
{
	return strcmp(name, "ompt_set_callback") ? NULL : (callback *)(void *)set_callback;
}

static callback *look_up_nothing(const char *name)
{
	(void)name;
	return NULL;
}

static void *callback_of(int event)
{
	for (unsigned i = 0; i < n_callbacks; i++)
		if (callbacks[i].event == event)
			return callbacks[i].callback;
	fail_msg("nothing is called at event %d", event);
	return NULL;
}

static void tools_interface(void **state)
{
	enum {
		MUTEX_RELEASED = 17,
		SYNC_REGION = 23,
		MUTEX_ACQUIRE = 26,
		MUTEX_ACQUIRED = 27,
		BEGIN = 1,
		END = 2
	};
	void (*sync)(int, int, void *, void *, const void *);
	void (*acquire)(int, unsigned, unsigned, uint64_t, const void *);
	void (*acquired)(int, uint64_t, const void *), (*released)(int, uint64_t, const void *);
	struct tool *tool;

	(void)state;
	unsetenv("OMP_TOOL_LIBRARIES");
	tool = ompt_start_tool(1, "x");
	assert_non_null(tool);
	assert_int_equal(tool->initialize(look_up_nothing, 0, NULL), 0); /* not of use to us */
	assert_int_equal(tool->initialize(look_up, 0, NULL), 1);
	assert_int_equal(n_callbacks, 4);
	*(void **)&sync = callback_of(SYNC_REGION);
	*(void **)&acquire = callback_of(MUTEX_ACQUIRE);
	*(void **)&acquired = callback_of(MUTEX_ACQUIRED);
	*(void **)&released = callback_of(MUTEX_RELEASED);
	sync(0, BEGIN, NULL, NULL, NULL);
	traced("b");
	assert_null(me->waiting); /* tasks may run in it: ticks go on to charge */
	sync(0, END, NULL, NULL, NULL);
	traced("e");
	sync(0, END, NULL, NULL, NULL); /* it had no beginning */
	traced("");
	acquire(0, 0, 0, 0, NULL);
	acquired(0, 0, NULL);
	traced("be");
	released(0, 0, NULL);
	traced("m");
	/* not every end is told: what came since was work in S */
	me->depth = 1;
	sync(0, BEGIN, NULL, NULL, NULL);
	sync(0, BEGIN, NULL, NULL, NULL);
	traced("beb");
	sync(0, END, NULL, NULL, NULL);
	traced("e");
	me->depth = 0;
	sync(0, BEGIN, NULL, NULL, NULL);
	sync(0, BEGIN, NULL, NULL, NULL);
	traced("bb");
	sync(0, END, NULL, NULL, NULL);
	traced("e");
	tool->finalize(NULL);
	/* the user's own tool goes first; and where we are off there is none */
	setenv("OMP_TOOL_LIBRARIES", "libtool.so", 1);
	assert_null(ompt_start_tool(1, "x"));
	setenv("OMP_TOOL_LIBRARIES", "", 1);
	assert_non_null(ompt_start_tool(1, "x"));
	atomic_store(&ca_rt.on, false);
	assert_null(ompt_start_tool(1, "x"));
	ca_rt.session = NULL;
	assert_null(ompt_start_tool(1, "x"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, rt_tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(no_library), /* the first: what is found is kept */
		TEST(looked_up_once),  TEST(regions), TEST(nested_regions),
		TEST(other_calls),     TEST(jumps),   TEST(barriers_that_say_something),
		TEST(tools_interface),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
