/* SPDX-License-Identifier: MIT */
/* How a patch site is written down: planned by the driver (binary/plan), placed by the runtime.
 * Fixed size and no pointers, because sites travel through the session. */
#ifndef CA_CORE_SITE_H
#define CA_CORE_SITE_H
#include <stdint.h>

/* One place in the program's text that is replaced by a jump to a trampoline.
 * Planned by the driver (capstone), carried out by the runtime. */
enum ca_site_kind {
	CA_SITE_ENTER = 1, /* thread enters S; then the displaced instructions */
	CA_SITE_EXIT,      /* thread leaves S; then the displaced instructions */
	CA_SITE_CALL,      /* a call instruction: enter S, call; its EXIT site is where it returns to */
	CA_SITE_COUNT,     /* count a visit of progress point `point` */
	CA_SITE_MEET,      /* the thread is about to spin or wait: pay first */
	CA_SITE_STAMP,     /* as COUNT, and add the time of the visit to the point's stamp */
	CA_SITE_TRIAL,     /* of a site, not a hook: counts like COUNT until the next selection */
	CA_SITE_FINE_ENTER, /* of a hook, in place of ENTER: the time goes into struct ca_fine, without a call */
	CA_SITE_FINE_EXIT, /* ... of EXIT; with a call only when a hit is due */
	CA_SITE_ATOMIC,    /* of a hook; its site is a MEET: what comes next others can notice at once:
			    * pay first. Where that happens too often, the runtime takes it out */
	CA_SITE_PART,      /* of a hook: the ENTER behind it is that of part `point` of S */
	CA_SITE_VISIT,     /* of a hook: as STAMP, until the thread finds the point hot, then as COUNT */
	CA_SITE_WRAP       /* of a site without hooks: calls of the function go elsewhere */
};
enum { CA_SITE_BYTES = 24, CA_SITE_CODE = 96, CA_SITE_FIXUPS = 6, CA_SITE_HOOKS = 4, CA_SITE_INSNS = 8 };
enum ca_site_flag {
	CA_SITE_BY_CALL = 1,    /* reach the trampoline by a call that ends at the site's end: the
				 * return address is the program's own (the site ends in a call) */
	CA_SITE_FLAGS_DEAD = 2, /* nobody reads the arithmetic flags at the site */
	CA_SITE_NO_TRAP = 4,    /* leave the site alone rather than fall back to a lasting int3 */
	CA_SITE_BY_FP = 8       /* what names the activation is counted from the frame pointer */
};
enum ca_fixup_type {
	CA_FIXUP_REL = 0, /* 4 bytes, relative to `end`: file address `target` */
	CA_FIXUP_LOW,     /* 4 bytes: low half of the run-time address of `target` */
	CA_FIXUP_HIGH,    /* 4 bytes: its high half */
	CA_FIXUP_LOCAL    /* 4 bytes, relative to `end`: offset `target` in code[] */
};
struct ca_site {
	uint32_t module;
	uint8_t kind;   /* enum ca_site_kind: what it is for */
	uint8_t length; /* bytes displaced, 1..CA_SITE_BYTES; below 5 the runtime needs luck
			       * with the bytes behind, else an int3 stays (2.4 us a visit) */
	uint8_t code_length;
	uint8_t fixups;   /* used entries of fixup[] */
	uint64_t address; /* file address of the first displaced byte */
	uint32_t point;   /* hook CA_SITE_COUNT: the progress point; PART: the part */
	uint8_t hooks;    /* used entries of hook[] */
	uint8_t insns;    /* used entries of insn[] */
	uint8_t flags;    /* enum ca_site_flag */
	uint8_t words;    /* 8 bytes each from there, or the stack pointer, up to what names the activation:
			* the stack pointer at its function's first instruction, where that is known */
	uint8_t original[CA_SITE_BYTES]; /* what must stand there, else do not patch */
	uint8_t code[CA_SITE_CODE];      /* the displaced instructions, relocatable, with whatever
					  * brings control back: nothing is to be appended */
	struct {
		uint8_t at; /* hook runs before code[at] */
		uint8_t kind; /* enum ca_site_kind: ENTER, EXIT, COUNT, MEET, STAMP, FINE_*, ATOMIC, PART, VISIT */
		uint8_t point; /* COUNT, STAMP, VISIT: which point, + 1, where it is not the site's own */
	} hook[CA_SITE_HOOKS]; /* sorted by `at` */
	struct {
		uint8_t offset; /* of a displaced instruction after the first, in original[] */
		uint8_t at;     /* ... in code[] */
	} insn[CA_SITE_INSNS];  /* all of them: a thread that arrives there is sent to the copy */
	struct {
		uint8_t at;   /* offset in code[] of the 4 bytes */
		uint8_t end;  /* offset in code[] of the end of that instruction */
		uint8_t type; /* enum ca_fixup_type */
		uint8_t reserved[5];
		uint64_t target;
	} fixup[CA_SITE_FIXUPS];
};

/* Something that a thread looks at while it spins: `width` bytes (1, 2, 4 or 8) at base + scale * index + disp while its pc is in
 * [low, high), which changes neither register. Planned by the driver; read by the runtime, in ticks. */
struct ca_spin {
	uint32_t module;
	uint8_t width, scale;
	uint8_t base, index; /* by the numbers of unwind rows; 0xff: none */
	int64_t disp;        /* with neither: a file address */
	uint64_t low, high;  /* file addresses */
};

#endif
