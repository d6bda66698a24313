/* SPDX-License-Identifier: MIT */
/* Walking a stack with the rows of the index: no lock, no allocation, no loader.
 * Runtime; safe in handlers. */
#ifndef CA_SAMPLER_UNWIND_H
#define CA_SAMPLER_UNWIND_H
#include "binary/index/index.h"
#include "core/event.h"
#include "core/status.h"
#include <stdbool.h>
#include <stdint.h>

enum { CA_UNWIND_DEPTH = 128, CA_UNWIND_COPY = 4096, CA_UNWIND_SEEN = 128 };

/* A frame's registers. Only the innermost frame of a handler has all. */
struct ca_registers {
	uintptr_t pc, sp, fp;
	uintptr_t bx; /* if has_bx, or by `all` */
	bool has_bx;
	const uintptr_t *all; /* of the innermost frame, by DWARF number, 0..15; NULL: not known */
	bool called;          /* this is a frame further out */
};
struct ca_seen {
	uintptr_t pc; /* 0: none */
	ca_place place;
	struct ca_unwind_row row;
};
struct ca_stack {
	unsigned depth;
	bool complete;                   /* reached the outermost frame */
	ca_place place[CA_UNWIND_DEPTH]; /* innermost first; calls: address of the call - 1 */
	uintptr_t cfa[CA_UNWIND_DEPTH];  /* stack address of the frame's caller */
	/* the thread's own, for whoever knows it to set; 0: not known. What lies between a stack pointer in it and its
	 * end stays mapped while the thread is on it */
	uintptr_t own_low, own_high;
	/* scratch of ca_unwind: here, since the stack that a handler runs on may be small */
	uintptr_t copy_low, copy_high, stack_pointer, direct_high;
	_Alignas(8) char copy[CA_UNWIND_COPY];
	/* the mapping that the thread's stack was last seen in; kept from call to call, only
	 * filled where memory cannot be copied by a system call */
	uintptr_t map_low, map_high;
	unsigned in_vain; /* stacks since one whose caller was looked for and found; kept, too */
	/* rows of frames that were seen since so many scans; kept from call to call, too. A bit for each cache line
	 * that the last walk used */
	uint64_t scans, used;
	_Alignas(64) struct ca_seen seen[CA_UNWIND_SEEN];
};

/* From the registers that a signal interrupted. */
CA_SIGSAFE void ca_unwind_registers(struct ca_registers *r, uintptr_t all[16], const void *ucontext);
/* out keeps what it learns about the stack: pass the same one for the same thread, zeroed at
 * first. is_call: r->pc is a return address (the frame is not the innermost). */
CA_SIGSAFE void ca_unwind(const struct ca_registers *r, bool is_call, struct ca_stack *out);

#endif
