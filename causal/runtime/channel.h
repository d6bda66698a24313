/* SPDX-License-Identifier: MIT */
/* What a descriptor leads to, and the names of its two directions, on which all processes agree. */
#ifndef CA_CAUSAL_RUNTIME_CHANNEL_H
#define CA_CAUSAL_RUNTIME_CHANNEL_H
#include "causal/runtime/rt.h"
#include <sys/socket.h>

/* Of CA_CHANNELS. NONE: timers, epoll and the like; directories. WORD is no descriptor: a futex in memory
 * shared with other processes. FILE: disks and terminals, too. PIPE: FIFOs, too. */
struct ca_channel {
	enum ca_channel_kind kind;
	uint64_t in;  /* name of the direction that is read from it; 0: none */
	uint64_t out; /* ... written to; 0: none, or not known from here */
	bool stream;  /* of bytes, which can be counted */
	uint32_t pid; /* LOCAL: who was at the other end when it was connected; 0: nobody, not known */
};

/* Cheap: what is known is looked at again after a while, and after ca_channel_forget. */
CA_HIDDEN struct ca_channel ca_channel_of_fd(int fd);
/* It is another one from now on. */
CA_HIDDEN CA_SIGSAFE void ca_channel_forget(int fd);
CA_HIDDEN CA_SIGSAFE void ca_channel_forget_all(unsigned first, unsigned last);
/* Of a word: it is known by its place in a page, which is the same in all processes. */
CA_HIDDEN uint64_t ca_channel_word(const void *word);
/* Is its memory shared, so that another process can be at the other side? */
CA_HIDDEN bool ca_channel_is_shared(const void *word);
/* Names of what is connected or sent to, by the number of the port alone, as one end may go by any
 * of its addresses; of a local socket, of which only its inode is known. */
CA_HIDDEN uint64_t ca_channel_port(enum ca_channel_kind kind, const void *address, socklen_t size);
CA_HIDDEN uint64_t ca_channel_local(uint64_t inode);
/* Of this descriptor's socket, 0 if it is none. */
CA_HIDDEN uint64_t ca_channel_inode(int fd);

#endif
