/* SPDX-License-Identifier: MIT */
/* Reading one DWARF unit. Private to binary/. */
#ifndef CA_BINARY_INDEX_DWARF_UNIT_H
#define CA_BINARY_INDEX_DWARF_UNIT_H
#include "binary/index/line_table.h"
#include "binary/index/warnings.h"
#include <elfutils/libdw.h>

/* What one thread collects; strings are its own. */
struct ca_dwarf_worker {
	const struct ca_object *object;
	Elf *elf;
	Dwarf *dwarf;
	void *job;     /* of dwarf.c */
	uint32_t unit; /* number of the unit being read */
	struct ca_strings strings;
	struct ca_vec lines;       /* struct ca_record_line */
	struct ca_vec inlines;     /* struct ca_inlined */
	struct ca_vec subprograms; /* struct ca_subprogram */
	struct ca_vec warned;      /* uint32_t: string */
	struct ca_warnings warnings;
	struct ca_map names;  /* DIE to its demangled name */
	struct ca_map files;  /* attribute DW_AT_decl_file in another unit to its path */
	struct ca_map scopes; /* DIE to "ns::type::"; units that are done */
	struct ca_line_sections sections;
	Dwarf_CU *other; /* whose table `other_table` is: origins in other units (LTO, dwz) */
	struct ca_line_table other_table;
	uint32_t owners; /* subprograms so far */
	bool has_lines, incomplete;
};
/* One range of one DWARF subprogram. */
struct ca_subprogram {
	uint32_t low, high;
	uint32_t owner;         /* the same for all ranges of one function, unique in the binary */
	uint32_t unit;          /* that says so; of several the first is believed */
	uint32_t name, linkage; /* name: demangled; linkage may be "" */
	uint32_t file, line;
	bool entry; /* the range that starts with the function's first instruction */
};
struct ca_inlined {
	uint32_t low, high;
	uint32_t depth, owner;
	uint32_t name, file, line, call_file, call_line;
};

/* A unit by its first DIE and its number. What is broken in it is left out, with one warning. */
void ca_dwarf_unit_read(struct ca_dwarf_worker *worker, Dwarf_Die *die, uint32_t unit);

#endif
