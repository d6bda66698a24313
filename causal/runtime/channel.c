/* SPDX-License-Identifier: MIT */
/* Descriptors and where they lead to; see channel.h. Ordinary context, no locks: threads that look at
 * the same descriptor at once find the same. */
#include "causal/runtime/channel.h"
#include "core/cpu.h"
#include "core/fmt.h"
#include "core/sys.h"
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

enum {
	KNOWN = 1024, /* descriptors that are remembered */
	/* cycles, about 1 and 10 ms: so long nobody looks whether it is still the same file, the longer it has been that */
	GOOD_FOR = 3000000,
	LONG_GOOD_FOR = 30000000,
	OF_ITS_AGE = 16,
	ADDRESS = 16, /* bytes of an address */
	PAGE = 4096
};

#define OF_A_FILE (UINT64_C(1) << 61) /* or shared: what the kernel says of a page */

static struct known {
	_Atomic uint32_t version; /* odd while it is written */
	int fd;
	uint64_t device, inode, looked, found; /* the times in cycles */
	struct ca_channel channel;
} known[KNOWN];

static uint64_t mix(uint64_t h, uint64_t value)
{
	h = (h ^ value) + UINT64_C(0x9e3779b97f4a7c15);
	h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
	return h ^ (h >> 31);
}

static uint64_t name(enum ca_channel_kind kind, uint64_t a, uint64_t b)
{
	uint64_t h = mix(mix(mix(1, kind), a), b);

	return h ? h : 1;
}

struct end {
	unsigned char address[ADDRESS]; /* IPv4 as it is mapped into IPv6 */
	uint16_t port;
};

static bool end_of(const void *address, socklen_t size, struct end *e)
{
	const struct sockaddr_in6 *six = address;
	const struct sockaddr_in *four = address;

	memset(e, 0, sizeof *e);
	if (size >= sizeof *four && four->sin_family == AF_INET) {
		e->port = four->sin_port;
		e->address[10] = e->address[11] = 0xff;
		memcpy(e->address + 12, &four->sin_addr, 4);
		return true;
	}
	if (size >= sizeof *six && six->sin6_family == AF_INET6) {
		e->port = six->sin6_port;
		memcpy(e->address, &six->sin6_addr, ADDRESS);
		return true;
	}
	return false;
}

static uint64_t mix_end(uint64_t h, const struct end *e)
{
	uint64_t half[2];

	memcpy(half, e->address, sizeof half);
	return mix(mix(mix(h, half[0]), half[1]), e->port);
}

static uint64_t between(const struct end *from, const struct end *to)
{
	uint64_t h = mix_end(mix_end(mix(2, CA_CHANNEL_TCP), from), to);

	return h ? h : 1;
}

uint64_t ca_channel_port(enum ca_channel_kind kind, const void *address, socklen_t size)
{
	struct end e;

	return address && end_of(address, size, &e) && e.port ? name(kind, e.port, 0) : 0;
}

uint64_t ca_channel_local(uint64_t inode)
{
	return inode ? name(CA_CHANNEL_LOCAL, inode, 0) : 0;
}

uint64_t ca_channel_inode(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_ino : 0;
}

uint64_t ca_channel_word(const void *word)
{
	return name(CA_CHANNEL_WORD, (uintptr_t)word % PAGE, 0);
}

bool ca_channel_is_shared(const void *word)
{
	uint64_t page = 0;
	int fd = ca_sys_open("/proc/self/pagemap", O_RDONLY);
	bool read;

	if (fd < 0)
		return false;
	read = ca_sys(SYS_pread64, fd, (long)(intptr_t)&page, sizeof page,
		      (long)((uintptr_t)word / PAGE * sizeof page), 0, 0) == sizeof page;
	ca_sys_close(fd);
	return read && page & OF_A_FILE;
}

/* The number that the kernel has given to an event descriptor, the same in all processes; 0: it is none, or
 * the kernel is older than 5.2. */
static uint64_t event_id(int fd)
{
	static const char before[] = "eventfd-id:";
	char text[512];
	struct ca_fmt path;
	const char *at;
	uint64_t id = 0;
	long n;
	int info;

	ca_fmt_init(&path, text, sizeof text);
	ca_fmt_add(&path, "/proc/self/fdinfo/%d", fd);
	if ((info = ca_sys_open(text, O_RDONLY)) < 0)
		return 0;
	n = ca_sys_read(info, text, sizeof text - 1);
	ca_sys_close(info);
	text[n > 0 ? n : 0] = 0;
	if (!(at = strstr(text, before)))
		return 0;
	for (at += sizeof before - 1; *at == ' ' || *at == '\t';)
		at++;
	for (; *at >= '0' && *at <= '9'; at++)
		id = id * 10 + (uint64_t)(*at - '0');
	return id + 1;
}

static int option(int fd, int which)
{
	int value = -1;
	socklen_t size = sizeof value;

	return getsockopt(fd, SOL_SOCKET, which, &value, &size) ? -1 : value;
}

static struct ca_channel local(int fd, uint64_t inode, bool *lasts)
{
	struct ca_channel c = { .kind = CA_CHANNEL_LOCAL, .in = ca_channel_local(inode) };
	struct ucred who = { 0, 0, 0 };
	socklen_t size = sizeof who;

	c.stream = option(fd, SO_TYPE) == SOCK_STREAM;
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) && who.pid > 0)
		c.pid = (uint32_t)who.pid;
	*lasts = c.pid != 0;
	return c;
}

static struct ca_channel internet(int fd, bool *lasts)
{
	struct ca_channel c = { .kind = CA_CHANNEL_FAR };
	struct sockaddr_storage here, there;
	socklen_t here_size = sizeof here, there_size = sizeof there;
	struct end mine, its;
	int type = option(fd, SO_TYPE);
	bool connected =
		!getpeername(fd, (struct sockaddr *)&there, &there_size) && end_of(&there, there_size, &its);

	*lasts = connected;
	if (getsockname(fd, (struct sockaddr *)&here, &here_size) || !end_of(&here, here_size, &mine))
		return c;
	if (type == SOCK_DGRAM) {
		c.kind = CA_CHANNEL_UDP;
		c.in = ca_channel_port(c.kind, &here, here_size);
		c.out = connected ? ca_channel_port(c.kind, &there, there_size) : 0;
		*lasts = c.in != 0;
	} else if (type == SOCK_STREAM && connected) {
		c.kind = CA_CHANNEL_TCP;
		c.stream = true;
		c.in = between(&its, &mine);
		c.out = between(&mine, &its);
	} else if (type == SOCK_STREAM && option(fd, SO_ACCEPTCONN) == 1) {
		c.kind = CA_CHANNEL_LISTENER;
		c.in = ca_channel_port(c.kind, &here, here_size);
		*lasts = true;
	}
	return c;
}

/* Both ends of a pseudo-terminal know its number: mpirun reads its ranks' output from some. */
static void name_terminal(int fd, dev_t device, struct ca_channel *c)
{
	enum { MASTERS_MAJOR = 5, MASTERS_MINOR = 2, SLAVES_MAJOR = 136, INPUT = 1, OUTPUT };
	unsigned number = minor(device);

	if (major(device) == SLAVES_MAJOR) {
		c->in = name(c->kind, number, INPUT);
		c->out = name(c->kind, number, OUTPUT);
	} else if (major(device) == MASTERS_MAJOR && minor(device) == MASTERS_MINOR &&
		   ca_sys(SYS_ioctl, fd, TIOCGPTN, (long)(intptr_t)&number, 0, 0, 0) == 0) {
		c->in = name(c->kind, number, OUTPUT);
		c->out = name(c->kind, number, INPUT);
	}
}

static struct ca_channel find_out(int fd, const struct stat *st, bool *lasts)
{
	struct ca_channel c = { .kind = CA_CHANNEL_NONE };
	int domain;

	*lasts = true;
	if (S_ISSOCK(st->st_mode)) {
		domain = option(fd, SO_DOMAIN);
		if (domain == AF_UNIX)
			return local(fd, st->st_ino, lasts);
		if (domain == AF_INET || domain == AF_INET6)
			return internet(fd, lasts);
		c.kind = CA_CHANNEL_FAR;
	} else if (S_ISFIFO(st->st_mode)) {
		c.kind = CA_CHANNEL_PIPE;
		c.stream = true;
		c.in = c.out = name(c.kind, st->st_dev, st->st_ino);
	} else if (S_ISREG(st->st_mode) || S_ISBLK(st->st_mode) || S_ISCHR(st->st_mode)) {
		c.kind = CA_CHANNEL_FILE;
		if (S_ISCHR(st->st_mode))
			name_terminal(fd, st->st_rdev, &c);
	} else if (!S_ISDIR(st->st_mode)) {
		/* all of these are one inode: whether it is still the same one, who closes it tells */
		uint64_t id = event_id(fd);

		if (id) {
			c.kind = CA_CHANNEL_EVENT;
			c.in = c.out = name(c.kind, id, 0);
		}
	}
	return c;
}

static bool is_fresh(const struct known *k)
{
	uint64_t good_for = (k->looked - k->found) / OF_ITS_AGE;

	good_for = good_for < GOOD_FOR ? GOOD_FOR : good_for < LONG_GOOD_FOR ? good_for : LONG_GOOD_FOR;
	return ca_cpu_cycles() - k->looked < good_for;
}

/* 0: nothing is known, 1: perhaps, 2: surely. */
static int look_up(int fd, struct known *found)
{
	struct known *k = &known[(unsigned)fd % KNOWN];
	uint32_t version = atomic_load_explicit(&k->version, memory_order_acquire);

	found->fd = k->fd;
	found->device = k->device;
	found->inode = k->inode;
	found->looked = k->looked;
	found->found = k->found;
	found->channel = k->channel;
	atomic_thread_fence(memory_order_acquire);
	if (version & 1 || !version || found->fd != fd ||
	    atomic_load_explicit(&k->version, memory_order_relaxed) != version)
		return 0;
	return is_fresh(found) ? 2 : 1;
}

static void remember(const struct known *now)
{
	struct known *k = &known[(unsigned)now->fd % KNOWN];
	uint32_t version = atomic_load_explicit(&k->version, memory_order_relaxed);

	if (version & 1 || !atomic_compare_exchange_strong(&k->version, &version, version + 1))
		return; /* somebody else does; one who died in the midst of it leaves it for good */
	k->fd = now->fd;
	k->device = now->device;
	k->inode = now->inode;
	k->looked = now->looked;
	k->found = now->found;
	k->channel = now->channel;
	/* release: pairs with the acquire in look_up */
	atomic_store_explicit(&k->version, version + 2, memory_order_release);
}

struct ca_channel ca_channel_of_fd(int fd)
{
	struct ca_channel none = { .kind = CA_CHANNEL_NONE };
	struct known now;
	struct stat st;
	bool lasts;
	int is_known;

	if (fd < 0)
		return none;
	is_known = look_up(fd, &now);
	if (is_known == 2)
		return now.channel;
	if (fstat(fd, &st))
		return none;
	now.looked = ca_cpu_cycles();
	if (!is_known || now.device != st.st_dev || now.inode != st.st_ino) {
		now.found = now.looked;
		now.channel = find_out(fd, &st, &lasts);
		if (!lasts)
			return now.channel;
	}
	now.fd = fd;
	now.device = st.st_dev;
	now.inode = st.st_ino;
	remember(&now);
	return now.channel;
}

CA_SIGSAFE void ca_channel_forget(int fd)
{
	struct known now;

	if (fd >= 0 && look_up(fd, &now))
		remember(&(struct known){ .fd = fd }); /* no such inode */
}

CA_SIGSAFE void ca_channel_forget_all(unsigned first, unsigned last)
{
	for (unsigned i = 0; i < KNOWN; i++) {
		int fd = known[i].fd;

		if (fd >= 0 && (unsigned)fd >= first && (unsigned)fd <= last)
			ca_channel_forget(fd);
	}
}
