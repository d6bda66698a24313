/* SPDX-License-Identifier: MIT */
/* Names of regions for people; see causal/results/labels.h. */
#include "causal/results/labels.h"
#include "causal/results/plain.h"
#include "causal/results/text.h"
#include "core/path.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How much is said of a region: each level tells more regions apart. */
enum level { NAME, PLACE, PATH, BINARY, NUMBER, LEVELS };

/* "libz.so!" of /usr/lib/libz.so.1: as --progress takes it. Empty for an executable. */
static int library(const char *binary, const char **start)
{
	const char *file = ca_path_base(binary), *so = strstr(file, ".so");

	*start = file;
	return so && (!so[3] || so[3] == '.') ? (int)(so + 3 - file) : 0;
}

static char *describe(const struct ca_region *region, enum level level)
{
	const char *file, *where = level == PLACE ? ca_path_base(region->file) : region->file;
	int length = library(region->binary, &file), status;
	char *name = ca_plain_name(region->name), *text = NULL;

	if (!name)
		return NULL;
	if (level == BINARY)
		status = asprintf(&text, "%s (%s)", name, region->binary);
	else if (level == NUMBER)
		status = asprintf(&text, "%s (%u)", name, region->id);
	else if (level == NAME || !*region->file || !region->line)
		status = asprintf(&text, "%.*s%s%s", length, file, length ? "!" : "", name);
	else if (level == PLACE && region->kind == CA_REGION_LINE)
		status = asprintf(&text, "%.*s%s%s (%s)", length, file, length ? "!" : "", name,
				  region->function);
	else
		status = asprintf(&text, "%.*s%s%s (%s:%u)", length, file, length ? "!" : "", name, where,
				  region->line);
	free(name);
	return status < 0 ? NULL : text;
}

/* Is it called like another region? */
static bool is_doubled(const struct ca_region *const *region, char *const *text, size_t n, size_t i)
{
	for (size_t j = 0; j < n; j++)
		if (region[j] != region[i] && text[j] && !strcmp(text[j], text[i]))
			return true;
	return false;
}

/* "f(int, char)" of "lib.so!a::f(int, char)": where parameters alone tell code apart, what it is called has to be
 * there, too. */
static char *last_of(const char *text)
{
	char *bare = ca_plain_bare(text);

	if (!bare || !strcmp(bare, text))
		return bare;
	free(bare);
	return strdup(ca_plain_last(text));
}

/* What is too long loses what nobody needs, where nothing else is called like that. */
static bool shorten(const struct ca_region *const *region, char **text, size_t n, size_t width)
{
	static char *(*const less[])(const char *) = { ca_plain_bare, ca_plain_templates, last_of };
	bool ok = true;

	for (size_t how = 0; ok && how < sizeof less / sizeof *less; how++) {
		char **shorter = calloc(n + 1, sizeof *shorter);

		ok = shorter;
		for (size_t i = 0; ok && i < n; i++)
			ok = (shorter[i] = less[how](text[i])) != NULL;
		for (size_t i = 0; ok && i < n; i++) {
			if (ca_text_width(text[i]) <= width || is_doubled(region, shorter, n, i))
				continue;
			free(text[i]);
			text[i] = strdup(shorter[i]);
			ok = text[i];
		}
		ca_labels_free(shorter, n);
	}
	return ok;
}

/* Cut where the result differs from what all others would be if they were cut there. */
static char *cut_apart(const struct ca_region *const *region, char *const *text, size_t n, size_t i,
		       size_t width)
{
	size_t best = ca_plain_head(text[i], width);
	char number[16], *cut, *numbered;

	for (size_t step = 0; step < 2 * width; step++) {
		size_t off = (step + 1) / 2, head;
		bool alike = false;

		if (off > (step % 2 ? width - 1 - best : best))
			continue;
		head = step % 2 ? best + off : best - off;
		cut = ca_text_cut(text[i], width, head);
		for (size_t j = 0; cut && !alike && j < n; j++) {
			char *other = region[j] == region[i] ? NULL : ca_text_cut(text[j], width, head);

			alike = other && !strcmp(other, cut);
			free(other);
		}
		if (!alike)
			return cut;
		free(cut);
	}
	/* they differ in more places than there is room for */
	snprintf(number, sizeof number, "#%u", region[i]->id);
	if (width <= strlen(number))
		return ca_text_cut(number, width, 0);
	cut = ca_text_cut(ca_plain_last(text[i]), width - strlen(number), width);
	if (!cut || asprintf(&numbered, "%s%s", cut, number) < 0)
		numbered = NULL;
	free(cut);
	return numbered;
}

void ca_labels_free(char **label, size_t n)
{
	for (size_t i = 0; label && i < n; i++)
		free(label[i]);
	free(label);
}

/* What is called alike says more. */
static bool set_apart(const struct ca_region *const *region, char **text, size_t n, enum level level)
{
	bool *doubled = calloc(n + 1, sizeof *doubled), ok = doubled;

	for (size_t i = 0; ok && i < n; i++)
		doubled[i] = is_doubled(region, text, n, i);
	for (size_t i = 0; ok && i < n; i++)
		if (doubled[i]) {
			free(text[i]);
			text[i] = describe(region[i], level);
			ok = text[i];
		}
	free(doubled);
	return ok;
}

static bool name_all(const struct ca_region *const *region, char **text, size_t n, size_t width)
{
	for (size_t i = 0; i < n; i++)
		if (!(text[i] = describe(region[i], NAME)))
			return false;
	for (enum level level = PLACE; level < LEVELS; level++)
		if (!set_apart(region, text, n, level))
			return false;
	for (size_t i = 0; i < n; i++) { /* and its place, if there is room */
		char *bare = describe(region[i], NAME), *placed = describe(region[i], PLACE);

		if (bare && placed && !strcmp(text[i], bare) && ca_text_width(placed) <= width) {
			free(text[i]);
			text[i] = placed;
			placed = NULL;
		}
		free(bare);
		free(placed);
	}
	return true;
}

char **ca_labels_make(const struct ca_region *const *region, size_t n, size_t width)
{
	char **text = calloc(n + 1, sizeof *text), **label = calloc(n + 1, sizeof *label);
	bool ok = text && label && name_all(region, text, n, width) && shorten(region, text, n, width);

	for (size_t i = 0; ok && i < n; i++) {
		label[i] = ca_text_width(text[i]) <= width ? ca_text_cut(text[i], width, width)
							   : cut_apart(region, text, n, i, width);
		ok = label[i];
	}
	ca_labels_free(text, n);
	if (!ok) {
		ca_labels_free(label, n);
		return NULL;
	}
	return label;
}
