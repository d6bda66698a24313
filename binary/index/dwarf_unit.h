/* Reading one DWARF unit. Private to binary/. */
#ifndef CA_BINARY_INDEX_DWARF_UNIT_H
#define CA_BINARY_INDEX_DWARF_UNIT_H
#include "binary/index/build.h"
#include "binary/index/dwarf_lines.h"
#include <elfutils/libdw.h>

/* What one thread collects; strings are its own. */
struct ca_dwarf_worker {
	const struct ca_build *build;
	Elf *elf;
	Dwarf *dwarf;
	void *job;     /* of dwarf.c */
	uint32_t unit; /* number of the unit being read */
	struct ca_strings strings;
	struct ca_vec lines;       /* struct ca_record_line */
	struct ca_vec inlines;     /* struct ca_inlined */
	struct ca_vec subprograms; /* struct ca_subprogram */
	struct ca_vec warnings;    /* strings */
	struct ca_map names;       /* DIE to its demangled name */
	struct ca_map scopes;      /* DIE to "ns::type::"; units that are done */
	struct ca_line_sections sections;
	Dwarf_CU *other; /* whose table `other_table` is: origins in other units (LTO, dwz) */
	struct ca_line_table other_table;
	uint32_t owners; /* subprograms so far */
	bool has_lines, incomplete;
};
struct ca_inlined {
	uint32_t low, high;
	uint32_t depth, owner;
	uint32_t name, call_file, call_line;
	uint32_t reserved;
};

/* A unit by its first DIE and its number. What is broken in it is left out, with one warning. */
void ca_dwarf_unit(struct ca_dwarf_worker *worker, Dwarf_Die *die, uint32_t unit);
void ca_dwarf_warn(struct ca_dwarf_worker *worker, const char *format, ...) CA_PRINTF(2, 3);

#endif
