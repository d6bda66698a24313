/* SPDX-License-Identifier: MIT */
/* All calls of its functions, without a mark; fib(10) has 177:
 *   cc -finstrument-functions functions.c -lcausal
 *   causal trace --events user --sinks callgraph -- ./functions */
#include <pthread.h>
#include <signal.h>

static _Atomic int sink;

static int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static void handle(int number)
{
	(void)number;
	sink++;
}

static void *work(void *unused)
{
	for (int i = 0; i < 100; i++)
		raise(SIGUSR1);
	return unused;
}

int main(void)
{
	pthread_t thread[4];

	signal(SIGUSR1, handle);
	sink = fib(10);
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], 0, work, 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], 0);
	return sink == 55 + 400 ? 0 : 1;
}
