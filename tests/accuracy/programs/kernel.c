/* SPDX-License-Identifier: MIT */
/* Two threads that meet at a barrier: slow 1000, fast 800, as barrier.c; but the slow side's work is inlined, so that S
 * has neither entry nor exit, and a visit is long. The variant, in the program's name, says how the stack frame of the
 * function that holds it is counted: from the stack pointer (sp), or from a frame pointer (frame).
 *
 * Expected: min(X, 20), for below 800 the other side leads. */
#include "two.h"

GT_DEFINE_REGION(fast)

/* clang-format off */
static inline __attribute__((always_inline)) uint64_t slow(uint64_t x, uint64_t n)
{
	while (n--) GT_STEP(x); /* GT_REGION slow */
	return x;
}
/* clang-format on */

#define THREAD                                                                                               \
	{                                                                                                    \
		uint64_t n = gt_amount("slow", 1000), x = 1;                                                 \
                                                                                                             \
		do {                                                                                         \
			x = slow(x, n);                                                                      \
			GT_VISIT();                                                                          \
		} while (two_meet(1));                                                                       \
		gt_sink_fast = x;                                                                            \
		return p;                                                                                    \
	}

static void *with_sp(void *p) THREAD

	__attribute__((optimize("no-omit-frame-pointer"))) static void *with_frame(void *p) THREAD

	static void *fast(void *p)
{
	uint64_t n = gt_amount("fast", 800);

	do {
		region_fast(n); /* GT_REGION fast */
	} while (two_meet(0));
	return p;
}

int main(int argc, char **argv)
{
	int frame = strstr(argv[0], "-frame") != NULL;

	gt_start(argc, argv, "slow");
	return two_threads(frame ? with_frame : with_sp, fast);
}
