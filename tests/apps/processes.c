/* SPDX-License-Identifier: MIT */
/* Programs that make others: each case does its work in the processes that it makes. */
#include "tests/apps/app.h"
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;
static char self[4096];

static void wait_good(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void work(void)
{
	work_for(0.4);
}

static void *work_thread(void *unused)
{
	work_for(0.3);
	return unused;
}

/* in the child both its own thread and a new one */
static void case_fork(void)
{
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			pthread_t thread;

			CHECK(!pthread_create(&thread, NULL, work_thread, NULL));
			work_for(0.3);
			CHECK(!pthread_join(thread, NULL));
			_exit(0);
		}
		wait_good(pid);
	}
}

/* children while other threads run and come and go */
static void *churn(void *stop)
{
	while (!__atomic_load_n((bool *)stop, __ATOMIC_ACQUIRE)) {
		pthread_t thread;

		CHECK(!pthread_create(&thread, NULL, work_thread, NULL));
		CHECK(!pthread_join(thread, NULL));
	}
	return NULL;
}

static void case_fork_threads(void)
{
	bool stop = false;
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, churn, &stop));
	for (int i = 0; i < 60; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			work_for(0.01);
			_exit(0);
		}
		wait_good(pid);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}

static void case_vfork(void)
{
	for (int i = 0; i < 40; i++) {
		char *const argv[] = { self, (char *)"little", NULL };
		pid_t pid = vfork();

		if (!pid) {
			execv(self, argv);
			_exit(1);
		}
		wait_good(pid);
		work_for(0.01);
	}
}

static void case_spawn(void)
{
	for (int i = 0; i < 20; i++) {
		char *const argv[] = { self, (char *)"little", NULL };
		pid_t pid;

		CHECK(!posix_spawn(&pid, self, NULL, NULL, argv, environ));
		wait_good(pid);
		work_for(0.01);
	}
}

/* the environment of the new program is empty: it must come to know of the run all the same */
static void case_clean_exec(void)
{
	char *const none[] = { NULL };

	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			char *const argv[] = { self, (char *)"joined", NULL };

			work_for(0.05);
			if (i == 0)
				execve(self, argv, none);
			else if (i == 1)
				execle(self, self, "joined", NULL, none);
			clearenv();
			if (i == 2)
				execl(self, self, "joined", NULL);
			else
				execvp(self, argv);
			_exit(1);
		}
		wait_good(pid);
	}
	char *const argv[] = { self, (char *)"joined", NULL };
	pid_t pid;

	CHECK(!posix_spawn(&pid, self, NULL, NULL, argv, none));
	wait_good(pid);
}

static void joined(void)
{
	work_for(0.05);
	CHECK(getenv("CAUSAL_SESSION"));
}

static void little(void)
{
	work_for(0.005);
}

/* thousands of chances for a tick to be on its way when the program is replaced */
static void case_exec_storm(void)
{
	const char *left = getenv("STORM");
	int n = left ? atoi(left) : 400;
	char text[16];

	work_for(0.0015);
	if (n == 0)
		return;
	snprintf(text, sizeof text, "%d", n - 1);
	setenv("STORM", text, 1);
	execl(self, self, "exec_storm", NULL);
	CHECK(false);
}

static void case_failed_exec(void)
{
	for (int i = 0; i < 50; i++) {
		work_for(0.01);
		CHECK(execl("/nonexistent/program", "program", NULL) == -1 && errno == ENOENT);
	}
}

/* behind libc's back */
static void case_raw_fork(void)
{
	for (int i = 0; i < 3; i++) {
		pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

		CHECK(pid >= 0);
		if (!pid) {
			work_for(0.1);
			_exit(0);
		}
		wait_good(pid);
	}
	for (int i = 0; i < 3; i++) {
		pid_t pid = _Fork();

		CHECK(pid >= 0);
		if (!pid) {
			work_for(0.1);
			_exit(0);
		}
		wait_good(pid);
	}
}

/* A daemon of the old school. It tells by a pipe that it got through. */
static void case_daemon(void)
{
	const char *file = getenv("DAEMON_FILE");
	int done[2];
	char c;
	pid_t pid;

	CHECK(file && !pipe(done));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		int keep = dup2(done[1], 100);

		setsid();
		if (fork())
			_exit(0);
		for (int i = 0; i < 1024; i++)
			if (i != keep)
				close(i);
		/* what it opens becomes 0, 1 and 2; nobody but itself may write there */
		for (int i = 0; i < 3; i++)
			if (open(file, O_RDWR | O_CREAT | O_APPEND, 0600) != i)
				_exit(1);
		/* how often, for there is no telling how much of a busy machine it gets */
		dprintf(2, "%ld\n", work_for(0.3));
		if (write(keep, "x", 1) != 1)
			_exit(1);
		work_for(0.7); /* outlives the run */
		if (write(2, "end\n", 4) != 4)
			_exit(1);
		_exit(0);
	}
	wait_good(pid);
	close(done[1]);
	CHECK(read(done[0], &c, 1) == 1);
}

/* How long a program takes from fork to its end. */
static void case_start_times(void)
{
	long least = 0;

	for (int i = 0; i < 20; i++) {
		char *const argv[] = { self, (char *)"nothing", NULL };
		double since = now();
		pid_t pid;
		long us;

		CHECK(!posix_spawn(&pid, self, NULL, NULL, argv, environ));
		wait_good(pid);
		us = (long)((now() - since) * 1e6);
		least = least && least < us ? least : us;
	}
	printf("least %ld us\n", least);
}

int main(int argc, char **argv)
{
	static const struct app_case cases[] = {
		{ "work", work },
		{ "little", little },
		{ "start_times", case_start_times },
		{ "joined", joined },
		{ "fork", case_fork },
		{ "fork_threads", case_fork_threads },
		{ "vfork", case_vfork },
		{ "spawn", case_spawn },
		{ "clean_exec", case_clean_exec },
		{ "exec_storm", case_exec_storm },
		{ "failed_exec", case_failed_exec },
		{ "raw_fork", case_raw_fork },
		{ "daemon", case_daemon },
	};
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	CHECK(n > 0);
	if (argc > 1 && !strcmp(argv[1], "nothing")) {
		CAUSAL_PROGRESS_NAMED("started");
		return 0;
	}
	return RUN_CASE(cases, argc, argv);
}
