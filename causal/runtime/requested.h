/* Progress points that the conductor chooses while the program runs. See wanted.c. */
#ifndef CA_CAUSAL_RUNTIME_REQUESTED_H
#define CA_CAUSAL_RUNTIME_REQUESTED_H
#include "causal/runtime/rt.h"

/* True once for each time that the conductor has published more sites, which may be for modules
 * that are there already: then all are to be placed anew. */
CA_HIDDEN CA_SIGSAFE bool ca_requested_changed(void);

#endif
