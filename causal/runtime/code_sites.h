/* SPDX-License-Identifier: MIT */
/* Places in the program's code that were made to be patched: one no-operation instruction each. */
#ifndef CA_CAUSAL_RUNTIME_CODE_SITES_H
#define CA_CAUSAL_RUNTIME_CODE_SITES_H
#include "causal/runtime/rt.h"
#include "core/site.h"
#include "include/causal_trace.h"
#include "sampler/modules.h"

enum { CA_NOP_LENGTH = 5 };

/* What the events of causal_trace.h call. Set before they are switched on. */
extern CA_HIDDEN causal_trace_raise_ *ca_code_sites_raise;
/* Libraries have gone so often, from 1 on: what was known by addresses of theirs is looked up anew. */
extern CA_HIDDEN _Atomic uint32_t ca_code_sites_generation;
/* One more has. */
CA_HIDDEN CA_SIGSAFE void ca_code_sites_forget(void);
/* Nobody wants what is of this key: the program's own code leaves it out. Another one that wants its place
 * in the table may have it. */
CA_HIDDEN CA_SIGSAFE void ca_code_sites_off(const struct causal_trace_key_ *key);

/* Switch the module's events on, if this run traces. They stay on. By whoever patches. */
CA_HIDDEN CA_SIGSAFE void ca_code_sites_place(const struct ca_loaded *l);
/* Fill *site for the no-operation instruction at `address` of the file, 5 bytes, which becomes a way to
 * `target`. False: none stands there. Its kind is COUNT: it stays. */
CA_HIDDEN CA_SIGSAFE bool ca_code_sites_nop(const struct ca_loaded *l, uint64_t address, uint64_t target,
					    struct ca_site *site);

#endif
