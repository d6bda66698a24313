/* SPDX-License-Identifier: MIT */
/* A program that makes code while it runs, as JIT compilers do, and tells perf of it: `makes_code MS` spends so
 * much CPU time, half in `made_hot`, half in `native`, which `made_calls` calls; a third function, made later in the
 * place of one, is told of late. `makes_code MS end` tells all at its end, as Java may. Prints the path of its list, /tmp/perf-PID.map. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, N = 200000, APART = 256, MS = 1000000 };

typedef void hot_function(uint64_t n);
typedef void calls_function(uint64_t n, void (*function)(uint64_t n));

static const unsigned char hot[] = {
	0x55,             /* push %rbp */
	0x48, 0x89, 0xe5, /* mov %rsp, %rbp */
	0x48, 0xff, 0xcf, /* 1: dec %rdi */
	0x75, 0xfb,       /* jnz 1b */
	0x5d, 0xc3        /* pop %rbp; ret */
};
static const unsigned char calls[] = {
	0x55,             /* push %rbp */
	0x48, 0x89, 0xe5, /* mov %rsp, %rbp */
	0xff, 0xd6,       /* call *%rsi */
	0x5d, 0xc3        /* pop %rbp; ret */
};

static char path[64], told[512], *page;
static int at_end;

static uint64_t cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static __attribute__((noinline)) void native(uint64_t n)
{
	for (volatile uint64_t i = 0; i < n / 4; i++)
		;
}

static void tell(void)
{
	FILE *list = fopen(path, "w");

	if (!list)
		exit(77);
	fputs(told, list);
	fclose(list);
}

static void *make(char *at, const void *code, size_t size, const char *name)
{
	size_t before = strlen(told);

	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
	memcpy(at, code, size);
	mprotect(page, PAGE, PROT_READ | PROT_EXEC);
	snprintf(told + before, sizeof told - before, "%lx %zx %s\n", (unsigned long)at, size, name);
	if (!at_end)
		tell();
	return at;
}

static __attribute__((noinline)) void spend(uint64_t until, hot_function *first, calls_function *second)
{
	uint64_t in_first = 0, in_second = 0, now = cpu_time();

	while (now < until) {
		uint64_t before = now;

		if (in_first <= in_second)
			first(N);
		else
			second(N, native);
		now = cpu_time();
		*(in_first <= in_second ? &in_first : &in_second) += now - before;
	}
}

int main(int argc, char **argv)
{
	uint64_t ns = (argc > 1 ? strtoul(argv[1], NULL, 10) : 300) * MS;
	void *first, *second;

	at_end = argc > 2 && !strcmp(argv[2], "end");
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
	first = make(page, hot, sizeof hot, "made_hot");
	second = make(page + APART, calls, sizeof calls, "made calls(a, b)");
	spend(ns, (hot_function *)first, (calls_function *)second);
	/* the same place, another function */
	first = make(page, hot, sizeof hot, "made_later");
	spend(cpu_time() + ns, (hot_function *)first, (calls_function *)second);
	tell();
	puts(path);
	return 0;
}
