/* SPDX-License-Identifier: MIT */
/* The ways in which the suite asks causal, and the bars of each. */
#include "acc.h"
#include <stdio.h>
#include <string.h>

const struct acc_mode acc_modes[] = {
	{ .name = "line", .what = "the region's line alone", .line = true, .mean = 1, .worst = 3 },
	{ .name = "function", .what = "the region's function alone", .mean = 1, .worst = 3 },
	{ .name = "sweep",
	  .what = "as typed: all functions in one sweep",
	  .all = true,
	  .mean = 1,
	  .worst = 3 },
	{ .name = "default",
	  .what = "no option but --seconds as a budget, for runs of --seconds / --runs: it decides what to "
		  "try",
	  .all = true,
	  .plain = true,
	  .mean = 1,
	  .worst = 3 },
	{ .name = "stripped",
	  .what = "as default, of programs without symbols, as they are installed",
	  .all = true,
	  .plain = true,
	  .stripped = true,
	  .mean = 1,
	  .worst = 3 },
	{ .name = "sampled", .what = "--no-exact", .option = "--no-exact", .mean = 2, .worst = 5 },
	{ .name = "timer", .what = "--backend timer", .option = "--backend=timer", .mean = 2, .worst = NAN },
	{ .name = "neighbour",
	  .what = "a busy process on one core (the truth, too)",
	  .line = true,
	  .neighbour = true,
	  .mean = 4,
	  .worst = NAN },
	{ .name = "latency",
	  .what = "latency points, in line mode",
	  .line = true,
	  .latency = true,
	  .mean = 1,
	  .worst = 3 },
};

const struct acc_mode *acc_mode_find(const char *name)
{
	for (size_t i = 0; i < sizeof acc_modes / sizeof *acc_modes; i++)
		if (!strcmp(acc_modes[i].name, name))
			return &acc_modes[i];
	return NULL;
}

void acc_mode_list(void)
{
	for (size_t i = 0; i < sizeof acc_modes / sizeof *acc_modes; i++)
		printf("  %-10s %s\n", acc_modes[i].name, acc_modes[i].what);
}
