/* SPDX-License-Identifier: MIT */
/* What a running sweep is told from outside, by `causal ctl`: a file in its results directory, which the
 * sweep looks for and removes. Driver's process, one thread. */
#ifndef CA_DRIVER_CONTROL_H
#define CA_DRIVER_CONTROL_H
#include "core/status.h"
#include <stdbool.h>
#include <stdint.h>

struct ca_conductor;
struct ca_signals;

/* Its words, in this order, from the first on. */
enum ca_control_word { CA_CONTROL_NONE, CA_CONTROL_PAUSE, CA_CONTROL_RESUME, CA_CONTROL_FINISH };
#define CA_CONTROL_WORDS "pause", "resume", "finish"

struct ca_control {
	const char *dir; /* borrowed */
	uint64_t looked; /* ns */
	bool paused;
};

/* Let it be found that a sweep runs in the directory. */
void ca_control_open(struct ca_control *control, const char *dir);
void ca_control_close(struct ca_control *control);

/* Do what was asked for, by `causal ctl` or by the signal: pause, resume, finish. True: to finish. */
bool ca_control_obey(struct ca_control *control, struct ca_signals *signals, struct ca_conductor *conductor);

/* The other side: ask the sweep in dir, and wait until it has taken the word. */
enum ca_status ca_control_ask(const char *dir, enum ca_control_word word, struct ca_err *err);

#endif
