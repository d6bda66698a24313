/* SPDX-License-Identifier: MIT */
/* The table of who writes and who reads (core/peer.h); see peers.h. Ordinary context. A mark is made
 * before the call that it tells of, so that whoever sees the data sees the mark. */
#include "causal/runtime/peers.h"
#include "causal/runtime/channel.h"
#include "causal/runtime/feed.h"
#include <errno.h>

enum { TRIES = 8 };

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
	atomic_store_explicit(&best->flags, 0, memory_order_relaxed);
	atomic_store_explicit(&best->wrote, 0, memory_order_relaxed);
	atomic_store_explicit(&best->read, 0, memory_order_relaxed);
	atomic_store_explicit(&best->other, 0, memory_order_relaxed);
	return best;
}

static struct ca_peer *get(uint64_t key)
{
	struct ca_peer *p = find(key);

	return p || !key ? p : make(key);
}

static bool has(const struct ca_peer *p, enum ca_peer_flag flag)
{
	return p && atomic_load_explicit(&p->flags, memory_order_acquire) & flag;
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
		return ours(!c.pid || is_of_session(c.pid));
	if ((c.kind == CA_CHANNEL_LOCAL || c.kind == CA_CHANNEL_PIPE) && !delivered && is_new(in))
		return CA_WAIT_OTHERS;
	return ours(has(in, CA_PEER_WRITES));
}

enum ca_wait ca_peers_of_write(int fd)
{
	struct ca_channel c = ca_channel_of_fd(fd);

	if (c.kind == CA_CHANNEL_NONE)
		return CA_WAIT_OTHERS;
	if (c.kind == CA_CHANNEL_LOCAL && !out_of(&c))
		return ours(!c.pid || is_of_session(c.pid));
	return ours(has(find(out_of(&c)), CA_PEER_READS) ||
		    (c.kind == CA_CHANNEL_TCP && has(find(c.in), CA_PEER_WRITES)));
}

/* A connection of ours may be accepted before connect is back, and its own address known. */
enum ca_wait ca_peers_of_accept(int listener, int fd)
{
	struct ca_channel from = ca_channel_of_fd(listener), c;

	ca_channel_forget(fd);
	c = ca_channel_of_fd(fd);
	mark(out_of(&c), CA_PEER_WRITES);
	if (c.kind == CA_CHANNEL_LOCAL)
		return ours(is_of_session(c.pid));
	return ours(has(find(c.in), CA_PEER_WRITES) || has(find(from.in), CA_PEER_WRITES));
}

/* ---- what ours do ---------------------------------------------------------------------------------*/
/* The last message of this process by a pipe of its own to somebody outside, who may answer by another:
 * nothing else tells that two pipes belong together. */
static _Atomic uint64_t asked, asked_lag;

static void note_time(struct ca_peer *p, uint64_t now, uint64_t lag)
{
	atomic_store_explicit(&p->lag, lag, memory_order_relaxed);
	atomic_store_explicit(&p->wrote, now, memory_order_relaxed);
}

void ca_peers_write(int fd, uint64_t now, uint64_t lag)
{
	struct ca_channel c = ca_channel_of_fd(fd);
	struct ca_peer *p = mark(out_of(&c), CA_PEER_WRITES);

	if (!p)
		return;
	note_time(p, now, lag);
	if (c.kind == CA_CHANNEL_PIPE && has(p, CA_PEER_MADE) && !has(p, CA_PEER_READS)) {
		atomic_store_explicit(&asked_lag, lag, memory_order_relaxed);
		atomic_store_explicit(&asked, now, memory_order_relaxed);
	}
}

void ca_peers_send_to(int fd, const void *to, socklen_t size)
{
	if (to && ca_channel_of_fd(fd).kind == CA_CHANNEL_UDP)
		mark(ca_channel_port(CA_CHANNEL_UDP, to, size), CA_PEER_WRITES);
}

void ca_peers_read(int fd, uint64_t now)
{
	struct ca_channel c = ca_channel_of_fd(fd);
	struct ca_peer *p = mark(c.in, CA_PEER_READS);

	if (p)
		atomic_store_explicit(&p->read, now, memory_order_relaxed);
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

		if (c.kind == CA_CHANNEL_PIPE)
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
	const struct ca_peer *in = find(c->in), *out = find(out_of(c));
	uint64_t read = in ? atomic_load_explicit(&in->read, memory_order_relaxed) : 0;

	if (c->kind == CA_CHANNEL_PIPE) {
		*lag = atomic_load_explicit(&asked_lag, memory_order_relaxed);
		return has(in, CA_PEER_MADE) && atomic_load_explicit(&asked, memory_order_relaxed) > read;
	}
	*lag = out ? atomic_load_explicit(&out->lag, memory_order_relaxed) : 0;
	return out && atomic_load_explicit(&out->wrote, memory_order_relaxed) > read;
}

uint64_t ca_peers_lag_when_asked(int fd, uint64_t lag)
{
	struct ca_channel c = ca_channel_of_fd(fd);
	uint64_t then;

	return was_asked(&c, &then) ? then : lag;
}

uint64_t ca_peers_feed(int fd)
{
	struct ca_channel c = ca_channel_of_fd(fd);
	uint64_t lag;

	if (!c.stream || has(find(c.in), CA_PEER_WRITES))
		return 0;
	if (c.kind == CA_CHANNEL_LOCAL && (c.pid == 0 || (!out_of(&c) && is_of_session(c.pid))))
		return 0;
	if (!was_asked(&c, &lag))
		return c.in;
	ca_feed_forget(c.in);
	return 0;
}
