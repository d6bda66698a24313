/* SPDX-License-Identifier: MIT */
/* The signals that are ours. */
#ifndef CA_CAUSAL_RUNTIME_SIGNALS_H
#define CA_CAUSAL_RUNTIME_SIGNALS_H
#include "causal/runtime/rt.h"
#include <signal.h>

/* Take CA_SIGNAL for good; the program's action for it lives on as a shadow. */
CA_HIDDEN bool ca_signals_take(const struct sigaction *action);
/* CA_SIGNAL came, and not from us: do what the program wants done. In the handler. */
CA_HIDDEN CA_SIGSAFE void ca_signals_forward(siginfo_t *info, void *context);
/* Masks that the program sets: ours are never blocked, except in a wait that would otherwise
 * end with EINTR. NULL stays NULL. */
CA_HIDDEN const sigset_t *ca_signals_open_mask(const sigset_t *set, sigset_t *copy);
CA_HIDDEN const sigset_t *ca_signals_wait_mask(const sigset_t *set, sigset_t *copy);
/* Of a set of signals that the program wants to be given: ours does not come to it that way. */
CA_HIDDEN const sigset_t *ca_signals_without_ours(const sigset_t *set, sigset_t *copy);
/* The program's sigaction for our signal: remembered and answered here. False: for another one. */
CA_HIDDEN bool ca_signals_shadow(int signal, const struct sigaction *set, struct sigaction *old);

#endif
