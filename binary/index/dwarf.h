/* SPDX-License-Identifier: MIT */
/* Debug information: lines, inlined calls, subprograms. */
#ifndef CA_BINARY_INDEX_DWARF_H
#define CA_BINARY_INDEX_DWARF_H
#include "binary/index/object.h"
#include "binary/index/warnings.h"

/* Where the records go. */
struct ca_dwarf {
	struct ca_strings *strings;
	struct ca_vec *lines;       /* struct ca_record_line, sorted */
	struct ca_vec *inlines;     /* struct ca_record_inline, sorted, `parent` not set */
	struct ca_vec *subprograms; /* struct ca_subprogram, sorted */
	bool has_lines;
	bool incomplete; /* something is missing that may appear later (.dwo) */
};
/* Read what the object has. False: no memory. */
bool ca_dwarf_read(const struct ca_object *object, struct ca_dwarf *out, struct ca_warnings *warnings);

#endif
