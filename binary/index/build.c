/* SPDX-License-Identifier: MIT */
/* ca_index_open: from the cache, or built and put there. Driver's process; may be called
 * from several threads at once, for the same binary too. */
#include "binary/index/bare_rows.h"
#include "binary/index/cache.h"
#include "binary/index/cfi.h"
#include "binary/index/dwarf.h"
#include "binary/index/dwarf_unit.h"
#include "binary/index/index_file.h"
#include "binary/index/symbols.h"
#include "binary/index/usdt.h"
#include "binary/index/write.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An index in the making. All addresses in records are relative to object.base. */
struct build {
	struct ca_object object;
	enum ca_index_want want;
	ca_index_warning *warning; /* for trouble with the cache */
	void *context;
	struct ca_strings strings;
	struct ca_vec part[CA_INDEX_PARTS]; /* finished records; the strings stay in `strings` */
	struct ca_vec frames;               /* struct ca_frame */
	struct ca_vec subprograms;          /* struct ca_subprogram */
	uint32_t binary;                    /* the path, in strings */
	bool has_lines;
	bool incomplete; /* something is missing that may appear later: do not cache */
};

/* Set parent in records that start with low, high (sorted by low, longest first). */
static void nest(struct ca_vec *vec, size_t parent_offset)
{
	uint32_t top = CA_INDEX_NOTHING;

	for (uint32_t i = 0; i < vec->n; i++) {
		char *record = (char *)vec->at + i * vec->size;
		uint32_t low, high;

		memcpy(&low, record, sizeof(low));
		/* what ends before this one starts covers nothing from here on */
		while (top != CA_INDEX_NOTHING) {
			const char *outer = (char *)vec->at + top * vec->size;
			memcpy(&high, outer + sizeof(low), sizeof(high));
			if (high > low)
				break;
			memcpy(&top, outer + parent_offset, sizeof(top));
		}
		memcpy(record + parent_offset, &top, sizeof(top));
		top = i;
	}
}

static void build_init(struct build *build, enum ca_index_want want, ca_index_warning *warning, void *context)
{
	static const size_t size[CA_INDEX_PARTS] = {
		sizeof(struct ca_record_function),
		sizeof(struct ca_record_line),
		sizeof(struct ca_record_inline),
		sizeof(struct ca_unwind_row),
		sizeof(uint32_t),
		sizeof(struct ca_record_probe),
		sizeof(uint32_t),
		1,
	};

	*build = (struct build){ .want = want, .warning = warning, .context = context };
	for (unsigned i = 0; i < CA_INDEX_PARTS; i++)
		build->part[i].size = size[i];
	build->frames.size = sizeof(struct ca_frame);
	build->subprograms.size = sizeof(struct ca_subprogram);
}

static void build_fini(struct build *build)
{
	for (unsigned i = 0; i < CA_INDEX_PARTS; i++)
		ca_vec_free(&build->part[i]);
	ca_vec_free(&build->frames);
	ca_vec_free(&build->subprograms);
	ca_strings_free(&build->strings);
	ca_object_close(&build->object);
}

static bool read_dwarf(struct build *build, struct ca_warnings *warnings)
{
	struct ca_dwarf out = { .strings = &build->strings,
				.lines = &build->part[CA_PART_LINES],
				.inlines = &build->part[CA_PART_INLINES],
				.subprograms = &build->subprograms };
	bool ok = ca_dwarf_read(&build->object, &out, warnings);

	nest(out.inlines, offsetof(struct ca_record_inline, parent));
	build->has_lines = out.has_lines;
	build->incomplete = out.incomplete;
	return ok;
}

static enum ca_status build_parts(struct build *build)
{
	const struct ca_object *object = &build->object;
	struct ca_vec *part = build->part;
	struct ca_warnings warnings = { &build->strings, &part[CA_PART_WARNINGS] };
	bool failed = false;

	build->binary = ca_strings_put(&build->strings, object->path);
	ca_cfi_read(object, &part[CA_PART_ROWS], &build->frames, &warnings);
	if (build->want == CA_INDEX_FULL)
		failed = !read_dwarf(build, &warnings);
	ca_symbols_read(object, &build->subprograms, &build->frames, &build->strings,
			&part[CA_PART_FUNCTIONS]);
	ca_bare_rows_add(object, &part[CA_PART_FUNCTIONS], &part[CA_PART_ROWS]);
	nest(&part[CA_PART_FUNCTIONS], offsetof(struct ca_record_function, parent));
	ca_usdt_read(object, &build->strings, &part[CA_PART_PROBES], &warnings);
	for (unsigned i = 0; i < CA_INDEX_PARTS; i++)
		failed |= part[i].failed;
	failed |= build->strings.failed || build->frames.failed || build->subprograms.failed;
	return failed ? CA_ERR_NOMEM : CA_OK;
}

/* Map a file and check all of it. */
static enum ca_status map_checked(struct ca_index **index, const char *path)
{
	struct ca_index *new;
	enum ca_status status = ca_index_map(&new, path);

	if (status != CA_OK)
		return status;
	struct ca_index_header zeroed = *new->header;
	zeroed.checksum = 0;
	if (ca_index_checksum(&zeroed, sizeof(zeroed)) +
		    ca_index_checksum(new->header + 1, new->header->file_size - sizeof(zeroed)) !=
	    new->header->checksum) {
		ca_index_close(new);
		return CA_ERR_FORMAT;
	}
	*index = new;
	return CA_OK;
}

/* Write to a temporary in the directory and give it its name. directory NULL: leave it as a
 * temporary, which ca_index_close removes. */
static enum ca_status store(const struct build *build, const char *directory, const char *name,
			    struct ca_index **index)
{
	const struct ca_index_header about = {
		.base = build->object.base,
		.span = build->object.span,
		.want = build->want,
		.binary = build->binary,
		.flags = build->has_lines ? CA_INDEX_HAS_LINES : 0,
	};
	char temporary[CA_CACHE_PATH], final[CA_CACHE_PATH + 256];
	int fd = ca_cache_create(directory, temporary);

	if (fd < 0)
		return errno == EACCES ? CA_ERR_PERMISSION : CA_ERR_IO;
	enum ca_status status = ca_write_index(&about, build->part, &build->strings, fd);
	if (close(fd) < 0 && status == CA_OK)
		status = CA_ERR_IO;
	snprintf(final, sizeof(final), "%s/%s", directory ? directory : "", name);
	if (status == CA_OK && directory && rename(temporary, final) < 0)
		status = CA_ERR_IO;
	if (status == CA_OK)
		status = ca_index_map(index, directory ? final : temporary);
	if (status != CA_OK)
		unlink(temporary);
	else
		(*index)->temporary = !directory;
	return status;
}

static enum ca_status build_and_store(struct build *build, const char *directory, const char *name,
				      struct ca_index **index, struct ca_err *err)
{
	enum ca_status status = build_parts(build);

	if (status != CA_OK)
		return ca_err_set(err, status, "%s: out of memory while indexing", build->object.path);
	if (directory && !build->incomplete) {
		status = store(build, directory, name, index);
		if (status == CA_OK || status == CA_ERR_NOMEM)
			return status;
		if (build->warning) {
			char text[CA_CACHE_PATH + 200];
			snprintf(text, sizeof(text),
				 "%s: the index cache cannot be written (%s); indexing anew each "
				 "time",
				 directory, strerror(errno));
			build->warning(build->context, text);
		}
	}
	status = store(build, NULL, name, index);
	if (status != CA_OK)
		return ca_err_set(err, status,
				  "%s: its index cannot be written to a temporary file: %s; set TMPDIR",
				  build->object.path, strerror(errno));
	return CA_OK;
}

/* A finished file, of what is wanted or more. */
static bool find_cached(const struct ca_object *object, const char *directory, enum ca_index_want want,
			struct ca_index **index)
{
	char name[256], path[CA_CACHE_PATH + 256];

	for (unsigned more = CA_INDEX_FULL; more >= (unsigned)want; more--) {
		if (ca_cache_name(object, more, name, sizeof(name)) != CA_OK)
			return false;
		snprintf(path, sizeof(path), "%s/%s", directory, name);
		if (map_checked(index, path) == CA_OK)
			return true;
	}
	return false;
}

static void tell_warnings(const struct ca_index *index, ca_index_warning *warning, void *context)
{
	for (uint32_t i = 0; warning && i < index->warnings; i++)
		if (index->warning[i] < index->strings)
			warning(context, index->string + index->warning[i]);
}

enum ca_status ca_index_open(struct ca_index **index, const char *path, enum ca_index_want want,
			     ca_index_warning *warning, void *context, struct ca_err *err)
{
	static bool told; /* that the cache is elsewhere */
	struct build build;
	struct ca_err why;
	char directory[CA_CACHE_PATH], name[256];

	build_init(&build, want, warning, context);
	enum ca_status status = ca_object_open(&build.object, path, warning, context, err);
	if (status != CA_OK)
		return status;
	bool cache = ca_cache_directory(directory, &why) == CA_OK;
	if (*why.text && warning && !(cache && told))
		warning(context, why.text);
	told = true;
	if (!cache || !find_cached(&build.object, directory, want, index)) {
		status = ca_cache_name(&build.object, want, name, sizeof(name));
		if (status != CA_OK)
			ca_err_set(err, status, "%s: cannot be read", path);
		else
			status = build_and_store(&build, cache ? directory : NULL, name, index, err);
	}
	if (status == CA_OK) {
		snprintf((*index)->binary, sizeof((*index)->binary), "%s", path);
		tell_warnings(*index, warning, context);
	}
	build_fini(&build);
	return status;
}
