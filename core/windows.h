/* SPDX-License-Identifier: MIT */
/* Time windows: when something is collected. Groups of a delay, a duration, a number of cycles and a clock, one
 * after the other; and a person who pauses it. One implementation for experiments, timelines, samples and
 * measurements of processes. Driver's process, one thread. */
#ifndef CA_CORE_WINDOWS_H
#define CA_CORE_WINDOWS_H
#include "core/status.h"
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct ca_settings;
struct ca_windows;

/* Is that a list of groups? Each is DELAY:DURATION[:CYCLES[:CLOCK]] or CLOCK:DELAY:DURATION:CYCLES; between them
 * stand spaces, tabs, line ends, ';' or ','. CA_ERR_USAGE: the text says what is wrong, and what may be there. */
enum ca_status ca_windows_check(const char *periods, struct ca_err *err);
/* By name as in clock_gettime(2), with or without CLOCK_ and _ID, in any case, or by number. CA_ERR_USAGE. */
enum ca_status ca_windows_clock(const char *name, clockid_t *clock, struct ca_err *err);

/* What a clock shows, ns; only asked for CLOCK_PROCESS_CPUTIME_ID, which is the program's. */
typedef uint64_t ca_windows_cpu(void *context);

/* As --periods, --period-clock, --delay, --duration and --paused say. NULL: no memory. */
struct ca_windows *ca_windows_new(const struct ca_settings *settings, ca_windows_cpu *cpu, void *context);
void ca_windows_free(struct ca_windows *windows); /* NULL is fine */
/* It begins now (ns, CLOCK_MONOTONIC, as all times here). */
void ca_windows_begin(struct ca_windows *windows, uint64_t now);
/* Go on to now; before anything is asked about the time until then. */
void ca_windows_step(struct ca_windows *windows, uint64_t now);
/* Before the beginning all are closed. Over: none comes any more. */
bool ca_windows_is_open(const struct ca_windows *windows);
bool ca_windows_is_over(const struct ca_windows *windows);
/* When that changes by itself, as far as it is known now; UINT64_MAX: it does not, or nobody knows. */
uint64_t ca_windows_due(const struct ca_windows *windows);
/* On top of it: closed until it is taken back. */
void ca_windows_pause(struct ca_windows *windows, bool pause, uint64_t now);
/* Closed for good. */
void ca_windows_end(struct ca_windows *windows, uint64_t now);

/* Did it lie in a window? Also of times some thousand windows ago. */
bool ca_windows_holds(const struct ca_windows *windows, uint64_t time);
/* When the one that it lay in, or the last one before it, began and ended; false: there is none. to: UINT64_MAX while
 * it is open. */
bool ca_windows_find(const struct ca_windows *windows, uint64_t time, uint64_t *from, uint64_t *to);
/* ns of windows until then: the difference is how much of a stretch of time lay in windows. */
uint64_t ca_windows_until(const struct ca_windows *windows, uint64_t time);
/* When the first one was opened; 0: none was. */
uint64_t ca_windows_first(const struct ca_windows *windows);

/* Is all the run in one window, as far as the settings say? And do they end it before the run does? */
bool ca_windows_are_all(const struct ca_settings *settings);
bool ca_windows_do_end(const struct ca_settings *settings);

#endif
