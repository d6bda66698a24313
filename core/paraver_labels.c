/* SPDX-License-Identifier: MIT */
/* What Paraver is told of threads, types and values; see paraver.h. */
#include "core/paraver.h"
#include "core/utf8.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- types and labels */

static int by_name(const void *a, const void *b, void *context)
{
	const struct ca_dict *dict = context;
	const uint32_t *x = a, *y = b;

	return strcmp(ca_dict_get(dict, *x)->name, ca_dict_get(dict, *y)->name);
}

/* In the order of names, so that it does not depend on who came first where two names meet. */
bool ca_paraver_labels_number(struct ca_paraver *w)
{
	uint32_t count = ca_dict_count(w->trace->dict), *order = calloc(count, sizeof *order);
	struct ca_map taken = { 0 };
	bool known = true;

	w->type = calloc(count, sizeof *w->type);
	w->used = calloc(count, sizeof *w->used);
	if (!order || !w->type || !w->used) {
		free(order);
		return false;
	}
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	qsort_r(order, count, sizeof *order, by_name, (void *)(uintptr_t)w->trace->dict);
	for (uint32_t i = 0; i < count; i++) {
		const char *name = ca_dict_get(w->trace->dict, order[i])->name;
		uint64_t type = ca_map_key(UINT64_C(0xcbf29ce484222325), name) % CA_PARAVER_TYPES;
		uint32_t id = ca_dict_get(w->trace->dict, order[i])->id;

		while (ca_map_add(&taken, CA_PARAVER_FIRST + type, &known) && known)
			type = (type + 1) % CA_PARAVER_TYPES;
		/* the program's own have the numbers that it knows */
		w->type[order[i]] = id ? id : (uint32_t)(CA_PARAVER_FIRST + type);
	}
	ca_map_free(&taken);
	free(order);
	return true;
}

uint32_t ca_paraver_labels_type(struct ca_paraver *w, uint32_t key)
{
	bool known;

	if (key >= ca_dict_count(w->trace->dict)) {
		ca_map_add(&w->unknown, UINT64_C(1) + key, &known);
		return CA_PARAVER_FIRST + CA_PARAVER_TYPES + key % CA_PARAVER_TYPES;
	}
	w->used[key] = 1;
	return w->type[key];
}

/* A label ends with its line. */
static void put_label(FILE *file, const char *text)
{
	while (*text)
		text = ca_utf8_put(file, text);
	putc('\n', file);
}

static void put_values(struct ca_paraver *w, FILE *file, uint32_t key, bool end)
{
	const char *name;
	uint64_t value;

	for (size_t i = 0; (name = ca_dict_value_at(w->trace->dict, key, i, &value)); i++) {
		if (end && !i)
			fputs("VALUES\n", file);
		if (end && !i && value)
			fputs("0      End\n", file);
		fprintf(file, "%-6" PRIu64 " ", value);
		put_label(file, name);
	}
}

static void put_unknown(struct ca_paraver *w, FILE *file)
{
	for (size_t i = 0; i < w->unknown.slots; i++) {
		uint32_t key = (uint32_t)w->unknown.slot[i].key - 1;

		if (w->unknown.slot[i].key)
			fprintf(file, "\nEVENT_TYPE\n0    %" PRIu32 "    key-%" PRIu32 "\n",
				ca_paraver_labels_type(w, key), key);
	}
}

void ca_paraver_labels_pcf(struct ca_paraver *w, FILE *file)
{
	/* what the eye tells apart; states of higher numbers begin anew */
	static const char *const colours[] = { "117,195,255", "0,0,255",    "255,0,0",   "255,146,24",
					       "0,255,0",     "172,174,41", "255,0,174", "179,0,0" };
	const struct ca_dict *dict = w->trace->dict;
	uint64_t value;

	fputs("DEFAULT_OPTIONS\n\nLEVEL               THREAD\nUNITS               NANOSEC\n\nSTATES\n", file);
	if (w->state) {
		put_values(w, file, w->state, false);
		fputs("\nSTATES_COLOR\n", file);
		for (size_t i = 0; ca_dict_value_at(dict, w->state, i, &value); i++)
			fprintf(file, "%-6" PRIu64 " {%s}\n", value,
				colours[value % (sizeof colours / sizeof *colours)]);
		fputs("\nEVENT_TYPE\n", file);
		fprintf(file, "0    %u    sub-state\n", (unsigned)CA_PARAVER_SUBSTATE);
		put_values(w, file, w->state, true);
	}
	for (uint32_t key = 0; key < ca_dict_count(dict); key++) {
		if (!w->used[key])
			continue;
		fprintf(file, "\nEVENT_TYPE\n0    %" PRIu32 "    ", w->type[key]);
		put_label(file, ca_dict_get(dict, key)->name);
		put_values(w, file, key, true);
	}
	put_unknown(w, file);
}

static const char *name_of(const struct ca_trace *trace, uint32_t thread_index)
{
	const struct ca_trace_name *name = trace->names.at;

	for (size_t i = trace->names.n; i-- > 0;) /* the last one is how it was called in the end */
		if (!name[i].process && name[i].index == thread_index)
			return name[i].name;
	return NULL;
}

void ca_paraver_labels_row(struct ca_paraver *w, FILE *file)
{
	fprintf(file, "LEVEL CPU SIZE %" PRIu32 "\n", w->cpus);
	for (uint32_t i = 1; i <= w->cpus; i++)
		fprintf(file, "CPU 1.%" PRIu32 "\n", i);
	fprintf(file, "\nLEVEL NODE SIZE 1\nnode 1\n\nLEVEL THREAD SIZE %zu\n", w->trace->threads);
	for (unsigned application = 1; application <= 2; application++)
		for (size_t i = 0; i < w->trace->threads; i++) {
			const struct ca_trace_thread *thread = w->by_place[i];
			const struct ca_paraver_place *place = &w->place[thread - w->trace->thread];
			const char *name = name_of(w->trace, thread->from.thread_index);

			if (place->application != application)
				continue;
			fprintf(file, "THREAD %u.%u.%u%s", place->application, place->task, place->thread,
				name ? " " : "");
			put_label(file, name ? name : application == 2 ? " causal" : "");
		}
}

/* ---- where everything is */

static int by_place(const void *a, const void *b)
{
	const struct ca_trace_thread *const *x = a, *const *y = b;
	const struct ca_source *p = &(*x)->from, *q = &(*y)->from;

	if (p->process_index != q->process_index)
		return p->process_index < q->process_index ? -1 : 1;
	return p->thread_index < q->thread_index ? -1 : p->thread_index > q->thread_index;
}

/* "2:2(2:1,1:1):1(1:1)": applications, tasks, threads and their node. */
bool ca_paraver_labels_places(struct ca_paraver *w)
{
	size_t n = w->trace->threads;
	const struct ca_trace_thread **order = calloc(n, sizeof *order);
	struct ca_paraver_place last = { 1, 0, 0 };
	const char *separator = "";
	unsigned tasks = 0, alone = 0;

	w->by_place = order;
	w->place = calloc(n, sizeof *w->place);
	if (!order || !w->place)
		return false;
	for (size_t i = 0; i < n; i++)
		order[i] = &w->trace->thread[i];
	qsort(order, n, sizeof *order, by_place);
	for (size_t i = 0; i < n; i++) {
		const struct ca_source *from = &order[i]->from;
		struct ca_paraver_place *place = &w->place[order[i] - w->trace->thread];

		if (!from->process_index) { /* each thread that is nobody's */
			*place = (struct ca_paraver_place){ 2, 1, ++alone };
			continue;
		}
		if (!last.task || from->process_index != order[i - 1]->from.process_index) {
			last.task++;
			last.thread = 0;
		}
		last.thread++;
		*place = last;
	}
	tasks = last.task;
	ca_sink_file_print(&w->prv, ":%d", (tasks > 0) + (alone > 0));
	if (tasks)
		ca_sink_file_print(&w->prv, ":%u(", tasks);
	for (size_t i = 0; i < n; i++) {
		const struct ca_paraver_place *place = &w->place[order[i] - w->trace->thread];
		const struct ca_paraver_place *next =
			i + 1 < n ? &w->place[order[i + 1] - w->trace->thread] : NULL;

		if (place->application == 1 && (!next || next->task != place->task)) {
			ca_sink_file_print(&w->prv, "%s%u:1", separator, place->thread);
			separator = ",";
		}
	}
	if (tasks)
		ca_sink_file_text(&w->prv, ")");
	if (alone)
		ca_sink_file_print(&w->prv, ":1(%u:1)", alone);
	return true;
}

void ca_paraver_labels_head(struct ca_paraver *w)
{
	time_t wall = (time_t)w->trace->thread[0].wall;
	char date[32] = "";
	struct tm tm;

	if (localtime_r(&wall, &tm))
		strftime(date, sizeof date, "%d/%m/%Y at %H:%M", &tm);
	ca_sink_file_print(&w->prv, "#Paraver (%s):%" PRIu64 "_ns:1(%" PRIu32 ")", date, w->last - w->first,
			   w->cpus);
}
