/* SPDX-License-Identifier: MIT */
/* What the machine and the program's processes do, measured now and then: CPU frequency and load, memory, faults,
 * CPU time, input and output. A thread of the driver reads it all from /proc and /sys, and writes a file of JSON lines
 * (doc/FORMAT.md); the conductor's thread gets the same as counters for the sinks. Nothing of it runs in the program. */
#ifndef CA_CAUSAL_CONDUCTOR_HOST_H
#define CA_CAUSAL_CONDUCTOR_HOST_H
#include "core/dict.h"
#include "core/sink.h"
#include "core/status.h"

struct ca_host;
struct ca_session;
struct ca_settings;

/* The thread begins. All borrowed; path: of the file. */
enum ca_status ca_host_new(struct ca_host **host, const struct ca_settings *settings,
			   struct ca_session *session, const char *path, struct ca_err *err);
/* The same one as all others: between windows nothing is measured. */
void ca_host_follow(struct ca_host *host, bool open);
/* Hand on what has been measured since the last time; NULL: to nobody. */
void ca_host_drain(struct ca_host *host, struct ca_sinks *sinks, struct ca_dict *dict);
/* The thread ends; frees. CA_ERR_IO: what the file lacks. NULL is fine. */
enum ca_status ca_host_close(struct ca_host *host, struct ca_sinks *sinks, struct ca_dict *dict,
			     struct ca_err *err);

#endif
