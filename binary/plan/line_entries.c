/* SPDX-License-Identifier: MIT */
/* Where a line is counted; see line_entries.h.
 *
 * A line's code comes in pieces: a loop's head in front of it and at its end, a statement around
 * an inlined call, arguments before and after others' work. Of two pieces A and B, where every
 * way to B leads through A: if B is run again without A in between, B is the loop's round and A
 * its preparation, else B is the rest of A's execution. */
#include "binary/plan/line_entries.h"
#include "binary/plan/text.h"
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 64, NOBODY = -1 };

/* The instructions of one function and where control may go. */
struct graph {
	struct ca_insn *insn;
	size_t n;
	bool *orphan; /* reached by no direct way: a switch's case, a handler of exceptions */
	bool *seen;
	size_t *stack;
	bool *avoiding[CANDIDATES]; /* by candidate: what is reached from the start without it */
};

/* ---- the graph ----------------------------------------------------------------------------*/
/* May control go on where no direct way leads? Calls: to the handler of an exception. */
static bool goes_anywhere(const struct ca_insn *i)
{
	return i->kind == CA_INSN_CALL || i->kind == CA_INSN_CALL_INDIRECT ||
	       i->kind == CA_INSN_JUMP_INDIRECT;
}

static void find_orphans(struct graph *g)
{
	for (size_t i = 0; i < g->n; i++)
		g->orphan[i] = i && !ca_insn_falls_through(&g->insn[i - 1]);
	for (size_t i = 0; i < g->n; i++) {
		long target = ca_insn_is_jump(&g->insn[i]) ? ca_insn_find(g->insn, g->n, g->insn[i].target)
							   : NOBODY;

		if (target != NOBODY)
			g->orphan[target] = false;
	}
}

static void free_graph(struct graph *g)
{
	for (size_t i = 0; i < CANDIDATES; i++)
		free(g->avoiding[i]);
	free(g->insn);
	free(g->orphan);
	free(g->seen);
	free(g->stack);
}

static bool make_graph(struct graph *g, struct ca_text *text, uint64_t low, uint64_t high)
{
	memset(g, 0, sizeof *g);
	g->insn = ca_text_decode_all(text, low, high, &g->n);
	if (!g->insn || !g->n)
		return false;
	g->orphan = calloc(g->n, sizeof *g->orphan);
	g->seen = calloc(g->n, sizeof *g->seen);
	g->stack = calloc(g->n, sizeof *g->stack);
	if (!g->orphan || !g->seen || !g->stack)
		return false;
	find_orphans(g);
	return true;
}

struct walk {
	struct graph *g;
	size_t depth;
	long avoid;
	bool anywhere; /* the orphans have been visited */
};

static void push(struct walk *w, long i)
{
	if (i < 0 || (size_t)i >= w->g->n || i == w->avoid || w->g->seen[i])
		return;
	w->g->seen[i] = true;
	w->g->stack[w->depth++] = (size_t)i;
}

static void push_next(struct walk *w, size_t i)
{
	const struct ca_insn *insn = &w->g->insn[i];

	if (ca_insn_is_jump(insn))
		push(w, ca_insn_find(w->g->insn, w->g->n, insn->target));
	if (ca_insn_falls_through(insn))
		push(w, (long)i + 1);
	if (!goes_anywhere(insn) || w->anywhere)
		return;
	w->anywhere = true;
	for (size_t k = 0; k < w->g->n; k++)
		if (w->g->orphan[k])
			push(w, (long)k);
}

/* seen[]: what is reached from `from` (after: from behind it) without passing `avoid`. */
static void reach(struct graph *g, size_t from, bool after, long avoid)
{
	struct walk w = { .g = g, .avoid = avoid };

	memset(g->seen, 0, g->n * sizeof *g->seen);
	if (after)
		push_next(&w, from);
	else
		push(&w, (long)from);
	while (w.depth)
		push_next(&w, g->stack[--w.depth]);
}

/* ---- choosing -----------------------------------------------------------------------------*/
struct candidates {
	long insn[CANDIDATES];
	size_t n;
	bool drop[CANDIDATES];
};

static bool add(struct candidates *c, long insn)
{
	if (insn == NOBODY)
		return true;
	for (size_t i = 0; i < c->n; i++)
		if (c->insn[i] == insn)
			return true;
	if (c->n == CANDIDATES)
		return false;
	c->insn[c->n++] = insn;
	return true;
}

/* A jump back is a loop's if whoever comes to it has come through its target. */
static bool is_loop(struct graph *g, long head, size_t jump)
{
	if (head == NOBODY)
		return false;
	reach(g, 0, false, head);
	return !g->seen[jump];
}

/* The runs' first instructions, and the heads of loops in them. */
static bool collect(struct graph *g, const struct ca_index_span *run, size_t runs, bool loops,
		    struct candidates *c)
{
	memset(c, 0, sizeof *c);
	for (size_t r = 0; r < runs; r++)
		if (!add(c, ca_insn_find(g->insn, g->n, run[r].low)))
			return false;
	for (size_t i = 0; i < g->n && loops; i++) {
		const struct ca_insn *in = &g->insn[i];

		for (size_t r = 0; r < runs && ca_insn_is_jump(in) && in->target <= in->address; r++)
			if (in->target >= run[r].low && in->target < run[r].high &&
			    is_loop(g, ca_insn_find(g->insn, g->n, in->target), i) &&
			    !add(c, ca_insn_find(g->insn, g->n, in->target)))
				return false;
	}
	return c->n > 0;
}

static bool leads_through(const struct graph *g, const struct candidates *c, size_t a, size_t b)
{
	return !g->avoiding[a][c->insn[b]];
}

static bool again_without(struct graph *g, const struct candidates *c, size_t b, size_t a)
{
	reach(g, (size_t)c->insn[b], true, c->insn[a]);
	return g->seen[c->insn[b]];
}

static bool reduce(struct graph *g, struct candidates *c, bool loops)
{
	for (size_t a = 0; a < c->n; a++) {
		reach(g, 0, false, c->insn[a]);
		g->avoiding[a] = malloc(g->n * sizeof *g->seen);
		if (!g->avoiding[a])
			return false;
		memcpy(g->avoiding[a], g->seen, g->n * sizeof *g->seen);
	}
	reach(g, 0, false, NOBODY);
	/* what nobody knows a way to stays */
	bool *known = malloc(g->n * sizeof *known);

	if (!known)
		return false;
	memcpy(known, g->seen, g->n * sizeof *known);
	for (size_t a = 0; a < c->n; a++)
		for (size_t b = 0; b < c->n; b++) {
			if (a == b || !known[c->insn[b]] || !leads_through(g, c, a, b))
				continue;
			if (loops && again_without(g, c, b, a))
				c->drop[a] = true;
			else
				c->drop[b] = true;
		}
	free(known);
	return true;
}

static size_t all_runs(const struct ca_index_span *run, size_t runs, uint64_t *out, size_t max)
{
	size_t n = 0;

	for (; n < runs && n < max; n++)
		out[n] = run[n].low;
	return n;
}

size_t ca_line_entries_find(struct ca_text *text, uint64_t low, uint64_t high,
			    const struct ca_index_span *run, size_t runs, bool loops, uint64_t *out,
			    size_t max)
{
	struct candidates c;
	struct graph g;
	size_t n = 0;

	if (make_graph(&g, text, low, high) && collect(&g, run, runs, loops, &c) && reduce(&g, &c, loops)) {
		for (size_t i = 0; i < c.n && n < max; i++)
			if (!c.drop[i])
				out[n++] = g.insn[c.insn[i]].address;
	}
	free_graph(&g);
	return n ? n : all_runs(run, runs, out, max);
}

bool ca_line_entries_straight(struct ca_text *text, uint64_t low, uint64_t high, uint64_t from, uint64_t to)
{
	struct ca_insn *insn;
	bool straight = false;
	size_t n;

	insn = ca_text_decode_all(text, low, high, &n);
	for (size_t i = 0; insn && i < n && insn[i].address <= to; i++) {
		if (insn[i].address < from)
			continue;
		if (insn[i].address > from && insn[i].is_target)
			break;
		if (insn[i].address == to) {
			straight = true;
			break;
		}
		if (insn[i].kind != CA_INSN_PLAIN)
			break;
	}
	free(insn);
	return straight;
}
