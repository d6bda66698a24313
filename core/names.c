/* SPDX-License-Identifier: MIT */
/* See core/names.h. Only memory is touched. */
#include "core/names.h"
#include <string.h>

enum { BUCKETS = 2 * CA_NAMES };

static uint64_t hash_of(uint32_t of, uint64_t value, const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ of; /* FNV-1a */

	h = (h ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	for (unsigned i = 0; text && i + 1 < CA_NAME_TEXT && text[i]; i++)
		h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	return h ^ h >> 29;
}

static void put(char *to, size_t size, const char *text, bool keep_end)
{
	size_t length = strlen(text), skip = keep_end && length >= size ? length - size + 1 : 0;

	length = length - skip < size ? length - skip : size - 1;
	memcpy(to, text + skip, length);
	to[length] = 0;
}

/* Is it the name of the value, or the key called so? */
static bool is_it(const struct ca_name *n, uint32_t of, uint64_t value, const char *text)
{
	if (n->of != of)
		return false;
	return of ? n->value == value : strncmp(n->text, text, CA_NAME_TEXT - 1) == 0;
}

/* A fresh entry; NULL: there is no room. */
static struct ca_name *take(struct ca_names *names, uint32_t *number)
{
	/* not by adding alone: what asks for ever must not come round to 0 */
	if (atomic_load_explicit(&names->used, memory_order_relaxed) >= CA_NAMES)
		return NULL;
	*number = atomic_fetch_add_explicit(&names->used, 1, memory_order_relaxed);
	if (*number < CA_NAMES)
		return &names->name[*number];
	atomic_store_explicit(&names->used, CA_NAMES, memory_order_relaxed);
	return NULL;
}

/* The entry, which is added if it is new; NULL: no room. */
static struct ca_name *find(struct ca_names *names, uint32_t of, uint64_t value, const char *text,
			    const char *where)
{
	uint64_t hash = hash_of(of, value, of ? NULL : text);
	struct ca_name *mine = NULL;
	uint32_t number = 0;

	for (uint32_t i = 0; i < BUCKETS; i++) {
		_Atomic uint32_t *bucket = &names->bucket[(hash + i) % BUCKETS];
		/* acquire: pairs with the exchange below, the entry is complete */
		uint32_t there = atomic_load_explicit(bucket, memory_order_acquire);

		if (!there && !mine) {
			mine = take(names, &number);
			if (!mine)
				return NULL;
			mine->of = of;
			mine->value = value;
			put(mine->text, sizeof mine->text, text, false);
			put(mine->where, sizeof mine->where, where ? where : "", true);
		}
		if (!there &&
		    atomic_compare_exchange_strong_explicit(bucket, &there, number + 1, memory_order_acq_rel,
							    memory_order_acquire)) {
			/* release: pairs with the acquire in ca_names_at */
			atomic_store_explicit(&mine->known, 1, memory_order_release);
			return mine;
		}
		if (there <= CA_NAMES && is_it(&names->name[there - 1], of, value, text))
			return &names->name[there - 1];
	}
	return NULL;
}

/* Give the key this id, if neither has another yet. Returns the id that it has now, or 0. */
static uint32_t give(struct ca_names *names, struct ca_name *key, uint32_t id)
{
	uint32_t number = (uint32_t)(key - names->name) + 1, nobody = 0, none = 0;

	if (!atomic_compare_exchange_strong(&names->by_id[id], &nobody, number) && nobody != number)
		return 0;
	if (atomic_compare_exchange_strong(&key->id, &none, id) || none == id)
		return id;
	atomic_store(&names->by_id[id], 0); /* another thread has given it one at the same time */
	return none;
}

static uint32_t hand_out(struct ca_names *names, struct ca_name *key)
{
	for (;;) {
		uint32_t have = atomic_load(&key->id), n;

		if (have)
			return have;
		n = atomic_load(&names->handed_out);
		if (n >= CA_USER_ID_LAST)
			return 0;
		if (atomic_compare_exchange_strong(&names->handed_out, &n, n + 1))
			give(names, key, CA_USER_ID_LAST - n);
	}
}

CA_SIGSAFE uint32_t ca_names_key(struct ca_names *names, const char *text, const char *where, uint32_t wanted,
				 const struct ca_name **clash)
{
	struct ca_name *key;
	uint32_t id, other;

	if (clash)
		*clash = NULL;
	if (wanted > CA_USER_ID_LAST)
		return 0;
	key = find(names, 0, 0, text, where);
	if (!key || !wanted)
		return key ? hand_out(names, key) : 0;
	id = give(names, key, wanted);
	if (id == wanted)
		return id;
	other = atomic_load(&names->by_id[wanted]);
	if (clash)
		*clash = id || !other || other > CA_NAMES ? key : &names->name[other - 1];
	return 0;
}

CA_SIGSAFE void ca_names_value(struct ca_names *names, uint32_t id, uint64_t value, const char *text,
			       const char *where)
{
	find(names, id, value, text, where);
}

CA_SIGSAFE bool ca_names_has_value(const struct ca_names *names, uint32_t id, uint64_t value)
{
	uint64_t hash = hash_of(id, value, NULL);

	for (uint32_t i = 0; i < BUCKETS; i++) {
		/* acquire: as in find */
		uint32_t there =
			atomic_load_explicit(&names->bucket[(hash + i) % BUCKETS], memory_order_acquire);

		if (!there)
			return false;
		if (there <= CA_NAMES && is_it(&names->name[there - 1], id, value, ""))
			return true;
	}
	return false;
}

CA_SIGSAFE const struct ca_name *ca_names_at(const struct ca_names *names, uint32_t i)
{
	const struct ca_name *n = &names->name[i];

	if (i >= CA_NAMES || !atomic_load_explicit(&n->known, memory_order_acquire))
		return NULL;
	return n->of || atomic_load_explicit(&n->id, memory_order_relaxed) ? n : NULL;
}
