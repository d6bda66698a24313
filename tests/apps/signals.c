/* SPDX-License-Identifier: MIT */
/* Signals: a program that does as it likes with them, and must see what it would see alone. */
#include "tests/apps/app.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

static _Atomic int seen;
static _Atomic int last_code;

static void count(int number)
{
	(void)number;
	seen++;
}

static void count_info(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	last_code = info->si_code;
	seen++;
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_handler = handler;
	action.sa_flags = flags;
	CHECK(!sigaction(number, &action, NULL));
}

static void case_block_all(void)
{
	sigset_t all, old;

	sigfillset(&all);
	CHECK(!sigprocmask(SIG_BLOCK, &all, &old));
	work_for(0.3);
	CHECK(!sigprocmask(SIG_SETMASK, &old, NULL));
	work_for(0.1);
	/* past libc, as some runtimes do it */
	uint64_t bits = ~UINT64_C(0), before;
	CHECK(!syscall(SYS_rt_sigprocmask, SIG_BLOCK, &bits, &before, 8));
	work_for(0.2);
	CHECK(!syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, 8));
	work_for(0.1);
}

/* the signal that the profiler uses is an ordinary one to the program */
static void case_ours(void)
{
	struct sigaction action, old;

	memset(&action, 0, sizeof action);
	action.sa_sigaction = count_info;
	action.sa_flags = SA_SIGINFO;
	CHECK(!sigaction(SIGURG, &action, &old) && old.sa_handler == SIG_DFL);
	work_for(0.2);
	CHECK(seen == 0);
	for (int i = 1; i <= 20; i++) {
		CHECK(!kill(getpid(), SIGURG));
		work_once();
		CHECK(seen == i && last_code == SI_USER);
	}
	CHECK(!raise(SIGURG) && seen == 21 && last_code == SI_TKILL);
	CHECK(signal(SIGURG, SIG_IGN) != SIG_ERR);
	CHECK(!raise(SIGURG) && seen == 21);
	work_for(0.1);
	CHECK(!sigaction(SIGURG, NULL, &old) && old.sa_handler == SIG_IGN);
	CHECK(signal(SIGURG, SIG_DFL) == SIG_IGN);
	work_for(0.1);
}

#define QUEUED SIGRTMIN /* each one arrives, however late its receiver is */

static void *sends(void *to)
{
	for (int i = 0; i < 20; i++) {
		work_for(0.02);
		pthread_kill(*(pthread_t *)to, QUEUED);
		usleep(2000);
	}
	return NULL;
}

static void case_sigwait(void)
{
	pthread_t thread, me = pthread_self();
	sigset_t set;

	sigfillset(&set);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	CHECK(!pthread_create(&thread, NULL, sends, &me));
	for (int i = 0; i < 10; i++) {
		siginfo_t info;
		int number = 0, error = sigwait(&set, &number);

		if (error || number != QUEUED)
			fprintf(stderr, "sigwait: %s, signal %d\n", strerror(error), number);
		CHECK(!error && number == QUEUED);
		CHECK(sigwaitinfo(&set, &info) == QUEUED);
		work_for(0.002);
	}
	CHECK(!pthread_join(thread, NULL));
}

static void case_signalfd(void)
{
	pthread_t thread, me = pthread_self();
	sigset_t set;
	int fd;

	sigfillset(&set);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(!pthread_create(&thread, NULL, sends, &me));
	for (int i = 0; i < 20; i++) {
		struct signalfd_siginfo info;
		struct pollfd p = { fd, POLLIN, 0 };

		CHECK(poll(&p, 1, 10000) == 1);
		CHECK(read(fd, &info, sizeof info) == sizeof info);
		CHECK((int)info.ssi_signo == QUEUED);
		work_for(0.002);
	}
	CHECK(!pthread_join(thread, NULL));
}

/* ... which it may block, and take from a descriptor among others, as PostgreSQL does */
static void case_urgent(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct signalfd_siginfo info;
	int fd, taken[2], all = epoll_create1(0);
	pid_t child;
	sigset_t set;
	char c = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGURG);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL) && !pipe(taken));
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	CHECK(fd >= 0 && all >= 0 && !epoll_ctl(all, EPOLL_CTL_ADD, fd, &event));
	child = fork();
	for (int i = 0; !child && i < 20; i++) {
		work_for(i % 2 ? 0.01 : 0.03); /* while it works, and while it waits */
		CHECK(!kill(getppid(), SIGURG) && read(taken[0], &c, 1) == 1);
	}
	if (!child)
		_exit(0);
	for (int i = 0; i < 20; i++) {
		CHECK(epoll_wait(all, &event, 1, 10000) ==
		      1); /* nothing else ends it, nor does its handler */
		CHECK(read(fd, &info, sizeof info) == sizeof info);
		CHECK((int)info.ssi_signo == SIGURG && info.ssi_code == SI_USER &&
		      (pid_t)info.ssi_pid == child);
		CHECK(read(fd, &info, sizeof info) == -1 && errno == EAGAIN);
		CHECK(write(taken[1], &c, 1) == 1);
		work_for(0.02);
	}
	CHECK(waitpid(child, NULL, 0) == child);
}

static void case_sigsuspend(void)
{
	pthread_t thread, me = pthread_self();
	sigset_t usr1, empty;

	sigemptyset(&empty);
	sigemptyset(&usr1);
	sigaddset(&usr1, QUEUED);
	handle(QUEUED, count, 0);
	CHECK(!pthread_sigmask(SIG_BLOCK, &usr1, NULL));
	CHECK(!pthread_create(&thread, NULL, sends, &me));
	for (int i = 1; i <= 20; i++) {
		CHECK(sigsuspend(&empty) == -1 && errno == EINTR);
		CHECK(seen == i); /* nothing else ended it */
		work_for(0.001);
	}
	CHECK(!pthread_join(thread, NULL));
}

static void case_profiled(void)
{
	struct itimerval every = { { 0, 4000 }, { 0, 4000 } }, off = { { 0, 0 }, { 0, 0 } };

	handle(SIGPROF, count, SA_RESTART);
	CHECK(!setitimer(ITIMER_PROF, &every, NULL));
	for (double end = now() + 30; seen <= 60 && now() < end;)
		work_once();
	CHECK(!setitimer(ITIMER_PROF, &off, NULL));
	CHECK(seen > 60);
}

static void case_trap(void)
{
	struct sigaction old;

	work_for(0.1);
	handle(SIGTRAP, count, 0);
	for (int i = 1; i <= 50; i++) {
		work_for(0.004);
		__asm__ volatile("int3");
		CHECK(seen == i);
	}
	CHECK(!raise(SIGTRAP) && seen == 51);
	CHECK(!sigaction(SIGTRAP, NULL, &old) && old.sa_handler == count);
}

/* A handler has its own signal blocked, also one that patched text needs: sent meanwhile it comes afterwards. Not once
 * it has been left by siglongjmp, as who tries an instruction does. */
static sigjmp_buf way_out;
static int nested, deepest;

static void raises(int number)
{
	deepest = ++nested > deepest ? nested : deepest;
	if (++seen % 4)
		CHECK(!raise(number));
	nested--;
}

static void jumps_out(int number)
{
	if (++seen % 2)
		CHECK(!raise(number));
	siglongjmp(way_out, 1);
}

static void nests(int number, int flags)
{
	seen = deepest = 0;
	handle(number, raises, flags);
	CHECK(!raise(number));
	CHECK(seen == 4 && deepest == 1);
	seen = deepest = 0;
	handle(number, raises, flags | SA_NODEFER);
	CHECK(!raise(number));
	CHECK(seen == 4 && deepest == 4);
	seen = 0;
	handle(number, jumps_out, flags);
	for (volatile int i = 1; i <= 20; i++) {
		work_for(0.002);
		if (!sigsetjmp(way_out, 1)) {
			if (number == SIGILL)
				__asm__ volatile("ud2");
			raise(number);
		}
		CHECK(seen == 2 * i); /* the second one once the first one was left */
	}
}

static void case_nested(void)
{
	static const int all[] = { SIGUSR1, SIGTRAP, SIGILL };
	static char alternate[65536];
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate };

	work_for(0.1);
	CHECK(!sigaltstack(&stack, NULL));
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		nests(all[i], 0);
		nests(all[i], SA_ONSTACK);
	}
	work_for(0.1);
}

/* ---- calls that a handler cuts short: never by ours, always by the program's own ---------*/
static sem_t never;
static int quiet_pipe[2], quiet_epoll, quiet_socket[2];

static void in_ms(struct timespec *t, int ms)
{
	clock_gettime(CLOCK_REALTIME, t);
	t->tv_nsec += ms * 1000000L;
	t->tv_sec += t->tv_nsec / 1000000000;
	t->tv_nsec %= 1000000000;
}

static int do_nanosleep(int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	return nanosleep(&t, NULL);
}

static int do_clock_nanosleep(int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
	return errno ? -1 : 0;
}

static int do_usleep(int ms)
{
	return usleep((useconds_t)ms * 1000);
}

static int do_poll(int ms)
{
	struct pollfd p = { quiet_pipe[0], POLLIN, 0 };

	return poll(&p, 1, ms);
}

static int do_ppoll(int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };
	struct pollfd p = { quiet_pipe[0], POLLIN, 0 };
	sigset_t mask;

	sigemptyset(&mask);
	return ppoll(&p, 1, &t, &mask);
}

static int do_select(int ms)
{
	struct timeval t = { ms / 1000, ms % 1000 * 1000 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(quiet_pipe[0], &in);
	return select(quiet_pipe[0] + 1, &in, NULL, NULL, &t);
}

static int do_epoll(int ms)
{
	struct epoll_event event;

	return epoll_wait(quiet_epoll, &event, 1, ms);
}

static int do_recv(int ms)
{
	struct timeval t = { ms / 1000, ms % 1000 * 1000 };
	char c;
	ssize_t n;

	setsockopt(quiet_socket[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
	n = recv(quiet_socket[0], &c, 1, 0);
	return n < 0 && errno == EAGAIN ? 0 : -1;
}

static int do_sem(int ms)
{
	struct timespec t;

	in_ms(&t, ms);
	return sem_timedwait(&never, &t) && errno == ETIMEDOUT ? 0 : -1;
}

static int do_sigtimedwait(int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &t) < 0 && errno == EAGAIN ? 0 : -1;
}

static const struct {
	const char *name;
	int (*call)(int ms); /* 0 after that time, -1 and EINTR before it */
} calls[] = {
	{ "nanosleep", do_nanosleep }, { "clock_nanosleep", do_clock_nanosleep },
	{ "usleep", do_usleep },       { "poll", do_poll },
	{ "ppoll", do_ppoll },         { "select", do_select },
	{ "epoll_wait", do_epoll },    { "recv", do_recv },
	{ "sem_timedwait", do_sem },   { "sigtimedwait", do_sigtimedwait },
};
enum { CALLS = sizeof calls / sizeof *calls };

static void open_quiet(void)
{
	sem_init(&never, 0, 0);
	CHECK(!pipe(quiet_pipe) && (quiet_epoll = epoll_create1(0)) >= 0);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, quiet_socket));
}

/* System time as well as the program's own, so that a timer's ticks come in system calls. */
static void busy_in_kernel(double seconds)
{
	static char junk[1 << 16];
	int fd = open("/dev/zero", O_RDONLY);

	for (double end = now() + seconds; now() < end;)
		CHECK(read(fd, junk, sizeof junk) > 0);
	close(fd);
}

static void *hammer(void *unused)
{
	for (int round = 0; round < 12; round++)
		for (int i = 0; i < CALLS; i++) {
			for (int ms = 1; ms < 4; ms++) /* 0 would be no limit to some */
				if (calls[i].call(ms)) {
					printf("%s(%d) ended early: errno %d\n", calls[i].name, ms, errno);
					fflush(stdout);
					_exit(99);
				}
			busy_in_kernel(0.002);
			work_once();
		}
	return unused;
}

static void case_no_eintr(void)
{
	pthread_t thread;

	open_quiet();
	CHECK(!pthread_create(&thread, NULL, hammer, NULL));
	hammer(NULL);
	CHECK(!pthread_join(thread, NULL));
}

static void case_eintr(void)
{
	struct itimerval once = { { 0, 0 }, { 0, 20000 } };

	open_quiet();
	handle(SIGALRM, count, SA_RESTART); /* which does not help these */
	for (int i = 0; i < CALLS; i++) {
		double since;

		work_for(0.05);
		since = now();
		seen = 0;
		CHECK(!setitimer(ITIMER_REAL, &once, NULL));
		if (calls[i].call(5000) != -1 || errno != EINTR || !seen || now() - since > 4) {
			printf("%s did not end with EINTR: errno %d, %d signals\n", calls[i].name, errno,
			       seen);
			fflush(stdout);
			_exit(99);
		}
	}
}

/* ---- leaving by longjmp --------------------------------------------------------------------*/
static sigjmp_buf place;

static void jump(int number)
{
	siglongjmp(place, number);
}

static jmp_buf plain_place;

static void plain_jump(int number)
{
	longjmp(plain_place, number);
}

static void case_longjmp(void)
{
	struct itimerval once = { { 0, 0 }, { 0, 10000 } };
	volatile int jumps = 0;
	sigset_t alarm_only;

	open_quiet();
	for (volatile int i = 0; i < CALLS; i++) {
		handle(SIGALRM, jump, 0);
		if (sigsetjmp(place, 1) == 0) {
			CHECK(!setitimer(ITIMER_REAL, &once, NULL));
			calls[i].call(5000);
			CHECK(false);
		}
		jumps++;
		work_for(0.02);
		/* without the mask */
		handle(SIGALRM, plain_jump, 0);
		if (setjmp(plain_place) == 0) {
			CHECK(!setitimer(ITIMER_REAL, &once, NULL));
			calls[i].call(5000);
			CHECK(false);
		}
		jumps++;
		sigemptyset(&alarm_only);
		sigaddset(&alarm_only, SIGALRM);
		sigprocmask(SIG_UNBLOCK, &alarm_only, NULL);
		work_for(0.02);
	}
	/* out of anything at all */
	for (volatile int i = 0; i < 100; i++) {
		handle(SIGALRM, jump, 0);
		once.it_value.tv_usec = 500 + 37 * i;
		if (sigsetjmp(place, 1) == 0) {
			CHECK(!setitimer(ITIMER_REAL, &once, NULL));
			for (;;)
				work_once();
		}
	}
	CHECK(jumps == 2 * CALLS);
}

int main(int argc, char **argv)
{
	static const struct app_case cases[] = {
		{ "block_all", case_block_all }, { "ours", case_ours },     { "sigwait", case_sigwait },
		{ "signalfd", case_signalfd },   { "urgent", case_urgent }, { "sigsuspend", case_sigsuspend },
		{ "profiled", case_profiled },   { "trap", case_trap },     { "nested", case_nested },
		{ "no_eintr", case_no_eintr },   { "eintr", case_eintr },   { "longjmp", case_longjmp },
	};

	return RUN_CASE(cases, argc, argv);
}
