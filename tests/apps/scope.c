/* SPDX-License-Identifier: MIT */
/* scope CASE SECONDS [LIBRARY]: so much CPU time, nearly all of it where the case says; rare: so much time asleep. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int churn(int n);
void fill(char *to, unsigned long size);

static _Alignas(int) char buffer[1 << 19];
static volatile int sink;

static inline __attribute__((always_inline)) void always_inlined(int n)
{
	for (int i = 0; i < n; i++)
		sink += i;
}

static void inlined(void)
{
	always_inlined(100000);
}
static void library(void)
{
	sink += churn(sink);
}
static int compare(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}
static void libc(void)
{
	qsort(buffer, sizeof buffer / sizeof(int), sizeof(int), compare);
}
static void library_libc(void)
{
	fill(buffer, sizeof buffer);
}

/* Too short for a sample to meet it. */
static __attribute__((noinline)) void blink(void)
{
	sink++;
}
static void rare(double seconds)
{
	struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < seconds * 1000; i++) {
		nanosleep(&pause, NULL);
		blink();
	}
}

/* A quarter of it in the program. */
static void mixed(void)
{
	always_inlined(60000);
	library();
}

static void work(void (*unit)(void), double seconds)
{
	while ((double)clock() < seconds * CLOCKS_PER_SEC)
		for (int i = 0; i < 10; i++)
			unit();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	double seconds = argc > 2 ? atof(argv[2]) : 1;

	if (!strcmp(what, "libc")) {
		work(libc, seconds);
	} else if (!strcmp(what, "memset")) {
		work(library_libc, seconds);
	} else if (!strcmp(what, "inlined")) {
		work(inlined, seconds);
	} else if (!strcmp(what, "mixed")) {
		work(mixed, seconds);
	} else if (!strcmp(what, "rare")) {
		rare(seconds);
	} else if (!strcmp(what, "fork")) {
		if (!fork()) {
			work(library, seconds);
			_exit(0);
		}
		wait(NULL);
	} else if (!strcmp(what, "late")) {
		void *handle;
		int (*late)(int);

		work(inlined, seconds / 2);
		handle = dlopen(argv[3], RTLD_NOW);
		late = handle ? (int (*)(int))dlsym(handle, "late") : NULL;
		while (late && (double)clock() < seconds * CLOCKS_PER_SEC)
			sink += late(sink);
		return !late;
	} else {
		work(library, seconds);
	}
	return 0;
}
