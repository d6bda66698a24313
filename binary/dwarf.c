/* Reading a binary's DWARF: units are shared out among threads, each with a Dwarf handle of
 * its own, and what they find is joined. Driver's process. */
#include "binary/dwarf_unit.h"
#include "binary/cfi.h"
#include <dwarf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_WORKERS = 8, UNITS_PER_WORKER = 4 };

struct unit {
	uint64_t die; /* offset of its first DIE */
};
struct job {
	struct ca_build *build;
	const struct unit *unit;
	size_t units;
	atomic_size_t next;
	struct ca_dwarf_worker worker[MAX_WORKERS];
	size_t workers;
};

/* False: no unit starts there that can be read; *next is set if one may follow. */
static bool read_unit(const uint8_t *start, const uint8_t *end, uint64_t at, uint64_t *next,
		      struct unit *unit, bool *wanted)
{
	struct ca_cursor cursor = { .at = start + at, .end = end };
	uint64_t length = ca_cursor_fixed(&cursor, 4);
	bool wide = length == 0xffffffff;

	if (wide)
		length = ca_cursor_fixed(&cursor, 8);
	*next = 0;
	if (cursor.bad || length > (uint64_t)(end - cursor.at))
		return false;
	*next = (uint64_t)(cursor.at - start) + length;
	cursor.end = cursor.at + length;
	uint64_t version = ca_cursor_fixed(&cursor, 2), type = DW_UT_compile;
	if (version == 5)
		type = ca_cursor_fixed(&cursor, 1);
	/* abbreviations and address size, in whatever order; a skeleton's id */
	ca_cursor_fixed(&cursor, (wide ? 8 : 4) + 1);
	if (type == DW_UT_skeleton)
		ca_cursor_fixed(&cursor, 8);
	unit->die = (uint64_t)(cursor.at - start);
	*wanted = type == DW_UT_compile || type == DW_UT_partial || type == DW_UT_skeleton;
	return !cursor.bad && version >= 2 && version <= 5 &&
	       (*wanted || type == DW_UT_type || type == DW_UT_split_type ||
		type == DW_UT_split_compile);
}

static void find_units(struct ca_build *build, const Elf_Data *info, struct ca_vec *units)
{
	const uint8_t *start = info->d_buf, *end = start + info->d_size;
	uint64_t at = 0, next;
	struct unit unit;
	bool wanted;

	for (; at < info->d_size; at = next) {
		bool ok = read_unit(start, end, at, &next, &unit, &wanted);
		if (!ok)
			ca_build_warn(build,
				      "%s: the compilation unit at %#llx of .debug_info is damaged; left out%s",
				      build->object.path, (unsigned long long)at,
				      next ? "" : ", with all that follow");
		else if (wanted)
			ca_vec_add(units, &unit, 1);
		if (!next)
			break;
	}
}

/* libdw finds units in order and stops at one that it cannot read, once for each. */
static bool first_die(struct ca_dwarf_worker *worker, uint64_t offset, size_t units, Dwarf_Die *die)
{
	for (size_t tries = 0; tries <= units; tries++)
		if (dwarf_offdie(worker->dwarf, offset, die))
			return true;
	return false;
}

static void *work(void *argument)
{
	struct ca_dwarf_worker *worker = argument;
	struct job *job = worker->job;
	size_t i;

	while ((i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->units) {
		Dwarf_Die die;
		if (first_die(worker, job->unit[i].die, job->units, &die))
			ca_dwarf_unit(worker, &die, (uint32_t)i);
		else
			ca_dwarf_warn(worker,
				      "%s: the compilation unit with its first entry at %#llx of .debug_info is damaged; left out",
				      job->build->object.path,
				      (unsigned long long)job->unit[i].die);
	}
	return NULL;
}

static void worker_fini(struct ca_dwarf_worker *worker)
{
	ca_strings_free(&worker->strings);
	ca_vec_free(&worker->lines);
	ca_vec_free(&worker->inlines);
	ca_vec_free(&worker->subprograms);
	ca_vec_free(&worker->warnings);
	ca_pointers_free(&worker->names);
	ca_pointers_free(&worker->scopes);
	dwarf_end(worker->dwarf);
}

static bool worker_init(struct job *job, struct ca_dwarf_worker *worker)
{
	const struct ca_object *object = &job->build->object;

	*worker = (struct ca_dwarf_worker){
		.build = job->build, .job = job,
		.lines.size = sizeof(struct ca_record_line),
		.inlines.size = sizeof(struct ca_inlined),
		.subprograms.size = sizeof(struct ca_subprogram),
		.warnings.size = sizeof(uint32_t),
	};
	/* dwarf_begin, not dwarf_begin_elf: an Elf handle is not for several threads either */
	worker->dwarf = dwarf_begin(object->debug ? object->debug_fd : object->fd, DWARF_C_READ);
	if (!worker->dwarf)
		return false;
	Elf *elf = dwarf_getelf(worker->dwarf);
	worker->sections.line = ca_object_section(elf, ".debug_line", NULL);
	worker->sections.str = ca_object_section(elf, ".debug_str", NULL);
	worker->sections.line_str = ca_object_section(elf, ".debug_line_str", NULL);
	return true;
}

static uint32_t move_string(struct ca_build *build, const struct ca_dwarf_worker *worker,
			    uint32_t *map, uint32_t offset)
{
	if (offset == 0)
		return 0;
	if (map[offset] == 0)
		map[offset] = ca_strings_put(&build->strings,
					     ca_strings_get(&worker->strings, offset));
	return map[offset];
}

/* Move a worker's records into the build; owners become unique. */
static bool join_worker(struct ca_build *build, struct ca_dwarf_worker *worker,
			struct ca_vec *inlines, uint32_t owners)
{
	uint32_t *map = calloc(worker->strings.n + 1, sizeof(*map));
	struct ca_record_line *line = worker->lines.at;
	struct ca_inlined *inlined = worker->inlines.at;
	struct ca_subprogram *sub = worker->subprograms.at;
	const uint32_t *warning = worker->warnings.at;

	if (!map)
		return false;
	for (size_t i = 0; i < worker->lines.n; i++)
		line[i].file = move_string(build, worker, map, line[i].file);
	for (size_t i = 0; i < worker->inlines.n; i++) {
		inlined[i].name = move_string(build, worker, map, inlined[i].name);
		inlined[i].call_file = move_string(build, worker, map, inlined[i].call_file);
		inlined[i].owner += owners;
	}
	for (size_t i = 0; i < worker->subprograms.n; i++) {
		sub[i].name = move_string(build, worker, map, sub[i].name);
		sub[i].linkage = move_string(build, worker, map, sub[i].linkage);
		sub[i].file = move_string(build, worker, map, sub[i].file);
		sub[i].owner += owners;
	}
	for (size_t i = 0; i < worker->warnings.n; i++)
		ca_build_warn(build, "%s", ca_strings_get(&worker->strings, warning[i]));
	free(map);
	build->has_lines |= worker->has_lines;
	build->incomplete |= worker->incomplete;
	return ca_vec_add(&build->part[CA_PART_LINES], worker->lines.at, worker->lines.n) &&
	       ca_vec_add(inlines, worker->inlines.at, worker->inlines.n) &&
	       ca_vec_add(&build->subprograms, worker->subprograms.at, worker->subprograms.n) &&
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

static bool finish_inlines(struct ca_build *build, struct ca_vec *inlines, uint32_t owners)
{
	struct ca_vec *out = &build->part[CA_PART_INLINES];
	uint8_t *lost = find_losers(&build->subprograms, owners);
	const struct ca_inlined *at;

	if (!lost)
		return false;
	sort_inlines(inlines);
	at = inlines->at;
	for (size_t i = 0; i < inlines->n; i++) {
		if (lost[at[i].owner])
			continue;
		struct ca_record_inline *to = ca_vec_push(out);
		if (!to)
			break;
		*to = (struct ca_record_inline){ .low = at[i].low, .high = at[i].high,
						 .name = at[i].name, .depth = at[i].depth,
						 .call_file = at[i].call_file,
						 .call_line = at[i].call_line };
	}
	free(lost);
	ca_build_nest(out, offsetof(struct ca_record_inline, parent));
	return !out->failed;
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
		ok = ok && join_worker(job->build, &job->worker[i], &inlines, owners);
		owners += job->worker[i].owners;
	}
	finish_lines(&job->build->part[CA_PART_LINES]);
	ok = ok && finish_inlines(job->build, &inlines, owners) && !inlines.failed;
	ca_vec_free(&inlines);
	return ok;
}

bool ca_dwarf_read(struct ca_build *build)
{
	struct ca_vec units = { .size = sizeof(struct unit) };
	Elf *elf = ca_object_debug_elf(&build->object);
	Elf_Data *info = ca_object_section(elf, ".debug_info", NULL);
	struct job job = { .build = build };

	if (!info)
		return true;
	find_units(build, info, &units);
	job.unit = units.at;
	job.units = units.n;
	size_t wanted = choose_workers(units.n);
	while (job.workers < wanted && worker_init(&job, &job.worker[job.workers]))
		job.workers++;
	bool ok = true;
	if (job.workers == 0)
		ca_build_warn(build, "%s: its debug information cannot be read: %s",
			      build->object.path, dwarf_errmsg(-1));
	else if (units.n > 0)
		run_workers(&job);
	ok = join_workers(&job);
	for (size_t i = 0; i < job.workers; i++)
		worker_fini(&job.worker[i]);
	ca_vec_free(&units);
	return ok;
}
