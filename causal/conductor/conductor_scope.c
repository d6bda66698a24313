/* SPDX-License-Identifier: MIT */
/* The conductor's part in a scope that follows the samples (follow.h): counts them by object, has the
 * libraries that are taken indexed in full, and holds back stacks, and with them the choice of points
 * and code, until that is known. Driver's process, one thread; never blocks. */
#include "causal/conductor/conductor_state.h"
#include "causal/conductor/follow.h"
#include "causal/conductor/sweep.h"
#include "causal/points/point_stacks.h"
#include <stdlib.h>
#include <string.h>

enum {
	MS = 1000000,
	LEAST = 30,          /* samples: what has most of them is known, and experiments may begin */
	WANTED = 100,        /* ... 5 % is known to +-2 %: worth a line */
	LEAST_AT_END = 10,   /* of a run, for the next */
	LOOK_AGAIN = 4,      /* when there is a quarter more */
	PATIENCE = 100 * MS, /* ns from the first sample on; then experiments begin with what there is */
	TELL = 1000 * MS     /* ... and then the line comes, if WANTED does not */
};
/* ns; where a choice is for more than an experiment: then, as for the point search, stacks of waiting threads
 * will do; where there are hardly any stacks, nothing can be chosen anyway */
#define LONG_PATIENCE UINT64_C(2000000000)

struct ca_conductor_scope {
	struct ca_follow *follow; /* of the sweep */
	struct {
		enum ca_scope_use use; /* 0: not looked up */
		bool settled;          /* it was taken, and its places are known */
		uint64_t own, through; /* not yet in follow */
	} module[CA_MAX_MODULES];
	uint64_t in_kernel;     /* the same */
	uint64_t made;          /* the same, of code that is in no file */
	uint64_t samples, next; /* as many as yet / at the next look; all runs */
	uint64_t first;         /* ns; of the first one in this run */
	bool pending, holding;
	struct ca_point_stacks held;
};

enum ca_status ca_conductor_scope_open(struct ca_conductor *c, struct ca_err *err)
{
	struct ca_conductor_scope *s;

	if (!ca_scope_follows(c->scope) || !c->opt.sweep)
		return CA_OK;
	s = c->following = calloc(1, sizeof *s);
	if (!s)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	s->follow = ca_sweep_follow(c->opt.sweep);
	s->samples = s->follow->samples;
	s->next = s->follow->decided ? s->samples + WANTED : LEAST;
	s->holding = true;
	return CA_OK;
}

void ca_conductor_scope_free(struct ca_conductor *c)
{
	if (c->following)
		free(c->following->held.frame);
	free(c->following);
}

/* ---- counting ----------------------------------------------------------------------------*/
static enum ca_scope_use use_of(struct ca_conductor *c, uint32_t module)
{
	struct ca_conductor_scope *s = c->following;

	if (!s->module[module].use)
		s->module[module].use = ca_scope_use_of(c->scope, c->session->module[module].path);
	return s->module[module].use;
}

/* OpenMP's own code: whoever has called it waits for his team, asleep or on a CPU, and does no work of his. */
static bool is_of_team(const struct ca_conductor *c, ca_place place)
{
	uint32_t number = CA_PLACE_MODULE(place);
	const struct ca_module *module = number < CA_MAX_MODULES ? &c->session->module[number] : NULL;

	return module && module->openmp &&
	       (c->following || !ca_scope_has_binary(c->scope, module->path, false));
}

static void count(struct ca_conductor *c, const ca_place *frame, unsigned frames, unsigned weight,
		  bool in_kernel)
{
	struct ca_conductor_scope *s = c->following;
	uint32_t module = CA_PLACE_MODULE(frame[0]);
	bool made = module == CA_MODULE_MADE;

	if (module >= CA_MAX_MODULES && !made)
		return;
	s->samples++;
	in_kernel &= !is_of_team(c, frame[0]);
	*(in_kernel ? &s->in_kernel : made ? &s->made : &s->module[module].own) += weight;
	if (is_of_team(c, frame[0]) || (!in_kernel && !made && use_of(c, module) == CA_SCOPE_MAY_TAKE))
		return;
	for (unsigned i = !in_kernel; i < frames; i++) {
		module = CA_PLACE_MODULE(frame[i]);
		if (module < CA_MAX_MODULES && use_of(c, module) == CA_SCOPE_MAY_TAKE) {
			s->module[module].through += weight;
			return;
		}
	}
}

bool ca_conductor_scope_sample(struct ca_conductor *c, const ca_place *frame, unsigned frames,
			       unsigned weight, unsigned flags)
{
	struct ca_conductor_scope *s = c->following;
	bool waiting = flags & CA_SAMPLE_WAITING;

	if (!s)
		return is_of_team(c, frame[0]);
	if (!waiting)
		count(c, frame, frames, weight, flags & CA_SAMPLE_IN_KERNEL);
	if (is_of_team(c, frame[0]))
		return true;
	return s->holding && ca_point_stacks_add(&s->held, frame, frames, weight, waiting);
}

static void add_counts(struct ca_conductor *c)
{
	struct ca_conductor_scope *s = c->following;
	uint32_t used = atomic_load(&c->session->modules_used);

	for (uint32_t m = 1; m < used && m < CA_MAX_MODULES; m++) {
		const struct ca_module *module = &c->session->module[m];

		if (module->main || s->module[m].own || s->module[m].through)
			ca_follow_add(s->follow, module->path, module->main, s->module[m].own,
				      s->module[m].through);
		s->module[m].own = s->module[m].through = 0;
	}
	if (s->in_kernel)
		ca_follow_add(s->follow, CA_KERNEL, false, s->in_kernel, 0);
	if (s->made)
		ca_follow_add(s->follow, CA_MADE, false, s->made, 0);
	s->in_kernel = s->made = 0;
	s->follow->samples = s->samples;
	ca_follow_call(c->following->follow, c->session->command, c->session->called);
}

/* ---- taking ------------------------------------------------------------------------------*/
/* The line is not printed before it is known which of the libraries are of use. */
static void settle(struct ca_conductor *c, uint32_t m, struct ca_follow_object *object)
{
	if (ca_objects_taken(c->objects, m) == CA_OBJECTS_FAILED)
		object->useless = "it cannot be read";
	else if (c->set->mode == CA_MODE_LINE && !ca_index_has_lines(ca_objects_index(c->objects, m)))
		object->useless = "no line information; -m function needs none";
	object->settled = true;
	ca_regions_rescope(c->regions, m);
	c->following->module[m].settled = true;
}

/* Ask for each module that is taken, also those that have just been loaded; settle what has come. */
static void take(struct ca_conductor *c)
{
	struct ca_conductor_scope *s = c->following;
	uint32_t used = atomic_load_explicit(&c->session->modules_used, memory_order_acquire);

	s->pending = false;
	for (uint32_t m = 1; m < used && m < CA_MAX_MODULES; m++) {
		const struct ca_module *module = &c->session->module[m];
		struct ca_follow_object *object;

		if (s->module[m].settled || module->main ||
		    atomic_load_explicit(&module->state, memory_order_acquire) < CA_MODULE_REGISTERED ||
		    use_of(c, m) != CA_SCOPE_MAY_TAKE ||
		    !(object = ca_follow_find(s->follow, module->path)) || !object->taken)
			continue;
		ca_objects_take(c->objects, m);
		if (ca_objects_taken(c->objects, m) == CA_OBJECTS_PENDING)
			s->pending = true;
		else
			settle(c, m, object);
	}
}

static void count_held(struct ca_conductor *c)
{
	struct ca_point_stacks *held = &c->following->held;

	for (size_t i = 0; i < held->n; i++)
		c->sum.in_scope += ca_regions_count(c->regions, held->frame + held->sample[i].first,
						    held->sample[i].frames, held->sample[i].weight,
						    held->sample[i].waiting);
	held->n = held->frames = held->running = 0;
}

static void tell(struct ca_conductor *c)
{
	char text[400];

	if (ca_follow_tell(c->following->follow, c->scope, text, sizeof text))
		ca_conductor_say(c, 0, "%s", text);
}

static void look(struct ca_conductor *c)
{
	struct ca_conductor_scope *s = c->following;

	add_counts(c);
	ca_follow_decide(s->follow, c->scope);
	s->next = s->samples + (s->samples < WANTED                ? LEAST
				: s->samples < LOOK_AGAIN * WANTED ? WANTED
								   : s->samples / LOOK_AGAIN);
}

void ca_conductor_scope_step(struct ca_conductor *c, uint64_t now)
{
	struct ca_conductor_scope *s = c->following;
	uint64_t waited;
	bool impatient;

	if (!s)
		return;
	if (!s->first && (s->held.running || (ca_conductor_is_named(c) && now - c->started > TELL)))
		s->first = now;
	waited = s->first ? now - s->first : 0;
	if (c->set->end_to_end || ca_conductor_points_are_open(c))
		impatient = waited > LONG_PATIENCE && s->held.n >= LEAST;
	else
		impatient = waited > PATIENCE;
	if (s->samples >= s->next)
		look(c);
	if (s->follow->decided)
		take(c);
	s->holding = s->pending || !(s->follow->decided || impatient);
	if (s->holding)
		return;
	count_held(c);
	if (s->follow->decided && (s->samples >= WANTED || waited > TELL))
		tell(c);
}

bool ca_conductor_scope_is_open(const struct ca_conductor *c)
{
	return c->following && c->following->holding;
}

void ca_conductor_scope_close(struct ca_conductor *c)
{
	struct ca_conductor_scope *s = c->following;

	if (!s)
		return;
	if (s->samples >= LEAST_AT_END)
		look(c);
	else
		add_counts(c);
	count_held(c);
	if (s->follow->decided)
		tell(c);
	for (size_t i = 0; i < s->follow->n && c->results; i++) {
		const struct ca_follow_object *object = &s->follow->object[i];
		enum ca_follow_part part = ca_follow_part(s->follow, c->scope, object);

		if (part != CA_FOLLOW_NOT_NAMED)
			ca_results_scope(c->results, ca_follow_name(object),
					 ca_follow_share(s->follow, object), part == CA_FOLLOW_IN_SCOPE,
					 NULL);
	}
}
