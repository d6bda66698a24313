/* SPDX-License-Identifier: MIT */
/* The environment of a run's child; see driver/environ.h. */
#include "driver/environ.h"
#include "core/session.h"
#include "driver/say.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum ca_status no_memory(struct ca_err *err)
{
	return ca_err_set(err, CA_ERR_NOMEM, "no memory for the environment of the run");
}

static char **find(const struct ca_environ *environment, const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < environment->count; i++)
		if (!strncmp(environment->entry[i], name, length) && environment->entry[i][length] == '=')
			return &environment->entry[i];
	return NULL;
}

/* A variable that only tells the driver what to do: a driver inside the run must not obey it. And the program of a
 * driver that is a load is none itself. */
static bool is_withheld(const char *entry)
{
	if (!strncmp(entry, CA_SESSION_LOAD_MARK "=", strlen(CA_SESSION_LOAD_MARK) + 1))
		return true;
	for (size_t i = 0; i < CA_SETTING_COUNT; i++) {
		const struct ca_setting *setting = ca_settings_get((enum ca_setting_id)i);
		size_t length = strlen(setting->env);

		if (setting->use == CA_USE_SWEEP && !strncmp(entry, setting->env, length) &&
		    entry[length] == '=')
			return true;
	}
	return false;
}

enum ca_status ca_environ_init(struct ca_environ *environment, struct ca_err *err)
{
	size_t count = 0;

	memset(environment, 0, sizeof *environment);
	while (environ[count])
		count++;
	environment->entry = calloc(count + 1, sizeof *environment->entry);
	if (!environment->entry)
		return no_memory(err);
	for (char **entry = environ; *entry; entry++) {
		if (is_withheld(*entry))
			continue;
		environment->entry[environment->count] = strdup(*entry);
		if (!environment->entry[environment->count++]) {
			environment->count--;
			ca_environ_fini(environment);
			return no_memory(err);
		}
	}
	return CA_OK;
}

void ca_environ_fini(struct ca_environ *environment)
{
	for (size_t i = 0; i < environment->count; i++)
		free(environment->entry[i]);
	for (size_t i = 0; i < environment->changes; i++)
		free(environment->changed[i]);
	free(environment->entry);
	free(environment->changed);
	memset(environment, 0, sizeof *environment);
}

static enum ca_status note_change(struct ca_environ *environment, const char *name, struct ca_err *err)
{
	size_t at = 0, n = environment->changes;
	char **grown, *copy;

	while (at < n && strcmp(environment->changed[at], name) < 0)
		at++;
	if (at < n && !strcmp(environment->changed[at], name))
		return CA_OK;
	copy = strdup(name);
	grown = realloc(environment->changed, (n + 1) * sizeof *grown);
	if (grown)
		environment->changed = grown;
	if (!copy || !grown) {
		free(copy);
		return no_memory(err);
	}
	memmove(grown + at + 1, grown + at, (n - at) * sizeof *grown);
	grown[at] = copy;
	environment->changes = n + 1;
	return CA_OK;
}

enum ca_status ca_environ_set(struct ca_environ *environment, const char *name, const char *value,
			      struct ca_err *err)
{
	char **there = find(environment, name), **grown, *entry;
	const char *ours = getenv(name);

	if (asprintf(&entry, "%s=%s", name, value) < 0)
		return no_memory(err);
	if (there) {
		free(*there);
		*there = entry;
	} else {
		grown = realloc(environment->entry, (environment->count + 2) * sizeof *grown);
		if (!grown) {
			free(entry);
			return no_memory(err);
		}
		environment->entry = grown;
		grown[environment->count++] = entry;
		grown[environment->count] = NULL;
	}
	return ours && !strcmp(ours, value) ? CA_OK : note_change(environment, name, err);
}

void ca_environ_unset(struct ca_environ *environment, const char *name)
{
	char **there = find(environment, name);

	if (!there)
		return;
	free(*there);
	*there = environment->entry[--environment->count];
	environment->entry[environment->count] = NULL;
}

static const char *value_of(const struct ca_environ *environment, const char *name)
{
	char **there = find(environment, name);

	return there ? strchr(*there, '=') + 1 : NULL;
}

enum ca_status ca_environ_add_settings(struct ca_environ *environment, const struct ca_settings *settings,
				       struct ca_err *err)
{
	static const enum ca_setting_id recommended[] = { CA_SETTING_TIME_OUTPUT, CA_SETTING_USE_PID };
	enum ca_status status = CA_OK;

	for (size_t i = 0; i < CA_SETTING_COUNT && !status; i++) {
		const struct ca_setting *setting = ca_settings_get((enum ca_setting_id)i);
		char *text;

		if (setting->use != CA_USE_RUN || settings->origin[i] == CA_ORIGIN_DEFAULT)
			continue;
		text = ca_settings_text(settings, setting->id);
		status = text ? ca_environ_set(environment, setting->env, text, err) : no_memory(err);
		free(text);
	}
	if (!status && settings->origin[CA_SETTING_MONOCHROME] != CA_ORIGIN_DEFAULT)
		status = ca_environ_set(environment, "MONOCHROME", settings->monochrome ? "1" : "0", err);
	for (size_t i = 0; i < sizeof recommended / sizeof *recommended && !status; i++) {
		const struct ca_setting *setting = ca_settings_get(recommended[i]);

		if (!settings->no_defaults && !value_of(environment, setting->env))
			status = ca_environ_set(environment, setting->env, setting->standard, err);
	}
	return status;
}

enum ca_status ca_environ_preload(struct ca_environ *environment, const char *library, struct ca_err *err)
{
	const char *there = value_of(environment, "LD_PRELOAD");
	size_t length = strlen(library);
	enum ca_status status;
	char *joined;

	if (!there || !*there)
		return ca_environ_set(environment, "LD_PRELOAD", library, err);
	for (const char *at = there; *at; at += strspn(at, ": ")) {
		size_t n = strcspn(at, ": ");

		if (n == length && !memcmp(at, library, n))
			return CA_OK;
		at += n;
	}
	if (asprintf(&joined, "%s:%s", there, library) < 0)
		return no_memory(err);
	status = ca_environ_set(environment, "LD_PRELOAD", joined, err);
	free(joined);
	return status;
}

static bool is_changed(const struct ca_environ *environment, const char *entry)
{
	size_t length = strcspn(entry, "=");

	for (size_t i = 0; i < environment->changes; i++)
		if (!strncmp(environment->changed[i], entry, length) && !environment->changed[i][length])
			return true;
	return false;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void ca_environ_print(const struct ca_environ *environment, const char *prefix, bool all)
{
	const char **shown = calloc(environment->count + 1, sizeof *shown);
	size_t count = 0;

	if (!shown)
		return;
	for (size_t i = 0; i < environment->count; i++) {
		const char *entry = environment->entry[i];
		bool internal = !strncmp(entry, "CAUSAL_SESSION=", 15);

		if (all ? is_changed(environment, entry) || !strncmp(entry, "CAUSAL_", 7)
			: is_changed(environment, entry) && !internal)
			shown[count++] = entry;
	}
	qsort(shown, count, sizeof *shown, by_text);
	for (size_t i = 0; i < count; i++)
		ca_say_line("%s%s", prefix, shown[i]);
	free(shown);
}
