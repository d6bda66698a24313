/* SPDX-License-Identifier: MIT */
/* Progress points of the command line, or chosen by the conductor while the program runs. */
#ifndef CA_CAUSAL_RUNTIME_REQUESTED_H
#define CA_CAUSAL_RUNTIME_REQUESTED_H
#include "causal/runtime/rt.h"

struct ca_loaded;
struct ca_index;
/* Place the sites that the conductor has published for a module. */
CA_HIDDEN CA_SIGSAFE void ca_requested_place(const struct ca_loaded *loaded, const struct ca_index *index);
/* Before main: give the conductor time for the libraries in which points may lie. */
CA_HIDDEN void ca_requested_wait(void);
/* True once for each time that the conductor has published more sites, which may be for modules
 * that are there already: then all are to be placed anew. */
CA_HIDDEN CA_SIGSAFE bool ca_requested_changed(void);

#endif
