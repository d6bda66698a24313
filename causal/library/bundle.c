/* SPDX-License-Identifier: MIT */
/* Bundles: several components behind one call; see include/causal_measure.h. What each operation has to call
 * is looked up once, when the bundle is opened: then it is a loop without a question. */
#include "causal/library/library.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 32, VALUES = 8 /* of one member */, LABEL = 128 };

struct sums {
	double value, sum;
};

struct member {
	const struct causal_component *of;
	void *state;
	double begin;
	struct sums values[VALUES];
};

/* Of the members that have it, in their order. */
struct calls {
	unsigned n;
	struct call {
		void (*plain)(void *state); /* or: */
		void (*with)(void *state, long value);
		void *state;
	} call[MEMBERS];
};

struct causal_bundle {
	char *label;
	bool begun; /* and not stopped yet */
	unsigned long long laps;
	unsigned members, records;
	struct member member[MEMBERS];
	struct member *record[MEMBERS];
	struct calls start, stop, sample, start_value, stop_value, sample_value;
};

/* ---- opening */

static void add_call(struct calls *calls, void *state, void (*plain)(void *), void (*with)(void *, long))
{
	if (plain || with)
		calls->call[calls->n++] = (struct call){ plain, with, state };
}

/* Where the bundle is called with a value, who cannot take it is called without. */
static void add_calls(struct causal_bundle *bundle, const struct member *member)
{
	const struct causal_component *of = member->of;

	add_call(&bundle->start, member->state, of->start, NULL);
	add_call(&bundle->stop, member->state, of->stop, NULL);
	add_call(&bundle->sample, member->state, of->sample, NULL);
	add_call(&bundle->start_value, member->state, of->start_value ? NULL : of->start, of->start_value);
	add_call(&bundle->stop_value, member->state, of->stop_value ? NULL : of->stop, of->stop_value);
	add_call(&bundle->sample_value, member->state, of->sample_value ? NULL : of->sample,
		 of->sample_value);
}

static const struct causal_component *find(const char *label)
{
	const struct causal_component *component;
	char list[1024] = "";

	for (unsigned i = 0; (component = causal_component_at(i)); i++) {
		size_t used = strlen(list);

		if (!strcmp(component->label, label))
			return component;
		snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", component->label);
	}
	ca_library_say("there is no component '%s'; choose from: %s", label, list);
	return NULL;
}

/* text: "label" or "label:argument", which is cut in two. */
static void add_member(struct causal_bundle *bundle, char *text)
{
	struct member *member = &bundle->member[bundle->members];
	char *argument = strchr(text, ':');
	int error;

	if (argument)
		*argument++ = '\0';
	member->of = find(text);
	if (!member->of)
		return;
	member->state = calloc(1, member->of->size ? member->of->size : 1);
	error = !member->state ? ENOMEM : member->of->open ? member->of->open(member->state, argument) : 0;
	if (error) {
		ca_library_say("the component '%s%s%s' is left out of '%s': %s", text, argument ? ":" : "",
			       argument ? argument : "", bundle->label, strerror(error));
		free(member->state);
		return;
	}
	if (member->of->record)
		bundle->record[bundle->records++] = member;
	add_calls(bundle, member);
	bundle->members++;
}

struct causal_bundle *causal_bundle_open(const char *label, const char *components)
{
	struct causal_bundle *bundle = calloc(1, sizeof *bundle);
	const char *chosen = components ? components : getenv("CAUSAL_COMPONENTS");
	char *list = strdup(chosen && *chosen ? chosen : "wall"), *rest = list, *item;

	if (bundle)
		bundle->label = strdup(label ? label : "unnamed");
	if (!bundle || !list || !bundle->label) {
		free(list);
		causal_bundle_close(bundle);
		return NULL;
	}
	while ((item = strsep(&rest, ","))) {
		if (*item && bundle->members == MEMBERS)
			ca_library_say("'%s' has %d components already, and '%s' is left out", bundle->label,
				       MEMBERS, item);
		else if (*item)
			add_member(bundle, item);
	}
	free(list);
	return bundle;
}

void causal_bundle_close(struct causal_bundle *bundle)
{
	if (!bundle)
		return;
	for (unsigned i = 0; i < bundle->members; i++) {
		if (bundle->member[i].of->close)
			bundle->member[i].of->close(bundle->member[i].state);
		free(bundle->member[i].state);
	}
	free(bundle->label);
	free(bundle);
}

/* ---- measuring */

static inline void call_plain(const struct calls *calls)
{
	for (unsigned i = 0; i < calls->n; i++)
		calls->call[i].plain(calls->call[i].state);
}

static inline void call_with(const struct calls *calls, long value)
{
	for (unsigned i = 0; i < calls->n; i++)
		if (calls->call[i].with)
			calls->call[i].with(calls->call[i].state, value);
		else
			calls->call[i].plain(calls->call[i].state);
}

static void begin_records(struct causal_bundle *bundle)
{
	bundle->begun = true;
	for (unsigned i = 0; i < bundle->records; i++)
		bundle->record[i]->begin = bundle->record[i]->of->record(bundle->record[i]->state);
}

/* In the opposite order: what was begun last is measured with the least of ours in it. */
static void end_records(struct causal_bundle *bundle)
{
	for (unsigned i = bundle->records; i-- > 0;) {
		struct member *member = bundle->record[i];
		double now = member->of->record(member->state);

		member->values[0].value =
			member->of->flags & CAUSAL_COMPONENT_LEVEL ? now : now - member->begin;
	}
}

/* The i-th value of a member; NULL: it has none. */
static const char *value_of(const struct member *member, unsigned i, double *value)
{
	if (member->of->record) {
		*value = member->values[0].value;
		return i ? NULL : member->of->label;
	}
	return member->of->get && i < VALUES ? member->of->get(member->state, i, value) : NULL;
}

static void raise_value(const struct causal_bundle *bundle, const char *name, double value)
{
	char text[LABEL];

	snprintf(text, sizeof text, "%s: %s", bundle->label, name);
	ca_library_point(text, value > 0 ? (uint64_t)value : 0);
}

static void add_value(struct sums *sums, double value, bool level)
{
	sums->value = value;
	if (!level)
		sums->sum += value;
	else if (value > sums->sum)
		sums->sum = value;
}

static void add_lap(struct causal_bundle *bundle)
{
	bool traced = ca_library_is_traced();

	bundle->begun = false;
	bundle->laps++;
	for (unsigned m = 0; m < bundle->members; m++) {
		struct member *member = &bundle->member[m];
		const char *name;
		double value = 0;

		for (unsigned i = 0; (name = value_of(member, i, &value)); i++) {
			add_value(&member->values[i], value, member->of->flags & CAUSAL_COMPONENT_LEVEL);
			if (traced)
				raise_value(bundle, name, value);
		}
	}
}

void causal_bundle_start(struct causal_bundle *bundle)
{
	if (!bundle)
		return;
	call_plain(&bundle->start);
	begin_records(bundle);
}

void causal_bundle_stop(struct causal_bundle *bundle)
{
	if (!bundle || !bundle->begun)
		return;
	end_records(bundle);
	call_plain(&bundle->stop);
	add_lap(bundle);
}

void causal_bundle_sample(struct causal_bundle *bundle)
{
	if (bundle)
		call_plain(&bundle->sample);
}

void causal_bundle_start_value(struct causal_bundle *bundle, long value)
{
	if (!bundle)
		return;
	call_with(&bundle->start_value, value);
	begin_records(bundle);
}

void causal_bundle_stop_value(struct causal_bundle *bundle, long value)
{
	if (!bundle || !bundle->begun)
		return;
	end_records(bundle);
	call_with(&bundle->stop_value, value);
	add_lap(bundle);
}

void causal_bundle_sample_value(struct causal_bundle *bundle, long value)
{
	if (bundle)
		call_with(&bundle->sample_value, value);
}

/* ---- results */

int causal_bundle_get(const struct causal_bundle *bundle, unsigned i, struct causal_value *value)
{
	for (unsigned m = 0; bundle && value && m < bundle->members; m++) {
		const struct member *member = &bundle->member[m];
		double scale = member->of->scale != 0 ? member->of->scale : 1, last = 0;
		const char *name;

		for (unsigned k = 0; (name = value_of(member, k, &last)); k++)
			if (!i--) {
				*value = (struct causal_value){ name,
								member->of->units ? member->of->units : "",
								last * scale, member->values[k].sum * scale,
								bundle->laps };
				return 1;
			}
	}
	return 0;
}

void causal_bundle_print(const struct causal_bundle *bundle, FILE *file)
{
	struct causal_value value;

	for (unsigned i = 0; file && causal_bundle_get(bundle, i, &value); i++)
		fprintf(file, "%s: %s %.9g %s in %llu laps, the last %.9g\n", bundle->label, value.label,
			value.sum, value.units, value.laps, value.value);
}
