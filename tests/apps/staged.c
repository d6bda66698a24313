/* SPDX-License-Identifier: MIT */
/* A program whose critical path is known by hand: two threads work at the same time, `slow` for three parts and then
 * `quick` for one; main waits for both, works in `after` for one part, and sleeps for one. With MS for a part: the
 * path is 3 MS in `slow`, 1 in `after`, 1 asleep, and nothing of `quick`. In between the slow thread hands its
 * work on: two threads do parts of it in turns.
 *
 * With HOW, it is processes: main waits for one that works in `slow` for two parts, and ends by a call of that name, or
 * executes the program by it once more for the second part, or (polled) is looked for now and then. Then main works in `after` for one, while another one does half a part in `quick`. */
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MS = 1000000, TURNS = 6 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned turn;
static uint64_t part;

static uint64_t cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

__attribute__((always_inline)) static inline void burn(uint64_t ns)
{
	uint64_t end = cpu_now() + ns;
	volatile unsigned k = 0;

	while (cpu_now() < end)
		for (int i = 0; i < 100000; i++)
			k++;
}

__attribute__((noinline)) static void slow(uint64_t ns)
{
	burn(ns);
	__asm__("" ::"i"(0));
}

__attribute__((noinline)) static void quick(uint64_t ns)
{
	burn(ns);
	__asm__("" ::"i"(1));
}

__attribute__((noinline)) static void after(uint64_t ns)
{
	burn(ns);
	__asm__("" ::"i"(2));
}

/* One of two, in turns. */
static void *work_slowly(void *first)
{
	for (unsigned i = *(unsigned *)first; i < TURNS; i += 2) {
		pthread_mutex_lock(&lock);
		while (turn != i)
			pthread_cond_wait(&changed, &lock);
		pthread_mutex_unlock(&lock);
		slow(3 * part / TURNS);
		pthread_mutex_lock(&lock);
		turn++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void *work_quickly(void *unused)
{
	quick(part);
	return unused;
}

static void end_by(const char *how)
{
	if (!strcmp(how, "_exit"))
		_exit(0);
	if (!strcmp(how, "_Exit"))
		_Exit(0);
	if (!strcmp(how, "quick_exit"))
		quick_exit(0);
	if (!strcmp(how, "exit_group"))
		syscall(SYS_exit_group, 0);
	exit(0);
}

/* The second of two parts, in another program; false: it is not done so. */
static bool execute(char *self, const char *how)
{
	char command[4096], text[32], rest[] = "rest", *argv[] = { self, text, rest, NULL };
	pid_t child = 0;

	snprintf(text, sizeof text, "%llu", (unsigned long long)(part / MS));
	snprintf(command, sizeof command, "%s %s rest", self, text);
	if (!strcmp(how, "system"))
		return !system(command);
	if (!strcmp(how, "exec"))
		execv(self, argv);
	if (!strcmp(how, "posix_spawn"))
		posix_spawn(&child, self, NULL, NULL, argv, environ);
	if (!strcmp(how, "vfork") && !(child = vfork())) {
		execv(self, argv);
		_exit(1);
	}
	return child > 0 && waitpid(child, NULL, 0) == child;
}

static int in_processes(char *self, const char *how)
{
	pid_t child = fork();

	if (!child) {
		slow(part);
		if (!execute(self, how))
			slow(part);
		end_by(how);
	}
	while (waitpid(child, NULL, strcmp(how, "polled") ? 0 : WNOHANG) == 0)
		nanosleep(&(struct timespec){ 0, 2 * MS }, NULL);
	child = fork();
	if (!child) {
		quick(part / 2);
		exit(0);
	}
	after(part);
	return waitpid(child, NULL, 0) != child;
}

int main(int argc, char **argv)
{
	unsigned first[2] = { 0, 1 };
	pthread_t thread[3];

	part = (uint64_t)(argc > 1 ? strtol(argv[1], NULL, 10) : 100) * MS;
	if (argc > 2 && !strcmp(argv[2], "rest")) {
		slow(part);
		return 0;
	}
	if (argc > 2)
		return in_processes(argv[0], argv[2]);
	if (pthread_create(&thread[0], NULL, work_quickly, NULL) ||
	    pthread_create(&thread[1], NULL, work_slowly, &first[0]) ||
	    pthread_create(&thread[2], NULL, work_slowly, &first[1]))
		return 1;
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	after(part);
	nanosleep(&(struct timespec){ (time_t)(part / 1000000000), (long)(part % 1000000000) }, NULL);
	return 0;
}
