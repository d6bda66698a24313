/* SPDX-License-Identifier: MIT */
/* `causal selftest`: looks at the machine, has programs profiled whose answers are known, and says
 * in plain lines what can be expected of predictions here, now. Driver's process, one thread. */
#include "causal/conductor/backend.h"
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/selftest.h"
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT 25.0 /* s: no run begins later, and one takes less than 5 */

void ca_selftest_show(const struct ca_selftest_check *check)
{
	static const char *const grade[] = { "good", "doubt", "BAD" };

	printf("  %-6s %-16s %s\n", grade[check->grade], check->name, check->text);
	if (check->to_do[0])
		printf("         To do: %s\n", check->to_do);
	fflush(stdout);
}

/* Rounded up: it was one measurement. */
static void print_error(const struct ca_selftest_known *known, const char *with)
{
	if (known->silent || isnan(known->error))
		printf("cannot tell with %s", with);
	else
		printf("about +-%.0f points with %s", ceil(known->error), with);
}

/* A wrong prediction proves little while others use the machine, and a missing one nothing. */
int ca_selftest_verdict(const struct ca_selftest_check *check, size_t checks,
			const struct ca_selftest_known *perf, const struct ca_selftest_known *timer)
{
	const struct ca_selftest_known *used = perf ? perf : timer;
	bool doubts = false, noise = false;

	for (size_t i = 0; i < checks; i++) {
		doubts = doubts || check[i].grade != CA_SELFTEST_GOOD;
		noise = noise || (check[i].noise && check[i].grade != CA_SELFTEST_GOOD);
	}
	printf("Predictions here: ");
	if (perf) {
		print_error(perf, "perf");
		printf(", ");
	}
	print_error(timer, "the timer");
	printf("\n");
	if (used->right && !doubts)
		printf("Predictions can be trusted here.\n");
	else if (used->right)
		printf("Predictions can be trusted here if you use more runs than usual (-n); see the doubts "
		       "above.\n");
	else if (noise || used->silent)
		printf("Cannot tell whether predictions can be trusted here, %s.\n",
		       used->silent
			       ? "since there was no prediction: see the reason above"
			       : "since other programs use the machine: run this again when they have ended");
	else if (doubts)
		printf("Predictions cannot be trusted here now; likely reasons are the checks above that are "
		       "not "
		       "good.\n");
	else
		printf("Predictions cannot be trusted here, and nothing above explains it: please report "
		       "this "
		       "output.\n");
	return used->right ? 0 : 1;
}

/* What the hypervisor and other programs did while it was measured; `stolen` in percent. */
static void judge_noise(struct ca_selftest_check *check, double stolen, unsigned long finished,
			unsigned long disturbed)
{
	bool many = 4 * disturbed > finished;

	*check = (struct ca_selftest_check){ .name = "noise meanwhile", .noise = true };
	check->grade = stolen > 5 || 2 * disturbed > finished ? CA_SELFTEST_BAD
		       : stolen > 1 || many                   ? CA_SELFTEST_DOUBT
							      : CA_SELFTEST_GOOD;
	snprintf(
		check->text, sizeof check->text,
		"the hypervisor took %.1f %% of the machine; other programs disturbed %lu of %lu experiments",
		stolen, disturbed, finished);
	if (stolen > 1)
		snprintf(check->to_do, sizeof check->to_do,
			 "the host of this virtual machine is too full: use another, or another time");
	else if (many)
		snprintf(check->to_do, sizeof check->to_do,
			 "stop them (top shows which), or give the program CPUs of its own (taskset -c ...)");
}

/* perf first: it is what is taken when there is nothing asked for. */
static int measure(const char *self, const char *scratch, double begun)
{
	struct ca_selftest_check check[CA_SELFTEST_CHECKS];
	struct ca_selftest_known perf = { 0 }, timer;
	bool has_perf = ca_backend_perf(NULL) == CA_OK;
	double stolen, from, elapsed;
	size_t checks;

	printf("The machine\n");
	checks = ca_selftest_look(check);
	printf("Programs with known answers (%d s)\n", has_perf ? 18 : 9);
	fflush(stdout);
	stolen = ca_selftest_stolen();
	from = ca_selftest_now();
	if (has_perf)
		perf = ca_selftest_predicts(self, scratch, CA_BACKEND_PERF, begun + LIMIT);
	timer = ca_selftest_predicts(self, scratch, CA_BACKEND_TIMER, begun + LIMIT);
	elapsed = ca_selftest_now() - from + 1e-3;
	judge_noise(&check[checks],
		    100 * (ca_selftest_stolen() - stolen) / (elapsed * (double)sysconf(_SC_NPROCESSORS_ONLN)),
		    perf.finished + timer.finished, perf.disturbed + timer.disturbed);
	ca_selftest_show(&check[checks]);
	return ca_selftest_verdict(check, checks + 1, has_perf ? &perf : NULL, &timer);
}

static int run_selftest(void)
{
	char scratch[] = "/tmp/causal-selftest-XXXXXX";
	double begun = ca_selftest_now();
	char *self = ca_child_self();
	int status;

	if (!self || !mkdtemp(scratch)) {
		fprintf(stderr, "causal: selftest: cannot create a scratch directory in /tmp (%s)\n",
			strerror(errno));
		free(self);
		return 1;
	}
	status = measure(self, scratch, begun);
	rmdir(scratch);
	free(self);
	return status;
}

int ca_cmd_selftest(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "workload")) /* what it profiles */
		return ca_selftest_work(argv[2], atof(argv[3]));
	if (argc == 1)
		return run_selftest();
	fprintf(stderr, "causal: selftest takes no arguments; to run a program of that name, write "
			"causal -- selftest\n");
	return CA_EXIT_USAGE;
}
