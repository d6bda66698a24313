/* SPDX-License-Identifier: MIT */
/* Several regions at once: what was asked; see what_if.h. */
#include "causal/results/what_if.h"
#include "causal/results/catalog.h"
#include "core/err.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Names of C++ have commas and equals signs: a part ends with "=", a number, and a comma or the end. */
static const char *end_of_part(const char *text, const char **equals, unsigned long *percent)
{
	for (const char *c = strchr(text, '='); c; c = strchr(c + 1, '=')) {
		char *end;

		if (!isdigit((unsigned char)c[1]))
			continue;
		*percent = strtoul(c + 1, &end, 10);
		if (*end && *end != ',')
			continue;
		*equals = c;
		return *end ? end + 1 : end;
	}
	return NULL;
}

/* Insertion keeps the order of equals. */
static void add(struct ca_what_if *w, const char *name, size_t length, unsigned percent)
{
	unsigned at = w->parts++;

	for (; at && w->part[at - 1].percent > percent; at--)
		w->part[at] = w->part[at - 1];
	memcpy(w->part[at].name, name, length);
	w->part[at].name[length] = '\0';
	w->part[at].percent = percent;
}

enum ca_status ca_what_if_parse(struct ca_what_if *w, const char *text, struct ca_err *err)
{
	static const char form[] = "what-if: '%s' is not of the form NAME=PERCENT,NAME=PERCENT, as in "
				   "'parse=20,render=50', with 1 to 100 %% each";
	const char *from = text, *equals, *next;
	unsigned long percent;

	*w = (struct ca_what_if){ 0 };
	while (*from) {
		next = end_of_part(from, &equals, &percent);
		if (!next || equals == from || (size_t)(equals - from) >= sizeof w->part[0].name ||
		    percent < 1 || percent > 100)
			return ca_err_set(err, CA_ERR_USAGE, form, text);
		if (w->parts == CA_PARTS)
			return ca_err_set(err, CA_ERR_USAGE, "what-if: more than %d names", CA_PARTS);
		add(w, from, (size_t)(equals - from), (unsigned)percent);
		from = next;
	}
	if (w->parts < 2)
		return ca_err_set(err, CA_ERR_USAGE, form, text);
	for (unsigned i = 0; i < w->parts; i++)
		for (unsigned k = 0; k < i; k++)
			if (!strcmp(w->part[i].name, w->part[k].name))
				return ca_err_set(err, CA_ERR_USAGE, "what-if: '%s' is there twice",
						  w->part[i].name);
	return CA_OK;
}

unsigned ca_what_if_percent(const struct ca_what_if *w)
{
	return w->parts ? w->part[w->parts - 1].percent : 0;
}

/* Its name is what was asked; it lies in no file. */
unsigned ca_what_if_of_region(const struct ca_region *region)
{
	struct ca_what_if w;

	return !*region->file && ca_what_if_parse(&w, region->name, NULL) == CA_OK ? ca_what_if_percent(&w)
										   : 0;
}
