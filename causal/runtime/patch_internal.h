/* SPDX-License-Identifier: MIT */
/* Shared by the patch*.c files and trampoline.c only. */
#ifndef CA_CAUSAL_RUNTIME_PATCH_INTERNAL_H
#define CA_CAUSAL_RUNTIME_PATCH_INTERNAL_H
#include "causal/runtime/patch.h"
#include "core/sys.h"
#include <stdatomic.h>

#define CA_HIDDEN __attribute__((visibility("hidden")))

/* ---- patch_mem.c: the text, and memory near it */
struct ca_patch_text {
	int fd; /* /proc/self/mem, open only for the duration of one operation; -1: mprotect */
};
CA_HIDDEN void ca_patch_mem_open(struct ca_patch_text *text);
CA_HIDDEN void ca_patch_mem_close(struct ca_patch_text *text);
/* False if any of the bytes is not mapped. */
CA_HIDDEN bool ca_patch_mem_read(const struct ca_patch_text *text, uintptr_t from, void *to, size_t length);
/* Over text that may be executed at the same time. */
CA_HIDDEN bool ca_patch_mem_write(const struct ca_patch_text *text, uintptr_t to, const void *from,
				  size_t length);
CA_HIDDEN bool ca_patch_mem_check(const char **why);

/* Which values the 4 displacement bytes of a jump may have. */
struct ca_patch_pun {
	uint32_t mask; /* bits that are given ... */
	uint32_t value;
	uint32_t trap; /* bytes (0xff each) that must hold an opcode that traps */
};
/* A place for the landing of a jump that ends at `end`, and for its body. */
struct ca_patch_place {
	uintptr_t landing; /* where the jump leads; == body if the jump is free to go anywhere */
	uintptr_t body;
	bool far; /* the landing is in a page of its own, and not near the body */
};
enum { CA_PATCH_LANDING = 16 };
/* What stands at a landing that is not the body; returns how many bytes. */
CA_HIDDEN size_t ca_patch_mem_landing(const struct ca_patch_place *place, uint8_t bytes[CA_PATCH_LANDING]);
/* Finds both; body has room for `length` bytes. When landing != body a jump from one to the
 * other has been written. False: no such memory to be had. */
CA_HIDDEN bool ca_patch_mem_place(const struct ca_patch_text *text, uintptr_t end,
				  const struct ca_patch_pun *pun, size_t length,
				  struct ca_patch_place *place);
/* Where the addresses of the thunks lie for a body at `body`. */
CA_HIDDEN uintptr_t ca_patch_mem_thunks(uintptr_t body);
/* The record whose body holds pc, or -1. */
CA_HIDDEN int ca_patch_mem_record(uintptr_t pc);
/* The stack that must be able to grow. */
CA_HIDDEN void ca_patch_mem_init(uintptr_t stack);

/* ---- patch_record.c: what a site becomes */
enum ca_record_state {
	CA_RECORD_OFF,     /* the text is the program's own */
	CA_RECORD_PLACING, /* steps 1 to 3 */
	CA_RECORD_ON,
	CA_RECORD_REMOVING
};
enum { CA_PATCH_RECORDS = 4096, CA_PATCH_BODY = 512, CA_PATCH_JUMP = 5 /* bytes */, CA_PATCH_INT3 = 0xcc };

struct ca_patch_record {
	_Atomic uint32_t state; /* enum ca_record_state */
	uint32_t next;          /* next record + 1 with the same address */
	uintptr_t bias;
	uintptr_t address; /* of the site, at run time */
	struct ca_patch_place place;
	uint16_t body_length;
	uint8_t prefix;                  /* bytes before the jump's opcode */
	uint8_t footprint;               /* bytes of text, from address, that the jump relies on */
	bool trap;                       /* stays an int3 */
	_Atomic bool retired;            /* not to be placed again */
	uint16_t insn_at[CA_SITE_INSNS]; /* in the body, hooks before it included */
	uint16_t hook_at[CA_SITE_HOOKS]; /* start of each hook in the body */
	uint16_t hook_end[CA_SITE_HOOKS];
	uint16_t code_at[CA_SITE_CODE + 1]; /* from offsets in code[] to the body, behind hooks */
	uint8_t patched[CA_SITE_BYTES];     /* what the site's bytes become */
	struct ca_site site;
};
extern CA_HIDDEN struct ca_patch_record ca_patch_records[CA_PATCH_RECORDS];
extern CA_HIDDEN _Atomic uint32_t ca_patch_record_count;

CA_HIDDEN struct ca_patch_record *ca_patch_record_find(const struct ca_site *site, uintptr_t bias);
/* For a site whose text is the program's own. changes: do others have bytes from r->address up to `high`, now
 * or soon? Those cannot be part of a distance. NULL: there is no room, or no more memory. */
CA_HIDDEN struct ca_patch_record *
ca_patch_record_make(const struct ca_patch_text *text, const struct ca_site *site, uintptr_t bias,
		     bool (*changes)(const struct ca_patch_record *r, uintptr_t high));

/* ---- patch_code.c: the trampoline of one site */
/* Length of the record's body, before its place is known; 0: too long. Fills the *_at maps. */
CA_HIDDEN size_t ca_patch_code_measure(struct ca_patch_record *r);
/* Inside a hook, `in` bytes from its start and `left` from its end: by how much it has lowered sp. */
CA_HIDDEN intptr_t ca_patch_code_shift(const struct ca_site *site, unsigned hook, size_t in, size_t left);
/* The body's bytes for r->place.body. False: a displacement does not reach. */
CA_HIDDEN bool ca_patch_code_emit(struct ca_patch_record *r, uint8_t *out);

/* ---- patch_trap.c */
/* The program may have little address space: give back what is set aside, and set nothing aside. */
CA_HIDDEN void ca_patch_mem_trim(void);
CA_HIDDEN bool ca_patch_mem_has(uintptr_t address);
CA_HIDDEN bool ca_patch_trap_take(void);           /* install our handlers, or see they still are */
CA_HIDDEN void ca_patch_trap_add(uint32_t number); /* this record's addresses may trap from now on */
CA_HIDDEN bool ca_patch_trap_room(void);           /* for the addresses of one more record */

/* ---- patch_threads.c: how far the process's threads let us go */
struct ca_patch_threads {
	unsigned count;
	bool blocked; /* one has SIGTRAP or SIGILL blocked */
	bool traced;
	bool unknown; /* /proc cannot be read */
};
CA_HIDDEN struct ca_patch_threads ca_patch_threads_look(void);

/* ---- trampoline.c: what bodies call. Order as in the table at the head of each region. */
enum ca_thunk {
	CA_THUNK_ENTER,
	CA_THUNK_EXIT,
	CA_THUNK_ENTER_CALLED, /* the return address is on the stack already */
	CA_THUNK_EXIT_CALLED,
	CA_THUNK_ENTER_ABOVE, /* words up to what names the activation have been pushed, as a point's number */
	CA_THUNK_EXIT_ABOVE,
	CA_THUNK_ENTER_ABOVE_FP, /* ... counted from the frame pointer */
	CA_THUNK_EXIT_ABOVE_FP,
	CA_THUNK_MEET,
	CA_THUNK_STAMP, /* the point's number has been pushed below the red zone */
	CA_THUNK_ATOMIC,
	CA_THUNK_FINE,
	CA_THUNKS
};
CA_HIDDEN extern const uintptr_t ca_trampoline_thunk[CA_THUNKS];
CA_HIDDEN extern struct ca_patch_hooks ca_trampoline_hooks;
CA_HIDDEN extern const char ca_trampoline_restore[]; /* sigreturn */

#endif
