/* SPDX-License-Identifier: MIT */
/* The line table of one unit. Private to binary/. */
#ifndef CA_BINARY_INDEX_LINE_TABLE_H
#define CA_BINARY_INDEX_LINE_TABLE_H
#include "binary/index/cursor.h"
#include "binary/index/object.h"
#include "core/strings.h"

/* The sections that line tables live in; data NULL where one is absent. */
struct ca_line_sections {
	const Elf_Data *line, *str, *line_str;
};
/* A line table's header: its files as ids in a worker's strings, and the program. */
struct ca_line_table {
	struct ca_vec files;   /* uint32_t: string; index as DWARF of this version counts */
	struct ca_vec folders; /* uint32_t */
	struct ca_cursor program;
	unsigned version, min_length, max_ops, line_range, opcode_base;
	int line_base;
	bool default_is_stmt;
	uint8_t lengths[256]; /* operands of standard opcodes */
};

/* Read the header at `offset`. folder: the unit's compilation directory, name: its file, both
 * may be NULL. False: damaged. To be freed in either case. */
bool ca_line_table_read(struct ca_line_table *table, const struct ca_line_sections *sections, uint64_t offset,
			const char *folder, const char *name, struct ca_strings *strings);
void ca_line_table_free(struct ca_line_table *table);
/* The string of a file number; 0 if there is no such file. */
uint32_t ca_line_table_file(const struct ca_line_table *table, uint64_t number);
/* Run the program: append the lines of the object's text (struct ca_record_line). False: damaged, nothing is added. */
bool ca_line_table_run(const struct ca_line_table *table, const struct ca_object *object,
		       struct ca_vec *lines);

#endif
