/* What the parts of the index builder share. Private to binary/; driver's process. */
#ifndef CA_BINARY_INDEX_BUILD_H
#define CA_BINARY_INDEX_BUILD_H
#include "binary/index/index_file.h"
#include "binary/index/object.h"
#include "core/strings.h"

/* An index in the making. All addresses in records are relative to object.base. */
struct ca_build {
	struct ca_object object;
	enum ca_index_want want;
	ca_index_warning *warning;
	void *context;
	struct ca_strings strings;
	uint32_t binary;              /* the path, in strings */
	struct ca_vec part[CA_PARTS]; /* finished records; the strings stay in `strings` */
	struct ca_vec frames;         /* struct ca_frame: ranges of all FDEs, sorted */
	struct ca_vec subprograms;    /* struct ca_subprogram: what DWARF knows of functions */
	bool has_lines;
	bool incomplete; /* something is missing that may appear later (.dwo): do not cache */
};
struct ca_frame {
	uint32_t low, high;
};
/* One range of one DWARF subprogram. */
struct ca_subprogram {
	uint32_t low, high;
	uint32_t owner;         /* the same for all ranges of one function, unique in the build */
	uint32_t unit;          /* that says so; of several the first is believed */
	uint32_t name, linkage; /* name: demangled; linkage may be "" */
	uint32_t file, line;
	bool entry; /* the range that starts with the function's first instruction */
};

/* Tell the user and remember it in the index, so that a cached one tells again. */
void ca_build_warn(struct ca_build *build, const char *format, ...) CA_PRINTF(2, 3);
/* [low, high) relative to the base; false if it does not lie within one text section. */
bool ca_build_range(const struct ca_build *build, uint64_t low, uint64_t high, uint32_t *from,
		    uint32_t *to);

/* Unwind rows and frames from .eh_frame, else .debug_frame. */
void ca_cfi_read(struct ca_build *build);
/* Lines, inlined calls and subprograms, if there is debug information. False: no memory. */
bool ca_dwarf_read(struct ca_build *build);
/* Functions from symbols, then `subprograms`, then `frames`. */
void ca_symbols_read(struct ca_build *build);
/* Probes from .note.stapsdt. */
void ca_usdt_read(struct ca_build *build);
/* Sets parent in records that start with low, high (sorted by low, longest first). */
void ca_build_nest(struct ca_vec *vec, size_t parent_offset);
/* Write the finished parts as an index file into fd. */
enum ca_status ca_write_index(const struct ca_build *build, int fd);

/* Demangled, malloc'd, or NULL if the name is not a mangled one (C++, Rust, D). */
char *ca_demangle(const char *name);

#endif
