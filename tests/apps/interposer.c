/* SPDX-License-Identifier: MIT */
/* A second preloaded library, of the kind that takes the next one's functions. Its malloc is a
 * simple one, and uses a lock, as such things do. */
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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *at, *end;
static unsigned long reads;

void *malloc(size_t n)
{
	size_t *block;

	n = (n + 15) / 16 * 16 + 16;
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
	*block = n - 16;
	return block + 2;
}

void free(void *p)
{
	(void)p;
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
	static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
	int r;

	pthread_mutex_lock(&own);
	r = (int)syscall(SYS_clock_gettime, clock, now);
	pthread_mutex_unlock(&own);
	return r;
}

void *mmap(void *where, size_t size, int protection, int flags, int fd, off_t offset)
{
	static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
	void *r;

	pthread_mutex_lock(&own);
	r = (void *)syscall(SYS_mmap, where, size, protection, flags, fd, offset);
	pthread_mutex_unlock(&own);
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
