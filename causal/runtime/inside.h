/* SPDX-License-Identifier: MIT */
/* Who is in S: each thread's replica of what the selection log says of it. Any thread, with its guard held. */
#ifndef CA_CAUSAL_RUNTIME_INSIDE_H
#define CA_CAUSAL_RUNTIME_INSIDE_H
#include "causal/runtime/rt.h"

/* Of a thread in S, in inside_flag: waits for others (S does not go on), or for the outside. */
enum { CA_INSIDE_OFF = 1, CA_INSIDE_EXTERNAL = 2 };

/* Its place in the replica; inside_count: it is not there. */
CA_HIDDEN CA_SIGSAFE unsigned ca_inside_find(const struct ca_thread *t, uint32_t slot);
/* Who is in S from this entry on, and who was before it. */
CA_HIDDEN CA_SIGSAFE void ca_inside_change(struct ca_thread *t, const struct ca_log_entry *e);
CA_HIDDEN CA_SIGSAFE void ca_inside_undo(struct ca_thread *t, const struct ca_log_entry *e);
/* New (created by that thread; UINT32_MAX: not known), or too far behind the log: start from what the slots say
 * now. Returns the S time of the open experiment up to `now`, ns. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_inside_resynchronise(struct ca_thread *t, uint64_t now, uint32_t creator);
/* For a new selection: the weights of its layers, and nobody in it. */
CA_HIDDEN CA_SIGSAFE void ca_inside_clear(struct ca_thread *t);
CA_HIDDEN CA_SIGSAFE void ca_inside_read_layers(struct ca_thread *t);
/* It has looked: from now on new threads ask this one, if there are too many to ask all, and not at each look. */
CA_HIDDEN CA_SIGSAFE void ca_inside_tell(struct ca_thread *t, uint64_t now);

static inline uint8_t ca_inside_limit_part(const struct ca_thread *t, uint64_t part)
{
	return part < t->layers ? (uint8_t)part : (uint8_t)(t->layers ? t->layers - 1 : 0);
}

/* Is somebody else at work in that layer of S? */
static inline bool ca_inside_is_active(const struct ca_thread *t, unsigned layer)
{
	/* of a pool of threads nearly all wait */
	for (unsigned i = 0, left = t->inside_count - t->inside_off; left; i++) {
		if (t->inside_flag[i] == CA_INSIDE_OFF)
			continue;
		if (t->inside_part[i] >= layer)
			return true;
		left--;
	}
	return t->inside_more > 0;
}

/* What the thread at that place does; CA_INSIDE_*, or 0. */
static inline void ca_inside_set_flag(struct ca_thread *t, unsigned i, uint8_t flag)
{
	t->inside_off -= t->inside_flag[i] == CA_INSIDE_OFF;
	t->inside_flag[i] = flag;
	t->inside_off += flag == CA_INSIDE_OFF;
}

/* Are we in it, as the log has it? */
static inline bool ca_inside_is_mine(const struct ca_thread *t, unsigned layer)
{
	return t->inside_me && t->inside_my_part >= layer;
}

static inline uint64_t ca_inside_weigh(const struct ca_thread *t, unsigned layer, uint64_t ns)
{
	return ca_selection_weigh(t->width[layer], ns);
}

#endif
