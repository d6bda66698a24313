/* SPDX-License-Identifier: MIT */
/* The loops of a function; see loops.h. Walking its code in depth, one comes back to where one came
 * from: to the head of a loop (which need not be its first instruction: compilers jump to the test
 * at the end). The loop is all that leads there again without passing the head. */
#include "binary/plan/loops.h"
#include "binary/plan/text.h"
#include <stdlib.h>
#include <string.h>

enum { NOBODY = -1, MAX_ROUNDS = 512 };

/* Instructions, and who comes before each: preds of i are pred[first[i] .. first[i + 1]). */
struct flow {
	struct ca_insn *insn;
	size_t n;
	size_t *first, *pred, *stack, *next;
	bool *body;
	uint8_t *seen;
};
enum { NEW, OPEN, CLOSED }; /* in seen[] */
/* A jump, or a step to the next instruction, that begins another round. */
struct round {
	size_t head, from;
};
struct rounds {
	struct round round[MAX_ROUNDS];
	size_t n;
};

bool ca_loops_cover(const struct ca_loop *loop, uint64_t address)
{
	for (unsigned i = 0; i < loop->spans; i++)
		if (address >= loop->span[i].low && address < loop->span[i].high)
			return true;
	return false;
}

/* ---- who comes before whom ----------------------------------------------------------------*/
static long target_of(const struct flow *f, size_t i)
{
	return ca_insn_is_jump(&f->insn[i]) ? ca_insn_find(f->insn, f->n, f->insn[i].target) : NOBODY;
}

static void free_flow(struct flow *f)
{
	free(f->insn);
	free(f->first);
	free(f->pred);
	free(f->stack);
	free(f->next);
	free(f->seen);
	free(f->body);
}

/* Does control step from i, which `before` instructions lead to, to the next? Nobody comes to what
 * only aligns a switch's case. */
static bool steps_on(const struct flow *f, size_t i, size_t before)
{
	return i + 1 < f->n && ca_insn_falls_through(&f->insn[i]) && (before || !i || !f->insn[i].is_pad);
}

static void link_up(struct flow *f, size_t *at)
{
	for (size_t i = 0; i < f->n; i++) {
		long target = target_of(f, i);

		if (target != NOBODY)
			f->pred[at[target]++] = i;
		if (steps_on(f, i, f->first[i + 1] - f->first[i]))
			f->pred[at[i + 1]++] = i;
	}
}

static bool make_flow(struct flow *f, struct ca_text *text, uint64_t low, uint64_t high)
{
	size_t *at;

	memset(f, 0, sizeof *f);
	f->insn = ca_text_decode_all(text, low, high, &f->n);
	if (!f->insn || !f->n)
		return false;
	f->first = calloc(f->n + 2, sizeof *f->first);
	f->pred = calloc(2 * f->n, sizeof *f->pred);
	f->stack = calloc(f->n, sizeof *f->stack);
	f->next = calloc(f->n, sizeof *f->next);
	f->seen = calloc(f->n, sizeof *f->seen);
	f->body = calloc(f->n, sizeof *f->body);
	at = calloc(f->n + 1, sizeof *at);
	if (!f->first || !f->pred || !f->stack || !f->next || !f->seen || !f->body || !at) {
		free(at);
		return false;
	}
	for (size_t i = 0; i < f->n; i++) {
		long target = target_of(f, i);

		if (target != NOBODY)
			f->first[target + 1]++;
	}
	for (size_t i = 0; i < f->n; i++)
		f->first[i + 2] += steps_on(f, i, f->first[i + 1]);
	for (size_t i = 0; i < f->n; i++)
		f->first[i + 1] += f->first[i];
	memcpy(at, f->first, f->n * sizeof *at);
	link_up(f, at);
	free(at);
	return true;
}

/* Reached by no direct way, but by a switch. */
static bool is_case(const struct flow *f, size_t i)
{
	return i && f->first[i] == f->first[i + 1] && !f->insn[i].is_pad;
}

/* ---- rounds ------------------------------------------------------------------------------*/
/* The k-th instruction that may come after i, or NOBODY past the last: the target of a jump, the
 * next one, or any case of a switch. *k is advanced. */
static long successor(const struct flow *f, size_t i, size_t *k)
{
	long target;

	if (f->insn[i].kind == CA_INSN_JUMP_INDIRECT) {
		for (; *k < f->n; ++*k)
			if (is_case(f, *k))
				return (long)(*k)++;
		return NOBODY;
	}
	if (*k == 0) {
		++*k;
		if ((target = target_of(f, i)) != NOBODY)
			return target;
	}
	if (*k == 1) {
		++*k;
		if (ca_insn_falls_through(&f->insn[i]) && i + 1 < f->n)
			return (long)i + 1;
	}
	return NOBODY;
}

static void walk(struct flow *f, size_t root, struct rounds *out)
{
	size_t depth = 0;

	f->stack[depth++] = root;
	f->seen[root] = OPEN;
	while (depth) {
		size_t i = f->stack[depth - 1];
		long to = successor(f, i, &f->next[i]);

		if (to == NOBODY) {
			f->seen[i] = CLOSED;
			depth--;
		} else if (f->seen[to] == NEW) {
			f->seen[to] = OPEN;
			f->stack[depth++] = (size_t)to;
		} else if (f->seen[to] == OPEN && out->n < MAX_ROUNDS) {
			out->round[out->n++] = (struct round){ (size_t)to, i };
		}
	}
}

static int by_head(const void *a, const void *b)
{
	const struct round *x = a, *y = b;

	return x->head != y->head ? (x->head < y->head ? -1 : 1) : x->from < y->from ? -1 : x->from > y->from;
}

/* Handlers of exceptions are begun on their own. */
static void find_rounds(struct flow *f, struct rounds *out)
{
	out->n = 0;
	walk(f, 0, out);
	for (size_t i = 1; i < f->n; i++)
		if (f->seen[i] == NEW && is_case(f, i))
			walk(f, i, out);
	qsort(out->round, out->n, sizeof *out->round, by_head);
}

/* ---- one loop -----------------------------------------------------------------------------*/
static size_t push(struct flow *f, size_t depth, size_t i)
{
	if (f->body[i])
		return depth;
	f->body[i] = true;
	f->stack[depth] = i;
	return depth + 1;
}

static size_t push_before(struct flow *f, size_t depth, size_t i)
{
	for (size_t p = f->first[i]; p < f->first[i + 1]; p++)
		depth = push(f, depth, f->pred[p]);
	for (size_t k = 0; k < f->n && is_case(f, i); k++)
		if (f->insn[k].kind == CA_INSN_JUMP_INDIRECT)
			depth = push(f, depth, k);
	return depth;
}

/* round[0..n) share a head. False: one can come round without passing it. */
static bool find_body(struct flow *f, const struct round *round, size_t n)
{
	size_t depth = 0;

	memset(f->body, 0, f->n * sizeof *f->body);
	f->body[round->head] = true;
	for (size_t i = 0; i < n; i++)
		depth = push(f, depth, round[i].from);
	while (depth) {
		size_t i = f->stack[--depth];

		if (i == 0) /* the function's entry */
			return false;
		depth = push_before(f, depth, i);
	}
	return true;
}

static void fill(const struct flow *f, size_t head, struct ca_loop *out)
{
	memset(out, 0, sizeof *out);
	out->head = f->insn[head].address;
	for (size_t i = 0; i < f->n; i++) {
		uint64_t low = f->insn[i].address, high = low + f->insn[i].size;
		struct ca_index_span *last = out->spans ? &out->span[out->spans - 1] : NULL;

		if (!f->body[i])
			continue;
		out->insns++;
		out->calls |= f->insn[i].kind == CA_INSN_CALL || f->insn[i].kind == CA_INSN_CALL_INDIRECT;
		if (last && (last->high == low || out->spans == CA_LOOP_SPANS))
			last->high = high;
		else
			out->span[out->spans++] = (struct ca_index_span){ low, high };
	}
}

static uint64_t length_of(const struct ca_loop *loop)
{
	uint64_t length = 0;

	for (unsigned i = 0; i < loop->spans; i++)
		length += loop->span[i].high - loop->span[i].low;
	return length;
}

static int by_length(const void *a, const void *b)
{
	uint64_t x = length_of(a), y = length_of(b);

	return x > y ? -1 : x < y;
}

size_t ca_loops_find(struct ca_text *text, uint64_t low, uint64_t high, struct ca_loop *out, size_t max)
{
	struct ca_loop *all = calloc(MAX_ROUNDS, sizeof *all);
	struct rounds rounds = { .n = 0 };
	struct flow f = { .n = 0 };
	size_t n = 0;

	if (all && make_flow(&f, text, low, high)) {
		find_rounds(&f, &rounds);
		for (size_t i = 0, k; i < rounds.n; i = k) {
			for (k = i + 1; k < rounds.n && rounds.round[k].head == rounds.round[i].head; k++)
				;
			if (find_body(&f, &rounds.round[i], k - i))
				fill(&f, rounds.round[i].head, &all[n++]);
		}
		qsort(all, n, sizeof *all, by_length);
		n = n < max ? n : max;
		memcpy(out, all, n * sizeof *out);
	}
	free_flow(&f);
	free(all);
	return n;
}
