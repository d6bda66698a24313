/* SPDX-License-Identifier: MIT */
/* What the machine and the processes do; see host.h. A thread of its own, and the conductor's at the calls of the
 * header. The lock guards the values that wait to be handed on; nothing else is held meanwhile. */
#include "causal/conductor/host.h"
#include "core/clock.h"
#include "core/numbers.h"
#include "core/session.h"
#include "core/settings.h"
#include "core/vec.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	CPUS = 1024,
	TEXT = 1 << 16,     /* bytes of a file of /proc */
	LINES = 100000,     /* of the file: then it is measured half as often, and so on: it stays bounded */
	SLOWLY = 1000000000 /* ns between readings of /proc/cpuinfo, which asks all CPUs */
};

/* One number for the sinks. */
struct value {
	uint64_t time, value;
	char name[96];
};

struct cpu {
	uint64_t busy, all; /* ticks so far */
	double load;        /* percent since the last measurement */
	uint64_t khz;       /* 0: not known */
	bool there;
};

struct ca_host {
	const char *cpus;
	struct ca_session *session;
	uint64_t interval, looked_slowly; /* ns */
	uint64_t lines;
	FILE *file;
	int error; /* of the file, an errno */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct ca_vec value; /* struct value */
	bool open, ends;     /* with the lock */
	struct cpu cpu[CPUS];
	char text[TEXT];
};

/* ---- reading --------------------------------------------------------------------------------*/
static const char *read_text(struct ca_host *h, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got;

	while (fd >= 0 && n + 1 < sizeof h->text && (got = read(fd, h->text + n, sizeof h->text - 1 - n)) > 0)
		n += (size_t)got;
	if (fd >= 0)
		close(fd);
	h->text[n] = '\0';
	return n ? h->text : NULL;
}

/* The number behind the word that begins a line; 0: there is none. */
static uint64_t number_of(const char *text, const char *word)
{
	const char *at = text;
	size_t length = strlen(word);

	while (at && strncmp(at, word, length) != 0)
		at = (at = strchr(at, '\n')) ? at + 1 : NULL;
	return at ? strtoull(at + length, NULL, 10) : 0;
}

static void read_load(struct ca_host *h)
{
	const char *at = read_text(h, "/proc/stat");

	for (; at && (at = strstr(at, "\ncpu")); at++) {
		unsigned long long v[8] = { 0 }, all = 0, busy;
		unsigned n;

		if (sscanf(at, "\ncpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &n, &v[0], &v[1], &v[2],
			   &v[3], &v[4], &v[5], &v[6], &v[7]) < 5 ||
		    n >= CPUS || !ca_numbers_hold(h->cpus, n))
			continue;
		for (unsigned i = 0; i < 8; i++)
			all += v[i];
		busy = all - v[3] - v[4]; /* idle, and idle while something is read */
		h->cpu[n].there = true;
		h->cpu[n].load = all > h->cpu[n].all ? 100.0 * (double)(busy - h->cpu[n].busy) /
							       (double)(all - h->cpu[n].all)
						     : h->cpu[n].load;
		h->cpu[n].all = all;
		h->cpu[n].busy = busy;
	}
}

/* Of those CPUs that have a governor; else what the processor says, which is asked seldom. */
static void read_frequency(struct ca_host *h, uint64_t now)
{
	bool known = false;
	const char *at;
	unsigned n;

	for (n = 0; n < CPUS; n++) {
		char path[80];

		if (!h->cpu[n].there)
			continue;
		snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq", n);
		if (!(at = read_text(h, path)))
			break;
		h->cpu[n].khz = strtoull(at, NULL, 10);
		known = true;
	}
	if (known || now - h->looked_slowly < SLOWLY)
		return;
	h->looked_slowly = now;
	n = CPUS;
	for (at = read_text(h, "/proc/cpuinfo"); at && *at; at = (at = strchr(at, '\n')) ? at + 1 : NULL) {
		const char *value = strchr(at, ':');

		if (value && !strncmp(at, "processor", 9))
			n = (unsigned)strtoul(value + 1, NULL, 10);
		else if (value && !strncmp(at, "cpu MHz", 7) && n < CPUS)
			h->cpu[n].khz = (uint64_t)(strtod(value + 1, NULL) * 1000);
	}
}

/* ---- handing on -----------------------------------------------------------------------------*/
/* name: a format */
static void tell(struct ca_host *h, uint64_t time, uint64_t value, const char *name, ...) CA_PRINTF(4, 5);
static void tell(struct ca_host *h, uint64_t time, uint64_t value, const char *name, ...)
{
	struct value *v;
	va_list args;

	pthread_mutex_lock(&h->lock);
	v = ca_vec_push(&h->value);
	if (v) {
		v->time = time;
		v->value = value;
		va_start(args, name);
		vsnprintf(v->name, sizeof v->name, name, args);
		va_end(args);
	}
	pthread_mutex_unlock(&h->lock);
}

static void put(struct ca_host *h, const char *format, ...) CA_PRINTF(2, 3);
static void put(struct ca_host *h, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (!h->error && vfprintf(h->file, format, args) < 0)
		h->error = errno;
	va_end(args);
}

static void end_line(struct ca_host *h)
{
	put(h, "}\n");
	if (!h->error && fflush(h->file))
		h->error = errno;
	if (++h->lines % LINES == 0)
		h->interval *= 2;
}

/* ---- measuring ------------------------------------------------------------------------------*/
static void measure_machine(struct ca_host *h, uint64_t now)
{
	const char *memory, *between = "";
	uint64_t available;

	read_load(h);
	read_frequency(h, now);
	put(h, "{\"type\":\"machine\",\"time\":%" PRIu64 ",\"cpus\":{", now);
	for (unsigned n = 0; n < CPUS; n++) {
		if (!h->cpu[n].there)
			continue;
		put(h, "%s\"%u\":{\"load\":%.1f,\"khz\":%" PRIu64 "}", between, n, h->cpu[n].load,
		    h->cpu[n].khz);
		between = ",";
		tell(h, now, (uint64_t)(h->cpu[n].load + 0.5), "CPU %u: load in percent", n);
		if (h->cpu[n].khz)
			tell(h, now, h->cpu[n].khz / 1000, "CPU %u: MHz", n);
	}
	memory = read_text(h, "/proc/meminfo");
	available = memory ? number_of(memory, "MemAvailable:") * 1024 : 0;
	put(h, "},\"memory\":%" PRIu64 ",\"memory_available\":%" PRIu64,
	    memory ? number_of(memory, "MemTotal:") * 1024 : 0, available);
	tell(h, now, available, "machine: bytes of memory available");
	end_line(h);
}

/* Bytes that JSON does not take as they are are left out: a name is cut by the kernel anyway. */
static void plain(char *name, size_t size, const char *from, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n && k + 1 < size; i++)
		if (from[i] >= ' ' && from[i] < 0x7f && from[i] != '"' && from[i] != '\\')
			name[k++] = from[i];
	name[k] = '\0';
}

static void measure_process(struct ca_host *h, const struct ca_process *process, uint64_t now)
{
	unsigned long long minor, major, user, system, threads, size, resident;
	uint64_t tick = CA_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK), peak = 0;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), got = 0, written = 0;
	const char *text, *open, *close;
	char path[48], name[32];

	snprintf(path, sizeof path, "/proc/%u/stat", process->pid);
	text = read_text(h, path);
	open = text ? strchr(text, '(') : NULL;
	close = open ? strrchr(open, ')') : NULL;
	if (!close || sscanf(close + 1,
			     " %*c %*d %*d %*d %*d %*d %*u %llu %*u %llu %*u %llu %llu %*d %*d %*d %*d %llu "
			     "%*d %*u %llu %llu",
			     &minor, &major, &user, &system, &threads, &size, &resident) != 7)
		return;
	plain(name, sizeof name, open + 1, (size_t)(close - open - 1));
	snprintf(path, sizeof path, "/proc/%u/status", process->pid);
	if ((text = read_text(h, path)))
		peak = number_of(text, "VmHWM:") * 1024;
	put(h,
	    "{\"type\":\"process\",\"time\":%" PRIu64
	    ",\"pid\":%u,\"index\":%u,\"name\":\"%s\",\"threads\":%llu,"
	    "\"resident\":%llu,\"peak\":%" PRIu64
	    ",\"virtual\":%llu,\"minor_faults\":%llu,\"major_faults\":%llu,"
	    "\"user\":%llu,\"system\":%llu",
	    now, process->pid, process->index, name, threads, resident * page, peak, size, minor, major,
	    user * tick, system * tick);
	tell(h, now, resident * page, "%s %u: bytes resident", name, process->index);
	tell(h, now, peak, "%s %u: bytes resident at most", name, process->index);
	tell(h, now, size, "%s %u: bytes of address space", name, process->index);
	tell(h, now, minor, "%s %u: minor faults", name, process->index);
	tell(h, now, major, "%s %u: major faults", name, process->index);
	tell(h, now, user * tick, "%s %u: CPU time in user code, ns", name, process->index);
	tell(h, now, system * tick, "%s %u: CPU time in the kernel, ns", name, process->index);
	snprintf(path, sizeof path, "/proc/%u/io", process->pid);
	if ((text = read_text(h, path))) { /* not of one that has changed its user */
		got = number_of(text, "rchar:");
		written = number_of(text, "wchar:");
		put(h,
		    ",\"read\":%" PRIu64 ",\"written\":%" PRIu64 ",\"storage_read\":%" PRIu64
		    ",\"storage_written\":%" PRIu64,
		    got, written, number_of(text, "read_bytes:"), number_of(text, "write_bytes:"));
		tell(h, now, got, "%s %u: bytes read", name, process->index);
		tell(h, now, written, "%s %u: bytes written", name, process->index);
	}
	end_line(h);
}

static void measure(struct ca_host *h)
{
	uint32_t used = atomic_load(&h->session->processes_used);
	uint64_t now = ca_clock_now();

	measure_machine(h, now);
	for (uint32_t p = 0; p < used && p < CA_MAX_PROCESSES; p++)
		if (atomic_load(&h->session->process[p].state) == CA_SLOT_LIVE &&
		    h->session->process[p].pid != CA_PID_UNKNOWN)
			measure_process(h, &h->session->process[p], now);
}

static void *run(void *context)
{
	struct ca_host *h = context;
	uint64_t due = ca_clock_now();
	struct timespec until;

	pthread_mutex_lock(&h->lock);
	while (!h->ends) {
		bool open = h->open;
		uint64_t now;

		pthread_mutex_unlock(&h->lock);
		if (open)
			measure(h);
		now = ca_clock_now();
		/* what it could not keep up with is left out */
		due = due + h->interval > now ? due + h->interval : now + h->interval;
		until = (struct timespec){ (time_t)(due / CA_NS_PER_S), (long)(due % CA_NS_PER_S) };
		pthread_mutex_lock(&h->lock);
		while (!h->ends && h->open == open &&
		       pthread_cond_timedwait(&h->wake, &h->lock, &until) != ETIMEDOUT)
			;
		due = h->open != open ? ca_clock_now() : due;
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

/* ---- for the conductor ----------------------------------------------------------------------*/
static bool start(struct ca_host *h)
{
	pthread_condattr_t clock;
	sigset_t all, old;
	bool ok;

	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->wake, &clock);
	pthread_condattr_destroy(&clock);
	sigfillset(&all); /* they are the driver's */
	pthread_sigmask(SIG_BLOCK, &all, &old);
	ok = !pthread_create(&h->thread, NULL, run, h);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ok;
}

enum ca_status ca_host_new(struct ca_host **host, const struct ca_settings *settings,
			   struct ca_session *session, const char *path, struct ca_err *err)
{
	struct ca_host *h = calloc(1, sizeof *h);

	if (!h)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for --host");
	h->cpus = settings->cpus;
	h->session = session;
	h->interval = (uint64_t)(1e9 / settings->process_frequency);
	h->value.size = sizeof(struct value);
	h->file = fopen(path, "we");
	if (!h->file) {
		free(h);
		return ca_err_set(err, CA_ERR_IO, "%s cannot be written: %s", path, strerror(errno));
	}
	put(h, "{\"type\":\"host\",\"version\":1,\"interval\":%" PRIu64 "}\n", h->interval);
	if (start(h)) {
		*host = h;
		return CA_OK;
	}
	fclose(h->file);
	free(h);
	return ca_err_set(err, CA_ERR_NOMEM, "no thread for --host");
}

void ca_host_follow(struct ca_host *h, bool open)
{
	pthread_mutex_lock(&h->lock);
	if (h->open != open) {
		h->open = open;
		pthread_cond_signal(&h->wake);
	}
	pthread_mutex_unlock(&h->lock);
}

void ca_host_drain(struct ca_host *h, struct ca_sinks *sinks, struct ca_dict *dict)
{
	const struct ca_source conductor = { 0 };
	struct ca_vec values = { .size = sizeof(struct value) };
	const struct value *value;

	pthread_mutex_lock(&h->lock);
	values = h->value;
	h->value = (struct ca_vec){ .size = sizeof(struct value) };
	pthread_mutex_unlock(&h->lock);
	value = values.at;
	for (size_t i = 0; sinks && i < values.n; i++) {
		uint32_t key =
			ca_dict_register(dict, value[i].name, "measured by --host", CA_LEVEL_DEVELOPER);
		struct ca_event event = {
			.time = value[i].time, .kind = CA_POINT, .key = key, .value = value[i].value
		};

		ca_dict_set_counter(dict, key);
		if (key && ca_dict_get(dict, key)->enabled)
			ca_sink_events(sinks, &conductor, &event, 1);
	}
	ca_vec_free(&values);
}

enum ca_status ca_host_close(struct ca_host *h, struct ca_sinks *sinks, struct ca_dict *dict,
			     struct ca_err *err)
{
	enum ca_status status = CA_OK;

	if (!h)
		return CA_OK;
	pthread_mutex_lock(&h->lock);
	h->ends = true;
	pthread_cond_signal(&h->wake);
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->thread, NULL);
	ca_host_drain(h, sinks, dict);
	if (fclose(h->file) && !h->error)
		h->error = errno;
	if (h->error)
		status = ca_err_set(err, CA_ERR_IO, "what --host has measured could not be written: %s",
				    strerror(h->error));
	ca_vec_free(&h->value);
	pthread_mutex_destroy(&h->lock);
	pthread_cond_destroy(&h->wake);
	free(h);
	return status;
}
