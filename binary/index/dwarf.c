/* SPDX-License-Identifier: MIT */
/* Reading a binary's DWARF: units are shared out among threads, each with a Dwarf handle of
 * its own, and what they find is joined. Driver's process. */
#include "binary/index/dwarf.h"
#include "binary/index/dwarf_unit.h"
#include "binary/index/dwp.h"
#include "binary/index/index_file.h"
#include <dwarf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WORKERS = 8, UNITS_PER_WORKER = 4 };

struct unit {
	uint64_t start, die; /* offsets of its header and of its first DIE */
	bool wanted;         /* may describe code */
	bool damaged;        /* its header is; the next unit can be found */
};
struct job {
	const struct ca_object *object;
	struct ca_dwarf *out;
	struct ca_warnings *warnings;
	struct ca_dwp dwp;
	const struct unit *unit;
	size_t units;
	bool damaged; /* some unit is */
	atomic_size_t next;
	struct ca_dwarf_worker worker[MAX_WORKERS];
	size_t workers;
};

/* The header at `at`; abbreviations: size of that section. Returns where the next unit starts, 0
 * if that cannot be known. */
static uint64_t read_unit(const Elf_Data *info, uint64_t abbreviations, uint64_t at, struct unit *unit)
{
	const uint8_t *start = info->d_buf, *end = start + info->d_size;
	struct ca_cursor cursor = { .at = start + at, .end = end };
	uint64_t length = ca_cursor_fixed(&cursor, 4), type = DW_UT_compile, size, offset;
	bool wide = length == 0xffffffff;

	*unit = (struct unit){ .start = at, .damaged = true };
	if (wide)
		length = ca_cursor_fixed(&cursor, 8);
	if (cursor.bad || length > (uint64_t)(end - cursor.at))
		return 0;
	cursor.end = cursor.at + length;
	uint64_t version = ca_cursor_fixed(&cursor, 2);
	if (version == 5) {
		type = ca_cursor_fixed(&cursor, 1);
		size = ca_cursor_fixed(&cursor, 1);
		offset = ca_cursor_fixed(&cursor, wide ? 8 : 4);
	} else {
		offset = ca_cursor_fixed(&cursor, wide ? 8 : 4);
		size = ca_cursor_fixed(&cursor, 1);
	}
	if (type == DW_UT_skeleton)
		ca_cursor_fixed(&cursor, 8);
	unit->die = (uint64_t)(cursor.at - start);
	unit->wanted = type == DW_UT_compile || type == DW_UT_partial || type == DW_UT_skeleton;
	unit->damaged = cursor.bad || version < 2 || version > 5 || size != 8 || offset >= abbreviations ||
			type < DW_UT_compile || type > DW_UT_split_type;
	return (uint64_t)(cursor.end - start);
}

static bool find_units(struct job *job, Elf *elf, const Elf_Data *info, struct ca_vec *units)
{
	const Elf_Data *abbreviations = ca_object_section(elf, ".debug_abbrev", NULL);
	uint64_t next;
	struct unit unit;

	for (uint64_t at = 0; at < info->d_size; at = next) {
		next = read_unit(info, abbreviations ? abbreviations->d_size : 0, at, &unit);
		if (unit.damaged) {
			job->damaged = true;
			ca_warnings_add(job->warnings,
					"%s: the compilation unit at %#llx of .debug_info is "
					"damaged; left out%s",
					job->object->path, (unsigned long long)at,
					next ? "" : ", with all that follow");
		}
		if (!next)
			break;
		if (!ca_vec_add(units, &unit, 1))
			return false;
	}
	job->unit = units->at;
	job->units = units->n;
	return true;
}

/* libdw stops at the first unit whose header it cannot read, so it gets to see headers that it
 * can, in its private copy of the section. Nothing else of those units is ever used. */
static void hide_damage(const struct job *job, Elf *elf)
{
	Elf_Data *info = ca_object_section(elf, ".debug_info", NULL);
	static const uint8_t header[] = { 4, 0, 0, 0, 0, 0, 8 }; /* version, abbreviations, size */

	for (size_t i = 0; info && i < job->units; i++) {
		uint64_t end = i + 1 < job->units ? job->unit[i + 1].start : info->d_size;
		uint64_t at = job->unit[i].start + 4;
		uint8_t *place = (uint8_t *)info->d_buf + at;
		if (!job->unit[i].damaged || end - at < sizeof(header) + 1)
			continue;
		if (place[-4] == 0xff && place[-1] == 0xff)
			continue; /* 64-bit DWARF: too rare to be worth more */
		memcpy(place, header, sizeof(header));
	}
}

static bool first_die(struct ca_dwarf_worker *worker, const struct unit *unit, Dwarf_Die *die)
{
	return dwarf_offdie(worker->dwarf, unit->die, die) &&
	       dwarf_dieoffset(die) - dwarf_cuoffset(die) == unit->start;
}

static void *work(void *argument)
{
	struct ca_dwarf_worker *worker = argument;
	struct job *job = worker->job;
	size_t i;

	while ((i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->units) {
		Dwarf_Die die;
		if (!job->unit[i].wanted || job->unit[i].damaged)
			continue;
		if (first_die(worker, &job->unit[i], &die))
			ca_dwarf_unit_read(worker, &die, (uint32_t)i);
		else
			ca_warnings_add(&worker->warnings,
					"%s: the compilation unit with its first entry at %#llx of "
					".debug_info is damaged; left out",
					job->object->path, (unsigned long long)job->unit[i].die);
	}
	return NULL;
}

static void worker_fini(struct ca_dwarf_worker *worker)
{
	ca_strings_free(&worker->strings);
	ca_vec_free(&worker->lines);
	ca_vec_free(&worker->inlines);
	ca_vec_free(&worker->subprograms);
	ca_vec_free(&worker->warned);
	ca_map_free(&worker->names);
	ca_map_free(&worker->files);
	ca_map_free(&worker->scopes);
	ca_line_table_free(&worker->other_table);
	dwarf_end(worker->dwarf);
	elf_end(worker->elf);
}

static bool worker_init(struct job *job, struct ca_dwarf_worker *worker)
{
	const struct ca_object *object = job->object;

	*worker = (struct ca_dwarf_worker){
		.object = object,
		.job = job,
		.lines.size = sizeof(struct ca_record_line),
		.inlines.size = sizeof(struct ca_inlined),
		.subprograms.size = sizeof(struct ca_subprogram),
		.warned.size = sizeof(uint32_t),
		.warnings = { &worker->strings, &worker->warned },
	};
	/* its own Elf handle too: neither is for several threads. Private: hide_damage writes. */
	int fd = object->debug.elf ? object->debug.fd : object->fd;
	Elf *elf = elf_begin(job->dwp.fd >= 0 ? job->dwp.fd : fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	if (elf && job->damaged)
		hide_damage(job, elf);
	worker->elf = elf;
	worker->dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	if (!worker->dwarf) {
		elf_end(elf);
		return false;
	}
	worker->sections.line = ca_object_section(elf, ".debug_line", NULL);
	worker->sections.str = ca_object_section(elf, ".debug_str", NULL);
	worker->sections.line_str = ca_object_section(elf, ".debug_line_str", NULL);
	return true;
}

static uint32_t move_string(struct ca_strings *strings, const struct ca_dwarf_worker *worker, uint32_t *map,
			    uint32_t offset)
{
	if (offset == 0)
		return 0;
	if (map[offset] == 0)
		map[offset] = ca_strings_put(strings, ca_strings_get(&worker->strings, offset));
	return map[offset];
}

/* Move a worker's records to where they go; owners become unique. */
static bool join_worker(struct job *job, struct ca_dwarf_worker *worker, struct ca_vec *inlines,
			uint32_t owners)
{
	struct ca_dwarf *out = job->out;
	struct ca_strings *strings = out->strings;
	uint32_t *map = calloc(worker->strings.text.n + 1, sizeof(*map));
	struct ca_record_line *line = worker->lines.at;
	struct ca_inlined *inlined = worker->inlines.at;
	struct ca_subprogram *sub = worker->subprograms.at;
	const uint32_t *warning = worker->warned.at;

	if (!map)
		return false;
	for (size_t i = 0; i < worker->lines.n; i++)
		line[i].file = move_string(strings, worker, map, line[i].file);
	for (size_t i = 0; i < worker->inlines.n; i++) {
		inlined[i].name = move_string(strings, worker, map, inlined[i].name);
		inlined[i].file = move_string(strings, worker, map, inlined[i].file);
		inlined[i].call_file = move_string(strings, worker, map, inlined[i].call_file);
		inlined[i].owner += owners;
	}
	for (size_t i = 0; i < worker->subprograms.n; i++) {
		sub[i].name = move_string(strings, worker, map, sub[i].name);
		sub[i].linkage = move_string(strings, worker, map, sub[i].linkage);
		sub[i].file = move_string(strings, worker, map, sub[i].file);
		sub[i].owner += owners;
	}
	for (size_t i = 0; i < worker->warned.n; i++)
		ca_warnings_add(job->warnings, "%s", ca_strings_get(&worker->strings, warning[i]));
	free(map);
	out->has_lines |= worker->has_lines;
	out->incomplete |= worker->incomplete;
	return ca_vec_add(out->lines, worker->lines.at, worker->lines.n) &&
	       ca_vec_add(inlines, worker->inlines.at, worker->inlines.n) &&
	       ca_vec_add(out->subprograms, worker->subprograms.at, worker->subprograms.n) &&
	       !worker->strings.failed && !worker->lines.failed && !worker->inlines.failed &&
	       !worker->subprograms.failed;
}

/* Sorted lines of all units must not overlap: where they do, the later one starts later. */
static void finish_lines(struct ca_vec *lines)
{
	struct ca_record_line *line;
	uint32_t end = 0;
	size_t n = 0;

	ca_vec_sort(lines);
	line = lines->at;
	for (size_t i = 0; i < lines->n; i++) {
		if (line[i].low < end)
			line[i].low = end;
		if (line[i].low >= line[i].high)
			continue;
		end = line[i].high;
		line[n++] = line[i];
	}
	lines->n = n;
}

static int subprogram_order(const void *a, const void *b)
{
	const struct ca_subprogram *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* Two units may describe one function (a linker that folds code): the first unit's inlined
 * calls count. Returns a byte for each owner, 1 for the losers; NULL without memory. */
static uint8_t *find_losers(struct ca_vec *subprograms, uint32_t owners)
{
	uint8_t *lost = calloc(owners + 1, 1);
	struct ca_subprogram *sub = subprograms->at;

	if (subprograms->n > 1)
		qsort(sub, subprograms->n, sizeof(*sub), subprogram_order);
	for (size_t i = 1; lost && i < subprograms->n; i++)
		if (sub[i].low == sub[i - 1].low && sub[i].owner != sub[i - 1].owner)
			lost[sub[i].owner] = 1;
	return lost;
}

static int inlined_order(const void *a, const void *b)
{
	const struct ca_inlined *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	if (x->high != y->high)
		return x->high > y->high ? -1 : 1;
	return x->depth < y->depth ? -1 : x->depth > y->depth;
}

/* By low; those that start together longest first, outermost first. */
static void sort_inlines(struct ca_vec *inlines)
{
	struct ca_inlined *at;

	ca_vec_sort(inlines);
	at = inlines->at;
	for (size_t i = 0, end; i < inlines->n; i = end) {
		for (end = i + 1; end < inlines->n && at[end].low == at[i].low;)
			end++;
		if (end - i > 1)
			qsort(at + i, end - i, sizeof(*at), inlined_order);
	}
}

static bool finish_inlines(struct ca_dwarf *out, struct ca_vec *inlines, uint32_t owners)
{
	uint8_t *lost = find_losers(out->subprograms, owners);
	const struct ca_inlined *at;

	if (!lost)
		return false;
	sort_inlines(inlines);
	at = inlines->at;
	for (size_t i = 0; i < inlines->n; i++) {
		if (lost[at[i].owner])
			continue;
		struct ca_record_inline *to = ca_vec_push(out->inlines);
		if (!to)
			break;
		*to = (struct ca_record_inline){ .low = at[i].low,
						 .high = at[i].high,
						 .name = at[i].name,
						 .depth = at[i].depth,
						 .file = at[i].file,
						 .line = at[i].line,
						 .call_file = at[i].call_file,
						 .call_line = at[i].call_line };
	}
	free(lost);
	return !out->inlines->failed;
}

static size_t choose_workers(size_t units)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t n = units / UNITS_PER_WORKER + 1;

	if (cores > 0 && n > (size_t)cores)
		n = (size_t)cores;
	return n < MAX_WORKERS ? n : MAX_WORKERS;
}

static void run_workers(struct job *job)
{
	pthread_t thread[MAX_WORKERS];
	bool started[MAX_WORKERS] = { false };

	for (size_t i = 1; i < job->workers; i++)
		started[i] = pthread_create(&thread[i], NULL, work, &job->worker[i]) == 0;
	work(&job->worker[0]);
	for (size_t i = 1; i < job->workers; i++)
		if (started[i])
			pthread_join(thread[i], NULL);
}

static bool join_workers(struct job *job)
{
	struct ca_vec inlines = { .size = sizeof(struct ca_inlined) };
	uint32_t owners = 0;
	bool ok = true;

	for (size_t i = 0; i < job->workers; i++) {
		ok = ok && join_worker(job, &job->worker[i], &inlines, owners);
		owners += job->worker[i].owners;
	}
	finish_lines(job->out->lines);
	ok = ok && finish_inlines(job->out, &inlines, owners) && !inlines.failed;
	ca_vec_free(&inlines);
	return ok;
}

bool ca_dwarf_read(const struct ca_object *object, struct ca_dwarf *out, struct ca_warnings *warnings)
{
	struct ca_vec units = { .size = sizeof(struct unit) };
	Elf *elf = ca_object_debug_elf(object);
	Elf_Data *info = ca_object_section(elf, ".debug_info", NULL);
	struct job job = { .object = object, .out = out, .warnings = warnings };

	if (!info)
		return true;
	if (!find_units(&job, elf, info, &units)) {
		ca_vec_free(&units);
		return false;
	}
	size_t wanted = choose_workers(units.n);
	ca_dwp_unpack(&job.dwp, object, warnings);
	while (job.workers < wanted && worker_init(&job, &job.worker[job.workers]))
		job.workers++;
	bool ok = true;
	if (job.workers == 0)
		ca_warnings_add(warnings, "%s: its debug information cannot be read: %s", object->path,
				dwarf_errmsg(-1));
	else if (units.n > 0)
		run_workers(&job);
	ok = join_workers(&job);
	for (size_t i = 0; i < job.workers; i++)
		worker_fini(&job.worker[i]);
	ca_dwp_remove(&job.dwp);
	ca_vec_free(&units);
	return ok;
}
