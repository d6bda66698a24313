/* SPDX-License-Identifier: MIT */
/* Split DWARF in packages (.dwp). Private to binary/. */
#ifndef CA_BINARY_INDEX_DWP_H
#define CA_BINARY_INDEX_DWP_H
#include "binary/index/object.h"
#include "binary/index/warnings.h"

/* A package taken apart: a directory with files that libdw can read. */
struct ca_dwp {
	char directory[64]; /* "" if there is no package */
	int fd;             /* stands for the file with the skeletons; -1 if there is none */
	size_t files;
};
/* If the binary has a package, unpack it. Trouble is a warning, and no package. */
void ca_dwp_unpack(struct ca_dwp *dwp, const struct ca_object *object, struct ca_warnings *warnings);
/* Remove it all again. */
void ca_dwp_remove(struct ca_dwp *dwp);

#endif
