/* Variants; see driver/variants.h. */
#include "driver/variants.h"
#include "core/speedups.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPEEDUPS = CA_AXES - 1 };

static enum ca_status add(struct ca_variants *variants, size_t axis, char *value,
			  struct ca_err *err)
{
	size_t count = variants->axis[axis].count;
	char **grown =
		value ? realloc(variants->axis[axis].value, (count + 1) * sizeof *grown) : NULL;

	if (!grown) {
		free(value);
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for the variants");
	}
	grown[count] = value;
	variants->axis[axis].value = grown;
	variants->axis[axis].count = count + 1;
	return CA_OK;
}

static enum ca_status add_speedups(struct ca_variants *variants, const char *group, bool flat,
				   struct ca_err *err)
{
	unsigned *number;
	size_t count;
	enum ca_status status = ca_speedups_parse(group, &number, &count, err);

	if (status)
		return status;
	if (!flat)
		status = add(variants, SPEEDUPS, ca_speedups_text(number, count), err);
	for (size_t i = 0; flat && i < count && !status; i++)
		status = add(variants, SPEEDUPS, ca_speedups_text(number + i, 1), err);
	free(number);
	return status;
}

static enum ca_status fill(struct ca_variants *variants, const struct ca_options *options,
			   const struct ca_settings *settings, struct ca_err *err)
{
	bool flat = settings->end_to_end;
	enum ca_status status = CA_OK;

	for (size_t i = 0; i < CA_AXES; i++) {
		const struct ca_axis *axis = &options->axis[i];

		for (size_t j = 0; j < axis->count && !status; j++)
			status = i == SPEEDUPS ? add_speedups(variants, axis->group[j], flat, err)
					       : add(variants, i, strdup(axis->group[j]), err);
	}
	if (!status && !options->axis[SPEEDUPS].count && *settings->fixed_speedup)
		status = add_speedups(variants, settings->fixed_speedup, flat, err);
	return status;
}

enum ca_status ca_variants_init(struct ca_variants *variants, const struct ca_options *options,
				const struct ca_settings *settings, struct ca_err *err)
{
	enum ca_status status;

	memset(variants, 0, sizeof *variants);
	status = fill(variants, options, settings, err);
	variants->iterations = settings->iterations < 1 ? 1 : (size_t)settings->iterations;
	variants->product = 1;
	for (size_t i = 0; i < CA_AXES && variants->product <= CA_VARIANTS_MAX; i++)
		if (variants->axis[i].count)
			variants->product *= variants->axis[i].count;
	variants->total = variants->product * variants->iterations;
	if (!status && (variants->product > CA_VARIANTS_MAX || variants->total > CA_VARIANTS_MAX))
		status = ca_err_set(
			err, CA_ERR_USAGE,
			"more than %d runs were asked for; give fewer groups or iterations",
			CA_VARIANTS_MAX);
	if (status)
		ca_variants_fini(variants);
	return status;
}

void ca_variants_fini(struct ca_variants *variants)
{
	for (size_t i = 0; i < CA_AXES; i++) {
		for (size_t j = 0; j < variants->axis[i].count; j++)
			free(variants->axis[i].value[j]);
		free(variants->axis[i].value);
	}
	memset(variants, 0, sizeof *variants);
}

void ca_variants_get(const struct ca_variants *variants, size_t index, struct ca_variant *variant)
{
	size_t rest = index % variants->product;

	memset(variant, 0, sizeof *variant);
	variant->index = index;
	variant->iteration = index / variants->product + 1;
	for (size_t i = 0; i < CA_AXES; i++) {
		size_t count = variants->axis[i].count;

		if (!count)
			continue;
		variant->value[i] = variants->axis[i].value[rest % count];
		rest /= count;
	}
}

enum ca_status ca_variants_settings(const struct ca_variant *variant,
				    const struct ca_settings *base, struct ca_settings *settings,
				    struct ca_err *err)
{
	enum ca_status status = ca_settings_copy(settings, base, err);

	if (status)
		return status;
	for (size_t i = 0; i < CA_AXES && !status; i++) {
		enum ca_setting_id id = (enum ca_setting_id)(CA_AXIS_FIRST + i);

		if (variant->value[i])
			status = ca_settings_set(settings, id, variant->value[i], CA_ORIGIN_COMMAND,
						 NULL, err);
	}
	if (status)
		ca_settings_fini(settings);
	return status;
}

char *ca_variants_line(const struct ca_variants *variants, const struct ca_variant *variant)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "%*zu: iteration=%zu", ca_variants_width(variants->total), variant->index,
		variant->iteration);
	for (size_t i = 0; i < CA_AXES; i++)
		if (variant->value[i])
			fprintf(out, " %s=%s",
				ca_setting_get((enum ca_setting_id)(CA_AXIS_FIRST + i))->env,
				variant->value[i]);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

int ca_variants_width(size_t total)
{
	int width = 1;

	for (; total >= 10; total /= 10)
		width++;
	return width;
}
