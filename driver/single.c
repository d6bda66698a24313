/* SPDX-License-Identifier: MIT */
/* Runs in place; see driver/single.h.
 *
 * The program keeps the driver's process, so that a debugger or a parent sees nothing unusual.
 * The conductor must not be its child either: a program that waits for all of its children
 * would wait for the conductor, which waits for the program. So it is forked twice. */
#include "driver/single.h"
#include "causal/conductor/conductor.h"
#include "causal/conductor/sweep.h"
#include "driver/child.h"
#include "driver/runtime.h"
#include "driver/say.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* From linux/pidfd.h of 6.15; older headers lack it. */
struct pidfd_info_0 {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};
#define PIDFD_GET_INFO_0  _IOWR(0xFF, 11, struct pidfd_info_0)
#define PIDFD_INFO_EXIT_0 (UINT64_C(1) << 3)

/* What the conductor's process tells the one that will become the program. */
struct ready {
	int code;        /* 0, or the exit status */
	char text[1024]; /* the session's path, or what went wrong */
};

/* The status of a process that is not our child: known after its parent has waited for it, and
 * to Linux 6.15 and later only. 0 if it cannot be had. */
static int status_of(int pidfd)
{
	for (int tries = 0; tries < 50; tries++) {
		struct pidfd_info_0 info = { .mask = PIDFD_INFO_EXIT_0 };

		if (!ioctl(pidfd, PIDFD_GET_INFO_0, &info) && (info.mask & PIDFD_INFO_EXIT_0))
			return info.exit_code;
		poll(NULL, 0, 10);
	}
	return 0;
}

/* Keys pressed and signals sent to the group are for the program; we end when it does. */
static void into_background(void)
{
	static const int ignored[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ, SIGTSTP, SIGTTOU };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		signal(ignored[i], SIG_IGN);
	/* A reader of the program's output must see its end when the program ends. */
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		close(null);
	}
}

static void tell(int fd, int code, const char *text)
{
	struct ready ready = { .code = code };

	snprintf(ready.text, sizeof ready.text, "%s", text);
	if (write(fd, &ready, sizeof ready) != sizeof ready)
		_exit(1);
}

/* The conductor's process. */
static int conduct(struct ca_job *job, const struct ca_variant *variant, const struct ca_settings *settings,
		   pid_t program, int pidfd, int out)
{
	struct ca_err err = { .text = "" };
	struct ca_conductor *conductor;
	struct ca_sweep *sweep = ca_sweep_new((uint64_t)settings->random_seed);
	struct ca_conductor_options options = {
		.settings = settings,
		.dir = job->dir,
		.run = job->first_run,
		.iteration = (unsigned)variant->iteration,
		.command = job->command,
		.arguments = (const char *const *)job->again,
		.sweep = sweep,
		.message = ca_job_message,
		.clear = settings->reset ? ca_job_clear : NULL,
		.context = job,
	};
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	enum ca_status status;

	if (!sweep)
		status = ca_err_set(&err, CA_ERR_NOMEM, "no memory for the sweep");
	else
		status = ca_conductor_open(&conductor, &options, &err);
	if (status) {
		tell(out, ca_child_exit_code(status), err.text);
		return 1;
	}
	ca_conductor_started(conductor, program);
	tell(out, 0, ca_conductor_session_path(conductor));
	close(out);
	while (poll(&end, 1, ca_conductor_step(conductor)) <= 0)
		;
	status = ca_conductor_close(conductor, status_of(pidfd), NULL, &err);
	if (status)
		ca_say("%s", err.text);
	ca_sweep_free(sweep);
	return ca_job_results(job, true, NULL);
}

/* Fork it twice, and wait until the session is there. */
static int start_conductor(struct ca_job *job, const struct ca_variant *variant,
			   const struct ca_settings *settings, struct ready *ready)
{
	pid_t program = getpid(), between;
	int pidfd = (int)syscall(SYS_pidfd_open, program, 0), out[2];

	if (pidfd < 0 || pipe2(out, O_CLOEXEC)) {
		ca_say("--single cannot watch the program (%s); it needs Linux 5.3 or later",
		       strerror(errno));
		return 1;
	}
	fcntl(pidfd, F_SETFD, FD_CLOEXEC);
	between = fork();
	if (!between) {
		if (fork())
			_exit(0);
		close(out[0]);
		into_background();
		_exit(conduct(job, variant, settings, program, pidfd, out[1]));
	}
	close(out[1]);
	close(pidfd);
	if (between > 0)
		waitpid(between, NULL, 0);
	if (read(out[0], ready, sizeof *ready) != sizeof *ready) {
		ca_say("the conductor's process has died; run without --single");
		ready->code = 1;
		*ready->text = '\0';
	}
	close(out[0]);
	return ready->code;
}

/* Returns only on failure. */
static int exec_in_place(const char *const *command, struct ca_environ *environment)
{
	struct ca_err err;
	int code;

	execvpe(command[0], (char *const *)(uintptr_t)command, environment->entry);
	code = ca_child_exec_error(command[0], errno, &err);
	ca_say("%s", err.text);
	ca_environ_fini(environment);
	return code;
}

int ca_single_run(struct ca_job *job, size_t index)
{
	struct ca_variant variant;
	struct ca_settings settings;
	struct ca_environ environment;
	struct ready ready = { 0 };
	struct ca_err err;
	int code = 1;

	ca_variants_get(&job->variants, index, &variant);
	if (ca_variants_settings(&variant, &job->settings, &settings, &err)) {
		ca_say("%s", err.text);
		return CA_EXIT_USAGE;
	}
	code = start_conductor(job, &variant, &settings, &ready);
	if (code) {
		if (*ready.text)
			ca_say("%s", ready.text);
	} else if (ca_job_environ(job, &variant, &settings, ready.text, &environment, &err)) {
		ca_say("%s", err.text);
		code = 1;
	} else {
		ca_job_show(job, &environment, "0: ");
		code = exec_in_place(job->command, &environment);
	}
	ca_settings_fini(&settings);
	return code;
}

bool ca_single_is_inner(const struct ca_job *job)
{
	const char *session = getenv("CAUSAL_SESSION"), *preload = getenv("LD_PRELOAD");

	for (size_t i = 0; i < CA_AXES; i++)
		if (job->options.axis[i].count)
			return false;
	return !job->options.assignments && session && !access(session, R_OK | W_OK) &&
	       !(preload && strstr(preload, "libcausal-rt.so"));
}

int ca_single_join(struct ca_job *job)
{
	struct ca_environ environment;
	struct ca_err err;

	if (ca_runtime_find(&job->settings, &job->runtime, &err) || ca_environ_init(&environment, &err)) {
		ca_say("%s", err.text);
		return 1;
	}
	if (ca_environ_preload(&environment, job->runtime, &err)) {
		ca_say("%s", err.text);
		ca_environ_fini(&environment);
		return 1;
	}
	return exec_in_place((const char *const *)job->options.command, &environment);
}
