/* SPDX-License-Identifier: MIT */
/* Other programs on this machine; see interference.h. */
#include "causal/conductor/interference.h"
#include "core/clock.h"
#include "core/session.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { OTHERS = 10, OTHERS_BLIND = 50, QUEUE = 3 }; /* percent of one core */

static bool read_file(const char *path, char *data, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, data, size - 1);

	if (fd >= 0)
		close(fd);
	data[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* proc(5): user nice system idle iowait irq softirq steal, in clock ticks. */
static bool read_busy(uint64_t *busy)
{
	unsigned long long v[8] = { 0 };
	char data[512];

	if (!read_file("/proc/stat", data, sizeof data) ||
	    sscanf(data, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3], &v[4],
		   &v[5], &v[6], &v[7]) < 4)
		return false;
	*busy = (v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) * (CA_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
	return true;
}

/* /proc/PID/task/TID/schedstat: time on a CPU, time in the run queue, in ns. */
static bool add_queue(uint32_t pid, uint64_t *queue)
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
		snprintf(path, sizeof path, "/proc/%u/task/%.20s/schedstat", pid, entry->d_name);
		if (read_file(path, data, sizeof data) && sscanf(data, "%llu %llu", &run, &wait) == 2) {
			*queue += wait;
			any = true;
		}
	}
	if (dir)
		closedir(dir);
	return any;
}

void ca_interference_read(const struct ca_session *s, struct ca_load *now)
{
	uint32_t processes = atomic_load(&s->processes_used);
	struct rusage own;

	memset(now, 0, sizeof *now);
	now->known = read_busy(&now->busy);
	for (uint32_t p = 0; p < processes && p < CA_MAX_PROCESSES; p++) {
		clockid_t clock;

		if (atomic_load(&s->process[p].state) != CA_SLOT_LIVE)
			continue;
		if (clock_getcpuclockid((pid_t)s->process[p].pid, &clock) == 0)
			now->own += ca_clock_read(clock);
		now->queue_known |= add_queue(s->process[p].pid, &now->queue);
	}
	getrusage(RUSAGE_SELF, &own);
	now->own += (uint64_t)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) * CA_NS_PER_S +
		    (uint64_t)(own.ru_utime.tv_usec + own.ru_stime.tv_usec) * 1000;
	now->time = ca_clock_now();
}

bool ca_interference_seen(const struct ca_load *a, const struct ca_load *b)
{
	double span = (double)(b->time - a->time), busy, others, queue;

	if (!a->known || !b->known || span <= 0)
		return false;
	busy = (double)(b->busy - a->busy);
	others = busy - (double)(int64_t)(b->own - a->own);
	queue = (double)(int64_t)(b->queue - a->queue);
	if (!a->queue_known || !b->queue_known)
		return others * 100 > span * OTHERS_BLIND;
	return others * 100 > span * OTHERS && queue * 100 > span * QUEUE;
}
