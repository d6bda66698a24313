/* SPDX-License-Identifier: MIT */
/* See code_names.h. */
#include "causal/conductor/code_names.h"
#include "binary/index/demangle.h"
#include "core/laps.h"
#include "core/names.h"
#include "core/vec.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BATCH = 512, MUTEXES = 4096 };

/* What a thread or a process is called. */
struct given {
	uint32_t of;
	uint64_t index;
	const char *text; /* in the table */
	bool told;
};

struct ca_code_names {
	struct ca_names *names;
	struct ca_dict *dict;
	uint32_t seen; /* all entries before this one are done */
	bool done[CA_NAMES];
	uint32_t mutexes;                  /* that have names */
	uint32_t key[CA_USER_ID_LAST + 1]; /* of the dictionary, by id; 0: not known yet */
	struct ca_vec given;               /* struct given */
	size_t untold;
	uint64_t left_out; /* events of keys that are off */
};

static int make_room(int fd, uint64_t at, uint64_t size)
{
	int error;

	if (ftruncate(fd, (off_t)(at + size)))
		return errno;
	do
		error = posix_fallocate(fd, (off_t)at, (off_t)size);
	while (error == EINTR);
	return error;
}

enum ca_status ca_code_names_new(struct ca_code_names **names, int fd, uint64_t at, struct ca_dict *dict,
				 struct ca_err *err)
{
	struct ca_code_names *n = calloc(1, sizeof *n);
	int error;

	if (!n)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	n->dict = dict;
	n->given.size = sizeof(struct given);
	error = make_room(fd, at, sizeof *n->names);
	n->names = error ? MAP_FAILED
			 : mmap(NULL, sizeof *n->names, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);
	if (n->names == MAP_FAILED) {
		error = error ? error : errno;
		free(n);
		return ca_err_set(err, error == ENOSPC ? CA_ERR_FULL : CA_ERR_IO,
				  "the session file has no room for the names of events: %s",
				  strerror(error));
	}
	*names = n;
	return CA_OK;
}

void ca_code_names_free(struct ca_code_names *n)
{
	if (!n)
		return;
	munmap(n->names, sizeof *n->names);
	ca_vec_free(&n->given);
	free(n);
}

/* The memory is the program's as well: a text may have no end. */
static void copy(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%.*s", (int)size - 1, from);
}

/* Names of functions come as the linker has them, perhaps behind "omp parallel: ". */
static void make_readable(char *text, size_t size)
{
	char *symbol = strstr(text, ": _"), *plain;

	symbol = symbol ? symbol + 2 : text;
	plain = ca_demangle(symbol);
	if (plain)
		copy(symbol, size - (size_t)(symbol - text), plain);
	free(plain);
}

static void learn_key(struct ca_code_names *n, const struct ca_name *name, const char *text)
{
	uint32_t id = atomic_load_explicit(&name->id, memory_order_relaxed);
	char where[CA_NAME_WHERE];

	if (id > CA_USER_ID_LAST || n->key[id])
		return;
	copy(where, sizeof where, name->where);
	n->key[id] = ca_dict_register_own(n->dict, text, where, id);
	/* where bursts are counted as they are raised, whoever counts may have been the first */
	if (n->key[id] && !ca_dict_get(n->dict, n->key[id])->enabled)
		atomic_store_explicit(&n->names->off[id], 1, memory_order_relaxed);
}

/* False: not yet. A key comes before the names of its values. */
static bool learn(struct ca_code_names *n, const struct ca_name *name)
{
	char text[CA_NAME_TEXT], task[CA_NAME_TEXT + 24];
	struct given *given;

	copy(text, sizeof text, name->text);
	if (!name->of) {
		make_readable(text, sizeof text);
		learn_key(n, name, text);
		return true;
	}
	if (name->of <= CA_USER_ID_LAST) {
		if (n->key[name->of])
			ca_dict_name_value(n->dict, n->key[name->of], name->value, text);
		return n->key[name->of];
	}
	if (name->of == CA_NAME_OF_TASK) {
		snprintf(task, sizeof task, "%s %" PRIu64, text, name->value);
		ca_dict_name_value(n->dict, CA_KEY_TASK, name->value, task);
	} else if ((given = ca_vec_push(&n->given))) {
		*given = (struct given){ name->of, name->value, name->text, false };
		n->untold++;
	}
	return true;
}

static void learn_all(struct ca_code_names *n)
{
	uint32_t used = atomic_load_explicit(&n->names->used, memory_order_acquire);
	uint32_t mutexes = atomic_load_explicit(&n->names->mutexes, memory_order_relaxed);
	char text[32];

	for (uint32_t i = n->seen; i < used && i < CA_NAMES; i++) {
		/* NULL: it is being entered, or stays of no use */
		const struct ca_name *name = n->done[i] ? NULL : ca_names_at(n->names, i);

		if (name)
			n->done[i] = learn(n, name);
		if (n->done[i] && i == n->seen)
			n->seen++;
	}
	for (; n->mutexes < mutexes && n->mutexes < MUTEXES; n->mutexes++) {
		snprintf(text, sizeof text, "mutex_%u", n->mutexes + CA_FIRST_MUTEX);
		ca_dict_name_value(n->dict, CA_KEY_MUTEX, n->mutexes + CA_FIRST_MUTEX, text);
	}
}

static void tell_names(struct ca_code_names *n, struct ca_sinks *sinks, const struct ca_source *from)
{
	struct given *given = n->given.at;
	char text[CA_NAME_TEXT];

	for (size_t i = 0; i < n->given.n; i++) {
		bool process = given[i].of == CA_NAME_OF_PROCESS;

		if (given[i].told || given[i].index != (process ? from->process_index : from->thread_index))
			continue;
		copy(text, sizeof text, given[i].text);
		ca_sink_name(sinks, from, process ? text : NULL, process ? NULL : text);
		given[i].told = true;
		n->untold--;
	}
}

/* The dictionary's key; 0: nobody wants it. */
static uint32_t key_of(struct ca_code_names *n, uint32_t key)
{
	uint32_t id = key - CA_KEY_USER;

	if (key < CA_KEY_USER || id > CA_USER_ID_LAST)
		return key;
	if (!n->key[id])
		learn_all(n);
	return n->key[id] && ca_dict_get(n->dict, n->key[id])->enabled ? n->key[id] : CA_KEY_DISABLED;
}

/* What is raised so often that all sinks are tired of it need not be raised. Looked for in what came last:
 * often it is there. */
static void quieten(struct ca_code_names *n, const struct ca_sinks *sinks, const struct ca_event *event)
{
	const struct ca_dict_key *key = ca_dict_get(n->dict, event->key);

	if (key && key->id && !ca_sink_wants(sinks, event->key))
		atomic_store_explicit(&n->names->off[key->id], 1, memory_order_relaxed);
}

void ca_code_names_hand_on(struct ca_code_names *n, struct ca_sinks *sinks, const struct ca_source *from,
			   const struct ca_event *event, size_t events)
{
	struct ca_event out[BATCH];
	size_t filled = 0;

	if (!n) {
		ca_sink_events(sinks, from, event, events);
		return;
	}
	if (n->untold)
		tell_names(n, sinks, from);
	for (size_t i = 0; i < events; i++) {
		out[filled] = event[i];
		out[filled].key = key_of(n, event[i].key);
		n->left_out += out[filled].key == CA_KEY_DISABLED;
		filled += out[filled].key != CA_KEY_DISABLED;
		/* those of one call stay together */
		if (filled == BATCH - 1 || i + 1 == events) {
			ca_sink_events(sinks, from, out, filled);
			if (filled)
				quieten(n, sinks, &out[filled - 1]);
			filled = 0;
		}
	}
}

void ca_code_names_hand_on_laps(struct ca_code_names *n, struct ca_sinks *sinks, const struct ca_source *from,
				const struct ca_lap *lap, uint32_t first, size_t laps)
{
	if (n->untold)
		tell_names(n, sinks, from);
	for (size_t i = 0; i < laps; i++) {
		struct ca_lap out = lap[i];
		uint32_t id = out.key - CA_KEY_USER;

		out.key = key_of(n, out.key);
		/* its end may not have been raised */
		if (out.since && id <= CA_USER_ID_LAST &&
		    atomic_load_explicit(&n->names->off[id], memory_order_relaxed))
			out.since = 0;
		if (out.key != CA_KEY_DISABLED || !lap[i].key)
			ca_sink_laps(sinks, from, &out, first + (uint32_t)i, 1);
		else
			n->left_out += 2 * out.count;
	}
}

void ca_code_names_follow(struct ca_code_names *n)
{
	if (n)
		learn_all(n);
}

uint64_t ca_code_names_left_out(const struct ca_code_names *n)
{
	return n ? n->left_out : 0;
}

bool ca_code_names_has(const struct ca_code_names *n, const struct ca_source *from, bool process)
{
	const struct given *given = n ? n->given.at : NULL;

	for (size_t i = 0; n && i < n->given.n; i++)
		if (given[i].of == (process ? CA_NAME_OF_PROCESS : CA_NAME_OF_THREAD) &&
		    given[i].index == (process ? from->process_index : from->thread_index))
			return true;
	return false;
}
