/* SPDX-License-Identifier: MIT */
/* From samples to a profile; see sampling.h. */
#include "causal/conductor/sampling.h"
#include "causal/conductor/critical_path.h"
#include "causal/conductor/late_names.h"
#include "causal/conductor/made_code.h"
#include "core/by_index.h"
#include "core/map.h"
#include "core/path.h"
#include "core/session.h"
#include "core/settings.h"
#include "core/vec.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FRAMES = 256,  /* of a stack; more than the runtime sends */
	INLINED = 32,  /* calls at one place */
	HELD = 20000,  /* stacks that wait for the index of a binary */
	PAIRS = 65536, /* who wakes others: so many are remembered, a power of two */
	WAITS = 4096,  /* waits whose waker has not been seen yet */
	NAME = 32,
	MARGIN = 10000000, /* ns that an event may come later than others that were raised after it */
	LATE = 1000000000  /* ns after which code that a process has made has no name, if it has none yet */
};

/* What a place is: functions, the outermost first. */
struct place {
	uint32_t first, n; /* in names */
};
struct stack {
	uint32_t thread; /* index in threads */
	uint32_t frames;
	uint64_t ns, time, pair;  /* pair: who ended it, or of the waker; or 0 */
	enum ca_activity waiting; /* NONE: on a CPU */
	bool waker, in_kernel;
	uint32_t begins;                  /* a wait of that number; 0: none, it is a sample */
	uint64_t metric[CA_METRIC_COUNT]; /* measured with it */
	ca_place frame[FRAMES];
};
struct pair {
	uint64_t pair;
	uint32_t node;
};
struct wait {
	uint64_t pair, ns;
	uint32_t node;
};
struct thread {
	uint64_t cpu, waiting; /* ns */
	uint64_t began, ended; /* so many ns of windows were over */
	bool lives, gone;      /* has it begun, has it ended? */
	uint32_t process;      /* index in processes */
	/* the last wait whose stack was told when it began, and the one that was still open at the end */
	uint32_t wait_number, wait_node, open_number;
	enum ca_activity wait_for;
	uint64_t open_since, open_until;
	bool open_left;  /* it was left before, and says itself how long it took */
	uint64_t on_cpu; /* its last sample there, ns */
	char name[NAME];
};
struct process {
	char name[NAME];
	uint32_t node; /* 0: not yet */
	uint32_t pid;
	struct ca_made_code *made; /* NULL: none is known of */
};

struct ca_sampling {
	struct ca_samples *samples;
	struct ca_session *session;
	struct ca_objects *objects;
	const struct ca_windows *const *windows; /* of each sampler, and the run's */
	int number[CA_METRIC_COUNT];             /* of the metric in the profile; -1: not wanted */
	uint64_t last;
	struct ca_vec place, names; /* struct place; uint32_t, numbers of functions */
	struct ca_map place_at;
	struct ca_vec held;         /* struct stack */
	struct ca_by_index threads; /* struct thread */
	struct ca_vec over;         /* uint32_t: threads that have ended */
	struct ca_vec processes;    /* by their indices */
	struct ca_late_names late;
	struct ca_vec waits; /* struct wait */
	struct pair *pair;
	struct ca_critical_path *path;
	uint32_t waiting[CA_ACTIVITY_COUNT]; /* functions */
	uint64_t outside, unheld;            /* samples: not in the window; no room to hold them */
	bool ending;
	ca_sampling_told *told; /* may be NULL */
	void *context;
};

static void name_metrics(struct ca_sampling *s, const struct ca_settings *settings)
{
	for (unsigned i = 0; i < CA_METRIC_COUNT; i++) {
		const char *unit, *name = ca_samplers_metric(settings, i, &unit);

		s->number[i] = *name ? (int)s->samples->metrics : -1;
		if (*name)
			ca_samples_add_metric(s->samples, name, unit, i == CA_METRIC_PEAK_RSS);
	}
}

struct ca_sampling *ca_sampling_new(struct ca_samples *samples, struct ca_session *session,
				    struct ca_objects *objects,
				    const struct ca_windows *const windows[CA_SAMPLER_COUNT + 1],
				    const struct ca_settings *settings)
{
	struct ca_sampling *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->samples = samples;
	s->session = session;
	s->objects = objects;
	s->windows = windows;
	name_metrics(s, settings);
	s->place.size = sizeof(struct place);
	s->names.size = sizeof(uint32_t);
	s->held.size = sizeof(struct stack);
	s->threads.size = sizeof(struct thread);
	s->over.size = sizeof(uint32_t);
	s->processes.size = sizeof(struct process);
	ca_late_names_init(&s->late);
	s->waits.size = sizeof(struct wait);
	s->pair = calloc(PAIRS, sizeof *s->pair);
	s->path = ca_critical_path_new(samples);
	if (s->pair && s->path)
		return s;
	ca_sampling_free(s);
	return NULL;
}

void ca_sampling_free(struct ca_sampling *s)
{
	if (!s)
		return;
	ca_vec_free(&s->place);
	ca_vec_free(&s->names);
	ca_map_free(&s->place_at);
	ca_vec_free(&s->held);
	for (size_t i = 0; i < s->processes.n; i++)
		ca_made_code_free(((struct process *)s->processes.at)[i].made);
	ca_by_index_free(&s->threads);
	ca_vec_free(&s->over);
	ca_vec_free(&s->processes);
	ca_late_names_fini(&s->late);
	ca_vec_free(&s->waits);
	ca_critical_path_free(s->path);
	free(s->pair);
	free(s);
}

void ca_sampling_tap(struct ca_sampling *s, ca_sampling_told *told, void *context)
{
	s->told = told;
	s->context = context;
}

static struct thread *thread_of(struct ca_sampling *s, const struct ca_source *from)
{
	struct thread *t = ca_by_index_get(&s->threads, from->thread_index);
	struct process *p = ca_vec_reach(&s->processes, from->process_index);

	if (t)
		t->process = from->process_index;
	if (p)
		p->pid = from->process;
	return t;
}

void ca_sampling_name(struct ca_sampling *s, const struct ca_source *from, const char *process,
		      const char *thread)
{
	struct thread *t = thread_of(s, from);
	struct process *p = ca_vec_reach(&s->processes, from->process_index);

	if (t && thread)
		snprintf(t->name, sizeof t->name, "%s", thread);
	if (p && process)
		snprintf(p->name, sizeof p->name, "%s", process);
}

/* ---- places ---------------------------------------------------------------------------------*/
bool ca_sampling_is_runtime(const char *path)
{
	return !strncmp(ca_path_base(path), "libcausal-rt.so", strlen("libcausal-rt.so"));
}

static void add_name(struct ca_sampling *s, struct place *p, const char *name, const char *file,
		     unsigned line, const char *binary)
{
	uint32_t function = ca_samples_function(s->samples, CA_SAMPLES_CODE, name, file, line, binary);

	if (function && ca_vec_add(&s->names, &function, 1))
		p->n++;
}

static void name_place(struct ca_sampling *s, struct place *p, ca_place place, const struct ca_index *index,
		       const char *path)
{
	struct ca_index_inline chain[INLINED];
	struct ca_index_function function;
	char text[NAME + 256];
	size_t n = 0;

	p->first = (uint32_t)s->names.n;
	if (ca_sampling_is_runtime(path))
		return;
	if (index && ca_index_find_function(index, CA_PLACE_OFFSET(place), &function)) {
		add_name(s, p, function.name, function.file, function.line, path);
		n = ca_index_find_inlines(index, CA_PLACE_OFFSET(place), chain, INLINED);
	} else {
		snprintf(text, sizeof text, "[%s]", ca_path_base(path));
		add_name(s, p, text, "", 0, path);
	}
	for (size_t i = 0; i < n; i++)
		add_name(s, p, chain[i].name, chain[i].file, chain[i].line, path);
}

/* NULL: its binary is not indexed yet, or there is no memory. */
static const struct place *find_place(struct ca_sampling *s, ca_place place)
{
	const uint32_t *known = ca_map_find(&s->place_at, place);
	uint32_t module = CA_PLACE_MODULE(place), *number;
	const struct ca_index *index;
	struct place *p;
	bool there;

	if (known)
		return (struct place *)s->place.at + *known;
	if (module >= CA_MAX_MODULES)
		return NULL;
	index = ca_objects_index(s->objects, module);
	if (!index && !s->ending &&
	    atomic_load_explicit(&s->session->module[module].state, memory_order_acquire) != CA_MODULE_FAILED)
		return NULL;
	p = ca_vec_push(&s->place);
	number = p ? ca_map_add(&s->place_at, place, &there) : NULL;
	if (!number)
		return NULL;
	*number = (uint32_t)(s->place.n - 1);
	name_place(s, p, place, index, s->session->module[module].path);
	return p;
}

static const char *name_made(struct ca_sampling *s, struct process *p, uint64_t address, bool *later)
{
	*later = false;
	if (p && !p->made)
		p->made = ca_made_code_new(p->pid);
	return p && p->made ? ca_made_code_find(p->made, address, s->ending ? UINT64_MAX : s->last, later)
			    : NULL;
}

const char *ca_sampling_made_code(struct ca_sampling *s, uint32_t process, uint64_t address)
{
	bool later;

	return name_made(s, ca_vec_reach(&s->processes, process), address, &later);
}

/* The name of code that the process has made itself, as a function; 0: not yet. */
static uint32_t find_made(struct ca_sampling *s, const struct stack *stack, uint64_t address)
{
	const struct thread *t = ca_by_index_get(&s->threads, stack->thread);
	bool later;
	const char *name = name_made(s, t ? ca_vec_reach(&s->processes, t->process) : NULL, address, &later);

	if (later && !s->ending && s->last < stack->time + LATE)
		return 0;
	if (!name && !s->ending && t)
		return ca_late_names_add(&s->late, s->samples, t->process, address);
	return ca_samples_function(s->samples, CA_SAMPLES_CODE, name ? name : CA_MADE, "", 0, CA_MADE);
}

/* What a frame is, the outermost first; NULL: not known yet. */
static const uint32_t *find_frame(struct ca_sampling *s, const struct stack *stack, uint32_t i,
				  uint32_t *made, uint32_t *n)
{
	const struct place *p;

	if (CA_PLACE_MODULE(stack->frame[i]) == CA_MODULE_MADE) {
		*made = find_made(s, stack, CA_PLACE_OFFSET(stack->frame[i]));
		*n = 1;
		return *made ? made : NULL;
	}
	p = find_place(s, stack->frame[i]);
	*n = p ? p->n : 0;
	return p && p->n ? (uint32_t *)s->names.at + p->first : p ? made : NULL; /* ours have no names */
}

/* ---- stacks ---------------------------------------------------------------------------------*/
static uint32_t root_of(struct ca_sampling *s, uint32_t process)
{
	struct process *p = ca_vec_reach(&s->processes, process);

	if (!p)
		return 0;
	if (!p->node)
		p->node = ca_samples_node(s->samples, 0,
					  ca_samples_function(s->samples, CA_SAMPLES_PROCESS,
							      *p->name ? p->name : "process", "", 0, ""));
	return p->node;
}

static uint32_t waiting_for(struct ca_sampling *s, enum ca_activity what)
{
	static const char *const text[] = {
#define X(id, text) "[" text "]",
		CA_ACTIVITIES(X)
#undef X
	};

	if (what >= CA_ACTIVITY_COUNT)
		what = CA_ACTIVITY_OTHERS;
	if (!s->waiting[what])
		s->waiting[what] = ca_samples_function(s->samples, CA_SAMPLES_WAIT, text[what], "", 0, "");
	return s->waiting[what];
}

static void match(struct ca_sampling *s)
{
	const struct wait *wait = s->waits.at;

	for (size_t i = 0; i < s->waits.n; i++) {
		const struct pair *pair = &s->pair[wait[i].pair % PAIRS];

		ca_samples_add_wake(s->samples, wait[i].node, pair->pair == wait[i].pair ? pair->node : 0,
				    wait[i].ns);
	}
	s->waits.n = 0;
}

static void remember_wait(struct ca_sampling *s, const struct stack *stack, uint32_t node)
{
	struct wait *wait;

	if (s->waits.n >= WAITS)
		match(s);
	wait = ca_vec_push(&s->waits);
	if (wait)
		*wait = (struct wait){ stack->pair, stack->ns, node };
}

/* False: a binary on it is not indexed yet. */
static bool take_stack(struct ca_sampling *s, const struct stack *stack)
{
	struct thread *t = ca_by_index_get(&s->threads, stack->thread);
	uint32_t node, made, n;

	for (uint32_t i = 0; i < stack->frames; i++)
		if (!find_frame(s, stack, i, &made, &n))
			return false;
	if (!t)
		return true;
	node = root_of(s, t->process);
	for (uint32_t i = stack->frames; i-- > 0;) {
		const uint32_t *function = find_frame(s, stack, i, &made, &n);

		for (uint32_t k = 0; k < n; k++)
			node = ca_samples_node(s->samples, node, function[k]);
	}
	if (stack->waker) {
		s->pair[stack->pair % PAIRS] = (struct pair){ stack->pair, node };
		return true;
	}
	if (stack->begins) {
		t->wait_number = stack->begins;
		t->wait_node = node;
		t->wait_for = stack->waiting;
		return true;
	}
	if (stack->waiting)
		node = ca_samples_node(s->samples, node, waiting_for(s, stack->waiting));
	else if (stack->in_kernel)
		node = ca_samples_node(
			s->samples, node,
			ca_samples_function(s->samples, CA_SAMPLES_CODE, CA_KERNEL, "", 0, ""));
	if (!stack->waiting)
		t->on_cpu = stack->time;
	ca_samples_add(s->samples, node, stack->ns);
	for (unsigned i = 0; i < CA_METRIC_COUNT; i++)
		if (stack->metric[i] && s->number[i] >= 0)
			ca_samples_measure(s->samples, node, (size_t)s->number[i], stack->metric[i], 1);
	*(stack->waiting ? &t->waiting : &t->cpu) += stack->ns;
	/* of a wait that others ended, the time is theirs */
	if (!(stack->waiting && stack->pair))
		ca_critical_path_spent(s->path, stack->thread, stack->time, node,
				       s->session->samplers.on & 1u << CA_SAMPLER_CPU
					       ? stack->ns
					       : stack->metric[CA_METRIC_REAL]);
	if (stack->pair)
		remember_wait(s, stack, node);
	return true;
}

static void hold(struct ca_sampling *s, const struct stack *stack)
{
	if (s->held.n >= HELD || !ca_vec_add(&s->held, stack, 1))
		s->unheld++;
}

/* The part of so many ns before `time` that lies in the sampler's windows. */
static uint64_t inside_of(const struct ca_sampling *s, enum ca_sampler sampler, uint64_t ns, uint64_t time)
{
	uint64_t began = ns < time ? time - ns : 0;
	uint64_t inside =
		ca_windows_until(s->windows[sampler], time) - ca_windows_until(s->windows[sampler], began);

	return ns < inside ? ns : inside;
}

/* A wait that did not end. It is on no critical path: nobody knows what would have ended it. */
static void end_open(struct ca_sampling *s, struct thread *t)
{
	uint64_t since = t->on_cpu > t->open_since && !t->open_left ? t->on_cpu : t->open_since, ns, real;
	uint32_t node;

	if (!t->open_number || t->open_number != t->wait_number || since + s->samples->period > t->open_until)
		return;
	ns = inside_of(s, CA_SAMPLER_CPU, t->open_until - since, t->open_until);
	real = s->number[CA_METRIC_REAL] < 0
		       ? 0
		       : inside_of(s, CA_SAMPLER_REAL, t->open_until - since, t->open_until);
	if (!ns && !real)
		return;
	node = ca_samples_node(s->samples, t->wait_node, waiting_for(s, t->wait_for));
	ca_samples_add(s->samples, node, ns);
	if (real)
		ca_samples_measure(s->samples, node, (size_t)s->number[CA_METRIC_REAL], real, 1);
	t->waiting += ns;
}

/* Its times go to those of its name. */
static void add_up(struct ca_sampling *s, uint32_t thread, uint64_t end)
{
	struct thread *t = ca_by_index_find(&s->threads, thread);
	const struct process *p = t ? ca_vec_reach(&s->processes, t->process) : NULL;

	if (t)
		end_open(s, t);
	if (p && t->lives) {
		const struct ca_samples_threads numbers = {
			.threads = 1,
			.lifetime = (t->gone ? t->ended : end) - t->began,
			.cpu = t->cpu,
			.waiting = t->waiting,
		};

		s->samples->threads++;
		ca_samples_add_threads(s->samples, *p->name ? p->name : "process",
				       *t->name ? t->name : p->name, &numbers);
	}
	ca_by_index_drop(&s->threads, thread);
}

void ca_sampling_step(struct ca_sampling *s, uint64_t drained)
{
	struct stack *held = s->held.at;
	size_t kept = 0;

	for (size_t i = 0; i < s->held.n; i++)
		if (!take_stack(s, &held[i]))
			held[kept++] = held[i];
	s->held.n = kept;
	if (kept && held[0].time < drained)
		drained = held[0].time;
	for (size_t i = 0; !kept && i < s->over.n; i++)
		add_up(s, ((uint32_t *)s->over.at)[i], 0);
	s->over.n = kept ? s->over.n : 0;
	ca_critical_path_step(s->path, drained > MARGIN ? drained - MARGIN : 0);
}

/* ---- events ---------------------------------------------------------------------------------*/
/* A wait for another thread of the program: no time of the code that waits, and in no sample of a sweep. */
static bool is_for_others(const struct stack *stack)
{
	return stack->waiting &&
	       (stack->pair || (stack->waiting != CA_ACTIVITY_IO && stack->waiting != CA_ACTIVITY_SLEEP &&
				stack->waiting != CA_ACTIVITY_SIGNAL));
}

/* Leaves of it what lies in windows; false: nothing. */
static bool is_inside(const struct ca_sampling *s, struct stack *stack, uint64_t time)
{
	uint64_t *metric = stack->metric;
	bool inside = ca_windows_holds(s->windows[CA_SAMPLER_CPU], time);

	if (stack->waiting && s->number[CA_METRIC_REAL] >= 0)
		metric[CA_METRIC_REAL] = stack->ns;
	metric[CA_METRIC_REAL] = inside_of(s, CA_SAMPLER_REAL, metric[CA_METRIC_REAL], time);
	if (!ca_windows_holds(s->windows[CA_SAMPLER_OVERFLOW], time))
		metric[CA_METRIC_OVERFLOW] = 0;
	if (stack->waiting)
		stack->ns = inside_of(s, CA_SAMPLER_CPU, stack->ns, time);
	else if (!inside)
		stack->ns = 0;
	return (stack->waker && inside) || stack->ns || metric[CA_METRIC_REAL] || metric[CA_METRIC_OVERFLOW];
}

/* The sample at event[0] and what belongs to it; returns how many events that is. */
static size_t take_sample(struct ca_sampling *s, const struct ca_source *from, const struct ca_event *event,
			  size_t n)
{
	struct stack stack = {
		.thread = from->thread_index,
		.waker = event->flags & CA_SAMPLE_WAITING,
		.in_kernel = event->flags & CA_SAMPLE_IN_KERNEL,
	};
	uint64_t time = event->time;
	size_t i = 0;

	stack.time = time;
	stack.ns = (event->flags & CA_SAMPLE_PERIODS) * s->samples->period;
	do
		if (stack.frames < FRAMES)
			stack.frame[stack.frames++] = event[i].value;
	while (++i < n && event[i].key == CA_KEY_FRAME);
	if (i < n && event[i].key == CA_KEY_BLOCKED && event[i].kind == CA_POINT) {
		stack.waker = false;
		stack.waiting = event[i].flags ? (enum ca_activity)event[i].flags : CA_ACTIVITY_OTHERS;
		stack.ns = event[i++].value;
	}
	if (i < n && event[i].key == CA_KEY_WOKEN)
		stack.pair = event[i++].value;
	if (stack.waiting && !stack.ns) {
		stack.begins = (uint32_t)stack.pair;
		if (!take_stack(s, &stack))
			hold(s, &stack);
		return i;
	}
	for (; i < n && event[i].key == CA_KEY_METRIC; i++)
		if (event[i].flags < CA_METRIC_COUNT)
			stack.metric[event[i].flags] = event[i].value;
	if (!is_inside(s, &stack, time)) {
		s->outside += !stack.waker;
		return i;
	}
	if (s->told && stack.ns && !stack.waker && !is_for_others(&stack))
		s->told(s->context, stack.thread, stack.frame, stack.frames, stack.ns,
			stack.waiting     ? CA_SAMPLE_WAITING
			: stack.in_kernel ? CA_SAMPLE_IN_KERNEL
					  : 0);
	if (!take_stack(s, &stack))
		hold(s, &stack);
	return i;
}

static void note_life(struct ca_sampling *s, struct thread *t, uint32_t number, const struct ca_event *event)
{
	uint64_t until = ca_windows_until(s->windows[CA_SAMPLER_COUNT], event->time);

	if (event->kind == CA_BURST_BEGIN) {
		t->began = until;
		t->lives = true;
		ca_critical_path_begins(s->path, number, event->time);
	} else {
		t->ended = until;
		t->gone = true;
		ca_vec_add(&s->over, &number, 1);
		ca_critical_path_ends(s->path, number, event->time);
	}
}

void ca_sampling_take(struct ca_sampling *s, const struct ca_source *from, const struct ca_event *event,
		      size_t n)
{
	struct thread *t = thread_of(s, from);

	for (size_t i = 0; t && i < n;) {
		s->last = event[i].time > s->last ? event[i].time : s->last;
		if (event[i].key == CA_KEY_SAMPLE) {
			i += take_sample(s, from, event + i, n - i);
			t = thread_of(s, from);
			continue;
		}
		if (event[i].key == CA_KEY_BLOCKED) {
			t->open_since = event[i].value;
			t->open_until = event[i].time;
			t->open_left = event[i].kind == CA_BURST_END;
		} else if (event[i].key == CA_KEY_WOKEN) {
			t->open_number = (uint32_t)event[i].value;
		} else if (event[i].key == CA_KEY_THREAD)
			note_life(s, t, from->thread_index, &event[i]);
		else if (event[i].key == CA_KEY_WAKE && event[i].kind == CA_PTP_BEGIN)
			ca_critical_path_wakes(s->path, from->thread_index, event[i].time, event[i].value);
		else if (event[i].key == CA_KEY_WAKE)
			ca_critical_path_woken(s->path, from->thread_index, event[i].time, event[i].value);
		i++;
	}
}

static const char *find_late(void *context, uint32_t process, uint64_t address)
{
	return ca_sampling_made_code(context, process, address);
}

void ca_sampling_end(struct ca_sampling *s, uint64_t now)
{
	uint64_t end = ca_windows_until(s->windows[CA_SAMPLER_COUNT], now);

	s->ending = true;
	ca_sampling_step(s, now);
	ca_critical_path_finish(s->path);
	match(s);
	for (uint32_t i = 1; ca_by_index_next(&s->threads, &i); i++)
		add_up(s, i, end);
	ca_late_names_settle(&s->late, s->samples, find_late, s);
	ca_samples_add_loss(s->samples, "outside of the time that was asked for", s->outside);
	ca_samples_add_loss(s->samples, "too many while a binary was indexed", s->unheld);
}
