/* SPDX-License-Identifier: MIT */
/* Programs under limits: descriptors, locked memory, system calls. */
#include "tests/apps/app.h"
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void *works(void *unused)
{
	work_for(0.2);
	return unused;
}

static void with_thread(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, works, NULL));
	work_for(0.2);
	CHECK(!pthread_join(thread, NULL));
}

/* none left, and none may be taken from it or given to it */
static void case_descriptors(void)
{
	struct rlimit few = { 64, 64 };
	int last = -1, fd;

	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	while ((fd = open("/dev/null", O_RDONLY)) >= 0)
		last = fd;
	CHECK(errno == EMFILE && last == 63);
	with_thread();
	CHECK(!close(last));
	CHECK(open("/dev/null", O_RDONLY) == last);
	with_thread();
}

/* a program that wants the lowest number */
static void case_lowest_descriptor(void)
{
	for (double end = now() + 0.4; now() < end;) {
		int fd = open("/dev/null", O_RDONLY);

		CHECK(fd == 3);
		work_once();
		CHECK(!close(fd));
	}
}

static void case_no_descriptors(void)
{
	struct rlimit none = { 3, 3 };

	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	with_thread();
}

static void case_many_threads(void)
{
	enum { MANY = 64 };
	pthread_t thread[MANY];

	for (int i = 0; i < MANY; i++)
		CHECK(!pthread_create(&thread[i], NULL, works, NULL));
	for (int i = 0; i < MANY; i++)
		CHECK(!pthread_join(thread[i], NULL));
}

static bool past_libc;

static long install(struct sock_fprog *program)
{
	long result;

	if (!past_libc)
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program);
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(SYS_seccomp), "D"(SECCOMP_SET_MODE_FILTER), "S"(0), "d"(program)
			 : "rcx", "r11", "memory");
	return result;
}

/* These calls fail; all others are allowed. */
static void forbid(const int *calls, size_t n, uint32_t action)
{
	struct sock_filter code[32];
	struct sock_fprog program = { 0, code };
	size_t at = 0;

	code[at++] =
		(struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < n; i++) {
		code[at++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1);
		code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
	}
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = (unsigned short)at;
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!install(&program));
}

static const int ours[] = { SYS_perf_event_open, SYS_process_vm_readv, SYS_membarrier };

static void case_seccomp_errno(void)
{
	work_for(0.1);
	forbid(ours, sizeof ours / sizeof *ours, SECCOMP_RET_ERRNO | EPERM);
	with_thread();
}

/* whoever makes such a call dies */
static void case_seccomp_kill(void)
{
	work_for(0.1);
	forbid(ours, sizeof ours / sizeof *ours, SECCOMP_RET_KILL_PROCESS);
	with_thread();
}

/* which is not seen: a new thread of ours needs a timer */
static void case_seccomp_unseen(void)
{
	static const int timers[] = { SYS_timer_create };

	past_libc = true;
	forbid(timers, 1, SECCOMP_RET_KILL_PROCESS);
	with_thread();
}

/* by its arguments */
static void forbid_argument(int call, unsigned argument, uint32_t bits)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 (uint32_t)offsetof(struct seccomp_data, args) + 8 * argument),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof *code, code };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void case_seccomp_arguments(void)
{
	static const struct {
		int call;
		unsigned argument;
		uint32_t bits;
	} forbidden[] = {
		{ SYS_openat, 2, O_RDWR },     { SYS_openat, 2, O_DIRECTORY }, { SYS_fcntl, 1, 8 },
		{ SYS_mmap, 2, PROT_EXEC },    { SYS_mprotect, 2, PROT_EXEC }, { SYS_tgkill, 2, 1 },
		{ SYS_ioctl, 1, 0xffffffffu },
	};

	for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
		pid_t child = fork();

		if (!child) {
			work_for(0.06);
			forbid_argument(forbidden[i].call, forbidden[i].argument, forbidden[i].bits);
			work_for(0.15);
			_exit(0);
		}
		CHECK(child > 0);
		int status;

		CHECK(waitpid(child, &status, 0) == child);
		if (status) {
			printf("filter %zu: status %d\n", i, status);
			fflush(stdout);
			_exit(99);
		}
	}
}

/* only what threads need that compute, for all of them at once */
static void case_seccomp_list(void)
{
	static const int allowed[] = { SYS_rt_sigreturn, SYS_futex,          SYS_exit,   SYS_exit_group,
				       SYS_write,        SYS_madvise,        SYS_munmap, SYS_newfstatat,
				       SYS_fstat,        SYS_rt_sigprocmask, SYS_rseq };
	struct sock_filter code[32];
	struct sock_fprog program = { 0, code };
	pthread_t thread[3];
	size_t at = 0;

	code[at++] =
		(struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
		code[at++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)allowed[i], 0, 1);
		code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	program.len = (unsigned short)at;
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread[i], NULL, works, NULL));
	work_for(0.1);
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_join(thread[i], NULL));
	work_for(0.2);
}

static void case_seccomp_strict(void)
{
	work_for(0.1);
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
	for (int i = 0; i < 3000; i++)
		work_once();
	CHECK(write(1, "seccomp_strict: good\n", 21) == 21);
	syscall(SYS_exit, 0); /* exit_group is not allowed */
}

/* as Wine has it: system calls past libc come back as a signal, whoever makes them */
static volatile char selector = SYSCALL_DISPATCH_FILTER_ALLOW;
static volatile sig_atomic_t dispatched;

static void on_dispatch(int signal)
{
	(void)signal;
	selector = SYSCALL_DISPATCH_FILTER_ALLOW;
	dispatched++;
}

static void case_user_dispatch(void)
{
	long r;

	with_thread();
	signal(SIGSYS, on_dispatch);
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector)) {
		CHECK(errno == EINVAL); /* before Linux 5.11 */
		return;
	}
	for (int i = 1; i <= 2000; i++) {
		selector = SYSCALL_DISPATCH_FILTER_BLOCK;
		work_once();
		__asm__ volatile("syscall" : "=a"(r) : "a"(SYS_getppid) : "rcx", "r11", "memory");
		CHECK(dispatched == i);
	}
	CHECK(!prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0));
}

static volatile sig_atomic_t alarms;

static void on_alarm(int signal)
{
	(void)signal;
	if (!alarms++)
		alarm(1);
}

/* the time-stamp counter is not to be read: no clock of ours or of libc's may be looked at meanwhile */
static void case_no_counter(void)
{
	with_thread();
	signal(SIGALRM, on_alarm);
	alarm(1);
	CHECK(!prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0));
	while (alarms < 2)
		;
	CHECK(!prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0));
	with_thread();
}

/* starts what follows under the same filter, so that it never sees the calls work */
static void case_seccomp_then(char **argv)
{
	forbid(ours, 2, SECCOMP_RET_ERRNO | EPERM);
	execv(argv[0], argv);
	CHECK(false);
}

static void deep(int n)
{
	volatile char room[64];

	room[0] = (char)n;
	if (n > 0)
		deep(n - 1);
	else
		work_for(0.4);
	room[1] = room[0];
}

static void case_deep(void)
{
	deep(20);
}

int main(int argc, char **argv)
{
	static const struct app_case cases[] = {
		{ "descriptors", case_descriptors },       { "lowest_descriptor", case_lowest_descriptor },
		{ "no_descriptors", case_no_descriptors }, { "many_threads", case_many_threads },
		{ "seccomp_errno", case_seccomp_errno },   { "seccomp_kill", case_seccomp_kill },
		{ "seccomp_unseen", case_seccomp_unseen }, { "seccomp_arguments", case_seccomp_arguments },
		{ "seccomp_list", case_seccomp_list },     { "seccomp_strict", case_seccomp_strict },
		{ "no_counter", case_no_counter },         { "deep", case_deep },
		{ "user_dispatch", case_user_dispatch },
	};

	if (argc > 2 && !strcmp(argv[1], "seccomp_then"))
		case_seccomp_then(argv + 2);
	return RUN_CASE(cases, argc, argv);
}
