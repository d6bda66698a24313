/* SPDX-License-Identifier: MIT */
/* A very short function, inlined at three sites and called millions of times a second; its
 * body is one source line (region hot). The rest of the time goes to region_rest().
 *
 * Expected: one thread, so share x X; the share depends on the code that the compiler makes
 * for the loop (about 0.6), and k is rounded to whole iterations. The measured truth counts. */
#include "gt.h"

GT_DEFINE_REGION(rest)

/* clang-format off */
static inline __attribute__((always_inline)) uint64_t hot(uint64_t x, unsigned k)
{
	for (unsigned i = 0; i < k; i++) { x *= 6364136223846793005u; x += i; __asm__ volatile("" : "+r"(x)); } /* GT_REGION hot */
	return x;
}
/* clang-format on */

int main(int argc, char **argv)
{
	uint64_t x = 1;

	gt_start(argc, argv, "hot");
	double scale = strcmp(gt_region_name, "hot") ? 1 : 1 - gt_scale / 100;
	unsigned k = (unsigned)(20 * scale + 0.5);
	uint64_t n = gt_amount("rest", 350);

	while (!gt_expired()) {
		for (int i = 0; i < 15000; i++) {
			x = hot(x + 1, k);
			if (x & 1)
				x = hot(x + 3, k);
			else
				x = hot(x ^ 5, k);
		}
		region_rest(n); /* GT_REGION rest */
		GT_VISIT();
	}
	if (x == 42)
		puts("!");
	return gt_report();
}
