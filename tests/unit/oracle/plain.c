/* SPDX-License-Identifier: MIT */
/* C: libc's assembler, functions that call back, large and growing frames, tail calls, calls that do not return,
 * handlers, and contexts. */
#define _GNU_SOURCE
#include "oracle.h"
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

enum { PAGE = 4096 };

static volatile unsigned sink;
static void (*begin)(void), (*end)(void);
static char *page;
static jmp_buf back;

static NOINLINE void use(const char *text)
{
	sink += (unsigned)strlen(text);
}

static NOINLINE int by_value(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	sink++;
	return x < y ? -1 : x > y;
}

static NOINLINE void sorts(void)
{
	int list[20];

	for (int i = 0; i < 20; i++)
		list[i] = (int)(((unsigned)i * 2654435761u) >> 8);
	qsort(list, 20, sizeof *list, by_value);
}

/* Libc's assembler: moves, searches, comparisons of many sizes. */
static NOINLINE void copies(size_t n)
{
	char *from = alloca(n + 1), *to = alloca(n + 1);

	memset(from, 'x', n);
	from[n] = '\0';
	memcpy(to, from, n + 1);
	memmove(to, to + n / 2, n - n / 2);
	sink += (unsigned)(memcmp(from, to, n) == 0) + (strchr(from, 'y') == NULL) +
		(strstr(from, "xxy") == NULL) + (strcmp(from, to) == 0) + (memchr(from, 'z', n) == NULL) +
		(strrchr(from, 'x') != NULL) + (unsigned)strnlen(from, n);
	use(to);
}

static NOINLINE void prints(double value)
{
	char text[200];

	snprintf(text, sizeof text, "%.7g %-20s %08x", value, "left", sink);
	use(text);
}

/* The frame is as large as a number says. */
static NOINLINE void deep(int depth)
{
	volatile char room[depth * 24 + 8];

	room[0] = (char)depth;
	if (depth)
		deep(depth - 1);
	else
		copies(300);
	sink += (unsigned)room[0];
}

/* Its frame is gone while the other runs. */
static NOINLINE void ends_in_another(int depth)
{
	sink++;
	deep(depth);
}

/* Vectors want their place: the frame pointer stands in for the stack pointer. */
static NOINLINE void aligned(int n)
{
	_Alignas(64) volatile char here[128];
	char *more = alloca((size_t)n);

	memset(more, n, (size_t)n);
	here[n % 128] = more[n / 2];
	use("aligned");
	sink += (unsigned)here[0];
}

/* 40 KiB and more. */
static NOINLINE void wide(void)
{
	volatile char room[100000];

	room[0] = room[sizeof room - 1] = 1;
	use("wide");
	sink += (unsigned)room[0];
}

static NOINLINE _Noreturn void leaves(int how)
{
	use("leaves");
	longjmp(back, how);
}

/* The call is the last instruction: the address of the return is no longer in the function. */
static NOINLINE void does_not_return(int how)
{
	sink += (unsigned)how;
	leaves(how);
}

static void handler(int signo)
{
	begin();
	sorts();
	use(signo == SIGUSR2 ? "signal" : "other");
	end();
}

/* Of the instruction that it stands at: no call led here. */
static void on_fault(int signo)
{
	(void)signo;
	begin();
	use("fault");
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
	end();
}

static NOINLINE void faults(void)
{
	mprotect(page, PAGE, PROT_NONE);
	*(volatile char *)page = 1;
}

static ucontext_t here, there;

static void in_context(void)
{
	use("context");
	swapcontext(&there, &here);
	copies(20);
}

static NOINLINE void contexts(void)
{
	static char stack[64 << 10];

	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof stack;
	there.uc_link = &here;
	makecontext(&there, in_context, 0);
	swapcontext(&here, &there);
	swapcontext(&here, &there);
}

static NOINLINE void calls_the_kernel(void)
{
	struct timespec none = { 0, 0 };

	nanosleep(&none, NULL);
	sink += (unsigned)getppid() + (unsigned)time(NULL);
	clock_gettime(CLOCK_MONOTONIC, &none);
	free(malloc(100));
}

static NOINLINE void all(void)
{
	sorts();
	for (size_t n = 1; n < 3000; n = n * 3 + 1)
		copies(n);
	prints(1 / 7.0);
	ends_in_another(5);
	aligned(70);
	wide();
	calls_the_kernel();
	if (!setjmp(back))
		does_not_return(1);
	contexts();
	raise(SIGUSR2);
	raise(SIGUSR1);
	faults();
}

static NOINLINE void round_of(void (*before)(void), void (*after)(void))
{
	begin = before;
	end = after;
	begin();
	all();
	end();
}

static void nothing(void)
{
}

static void *other_thread(void *callbacks)
{
	void (**both)(void) = callbacks;

	round_of(both[0], both[1]);
	return NULL;
}

void oracle_work(void (*to_begin)(void), void (*to_end)(void))
{
	struct sigaction on_signal = { .sa_handler = handler }, on_stack = { .sa_handler = handler };
	struct sigaction fault = { .sa_handler = on_fault }, before;
	static char other_stack[64 << 10];
	stack_t other = { .ss_sp = other_stack, .ss_size = sizeof other_stack };
	void (*both[])(void) = { to_begin, to_end };
	pthread_t thread;

	page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaltstack(&other, NULL);
	on_stack.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &on_signal, NULL);
	sigaction(SIGUSR1, &on_stack, NULL);
	sigaction(SIGSEGV, &fault, &before);
	round_of(to_begin, to_end); /* the dynamic linker binds what is called for the first time */
	round_of(to_begin, to_end);
	pthread_create(&thread, NULL, other_thread, both);
	pthread_join(thread, NULL);
	begin = end = nothing;
	sigaction(SIGSEGV, &before, NULL);
	munmap(page, PAGE);
}
