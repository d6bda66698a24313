/* SPDX-License-Identifier: MIT */
/* Children in which a system call fails: what is forbidden or used up elsewhere, on any machine. */
#ifndef CA_TESTS_FORBIDDEN_H
#define CA_TESTS_FORBIDDEN_H
#include "tests/unit/unit.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* From now on the system call fails with `error` in this process. */
static inline void forbid_call(unsigned number, unsigned error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { CA_COUNT(filter), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("seccomp");
		_exit(99);
	}
	if (syscall(number, -1, -1, -1, -1, -1, -1) != -1 || errno != (int)error)
		_exit(98);
}

/* Runs the test in a child where the system call fails. */
static inline void without_call(unsigned number, unsigned error, void (*test)(void **))
{
	int status;
	pid_t child = fork();

	if (child == 0) { /* a run of its own: a failed assertion must end up here */
		const struct CMUnitTest alone[] = { { "without a system call", test, NULL, NULL, NULL } };

		forbid_call(number, error);
		_exit(cmocka_run_group_tests(alone, NULL, NULL));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (status)
		fail_msg("without call %u, error %u: status %#x", number, error, (unsigned)status);
}

#endif
