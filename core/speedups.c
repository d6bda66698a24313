/* Expanding pools of virtual speedups; see core/speedups.h. Pure functions of their input. */
#include "core/speedups.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char separators[] = ",; \t\r\n";

struct pool {
	unsigned *value;
	size_t count, size;
};

static enum ca_status add(struct pool *pool, unsigned value, struct ca_err *err)
{
	if (pool->count == CA_SPEEDUPS_MAX)
		return ca_err_set(err, CA_ERR_USAGE,
				  "more than %d speedups in one group; give fewer",
				  CA_SPEEDUPS_MAX);
	if (pool->count == pool->size) {
		size_t size = pool->size ? 2 * pool->size : 32;
		unsigned *value_new = realloc(pool->value, size * sizeof *value_new);

		if (!value_new)
			return ca_err_set(err, CA_ERR_NOMEM, "no memory for the speedups");
		pool->value = value_new;
		pool->size = size;
	}
	pool->value[pool->count++] = value;
	return CA_OK;
}

/* Digits only: no sign, no space. False when there is none, or the number is absurd. */
static bool number(const char **at, unsigned *number)
{
	const char *start = *at;
	unsigned value = 0;

	for (; isdigit((unsigned char)**at); (*at)++)
		if (value < 1000000)
			value = 10 * value + (unsigned)(**at - '0');
	*number = value;
	return *at != start;
}

static enum ca_status malformed(const char *token, struct ca_err *err)
{
	return ca_err_set(
		err, CA_ERR_USAGE,
		"'%s' is no speedup; write a number 0..100 or a range like 0-40 or 0-40:10", token);
}

static enum ca_status add_token(struct pool *pool, const char *token, struct ca_err *err)
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
						  "the step of '%s' is 0; give one of 1..100",
						  token);
		}
	}
	if (*at)
		return malformed(token, err);
	if (first > 100 || last > 100)
		return ca_err_set(err, CA_ERR_USAGE,
				  "speedup '%s' is not within 0..100; give percents in that range",
				  token);
	do {
		status = add(pool, first, err);
		first += step;
	} while (!status && first <= last);
	return status;
}

enum ca_status ca_speedups_parse(const char *text, unsigned **value, size_t *count,
				 struct ca_err *err)
{
	struct pool pool = { 0 };
	char *copy = strdup(text), *rest = NULL;
	enum ca_status status = CA_OK;

	if (!copy)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for the speedups");
	for (char *token = strtok_r(copy, separators, &rest); token && !status;
	     token = strtok_r(NULL, separators, &rest))
		status = add_token(&pool, token, err);
	free(copy);
	if (status) {
		free(pool.value);
		return status;
	}
	*value = pool.value;
	*count = pool.count;
	return CA_OK;
}

char *ca_speedups_text(const unsigned *value, size_t count)
{
	char *text = malloc(count * 4 + 1), *at = text;

	if (!text)
		return NULL;
	*at = '\0';
	for (size_t i = 0; i < count; i++)
		at += sprintf(at, "%s%u", i ? "," : "", value[i]);
	return text;
}
