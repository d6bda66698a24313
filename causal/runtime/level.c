/* SPDX-License-Identifier: MIT */
/* Shares of a CPU; see level.h. Each CPU has the sum of what threads of the run have used there beyond virtual time, and
 * each thread its own; what has been added to the former while a thread waited for that CPU is what it is behind by.
 * A part of it is made up for by being one of those who share the CPU: the average counts. Async-signal-safe, general
 * registers only. */
#include "causal/runtime/level.h"
#include "causal/runtime/ledger.h"
#include "core/sys.h"

enum {
	APART = 1000000,  /* ns between two looks */
	SELDOM = 4000000, /* ns between two questions to the kernel: each takes 5 to 30 us ... */
	HARDLY = 4,       /* ... times of that while it has a CPU for itself */
	LONG = 20000000,  /* ns between two looks that are more than a turn or two of others */
	LONGEST =
		2000000000, /* ns off a CPU in one go, of which a part in its queue is too little to matter */
	LATELY = 100000000, /* ns of which it is known which part was spent waiting for a CPU */
	WORTH_IT = 100000,  /* ns behind */
	MOST = 10000000,    /* ns made up for in one go */
	SHARES = 16,        /* times of that which it waits for it: else it has a CPU for itself */
	FORGET = 8          /* 1 / part of what is known that is left out when there is too much of it */
};

/* proc(5), schedstat: ns on a CPU, ns in a run queue. UINT64_MAX: not known. */
CA_SIGSAFE static uint64_t read_queued(void)
{
	int fd = ca_sys_open("/proc/thread-self/schedstat", O_RDONLY);
	char text[96], *at = text;
	uint64_t ns = 0;
	long n;

	if (fd < 0)
		return UINT64_MAX;
	n = ca_sys(SYS_read, fd, (long)(intptr_t)text, sizeof text - 1, 0, 0, 0);
	ca_sys_close(fd);
	if (n <= 0)
		return UINT64_MAX;
	text[n] = '\0';
	while (*at && *at != ' ')
		at++;
	if (!*at)
		return UINT64_MAX;
	for (at++; *at >= '0' && *at <= '9'; at++)
		ns = ns * 10 + (uint64_t)(*at - '0');
	return ns;
}

/* Times that it has left a CPU. As long as it has not, it has waited for none, and the file above need not be asked.
 * UINT64_MAX: not known. */
CA_SIGSAFE static uint64_t switches(void)
{
	struct rusage used;

	return ca_sys_usage(&used) ? (uint64_t)used.ru_nvcsw + (uint64_t)used.ru_nivcsw : UINT64_MAX;
}

/* It hardly ever waits for one. */
CA_SIGSAFE static bool has_a_cpu(const struct ca_cpu_share *l)
{
	return SHARES * l->waited < l->on;
}

/* x * part / whole, for part <= whole, both below 2^32. */
CA_SIGSAFE static uint64_t part_of(uint64_t x, uint64_t part, uint64_t whole)
{
	if (!whole || part >= whole)
		return whole ? x : 0;
	return x / whole * part + x % whole * part / whole;
}

/* What it is behind by for ns that have been added to the sum of its CPU, while it was waiting or added them itself: its
 * share of that. While one waits, two share the CPU at least, so that is no more than half: who sleeps most of the time
 * and then has not to wait has no larger one. (With larger ones each who stands still puts the others back by more.) */
CA_SIGSAFE static void behind(struct ca_cpu_share *l, uint64_t ns)
{
	l->behind += (int64_t)(l->waited <= l->on ? ns / 2 : part_of(ns, l->on, l->on + l->waited));
}

/* By standing still it comes nearer to the average, which moves on with it. */
CA_SIGSAFE static uint64_t to_make_up(const struct ca_cpu_share *l)
{
	uint64_t ns = (uint64_t)l->behind;

	if (ns >= MOST)
		return MOST;
	ns = l->waited <= l->on ? 2 * ns : ns * (l->on + l->waited) / l->waited;
	return ns < MOST ? ns : MOST;
}

CA_SIGSAFE void ca_level_tick(struct ca_thread *t)
{
	struct ca_cpu_share *l = &t->level;
	uint64_t left, queued, now, cpu, on, off, waited;

	if (l->blind || !(t->experiment & 1) ||
	    ca_clock_now() - l->measured < SELDOM * (has_a_cpu(l) ? HARDLY : 1))
		return;
	left = switches();
	queued = l->measured && left == l->left && left != UINT64_MAX ? l->queued_at : read_queued();
	if (queued == UINT64_MAX) {
		l->blind = true;
		return;
	}
	cpu = ca_clock_thread_cpu();
	now = ca_clock_now();
	if (l->measured) {
		on = cpu - l->cpu_at;
		off = now - l->measured > on ? now - l->measured - on : 0;
		waited = queued - l->queued_at;
		l->on += on;
		l->off += off;
		l->waited += waited;
		while (l->on + l->off > LATELY) {
			l->on -= l->on / FORGET;
			l->off -= l->off / FORGET;
			l->waited -= l->waited / FORGET;
		}
		behind(l, off < LONGEST ? part_of(l->unsure, waited, off) : 0);
	}
	l->unsure = 0;
	l->measured = now;
	l->cpu_at = cpu;
	l->left = left;
	l->queued_at = queued;
}

/* What it has used of its CPU beyond virtual time since the last look, as far as it counts; `since` is how long ago that
 * was. First comes what it is behind by. Of the rest what the scheduler makes up for to others: it lets the thread wait
 * for so much longer. Off the CPU it waits and sleeps; asleep the others catch up with it, and that it was ahead of them
 * is forgotten, as it would be in virtual time. */
CA_SIGSAFE static uint64_t counts(struct ca_cpu_share *l, uint64_t since)
{
	uint64_t off = part_of(since, l->off, l->on + l->off), own = l->beyond - l->told, over, late = 0;

	if (l->behind > 0)
		late = own < to_make_up(l) ? own : to_make_up(l);
	l->ahead += own - late;
	over = l->ahead < off ? l->ahead : off;
	l->ahead -= over;
	if (l->ahead > MOST)
		l->ahead = MOST;
	return late + part_of(over, l->waited, l->off);
}

/* What has been added for its CPU since the last look, by itself and by others while it waited. After a long time off
 * the CPU it has slept, or others have been many: the next tick knows. */
CA_SIGSAFE static void add(struct ca_cpu_share *l, unsigned cpu, uint64_t since)
{
	struct ca_cpu *sum = &ca_rt.session->cpu[l->cpu];
	uint64_t own = counts(l, since), others;

	atomic_fetch_add_explicit(&sum->beyond, l->beyond - l->told, memory_order_relaxed);
	others = atomic_fetch_add_explicit(&sum->made_up, own, memory_order_relaxed) - l->heard;
	l->behind -= (int64_t)own;
	behind(l, own);
	if (cpu != l->cpu) /* where it waited is not known */
		return;
	if (since > LONG)
		l->unsure += others;
	else
		behind(l, part_of(others, l->waited, l->off));
}

/* One at a time: who stands still for another one gets nearer to its average, too. */
CA_SIGSAFE static void stand_still(struct ca_thread *t, uint64_t now, uint64_t ns)
{
	_Atomic uint64_t *until = &ca_rt.session->still_until;
	uint64_t before = atomic_load_explicit(until, memory_order_relaxed);

	if (before > now || !atomic_compare_exchange_strong(until, &before, now + ns))
		return;
	ca_ledger_stand_still(t, ns);
	atomic_store_explicit(until, 0, memory_order_relaxed);
}

CA_SIGSAFE uint64_t ca_level_make_up(struct ca_thread *t, uint64_t now)
{
	struct ca_cpu_share *l = &t->level;
	unsigned cpu = 0;

	if (t->speedup <= CA_SPEEDUP_PROBES || !(t->experiment & 1) || now - l->looked < APART)
		return now;
	if (ca_sys(SYS_getcpu, (long)(intptr_t)&cpu, 0, 0, 0, 0, 0) || cpu >= CA_MAX_CPUS)
		return now;
	if (l->experiment == t->experiment) {
		add(l, cpu, now - l->looked);
	} else {
		l->behind = 0;
		l->unsure = 0;
		l->ahead = 0;
	}
	l->looked = now;
	l->experiment = t->experiment;
	l->cpu = cpu;
	l->told = l->beyond;
	l->heard = atomic_load_explicit(&ca_rt.session->cpu[cpu].made_up, memory_order_relaxed);
	if (l->behind < WORTH_IT || !l->waited || has_a_cpu(l) || ca_rt_is_in_s(t))
		return now;
	stand_still(t, now, to_make_up(l));
	return ca_clock_now();
}
