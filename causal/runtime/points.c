/* SPDX-License-Identifier: MIT */
/* Progress points in code: the notes of causal.h's macros become counters.
 *
 * Constructor, or a handler when a library appeared later; the table in the session is
 * filled by compare-and-swap. */
#include "causal/runtime/points.h"
#include "causal/runtime/code_sites.h"
#include "causal/runtime/patch.h"
#include "causal/runtime/requested.h"
#include "core/log.h"
#include "core/point.h"
#include "core/sys.h"
#include "sampler/modules.h"
#include <errno.h>
#include <string.h>

/* Looks for new libraries: */
enum {
	RESCAN = 5000000,         /* ns between two, at first, and while one is opened or closed */
	COST = 50,                /* times its CPU time is the next one off, at least: 2 %; ... */
	COST_CHANGING = 10,       /* ... while one is opened or closed 10 %, so that its code is found */
	CHANGE_LASTS = 200000000, /* ns that opening may take */
	REPATCH = 25000000        /* ns between two looks for an index that may come */
};
#define LONGEST_PATIENCE UINT64_C(5000000000) /* ns */

struct ca_progress_point *ca_points_get(enum ca_point_kind kind, const char *name)
{
	return ca_point_get(ca_rt.session, kind, name);
}

static void patch_probe(const struct ca_loaded *l, const struct ca_index_probe *probe,
			enum ca_point_kind kind)
{
	struct ca_progress_point *point;
	struct ca_site site;

	if (!ca_code_sites_nop(l, probe->address, probe->address + CA_NOP_LENGTH, &site))
		return;
	point = ca_points_get(kind, probe->name);
	if (!point) {
		ca_log(CA_LOG_ERROR, "more than %d progress points: \"%s\" is not counted",
		       (int)CA_MAX_POINTS, probe->name);
		return;
	}
	site.point = (uint32_t)(point - ca_rt.session->point);
	site.hooks = 1;
	site.hook[0].kind = kind == CA_POINT_THROUGHPUT ? CA_SITE_VISIT : CA_SITE_STAMP;
	if (ca_patch_install(&site, 1, ca_modules_bias))
		ca_log(CA_LOG_ERROR,
		       "the code at progress point \"%s\" could not be patched: it "
		       "is not counted",
		       probe->name);
}

/* A library is there, but its index not yet: look again. */
static _Atomic bool waiting_for_index;
/* Libraries come or go since this time, ns; 0: none. */
static _Atomic uint64_t changing;
static _Atomic uint64_t last_scan, last_patch, patience = RESCAN, patience_changing = RESCAN;

static bool index_may_come(const struct ca_loaded *l)
{
	uint32_t state = atomic_load_explicit(&ca_rt.session->module[l->module].state, memory_order_relaxed);

	return state == CA_MODULE_CLAIMED || state == CA_MODULE_REGISTERED || state == CA_MODULE_INDEXED;
}

static void count_trap(uint32_t point)
{
	if (point < CA_MAX_POINTS)
		atomic_fetch_add_explicit(&ca_rt.session->point[point].trapped, 1, memory_order_relaxed);
}

void ca_points_patch_loaded(void)
{
	struct ca_loaded *l;
	bool all = true;

	if (!ca_rt.patching)
		return;
	if (ca_patch_is_busy()) {
		atomic_store_explicit(&waiting_for_index, true, memory_order_relaxed);
		return;
	}
	ca_patch_on_trap = count_trap;
	ca_requested_changed(); /* whatever it was, it is placed now */
	for (unsigned i = 0; (l = ca_modules_at(i)); i++) {
		const struct ca_index *index = ca_modules_index(l);
		/* the mark: its points are in place */
		size_t n = index && !l->mark ? ca_index_probes(index) : 0;

		if (!l->events)
			ca_code_sites_place(l);
		l->events = true;
		if (index && !l->mark)
			ca_requested_place(l, index); /* first: they count for notes that they cover */
		for (size_t k = 0; k < n; k++) {
			struct ca_index_probe probe;
			enum ca_point_kind kind;

			ca_index_probe_at(index, k, &probe);
			kind = ca_point_kind_of(probe.provider);
			if (kind)
				patch_probe(l, &probe, kind);
		}
		if (index)
			l->mark = true;
		else
			all &= !index_may_come(l);
	}
	atomic_store_explicit(&waiting_for_index, !all, memory_order_relaxed);
}

void ca_points_start(void)
{
	struct ca_loaded *l;

	ca_points_patch_loaded();
	for (unsigned i = 0; (l = ca_modules_at(i)); i++)
		l->ready = true;
}

/* One thread at a time, and not before `pause` ns have passed. */
static bool turn(_Atomic uint64_t *last, uint64_t now, uint64_t pause)
{
	uint64_t before = atomic_load_explicit(last, memory_order_relaxed);

	return now - before > pause && now > before && atomic_compare_exchange_strong(last, &before, now);
}

/* The same library may have been closed and opened at the same place. */
static void forget_points(void)
{
	struct ca_loaded *l;

	for (unsigned i = 0; (l = ca_modules_at(i)); i++)
		l->mark = l->events = l->ready = false;
	ca_code_sites_forget();
}

static void scan(bool change)
{
	uint64_t before = ca_clock_thread_cpu(), last = atomic_load_explicit(&patience, memory_order_relaxed),
		 cost;
	bool found = ca_modules_scan();

	if (change)
		forget_points();
	if (found || change)
		ca_points_patch_loaded();
	cost = ca_clock_thread_cpu() - before;
	/* Code that is in no file, as a JIT compiler's, stays unknown however often one looks. */
	last = found || change ? RESCAN : last < LONGEST_PATIENCE ? 2 * last : last;
	atomic_store_explicit(&patience, last > COST * cost ? last : COST * cost, memory_order_relaxed);
	cost *= COST_CHANGING;
	atomic_store_explicit(&patience_changing, cost > RESCAN ? cost : RESCAN, memory_order_relaxed);
}

void ca_points_follow(uint64_t now, bool lost)
{
	uint64_t since = atomic_load_explicit(&changing, memory_order_relaxed);

	if (since) {
		/* opening takes its time: several looks, then it is over */
		uint64_t pause = atomic_load_explicit(&patience_changing, memory_order_relaxed);

		if (turn(&last_scan, now, pause))
			scan(true);
		if (now > since + CHANGE_LASTS && now > since + pause) /* it was looked for since */
			atomic_compare_exchange_strong(&changing, &since, 0);
	} else if (lost && turn(&last_scan, now, atomic_load_explicit(&patience, memory_order_relaxed))) {
		scan(false);
	} else if (ca_requested_changed()) {
		forget_points();
		ca_points_patch_loaded();
	} else if (atomic_load_explicit(&waiting_for_index, memory_order_relaxed) &&
		   turn(&last_patch, now, REPATCH)) {
		ca_points_patch_loaded();
	}
}

void ca_points_libraries_change(void)
{
	if (ca_rt.session && atomic_load_explicit(&ca_rt.on, memory_order_relaxed))
		atomic_store_explicit(&changing, ca_clock_now(), memory_order_relaxed);
}

void ca_points_libraries_left(void)
{
	int saved = errno;

	if (!ca_rt.session || !atomic_load_explicit(&ca_rt.on, memory_order_relaxed))
		return;
	/* at once: what is opened next may lie in the same place, and be only half there */
	ca_modules_scan();
	ca_points_libraries_change();
	errno = saved;
}

/* ---- visits of nobody's ------------------------------------------------------------------*/
/* What of ca_patch_nobody has been reported already. The counts themselves are never set back: their
 * owners add to them without a lock. */
static _Atomic uint64_t told[CA_MAX_POINTS];

void ca_points_collect(void)
{
	struct ca_session *s = ca_rt.session;
	uint32_t used = atomic_load_explicit(&s->points_used, memory_order_relaxed);

	for (uint32_t i = 0; i < used && i < CA_MAX_POINTS; i++) {
		uint64_t count = __atomic_load_n(&ca_patch_nobody[i], __ATOMIC_RELAXED);
		uint64_t before = atomic_load_explicit(&told[i], memory_order_relaxed);

		if (count > before && atomic_compare_exchange_strong(&told[i], &before, count))
			atomic_fetch_add_explicit(&s->point[i].shared, count - before, memory_order_relaxed);
	}
}

/* By the constructors of what has events of causal_trace.h. A library that was opened just now is not
 * known yet; in time it would be found, but its first events would be missing. Or a tick has found it while it was
 * being loaded: the loader sets its data to zeros last. */
CA_EXPORT void causal_trace_loaded_(void (*code)(void))
{
	struct ca_loaded *l;
	int saved = errno;

	if (!ca_rt.names || !atomic_load_explicit(&ca_rt.on, memory_order_relaxed))
		return;
	l = ca_modules_find((uintptr_t)code);
	if (!l || !l->ready) {
		if (l)
			l->events = false;
		else
			ca_modules_scan();
		ca_points_patch_loaded();
		if (l || (l = ca_modules_find((uintptr_t)code)))
			l->ready = true;
	}
	errno = saved;
}
