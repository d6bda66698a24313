/* SPDX-License-Identifier: MIT */
/* Who is at the other end: another process or thread of the run, or the world outside. */
#ifndef CA_CAUSAL_RUNTIME_PEERS_H
#define CA_CAUSAL_RUNTIME_PEERS_H
#include "causal/runtime/rt.h"
#include <sys/socket.h>

/* How a wait for data from fd counts. delivered: there was some, else it is a guess. */
CA_HIDDEN enum ca_wait ca_peers_of_read(int fd, bool delivered);
/* ... for room to write to it. */
CA_HIDDEN enum ca_wait ca_peers_of_write(int fd);
/* Have n bytes room in it, for certain? */
CA_HIDDEN bool ca_peers_has_room(int fd, size_t n);
/* One of ours is about to write to what one of ours has made, and nobody has taken anything from so far: bytes that
 * are in it, to be given to ca_peers_written with those that were written. -1: it is nothing of that kind. */
CA_HIDDEN int ca_peers_held(int fd);
CA_HIDDEN void ca_peers_written(int fd, int64_t bytes);
/* ... for a connection, which came. */
CA_HIDDEN enum ca_wait ca_peers_of_accept(int listener, int fd);
/* One of ours, the calling thread, is about to write to fd; to: where a datagram goes, or NULL. */
CA_HIDDEN void ca_peers_write(int fd, uint64_t now, uint64_t lag);
CA_HIDDEN void ca_peers_send_to(int fd, const void *to, socklen_t size);
/* Where whoever waits for data from fd meets those who write to it; NULL: that is not known. */
CA_HIDDEN struct ca_meeting *ca_peers_meeting(int fd);
/* Somebody waits there for several descriptors: whoever writes to this one says so from now on. */
CA_HIDDEN void ca_peers_polled(int fd);
/* One of ours has read from fd. */
CA_HIDDEN void ca_peers_read(int fd, uint64_t now);
/* One of ours is about to connect fd with that, and has. */
CA_HIDDEN void ca_peers_connect(int fd, const void *to, socklen_t size);
CA_HIDDEN void ca_peers_connected(int fd);
/* One of ours is about to wake who waits on a word that other processes may share (a futex). */
CA_HIDDEN void ca_peers_wake(const void *word, uint64_t now, uint64_t lag);
/* One of ours was woken there: by somebody outside? */
CA_HIDDEN bool ca_peers_woken(const void *word, uint64_t since);
/* One of ours has made a pipe, a pair of sockets, or (twice the same) an event descriptor. */
CA_HIDDEN void ca_peers_made(const int fd[2]);
/* Something that was awaited on fd has come from somebody outside: by how much virtual time lagged when he
 * was asked, or, if he sends by himself, in step with us, ns. `before` and `lag`: when the wait began, and
 * now. *runs_on: he sends by himself, and nobody can hold back what he sends. */
CA_HIDDEN uint64_t ca_peers_in_step(int fd, uint64_t before, uint64_t lag, bool *runs_on);
/* Room that was awaited has come on fd: the same for who takes what we write. */
CA_HIDDEN uint64_t ca_peers_room_in_step(int fd, uint64_t before, uint64_t lag, bool *runs_on);
/* Something was taken from fd that cannot be held back; see ca_feed_taken. */
CA_HIDDEN void ca_peers_taken(int fd, bool waited, uint64_t lag);
/* The same of who has woken us. */
CA_HIDDEN uint64_t ca_peers_word_in_step(const void *word, uint64_t now, uint64_t before, uint64_t lag,
					 bool *runs_on);
/* The name of a channel on which somebody outside sends bytes by himself; 0: it is none, or he was asked.
 */
CA_HIDDEN uint64_t ca_peers_feed(int fd);
/* Does somebody outside send on it by himself: nobody has asked him, or he is a client, who asks us? Then no wait for
 * him is S's own. */
CA_HIDDEN bool ca_peers_by_itself(int fd);
/* The process takes part: what it writes to its standard output need not come by our wrappers. */
CA_HIDDEN void ca_peers_begin(void);

#endif
