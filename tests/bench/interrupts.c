/* SPDX-License-Identifier: MIT */
/* Runs a program under a tick of perf's task clock in each of its threads, which nobody gets: no stack, no buffer. What
 * that costs is the price of the interrupts alone, which each sampler has to pay. With signals, the kernel also sends
 * one each time, which is ignored: for perf's it interrupts its own CPU a second time (irq_work).
 *   interrupts alone|signals PERIOD PROGRAM [ARGUMENTS]     ns of CPU time; exit status 125: perf has no such event */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NO_EVENT = 125 };

static bool is_sent(int fd)
{
	return fcntl(fd, F_SETSIG, SIGURG) >= 0 && fcntl(fd, F_SETOWN, getpid()) >= 0 &&
	       fcntl(fd, F_SETFL, O_ASYNC) >= 0;
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.disabled = 1,
		.enable_on_exec = 1,
		.inherit = 1,
	};
	int fd;

	if (argc < 4) {
		fprintf(stderr, "usage: interrupts alone|signals PERIOD PROGRAM [ARGUMENTS]\n");
		return NO_EVENT;
	}
	attr.sample_period = strtoul(argv[2], NULL, 10);
	/* the descriptor stays open in the program, and with it the event */
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	if (fd >= 0 && (!strcmp(argv[1], "alone") || is_sent(fd)))
		execvp(argv[3], argv + 3);
	fprintf(stderr, "interrupts: %s\n", strerror(errno));
	return NO_EVENT;
}
