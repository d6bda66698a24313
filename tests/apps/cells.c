/* SPDX-License-Identifier: MIT */
/* What programs do with themselves and where they put themselves: directories, roots, users, limits,
 * stacks, code and signals of their own. Each case checks that it finds what it would find alone. */
#include "tests/apps/app.h"
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

static char self[4096];

static void *works(void *unused)
{
	work_for(0.2);
	return unused;
}

static void wait_good(pid_t pid)
{
	int status;

	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Work here, in a thread, and in a child with a thread. */
static void all_kinds_of_work(void)
{
	pthread_t thread;
	pid_t pid;

	CHECK(!pthread_create(&thread, NULL, works, NULL));
	work_for(0.2);
	CHECK(!pthread_join(thread, NULL));
	pid = fork();
	if (!pid) {
		CHECK(!pthread_create(&thread, NULL, works, NULL));
		CHECK(!pthread_join(thread, NULL));
		_exit(0);
	}
	wait_good(pid);
}

/* ---- places -------------------------------------------------------------------------------------------- */
/* a working directory that is gone */
static void case_chdir(void)
{
	char place[] = "/tmp/cells-XXXXXX", now_there[4096];
	pid_t pid;

	work_for(0.1);
	CHECK(mkdtemp(place) && !chdir(place));
	CHECK(getcwd(now_there, sizeof now_there) && !strcmp(now_there, place));
	all_kinds_of_work();
	CHECK(!rmdir(place) && !getcwd(now_there, sizeof now_there) && errno == ENOENT);
	all_kinds_of_work();
	pid = fork();
	if (!pid) {
		execl(self, "cells", "work", NULL);
		_exit(1);
	}
	wait_good(pid);
	CHECK(!chdir("/"));
}

/* in which there is nothing, neither /proc nor our library */
static void case_chroot(void)
{
	char place[] = "/tmp/cells-XXXXXX";

	work_for(0.1);
	CHECK(mkdtemp(place) && !chdir(place));
	if (!chroot("."))
		CHECK(!chdir("/") && access("/proc", F_OK) == -1);
	else
		CHECK(errno == EPERM);
	all_kinds_of_work();
	if (errno = 0, !chdir("/tmp") || errno != ENOENT)
		CHECK(!rmdir(place));
}

static void case_setuid(void)
{
	bool was_root = !geteuid();
	pid_t pid;

	work_for(0.1);
	if (was_root)
		CHECK(!setgroups(0, NULL) && !setresgid(65534, 65534, 65534) &&
		      !setresuid(65534, 65534, 65534));
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
	all_kinds_of_work();
	CHECK(geteuid() && (!was_root || setuid(0) == -1));
	pid = fork();
	if (!pid) {
		execl(self, "cells", "work", NULL);
		_exit(errno != EACCES); /* where it may not be read by others */
	}
	wait_good(pid);
}

/* ---- limits -------------------------------------------------------------------------------------------- */
static void case_few_descriptors(void)
{
	struct rlimit few = { 16, 16 };
	int fd;

	CHECK(!close_range(3, ~0u, 0) && !setrlimit(RLIMIT_NOFILE, &few));
	for (int round = 0; round < 2; round++) {
		for (int wanted = 3; wanted < 16; wanted++)
			CHECK(open("/dev/null", O_RDONLY) == wanted);
		CHECK(open("/dev/null", O_RDONLY) == -1 && errno == EMFILE);
		all_kinds_of_work();
		CHECK(dup(1) == -1 && errno == EMFILE);
		for (fd = 3; fd < 16; fd++)
			CHECK(!close(fd));
		all_kinds_of_work();
	}
}

/* those that we hold, too, as daemons do it */
static void case_closes_all(void)
{
	work_for(0.1);
	for (int fd = 0; fd < 1100; fd++)
		if (fd != 1)
			close(fd);
	all_kinds_of_work();
	CHECK(!close_range(2, ~0u, 0) && !close(open("/dev/null", O_RDONLY)));
	CHECK(open("/dev/null", O_RDONLY) == 0 && open("/dev/null", O_RDONLY) == 2);
	all_kinds_of_work();
	CHECK(open("/dev/null", O_RDONLY) == 3);
}

/* no page that was ever writable becomes executable (Linux 6.3) */
static void case_mdwe(void)
{
	void *page;
	pid_t pid;

	work_for(0.1);
	prctl(65 /* PR_SET_MDWE */, 1 /* refuse */, 0, 0, 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	if (prctl(66 /* PR_GET_MDWE */, 0, 0, 0, 0) == 1)
		CHECK(mprotect(page, 4096, PROT_READ | PROT_EXEC) == -1 && errno == EACCES);
	all_kinds_of_work();
	pid = fork();
	if (!pid) {
		execl(self, "cells", "work", NULL);
		_exit(1);
	}
	wait_good(pid);
}

/* ---- threads and processes ----------------------------------------------------------------------------- */
static _Atomic bool over;

static void *busy(void *unused)
{
	while (!over) {
		char *p = malloc(100 + rand() % 1000);

		CHECK(p);
		work_once();
		free(p);
		usleep(3000);
	}
	return unused;
}

/* children of a program with many threads, some of which hold the allocator's locks */
static void case_fork_crowd(void)
{
	enum { CROWD = 50 };
	pthread_t thread[CROWD];

	for (int i = 0; i < CROWD; i++)
		CHECK(!pthread_create(&thread[i], NULL, busy, NULL));
	for (int i = 0; i < 30; i++) {
		pid_t pid = fork();

		if (!pid) {
			free(malloc(100000));
			work_for(0.01);
			if (i % 2)
				execl(self, "cells", "little", NULL);
			_exit(i % 2);
		}
		wait_good(pid);
		work_for(0.01);
	}
	over = true;
	for (int i = 0; i < CROWD; i++)
		CHECK(!pthread_join(thread[i], NULL));
}

/* ---- signals ------------------------------------------------------------------------------------------- */
static _Atomic int seen[65];

static void count(int number)
{
	seen[number]++;
}

static void case_all_handled(void)
{
	struct sigaction action = { .sa_handler = count, .sa_flags = SA_RESTART }, old;

	sigfillset(&action.sa_mask);
	for (int number = 1; number <= 64; number++)
		if (number != SIGKILL && number != SIGSTOP && (number < 32 || number >= SIGRTMIN))
			CHECK(!sigaction(number, &action, &old) && old.sa_handler == SIG_DFL);
	work_for(0.5);
	for (int number = 1; number <= 64; number++)
		CHECK(!seen[number]);
	for (int number = 1; number <= 64; number++) {
		if (number == SIGKILL || number == SIGSTOP || (number >= 32 && number < SIGRTMIN))
			continue;
		CHECK(!raise(number) && seen[number] == 1);
		CHECK(!sigaction(number, NULL, &old) && old.sa_handler == count);
		CHECK(sigismember(&old.sa_mask, SIGUSR1) == 1);
		work_for(0.005);
	}
	work_for(0.1);
	for (int number = 1; number <= 64; number++)
		CHECK(seen[number] ==
		      (number != SIGKILL && number != SIGSTOP && (number < 32 || number >= SIGRTMIN)));
}

static void tick(timer_t timer, int times)
{
	struct itimerspec every = { { 0, 4000000 }, { 0, 4000000 } }, left;

	CHECK(!timer_settime(timer, 0, &every, NULL));
	seen[SIGRTMIN + 3] = 0;
	for (double end = now() + 30; seen[SIGRTMIN + 3] < times && now() < end;)
		work_once();
	CHECK(seen[SIGRTMIN + 3] >= times);
	CHECK(!timer_gettime(timer, &left) && left.it_interval.tv_nsec == 4000000);
	CHECK(timer_getoverrun(timer) >= 0 && !timer_delete(timer));
	CHECK(timer_delete(timer) == -1 && errno == EINVAL);
}

static void case_timers(void)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_THREAD_CPUTIME_ID,
					    CLOCK_PROCESS_CPUTIME_ID };
	struct sigaction action = { .sa_handler = count, .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 3 };
	timer_t timer;

	CHECK(!sigaction(SIGRTMIN + 3, &action, NULL));
	for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
		event.sigev_notify = SIGEV_SIGNAL;
		CHECK(!timer_create(clocks[i], &event, &timer));
		tick(timer, 20);
		event.sigev_notify = SIGEV_THREAD_ID;
		event._sigev_un._tid = gettid();
		CHECK(!timer_create(clocks[i], &event, &timer));
		tick(timer, 20);
	}
}

/* ---- errno --------------------------------------------------------------------------------------------- */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;

/* What a program was linked to that is older than glibc 2.34: of a thread that has ended, it is told so. */
int old_kill(pthread_t thread, int number);
__asm__(".symver old_kill, pthread_kill@GLIBC_2.2.5");

static void *ends(void *unused)
{
	return unused;
}

static void old_names(void)
{
	double end = now() + 20;
	pthread_t thread;

	CHECK(!old_kill(pthread_self(), 0));
	CHECK(!pthread_create(&thread, NULL, ends, NULL));
	while (old_kill(thread, 0) != ESRCH && now() < end)
		usleep(1000);
	CHECK(old_kill(thread, 0) == ESRCH);
	CHECK(!pthread_join(thread, NULL));
}

/* what succeeds, or says by its result that it did not, leaves errno */
static void keeps_errno(sem_t *s, int pipe_of[2])
{
	struct timespec soon = { 0, 100000 }, at;
	struct pollfd none = { -1, 0, 0 };
	volatile nfds_t too_many = ~0ul;
	sigset_t set, old;
	pthread_t thread;
	char c = 0;

	sigemptyset(&set);
	clock_gettime(CLOCK_REALTIME, &at);
	CHECK(errno == 1234);
#define KEEPS(call)                                                                                          \
	do {                                                                                                 \
		errno = 1234;                                                                                \
		CHECK(call);                                                                                 \
		CHECK(errno == 1234);                                                                        \
		piece_of_work();                                                                             \
		CHECK(errno == 1234);                                                                        \
	} while (0)
	KEEPS(!pthread_mutex_lock(&lock));
	KEEPS(pthread_mutex_trylock(&lock) == EBUSY);
	KEEPS(pthread_cond_timedwait(&turned, &lock, &at) == ETIMEDOUT);
	KEEPS(!pthread_cond_signal(&turned) && !pthread_cond_broadcast(&turned));
	KEEPS(!pthread_mutex_unlock(&lock));
	KEEPS(!sem_post(s) && !sem_wait(s));
	KEEPS(write(pipe_of[1], &c, 1) == 1 && read(pipe_of[0], &c, 1) == 1);
	KEEPS(!nanosleep(&soon, NULL) && !usleep(100) && !clock_nanosleep(CLOCK_MONOTONIC, 0, &soon, NULL));
	KEEPS(!poll(NULL, 0, 1));
	KEEPS(!pthread_sigmask(SIG_BLOCK, &set, &old) && !sigprocmask(SIG_SETMASK, &old, NULL));
	KEEPS(pthread_kill(pthread_self(), 0) == 0);
	KEEPS(!pthread_create(&thread, NULL, works, NULL) && !pthread_join(thread, NULL));
	/* and what fails, sets it */
#define SETS(value, call)                                                                                    \
	do {                                                                                                 \
		errno = 1234;                                                                                \
		CHECK((call) == -1);                                                                         \
		CHECK(errno == (value));                                                                     \
	} while (0)
	SETS(EBADF, read(-1, &c, 1));
	SETS(EBADF, write(-1, &c, 1));
	SETS(EAGAIN, sem_trywait(s));
	SETS(ETIMEDOUT, sem_timedwait(s, &at));
	SETS(ECHILD, waitpid(-1, NULL, 0));
	SETS(ESRCH, kill(0x3fffffff, 0));
	SETS(EINVAL, sigaction(65, NULL, NULL));
	SETS(ENOENT, execl("/none", "none", NULL));
	SETS(EINVAL, poll(&none, too_many, 0));
	SETS(EAGAIN, sigtimedwait(&set, NULL, &(struct timespec){ 0, 0 }));
	old_names();
}

static void case_errno(void)
{
	int pipe_of[2];
	sem_t s;

	CHECK(!pipe(pipe_of) && !sem_init(&s, 0, 0));
	for (int i = 0; i < 4; i++) {
		for (double end = now() + 0.1; now() < end;) {
			errno = 1234;
			work_once();
			CHECK(errno == 1234);
		}
		keeps_errno(&s, pipe_of);
	}
}

/* ---- stacks and code of its own ------------------------------------------------------------------------ */
static sigjmp_buf before_overflow;

static void overflowed(int number)
{
	(void)number;
	work_for(0.01); /* ticks come on the alternate stack */
	siglongjmp(before_overflow, 1);
}

static int endless(void);
static int (*volatile again)(void) = endless;

static int endless(void)
{
	volatile char room[512];

	room[0] = 1;
	return again() + room[0];
}

static void *overflows(void *unused)
{
	static __thread char room[32768];
	struct sigaction action = { .sa_handler = overflowed, .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_sp = room, .ss_size = sizeof room };
	volatile int times = 0;

	CHECK(!sigaltstack(&stack, NULL) && !sigaction(SIGSEGV, &action, NULL));
	sigsetjmp(before_overflow, 1);
	if (times++ < 10) {
		work_for(0.02);
		endless();
	}
	work_for(0.1);
	return unused;
}

static void case_overflow(void)
{
	struct rlimit stack = { 1 << 20, 1 << 20 };
	pthread_t thread;

	CHECK(!setrlimit(RLIMIT_STACK, &stack));
	overflows(NULL);
	CHECK(!pthread_create(&thread, NULL, overflows, NULL));
	CHECK(!pthread_join(thread, NULL));
}

enum { FIBRES = 8, ROUNDS = 8000 };
static __thread ucontext_t caller, fibre[FIBRES];
static __thread int turns;

static void run_fibre(int me)
{
	for (int i = 0; i < ROUNDS; i++) {
		work_once();
		turns++;
		CHECK(!swapcontext(&fibre[me], &caller));
	}
}

static void make_fibre(int me)
{
	CHECK(!getcontext(&fibre[me]));
	fibre[me].uc_stack.ss_sp = malloc(32768);
	fibre[me].uc_stack.ss_size = 32768;
	fibre[me].uc_link = &caller;
	makecontext(&fibre[me], (void (*)(void))run_fibre, 1, me);
}

static void *switches(void *unused)
{
	for (int i = 0; i < FIBRES; i++)
		make_fibre(i);
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < FIBRES; i++) {
			CHECK(!swapcontext(&caller, &fibre[i]));
			CHECK(turns == round * FIBRES + i + 1);
		}
	for (int i = 0; i < FIBRES; i++)
		free(fibre[i].uc_stack.ss_sp);
	return unused;
}

static void case_contexts(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, switches, NULL));
	switches(NULL);
	CHECK(!pthread_join(thread, NULL));
}

/* code that is made, runs and goes, at the same address and without any file */
static void *makes_code(void *unused)
{
	static const unsigned char sums[] = {
		0x31, 0xc0,                         /* xor %eax, %eax */
		0x48, 0x01, 0xf8, 0x48, 0xff, 0xcf, /* 1: add %rdi, %rax; dec %rdi */
		0x75, 0xf8,                         /* jne 1b */
		0xc3,                               /* ret */
	};
	for (double end = now() + 0.8; now() < end;) {
		void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(page != MAP_FAILED);
		memcpy(page, sums, sizeof sums);
		CHECK(!mprotect(page, 4096, PROT_READ | PROT_EXEC));
		for (int i = 0; i < 20; i++) {
			CHECK(((uint64_t(*)(uint64_t))page)(10000) == 50005000);
			work_once();
		}
		CHECK(!munmap(page, 4096));
	}
	return unused;
}

static void case_jit(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, makes_code, NULL));
	makes_code(NULL);
	CHECK(!pthread_join(thread, NULL));
}

static void case_work(void)
{
	all_kinds_of_work();
}

static void case_little(void)
{
	work_for(0.01);
}

int main(int argc, char **argv)
{
	static const struct app_case cases[] = {
		{ "work", case_work },
		{ "little", case_little },
		{ "chdir", case_chdir },
		{ "chroot", case_chroot },
		{ "setuid", case_setuid },
		{ "few_descriptors", case_few_descriptors },
		{ "closes_all", case_closes_all },
		{ "mdwe", case_mdwe },
		{ "fork_crowd", case_fork_crowd },
		{ "all_handled", case_all_handled },
		{ "timers", case_timers },
		{ "errno", case_errno },
		{ "overflow", case_overflow },
		{ "contexts", case_contexts },
		{ "jit", case_jit },
	};

	setvbuf(stdout, NULL, _IOLBF, 0); /* nothing is left for the children to print again */
	CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0 || access("/proc/self", F_OK));
	return RUN_CASE(cases, argc, argv);
}
