/* SPDX-License-Identifier: MIT */
/* Other programs on this machine; see interference.h. */
#include "causal/conductor/interference.h"
#include "core/clock.h"
#include "core/session.h"
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	OTHERS = 10, /* percent of one core */
	OTHERS_BLIND = 50,
	MOST_CPUS = 8192,
	MOST_THREADS = 200, /* to be looked at one by one, 5 us each */
	LOST = 20           /* percent of what the run could have had */
};

static bool read_file(const char *path, char *data, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, data, size - 1);

	if (fd >= 0)
		close(fd);
	data[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* proc(5): user nice system idle iowait irq softirq steal, in clock ticks. Interrupts are nobody's: most of them serve
 * what the run sends and receives itself. */
bool ca_interference_parse(const char *stat, uint64_t *busy)
{
	unsigned long long v[8] = { 0 };

	if (sscanf(stat, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3], &v[4],
		   &v[5], &v[6], &v[7]) < 4)
		return false;
	*busy = (v[0] + v[1] + v[2] + v[7]) * (CA_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
	return true;
}

static bool read_busy(uint64_t *busy)
{
	char data[512];

	return read_file("/proc/stat", data, sizeof data) && ca_interference_parse(data, busy);
}

/* The CPUs that a thread may use; those that are pinned use one each. */
static void add_cpus(pid_t thread, cpu_set_t *all)
{
	cpu_set_t *set = CPU_ALLOC(MOST_CPUS);

	if (set && !sched_getaffinity(thread, CPU_ALLOC_SIZE(MOST_CPUS), set))
		CPU_OR_S(CPU_ALLOC_SIZE(MOST_CPUS), all, all, set);
	CPU_FREE(set);
}

/* /proc/PID/task/TID/schedstat: time on a CPU, time in the run queue, in ns. */
static bool add_queue(uint32_t pid, struct ca_load *load, cpu_set_t *cpus)
{
	char path[64], data[128];
	struct dirent *entry;
	bool any = false;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%u/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		unsigned long long run, wait;

		if (entry->d_name[0] == '.')
			continue;
		add_cpus((pid_t)strtol(entry->d_name, NULL, 10), cpus);
		snprintf(path, sizeof path, "/proc/%u/task/%.20s/schedstat", pid, entry->d_name);
		if (read_file(path, data, sizeof data) && sscanf(data, "%llu %llu", &run, &wait) == 2) {
			load->queue += wait;
			load->ran += run;
			any = true;
		}
	}
	if (dir)
		closedir(dir);
	return any;
}

/* CPU time of its children that it has waited for, ns: a run of short processes is no other program. */
static uint64_t ended_children(uint32_t pid)
{
	unsigned long long user = 0, system = 0;
	char path[48], data[1024];
	const char *end;

	snprintf(path, sizeof path, "/proc/%u/stat", pid);
	/* the name in brackets may hold anything, brackets included */
	end = read_file(path, data, sizeof data) ? strrchr(data, ')') : NULL;
	if (end)
		sscanf(end + 1, " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu", &user,
		       &system);
	return (user + system) * (CA_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

void ca_interference_read(const struct ca_session *s, struct ca_load *now)
{
	uint32_t processes = atomic_load(&s->processes_used);
	cpu_set_t *cpus = CPU_ALLOC(MOST_CPUS);
	struct rusage own;

	memset(now, 0, sizeof *now);
	now->known = read_busy(&now->busy);
	if (cpus)
		CPU_ZERO_S(CPU_ALLOC_SIZE(MOST_CPUS), cpus);
	for (uint32_t p = 0; cpus && p < processes && p < CA_MAX_PROCESSES; p++) {
		clockid_t clock;

		if (atomic_load(&s->process[p].state) != CA_SLOT_LIVE)
			continue;
		if (s->process[p].pid == CA_PID_UNKNOWN)
			now->known = false; /* what it uses would pass for others' */
		if (clock_getcpuclockid((pid_t)s->process[p].pid, &clock) == 0)
			now->run += ca_clock_read(clock) + ended_children(s->process[p].pid);
		now->queue_known |= add_queue(s->process[p].pid, now, cpus);
	}
	now->known = now->known && cpus;
	now->cpus = cpus ? (unsigned)CPU_COUNT_S(CPU_ALLOC_SIZE(MOST_CPUS), cpus) : 0;
	CPU_FREE(cpus);
	getrusage(RUSAGE_SELF, &own);
	now->own = now->run + (uint64_t)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) * CA_NS_PER_S +
		   (uint64_t)(own.ru_utime.tv_usec + own.ru_stime.tv_usec) * 1000;
	now->time = ca_clock_now();
}

/* By others, on all CPUs, ns. */
static double used_by_others(const struct ca_load *a, const struct ca_load *b)
{
	return (double)(b->busy - a->busy) - (double)(int64_t)(b->own - a->own);
}

/* CPU time that the run's threads had, or would have had: alone, whenever they were runnable, as far as there
 * are CPUs. */
static double could_have(const struct ca_load *a, const struct ca_load *b)
{
	double could = (double)(int64_t)(b->run - a->run) + (double)(int64_t)(b->queue - a->queue);
	double cpus = (double)(b->time - a->time) * a->cpus;

	return a->cpus && could > cpus ? cpus : could;
}

/* Is it known of most of the run's CPU time how long its threads waited for that? Of short processes it is not. */
static bool is_queue_known(const struct ca_load *a, const struct ca_load *b)
{
	return a->queue_known && b->queue_known &&
	       2 * (int64_t)(b->ran - a->ran) >= (int64_t)(b->run - a->run);
}

/* What is missing is what others took, at most as much as they used. Where the run has now more threads than
 * CPUs and now fewer, that is too much by what they waited for each other, but for the second limit. */
uint64_t ca_interference_lost(const struct ca_load *a, const struct ca_load *b)
{
	double others = used_by_others(a, b), lost;

	if (!a->known || !b->known || !is_queue_known(a, b))
		return UINT64_MAX;
	lost = could_have(a, b) - (double)(int64_t)(b->run - a->run);
	lost = lost < others ? lost : others;
	return lost > 0 ? (uint64_t)lost : 0;
}

uint64_t ca_interference_queued(const struct ca_load *a, const struct ca_load *b)
{
	if (!is_queue_known(a, b))
		return UINT64_MAX;
	return b->queue > a->queue ? b->queue - a->queue : 0;
}

bool ca_interference_parse_thread(const char *stat, unsigned *cpu)
{
	/* the name in brackets may hold anything, brackets included; the CPU is the 39th field */
	const char *end = strrchr(stat, ')');
	char state;

	return end &&
	       sscanf(end + 1,
		      " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		      "%*s %*s %*s "
		      "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %u",
		      &state, cpu) == 2 &&
	       state == 'R';
}

static unsigned add_runnable(uint32_t pid, cpu_set_t *used, unsigned *looked)
{
	char path[64], data[1024];
	struct dirent *entry;
	unsigned runnable = 0, cpu;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%u/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof path, "/proc/%u/task/%.20s/stat", pid, entry->d_name);
		if (entry->d_name[0] == '.' || ++*looked > MOST_THREADS ||
		    !read_file(path, data, sizeof data) || !ca_interference_parse_thread(data, &cpu))
			continue;
		CPU_SET_S(cpu, CPU_ALLOC_SIZE(MOST_CPUS), used);
		runnable++;
	}
	if (dir)
		closedir(dir);
	return runnable;
}

unsigned ca_interference_idle_beside(const struct ca_session *s, unsigned cpus)
{
	uint32_t processes = atomic_load(&s->processes_used);
	cpu_set_t *used = CPU_ALLOC(MOST_CPUS);
	unsigned runnable = 0, have, looked = 0;

	if (!used)
		return 0;
	CPU_ZERO_S(CPU_ALLOC_SIZE(MOST_CPUS), used);
	for (uint32_t p = 0; p < processes && p < CA_MAX_PROCESSES; p++)
		if (atomic_load(&s->process[p].state) == CA_SLOT_LIVE && s->process[p].pid != CA_PID_UNKNOWN)
			runnable += add_runnable(s->process[p].pid, used, &looked);
	have = (unsigned)CPU_COUNT_S(CPU_ALLOC_SIZE(MOST_CPUS), used);
	CPU_FREE(used);
	if (looked > MOST_THREADS)
		return 0;
	runnable = runnable < cpus ? runnable : cpus;
	return runnable > have ? runnable - have : 0;
}

bool ca_interference_seen(const struct ca_load *a, const struct ca_load *b)
{
	double span = (double)(b->time - a->time), others;
	uint64_t lost;

	if (!a->known || !b->known || span <= 0)
		return false;
	others = used_by_others(a, b);
	lost = ca_interference_lost(a, b);
	if (lost == UINT64_MAX)
		return others * 100 > span * OTHERS_BLIND;
	/* less than nothing: a process has ended, and its time went with it */
	return others * 100 > span * OTHERS && lost && (double)lost * 100 > could_have(a, b) * LOST;
}
