/* SPDX-License-Identifier: MIT */
/* Waits for several descriptors: who has made one of them ready decides what was waited for. Their time
 * limits are in virtual time. */
#include "causal/runtime/catch_up.h"
#include "causal/runtime/ledger.h"
#include "causal/runtime/peers.h"
#include "causal/runtime/timers.h"
#include "causal/runtime/wrap.h"
#include <errno.h>
#include <limits.h>
#include <string.h>

enum {
	LOOKED_AT = 32, /* descriptors at most, before and after a wait */
	MEMBERS = 4096, /* of epoll descriptors that are remembered */
	TRIES = 8,
	WORDS = 16, /* of a set for select whose time limit can move: 1024 descriptors */
	BITS = 8 * sizeof(long)
};

/* ---- who was it? -------------------------------------------------------------------------------- */
/* One of ours would have ended the wait by then, so nothing is owed if there is one among them. */
struct verdict {
	bool before; /* the wait is yet to come */
	bool others;
	int answers;           /* a descriptor on which somebody outside has something for us */
	struct ca_meeting *at; /* where one of ours has met us */
	unsigned looks;
};

static void look_at(struct verdict *v, int fd, bool in, bool ready)
{
	if (v->looks++ >= LOOKED_AT)
		return;
	if (v->before && in && ca_timeline_wants(CA_KEY_WAKE))
		ca_peers_polled(fd);
	if (v->others)
		return;
	if ((in ? ca_peers_of_read(fd, ready) : ca_peers_of_write(fd)) == CA_WAIT_OTHERS) {
		v->others = true;
		v->at = in && !v->before && ca_timeline_wants(CA_KEY_WAKE) ? ca_peers_meeting(fd) : NULL;
	} else {
		/* in S no wait for who sends by himself is S's own */
		v->others = v->before && in && ca_rt_is_in_s(ca_self) && ca_peers_by_itself(fd);
		v->answers = in ? fd : v->answers;
	}
}

static enum ca_wait kind_of(const struct verdict *v)
{
	return v->others ? CA_WAIT_OTHERS : CA_WAIT_EXTERNAL;
}

static void decide(struct ca_waiting *w, const struct verdict *v)
{
	w->kind = kind_of(v);
	w->answers = v->answers;
	w->by_itself = v->answers >= 0 && ca_peers_by_itself(v->answers);
	ca_timeline_await_at(&w->await, v->at);
}

/* A limit moves with virtual time: who comes to it owes nothing. */
static bool at_limit(struct ca_waiting *w, int result)
{
	if (result == 0 && ca_rt.session->virtual_clock)
		w->kind = CA_WAIT_OTHERS;
	return result <= 0;
}

/* Is it worth a look beforehand? In S also before an experiment is open: it may be before the wait is over. */
static bool matters(void)
{
	return ca_rt.session && ca_self && !ca_self->guard &&
	       (ca_ledger_open() || ca_self->depth || ca_timeline_wants(CA_KEY_WAKE));
}

/* ---- time limits ----------------------------------------------------------------------------------- */
static uint64_t length_of_ms(int ms)
{
	return ms > 0 ? (uint64_t)ms * (CA_NS_PER_S / 1000) : UINT64_MAX;
}

/* Those of length 0 do not wait. */
static uint64_t length_of(const struct timespec *timeout)
{
	uint64_t ns = ca_deadline_ns(timeout);

	return ns ? ns : UINT64_MAX;
}

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / CA_NS_PER_S), (long)(ns % CA_NS_PER_S) };
}

/* Who is polled was asked, and counts as such, or sends by himself: virtual time may catch up. */
static void unlimited(uint64_t length)
{
	if (length == UINT64_MAX)
		ca_catch_up_waits_until(ca_self, 0);
}

/* The call as a wait of this kind; when its limit has come, `again` waits for rest_ more. `kept`: what is left of the
 * result without timers that are ready by real time only. `decided` tells who ended it. */
#define UP_TO(guess, length, call, again, kept, decided)                                                     \
	__extension__({                                                                                      \
		struct ca_waiting waiting_ = DOING(IO, NULL, ca_wait_begin((guess), -1));                    \
		uint64_t ns_, length_ = (length);                                                            \
		struct ca_deadline deadline_ = ca_deadline_begin(length_ != UINT64_MAX);                     \
		bool held_ = ca_thread_hold();                                                               \
		int result_ = (unlimited(length_), (call));                                                  \
		struct timespec rest_;                                                                       \
                                                                                                             \
		while (result_ >= 0) {                                                                       \
			bool ready_ = result_ > 0;                                                           \
                                                                                                             \
			if (ready_ && (!ca_timers_any() || (result_ = (kept)) > 0))                          \
				break;                                                                       \
			if (length_ == UINT64_MAX) { /* or none, and it does not wait */                     \
				if (!ready_)                                                                 \
					break;                                                               \
				result_ = (call);                                                            \
			} else {                                                                             \
				ns_ = ready_ ? ca_deadline_rest(&deadline_, length_)                         \
					     : ca_deadline_left(&deadline_, length_);                        \
				if (!ns_)                                                                    \
					break;                                                               \
				rest_ = time_of(ns_);                                                        \
				result_ = (again);                                                           \
			}                                                                                    \
		}                                                                                            \
		ca_thread_release(held_);                                                                    \
		if (waiting_.thread && !at_limit(&waiting_, result_)) {                                      \
			int saved_ = errno;                                                                  \
                                                                                                             \
			decided;                                                                             \
			errno = saved_;                                                                      \
		}                                                                                            \
		ca_wait_end(&waiting_);                                                                      \
		result_;                                                                                     \
	})

/* Nobody can end it but the clock: as a sleep, which is the sleeper's own (wrap_clock.c). */
#define SLEEP(ns, call)                                                                                      \
	__extension__({                                                                                      \
		ca_wait_sleep(ns);                                                                           \
		HELD(CA_WAIT_EXTERNAL, -1, (call));                                                          \
	})

/* ---- poll ------------------------------------------------------------------------------------------ */
/* Not const: poll's prototype makes gcc believe that what fds points to is only written. */
static enum ca_wait guess_polled(struct pollfd *fds, nfds_t n)
{
	struct verdict v = { .before = true, .answers = -1 };

	if (!matters() || !fds)
		return CA_WAIT_EXTERNAL;
	for (nfds_t i = 0; i < n && i < LOOKED_AT; i++)
		look_at(&v, fds[i].fd, fds[i].events & (POLLIN | POLLPRI), false);
	return kind_of(&v);
}

static void polled(struct ca_waiting *w, const struct pollfd *fds, nfds_t n)
{
	struct verdict v = { .answers = -1 };

	for (nfds_t i = 0; i < n; i++)
		if (fds[i].revents)
			look_at(&v, fds[i].fd, !(fds[i].revents & POLLOUT), fds[i].revents & POLLIN);
	decide(w, &v);
}

static int keep_polled(struct pollfd *fds, nfds_t n, int result)
{
	for (nfds_t i = 0; i < n; i++)
		if (fds[i].revents & POLLIN && ca_timers_not_yet(fds[i].fd)) {
			fds[i].revents = 0;
			result--;
		}
	return result;
}

#define POLLING(fds, n, length, call, mask)                                                                  \
	((n) == 0 ? SLEEP(length, call)                                                                      \
		  : UP_TO(guess_polled(fds, n), length, call, REAL(ppoll)(fds, n, &rest_, mask),             \
			  keep_polled(fds, n, result_), polled(&waiting_, fds, n)))

CA_EXPORT int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	return POLLING(fds, n, length_of_ms(timeout), REAL(poll)(fds, n, timeout), NULL);
}

CA_EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room)
{
	return POLLING(fds, n, length_of_ms(timeout), REAL(__poll_chk)(fds, n, timeout, room), NULL);
}

CA_EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	sigset_t copy;
	const sigset_t *waits = ca_signals_wait_mask(mask, &copy);

	return POLLING(fds, n, length_of(timeout), REAL(ppoll)(fds, n, timeout, waits), waits);
}

CA_EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
			  size_t room)
{
	sigset_t copy;
	const sigset_t *waits = ca_signals_wait_mask(mask, &copy);

	return POLLING(fds, n, length_of(timeout), REAL(__ppoll_chk)(fds, n, timeout, waits, room), waits);
}

/* ---- select ---------------------------------------------------------------------------------------- */
/* The three sets as words: they may be longer than FD_SETSIZE. A call that times out clears them. */
struct sets {
	int n;
	long *set[3]; /* in, out, exceptions; any may be NULL */
	long saved[3][WORDS];
};

static unsigned words(const struct sets *s)
{
	return s->n > 0 ? ((unsigned)s->n + BITS - 1) / BITS : 0;
}

static struct sets sets_of(int n, fd_set *in, fd_set *out, fd_set *ex)
{
	struct sets s;

	s.n = n;
	s.set[0] = (long *)(void *)in;
	s.set[1] = (long *)(void *)out;
	s.set[2] = (long *)(void *)ex;
	for (unsigned i = 0; i < 3; i++)
		if (s.set[i] && words(&s) <= WORDS)
			memcpy(s.saved[i], s.set[i], words(&s) * sizeof(long));
	return s;
}

static void restore(const struct sets *s)
{
	for (unsigned i = 0; i < 3; i++)
		if (s->set[i])
			memcpy(s->set[i], s->saved[i], words(s) * sizeof(long));
}

static void look_at_sets(const struct sets *s, struct verdict *v, bool ready)
{
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; s->set[i] && k < words(s); k++)
			for (unsigned long bits = (unsigned long)s->set[i][k]; bits; bits &= bits - 1)
				look_at(v, (int)(k * BITS) + __builtin_ctzl(bits), i != 1, ready);
}

static enum ca_wait guess_selected(const struct sets *s)
{
	struct verdict v = { .before = true, .answers = -1 };

	if (matters())
		look_at_sets(s, &v, false);
	return kind_of(&v);
}

static void selected(struct ca_waiting *w, const struct sets *s)
{
	struct verdict v = { .answers = -1 };

	look_at_sets(s, &v, true);
	decide(w, &v);
}

/* Where nothing is left the sets are as they were, for the next call. */
static int keep_selected(const struct sets *s, int result)
{
	int before = result;

	if (words(s) > WORDS)
		return result;
	for (unsigned k = 0; s->set[0] && k < words(s); k++)
		for (unsigned long bits = (unsigned long)s->set[0][k]; bits; bits &= bits - 1)
			if (ca_timers_not_yet((int)(k * BITS) + __builtin_ctzl(bits))) {
				s->set[0][k] &= ~(long)(bits & -bits);
				result--;
			}
	if (before && !result)
		restore(s);
	return result;
}

/* A call that times out leaves none set. */
static int or_none(const struct sets *s, int result)
{
	for (unsigned i = 0; i < 3 && result == 0 && words(s) <= WORDS; i++)
		if (s->set[i])
			memset(s->set[i], 0, words(s) * sizeof(long));
	return result;
}

static uint64_t length_of_timeval(const struct timeval *timeout)
{
	struct timespec t = { 0, 0 };

	if (!timeout || timeout->tv_usec < 0 || timeout->tv_usec >= CA_MILLION)
		return UINT64_MAX;
	t.tv_sec = timeout->tv_sec;
	t.tv_nsec = timeout->tv_usec * 1000;
	return length_of(&t);
}

/* The kernel has written down that nothing is left of the time; unless it could not write there, what is
 * left is written now. */
static int select_on(const struct sets *s, const struct timespec *rest, struct timeval *timeout)
{
	struct timeval left = { rest->tv_sec, rest->tv_nsec / 1000 };
	int result;

	restore(s);
	result = REAL(select)(s->n, (fd_set *)(void *)s->set[0], (fd_set *)(void *)s->set[1],
			      (fd_set *)(void *)s->set[2], &left);
	if (!timeout->tv_sec && !timeout->tv_usec && (left.tv_sec || left.tv_usec))
		*timeout = left;
	return result;
}

CA_EXPORT int select(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict ex,
		     struct timeval *restrict timeout)
{
	struct sets s;

	if (n == 0)
		return SLEEP(length_of_timeval(timeout), REAL(select)(n, in, out, ex, timeout));
	s = sets_of(n, in, out, ex);
	return or_none(&s,
		       UP_TO(guess_selected(&s), words(&s) <= WORDS ? length_of_timeval(timeout) : UINT64_MAX,
			     REAL(select)(n, in, out, ex, timeout), select_on(&s, &rest_, timeout),
			     keep_selected(&s, result_), selected(&waiting_, &s)));
}

CA_EXPORT int pselect(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict ex,
		      const struct timespec *restrict timeout, const sigset_t *restrict mask)
{
	sigset_t copy;
	const sigset_t *waits = ca_signals_wait_mask(mask, &copy);
	struct sets s;

	if (n == 0)
		return SLEEP(length_of(timeout), REAL(pselect)(n, in, out, ex, timeout, waits));
	s = sets_of(n, in, out, ex);
	return or_none(&s, UP_TO(guess_selected(&s), words(&s) <= WORDS ? length_of(timeout) : UINT64_MAX,
				 REAL(pselect)(n, in, out, ex, timeout, waits),
				 (restore(&s), REAL(pselect)(n, in, out, ex, &rest_, waits)),
				 keep_selected(&s, result_), selected(&waiting_, &s)));
}

/* ---- epoll ----------------------------------------------------------------------------------------- */
/* What it tells of is the program's own number for a descriptor. */
static struct member {
	_Atomic uint64_t key; /* of the epoll descriptor and that number; 0: free */
	_Atomic int fd;
} members[MEMBERS];

static uint64_t member_key(int epoll, uint64_t data)
{
	uint64_t h = (data ^ (uint64_t)(unsigned)epoll << 48) * UINT64_C(0x9e3779b97f4a7c15);

	h = (h ^ h >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	h ^= h >> 32;
	return h ? h : 1;
}

static void member_set(int epoll, uint64_t data, int fd)
{
	uint64_t key = member_key(epoll, data), before = 0;
	struct member *m = &members[key % MEMBERS];

	for (unsigned i = 0; i < TRIES; i++) {
		struct member *at = &members[(key + i) % MEMBERS];

		before = 0;
		if (atomic_compare_exchange_strong(&at->key, &before, key) || before == key) {
			m = at;
			break;
		}
	}
	atomic_store_explicit(&m->fd, fd, memory_order_relaxed);
	atomic_store_explicit(&m->key, key, memory_order_release);
}

static int member_fd(int epoll, uint64_t data)
{
	uint64_t key = member_key(epoll, data);

	for (unsigned i = 0; i < TRIES; i++)
		if (atomic_load_explicit(&members[(key + i) % MEMBERS].key, memory_order_acquire) == key)
			return atomic_load_explicit(&members[(key + i) % MEMBERS].fd, memory_order_relaxed);
	return -1;
}

CA_EXPORT int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	int result = REAL(epoll_ctl)(epoll, op, fd, event);

	if (result == 0 && op != EPOLL_CTL_DEL && event) {
		member_set(epoll, event->data.u64, fd);
		if (ca_timeline_wants(CA_KEY_WAKE) && event->events & EPOLLIN)
			ca_peers_polled(fd);
	}
	return result;
}

/* What ended the last wait ends the next one, for all that is known; most wait for clients. */
enum { BY_ITSELF, BY_OUTSIDE, BY_OTHERS };
static _Atomic unsigned char last_kind[256];

static enum ca_wait guess_epoll(int epoll)
{
	unsigned last = atomic_load_explicit(&last_kind[epoll & 255], memory_order_relaxed);

	return last == BY_OTHERS || (last == BY_ITSELF && ca_self && ca_rt_is_in_s(ca_self))
		       ? CA_WAIT_OTHERS
		       : CA_WAIT_EXTERNAL;
}

static void came(struct ca_waiting *w, int epoll, const struct epoll_event *events, int n)
{
	struct verdict v = { .answers = -1 };

	for (int i = 0; i < n; i++) {
		int fd = member_fd(epoll, events[i].data.u64);

		if (fd >= 0)
			look_at(&v, fd, !(events[i].events & EPOLLOUT), events[i].events & EPOLLIN);
	}
	decide(w, &v);
	atomic_store_explicit(&last_kind[epoll & 255],
			      v.others       ? BY_OTHERS
			      : w->by_itself ? BY_ITSELF
					     : BY_OUTSIDE,
			      memory_order_relaxed);
}

static int keep_events(int epoll, struct epoll_event *events, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++) {
		int fd = events[i].events & EPOLLIN ? member_fd(epoll, events[i].data.u64) : -1;

		if (fd < 0 || !ca_timers_not_yet(fd))
			events[kept++] = events[i];
	}
	return kept;
}

/* Another thread may take what came. */
static int epoll_on(int fd, struct epoll_event *events, int n, const struct timespec *rest,
		    const sigset_t *mask)
{
	uint64_t until = ca_clock_now() + ca_deadline_ns(rest), now;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timespec left = *rest;
	int result;

	do {
		result = REAL(ppoll)(&p, 1, &left, mask);
		if (result > 0)
			result = REAL(epoll_wait)(fd, events, n, 0);
		now = ca_clock_now();
		left = time_of(until > now ? until - now : 0);
	} while (result == 0 && now < until);
	return result;
}

#define EPOLLING(fd, events, n, length, call, mask)                                                          \
	UP_TO(guess_epoll(fd), length, call, epoll_on(fd, events, n, &rest_, mask),                          \
	      keep_events(fd, events, result_), came(&waiting_, fd, events, result_ < (n) ? result_ : (n)))

CA_EXPORT int epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
	return EPOLLING(fd, events, n, length_of_ms(timeout), REAL(epoll_wait)(fd, events, n, timeout), NULL);
}

CA_EXPORT int epoll_pwait(int fd, struct epoll_event *events, int n, int timeout, const sigset_t *mask)
{
	sigset_t copy;
	const sigset_t *waits = ca_signals_wait_mask(mask, &copy);

	return EPOLLING(fd, events, n, length_of_ms(timeout),
			REAL(epoll_pwait)(fd, events, n, timeout, waits), waits);
}

CA_EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int n, const struct timespec *timeout,
			   const sigset_t *mask)
{
	sigset_t copy;
	const sigset_t *waits = ca_signals_wait_mask(mask, &copy);

	return EPOLLING(fd, events, n, length_of(timeout), REAL(epoll_pwait2)(fd, events, n, timeout, waits),
			waits);
}
