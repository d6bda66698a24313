/* SPDX-License-Identifier: MIT */
/* One name of a progress point, as --progress takes it. Driver's process; a name does not change
 * once it has been read, so any thread may use it then. */
#ifndef CA_CAUSAL_POINTS_POINT_NAME_H
#define CA_CAUSAL_POINTS_POINT_NAME_H
#include "binary/index/index.h"
#include "core/status.h"
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

enum ca_point_name_kind {
	CA_POINT_NAME_LINE,
	CA_POINT_NAME_FUNCTION,
	CA_POINT_NAME_PROBE,
	CA_POINT_NAME_ADDRESS /* an instruction: FUNCTION+0xOFFSET, or 0xADDRESS as in the file */
};

struct ca_point_name {
	enum ca_point_name_kind kind;
	char *text;   /* as written. Owned, and the next three */
	char *binary; /* what stands before '!', or NULL */
	char *name;   /* file, function or expression, provider; "": an address in the file */
	char *probe;  /* CA_POINT_NAME_PROBE: its name */
	unsigned line;
	uint64_t offset; /* CA_POINT_NAME_ADDRESS: from the function's entry, or the address */
	bool is_regex;   /* tried where no function has just that name */
	regex_t regex;
};

enum ca_status ca_point_name_parse(struct ca_point_name *name, const char *text, struct ca_err *err);
void ca_point_name_fini(struct ca_point_name *name);
/* Could the name mean something in this binary? in_scope: its code may be selected. */
bool ca_point_name_applies(const struct ca_point_name *name, const char *path, bool main, bool in_scope);
/* What the index holds that is like it, ready to be written; false: nothing near. */
bool ca_point_name_near(const struct ca_point_name *name, const struct ca_index *index, char *buffer,
			size_t size);

/* Would a function of that name be taken for something else, or taken apart, if it stood alone? */
bool ca_point_name_is_plain(const char *function);
/* Is `path` that file: the same, or with `file` as its last parts? */
bool ca_point_name_is_file(const char *path, const char *file);

#endif
