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
#include <aio.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

/* the other wrap_*.c */
#define CA_WRAPPED_BASE(X)                                                                                   \
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
	X(mlockall, "")                                                                                      \
	X(setrlimit, "")                                                                                     \
	X(setrlimit64, "")                                                                                   \
	X(prlimit, "")                                                                                       \
	X(prlimit64, "")                                                                                     \
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
	X(eventfd, "")                                                                                       \
	X(close, "")                                                                                         \
	X(close_range, "")                                                                                   \
	X(closefrom, "")                                                                                     \
	X(dup2, "")                                                                                          \
	X(dup3, "")                                                                                          \
	X(pipe, "")                                                                                          \
	X(pipe2, "")                                                                                         \
	X(socketpair, "")                                                                                    \
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
	X(epoll_ctl, "")                                                                                     \
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
	X(sigaltstack, "")                                                                                   \
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
	X(posix_spawnp, "")                                                                                  \
	X(longjmp, "")                                                                                       \
	X(_longjmp, "")                                                                                      \
	X(siglongjmp, "")                                                                                    \
	X(__longjmp_chk, "GLIBC_2.11")                                                                       \
	X(swapcontext, "")                                                                                   \
	X(setcontext, "")
/* wrap_file.c */
#define CA_WRAPPED_FILE(X)                                                                                   \
	X(preadv, "")                                                                                        \
	X(preadv64, "")                                                                                      \
	X(preadv2, "")                                                                                       \
	X(preadv64v2, "")                                                                                    \
	X(pwrite, "")                                                                                        \
	X(pwrite64, "")                                                                                      \
	X(pwritev, "")                                                                                       \
	X(pwritev64, "")                                                                                     \
	X(pwritev2, "")                                                                                      \
	X(pwritev64v2, "")                                                                                   \
	X(__recvfrom_chk, "")                                                                                \
	X(__pread_chk, "")                                                                                   \
	X(__pread64_chk, "")                                                                                 \
	X(recvmmsg, "")                                                                                      \
	X(sendmmsg, "")                                                                                      \
	X(sendfile, "")                                                                                      \
	X(sendfile64, "")                                                                                    \
	X(splice, "")                                                                                        \
	X(tee, "")                                                                                           \
	X(vmsplice, "")                                                                                      \
	X(copy_file_range, "")                                                                               \
	X(eventfd_read, "")                                                                                  \
	X(eventfd_write, "")                                                                                 \
	X(flock, "")                                                                                         \
	X(lockf, "")                                                                                         \
	X(lockf64, "")                                                                                       \
	X(fcntl, "")                                                                                         \
	X(fcntl64, "")                                                                                       \
	X(msync, "")                                                                                         \
	X(syncfs, "")                                                                                        \
	X(sync_file_range, "")                                                                               \
	X(getaddrinfo, "")                                                                                   \
	X(getnameinfo, "")                                                                                   \
	X(gethostbyname, "")                                                                                 \
	X(gethostbyname2, "")                                                                                \
	X(gethostbyaddr, "")                                                                                 \
	X(gethostbyname_r, "")                                                                               \
	X(gethostbyname2_r, "")                                                                              \
	X(gethostbyaddr_r, "")                                                                               \
	X(aio_suspend, "")                                                                                   \
	X(aio_suspend64, "")                                                                                 \
	X(mq_send, "")                                                                                       \
	X(mq_receive, "")                                                                                    \
	X(mq_timedsend, "")                                                                                  \
	X(mq_timedreceive, "")
/* wrap_stdio.c */
#define CA_WRAPPED_STDIO(X)                                                                                  \
	X(fread, "")                                                                                         \
	X(fread_unlocked, "")                                                                                \
	X(__fread_chk, "")                                                                                   \
	X(__fread_unlocked_chk, "")                                                                          \
	X(fgets, "")                                                                                         \
	X(fgets_unlocked, "")                                                                                \
	X(__fgets_chk, "")                                                                                   \
	X(__fgets_unlocked_chk, "")                                                                          \
	X(getline, "")                                                                                       \
	X(getdelim, "")                                                                                      \
	X(__getdelim, "")                                                                                    \
	X(fgetc, "")                                                                                         \
	X(getc, "")                                                                                          \
	X(_IO_getc, "")                                                                                      \
	X(getchar, "")                                                                                       \
	X(fgetc_unlocked, "")                                                                                \
	X(getc_unlocked, "")                                                                                 \
	X(getchar_unlocked, "")                                                                              \
	X(__uflow, "")                                                                                       \
	X(fwrite, "")                                                                                        \
	X(fwrite_unlocked, "")                                                                               \
	X(fputs, "")                                                                                         \
	X(fputs_unlocked, "")                                                                                \
	X(puts, "")                                                                                          \
	X(fputc, "")                                                                                         \
	X(putc, "")                                                                                          \
	X(_IO_putc, "")                                                                                      \
	X(putchar, "")                                                                                       \
	X(fputc_unlocked, "")                                                                                \
	X(putc_unlocked, "")                                                                                 \
	X(putchar_unlocked, "")                                                                              \
	X(__overflow, "")                                                                                    \
	X(fflush, "")                                                                                        \
	X(fflush_unlocked, "")                                                                               \
	X(fclose, "")                                                                                        \
	X(printf, "")                                                                                        \
	X(fprintf, "")                                                                                       \
	X(vprintf, "")                                                                                       \
	X(vfprintf, "")                                                                                      \
	X(__printf_chk, "")                                                                                  \
	X(__fprintf_chk, "")                                                                                 \
	X(__vprintf_chk, "")                                                                                 \
	X(__vfprintf_chk, "")                                                                                \
	X(dprintf, "")                                                                                       \
	X(vdprintf, "")                                                                                      \
	X(__dprintf_chk, "")                                                                                 \
	X(__vdprintf_chk, "")
/* wrap_process.c, wrap_old_signals.c */
#define CA_WRAPPED_PROCESS(X)                                                                                \
	X(fork, "")                                                                                          \
	X(vfork, "")                                                                                         \
	X(exit, "")                                                                                          \
	X(_exit, "")                                                                                         \
	X(_Exit, "")                                                                                         \
	X(quick_exit, "")                                                                                    \
	X(wait3, "")                                                                                         \
	X(system, "")                                                                                        \
	X(popen, "")                                                                                         \
	X(pclose, "")                                                                                        \
	X(execveat, "")                                                                                      \
	X(raise, "")                                                                                         \
	X(sigqueue, "")                                                                                      \
	X(tgkill, "")                                                                                        \
	X(pidfd_send_signal, "")                                                                             \
	X(__xpg_sigpause, "")                                                                                \
	X(sighold, "")                                                                                       \
	X(sigset, "")                                                                                        \
	X(sigignore, "")                                                                                     \
	X(sigblock, "")                                                                                      \
	X(sigsetmask, "")                                                                                    \
	X(siginterrupt, "")                                                                                  \
	X(thrd_yield, "")                                                                                    \
	X(thrd_sleep, "")                                                                                    \
	X(pthread_clockjoin_np, "")                                                                          \
	X(pthread_rwlock_clockrdlock, "")                                                                    \
	X(pthread_rwlock_clockwrlock, "")
#define CA_WRAPPED(X)                                                                                        \
	CA_WRAPPED_BASE(X)                                                                                   \
	CA_WRAPPED_FILE(X)                                                                                   \
	CA_WRAPPED_STDIO(X)                                                                                  \
	CA_WRAPPED_PROCESS(X)

pid_t wait4(pid_t, int *, int, struct rusage *);
pid_t wait3(int *, int, struct rusage *);
/* in headers that are newer than the functions, or behind macros */
int pidfd_send_signal(int, int, siginfo_t *, unsigned);
int __xpg_sigpause(int);
int _IO_getc(FILE *);
int _IO_putc(int, FILE *);
int __uflow(FILE *);
int __overflow(FILE *, int);
/* what _FORTIFY_SOURCE makes of some */
ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __recv_chk(int, void *, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, __SOCKADDR_ARG, socklen_t *);
ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void *, size_t, off64_t, size_t);
size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);
size_t __fread_unlocked_chk(void *, size_t, size_t, size_t, FILE *);
char *__fgets_chk(char *, size_t, int, FILE *);
char *__fgets_unlocked_chk(char *, size_t, int, FILE *);
int __printf_chk(int, const char *, ...);
int __fprintf_chk(FILE *, int, const char *, ...);
int __vprintf_chk(int, const char *, va_list);
int __vfprintf_chk(FILE *, int, const char *, va_list);
int __dprintf_chk(int, int, const char *, ...);
int __vdprintf_chk(int, int, const char *, va_list);
void __longjmp_chk(struct __jmp_buf_tag *, int) __attribute__((noreturn));
int __poll_chk(struct pollfd *, nfds_t, int, size_t);
int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);

/* some of them are wrapped for the sake of old programs */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
struct ca_real {
#define X(name, version) __typeof__(&name) name;
	CA_WRAPPED(X)
#undef X
};
#pragma GCC diagnostic pop
extern CA_HIDDEN struct ca_real ca_real;
/* What it was before glibc 2.34; NULL: there is none. */
extern CA_HIDDEN int (*ca_real_old_pthread_kill)(pthread_t, int);
/* Look all of them up: in the constructor. */
CA_HIDDEN void ca_real_resolve(void);
/* Earlier, when another library's constructor calls one of them, only that one: the search may
 * itself come back here, through a malloc that is not libc's. */
CA_HIDDEN void ca_real_resolve_at(void *member);
/* One that has no row, since most programs do not have it. What was opened with a library for
 * itself alone is found by a look from its caller. NULL: there is none. */
CA_HIDDEN void *ca_real_find(const char *name, const void *caller);
/* The same, remembered: for functions that are called often. name: one text for all calls from there. */
CA_HIDDEN void *ca_real_for(const char *name, const void *caller);

#define REAL(name)                                                                                           \
	(__extension__({                                                                                     \
		if (__builtin_expect(!ca_real.name, 0))                                                      \
			ca_real_resolve_at((void *)&ca_real.name);                                           \
		ca_real.name;                                                                                \
	}))

#endif
