/* SPDX-License-Identifier: MIT */
/* Processes that begin, end and are waited for, and signals to others: what is owed is paid before
 * another process can notice. wrap_thread.c has exec and posix_spawn.
 *
 * A child of vfork uses its parent's record, while the parent stands still: what it pays is the
 * parent's debt. */
#include "causal/runtime/start.h"
#include "causal/runtime/wrap.h"
#include <errno.h>

CA_EXPORT pid_t fork(void)
{
	return MEETING(REAL(fork)());
}

/* It returns twice, so nothing of ours may stand on the stack: pay, then jump. */
__attribute__((used)) static void *before_vfork(void)
{
	ca_wait_meet();
	ca_timeline_makes();
	return (void *)REAL(vfork);
}

__asm__(".text\n"
	".globl vfork\n"
	".type vfork, @function\n"
	"vfork:\n"
	"	.cfi_startproc\n"
	"	sub $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call before_vfork\n"
	"	add $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	jmp *%rax\n"
	"	.cfi_endproc\n"
	".size vfork, . - vfork\n");

#define LEAVE(name, last)                                                                                    \
	CA_EXPORT void name(int status)                                                                      \
	{                                                                                                    \
		ca_wait_meet();                                                                              \
		last;                                                                                        \
		REAL(name)(status);                                                                          \
		__builtin_unreachable();                                                                     \
	}
LEAVE(exit, ) /* it calls our destructor */
LEAVE(_exit, ca_start_leave())
LEAVE(_Exit, ca_start_leave())
LEAVE(quick_exit, ca_start_leave())

/* Who returns from main calls no exit that we see; and what the program does when it ends is work,
 * too. */
__attribute__((destructor)) static void last_meeting(void)
{
	ca_wait_meet();
}

CA_EXPORT pid_t wait3(int *status, int options, struct rusage *usage)
{
	return WAITED(WAITING(CA_WAIT_OTHERS, -1, REAL(wait3)(status, options, usage)));
}

/* Libc starts the shell itself, with the environment as it is: we come along in it. */
CA_EXPORT int system(const char *command)
{
	return MAKING(WAITED_UNKNOWN(WAITING(CA_WAIT_OTHERS, -1, REAL(system)(command))));
}

CA_EXPORT FILE *popen(const char *command, const char *mode)
{
	return MAKING(MEETING(REAL(popen)(command, mode)));
}

CA_EXPORT int pclose(FILE *f)
{
	return WAITED_UNKNOWN(WAITING(CA_WAIT_OTHERS, -1, REAL(pclose)(f)));
}

/* ---- signals to others -------------------------------------------------------------------------*/
CA_EXPORT int raise(int signal)
{
	return MEETING(REAL(raise)(signal));
}

CA_EXPORT int sigqueue(pid_t pid, int signal, const union sigval value)
{
	return MEETING(REAL(sigqueue)(pid, signal, value));
}

CA_EXPORT int tgkill(pid_t process, pid_t thread, int signal)
{
	return MEETING(REAL(tgkill)(process, thread, signal));
}

CA_EXPORT int pidfd_send_signal(int fd, int signal, siginfo_t *info, unsigned flags)
{
	return MEETING(REAL(pidfd_send_signal)(fd, signal, info, flags));
}

/* ---- threads -----------------------------------------------------------------------------------*/
CA_EXPORT void thrd_yield(void)
{
	ca_rt_spins(ca_self, CA_RT_YIELD_TURNS);
	WAITING(CA_WAIT_OTHERS, -1, (REAL(thrd_yield)(), 0));
}

/* ---- with a time limit -------------------------------------------------------------------------*/
CA_EXPORT int pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock,
				   const struct timespec *until)
{
	return WAITING_UNTIL(until, ETIMEDOUT, REAL(pthread_clockjoin_np)(thread, value, clock, until_));
}

CA_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *until)
{
	return WAITING_UNTIL(until, ETIMEDOUT, REAL(pthread_rwlock_clockrdlock)(l, clock, until_));
}

CA_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *until)
{
	return WAITING_UNTIL(until, ETIMEDOUT, REAL(pthread_rwlock_clockwrlock)(l, clock, until_));
}

CA_EXPORT int thrd_sleep(const struct timespec *time, struct timespec *left)
{
	ca_wait_sleep(ca_deadline_ns(time));
	return HELD(CA_WAIT_EXTERNAL, -1, REAL(thrd_sleep)(time, left));
}
