/* SPDX-License-Identifier: MIT */
/* Settings from files and from the environment; see core/settings.h. */
#include "core/settings.h"
#include "core/settings_json.h"
#include "core/settings_xml.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *trim(char *text)
{
	size_t length;

	while (isspace((unsigned char)*text))
		text++;
	length = strlen(text);
	while (length && isspace((unsigned char)text[length - 1]))
		text[--length] = '\0';
	return text;
}

/* The value of a line: up to a '#' that begins a word, or what stands in quotes. In double
 * quotes \" and \\ stand for the second character, and \n for a new line. NULL: the quote does not end. */
static char *unquote(char *value)
{
	char quote = *value, *to = value, *at = value + 1;

	if (quote != '"' && quote != '\'') {
		for (at = value; *at; at++)
			if (*at == '#' && (at == value || isspace((unsigned char)at[-1])))
				*at-- = '\0';
		return trim(value);
	}
	for (; *at && *at != quote; at++) {
		bool escaped = quote == '"' && *at == '\\' && at[1] && strchr("\"\\n", at[1]);

		at += escaped;
		*to++ = escaped && *at == 'n' ? '\n' : *at;
	}
	if (!*at)
		return NULL;
	at = trim(at + 1);
	if (*at && *at != '#')
		return NULL;
	*to = '\0';
	return value;
}

static enum ca_status unknown_key(const char *where, const char *key, struct ca_err *err)
{
	const char *near = ca_settings_near_key(key);

	if (near)
		return ca_err_set(err, CA_ERR_USAGE, "%s: no setting '%s'; did you mean %s?", where, key,
				  near);
	return ca_err_set(err, CA_ERR_USAGE, "%s: no setting '%s'; see causal --help=config", where, key);
}

static enum ca_status read_line(struct ca_settings *settings, const char *where, char *line,
				struct ca_err *err)
{
	char *equals, *key = trim(line), *value, name[384];
	const struct ca_setting *setting;

	if (!*key || *key == '#')
		return CA_OK;
	equals = strchr(key, '=');
	if (!equals)
		return ca_err_set(err, CA_ERR_USAGE, "%s: '%s' is not of the form KEY = VALUE", where, key);
	*equals = '\0';
	key = trim(key);
	setting = ca_settings_find_key(key);
	if (!setting)
		return unknown_key(where, key, err);
	value = unquote(trim(equals + 1));
	if (!value)
		return ca_err_set(err, CA_ERR_USAGE,
				  "%s: %s: the closing quote of the value is "
				  "missing",
				  where, key);
	snprintf(name, sizeof name, "%s: %s", where, key);
	return ca_settings_set(settings, setting->id, value, CA_ORIGIN_FILE, name, err);
}

/* Its first character, without the mark that some editors put before a text in UTF-8. */
static int get_first(FILE *file)
{
	int first = getc(file);

	return first == 0xef && getc(file) == 0xbb && getc(file) == 0xbf ? getc(file) : first;
}

enum ca_status ca_settings_read_file(struct ca_settings *settings, const char *path, struct ca_err *err)
{
	FILE *file = fopen(path, "re");
	char *line = NULL, where[320];
	size_t size = 0;
	unsigned number = 0;
	enum ca_status status = CA_OK;
	int begin;

	if (!file)
		return ca_err_set(err, CA_ERR_USAGE,
				  "configuration '%s' cannot be read (%s); check the path given "
				  "with -c or CAUSAL_CONFIG_FILE",
				  path, strerror(errno));
	errno = 0;
	begin = get_first(file);
	if (begin == '{') {
		fclose(file);
		return ca_settings_read_json(settings, path, err);
	}
	if (begin == '<') {
		fclose(file);
		return ca_settings_read_xml(settings, path, err);
	}
	ungetc(begin, file);
	while (!status && getline(&line, &size, file) >= 0) {
		snprintf(where, sizeof where, "%s:%u", path, ++number);
		status = read_line(settings, where, line, err);
	}
	if (!status && !feof(file)) /* an error, or no memory for the line */
		status = ca_err_set(err, CA_ERR_USAGE,
				    "configuration '%s' cannot be read (%s); give a text file", path,
				    strerror(errno));
	free(line);
	fclose(file);
	return status;
}

enum ca_status ca_settings_read_files(struct ca_settings *settings, const char *paths, struct ca_err *err)
{
	char *copy = strdup(paths), *rest = NULL;
	enum ca_status status = CA_OK;

	if (!copy)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for the configuration's path");
	for (char *path = strtok_r(copy, ":", &rest); path && !status; path = strtok_r(NULL, ":", &rest))
		status = ca_settings_read_file(settings, path, err);
	free(copy);
	return status;
}

/* ---- the environment ----------------------------------------------------------- */

enum form { PLAIN, GLOBS, LINE, FILE_NAME };

static const struct alias {
	const char *name;
	enum ca_setting_id id;
	enum form form;
} aliases[] = {
#define FORM_PLAIN PLAIN
#define FORM_GLOBS GLOBS
#define FORM_LINE  LINE
#define FORM_FILE  FILE_NAME
#define CA_SETTING(...)
#define CA_SETTING_ALIAS(name, ID, form) { name, CA_SETTING_##ID, FORM_##form },
#include "core/settings.def"
};

/* Coz: tab-separated patterns over the whole path, '%' stands for anything. */
static char *from_globs(const char *globs)
{
	char *text = malloc(3 * strlen(globs) + 3), *to = text;

	if (!text)
		return NULL;
	while (*globs) {
		size_t length = strcspn(globs, "\t");
		bool main = length == 4 && !memcmp(globs, "MAIN", 4);

		if (!main)
			*to++ = '^';
		for (; length; length--, globs++) {
			if (*globs == '%') {
				*to++ = '.';
				*to++ = '*';
				continue;
			}
			if (strchr("\\.[](){}*+?^$|", *globs))
				*to++ = '\\';
			*to++ = *globs;
		}
		if (!main)
			*to++ = '$';
		if (*globs) {
			*to++ = ';';
			globs++;
		}
	}
	*to = '\0';
	return text;
}

/* The text that the aliased setting takes. Owned by the caller. */
static char *from_alias(enum form form, const char *value)
{
	size_t length = strlen(value);
	char *line, *text = NULL;

	switch (form) {
	case PLAIN:
		break;
	case GLOBS:
		return from_globs(value);
	case LINE: /* file:line, the file by its path or the end of it */
		line = from_globs(value);
		if (line && asprintf(&text, "(^|/)%s", line + (*line == '^')) < 0)
			text = NULL;
		free(line);
		return text;
	case FILE_NAME: /* a file there, a directory here */
		if (length > 4 && !strcmp(value + length - 4, ".coz"))
			return strndup(value, length - 4);
		if (length > 6 && !strcmp(value + length - 6, ".jsonl"))
			return strndup(value, length - 6);
		break;
	}
	return strdup(value);
}

/* The value of NAME=value if `entry` is that, else NULL. */
static const char *value_of(const char *entry, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(entry, name, length) && entry[length] == '=' ? entry + length + 1 : NULL;
}

static enum ca_status read_aliases(struct ca_settings *settings, const char *entry, struct ca_err *err)
{
	for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
		const char *value = value_of(entry, aliases[i].name);
		enum ca_status status;
		char *text;

		if (!value || !*value)
			continue;
		text = from_alias(aliases[i].form, value);
		if (!text)
			return ca_err_set(err, CA_ERR_NOMEM, "no memory for %s", aliases[i].name);
		status = ca_settings_set(settings, aliases[i].id, text, CA_ORIGIN_ENVIRONMENT,
					 aliases[i].name, err);
		free(text);
		/* Coz knows lines only. */
		if (!status && aliases[i].form == LINE)
			status = ca_settings_set(settings, CA_SETTING_MODE, "line", CA_ORIGIN_ENVIRONMENT,
						 aliases[i].name, err);
		if (status)
			return status;
	}
	return CA_OK;
}

static enum ca_status read_own(struct ca_settings *settings, const char *entry, struct ca_err *err)
{
	for (size_t i = 0; i < CA_SETTING_COUNT; i++) {
		const struct ca_setting *setting = ca_settings_get((enum ca_setting_id)i);
		const char *value = value_of(entry, setting->env);

		if (!value || setting->use == CA_USE_COMMAND)
			continue;
		/* Set to nothing means not set, but for texts. */
		if (!*value && setting->type < CA_TYPE_STRING)
			return CA_OK;
		return ca_settings_set(settings, setting->id, value, CA_ORIGIN_ENVIRONMENT, NULL, err);
	}
	return CA_OK;
}

static void warn_of(const char *entry, void (*warn)(const char *text))
{
	char name[64], text[256];
	size_t length = strcspn(entry, "=");
	const char *near;

	if (length >= sizeof name || strncmp(entry, "CAUSAL_", 7))
		return;
	snprintf(name, sizeof name, "%.*s", (int)length, entry);
	for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
		if (!strcmp(aliases[i].name, name))
			return;
	for (size_t i = 0; i < CA_SETTING_COUNT; i++)
		if (!strcmp(ca_settings_get((enum ca_setting_id)i)->env, name))
			return;
	/* The driver's own word to the run. */
	if (!strcmp(name, "CAUSAL_SESSION"))
		return;
	near = ca_settings_near_key(name);
	if (!near)
		return;
	snprintf(text, sizeof text, "there is no variable %s; did you mean %s?", name, near);
	warn(text);
}

enum ca_status ca_settings_read_env(struct ca_settings *settings, const char *const *environment,
				    void (*warn)(const char *text), struct ca_err *err)
{
	enum ca_status status = CA_OK;

	/* Aliases first: of equal origins the later one wins. */
	for (const char *const *entry = environment; *entry && !status; entry++)
		status = read_aliases(settings, *entry, err);
	for (const char *const *entry = environment; *entry && !status; entry++) {
		status = read_own(settings, *entry, err);
		if (!status && warn)
			warn_of(*entry, warn);
	}
	return status;
}
