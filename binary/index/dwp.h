/* Split DWARF in packages (.dwp). Private to binary/. */
#ifndef CA_BINARY_INDEX_DWP_H
#define CA_BINARY_INDEX_DWP_H
#include "binary/index/build.h"

/* A package taken apart: a directory with files that libdw can read. */
struct ca_dwp {
	char directory[64]; /* "" if there is no package */
	int fd;             /* stands for the file with the skeletons; -1 if there is none */
	size_t files;
};
/* If the binary has a package, unpack it. Trouble is a warning, and no package. */
void ca_dwp_unpack(struct ca_build *build, struct ca_dwp *dwp);
/* Remove it all again. */
void ca_dwp_remove(struct ca_dwp *dwp);

#endif
