/* SPDX-License-Identifier: MIT */
/* A library that does the work of tests/apps/scope.c. NAME: of what it exports. */
#include <string.h>
#ifndef NAME
#define NAME churn
#endif

int NAME(int n);
void fill(char *to, unsigned long size);

static volatile int sink;

__attribute__((noinline)) static int inner(int n)
{
	int sum = 0;

	for (int i = 0; i < 50000; i++)
		sum += i ^ (sum >> 3) ^ n;
	return sum;
}

int NAME(int n)
{
	for (int i = 0; i < 3; i++)
		sink += inner(n + i);
	return sink;
}

/* By libc, nearly all of it. */
void fill(char *to, unsigned long size)
{
	memset(to, sink, size);
	sink++; /* no jump: the call must be on the stack */
}
