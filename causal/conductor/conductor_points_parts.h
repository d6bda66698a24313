/* SPDX-License-Identifier: MIT */
/* The choice of progress points, as conductor_points.c (its phases), conductor_points_choice.c (what is chosen)
 * and conductor_points_ask.c (by whoever sits at the terminal) share it. Private to them. */
#ifndef CA_CAUSAL_CONDUCTOR_CONDUCTOR_POINTS_PARTS_H
#define CA_CAUSAL_CONDUCTOR_CONDUCTOR_POINTS_PARTS_H
#include "causal/conductor/conductor_state.h"
#include "causal/points/choice.h"

enum ca_point_stage {
	CA_POINT_STAGE_SEARCHING,
	CA_POINT_STAGE_PLACING,
	CA_POINT_STAGE_REMOVING,
	CA_POINT_STAGE_ASKING,
	CA_POINT_STAGE_CHOSEN,
	CA_POINT_STAGE_PAUSING
};

struct ca_point_choice {
	struct ca_point_search *search;
	struct ca_choice choice; /* as stored; points == 0 and AUTO: none yet */
	enum ca_point_stage stage;
	bool over;  /* nothing more to be done in this run */
	bool known; /* the choice was there before the run began */
	bool ask;
	bool late; /* the search began when it had turned out that, other than it seemed, points are needed */
	bool needless;  /* one thread does all ... */
	unsigned timed; /* ... in so many experiments above 0 %, ns of which were: */
	uint64_t elapsed, inserted, paid;
	bool idle;        /* the program did next to nothing when candidates were looked for */
	bool woken;       /* ... and then worked, and they were looked for again */
	uint64_t ran;     /* c->ran_all when the search began, or ended */
	bool placed;      /* candidates, by now */
	char reason[300]; /* why the last search that came to its end found none; "": none did */
	uint64_t since, cpu_since;
	size_t chosen[CA_CANDIDATES_CHOSEN], n;
	const struct ca_candidates *set;
	char *replaced[2 * CA_CANDIDATES_CHOSEN]; /* names; owned */
	size_t replaced_n;
	/* asking */
	int terminal; /* -1: none */
	size_t offered[CA_CANDIDATES], offers;
	char line[128];
	size_t length;
};

/* conductor_points_choice.c: keep the choice for later runs. */
void ca_conductor_points_store(struct ca_conductor *c, struct ca_point_choice *p);
/* Make it of the candidates that p->chosen names. False: no memory. */
bool ca_conductor_points_fill(struct ca_conductor *c, struct ca_point_choice *p, enum ca_choice_how how);
/* Fill, store and tell. */
void ca_conductor_points_choose(struct ca_conductor *c, struct ca_point_choice *p, enum ca_choice_how how);
/* The runtimes place what is published at their next tick. */
void ca_conductor_points_publish(struct ca_conductor *c, struct ca_point_choice *p);
/* Was that point chosen in this run, and then another in its place? */
bool ca_conductor_points_were_published(const struct ca_point_choice *p, const char *name);
/* Tell of all candidates, if that is wanted. */
void ca_conductor_points_list(struct ca_conductor *c, const struct ca_point_choice *p);
/* A good point is passed as often in each run, however long the run: drop those that are not. */
void ca_conductor_points_check_runs(struct ca_conductor *c, struct ca_point_choice *p,
				    const struct ca_visits_now *visits);

/* conductor_points_ask.c: false if there is no terminal. */
bool ca_conductor_points_ask_open(struct ca_point_choice *p);
void ca_conductor_points_ask_offer(struct ca_conductor *c, struct ca_point_choice *p);
/* Has a line been typed? */
bool ca_conductor_points_ask_is_answered(struct ca_point_choice *p);
/* Numbers in the order given; nothing readable leaves the choice as it is, and is false. */
bool ca_conductor_points_ask_take(struct ca_point_choice *p);

#endif
