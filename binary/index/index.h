/* SPDX-License-Identifier: MIT */
/* The index of one binary: what DWARF, symbols, CFI and notes say, in a file that
 * is mapped read-only. Built by the driver (binary/index/build.c, libdw), cached by
 * build-id; looked up by the conductor and, the unwind rows, by the runtime.
 *
 * Addresses are file addresses (as in the ELF file, before the load bias).
 * Everything marked CA_SIGSAFE reads the mapping only. */
#ifndef CA_BINARY_INDEX_INDEX_H
#define CA_BINARY_INDEX_INDEX_H
#include "core/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ca_index; /* an open, mapped index */

/* Rules to step from one frame to its caller; CFA = reg + offset. */
enum ca_unwind_kind {
	CA_UNWIND_NONE,   /* no rule: stop */
	CA_UNWIND_SP,     /* CFA = sp + cfa_offset */
	CA_UNWIND_FP,     /* CFA = fp + cfa_offset */
	CA_UNWIND_REG,    /* CFA = another register + cfa_offset. Of callers, too, by rbx (the dynamic
			   * linker, while it binds a call) and by what a call need not keep (assembly
			   * that calls assembly); by others in the innermost frame only */
	CA_UNWIND_DEREF,  /* CFA = *(fp + cfa_offset) (gcc's stack realignment); here the saved
			   * fp is at fp + fp_offset, also when that is 0 */
	CA_UNWIND_PLT,    /* what linkers write for .plt:
			   * CFA = sp + cfa_offset + ((pc & 15) >= reg ? 8 : 0) */
	CA_UNWIND_SIGNAL, /* signal frame: registers are in the ucontext above sp */
	CA_UNWIND_SP8,    /* CFA = sp + 8 * cfa_offset: frames of 32 KiB to 256 KiB */
	/* as SP and REG, in the first and last instructions of such realigned frames: saved fp at fp + fp_offset */
	CA_UNWIND_SP_BY_FP,
	CA_UNWIND_REG_BY_FP,
	CA_UNWIND_SP_DEREF /* CFA = *(sp + cfa_offset) + 8 * reg (assembly's realignment) */
};
/* Are registers saved at fp + offset, and not at CFA + offset? */
CA_SIGSAFE static inline bool ca_index_saves_by_fp(unsigned kind)
{
	return kind == CA_UNWIND_DEREF || kind == CA_UNWIND_SP_BY_FP || kind == CA_UNWIND_REG_BY_FP;
}
struct ca_unwind_row {
	uint32_t address; /* file address - index base; row is valid up to the next */
	int16_t cfa_offset;
	int16_t fp_offset; /* saved fp at CFA + fp_offset; 0: fp unchanged */
	uint8_t kind : 4;  /* enum ca_unwind_kind */
	uint8_t reg : 4;   /* DWARF number, for CA_UNWIND_REG; words, for CA_UNWIND_SP_DEREF; for
			    * CA_UNWIND_NONE: 1 where the CFI says that the stack ends here, 0 where
			    * nothing is known */
	int8_t bx_words;   /* saved rbx at CFA (or fp) + 8 * bx_words; 0: rbx
			    * unchanged; CA_UNWIND_LOST: not known from here on */
	int16_t ra_offset; /* return address at CFA + ra_offset; 0: no caller */
};
enum { CA_UNWIND_LOST = INT8_MIN };

struct ca_index_function {
	uint64_t low, high;  /* [low, high) */
	const char *name;    /* demangled; "" never. Borrowed from the mapping */
	const char *linkage; /* symbol name, may be "" */
	const char *file;    /* of the definition, or "" */
	uint32_t line;       /* 0 if unknown */
	bool synthetic;      /* from .eh_frame only: name is like "sub_1a2b0" */
	bool part;           /* a further range of a function, such as gcc's foo.cold; has
			      * the name of that function */
};
struct ca_index_span {
	uint64_t low, high;
};
struct ca_index_line {
	uint64_t low, high;
	const char *file;
	uint32_t line;
	bool is_stmt;
};
struct ca_index_inline {
	uint64_t low, high;
	const char *name;      /* demangled name of the inlined function */
	const char *file;      /* of its definition; "" if not known */
	const char *call_file; /* where it was inlined */
	uint32_t line, call_line;
	uint32_t depth; /* 1: directly inside a real function */
};
struct ca_index_probe { /* a SystemTap SDT note */
	uint64_t address;
	const char *provider, *name, *arguments;
	uint64_t semaphore; /* 0 if none */
};

enum ca_index_want {
	CA_INDEX_UNWIND = 1, /* rows, symbols and notes only: no DWARF is read */
	CA_INDEX_FULL = 2    /* lines, functions, inlined calls as well */
};

/* Map the index of the binary at `path` from the cache, or build and cache it.
 * warnings (may be NULL) is called for each part that had to be left out. */
typedef void ca_index_warning(void *context, const char *text);
enum ca_status ca_index_open(struct ca_index **index, const char *path, enum ca_index_want want,
			     ca_index_warning *warning, void *context, struct ca_err *err);
/* Map a finished index file; no malloc, no libdw: the runtime's way in. */
enum ca_status ca_index_map(struct ca_index **index, const char *index_path);
void ca_index_close(struct ca_index *index);

const char *ca_index_path(const struct ca_index *index);   /* of the index file */
const char *ca_index_binary(const struct ca_index *index); /* path it was built from */
bool ca_index_has_lines(const struct ca_index *index);

size_t ca_index_functions(const struct ca_index *index);
size_t ca_index_lines(const struct ca_index *index);
size_t ca_index_inlines(const struct ca_index *index);
size_t ca_index_probes(const struct ca_index *index);
/* The i-th, sorted by address; i must be below the number. */
void ca_index_function_at(const struct ca_index *index, size_t i, struct ca_index_function *out);
void ca_index_line_at(const struct ca_index *index, size_t i, struct ca_index_line *out);
void ca_index_inline_at(const struct ca_index *index, size_t i, struct ca_index_inline *out);
CA_SIGSAFE void ca_index_probe_at(const struct ca_index *index, size_t i, struct ca_index_probe *out);

/* All ranges of the function that the i-th belongs to, the i-th first: body and .cold parts.
 * Fills at most max; returns how many there are. */
size_t ca_index_function_ranges(const struct ca_index *index, size_t i, struct ca_index_span *out,
				size_t max);

/* Whoever covers the address; false if nobody. Of nested functions the innermost. */
bool ca_index_find_function(const struct ca_index *index, uint64_t address, struct ca_index_function *out);
/* The same as a number for ca_index_function_at; SIZE_MAX if nobody. */
size_t ca_index_find_function_number(const struct ca_index *index, uint64_t address);
bool ca_index_find_line(const struct ca_index *index, uint64_t address, struct ca_index_line *out);
/* The chain of inlined calls that covers the address, outermost first; returns how many (<= max).
 */
size_t ca_index_find_inlines(const struct ca_index *index, uint64_t address, struct ca_index_inline *out,
			     size_t max);

/* All unwind rows, sorted; what their addresses are relative to. */
size_t ca_index_rows(const struct ca_index *index);
const struct ca_unwind_row *ca_index_row_at(const struct ca_index *index, size_t i);
CA_SIGSAFE uint64_t ca_index_base(const struct ca_index *index);

/* The row that covers the address (of kind CA_UNWIND_NONE where there is no CFI); NULL if the
 * binary does not reach there. Under 100 ns. */
CA_SIGSAFE const struct ca_unwind_row *ca_index_find_row(const struct ca_index *index, uint64_t address);

#endif
