/* SPDX-License-Identifier: MIT */
/* Two processes, the second inside or outside the session: linked as outside-KIND_VIA_WHERE.
 *
 *   KIND   slow   the peer makes items at 700 each (region feed), the consumer takes them as
 *                 they come: 400 (region work) and 100 (region rest).
 *                 work: 0, the peer leads.
 *          lead   the same, but the peer is four ahead at most, and told of each that is taken.
 *                 work: 0. feed: min(X, 28.6).
 *          fast   the peer makes them at 800, four ahead at most; consumer 1200 and 400.
 *                 work: 0.75 X until the peer leads, from X = 66.7 on.
 *          paced  the peer sends by the clock, every 2 ms; consumer 800. work: 0.
 *          fed    the same, and the region takes the item itself (region take: wait, then 800). take: 0.
 *          sink   the other way round: we make items of a page (400 region work, 100 region rest), and the
 *                 peer takes 700 for each. work: 0, the peer leads.
 *          ask    prepare 300 (region rest), ask, the peer's answer takes 300, compute 1400
 *                 (region work). work: 0.7 X, a little less for the wake-ups.
 *   VIA    pipe, pair (socketpair), tcp (loopback); epoll: eventfd and epoll, the counters in
 *          shared memory; futex: the same with raw futex calls
 *   WHERE  in     forked
 *          exec   forked, then another image, with its environment as it was
 *          out    the same by a raw system call with no environment: without what a profiler
 *                 had preloaded */
#include "gt.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

GT_DEFINE_REGION(work)
GT_DEFINE_REGION(feed)
GT_DEFINE_REGION(rest)
static volatile uint64_t taken_sink;

enum { US, PEER, SIDES, AHEAD = 4 };
static struct shared {
	atomic_int over, count[SIDES]; /* count: of what was sent to that side */
	int in[SIDES], out[SIDES];     /* descriptors */
	struct sockaddr_in address;
} * shared;
static int memory, side, in, out, listener, taken;
static char **arguments;

static int is(const char *word)
{
	return strstr(gt_variant(), word) != NULL;
}

static int is_bounded(void)
{
	return is("fast") || is("lead");
}

static int is_paced(void)
{
	return is("paced") || is("fed");
}

/* ---- the ways to tell the other side that there is one more -------------------------- */

static void futex(atomic_int *word, int op, int value)
{
	syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

static void wait_event(void)
{
	static int epoll = -1;
	struct epoll_event event = { .events = EPOLLIN };
	uint64_t n;

	if (epoll < 0) {
		epoll = epoll_create1(EPOLL_CLOEXEC);
		epoll_ctl(epoll, EPOLL_CTL_ADD, in, &event);
	}
	while (epoll_wait(epoll, &event, 1, -1) < 1)
		;
	while (read(in, &n, sizeof n) < 0 && errno == EINTR)
		;
}

static void get(void)
{
	char c;
	int n;

	if (!is("epoll") && !is("futex")) {
		while (read(in, &c, 1) < 0 && errno == EINTR)
			;
		return;
	}
	while ((n = atomic_load(&shared->count[side])) == taken) {
		if (is("epoll"))
			wait_event();
		else
			futex(&shared->count[side], FUTEX_WAIT, n);
	}
	taken++;
}

static void put(void)
{
	uint64_t one = 1;

	if (is("epoll") || is("futex"))
		atomic_fetch_add(&shared->count[!side], 1);
	if (is("futex"))
		futex(&shared->count[!side], FUTEX_WAKE, 1);
	else
		while (write(out, &one, is("epoll") ? sizeof one : 1) < 0 && errno == EINTR)
			;
}

static void put_page(void)
{
	static char page[4096];

	while (write(out, page, sizeof page) < 0 && errno == EINTR)
		;
}

static void get_page(void)
{
	static char page[4096];
	ssize_t n, rest = sizeof page;

	while (rest && ((n = read(in, page, (size_t)rest)) > 0 || (n < 0 && errno == EINTR)))
		rest -= n > 0 ? n : 0;
}

static int tcp_socket(void)
{
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

static int open_tcp(void)
{
	socklen_t size = sizeof shared->address;

	listener = tcp_socket();
	shared->address = (struct sockaddr_in){ .sin_family = AF_INET };
	shared->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return bind(listener, (struct sockaddr *)&shared->address, size) || listen(listener, 1) ||
	       getsockname(listener, (struct sockaddr *)&shared->address, &size);
}

static int open_channel(void)
{
	int there[2] = { -1, -1 }, back[2] = { -1, -1 };

	if (is("tcp"))
		return open_tcp();
	if (is("pipe") && (pipe(there) || pipe(back)))
		return 1;
	if (is("epoll")) {
		there[0] = there[1] = eventfd(0, 0);
		back[0] = back[1] = eventfd(0, 0);
	}
	if (is("pair")) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, there))
			return 1;
		back[0] = there[1];
		back[1] = there[0]; /* each side reads and writes its own end */
	}
	shared->out[US] = there[1];
	shared->in[PEER] = there[0];
	shared->out[PEER] = back[1];
	shared->in[US] = back[0];
	return 0;
}

/* Once the processes have parted. */
static int connect_channel(int mine)
{
	side = mine;
	in = shared->in[side];
	out = shared->out[side];
	if (!is("tcp"))
		return 0;
	if (side == US)
		in = out = accept(listener, NULL, NULL);
	else if (connect(in = out = tcp_socket(), (struct sockaddr *)&shared->address,
			 sizeof shared->address))
		return 1;
	return in < 0;
}

/* ---- the peer -------------------------------------------------------------------------- */

static int be_peer(void)
{
	uint64_t n = gt_amount("feed", is("ask") ? 300 : is("fast") ? 800 : is_paced() ? 1 : 700);
	double next = gt_now();

	if (connect_channel(PEER))
		return 1;
	for (int i = 0;; i++) {
		struct timespec ts = gt_timespec(next += 2e-3);

		if (is("ask") || (is_bounded() && i >= AHEAD))
			get();
		if (atomic_load(&shared->over))
			return 0;
		while (is_paced() && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
			;
		if (is("sink"))
			get_page();
		region_feed(n); /* GT_REGION feed */
		if (!is("sink"))
			put();
	}
}

static int map(void)
{
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	return shared == MAP_FAILED;
}

static void start_peer(void)
{
	char number[32];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(number, sizeof number, "GT_PEER=%d", memory);
	if (is("_exec")) {
		putenv(number);
		execv("/proc/self/exe", arguments);
	} else if (is("_out")) {
		char *environment[] = { number, NULL };

		syscall(SYS_execve, "/proc/self/exe", arguments, environment);
	}
	_exit(be_peer());
}

/* ---- ours ------------------------------------------------------------------------------ */

static GT_NOINLINE void region_take(uint64_t n)
{
	get();
	taken_sink = gt_spin(n);
}

static void consume_fed(void)
{
	uint64_t n = gt_amount("take", 800);

	while (!gt_expired()) {
		region_take(n); /* GT_REGION take */
		GT_VISIT();
	}
}

static void consume(void)
{
	uint64_t n = gt_amount("work", is("ask") ? 1400 : is("fast") ? 1200 : is("paced") ? 800 : 400);
	uint64_t nr = gt_amount("rest", is("ask") ? 300 : is("fast") ? 400 : is("paced") ? 1 : 100);

	while (!gt_expired()) {
		region_rest(nr); /* GT_REGION rest */
		if (is("ask"))
			put();
		if (is("sink"))
			put_page();
		else
			get();
		if (is_bounded())
			put();
		region_work(n); /* GT_REGION work */
		GT_VISIT();
	}
}

int main(int argc, char **argv)
{
	const char *peer = getenv("GT_PEER");
	int status;
	pid_t pid;

	arguments = argv;
	gt_start(argc, argv, "work");
	memory = peer ? atoi(peer) : memfd_create("shared", 0);
	if ((!peer && ftruncate(memory, sizeof *shared)) || map())
		return 1;
	if (peer)
		return be_peer();
	if (open_channel() || (pid = fork()) < 0)
		return 1;
	if (pid == 0)
		start_peer();
	if (connect_channel(US))
		return 1;
	if (is("fed"))
		consume_fed();
	else
		consume();
	atomic_store(&shared->over, 1);
	if (is("sink"))
		kill(pid, SIGTERM);
	else
		put();
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return gt_report();
}
