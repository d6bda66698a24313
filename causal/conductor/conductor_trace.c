/* SPDX-License-Identifier: MIT */
/* The timeline of a run: what its threads and the conductor itself raise, on the way to the sinks.
 * Driver's process, one thread. */
#include "causal/conductor/code_names.h"
#include "causal/conductor/conductor_state.h"
#include "causal/conductor/walks.h"
#include "core/by_index.h"
#include "core/callgraph.h"
#include "core/clock.h"
#include "core/dict.h"
#include "core/rings_reader.h"
#include "core/sink_file.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
	NAMES = 4,              /* looks at a thread's name: it may come to have one ... */
	NAMES_EVERY = 50000000, /* ... so many ns apart */
	COMM = 32,
	SHARE = 16,          /* of what may be mapped, for rings */
	SAMPLES_MEMORY = 24, /* MiB: room for 6,000 threads */
	INLINED = 32         /* calls at one place */
};

struct called {
	uint64_t looked; /* ns */
	unsigned looks;
	char process[COMM], thread[COMM];
	uint64_t metric[CA_METRIC_COUNT]; /* so far, as samples have told */
};

struct ca_conductor_trace {
	struct ca_rings_reader *reader;
	struct ca_code_names *names;
	struct ca_by_index called;        /* struct called, by thread_index */
	uint32_t points;                  /* that have names */
	uint32_t metric[CA_METRIC_COUNT]; /* keys; 0: not wanted */
	uint64_t now;
	struct ca_vec kept; /* struct ca_event: without our own frames ... */
	uint64_t ours;      /* ... and how many these were */
	bool laps;          /* bursts are counted in the program */
};

/* /proc/PID/comm or /proc/PID/task/TID/comm; as it was if it cannot be read. */
static bool read_comm(char *name, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[COMM] = "";
	bool changed;

	if (!file)
		return false;
	if (fgets(line, sizeof line, file))
		line[strcspn(line, "\n")] = '\0';
	fclose(file);
	changed = *line && strcmp(line, name) != 0;
	if (changed)
		strcpy(name, line);
	return changed;
}

/* Threads get their names when they have begun: look now, and some more times. */
static void find_names(struct ca_conductor *c, const struct ca_source *from)
{
	struct called *name = ca_by_index_get(&c->trace->called, from->thread_index);
	uint64_t now = c->trace->now;
	bool process, thread;
	char path[64];

	if (!name || name->looks >= NAMES || (name->looks && now - name->looked < NAMES_EVERY))
		return;
	name->looks++;
	name->looked = now;
	snprintf(path, sizeof path, "/proc/%u/comm", from->process);
	process = !ca_code_names_has(c->trace->names, from, true) && read_comm(name->process, path);
	snprintf(path, sizeof path, "/proc/%u/task/%u/comm", from->process, from->thread);
	thread = !ca_code_names_has(c->trace->names, from, false) && read_comm(name->thread, path);
	if (!process && !thread)
		return;
	ca_sink_name(c->sinks, from, process ? name->process : NULL, thread ? name->thread : NULL);
	if (c->sampling)
		ca_sampling_name(c->sampling, from, process ? name->process : NULL,
				 thread ? name->thread : NULL);
}

static void name_points(struct ca_conductor *c)
{
	uint32_t used = atomic_load(&c->session->points_used);
	char name[sizeof c->session->point->name + sizeof " (begin)"];

	for (; c->trace->points < used && c->trace->points < CA_MAX_POINTS; c->trace->points++) {
		const struct ca_progress_point *p = &c->session->point[c->trace->points];

		/* acquire: pairs with the release of who has entered it */
		if (atomic_load_explicit(&p->state, memory_order_acquire) != CA_SLOT_LIVE)
			return;
		snprintf(name, sizeof name, "%.*s%s", (int)sizeof p->name, p->name,
			 p->kind == CA_POINT_BEGIN ? " (begin)"
			 : p->kind == CA_POINT_END ? " (end)"
						   : "");
		ca_dict_name_value(c->dict, CA_KEY_VISIT, c->trace->points, name);
	}
}

/* What is measured with samples, as a curve for each thread. */
static void pass_metric(struct ca_conductor *c, const struct ca_source *from, const struct ca_event *event)
{
	struct called *t = ca_by_index_get(&c->trace->called, from->thread_index);
	uint32_t key = c->trace->metric[event->flags];
	struct ca_event sum = { .time = event->time, .kind = CA_POINT, .key = key };

	if (!t || !key || !ca_dict_get(c->dict, key)->enabled)
		return;
	if (event->flags == CA_METRIC_PEAK_RSS)
		t->metric[event->flags] = event->value;
	else
		t->metric[event->flags] += event->value;
	sum.value = t->metric[event->flags];
	ca_sink_events(c->sinks, from, &sum, 1);
}

static void name_metrics(struct ca_conductor *c)
{
	for (unsigned i = 0; i < CA_METRIC_COUNT; i++) {
		const char *unit, *name = ca_samplers_metric(c->set, i, &unit);

		if (!*name)
			continue;
		c->trace->metric[i] = ca_dict_register(c->dict, name, "measured with samples (--metrics)",
						       CA_LEVEL_DEVELOPER);
		ca_dict_set_counter(c->dict, c->trace->metric[i]);
	}
}

/* Code made at run time is called what its compiler calls what lies there by now. */
static void name_made(struct ca_conductor *c, const struct ca_source *from, const struct ca_event *event,
		      const char *before)
{
	const char *name = c->sampling ? ca_sampling_made_code(c->sampling, from->process_index,
							       CA_PLACE_OFFSET(event->value))
				       : NULL;

	if (name && (!before || strcmp(name, before) != 0))
		ca_dict_name_value(c->dict, event->key, event->value, name);
}

/* Frames are called after the function, or the one that is inlined there, once its binary is indexed. */
static void name_place(struct ca_conductor *c, const struct ca_source *from, const struct ca_event *event)
{
	const char *known = ca_dict_value_name(c->dict, event->key, event->value);
	uint64_t address = CA_PLACE_OFFSET(event->value);
	const struct ca_index *index;
	struct ca_index_function function;
	struct ca_index_inline chain[INLINED];
	size_t n;

	if (CA_PLACE_MODULE(event->value) == CA_MODULE_MADE) {
		name_made(c, from, event, known);
		return;
	}
	index = known ? NULL : ca_objects_index(c->objects, CA_PLACE_MODULE(event->value));
	if (!index || !ca_index_find_function(index, address, &function))
		return;
	n = ca_index_find_inlines(index, address, chain, INLINED);
	ca_dict_name_value(c->dict, event->key, event->value, n ? chain[n - 1].name : function.name);
}

/* Frames of our own runtime are left out, as in profiles: the innermost of the others is the sample then. Returns what
 * is left, *n of it; all, where there is no memory. */
static const struct ca_event *name_places(struct ca_conductor *c, const struct ca_source *from,
					  const struct ca_event *event, size_t *n)
{
	struct ca_vec *kept = &c->trace->kept;
	const struct ca_event *sample = NULL;

	kept->n = 0;
	for (size_t i = 0; i < *n; i++) {
		struct ca_event e = event[i];
		uint32_t module = CA_PLACE_MODULE(e.value);

		if (e.key == CA_KEY_SAMPLE || e.key == CA_KEY_FRAME) {
			sample = e.key == CA_KEY_SAMPLE ? &event[i] : sample;
			if (module < CA_MAX_MODULES &&
			    ca_sampling_is_runtime(c->session->module[module].path))
				continue;
			if (sample) {
				e.key = sample->key;
				e.flags = sample->flags;
				sample = NULL;
			}
			name_place(c, from, &e);
		}
		if (!ca_vec_add(kept, &e, 1))
			return event;
	}
	c->trace->ours += *n - kept->n;
	*n = kept->n;
	return kept->at;
}

void ca_conductor_trace_pass(struct ca_conductor *c, const struct ca_source *from,
			     const struct ca_event *event, size_t n)
{
	if (ca_sink_wants(c->sinks, CA_KEY_SAMPLE))
		event = name_places(c, from, event, &n);
	ca_code_names_hand_on(c->trace->names, c->sinks, from, event, n);
	for (size_t i = 0; c->sampling && i < n; i++)
		if (event[i].key == CA_KEY_METRIC && event[i].flags < CA_METRIC_COUNT)
			pass_metric(c, from, &event[i]);
}

static void hand_on(void *context, const struct ca_source *from, const struct ca_event *event, size_t n)
{
	struct ca_conductor *c = context;

	find_names(c, from);
	if (c->walks)
		event = ca_walks_take(c->walks, from, event, &n);
	if (c->set_aside)
		ca_set_aside_take(c->set_aside, from, event, n);
	else if (c->sampling)
		ca_sampling_take(c->sampling, from, event, n);
	ca_conductor_gate(c, from, event, n);
	for (size_t i = 0; i < n; i++)
		if (event[i].key == CA_KEY_THREAD && event[i].kind == CA_BURST_END)
			ca_by_index_drop(&c->trace->called, from->thread_index);
}

static void hand_on_laps(void *context, const struct ca_source *from, const struct ca_lap *lap,
			 uint32_t first, size_t n)
{
	struct ca_conductor *c = context;

	find_names(c, from);
	ca_code_names_hand_on_laps(c->trace->names, c->sinks, from, lap, first, n);
}

static void drain(struct ca_conductor *c, bool last)
{
	if (!c->trace)
		return;
	c->trace->now = ca_clock_now();
	name_points(c);
	ca_code_names_follow(c->trace->names);
	ca_rings_reader_drain(c->trace->reader, last, hand_on, c);
	ca_conductor_gate_follow(c);
	if (c->set_aside)
		ca_set_aside_step(c->set_aside, c->trace->now);
	else if (c->sampling)
		ca_sampling_step(c->sampling, c->trace->now);
	if (c->set_aside && last)
		ca_set_aside_empty(c->set_aside);
}

void ca_conductor_trace_drain(struct ca_conductor *c)
{
	drain(c, false);
}

bool ca_conductor_trace_has_laps(const struct ca_conductor *c)
{
	return c->trace && c->trace->laps;
}

void ca_conductor_trace_forget(struct ca_conductor *c, uint32_t process)
{
	if (c->trace)
		ca_rings_reader_forget(c->trace->reader, c->session->process[process].index);
}

void ca_conductor_trace_name_region(struct ca_conductor *c, uint32_t number)
{
	const struct ca_region *region = ca_catalog_get_region(&c->catalog, number);

	if (!c->trace || !region)
		return;
	ca_dict_name_value(c->dict, CA_KEY_SELECTION, number, region->name);
	ca_dict_name_value(c->dict, CA_KEY_IN_S, number, region->name);
}

/* What a person wants who has not said it. */
static const char *usual_sinks(void)
{
#ifdef HAVE_PROTOBUF_C
	return "perfetto";
#else
	return "json";
#endif
}

/* What the values of a key are called, from 0 on. */
static enum ca_status name_values(struct ca_dict *dict, uint32_t key, const char *const *name, size_t n)
{
	enum ca_status status = CA_OK;

	for (size_t i = 0; !status && i < n; i++)
		status = ca_dict_name_value(dict, key, i, name[i]);
	return status;
}

static enum ca_status open_dict(struct ca_conductor *c, struct ca_err *err)
{
#define X(id, text) text,
	static const char *const activities[] = { CA_ACTIVITIES(X) }, *const channels[] = { CA_CHANNELS(X) };
#undef X
	static const char *const waits[] = { "one of ours", "somebody outside" };
	enum ca_status status;

	c->dict = ca_dict_new();
	if (!c->dict)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	status = ca_dict_select(c->dict, c->set->events, err);
	if (!status)
		status = name_values(c->dict, CA_KEY_STATE, activities, CA_ACTIVITY_COUNT);
	if (!status)
		status = name_values(c->dict, CA_KEY_CHANNEL, channels, CA_CHANNEL_COUNT);
	if (!status)
		status = name_values(c->dict, CA_KEY_WAIT, waits, 2);
	return status ? status : ca_dict_name_value(c->dict, CA_KEY_MUTEX, 1, "waiting");
}

/* Bytes for rings. Where nobody has said how many, no more than may be mapped. */
static uint64_t memory_of(const struct ca_conductor *c)
{
	bool by_default = c->set->origin[CA_SETTING_TRACE_MEMORY] == CA_ORIGIN_DEFAULT;
	uint64_t wanted = (uint64_t)(c->sampling && by_default ? SAMPLES_MEMORY : c->set->trace_memory) << 20;
	struct rlimit limit;

	if (!by_default || getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    wanted < limit.rlim_cur / SHARE)
		return wanted;
	return limit.rlim_cur / SHARE;
}

static enum ca_status open_rings(struct ca_conductor *c, struct ca_err *err)
{
	/* with experiments, the runtime raises bursts of its own; and what is counted in the program knows no
	 * windows */
	bool laps = c->opt.traced && !c->sampling && ca_sink_takes_laps(c->sinks) &&
		    ca_windows_are_all(c->set) && c->set->toggle_signal == CA_TOGGLE_NONE;
	const struct ca_rings_options options = {
		.memory = memory_of(c),
		.ring = (uint64_t)c->set->trace_ring << 10,
		.keep_last = c->set->trace_policy == CA_TRACE_RING,
		.laps = laps,
		.throttle = (uint64_t)c->set->throttle,
	};
	struct ca_session *s = c->session;
	uint64_t size;
	enum ca_status status;

	c->trace = calloc(1, sizeof *c->trace);
	if (!c->trace)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	c->trace->called.size = sizeof(struct called);
	c->gate.size = sizeof(struct ca_sink_track);
	c->trace->kept.size = sizeof(struct ca_event);
	status = ca_rings_reader_new(&c->trace->reader, c->session_fd, CA_SESSION_SIZE, &options, &size, err);
	if (status)
		return status;
	c->trace->laps = laps;
	ca_rings_reader_on_laps(c->trace->reader, hand_on_laps);
	s->trace_size = ca_rings_size(ca_rings_reader_get(c->trace->reader)->chunks);
	s->trace_at = CA_SESSION_SIZE + size - s->trace_size;
	s->names_at = s->trace_at + s->trace_size;
	status = ca_code_names_new(&c->trace->names, c->session_fd, s->names_at, c->dict, err);
	if (status)
		return status;
	for (uint32_t key = 1; key < CA_KEY_FIRST_FREE; key++)
		s->events |= (uint64_t)ca_dict_get(c->dict, key)->enabled << key;
	if (laps)
		s->events &= UINT64_C(1) << CA_KEY_MUTEX | UINT64_C(1) << CA_KEY_TASK;
	if (c->sampling) {
		if (!*c->set->sinks)
			s->events = 0;
		s->events |= UINT64_C(1) << CA_KEY_SAMPLE | UINT64_C(1) << CA_KEY_FRAME |
			     UINT64_C(1) << CA_KEY_WAKE | UINT64_C(1) << CA_KEY_THREAD;
		s->sampling = 1;
		s->copies = c->walks != NULL;
		name_metrics(c);
	}
	return CA_OK;
}

enum ca_status ca_conductor_trace_open(struct ca_conductor *c, struct ca_err *err)
{
	const char *spec = c->set->sinks;
	char stem[PATH_MAX];
	enum ca_status status = open_dict(c, err);

	if (status)
		return status;
	if (!*spec && (c->set->trace || (c->opt.traced && !c->opt.samples)))
		spec = usual_sinks();
	if (c->opt.traced) {
		snprintf(stem, sizeof stem, "%s%s%scausal-trace", strcmp(c->opt.dir, ".") ? c->opt.dir : "",
			 strcmp(c->opt.dir, ".") ? "/" : "", c->set->output_prefix);
		snprintf(c->opt.traced->stem, sizeof c->opt.traced->stem, "%s", stem);
		c->opt.traced->sinks = spec;
	} else {
		snprintf(stem, sizeof stem, "%s/run-%04u", c->opt.dir, c->opt.run);
	}
	ca_sink_dot_size(c->set->node_size);
	ca_sink_file_limit((uint64_t)c->set->trace_files << 20);
	ca_callgraph_throttle((uint64_t)c->set->throttle);
	status = ca_sink_open(&c->sinks, spec, stem, c->dict, &c->catalog, err);
	/* what only a timeline needs is not worth its cost otherwise */
	return status || (!*spec && !c->sampling) ? status : open_rings(c, err);
}

static void tell_losses(struct ca_conductor *c)
{
	static const char *const why[] = {
#define X(id, text) text,
		CA_LOSSES(X)
#undef X
	};
	static const char *const of_samples[] = {
#define X(id, text) "events, of which a sample has several: " text,
		CA_LOSSES(X)
#undef X
	};

	for (unsigned i = 0; i < CA_LOSS_COUNT; i++) {
		uint64_t n = ca_rings_reader_lost(c->trace->reader, (enum ca_loss)i);

		if (!n)
			continue;
		if (c->opt.traced)
			c->opt.traced->lost = true;
		if (c->opt.samples)
			ca_samples_add_loss(c->opt.samples, of_samples[i], n);
		else
			ca_conductor_say(c, 0, "%llu events are missing: %s", (unsigned long long)n, why[i]);
	}
}

/* For whoever misses some. */
static void tell_choice(struct ca_conductor *c)
{
	char names[450];

	ca_dict_list(c->dict, true, false, names, sizeof names);
	ca_conductor_say(c, 1, "events that were on: %s", names);
	ca_dict_list(c->dict, false, true, names, sizeof names);
	ca_conductor_say(c, 1, "events that were off: %s", names);
}

void ca_conductor_trace_close(struct ca_conductor *c)
{
	struct ca_err err;

	drain(c, true);
	if (c->trace && !c->opt.samples)
		tell_choice(c);
	if (c->trace && c->opt.traced) {
		c->opt.traced->events = ca_rings_reader_events(c->trace->reader) - c->outside + c->cut -
					c->trace->ours - ca_code_names_left_out(c->trace->names);
		c->opt.traced->outside = c->outside;
		c->opt.traced->threads = ca_rings_reader_threads(c->trace->reader);
		c->opt.traced->processes = atomic_load(&c->session->processes_begun);
	}
	if (c->trace)
		tell_losses(c);
	if (ca_sink_close(c->sinks, &err) != CA_OK) {
		ca_conductor_say(c, 0, "%s", err.text);
		if (c->opt.traced)
			c->opt.traced->lost = true;
	}
	c->sinks = NULL;
	ca_conductor_trace_free(c);
}

void ca_conductor_trace_free(struct ca_conductor *c)
{
	if (c->trace) {
		ca_rings_reader_free(c->trace->reader);
		ca_code_names_free(c->trace->names);
		ca_by_index_free(&c->trace->called);
		ca_vec_free(&c->trace->kept);
	}
	free(c->trace);
	c->trace = NULL;
	ca_conductor_gate_free(c);
}
