/* SPDX-License-Identifier: MIT */
/* Several sinks behind one call: see core/sink.h. Driver's process, one thread. */
#include "core/sink.h"
#include "core/path.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define X(ops) extern const struct ca_sink_ops ops;
#include "core/sinks.def"
#undef X

static const struct ca_sink_ops *const known[] = {
#define X(ops) &ops,
#include "core/sinks.def"
#undef X
};

enum { KNOWN = sizeof known / sizeof *known };

struct open_sink {
	const struct ca_sink_ops *ops;
	void *state;
	struct stat file; /* that it writes; all zeros: none that another one could destroy */
};

struct ca_sinks {
	struct open_sink *open;
	size_t count;
};

const struct ca_sink_ops *ca_sink_get(size_t i)
{
	return i < KNOWN ? known[i] : NULL;
}

const struct ca_sink_ops *ca_sink_find(const char *name)
{
	for (size_t i = 0; i < KNOWN; i++)
		if (!strcmp(known[i]->name, name))
			return known[i];
	return NULL;
}

static enum ca_status refuse(const char *name, struct ca_err *err)
{
	char names[256] = "";

	for (size_t i = 0; i < KNOWN; i++) {
		strncat(names, i ? ", " : "", sizeof names - strlen(names) - 1);
		strncat(names, known[i]->name, sizeof names - strlen(names) - 1);
	}
	return ca_err_set(err, CA_ERR_USAGE, "there is no sink '%s'; choose from: %s", name, names);
}

/* item: "NAME" or "NAME=TARGET"; it is cut in two in place. */
static enum ca_status find(char *item, const struct ca_sink_ops **ops, char **target, struct ca_err *err)
{
	*target = strchr(item, '=');
	if (*target)
		*(*target)++ = '\0';
	*ops = ca_sink_find(item);
	if (!*ops)
		return refuse(item, err);
	if (!*target || **target)
		return CA_OK;
	return ca_err_set(err, CA_ERR_USAGE, "'%s=' has no target; write one after the =, or leave the = out",
			  item);
}

void ca_sink_path(const struct ca_sink_ops *ops, const char *target, char *path, size_t size)
{
	bool adds = ops == &ca_sink_paraver && !ca_path_ends(target, ops->extension);

	snprintf(path, size, "%s%s", target, adds ? ops->extension : "");
}

/* /dev/null is for all. */
static bool is_file(const struct ca_sink_ops *ops, const char *target, struct stat *is)
{
	char path[PATH_MAX];

	if (!target)
		return false;
	ca_sink_path(ops, target, path, sizeof path);
	return !stat(path, is) && S_ISREG(is->st_mode);
}

/* Of two sinks with one file, each would write over the other. */
static enum ca_status refuse_taken(const struct ca_sinks *sinks, const struct ca_sink_ops *ops,
				   const char *target, struct ca_err *err)
{
	struct stat is;
	bool file = is_file(ops, target, &is);

	for (size_t i = 0; file && i < sinks->count; i++)
		if (sinks->open[i].file.st_ino == is.st_ino && sinks->open[i].file.st_dev == is.st_dev)
			return ca_err_set(err, CA_ERR_USAGE,
					  "the %s sink writes %s already, and the %s sink would write over "
					  "it; give it another file",
					  sinks->open[i].ops->name, target, ops->name);
	return CA_OK;
}

static enum ca_status open_one(struct ca_sinks *sinks, char *item, const char *stem,
			       const struct ca_dict *dict, const void *context, struct ca_err *err)
{
	const struct ca_sink_ops *ops = NULL;
	void *state = NULL;
	char *target, named[PATH_MAX];
	enum ca_status status = find(item, &ops, &target, err);

	if (status || !sinks) /* NULL: only to be checked */
		return status;
	if (!target && ops->extension) {
		snprintf(named, sizeof named, "%s%s", stem, ops->extension);
		target = named;
	}
	status = refuse_taken(sinks, ops, target, err);
	if (!status && ops->open)
		status = ops->open(&state, target, dict, context, err);
	if (status)
		return status;
	status = ca_sink_add(sinks, ops, state);
	if (status && ops->close)
		ops->close(state, NULL);
	if (!status && !is_file(ops, target, &sinks->open[sinks->count - 1].file))
		sinks->open[sinks->count - 1].file = (struct stat){ 0 };
	return status;
}

static enum ca_status open_all(struct ca_sinks *sinks, const char *spec, const char *stem,
			       const struct ca_dict *dict, const void *context, struct ca_err *err)
{
	enum ca_status status = CA_OK;
	char *copy = strdup(spec), *rest = copy;

	if (!copy)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for the sinks");
	while (!status && rest && *rest) {
		char *item = strsep(&rest, ",");

		if (*item)
			status = open_one(sinks, item, stem, dict, context, err);
	}
	free(copy);
	return status;
}

enum ca_status ca_sink_check(const char *spec, struct ca_err *err)
{
	return open_all(NULL, spec, NULL, NULL, NULL, err);
}

enum ca_status ca_sink_open(struct ca_sinks **sinks, const char *spec, const char *stem,
			    const struct ca_dict *dict, const void *context, struct ca_err *err)
{
	struct ca_sinks *made = calloc(1, sizeof *made);
	enum ca_status status;

	if (!made)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for the sinks");
	status = open_all(made, spec, stem, dict, context, err);
	if (status)
		ca_sink_close(made, NULL);
	else
		*sinks = made;
	return status;
}

enum ca_status ca_sink_add(struct ca_sinks *sinks, const struct ca_sink_ops *ops, void *state)
{
	struct open_sink *more = realloc(sinks->open, (sinks->count + 1) * sizeof *more);

	if (!more)
		return CA_ERR_NOMEM;
	sinks->open = more;
	sinks->open[sinks->count++] = (struct open_sink){ ops, state, { 0 } };
	return CA_OK;
}

void ca_sink_events(struct ca_sinks *sinks, const struct ca_source *from, const struct ca_event *event,
		    size_t n)
{
	for (size_t i = 0; sinks && i < sinks->count; i++)
		if (sinks->open[i].ops->events)
			sinks->open[i].ops->events(sinks->open[i].state, from, event, n);
}

void ca_sink_name(struct ca_sinks *sinks, const struct ca_source *from, const char *process_name,
		  const char *thread_name)
{
	for (size_t i = 0; sinks && i < sinks->count; i++)
		if (sinks->open[i].ops->rename)
			sinks->open[i].ops->rename(sinks->open[i].state, from, process_name, thread_name);
}

bool ca_sink_takes_laps(const struct ca_sinks *sinks)
{
	for (size_t i = 0; sinks && i < sinks->count; i++)
		if (!sinks->open[i].ops->laps)
			return false;
	return sinks && sinks->count;
}

void ca_sink_laps(struct ca_sinks *sinks, const struct ca_source *from, const struct ca_lap *lap,
		  uint32_t first, size_t n)
{
	for (size_t i = 0; sinks && i < sinks->count; i++)
		if (sinks->open[i].ops->laps)
			sinks->open[i].ops->laps(sinks->open[i].state, from, lap, first, n);
}

bool ca_sink_wants(const struct ca_sinks *sinks, uint32_t key)
{
	for (size_t i = 0; sinks && i < sinks->count; i++)
		if (!sinks->open[i].ops->wants || sinks->open[i].ops->wants(sinks->open[i].state, key))
			return true;
	return false;
}

enum ca_status ca_sink_close(struct ca_sinks *sinks, struct ca_err *err)
{
	enum ca_status first = CA_OK;
	char texts[sizeof err->text] = "";

	for (size_t i = 0; sinks && i < sinks->count; i++) {
		const struct open_sink *sink = &sinks->open[i];
		struct ca_err one = { "" };
		enum ca_status status = sink->ops->close ? sink->ops->close(sink->state, &one) : CA_OK;
		size_t length = strlen(texts);

		if (!status)
			continue;
		first = first ? first : status;
		snprintf(texts + length, sizeof texts - length, "%s%s", length ? "; " : "", one.text);
	}
	if (sinks)
		free(sinks->open);
	free(sinks);
	return first ? ca_err_set(err, first, "%s", texts) : CA_OK;
}
