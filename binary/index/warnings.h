/* SPDX-License-Identifier: MIT */
/* What a reader had to leave out, in words for the user. The words go into the index, so that a
 * cached one gives them again. Driver's process; one thread each. */
#ifndef CA_BINARY_INDEX_WARNINGS_H
#define CA_BINARY_INDEX_WARNINGS_H
#include "core/status.h"
#include "core/strings.h"

struct ca_warnings {
	struct ca_strings *strings; /* hold the words */
	struct ca_vec *list;        /* uint32_t: where in strings */
};
void ca_warnings_add(struct ca_warnings *warnings, const char *format, ...) CA_PRINTF(2, 3);

#endif
