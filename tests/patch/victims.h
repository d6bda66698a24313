/* SPDX-License-Identifier: MIT */
/* Functions of every awkward shape, to be patched while they run. Each adds to its own count
 * of visits where it can, and all of them to one checksum. */
#ifndef CA_TESTS_PATCH_VICTIMS_H
#define CA_TESTS_PATCH_VICTIMS_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name): v_<name> exists in victims.c or victims_cxx.cc and counts its visits. Not formatted:
 * clang-format never agrees with itself here. */
/* clang-format off */
#define VICTIMS(X)                                                                                 \
	X(tiny) X(leaf) X(redzone) X(fib) X(even) X(odd) X(selftail) X(sum) X(average) X(pair)     \
	X(big) X(dispatch) X(dispatch_tail) X(many) X(caller_many) X(jumper) X(landing) X(loop_first) \
	X(early) X(early_tail) X(tail_pointer) X(tail_table) X(vector) X(flags) X(cold) X(line)    \
	X(callbacks) X(alloca_) X(thrower) X(catcher) X(virtual_) X(goto_)
/* clang-format on */

enum victim {
#define X(name) V_##name,
	VICTIMS(X)
#undef X
		V_COUNT
};

/* Visits of the calling thread; a visit counts before anything else can happen. */
extern __thread uint64_t victim_visits[V_COUNT];
/* Run all of them; the same seed gives the same sum. */
uint64_t victims_run(uint64_t seed);
uint64_t victims_run_cxx(uint64_t seed);
uint64_t *victims_visits(void);
/* A part of them that a signal handler may run above any of them. */
uint64_t victims_in_handler(uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
