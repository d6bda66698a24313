/* SPDX-License-Identifier: MIT */
/* The progress points that the tool or the user chose, as a file in the output directory
 * (progress.json, see doc/FORMAT.md), so that all runs that go there use the same ones.
 * Driver's process, one thread. */
#ifndef CA_CAUSAL_POINTS_CHOICE_H
#define CA_CAUSAL_POINTS_CHOICE_H
#include "causal/points/candidates.h"
#include "core/status.h"
#include <stdbool.h>
#include <stddef.h>

struct ca_choice_point {
	char *name;      /* as --progress takes it. Owned */
	double rate;     /* visits a second, when it was chosen */
	double spread;   /* share of the mean */
	double coverage; /* share of the samples */
	size_t unit;     /* the first of the points that causal chose for the same unit of work; or itself */
	char *dropped;   /* why it is not used any more, or NULL. Owned */
};
enum ca_choice_how {
	CA_CHOICE_AUTO,
	CA_CHOICE_USER,
	CA_CHOICE_END_TO_END /* no point will do: each run is one experiment */
};
struct ca_choice {
	char *program; /* the command's first word. Owned */
	enum ca_choice_how how;
	unsigned run;                                       /* in which it was made */
	char *reason;                                       /* end to end: why. Owned, or NULL */
	struct ca_choice_point point[CA_CANDIDATES_CHOSEN]; /* best first */
	size_t points;
};

/* CA_ERR_NOT_FOUND: there is none; CA_ERR_FORMAT: it cannot be read. */
enum ca_status ca_choice_read(struct ca_choice *choice, const char *dir, struct ca_err *err);
/* By rename. */
enum ca_status ca_choice_write(const struct ca_choice *choice, const char *dir, struct ca_err *err);
void ca_choice_fini(struct ca_choice *choice);
/* Those in use, as one value of --progress; NULL: no memory. Owned by the caller. */
char *ca_choice_names(const struct ca_choice *choice);

#endif
