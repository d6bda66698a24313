/* SPDX-License-Identifier: MIT */
/* Running a program and knowing whether it had the machine to itself; the truth.
 *
 * "Others" is what /proc/stat says was busy or stolen, less the CPU time of our own
 * children (getrusage) and of the neighbour that we started ourselves. */
#include "acc.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pid_t neighbour;

double acc_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Seconds that all CPUs together were busy or stolen since boot. */
static double machine_busy(void)
{
	unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;
	double busy = 0;
	FILE *f = fopen("/proc/stat", "r");

	if (!f)
		return 0;
	if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait,
		   &irq, &softirq, &steal) == 8)
		busy = (double)(user + nice + system + irq + softirq + steal) / (double)sysconf(_SC_CLK_TCK);
	fclose(f);
	return busy;
}

static double seconds_of(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

/* CPU seconds of this process, its waited-for children and the neighbour. */
static double own_busy(void)
{
	struct rusage self, children;
	struct timespec ts;
	clockid_t clock;
	double busy;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	busy = seconds_of(self.ru_utime) + seconds_of(self.ru_stime) + seconds_of(children.ru_utime) +
	       seconds_of(children.ru_stime);
	if (neighbour > 0 && !clock_getcpuclockid(neighbour, &clock) && !clock_gettime(clock, &ts))
		busy += (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
	return busy;
}

static void parse_output(const char *text, struct acc_run *run)
{
	const char *at = strstr(text, "progress_rate=");

	run->rate = at ? atof(at + strlen("progress_rate=")) : NAN;
	at = strstr(text, "latency_us=");
	run->latency = at ? atof(at + strlen("latency_us=")) : NAN;
}

/* In the child: never returns. */
static void exec_child(const char *const *argv, int out, const char *log)
{
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	char *args[64];
	size_t n = 0;

	while (argv[n] && n < 63) {
		args[n] = strdup(argv[n]);
		n++;
	}
	args[n] = NULL;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	dup2(out, 1);
	if (fd >= 0)
		dup2(fd, 2);
	execvp(args[0], args);
	_exit(127);
}

/* Reads the child's output until it ends or the limit passes; then kills its group. */
static bool collect(pid_t pid, int fd, double limit, char *text, size_t size)
{
	double until = acc_now() + limit;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t n = 0;

	for (;;) {
		double left = until - acc_now();
		char chunk[4096];
		ssize_t r;

		if (left <= 0) {
			kill(-pid, SIGKILL);
			text[n] = '\0';
			return false;
		}
		if (poll(&p, 1, (int)(left * 1000) + 1) <= 0)
			continue;
		r = read(fd, chunk, sizeof chunk);
		if (r == 0 || (r < 0 && errno != EINTR))
			break;
		for (ssize_t i = 0; i < r && n + 1 < size; i++)
			text[n++] = chunk[i];
	}
	text[n] = '\0';
	return true;
}

bool acc_run_once(const char *const *argv, double limit, const char *log, struct acc_run *run)
{
	static char text[1 << 16];
	double busy = machine_busy(), own = own_busy(), from = acc_now();
	int fd[2], status = 0;
	bool in_time;
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC))
		return false;
	pid = fork();
	if (pid < 0)
		return false;
	if (pid == 0)
		exec_child(argv, fd[1], log);
	setpgid(pid, pid);
	close(fd[1]);
	in_time = collect(pid, fd[0], limit, text, sizeof text);
	close(fd[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	run->wall = acc_now() - from;
	run->others = (machine_busy() - busy - (own_busy() - own)) /
		      (run->wall * (double)sysconf(_SC_NPROCESSORS_ONLN));
	run->status = !in_time ? 124 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	parse_output(text, run);
	return true;
}

bool acc_run_quiet(const struct acc_options *options, const char *const *argv, double limit,
		   struct acc_run *run, unsigned *noisy)
{
	struct acc_run best = { .others = INFINITY };
	char log[ACC_PATH];

	snprintf(log, sizeof log, "%s/stderr.log", options->work);
	for (int i = 0; i <= options->retries; i++) {
		struct timespec pause = { 0, 200000000L * i };

		if (!acc_run_once(argv, limit, log, run))
			return false;
		if (run->status != 0 || run->others <= options->noise)
			return true;
		if (run->others < best.others)
			best = *run;
		nanosleep(&pause, NULL); /* whoever it is may be gone a little later */
	}
	*run = best;
	++*noisy;
	return true;
}

bool acc_neighbour_start(void)
{
	cpu_set_t set;

	neighbour = fork();
	if (neighbour != 0)
		return neighbour > 0;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof set, &set);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		__asm__ volatile("");
}

void acc_neighbour_stop(void)
{
	if (neighbour > 0) {
		kill(neighbour, SIGKILL);
		waitpid(neighbour, NULL, 0);
	}
	neighbour = 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double acc_median(const double *value, size_t n)
{
	double sorted[1024];
	size_t m = 0;

	for (size_t i = 0; i < n && m < 1024; i++)
		if (!isnan(value[i]))
			sorted[m++] = value[i];
	if (!m)
		return NAN;
	qsort(sorted, m, sizeof *sorted, by_value);
	return m % 2 ? sorted[m / 2] : (sorted[m / 2 - 1] + sorted[m / 2]) / 2;
}

double acc_mean(const double *value, size_t n)
{
	double sum = 0;
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		if (!isnan(value[i])) {
			sum += value[i];
			m++;
		}
	}
	return m ? sum / (double)m : NAN;
}

const char *acc_program(const struct acc_options *options, const struct acc_case *c, const char *flavour,
			char buffer[ACC_PATH])
{
	snprintf(buffer, ACC_PATH, "%s/%s/%s", options->programs, flavour, c->program);
	return buffer;
}

const char *acc_profiled(const struct acc_options *options, const struct acc_case *c, char buffer[ACC_PATH])
{
	return acc_program(options, c, options->mode->stripped ? "stripped" : "causal", buffer);
}

/* ---- the truth ---------------------------------------------------------------------- */

/* Time per visit (or latency), really shortened by `scale` percent; NAN: it failed. */
static double time_per_visit(const struct acc_options *options, struct acc_result *result, double scale)
{
	const struct acc_case *c = result->c;
	char program[ACC_PATH], seconds[32], amount[32];
	struct acc_run run;

	snprintf(seconds, sizeof seconds, "%g", options->truth_seconds);
	snprintf(amount, sizeof amount, "%g", scale);
	acc_program(options, c, "plain", program);
	const char *argv[] = {
		program, "--region", c->region, "--scale", amount, "--seconds", seconds, NULL
	};
	if (!acc_run_quiet(options, argv, options->truth_seconds + 20, &run, &result->noisy) || run.status ||
	    !(run.rate > 0))
		return NAN;
	if (scale == 0)
		result->base_rate = run.rate;
	return c->flags & ACC_LATENCY ? run.latency : 1 / run.rate;
}

/* Standard error of a median, from the median absolute deviation (a normal law assumed). Of few it is too small on
 * average, of three by a third: the factors are those of Croux and Rousseeuw, "Time-efficient algorithms for two highly
 * robust estimators of scale", 1992. */
static double median_error(const double *value, size_t n, double median)
{
	static const double few[] = { 1, 1, 1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107 };
	double off[ACC_ROUNDS], factor = n < 10 ? few[n] : (double)n / ((double)n - 0.8);

	for (size_t i = 0; i < n; i++)
		off[i] = fabs(value[i] - median);
	return n > 1 ? 1.2533 * 1.4826 * factor * acc_median(off, n) / sqrt((double)n) : NAN;
}

/* Of n rounds; true: all are known well enough, in points. */
static bool take_truths(const struct acc_options *options, double effect[][ACC_ROUNDS], size_t n,
			struct acc_result *result)
{
	static const double enough = 1.5;
	bool sure = true;

	for (size_t s = 0; s < options->speedups; s++) {
		result->truth[s] = acc_median(effect[s], n);
		result->truth_error[s] = median_error(effect[s], n, result->truth[s]);
		sure &= !(1.96 * result->truth_error[s] > enough); /* not of one round */
	}
	return sure;
}

/* A B A B ...: each shortened run is compared with the baselines right before and after
 * it, so that a slow drift of the machine's clock cancels. What scatters takes more rounds. */
bool acc_truth(const struct acc_options *options, const struct acc_case *c, struct acc_result *result)
{
	double effect[ACC_SPEEDUPS][ACC_ROUNDS];
	double before = time_per_visit(options, result, 0);
	bool sure = false;

	result->c = c;
	for (int r = 0; r < (options->brief ? options->truth_rounds : ACC_ROUNDS) && !sure; r++) {
		for (size_t s = 0; s < options->speedups; s++) {
			double shorter = time_per_visit(options, result, options->speedup[s]);
			double after = time_per_visit(options, result, 0);

			effect[s][r] = 100 * (1 - shorter / ((before + after) / 2));
			before = after;
		}
		sure = take_truths(options, effect, (size_t)r + 1, result) && r + 1 >= options->truth_rounds;
	}
	for (size_t s = 0; s < options->speedups; s++)
		if (isnan(result->truth[s]))
			return false;
	return true;
}
