/* SPDX-License-Identifier: MIT */
/* Status codes, and what declarations say of themselves.
 *
 * For: every fallible function of every layer. Not for: printing (lower layers
 * never print; the driver decides). */
#ifndef CA_CORE_STATUS_H
#define CA_CORE_STATUS_H
#include "core/err.h"

/* On a declaration: may run in a signal handler. Calls only such functions;
 * no lock, no malloc, no stdio; bounded time; errno kept. */
#define CA_SIGSAFE

/* A short noun phrase for a status, never NULL. */
const char *ca_status_name(enum ca_status status);

#endif
