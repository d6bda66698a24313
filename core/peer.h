/* SPDX-License-Identifier: MIT */
/* What the processes of a run know of the channels between them: one entry per direction of a pipe
 * or connection. Written by the runtimes; nobody waits for anybody, and an entry may be lost to
 * another one when there are too many. */
#ifndef CA_CORE_PEER_H
#define CA_CORE_PEER_H
#include <stdatomic.h>
#include <stdint.h>

enum { CA_MAX_PEERS = 4096, CA_SHARED_MEETINGS = 512 };

/* Where some wait and others end their waits, for the timeline (causal/runtime/timeline.h). */
struct ca_meeting {
	_Atomic uint64_t pair;    /* id of the last wake-up that was told here */
	_Atomic uint32_t waiters; /* a wait that was left by longjmp, cancelled or killed counts on */
	uint32_t reserved;
	_Atomic uint64_t
		since; /* ns; when the last one of them began to wait, for samples of who wakes them */
};

enum ca_peer_flag {
	CA_PEER_WRITES = 1,  /* one of ours writes in this direction, or holds that end */
	CA_PEER_READS = 2,   /* one of ours reads */
	CA_PEER_MADE = 4,    /* one of ours has made it */
	CA_PEER_VARIES = 16, /* what is read here need not be one message */
	CA_PEER_ASKED = 8,   /* somebody outside sends here, was asked, and has not answered */
	CA_PEER_POLLED = 32, /* who waits for it waits for others, too: the meeting has a waiter for good */
	CA_PEER_TAKEN = 64,  /* something was taken from it before one of ours had read */
	CA_PEER_CLIENT = 128 /* whoever sends here has connected to one of ours */
};

struct ca_peer {
	_Atomic uint64_t key;   /* of the direction; 0: free */
	_Atomic uint64_t wrote; /* ns; when one of ours wrote last */
	_Atomic uint64_t asked; /* ns; when one of ours wrote last to whoever sends here ... */
	_Atomic uint64_t lag;   /* ... and by how much virtual time lagged then, ns */
	_Atomic uint64_t read;  /* ns; when one of ours read last */
	_Atomic uint64_t other; /* a pair of sockets: inode of the end that reads */
	_Atomic uint32_t flags; /* enum ca_peer_flag */
	uint32_t reserved;
	struct ca_meeting meeting; /* of who reads and who writes */
};

#endif
