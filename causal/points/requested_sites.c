/* SPDX-License-Identifier: MIT */
/* The sites that count the visits of requested progress points; see requested.h.
 *
 * Sites are planned here and put in place by the runtime. One site may count for several points:
 * two names for one place, or a place so near to another that both are displaced by one jump. */
#include "binary/plan/line_entries.h"
#include "binary/plan/plan.h"
#include "causal/points/point_places.h"
#include "causal/points/requested_parts.h"
#include "core/point.h"
#include "core/session.h"
#include "core/vec.h"
#include <stdlib.h>
#include <string.h>

enum { JUMP_LENGTH = 5, FUNCTION_RANGES = 16 };

/* A place and the point that it counts for. */
struct visit {
	struct ca_point_place place;
	uint32_t row;                     /* in the session's table */
	struct ca_requested_point *owner; /* NULL: a macro's own point that lies under another one */
	unsigned which;
	bool returns; /* not the place, but where its function returns */
};
struct work {
	struct ca_requested *progress;
	const struct ca_index *index;
	uint32_t module;
	struct ca_text *text;
	struct visit *visit;
	size_t visits;
	struct ca_site site[CA_MAX_REQUESTED];
	size_t sites;
};

static bool add_visit(struct work *w, struct visit visit)
{
	struct visit *more = ca_vec_more(w->visit, w->visits, sizeof *more);

	if (!more)
		return false;
	w->visit = more;
	w->visit[w->visits++] = visit;
	return true;
}

static void done(const struct visit *v, const char *why)
{
	if (!v->owner)
		return;
	if (why)
		atomic_store(&v->owner->why, why);
	else
		atomic_fetch_add(&v->owner->counted[v->which], 1);
}

/* The row that counts for a point; -1: there are too many. */
static int64_t row_of(struct ca_requested *progress, const struct ca_requested_point *p,
		      enum ca_point_kind kind)
{
	struct ca_progress_point *row;

	if (progress->first_row >= 0)
		return progress->first_row + (p - progress->point);
	row = ca_point_get(progress->session, kind, p->label);
	return row ? row - progress->session->point : -1;
}

static void collect(struct work *w, struct ca_requested_point *p, unsigned which)
{
	enum ca_point_kind kind = !p->latency ? CA_POINT_THROUGHPUT : which ? CA_POINT_END : CA_POINT_BEGIN;
	const struct ca_point_name *name = &p->name[which];
	struct ca_point_places places;
	int64_t row;

	if (!ca_point_places_find(name, w->index, w->text, &places)) {
		free(places.place);
		return;
	}
	atomic_fetch_add(&p->found[which], (unsigned)places.n);
	row = row_of(w->progress, p, kind);
	if (row < 0)
		atomic_store(&p->why, "there are too many progress points");
	for (size_t i = 0; i < places.n && row >= 0; i++)
		add_visit(w, (struct visit){ .place = places.place[i],
					     .row = (uint32_t)row,
					     .owner = p,
					     .which = which,
					     .returns = which && name->kind == CA_POINT_NAME_FUNCTION });
	free(places.place);
}

/* A macro's point at a place that is patched here can no longer be placed by the runtime. */
static void add_macros(struct work *w)
{
	size_t named = w->visits;

	for (size_t k = 0; k < ca_index_probes(w->index); k++) {
		struct ca_progress_point *row;
		struct ca_index_probe probe;
		enum ca_point_kind kind;
		bool here = false;

		ca_index_probe_at(w->index, k, &probe);
		kind = ca_point_kind_of(probe.provider);
		for (size_t i = 0; i < named && !here; i++)
			here = w->visit[i].place.address == probe.address && !w->visit[i].returns;
		if (!here || !kind || !(row = ca_point_get(w->progress->session, kind, probe.name)))
			continue;
		add_visit(w, (struct visit){ .place = { .address = probe.address },
					     .row = (uint32_t)(row - w->progress->session->point) });
	}
}

/* A latency needs to know when its ends are passed, a rate when visits are few. */
static uint8_t hook_kind(const struct work *w, uint32_t row)
{
	if (w->progress->first_row >= 0) /* candidates: many, hot ones among them */
		return CA_SITE_COUNT;
	return w->progress->session->point[row].kind == CA_POINT_THROUGHPUT ? CA_SITE_VISIT : CA_SITE_STAMP;
}

/* Count for another point at an instruction that a site displaces. False: not one of its
 * instructions, or no room. */
static bool add_hook(struct ca_site *site, uint64_t address, uint32_t row, uint8_t kind)
{
	unsigned at = 0, i;

	if (address != site->address) {
		for (i = 0; i < site->insns && site->address + site->insn[i].offset != address; i++)
			;
		if (i == site->insns)
			return false;
		at = site->insn[i].at;
	}
	for (i = 0; i < site->hooks; i++)
		if (site->hook[i].at == at &&
		    (site->hook[i].point ? site->hook[i].point - 1u : site->point) == row)
			return true;
	if (site->hooks == CA_SITE_HOOKS)
		return false;
	for (i = site->hooks; i > 0 && site->hook[i - 1].at > at; i--)
		site->hook[i] = site->hook[i - 1];
	site->hook[i].at = (uint8_t)at;
	site->hook[i].kind = kind;
	site->hook[i].point = (uint8_t)(row + 1);
	site->hooks++;
	site->flags &= (uint8_t)~CA_SITE_FLAGS_DEAD; /* that was said of the site's start */
	return true;
}

static struct ca_site *site_at(struct work *w, uint64_t low, uint64_t high)
{
	for (size_t i = 0; i < w->sites; i++)
		if (w->site[i].address < high && low < w->site[i].address + w->site[i].length)
			return &w->site[i];
	return NULL;
}

/* All ranges of the place's function; returns how many. */
static size_t ranges_of(const struct work *w, const struct visit *v, struct ca_range *range, size_t max)
{
	struct ca_index_span span[FUNCTION_RANGES];
	size_t n = ca_index_function_ranges(w->index, v->place.function, span, FUNCTION_RANGES);

	n = n < FUNCTION_RANGES ? n : FUNCTION_RANGES;
	n = n < max ? n : max;
	for (size_t i = 0; i < n; i++)
		range[i] = (struct ca_range){ .module = w->module, .low = span[i].low, .high = span[i].high };
	return n;
}

/* Every way out of the function: exits as they are planned for S, but counting. */
static void place_returns(struct work *w, const struct visit *v)
{
	static _Thread_local struct ca_site plan[CA_MAX_SITES];
	struct ca_range range[FUNCTION_RANGES];
	size_t n = 0, before = w->sites;

	if (!v->place.entry) {
		done(v, "it is inlined there: name a line that ends it");
		return;
	}
	if (ca_plan_function_tight(w->text, w->module, range, ranges_of(w, v, range, FUNCTION_RANGES), plan,
				   CA_MAX_SITES, &n, NULL) != CA_OK) {
		done(v, "not all of its returns can be patched: name a line that ends it");
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct ca_site *there = site_at(w, plan[i].address, plan[i].address + plan[i].length);

		if (plan[i].kind != CA_SITE_EXIT)
			continue;
		plan[i].kind = CA_SITE_COUNT;
		plan[i].point = v->row;
		for (unsigned h = 0; h < plan[i].hooks; h++)
			plan[i].hook[h].kind = hook_kind(w, v->row);
		if (there && there->address == plan[i].address && there->length == plan[i].length &&
		    there->hooks < CA_SITE_HOOKS) {
			/* another latency that ends here: the same site, one hook more */
			there->hook[there->hooks] = there->hook[there->hooks - 1];
			there->hook[there->hooks].kind = hook_kind(w, v->row);
			there->hook[there->hooks++].point = (uint8_t)(v->row + 1);
		} else if (there || w->sites == CA_MAX_REQUESTED) {
			done(v, there ? "another point is too near" : "there are too many places");
			w->sites = before;
			return;
		} else {
			w->site[w->sites++] = plan[i];
		}
	}
	done(v, NULL);
}

static bool push_count(struct work *w, uint64_t address, uint32_t row, const char **why)
{
	struct ca_site *there = site_at(w, address, address + 1), *site = &w->site[w->sites];

	*why = "another point is too near";
	if (there)
		return add_hook(there, address, row, hook_kind(w, row));
	*why = "there are too many places";
	if (w->sites == CA_MAX_REQUESTED)
		return false;
	*why = "its code cannot be patched";
	if (ca_plan_count(w->text, w->module, address, row, site, NULL) != CA_OK)
		return false;
	site->hook[0].kind = hook_kind(w, row);
	*why = "another point is too near";
	if (site_at(w, address, address + site->length))
		return false;
	w->sites++;
	return true;
}

/* A function that is selected needs its first bytes itself: count behind them, where whoever
 * enters passes next. 0: there is no such place. */
static uint64_t behind_entry(struct work *w, const struct visit *v)
{
	static _Thread_local struct ca_site plan[CA_MAX_SITES];
	struct ca_range range[FUNCTION_RANGES];
	struct ca_site count, *there;
	uint64_t at = 0;
	size_t n = 0;

	if (ca_plan_function_tight(w->text, w->module, range, ranges_of(w, v, range, FUNCTION_RANGES), plan,
				   CA_MAX_SITES, &n, NULL) != CA_OK)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (plan[i].kind == CA_SITE_ENTER && plan[i].address >= v->place.low &&
		    plan[i].address <= v->place.low + 4)
			at = plan[i].address + plan[i].length;
	if (!at || !ca_line_entries_straight(w->text, v->place.low, v->place.high, v->place.address, at) ||
	    ca_plan_count(w->text, w->module, at, v->row, &count, NULL) != CA_OK ||
	    count.length < JUMP_LENGTH)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (plan[i].address < at + count.length && at < plan[i].address + plan[i].length)
			return 0;
	there = site_at(w, at, at + count.length);
	return !there || there->address == at ? at : 0;
}

static void place_count(struct work *w, const struct visit *v)
{
	struct ca_site *there = site_at(w, v->place.address, v->place.address + 1);
	const char *why;
	uint64_t at;

	if (!there && v->owner && v->place.entry && (at = behind_entry(w, v)) &&
	    push_count(w, at, v->row, &why))
		done(v, NULL);
	else if (push_count(w, v->place.address, v->row, &why))
		done(v, NULL);
	else
		done(v, why);
}

static int by_address(const void *a, const void *b)
{
	const struct visit *x = a, *y = b;

	if (x->place.address != y->place.address)
		return x->place.address < y->place.address ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

/* Returns first: there the planner decides how far back a site reaches. */
static void place_all(struct work *w)
{
	if (w->visits)
		qsort(w->visit, w->visits, sizeof *w->visit, by_address);
	for (size_t i = 0; i < w->visits; i++)
		if (w->visit[i].returns)
			place_returns(w, &w->visit[i]);
	for (size_t i = 0; i < w->visits; i++)
		if (!w->visit[i].returns)
			place_count(w, &w->visit[i]);
}

static void publish(const struct work *w)
{
	struct ca_session *s = w->progress->session;
	uint32_t used = atomic_load_explicit(&s->requested_used, memory_order_relaxed);

	for (size_t i = 0; i < w->sites && used < CA_MAX_REQUESTED; i++)
		s->requested[used++] = w->site[i];
	/* release: the runtimes acquire it before they read the sites */
	atomic_store_explicit(&s->requested_used, used, memory_order_release);
}

static bool is_named(const struct ca_requested *progress, const struct ca_index *index, uint32_t module)
{
	const struct ca_module *m = &progress->session->module[module];
	bool in_scope = ca_scope_has_binary(progress->scope, m->path, m->main);

	for (size_t i = 0; i < progress->n; i++)
		for (unsigned k = 0; k < ca_requested_parts_names(&progress->point[i]); k++)
			if (ca_requested_parts_apply(progress, &progress->point[i].name[k], m->path, m->main,
						     in_scope) &&
			    ca_point_places_any(&progress->point[i].name[k], index))
				return true;
	return false;
}

bool ca_requested_is_named(struct ca_requested *progress, const struct ca_index *index, uint32_t module)
{
	bool named;

	pthread_mutex_lock(&progress->lock);
	named = is_named(progress, index, module);
	pthread_mutex_unlock(&progress->lock);
	return named;
}

/* All sites of a module; NULL: none. To be freed. */
static struct work *plan_module(struct ca_requested *progress, const struct ca_index *index,
				struct ca_text *text, uint32_t module)
{
	const struct ca_module *m = &progress->session->module[module];
	bool in_scope = ca_scope_has_binary(progress->scope, m->path, m->main);
	struct work *w = text ? calloc(1, sizeof *w) : NULL;

	if (!w)
		return NULL;
	w->progress = progress;
	w->index = index;
	w->module = module;
	w->text = text;
	for (size_t i = 0; i < progress->n; i++)
		for (unsigned k = 0; k < ca_requested_parts_names(&progress->point[i]); k++)
			if (ca_requested_parts_apply(progress, &progress->point[i].name[k], m->path, m->main,
						     in_scope))
				collect(w, &progress->point[i], k);
	if (progress->first_row < 0)
		add_macros(w);
	place_all(w);
	free(w->visit);
	return w;
}

void ca_requested_index(struct ca_requested *progress, const struct ca_index *index, struct ca_text *text,
			uint32_t module)
{
	struct work *w;

	pthread_mutex_lock(&progress->lock);
	w = plan_module(progress, index, text, module);
	if (w)
		publish(w);
	pthread_mutex_unlock(&progress->lock);
	free(w);
}

size_t ca_requested_sites(struct ca_requested *progress, const struct ca_index *index, struct ca_text *text,
			  uint32_t module, struct ca_site *out, size_t max)
{
	struct work *w;
	size_t n = 0;

	pthread_mutex_lock(&progress->lock);
	w = plan_module(progress, index, text, module);
	for (size_t i = 0; w && i < w->sites && n < max; i++) {
		out[n] = w->site[i];
		out[n].kind = CA_SITE_TRIAL;
		out[n++].flags |= CA_SITE_NO_TRAP;
	}
	pthread_mutex_unlock(&progress->lock);
	free(w);
	return n;
}

static bool planner_wants(void *context, const char *path, bool main)
{
	return ca_requested_wants(context, path, main);
}

static bool planner_is_named(void *context, const struct ca_index *index, uint32_t module)
{
	return ca_requested_is_named(context, index, module);
}

static void planner_index(void *context, const struct ca_index *index, struct ca_text *text, uint32_t module)
{
	ca_requested_index(context, index, text, module);
}

struct ca_objects_planner ca_requested_planner(struct ca_requested *progress)
{
	return (struct ca_objects_planner){ planner_wants, planner_is_named, planner_index, progress };
}
