/* SPDX-License-Identifier: MIT */
/* Scopes: which binaries, source lines and functions may be selected.
 * Driver's process only. POSIX extended regular expressions, searched, OR-ed. */
#ifndef CA_BINARY_SCOPE_H
#define CA_BINARY_SCOPE_H
#include "binary/index/index.h"
#include "core/status.h"
#include <stdbool.h>

struct ca_scope;

/* Lists as in the settings: patterns separated by ';' or tab; NULL or "": default.
 * function_defaults: apply the default excludes of FEATURES A.1. */
struct ca_scope_spec {
	const char *binary, *source, *function;
	const char *binary_exclude, *source_exclude, *function_exclude;
	bool function_defaults;
	bool function_mode; /* main is never selected in function mode */
};
/* A bad expression: CA_ERR_USAGE with the expression, the reason and the setting. */
enum ca_status ca_scope_new(struct ca_scope **scope, const struct ca_scope_spec *spec, struct ca_err *err);
void ca_scope_free(struct ca_scope *scope);
/* main: it is the executable of a process of the run (matches MAIN and %MAIN%). */
bool ca_scope_has_binary(const struct ca_scope *scope, const char *path, bool main);
/* No binaries were named: the executables, and by and by what the samples show (causal/conductor/follow.h). */
bool ca_scope_follows(const struct ca_scope *scope);
/* May a binary be taken into such a scope? */
enum ca_scope_use {
	CA_SCOPE_MAY_TAKE = 1,
	CA_SCOPE_LEAVE,   /* libc, the C++ and OpenMP runtimes and their like: only if it is named */
	CA_SCOPE_EXCLUDED /* never: the loader, causal itself, and what the user leaves out */
};
enum ca_scope_use ca_scope_use_of(const struct ca_scope *scope, const char *path);
bool ca_scope_has_function(const struct ca_scope *scope, const char *name);
/* Does the function filter let main through? Function mode has it in no scope. */
bool ca_scope_names_main(const struct ca_scope *scope);
bool ca_scope_has_line(const struct ca_scope *scope, const char *file, unsigned line);
/* The source filter is set at all (then code without lines is out of scope). */
bool ca_scope_has_source_filter(const struct ca_scope *scope);

/* For -B: what matches the library in each of its versions. */
void ca_scope_pattern(const char *path, char *buffer, size_t size);

#endif
