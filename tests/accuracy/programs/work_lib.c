/* SPDX-License-Identifier: MIT */
/* libgtwork.so: the library half of nested.c. Works like gt_spin(). */
#include "gt.h"

uint64_t lib_work(uint64_t n);

uint64_t lib_work(uint64_t n)
{
	uint64_t x = n | 1;

	while (n--)
		GT_STEP(x);
	return x;
}
