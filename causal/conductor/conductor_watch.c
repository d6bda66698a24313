/* SPDX-License-Identifier: MIT */
/* What the conductor sees of the program's processes and threads in the session: their samples, their
 * deaths, their debts, and their accounts of S time. Driver's process, one thread. */
#include "causal/conductor/conductor_state.h"
#include "causal/conductor/sweep.h"
#include "core/clock.h"
#include "core/memstream.h"
#include "core/path.h"
#include "core/paying.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	MS = 1000000,
	BOOKS = 50,           /* 1 / share of S time by which accounts of it may differ ... */
	BOOKS_LEAST = 100000, /* ... or ns */
	TAKEN = 20,           /* part of an experiment that others take, at least, if they take anything */
	BOOKS_LATE = MS,      /* ns before the end that a thread may have looked last */
	AHEAD = 50,           /* 1 / share of the experiment by which somebody outside may be ahead */
	REAP = 200 * MS,      /* ns between looks for dead processes */
	SHOWN = 5             /* processes by name */
};

bool ca_conductor_take_sample(struct ca_conductor *c, uint32_t thread, const ca_place *frame, unsigned frames,
			      unsigned weight, unsigned flags)
{
	bool waiting = flags & CA_SAMPLE_WAITING, counts;

	/* who reads its input at first, alone, is in the kernel */
	if (!waiting && !(flags & CA_SAMPLE_IN_KERNEL)) {
		c->ran[thread % CA_MAX_THREADS] += weight;
		c->ran_all += weight;
	}
	counts = !ca_conductor_scope_sample(c, frame, frames, weight, flags) &&
		 ca_regions_count(c->regions, frame, frames, weight, waiting);
	ca_conductor_points_sample(c, frame, frames, waiting);
	return counts;
}

static void take_samples(struct ca_conductor *c, uint32_t slot, const struct ca_event *event, size_t n)
{
	ca_place frame[CA_RING_EVENTS];

	for (size_t i = 0; i < n;) {
		unsigned flags = event[i].flags, weight = flags & CA_SAMPLE_PERIODS, frames = 0;

		if (event[i++].key != CA_KEY_SAMPLE)
			continue;
		frame[frames++] = event[i - 1].value;
		while (i < n && event[i].key == CA_KEY_FRAME)
			frame[frames++] = event[i++].value;
		c->sum.samples++;
		c->sum.periods += weight;
		c->sum.waited += flags & CA_SAMPLE_WAITING ? weight : 0;
		c->sum.squares += (uint64_t)weight * weight;
		c->sum.in_scope += ca_conductor_take_sample(c, slot, frame, frames, weight, flags);
	}
}

uint64_t ca_conductor_cpu_time(struct ca_conductor *c)
{
	uint32_t used = atomic_load(&c->session->processes_used);
	uint64_t sum = 0;

	for (uint32_t p = 0; p < used && p < CA_MAX_PROCESSES; p++) {
		const struct ca_process *process = &c->session->process[p];
		uint64_t ns = atomic_load(&process->state) == CA_SLOT_LIVE
				      ? ca_clock_process_cpu((pid_t)process->pid)
				      : 0;

		if (ns && process->index != c->used[p].index) {
			c->used_before += c->used[p].ns;
			c->used[p].index = process->index;
			c->used[p].ns = 0;
		}
		c->used[p].ns = ns > c->used[p].ns ? ns : c->used[p].ns;
		sum += c->used[p].ns;
	}
	return c->used_before + sum;
}

void ca_conductor_drain(struct ca_conductor *c)
{
	static struct ca_event event[CA_RING_EVENTS];
	struct ca_session *s = c->session;
	uint32_t used = atomic_load(&s->slots_used), ahead;

	for (CA_SLOTS_IN(i, &s->told, used)) {
		size_t n;

		/* before its ring is read: who pushes from now on adds it again */
		ca_slot_set_remove(&s->told, i);
		if (!atomic_load(&s->slot[i].ring_ready)) {
			ca_session_back_ring(c->session_fd, s, i);
			continue;
		}
		n = ca_ring_pop(&s->slot[i].ring, event, CA_RING_EVENTS);
		if (n && !c->opt.traced)
			take_samples(c, i, event, n);
	}
	ca_conductor_trace_drain(c);
	/* as many again: a program that has many threads may be starting more. Beyond that it makes room itself */
	ahead = used > CA_SLOTS_AHEAD ? used : CA_SLOTS_AHEAD;
	ahead = ahead < CA_SLOTS_MOST ? ahead : CA_SLOTS_MOST;
	if (used + ahead / 2 > atomic_load(&s->slots_ready) && used < s->slots)
		ca_session_grow(c->session_fd, s, used + ahead < s->slots ? used + ahead : (uint32_t)s->slots,
				NULL);
}

/* Not gone, and not a zombie that its parent has yet to wait for; one whose main thread alone has ended
 * looks like that, but has others. */
static bool is_running(uint32_t pid)
{
	char path[48], line[512], state = 0;
	FILE *file;
	long threads = 1;

	if (pid == CA_PID_UNKNOWN)
		return true;
	if (kill((pid_t)pid, 0) && errno == ESRCH)
		return false;
	snprintf(path, sizeof path, "/proc/%u/stat", pid);
	file = fopen(path, "re");
	if (file) {
		/* the name in brackets may hold anything, brackets included */
		const char *end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;

		if (end)
			sscanf(end + 1,
			       " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld",
			       &state, &threads);
		fclose(file);
	}
	return (state != 'Z' && state != 'X') || threads > 1;
}

/* Does it still take part? Not after an exec that left the runtime behind: then the session is no longer
 * mapped. Asked of those that are behind with their sites, as such a one will always be. */
static bool takes_part(const struct ca_conductor *c, const struct ca_process *process)
{
	char path[48], line[CA_PATH + 128];
	bool found = false, any = false;
	FILE *file;

	if (atomic_load(&process->patched) == atomic_load(&c->session->selection.seq))
		return true;
	snprintf(path, sizeof path, "/proc/%u/maps", process->pid);
	file = fopen(path, "re");
	if (!file)
		return true; /* nobody knows */
	while (!found && fgets(line, sizeof line, file)) {
		any = true;
		ca_path_unescape(line);
		found = strstr(line, c->session_path);
	}
	fclose(file);
	return found || !any; /* empty: its main thread has ended */
}

/* Is /proc/PID the process that has another number in its own namespace? */
static bool is_that(const struct ca_process *process, const char *pid)
{
	static const char in_namespaces[] = "NSpid:";
	char path[300], line[512];
	bool found = false;
	struct stat space;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%s/ns/pid", pid);
	if (stat(path, &space) || space.st_ino != process->pid_space)
		return false;
	snprintf(path, sizeof path, "/proc/%s/status", pid);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof line, file)) {
		const char *last = strrchr(line, '\t');

		found = last && !strncmp(line, in_namespaces, sizeof in_namespaces - 1) &&
			strtoul(last + 1, NULL, 10) == process->own_pid;
	}
	if (file)
		fclose(file);
	return found;
}

/* One in another namespace does not know by what number others know it. */
static void look_for(struct ca_process *process)
{
	DIR *dir = process->pid_space ? opendir("/proc") : NULL;
	struct dirent *d;

	while (dir && (d = readdir(dir)))
		if (d->d_name[0] >= '1' && d->d_name[0] <= '9' && is_that(process, d->d_name)) {
			process->pid = (uint32_t)strtoul(d->d_name, NULL, 10);
			break;
		}
	if (dir)
		closedir(dir);
}

/* It cannot tell the others any more that it is out of S. */
static void end_slot(struct ca_session *s, uint32_t number, uint64_t now)
{
	if (atomic_exchange(&s->slot[number].in_s, 0))
		ca_selection_append(&s->log_head, s->log, CA_LOG_EXIT, number, now, 0);
	ca_paying_end(s, &s->slot[number], now);
	ca_session_free_slot(s, number);
}

/* Gone without a word while its process lives on, as when another thread called exec. */
static bool has_left_s(const struct ca_process *process, const struct ca_slot *slot)
{
	return atomic_load(&slot->in_s) && slot->tid && process->pid == process->own_pid &&
	       syscall(SYS_tgkill, (pid_t)slot->pid, (pid_t)slot->tid, 0) && errno == ESRCH;
}

static void tell_of_off(struct ca_conductor *c, uint32_t p)
{
	const struct ca_process *process = &c->session->process[p];

	if (!atomic_load(&process->off) || c->off_told)
		return;
	c->off_told = true;
	ca_conductor_say(c, 0,
			 "process %u: the runtime switched itself off: %s; "
			 "the process runs on without it",
			 process->pid, process->off_text);
}

void ca_conductor_reap(struct ca_conductor *c, uint64_t now)
{
	struct ca_session *s = c->session;
	static enum { NOTHING, RUNS, GONE } look[CA_MAX_PROCESSES];
	uint32_t processes = atomic_load(&s->processes_used), used = atomic_load(&s->slots_used);
	bool drained = !c->sampling;

	if (now - c->last_reap < REAP)
		return;
	c->last_reap = now;
	for (uint32_t p = 0; p < processes && p < CA_MAX_PROCESSES; p++) {
		struct ca_process *process = &s->process[p];

		look[p] = NOTHING;
		/* acquire: pairs with the release in start.c, after the rest */
		if (atomic_load_explicit(&process->state, memory_order_acquire) != CA_SLOT_LIVE)
			continue;
		tell_of_off(c, p);
		if (process->pid == CA_PID_UNKNOWN)
			look_for(process);
		look[p] = is_running(process->pid) && takes_part(c, process) ? RUNS : GONE;
	}
	for (uint32_t i = 0; i < used && i < CA_MAX_THREADS; i++) {
		uint32_t p = s->slot[i].process;

		if (atomic_load(&s->slot[i].state) != CA_SLOT_LIVE || p >= processes ||
		    !(look[p] == GONE || (look[p] == RUNS && has_left_s(&s->process[p], &s->slot[i]))))
			continue;
		if (!drained) /* what they had said before comes first */
			ca_conductor_trace_drain(c);
		drained = true;
		ca_conductor_sample_thread_died(c, i, now);
		end_slot(s, i, now);
	}
	for (uint32_t p = 0; p < processes && p < CA_MAX_PROCESSES; p++)
		if (look[p] == GONE) {
			ca_conductor_trace_forget(c, p);
			atomic_store(&s->process[p].state, CA_SLOT_FREE);
		}
}

static void put_process(FILE *out, uint32_t pid)
{
	char path[48], name[64] = "";
	FILE *file;

	snprintf(path, sizeof path, "/proc/%u/comm", pid);
	file = fopen(path, "re");
	if (file && fgets(name, sizeof name, file))
		name[strcspn(name, "\n")] = '\0';
	if (file)
		fclose(file);
	fprintf(out, "%s%s%u", name, *name ? " " : "", pid);
}

void ca_conductor_tell_running(struct ca_conductor *c)
{
	const struct ca_session *s = c->session;
	uint32_t used = atomic_load(&s->processes_used);
	char *text = NULL;
	unsigned n = 0;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (uint32_t p = 0; out && p < used && p < CA_MAX_PROCESSES; p++) {
		const struct ca_process *process = &s->process[p];

		/* of those in other namespaces nobody knows */
		if (atomic_load(&process->state) != CA_SLOT_LIVE || process->pid == CA_PID_UNKNOWN ||
		    !is_running(process->pid) || !takes_part(c, process) || ++n > SHOWN)
			continue;
		fputs(n > 1 ? ", " : "", out);
		put_process(out, process->pid);
	}
	if (out && ca_memstream_end(out, &text) && n)
		ca_conductor_say(c, 0,
				 "%u process%s of the program still run%s (%s%s), unseen from now on; to see "
				 "more of them, have the command wait for them, as in: sh -c 'COMMAND; sleep "
				 "10'",
				 n, n > 1 ? "es" : "", n > 1 ? "" : "s", text, n > SHOWN ? ", ..." : "");
	free(text);
}

uint64_t ca_conductor_owed(const struct ca_conductor *c, uint64_t *paid, unsigned *threads)
{
	struct ca_session *s = c->session;
	uint32_t used = atomic_load(&s->slots_used);
	uint64_t sum = 0, experiment = (atomic_load(&s->experiment.seq) - 1) | 1;

	*paid = 0;
	*threads = 0;
	for (uint32_t i = 0; i < used; i++) {
		if (atomic_load(&s->slot[i].state) != CA_SLOT_LIVE ||
		    atomic_load(&s->slot[i].experiment) != experiment)
			continue;
		sum += atomic_load(&s->slot[i].owed);
		*paid += atomic_load(&s->slot[i].paid);
		++*threads;
	}
	return sum;
}

/* D comes from the log as it is read here; what threads owe, from the log as each reads it: two
 * accounts of the same S time, from the opening on, that of the threads on average. Where they
 * differ, what is taken out of the experiment is not what was put in. */
uint32_t ca_conductor_compare_books(struct ca_conductor *c, uint64_t s_time)
{
	struct ca_session *s = c->session;
	uint32_t used = atomic_load(&s->slots_used);
	uint64_t experiment = (atomic_load(&s->experiment.seq) - 1) | 1, end = c->e.record.end, sum = 0,
		 n = 0;

	for (uint32_t i = 0; i < used; i++) {
		/* acquire: pairs with the release in ledger.c, after s_time */
		uint64_t until = atomic_load_explicit(&s->slot[i].s_until, memory_order_acquire);
		uint64_t its = atomic_load(&s->slot[i].s_time);
		uint64_t differ = its < s_time ? s_time - its : its - s_time;
		uint64_t late = until < end ? end - until : 0;

		if (atomic_load(&s->slot[i].state) != CA_SLOT_LIVE ||
		    atomic_load(&s->slot[i].experiment) != experiment || late > BOOKS_LATE)
			continue;
		sum += differ > late ? differ - late : 0;
		n++;
	}
	if (!n || !c->e.record.speedup || sum / n <= BOOKS_LEAST || sum / n <= s_time / BOOKS)
		return 0;
	ca_conductor_say(c, 2,
			 "experiment %u: the accounts of %u threads differ by %u us on average from the "
			 "driver's S time of %u us",
			 c->e.record.index, (unsigned)n, (unsigned)(sum / n / 1000),
			 (unsigned)(s_time / 1000));
	return CA_EXPERIMENT_BOOKS;
}

/* One thread does all, others are busy, and it was kept from its CPU in S at the experiment's end: for how long it
 * has not told yet, and that passes for S time. */
bool ca_conductor_is_untold(const struct ca_conductor *c)
{
	const struct ca_experiment_record *r = &c->e.record;
	const struct ca_session *s = c->session;
	uint32_t used = atomic_load(&s->slots_used);
	uint64_t experiment = (atomic_load(&s->experiment.seq) - 1) | 1;

	if (!c->opt.sweep || !ca_sweep_is_alone(c->opt.sweep) || r->lost == UINT64_MAX ||
	    r->lost < (r->end - r->start) / TAKEN)
		return false;
	for (CA_SLOTS_IN(i, &s->in_s, used)) {
		const struct ca_slot *slot = &s->slot[i];
		uint32_t how = atomic_load_explicit(&slot->in_s, memory_order_relaxed);

		if (how && !(how & (CA_IN_S_OFF | CA_IN_S_EXTERNAL)) &&
		    atomic_load(&slot->state) == CA_SLOT_LIVE &&
		    (atomic_load(&slot->experiment) != experiment || atomic_load(&slot->s_until) < r->end))
			return true;
	}
	return false;
}

/* Somebody outside who sends by himself was ahead of virtual time, and nothing held him back: by so much of
 * the experiment his consumer may have been fed too early. */
uint32_t ca_conductor_find_ahead(struct ca_conductor *c)
{
	const struct ca_experiment_record *r = &c->e.record;
	struct ca_session *s = c->session;
	uint32_t used = atomic_load(&s->slots_used);
	uint64_t experiment = (atomic_load(&s->experiment.seq) - 1) | 1, most = 0;

	for (uint32_t i = 0; i < used; i++) {
		uint64_t ahead = atomic_load(&s->slot[i].ahead);

		if (atomic_load(&s->slot[i].state) == CA_SLOT_LIVE &&
		    atomic_load(&s->slot[i].experiment) == experiment && ahead > most)
			most = ahead;
	}
	if (!r->speedup || most <= (r->end - r->start) / AHEAD)
		return 0;
	ca_conductor_say(c, 2, "experiment %u: somebody outside was ahead of virtual time by %u us", r->index,
			 (unsigned)(most / 1000));
	return CA_EXPERIMENT_AHEAD;
}
