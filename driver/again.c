/* SPDX-License-Identifier: MIT */
/* The command line to type next; see again.h. */
#include "driver/again.h"
#include "core/memstream.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As a word of bash, zsh and the like. What a terminal would act upon is spelt in digits. */
static void put_word(FILE *out, const char *word)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./,:+@%=";
	bool control = false;

	if (*word && word[strspn(word, plain)] == '\0') {
		fputs(word, out);
		return;
	}
	for (const char *c = word; *c; c++)
		control = control || (unsigned char)*c < ' ' || *c == 127;
	fputs(control ? "$'" : "'", out);
	for (const char *c = word; *c; c++) {
		if (control && ((unsigned char)*c < ' ' || *c == 127))
			fprintf(out, "\\%03o", (unsigned)*c);
		else if (control && (*c == '\'' || *c == '\\'))
			fprintf(out, "\\%c", *c);
		else if (*c == '\'')
			fputs("'\\''", out);
		else
			putc(*c, out);
	}
	putc('\'', out);
}

/* With its letter, where that is as clear. */
static void put_option(FILE *out, enum ca_setting_id id, const char *text)
{
	const struct ca_setting *setting = ca_settings_get(id);
	char name[64];

	ca_settings_option(setting, 0, name, sizeof name);
	if (setting->type == CA_TYPE_BOOL && !strcmp(text, "true") && *setting->letter) {
		fprintf(out, " -%s", setting->letter);
	} else if (setting->type == CA_TYPE_BOOL) {
		fprintf(out, " --%s=%s", name, text);
	} else if (*setting->letter && *setting->argument != '[' && *text != '-') {
		fprintf(out, " -%s ", setting->letter);
		put_word(out, text);
	} else {
		fprintf(out, " --%s=", name);
		put_word(out, text);
	}
}

static bool is_once(enum ca_setting_id id)
{
	return id == CA_SETTING_ITERATIONS || id == CA_SETTING_DRY_RUN || id == CA_SETTING_SINGLE ||
	       id == CA_SETTING_RESET;
}

/* Is the option among those that are put in? By its letter. */
static bool is_replaced(enum ca_setting_id id, const char *instead)
{
	const struct ca_setting *setting = ca_settings_get(id);
	char option[16];
	const char *at;

	if (!*setting->letter)
		return false;
	snprintf(option, sizeof option, "-%s ", setting->letter);
	at = strstr(instead, option);
	return at && (at == instead || at[-1] == ' ');
}

static bool add_word(char **words, size_t *n, enum ca_setting_id id, const char *text)
{
	char name[64];

	ca_settings_option(ca_settings_get(id), 0, name, sizeof name);
	if (asprintf(&words[*n], "--%s=%s", name, text) < 0)
		words[*n] = NULL;
	return words[(*n)++];
}

void ca_again_free(char **words)
{
	for (char **word = words; word && *word; word++)
		free(*word);
	free(words);
}

char **ca_again_words(const struct ca_options *options)
{
	size_t room = options->assignments + 1, n = 0;
	char **words;
	bool ok;

	for (size_t i = 0; i < CA_AXES; i++)
		room += options->axis[i].count;
	words = calloc(room, sizeof *words);
	ok = words;
	for (size_t i = 0; ok && i < options->assignments; i++)
		if (!is_once(options->assignment[i].id) && options->assignment[i].id != CA_SETTING_OUTPUT)
			ok = add_word(words, &n, options->assignment[i].id, options->assignment[i].text);
	for (size_t i = 0; i < CA_AXES; i++)
		for (size_t j = 0; ok && j < options->axis[i].count; j++)
			ok = add_word(words, &n, (enum ca_setting_id)(CA_AXIS_FIRST + i),
				      options->axis[i].group[j]);
	if (ok)
		return words;
	ca_again_free(words);
	return NULL;
}

char *ca_again_word(const char *text)
{
	char *word = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&word, &size);

	if (!out)
		return NULL;
	put_word(out, text);
	ca_memstream_end(out, &word);
	return word;
}

char *ca_again_pattern(const char *name)
{
	char *pattern = malloc(2 * strlen(name) + 3), *to = pattern;

	if (!pattern)
		return NULL;
	*to++ = '^';
	for (; *name; name++) {
		if (strchr(".[]*^$\\+?()|{}", *name))
			*to++ = '\\';
		*to++ = *name;
	}
	*to++ = '$';
	*to = '\0';
	return pattern;
}

char *ca_again_line(const struct ca_options *options, const char *instead)
{
	char *line = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&line, &size);

	if (!out)
		return NULL;
	fputs("causal", out);
	for (size_t i = 0; i < options->assignments; i++)
		if (!is_once(options->assignment[i].id) && !is_replaced(options->assignment[i].id, instead))
			put_option(out, options->assignment[i].id, options->assignment[i].text);
	for (size_t i = 0; i < CA_PATTERN_AXES; i++)
		for (size_t j = 0; j < options->axis[i].count &&
				   !is_replaced((enum ca_setting_id)(CA_AXIS_FIRST + i), instead);
		     j++)
			put_option(out, (enum ca_setting_id)(CA_AXIS_FIRST + i), options->axis[i].group[j]);
	fprintf(out, " %s --", instead);
	for (char **word = options->command; word && *word; word++) {
		putc(' ', out);
		put_word(out, *word);
	}
	ca_memstream_end(out, &line);
	return line;
}
