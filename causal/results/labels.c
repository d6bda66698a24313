/* SPDX-License-Identifier: MIT */
/* Names of regions for people; see causal/results/labels.h. */
#include "causal/results/labels.h"
#include "causal/results/text.h"
#include "core/path.h"
#include <ctype.h>
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
	char *text = NULL;

	if (level == BINARY)
		status = asprintf(&text, "%s (%s)", region->name, region->binary);
	else if (level == NUMBER)
		status = asprintf(&text, "%s (%u)", region->name, region->id);
	else if (level == NAME || !*region->file || !region->line)
		status = asprintf(&text, "%.*s%s%s", length, file, length ? "!" : "", region->name);
	else if (level == PLACE && region->kind == CA_REGION_LINE)
		status = asprintf(&text, "%.*s%s%s (%s)", length, file, length ? "!" : "", region->name,
				  region->function);
	else
		status = asprintf(&text, "%.*s%s%s (%s:%u)", length, file, length ? "!" : "", region->name,
				  where, region->line);
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

/* "a::f(int, char) const (a.cc:5)" becomes "a::f (a.cc:5)". */
static char *without_parameters(const char *text)
{
	char *bare = strdup(text), *to = bare;
	unsigned depth = 0;

	for (const char *at = text; bare && *at; at++) {
		bool opens = *at == '(' && (depth || (at > text && (isalnum((unsigned char)at[-1]) ||
								    strchr("_>=~])", at[-1]))));

		/* "operator()" is a name */
		opens = opens && (depth || at - text < 8 || memcmp(at - 8, "operator", 8) != 0);
		depth += opens;
		if (!depth)
			*to++ = *at;
		depth -= depth && *at == ')';
		if (*at == ')' && !depth && !strncmp(at + 1, " const", 6))
			at += 6;
	}
	if (bare)
		*to = 0;
	return bare;
}

/* What is too long loses its parameters, where nothing else is called like that. */
static bool shorten(const struct ca_region *const *region, char **text, size_t n, size_t width)
{
	char **bare = calloc(n + 1, sizeof *bare);
	bool ok = bare;

	for (size_t i = 0; ok && i < n; i++)
		ok = (bare[i] = without_parameters(text[i])) != NULL;
	for (size_t i = 0; ok && i < n; i++)
		if (ca_text_width(text[i]) > width && !is_doubled(region, bare, n, i)) {
			free(text[i]);
			text[i] = strdup(bare[i]);
			ok = text[i];
		}
	ca_labels_free(bare, n);
	return ok;
}

/* How much of a name stands before the cut: its last part stays whole, if it is not all of it. */
static size_t head_of(const char *text, size_t width)
{
	const char *last = text;
	size_t tail;

	for (const char *at = text; *at && *at != '(' && *at != '<'; at++)
		if (*at == '!' || (*at == ':' && at[1] == ':'))
			last = at + (*at == ':') + 1;
	tail = ca_text_width(last);
	return last > text && tail > width / 2 && tail < width - 1 ? width - 1 - tail : (width - 1) / 2;
}

/* Cut where the result differs from what all others would be if they were cut there. */
static char *cut_apart(const struct ca_region *const *region, char *const *text, size_t n, size_t i,
		       size_t width)
{
	size_t best = head_of(text[i], width);
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
	cut = ca_text_cut(text[i], width - strlen(number), width);
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
