/* SPDX-License-Identifier: MIT */
/* Expanding pools of virtual speedups; see core/speedups.h. Pure functions of their input. */
#include "core/speedups.h"
#include "core/vec.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char separators[] = ",; \t\r\n";

static enum ca_status no_memory(struct ca_err *err)
{
	return ca_err_set(err, CA_ERR_NOMEM, "no memory for the speedups");
}

static enum ca_status add(struct ca_speedups *pool, unsigned percent, struct ca_err *err)
{
	unsigned *more;

	if (pool->count == CA_SPEEDUPS_MAX)
		return ca_err_set(err, CA_ERR_USAGE, "more than %d speedups in one group; give fewer",
				  CA_SPEEDUPS_MAX);
	more = ca_vec_more(pool->percent, pool->count, sizeof *more);
	if (!more)
		return no_memory(err);
	pool->percent = more;
	pool->percent[pool->count++] = percent;
	return CA_OK;
}

/* Digits, and perhaps a %: no sign, no space. False when there is none, or the number is absurd. */
static bool number(const char **at, unsigned *number)
{
	const char *start = *at;
	unsigned value = 0;

	for (; isdigit((unsigned char)**at); (*at)++)
		if (value < 1000000)
			value = 10 * value + (unsigned)(**at - '0');
	*number = value;
	if (*at == start)
		return false;
	*at += **at == '%';
	return true;
}

static enum ca_status malformed(const char *token, struct ca_err *err)
{
	return ca_err_set(err, CA_ERR_USAGE,
			  "'%s' is not a speedup; write a number 0..100 or a range like 0-40 or 0-40:10",
			  token);
}

static enum ca_status add_token(struct ca_speedups *pool, const char *token, struct ca_err *err)
{
	const char *at = token;
	unsigned first, last, step = CA_SPEEDUP_STEP;
	enum ca_status status;

	if (!number(&at, &first))
		return malformed(token, err);
	last = first;
	if (*at == '-') {
		at++;
		if (!number(&at, &last))
			return malformed(token, err);
		if (*at == ':') {
			at++;
			if (!number(&at, &step))
				return malformed(token, err);
			if (!step)
				return ca_err_set(err, CA_ERR_USAGE,
						  "the step of '%s' is 0; give one of 1..100", token);
		}
	}
	if (*at)
		return malformed(token, err);
	if (first > 100 || last > 100)
		return ca_err_set(err, CA_ERR_USAGE,
				  "speedup '%s' is not within 0..100; give percentages in that "
				  "range",
				  token);
	do {
		status = add(pool, first, err);
		first += step;
	} while (!status && first <= last);
	return status;
}

enum ca_status ca_speedups_parse(struct ca_speedups *pool, const char *text, struct ca_err *err)
{
	struct ca_speedups parsed = { 0 };
	char *copy = strdup(text), *rest = NULL;
	enum ca_status status = copy ? CA_OK : no_memory(err);

	for (char *token = copy ? strtok_r(copy, separators, &rest) : NULL; token && !status;
	     token = strtok_r(NULL, separators, &rest))
		status = add_token(&parsed, token, err);
	free(copy);
	if (status)
		ca_speedups_fini(&parsed);
	else
		*pool = parsed;
	return status;
}

enum ca_status ca_speedups_copy(struct ca_speedups *to, const struct ca_speedups *from, struct ca_err *err)
{
	struct ca_speedups copy = { .count = from->count };

	if (copy.count) {
		copy.percent = malloc(copy.count * sizeof *copy.percent);
		if (!copy.percent)
			return no_memory(err);
		memcpy(copy.percent, from->percent, copy.count * sizeof *copy.percent);
	}
	*to = copy;
	return CA_OK;
}

void ca_speedups_fini(struct ca_speedups *pool)
{
	free(pool->percent);
	*pool = (struct ca_speedups){ 0 };
}

char *ca_speedups_text(const struct ca_speedups *pool)
{
	char *text = malloc(pool->count * 4 + 1), *at = text;

	if (!text)
		return NULL;
	*at = '\0';
	for (size_t i = 0; i < pool->count; i++)
		at += sprintf(at, "%s%u", i ? "," : "", pool->percent[i]);
	return text;
}
