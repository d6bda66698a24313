/* SPDX-License-Identifier: MIT */
/* Signals of the driver; see driver/signals.h. */
#include "driver/signals.h"
#include "core/settings.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static void fill(sigset_t *set)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGQUIT, SIGHUP };
	struct sigaction now;

	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	/* a blocked signal comes in even if it is ignored */
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (!sigaction(ends[i], NULL, &now) && now.sa_handler != SIG_IGN)
			sigaddset(set, ends[i]);
}

enum ca_status ca_signals_open(struct ca_signals *signals, struct ca_err *err)
{
	static const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set;

	signals->toggle = 0;
	signals->toggled = false;
	fill(&set);
	sigaction(SIGPIPE, &ignore, &signals->old_pipe);
	sigaction(SIGXFSZ, &ignore, &signals->old_size);
	/* Ignored by inheritance, it would make the kernel reap our children. */
	sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_DFL }, &signals->old_child);
	sigprocmask(SIG_BLOCK, &set, &signals->old);
	signals->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals->fd >= 0)
		return CA_OK;
	ca_signals_restore(signals);
	return ca_err_set(err, CA_ERR_IO, "cannot wait for signals (%s)", strerror(errno));
}

void ca_signals_toggle(struct ca_signals *signals, int which)
{
	static const int numbers[] = {
		[CA_TOGGLE_NONE] = 0, [CA_TOGGLE_USR1] = SIGUSR1, [CA_TOGGLE_USR2] = SIGUSR2
	};
	sigset_t set;

	signals->toggle = numbers[which];
	if (!signals->toggle)
		return;
	fill(&set);
	sigaddset(&set, signals->toggle);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signalfd(signals->fd, &set, 0);
}

void ca_signals_close(struct ca_signals *signals)
{
	close(signals->fd);
	ca_signals_restore(signals);
}

void ca_signals_restore(const struct ca_signals *signals)
{
	sigaction(SIGPIPE, &signals->old_pipe, NULL);
	sigaction(SIGXFSZ, &signals->old_size, NULL);
	sigaction(SIGCHLD, &signals->old_child, NULL);
	sigprocmask(SIG_SETMASK, &signals->old, NULL);
}

int ca_signals_wait(struct ca_signals *signals, int ms, bool *terminal)
{
	struct pollfd poll_fd = { .fd = signals->fd, .events = POLLIN };
	struct signalfd_siginfo info;

	*terminal = false;
	if (poll(&poll_fd, 1, ms) <= 0)
		return 0;
	if (read(signals->fd, &info, sizeof info) != sizeof info)
		return 0;
	if ((int)info.ssi_signo == signals->toggle) {
		signals->toggled = !signals->toggled;
		return SIGCHLD; /* nothing else has come */
	}
	*terminal = info.ssi_code == SI_KERNEL;
	return (int)info.ssi_signo;
}

bool ca_signals_attend(struct ca_signals *signals, int ms, pid_t child, int *stopped, int *status)
{
	bool terminal;
	int number = ca_signals_wait(signals, ms, &terminal);

	if (number && number != SIGCHLD) {
		*stopped = number;
		/* a key press has reached the child as well, if it is in the foreground with us */
		if (!terminal || getpgid(child) != getpgrp())
			kill(child, number);
	}
	return waitpid(child, status, WNOHANG) == child;
}

void ca_signals_die(int number)
{
	static const struct rlimit no_core;
	sigset_t set;

	/* SIGQUIT would leave a core file of ours that says nothing. */
	setrlimit(RLIMIT_CORE, &no_core);
	signal(number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(number);
}
