/* SPDX-License-Identifier: MIT */
/* The dictionary: see core/dict.h. Driver's process, one thread.
 *
 * Names are searched one after the other: there are tens of keys, and they are looked up when
 * something is set up, not when an event passes. Values are found by binary search. */
#include "core/dict.h"
#include "core/vec.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct value {
	uint64_t value;
	char *name;
};

struct entry {
	struct ca_dict_key key; /* name and description are owned */
	struct value *value;    /* sorted by value */
	size_t values;
};

struct ca_dict {
	struct entry **entry; /* pointers, so that a ca_dict_key stays where it is */
	uint32_t count;
	char *spec; /* what ca_dict_select was last given; NULL: everything by default level */
};

static const char *const level_names[] = {
	[CA_LEVEL_NONE] = "none",       [CA_LEVEL_USER] = "user",         [CA_LEVEL_DEVELOPER] = "developer",
	[CA_LEVEL_DEFAULT] = "default", [CA_LEVEL_ADVANCED] = "advanced",
};

static bool starts_with(const char *text, const char *prefix, size_t length)
{
	return strncmp(text, prefix, length) == 0;
}

const char *ca_dict_level_name(enum ca_level level)
{
	return level_names[level <= CA_LEVEL_ADVANCED ? level : CA_LEVEL_NONE];
}

/* The level that a step names, or -1. */
static int level_of(const char *step, size_t length)
{
	for (int i = 0; i <= CA_LEVEL_ADVANCED; i++)
		if (strlen(level_names[i]) == length && starts_with(step, level_names[i], length))
			return i;
	return -1;
}

/* ":PREFIX" means the program's own keys, "PREFIX" ours. */
static bool is_meant(const char *prefix, size_t length, const struct ca_dict_key *key)
{
	bool own = length && *prefix == ':';

	return own == (key->id > 0) && starts_with(key->name, prefix + own, length - own);
}

/* What the spec says about one key; its last matching step decides. */
static bool is_selected(const char *spec, const struct ca_dict_key *key)
{
	bool on = key->level <= CA_LEVEL_DEFAULT;

	for (const char *step = spec; step && *step;) {
		size_t length = strcspn(step, ",");
		int level = level_of(step, length);

		if (level >= 0)
			on = (int)key->level <= level;
		else if (length && is_meant(step + 1, length - 1, key))
			on = *step == '+';
		step += length + (step[length] == ',');
	}
	return on;
}

static void free_entry(struct entry *entry)
{
	if (!entry)
		return;
	for (size_t i = 0; i < entry->values; i++)
		free(entry->value[i].name);
	free(entry->value);
	free((char *)(uintptr_t)entry->key.name);
	free((char *)(uintptr_t)entry->key.description);
	free(entry);
}

static struct entry *new_entry(const char *name, const char *description, enum ca_level level)
{
	struct entry *entry = calloc(1, sizeof *entry);

	if (!entry)
		return NULL;
	entry->key.name = strdup(name);
	entry->key.description = strdup(description);
	entry->key.level = level;
	if (!entry->key.name || !entry->key.description) {
		free_entry(entry);
		return NULL;
	}
	return entry;
}

static bool append(struct ca_dict *dict, const char *name, const char *description, enum ca_level level,
		   uint32_t id)
{
	struct entry **more = ca_vec_more(dict->entry, dict->count, sizeof *more), *entry;

	if (!more)
		return false;
	dict->entry = more;
	entry = new_entry(name, description, level);
	if (!entry)
		return false;
	entry->key.id = id;
	entry->key.enabled = dict->count != CA_KEY_DISABLED && is_selected(dict->spec, &entry->key);
	dict->entry[dict->count++] = entry;
	return true;
}

struct ca_dict *ca_dict_new(void)
{
	static const struct {
		const char *name;
		enum ca_level level;
		const char *text;
	} predefined[] = {
#define X(id, name, level, text) { name, CA_LEVEL_##level, text },
		CA_KEYS(X)
#undef X
	};
	struct ca_dict *dict = calloc(1, sizeof *dict);

	for (size_t i = 0; dict && i < sizeof predefined / sizeof *predefined; i++)
		if (!append(dict, predefined[i].name, predefined[i].text, predefined[i].level, 0)) {
			ca_dict_free(dict);
			return NULL;
		}
	return dict;
}

void ca_dict_free(struct ca_dict *dict)
{
	if (!dict)
		return;
	for (uint32_t i = 0; i < dict->count; i++)
		free_entry(dict->entry[i]);
	free(dict->entry);
	free(dict->spec);
	free(dict);
}

static uint32_t number_of(const struct ca_dict *dict, const char *name)
{
	for (uint32_t i = 0; i < dict->count; i++)
		if (!dict->entry[i]->key.id && strcmp(dict->entry[i]->key.name, name) == 0)
			return i;
	return CA_KEY_DISABLED;
}

uint32_t ca_dict_register(struct ca_dict *dict, const char *name, const char *description,
			  enum ca_level level)
{
	uint32_t key = number_of(dict, name);

	if (key != CA_KEY_DISABLED)
		return key;
	return append(dict, name, description, level, 0) ? dict->count - 1 : CA_KEY_DISABLED;
}

uint32_t ca_dict_register_own(struct ca_dict *dict, const char *name, const char *description, uint32_t id)
{
	for (uint32_t i = 0; i < dict->count; i++)
		if (dict->entry[i]->key.id == id)
			return i;
	return append(dict, name, description, CA_LEVEL_USER, id) ? dict->count - 1 : CA_KEY_DISABLED;
}

uint32_t ca_dict_find(const struct ca_dict *dict, const char *name)
{
	uint32_t key = number_of(dict, name);

	return dict->entry[key]->key.enabled ? key : CA_KEY_DISABLED;
}

const struct ca_dict_key *ca_dict_get(const struct ca_dict *dict, uint32_t key)
{
	return key < dict->count ? &dict->entry[key]->key : NULL;
}

uint32_t ca_dict_count(const struct ca_dict *dict)
{
	return dict->count;
}

void ca_dict_set_counter(struct ca_dict *dict, uint32_t key)
{
	if (key < dict->count)
		dict->entry[key]->key.counter = true;
}

enum ca_status ca_dict_select(struct ca_dict *dict, const char *spec, struct ca_err *err)
{
	char *copy;

	for (const char *step = spec; *step;) {
		size_t length = strcspn(step, ",");
		bool prefix = length > 1 && (*step == '+' || *step == '-');

		if (length && !prefix && level_of(step, length) < 0)
			return ca_err_set(err, CA_ERR_USAGE,
					  "'%.*s' selects no events: give a level (none, user, "
					  "developer, default, advanced), +PREFIX or -PREFIX",
					  (int)length, step);
		step += length + (step[length] == ',');
	}
	copy = strdup(spec);
	if (!copy)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for the choice of events");
	free(dict->spec);
	dict->spec = copy;
	for (uint32_t i = CA_KEY_DISABLED + 1; i < dict->count; i++)
		dict->entry[i]->key.enabled = is_selected(copy, &dict->entry[i]->key);
	return CA_OK;
}

void ca_dict_list(const struct ca_dict *dict, bool on, bool off, char *text, size_t size)
{
	size_t length = 0;

	*text = '\0';
	for (uint32_t i = CA_KEY_DISABLED + 1; i < dict->count && length < size; i++) {
		const struct ca_dict_key *key = &dict->entry[i]->key;

		if (key->enabled ? on : off)
			length += (size_t)snprintf(text + length, size - length, "%s%s%s", length ? ", " : "",
						   key->id ? ":" : "", key->name);
	}
}

enum ca_status ca_dict_prefixes(const struct ca_dict *dict, const char *spec, struct ca_err *err)
{
	bool own = false; /* the program's own have come */
	char names[400];

	for (uint32_t i = 0; i < dict->count; i++)
		own |= dict->entry[i]->key.id > 0;
	for (const char *step = spec; *step;) {
		size_t length = strcspn(step, ",");
		bool found = level_of(step, length) >= 0 || !length || (step[1] == ':' && !own);

		for (uint32_t i = CA_KEY_DISABLED + 1; i < dict->count && !found; i++)
			found = is_meant(step + 1, length - 1, &dict->entry[i]->key);
		if (!found) {
			ca_dict_list(dict, true, true, names, sizeof names);
			return ca_err_set(err, CA_ERR_USAGE, "no event begins with '%.*s'; there are: %s",
					  (int)length - 1, step + 1, names);
		}
		step += length + (step[length] == ',');
	}
	return CA_OK;
}

enum ca_status ca_dict_check(const char *spec, struct ca_err *err)
{
	struct ca_dict *dict = ca_dict_new();
	enum ca_status status = dict ? ca_dict_select(dict, spec, err)
				     : ca_err_set(err, CA_ERR_NOMEM, "no memory for the events");

	if (!status)
		status = ca_dict_prefixes(dict, spec, err);
	ca_dict_free(dict);
	return status;
}

/* Where `value` is, or would be put. */
static size_t position(const struct entry *entry, uint64_t value)
{
	size_t low = 0, high = entry->values;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (entry->value[middle].value < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

enum ca_status ca_dict_name_value(struct ca_dict *dict, uint32_t key, uint64_t value, const char *name)
{
	struct value *more;
	struct entry *entry;
	char *copy;
	size_t at;

	if (key >= dict->count)
		return CA_ERR_NOT_FOUND;
	entry = dict->entry[key];
	at = position(entry, value);
	copy = strdup(name);
	if (!copy)
		return CA_ERR_NOMEM;
	if (at < entry->values && entry->value[at].value == value) {
		free(entry->value[at].name);
		entry->value[at].name = copy;
		return CA_OK;
	}
	more = ca_vec_more(entry->value, entry->values, sizeof *more);
	if (!more) {
		free(copy);
		return CA_ERR_NOMEM;
	}
	entry->value = more;
	memmove(&entry->value[at + 1], &entry->value[at], (entry->values - at) * sizeof *entry->value);
	entry->value[at] = (struct value){ value, copy };
	entry->values++;
	return CA_OK;
}

const char *ca_dict_value_name(const struct ca_dict *dict, uint32_t key, uint64_t value)
{
	const struct entry *entry;
	size_t at;

	if (key >= dict->count)
		return NULL;
	entry = dict->entry[key];
	at = position(entry, value);
	if (at < entry->values && entry->value[at].value == value)
		return entry->value[at].name;
	return NULL;
}

const char *ca_dict_value_at(const struct ca_dict *dict, uint32_t key, size_t i, uint64_t *value)
{
	const struct entry *entry = key < dict->count ? dict->entry[key] : NULL;

	if (!entry || i >= entry->values)
		return NULL;
	*value = entry->value[i].value;
	return entry->value[i].name;
}
