/* SPDX-License-Identifier: MIT */
/* Components: the ready ones, and those that the program registers; see include/causal_measure.h. */
#include "causal/library/library.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* ---- what is read */

static double clock_now(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double wall(void *state)
{
	(void)state;
	return clock_now(CLOCK_MONOTONIC);
}

static double cpu(void *state)
{
	(void)state;
	return clock_now(CLOCK_THREAD_CPUTIME_ID);
}

static double process_cpu(void *state)
{
	(void)state;
	return clock_now(CLOCK_PROCESS_CPUTIME_ID);
}

static struct rusage usage_of(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return usage;
}

static double microseconds(struct timeval time)
{
	return (double)time.tv_sec * 1e6 + (double)time.tv_usec;
}

static double user(void *state)
{
	(void)state;
	return microseconds(usage_of(RUSAGE_THREAD).ru_utime);
}

static double in_system(void *state)
{
	(void)state;
	return microseconds(usage_of(RUSAGE_THREAD).ru_stime);
}

static double minor_faults(void *state)
{
	(void)state;
	return (double)usage_of(RUSAGE_THREAD).ru_minflt;
}

static double major_faults(void *state)
{
	(void)state;
	return (double)usage_of(RUSAGE_THREAD).ru_majflt;
}

static double switches(void *state)
{
	struct rusage usage = usage_of(RUSAGE_THREAD);

	(void)state;
	return (double)(usage.ru_nvcsw + usage.ru_nivcsw);
}

/* A small file of /proc, whole. */
static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static double rss(void *state)
{
	char text[128];
	long pages = 0;

	(void)state;
	if (read_text("/proc/self/statm", text, sizeof text))
		sscanf(text, "%*s %ld", &pages);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* The kernel's is in KiB, and may lag behind what is resident now. */
static double peak_rss(void *state)
{
	double peak = 1024 * (double)usage_of(RUSAGE_SELF).ru_maxrss, now = rss(state);

	return peak > now ? peak : now;
}

/* What stands behind the word in the thread's account of input and output. */
static double io_of(const char *word)
{
	char text[512];
	const char *at;

	if (!read_text("/proc/thread-self/io", text, sizeof text))
		return 0;
	at = strstr(text, word);
	return at ? strtod(at + strlen(word), NULL) : 0;
}

static double read_bytes(void *state)
{
	(void)state;
	return io_of("rchar:");
}

static double written_bytes(void *state)
{
	(void)state;
	return io_of("wchar:");
}

static double storage_read(void *state)
{
	(void)state;
	return io_of("\nread_bytes:");
}

static double storage_written(void *state)
{
	(void)state;
	return io_of("\nwrite_bytes:");
}

/* ---- the tables */

#define SIMPLE(name, text, unit, factor, flag, function)                                                     \
	{                                                                                                    \
		.label = name, .description = text, .units = unit, .scale = factor, .flags = flag,           \
		.record = function                                                                           \
	}
const struct causal_component ca_ready_components[] = {
#define CA_COMPONENT(name, text, unit, factor, flag, function)                                               \
	SIMPLE(name, text, unit, factor, flag, function),
#include "causal/library/components.def"
	{ .label = NULL },
};

/* Of perf: a set of counters, from start to stop. */
struct perf {
	struct causal_counters *counters;
	uint64_t begin[CAUSAL_COUNTERS], end[CAUSAL_COUNTERS];
};

static int open_perf(void *state, const char *argument)
{
	struct perf *perf = state;

	perf->counters = causal_counters_open(argument ? argument : "");
	return perf->counters ? 0 : errno;
}

static void close_perf(void *state)
{
	causal_counters_close(((struct perf *)state)->counters);
}

static void start_perf(void *state)
{
	struct perf *perf = state;

	causal_counters_read(perf->counters, perf->begin);
}

static void stop_perf(void *state)
{
	struct perf *perf = state;

	causal_counters_read(perf->counters, perf->end);
}

static const char *get_perf(const void *state, unsigned i, double *value)
{
	const struct perf *perf = state;
	const char *name = causal_counters_name(perf->counters, i);

	if (name)
		*value = (double)(perf->end[i] - perf->begin[i]);
	return name;
}

const struct causal_component ca_perf_component = {
	.label = "perf",
	.description = "counters of the kernel and the processor: perf:NAME+NAME, up to 4",
	.units = "",
	.size = sizeof(struct perf),
	.open = open_perf,
	.close = close_perf,
	.start = start_perf,
	.stop = stop_perf,
	.get = get_perf,
};

/* ---- registering */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows; nothing is called with it held */
static const struct causal_component **own;
static unsigned owned;

/* A child has only the thread that forks: nobody would give the lock back there. */
static void take_lock(void)
{
	pthread_mutex_lock(&lock);
}

static void give_lock(void)
{
	pthread_mutex_unlock(&lock);
}

static __attribute__((constructor)) void watch_forks(void)
{
	pthread_atfork(take_lock, give_lock, give_lock);
}

static const struct causal_component *ready_at(unsigned i)
{
	enum { READY = sizeof ca_ready_components / sizeof *ca_ready_components - 1 };

	return i < READY        ? &ca_ready_components[i]
	       : i == READY     ? &ca_perf_component
	       : i == READY + 1 ? &ca_papi_component
				: NULL;
}

static const struct causal_component *component_at(unsigned i)
{
	unsigned ready = 0;

	while (ready_at(ready))
		ready++;
	return i < ready ? ready_at(i) : i - ready < owned ? own[i - ready] : NULL;
}

const struct causal_component *causal_component_at(unsigned i)
{
	const struct causal_component *component;

	pthread_mutex_lock(&lock);
	component = component_at(i);
	pthread_mutex_unlock(&lock);
	return component;
}

static int add(const struct causal_component *component)
{
	const struct causal_component **more, *there;

	for (unsigned i = 0; (there = component_at(i)); i++)
		if (!strcmp(there->label, component->label))
			return EEXIST;
	more = realloc(own, (owned + 1) * sizeof *more);
	if (!more)
		return ENOMEM;
	own = more;
	own[owned++] = component;
	return 0;
}

int causal_component_register(const struct causal_component *component)
{
	int error;

	if (!component || !component->label || !*component->label || strpbrk(component->label, ",:"))
		return EINVAL;
	pthread_mutex_lock(&lock);
	error = add(component);
	pthread_mutex_unlock(&lock);
	return error;
}
