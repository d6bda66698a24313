/* SPDX-License-Identifier: MIT */
/* Checking one setting's text and storing its value; see core/settings.h.
 * An error names the setting as the user wrote it, the value, and the remedy. */
#include "core/dict.h"
#include "core/numbers.h"
#include "core/regex.h"
#include "core/samplers.h"
#include "core/settings.h"
#include "core/sink.h"
#include "core/windows.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

union value {
	bool truth;
	int64_t number;
	double real;
	int choice;
	char *string;                /* owned */
	struct ca_speedups speedups; /* owned */
};

static enum ca_status set_bool(const struct ca_setting *setting, const char *name, const char *text,
			       union value *value, struct ca_err *err)
{
	static const char *const words[] = { "false", "true", "off", "on", "no", "yes",
					     "0",     "1",    "f",   "t",  "n",  "y" };

	(void)setting;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strcasecmp(text, words[i])) {
			value->truth = i % 2;
			return CA_OK;
		}
	return ca_err_set(err, CA_ERR_USAGE, "%s: '%s' is not true or false; write true or false", name,
			  text);
}

/* ns, us, ms, s, min: seconds that one stands for; 0: no such unit. */
static double unit_seconds(const char *unit)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = { { "ns", 1e-9 }, { "us", 1e-6 }, { "ms", 1e-3 }, { "s", 1 }, { "min", 60 } };

	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (!strcmp(unit, units[i].name))
			return units[i].seconds;
	return 0;
}

static enum ca_status out_of_range(const struct ca_setting *setting, const char *name, const char *text,
				   struct ca_err *err)
{
	return ca_err_set(err, CA_ERR_USAGE,
			  "%s: %s is not within %.15g..%.15g%s%s; give a number in that range", name, text,
			  setting->low, setting->high, *setting->unit ? " " : "", setting->unit);
}

static enum ca_status not_a_number(const struct ca_setting *setting, const char *name, const char *text,
				   struct ca_err *err)
{
	const char *kind = setting->type == CA_TYPE_INT ? "whole number" : "number";

	if (unit_seconds(setting->unit) > 0)
		return ca_err_set(err, CA_ERR_USAGE,
				  "%s: '%s' is not a time; write a number in %s, or one with its "
				  "unit (ns, us, ms, s, min)",
				  name, text, setting->unit);
	return ca_err_set(err, CA_ERR_USAGE, "%s: '%s' is not a %s; write one, like %s", name, text, kind,
			  *setting->standard == '-' ? "0" : setting->standard);
}

static enum ca_status set_real(const struct ca_setting *setting, const char *name, const char *text,
			       union value *value, struct ca_err *err)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || isspace((unsigned char)*text) || !isfinite(number))
		return not_a_number(setting, name, text, err);
	while (*end == ' ')
		end++;
	if (*end) {
		double unit = unit_seconds(end), own = unit_seconds(setting->unit);

		if (own > 0 ? unit <= 0 : strcmp(end, setting->unit) != 0)
			return not_a_number(setting, name, text, err);
		number *= own > 0 ? unit / own : 1;
	}
	if (number < setting->low || number > setting->high)
		return out_of_range(setting, name, text, err);
	value->real = number;
	return CA_OK;
}

static enum ca_status set_int(const struct ca_setting *setting, const char *name, const char *text,
			      union value *value, struct ca_err *err)
{
	char *end;
	long long number;
	union value real;
	enum ca_status status;

	errno = 0;
	number = strtoll(text, &end, 10);
	if (end != text && !isspace((unsigned char)*text) && !*end) {
		if (errno == ERANGE || (double)number < setting->low || (double)number > setting->high)
			return out_of_range(setting, name, text, err);
		value->number = number;
		return CA_OK;
	}
	/* 1ms, 1e6, 0.5ms: only where the number has a unit. */
	if (!*setting->unit)
		return not_a_number(setting, name, text, err);
	status = set_real(setting, name, text, &real, err);
	if (!status)
		value->number = llround(real.real);
	return status;
}

/* A choice may be shortened to three letters or more, if that is plain. */
static enum ca_status set_choice(const struct ca_setting *setting, const char *name, const char *text,
				 union value *value, struct ca_err *err)
{
	size_t length = strlen(text);
	int index = 0, found = -1;

	for (const char *at = setting->choices; *at; at += strspn(at, " "), index++) {
		size_t n = strcspn(at, " ");

		if (length <= n && (length == n || length >= 3) && !strncasecmp(at, text, length))
			found = index;
		at += n;
	}
	if (found < 0)
		return ca_err_set(err, CA_ERR_USAGE, "%s: there is no '%s'; choose from: %s", name, text,
				  setting->choices);
	value->choice = found;
	return CA_OK;
}

static enum ca_status set_string(const struct ca_setting *setting, const char *name, const char *text,
				 union value *value, struct ca_err *err)
{
	(void)setting;
	value->string = strdup(text);
	if (!value->string)
		return ca_err_set(err, CA_ERR_NOMEM, "%s: no memory for the value", name);
	return CA_OK;
}

static enum ca_status check_pattern(const char *name, const char *pattern, struct ca_err *err)
{
	char reason[128];
	regex_t compiled;
	int code = ca_regex_compile(&compiled, pattern);

	if (!code) {
		regfree(&compiled);
		return CA_OK;
	}
	regerror(code, &compiled, reason, sizeof reason);
	return ca_err_set(err, CA_ERR_USAGE,
			  "%s: bad regular expression '%s' (%s); put \\ before a character that is "
			  "meant literally",
			  name, pattern, reason);
}

static enum ca_status set_patterns(const struct ca_setting *setting, const char *name, const char *text,
				   union value *value, struct ca_err *err)
{
	char *copy = strdup(text), *rest = NULL;
	enum ca_status status = CA_OK;

	if (!copy)
		return ca_err_set(err, CA_ERR_NOMEM, "%s: no memory for the value", name);
	for (char *pattern = strtok_r(copy, ";\t", &rest); pattern && !status;
	     pattern = strtok_r(NULL, ";\t", &rest))
		status = check_pattern(name, pattern, err);
	free(copy);
	return status ? status : set_string(setting, name, text, value, err);
}

static enum ca_status set_speedups(const struct ca_setting *setting, const char *name, const char *text,
				   union value *value, struct ca_err *err)
{
	struct ca_err reason;
	enum ca_status status = ca_speedups_parse(&value->speedups, text, &reason);

	(void)setting;
	return status ? ca_err_set(err, status, "%s: %s", name, reason.text) : CA_OK;
}

/* A text that somebody else understands. */
static enum ca_status check_text(const struct ca_setting *setting, const char *text, struct ca_err *reason)
{
	clockid_t clock;

	switch (setting->type) {
	case CA_TYPE_SINKS:
		return ca_sink_check(text, reason);
	case CA_TYPE_EVENTS:
		return ca_dict_check(text, reason);
	case CA_TYPE_PERIODS:
		return ca_windows_check(text, reason);
	case CA_TYPE_CLOCK:
		return ca_windows_clock(text, &clock, reason);
	case CA_TYPE_NUMBERS:
		return setting->id == CA_SETTING_CPUS
			       ? ca_numbers_check(text, 0, (uint32_t)sysconf(_SC_NPROCESSORS_CONF) - 1,
						  reason)
			       : ca_numbers_check(text, 1, INT32_MAX, reason);
	case CA_TYPE_METRICS:
		return ca_samplers_check_metrics(text, reason);
	default:
		return ca_samplers_check(setting->id == CA_SETTING_OVERFLOW ? CA_SAMPLER_OVERFLOW
									    : CA_SAMPLER_REAL,
					 text, reason);
	}
}

static enum ca_status set_checked(const struct ca_setting *setting, const char *name, const char *text,
				  union value *value, struct ca_err *err)
{
	struct ca_err reason;
	enum ca_status status = check_text(setting, text, &reason);

	if (status)
		return ca_err_set(err, status, "%s: %s", name, reason.text);
	return set_string(setting, name, text, value, err);
}

static void drop(enum ca_setting_type type, union value value)
{
	if (type == CA_TYPE_SPEEDUPS)
		ca_speedups_fini(&value.speedups);
	else if (type >= CA_TYPE_STRING)
		free(value.string);
}

static void store(void *member, enum ca_setting_type type, union value value)
{
	switch (type) {
	case CA_TYPE_BOOL:
		*(bool *)member = value.truth;
		break;
	case CA_TYPE_INT:
		*(int64_t *)member = value.number;
		break;
	case CA_TYPE_REAL:
		*(double *)member = value.real;
		break;
	case CA_TYPE_CHOICE:
		*(int *)member = value.choice;
		break;
	case CA_TYPE_SPEEDUPS:
		ca_speedups_fini(member);
		*(struct ca_speedups *)member = value.speedups;
		break;
	case CA_TYPE_STRING:
	case CA_TYPE_PATTERNS:
	case CA_TYPE_SINKS:
	case CA_TYPE_EVENTS:
	case CA_TYPE_PERIODS:
	case CA_TYPE_CLOCK:
	case CA_TYPE_NUMBERS:
	case CA_TYPE_SAMPLER:
	case CA_TYPE_METRICS:
		free(*(char **)member);
		*(char **)member = value.string;
		break;
	}
}

enum ca_status ca_settings_set(struct ca_settings *settings, enum ca_setting_id id, const char *text,
			       enum ca_origin origin, const char *name, struct ca_err *err)
{
	static enum ca_status (*const parse[])(const struct ca_setting *, const char *, const char *,
					       union value *, struct ca_err *) = {
		[CA_TYPE_BOOL] = set_bool,         [CA_TYPE_INT] = set_int,
		[CA_TYPE_REAL] = set_real,         [CA_TYPE_CHOICE] = set_choice,
		[CA_TYPE_STRING] = set_string,     [CA_TYPE_PATTERNS] = set_patterns,
		[CA_TYPE_SPEEDUPS] = set_speedups, [CA_TYPE_SINKS] = set_checked,
		[CA_TYPE_EVENTS] = set_checked,    [CA_TYPE_PERIODS] = set_checked,
		[CA_TYPE_CLOCK] = set_checked,     [CA_TYPE_NUMBERS] = set_checked,
		[CA_TYPE_SAMPLER] = set_checked,   [CA_TYPE_METRICS] = set_checked,
	};
	const struct ca_setting *setting = ca_settings_get(id);
	union value value;
	enum ca_status status;

	status = parse[setting->type](setting, name ? name : setting->env, text, &value, err);
	if (status)
		return status;
	if (origin < settings->origin[id]) {
		drop(setting->type, value);
		return CA_OK;
	}
	store((char *)settings + setting->offset, setting->type, value);
	settings->origin[id] = (unsigned char)origin;
	return CA_OK;
}

enum ca_status ca_settings_set_speedups(struct ca_settings *settings, const struct ca_speedups *pool,
					enum ca_origin origin, struct ca_err *err)
{
	struct ca_speedups copy;
	enum ca_status status;

	if (origin < settings->origin[CA_SETTING_FIXED_SPEEDUP])
		return CA_OK;
	status = ca_speedups_copy(&copy, pool, err);
	if (status)
		return status;
	ca_speedups_fini(&settings->fixed_speedup);
	settings->fixed_speedup = copy;
	settings->origin[CA_SETTING_FIXED_SPEEDUP] = (unsigned char)origin;
	return CA_OK;
}
