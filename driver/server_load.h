/* SPDX-License-Identifier: MIT */
/* The load of a server (--load): started when the server listens, as a part of the run; when it ends, the server is
 * told to end (SIGTERM), and so it is when the experiments are over. Driver's process, one thread. */
#ifndef CA_DRIVER_SERVER_LOAD_H
#define CA_DRIVER_SERVER_LOAD_H
#include "core/vec.h"
#include "driver/environ.h"
#include "driver/signals.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ca_server_load {
	const struct ca_settings *settings;
	const char *command;    /* theirs; NULL: there is none, and nothing is done */
	struct ca_vec before;   /* uint64_t: inodes of sockets that listened before the server was started */
	size_t listeners;       /* sockets that listen since then ... */
	uint64_t listens_since; /* ns: ... and when there were others last */
	uint64_t started;       /* ns: the server */
	uint64_t told;          /* ns: the server was told to end; 0: not yet */
	pid_t pid, group; /* it leads one of its own; pid is 0 where it does not run (yet, or any more) */
	int status;       /* it has ended with; 0 also if we have ended it */
	uint64_t stopped; /* ns: we have told it to end; 0: not yet */
	bool begun;
	bool done; /* it has come to its own end */
};

/* Before the server starts. The settings stay the caller's, who keeps them until it is closed. */
void ca_server_load_open(struct ca_server_load *load, const struct ca_settings *settings);
/* At each step, while the server runs. environment: the server's, which it needs no more; it becomes the load's.
 * over: the experiments are. */
void ca_server_load_step(struct ca_server_load *load, struct ca_environ *environment,
			 const struct ca_signals *signals, pid_t server, bool over);
/* The server has ended with *wait_status, which becomes 0 if that is because we told it to. The load ends too.
 * Returns 0, or the exit status of a load that failed, which has been said. */
int ca_server_load_close(struct ca_server_load *load, int *wait_status);

#endif
