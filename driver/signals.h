/* SPDX-License-Identifier: MIT */
/* Signals of the driver: taken from a descriptor, never in a handler. */
#ifndef CA_DRIVER_SIGNALS_H
#define CA_DRIVER_SIGNALS_H
#include "core/status.h"
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct ca_signals {
	int fd;
	sigset_t old;                                   /* mask that was in force: the children's */
	struct sigaction old_pipe, old_size, old_child; /* SIGPIPE, SIGXFSZ, SIGCHLD */
	int toggle;                                     /* 0: none */
	bool toggled; /* it came an odd number of times; whoever obeys takes it back */
};

/* From here on SIGINT, SIGTERM, SIGQUIT, SIGHUP and SIGCHLD arrive at fd. A signal that was ignored
 * when we were started stays so. SIGPIPE does nothing: who reads our messages may end before us, and the
 * results are still to be written. Nor does SIGXFSZ: that there is no room is said, as on a full disk. */
enum ca_status ca_signals_open(struct ca_signals *signals, struct ca_err *err);
/* From here on this one (enum ca_toggle, core/settings.h) arrives, too, and only sets `toggled`. */
void ca_signals_toggle(struct ca_signals *signals, int which);
void ca_signals_close(struct ca_signals *signals);
/* All as it was before, as in a child. */
void ca_signals_restore(const struct ca_signals *signals);
/* Wait up to ms for one. Returns its number, 0 for none. *terminal: it came from a key press,
 * which every process of the foreground group has been sent. */
int ca_signals_wait(struct ca_signals *signals, int ms, bool *terminal);
/* The same while a child runs: it is handed on. *stopped keeps the last, *status is the child's. True: it has
 * ended, and has been waited for. */
bool ca_signals_attend(struct ca_signals *signals, int ms, pid_t child, int *stopped, int *status);
/* Die of it as if we had not caught it; returns if that fails. */
void ca_signals_die(int number);

#endif
