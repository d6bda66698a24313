/* SPDX-License-Identifier: MIT */
/* Text that is written to a stream of open_memstream. Driver's process. */
#ifndef CA_CORE_MEMSTREAM_H
#define CA_CORE_MEMSTREAM_H
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Closes it. false: *text is NULL, as memory ran out; in glibc 2.36 fclose alone does not tell that. */
static inline bool ca_memstream_end(FILE *out, char **text)
{
	if (fclose(out) == 0 && *text)
		return true;
	free(*text);
	*text = NULL;
	return false;
}

#endif
