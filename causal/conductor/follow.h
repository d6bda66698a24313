/* SPDX-License-Identifier: MIT */
/* The scope that follows the samples, where nobody has named binaries: which libraries are taken
 * into it, and what is said of that. Numbers in, a decision out; kept for all runs of a sweep.
 * Driver's process, the conductor's thread; conductor_scope.c does the counting. */
#ifndef CA_CAUSAL_CONDUCTOR_FOLLOW_H
#define CA_CAUSAL_CONDUCTOR_FOLLOW_H
#include "binary/scope.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CA_FOLLOW_PERCENT = 5 }; /* of the CPU samples: taken, or named when left out */

struct ca_follow_object {
	char *path;   /* owned */
	char *called; /* by the user, a link to it; owned, or NULL: by its own name */
	bool main;    /* an executable: in scope whatever its share */
	bool taken;
	bool settled; /* ... and useless says whether that is of use */
	bool told;
	const char *useless; /* why taking it brings nothing, or NULL. Static text */
	uint64_t own;        /* samples in it, weighted */
	uint64_t through;    /* ... in a left out library that it called */
};
struct ca_follow {
	struct ca_follow_object *object; /* owned */
	size_t n;
	uint64_t total;   /* of all own */
	uint64_t samples; /* how many, not weighted */
	bool decided, told;
};

void ca_follow_fini(struct ca_follow *follow);
/* NULL: not seen yet. Borrowed, until the next ca_follow_add. */
struct ca_follow_object *ca_follow_find(const struct ca_follow *follow, const char *path);
void ca_follow_add(struct ca_follow *follow, const char *path, bool main, uint64_t own, uint64_t through);
/* The user calls that object so. */
void ca_follow_call(struct ca_follow *follow, const char *path, const char *called);
/* Under which path it is told. Borrowed. */
const char *ca_follow_name(const struct ca_follow_object *object);
/* From what has been counted; what is taken stays. Returns whether that is more than before. */
bool ca_follow_decide(struct ca_follow *follow, const struct ca_scope *scope);
/* NOT_NAMED: too little to be worth a word. */
enum ca_follow_part { CA_FOLLOW_IN_SCOPE, CA_FOLLOW_LEFT_OUT, CA_FOLLOW_NOT_NAMED };
enum ca_follow_part ca_follow_part(const struct ca_follow *follow, const struct ca_scope *scope,
				   const struct ca_follow_object *object);
/* Of all CPU samples, in percent. */
double ca_follow_share(const struct ca_follow *follow, const struct ca_follow_object *object);
/* One line about the scope, its parts ordered by share; false: there is nothing to be said, or it
 * was said before, or not all that is taken is settled. */
bool ca_follow_tell(struct ca_follow *follow, const struct ca_scope *scope, char *buffer, size_t size);

#endif
