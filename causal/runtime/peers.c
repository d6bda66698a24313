/* SPDX-License-Identifier: MIT */
/* The table of who writes and who reads (core/peer.h); see peers.h. Ordinary context. A mark is made
 * before the call that it tells of, so that whoever sees the data sees the mark. */
#include "causal/runtime/peers.h"
#include "causal/runtime/channel.h"
#include "causal/runtime/feed.h"
#include "causal/runtime/sample.h"
#include "causal/runtime/timeline.h"
#include "core/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

enum {
	TRIES = 8,
	LATE = 50000 /* ns from the mark of who wakes to his call, at most */
};

/* ---- the table ---------------------------------------------------------------------------------- */
static uint64_t last_use(const struct ca_peer *p)
{
	uint64_t wrote = atomic_load_explicit(&p->wrote, memory_order_relaxed);
	uint64_t read = atomic_load_explicit(&p->read, memory_order_relaxed);

	return wrote > read ? wrote : read;
}

static struct ca_peer *find(uint64_t key)
{
	for (unsigned i = 0; key && i < TRIES; i++) {
		struct ca_peer *p = &ca_rt.session->peer[(key + i) % CA_MAX_PEERS];

		if (atomic_load_explicit(&p->key, memory_order_acquire) == key)
			return p;
	}
	return NULL;
}

static bool has(const struct ca_peer *p, enum ca_peer_flag flag)
{
	return p && atomic_load_explicit(&p->flags, memory_order_acquire) & flag;
}

static void answered(struct ca_peer *in)
{
	if (has(in, CA_PEER_ASKED) && atomic_fetch_and(&in->flags, ~(uint32_t)CA_PEER_ASKED) & CA_PEER_ASKED)
		atomic_fetch_sub(&ca_rt.session->asked, 1);
}

/* The one that was not used for longest makes room. Whoever still holds it leaves a mark at the wrong
 * place, once. */
static struct ca_peer *make(uint64_t key)
{
	struct ca_peer *p, *best = NULL;
	uint64_t before;

	for (unsigned i = 0; i < TRIES; i++) {
		p = &ca_rt.session->peer[(key + i) % CA_MAX_PEERS];
		before = 0;
		if (atomic_compare_exchange_strong(&p->key, &before, key) || before == key)
			return p;
		if (!best || last_use(p) < last_use(best))
			best = p;
	}
	before = atomic_load_explicit(&best->key, memory_order_relaxed);
	if (!atomic_compare_exchange_strong(&best->key, &before, key))
		return NULL;
	answered(best);
	atomic_store_explicit(&best->flags, 0, memory_order_relaxed);
	atomic_store_explicit(&best->wrote, 0, memory_order_relaxed);
	atomic_store_explicit(&best->asked, 0, memory_order_relaxed);
	atomic_store_explicit(&best->read, 0, memory_order_relaxed);
	atomic_store_explicit(&best->other, 0, memory_order_relaxed);
	atomic_store_explicit(&best->meeting.waiters, 0, memory_order_relaxed);
	return best;
}

static struct ca_peer *get(uint64_t key)
{
	struct ca_peer *p = find(key);

	return p || !key ? p : make(key);
}

static struct ca_peer *mark(uint64_t key, enum ca_peer_flag flag)
{
	struct ca_peer *p = get(key);

	if (p && !has(p, flag))
		atomic_fetch_or(&p->flags, (uint32_t)flag);
	return p;
}

/* ---- channels ----------------------------------------------------------------------------------- */
/* The end that reads what is written to a local socket: its inode is known of pairs only. */
static uint64_t out_of(const struct ca_channel *c)
{
	const struct ca_peer *own;

	if (c->kind != CA_CHANNEL_LOCAL)
		return c->out;
	own = find(c->in);
	return own ? ca_channel_local(atomic_load_explicit(&own->other, memory_order_relaxed)) : 0;
}

static bool is_of_session(uint32_t pid)
{
	const struct ca_session *s = ca_rt.session;
	uint32_t used = atomic_load_explicit(&s->processes_used, memory_order_acquire);

	for (uint32_t i = 0; i < used; i++)
		if (s->process[i].own_pid == pid)
			return true;
	return false;
}

static enum ca_wait ours(bool are)
{
	return are ? CA_WAIT_OTHERS : CA_WAIT_EXTERNAL;
}

static bool is_load_apart(void)
{
	return atomic_load_explicit(&ca_rt.session->load_apart, memory_order_relaxed) >= CA_LOAD_APART;
}

static bool is_socket(const struct ca_channel *c)
{
	return c->kind == CA_CHANNEL_TCP || c->kind == CA_CHANNEL_UDP || c->kind == CA_CHANNEL_LOCAL;
}

/* Whoever is there is none of the run, but stands for one of it: the load reaches the server by way of a web server,
 * say, or a balancer. The load is answered by him, so he waits for the server, and who asks the server then is the
 * load. (Not known is whom else they ask.) delivered: he has sent something, so that one of the run would be known. */
static bool stands_for_ours(const struct ca_channel *c, const struct ca_peer *in, bool delivered)
{
	if (!is_socket(c))
		return false;
	if (!ca_rt.is_load)
		return has(in, CA_PEER_CLIENT) && is_load_apart();
	if (!in || !atomic_load_explicit(&in->asked, memory_order_relaxed))
		return false;
	if (delivered && !is_load_apart())
		atomic_fetch_add_explicit(&ca_rt.session->load_apart, 1, memory_order_relaxed);
	return true;
}

/* One way only: what comes back has a name of its own. */
static bool is_one_way(const struct ca_channel *c)
{
	return c->kind == CA_CHANNEL_PIPE || c->kind == CA_CHANNEL_EVENT;
}

/* As long as nothing has come from there, a pipe is taken for one between ours. */
static bool is_new(const struct ca_peer *p)
{
	return !p || !atomic_load_explicit(&p->read, memory_order_relaxed);
}

enum ca_wait ca_peers_of_read(int fd, bool delivered)
{
	struct ca_channel c = ca_channel_of_fd(fd);
	const struct ca_peer *in = find(c.in);

	if (c.kind == CA_CHANNEL_NONE)
		return CA_WAIT_OTHERS;
	if (c.kind == CA_CHANNEL_LOCAL && !out_of(&c))
		return ours(!c.pid || is_of_session(c.pid) || stands_for_ours(&c, in, delivered));
	if ((c.kind == CA_CHANNEL_LOCAL || is_one_way(&c)) && !delivered && is_new(in))
		return CA_WAIT_OTHERS;
	return ours(has(in, CA_PEER_WRITES) || stands_for_ours(&c, in, delivered));
}

/* As long as nobody has read from what ours have made, it is taken for one between ours. */
static bool is_untouched(const struct ca_peer *p)
{
	return has(p, CA_PEER_MADE) && !has(p, CA_PEER_READS) && !has(p, CA_PEER_TAKEN);
}

enum ca_wait ca_peers_of_write(int fd)
{
	struct ca_channel c = ca_channel_of_fd(fd);

	if (c.kind == CA_CHANNEL_NONE)
		return CA_WAIT_OTHERS;
	if (c.kind == CA_CHANNEL_LOCAL && !out_of(&c))
		return ours(!c.pid || is_of_session(c.pid));
	/* a program that is just being started reads later */
	return ours(is_untouched(find(out_of(&c))) || has(find(out_of(&c)), CA_PEER_READS) ||
		    stands_for_ours(&c, find(c.in), false) ||
		    (c.kind == CA_CHANNEL_TCP && has(find(c.in), CA_PEER_WRITES)));
}

/* A connection of ours may be accepted before connect is back, and its own address known. */
enum ca_wait ca_peers_of_accept(int listener, int fd)
{
	struct ca_channel from = ca_channel_of_fd(listener), c;
	const struct ca_peer *in;

	ca_channel_forget(fd);
	c = ca_channel_of_fd(fd);
	mark(out_of(&c), CA_PEER_WRITES);
	in = mark(c.in, CA_PEER_CLIENT);
	if (c.kind == CA_CHANNEL_LOCAL)
		return ours(is_of_session(c.pid) || stands_for_ours(&c, in, false));
	return ours(stands_for_ours(&c, in, false) || has(find(c.in), CA_PEER_WRITES) ||
		    has(find(from.in), CA_PEER_WRITES));
}

/* ---- what ours do ---------------------------------------------------------------------------------*/
/* The last message of this process one way to somebody outside, by something of its own; he may answer by
 * something else: nothing tells that the two belong together. */
static _Atomic uint64_t asked, asked_lag;

/* Whoever sends here on that channel is asked. While he has not answered, virtual time may not catch up as
 * if he had been at work meanwhile; if he never answers at all, he is none of those. */
static void ask(struct ca_peer *in, uint64_t now, uint64_t lag)
{
	struct ca_session *s = ca_rt.session;

	atomic_store_explicit(&in->lag, lag, memory_order_relaxed);
	atomic_store_explicit(&in->asked, now, memory_order_relaxed);
	if (!has(in, CA_PEER_READS) || has(in, CA_PEER_WRITES))
		return;
	atomic_store_explicit(&s->asked_lag, lag, memory_order_relaxed);
	if (!(atomic_fetch_or(&in->flags, CA_PEER_ASKED) & CA_PEER_ASKED))
		atomic_fetch_add(&s->asked, 1);
}

static void ask_one_way(uint64_t now, uint64_t lag)
{
	atomic_store_explicit(&asked_lag, lag, memory_order_relaxed);
	atomic_store_explicit(&asked, now, memory_order_relaxed);
}

/* Bytes that are left to take of what we have written; -1: not known. */
static int left_in(const struct ca_channel *c, int fd)
{
	int n = 0;

	return ioctl(fd, c->kind == CA_CHANNEL_PIPE ? FIONREAD : SIOCOUTQ, &n) == 0 ? n : -1;
}

/* Pages of a pipe, and buffers of a socket, need not be full: half of the room counts, but for a pipe that is empty. */
bool ca_peers_has_room(int fd, size_t n)
{
	struct ca_channel c = ca_channel_of_fd(fd);
	int left = left_in(&c, fd), room = 0;
	socklen_t size = sizeof room;

	if (left < 0)
		return false;
	if (c.kind == CA_CHANNEL_PIPE)
		room = (int)ca_sys(SYS_fcntl, fd, F_GETPIPE_SZ, 0, 0, 0, 0);
	else if (ca_sys(SYS_getsockopt, fd, SOL_SOCKET, SO_SNDBUF, (long)(intptr_t)&room,
			(long)(intptr_t)&size, 0))
		return false;
	if (room > 0 && (left || c.kind != CA_CHANNEL_PIPE))
		room /= 2;
	return room > left && n <= (size_t)(room - left);
}

int ca_peers_held(int fd)
{
	struct ca_channel c = ca_channel_of_fd(fd);

	return is_untouched(find(out_of(&c))) ? left_in(&c, fd) : -1;
}

void ca_peers_written(int fd, int64_t bytes)
{
	struct ca_channel c = ca_channel_of_fd(fd);
	int left = left_in(&c, fd);

	/* a reader of ours may be about to say so: that counts for more */
	if (left >= 0 && left < bytes)
		mark(out_of(&c), CA_PEER_TAKEN);
}

void ca_peers_write(int fd, uint64_t now, uint64_t lag)
{
	struct ca_channel c = ca_channel_of_fd(fd);
	struct ca_peer *p = mark(out_of(&c), CA_PEER_WRITES), *in;
	uint64_t key;

	if (p) {
		atomic_store_explicit(&p->wrote, now, memory_order_relaxed);
		ca_sample_wake_at(ca_self, &p->meeting);
	}
	key = p ? atomic_load_explicit(&p->key, memory_order_relaxed) : 0;
	if (key && lag && !has(p, CA_PEER_READS) && ca_feed_is_known(key) && left_in(&c, fd) == 0)
		ca_feed_forget(key); /* he waits for us */
	if (!is_one_way(&c)) {
		if ((in = get(c.in)))
			ask(in, now, lag);
	} else if (has(p, CA_PEER_MADE) && !has(p, CA_PEER_READS)) {
		ask_one_way(now, lag);
	}
}

void ca_peers_wake(const void *word, uint64_t now, uint64_t lag)
{
	struct ca_peer *p = mark(ca_channel_word(word), CA_PEER_WRITES);

	if (!p)
		return;
	atomic_store_explicit(&p->wrote, now, memory_order_relaxed);
	if (!has(p, CA_PEER_READS))
		ask_one_way(now, lag);
}

bool ca_peers_woken(const void *word, uint64_t since)
{
	struct ca_peer *p = mark(ca_channel_word(word), CA_PEER_READS);

	return p && atomic_load_explicit(&p->wrote, memory_order_relaxed) + LATE < since &&
	       ca_channel_is_shared(word);
}

void ca_peers_send_to(int fd, const void *to, socklen_t size)
{
	if (to && ca_channel_of_fd(fd).kind == CA_CHANNEL_UDP)
		mark(ca_channel_port(CA_CHANNEL_UDP, to, size), CA_PEER_WRITES);
}

struct ca_meeting *ca_peers_meeting(int fd)
{
	struct ca_channel c = ca_channel_of_fd(fd);
	struct ca_peer *p = get(c.in);

	return p ? &p->meeting : NULL;
}

void ca_peers_polled(int fd)
{
	struct ca_channel c = ca_channel_of_fd(fd);
	struct ca_peer *p = get(c.in);

	if (p && !(atomic_fetch_or(&p->flags, CA_PEER_POLLED) & CA_PEER_POLLED))
		atomic_fetch_add(&p->meeting.waiters, 1);
}

void ca_peers_read(int fd, uint64_t now)
{
	struct ca_channel c = ca_channel_of_fd(fd);
	struct ca_peer *p = mark(c.in, CA_PEER_READS);

	if (!p)
		return;
	atomic_store_explicit(&p->read, now, memory_order_relaxed);
	answered(p);
}

void ca_peers_connect(int fd, const void *to, socklen_t size)
{
	ca_channel_forget(fd);
	mark(ca_channel_port(CA_CHANNEL_LISTENER, to, size), CA_PEER_WRITES);
}

void ca_peers_connected(int fd)
{
	struct ca_channel c;

	ca_channel_forget(fd);
	c = ca_channel_of_fd(fd);
	mark(out_of(&c), CA_PEER_WRITES);
}

static void other_end(uint64_t inode, uint64_t other)
{
	struct ca_peer *p = mark(ca_channel_local(inode), CA_PEER_MADE);

	if (p)
		atomic_store_explicit(&p->other, other, memory_order_release);
}

void ca_peers_made(const int fd[2])
{
	uint64_t first = ca_channel_inode(fd[0]), second = ca_channel_inode(fd[1]);

	ca_channel_forget(fd[0]);
	ca_channel_forget(fd[1]);
	if (first && second) {
		other_end(first, second);
		other_end(second, first);
	} else {
		struct ca_channel c = ca_channel_of_fd(fd[0]);

		if (is_one_way(&c))
			mark(c.in, CA_PEER_MADE);
	}
}

void ca_peers_begin(void)
{
	int saved = errno;

	for (int fd = 1; fd <= 2; fd++) {
		struct ca_channel c = ca_channel_of_fd(fd);

		mark(out_of(&c), CA_PEER_WRITES);
	}
	errno = saved;
}

/* ---- requests and answers --------------------------------------------------------------------------*/
/* By how much virtual time lagged when he was asked who sends on this channel; has he been? */
static bool was_asked(const struct ca_channel *c, uint64_t *lag)
{
	const struct ca_peer *in = find(c->in);
	uint64_t read = in ? atomic_load_explicit(&in->read, memory_order_relaxed) : 0;

	if (is_one_way(c) || c->kind == CA_CHANNEL_WORD) {
		*lag = atomic_load_explicit(&asked_lag, memory_order_relaxed);
		return (c->kind == CA_CHANNEL_WORD || has(in, CA_PEER_MADE)) &&
		       atomic_load_explicit(&asked, memory_order_relaxed) > read;
	}
	*lag = in ? atomic_load_explicit(&in->lag, memory_order_relaxed) : 0;
	return in && atomic_load_explicit(&in->asked, memory_order_relaxed) > read;
}

/* Can somebody outside send there by himself? */
static bool may_feed(const struct ca_channel *c)
{
	const struct ca_peer *in = find(c->in);

	if (!c->in || c->kind == CA_CHANNEL_LISTENER || has(in, CA_PEER_WRITES) ||
	    stands_for_ours(c, in, false))
		return false;
	return c->kind != CA_CHANNEL_LOCAL || (c->pid != 0 && (out_of(c) || !is_of_session(c->pid)));
}

/* With that lag the open experiment began, ns: who was ahead before, when we were too slow to wait for him,
 * shall not have it back in an experiment that has inserted nothing. */
static uint64_t lag_at_opening(void)
{
	const struct ca_session *s = ca_rt.session;
	uint64_t inserted = atomic_load_explicit(&s->settled_delay, memory_order_relaxed);

	if (!(atomic_load_explicit(&s->experiment.seq, memory_order_acquire) & 1))
		return 0;
	return inserted > s->experiment.caught_up ? inserted - s->experiment.caught_up : 0;
}

/* Of who sends by himself, or takes what we write. */
static uint64_t feed_in_step(uint64_t key, uint64_t before, uint64_t lag)
{
	uint64_t then = ca_feed_in_step(key, before, lag), opening = lag_at_opening();

	return then > opening ? then : opening;
}

static uint64_t in_step(const struct ca_channel *c, uint64_t before, uint64_t lag, bool *runs_on)
{
	uint64_t then;

	if (was_asked(c, &then)) {
		ca_feed_forget(c->in);
		return then;
	}
	*runs_on = !c->stream || has(find(c->in), CA_PEER_VARIES);
	return feed_in_step(c->in, before, lag);
}

uint64_t ca_peers_in_step(int fd, uint64_t before, uint64_t lag, bool *runs_on)
{
	struct ca_channel c = ca_channel_of_fd(fd);

	return may_feed(&c) ? in_step(&c, before, lag, runs_on) : before;
}

uint64_t ca_peers_room_in_step(int fd, uint64_t before, uint64_t lag, bool *runs_on)
{
	struct ca_channel c = ca_channel_of_fd(fd);
	uint64_t out = out_of(&c);

	if (!out || c.kind == CA_CHANNEL_EVENT || has(find(out), CA_PEER_READS))
		return before; /* there is always room for an event */
	*runs_on = true;
	return feed_in_step(out, before, lag);
}

bool ca_peers_by_itself(int fd)
{
	struct ca_channel c = ca_channel_of_fd(fd);
	uint64_t lag;

	if (c.kind == CA_CHANNEL_LISTENER)
		return !has(find(c.in), CA_PEER_WRITES) && !is_load_apart();
	return may_feed(&c) && (has(find(c.in), CA_PEER_CLIENT) || !was_asked(&c, &lag));
}

uint64_t ca_peers_word_in_step(const void *word, uint64_t now, uint64_t before, uint64_t lag, bool *runs_on)
{
	struct ca_channel c = { .kind = CA_CHANNEL_WORD, .in = ca_channel_word(word) };
	struct ca_peer *p = get(c.in);
	uint64_t then = in_step(&c, before, lag, runs_on);

	if (p)
		atomic_store_explicit(&p->read, now, memory_order_relaxed);
	return then;
}

void ca_peers_taken(int fd, bool waited, uint64_t lag)
{
	struct ca_channel c = ca_channel_of_fd(fd);

	if (!may_feed(&c))
		return;
	mark(c.in, CA_PEER_VARIES);
	ca_feed_taken(c.in, waited, lag);
}

uint64_t ca_peers_feed(int fd)
{
	struct ca_channel c = ca_channel_of_fd(fd);
	uint64_t lag;

	if (!c.stream || !may_feed(&c))
		return 0;
	if (!was_asked(&c, &lag))
		return c.in;
	ca_feed_forget(c.in);
	return 0;
}
