/* SPDX-License-Identifier: MIT */
/* libcausal-code.so, which libcausal.so loads when a function is to be wrapped that nobody imports: its own code
 * is changed, by the runtime's means. Ordinary context, one thread at a time. */
#ifndef CA_CAUSAL_LIBRARY_WRAP_CODE_H
#define CA_CAUSAL_LIBRARY_WRAP_CODE_H
#include "core/err.h"
#include "core/site.h"
#include "include/causal_wrap.h"

/* Of a function; lives as long as the program. */
struct ca_wrap_code {
	causal_wrap_code *_Atomic slot; /* where its calls go; NULL: on */
	causal_wrap_code *copy;         /* the function, whatever its calls do */
	struct ca_site site;
};

/* Calls of the function, which is called so or FILE.c:so, follow the slot from now on. An errno, or 0. */
typedef int ca_wrap_code_place_function(struct ca_wrap_code *code, const char *symbol, struct ca_err *err);
/* Its code is as it was, where that can be done now. */
typedef void ca_wrap_code_restore_function(struct ca_wrap_code *code);
/* What libcausal-code.so exports. */
extern __attribute__((visibility("default"))) ca_wrap_code_place_function ca_wrap_code_place;
extern __attribute__((visibility("default"))) ca_wrap_code_restore_function ca_wrap_code_restore;

#endif
