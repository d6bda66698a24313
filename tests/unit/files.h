/* SPDX-License-Identifier: MIT */
/* How many descriptors this process has, to see that none is left over. */
#ifndef CA_TESTS_UNIT_FILES_H
#define CA_TESTS_UNIT_FILES_H
#include "tests/unit/unit.h"
#include <dirent.h>

static inline unsigned open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

#endif
