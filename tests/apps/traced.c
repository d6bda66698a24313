/* SPDX-License-Identifier: MIT */
/* A program to be traced (tests/integration/trace.sh): what it does, it does in one order only.
 *   traced one                   a thread that visits a point twice, and is waited for
 *   traced lock                  a thread waits for a lock, and is woken by whoever has it
 *   traced child HOW             a child waits for its parent, by: read, poll, select, epoll, futex, semaphore
 *   traced many THREADS VISITS   of a point in each thread
 *   traced pipe BYTES            each goes through a pipe of the thread's own
 *   traced crowd THREADS         so many threads, 50 at a time, each of which visits it once
 *   traced once THREADS          so many threads at once, each of which visits it once
 *   traced die HOW VISITS        many visits, then: return, _exit, abort, kill, exec
 *   traced work VISITS           in another thread, with some 1 ms of work before each, as much as here
 *   traced children N            so many processes, one after the other, each of which visits it once */
#include <causal.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void visit(long n)
{
	for (long i = 0; i < n; i++)
		CAUSAL_PROGRESS_NAMED("step");
}

static void *visit_some(void *n)
{
	visit((long)n);
	return NULL;
}

static volatile unsigned long sum;

void burn(void);
__attribute__((noinline)) void burn(void)
{
	for (unsigned i = 0; i < 1000000; i++)
		sum += i;
}

void other(void);
__attribute__((noinline)) void other(void)
{
	for (unsigned i = 0; i < 1000000; i++)
		sum += i;
}

static void *work(void *n)
{
	for (long i = 0; i < (long)n; i++) {
		burn();
		visit(1);
	}
	return NULL;
}

static void with_threads(long threads, long visits)
{
	pthread_t *thread = calloc((size_t)threads, sizeof *thread);

	for (long i = 0; thread && i < threads; i++)
		if (pthread_create(&thread[i], NULL, visit_some, (void *)visits))
			exit(3);
	for (long i = 0; thread && i < threads; i++)
		pthread_join(thread[i], NULL);
	free(thread);
}

static pthread_barrier_t all_there;

static void *visit_together(void *unused)
{
	visit(1);
	pthread_barrier_wait(&all_there);
	return unused;
}

static int at_once(unsigned n)
{
	enum { STACK = 128 << 10 };
	pthread_t *thread = calloc(n, sizeof *thread);
	pthread_attr_t attributes;
	unsigned made = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	pthread_barrier_init(&all_there, NULL, n);
	while (thread && made < n && !pthread_create(&thread[made], &attributes, visit_together, NULL))
		made++;
	if (made < n) /* not for want of us: the machine does not allow it */
		exit(77);
	for (unsigned i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	free(thread);
	return 0;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic long waiter;

static void *wait_for_lock(void *unused)
{
	waiter = syscall(SYS_gettid);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return unused;
}

/* A thread of ours, or a process. */
static int sleeps(long tid)
{
	char path[64], line[512] = "";
	FILE *file;
	const char *end;

	snprintf(path, sizeof path, "/proc/%ld/stat", tid);
	file = tid ? fopen(path, "r") : NULL;
	if (!file)
		return 0;
	end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
	fclose(file);
	return end && end[2] == 'S';
}

static void lock(void)
{
	pthread_t thread;

	pthread_mutex_lock(&mutex);
	if (pthread_create(&thread, NULL, wait_for_lock, NULL))
		exit(3);
	while (!sleeps(waiter))
		;
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
}

/* What both see. */
static struct shared {
	sem_t semaphore;
	int word;
} * shared;

/* Until there is something to read from fd, or the parent has said so in memory. */
static int await_parent(const char *how, int fd)
{
	struct pollfd polled = { .fd = fd, .events = POLLIN };
	struct epoll_event event = { .events = EPOLLIN, .data = { .fd = fd } };
	fd_set set;
	char byte;
	int epoll;

	if (!strcmp(how, "poll"))
		return poll(&polled, 1, -1);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	if (!strcmp(how, "select"))
		return select(fd + 1, &set, NULL, NULL, NULL);
	if (!strcmp(how, "semaphore"))
		return sem_wait(&shared->semaphore) + 1;
	if (!strcmp(how, "futex"))
		return syscall(SYS_futex, &shared->word, FUTEX_WAIT, 0, NULL, NULL, 0) + 1;
	if (strcmp(how, "epoll"))
		return read(fd, &byte, 1);
	epoll = epoll_create1(0);
	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) ? -1 : epoll_wait(epoll, &event, 1, -1);
}

static int with_child(const char *how)
{
	int fd[2], status = 1;
	pid_t child;

	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pipe(fd) || shared == MAP_FAILED || sem_init(&shared->semaphore, 1, 0))
		return 3;
	child = fork();
	if (!child) {
		close(fd[1]);
		exit(await_parent(how, fd[0]) != 1);
	}
	while (!sleeps(child))
		;
	if (!strcmp(how, "semaphore"))
		sem_post(&shared->semaphore);
	else if (!strcmp(how, "futex"))
		syscall(SYS_futex, &shared->word, FUTEX_WAKE, 1, NULL, NULL, 0);
	else if (write(fd[1], "", 1) != 1)
		return 3;
	waitpid(child, &status, 0);
	return status != 0;
}

static int through_pipe(long n)
{
	int fd[2];
	char byte = 0;

	if (pipe(fd))
		return 3;
	for (long i = 0; i < n; i++)
		if (write(fd[1], &byte, 1) != 1 || read(fd[0], &byte, 1) != 1)
			return 3;
	return 0;
}

static void die(const char *how, char **argv)
{
	if (!strcmp(how, "_exit"))
		_exit(0);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "exec"))
		execl("/proc/self/exe", argv[0], "many", "1", "0", (char *)NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "one")) {
		with_threads(1, 2);
	} else if (!strcmp(what, "lock")) {
		lock();
	} else if (!strcmp(what, "child") && argc > 2) {
		return with_child(argv[2]);
	} else if (!strcmp(what, "many") && argc > 3) {
		with_threads(atol(argv[2]), atol(argv[3]));
	} else if (!strcmp(what, "pipe") && argc > 2) {
		return through_pipe(atol(argv[2]));
	} else if (!strcmp(what, "crowd") && argc > 2) {
		for (long i = 0; i < atol(argv[2]); i += 50)
			with_threads(50, 1);
	} else if (!strcmp(what, "once") && argc > 2) {
		return at_once((unsigned)atol(argv[2]));
	} else if (!strcmp(what, "die") && argc > 3) {
		visit(atol(argv[3]));
		die(argv[2], argv);
	} else if (!strcmp(what, "work") && argc > 2) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, work, (void *)atol(argv[2])))
			return 3;
		for (long i = 0; i < atol(argv[2]); i++)
			other();
		pthread_join(thread, NULL);
	} else if (!strcmp(what, "children") && argc > 2) {
		for (long i = 0; i < atol(argv[2]); i++) {
			pid_t child = fork();

			if (!child) {
				visit(1);
				exit(0);
			}
			waitpid(child, NULL, 0);
		}
	} else {
		return 2;
	}
	return 0;
}
