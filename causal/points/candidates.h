/* SPDX-License-Identifier: MIT */
/* Candidates for a progress point: which of the places that were counted for a while follow the
 * program's work. Pure: numbers in, a choice out. How it judges: doc/PROGRESS.md. */
#ifndef CA_CAUSAL_POINTS_CANDIDATES_H
#define CA_CAUSAL_POINTS_CANDIDATES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CA_CANDIDATES = 32,        /* at one time */
	CA_CANDIDATE_WINDOWS = 64, /* at most */
	CA_CANDIDATE_SAMPLES = 4096,
	CA_CANDIDATES_CHOSEN = 3 /* at most */
};

enum ca_candidate_fault {
	CA_CANDIDATE_GOOD,
	CA_CANDIDATE_NEVER,   /* not visited, or it could not be patched */
	CA_CANDIDATE_HOT,     /* counting it would show */
	CA_CANDIDATE_RARE,    /* too few visits to measure anything */
	CA_CANDIDATE_ERRATIC, /* visits come in lumps, or they begin or end in between */
	CA_CANDIDATE_UNTIED   /* does not go with what most of the program does */
};

struct ca_candidate {
	/* given */
	const char *name; /* borrowed */
	bool function;    /* its entry; else a loop's round */
	double depth;     /* functions around it on the stacks, on average */
	uint32_t count[CA_CANDIDATE_WINDOWS];
	uint64_t inside[CA_CANDIDATE_SAMPLES / 64]; /* bit i: sample i was taken in it, or below */
	/* judged */
	enum ca_candidate_fault fault;
	double rate;     /* visits a second */
	double spread;   /* of its visits from window to window, beyond counting; share of the mean */
	double coverage; /* share of the samples that were taken in it */
	double merit;    /* 0..1, by itself */
	double rank;     /* 0..1, within its group */
	unsigned group;  /* numbers of visits in the same group are in proportion; from 1 */
};

struct ca_candidates {
	struct ca_candidate *candidate;
	size_t n;
	unsigned windows;
	double seconds[CA_CANDIDATE_WINDOWS]; /* length of each */
	double cpu[CA_CANDIDATE_WINDOWS];     /* CPU time of the program in each, s; all 0: not known */
	size_t samples;
};

/* Judge all, and put the numbers of the best ones into chosen, best first. Returns how many: 0 when
 * none will do. */
size_t ca_candidates_judge(struct ca_candidates *candidates, size_t chosen[CA_CANDIDATES_CHOSEN]);
/* Why not; static text. */
const char *ca_candidates_fault_name(enum ca_candidate_fault fault);

/* A unit of work is done as often in each run, however long that takes. UNKNOWN: too few runs, or
 * their lengths do not differ enough to tell (a program that runs for a given time). */
enum ca_tied { CA_TIED_UNKNOWN, CA_TIED, CA_NOT_TIED };
enum ca_tied ca_candidates_tied(const double *count, const double *seconds, size_t runs);

#endif
