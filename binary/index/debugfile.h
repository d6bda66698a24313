/* SPDX-License-Identifier: MIT */
/* Separate debug files. */
#ifndef CA_BINARY_INDEX_DEBUGFILE_H
#define CA_BINARY_INDEX_DEBUGFILE_H
#include "binary/index/index.h"
#include <libelf.h>

struct ca_debugfile {
	char *path; /* owned, and the next two */
	int fd;
	Elf *elf; /* NULL: there is no such file */
};
/* Find the debug file of the ELF file that is open as fd and elf, if that has no .debug_info of
 * its own. A file that is there but does not match: a warning. To be closed. */
void ca_debugfile_find(struct ca_debugfile *found, const char *path, int fd, Elf *elf,
		       ca_index_warning *warning, void *context);
void ca_debugfile_close(struct ca_debugfile *file);

#endif
