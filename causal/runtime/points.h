/* SPDX-License-Identifier: MIT */
/* Progress points in code. */
#ifndef CA_CAUSAL_RUNTIME_POINTS_H
#define CA_CAUSAL_RUNTIME_POINTS_H
#include "causal/runtime/rt.h"

CA_HIDDEN CA_SIGSAFE void ca_points_patch_loaded(void);
/* The same before main, when the loader is through with all that is there. */
CA_HIDDEN void ca_points_start(void);
/* At a tick: look for libraries that have come or gone. lost: the stack led out of what is known. */
CA_HIDDEN CA_SIGSAFE void ca_points_follow(uint64_t now, bool lost);
/* Visits by threads that have no slot (yet, or any more) go to the points as a whole. */
CA_HIDDEN CA_SIGSAFE void ca_points_collect(void);
/* A library is being opened. */
CA_HIDDEN void ca_points_libraries_change(void);
/* One has been closed. With ca_patch_hold: nothing is patched by what was known before. */
CA_HIDDEN void ca_points_libraries_left(void);
CA_HIDDEN struct ca_progress_point *ca_points_get(enum ca_point_kind kind, const char *name);

#endif
