/* SPDX-License-Identifier: MIT */
/* See late_names.h. */
#include "causal/conductor/late_names.h"
#include "core/event.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct late {
	uint32_t process, function, named;
	uint64_t address;
};

void ca_late_names_init(struct ca_late_names *late)
{
	late->list = (struct ca_vec){ .size = sizeof(struct late) };
}

void ca_late_names_fini(struct ca_late_names *late)
{
	ca_vec_free(&late->list);
}

uint32_t ca_late_names_add(struct ca_late_names *late, struct ca_samples *samples, uint32_t process,
			   uint64_t address)
{
	struct late one = { .process = process, .address = address };
	size_t functions = samples->functions;
	char text[48];

	snprintf(text, sizeof text, "%" PRIu32 " 0x%" PRIx64, process, address);
	one.function = ca_samples_function(samples, CA_SAMPLES_CODE, text, "", 0, CA_MADE);
	if (samples->functions > functions && !ca_vec_add(&late->list, &one, 1))
		samples->failed = true;
	return one.function;
}

void ca_late_names_settle(struct ca_late_names *late, struct ca_samples *samples, ca_late_names_find *find,
			  void *context)
{
	struct late *one = late->list.at;
	uint32_t *of, functions;

	if (!late->list.n)
		return;
	for (size_t i = 0; i < late->list.n; i++) {
		const char *name = find(context, one[i].process, one[i].address);

		one[i].named =
			ca_samples_function(samples, CA_SAMPLES_CODE, name ? name : CA_MADE, "", 0, CA_MADE);
	}
	functions = (uint32_t)samples->functions; /* with these */
	of = calloc(functions, sizeof *of);
	for (uint32_t f = 0; f < functions && of; f++)
		of[f] = f + 1;
	for (size_t i = 0; i < late->list.n && of; i++)
		if (one[i].named)
			of[one[i].function - 1] = one[i].named;
	if (of)
		ca_samples_rename(samples, of);
	samples->failed |= !of;
	free(of);
	late->list.n = 0;
}
