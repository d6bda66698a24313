/* Progress points of the command line; see progress.h.
 *
 * Sites are planned here and put in place by the runtime. One site may count for several points:
 * two names for one place, or a place so near to another that both are displaced by one jump. */
#include "causal/points/requested.h"
#include "binary/plan/plan.h"
#include "causal/points/point_name.h"
#include "core/point.h"
#include "core/session.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { JUMP_LENGTH = 5, FUNCTION_RANGES = 16 };

/* One use of --progress: a throughput point, or the two of a latency. */
struct point {
	char *label;
	struct ca_point_name name[2]; /* the second one: where it ends */
	bool latency;
	/* by the indexing thread */
	_Atomic unsigned found[2], counted[2]; /* places */
	_Atomic(const char *) why;             /* the last one that is not counted; static text */
};
struct ca_requested {
	pthread_mutex_t lock; /* guards point[], n and the work on them; innermost */
	struct point *point;
	size_t n;
	const struct ca_scope *scope;
	struct ca_session *session;
	int64_t first_row; /* of names that are tried out; -1: they have rows of their own */
};

/* ---- reading ------------------------------------------------------------------------------*/
static enum ca_status parse_latency(struct point *p, const char *text, struct ca_err *err)
{
	char *begin = strdup(text + strlen("begin=")), *end = begin ? strstr(begin, ",end=") : NULL;
	enum ca_status status;

	if (!end) {
		free(begin);
		return ca_err_set(err, CA_ERR_USAGE, "-P '%s': write begin=A,end=B", text);
	}
	*end = '\0';
	p->latency = true;
	status = ca_point_name_parse(&p->name[0], begin, err);
	if (status == CA_OK)
		status = ca_point_name_parse(&p->name[1], end + strlen(",end="), err);
	free(begin);
	return status;
}

enum ca_requested_mode ca_requested_mode(const char *names)
{
	return !*names || !strcmp(names, "auto") ? CA_REQUESTED_AUTO :
	       !strcmp(names, "ask")		 ? CA_REQUESTED_ASK :
	       !strcmp(names, "none")		 ? CA_REQUESTED_NONE :
						   CA_REQUESTED_NAMED;
}

static enum ca_status add_point(struct ca_requested *progress, const char *text, struct ca_err *err)
{
	struct point *more, *p;

	if (ca_requested_mode(text) != CA_REQUESTED_NAMED)
		return ca_err_set(err, CA_ERR_USAGE, "-P '%s' stands alone; a function of that name is '^%s$'",
				  text, text);
	more = realloc(progress->point, (progress->n + 1) * sizeof *more);
	if (!more)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	progress->point = more;
	for (size_t i = 0; i < progress->n; i++)
		if (!strcmp(more[i].label, text))
			return CA_OK;
	p = &more[progress->n];
	memset(p, 0, sizeof *p);
	p->label = strdup(text);
	if (!p->label)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	progress->n++;
	return strncmp(text, "begin=", 6) ? ca_point_name_parse(&p->name[0], text, err) :
					    parse_latency(p, text, err);
}

enum ca_status ca_requested_new(struct ca_requested **progress, const char *names,
			       const struct ca_scope *scope, struct ca_err *err)
{
	struct ca_requested *p = calloc(1, sizeof *p);
	enum ca_status status;

	if (!p)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	pthread_mutex_init(&p->lock, NULL);
	status = ca_requested_mode(names) == CA_REQUESTED_NAMED ? ca_requested_add(p, names, err) : CA_OK;
	if (status != CA_OK) {
		ca_requested_free(p);
		return status;
	}
	p->scope = scope;
	p->first_row = -1;
	*progress = p;
	return CA_OK;
}

enum ca_status ca_requested_add(struct ca_requested *p, const char *names, struct ca_err *err)
{
	char *copy = strdup(names), *rest = NULL;
	enum ca_status status = copy ? CA_OK : ca_err_set(err, CA_ERR_NOMEM, "out of memory");

	pthread_mutex_lock(&p->lock);
	for (char *text = copy ? strtok_r(copy, ";\t\n", &rest) : NULL; text && status == CA_OK;
	     text = strtok_r(NULL, ";\t\n", &rest))
		status = add_point(p, text, err);
	pthread_mutex_unlock(&p->lock);
	free(copy);
	return status;
}

void ca_requested_free(struct ca_requested *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++) {
		free(p->point[i].label);
		ca_point_name_fini(&p->point[i].name[0]);
		ca_point_name_fini(&p->point[i].name[1]);
	}
	free(p->point);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static unsigned names_of(const struct point *p)
{
	return p->latency ? 2 : 1;
}

/* ---- before and after ---------------------------------------------------------------------*/
/* It may be in another binary than the command's own. */
static bool may_be_elsewhere(const struct ca_point_name *name, bool others)
{
	return name->binary || name->kind == CA_POINT_NAME_PROBE || others;
}

static void describe(const struct ca_point_name *name, const struct ca_index *index, const char *path,
		     char *buffer, size_t size)
{
	char near[256];

	if (ca_point_name_near(name, index, near, sizeof near))
		snprintf(buffer, size, "progress point '%s': not in %s; did you mean %s?", name->text, path,
			 near);
	else if (name->kind == CA_POINT_NAME_LINE && !ca_index_has_lines(index))
		snprintf(buffer, size, "progress point '%s': %s has no debug information, which lines need: "
			 "compile it with -g, or name a function", name->text, path);
	else
		snprintf(buffer, size, "progress point '%s': not in %s; -P list shows what is", name->text,
			 path);
}

enum ca_status ca_requested_check(const struct ca_requested *progress, const struct ca_index *index,
				 const char *path, bool others,
				 void (*tell)(void *context, const char *text), void *context,
				 struct ca_err *err)
{
	size_t missing = 0;
	char text[512] = "";

	for (size_t i = 0; i < progress->n; i++) {
		const struct point *p = &progress->point[i];
		bool lacks = false;

		for (unsigned k = 0; k < names_of(p); k++) {
			const struct ca_point_name *name = &p->name[k];
			bool applies = ca_point_name_applies(name, path, true, false);

			if (lacks || (applies && ca_point_name_found(name, index)) ||
			    (!applies || may_be_elsewhere(name, others)))
				continue;
			lacks = true;
			if (*text && tell)
				tell(context, text);
			describe(name, index, path, text, sizeof text);
		}
		missing += lacks;
	}
	if (missing && missing == progress->n)
		return ca_err_set(err, CA_ERR_USAGE, "%s", text);
	if (*text && tell)
		tell(context, text);
	return CA_OK;
}

void ca_requested_join(struct ca_requested *progress, struct ca_session *session, bool others)
{
	progress->session = session;
	session->requested_anywhere = progress->n && others;
	for (size_t i = 0; i < progress->n; i++)
		for (unsigned k = 0; k < names_of(&progress->point[i]); k++) {
			const struct ca_point_name *name = &progress->point[i].name[k];

			if (name->binary || name->kind == CA_POINT_NAME_PROBE)
				session->requested_anywhere = 1;
		}
}

void ca_requested_try(struct ca_requested *progress, struct ca_session *session, uint32_t first_row)
{
	progress->session = session;
	progress->first_row = first_row;
}

static bool wants(const struct ca_requested *progress, const char *path, bool main)
{
	for (size_t i = 0; i < progress->n; i++)
		for (unsigned k = 0; k < names_of(&progress->point[i]); k++) {
			const struct ca_point_name *name = &progress->point[i].name[k];

			if (name->kind != CA_POINT_NAME_PROBE && ca_point_name_applies(name, path, main, false))
				return true;
		}
	return false;
}

bool ca_requested_wants(struct ca_requested *progress, const char *path, bool main)
{
	bool any;

	pthread_mutex_lock(&progress->lock);
	any = wants(progress, path, main);
	pthread_mutex_unlock(&progress->lock);
	return any;
}

void ca_requested_report(const struct ca_requested *progress,
			void (*tell)(void *context, const char *text), void *context)
{
	char text[512];

	for (size_t i = 0; i < progress->n; i++) {
		struct point *p = &progress->point[i];

		for (unsigned k = 0; k < names_of(p); k++) {
			const char *why = atomic_load(&p->why);

			if (atomic_load(&p->counted[k]) && !why)
				continue;
			if (!atomic_load(&p->found[k]))
				snprintf(text, sizeof text, "progress point '%s' was in no binary that the run "
					 "loaded", p->name[k].text);
			else
				snprintf(text, sizeof text, "progress point '%s': %u of %u places are not "
					 "counted: %s", p->name[k].text,
					 atomic_load(&p->found[k]) - atomic_load(&p->counted[k]),
					 atomic_load(&p->found[k]), why ? why : "");
			if (atomic_load(&p->found[k]) != atomic_load(&p->counted[k]) || !atomic_load(&p->found[k]))
				tell(context, text);
		}
	}
}

/* ---- sites --------------------------------------------------------------------------------*/
/* A place and the point that it counts for. */
struct visit {
	struct ca_point_place place;
	uint32_t row;      /* in the session's table */
	struct point *owner; /* NULL: a macro's own point that lies under another one */
	unsigned which;
	bool returns;      /* not the place, but where its function returns */
};
struct work {
	struct ca_requested *progress;
	const struct ca_index *index;
	uint32_t module;
	struct ca_plan *plan;
	struct ca_line_entries *starts;
	struct visit *visit;
	size_t visits;
	struct ca_site site[CA_MAX_REQUESTED];
	size_t sites;
};

static bool add_visit(struct work *w, struct visit visit)
{
	if (!(w->visits & (w->visits - 1))) {
		struct visit *more = realloc(w->visit, (w->visits ? 2 * w->visits : 1) * sizeof *more);

		if (!more)
			return false;
		w->visit = more;
	}
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
static int64_t row_of(struct ca_requested *progress, const struct point *p, enum ca_point_kind kind)
{
	struct ca_progress_point *row;

	if (progress->first_row >= 0)
		return progress->first_row + (p - progress->point);
	row = ca_point_get(progress->session, kind, p->label);
	return row ? row - progress->session->point : -1;
}

static void collect(struct work *w, struct point *p, unsigned which)
{
	enum ca_point_kind kind = !p->latency ? CA_POINT_THROUGHPUT : which ? CA_POINT_END : CA_POINT_BEGIN;
	const struct ca_point_name *name = &p->name[which];
	struct ca_point_places places;
	int64_t row;

	if (!ca_point_name_places(name, w->index, w->starts, &places)) {
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
	static const struct {
		const char *provider;
		enum ca_point_kind kind;
	} macros[] = { { "causal", CA_POINT_THROUGHPUT },
		       { "causal_begin", CA_POINT_BEGIN },
		       { "causal_end", CA_POINT_END } };
	size_t named = w->visits;

	for (size_t k = 0; k < ca_index_probes(w->index); k++) {
		struct ca_progress_point *row;
		struct ca_index_probe probe;
		bool here = false;

		ca_index_probe_at(w->index, k, &probe);
		for (size_t i = 0; i < named && !here; i++)
			here = w->visit[i].place.address == probe.address && !w->visit[i].returns;
		for (size_t m = 0; m < sizeof macros / sizeof macros[0] && here; m++) {
			if (strcmp(probe.provider, macros[m].provider) ||
			    !(row = ca_point_get(w->progress->session, macros[m].kind, probe.name)))
				continue;
			add_visit(w, (struct visit){ .place = { .address = probe.address },
						     .row = (uint32_t)(row - w->progress->session->point) });
		}
	}
}

/* A latency needs to know when its ends are passed. */
static uint8_t hook_kind(const struct work *w, uint32_t row)
{
	return w->progress->first_row >= 0 || w->progress->session->point[row].kind == CA_POINT_THROUGHPUT ?
		       CA_SITE_COUNT :
		       CA_SITE_STAMP;
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
	if (ca_plan_function(w->plan, w->module, range, ranges_of(w, v, range, FUNCTION_RANGES), plan, CA_MAX_SITES, &n,
			     NULL) != CA_OK) {
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
			done(v, there ? "other points are too near" : "there are too many places");
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

	*why = "other points are too near";
	if (there)
		return add_hook(there, address, row, hook_kind(w, row));
	*why = "there are too many places";
	if (w->sites == CA_MAX_REQUESTED)
		return false;
	*why = "its code cannot be patched";
	if (ca_plan_count(w->plan, w->module, address, row, site, NULL) != CA_OK)
		return false;
	site->hook[0].kind = hook_kind(w, row);
	*why = "other points are too near";
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

	if (ca_plan_function(w->plan, w->module, range, ranges_of(w, v, range, FUNCTION_RANGES), plan, CA_MAX_SITES, &n,
			     NULL) != CA_OK)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (plan[i].kind == CA_SITE_ENTER && plan[i].address >= v->place.low &&
		    plan[i].address <= v->place.low + 4)
			at = plan[i].address + plan[i].length;
	if (!at || !ca_line_entries_straight(w->starts, v->place.low, v->place.high, v->place.address, at) ||
	    ca_plan_count(w->plan, w->module, at, v->row, &count, NULL) != CA_OK || count.length < JUMP_LENGTH)
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

static bool is_named(const struct ca_requested *progress, const struct ca_index *index,
		     const struct ca_module *m, bool in_scope)
{
	for (size_t i = 0; i < progress->n; i++)
		for (unsigned k = 0; k < names_of(&progress->point[i]); k++)
			if (ca_point_name_applies(&progress->point[i].name[k], m->path, m->main, in_scope) &&
			    ca_point_name_found(&progress->point[i].name[k], index))
				return true;
	return false;
}

/* All sites of a module; NULL: none. To be freed. */
static struct work *plan_module(struct ca_requested *progress, const struct ca_index *index, uint32_t module)
{
	const struct ca_module *m = &progress->session->module[module];
	bool in_scope = ca_scope_has_binary(progress->scope, m->path, m->main);
	struct work *w;

	if (!is_named(progress, index, m, in_scope) || !(w = calloc(1, sizeof *w)))
		return NULL;
	w->progress = progress;
	w->index = index;
	w->module = module;
	if (ca_plan_open(&w->plan, m->path, NULL) == CA_OK && ca_line_entries_open(&w->starts, m->path, NULL) == CA_OK) {
		for (size_t i = 0; i < progress->n; i++)
			for (unsigned k = 0; k < names_of(&progress->point[i]); k++)
				if (ca_point_name_applies(&progress->point[i].name[k], m->path, m->main, in_scope))
					collect(w, &progress->point[i], k);
		if (progress->first_row < 0)
			add_macros(w);
		place_all(w);
	}
	ca_line_entries_close(w->starts);
	ca_plan_close(w->plan);
	free(w->visit);
	return w;
}

void ca_requested_index(struct ca_requested *progress, const struct ca_index *index, uint32_t module)
{
	struct work *w;

	pthread_mutex_lock(&progress->lock);
	w = plan_module(progress, index, module);
	if (w)
		publish(w);
	pthread_mutex_unlock(&progress->lock);
	free(w);
}

size_t ca_requested_sites(struct ca_requested *progress, const struct ca_index *index, uint32_t module,
			 struct ca_site *out, size_t max)
{
	struct work *w;
	size_t n = 0;

	pthread_mutex_lock(&progress->lock);
	w = plan_module(progress, index, module);
	for (size_t i = 0; w && i < w->sites && n < max; i++) {
		out[n] = w->site[i];
		out[n].kind = CA_SITE_TRIAL;
		out[n++].flags |= CA_SITE_NO_TRAP;
	}
	pthread_mutex_unlock(&progress->lock);
	free(w);
	return n;
}
