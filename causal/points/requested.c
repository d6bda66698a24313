/* SPDX-License-Identifier: MIT */
/* Progress points of the command line: reading them, and telling of those that were not found.
 * Their sites: requested_sites.c. */
#include "causal/points/point_places.h"
#include "causal/points/requested_parts.h"
#include "core/point.h"
#include "core/session.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ------------------------------------------------------------------------------*/
static enum ca_status parse_latency(struct ca_requested_point *p, const char *text, struct ca_err *err)
{
	char *begin = strdup(text + strlen("begin=")), *end = begin ? strstr(begin, ",end=") : NULL;
	enum ca_status status;

	if (!end) {
		free(begin);
		return ca_err_set(err, CA_ERR_USAGE, "-P '%s': a latency is written begin=A,end=B", text);
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
	return !*names || !strcmp(names, "auto") ? CA_REQUESTED_AUTO
	       : !strcmp(names, "ask")           ? CA_REQUESTED_ASK
	       : !strcmp(names, "none")          ? CA_REQUESTED_NONE
						 : CA_REQUESTED_NAMED;
}

static bool is_there(const struct ca_requested *progress, const char *label)
{
	for (size_t i = 0; i < progress->n; i++)
		if (!strcmp(progress->point[i].label, label))
			return true;
	return false;
}

/* A new point of that label, yet without names; NULL: no memory. */
static struct ca_requested_point *new_point(struct ca_requested *progress, const char *label)
{
	struct ca_requested_point *more = realloc(progress->point, (progress->n + 1) * sizeof *more);

	if (!more)
		return NULL;
	progress->point = more;
	more += progress->n;
	memset(more, 0, sizeof *more);
	more->label = strdup(label);
	progress->n += more->label != NULL;
	return more->label ? more : NULL;
}

static enum ca_status add_point(struct ca_requested *progress, const char *text, struct ca_err *err)
{
	struct ca_requested_point *p;

	if (ca_requested_mode(text) != CA_REQUESTED_NAMED)
		return ca_err_set(err, CA_ERR_USAGE,
				  "-P '%s' cannot be used with other names; for "
				  "a function of that name write '^%s$'",
				  text, text);
	if (is_there(progress, text))
		return CA_OK;
	p = new_point(progress, text);
	if (!p)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	return strncmp(text, "begin=", 6) ? ca_point_name_parse(&p->name[0], text, err)
					  : parse_latency(p, text, err);
}

enum ca_status ca_requested_new(struct ca_requested **progress, const char *names,
				const struct ca_scope *scope, struct ca_err *err)
{
	struct ca_requested *p = calloc(1, sizeof *p);
	enum ca_status status;

	if (!p)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	pthread_mutex_init(&p->lock, NULL);
	p->first_row = -1;
	status = ca_requested_mode(names) == CA_REQUESTED_NAMED ? ca_requested_add(p, names, err) : CA_OK;
	if (status != CA_OK) {
		ca_requested_free(p);
		return status;
	}
	p->scope = scope;
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

enum ca_status ca_requested_take(struct ca_requested *progress, struct ca_point_name *name,
				 struct ca_err *err)
{
	struct ca_requested_point *p = NULL;
	bool there;

	pthread_mutex_lock(&progress->lock);
	there = is_there(progress, name->text);
	if (!there)
		p = new_point(progress, name->text);
	if (p)
		p->name[0] = *name;
	else
		ca_point_name_fini(name);
	pthread_mutex_unlock(&progress->lock);
	return p || there ? CA_OK : ca_err_set(err, CA_ERR_NOMEM, "out of memory");
}

void ca_requested_free(struct ca_requested *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n && p->first_row < 0; i++) {
		free(p->point[i].label);
		ca_point_name_fini(&p->point[i].name[0]);
		ca_point_name_fini(&p->point[i].name[1]);
	}
	free(p->point);
	pthread_mutex_destroy(&p->lock);
	free(p);
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
		snprintf(buffer, size,
			 "progress point '%s': %s has no debug information, which lines need: "
			 "compile it with -g, or name a function",
			 name->text, path);
	else
		snprintf(buffer, size,
			 "progress point '%s': not in %s; -P list shows what there "
			 "is",
			 name->text, path);
}

enum ca_status ca_requested_check(const struct ca_requested *progress, const struct ca_index *index,
				  const char *path, bool others,
				  void (*tell)(void *context, const char *text), void *context,
				  struct ca_err *err)
{
	size_t missing = 0;
	char text[512] = "";

	for (size_t i = 0; i < progress->n; i++) {
		const struct ca_requested_point *p = &progress->point[i];
		bool lacks = false;

		for (unsigned k = 0; k < ca_requested_parts_names(p); k++) {
			const struct ca_point_name *name = &p->name[k];
			bool applies = ca_point_name_applies(name, path, true, false);

			if (lacks || (applies && ca_point_places_any(name, index)) ||
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
		for (unsigned k = 0; k < ca_requested_parts_names(&progress->point[i]); k++) {
			const struct ca_point_name *name = &progress->point[i].name[k];

			if (name->binary || name->kind == CA_POINT_NAME_PROBE)
				session->requested_anywhere = 1;
		}
}

struct ca_requested *ca_requested_try(const struct ca_point_name *const *name, size_t n,
				      const struct ca_scope *scope, struct ca_session *session,
				      uint32_t first_row)
{
	struct ca_requested *trial;

	if (ca_requested_new(&trial, "", scope, NULL) != CA_OK)
		return NULL;
	trial->point = calloc(n + 1, sizeof *trial->point);
	if (!trial->point) {
		ca_requested_free(trial);
		return NULL;
	}
	for (; trial->n < n; trial->n++)
		trial->point[trial->n].name[0] = *name[trial->n];
	trial->session = session;
	trial->first_row = first_row;
	return trial;
}

bool ca_requested_parts_apply(const struct ca_requested *progress, const struct ca_point_name *name,
			      const char *path, bool main, bool in_scope)
{
	const char *called = progress->session ? ca_module_called(progress->session, path) : path;

	return ca_point_name_applies(name, path, main, in_scope) ||
	       (called != path && ca_point_name_applies(name, called, main, in_scope));
}

static bool wants(const struct ca_requested *progress, const char *path, bool main)
{
	for (size_t i = 0; i < progress->n; i++)
		for (unsigned k = 0; k < ca_requested_parts_names(&progress->point[i]); k++) {
			const struct ca_point_name *name = &progress->point[i].name[k];

			if (name->kind != CA_POINT_NAME_PROBE &&
			    ca_requested_parts_apply(progress, name, path, main, false))
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

void ca_requested_report(const struct ca_requested *progress, void (*tell)(void *context, const char *text),
			 void *context)
{
	char text[512];

	for (size_t i = 0; i < progress->n; i++) {
		struct ca_requested_point *p = &progress->point[i];

		for (unsigned k = 0; k < ca_requested_parts_names(p); k++) {
			const char *why = atomic_load(&p->why);

			if (atomic_load(&p->counted[k]) && !why)
				continue;
			if (!atomic_load(&p->found[k]))
				snprintf(text, sizeof text,
					 "progress point '%s' is in no binary "
					 "that the run has loaded; -P list "
					 "shows what there is",
					 p->name[k].text);
			else
				snprintf(text, sizeof text,
					 "progress point '%s': %u of %u places are not "
					 "counted: %s",
					 p->name[k].text,
					 atomic_load(&p->found[k]) - atomic_load(&p->counted[k]),
					 atomic_load(&p->found[k]), why ? why : "");
			if (atomic_load(&p->found[k]) != atomic_load(&p->counted[k]) ||
			    !atomic_load(&p->found[k]))
				tell(context, text);
		}
	}
}
