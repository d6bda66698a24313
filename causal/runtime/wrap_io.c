/* SPDX-License-Identifier: MIT */
/* Waits for descriptors, timers and children. What a descriptor is decides whether its
 * wait is for others of the run or for the world outside (wait.c). */
#include "causal/runtime/wrap.h"
#include "causal/runtime/wrap_timer.h"
#include <errno.h>

#define FROM_FD(fd, call) WAITING(CA_WAIT_EXTERNAL, (fd), (call))
#define HELD_FD(fd, call) HELD(CA_WAIT_EXTERNAL, (fd), (call)) /* may have a time limit */
#define FROM_CLOCK(call)  HELD(CA_WAIT_EXTERNAL, -1, (call))

CA_EXPORT ssize_t read(int fd, void *data, size_t n)
{
	ssize_t result;

	if (ca_wrap_timer_read(fd, data, n, &result))
		return result;
	return FROM_FD(fd, REAL(read)(fd, data, n));
}

CA_EXPORT ssize_t readv(int fd, const struct iovec *v, int n)
{
	return FROM_FD(fd, REAL(readv)(fd, v, n));
}

CA_EXPORT ssize_t pread(int fd, void *data, size_t n, off_t at)
{
	return FROM_FD(fd, REAL(pread)(fd, data, n, at));
}

CA_EXPORT ssize_t pread64(int fd, void *data, size_t n, off64_t at)
{
	return FROM_FD(fd, REAL(pread64)(fd, data, n, at));
}

CA_EXPORT ssize_t __read_chk(int fd, void *data, size_t n, size_t room)
{
	return FROM_FD(fd, REAL(__read_chk)(fd, data, n, room));
}

CA_EXPORT ssize_t __recv_chk(int fd, void *data, size_t n, size_t room, int flags)
{
	return HELD_FD(fd, REAL(__recv_chk)(fd, data, n, room, flags));
}

CA_EXPORT ssize_t recv(int fd, void *data, size_t n, int flags)
{
	return HELD_FD(fd, REAL(recv)(fd, data, n, flags));
}

CA_EXPORT ssize_t recvfrom(int fd, void *restrict data, size_t n, int flags, __SOCKADDR_ARG from,
			   socklen_t *restrict size)
{
	return HELD_FD(fd, REAL(recvfrom)(fd, data, n, flags, from, size));
}

CA_EXPORT ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	return HELD_FD(fd, REAL(recvmsg)(fd, m, flags));
}

CA_EXPORT int accept(int fd, __SOCKADDR_ARG from, socklen_t *restrict size)
{
	return HELD_FD(fd, REAL(accept)(fd, from, size));
}

CA_EXPORT int accept4(int fd, __SOCKADDR_ARG from, socklen_t *restrict size, int flags)
{
	return HELD_FD(fd, REAL(accept4)(fd, from, size, flags));
}

CA_EXPORT int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t size)
{
	return HELD_FD(fd, REAL(connect)(fd, to, size));
}

CA_EXPORT ssize_t write(int fd, const void *data, size_t n)
{
	return FROM_FD(fd, REAL(write)(fd, data, n));
}

CA_EXPORT ssize_t writev(int fd, const struct iovec *v, int n)
{
	return FROM_FD(fd, REAL(writev)(fd, v, n));
}

CA_EXPORT ssize_t send(int fd, const void *data, size_t n, int flags)
{
	return HELD_FD(fd, REAL(send)(fd, data, n, flags));
}

CA_EXPORT ssize_t sendto(int fd, const void *data, size_t n, int flags, __CONST_SOCKADDR_ARG to,
			 socklen_t size)
{
	return HELD_FD(fd, REAL(sendto)(fd, data, n, flags, to, size));
}

CA_EXPORT ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	return HELD_FD(fd, REAL(sendmsg)(fd, m, flags));
}

CA_EXPORT int fsync(int fd)
{
	return FROM_FD(fd, REAL(fsync)(fd));
}

CA_EXPORT int fdatasync(int fd)
{
	return FROM_FD(fd, REAL(fdatasync)(fd));
}

/* Waits for several descriptors: what ended the wait decides. */
static enum ca_wait ended_by(const struct pollfd *fds, nfds_t n, int ready)
{
	if (ready > 0)
		for (nfds_t i = 0; i < n; i++)
			if (fds[i].revents)
				return ca_wait_kind_of_fd(fds[i].fd);
	return CA_WAIT_EXTERNAL;
}

static int only_fd(struct pollfd *fds, nfds_t n)
{
	/* poll's prototype makes gcc believe that fds is only written to */
	const struct pollfd *volatile first = fds;

	return n == 1 && first ? first->fd : -1;
}

/* result_ = call, between the two ends of a wait for fds. */
#define POLLING(fds, n, call)                                                                                \
	__extension__({                                                                                      \
		struct ca_waiting waiting_ = ca_wait_begin(CA_WAIT_EXTERNAL, only_fd(fds, n));               \
		bool held_ = ca_thread_hold();                                                               \
		int result_ = (call);                                                                        \
		ca_thread_release(held_);                                                                    \
		if (waiting_.thread)                                                                         \
			waiting_.kind = ended_by(fds, n, result_);                                           \
		ca_wait_end(&waiting_);                                                                      \
		result_;                                                                                     \
	})

CA_EXPORT int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	return POLLING(fds, n, REAL(poll)(fds, n, timeout));
}

CA_EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room)
{
	return POLLING(fds, n, REAL(__poll_chk)(fds, n, timeout, room));
}

CA_EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	sigset_t copy;

	return POLLING(fds, n, REAL(ppoll)(fds, n, timeout, ca_signals_wait_mask(mask, &copy)));
}

CA_EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
			  size_t room)
{
	sigset_t copy;

	return POLLING(fds, n, REAL(__ppoll_chk)(fds, n, timeout, ca_signals_wait_mask(mask, &copy), room));
}

CA_EXPORT int select(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict ex,
		     struct timeval *restrict timeout)
{
	return FROM_CLOCK(REAL(select)(n, in, out, ex, timeout));
}

CA_EXPORT int pselect(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict ex,
		      const struct timespec *restrict timeout, const sigset_t *restrict mask)
{
	sigset_t copy;

	return FROM_CLOCK(REAL(pselect)(n, in, out, ex, timeout, ca_signals_wait_mask(mask, &copy)));
}

CA_EXPORT int epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
	return FROM_CLOCK(REAL(epoll_wait)(fd, events, n, timeout));
}

CA_EXPORT int epoll_pwait(int fd, struct epoll_event *events, int n, int timeout, const sigset_t *mask)
{
	sigset_t copy;

	return FROM_CLOCK(REAL(epoll_pwait)(fd, events, n, timeout, ca_signals_wait_mask(mask, &copy)));
}

CA_EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int n, const struct timespec *timeout,
			   const sigset_t *mask)
{
	sigset_t copy;

	return FROM_CLOCK(REAL(epoll_pwait2)(fd, events, n, timeout, ca_signals_wait_mask(mask, &copy)));
}

CA_EXPORT pid_t wait(int *status)
{
	return WAITING(CA_WAIT_OTHERS, -1, REAL(wait)(status));
}

CA_EXPORT pid_t waitpid(pid_t pid, int *status, int options)
{
	return WAITING(CA_WAIT_OTHERS, -1, REAL(waitpid)(pid, status, options));
}

CA_EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	return WAITING(CA_WAIT_OTHERS, -1, REAL(waitid)(type, id, info, options));
}

CA_EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	return WAITING(CA_WAIT_OTHERS, -1, REAL(wait4)(pid, status, options, usage));
}

/* System V's: nothing tells who is at the other end; mostly others of the run. */
CA_EXPORT int semop(int id, struct sembuf *operations, size_t n)
{
	return HELD(CA_WAIT_OTHERS, -1, REAL(semop)(id, operations, n));
}

CA_EXPORT int semtimedop(int id, struct sembuf *operations, size_t n, const struct timespec *timeout)
{
	return HELD_FOR(ca_deadline_ns(timeout), EAGAIN,
			REAL(semtimedop)(id, operations, n, left_ ? left_ : timeout));
}

CA_EXPORT ssize_t msgrcv(int id, void *message, size_t n, long type, int flags)
{
	return HELD(CA_WAIT_OTHERS, -1, REAL(msgrcv)(id, message, n, type, flags));
}

CA_EXPORT int msgsnd(int id, const void *message, size_t n, int flags)
{
	return HELD(CA_WAIT_OTHERS, -1, REAL(msgsnd)(id, message, n, flags));
}
