/* SPDX-License-Identifier: MIT */
/* OpenMP: its barriers are inside the runtime libraries, behind raw system calls and spin
 * loops, so threads announce their arrival where nothing else could tell.
 *
 * libgomp: its entry points are ordinary calls. The outlined body is wrapped, so that each
 * thread pays before the barrier at the end of a region; from there to its next body it
 * waits for others, as its master does until all of the team have come. The real function is
 * looked up for each caller, as the loader would have: programs with a private copy of libgomp (Python's extension modules) keep theirs.
 * libomp and others: through OMPT, the tools interface that they offer themselves; and where that says too
 * little, by libomp's entry points. */
#include "causal/runtime/wrap.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* NULL: there is no OpenMP library. A program that looks whether a weak name is there finds
 * ours; it is alone then, and what the function would do for one thread is done. */
#define OMP_REAL(name) ((__typeof__(&name))ca_real_for(#name, __builtin_return_address(0)))

/* ---- idle between bodies -----------------------------------------------------------------*/
/* A wait that begins in one call and ends in another. Tasks may run inside it, so ticks go on
 * to charge for time on the CPU (who only spins pays that for nothing, which costs nothing);
 * what is left at the end is forgiven. */
static __thread struct ca_waiting idle __attribute__((tls_model("initial-exec")));
/* Where the threads of its team meet, for profiles: its master's `idle`. NULL: not known. */
static __thread const void *team __attribute__((tls_model("initial-exec")));

enum {
	UNKNOWN_TURNS = 1000000
}; /* both libraries spin for a while before they sleep: for how long is not seen */

static void idle_begin(void)
{
	/* libomp does not tell every end: what came since was work, and is paid now */
	if (idle.thread && (idle.in_s || idle.fine_s))
		ca_wait_end(&idle);
	ca_wait_is(CA_ACTIVITY_TEAM, team);
	idle = ca_wait_begin(CA_WAIT_OTHERS, -1);
	if (idle.thread)
		idle.thread->waiting = NULL;
}

static void idle_end(void)
{
	if (idle.thread) {
		ca_rt_spins(idle.thread, UNKNOWN_TURNS);
		ca_wait_end(&idle);
		idle.thread->owed = 0;
	}
	idle.thread = NULL;
}

struct body {
	void (*run)(void *);
	void *data;
	const void *team;
};

static void outlined(void *p)
{
	const struct body *b = p;

	idle_end();
	team = b->team;
	b->run(b->data);
	idle_begin();
}

/* Each is called once per region; the body's record lives on the caller's stack until all
 * threads have left it, as libgomp's own data does. */
#define PARALLEL(name, parameters, ...)                                                                      \
	void name parameters;                                                                                \
	CA_EXPORT void name parameters                                                                       \
	{                                                                                                    \
		struct body body = { run, data, &idle };                                                     \
		__typeof__(&name) real = OMP_REAL(name);                                                     \
		const void *outer = team;                                                                    \
                                                                                                             \
		if (!real) { /* see OMP_REAL */                                                              \
			run(data);                                                                           \
			return;                                                                              \
		}                                                                                            \
		ca_wait_meet_at(&idle);                                                                      \
		idle_begin();                                                                                \
		real(outlined, &body, __VA_ARGS__);                                                          \
		idle_end();                                                                                  \
		team = outer;                                                                                \
	}
#define RUN void (*run)(void *), void *data, unsigned threads

PARALLEL(GOMP_parallel, (RUN, unsigned flags), threads, flags)
PARALLEL(GOMP_parallel_sections, (RUN, unsigned count, unsigned flags), threads, count, flags)
#define LOOP_CHUNK(name)                                                                                     \
	PARALLEL(name, (RUN, long start, long end, long step, long chunk, unsigned flags), threads, start,   \
		 end, step, chunk, flags)
#define LOOP(name)                                                                                           \
	PARALLEL(name, (RUN, long start, long end, long step, unsigned flags), threads, start, end, step,    \
		 flags)
/* The same for reductions over tasks, which returns the number of threads. The library looks into the
 * body's data: its first word tells of the reductions. */
struct reducing_body {
	void *reductions;
	struct body body;
};

static void outlined_reducing(void *p)
{
	outlined(&((struct reducing_body *)p)->body);
}

unsigned GOMP_parallel_reductions(RUN, unsigned flags);
CA_EXPORT unsigned GOMP_parallel_reductions(RUN, unsigned flags)
{
	struct reducing_body body = { *(void **)data, { run, data, &idle } };
	__typeof__(&GOMP_parallel_reductions) real = OMP_REAL(GOMP_parallel_reductions);
	const void *outer = team;
	unsigned n = 1;

	ca_wait_meet_at(&idle);
	if (real) {
		idle_begin();
		n = real(outlined_reducing, &body, threads, flags);
		idle_end();
		team = outer;
	} else {
		run(data);
	}
	return n;
}
LOOP_CHUNK(GOMP_parallel_loop_static)
LOOP_CHUNK(GOMP_parallel_loop_dynamic)
LOOP_CHUNK(GOMP_parallel_loop_guided)
LOOP_CHUNK(GOMP_parallel_loop_nonmonotonic_dynamic)
LOOP_CHUNK(GOMP_parallel_loop_nonmonotonic_guided)
LOOP(GOMP_parallel_loop_runtime)
LOOP(GOMP_parallel_loop_nonmonotonic_runtime)
LOOP(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

#define OMP_WAIT(name, parameters, arguments, object)                                                        \
	void name parameters;                                                                                \
	CA_EXPORT void name parameters                                                                       \
	{                                                                                                    \
		__typeof__(&name) real = OMP_REAL(name);                                                     \
		struct ca_waiting w = DOING(LOCK, object, ca_wait_begin(CA_WAIT_OTHERS, -1));                \
                                                                                                             \
		if (real)                                                                                    \
			real arguments;                                                                      \
		ca_wait_end(&w);                                                                             \
	}
/* A lock that is free is taken with the test form, so that only real waits count as waits (wrap_sync.c). */
#define OMP_LOCK(name, test)                                                                                 \
	void name(void *lock);                                                                               \
	int test(void *lock);                                                                                \
	CA_EXPORT void name(void *lock)                                                                      \
	{                                                                                                    \
		__typeof__(&name) real = OMP_REAL(name);                                                     \
		__typeof__(&test) try = OMP_REAL(test);                                                      \
		struct ca_waiting w;                                                                         \
                                                                                                             \
		ca_wait_meet();                                                                              \
		if (try && try(lock))                                                                        \
			return;                                                                              \
		w = DOING(LOCK, lock, ca_wait_begin(CA_WAIT_OTHERS, -1));                                    \
		if (real)                                                                                    \
			real(lock);                                                                          \
		ca_wait_end(&w);                                                                             \
	}
#define OMP_MEET(name, parameters, arguments, object)                                                        \
	void name parameters;                                                                                \
	CA_EXPORT void name parameters                                                                       \
	{                                                                                                    \
		__typeof__(&name) real = OMP_REAL(name);                                                     \
                                                                                                             \
		ca_wait_meet_at(object);                                                                     \
		if (real)                                                                                    \
			real arguments;                                                                      \
	}
#define OMP_BARRIER(name)                                                                                    \
	void name(void);                                                                                     \
	CA_EXPORT void name(void)                                                                            \
	{                                                                                                    \
		__typeof__(&name) real = OMP_REAL(name);                                                     \
                                                                                                             \
		idle_begin();                                                                                \
		if (real)                                                                                    \
			real();                                                                              \
		idle_end();                                                                                  \
	}
#define OMP_BARRIER_OF(name, type)                                                                           \
	void name(type argument);                                                                            \
	CA_EXPORT void name(type argument)                                                                   \
	{                                                                                                    \
		__typeof__(&name) real = OMP_REAL(name);                                                     \
                                                                                                             \
		idle_begin();                                                                                \
		if (real)                                                                                    \
			real(argument);                                                                      \
		idle_end();                                                                                  \
	}
OMP_BARRIER_OF(GOMP_single_copy_end, void *)
OMP_BARRIER_OF(GOMP_workshare_task_reduction_unregister, bool)
typedef void *void_pointer;
#define OMP_BARRIER_SAYS(type, name)                                                                         \
	type name(void);                                                                                     \
	CA_EXPORT type name(void)                                                                            \
	{                                                                                                    \
		__typeof__(&name) real = OMP_REAL(name);                                                     \
		type said = 0;                                                                               \
                                                                                                             \
		idle_begin();                                                                                \
		if (real)                                                                                    \
			said = real();                                                                       \
		idle_end();                                                                                  \
		return said;                                                                                 \
	}
OMP_BARRIER_SAYS(bool, GOMP_barrier_cancel)
OMP_BARRIER_SAYS(bool, GOMP_loop_end_cancel)
OMP_BARRIER_SAYS(bool, GOMP_sections_end_cancel)
/* all but one thread of a team wait in the first until that one has called the second */
OMP_BARRIER_SAYS(void_pointer, GOMP_single_copy_start)
OMP_BARRIER(GOMP_barrier)
OMP_BARRIER(GOMP_loop_end)
OMP_BARRIER(GOMP_sections_end)
/* the library's own locks, of which there is one each */
static const char critical, atomic;
OMP_WAIT(GOMP_critical_start, (void), (), &critical)
OMP_MEET(GOMP_critical_end, (void), (), &critical)
OMP_WAIT(GOMP_critical_name_start, (void **lock), (lock), lock)
OMP_MEET(GOMP_critical_name_end, (void **lock), (lock), lock)
OMP_WAIT(GOMP_atomic_start, (void), (), &atomic)
OMP_MEET(GOMP_atomic_end, (void), (), &atomic)
OMP_WAIT(GOMP_ordered_start, (void), (), team)
OMP_MEET(GOMP_ordered_end, (void), (), team)
OMP_MEET(GOMP_taskwait, (void), (), NULL)
OMP_MEET(GOMP_taskgroup_end, (void), (), NULL)
OMP_LOCK(omp_set_lock, omp_test_lock)
OMP_MEET(omp_unset_lock, (void *lock), (lock), lock)
OMP_LOCK(omp_set_nest_lock, omp_test_nest_lock)
OMP_MEET(omp_unset_nest_lock, (void *lock), (lock), lock)
/* Fortran's */
OMP_LOCK(omp_set_lock_, omp_test_lock_)
OMP_MEET(omp_unset_lock_, (void *lock), (lock), lock)
OMP_LOCK(omp_set_nest_lock_, omp_test_nest_lock_)
OMP_MEET(omp_unset_nest_lock_, (void *lock), (lock), lock)

/* Calls before which a thread pays and that are otherwise left as they are: for them no prototype is
 * needed, and the real function sees the caller's own stack (some take as many arguments as a loop is
 * deep). */
__attribute__((used)) static int nothing_to_do(void)
{
	return 0;
}

__attribute__((used)) static void *before_jump(const char *name, const void *caller)
{
	void *real;

	ca_wait_meet();
	real = ca_real_for(name, caller);
	return real ? real : (void *)nothing_to_do;
}

#define OMP_JUMP(name)                                                                                       \
	__asm__(".section .rodata\n"                                                                         \
		"1:	.string \"" #name "\"\n"                                                             \
		".text\n"                                                                                    \
		".globl " #name "\n"                                                                         \
		".type " #name ", @function\n" #name ":\n"                                                   \
		"	.cfi_startproc\n"                                                                          \
		"	push %rdi\n"                                                                               \
		"	.cfi_adjust_cfa_offset 8\n"                                                                \
		"	push %rsi\n"                                                                               \
		"	.cfi_adjust_cfa_offset 8\n"                                                                \
		"	push %rdx\n"                                                                               \
		"	.cfi_adjust_cfa_offset 8\n"                                                                \
		"	push %rcx\n"                                                                               \
		"	.cfi_adjust_cfa_offset 8\n"                                                                \
		"	push %r8\n"                                                                                \
		"	.cfi_adjust_cfa_offset 8\n"                                                                \
		"	push %r9\n"                                                                                \
		"	.cfi_adjust_cfa_offset 8\n"                                                                \
		"	push %rax\n"                                                                               \
		"	.cfi_adjust_cfa_offset 8\n"                                                                \
		"	lea 1b(%rip), %rdi\n"                                                                      \
		"	mov 56(%rsp), %rsi\n"                                                                      \
		"	call before_jump\n"                                                                        \
		"	mov %rax, %r11\n"                                                                          \
		"	pop %rax\n"                                                                                \
		"	.cfi_adjust_cfa_offset -8\n"                                                               \
		"	pop %r9\n"                                                                                 \
		"	.cfi_adjust_cfa_offset -8\n"                                                               \
		"	pop %r8\n"                                                                                 \
		"	.cfi_adjust_cfa_offset -8\n"                                                               \
		"	pop %rcx\n"                                                                                \
		"	.cfi_adjust_cfa_offset -8\n"                                                               \
		"	pop %rdx\n"                                                                                \
		"	.cfi_adjust_cfa_offset -8\n"                                                               \
		"	pop %rsi\n"                                                                                \
		"	.cfi_adjust_cfa_offset -8\n"                                                               \
		"	pop %rdi\n"                                                                                \
		"	.cfi_adjust_cfa_offset -8\n"                                                               \
		"	jmp *%r11\n"                                                                               \
		"	.cfi_endproc\n"                                                                            \
		".size " #name ", . - " #name "\n")

/* Taking the first or next piece of a shared loop, or the next section: who owes must not be early.
 * Static loops are not shared, unless they are ordered. */
OMP_JUMP(GOMP_loop_dynamic_start);
OMP_JUMP(GOMP_loop_dynamic_next);
OMP_JUMP(GOMP_loop_guided_start);
OMP_JUMP(GOMP_loop_guided_next);
OMP_JUMP(GOMP_loop_runtime_start);
OMP_JUMP(GOMP_loop_runtime_next);
OMP_JUMP(GOMP_loop_nonmonotonic_dynamic_start);
OMP_JUMP(GOMP_loop_nonmonotonic_dynamic_next);
OMP_JUMP(GOMP_loop_nonmonotonic_guided_start);
OMP_JUMP(GOMP_loop_nonmonotonic_guided_next);
OMP_JUMP(GOMP_loop_nonmonotonic_runtime_start);
OMP_JUMP(GOMP_loop_nonmonotonic_runtime_next);
OMP_JUMP(GOMP_loop_maybe_nonmonotonic_runtime_start);
OMP_JUMP(GOMP_loop_maybe_nonmonotonic_runtime_next);
OMP_JUMP(GOMP_loop_ordered_static_start);
OMP_JUMP(GOMP_loop_ordered_static_next);
OMP_JUMP(GOMP_loop_ordered_dynamic_start);
OMP_JUMP(GOMP_loop_ordered_dynamic_next);
OMP_JUMP(GOMP_loop_ordered_guided_start);
OMP_JUMP(GOMP_loop_ordered_guided_next);
OMP_JUMP(GOMP_loop_ordered_runtime_start);
OMP_JUMP(GOMP_loop_ordered_runtime_next);
OMP_JUMP(GOMP_loop_start);
OMP_JUMP(GOMP_loop_ordered_start);
OMP_JUMP(GOMP_loop_doacross_start);
OMP_JUMP(GOMP_loop_doacross_static_start);
OMP_JUMP(GOMP_loop_doacross_dynamic_start);
OMP_JUMP(GOMP_loop_doacross_guided_start);
OMP_JUMP(GOMP_loop_doacross_runtime_start);
OMP_JUMP(GOMP_loop_ull_dynamic_start);
OMP_JUMP(GOMP_loop_ull_dynamic_next);
OMP_JUMP(GOMP_loop_ull_guided_start);
OMP_JUMP(GOMP_loop_ull_guided_next);
OMP_JUMP(GOMP_loop_ull_runtime_start);
OMP_JUMP(GOMP_loop_ull_runtime_next);
OMP_JUMP(GOMP_loop_ull_nonmonotonic_dynamic_start);
OMP_JUMP(GOMP_loop_ull_nonmonotonic_dynamic_next);
OMP_JUMP(GOMP_loop_ull_nonmonotonic_guided_start);
OMP_JUMP(GOMP_loop_ull_nonmonotonic_guided_next);
OMP_JUMP(GOMP_loop_ull_nonmonotonic_runtime_start);
OMP_JUMP(GOMP_loop_ull_nonmonotonic_runtime_next);
OMP_JUMP(GOMP_loop_ull_maybe_nonmonotonic_runtime_start);
OMP_JUMP(GOMP_loop_ull_maybe_nonmonotonic_runtime_next);
OMP_JUMP(GOMP_loop_ull_ordered_static_start);
OMP_JUMP(GOMP_loop_ull_ordered_static_next);
OMP_JUMP(GOMP_loop_ull_ordered_dynamic_start);
OMP_JUMP(GOMP_loop_ull_ordered_dynamic_next);
OMP_JUMP(GOMP_loop_ull_ordered_guided_start);
OMP_JUMP(GOMP_loop_ull_ordered_guided_next);
OMP_JUMP(GOMP_loop_ull_ordered_runtime_start);
OMP_JUMP(GOMP_loop_ull_ordered_runtime_next);
OMP_JUMP(GOMP_loop_ull_start);
OMP_JUMP(GOMP_loop_ull_ordered_start);
OMP_JUMP(GOMP_loop_ull_doacross_start);
OMP_JUMP(GOMP_loop_ull_doacross_static_start);
OMP_JUMP(GOMP_loop_ull_doacross_dynamic_start);
OMP_JUMP(GOMP_loop_ull_doacross_guided_start);
OMP_JUMP(GOMP_loop_ull_doacross_runtime_start);
OMP_JUMP(GOMP_sections_start);
OMP_JUMP(GOMP_sections2_start);
OMP_JUMP(GOMP_sections_next);
/* iterations that wait for others: a wait there is a spin loop that ends in a futex */
OMP_JUMP(GOMP_doacross_post);
OMP_JUMP(GOMP_doacross_wait);
OMP_JUMP(GOMP_doacross_ull_post);
OMP_JUMP(GOMP_doacross_ull_wait);
/* tasks, which others may run, and places where others are waited for or told */
OMP_JUMP(GOMP_task);
OMP_JUMP(GOMP_taskloop);
OMP_JUMP(GOMP_taskloop_ull);
OMP_JUMP(GOMP_taskyield);
OMP_JUMP(GOMP_taskwait_depend);
OMP_JUMP(GOMP_cancel);
OMP_JUMP(GOMP_single_start);
OMP_JUMP(omp_test_lock);
OMP_JUMP(omp_test_nest_lock);
OMP_JUMP(omp_test_lock_);
OMP_JUMP(omp_test_nest_lock_);
OMP_JUMP(omp_fulfill_event);
OMP_JUMP(omp_fulfill_event_);
/* libomp's tools interface tells of no pieces of shared loops, and of reductions too late */
OMP_JUMP(__kmpc_dispatch_next_4);
OMP_JUMP(__kmpc_dispatch_next_4u);
OMP_JUMP(__kmpc_dispatch_next_8);
OMP_JUMP(__kmpc_dispatch_next_8u);
OMP_JUMP(__kmpc_reduce);
OMP_JUMP(__kmpc_reduce_nowait);

/* ---- OMPT (OpenMP 5.0, chapter 4): only what we need of its types ------------------------*/
typedef void (*ompt_any)(void);
typedef ompt_any (*ompt_lookup)(const char *name);
typedef union {
	uint64_t value;
	void *ptr;
} ompt_data;
struct ompt_result {
	int (*initialize)(ompt_lookup lookup, int device, ompt_data *data);
	void (*finalize)(ompt_data *data);
	ompt_data data;
};
enum { OMPT_MUTEX_RELEASED = 17, OMPT_SYNC_REGION = 23, OMPT_MUTEX_ACQUIRE = 26, OMPT_MUTEX_ACQUIRED = 27 };
enum { OMPT_SCOPE_BEGIN = 1 };

static void on_sync_region(int kind, int endpoint, ompt_data *parallel, ompt_data *task, const void *code)
{
	(void)kind, (void)parallel, (void)task, (void)code;
	if (endpoint == OMPT_SCOPE_BEGIN)
		idle_begin();
	else
		idle_end();
}

static void on_mutex_acquire(int kind, unsigned hint, unsigned impl, uint64_t id, const void *code)
{
	(void)kind, (void)hint, (void)impl, (void)id, (void)code;
	idle_begin();
}

static void on_mutex_acquired(int kind, uint64_t id, const void *code)
{
	(void)kind, (void)id, (void)code;
	idle_end();
}

static void on_mutex_released(int kind, uint64_t id, const void *code)
{
	(void)kind, (void)id, (void)code;
	ca_wait_meet();
}

static int ompt_begin(ompt_lookup lookup, int device, ompt_data *data)
{
	int (*set)(int event, ompt_any callback) = (int (*)(int, ompt_any))lookup("ompt_set_callback");

	(void)device, (void)data;
	if (!set)
		return 0;
	set(OMPT_SYNC_REGION, (ompt_any)(void *)on_sync_region);
	set(OMPT_MUTEX_ACQUIRE, (ompt_any)(void *)on_mutex_acquire);
	set(OMPT_MUTEX_ACQUIRED, (ompt_any)(void *)on_mutex_acquired);
	set(OMPT_MUTEX_RELEASED, (ompt_any)(void *)on_mutex_released);
	return 1;
}

static void ompt_end(ompt_data *data)
{
	(void)data;
}

/* An OpenMP runtime asks for a tool. The user's own choice goes before us. */
CA_EXPORT struct ompt_result *ompt_start_tool(unsigned version, const char *runtime);
CA_EXPORT struct ompt_result *ompt_start_tool(unsigned version, const char *runtime)
{
	static struct ompt_result result = { ompt_begin, ompt_end, { 0 } };
	const char *wanted = getenv("OMP_TOOL_LIBRARIES");

	(void)version, (void)runtime;
	if (!ca_rt.session || !atomic_load(&ca_rt.on) || (wanted && *wanted))
		return NULL;
	return &result;
}
