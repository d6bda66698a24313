/* SPDX-License-Identifier: MIT */
/* The modules of this process: which file covers an address, and its index.
 *
 * Found by reading /proc/self/maps and the ELF headers in memory, never through the
 * loader, so that libraries opened later are found from a signal handler without its
 * lock. Tables are replaced whole; readers use one without locks. Runtime. */
#ifndef CA_SAMPLER_MODULES_H
#define CA_SAMPLER_MODULES_H
#include "binary/index/index.h"
#include <stdbool.h>
#include <stdint.h>

struct ca_loaded {
	uintptr_t low, high;                    /* executable mapping, [low, high) */
	uintptr_t bias;                         /* address = file address + bias */
	uintptr_t head;                         /* where the file's first byte is mapped */
	uint32_t module;                        /* its number, by the host */
	_Atomic(const struct ca_index *) index; /* NULL: not yet, or never */
	bool mark, events, ready;               /* the host's own; false for a module that is new here */
	/* what its headers said when they were read; build_id_at: 0: it has none */
	uintptr_t build_id_at;
	uint32_t build_id_length;
	uint8_t build_id[32];
};

/* Read the maps again and enlist what is new with the host (host.h). Handler-safe; only one
 * thread at a time does it, others return at once. Returns true if anything was added or has
 * gone. */
CA_SIGSAFE bool ca_modules_scan(void);
/* NULL: no known module covers pc. Maps the index when it has been made. */
CA_SIGSAFE struct ca_loaded *ca_modules_find(uintptr_t pc);
/* Is pc in executable memory of no file, where compilers put code that they make at run time? As of the last scan. */
CA_SIGSAFE bool ca_modules_has_range(uintptr_t pc);
/* How often the maps were read: what was known of an address before may hold no longer. */
CA_SIGSAFE uint64_t ca_modules_scans(void);
/* The load bias of a module by its id; false: not loaded here. */
CA_SIGSAFE bool ca_modules_bias(uint32_t module, uintptr_t *bias);
/* The i-th loaded module, or NULL past the end; for walking all of them. */
CA_SIGSAFE struct ca_loaded *ca_modules_at(unsigned i);
/* Map the module's index if it has been made; NULL: not there (yet). */
CA_SIGSAFE const struct ca_index *ca_modules_index(struct ca_loaded *loaded);

/* The readable and writable mapping around an address, such as a stack; false: not known. */
CA_SIGSAFE bool ca_modules_mapping(uintptr_t address, uintptr_t *low, uintptr_t *high);
/* In the child of a fork: another thread of the parent may have been scanning. */
CA_SIGSAFE void ca_modules_forked(void);

#endif
