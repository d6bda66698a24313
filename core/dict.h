/* SPDX-License-Identifier: MIT */
/* The dictionary: what the keys and values of events are called.
 *
 * It starts with CA_KEYS (core/event.h). Driver's process, one thread; the runtime raises the
 * predefined keys by number and needs no dictionary. Key 0 is "disabled": whoever asks for a key
 * that is unknown or switched off gets 0, and raising 0 does nothing. */
#ifndef CA_CORE_DICT_H
#define CA_CORE_DICT_H
#include "core/event.h"
#include "core/status.h"
#include <stdbool.h>
#include <stddef.h>

/* Who a key is for. Choosing a level switches on that level and those before it. */
enum ca_level {
	CA_LEVEL_NONE,      /* no key has it: choosing it switches all off */
	CA_LEVEL_USER,      /* what the program raises itself */
	CA_LEVEL_DEVELOPER, /* what its author would want to see */
	CA_LEVEL_DEFAULT,   /* what every run has; the level at the start */
	CA_LEVEL_ADVANCED   /* what only work on causal itself needs */
};

/* As the user writes it; "none" for what is no level. */
const char *ca_dict_level_name(enum ca_level level);

struct ca_dict;

/* Borrowed until the dictionary is freed, except `enabled` and `counter`, which may change. */
struct ca_dict_key {
	const char *name;
	const char *description;
	enum ca_level level;
	bool enabled;
	bool counter; /* its points are values of something over time, as a memory's size is */
	uint32_t id;  /* of the program's own keys (core/names.h); else 0 */
};

/* A dictionary with the predefined keys, all enabled. NULL: no memory. */
struct ca_dict *ca_dict_new(void);
void ca_dict_free(struct ca_dict *dict); /* NULL is fine */

/* The key called `name`: a new one, or the one already there, which keeps its description and
 * level. Texts are copied. 0: no memory. A disabled key has its number all the same. */
uint32_t ca_dict_register(struct ca_dict *dict, const char *name, const char *description,
			  enum ca_level level);
/* One of the program's own, with its id. A key of ours that has the same name is another one. */
uint32_t ca_dict_register_own(struct ca_dict *dict, const char *name, const char *description, uint32_t id);
/* The number to raise events of `name` with; 0 if it is unknown or disabled. */
uint32_t ca_dict_find(const struct ca_dict *dict, const char *name);
/* NULL if there is no such key. Key 0 is there, never enabled. */
const struct ca_dict_key *ca_dict_get(const struct ca_dict *dict, uint32_t key);
/* Keys are numbered 0 .. count - 1. */
uint32_t ca_dict_count(const struct ca_dict *dict);

/* The names of all keys that are enabled, or that are not; ":" is before those of the program's own. */
void ca_dict_list(const struct ca_dict *dict, bool on, bool off, char *text, size_t size);

/* Sinks that can draw it as a curve do. */
void ca_dict_set_counter(struct ca_dict *dict, uint32_t key);

/* Choose keys, now and of later registrations: comma-separated steps from left to right, each a
 * level (none, user, developer, default, advanced: starts anew), +PREFIX (on) or -PREFIX (off); of the
 * program's own keys +:PREFIX and -:PREFIX.
 * CA_ERR_USAGE names the step that is none of these; nothing changes then. */
enum ca_status ca_dict_select(struct ca_dict *dict, const char *spec, struct ca_err *err);

/* CA_ERR_USAGE: one of its prefixes is of no key that there is; the text lists those. As long as there are none
 * of the program's own, these may have any. */
enum ca_status ca_dict_prefixes(const struct ca_dict *dict, const char *spec, struct ca_err *err);
/* Is that a choice that means something before any other key is there? */
enum ca_status ca_dict_check(const char *spec, struct ca_err *err);

/* Call `value` of `key` by a name; a second name for the same value replaces the first. */
enum ca_status ca_dict_name_value(struct ca_dict *dict, uint32_t key, uint64_t value, const char *name);
/* NULL if it has none. Borrowed until the value is named again or the dictionary freed. */
const char *ca_dict_value_name(const struct ca_dict *dict, uint32_t key, uint64_t value);
/* The i-th value of the key that has a name, in ascending order; NULL: there are not so many. */
const char *ca_dict_value_at(const struct ca_dict *dict, uint32_t key, size_t i, uint64_t *value);

#endif
