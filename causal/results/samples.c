/* SPDX-License-Identifier: MIT */
/* Profiles of samples in memory; see samples.h. Not for: files of them (samples_json.c). */
#include "causal/results/samples.h"
#include "core/vec.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 22 }; /* functions, or nodes: what comes later is put to the one above it */

const char *const ca_samples_kind_name[3] = { "code", "process", "wait" };

struct ca_samples *ca_samples_new(void)
{
	struct ca_samples *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->node = ca_vec_more(NULL, 0, sizeof *s->node);
	if (!s->node) {
		free(s);
		return NULL;
	}
	memset(s->node, 0, sizeof *s->node);
	s->nodes = 1;
	return s;
}

void ca_samples_free(struct ca_samples *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->functions; i++) {
		free(s->function[i].name);
		free(s->function[i].file);
		free(s->function[i].binary);
	}
	for (size_t i = 0; i < s->groups; i++) {
		free(s->group[i].process);
		free(s->group[i].name);
	}
	for (size_t i = 0; i < s->losses; i++)
		free(s->loss[i].why);
	for (char **word = s->command; word && *word; word++)
		free(*word);
	free(s->command);
	free(s->function);
	free(s->node);
	free(s->wake);
	free(s->group);
	free(s->loss);
	for (size_t i = 0; i < s->metrics; i++) {
		free(s->metric[i].name);
		free(s->metric[i].unit);
		free(s->metric[i].missing);
	}
	free(s->measured);
	ca_map_free(&s->by_function);
	ca_map_free(&s->by_node);
	ca_map_free(&s->by_wake);
	free(s);
}

/* Room for one more record, zeroed; counts it. */
static void *more(struct ca_samples *s, void **array, size_t *n, size_t size)
{
	void *grown = *n < MOST ? ca_vec_more(*array, *n, size) : NULL;

	if (!grown) {
		s->failed = true;
		return NULL;
	}
	*array = grown;
	return memset((char *)grown + (*n)++ * size, 0, size);
}
#define MORE(s, array, n) more((s), (void **)&(s)->array, &(s)->n, sizeof *(s)->array)

static char *copy(struct ca_samples *s, const char *text)
{
	char *made = strdup(text ? text : "");

	s->failed |= !made;
	return made;
}

uint32_t ca_samples_function(struct ca_samples *s, enum ca_samples_kind kind, const char *name,
			     const char *file, unsigned line, const char *binary)
{
	uint64_t key = ca_map_key(kind + 1 + ((uint64_t)line << 8), name);
	struct ca_samples_function *f;
	bool known;
	uint32_t *at;

	key = ca_map_key(ca_map_key(key + 1, file) + 1, binary);
	at = ca_map_add(&s->by_function, key ? key : 1, &known);
	if (at && known)
		return *at;
	f = at ? MORE(s, function, functions) : NULL;
	if (!f)
		return 0;
	*f = (struct ca_samples_function){ .kind = kind,
					   .name = copy(s, name),
					   .file = copy(s, file),
					   .binary = copy(s, binary),
					   .line = line };
	if (!f->name || !f->file || !f->binary) {
		free(f->name);
		free(f->file);
		free(f->binary);
		s->functions--;
		return 0;
	}
	return *at = (uint32_t)s->functions; /* from 1 */
}

uint32_t ca_samples_node(struct ca_samples *s, uint32_t parent, uint32_t function)
{
	struct ca_samples_node *node;
	bool known;
	uint32_t *at;

	if (!function || !(at = ca_map_add(&s->by_node, (uint64_t)parent << 32 | function, &known)))
		return parent;
	if (known && *at)
		return *at;
	node = MORE(s, node, nodes);
	if (!node)
		return parent;
	node->parent = parent;
	node->function = function;
	return *at = (uint32_t)(s->nodes - 1);
}

void ca_samples_add(struct ca_samples *s, uint32_t node, uint64_t ns)
{
	s->node[node].ns += ns;
	s->node[node].count++;
	s->samples++;
}

void ca_samples_add_metric(struct ca_samples *s, const char *name, const char *unit, bool level)
{
	if (s->metrics < CA_SAMPLES_METRICS)
		s->metric[s->metrics++] =
			(struct ca_samples_metric){ copy(s, name), copy(s, unit), NULL, level };
}

struct ca_samples_measured ca_samples_measured(const struct ca_samples *s, uint32_t node, size_t metric)
{
	return node < s->measured_nodes ? s->measured[node * s->metrics + metric]
					: (struct ca_samples_measured){ 0, 0 };
}

uint64_t ca_samples_measured_sum(const struct ca_samples *s, size_t metric)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->nodes; i++)
		sum += ca_samples_measured(s, i, metric).value;
	return sum;
}

void ca_samples_measure(struct ca_samples *s, uint32_t node, size_t metric, uint64_t value, uint64_t count)
{
	struct ca_samples_measured *measured;

	if (node >= s->measured_nodes) {
		size_t n = s->measured_nodes ? s->measured_nodes : 64;
		struct ca_samples_measured *more;

		while (n <= node)
			n *= 2;
		more = realloc(s->measured, n * s->metrics * sizeof *more);
		if (!more) {
			s->failed = true;
			return;
		}
		memset(more + s->measured_nodes * s->metrics, 0,
		       (n - s->measured_nodes) * s->metrics * sizeof *more);
		s->measured = more;
		s->measured_nodes = n;
	}
	measured = &s->measured[node * s->metrics + metric];
	measured->count += count;
	if (!s->metric[metric].level)
		measured->value += value;
	else if (value > measured->value)
		measured->value = value;
}

void ca_samples_add_wake(struct ca_samples *s, uint32_t waiter, uint32_t waker, uint64_t ns)
{
	bool known;
	uint32_t *at = ca_map_add(&s->by_wake, (uint64_t)waiter << 32 | (waker + 1), &known);
	struct ca_samples_wake *wake;

	if (at && known && *at) {
		wake = &s->wake[*at - 1];
	} else {
		wake = at ? MORE(s, wake, wakes) : NULL;
		if (!wake)
			return;
		*at = (uint32_t)s->wakes;
		wake->waiter = waiter;
		wake->waker = waker;
	}
	wake->ns += ns;
	wake->count++;
}

void ca_samples_add_threads(struct ca_samples *s, const char *process, const char *name,
			    const struct ca_samples_threads *numbers)
{
	struct ca_samples_threads *group = NULL;

	for (size_t i = 0; i < s->groups && !group; i++)
		if (!strcmp(s->group[i].process, process) && !strcmp(s->group[i].name, name))
			group = &s->group[i];
	if (!group) {
		group = MORE(s, group, groups);
		if (!group)
			return;
		group->process = copy(s, process);
		group->name = copy(s, name);
		if (!group->process || !group->name) {
			free(group->process);
			free(group->name);
			s->groups--;
			return;
		}
	}
	group->threads += numbers->threads;
	group->lifetime += numbers->lifetime;
	group->cpu += numbers->cpu;
	group->waiting += numbers->waiting;
}

void ca_samples_add_loss(struct ca_samples *s, const char *why, uint64_t count)
{
	struct ca_samples_loss *loss = count ? MORE(s, loss, losses) : NULL;

	if (!loss)
		return;
	loss->why = copy(s, why);
	loss->count = count;
	if (!loss->why)
		s->losses--;
}

bool ca_samples_is_wait(const struct ca_samples *s, uint32_t node)
{
	uint32_t f = s->node[node].function;

	return f && s->function[f - 1].kind == CA_SAMPLES_WAIT;
}

/* ---- what nodes weigh -----------------------------------------------------------------------*/
#define OVERFLOW_NAME "overflow-"

static bool is_sampler(const struct ca_samples *s, size_t metric, const char *of)
{
	const char *name = s->metric[metric].name;

	return (!(of && strcmp(of, "realtime") != 0) && !strcmp(name, "real-time")) ||
	       (!(of && strcmp(of, "overflow") != 0) && !strncmp(name, OVERFLOW_NAME, strlen(OVERFLOW_NAME)));
}

static bool has_cputime(const struct ca_samples *s)
{
	for (uint32_t i = 1; i < s->nodes; i++)
		if (s->node[i].ns && !ca_samples_is_wait(s, i))
			return true;
	return false;
}

enum ca_status ca_samples_weigh(struct ca_samples *s, const char *of, struct ca_err *err)
{
	char names[300] = "";
	size_t n = 0;

	s->weight = 0;
	if (of ? !strcmp(of, "cputime") : has_cputime(s))
		return CA_OK;
	for (size_t i = 0; i < s->metrics; i++) {
		if (s->metric[i].level || !s->metric[i].name || !s->metric[i].unit) /* NULL: no memory */
			continue;
		if (of ? is_sampler(s, i, of) || !strcmp(s->metric[i].name, of)
		       : is_sampler(s, i, NULL) && ca_samples_measured_sum(s, i)) {
			if (s->metric[i].missing)
				return ca_err_set(err, CA_ERR_USAGE,
						  "no thread could get the event of %s: %s",
						  s->metric[i].name, s->metric[i].missing);
			s->weight = (uint32_t)i + 1;
			return CA_OK;
		}
		if (n < sizeof names)
			n += (size_t)snprintf(names + n, sizeof names - n, " %s", s->metric[i].name);
	}
	return of ? ca_err_set(err, CA_ERR_USAGE, "it has no samples of %s; there is: cputime%s", of, names)
		  : CA_OK;
}

uint64_t ca_samples_weight(const struct ca_samples *s, uint32_t node)
{
	return s->weight ? ca_samples_measured(s, node, s->weight - 1).value : s->node[node].ns;
}

uint64_t ca_samples_count(const struct ca_samples *s, uint32_t node)
{
	return s->weight ? ca_samples_measured(s, node, s->weight - 1).count : s->node[node].count;
}

struct ca_samples_unit ca_samples_unit(const struct ca_samples *s)
{
	const struct ca_samples_metric *m = s->weight ? &s->metric[s->weight - 1] : NULL;
	bool time = !m || !strcmp(m->unit, "ns");

	return (struct ca_samples_unit){ .name = m ? m->name : "",
					 .unit = time       ? "s"
						 : *m->unit ? m->unit
							    : "events",
					 .scale = time ? 1e9 : 1,
					 .width = time ? 9 : 15,
					 .digits = time ? 3 : 0,
					 .time = time };
}

uint64_t *ca_samples_totals(const struct ca_samples *s)
{
	uint64_t *total = calloc(s->nodes, sizeof *total);

	for (size_t i = s->nodes; total && i-- > 0;) {
		total[i] += ca_samples_weight(s, (uint32_t)i);
		if (i)
			total[s->node[i].parent] += total[i];
	}
	return total;
}

uint64_t ca_samples_path(const struct ca_samples *s)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < s->nodes; i++)
		ns += s->node[i].path;
	return ns;
}

static int by_self(const void *a, const void *b)
{
	const struct ca_samples_row *x = a, *y = b;

	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	if (x->wall != y->wall)
		return x->wall < y->wall ? 1 : -1;
	return x->function < y->function ? -1 : x->function > y->function;
}

/* Is the function on the stack further out? */
static bool calls_itself(const struct ca_samples *s, uint32_t node)
{
	uint32_t function = s->node[node].function;

	while ((node = s->node[node].parent))
		if (s->node[node].function == function)
			return true;
	return false;
}

struct ca_samples_row *ca_samples_rows(const struct ca_samples *s, size_t *n, uint64_t *cpu,
				       uint64_t *waiting)
{
	struct ca_samples_row *row = calloc(s->functions + 1, sizeof *row);
	uint64_t *wall = ca_samples_totals(s), *ran = wall ? calloc(2 * s->nodes, sizeof *ran) : NULL;
	uint64_t *path = ran ? ran + s->nodes : NULL;

	*n = 0;
	*cpu = *waiting = 0;
	if (!row || !ran) {
		free(row);
		free(wall);
		free(ran);
		return NULL;
	}
	for (size_t i = s->nodes; i-- > 1;) {
		bool wait = ca_samples_is_wait(s, (uint32_t)i);
		uint64_t weight = ca_samples_weight(s, (uint32_t)i);

		ran[i] += wait ? 0 : weight;
		ran[s->node[i].parent] += ran[i];
		path[i] += s->node[i].path;
		path[s->node[i].parent] += path[i];
		*(wait ? waiting : cpu) += weight;
	}
	for (size_t i = 1; i < s->nodes; i++) {
		struct ca_samples_row *r = &row[s->node[i].function - 1];

		r->function = s->node[i].function;
		r->self += ca_samples_weight(s, (uint32_t)i);
		if (calls_itself(s, (uint32_t)i))
			continue;
		r->total += ran[i];
		r->wall += wall[i];
		r->path += path[i];
	}
	for (size_t i = 0; i < s->functions; i++)
		if (row[i].function && s->function[i].kind == CA_SAMPLES_CODE)
			row[(*n)++] = row[i];
	if (*n)
		qsort(row, *n, sizeof *row, by_self);
	free(wall);
	free(ran);
	return row;
}
