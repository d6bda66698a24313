/* SPDX-License-Identifier: MIT */
/* What every unit test includes: cmocka wants four headers before its own. */
#ifndef CA_TESTS_UNIT_H
#define CA_TESTS_UNIT_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define CA_COUNT(array) (sizeof(array) / sizeof *(array))

/* Simulations, and functions of binaries: how many, and whether what simulations count is judged. A sanitizer sees in
 * a few all that it would see in many, and those are too few to judge by. CA_SWEEPS: so many simulations. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { CA_JUDGED = 0, CA_OF_SWEEPS = 10 };
#else
enum { CA_JUDGED = 1, CA_OF_SWEEPS = 1 };
#endif

#define ca_judge(condition) assert_true(!CA_JUDGED || (condition))

static inline long ca_sweeps(long usual)
{
	const char *asked = getenv("CA_SWEEPS");

	if (asked)
		return atol(asked);
	return (usual + CA_OF_SWEEPS - 1) / CA_OF_SWEEPS;
}

#endif
