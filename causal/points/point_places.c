/* SPDX-License-Identifier: MIT */
/* From a progress point's name to addresses; see point_places.h. */
#include "causal/points/point_places.h"
#include "binary/plan/line_entries.h"
#include "core/map.h"
#include "core/vec.h"
#include <stdlib.h>
#include <string.h>

enum { CHAIN = 32, STARTS = 64 };

/* ---- matching -----------------------------------------------------------------------------*/
/* Is that all of the demangled name but its parameters and arguments of a template? */
static bool ends_name(const char *rest)
{
	return !*rest || *rest == '(' || *rest == '<' || !strncmp(rest, "[abi:", 5);
}

/* Neither in the parameters nor in <>; a name may begin with "(anonymous namespace)". */
static bool is_outermost(const char *function, const char *at)
{
	int depth = 0;

	for (const char *c = function; c < at; c++) {
		if (*c == '(' && c > function)
			return false;
		depth += (*c == '<' || *c == '(') - (*c == '>' || *c == ')');
	}
	return !depth;
}

/* The symbol, or the name, with or without its parameters; templates have their return type in
 * front: "int twice<int>(int)" is twice. Asked of each of a binary's functions, 100,000 and more. */
static bool is_exactly(const struct ca_point_name *name, const char *function, const char *linkage)
{
	size_t length = strlen(name->name);

	if (*linkage == *name->name && !strcmp(linkage, name->name))
		return true;
	for (const char *at = function; at; at = (at = strchr(at, ' ')) ? at + 1 : NULL)
		if (*at == *name->name && !strncmp(at, name->name, length) && ends_name(at + length) &&
		    is_outermost(function, at))
			return true;
	return false;
}

static bool any_exact(const struct ca_point_name *name, const struct ca_index *index)
{
	struct ca_index_function f;
	struct ca_index_inline in;

	for (size_t i = 0; i < ca_index_functions(index); i++) {
		ca_index_function_at(index, i, &f);
		if (is_exactly(name, f.name, f.linkage))
			return true;
	}
	for (size_t i = 0; i < ca_index_inlines(index); i++) {
		ca_index_inline_at(index, i, &in);
		if (is_exactly(name, in.name, ""))
			return true;
	}
	return false;
}

static bool is_function(const struct ca_point_name *name, bool exact, const char *function,
			const char *linkage)
{
	if (exact)
		return is_exactly(name, function, linkage);
	return name->is_regex && !regexec(&name->regex, function, 0, NULL, 0);
}

static bool is_line(const struct ca_point_name *name, const struct ca_index_line *l)
{
	return l->line == name->line && ca_point_name_is_file(l->file, name->name);
}

static bool is_call(const struct ca_point_name *name, const struct ca_index_inline *in)
{
	return in->call_line == name->line && ca_point_name_is_file(in->call_file, name->name);
}

static bool is_probe(const struct ca_point_name *name, const struct ca_index_probe *p)
{
	return !strcmp(p->provider, name->name) && !strcmp(p->name, name->probe);
}

static bool function_found(const struct ca_point_name *name, const struct ca_index *index)
{
	struct ca_index_function f;
	struct ca_index_inline in;

	if (any_exact(name, index))
		return true;
	for (size_t i = 0; i < ca_index_functions(index) && name->is_regex; i++) {
		ca_index_function_at(index, i, &f);
		if (is_function(name, false, f.name, f.linkage))
			return true;
	}
	for (size_t i = 0; i < ca_index_inlines(index) && name->is_regex; i++) {
		ca_index_inline_at(index, i, &in);
		if (is_function(name, false, in.name, ""))
			return true;
	}
	return false;
}

/* 0: there is no such place. */
static uint64_t address_of(const struct ca_point_name *name, const struct ca_index *index)
{
	for (size_t i = 0; i < ca_index_functions(index); i++) {
		struct ca_index_function f;
		uint64_t address;

		ca_index_function_at(index, i, &f);
		address = *name->name ? f.low + name->offset : name->offset;
		if (*name->name && (f.part || !is_exactly(name, f.name, f.linkage)))
			continue;
		if (address >= f.low && address < f.high)
			return address;
	}
	return 0;
}

bool ca_point_places_any(const struct ca_point_name *name, const struct ca_index *index)
{
	struct ca_index_inline in;
	struct ca_index_line l;
	struct ca_index_probe p;

	if (name->kind == CA_POINT_NAME_FUNCTION)
		return function_found(name, index);
	if (name->kind == CA_POINT_NAME_ADDRESS)
		return address_of(name, index) != 0;
	for (size_t i = 0; i < ca_index_lines(index) && name->kind == CA_POINT_NAME_LINE; i++) {
		ca_index_line_at(index, i, &l);
		if (is_line(name, &l))
			return true;
	}
	for (size_t i = 0; i < ca_index_inlines(index) && name->kind == CA_POINT_NAME_LINE; i++) {
		ca_index_inline_at(index, i, &in);
		if (is_call(name, &in))
			return true;
	}
	for (size_t i = 0; i < ca_index_probes(index) && name->kind == CA_POINT_NAME_PROBE; i++) {
		ca_index_probe_at(index, i, &p);
		if (is_probe(name, &p))
			return true;
	}
	return false;
}

/* ---- places -------------------------------------------------------------------------------*/
static void add_place(struct ca_point_places *out, uint64_t address, size_t function,
		      const struct ca_index *index)
{
	struct ca_point_place place = { .address = address, .function = function };
	struct ca_point_place *more;
	struct ca_index_function f;

	if (function != SIZE_MAX) {
		ca_index_function_at(index, function, &f);
		place.low = f.low;
		place.high = f.high;
		place.entry = address == f.low && !f.part;
	}
	more = ca_vec_more(out->place, out->n, sizeof *more);
	if (!more)
		return;
	out->place = more;
	out->place[out->n++] = place;
}

/* A stretch of code of the line or of an inlined copy, and which copy it belongs to. */
struct run {
	struct ca_index_span span;
	size_t function; /* number in the index */
	uint64_t copy;   /* of its chain of inlined calls */
	bool is_stmt;    /* span begins with a statement */
};
struct runs {
	struct run *run;
	size_t n;
};

static void add_run(struct runs *runs, struct run run)
{
	struct run *more = ca_vec_more(runs->run, runs->n, sizeof *more);

	if (!more)
		return;
	runs->run = more;
	runs->run[runs->n++] = run;
}

/* The first `depth` calls of the chain tell the copies of one code in one function apart. */
static uint64_t copy_of(const struct ca_index *index, uint64_t address, size_t depth)
{
	struct ca_index_inline chain[CHAIN];
	size_t n = ca_index_find_inlines(index, address, chain, CHAIN);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < n && i < depth; i++)
		hash = (ca_map_key(ca_map_key(hash, chain[i].name), chain[i].call_file) ^
			chain[i].call_line) *
		       UINT64_C(0x100000001b3);
	return hash;
}

static int by_copy(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->copy != y->copy)
		return x->copy < y->copy ? -1 : 1;
	return x->span.low < y->span.low ? -1 : x->span.low > y->span.low;
}

static bool same_copy(const struct run *a, const struct run *b)
{
	return a->function == b->function && a->copy == b->copy;
}

/* Neighbours become one; what begins without a statement begins where its first one does, and is
 * nothing if it has none, unless the line has none at all. */
static void merge(struct runs *runs)
{
	size_t n = 0;
	bool any = false;

	for (size_t i = 0; i < runs->n; i++)
		any |= runs->run[i].is_stmt;
	for (size_t i = 0; i < runs->n; i++) {
		struct run *last = n ? &runs->run[n - 1] : NULL, *run = &runs->run[i];

		if (last && same_copy(last, run) && run->span.low <= last->span.high) {
			if (run->span.high > last->span.high)
				last->span.high = run->span.high;
		} else if (run->is_stmt || !any) {
			runs->run[n++] = *run;
		}
	}
	runs->n = n;
}

static bool is_part(const struct ca_index *index, size_t function)
{
	struct ca_index_function f;

	if (function == SIZE_MAX)
		return false;
	ca_index_function_at(index, function, &f);
	return f.part;
}

/* Code moved out to .cold is the rest of something that began elsewhere. */
static bool all_in_parts(const struct runs *runs, const struct ca_index *index)
{
	for (size_t i = 0; i < runs->n; i++)
		if (!is_part(index, runs->run[i].function))
			return false;
	return true;
}

static void copy_places(const struct run *run, size_t n, bool loops, const struct ca_index *index,
			struct ca_text *text, struct ca_point_places *out)
{
	struct ca_index_span *span = calloc(n, sizeof *span);
	struct ca_index_function f = { .low = run[0].span.low, .high = run[n - 1].span.high };
	uint64_t start[STARTS];
	size_t found;

	if (!span)
		return;
	for (size_t i = 0; i < n; i++)
		span[i] = run[i].span;
	if (run->function != SIZE_MAX)
		ca_index_function_at(index, run->function, &f);
	found = ca_line_entries_find(text, f.low, f.high, span, n, loops, start, STARTS);
	for (size_t i = 0; i < found; i++)
		add_place(out, start[i], run->function, index);
	free(span);
}

static void runs_places(struct runs *runs, bool loops, const struct ca_index *index, struct ca_text *text,
			struct ca_point_places *out)
{
	bool parts;

	if (!runs->n)
		return;
	qsort(runs->run, runs->n, sizeof *runs->run, by_copy);
	merge(runs);
	parts = all_in_parts(runs, index);
	for (size_t i = 0, k; i < runs->n; i = k) {
		for (k = i + 1; k < runs->n && same_copy(&runs->run[i], &runs->run[k]); k++)
			;
		if (parts || !is_part(index, runs->run[i].function))
			copy_places(&runs->run[i], k - i, loops, index, text, out);
	}
}

static void add_inline(struct runs *runs, const struct ca_index *index, const struct ca_index_inline *in)
{
	add_run(runs, (struct run){ .span = { in->low, in->high },
				    .function = ca_index_find_function_number(index, in->low),
				    .copy = copy_of(index, in->low, in->depth),
				    .is_stmt = true });
}

/* A line that only calls what is inlined may have no code of its own: then it is that. */
static void line_places(const struct ca_point_name *name, const struct ca_index *index, struct ca_text *text,
			struct ca_point_places *out)
{
	struct runs runs = { 0 };
	bool own;

	for (size_t i = 0; i < ca_index_lines(index); i++) {
		struct ca_index_line l;

		ca_index_line_at(index, i, &l);
		if (is_line(name, &l))
			add_run(&runs, (struct run){ .span = { l.low, l.high },
						     .function = ca_index_find_function_number(index, l.low),
						     .copy = copy_of(index, l.low, CHAIN),
						     .is_stmt = l.is_stmt });
	}
	own = runs.n > 0;
	for (size_t i = 0; i < ca_index_inlines(index) && !own; i++) {
		struct ca_index_inline in;

		ca_index_inline_at(index, i, &in);
		if (is_call(name, &in))
			add_inline(&runs, index, &in);
	}
	runs_places(&runs, own, index, text, out);
	free(runs.run);
}

static void function_places(const struct ca_point_name *name, const struct ca_index *index,
			    struct ca_text *text, struct ca_point_places *out)
{
	bool exact = any_exact(name, index);
	struct runs runs = { 0 };

	for (size_t i = 0; i < ca_index_functions(index); i++) {
		struct ca_index_function f;

		ca_index_function_at(index, i, &f);
		if (!f.part && is_function(name, exact, f.name, f.linkage))
			add_place(out, f.low, i, index);
	}
	for (size_t i = 0; i < ca_index_inlines(index); i++) {
		struct ca_index_inline in;

		ca_index_inline_at(index, i, &in);
		if (is_function(name, exact, in.name, ""))
			add_inline(&runs, index, &in);
	}
	runs_places(&runs, false, index, text, out);
	free(runs.run);
}

static void probe_places(const struct ca_point_name *name, const struct ca_index *index,
			 struct ca_point_places *out)
{
	for (size_t i = 0; i < ca_index_probes(index); i++) {
		struct ca_index_probe p;

		ca_index_probe_at(index, i, &p);
		if (is_probe(name, &p))
			add_place(out, p.address, ca_index_find_function_number(index, p.address), index);
	}
}

static void address_place(const struct ca_point_name *name, const struct ca_index *index,
			  struct ca_point_places *out)
{
	uint64_t address = address_of(name, index);

	if (address)
		add_place(out, address, ca_index_find_function_number(index, address), index);
}

static int by_address(const void *a, const void *b)
{
	const struct ca_point_place *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

size_t ca_point_places_find(const struct ca_point_name *name, const struct ca_index *index,
			    struct ca_text *text, struct ca_point_places *out)
{
	size_t n = 0;

	memset(out, 0, sizeof *out);
	if (name->kind == CA_POINT_NAME_LINE)
		line_places(name, index, text, out);
	else if (name->kind == CA_POINT_NAME_FUNCTION)
		function_places(name, index, text, out);
	else if (name->kind == CA_POINT_NAME_ADDRESS)
		address_place(name, index, out);
	else
		probe_places(name, index, out);
	if (out->n)
		qsort(out->place, out->n, sizeof *out->place, by_address);
	for (size_t i = 0; i < out->n; i++)
		if (!n || out->place[n - 1].address != out->place[i].address)
			out->place[n++] = out->place[i];
	out->n = n;
	return n;
}
