/* SPDX-License-Identifier: MIT */
/* The load of a server; see driver/server_load.h. */
#include "driver/server_load.h"
#include "core/clock.h"
#include "core/session.h"
#include "driver/child.h"
#include "driver/runtime.h"
#include "driver/say.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LISTENS_BY    (10 * CA_NS_PER_S) /* from its start; one that does not is loaded all the same */
#define LISTENS_FOR   (CA_NS_PER_S / 10) /* since it did so last: it may open several, one after the other */
#define ENDS_BY       (10 * CA_NS_PER_S) /* after SIGTERM; then SIGKILL */
#define ACCEPTS       0x10000            /* a flag in /proc/net/unix: it listens */
#define TCP_LISTENING 10                 /* a state in /proc/net/tcp */

/* In a line of /proc/PID/net/NAME, the inode of a socket that listens; 0: of none. */
static uint64_t listener_in(const char *line, bool is_unix)
{
	unsigned long long inode = 0;
	unsigned flags = 0, state = 0;

	if (is_unix)
		return sscanf(line, "%*s %*s %*s %x %*s %*s %llu", &flags, &inode) == 2 && flags & ACCEPTS
			       ? inode
			       : 0;
	return sscanf(line, " %*s %*s %*s %x %*s %*s %*s %*s %*s %llu", &state, &inode) == 2 &&
			       state == TCP_LISTENING
		       ? inode
		       : 0;
}

static bool has(const struct ca_vec *inodes, uint64_t inode)
{
	for (size_t i = 0; i < inodes->n; i++)
		if (((const uint64_t *)inodes->at)[i] == inode)
			return true;
	return false;
}

/* Sockets that listen in the network of that process, but for those in `but`, if it is given. */
static struct ca_vec listeners(pid_t pid, const struct ca_vec *but)
{
	static const char *const name[] = { "tcp", "tcp6", "unix" };
	struct ca_vec found = { .size = sizeof(uint64_t) };

	for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
		char path[48], line[512];
		FILE *file;

		snprintf(path, sizeof path, "/proc/%d/net/%s", (int)pid, name[i]);
		file = fopen(path, "re");
		while (file && fgets(line, sizeof line, file)) {
			uint64_t inode = listener_in(line, !strcmp(name[i], "unix"));

			if (inode && !(but && has(but, inode)))
				ca_vec_add(&found, &inode, 1);
		}
		if (file)
			fclose(file);
	}
	return found;
}

/* It does, and has opened nothing more for a while. */
static bool listens(struct ca_server_load *load, pid_t server, uint64_t now)
{
	struct ca_vec found = listeners(server, &load->before);

	if (found.n != load->listeners)
		load->listens_since = now;
	load->listeners = found.n;
	ca_vec_free(&found);
	return load->listeners && now - load->listens_since > LISTENS_FOR;
}

void ca_server_load_open(struct ca_server_load *load, const struct ca_settings *settings)
{
	*load = (struct ca_server_load){
		.settings = settings,
		.command = *settings->load ? settings->load : NULL,
		.before = { .size = sizeof(uint64_t) },
	};
	if (!load->command)
		return;
	load->before = listeners(getpid(), NULL);
	load->started = ca_clock_now();
}

/* Keys pressed are for the server: the load has a group of its own, which ends as one. */
static void run(const char *command, char **env, const struct ca_signals *signals)
{
	static const char *const shell[] = { "sh", "-c" };
	const char *argv[] = { shell[0], shell[1], command, NULL };
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	ca_signals_restore(signals);
	execve("/bin/sh", (char *const *)(uintptr_t)argv, env);
	_exit(CA_EXIT_NOT_EXECUTABLE);
}

/* Behind a launcher it is not in the server's environment. */
static enum ca_status preload(const struct ca_server_load *load, struct ca_environ *environment,
			      struct ca_err *err)
{
	char *runtime;
	enum ca_status status = ca_runtime_find(load->settings, &runtime, err);

	if (status)
		return status;
	status = ca_environ_preload(environment, runtime, err);
	free(runtime);
	return status;
}

static void start(struct ca_server_load *load, struct ca_environ *environment,
		  const struct ca_signals *signals)
{
	struct ca_err err;

	load->begun = true;
	if (ca_environ_set(environment, CA_SESSION_LOAD_MARK, "1", &err) ||
	    preload(load, environment, &err)) {
		ca_say("%s", err.text);
		return;
	}
	load->pid = fork();
	if (!load->pid)
		run(load->command, environment->entry, signals);
	if (load->pid > 0)
		setpgid(load->pid, load->pid);
	else
		ca_say("the load of --load cannot be started: no process");
	load->pid = load->group = load->pid > 0 ? load->pid : 0;
}

static void stop(struct ca_server_load *load, int signal)
{
	if (!load->pid)
		return;
	load->stopped = ca_clock_now();
	kill(-load->group, signal);
}

/* Has it ended? */
static void wait_for(struct ca_server_load *load, int how)
{
	int status;

	if (!load->pid || waitpid(load->pid, &status, how) != load->pid)
		return;
	kill(-load->group, SIGTERM); /* what it has left in the background */
	load->pid = 0;
	load->status = load->stopped ? 0 : ca_child_exit_status(status);
	load->done = !load->stopped && !load->status;
}

/* Of what has been told already, again only by force. */
static void end_server(struct ca_server_load *load, pid_t server, uint64_t now)
{
	if (!load->told) {
		load->told = now;
		kill(server, SIGTERM);
	} else if (now - load->told > ENDS_BY) {
		ca_say("the server does not end at SIGTERM: it gets SIGKILL");
		kill(server, SIGKILL);
		load->told = now;
	}
}

void ca_server_load_step(struct ca_server_load *load, struct ca_environ *environment,
			 const struct ca_signals *signals, pid_t server, bool over)
{
	uint64_t now = ca_clock_now();
	bool late;

	if (!load->command)
		return;
	late = now - load->started > LISTENS_BY;
	if (!load->begun && !over && (listens(load, server, now) || late)) {
		if (late)
			ca_say("the program listens nowhere after 10 s; its load starts all the same");
		start(load, environment, signals);
	}
	wait_for(load, WNOHANG);
	if (over && load->pid && (!load->stopped || now - load->stopped > ENDS_BY))
		stop(load, load->stopped ? SIGKILL : SIGTERM);
	if (!load->pid && (load->begun || over))
		end_server(load, server, now);
}

/* By what we have sent it. */
static bool has_ended_as_told(int status)
{
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGKILL;
	return WEXITSTATUS(status) == 128 + SIGTERM;
}

int ca_server_load_close(struct ca_server_load *load, int *wait_status)
{
	if (!load->command)
		return 0;
	if (WIFEXITED(*wait_status) && load->pid && !load->stopped)
		ca_say("the server has ended before its load");
	else if (WIFEXITED(*wait_status) && !load->begun && !load->told)
		ca_say("the program has ended before it listened, so its load was not started; a server must "
		       "stay in the foreground");
	stop(load, SIGKILL);
	wait_for(load, 0);
	if (load->group)
		kill(-load->group, SIGKILL); /* what does not end by itself */
	ca_vec_free(&load->before);
	if (load->told && has_ended_as_told(*wait_status))
		*wait_status = 0;
	if (load->status)
		ca_say("the load has ended with exit status %d: %s", load->status, load->command);
	return load->status;
}
