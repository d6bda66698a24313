/* SPDX-License-Identifier: MIT */
/* From stacks to candidates; see point_stacks.h. */
#include "causal/points/point_stacks.h"
#include "binary/plan/loops.h"
#include "causal/points/point_places.h"
#include "core/event.h"
#include "core/map.h"
#include "core/module.h"
#include "core/path.h"
#include "core/session.h"
#include "core/vec.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FUNCTIONS = 1024,
	LOOKED_INTO = 64,
	LOOPS = 64,
	ENOUGH_RUNNING = 30,
	LEAST_SHARE = 20,
	TIGHT = 64,
	NAME = 200
};

/* A function on some stack. */
struct function {
	uint32_t module;
	size_t number; /* in the module's index */
	uint64_t low, high;
	const char *name;
	bool synthetic;
	size_t samples, stamp;
};
struct find {
	const struct ca_point_stacks *samples;
	const struct ca_session *session;
	struct ca_objects *objects;
	bool running; /* those of waiting threads do not count */
	size_t used;
	struct function function[FUNCTIONS];
	size_t functions;
	struct ca_map known; /* place: 0: nothing is there, else a number in function[], plus 1 */
	struct ca_point_stacks_found *out;
	size_t n;
};

bool ca_point_stacks_add(struct ca_point_stacks *all, const ca_place *frame, unsigned frames, unsigned weight,
			 bool waiting)
{
	size_t i = all->n, first = all->frames;

	if (i == CA_CANDIDATE_SAMPLES)
		return false;
	for (unsigned k = 0; k < frames; k++) {
		ca_place *more = ca_vec_more(all->frame, all->frames, sizeof *more);

		if (!more) {
			all->frames = first;
			return false;
		}
		all->frame = more;
		all->frame[all->frames++] = frame[k];
	}
	all->sample[i].first = (uint32_t)first;
	all->sample[i].frames = (uint16_t)frames;
	all->sample[i].weight = (uint16_t)weight;
	all->sample[i].waiting = waiting;
	all->running += !waiting;
	all->n++;
	return true;
}

/* ---- places ------------------------------------------------------------------------------*/
static const struct ca_index *index_of(struct find *f, uint32_t module)
{
	if (!module || module >= CA_MAX_MODULES ||
	    (!f->session->module[module].main && !ca_objects_in_scope(f->objects, module)))
		return NULL;
	return ca_objects_index(f->objects, module);
}

static long find_function(struct find *f, ca_place place)
{
	uint32_t module = CA_PLACE_MODULE(place);
	const struct ca_index *index = index_of(f, module);
	struct ca_index_function function;
	size_t number, i;

	number = index ? ca_index_find_function_number(index, CA_PLACE_OFFSET(place)) : SIZE_MAX;
	if (number == SIZE_MAX)
		return -1;
	ca_index_function_at(index, number, &function);
	for (i = 0; i < f->functions; i++)
		if (f->function[i].module == module && f->function[i].number == number)
			return (long)i;
	if (function.part || f->functions == FUNCTIONS)
		return -1;
	f->function[f->functions] = (struct function){ .module = module,
						       .number = number,
						       .low = function.low,
						       .high = function.high,
						       .name = function.name,
						       .synthetic = function.synthetic,
						       .stamp = SIZE_MAX };
	return (long)f->functions++;
}

static long function_of(struct find *f, ca_place place)
{
	uint32_t *number;
	bool known;

	if (!place || !(number = ca_map_add(&f->known, place, &known)))
		return -1;
	if (!known)
		*number = (uint32_t)(find_function(f, place) + 1);
	return (long)*number - 1;
}

static bool counts(const struct find *f, size_t sample)
{
	return !f->running || !f->samples->sample[sample].waiting;
}

/* ---- names -------------------------------------------------------------------------------*/
/* Is it the only program of the run? Else a name alone may be taken for one in another (tar, which starts gzip). */
static bool is_the_program(const struct ca_session *session, uint32_t module)
{
	uint32_t used = atomic_load(&session->modules_used);

	for (uint32_t m = 1; m < used && m < CA_MAX_MODULES; m++)
		if (session->module[m].main &&
		    strcmp(session->module[m].path, session->module[module].path) != 0)
			return false;
	return session->module[module].main;
}

static bool make_name(const struct find *f, uint32_t module, const char *text, struct ca_point_name *name)
{
	bool bare = is_the_program(f->session, module);
	const char *binary =
		bare ? "" : ca_path_base(ca_module_called(f->session, f->session->module[module].path));
	char full[NAME];
	int n = snprintf(full, sizeof full, "%s%s%s", binary, bare ? "" : "!", text);

	return n > 0 && n < NAME && ca_point_name_parse(name, full, NULL) == CA_OK;
}

static bool name_function(const struct find *f, const struct function *function, struct ca_point_name *name)
{
	return ca_point_name_is_plain(function->name) && strcmp(function->name, "main") &&
	       strcmp(function->name, "_start") && make_name(f, function->module, function->name, name);
}

/* Is what the name counts the loop's rounds: all of its places are in the loop? */
static bool is_of_loop(const struct ca_index *index, struct ca_text *code, const struct ca_loop *loop,
		       const struct ca_point_name *name)
{
	struct ca_point_places places = { 0 };
	bool in = true;

	ca_point_places_find(name, index, code, &places);
	for (size_t i = 0; i < places.n; i++)
		in &= ca_loops_cover(loop, places.place[i].address);
	in &= places.n > 0;
	free(places.place);
	return in;
}

/* A loop by its line in the function itself, for a line in something inlined may be elsewhere too;
 * where that does not lead to it, by its address. */
static bool name_loop(struct find *f, const struct function *function, const struct ca_loop *loop,
		      struct ca_point_name *name)
{
	const struct ca_index *index = index_of(f, function->module);
	struct ca_text *code = ca_objects_text(f->objects, function->module);
	struct ca_index_inline call;
	struct ca_index_line line;
	char text[NAME] = "";

	if (ca_index_find_inlines(index, loop->head, &call, 1) && call.call_line)
		snprintf(text, sizeof text, "%s:%u", ca_path_base(call.call_file), call.call_line);
	else if (ca_index_find_line(index, loop->head, &line) && line.line && *line.file)
		snprintf(text, sizeof text, "%s:%u", ca_path_base(line.file), line.line);
	if (*text && make_name(f, function->module, text, name)) {
		if (is_of_loop(index, code, loop, name))
			return ca_point_name_is_plain(text);
		ca_point_name_fini(name);
	}
	snprintf(text, sizeof text, "%s+0x%lx", function->name, (unsigned long)(loop->head - function->low));
	return ca_point_name_is_plain(text) && make_name(f, function->module, text, name);
}

/* ---- what was found ----------------------------------------------------------------------*/
/* Another loop may be on the same line: together they are what the name stands for. True: it has
 * been moved there, name and all. */
static bool add(struct find *f, const struct ca_point_stacks_found *found)
{
	size_t i = 0, least = 0;

	while (i < f->n && strcmp(f->out[i].name.text, found->name.text))
		i++;
	if (i < f->n) {
		f->out[i].samples = 0;
		for (size_t k = 0; k < CA_CANDIDATE_SAMPLES / 64; k++) {
			f->out[i].inside[k] |= found->inside[k];
			f->out[i].samples += (size_t)__builtin_popcountll(f->out[i].inside[k]);
		}
		return false;
	}
	if (f->n < CA_POINT_STACKS_FOUND) {
		f->out[f->n++] = *found;
		return true;
	}
	for (i = 1; i < f->n; i++)
		if (f->out[i].samples < f->out[least].samples)
			least = i;
	if (f->out[least].samples >= found->samples)
		return false;
	ca_point_name_fini(&f->out[least].name);
	f->out[least] = *found;
	return true;
}

/* loop: NULL: the function as a whole. */
static void fill(struct find *f, long function, const struct ca_loop *loop,
		 struct ca_point_stacks_found *found)
{
	for (size_t s = 0; s < f->samples->n; s++) {
		const ca_place *frame = f->samples->frame + f->samples->sample[s].first;
		unsigned around = 0;
		bool in = false;

		/* from outside */
		for (unsigned i = f->samples->sample[s].frames; i-- > 0 && counts(f, s) && !in;) {
			long here = function_of(f, frame[i]);

			in = here == function && (!loop || ca_loops_cover(loop, CA_PLACE_OFFSET(frame[i])));
			around += here >= 0 && !in;
		}
		if (in) {
			found->inside[s / 64] |= UINT64_C(1) << (s % 64);
			found->samples++;
			found->depth += around + (loop ? 0.5 : 0);
		}
	}
	if (found->samples)
		found->depth /= (double)found->samples;
}

static bool is_much(const struct find *f, size_t samples)
{
	return samples >= 2 && LEAST_SHARE * samples >= f->used;
}

/* A few instructions and nothing else, and yet much time is spent there: passed millions of times a
 * second. Even to count that for a moment would slow the program. */
static bool is_hot(const struct ca_loop *loop, const struct ca_loop *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (&all[i] != loop && all[i].head != loop->head && ca_loops_cover(loop, all[i].head))
			return false;
	return !loop->calls && loop->insns < TIGHT;
}

static void look_into(struct find *f, long number)
{
	const struct function *function = &f->function[number];
	struct ca_text *code = ca_objects_text(f->objects, function->module);
	static struct ca_loop loop[LOOPS];
	struct ca_point_stacks_found found;
	size_t n;

	memset(&found, 0, sizeof found);
	found.function = true;
	fill(f, number, NULL, &found);
	if (!name_function(f, function, &found.name) || !add(f, &found))
		ca_point_name_fini(&found.name);
	n = code ? ca_loops_find(code, function->low, function->high, loop, LOOPS) : 0;
	for (size_t i = 0; i < n; i++) {
		memset(&found, 0, sizeof found);
		fill(f, number, &loop[i], &found);
		if (!is_much(f, found.samples) || is_hot(&loop[i], loop, n) ||
		    !name_loop(f, function, &loop[i], &found.name) || !add(f, &found))
			ca_point_name_fini(&found.name);
	}
}

static void count_functions(struct find *f)
{
	for (size_t s = 0; s < f->samples->n; s++) {
		const ca_place *frame = f->samples->frame + f->samples->sample[s].first;

		for (unsigned i = 0; i < f->samples->sample[s].frames && counts(f, s); i++) {
			long k = function_of(f, frame[i]);

			if (k < 0 || f->function[k].stamp == s)
				continue;
			f->function[k].stamp = s;
			f->function[k].samples++;
		}
	}
}

static int by_samples(const void *a, const void *b)
{
	const struct ca_point_stacks_found *x = a, *y = b;

	return x->samples != y->samples ? (x->samples > y->samples ? -1 : 1)
					: strcmp(x->name.text, y->name.text);
}

bool ca_point_stacks_are_waits(const struct ca_point_stacks *samples)
{
	return samples->running < ENOUGH_RUNNING;
}

size_t ca_point_stacks_find(const struct ca_point_stacks *samples, const struct ca_session *session,
			    struct ca_objects *objects, struct ca_point_stacks_found *out, size_t *used)
{
	struct find *f = calloc(1, sizeof *f);
	size_t n = 0, looked = 0;

	*used = 0;
	if (!f)
		return 0;
	f->samples = samples;
	f->session = session;
	f->objects = objects;
	f->running = !ca_point_stacks_are_waits(samples);
	f->used = *used = f->running ? samples->running : samples->n;
	f->out = out;
	count_functions(f);
	for (size_t i = 0; i < f->functions && looked < LOOKED_INTO; i++)
		if (is_much(f, f->function[i].samples)) {
			look_into(f, (long)i);
			looked++;
		}
	n = f->n;
	qsort(out, n, sizeof *out, by_samples);
	ca_map_free(&f->known);
	free(f);
	return n;
}
