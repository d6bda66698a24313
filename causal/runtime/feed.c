/* SPDX-License-Identifier: MIT */
/* Feeds from outside; see feed.h. A feed is a delay line: bytes that arrive at time a may be seen when
 * virtual time has lost as much as since the feed was in step with us: at a + lag - lag then. When bytes
 * arrive, nobody tells: how many wait to be read is looked at before and after each read, and what lies
 * in between is taken as even.
 *
 * Ordinary context, no locks: while one thread looks at a feed, others let it be. */
#include "causal/runtime/feed.h"
#include <sys/ioctl.h>

enum {
	FEEDS = 32,
	TRIES = 4,
	LOOKS = 512,
	FINE = 128,          /* looks per length of the delay line are enough */
	LONGEST = 500000000, /* ns that one read is held back; with more to come he is in step */
	UNSEEN = 8           /* reads' worth that should have piled up, and have not: the feed is blocked */
};

struct look {
	uint64_t at, arrived; /* ns; bytes by then */
};

static struct feed {
	atomic_flag busy;
	_Atomic uint64_t key; /* 0: free */
	uint64_t in_step;     /* lag when it was in step with us, ns */
	uint64_t taken;       /* bytes that we have read */
	uint64_t most;        /* bytes that have waited to be read, at most ... */
	uint64_t most_lag;    /* ... lag when they became so many */
	uint64_t waits_for;   /* ns; a read has found nothing then; 0: none has */
	bool awaited;         /* what is taken next was awaited by a poll */
	unsigned first, count;
	struct look look[LOOKS]; /* a ring */
} feeds[FEEDS];

static struct feed *enter(uint64_t key)
{
	struct feed *f = NULL;

	for (unsigned i = 0; i < TRIES; i++) {
		struct feed *at = &feeds[(key + i) % FEEDS];
		uint64_t its = atomic_load_explicit(&at->key, memory_order_relaxed);

		if (its == key || (!f && !its))
			f = at;
		if (its == key)
			break;
	}
	if (!f)
		f = &feeds[key % FEEDS]; /* the one that was there begins anew */
	return key && !atomic_flag_test_and_set_explicit(&f->busy, memory_order_acquire) ? f : NULL;
}

static void leave(struct feed *f)
{
	atomic_flag_clear_explicit(&f->busy, memory_order_release);
}

static struct look *nth(struct feed *f, unsigned i)
{
	return &f->look[(f->first + i) % LOOKS];
}

static void add(struct feed *f, uint64_t at, uint64_t arrived, uint64_t lag)
{
	uint64_t fine = (lag - f->in_step) / FINE;
	struct look *last = f->count ? nth(f, f->count - 1) : NULL;

	if (f->count >= 2 && last->at - nth(f, f->count - 2)->at < fine) {
		*last = (struct look){ at, arrived };
		return;
	}
	if (f->count == LOOKS) {
		f->first = (f->first + 1) % LOOKS;
		f->count--;
	}
	*nth(f, f->count++) = (struct look){ at, arrived };
}

uint64_t ca_feed_unread(int fd)
{
	int n = 0;

	return ioctl(fd, FIONREAD, &n) == 0 && n > 0 ? (uint64_t)n : 0;
}

/* How many have arrived by now; others may have taken some. */
static uint64_t arrived(struct feed *f, uint64_t waiting)
{
	uint64_t before = f->count ? nth(f, f->count - 1)->arrived : 0;

	if (f->taken + waiting < before)
		f->taken = before - waiting;
	return f->taken + waiting;
}

static void begin(struct feed *f, uint64_t key, uint64_t lag)
{
	f->key = key;
	f->in_step = f->most_lag = lag;
	f->taken = f->most = f->waits_for = 0;
	f->awaited = false;
	f->first = f->count = 0;
}

/* Where there is no room for more, the feed waits for us, and is delayed by that. */
static void see_whether_blocked(struct feed *f, uint64_t waiting, uint64_t size, uint64_t lag)
{
	const struct look *from = nth(f, 0), *to = nth(f, f->count - 1);
	uint64_t ms = (to->at - from->at) / 1000000, bytes = to->arrived - from->arrived;

	if (waiting > f->most) {
		f->most = waiting;
		f->most_lag = lag;
	} else if (ms && lag > f->most_lag && bytes * ((lag - f->most_lag) / 1000000) / ms > UNSEEN * size) {
		f->in_step += lag - f->most_lag;
		f->most_lag = lag;
	}
	if (f->in_step > lag)
		f->in_step = lag;
}

void ca_feed_before(uint64_t key, int fd, uint64_t now, uint64_t lag)
{
	struct feed *f = enter(key);
	uint64_t waiting;

	if (!f)
		return;
	if (f->key != key || lag < f->in_step)
		begin(f, key, lag);
	waiting = ca_feed_unread(fd);
	f->waits_for = waiting ? 0 : now;
	add(f, now, arrived(f, waiting), lag);
	leave(f);
}

/* When had that many arrived? 0: before we looked. */
static uint64_t when(struct feed *f, uint64_t bytes, uint64_t size)
{
	const struct look *a, *b;
	uint64_t middle;

	while (f->count > 1 && nth(f, 1)->arrived < bytes) {
		f->first = (f->first + 1) % LOOKS;
		f->count--;
	}
	a = nth(f, 0);
	if (f->count < 2 || a->arrived >= bytes)
		return 0;
	b = nth(f, 1);
	middle = bytes - a->arrived > size / 2 ? bytes - a->arrived - size / 2 : 0;
	return a->at + (b->at - a->at) * middle / (b->arrived - a->arrived);
}

uint64_t ca_feed_after(uint64_t key, int fd, uint64_t taken, uint64_t now, uint64_t lag)
{
	struct feed *f = enter(key);
	uint64_t waiting, came, until = 0;

	if (!f)
		return 0;
	if (f->key == key && f->count && lag >= f->in_step) {
		waiting = ca_feed_unread(fd);
		if (f->waits_for && now > 1) /* then it has come just now */
			add(f, now - 1, nth(f, f->count - 1)->arrived, lag);
		f->taken += taken;
		add(f, now, arrived(f, waiting), lag);
		see_whether_blocked(f, waiting + taken, taken, lag);
		came = f->waits_for ? now : when(f, f->taken, taken);
		f->waits_for = 0;
		f->awaited = false;
		until = came ? came + (lag - f->in_step) : 0;
		if (until > now + LONGEST) {
			f->in_step += until - now - LONGEST;
			until = now + LONGEST;
		}
	}
	leave(f);
	return until > now ? until - now : 0;
}

uint64_t ca_feed_in_step(uint64_t key, uint64_t before, uint64_t lag)
{
	struct feed *f = enter(key);
	uint64_t then;

	if (!f)
		return before;
	if (f->key != key || lag < f->in_step)
		begin(f, key, before < lag ? before : lag);
	if (lag > f->in_step + LONGEST)
		f->in_step = lag - LONGEST;
	then = f->in_step;
	f->awaited = true;
	leave(f);
	return then;
}

void ca_feed_taken(uint64_t key, bool waited, uint64_t lag)
{
	struct feed *f = enter(key);

	if (!f)
		return;
	if (f->key == key && !waited && !f->awaited)
		f->in_step = f->most_lag = lag;
	f->awaited = false;
	leave(f);
}

bool ca_feed_is_known(uint64_t key)
{
	for (unsigned i = 0; i < TRIES; i++)
		if (atomic_load_explicit(&feeds[(key + i) % FEEDS].key, memory_order_relaxed) == key)
			return true;
	return false;
}

void ca_feed_forget(uint64_t key)
{
	struct feed *f = enter(key);

	if (!f)
		return;
	if (f->key == key)
		f->key = 0;
	leave(f);
}
