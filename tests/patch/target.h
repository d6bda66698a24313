/* SPDX-License-Identifier: MIT */
/* The victims as a file to be planned: linked into the test, or in a shared library. */
#ifndef CA_TESTS_PATCH_TARGET_H
#define CA_TESTS_PATCH_TARGET_H
#include "binary/plan/plan.h"
#include "binary/plan/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TARGET_FUNCTIONS = 64, TARGET_SITES = 1024 };

struct target_function {
	char name[64];
	struct ca_range range;
	struct ca_site site[96]; /* of the function; no sites: unsupported */
	size_t sites;
	struct ca_site call[96]; /* of the function taken as one line */
	size_t calls;
};
struct target {
	struct ca_text *text;
	struct target_function function[TARGET_FUNCTIONS];
	size_t functions;
	uint64_t (*run)(uint64_t seed);
	uint64_t *(*visits)(void);
	uint64_t (*in_handler)(uint64_t seed);
};

/* NULL: the test's own executable. Ends the test on any trouble. */
struct target *target_open(const char *library);
bool target_bias(uint32_t module, uintptr_t *bias);
/* The site's bytes are those of the file. */
bool target_is_clean(const struct target_function *f);

#endif
