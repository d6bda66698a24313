/* SPDX-License-Identifier: MIT */
/* OpenMP: loops, tasks and reductions of a team, in the runtime and in what it calls. */
#include "oracle.h"
#include <string.h>

enum { N = 40 };

static volatile unsigned sink;
static void (*begin)(void), (*end)(void);

static __attribute__((noinline)) unsigned body(int i)
{
	char text[64];

	memset(text, i, sizeof text);
	return (unsigned)text[i % 64];
}

static __attribute__((noinline)) int tree(int depth)
{
	int left = 0, right = 0;

	if (depth == 0)
		return (int)body(depth);
#pragma omp task shared(left)
	left = tree(depth - 1);
#pragma omp task shared(right)
	right = tree(depth - 1);
#pragma omp taskwait
	return left + right + 1;
}

static __attribute__((noinline)) void all(void)
{
	unsigned sum = 0;

#pragma omp parallel num_threads(2)
	{
		begin();
#pragma omp for schedule(dynamic, 3) reduction(+ : sum)
		for (int i = 0; i < N; i++)
			sum += body(i);
#pragma omp for schedule(static)
		for (int i = 0; i < N; i++)
			body(i);
#pragma omp single
		sum += (unsigned)tree(3);
#pragma omp critical
		sum += body(1);
		end();
	}
	sink += sum;
}

static void nothing(void)
{
}

void oracle_work(void (*to_begin)(void), void (*to_end)(void))
{
	begin = end = nothing; /* the team's threads are made */
	all();
	begin = to_begin;
	end = to_end;
	begin();
	all();
	end();
	begin = end = nothing;
}
