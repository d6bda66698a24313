/* SPDX-License-Identifier: MIT */
/* The settings table, look-ups in it, and the life of a struct ca_settings.
 * Parsing and checks: core/settings_set.c. Files and environment: core/settings_read.c. */
#include "core/settings.h"
#include "core/suggest.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct ca_setting table[CA_SETTING_COUNT] = {
#define CA_SETTING(ID, member_, type_, standard_, low_, high_, choices_, unit_, use_, letter_, options_,     \
		   argument_, group_, help_)                                                                 \
	[CA_SETTING_##ID] = {                                                                                \
		.id = CA_SETTING_##ID,                                                                       \
		.type = CA_TYPE_##type_,                                                                     \
		.use = CA_USE_##use_,                                                                        \
		.group = CA_GROUP_##group_,                                                                  \
		.env = "CAUSAL_" #ID,                                                                        \
		.member = #member_,                                                                          \
		.standard = standard_,                                                                       \
		.low = low_,                                                                                 \
		.high = high_,                                                                               \
		.choices = choices_,                                                                         \
		.unit = unit_,                                                                               \
		.letter = letter_,                                                                           \
		.options = options_,                                                                         \
		.argument = argument_,                                                                       \
		.help = help_,                                                                               \
		.offset = offsetof(struct ca_settings, member_),                                             \
	},
#include "core/settings.def"
};

const struct ca_setting *ca_settings_get(enum ca_setting_id id)
{
	return &table[id];
}

const char *ca_settings_category(const struct ca_setting *setting)
{
	static const char *const names[CA_GROUP_COUNT] = { "debug", "general", "causal", "combinatorial" };

	return names[setting->group];
}

static bool owns_string(const struct ca_setting *setting)
{
	return setting->type >= CA_TYPE_STRING && setting->type != CA_TYPE_SPEEDUPS;
}

static void *member_of(struct ca_settings *settings, const struct ca_setting *setting)
{
	return (char *)settings + setting->offset;
}

/* As long options are written: '-' for '_'. */
static void dashed(const char *name, char *buffer, size_t size)
{
	size_t i = 0;

	for (; name[i] && name[i] != ' ' && i + 1 < size; i++)
		buffer[i] = name[i] == '_' ? '-' : name[i];
	buffer[i] = '\0';
}

bool ca_settings_option(const struct ca_setting *setting, size_t i, char *buffer, size_t size)
{
	char member[64];
	bool listed = false;

	dashed(setting->member, member, sizeof member);
	for (const char *at = setting->options; *at; at += strspn(at, " ")) {
		dashed(at, buffer, size);
		if (!i--)
			return true;
		listed = listed || !strcmp(buffer, member);
		at += strcspn(at, " ");
	}
	snprintf(buffer, size, "%s", member);
	return !i && !listed;
}

const struct ca_setting *ca_settings_find_option(const char *name)
{
	char wanted[64], option[64];

	dashed(name, wanted, sizeof wanted);
	if (strlen(name) != strlen(wanted))
		return NULL;
	for (size_t i = 0; i < CA_SETTING_COUNT; i++)
		for (size_t j = 0; ca_settings_option(&table[i], j, option, sizeof option); j++)
			if (!strcmp(option, wanted))
				return &table[i];
	return NULL;
}

const struct ca_setting *ca_settings_find_letter(const char *letter)
{
	for (size_t i = 0; i < CA_SETTING_COUNT; i++)
		if (*letter && !strcmp(table[i].letter, letter))
			return &table[i];
	return NULL;
}

const struct ca_setting *ca_settings_find_key(const char *key)
{
	const char *bare = strncasecmp(key, "CAUSAL_", 7) ? key : key + 7;

	for (size_t i = 0; i < CA_SETTING_COUNT; i++)
		if (table[i].use != CA_USE_COMMAND && !strcasecmp(table[i].member, bare))
			return &table[i];
	return NULL;
}

/* `option` lives in the caller's buffer: keep a copy of the best one. */
static void offer(struct ca_suggest *nearest, const char *option, char *best, size_t size)
{
	const char *before = nearest->best;

	ca_suggest_offer(nearest, option);
	if (nearest->best != before) {
		snprintf(best, size, "%s", option);
		nearest->best = best;
	}
}

const char *ca_settings_near_option(const char *name)
{
	static _Thread_local char best[64];
	char wanted[64], option[64];
	struct ca_suggest nearest = { .name = wanted };

	dashed(name, wanted, sizeof wanted);
	for (size_t i = 0; i < CA_SETTING_COUNT; i++)
		for (size_t j = 0; ca_settings_option(&table[i], j, option, sizeof option); j++)
			offer(&nearest, option, best, sizeof best);
	offer(&nearest, "help", best, sizeof best);
	offer(&nearest, "version", best, sizeof best);
	return nearest.best;
}

const char *ca_settings_near_key(const char *key)
{
	char upper[64] = "CAUSAL_";
	size_t n = 7;
	struct ca_suggest nearest = { .name = upper };

	for (const char *at = strncasecmp(key, upper, n) ? key : key + n; *at && n + 1 < sizeof upper; at++)
		upper[n++] = (char)toupper((unsigned char)*at);
	upper[n] = '\0';
	for (size_t i = 0; i < CA_SETTING_COUNT; i++)
		if (table[i].use != CA_USE_COMMAND)
			ca_suggest_offer(&nearest, table[i].env);
	return nearest.best;
}

enum ca_status ca_settings_init(struct ca_settings *settings, struct ca_err *err)
{
	enum ca_status status = CA_OK;

	memset(settings, 0, sizeof *settings);
	for (size_t i = 0; i < CA_SETTING_COUNT && !status; i++) {
		/* Not in range on purpose: "no variant chosen". */
		if (i == CA_SETTING_SINGLE)
			settings->single = -1;
		else
			status = ca_settings_set(settings, table[i].id, table[i].standard, CA_ORIGIN_DEFAULT,
						 NULL, err);
	}
	if (status)
		ca_settings_fini(settings);
	return status;
}

enum ca_status ca_settings_copy(struct ca_settings *to, const struct ca_settings *from, struct ca_err *err)
{
	bool failed = false;

	*to = *from;
	for (size_t i = 0; i < CA_SETTING_COUNT; i++) {
		char **string = member_of(to, &table[i]);

		if (!owns_string(&table[i]))
			continue;
		*string = strdup(*string);
		failed = failed || !*string;
	}
	to->fixed_speedup = (struct ca_speedups){ 0 };
	if (!failed)
		failed = ca_speedups_copy(&to->fixed_speedup, &from->fixed_speedup, NULL) != CA_OK;
	if (!failed)
		return CA_OK;
	ca_settings_fini(to);
	return ca_err_set(err, CA_ERR_NOMEM, "no memory for the settings");
}

void ca_settings_fini(struct ca_settings *settings)
{
	for (size_t i = 0; i < CA_SETTING_COUNT; i++)
		if (owns_string(&table[i]))
			free(*(char **)member_of(settings, &table[i]));
	ca_speedups_fini(&settings->fixed_speedup);
	memset(settings, 0, sizeof *settings);
}

static char *choice_text(const struct ca_setting *setting, int value)
{
	const char *at = setting->choices;

	for (; value > 0; value--)
		at += strcspn(at, " ") + 1;
	return strndup(at, strcspn(at, " "));
}

int ca_settings_level(const struct ca_settings *settings)
{
	return (int)settings->verbose + (settings->debug ? 8 : 0);
}

char *ca_settings_text(const struct ca_settings *settings, enum ca_setting_id id)
{
	const struct ca_setting *setting = &table[id];
	const void *member = (const char *)settings + setting->offset;
	char *text = NULL;

	switch (setting->type) {
	case CA_TYPE_BOOL:
		return strdup(*(const bool *)member ? "true" : "false");
	case CA_TYPE_INT:
		return asprintf(&text, "%" PRId64, *(const int64_t *)member) < 0 ? NULL : text;
	case CA_TYPE_REAL:
		return asprintf(&text, "%.15g", *(const double *)member) < 0 ? NULL : text;
	case CA_TYPE_CHOICE:
		return choice_text(setting, *(const int *)member);
	case CA_TYPE_SPEEDUPS:
		return ca_speedups_text(member);
	case CA_TYPE_STRING:
	case CA_TYPE_PATTERNS:
	case CA_TYPE_SINKS:
	case CA_TYPE_EVENTS:
	case CA_TYPE_PERIODS:
	case CA_TYPE_CLOCK:
	case CA_TYPE_NUMBERS:
	case CA_TYPE_SAMPLER:
	case CA_TYPE_METRICS:
		break;
	}
	return strdup(*(char *const *)member);
}
