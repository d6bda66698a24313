/* SPDX-License-Identifier: MIT */
/* The names that the code of a run gives to its own events (include/causal_trace.h): of keys, and
 * of values. In memory that all processes of the run share; the driver reads them into its
 * dictionary (core/dict.h).
 *
 * Names are only ever added, and found by a hash. An entry is complete before anybody can find it;
 * a process may die between any two instructions and leaves at most an entry that nobody finds.
 * No locks, no waiting; any context. Where there is no more room, a name has no key. */
#ifndef CA_CORE_NAMES_H
#define CA_CORE_NAMES_H
#include "core/status.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	CA_NAMES = 8192, /* a power of two */
	CA_NAME_TEXT = 160,
	CA_NAME_WHERE = 72,
	CA_FIRST_MUTEX = 2,      /* the numbers of mutexes begin here; 1: the thread waits for one */
	CA_USER_ID_LAST = 32767, /* ids are 1 to this; those handed out come from the top */
	CA_NAME_OF_THREAD,       /* not of a key's value, but of a thread by its index, ... */
	CA_NAME_OF_PROCESS,
	CA_NAME_OF_TASK
};

struct ca_name {
	_Atomic uint32_t known; /* 1: complete, and found by whoever looks. Released after the rest */
	_Atomic uint32_t id;    /* of a key; 0: not yet */
	uint32_t of;            /* 0: a key; else the id of the key whose value this is the name of */
	uint32_t reserved;
	uint64_t value;
	char text[CA_NAME_TEXT];   /* cut where it is longer */
	char where[CA_NAME_WHERE]; /* file:line of who gave it first; its end where it is longer */
};

/* All zeros: empty. */
struct ca_names {
	_Atomic uint32_t used;                       /* entries taken so far, some for nothing */
	_Atomic uint32_t handed_out;                 /* ids were, from the top */
	_Atomic uint32_t mutexes;                    /* that have numbers */
	_Atomic uint8_t off[CA_USER_ID_LAST + 1];    /* by id: nobody wants its events; by the driver */
	_Atomic uint32_t by_id[CA_USER_ID_LAST + 1]; /* 1 + number of the entry */
	_Atomic uint32_t bucket[2 * CA_NAMES];       /* likewise, by hash; a row of them is searched */
	struct ca_name name[CA_NAMES];
};

/* The id of the key called `text`. wanted: the id that it shall have, or 0. Returns 0 if there is no
 * room, or if it cannot have that one: then *clash (may be NULL) is the entry that stands against it:
 * another one with this id, or its own, with another; else NULL. */
CA_SIGSAFE uint32_t ca_names_key(struct ca_names *names, const char *text, const char *where, uint32_t wanted,
				 const struct ca_name **clash);
/* Call `value` of the key `id` so. The first name stays. */
CA_SIGSAFE void ca_names_value(struct ca_names *names, uint32_t id, uint64_t value, const char *text,
			       const char *where);
CA_SIGSAFE bool ca_names_has_value(const struct ca_names *names, uint32_t id, uint64_t value);
/* The i-th of those that were added, for i < used; NULL: it is of no use, or not complete yet. */
CA_SIGSAFE const struct ca_name *ca_names_at(const struct ca_names *names, uint32_t i);

#endif
