/* SPDX-License-Identifier: MIT */
/* The functions that we interpose, and the real ones behind them.
 *
 * One row per function: name and the symbol version to ask for ("" for the default). A new
 * wrapper is one row here and one function in a wrap_*.c file. Wrappers are for precision
 * and for following threads and processes, never for correctness of the program: each
 * behaves exactly as the real one, errno included. */
#ifndef CA_CAUSAL_RUNTIME_REAL_H
#define CA_CAUSAL_RUNTIME_REAL_H
#include "causal/runtime/rt.h"
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define CA_WRAPPED(X)                                                                                        \
	X(pthread_create, "")                                                                                \
	X(thrd_create, "")                                                                                   \
	X(pthread_join, "")                                                                                  \
	X(pthread_tryjoin_np, "")                                                                            \
	X(pthread_timedjoin_np, "")                                                                          \
	X(thrd_join, "")                                                                                     \
	X(pthread_mutex_lock, "")                                                                            \
	X(pthread_mutex_trylock, "")                                                                         \
	X(pthread_mutex_timedlock, "")                                                                       \
	X(pthread_mutex_clocklock, "")                                                                       \
	X(pthread_mutex_unlock, "")                                                                          \
	X(mtx_lock, "")                                                                                      \
	X(mtx_trylock, "")                                                                                   \
	X(mtx_timedlock, "")                                                                                 \
	X(mtx_unlock, "")                                                                                    \
	X(pthread_cond_wait, "GLIBC_2.3.2")                                                                  \
	X(pthread_cond_timedwait, "GLIBC_2.3.2")                                                             \
	X(pthread_cond_clockwait, "")                                                                        \
	X(pthread_cond_signal, "GLIBC_2.3.2")                                                                \
	X(pthread_cond_broadcast, "GLIBC_2.3.2")                                                             \
	X(cnd_wait, "")                                                                                      \
	X(cnd_timedwait, "")                                                                                 \
	X(cnd_signal, "")                                                                                    \
	X(cnd_broadcast, "")                                                                                 \
	X(pthread_barrier_wait, "")                                                                          \
	X(pthread_rwlock_rdlock, "")                                                                         \
	X(pthread_rwlock_tryrdlock, "")                                                                      \
	X(pthread_rwlock_timedrdlock, "")                                                                    \
	X(pthread_rwlock_wrlock, "")                                                                         \
	X(pthread_rwlock_trywrlock, "")                                                                      \
	X(pthread_rwlock_timedwrlock, "")                                                                    \
	X(pthread_rwlock_unlock, "")                                                                         \
	X(pthread_spin_lock, "")                                                                             \
	X(pthread_spin_trylock, "")                                                                          \
	X(pthread_spin_unlock, "")                                                                           \
	X(sem_wait, "")                                                                                      \
	X(sem_timedwait, "")                                                                                 \
	X(sem_clockwait, "")                                                                                 \
	X(sem_trywait, "")                                                                                   \
	X(sem_post, "")                                                                                      \
	X(sched_yield, "")                                                                                   \
	X(pthread_setcanceltype, "")                                                                         \
	X(pthread_cancel, "")                                                                                \
	X(setuid, "")                                                                                        \
	X(seteuid, "")                                                                                       \
	X(setreuid, "")                                                                                      \
	X(setresuid, "")                                                                                     \
	X(chroot, "")                                                                                        \
	X(pthread_kill, "")                                                                                  \
	X(pthread_sigqueue, "")                                                                              \
	X(kill, "")                                                                                          \
	X(syscall, "")                                                                                       \
	X(read, "")                                                                                          \
	X(readv, "")                                                                                         \
	X(pread, "")                                                                                         \
	X(pread64, "")                                                                                       \
	X(__read_chk, "")                                                                                    \
	X(__recv_chk, "")                                                                                    \
	X(recv, "")                                                                                          \
	X(recvfrom, "")                                                                                      \
	X(recvmsg, "")                                                                                       \
	X(accept, "")                                                                                        \
	X(accept4, "")                                                                                       \
	X(connect, "")                                                                                       \
	X(write, "")                                                                                         \
	X(writev, "")                                                                                        \
	X(send, "")                                                                                          \
	X(sendto, "")                                                                                        \
	X(sendmsg, "")                                                                                       \
	X(fsync, "")                                                                                         \
	X(fdatasync, "")                                                                                     \
	X(poll, "")                                                                                          \
	X(ppoll, "")                                                                                         \
	X(select, "")                                                                                        \
	X(pselect, "")                                                                                       \
	X(epoll_wait, "")                                                                                    \
	X(epoll_pwait, "")                                                                                   \
	X(epoll_pwait2, "")                                                                                  \
	X(__poll_chk, "")                                                                                    \
	X(__ppoll_chk, "")                                                                                   \
	X(clock_gettime, "")                                                                                 \
	X(gettimeofday, "")                                                                                  \
	X(time, "")                                                                                          \
	X(timespec_get, "")                                                                                  \
	X(timerfd_create, "")                                                                                \
	X(timerfd_settime, "")                                                                               \
	X(timerfd_gettime, "")                                                                               \
	X(timer_create, "")                                                                                  \
	X(timer_settime, "")                                                                                 \
	X(timer_gettime, "")                                                                                 \
	X(timer_delete, "")                                                                                  \
	X(setitimer, "")                                                                                     \
	X(getitimer, "")                                                                                     \
	X(alarm, "")                                                                                         \
	X(nanosleep, "")                                                                                     \
	X(clock_nanosleep, "")                                                                               \
	X(usleep, "")                                                                                        \
	X(sleep, "")                                                                                         \
	X(wait, "")                                                                                          \
	X(waitpid, "")                                                                                       \
	X(waitid, "")                                                                                        \
	X(wait4, "")                                                                                         \
	X(sigaction, "")                                                                                     \
	X(signal, "")                                                                                        \
	X(sigprocmask, "")                                                                                   \
	X(pthread_sigmask, "")                                                                               \
	X(sigwait, "")                                                                                       \
	X(sigwaitinfo, "")                                                                                   \
	X(sigtimedwait, "")                                                                                  \
	X(sigsuspend, "")                                                                                    \
	X(pause, "")                                                                                         \
	X(signalfd, "")                                                                                      \
	X(prctl, "")                                                                                         \
	X(semop, "")                                                                                         \
	X(semtimedop, "")                                                                                    \
	X(msgrcv, "")                                                                                        \
	X(msgsnd, "")                                                                                        \
	X(dlopen, "")                                                                                        \
	X(dlclose, "")                                                                                       \
	X(execv, "")                                                                                         \
	X(execvp, "")                                                                                        \
	X(execl, "")                                                                                         \
	X(execlp, "")                                                                                        \
	X(execle, "")                                                                                        \
	X(execve, "")                                                                                        \
	X(execvpe, "")                                                                                       \
	X(fexecve, "")                                                                                       \
	X(posix_spawn, "")                                                                                   \
	X(posix_spawnp, "")

pid_t wait4(pid_t, int *, int, struct rusage *);
/* what _FORTIFY_SOURCE makes of some */
ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __recv_chk(int, void *, size_t, size_t, int);
int __poll_chk(struct pollfd *, nfds_t, int, size_t);
int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);

struct ca_real {
#define X(name, version) __typeof__(&name) name;
	CA_WRAPPED(X)
#undef X
};
extern CA_HIDDEN struct ca_real ca_real;
/* Look all of them up: in the constructor. */
CA_HIDDEN void ca_real_resolve(void);
/* Earlier, when another library's constructor calls one of them, only that one: the search may
 * itself come back here, through a malloc that is not libc's. */
CA_HIDDEN void ca_real_resolve_at(void *member);

#define REAL(name)                                                                                           \
	(__extension__({                                                                                     \
		if (__builtin_expect(!ca_real.name, 0))                                                      \
			ca_real_resolve_at((void *)&ca_real.name);                                           \
		ca_real.name;                                                                                \
	}))

#endif
