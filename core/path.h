/* SPDX-License-Identifier: MIT */
/* The parts of a path. */
#ifndef CA_CORE_PATH_H
#define CA_CORE_PATH_H
#include <string.h>

/* The last part of it; borrowed from path. A path that ends in '/' is its own. */
static inline const char *ca_path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

#endif
