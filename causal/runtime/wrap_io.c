/* SPDX-License-Identifier: MIT */
/* Reads and writes, connections, waits for children. Who is at the other end of a descriptor decides
 * whether its wait is for others of the run or for the world outside (peers.h). */
#include "causal/runtime/channel.h"
#include "causal/runtime/peers.h"
#include "causal/runtime/wrap.h"
#include "causal/runtime/wrap_timer.h"
#include "core/sys.h"
#include <errno.h>
#include <limits.h>

static bool is_on(void)
{
	return ca_rt.session && atomic_load_explicit(&ca_rt.on, memory_order_relaxed) && ca_self &&
	       !ca_self->guard;
}

/* of one of the many types that the prototype stands for */
static const void *address(__CONST_SOCKADDR_ARG to)
{
	return to.__sockaddr__;
}

CA_EXPORT ssize_t read(int fd, void *data, size_t n)
{
	ssize_t result;

	if (ca_wrap_timer_read(fd, data, n, &result))
		return result;
	return FROM_FD_N(fd, n, REAL(read)(fd, data, n));
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
	return FROM_FD_N(fd, n, REAL(__read_chk)(fd, data, n, room));
}

CA_EXPORT ssize_t __recv_chk(int fd, void *data, size_t n, size_t room, int flags)
{
	return HELD_FD_N(fd, flags & MSG_PEEK ? 0 : n, REAL(__recv_chk)(fd, data, n, room, flags));
}

CA_EXPORT ssize_t recv(int fd, void *data, size_t n, int flags)
{
	return HELD_FD_N(fd, flags & MSG_PEEK ? 0 : n, REAL(recv)(fd, data, n, flags));
}

CA_EXPORT ssize_t recvfrom(int fd, void *restrict data, size_t n, int flags, __SOCKADDR_ARG from,
			   socklen_t *restrict size)
{
	return HELD_FD_N(fd, flags & MSG_PEEK ? 0 : n, REAL(recvfrom)(fd, data, n, flags, from, size));
}

CA_EXPORT ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	return HELD_FD(fd, REAL(recvmsg)(fd, m, flags));
}

CA_EXPORT int recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *timeout)
{
	return HELD_FD(fd, REAL(recvmmsg)(fd, m, n, flags, timeout));
}

/* A connection that comes: who has made it? */
#define ACCEPTING(fd, call)                                                                                  \
	__extension__({                                                                                      \
		struct ca_waiting waiting_ = ca_wait_begin(CA_WAIT_EXTERNAL, (fd));                          \
		bool held_ = ca_thread_hold();                                                               \
		int result_ = (call);                                                                        \
		ca_thread_release(held_);                                                                    \
		accepted(&waiting_, result_);                                                                \
		ca_wait_end(&waiting_);                                                                      \
		result_;                                                                                     \
	})

static void accepted(struct ca_waiting *w, int fd)
{
	int saved = errno;

	if (w->thread && fd >= 0) {
		w->kind = ca_peers_of_accept(w->fd, fd);
		w->fd = -1;
	}
	errno = saved;
}

CA_EXPORT int accept(int fd, __SOCKADDR_ARG from, socklen_t *restrict size)
{
	return ACCEPTING(fd, REAL(accept)(fd, from, size));
}

CA_EXPORT int accept4(int fd, __SOCKADDR_ARG from, socklen_t *restrict size, int flags)
{
	return ACCEPTING(fd, REAL(accept4)(fd, from, size, flags));
}

CA_EXPORT int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t size)
{
	int result, saved = errno;

	if (is_on())
		ca_peers_connect(fd, address(to), size);
	errno = saved;
	result = HELD(CA_WAIT_EXTERNAL, fd, REAL(connect)(fd, to, size));
	saved = errno;
	if (is_on())
		ca_peers_connected(fd);
	errno = saved;
	return result;
}

/* Both ends are ours, until somebody hands one of them on. */
static int made(int result, const int fd[2])
{
	int saved = errno;

	if (result == 0 && is_on())
		ca_peers_made(fd);
	errno = saved;
	return result;
}

CA_EXPORT int pipe(int fd[2])
{
	return made(REAL(pipe)(fd), fd);
}

CA_EXPORT int pipe2(int fd[2], int flags)
{
	return made(REAL(pipe2)(fd, flags), fd);
}

CA_EXPORT int socketpair(int domain, int type, int protocol, int fd[2])
{
	return made(REAL(socketpair)(domain, type, protocol, fd), fd);
}

CA_EXPORT int eventfd(unsigned value, int flags)
{
	int fd = REAL(eventfd)(value, flags);
	const int both[] = { fd, fd };

	made(fd < 0, both);
	return fd;
}

/* The number leads somewhere else from now on. Closing does not block (but with SO_LINGER), and the end of
 * a pipe comes early by what its thread has made since its last write. */
CA_EXPORT int close(int fd)
{
	ca_channel_forget(fd);
	return REAL(close)(fd);
}

/* What is done to a number that may be one of ours at this moment. */
#define PLACING(call)                                                                                        \
	__extension__({                                                                                      \
		bool wait_ = is_on();                                                                        \
		int done_;                                                                                   \
                                                                                                             \
		if (wait_)                                                                                   \
			ca_sys_place_begin();                                                                \
		done_ = (call);                                                                              \
		if (wait_)                                                                                   \
			ca_sys_place_end();                                                                  \
		done_;                                                                                       \
	})

CA_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	ca_channel_forget_all(first, last);
	return PLACING(REAL(close_range)(first, last, flags));
}

CA_EXPORT void closefrom(int first)
{
	ca_channel_forget_all(first < 0 ? 0 : (unsigned)first, INT_MAX);
	PLACING((REAL(closefrom)(first), 0));
}

CA_EXPORT int dup2(int from, int to)
{
	ca_channel_forget(to);
	return PLACING(REAL(dup2)(from, to));
}

CA_EXPORT int dup3(int from, int to, int flags)
{
	ca_channel_forget(to);
	return PLACING(REAL(dup3)(from, to, flags));
}

static void send_to(int fd, const void *to, socklen_t size)
{
	int saved = errno;

	if (to && is_on())
		ca_peers_send_to(fd, to, size);
	errno = saved;
}

CA_EXPORT ssize_t write(int fd, const void *data, size_t n)
{
	return TO_FD(fd, n, REAL(write)(fd, data, n));
}

CA_EXPORT ssize_t writev(int fd, const struct iovec *v, int n)
{
	return TO_FD(fd, SIZE_MAX, REAL(writev)(fd, v, n));
}

CA_EXPORT ssize_t send(int fd, const void *data, size_t n, int flags)
{
	return HELD_TO_FD(fd, n, REAL(send)(fd, data, n, flags));
}

CA_EXPORT ssize_t sendto(int fd, const void *data, size_t n, int flags, __CONST_SOCKADDR_ARG to,
			 socklen_t size)
{
	send_to(fd, address(to), size);
	return HELD_TO_FD(fd, n, REAL(sendto)(fd, data, n, flags, to, size));
}

CA_EXPORT ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	if (m)
		send_to(fd, m->msg_name, m->msg_namelen);
	return HELD_TO_FD(fd, SIZE_MAX, REAL(sendmsg)(fd, m, flags));
}

/* What the kernel has not looked at may not be there: of the others the end tells. */
CA_EXPORT int sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	int sent;

	if (m && n && is_on())
		send_to(fd, m->msg_hdr.msg_name, m->msg_hdr.msg_namelen);
	sent = HELD_TO_FD(fd, SIZE_MAX, REAL(sendmmsg)(fd, m, n, flags));
	for (int i = 1; i < sent && is_on(); i++)
		send_to(fd, m[i].msg_hdr.msg_name, m[i].msg_hdr.msg_namelen);
	return sent;
}

CA_EXPORT int fsync(int fd)
{
	return FROM_FD(fd, REAL(fsync)(fd));
}

CA_EXPORT int fdatasync(int fd)
{
	return FROM_FD(fd, REAL(fdatasync)(fd));
}

CA_EXPORT pid_t wait(int *status)
{
	return WAITED(WAITING(CA_WAIT_OTHERS, -1, REAL(wait)(status)));
}

CA_EXPORT pid_t waitpid(pid_t pid, int *status, int options)
{
	return WAITED(WAITING(CA_WAIT_OTHERS, -1, REAL(waitpid)(pid, status, options)));
}

CA_EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	int r = DOING(PROCESS, NULL, WAITING(CA_WAIT_OTHERS, -1, REAL(waitid)(type, id, info, options)));

	if (r == 0 && info)
		ca_timeline_waited(info->si_pid);
	return r;
}

CA_EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	return WAITED(WAITING(CA_WAIT_OTHERS, -1, REAL(wait4)(pid, status, options, usage)));
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
