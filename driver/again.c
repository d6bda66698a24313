/* SPDX-License-Identifier: MIT */
/* The command line to type next; see again.h. */
#include "driver/again.h"
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

char *ca_again_line(const struct ca_options *options, const char *instead)
{
	char *line = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&line, &size);

	if (!out)
		return NULL;
	fputs("causal", out);
	for (size_t i = 0; i < options->assignments; i++)
		if (!is_once(options->assignment[i].id))
			put_option(out, options->assignment[i].id, options->assignment[i].text);
	for (size_t i = 0; i < CA_PATTERN_AXES; i++)
		for (size_t j = 0; j < options->axis[i].count; j++)
			put_option(out, (enum ca_setting_id)(CA_AXIS_FIRST + i), options->axis[i].group[j]);
	fprintf(out, " %s --", instead);
	for (char **word = options->command; word && *word; word++) {
		putc(' ', out);
		put_word(out, *word);
	}
	if (fclose(out)) {
		free(line);
		return NULL;
	}
	return line;
}
