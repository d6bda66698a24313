/* SPDX-License-Identifier: MIT */
/* See library.h. */
#include "causal/library/library.h"
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void ca_library_say(const char *format, ...)
{
	int saved = errno;
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	fprintf(stderr, "causal: %s\n", text);
	errno = saved;
}

enum { BUCKETS = 4096 /* a power of two */ };

/* Names are only ever added: whoever looks follows `next` of what a release has put there. */
static _Atomic(struct ca_library_key *) bucket[BUCKETS];

static struct ca_library_key *new_key(const char *name)
{
	size_t length = strlen(name);
	struct ca_library_key *key = malloc(sizeof *key + length + 1);

	if (!key)
		return NULL;
	memcpy(key->name, name, length + 1);
	key->begin = (struct causal_trace_key_){ key->name, NULL, "libcausal", 0, CAUSAL_TRACE_KIND_BEGIN_ };
	key->point = (struct causal_trace_key_){ key->name, NULL, "libcausal", 0, CAUSAL_TRACE_KIND_POINT_ };
	return key;
}

const struct ca_library_key *ca_library_key(const char *name)
{
	struct ca_library_key *first, *key, *made = NULL;
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

	for (const char *at = name; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 0x100000001b3;
	for (;;) {
		first = atomic_load_explicit(&bucket[hash % BUCKETS], memory_order_acquire);
		for (key = first; key && strcmp(key->name, name) != 0;)
			key = key->next;
		if (key) {
			free(made);
			return key;
		}
		made = made ? made : new_key(name);
		if (!made)
			return NULL;
		made->next = first;
		/* release: pairs with the acquire above */
		if (atomic_compare_exchange_strong_explicit(&bucket[hash % BUCKETS], &first, made,
							    memory_order_release, memory_order_relaxed))
			return made;
	}
}

/* The runtime keeps counters for whoever counts by name: Coz's interface. */
struct coz_counter {
	atomic_size_t count, backoff;
};
__attribute__((weak, visibility("default"))) struct coz_counter *_coz_get_counter(int type, const char *name);

bool ca_library_is_watched(void)
{
	return _coz_get_counter;
}

void ca_library_count(const char *name)
{
	enum { THROUGHPUT = 1 };
	struct coz_counter *counter = _coz_get_counter ? _coz_get_counter(THROUGHPUT, name) : NULL;

	if (counter)
		atomic_fetch_add_explicit(&counter->count, 1, memory_order_relaxed);
}

void ca_library_begin(const struct ca_library_key *key, uint64_t value)
{
	if (key)
		causal_trace_(&key->begin, &key->begin, value);
}

void ca_library_end(const struct ca_library_key *key)
{
	static const struct causal_trace_key_ end = { NULL, NULL, NULL, 0, CAUSAL_TRACE_KIND_END_ };

	if (key)
		causal_trace_(&end, &key->begin, 0);
}

void ca_library_point(const char *name, uint64_t value)
{
	const struct ca_library_key *key = ca_library_is_traced() ? ca_library_key(name) : NULL;

	if (key)
		causal_trace_(&key->point, &key->point, value);
}
