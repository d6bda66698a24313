/* SPDX-License-Identifier: MIT */
/* Small programs compiled while the tests run, and a cache directory of their own. */
#ifndef CA_TESTS_BINARY_FIXTURE_H
#define CA_TESTS_BINARY_FIXTURE_H
#include "binary/index/index.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 512, WARNINGS = 16 };

/* A directory that fixture_remove deletes; XDG_CACHE_HOME points into it. */
static char fixture_directory[PATH_SIZE];
/* The warnings of the last fixture_open, one after the other. */
static char fixture_warnings[WARNINGS * 512];
static int fixture_warned;

static inline int fixture_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline int fixture_run(const char *format, ...)
{
	char command[8192];
	va_list args;
	int n;

	va_start(args, format);
	n = snprintf(command, sizeof(command), "cd '%s' && ", fixture_directory);
	vsnprintf(command + n, sizeof(command) - (size_t)n, format, args);
	va_end(args);
	return system(command);
}

static inline const char *fixture_cc(void)
{
	const char *cc = getenv("CC");

	return cc && *cc ? cc : "cc";
}

static inline const char *fixture_cxx(void)
{
	const char *cxx = getenv("CXX");

	return cxx && *cxx ? cxx : "c++";
}

static inline int fixture_make(void **state)
{
	char cache[PATH_SIZE + 16];

	(void)state;
	snprintf(fixture_directory, sizeof(fixture_directory), "/tmp/causal-test-XXXXXX");
	if (!mkdtemp(fixture_directory))
		return -1;
	snprintf(cache, sizeof(cache), "%s/cache", fixture_directory);
	return setenv("XDG_CACHE_HOME", cache, 1);
}

static inline int fixture_remove(void **state)
{
	char command[PATH_SIZE + 16];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", fixture_directory);
	return system(command);
}

static inline const char *fixture_path(const char *name)
{
	static char path[4][2 * PATH_SIZE];
	static unsigned next;
	char *out = path[next++ % 4];

	snprintf(out, sizeof(path[0]), "%s/%s", fixture_directory, name);
	return out;
}

static inline void fixture_write(const char *name, const char *text)
{
	FILE *file = fopen(fixture_path(name), "w");

	if (!file || fputs(text, file) < 0 || fclose(file) != 0)
		abort();
}

static inline void fixture_warning(void *context, const char *text)
{
	size_t n = strlen(fixture_warnings);

	(void)context;
	fixture_warned++;
	snprintf(fixture_warnings + n, sizeof(fixture_warnings) - n, "%s\n", text);
}

/* By name in the fixture directory, or by absolute path. Fails the test's caller with NULL. */
static inline struct ca_index *fixture_open(const char *name, enum ca_index_want want)
{
	struct ca_index *index;
	struct ca_err err;

	fixture_warned = 0;
	fixture_warnings[0] = '\0';
	if (ca_index_open(&index, name[0] == '/' ? name : fixture_path(name), want, fixture_warning, NULL,
			  &err) == CA_OK)
		return index;
	fprintf(stderr, "%s: %s\n", name, err.text);
	return NULL;
}

#endif
