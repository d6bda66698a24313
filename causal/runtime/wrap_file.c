/* SPDX-License-Identifier: MIT */
/* Waits for descriptors that wrap_io.c does not have, locks on files, the disk, message queues,
 * POSIX aio and the resolver.
 *
 * open is not here: a plain file shall cost nothing but the call, and a FIFO is opened once.
 * doc/METHOD.md says what else is not seen. */
#include "causal/runtime/wrap.h"
#include <errno.h>
#include <stdarg.h>

#define FROM_DISK(call) WAITING(CA_WAIT_EXTERNAL, -1, (call))
#define FROM_NET(call)  WAITING(CA_WAIT_EXTERNAL, -1, (call))

CA_EXPORT ssize_t preadv(int fd, const struct iovec *v, int n, off_t at)
{
	return FROM_FD(fd, REAL(preadv)(fd, v, n, at));
}

CA_EXPORT ssize_t preadv64(int fd, const struct iovec *v, int n, off64_t at)
{
	return FROM_FD(fd, REAL(preadv64)(fd, v, n, at));
}

CA_EXPORT ssize_t preadv2(int fd, const struct iovec *v, int n, off_t at, int flags)
{
	return FROM_FD(fd, REAL(preadv2)(fd, v, n, at, flags));
}

CA_EXPORT ssize_t preadv64v2(int fd, const struct iovec *v, int n, off64_t at, int flags)
{
	return FROM_FD(fd, REAL(preadv64v2)(fd, v, n, at, flags));
}

CA_EXPORT ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
	return TO_FD(fd, n, REAL(pwrite)(fd, data, n, at));
}

CA_EXPORT ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at)
{
	return TO_FD(fd, n, REAL(pwrite64)(fd, data, n, at));
}

CA_EXPORT ssize_t pwritev(int fd, const struct iovec *v, int n, off_t at)
{
	return TO_FD(fd, SIZE_MAX, REAL(pwritev)(fd, v, n, at));
}

CA_EXPORT ssize_t pwritev64(int fd, const struct iovec *v, int n, off64_t at)
{
	return TO_FD(fd, SIZE_MAX, REAL(pwritev64)(fd, v, n, at));
}

CA_EXPORT ssize_t pwritev2(int fd, const struct iovec *v, int n, off_t at, int flags)
{
	return TO_FD(fd, SIZE_MAX, REAL(pwritev2)(fd, v, n, at, flags));
}

CA_EXPORT ssize_t pwritev64v2(int fd, const struct iovec *v, int n, off64_t at, int flags)
{
	return TO_FD(fd, SIZE_MAX, REAL(pwritev64v2)(fd, v, n, at, flags));
}

CA_EXPORT ssize_t __recvfrom_chk(int fd, void *data, size_t n, size_t room, int flags, __SOCKADDR_ARG from,
				 socklen_t *size)
{
	return HELD_FD(fd, REAL(__recvfrom_chk)(fd, data, n, room, flags, from, size));
}

CA_EXPORT ssize_t __pread_chk(int fd, void *data, size_t n, off_t at, size_t room)
{
	return FROM_FD(fd, REAL(__pread_chk)(fd, data, n, at, room));
}

CA_EXPORT ssize_t __pread64_chk(int fd, void *data, size_t n, off64_t at, size_t room)
{
	return FROM_FD(fd, REAL(__pread64_chk)(fd, data, n, at, room));
}

/* What comes from a file goes to somebody: that one makes it wait. */
CA_EXPORT ssize_t sendfile(int out, int in, off_t *at, size_t n)
{
	return HELD_TO_FD(out, SIZE_MAX, REAL(sendfile)(out, in, at, n));
}

CA_EXPORT ssize_t sendfile64(int out, int in, off64_t *at, size_t n)
{
	return HELD_TO_FD(out, SIZE_MAX, REAL(sendfile64)(out, in, at, n));
}

/* Who forwards waits for what is to come, mostly. */
CA_EXPORT ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t n, unsigned flags)
{
	return HELD_TO_FD(out, SIZE_MAX, REAL(splice)(in, in_at, out, out_at, n, flags));
}

CA_EXPORT ssize_t tee(int in, int out, size_t n, unsigned flags)
{
	return TO_FD(out, SIZE_MAX, REAL(tee)(in, out, n, flags));
}

CA_EXPORT ssize_t vmsplice(int fd, const struct iovec *v, size_t n, unsigned flags)
{
	return TO_FD(fd, SIZE_MAX, REAL(vmsplice)(fd, v, n, flags));
}

CA_EXPORT ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t n, unsigned flags)
{
	return FROM_FD(in, REAL(copy_file_range)(in, in_at, out, out_at, n, flags));
}

CA_EXPORT int eventfd_read(int fd, eventfd_t *value)
{
	return FROM_FD(fd, REAL(eventfd_read)(fd, value));
}

CA_EXPORT int eventfd_write(int fd, eventfd_t value)
{
	return TO_FD(fd, SIZE_MAX, REAL(eventfd_write)(fd, value));
}

/* ---- locks on files: between processes, mostly of the run ----------------------------------*/
CA_EXPORT int flock(int fd, int operation)
{
	if (operation & (LOCK_NB | LOCK_UN))
		return MEETING(REAL(flock)(fd, operation));
	return DOING(LOCK, NULL, WAITING(CA_WAIT_OTHERS, -1, REAL(flock)(fd, operation)));
}

CA_EXPORT int lockf(int fd, int command, off_t n)
{
	if (command != F_LOCK)
		return MEETING(REAL(lockf)(fd, command, n));
	return DOING(LOCK, NULL, WAITING(CA_WAIT_OTHERS, -1, REAL(lockf)(fd, command, n)));
}

CA_EXPORT int lockf64(int fd, int command, off64_t n)
{
	if (command != F_LOCK)
		return MEETING(REAL(lockf64)(fd, command, n));
	return DOING(LOCK, NULL, WAITING(CA_WAIT_OTHERS, -1, REAL(lockf64)(fd, command, n)));
}

/* Whatever the command takes: a number or a pointer, libc reads it as a pointer, too. */
#define CONTROL(name, fd, command)                                                                           \
	__extension__({                                                                                      \
		va_list list_;                                                                               \
		void *argument_;                                                                             \
		int done_;                                                                                   \
                                                                                                             \
		va_start(list_, command);                                                                    \
		argument_ = va_arg(list_, void *);                                                           \
		va_end(list_);                                                                               \
		switch (command) {                                                                           \
		case F_SETLKW:                                                                               \
		case F_OFD_SETLKW:                                                                           \
			done_ = WAITING(CA_WAIT_OTHERS, -1, REAL(name)(fd, command, argument_));             \
			break;                                                                               \
		case F_SETLK:                                                                                \
		case F_OFD_SETLK:                                                                            \
			done_ = MEETING(REAL(name)(fd, command, argument_));                                 \
			break;                                                                               \
		default:                                                                                     \
			done_ = REAL(name)(fd, command, argument_);                                          \
		}                                                                                            \
		done_;                                                                                       \
	})

CA_EXPORT int fcntl(int fd, int command, ...)
{
	return CONTROL(fcntl, fd, command);
}

CA_EXPORT int fcntl64(int fd, int command, ...)
{
	return CONTROL(fcntl64, fd, command);
}

/* ---- disks -----------------------------------------------------------------------------------*/
CA_EXPORT int msync(void *at, size_t n, int flags)
{
	if (!(flags & MS_SYNC))
		return REAL(msync)(at, n, flags);
	return FROM_DISK(REAL(msync)(at, n, flags));
}

CA_EXPORT int syncfs(int fd)
{
	return FROM_DISK(REAL(syncfs)(fd));
}

CA_EXPORT int sync_file_range(int fd, off64_t at, off64_t n, unsigned flags)
{
	return FROM_DISK(REAL(sync_file_range)(fd, at, n, flags));
}

/* Its worker threads are libc's own; what they wait for is the disk. */
CA_EXPORT int aio_suspend(const struct aiocb *const list[], int n, const struct timespec *restrict timeout)
{
	return HELD(CA_WAIT_EXTERNAL, -1, REAL(aio_suspend)(list, n, timeout));
}

CA_EXPORT int aio_suspend64(const struct aiocb64 *const list[], int n,
			    const struct timespec *restrict timeout)
{
	return HELD(CA_WAIT_EXTERNAL, -1, REAL(aio_suspend64)(list, n, timeout));
}

/* ---- the resolver: files, servers and other processes, none of them ours ----------------------*/
CA_EXPORT int getaddrinfo(const char *restrict name, const char *restrict service,
			  const struct addrinfo *restrict hints, struct addrinfo **restrict found)
{
	return FROM_NET(REAL(getaddrinfo)(name, service, hints, found));
}

CA_EXPORT int getnameinfo(const struct sockaddr *restrict address, socklen_t size, char *restrict host,
			  socklen_t host_room, char *restrict service, socklen_t service_room, int flags)
{
	return FROM_NET(REAL(getnameinfo)(address, size, host, host_room, service, service_room, flags));
}

CA_EXPORT struct hostent *gethostbyname(const char *name)
{
	return FROM_NET(REAL(gethostbyname)(name));
}

CA_EXPORT struct hostent *gethostbyname2(const char *name, int family)
{
	return FROM_NET(REAL(gethostbyname2)(name, family));
}

CA_EXPORT struct hostent *gethostbyaddr(const void *address, socklen_t size, int family)
{
	return FROM_NET(REAL(gethostbyaddr)(address, size, family));
}

CA_EXPORT int gethostbyname_r(const char *restrict name, struct hostent *restrict host, char *restrict room,
			      size_t n, struct hostent **restrict found, int *restrict error)
{
	return FROM_NET(REAL(gethostbyname_r)(name, host, room, n, found, error));
}

CA_EXPORT int gethostbyname2_r(const char *restrict name, int family, struct hostent *restrict host,
			       char *restrict room, size_t n, struct hostent **restrict found,
			       int *restrict error)
{
	return FROM_NET(REAL(gethostbyname2_r)(name, family, host, room, n, found, error));
}

CA_EXPORT int gethostbyaddr_r(const void *restrict address, socklen_t size, int family,
			      struct hostent *restrict host, char *restrict room, size_t n,
			      struct hostent **restrict found, int *restrict error)
{
	return FROM_NET(REAL(gethostbyaddr_r)(address, size, family, host, room, n, found, error));
}

/* ---- POSIX message queues: as System V's in wrap_io.c -----------------------------------------*/
CA_EXPORT int mq_send(mqd_t queue, const char *message, size_t n, unsigned priority)
{
	return HELD(CA_WAIT_OTHERS, -1, REAL(mq_send)(queue, message, n, priority));
}

CA_EXPORT ssize_t mq_receive(mqd_t queue, char *message, size_t n, unsigned *priority)
{
	return HELD(CA_WAIT_OTHERS, -1, REAL(mq_receive)(queue, message, n, priority));
}

CA_EXPORT int mq_timedsend(mqd_t queue, const char *message, size_t n, unsigned priority,
			   const struct timespec *until)
{
	return HELD_UNTIL(until, ETIMEDOUT, REAL(mq_timedsend)(queue, message, n, priority, until_));
}

CA_EXPORT ssize_t mq_timedreceive(mqd_t queue, char *restrict message, size_t n, unsigned *restrict priority,
				  const struct timespec *restrict until)
{
	return HELD_UNTIL(until, ETIMEDOUT, REAL(mq_timedreceive)(queue, message, n, priority, until_));
}
