/* SPDX-License-Identifier: MIT */
/* profile.coz: the experiments as text records that Coz's viewer opens. Only experiments
 * that are used for the estimates are in it. Driver's process, one thread. */
#include "causal/results/profile.h"
#include <inttypes.h>

/* Fields are separated by tabs and records by newlines. */
static void put_text(FILE *file, const char *text)
{
	for (; *text; text++)
		fputc(*text == '\t' || *text == '\n' || *text == '\r' ? ' ' : *text, file);
}

static void put_region(FILE *file, const struct ca_region *region)
{
	if (region->kind == CA_REGION_LINE && *region->file) {
		put_text(file, region->file);
		fprintf(file, ":%u", region->line);
	} else {
		put_text(file, region->name);
	}
}

static void put_visits(FILE *file, const struct ca_profile *profile, const struct ca_profile_visits *visits)
{
	const struct ca_profile_point *point = &profile->point[visits->point];

	if (point->kind == 'l') {
		/* A whole number, and at least 1: a latency of nothing in flight divides by zero.
		 */
		uint64_t difference = (uint64_t)(visits->in_flight + 0.5);

		fputs("latency-point\tname=", file);
		put_text(file, point->name);
		fprintf(file, "\tarrivals=%" PRIu64 "\tdepartures=%" PRIu64 "\tdifference=%" PRIu64 "\n",
			visits->arrivals, visits->delta, difference ? difference : 1);
	} else {
		fputs("throughput-point\tname=", file);
		put_text(file, point->name);
		fprintf(file, "\tdelta=%" PRIu64 "\n", visits->delta);
	}
}

static void put_experiment(FILE *file, const struct ca_profile *profile,
			   const struct ca_profile_experiment *e)
{
	const struct ca_region *region = ca_catalog_get_region(&profile->catalog, e->region);

	if (e->flags || !region)
		return;
	fputs("experiment\tselected=", file);
	put_region(file, region);
	fprintf(file, "\tspeedup=%.2f\tduration=%" PRIu64 "\tselected-samples=%" PRIu64 "\n",
		e->speedup / 1e6, e->duration, e->hits);
	for (size_t v = e->first; v < e->first + e->visits; v++)
		put_visits(file, profile, &profile->visits[v]);
}

bool ca_profile_write_coz(const struct ca_profile *profile, FILE *file)
{
	size_t e = 0, s = 0;

	for (uint32_t r = 0; r < profile->runs; r++) {
		const struct ca_profile_run *run = &profile->run[r];

		fprintf(file, "startup\ttime=%" PRIu64 "\n", run->time);
		for (; e < profile->experiments && profile->experiment[e].run == r; e++)
			put_experiment(file, profile, &profile->experiment[e]);
		if (run->ended)
			fprintf(file, "runtime\ttime=%" PRIu64 "\n", run->summary.runtime);
		for (; s < profile->sample_count && profile->samples[s].run == r; s++) {
			fputs("samples\tlocation=", file);
			put_region(file,
				   ca_catalog_get_region(&profile->catalog, profile->samples[s].region));
			fprintf(file, "\tcount=%" PRIu64 "\n", profile->samples[s].count);
		}
	}
	return !ferror(file);
}
