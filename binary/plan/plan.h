/* SPDX-License-Identifier: MIT */
/* Plans for patch sites: which bytes of the text may be replaced by a jump, and
 * the displaced instructions in relocatable form (capstone). Driver's process. */
#ifndef CA_BINARY_PLAN_PLAN_H
#define CA_BINARY_PLAN_PLAN_H
#include "core/selection.h"
#include "core/status.h"
#include <stddef.h>

struct ca_text; /* of the module: binary/plan/text.h */

/* Enter and exit sites of the function(s) in `range` (entry of each range that is a function
 * start, every return and every jump out of the ranges). CA_ERR_UNSUPPORTED when some exit
 * cannot be patched (the text says which): then S must be sampled. ranges are file addresses
 * of one function: its body and its .cold parts. Fills out[0..*count). module is copied. */
enum ca_status ca_plan_function(struct ca_text *text, uint32_t module, const struct ca_range *range,
				size_t ranges, struct ca_site *out, size_t max, size_t *count,
				struct ca_err *err);
/* The same where progress points may stand at its other instructions: as few of these as can be are in its sites. */
enum ca_status ca_plan_function_tight(struct ca_text *text, uint32_t module, const struct ca_range *range,
				      size_t ranges, struct ca_site *out, size_t max, size_t *count,
				      struct ca_err *err);
/* Call sites in the ranges of a line: each call instruction becomes CA_SITE_CALL. *self says
 * whether the line has other work of its own worth sampling (loops or more than ~20
 * instructions outside calls). CA_ERR_UNSUPPORTED when a call cannot be patched. */
enum ca_status ca_plan_line(struct ca_text *text, uint32_t module, const struct ca_range *range,
			    size_t ranges, struct ca_site *out, size_t max, size_t *count, bool *self,
			    struct ca_err *err);
/* Sites at which control comes into the ranges, which are parts of functions, and leaves them again: with
 * hooks of the fine sampler alone. CA_ERR_UNSUPPORTED, as above. */
enum ca_status ca_plan_edges(struct ca_text *text, uint32_t module, const struct ca_range *range,
			     size_t ranges, struct ca_site *out, size_t max, size_t *count,
			     struct ca_err *err);
/* A site that counts visits of `address` (an instruction start; a 5-byte nop is the easy case). */
enum ca_status ca_plan_count(struct ca_text *text, uint32_t module, uint64_t address, uint32_t point,
			     struct ca_site *out, struct ca_err *err);
/* Where threads of the module meet unseen: pause instructions (spin loops), and atomic operations
 * that read and write. Sites of kind MEET, most important first. Returns how many, at most max. Besides, what
 * threads look at in the loops around them: room for *spins, of which so many are used (NULL: nobody asks). */
size_t ca_plan_meetings(struct ca_text *text, uint32_t module, struct ca_site *out, size_t max,
			struct ca_spin *spin, size_t *spins);
/* Is the address in a loop in which a thread waits for another one: it pauses, and looks at the same word each time?
 * low, high: of its function. */
bool ca_plan_spins(struct ca_text *text, uint64_t low, uint64_t high, uint64_t address);
/* The smallest loop around a call there that gives up the CPU, if it looks at the same word each time: all of it is such
 * a wait. low, high: of the function, and then of the loop. */
bool ca_plan_waits_around(struct ca_text *text, uint64_t address, uint64_t *low, uint64_t *high);
/* A meeting before the plain store that ends at `end`, by which a thread hands something over to one that
 * spins. CA_ERR_NOT_FOUND: none ends there that is no meeting already; CA_ERR_UNSUPPORTED: it cannot be
 * patched. */
enum ca_status ca_plan_store(struct ca_text *text, uint32_t module, uint64_t end, struct ca_site *out,
			     struct ca_err *err);

/* The start of the function `name`, or of `name` in FILE, written FILE:name. Calls go on where *slot leads,
 * and into the function where it is NULL; its own beginning is in code[CA_WRAP_COPY]. The site's addresses are
 * those of the run, for a module loaded at `bias`. CA_ERR_NOT_FOUND; CA_ERR_USAGE: there are several;
 * CA_ERR_UNSUPPORTED: callers could notice (the text says how), or the code cannot be moved. */
enum { CA_WRAP_COPY = 21 };
enum ca_status ca_plan_wrap(struct ca_text *text, const char *name, uint64_t bias, const void *slot,
			    struct ca_site *out, struct ca_err *err);

#endif
