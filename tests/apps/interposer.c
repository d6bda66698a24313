/* SPDX-License-Identifier: MIT */
/* A second preloaded library, of the kind that takes the next one's functions. Its malloc is a
 * simple one, uses a lock, as such things do, and ends the program if it is entered while the same
 * thread is inside, as one that is called in a handler would be. */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, clock_lock = PTHREAD_MUTEX_INITIALIZER,
		       map_lock = PTHREAD_MUTEX_INITIALIZER;
static char *at, *end;
static unsigned long reads;
static __thread volatile int inside __attribute__((tls_model("initial-exec")));

static void enter(void)
{
	if (inside++)
		_exit(97);
}

static void hold(void)
{
	pthread_mutex_lock(&clock_lock);
	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&map_lock);
}

static void let_go(void)
{
	pthread_mutex_unlock(&map_lock);
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&clock_lock);
}

__attribute__((constructor)) static void start(void)
{
	pthread_atfork(hold, let_go, let_go); /* not held by a thread that the child has not */
}

void *malloc(size_t n)
{
	size_t *block;

	n = (n + 15) / 16 * 16 + 16;
	enter();
	pthread_mutex_lock(&lock);
	if ((size_t)(end - at) < n) {
		size_t size = n < 1 << 20 ? 1 << 20 : n;

		at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED)
			_exit(98);
		end = at + size;
	}
	block = (size_t *)(void *)at;
	at += n;
	pthread_mutex_unlock(&lock);
	inside--;
	*block = n - 16;
	return block + 2;
}

void free(void *p)
{
	(void)p;
	enter();
	inside--;
}

void *calloc(size_t n, size_t size)
{
	void *p = malloc(n * size);

	return memset(p, 0, n * size);
}

void *realloc(void *p, size_t n)
{
	size_t old = p ? ((size_t *)p)[-2] : 0;
	void *q = malloc(n);

	return p ? memcpy(q, p, old < n ? old : n) : q;
}

/* as libfaketime does it for programs with threads */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*real)(clockid_t, struct timespec *);
	int r;

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	pthread_mutex_lock(&clock_lock);
	r = real(clock, now);
	pthread_mutex_unlock(&clock_lock);
	return r;
}

void *mmap(void *where, size_t size, int protection, int flags, int fd, off_t offset)
{
	void *r;

	pthread_mutex_lock(&map_lock);
	r = (void *)syscall(SYS_mmap, where, size, protection, flags, fd, offset);
	pthread_mutex_unlock(&map_lock);
	return r;
}

ssize_t read(int fd, void *data, size_t n)
{
	static ssize_t (*real)(int, void *, size_t);

	if (!real)
		real = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
	reads++;
	return real(fd, data, n);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *p)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (!real)
		real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(
			RTLD_NEXT, "pthread_create");
	return real(thread, attr, run, p);
}
