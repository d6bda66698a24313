/* SPDX-License-Identifier: MIT */
/* The scope that follows the samples; see follow.h.
 *
 * A sample counts for the object of its innermost frame; if that is one which is left out (libc), it
 * speaks for the nearest caller outside of those, too: regions count callers' frames, so a library
 * that spends its time in memcpy has as much to offer as one with loops of its own. */
#include "causal/conductor/follow.h"
#include "core/event.h"
#include "core/path.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ca_follow_fini(struct ca_follow *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->object[i].path);
		free(f->object[i].called);
	}
	free(f->object);
	memset(f, 0, sizeof *f);
}

struct ca_follow_object *ca_follow_find(const struct ca_follow *f, const char *path)
{
	for (size_t i = 0; i < f->n; i++)
		if (!strcmp(f->object[i].path, path))
			return &f->object[i];
	return NULL;
}

static const char *why_useless(const char *path)
{
	return !strcmp(path, CA_KERNEL)  ? "counts for the code that calls it"
	       : !strcmp(path, CA_MADE)  ? "counts for the code that calls it; causal sample has its names"
	       : ca_path_is_openmp(path) ? "OpenMP's threads, which wait for each other there"
					 : NULL;
}

void ca_follow_add(struct ca_follow *f, const char *path, bool main, uint64_t own, uint64_t through)
{
	struct ca_follow_object *object = ca_follow_find(f, path);

	if (!object) {
		object = realloc(f->object, (f->n + 1) * sizeof *object);
		if (!object)
			return;
		f->object = object;
		object += f->n;
		*object = (struct ca_follow_object){
			.path = strdup(path),
			.useless = why_useless(path),
		};
		if (!object->path)
			return;
		f->n++;
	}
	object->main |= main;
	object->own += own;
	object->through += through;
	f->total += own;
}

void ca_follow_call(struct ca_follow *f, const char *path, const char *called)
{
	struct ca_follow_object *object = ca_follow_find(f, path);

	if (object && !object->called && strcmp(ca_path_base(path), ca_path_base(called)) != 0)
		object->called = strdup(called);
}

const char *ca_follow_name(const struct ca_follow_object *o)
{
	return o->called ? o->called : o->path;
}

static bool is_much(const struct ca_follow *f, uint64_t samples)
{
	return samples > 1 && 100 * samples >= CA_FOLLOW_PERCENT * f->total;
}

bool ca_follow_decide(struct ca_follow *f, const struct ca_scope *scope)
{
	bool more = false;

	f->decided = true;
	for (size_t i = 0; i < f->n; i++) {
		struct ca_follow_object *o = &f->object[i];

		if (o->main || o->taken || o->useless || !is_much(f, o->own + o->through) ||
		    ca_scope_use_of(scope, o->path) != CA_SCOPE_MAY_TAKE)
			continue;
		o->taken = more = true;
	}
	return more;
}

/* ---- the line ----------------------------------------------------------------------------*/
enum ca_follow_part ca_follow_part(const struct ca_follow *f, const struct ca_scope *scope,
				   const struct ca_follow_object *o)
{
	enum ca_scope_use use = ca_scope_use_of(scope, o->path);

	if (o->main)
		return ca_scope_has_binary(scope, o->path, true) && 100 * o->own >= f->total
			       ? CA_FOLLOW_IN_SCOPE
			       : CA_FOLLOW_NOT_NAMED;
	if (o->taken && !o->useless && use == CA_SCOPE_MAY_TAKE)
		return CA_FOLLOW_IN_SCOPE;
	return is_much(f, o->own) && (o->useless || use != CA_SCOPE_MAY_TAKE) ? CA_FOLLOW_LEFT_OUT
									      : CA_FOLLOW_NOT_NAMED;
}

double ca_follow_share(const struct ca_follow *f, const struct ca_follow_object *o)
{
	return f->total ? 100.0 * (double)o->own / (double)f->total : 0;
}

struct text {
	char *at;
	size_t room;
};

static void put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->at, t->room, format, args);
	va_end(args);
	n = n < 0 ? 0 : (size_t)n < t->room ? n : (int)t->room - 1;
	t->at += n;
	t->room -= (size_t)n;
}

static void put_share(struct text *t, const struct ca_follow *f, const struct ca_follow_object *o)
{
	double percent = ca_follow_share(f, o);

	put(t, percent < 1 ? "%s <1 %%" : "%s %.0f %%", ca_path_base(ca_follow_name(o)), percent);
}

static int by_share(const void *a, const void *b)
{
	const struct ca_follow_object *x = *(void *const *)a, *y = *(void *const *)b;

	return x->own != y->own ? (x->own < y->own ? 1 : -1) : strcmp(x->path, y->path);
}

/* How to have what is left out all the same; -B replaces the whole scope. */
static void put_remedy(struct text *t, struct ca_follow_object **o, const enum ca_follow_part *part, size_t n,
		       const struct ca_scope *scope)
{
	char pattern[256];
	size_t left = 0;

	for (size_t i = 0; i < n; i++)
		left += part[i] == CA_FOLLOW_LEFT_OUT && !o[i]->useless &&
			ca_scope_use_of(scope, o[i]->path) == CA_SCOPE_LEAVE;
	if (!left)
		return;
	put(t, " (-B 'MAIN");
	for (size_t i = 0; i < n; i++)
		if (!o[i]->main && (part[i] == CA_FOLLOW_IN_SCOPE ||
				    (part[i] == CA_FOLLOW_LEFT_OUT && !o[i]->useless &&
				     ca_scope_use_of(scope, o[i]->path) == CA_SCOPE_LEAVE))) {
			ca_scope_pattern(o[i]->path, pattern, sizeof pattern);
			put(t, ";%s", pattern);
		}
	put(t, left > 1 ? "' adds them)" : "' adds it)");
}

static void put_line(struct text *t, const struct ca_follow *f, const struct ca_scope *scope,
		     struct ca_follow_object **o, const enum ca_follow_part *part)
{
	size_t in = 0, left = 0;

	put(t, "scope: ");
	for (size_t i = 0; i < f->n; i++)
		if (part[i] == CA_FOLLOW_IN_SCOPE) {
			put(t, in++ ? ", " : "");
			put_share(t, f, o[i]);
		}
	put(t, in ? " of the CPU samples" : "nothing");
	for (size_t i = 0; i < f->n; i++)
		if (part[i] == CA_FOLLOW_LEFT_OUT) {
			put(t, left++ ? ", " : "; left out: ");
			put_share(t, f, o[i]);
			if (o[i]->useless)
				put(t, " (%s)", o[i]->useless);
		}
	put_remedy(t, o, part, f->n, scope);
}

/* Else a line that names libraries alone could be read as if it were left out. */
static void name_an_executable(const struct ca_follow *f, const struct ca_scope *scope,
			       struct ca_follow_object **o, enum ca_follow_part *part)
{
	size_t main = f->n;

	for (size_t i = f->n; i-- > 0;)
		if (o[i]->main && ca_scope_has_binary(scope, o[i]->path, true))
			main = i;
	if (main < f->n)
		part[main] = CA_FOLLOW_IN_SCOPE;
}

bool ca_follow_tell(struct ca_follow *f, const struct ca_scope *scope, char *buffer, size_t size)
{
	struct ca_follow_object **o = calloc(f->n + 1, sizeof *o);
	enum ca_follow_part *part = calloc(f->n + 1, sizeof *part);
	struct text t = { buffer, size };
	bool news = false, settled = o && part && f->total;

	*buffer = '\0';
	for (size_t i = 0; i < f->n && settled; i++) {
		o[i] = &f->object[i];
		settled = !o[i]->taken || o[i]->settled;
	}
	if (settled)
		qsort(o, f->n, sizeof *o, by_share);
	for (size_t i = 0; i < f->n && settled; i++) {
		part[i] = ca_follow_part(f, scope, o[i]);
		if (!o[i]->main && !o[i]->told)
			news |= part[i] == CA_FOLLOW_IN_SCOPE || (part[i] == CA_FOLLOW_LEFT_OUT && !f->told);
		o[i]->told |= part[i] != CA_FOLLOW_NOT_NAMED;
	}
	if (news) {
		name_an_executable(f, scope, o, part);
		put_line(&t, f, scope, o, part);
		f->told = true;
	}
	free(o);
	free(part);
	return news;
}
