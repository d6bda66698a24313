/* SPDX-License-Identifier: MIT */
/* Rows of the session's table of progress points; see core/point.h.
 *
 * Runs in the host, in handlers too, and in the conductor. */
#include "core/point.h"
#include "core/session.h"
#include <stdbool.h>
#include <string.h>

enum { PATIENCE = 10000 };

CA_SIGSAFE enum ca_point_kind ca_point_kind_of(const char *provider)
{
	return !strcmp(provider, "causal")         ? CA_POINT_THROUGHPUT
	       : !strcmp(provider, "causal_begin") ? CA_POINT_BEGIN
	       : !strcmp(provider, "causal_end")   ? CA_POINT_END
						   : 0;
}

static bool is_named(const struct ca_progress_point *p, const char *name)
{
	size_t length = strnlen(name, sizeof p->name - 1);

	return strnlen(p->name, sizeof p->name) == length && !memcmp(p->name, name, length);
}

/* Begin and end of one name find the same row, whichever comes first. */
static uint32_t claim_latency(struct ca_session *s, const char *name)
{
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

	for (size_t i = 0; i < sizeof s->point->name - 1 && name[i]; i++)
		hash = (hash ^ (uint8_t)name[i]) * UINT64_C(1099511628211);
	for (uint32_t i = 0; i < CA_MAX_LATENCIES; i++) {
		uint64_t there = 0;

		if (atomic_compare_exchange_strong(&s->latency[i].name, &there, hash) || there == hash)
			return i + 1;
	}
	return 0;
}

struct ca_progress_point *ca_point_get(struct ca_session *s, enum ca_point_kind kind, const char *name)
{
	for (uint32_t i = 0; i < CA_MAX_POINTS; i++) {
		struct ca_progress_point *p = &s->point[i];
		/* acquire: pairs with the release below */
		uint32_t state = atomic_load_explicit(&p->state, memory_order_acquire);
		uint32_t expected = CA_SLOT_FREE;

		/* somebody is writing the name: a few stores, or dead; then we skip the row */
		for (int spin = 0; state == CA_SLOT_CLAIMED && spin < PATIENCE; spin++)
			state = atomic_load_explicit(&p->state, memory_order_acquire);
		if (state == CA_SLOT_LIVE && p->kind == (uint32_t)kind && is_named(p, name))
			return p;
		if (state != CA_SLOT_FREE ||
		    !atomic_compare_exchange_strong(&p->state, &expected, CA_SLOT_CLAIMED))
			continue;
		p->kind = (uint32_t)kind;
		p->latency = kind == CA_POINT_THROUGHPUT ? 0 : claim_latency(s, name);
		memcpy(p->name, name, strnlen(name, sizeof p->name - 1));
		atomic_store_explicit(&p->state, CA_SLOT_LIVE, memory_order_release);
		ca_session_use_row(&s->points_used, i);
		return p;
	}
	return NULL;
}
