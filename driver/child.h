/* SPDX-License-Identifier: MIT */
/* Starting a child with a gate: it execs only when it is released, and an exec that fails is reported.
 * Also: looking a command up as a shell does, and finding ourselves. */
#ifndef CA_DRIVER_CHILD_H
#define CA_DRIVER_CHILD_H
#include "core/status.h"
#include "driver/signals.h"
#include <signal.h>
#include <sys/types.h>

enum { CA_EXIT_USAGE = 2, CA_EXIT_NOT_EXECUTABLE = 126, CA_EXIT_NOT_FOUND = 127 };

struct ca_child {
	pid_t pid;
	int gate;   /* ours to write: one byte lets it go */
	int report; /* ours to read: errno of the exec, or end of file */
};

/* 0, or CA_EXIT_NOT_FOUND or CA_EXIT_NOT_EXECUTABLE with the text in err. */
int ca_child_check(const char *command, struct ca_err *err);
/* Fork. The child has its signals as they were before ca_signals_open and waits at the gate; it dies when we do before
 * that. argv and env must stay until ca_child_release. */
enum ca_status ca_child_start(struct ca_child *child, const char *const *argv, char **env,
			      const struct ca_signals *signals, struct ca_err *err);
/* Let it go, and wait until exec has happened. On failure *exit_status is 126 or 127; the
 * child is gone but not yet waited for. */
enum ca_status ca_child_release(struct ca_child *child, const char *command, int *exit_status,
				struct ca_err *err);
/* The text for a failed exec, and its exit status. */
int ca_child_exec_error(const char *command, int error, struct ca_err *err);

/* 128+N for signal N, otherwise the exit code. */
int ca_child_exit_status(int wait_status);

/* What we exit with when a run could not begin, as a shell would: a damaged program is one that
 * cannot be executed. */
int ca_child_exit_code(enum ca_status status);

/* Our own executable, resolved. Owned by the caller; NULL if /proc does not tell. */
char *ca_child_self(void);

#endif
