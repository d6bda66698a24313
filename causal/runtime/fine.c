/* SPDX-License-Identifier: MIT */
/* The fine sampler; see fine.h, and core/fine.h for what the generated probes write.
 *
 * They add up cycles in S. Whenever the sum comes to a limit, which is drawn anew each time, the instant
 * at which it did so gets a hit in the selection log, and the hit stands for all that has been added up.
 * Such instants are spread evenly over the thread's time in S and know nothing of what other threads
 * do, so that what is true at them is true of S time: n threads in S share a hit by n, and none of them
 * owes for it.
 *
 * What probes cost a program can only be seen in it: a processor has a hundred nanoseconds of work under way at once, and
 * a fence keeps what is in S apart from what is around it. So most visits are counted only, which costs next to nothing,
 * and some are timed, in turns of some dozens. Of two such turns, one after the other, the one that is timed takes longer, by
 * what the probes and the fences take. What a visit would take less if S were not there is that much less than what is
 * between its two time stamps. A hit stands for the turn before it, too, of which visits were only counted.
 *
 * Hooks (general registers only), ticks, waits; with the thread's guard held. */
#include "causal/runtime/fine.h"
#include "causal/runtime/account.h"
#include "causal/runtime/ledger.h"
#include "causal/runtime/patch.h"
#include "causal/runtime/timeline.h"
#include "core/cpu.h"

enum {
	MEAN = 25000,        /* ns of S for one hit ... */
	CHEAP = 50,          /* ... but so many times what the last one cost: 2 % */
	LONGEST = 200000,    /* ... and no more than this */
	LONG_AGO = 10000000, /* ns; hits come later by the length of a visit, or of a tick */
	OFFS = 16,           /* off-CPU times looked at in one go */
	OTHERS = 32, /* threads in S at one instant that are told apart; the rest owe a little too much */
	ROUNDS = 64,
	TRIES = 32, /* of calibration */
	TIMED = 4,  /* visits, of which one is timed ... */
	FEW = 3, /* ... where a turn has that many: longer ones are all timed, as probes cost them little */
	SPARED = 50,            /* ... and of short ones so few that this takes 2 % of the time ... */
	RARELY = 64,            /* ... but one of so many */
	LATELY = 16,            /* turns */
	ENOUGH = 64,            /* ... to know what each costs */
	SELDOM = 8,             /* hits; where visits are long, one turn is counted after so many */
	LONGEST_TURN = 1 << 24, /* cycles */
	PREEMPTED = 20000,      /* ns; no hook takes as long */
	SLICE = 1000000, /* ns; without a switch log a turn that took longer may have been one of other threads, too */
	SHIFT = 20
};

/* ---- cycles and ns -----------------------------------------------------------------------------*/
static uint64_t first_cycles, first_ns; /* when the process began; never changed afterwards */
/* What a visit costs where nothing is under way, and how much of it counts as S. */
static uint64_t probe_cycles, probe_in;

/* One reading of both clocks, and their rates since the beginning, << SHIFT. */
struct now {
	uint64_t cycles, ns, ns_per_cycle, cycles_per_ns;
};

static struct now look(void)
{
	struct now now = { .cycles = ca_cpu_cycles(), .ns = ca_clock_now() };
	uint64_t cycles = now.cycles - first_cycles, ns = now.ns - first_ns;
	unsigned down = 0;

	while ((cycles | ns) >> down >> 40)
		down++;
	cycles = (cycles >> down) + 1;
	ns = (ns >> down) + 1;
	now.ns_per_cycle = (ns << SHIFT) / cycles;
	now.cycles_per_ns = (cycles << SHIFT) / ns;
	return now;
}

static uint64_t to_ns(const struct now *now, uint64_t cycles)
{
	return cycles * now->ns_per_cycle >> SHIFT;
}

static uint64_t to_cycles(const struct now *now, uint64_t ns)
{
	return ns * now->cycles_per_ns >> SHIFT;
}

/* When the counter stood at `cycles`, not long ago. */
static uint64_t when(const struct now *now, uint64_t cycles)
{
	return cycles < now->cycles ? now->ns - to_ns(now, now->cycles - cycles) : now->ns;
}

/* What the generated code does, less the way there and back. */
static void probe_once(struct ca_fine *f)
{
	atomic_store_explicit(&f->entered, ca_cpu_cycles_fenced(), memory_order_relaxed);
	atomic_store_explicit(&f->outer, 1, memory_order_relaxed);
	atomic_store_explicit(&f->left, ca_cpu_cycles_fenced(), memory_order_relaxed);
	atomic_store_explicit(&f->outer, 0, memory_order_relaxed);
}

void ca_fine_init(void)
{
	struct ca_fine scratch = { 0 };

	probe_cycles = probe_in = UINT64_MAX;
	for (unsigned i = 0; i < TRIES; i++) {
		uint64_t from = ca_cpu_cycles(), inside = 0, all;

		for (unsigned k = 0; k < ROUNDS; k++) {
			probe_once(&scratch);
			inside += scratch.left - scratch.entered;
		}
		all = ca_cpu_cycles() - from;
		if (all / ROUNDS < probe_cycles) {
			probe_cycles = all / ROUNDS;
			probe_in = inside / ROUNDS;
		}
	}
	first_cycles = ca_cpu_cycles();
	first_ns = ca_clock_now();
}

/* ---- the account of a thread ---------------------------------------------------------------------*/
static uint64_t get(const _Atomic uint64_t *field)
{
	return atomic_load_explicit(field, memory_order_relaxed);
}

static void set(_Atomic uint64_t *field, uint64_t value)
{
	atomic_store_explicit(field, value, memory_order_relaxed);
}

static void draw(struct ca_thread *t)
{
	uint64_t mean = t->fine_cost * CHEAP;

	mean = mean < MEAN ? MEAN : mean > LONGEST ? LONGEST : mean;
	mean /= t->fine_turns.used ? TIMED : 1;
	t->fine_limit = mean / 2 + ca_rng_below(&t->rng, mean);
}

/* ---- turns -----------------------------------------------------------------------------------*/
/* Ticks, and times off a CPU: a turn that has any of them tells nothing. */
static uint64_t others_of(const struct ca_thread *t)
{
	return atomic_load_explicit(&t->slot->samples, memory_order_relaxed) +
	       (t->switches.page ? ca_switches_count(&t->switches) : 0);
}

static void begin_turn(struct ca_thread *t, bool counts)
{
	struct ca_fine_turns *turns = &t->fine_turns;

	turns->counts = counts;
	turns->begun++;
	turns->visits = atomic_load_explicit(&t->fine->visits, memory_order_relaxed);
	turns->spun = atomic_load_explicit(&t->slot->spun, memory_order_relaxed);
	turns->others = others_of(t);
	turns->from = ca_cpu_cycles();
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void note_turn(struct ca_fine_turn_sum *sum, uint64_t took, uint32_t visits)
{
	uint64_t off;

	sum->turns++;
	sum->took += took;
	sum->visits += visits;
	off = apart(took, visits * (sum->took / sum->visits));
	off = (off < LONGEST_TURN ? off : LONGEST_TURN) / 16;
	sum->squares += off * off;
}

static void end_turn(struct ca_thread *t, const struct now *now)
{
	struct ca_fine_turns *turns = &t->fine_turns;
	uint32_t n = atomic_load_explicit(&t->fine->visits, memory_order_relaxed) - turns->visits;
	uint64_t spun = atomic_load_explicit(&t->slot->spun, memory_order_relaxed) - turns->spun;
	uint64_t took = now->cycles - turns->from;
	bool alone = turns->others == others_of(t) && (t->switches.page || to_ns(now, took) < SLICE);

	spun = to_cycles(now, spun);
	if (alone && took > spun && n)
		note_turn(&turns->of[!turns->counts    ? CA_FINE_TIMED
				     : turns->compares ? CA_FINE_SHORT
						       : CA_FINE_LONG],
			  took - spun, n);
}

/* The error of their mean, squared. */
static uint64_t error_of(const struct ca_fine_turn_sum *sum)
{
	return (sum->squares / sum->visits << 8) / sum->visits;
}

/* Cycles by which a visit is longer if it is timed: as measured without a program, which may be off by as much, and as seen
 * in this one, which is off by what its turns differ. */
static int64_t cost_of_visit(const struct ca_thread *t)
{
	const struct ca_fine_turn_sum *timed = &t->fine_turns.of[CA_FINE_TIMED],
				      *counted = &t->fine_turns.of[CA_FINE_SHORT];
	int64_t known = (int64_t)probe_cycles, seen, error;

	if (timed->turns < LATELY || counted->turns < LATELY)
		return known;
	seen = (int64_t)(timed->took / timed->visits) - (int64_t)(counted->took / counted->visits);
	error = (int64_t)(error_of(timed) + error_of(counted));
	return known + (seen - known) * (known * known) / (known * known + error);
}

/* Cycles by which a turn is longer than its visits would be among others, since a hook has been in the caches. */
static uint64_t cost_of_turn(const struct ca_thread *t)
{
	const struct ca_fine_turn_sum *few = &t->fine_turns.of[CA_FINE_SHORT],
				      *many = &t->fine_turns.of[CA_FINE_LONG];
	uint64_t took, each, visits;

	if (few->turns < ENOUGH || many->turns < ENOUGH)
		return 0;
	/* a straight line through both means, << 8 where they are small */
	took = many->took / many->turns;
	visits = (many->visits << 8) / many->turns - (few->visits << 8) / few->turns;
	if (took <= few->took / few->turns || visits >> 63 || !visits)
		return 0;
	each = ((took - few->took / few->turns) << 16) / visits;
	took = few->took / few->turns;
	visits = (few->visits * each / few->turns) >> 8;
	return took > visits ? took - visits : 0;
}

/* Visits of which one is timed. */
static uint64_t timed_of(const struct ca_thread *t)
{
	const struct ca_fine_turn_sum *counted = &t->fine_turns.of[CA_FINE_SHORT],
				      *sum = counted->turns ? counted : &t->fine_turns.of[CA_FINE_TIMED];
	int64_t cost = cost_of_visit(t);
	uint64_t cycles = cost > 0 ? (uint64_t)cost * SPARED : 0,
		 n = sum->took ? cycles * sum->visits / sum->took : 0;

	return n < TIMED ? TIMED : n < RARELY ? n : RARELY;
}

/* What stands in the account belongs to another selection. */
static bool begin_anew(struct ca_thread *t, const struct now *now)
{
	uint32_t region = ca_rt.session->selection.region;
	struct ca_fine *f = t->fine;

	if (get(&f->selection) == t->selection)
		return false;
	if (t->fine_turns.region != region)
		t->fine_turns = (struct ca_fine_turns){ .region = region };
	t->fine_turns.counted = 0;
	t->fine_spent = 0;
	draw(t);
	t->fine_visits = atomic_load_explicit(&f->visits, memory_order_relaxed);
	t->fine_from = now->cycles;
	set(&f->left, now->cycles);
	set(&f->entered, now->cycles);
	atomic_store_explicit(&f->counting, 0, memory_order_relaxed);
	atomic_store_explicit(&f->sum, 0, memory_order_relaxed);
	atomic_store_explicit(&f->limit, (int64_t)to_cycles(now, t->fine_limit), memory_order_relaxed);
	begin_turn(t, false);
	/* release: pairs with was_in */
	atomic_store_explicit(&f->selection, t->selection, memory_order_release);
	return true;
}

static bool is_counting(const struct ca_fine *f)
{
	return atomic_load_explicit(&f->counting, memory_order_relaxed) != 0;
}

void ca_fine_join(struct ca_thread *t)
{
	struct now now = look();

	t->fine_exempt = get(&t->fine->exempt);
	set(&t->fine->outer, 0);
	set(&t->fine->selection, UINT64_MAX);
	begin_anew(t, &now);
	ca_patch_fine = t->fine;
}

/* ---- a hit -----------------------------------------------------------------------------------*/
/* Was it in S when the counter stood at `at`, as far as it can still be told? */
static bool was_in(const struct ca_fine *f, uint64_t selection, uint64_t at)
{
	uint64_t entered;

	/* acquire: pairs with begin_anew */
	if (atomic_load_explicit(&f->selection, memory_order_acquire) != selection)
		return false;
	if (is_counting(f)) /* it has no times: as it is by now, a visit later at most */
		return get(&f->outer) != 0;
	entered = get(&f->entered);
	if (get(&f->outer))
		return entered <= at || at < get(&f->left);
	return entered <= at && at < get(&f->left);
}

/* It waits, and left S so long ago that no hit asks for then: nobody looks at it any more until it runs. With
 * thousands of threads alive most do so. (A handler of the program's that passes S meanwhile is not seen.) */
static void rest(uint32_t i, const struct now *now, uint64_t at)
{
	struct ca_session *s = ca_rt.session;
	const _Atomic uint64_t *waits = &s->slot[i].waits;

	if (i >= ca_rt_slots_used() || !get(waits) || get(&s->fine[i].outer) ||
	    get(&s->fine[i].left) + to_cycles(now, LONG_AGO) > at)
		return;
	ca_slot_set_remove(&s->timed, i);
	/* pairs with ca_catch_up_runs: it has the bit, or is seen to run here */
	atomic_thread_fence(memory_order_seq_cst);
	if (!get(waits))
		ca_slot_set_add(&s->timed, i);
}

/* What a hit stands for, ns. */
struct worth {
	uint64_t mass, probes; /* of S; and what the thread took longer for hits and probes */
};

/* Of `mass` ns between time stamps, what is S, with visits that were only counted. */
static struct worth in_truth(struct ca_thread *t, const struct now *now, uint64_t mass)
{
	struct ca_fine_turns *turns = &t->fine_turns;
	uint32_t visits = atomic_load_explicit(&t->fine->visits, memory_order_relaxed);
	uint64_t n = visits - t->fine_visits, took = to_ns(now, now->cycles - t->fine_from), all;
	int64_t cost = cost_of_visit(t), in = cost - (int64_t)(probe_cycles - probe_in);

	t->fine_visits = visits;
	t->fine_from = now->cycles;
	all = t->fine_spent +
	      to_ns(now, turns->begun * cost_of_turn(t) + (cost > 0 ? n * (uint64_t)cost : 0));
	t->fine_spent = turns->begun = 0;
	in = in > 0 ? (int64_t)to_ns(now, n * (uint64_t)in) : -(int64_t)to_ns(now, n * (uint64_t)-in);
	mass = in < 0 || mass > (uint64_t)in ? mass - (uint64_t)in : 0;
	turns->mass -= turns->mass / LATELY;
	turns->timed -= turns->timed / LATELY;
	turns->mass += mass;
	turns->timed += n << 8;
	if (turns->timed >> 8) {
		mass += turns->mass * turns->counted / (turns->timed >> 8);
		turns->counted = 0;
	}
	return (struct worth){ mass, all < took ? all : took };
}

/* The others are held up for as long as probes take, as if S were faster by all of that: what they do meanwhile they
 * would not have done by then. */
static void hit(struct ca_thread *t, const struct now *now, uint64_t at, struct worth worth)
{
	struct ca_session *s = ca_rt.session;
	uint64_t speedup = s->experiment.speedup, mass = worth.mass, probes = 0;
	uint32_t used = atomic_load_explicit(&s->slots_used, memory_order_relaxed), inside[OTHERS];
	uint64_t ns = when(now, at), n = 1, known = 0;

	for (CA_SLOTS_IN(i, &s->timed, used)) {
		if (i == t->number)
			continue;
		if (!was_in(&s->fine[i], t->selection, at)) {
			rest(i, now, at);
			continue;
		}
		if (ca_account_was_off(i, ns, false))
			continue;
		if (known < OTHERS)
			inside[known++] = i;
		n++;
	}
	t->fine_probes += speedup ? worth.probes : 0;
	if (t->fine_probes >= MEAN / 2) { /* an entry takes everybody a while to read */
		probes = speedup ? t->fine_probes * CA_MILLION / speedup : 0;
		t->fine_probes = 0;
	}
	t->level.beyond += (mass + probes) * t->speedup / CA_MILLION;
	mass /= n;
	probes /= n;
	for (uint64_t i = 0; i < known; i++) /* before the log has it: see account() in ledger.c */
		atomic_fetch_add_explicit(&s->fine[inside[i]].exempt, mass + probes, memory_order_relaxed);
	ca_ledger_log(CA_LOG_HIT, t, ns, mass);
	if (probes)
		ca_ledger_log(CA_LOG_PROBES, t, ns, CA_LOG_HIT_VALUE(probes, 0));
	ca_timeline_tell(t, CA_POINT, CA_KEY_HIT, ns, mass);
}

/* The times of [from, to) on a CPU; without a switch log as many as the CPU clock knows of. */
static unsigned on_cpu(struct ca_thread *t, uint64_t from, uint64_t to, struct ca_interval *on)
{
	struct ca_interval off[OFFS];
	unsigned n = 0, offs;

	if (!t->switches.page) {
		uint64_t cpu = ca_clock_thread_cpu(), had = cpu - t->fine_cpu;

		t->fine_cpu = cpu;
		on[0] = (struct ca_interval){ to - from > had ? to - had : from, to };
		return 1;
	}
	offs = ca_switches_off(&t->switches, from, to, off, OFFS);
	for (unsigned i = 0; i < offs; i++) {
		if (off[i].from > from)
			on[n++] = (struct ca_interval){ from, off[i].from };
		from = off[i].to;
	}
	if (to > from)
		on[n++] = (struct ca_interval){ from, to };
	return n;
}

/* [from, to) in S, in cycles, comes to the sum, which holds it or not. Hits where it passes the limit. */
static void add(struct ca_thread *t, const struct now *now, uint64_t from, uint64_t to, bool is_in_sum)
{
	struct ca_fine *f = t->fine;
	struct ca_interval on[OFFS + 1];
	int64_t sum = atomic_load_explicit(&f->sum, memory_order_relaxed);
	uint64_t before;
	bool open = ca_ledger_open();
	unsigned n;

	sum -= is_in_sum ? (int64_t)(to - from) : 0;
	before = sum > 0 ? to_ns(now, (uint64_t)sum) : 0;
	n = on_cpu(t, when(now, from), when(now, to), on);
	for (unsigned i = 0; i < n; i++) {
		while (on[i].to > on[i].from && before + (on[i].to - on[i].from) >= t->fine_limit) {
			struct worth worth = in_truth(t, now, t->fine_limit);

			on[i].from += t->fine_limit > before ? t->fine_limit - before : 0;
			before = 0;
			draw(t);
			if (open)
				hit(t, now, now->cycles - to_cycles(now, now->ns - on[i].from), worth);
			atomic_fetch_add_explicit(&t->slot->probed, worth.probes, memory_order_relaxed);
		}
		before += on[i].to > on[i].from ? on[i].to - on[i].from : 0;
	}
	atomic_store_explicit(&f->sum, (int64_t)to_cycles(now, before), memory_order_relaxed);
	atomic_store_explicit(&f->limit, (int64_t)to_cycles(now, t->fine_limit), memory_order_relaxed);
}

/* Visits that the next turn is to count; 0: it is timed. How many have made a turn is asked of more than the last one:
 * whether that had few, which are long then, is not to say what comes next. Every other one is as long as those that are
 * timed: what a turn begins with, in caches that are the hook's, is the same in both, and no part of what visits cost. */
static uint32_t visits_to_count(struct ca_thread *t)
{
	struct ca_fine_turns *turns = &t->fine_turns;
	uint64_t mean = turns->timed / LATELY >> 8;

	turns->used = mean >= (turns->used ? FEW - 1 : FEW * TIMED);
	turns->hits++;
	turns->compares = !turns->used || turns->hits % 2;
	if (!mean || (!turns->used && turns->hits % SELDOM))
		return 0;
	mean *= turns->compares ? 1 : 2 * (timed_of(t) - 1) - 1;
	return (uint32_t)(mean / 2 + ca_rng_below(&t->rng, mean));
}

CA_SIGSAFE void ca_fine_due(struct ca_thread *t)
{
	struct now now = look();
	uint32_t visits = atomic_load_explicit(&t->fine->visits, memory_order_relaxed), count = 0;
	uint64_t spent;

	if (begin_anew(t, &now))
		return;
	if (t->fine_turns.counts) {
		end_turn(t, &now);
		t->fine_turns.counted += visits - t->fine_visits;
		t->fine_visits = visits;
	} else {
		add(t, &now, get(&t->fine->entered), get(&t->fine->left), true);
		if (t->fine_visits != visits)
			return; /* no hit, by a rounding */
		end_turn(t, &now);
		count = visits_to_count(t);
		atomic_store_explicit(&t->fine->counting, count, memory_order_relaxed);
		t->fine_cost = to_ns(&now, ca_cpu_cycles() - now.cycles);
	}
	spent = to_ns(&now, ca_cpu_cycles() - now.cycles);
	t->fine_spent += spent < PREEMPTED ? spent : 0;
	begin_turn(t, count);
}

CA_SIGSAFE void ca_fine_tell(struct ca_thread *t)
{
	struct now now = look();
	uint64_t from = get(&t->fine->entered);

	if (from >= now.cycles)
		return;
	if (!begin_anew(t, &now) && !is_counting(t->fine))
		add(t, &now, from, now.cycles, false);
	set(&t->fine->left, now.cycles); /* whoever asks for a time before that */
	set(&t->fine->entered, now.cycles);
}

CA_SIGSAFE void ca_fine_forget(struct ca_thread *t)
{
	set(&t->fine->left, get(&t->fine->entered));
	set(&t->fine->outer, 0);
}

/* A thread that passes an entry just now, and no exit any more, is found out in its next tick. */
CA_SIGSAFE void ca_fine_forget_all(void)
{
	uint32_t used = atomic_load_explicit(&ca_rt.session->slots_used, memory_order_relaxed);

	for (uint32_t i = 0; i < used && i < CA_MAX_THREADS; i++)
		if (atomic_load_explicit(&ca_rt.by_slot[i], memory_order_relaxed))
			set(&ca_rt.session->fine[i].outer, 0);
}

CA_SIGSAFE void ca_fine_left(struct ca_thread *t)
{
	ca_fine_tell(t);
	set(&t->fine->outer, 0);
}

CA_SIGSAFE uint64_t ca_fine_suspend(struct ca_thread *t)
{
	uint64_t outer = get(&t->fine->outer);

	ca_fine_left(t);
	return outer;
}

/* Whatever was open in between has been left. */
CA_SIGSAFE void ca_fine_resume(struct ca_thread *t, uint64_t outer)
{
	set(&t->fine->entered, ca_cpu_cycles());
	set(&t->fine->outer, outer);
	if (!t->switches.page)
		t->fine_cpu = ca_clock_thread_cpu();
}
