/* SPDX-License-Identifier: MIT */
/* Lists of numbers; see numbers.h. */
#include "core/numbers.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define BETWEEN ", ;\t"

/* At *text; false: there is none, or it is too large. */
static bool read_number(const char **text, uint32_t *number)
{
	unsigned long value;
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	value = strtoul(*text, &end, 10);
	*text = end;
	*number = (uint32_t)value;
	return value <= INT32_MAX;
}

/* Moves *text behind it. */
static bool read_range(const char **text, uint32_t *first, uint32_t *last)
{
	if (!read_number(text, first))
		return false;
	*last = *first;
	if (**text == '-') {
		++*text;
		if (!read_number(text, last))
			return false;
	}
	return *last >= *first && (!**text || strchr(BETWEEN, **text));
}

enum ca_status ca_numbers_check(const char *text, uint32_t least, uint32_t most, struct ca_err *err)
{
	uint32_t first, last;

	for (const char *at = text + strspn(text, BETWEEN); *at; at += strspn(at, BETWEEN)) {
		if (!read_range(&at, &first, &last))
			return ca_err_set(err, CA_ERR_USAGE,
					  "'%s' is no list of numbers; write numbers and ranges, like 0,2-4",
					  text);
		if (first < least && most == INT32_MAX)
			return ca_err_set(err, CA_ERR_USAGE, "'%s': numbers begin with %u", text, least);
		if (first < least || last > most)
			return ca_err_set(err, CA_ERR_USAGE, "'%s': there are %u to %u", text, least, most);
	}
	return CA_OK;
}

bool ca_numbers_range(const char *text, unsigned i, uint32_t *first, uint32_t *last)
{
	for (const char *at = text + strspn(text, BETWEEN); *at; at += strspn(at, BETWEEN)) {
		if (!read_range(&at, first, last))
			return false;
		if (!i--)
			return true;
	}
	return false;
}

bool ca_numbers_hold(const char *text, uint32_t number)
{
	uint32_t first, last;

	for (unsigned i = 0; ca_numbers_range(text, i, &first, &last); i++)
		if (first <= number && number <= last)
			return true;
	return !text[strspn(text, BETWEEN)];
}
