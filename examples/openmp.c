/* SPDX-License-Identifier: MIT */
/* OpenMP, with clang's libomp: 5 parallel regions of 2 threads, each with a loop, a barrier and 10 tasks. In the
 * call graph, without a change:
 *   OMP_TOOL_LIBRARIES=libcausal.so causal trace --sinks callgraph -- ./openmp */
#include <omp.h>
#include <stdio.h>

enum { REGIONS = 5, TASKS = 10, THREADS = 2 };

int main(void)
{
	long sum = 0;

	omp_set_num_threads(THREADS);
	for (int region = 0; region < REGIONS; region++) {
#pragma omp parallel reduction(+ : sum)
		{
#pragma omp for
			for (int i = 0; i < 1000; i++)
				sum += i;
#pragma omp barrier
#pragma omp single
			for (int i = 0; i < TASKS; i++) {
#pragma omp task
				{
					static volatile int work;

					for (int k = 0; k < 1000; k++)
						work = k;
				}
			}
		}
	}
	printf("%ld\n", sum);
	return sum == 499500L * REGIONS ? 0 : 1;
}
