/* SPDX-License-Identifier: MIT */
/* What the sampler asks of the program part that uses it: the only thing it knows of that part.
 * All of them may be called in handlers. */
#ifndef CA_SAMPLER_HOST_H
#define CA_SAMPLER_HOST_H
#include "core/module.h"
#include <stdbool.h>
#include <stdint.h>

struct ca_sampler_host {
	/* The number of the image's module, from 1 to CA_MAX_MODULES - 1, the same for the same
	 * image; guess: what it most likely is, or 0. Returns 0 when there is no room. */
	uint32_t (*enlist)(const struct ca_image *image, uint32_t guess);
	/* The path of its index once that may be mapped, else NULL. */
	const char *(*index_path)(uint32_t module);
	/* Is pc in code that stands in for the program's? Then *original is the equivalent address
	 * in its text, and *sp_shift what to add to sp to get its own. NULL: nothing is patched. */
	bool (*translate)(uintptr_t pc, uintptr_t *original, intptr_t *sp_shift);
};
/* Filled in before the first scan and the first walk. */
extern struct ca_sampler_host ca_sampler_host;

#endif
