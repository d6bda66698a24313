/* Threads that start and join; programs that are executed. */
#include "causal/runtime/wrap.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct start {
	union {
		void *(*posix)(void *);
		thrd_start_t c11;
	} run;
	void *argument;
};

static struct start *new_start(void *argument)
{
	struct start *s = ca_rt.session && atomic_load(&ca_rt.on) ? malloc(sizeof *s) : NULL;

	if (s)
		s->argument = argument;
	return s;
}

static struct start take_start(void *p)
{
	struct start s = *(struct start *)p;

	free(p);
	ca_thread_begin();
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
	struct start *s = new_start(argument);
	int r;

	if (!s)
		return REAL(pthread_create)(thread, attr, run, argument);
	s->run.posix = run;
	ca_meet();
	r = REAL(pthread_create)(thread, attr, start_posix, s);
	if (r)
		free(s);
	return r;
}

CA_EXPORT int thrd_create(thrd_t *thread, thrd_start_t run, void *argument)
{
	struct start *s = new_start(argument);
	int r;

	if (!s)
		return REAL(thrd_create)(thread, run, argument);
	s->run.c11 = run;
	ca_meet();
	r = REAL(thrd_create)(thread, start_c11, s);
	if (r != thrd_success)
		free(s);
	return r;
}

CA_EXPORT int pthread_join(pthread_t thread, void **value)
{
	return WAITING(CA_WAIT_OTHERS, -1, REAL(pthread_join)(thread, value));
}

CA_EXPORT int pthread_tryjoin_np(pthread_t thread, void **value)
{
	return MEETING(REAL(pthread_tryjoin_np)(thread, value));
}

CA_EXPORT int pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *until)
{
	return WAITING(CA_WAIT_OTHERS, -1, REAL(pthread_timedjoin_np)(thread, value, until));
}

CA_EXPORT int thrd_join(thrd_t thread, int *value)
{
	return WAITING(CA_WAIT_OTHERS, -1, REAL(thrd_join)(thread, value));
}

CA_EXPORT int pthread_kill(pthread_t thread, int signal)
{
	return MEETING(REAL(pthread_kill)(thread, signal));
}

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

static const char *own_path(void)
{
	Dl_info info;

	return dladdr((void *)(uintptr_t)&own_path, &info) && info.dli_fname ? info.dli_fname : "";
}


/* Room for the additions comes from the caller, since vfork's child may not allocate. */
enum { EXTRA_TEXT = 8192, EXTRA_ENTRIES = 4 };

static char *const *with_us(char *const env[], char **list, size_t slots, char *text)
{
	const char *session = getenv("CAUSAL_SESSION"), *preload = find_in(env, "LD_PRELOAD");
	const char *own = own_path();
	size_t n = 0, used;

	if (!session || !ca_rt.session || !atomic_load(&ca_rt.on) ||
	    (find_in(env, "CAUSAL_SESSION") && preload && strstr(preload, "libcausal-rt")))
		return env;
	for (; env && *env; env++)
		if (strncmp(*env, "CAUSAL_SESSION=", 15) && strncmp(*env, "LD_PRELOAD=", 11) &&
		    n + EXTRA_ENTRIES < slots)
			list[n++] = *env;
	used = (size_t)snprintf(text, EXTRA_TEXT, "CAUSAL_SESSION=%s", session) + 1;
	list[n++] = text;
	if (used < EXTRA_TEXT) {
		list[n++] = text + used;
		snprintf(text + used, EXTRA_TEXT - used, "LD_PRELOAD=%s%s%s", preload ? preload : "",
			 preload && *preload ? ":" : "", own);
	}
	list[n] = NULL;
	return list;
}

static size_t count(char *const env[])
{
	size_t n = 0;

	while (env && env[n])
		n++;
	return n + EXTRA_ENTRIES + 1;
}

/* These are variable-length arrays on purpose: see with_us. */
#define WITH_US(env)                               \
	size_t slots_ = count(env);                \
	char *list_[slots_], text_[EXTRA_TEXT];    \
	char *const *env_ = with_us((env), list_, slots_, text_)

CA_EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
	WITH_US(env);

	ca_meet();
	return REAL(execve)(path, argv, env_);
}

CA_EXPORT int execvpe(const char *file, char *const argv[], char *const env[])
{
	WITH_US(env);

	ca_meet();
	return REAL(execvpe)(file, argv, env_);
}

CA_EXPORT int fexecve(int fd, char *const argv[], char *const env[])
{
	WITH_US(env);

	ca_meet();
	return REAL(fexecve)(fd, argv, env_);
}

CA_EXPORT int posix_spawn(pid_t *restrict pid, const char *restrict path,
			  const posix_spawn_file_actions_t *restrict actions,
			  const posix_spawnattr_t *restrict attr, char *const argv[restrict],
			  char *const env[restrict])
{
	WITH_US(env);

	ca_meet();
	return REAL(posix_spawn)(pid, path, actions, attr, argv, env_);
}

CA_EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict file,
			   const posix_spawn_file_actions_t *restrict actions,
			   const posix_spawnattr_t *restrict attr, char *const argv[restrict],
			   char *const env[restrict])
{
	WITH_US(env);

	ca_meet();
	return REAL(posix_spawnp)(pid, file, actions, attr, argv, env_);
}
