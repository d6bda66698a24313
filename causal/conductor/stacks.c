/* SPDX-License-Identifier: MIT */
/* Stacks, added up; see stacks.h. A node stands for a stack: its region, called from its parent's. When
 * the tree is full, a sample counts for the part of its stack that is there. */
#include "causal/conductor/stacks.h"
#include "core/map.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	NODES = 32768,
	JUDGED = 96,    /* regions that are looked at, those with the largest share */
	PATH = 128,     /* regions of a stack that are looked at */
	SMALL = 100,    /* 1 / share of all samples, and of those on a CPU, ... */
	FEWEST = 3,     /* ... or periods, below which a region is small */
	NEARLY_ALL = 90 /* percent: two regions with as many samples in common stand for each other */
};
/* A region that only holds others: its own share of its samples, in percent, is below ... */
enum {
	HARDLY_OWN = 15,
	HELD = 80,    /* ... those others have so much of their samples in it ... */
	COVERED = 67, /* ... and cover so much of it; or it has HELD percent of all samples. */
	HALF = 50,    /* Not if so much of it is code that others call, too. */
	/* Or its own is below CA_STACKS_NO_OWN, and rows cover so much of it, whoever else calls them; */
	MUCH = 10 /* ... or it has so much of all samples: there, many small ones share its work. */
};
static const double outermost = 0.05; /* regions around it, on average: none, but for chance */
static const double hardly = 1e-6;    /* the weight of what counts where there is nothing else */

struct node {
	uint32_t region, parent;    /* parent 0: the root */
	uint64_t own, own_run, ran; /* ran: of own, on a CPU, and at work: who spins waits */
	uint64_t spun, spun_run;    /* of own, own_run */
};
struct ca_stacks {
	struct node *node; /* [0] is the root */
	uint32_t nodes;
	struct ca_map at; /* by parent and region */
	uint64_t total;
	struct ca_stacks_code code[JUDGED];
	size_t codes;
	uint64_t ran[JUDGED], own_ran[JUDGED]; /* of each: periods at work */
	bool spins[JUDGED], waits[JUDGED];     /* most of it, or a part */
	uint64_t ran_all;
	uint64_t inside[JUDGED][JUDGED]; /* [outer][inner] */
	uint32_t *number;                /* by region: where in code, from 1; 0: small */
	size_t numbers;
	struct ca_map team;              /* the regions of a runtime with threads of its own */
	uint64_t handed[JUDGED][JUDGED]; /* [what such a thread was handed][inner]: periods there */
};

struct ca_stacks *ca_stacks_new(void)
{
	struct ca_stacks *s = calloc(1, sizeof *s);

	if (s && !(s->node = calloc(NODES, sizeof *s->node))) {
		free(s);
		return NULL;
	}
	if (s)
		s->nodes = 1;
	return s;
}

void ca_stacks_free(struct ca_stacks *s)
{
	if (!s)
		return;
	ca_map_free(&s->at);
	ca_map_free(&s->team);
	free(s->node);
	free(s->number);
	free(s);
}

static uint32_t child(struct ca_stacks *s, uint32_t parent, uint32_t region)
{
	uint64_t key = (uint64_t)parent << 32 | region;
	const uint32_t *known = ca_map_find(&s->at, key);
	uint32_t *added;
	bool there;

	if (known)
		return *known;
	if (s->nodes == NODES || !(added = ca_map_add(&s->at, key, &there)))
		return 0;
	s->node[s->nodes] = (struct node){ .region = region, .parent = parent };
	return *added = s->nodes++;
}

void ca_stacks_add(struct ca_stacks *s, const uint32_t *region, unsigned n, unsigned weight, bool waiting,
		   bool spinning)
{
	uint32_t at = 0, next;

	while (n-- > 0 && (next = child(s, at, region[n])))
		at = next;
	spinning = spinning && s->node[at].region == region[0];
	s->node[at].own += weight;
	s->node[at].own_run += weight;
	s->node[at].ran += waiting || spinning ? 0 : weight;
	s->node[at].spun += spinning ? weight : 0;
	s->node[at].spun_run += spinning ? weight : 0;
	s->total += weight;
	s->ran_all += waiting || spinning ? 0 : weight;
}

void ca_stacks_set_team(struct ca_stacks *s, uint32_t region)
{
	bool there;

	ca_map_add(&s->team, region, &there);
}

void ca_stacks_begin_run(struct ca_stacks *s)
{
	for (uint32_t i = 0; i < s->nodes; i++)
		s->node[i].own_run = s->node[i].spun_run = 0;
}

uint64_t ca_stacks_total(const struct ca_stacks *s)
{
	return s->total;
}

uint64_t ca_stacks_own(const struct ca_stacks *s, uint32_t region, bool spinning)
{
	uint64_t sum = 0;

	for (uint32_t i = 1; i < s->nodes; i++)
		if (s->node[i].region == region)
			sum += spinning ? s->node[i].spun_run : s->node[i].own_run;
	return sum;
}

/* ---- counting ----------------------------------------------------------------------------*/
static bool share(uint64_t part, uint64_t whole, unsigned percent)
{
	return 100 * part >= percent * whole;
}

struct count {
	uint32_t region;
	uint64_t samples, own, ran, own_ran, spun;
	double depth, weight; /* sums */
	double share; /* of all samples, or of those on a CPU, whichever is more: a server's idle processes
		       * hide nothing */
};

static int by_share(const void *a, const void *b)
{
	const struct count *x = a, *y = b;

	return x->share != y->share    ? (x->share < y->share ? 1 : -1)
	       : x->region < y->region ? -1
				       : x->region > y->region;
}

/* The regions of a node's stack, from the innermost on. */
static unsigned path_of(const struct ca_stacks *s, uint32_t node, uint32_t region[PATH])
{
	unsigned n = 0;

	for (; node && n < PATH; node = s->node[node].parent)
		region[n++] = s->node[node].region;
	return n;
}

/* Every region that is on a stack, with its counts. Owned by the caller. */
static struct count *count_all(const struct ca_stacks *s, size_t *n)
{
	uint32_t most = 0, path[PATH];
	struct count *count;

	for (uint32_t i = 1; i < s->nodes; i++)
		most = s->node[i].region > most ? s->node[i].region : most;
	*n = most;
	count = calloc((size_t)most + 1, sizeof *count);
	for (uint32_t i = 1; i < s->nodes && count; i++) {
		unsigned depth = s->node[i].own ? path_of(s, i, path) : 0;
		double weight = (double)s->node[i].own;

		/* in a team's thread it is as deep as where it was handed out, if that is known */
		if (depth && ca_map_find(&s->team, path[depth - 1]))
			weight *= hardly;

		for (unsigned k = 0; k < depth; k++) {
			struct count *c = &count[path[k] - 1];

			c->region = path[k];
			c->samples += s->node[i].own;
			c->own += k ? 0 : s->node[i].own;
			c->ran += s->node[i].ran;
			c->own_ran += k ? 0 : s->node[i].ran;
			c->spun += k ? 0 : s->node[i].spun;
			c->depth += weight * (depth - 1 - k);
			c->weight += weight;
		}
	}
	return count;
}

static double share_of(const struct ca_stacks *s, const struct count *c)
{
	double all = (double)c->samples / (double)s->total;
	double running = s->ran_all ? (double)c->ran / (double)s->ran_all : 0;

	return c->samples < FEWEST ? 0 : fmax(all, running);
}

static bool take_codes(struct ca_stacks *s)
{
	size_t n;
	struct count *count = count_all(s, &n);
	uint32_t *number = realloc(s->number, (n + 1) * sizeof *number);

	s->codes = 0;
	if (number)
		s->number = number;
	if (!number || !count) {
		free(count);
		return false;
	}
	memset(number, 0, (n + 1) * sizeof *number);
	s->numbers = n + 1;
	for (size_t i = 0; i < n; i++)
		count[i].share = share_of(s, &count[i]);
	qsort(count, n, sizeof *count, by_share);
	for (size_t i = 0; i < n && i < JUDGED && count[i].share >= 1.0 / SMALL; i++) {
		s->ran[s->codes] = count[i].ran;
		s->own_ran[s->codes] = count[i].own_ran;
		s->spins[s->codes] = share(count[i].spun, count[i].samples, CA_STACKS_SPIN);
		s->waits[s->codes] = share(count[i].spun, count[i].samples, CA_STACKS_NO_OWN);
		s->code[s->codes++] = (struct ca_stacks_code){
			.region = count[i].region,
			.samples = count[i].samples,
			.own = count[i].own,
			.depth = count[i].depth / count[i].weight,
		};
		number[count[i].region] = (uint32_t)s->codes;
	}
	free(count);
	return true;
}

/* The judged ones of a node's stack as numbers of code, from the innermost on. */
static unsigned codes_of(const struct ca_stacks *s, uint32_t node, uint32_t code[PATH])
{
	uint32_t path[PATH];
	unsigned n = path_of(s, node, path), k = 0;

	for (unsigned i = 0; i < n; i++)
		if (s->number[path[i]])
			code[k++] = s->number[path[i]] - 1;
	return k;
}

/* What a team's thread was handed, as a number of code: the outermost of its stack that is not the runtime's. */
static bool find_handed(const struct ca_stacks *s, uint32_t node, const uint32_t code[PATH], unsigned n,
			uint32_t *handed)
{
	while (s->node[node].parent)
		node = s->node[node].parent;
	if (!ca_map_find(&s->team, s->node[node].region))
		return false;
	while (n > 0 && ca_map_find(&s->team, s->code[code[n - 1]].region))
		n--;
	if (n)
		*handed = code[n - 1];
	return n;
}

static void count_pairs(struct ca_stacks *s)
{
	uint32_t code[PATH];

	memset(s->inside, 0, sizeof s->inside);
	memset(s->handed, 0, sizeof s->handed);
	for (uint32_t node = 1; node < s->nodes; node++) {
		unsigned n = s->node[node].own ? codes_of(s, node, code) : 0;
		uint32_t handed;

		for (unsigned k = 0; n && find_handed(s, node, code, n, &handed) && k < n; k++)
			s->handed[handed][code[k]] += s->node[node].own;
		for (unsigned outer = 1; outer < n; outer++)
			for (unsigned inner = 0; inner < outer; inner++)
				s->inside[code[outer]][code[inner]] += s->node[node].own;
	}
}

/* ---- judging -----------------------------------------------------------------------------*/
/* The innermost with nearly the same samples. */
static void find_row_of(struct ca_stacks *s, size_t a)
{
	double deepest = s->code[a].depth;

	for (size_t b = 0; b < s->codes; b++) {
		uint64_t both = s->inside[a][b];

		if (b == a || s->code[b].depth <= deepest || !share(both, s->code[a].samples, NEARLY_ALL) ||
		    !share(both, s->code[b].samples, NEARLY_ALL))
			continue;
		deepest = s->code[b].depth;
		s->code[a].role = CA_STACKS_VIA;
		s->code[a].row = s->code[b].region;
	}
}

/* Samples of b in threads to which a hands it: what they were given is called from a wherever else it is. */
static uint64_t handed_out(const struct ca_stacks *s, size_t a, size_t b)
{
	uint64_t sum = 0;

	for (size_t x = 0; x < s->codes; x++)
		if (s->handed[x][b] && !s->handed[x][a] && s->inside[a][x] &&
		    share(s->inside[a][x], s->code[x].samples - s->handed[x][x], HELD))
			sum += s->handed[x][b];
	return sum;
}

/* Rows that have so many percent of their samples in here, or in threads that it hands them to: how many, and
 * how much of it they cover together. */
static unsigned held_rows(const struct ca_stacks *s, size_t a, unsigned percent, uint64_t *covered)
{
	bool held[JUDGED] = { false };
	uint32_t code[PATH];
	unsigned rows = 0;

	*covered = 0;
	for (size_t b = 0; b < s->codes; b++)
		if (s->code[b].role == CA_STACKS_ROW && s->inside[a][b] &&
		    share(s->inside[a][b], s->code[b].samples - handed_out(s, a, b), percent))
			held[b] = ++rows;
	for (uint32_t node = 1; node < s->nodes && rows; node++) {
		unsigned n = s->node[node].own ? codes_of(s, node, code) : 0;
		bool inner = false;

		for (unsigned k = 0; k < n && code[k] != a; k++)
			inner |= held[code[k]];
		for (unsigned k = 0; k < n && inner; k++)
			*covered += code[k] == a ? s->node[node].ran : 0;
	}
	return rows;
}

/* Is nearly all of it one call of what is no row itself? An entry into that: a thread's function, say. */
static bool is_entry(const struct ca_stacks *s, size_t a)
{
	for (size_t b = 0; b < s->codes; b++)
		if ((s->code[b].role == CA_STACKS_CONTAINS || s->code[b].role == CA_STACKS_VIA) &&
		    share(s->inside[a][b], s->code[a].samples, NEARLY_ALL))
			return true;
	return false;
}

static enum ca_stacks_role role_of(const struct ca_stacks *s, size_t a)
{
	uint64_t covered, held, ran = s->ran[a];
	unsigned rows = held_rows(s, a, 0, &covered), own_rows = held_rows(s, a, HELD, &held);

	if (!share(s->own_ran[a], ran, CA_STACKS_NO_OWN) && is_entry(s, a))
		return CA_STACKS_CONTAINS;
	/* a thread's own function that waits for work: it calls nothing oftener than it is told */
	if (rows && !share(s->own_ran[a], ran, CA_STACKS_NO_OWN) && s->code[a].depth < outermost &&
	    s->waits[a])
		return CA_STACKS_CONTAINS;
	if (rows && !share(s->own_ran[a], ran, HARDLY_OWN) && ca_map_find(&s->team, s->code[a].region))
		return CA_STACKS_CONTAINS;
	/* most of it is code that others call, too: then it can be changed how often it calls that */
	if (ran && share(covered - held, ran, HALF))
		return CA_STACKS_ROW;
	if (!share(s->own_ran[a], ran, CA_STACKS_NO_OWN) && rows &&
	    (share(covered, ran, COVERED) || share(ran, s->ran_all, MUCH)))
		return CA_STACKS_CONTAINS;
	if ((ran && share(s->own_ran[a], ran, HARDLY_OWN)) || own_rows < 2)
		return CA_STACKS_ROW;
	return share(held, ran, COVERED) || share(ran, s->ran_all, HELD) ? CA_STACKS_CONTAINS : CA_STACKS_ROW;
}

/* Of those that have no role yet. */
static size_t deepest_open(const struct ca_stacks *s)
{
	size_t deepest = s->codes;

	for (size_t a = 0; a < s->codes; a++)
		if (s->code[a].role == CA_STACKS_SMALL &&
		    (deepest == s->codes || s->code[a].depth > s->code[deepest].depth))
			deepest = a;
	return deepest;
}

size_t ca_stacks_judge(struct ca_stacks *s, const struct ca_stacks_code **code)
{
	*code = s->code;
	if (!take_codes(s))
		return 0;
	count_pairs(s);
	for (size_t a = 0; a < s->codes; a++)
		find_row_of(s, a);
	/* what is inside lies deeper than what is around it */
	for (size_t a = 0; (a = deepest_open(s)) < s->codes;)
		s->code[a].role = role_of(s, a);
	for (size_t a = 0; a < s->codes; a++)
		for (size_t hops = 0; s->code[a].role == CA_STACKS_VIA && hops < s->codes; hops++) {
			const struct ca_stacks_code *row = &s->code[s->number[s->code[a].row] - 1];

			if (row->role != CA_STACKS_VIA)
				break;
			s->code[a].row = row->row;
		}
	for (size_t a = 0; a < s->codes; a++) /* as a row it was part of what contains it */
		if (s->code[a].role == CA_STACKS_ROW && s->spins[a])
			s->code[a].role = CA_STACKS_SPINS;
	return s->codes;
}

uint64_t ca_stacks_inside(const struct ca_stacks *s, uint32_t outer, uint32_t inner)
{
	uint32_t a = outer < s->numbers ? s->number[outer] : 0, b = inner < s->numbers ? s->number[inner] : 0;

	return a && b ? s->inside[a - 1][b - 1] : 0;
}

/* ---- telling -----------------------------------------------------------------------------*/
struct told {
	uint32_t node;
	uint64_t count;
};

static int by_count(const void *a, const void *b)
{
	const struct told *x = a, *y = b;

	return x->count != y->count ? (x->count < y->count ? 1 : -1) : x->node < y->node ? -1 : 1;
}

void ca_stacks_tell(const struct ca_stacks *s, size_t most,
		    void (*told)(void *context, const uint32_t *region, size_t n, uint64_t count),
		    void *context)
{
	struct told *list = calloc(s->nodes, sizeof *list);
	uint32_t path[PATH], turned[PATH];
	size_t n = 0;

	for (uint32_t i = 1; i < s->nodes && list; i++)
		if (s->node[i].own_run)
			list[n++] = (struct told){ i, s->node[i].own_run };
	if (n)
		qsort(list, n, sizeof *list, by_count);
	for (size_t i = 0; i < n && i < most; i++) {
		unsigned depth = path_of(s, list[i].node, path);

		for (unsigned k = 0; k < depth; k++)
			turned[k] = path[depth - 1 - k];
		told(context, turned, depth, list[i].count);
	}
	free(list);
}
