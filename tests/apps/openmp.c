/* SPDX-License-Identifier: MIT */
/* The constructs of OpenMP that share work or wait, each with a known result. Built by the test that
 * runs it, since not every compiler has OpenMP. */
#include "tests/apps/app.h"
#include <omp.h>

static void spin(long n)
{
	for (volatile long i = 0; i < n; i++)
		;
}

static void loops(void)
{
	unsigned long long wide = 0;
	long sum = 0, turn = 0;
	bool wrong = false;

#pragma omp parallel num_threads(3)
	{
#pragma omp for schedule(dynamic, 3) reduction(+ : wide)
		for (unsigned long long i = 0; i < 100; i++) {
			wide += i;
			spin(50);
		}
#pragma omp for schedule(guided) reduction(+ : sum)
		for (long i = 0; i < 100; i++)
			sum += i;
#pragma omp for schedule(runtime) reduction(+ : sum)
		for (long i = 0; i < 10; i++)
			sum++;
#pragma omp for ordered schedule(dynamic)
		for (int i = 0; i < 20; i++) {
			spin(20);
#pragma omp ordered
			{
				wrong |= turn != i;
				turn++;
			}
		}
#pragma omp for ordered schedule(static, 1)
		for (unsigned long long i = 0; i < 20; i++)
#pragma omp ordered
			turn++;
	}
	CHECK(wide == 4950 && sum == 4960 && turn == 40 && !wrong);
}

static void dependent_loops(void)
{
	enum { N = 12 };
	long cell[N][N] = { { 0 } }, expected[N][N] = { { 0 } };

#pragma omp parallel for ordered(2) num_threads(3) schedule(dynamic)
	for (int i = 1; i < N; i++)
		for (int k = 1; k < N; k++) {
#pragma omp ordered depend(sink : i - 1, k) depend(sink : i, k - 1)
			cell[i][k] = cell[i - 1][k] + cell[i][k - 1] + 1;
#pragma omp ordered depend(source)
		}
	for (int i = 1; i < N; i++)
		for (int k = 1; k < N; k++)
			expected[i][k] = expected[i - 1][k] + expected[i][k - 1] + 1;
	CHECK(!memcmp(cell, expected, sizeof cell));
}

static void sections_and_single(void)
{
	int sum = 0, copies = 0;

#pragma omp parallel num_threads(3) reduction(+ : copies)
	{
		int copy;

#pragma omp sections
		{
#pragma omp section
#pragma omp atomic
			sum += 1;
#pragma omp section
#pragma omp atomic
			sum += 2;
#pragma omp section
#pragma omp atomic
			sum += 4;
		}
#pragma omp single copyprivate(copy)
		copy = 7;
		copies += copy;
	}
	CHECK(sum == 7 && copies == 21);
}

static void tasks(void)
{
	long sum = 0, reduced = 0;
	int x = 0;

#pragma omp parallel num_threads(3)
#pragma omp single
	{
		for (int i = 0; i < 20; i++)
#pragma omp task firstprivate(i) shared(sum)
		{
			spin(20);
#pragma omp atomic
			sum += i;
		}
#pragma omp taskyield
#pragma omp taskwait
#pragma omp taskloop grainsize(2) shared(sum)
		for (int i = 0; i < 10; i++)
#pragma omp atomic
			sum += 1;
#pragma omp taskloop shared(sum)
		for (unsigned long long i = 0; i < 10; i++)
#pragma omp atomic
			sum += 1;
#pragma omp task depend(out : x) shared(x)
		x = 5;
#pragma omp task depend(in : x) shared(x, sum)
#pragma omp atomic
		sum += x;
#pragma omp taskwait
	}
#pragma omp parallel reduction(task, + : reduced) num_threads(3)
#pragma omp single
	for (int i = 0; i < 10; i++)
#pragma omp task in_reduction(+ : reduced)
		reduced += i;
	CHECK(sum == 190 + 20 + 5 && reduced == 45);
}

static void locks_and_cancellation(void)
{
	omp_nest_lock_t nested;
	omp_lock_t lock;
	int inside = 0;

	omp_init_lock(&lock);
	omp_init_nest_lock(&nested);
#pragma omp parallel num_threads(3)
	{
		while (!omp_test_lock(&lock))
			;
		inside++;
		omp_unset_lock(&lock);
		while (!omp_test_nest_lock(&nested))
			;
		CHECK(omp_test_nest_lock(&nested) == 2);
		omp_unset_nest_lock(&nested);
		omp_unset_nest_lock(&nested);
#pragma omp for
		for (int i = 0; i < 100; i++) {
#pragma omp cancel for if (i == 50)
			spin(5);
		}
#pragma omp cancel parallel if (omp_get_thread_num() == 1)
#pragma omp barrier
	}
	CHECK(inside == 3);
	omp_destroy_lock(&lock);
	omp_destroy_nest_lock(&nested);
}

int main(void)
{
	for (double end = now() + 0.5; now() < end;) {
		loops();
		dependent_loops();
		sections_and_single();
		tasks();
		locks_and_cancellation();
		work_once();
	}
	printf("openmp: good\n");
	return 0;
}
