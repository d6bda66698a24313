/* SPDX-License-Identifier: MIT */
/* causal/runtime/peers.c and channel.c: who is at the other end of a descriptor, with real ones. */
#include "causal/runtime/channel.h"
#include "causal/runtime/peers.h"
#include "tests/unit/runtime.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { NOW = 5000, LATER = 6000, LAG = 700, LAG_NOW = 900 };
#define IS_OTHERS(call)   assert_int_equal((call), CA_WAIT_OTHERS)
#define IS_EXTERNAL(call) assert_int_equal((call), CA_WAIT_EXTERNAL)

static int set_up(void **state)
{
	int result = rt_set_up(state);

	ca_self = NULL;           /* no wrapper looks ... */
	ca_rt.slots = RT_THREADS; /* ... as there is no room for a new thread */
	for (int fd = 0; fd < 64; fd++)
		ca_channel_forget(fd);
	return result;
}

static void close_both(const int fd[2])
{
	close(fd[0]);
	close(fd[1]);
	ca_channel_forget(fd[0]);
	ca_channel_forget(fd[1]);
}

static void files(void **state)
{
	static const struct {
		const char *path;
		enum ca_wait kind;
	} cases[] = { { "/proc/self/exe", CA_WAIT_EXTERNAL },
		      { "/dev/null", CA_WAIT_EXTERNAL },
		      { "/", CA_WAIT_OTHERS } };
	int fd;

	(void)state;
	IS_OTHERS(ca_peers_of_read(-1, false));
	IS_OTHERS(ca_peers_of_write(-1));
	for (unsigned i = 0; i < CA_COUNT(cases); i++) {
		fd = open(cases[i].path, O_RDONLY);
		assert_true(fd >= 0);
		assert_int_equal(ca_peers_of_read(fd, false), cases[i].kind);
		assert_int_equal(ca_peers_of_read(fd, true), cases[i].kind);
		assert_int_equal(ca_peers_of_write(fd), cases[i].kind);
		ca_peers_write(fd, NOW, LAG); /* no mark */
		ca_peers_read(fd, NOW);
		assert_int_equal(ca_peers_of_read(fd, true), cases[i].kind);
		close(fd);
		ca_channel_forget(fd);
	}
	fd = epoll_create1(0);
	IS_OTHERS(ca_peers_of_read(fd, true));
	IS_OTHERS(ca_peers_of_write(fd));
	close(fd);
	ca_channel_forget(fd);
}

/* Each has a number of its own; whoever closes one says so, and the number may come again. */
static void event_descriptors(void **state)
{
	int fd = eventfd(0, 0), other = eventfd(0, 0), same;
	struct ca_channel c = ca_channel_of_fd(fd);

	(void)state;
	if (c.kind == CA_CHANNEL_NONE)
		skip(); /* an old kernel */
	assert_int_equal(c.kind, CA_CHANNEL_EVENT);
	assert_true(c.in && c.in == c.out && c.in != ca_channel_of_fd(other).in);
	same = dup(fd);
	assert_true(ca_channel_of_fd(same).in == c.in);
	IS_OTHERS(ca_peers_of_read(fd, false)); /* a guess */
	IS_EXTERNAL(ca_peers_of_read(fd, true));
	ca_peers_read(fd, NOW);
	IS_EXTERNAL(ca_peers_of_read(fd, false));
	ca_peers_write(fd, NOW, LAG);
	IS_OTHERS(ca_peers_of_read(same, true));
	IS_EXTERNAL(ca_peers_of_read(other, true));
	ca_channel_forget_all((unsigned)other, (unsigned)other);
	close(other);
	assert_int_equal(timerfd_create(CLOCK_MONOTONIC, 0), other);
	assert_int_equal(ca_channel_of_fd(other).kind, CA_CHANNEL_NONE);
	close(fd);
	close(same);
	close(other);
}

/* A word that only we wake, one that somebody outside wakes, and one that nobody else can. */
static void words(void **state)
{
	static int private;
	char *page = mmap(NULL, RT_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t late = 1000000;
	bool runs_on = false;

	(void)state;
	private = 1;
	*page = 1;
	assert_true(ca_channel_is_shared(page));
	assert_false(ca_channel_is_shared(&private));
	assert_true(ca_channel_word(page) == ca_channel_word(page + RT_PAGE));
	assert_true(ca_channel_word(page) != ca_channel_word(page + 4));
	assert_true(ca_peers_woken(page, late));
	assert_false(ca_peers_woken(&private, late));
	ca_peers_wake(page, late + 1, LAG);
	assert_false(ca_peers_woken(page, late));
	assert_true(ca_peers_woken(page, late + 100000));
	/* who sends by himself is in step as he was at first; who is asked, then */
	ca_peers_word_in_step(page, late + 2, LAG, LAG, &runs_on); /* other tests may have asked */
	assert_int_equal(ca_peers_word_in_step(page, late + 2, LAG, LAG, &runs_on), LAG);
	assert_true(runs_on);
	assert_int_equal(ca_peers_word_in_step(page, late + 2, LAG_NOW, LAG_NOW, &runs_on), LAG);
	runs_on = false;
	ca_peers_wake(page + 4, late + 3, LAG_NOW - 1); /* where ours do not wait */
	assert_int_equal(ca_peers_word_in_step(page, late + 4, LAG_NOW, LAG_NOW, &runs_on), LAG_NOW - 1);
	assert_false(runs_on);
	munmap(page, RT_PAGE);
}

/* As long as somebody has not answered, virtual time must not catch up. */
static void not_answered(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ca_peers_made(pair);
	ca_peers_write(pair[0], NOW, LAG); /* he may never answer */
	assert_int_equal(atomic_load(&s->asked), 0);
	ca_peers_read(pair[0], NOW);
	ca_peers_write(pair[0], NOW, LAG);
	ca_peers_write(pair[0], NOW, LAG_NOW);
	assert_int_equal(atomic_load(&s->asked), 1);
	assert_int_equal(atomic_load(&s->asked_lag), LAG_NOW);
	ca_peers_read(pair[0], LATER);
	assert_int_equal(atomic_load(&s->asked), 0);
	ca_peers_write(pair[1], NOW, LAG); /* both are ours */
	ca_peers_write(pair[0], NOW, LAG);
	assert_int_equal(atomic_load(&s->asked), 0);
	close_both(pair);
}

/* Who takes what we write is in step when there was nothing left for him to take. */
static void room(void **state)
{
	bool runs_on = false;
	int fd[2];
	char c;

	(void)state;
	assert_int_equal(pipe(fd), 0);
	ca_peers_write(fd[1], NOW, 100);
	assert_int_equal(write(fd[1], "", 1), 1);
	assert_int_equal(ca_peers_room_in_step(fd[1], 200, 250, &runs_on), 200);
	ca_peers_write(fd[1], NOW, 300);
	assert_int_equal(ca_peers_room_in_step(fd[1], 300, 350, &runs_on), 200);
	assert_int_equal(read(fd[0], &c, 1), 1);
	ca_peers_write(fd[1], NOW, 400);
	assert_int_equal(ca_peers_room_in_step(fd[1], 400, 450, &runs_on), 400);
	assert_true(runs_on);
	runs_on = false;
	ca_peers_read(fd[0], NOW); /* one of ours reads */
	assert_int_equal(ca_peers_room_in_step(fd[1], 500, 550, &runs_on), 500);
	close_both(fd);
}

/* What is read in pieces of any length: found without a wait, its sender may have waited for room. */
static void in_pieces(void **state)
{
	int fd[2];
	bool runs_on = false;

	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(ca_peers_in_step(fd[0], 100, 100, &runs_on), 100);
	assert_false(runs_on);
	ca_peers_taken(fd[0], false, 150); /* it was awaited by a poll */
	assert_int_equal(ca_peers_in_step(fd[0], 200, 200, &runs_on), 100);
	assert_true(runs_on);
	ca_peers_taken(fd[0], false, 200);
	ca_peers_taken(fd[0], true, 300);
	assert_int_equal(ca_peers_in_step(fd[0], 300, 300, &runs_on), 100);
	ca_peers_taken(fd[0], true, 300);
	ca_peers_taken(fd[0], false, 400);
	assert_int_equal(ca_peers_in_step(fd[0], 500, 500, &runs_on), 400);
	/* an experiment that began with a larger lag */
	atomic_store(&s->settled_delay, 700);
	s->experiment.caught_up = 250;
	assert_int_equal(ca_peers_in_step(fd[0], 500, 500, &runs_on), 400);
	atomic_store(&s->experiment.seq, 1);
	assert_int_equal(ca_peers_in_step(fd[0], 500, 500, &runs_on), 450);
	s->experiment.caught_up = 350;
	assert_int_equal(ca_peers_in_step(fd[0], 500, 500, &runs_on), 400);
	close_both(fd);
}

/* Whoever reads what ours write to a terminal reads from ours; the terminal that we were started in is another's. */
static void terminals(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;

	(void)state;
	if (master < 0 || grantpt(master) || unlockpt(master))
		skip(); /* no devpts here */
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(slave >= 0);
	IS_EXTERNAL(ca_peers_of_read(master, true));
	ca_peers_write(slave, NOW, LAG);
	IS_OTHERS(ca_peers_of_read(master, true));
	IS_EXTERNAL(ca_peers_of_read(slave, true));
	ca_peers_write(master, NOW, LAG);
	IS_OTHERS(ca_peers_of_read(slave, true));
	close(slave);
	close(master);
	ca_channel_forget(slave);
	ca_channel_forget(master);
}

static void pipes(void **state)
{
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	IS_OTHERS(ca_peers_of_read(fd[0], false)); /* a guess */
	IS_EXTERNAL(ca_peers_of_read(fd[0], true));
	ca_peers_read(fd[0], NOW);
	IS_EXTERNAL(ca_peers_of_read(fd[0], false)); /* none of ours has written before */
	IS_OTHERS(ca_peers_of_write(fd[1]));
	ca_peers_write(fd[1], NOW, LAG);
	IS_OTHERS(ca_peers_of_read(fd[0], true));
	close_both(fd);
	assert_int_equal(pipe(fd), 0); /* another one by the same number */
	IS_EXTERNAL(ca_peers_of_read(fd[0], true));
	IS_EXTERNAL(ca_peers_of_write(fd[1])); /* nobody of ours reads */
	close_both(fd);
}

/* A program that ours start reads later than it is written for: it is not the outside that room is awaited of. */
static void pipe_of_a_new_program(void **state)
{
	char data[100] = { 0 };
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(ca_peers_held(fd[1]), -1);
	ca_peers_made(fd);
	IS_OTHERS(ca_peers_of_write(fd[1]));
	assert_int_equal(write(fd[1], data, 60), 60);
	assert_int_equal(ca_peers_held(fd[1]), 60);
	assert_int_equal(write(fd[1], data, 40), 40);
	ca_peers_written(fd[1], 60 + 40);
	IS_OTHERS(ca_peers_of_write(fd[1]));
	assert_int_equal(read(fd[0], data, 30), 30); /* by somebody whom we do not see */
	ca_peers_written(fd[1], 60 + 40);
	IS_EXTERNAL(ca_peers_of_write(fd[1]));
	assert_int_equal(ca_peers_held(fd[1]), -1);
	ca_peers_read(fd[0], NOW);
	IS_OTHERS(ca_peers_of_write(fd[1]));
	assert_int_equal(ca_peers_held(fd[1]), -1);
	close_both(fd);
}

static void pairs(void **state)
{
	int fd[2], pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	s->processes_used = 1; /* made we do not see how, but by one of ours */
	IS_EXTERNAL(ca_peers_of_read(fd[0], true));
	s->process[0].own_pid = (uint32_t)getpid();
	IS_OTHERS(ca_peers_of_read(fd[0], true));
	ca_peers_made(fd);
	IS_OTHERS(ca_peers_of_read(fd[0], false));
	IS_EXTERNAL(ca_peers_of_read(fd[0], true));
	ca_peers_write(fd[0], NOW, LAG); /* the other direction */
	IS_EXTERNAL(ca_peers_of_read(fd[0], true));
	IS_OTHERS(ca_peers_of_read(fd[1], true));
	IS_OTHERS(ca_peers_of_write(fd[0])); /* a guess */
	assert_int_equal(write(fd[0], &fd, sizeof fd), sizeof fd);
	assert_int_equal(read(fd[1], &pair, sizeof pair), sizeof pair);
	ca_peers_written(fd[0], sizeof fd);
	IS_EXTERNAL(ca_peers_of_write(fd[0]));
	ca_peers_read(fd[1], LATER);
	IS_OTHERS(ca_peers_of_write(fd[0]));
	close_both(fd);
}

/* A listening socket, one that is connected to it, and the accepted one. */
static void connect_them(int family, int *listener, int ends[2], bool ours)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr *address = family == AF_INET ? (struct sockaddr *)&four : (struct sockaddr *)&six;
	socklen_t size = family == AF_INET ? sizeof four : sizeof six;

	*listener = socket(family, SOCK_STREAM, 0);
	if (bind(*listener, address, size) || listen(*listener, 1) || getsockname(*listener, address, &size))
		fail();
	IS_EXTERNAL(ca_peers_of_read(*listener, false));
	ends[0] = socket(family, SOCK_STREAM, 0);
	IS_EXTERNAL(ca_peers_of_read(ends[0], false));
	if (ours)
		ca_peers_connect(ends[0], address, size);
	assert_int_equal(connect(ends[0], address, size), 0);
	ends[1] = accept(*listener, NULL, NULL);
	assert_true(ends[1] >= 0);
}

static void connections(void **state)
{
	static const int families[] = { AF_INET, AF_INET6 };
	int listener, ends[2];

	(void)state;
	for (unsigned i = 0; i < CA_COUNT(families); i++) {
		int probe = socket(families[i], SOCK_STREAM, 0);
		struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
		bool there = probe >= 0 &&
			     (families[i] == AF_INET || !bind(probe, (struct sockaddr *)&six, sizeof six));

		close(probe);
		if (!there)
			continue;
		connect_them(families[i], &listener, ends, false);
		IS_EXTERNAL(ca_peers_of_accept(listener, ends[1]));
		IS_EXTERNAL(ca_peers_of_read(ends[1], true));
		IS_EXTERNAL(ca_peers_of_write(ends[1]));
		IS_OTHERS(ca_peers_of_read(ends[0], true)); /* who has accepted is ours */
		close_both(ends);
		close(listener);
		ca_channel_forget(listener);
		connect_them(families[i], &listener, ends, true);
		IS_OTHERS(ca_peers_of_read(listener, false));
		IS_OTHERS(ca_peers_of_accept(listener, ends[1])); /* before connect is back */
		IS_EXTERNAL(ca_peers_of_read(ends[1], true));
		ca_peers_connected(ends[0]);
		IS_OTHERS(ca_peers_of_read(ends[1], true));
		IS_OTHERS(ca_peers_of_write(ends[1]));
		close_both(ends);
		close(listener);
		ca_channel_forget(listener);
	}
}

/* The load asks somebody between, who is none of the run, and asks our server. */
static void load_by_others(void **state)
{
	int listener, ends[2];
	bool runs_on = false;

	(void)state;
	atomic_store(&s->load_apart, 0);
	connect_them(AF_INET, &listener, ends, false);
	ca_rt.is_load = true;
	IS_EXTERNAL(ca_peers_of_read(ends[0], true)); /* nobody has been asked there */
	ca_peers_write(ends[0], NOW, LAG);
	IS_OTHERS(ca_peers_of_read(ends[0], false)); /* ours may not have accepted it yet */
	assert_int_equal(atomic_load(&s->load_apart), 0);
	IS_OTHERS(ca_peers_of_read(ends[0], true));
	assert_int_equal(atomic_load(&s->load_apart), 1); /* a name server, perhaps */
	for (unsigned i = 0; i < 2 * CA_LOAD_APART; i++)
		IS_OTHERS(ca_peers_of_read(ends[0], true));
	assert_int_equal(atomic_load(&s->load_apart), CA_LOAD_APART);
	assert_int_equal(ca_peers_in_step(ends[0], LAG_NOW, LAG_NOW, &runs_on), LAG_NOW);
	ca_rt.is_load = false;
	IS_EXTERNAL(ca_peers_of_read(ends[0], true)); /* whom the server asks is outside */
	close_both(ends);
	close(listener);
	/* who asks the server stands for the load now */
	connect_them(AF_INET, &listener, ends, false);
	IS_OTHERS(ca_peers_of_accept(listener, ends[1]));
	IS_OTHERS(ca_peers_of_read(ends[1], true));
	assert_false(ca_peers_by_itself(ends[1]));
	assert_false(ca_peers_by_itself(listener));
	assert_int_equal(ca_peers_feed(ends[1]), 0);
	atomic_store(&s->load_apart, CA_LOAD_APART - 1);
	IS_EXTERNAL(ca_peers_of_read(ends[1], true));
	assert_true(ca_peers_by_itself(ends[1]));
	assert_true(ca_peers_by_itself(listener));
	close_both(ends);
	close(listener);
}

static void datagrams(void **state)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof to;
	int fd[2] = { socket(AF_INET, SOCK_DGRAM, 0), socket(AF_INET, SOCK_DGRAM, 0) };

	(void)state;
	if (bind(fd[0], (struct sockaddr *)&to, size) || getsockname(fd[0], (struct sockaddr *)&to, &size))
		fail();
	IS_EXTERNAL(ca_peers_of_read(fd[0], true));
	ca_peers_send_to(fd[1], NULL, 0);
	ca_peers_send_to(fd[1], &to, size);
	IS_OTHERS(ca_peers_of_read(fd[0], true));
	IS_EXTERNAL(ca_peers_of_read(fd[1], true));
	assert_int_equal(connect(fd[1], (struct sockaddr *)&to, size), 0);
	ca_peers_connected(fd[1]);
	ca_peers_write(fd[1], NOW, LAG);
	close_both(fd);
}

/* Who was asked owes for the time since then; who was not, or has answered since, for the wait. */
static void requests(void **state)
{
	int there[2], back[2], pair[2];
	bool runs_on = false;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ca_peers_made(pair);
	assert_int_equal(ca_peers_in_step(pair[0], LAG_NOW, LAG_NOW, &runs_on), LAG_NOW);
	ca_peers_write(pair[0], NOW, LAG);
	assert_int_equal(ca_peers_in_step(pair[0], LAG_NOW, LAG_NOW, &runs_on), LAG);
	assert_int_equal(ca_peers_in_step(pair[1], LAG_NOW, LAG_NOW, &runs_on), LAG_NOW);
	ca_peers_read(pair[0], LATER);
	assert_int_equal(ca_peers_in_step(pair[0], LAG_NOW, LAG_NOW, &runs_on), LAG_NOW);
	close_both(pair);
	/* by one pipe there, by another one back, if we have made both */
	assert_int_equal(pipe(there) | pipe(back), 0);
	ca_peers_write(there[1], NOW, LAG);
	assert_int_equal(ca_peers_in_step(back[0], LAG_NOW, LAG_NOW, &runs_on), LAG_NOW);
	ca_peers_made(there);
	ca_peers_write(there[1], NOW, LAG);
	assert_int_equal(ca_peers_in_step(back[0], LAG_NOW, LAG_NOW, &runs_on), LAG_NOW);
	ca_peers_made(back);
	assert_int_equal(ca_peers_in_step(back[0], LAG_NOW, LAG_NOW, &runs_on), LAG);
	ca_peers_read(back[0], LATER);
	assert_int_equal(ca_peers_in_step(back[0], LAG_NOW, LAG_NOW, &runs_on), LAG_NOW);
	close_both(there);
	close_both(back);
	/* the same with event descriptors */
	there[0] = there[1] = eventfd(0, 0);
	back[0] = back[1] = eventfd(0, 0);
	ca_peers_made(there);
	ca_peers_made(back);
	ca_peers_read(back[0], LATER);
	ca_peers_write(there[1], LATER + 1, LAG);
	assert_int_equal(ca_peers_in_step(back[0], LAG_NOW, LAG_NOW, &runs_on), LAG);
	assert_false(runs_on);
	assert_int_equal(ca_peers_room_in_step(there[1], LAG, LAG_NOW, &runs_on), LAG);
	assert_int_equal(ca_peers_room_in_step(there[1], LAG_NOW, LAG_NOW, &runs_on), LAG_NOW);
	assert_false(runs_on); /* there is always room */
	close_both((int[]){ there[0], back[0] });
}

/* More channels than the table has room for: the oldest are forgotten. */
static void many(void **state)
{
	int fd[2];

	(void)state;
	for (unsigned i = 0; i < CA_MAX_PEERS; i++) {
		atomic_store(&s->peer[i].key, i + 1);
		atomic_store(&s->peer[i].flags, CA_PEER_READS);
		atomic_store(&s->peer[i].wrote, i + 1);
	}
	assert_int_equal(pipe(fd), 0);
	ca_peers_write(fd[1], NOW, LAG);
	IS_OTHERS(ca_peers_of_read(fd[0], true));
	IS_EXTERNAL(ca_peers_of_write(fd[1])); /* nothing is left of the one before */
	close_both(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, rt_tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(files),
		TEST(terminals),
		TEST(pipes),
		TEST(pipe_of_a_new_program),
		TEST(pairs),
		TEST(connections),
		TEST(load_by_others),
		TEST(datagrams),
		TEST(requests),
		TEST(many),
		TEST(event_descriptors),
		TEST(words),
		TEST(not_answered),
		TEST(in_pieces),
		TEST(room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
