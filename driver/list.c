/* SPDX-License-Identifier: MIT */
/* -P list; see driver/list.h. Lists the program itself, and of the libraries that it needs those
 * that -B names. There is always an answer: points, or why there is none. */
#include "driver/list.h"
#include "binary/needed.h"
#include "binary/scope.h"
#include "causal/conductor/preload.h"
#include "causal/conductor/sweep.h"
#include "causal/points/point_list.h"
#include "core/memstream.h"
#include "core/path.h"
#include "driver/child.h"
#include "driver/say.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum ca_status list(const char *path, bool main, const char *filter, size_t *printed,
			   struct ca_err *err)
{
	struct ca_index *index;
	size_t here = 0;
	enum ca_status status = ca_index_open(&index, path, CA_INDEX_FULL, NULL, NULL, err);

	if (status != CA_OK)
		return status;
	status = ca_point_list_print(stdout, index, main, filter, &here, err);
	ca_index_close(index);
	*printed += here;
	return status;
}

/* A script names what runs in its first line, perhaps by way of env. False: it is none. */
static bool explain_script(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[256] = "", *rest = NULL, *word = NULL;

	if (file && fgets(line, sizeof line, file) && !strncmp(line, "#!", 2))
		word = strtok_r(line + 2, " \t\n", &rest);
	while (word && (!strcmp(ca_path_base(word), "env") || (word > line + 3 && *word == '-')))
		word = strtok_r(NULL, " \t\n", &rest);
	if (file)
		fclose(file);
	if (word)
		ca_say("%s is a script; the program that runs is its interpreter: causal -P list -- %s", path,
		       word);
	return word;
}

/* "a, b, c"; to be freed. */
static char *join_names(const struct ca_needed *needed)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (size_t i = 0; i < needed->n; i++)
		fprintf(out, "%s%s", i ? ", " : "", ca_path_base(needed->path[i]));
	ca_memstream_end(out, &text);
	return text;
}

static void remark(const char *path, const struct ca_needed *needed, bool follows, size_t libraries)
{
	char *names = join_names(needed);

	if (names && *names && follows)
		ca_say("these are points of %s itself; it needs %s: -B NAME -P list lists theirs as well",
		       ca_path_base(path), names);
	else if (names && *names && !libraries)
		ca_say("-B names none of the libraries that %s needs: %s; in one that it opens later, points "
		       "can be named as LIBRARY!NAME",
		       ca_path_base(path), names);
	free(names);
}

static enum ca_status list_all(const char *path, const struct ca_scope *scope, const char *filter,
			       size_t *printed, struct ca_err *err)
{
	bool follows = ca_scope_follows(scope);
	struct ca_needed needed;
	size_t libraries = 0;
	enum ca_status status = list(path, true, filter, printed, err);

	if (status != CA_OK || (status = ca_needed_find(&needed, path, err)) != CA_OK)
		return status;
	for (size_t i = 0; i < needed.n && status == CA_OK && !follows; i++)
		if (ca_scope_has_binary(scope, needed.path[i], false)) {
			status = list(needed.path[i], false, filter, printed, err);
			libraries++;
		}
	if (status == CA_OK && (*printed || !follows))
		remark(path, &needed, follows, libraries);
	ca_needed_fini(&needed);
	return status;
}

static int show(const char *path, const struct ca_scope *scope, const char *filter)
{
	struct ca_preload bar = ca_preload_check(path);
	struct ca_err err;
	size_t printed = 0;
	enum ca_status status = list_all(path, scope, filter, &printed, &err);

	if (status == CA_ERR_FORMAT && explain_script(path))
		return CA_EXIT_USAGE;
	if (status != CA_OK) {
		ca_say("%s", err.text);
		return status == CA_ERR_USAGE || status == CA_ERR_FORMAT ? CA_EXIT_USAGE : 1;
	}
	if (bar.why)
		ca_say("%s %s: the runtime cannot be preloaded into it, so none of its points can be "
		       "counted; %s",
		       path, bar.why, bar.remedy);
	if (!printed && *filter)
		ca_say("nothing in %s matches '%s'; -P list shows all, and with -B NAME also what its "
		       "libraries have",
		       ca_path_base(path), filter);
	else if (!printed)
		ca_say("%s has no symbols, unwind tables or debug information, so nothing in it "
		       "has a name: compile it with -g, or use -e",
		       path);
	if (!printed)
		return CA_EXIT_USAGE;
	return fflush(stdout) ? 1 : 0;
}

static enum ca_status open_scope(const struct ca_job *job, struct ca_scope **scope, struct ca_err *err)
{
	struct ca_variant variant;
	struct ca_settings settings;
	enum ca_status status;

	ca_variants_get(&job->variants, 0, &variant);
	status = ca_variants_settings(&variant, &job->settings, &settings, err);
	if (status != CA_OK)
		return status;
	status = ca_scope_new(scope,
			      &(struct ca_scope_spec){ .binary = settings.binary_scope,
						       .binary_exclude = settings.binary_exclude },
			      err);
	ca_settings_fini(&settings);
	return status;
}

int ca_list_show(const struct ca_job *job, const char *filter)
{
	char path[4096], *real = NULL;
	struct ca_scope *scope;
	struct ca_err err;
	int code;

	if (!ca_sweep_find_command(job->program, path, sizeof path) || !(real = realpath(path, NULL))) {
		ca_say("there is no file %s", job->program);
		return 1;
	}
	if (open_scope(job, &scope, &err)) {
		ca_say("%s", err.text);
		code = CA_EXIT_USAGE;
	} else {
		code = show(real, scope, filter);
		ca_scope_free(scope);
	}
	free(real);
	return code;
}
