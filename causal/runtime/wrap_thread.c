/* SPDX-License-Identifier: MIT */
/* Threads that start and join; programs that are executed. */
#include "causal/runtime/activation.h"
#include "causal/runtime/cancel.h"
#include "causal/runtime/patch.h"
#include "causal/runtime/points.h"
#include "causal/runtime/start.h"
#include "causal/runtime/ticks.h"
#include "causal/runtime/wrap.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* A thread's end is waited for at this address. */
#define OBJECT_OF(thread) ((const void *)(uintptr_t)(thread))

struct start {
	union {
		void *(*posix)(void *);
		thrd_start_t c11;
	} run;
	void *argument;
	size_t stack;     /* bytes */
	uint64_t blocked; /* signals of ours, as its creator sees it */
	uint64_t pair;    /* for the timeline */
	uint32_t creator; /* its slot; UINT32_MAX: it has none */
};

/* Where threads are created all the time, what is told to them comes from here: one that gives memory back
 * gets an arena from libc, which it may not need itself. */
enum { STARTS = 64 };
static struct start starts[STARTS];
static _Atomic bool start_taken[STARTS];

static struct start *start_new(void)
{
	static _Atomic unsigned next;
	unsigned i = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % STARTS;

	/* acquire: pairs with the release below */
	if (atomic_exchange_explicit(&start_taken[i], true, memory_order_acquire))
		return malloc(sizeof *starts);
	return &starts[i];
}

static void start_free(struct start *s)
{
	if (s < starts || s >= starts + STARTS)
		free(s);
	else
		atomic_store_explicit(&start_taken[s - starts], false, memory_order_release);
}

static size_t stack_size(const pthread_attr_t *attr)
{
	pthread_attr_t usual;
	size_t size = 0;

	if (attr)
		return pthread_attr_getstacksize(attr, &size) == 0 ? size : 0;
	if (pthread_getattr_default_np(&usual))
		return 0;
	pthread_attr_getstacksize(&usual, &size);
	pthread_attr_destroy(&usual);
	return size;
}

static struct start *new_start(void *argument, const pthread_attr_t *attr)
{
	ca_start_once(); /* a library's constructor may be here before ours */

	struct start *s = ca_rt.session && atomic_load(&ca_rt.on) ? start_new() : NULL;

	if (s) {
		s->argument = argument;
		s->stack = stack_size(attr);
		s->blocked = ca_signals_wanted();
		s->creator = ca_self ? ca_self->number : UINT32_MAX;
		ca_ticks_creates();
	}
	return s;
}

static struct start take_start(void *p)
{
	struct start s = *(struct start *)p;

	start_free(p);
	ca_signals_inherit(s.blocked);
	ca_thread_begin_by(s.creator, (uintptr_t)s.run.posix);
	ca_timeline_receive(s.pair);
	/* libc puts what it knows of a thread on top of its stack */
	ca_activation_own_stack((uintptr_t)pthread_self(), s.stack);
	return s;
}

static void *start_posix(void *p)
{
	struct start s = take_start(p);

	return s.run.posix(s.argument);
}

static int start_c11(void *p)
{
	struct start s = take_start(p);

	return s.run.c11(s.argument);
}

CA_EXPORT int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr,
			     void *(*run)(void *), void *restrict argument)
{
	struct start *s = new_start(argument, attr);
	int r;

	if (!s)
		return REAL(pthread_create)(thread, attr, run, argument);
	s->run.posix = run;
	ca_wait_meet();
	s->pair = ca_timeline_send();
	r = REAL(pthread_create)(thread, attr, start_posix, s);
	if (r)
		start_free(s);
	return r;
}

CA_EXPORT int thrd_create(thrd_t *thread, thrd_start_t run, void *argument)
{
	struct start *s = new_start(argument, NULL);
	int r;

	if (!s)
		return REAL(thrd_create)(thread, run, argument);
	s->run.c11 = run;
	ca_wait_meet();
	s->pair = ca_timeline_send();
	r = REAL(thrd_create)(thread, start_c11, s);
	if (r != thrd_success)
		start_free(s);
	return r;
}

CA_EXPORT int pthread_join(pthread_t thread, void **value)
{
	return DOING(JOIN, OBJECT_OF(thread), WAITING(CA_WAIT_OTHERS, -1, REAL(pthread_join)(thread, value)));
}

CA_EXPORT int pthread_tryjoin_np(pthread_t thread, void **value)
{
	return MEETING(REAL(pthread_tryjoin_np)(thread, value));
}

CA_EXPORT int pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *until)
{
	return DOING(JOIN, OBJECT_OF(thread),
		     WAITING_UNTIL(until, ETIMEDOUT, REAL(pthread_timedjoin_np)(thread, value, until_)));
}

CA_EXPORT int thrd_join(thrd_t thread, int *value)
{
	return DOING(JOIN, OBJECT_OF(thread), WAITING(CA_WAIT_OTHERS, -1, REAL(thrd_join)(thread, value)));
}

/* LLVM's and Intel's OpenMP set that type in all their workers and cancel them only when they
 * give up on a program. */
static bool is_openmp(const void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) && info.dli_fname &&
	       (strstr(info.dli_fname, "/libomp") || strstr(info.dli_fname, "/libiomp"));
}

CA_EXPORT int pthread_setcanceltype(int type, int *old)
{
	int r;

	if (type == PTHREAD_CANCEL_ASYNCHRONOUS && !is_openmp(__builtin_return_address(0)))
		ca_cancel_type(true);
	r = REAL(pthread_setcanceltype)(type, old);
	if (type == PTHREAD_CANCEL_DEFERRED)
		ca_cancel_type(false);
	return r;
}

CA_EXPORT int pthread_cancel(pthread_t thread)
{
	ca_cancel_before(thread);
	return REAL(pthread_cancel)(thread);
}

CA_EXPORT int pthread_kill(pthread_t thread, int signal)
{
	return MEETING(REAL(pthread_kill)(thread, signal));
}

/* What programs call that are older than glibc 2.34: it tells them that a thread has ended. */
CA_EXPORT int ca_wrap_old_pthread_kill(pthread_t thread, int signal);
CA_EXPORT int ca_wrap_old_pthread_kill(pthread_t thread, int signal)
{
	return MEETING(
		(ca_real_old_pthread_kill ? ca_real_old_pthread_kill : REAL(pthread_kill))(thread, signal));
}
__asm__(".symver ca_wrap_old_pthread_kill, pthread_kill@GLIBC_2.2.5");

CA_EXPORT int pthread_sigqueue(pthread_t thread, int signal, const union sigval value)
{
	return MEETING(REAL(pthread_sigqueue)(thread, signal, value));
}

CA_EXPORT int kill(pid_t pid, int signal)
{
	return MEETING(REAL(kill)(pid, signal));
}

/* ---- exec with an environment of the caller's making: the runtime stays on -----------*/
static const char *find_in(char *const env[], const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (!strncmp(*env, name, n) && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

#define SESSION "CAUSAL_SESSION="
#define PRELOAD "LD_PRELOAD="

static bool has_us(char *const env[])
{
	const char *preload = find_in(env, "LD_PRELOAD");

	return !ca_rt.session || !atomic_load(&ca_rt.on) || !*ca_rt.own_path ||
	       (find_in(env, "CAUSAL_SESSION") && preload && strstr(preload, ca_rt.own_path));
}

/* Room for a list that is long enough, and for its two new strings; 0: not needed. The caller
 * provides it on its stack, since vfork's child may not allocate. */
static size_t list_room(char *const env[])
{
	size_t n = 0;

	if (has_us(env))
		return 0;
	while (env && env[n])
		n++;
	return n + 3;
}

static size_t text_room(char *const env[])
{
	const char *preload = find_in(env, "LD_PRELOAD");

	return has_us(env) ? 0
			   : strlen(SESSION PRELOAD) + strlen(ca_rt.session_path) + strlen(ca_rt.own_path) +
				     (preload ? strlen(preload) : 0) + 4;
}

static char *const *with_us(char *const env[], char **list, size_t slots, char *text)
{
	const char *preload = find_in(env, "LD_PRELOAD");
	size_t n = 0;

	if (!slots)
		return env;
	for (; env && *env && n + 3 < slots; env++)
		if (strncmp(*env, SESSION, strlen(SESSION)) && strncmp(*env, PRELOAD, strlen(PRELOAD)))
			list[n++] = *env;
	list[n++] = text;
	text = stpcpy(stpcpy(text, SESSION), ca_rt.session_path) + 1;
	list[n++] = text;
	text = stpcpy(text, PRELOAD);
	if (preload && *preload)
		text = stpcpy(stpcpy(text, preload), ":");
	strcpy(text, ca_rt.own_path);
	list[n] = NULL;
	return list;
}

/* These are variable-length arrays on purpose: see list_room. */
#define WITH_US(env)                                                                                         \
	size_t slots_ = list_room(env);                                                                      \
	char *list_[slots_ + 1], text_[text_room(env) + 1];                                                  \
	char *const *env_ = with_us((env), list_, slots_, text_)

#define EXEC(call)                                                                                           \
	__extension__({                                                                                      \
		int failed_;                                                                                 \
		ca_thread_pause();                                                                           \
		failed_ = (call);                                                                            \
		ca_thread_resume();                                                                          \
		failed_;                                                                                     \
	})

CA_EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
	WITH_US(env);

	return EXEC(REAL(execve)(path, argv, env_));
}

CA_EXPORT int execvpe(const char *file, char *const argv[], char *const env[])
{
	WITH_US(env);

	return EXEC(REAL(execvpe)(file, argv, env_));
}

CA_EXPORT int fexecve(int fd, char *const argv[], char *const env[])
{
	WITH_US(env);

	return EXEC(REAL(fexecve)(fd, argv, env_));
}

CA_EXPORT int execveat(int fd, const char *path, char *const argv[], char *const env[], int flags)
{
	WITH_US(env);

	return EXEC(REAL(execveat)(fd, path, argv, env_, flags));
}

CA_EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

CA_EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/* The list of arguments of execl and its kin, in an array on the caller's stack. */
#define COLLECT(first)                                                                                       \
	size_t n_ = 1;                                                                                       \
	va_list list_;                                                                                       \
                                                                                                             \
	va_start(list_, first);                                                                              \
	while (va_arg(list_, char *))                                                                        \
		n_++;                                                                                        \
	va_end(list_);                                                                                       \
	char *argv_[n_ + 1];                                                                                 \
	argv_[0] = (char *)(uintptr_t)(first);                                                               \
	va_start(list_, first);                                                                              \
	for (size_t i_ = 1; i_ <= n_; i_++)                                                                  \
	argv_[i_] = va_arg(list_, char *)

CA_EXPORT int execl(const char *path, const char *first, ...)
{
	COLLECT(first);
	va_end(list_);
	return execve(path, argv_, environ);
}

CA_EXPORT int execlp(const char *file, const char *first, ...)
{
	COLLECT(first);
	va_end(list_);
	return execvpe(file, argv_, environ);
}

CA_EXPORT int execle(const char *path, const char *first, ...)
{
	char *const *env;

	COLLECT(first);
	env = va_arg(list_, char *const *);
	va_end(list_);
	return execve(path, argv_, env);
}

CA_EXPORT int posix_spawn(pid_t *restrict pid, const char *restrict path,
			  const posix_spawn_file_actions_t *restrict actions,
			  const posix_spawnattr_t *restrict attr, char *const argv[restrict],
			  char *const env[restrict])
{
	WITH_US(env);

	return MAKING(MEETING(REAL(posix_spawn)(pid, path, actions, attr, argv, env_)));
}

CA_EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict file,
			   const posix_spawn_file_actions_t *restrict actions,
			   const posix_spawnattr_t *restrict attr, char *const argv[restrict],
			   char *const env[restrict])
{
	WITH_US(env);

	return MAKING(MEETING(REAL(posix_spawnp)(pid, file, actions, attr, argv, env_)));
}

/* ---- libraries that come and go ------------------------------------------------------*/
/* The loader looks at who calls dlopen (its RUNPATH, its namespace), so nothing of ours may
 * stand between: the note is made first, and the call is a jump. */
__attribute__((used)) static void *before_dlopen(void)
{
	int saved = errno;
	void *real = (void *)REAL(dlopen);

	ca_points_libraries_change();
	errno = saved;
	return real;
}

__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	"dlopen:\n"
	"	.cfi_startproc\n"
	"	push %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	sub $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call before_dlopen\n"
	"	add $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	jmp *%rax\n"
	"	.cfi_endproc\n"
	".size dlopen, . - dlopen\n");

CA_EXPORT int dlclose(void *handle)
{
	bool held = ca_patch_hold();
	int r = REAL(dlclose)(handle);

	ca_points_libraries_left();
	ca_patch_release(held);
	return r;
}
