/* SPDX-License-Identifier: MIT */
/* Variants; see driver/variants.h. */
#include "driver/variants.h"
#include "core/memstream.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPEEDUPS = CA_AXES - 1 };

static enum ca_status no_memory(struct ca_err *err)
{
	return ca_err_set(err, CA_ERR_NOMEM, "no memory for the variants");
}

static enum ca_status add_patterns(struct ca_variants *variants, size_t axis, const struct ca_axis *given,
				   struct ca_err *err)
{
	variants->pattern[axis] = calloc(given->count + 1, sizeof *variants->pattern[axis]);
	if (!variants->pattern[axis])
		return no_memory(err);
	for (size_t i = 0; i < given->count; i++) {
		variants->pattern[axis][i] = strdup(given->group[i]);
		if (!variants->pattern[axis][i])
			return no_memory(err);
		variants->count[axis]++;
	}
	return CA_OK;
}

/* Room for n more pools. */
static enum ca_status grow(struct ca_variants *variants, size_t n, struct ca_err *err)
{
	size_t count = variants->count[SPEEDUPS] + n;
	struct ca_speedups *grown = reallocarray(variants->speedups, count + 1, sizeof *grown);

	if (!grown)
		return no_memory(err);
	variants->speedups = grown;
	return CA_OK;
}

/* flat: each number becomes a pool of its own. */
static enum ca_status add_speedups(struct ca_variants *variants, const struct ca_speedups *pool, bool flat,
				   struct ca_err *err)
{
	size_t n = flat ? pool->count : 1;
	enum ca_status status = grow(variants, n, err);

	for (size_t i = 0; i < n && !status; i++) {
		struct ca_speedups one = { .percent = pool->percent + i, .count = 1 };

		status = ca_speedups_copy(&variants->speedups[variants->count[SPEEDUPS]], flat ? &one : pool,
					  err);
		variants->count[SPEEDUPS] += !status;
	}
	return status;
}

static enum ca_status fill(struct ca_variants *variants, const struct ca_options *options,
			   const struct ca_settings *settings, struct ca_err *err)
{
	const struct ca_axis *given = &options->axis[SPEEDUPS];
	bool flat = settings->end_to_end;
	enum ca_status status = CA_OK;

	for (size_t i = 0; i < CA_PATTERN_AXES && !status; i++)
		status = add_patterns(variants, i, &options->axis[i], err);
	for (size_t i = 0; i < given->count && !status; i++)
		status = add_speedups(variants, &given->speedups[i], flat, err);
	if (!status && !given->count && settings->fixed_speedup.count)
		status = add_speedups(variants, &settings->fixed_speedup, flat, err);
	return status;
}

enum ca_status ca_variants_init(struct ca_variants *variants, const struct ca_options *options,
				const struct ca_settings *settings, struct ca_err *err)
{
	enum ca_status status;

	memset(variants, 0, sizeof *variants);
	status = fill(variants, options, settings, err);
	variants->iterations = (size_t)settings->iterations;
	variants->product = 1;
	for (size_t i = 0; i < CA_AXES && variants->product <= CA_VARIANTS_MAX; i++)
		if (variants->count[i])
			variants->product *= variants->count[i];
	variants->total = variants->product * variants->iterations;
	if (!status && (variants->product > CA_VARIANTS_MAX || variants->total > CA_VARIANTS_MAX))
		status = ca_err_set(err, CA_ERR_USAGE,
				    "the options ask for more than %d runs; give fewer groups or iterations",
				    CA_VARIANTS_MAX);
	if (status)
		ca_variants_fini(variants);
	return status;
}

void ca_variants_fini(struct ca_variants *variants)
{
	for (size_t i = 0; i < CA_PATTERN_AXES; i++) {
		for (size_t j = 0; j < variants->count[i]; j++)
			free(variants->pattern[i][j]);
		free(variants->pattern[i]);
	}
	for (size_t j = 0; j < variants->count[SPEEDUPS]; j++)
		ca_speedups_fini(&variants->speedups[j]);
	free(variants->speedups);
	memset(variants, 0, sizeof *variants);
}

void ca_variants_get(const struct ca_variants *variants, size_t index, struct ca_variant *variant)
{
	size_t rest = index % variants->product;

	memset(variant, 0, sizeof *variant);
	variant->index = index;
	variant->iteration = index / variants->product + 1;
	for (size_t i = 0; i < CA_AXES; i++) {
		size_t count = variants->count[i];

		if (!count)
			continue;
		if (i == SPEEDUPS)
			variant->speedups = &variants->speedups[rest % count];
		else
			variant->pattern[i] = variants->pattern[i][rest % count];
		rest /= count;
	}
}

enum ca_status ca_variants_settings(const struct ca_variant *variant, const struct ca_settings *base,
				    struct ca_settings *settings, struct ca_err *err)
{
	enum ca_status status = ca_settings_copy(settings, base, err);

	if (status)
		return status;
	for (size_t i = 0; i < CA_PATTERN_AXES && !status; i++) {
		enum ca_setting_id id = (enum ca_setting_id)(CA_AXIS_FIRST + i);

		if (variant->pattern[i])
			status = ca_settings_set(settings, id, variant->pattern[i], CA_ORIGIN_COMMAND, NULL,
						 err);
	}
	if (variant->speedups && !status)
		status = ca_settings_set_speedups(settings, variant->speedups, CA_ORIGIN_COMMAND, err);
	if (status)
		ca_settings_fini(settings);
	return status;
}

char *ca_variants_line(const struct ca_variants *variants, const struct ca_variant *variant)
{
	char *text = NULL, *speedups;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "%*zu: iteration=%zu", ca_variants_width(variants->total), variant->index,
		variant->iteration);
	for (size_t i = 0; i < CA_PATTERN_AXES; i++)
		if (variant->pattern[i])
			fprintf(out, " %s=%s", ca_settings_get((enum ca_setting_id)(CA_AXIS_FIRST + i))->env,
				variant->pattern[i]);
	speedups = variant->speedups ? ca_speedups_text(variant->speedups) : NULL;
	if (speedups)
		fprintf(out, " %s=%s", ca_settings_get(CA_SETTING_FIXED_SPEEDUP)->env, speedups);
	free(speedups);
	ca_memstream_end(out, &text);
	return text;
}

int ca_variants_width(size_t total)
{
	int width = 1;

	for (; total >= 10; total /= 10)
		width++;
	return width;
}
