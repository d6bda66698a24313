/* SPDX-License-Identifier: MIT */
/* What rust_lock.rs takes from C: the knobs, the work loop, the progress point. */
#include "gt.h"

void shim_start(int argc, char **argv);
uint64_t shim_amount(const char *name, double us);
uint64_t shim_spin(uint64_t n);
void shim_visit(void);
int shim_over(void);
void shim_wait(void);
int shim_report(void);

void shim_start(int argc, char **argv)
{
	static char region[64]; /* argv is the caller's; keep what gt.h points into */

	gt_start(argc, argv, "critical");
	snprintf(region, sizeof region, "%s", gt_region_name);
	gt_region_name = region;
}

uint64_t shim_amount(const char *name, double us)
{
	return gt_amount(name, us);
}

uint64_t shim_spin(uint64_t n)
{
	return gt_spin(n);
}

void shim_visit(void)
{
	GT_VISIT();
}

int shim_over(void)
{
	return atomic_load_explicit(&gt_stop, memory_order_relaxed);
}

void shim_wait(void)
{
	gt_wait();
}

int shim_report(void)
{
	int status = gt_report();

	fflush(stdout);
	return status;
}
