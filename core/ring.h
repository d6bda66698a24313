/* SPDX-License-Identifier: MIT */
/* A ring of events with one producer and one consumer, without locks, that may
 * lie in memory shared between processes.
 *
 * Producer: the owning thread (its handler included; the caller's guard keeps
 * handler and thread from pushing at the same time). Consumer: the conductor,
 * in another process. A full ring drops and counts. */
#ifndef CA_CORE_RING_H
#define CA_CORE_RING_H
#include "core/event.h"
#include "core/status.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { CA_RING_EVENTS = 1024 }; /* a power of two */

/* All zeros: empty. */
struct ca_ring {
	_Atomic uint64_t head; /* next to write; release by the producer, acquired by the consumer */
	_Atomic uint64_t dropped;
	char pad[48];
	_Atomic uint64_t tail; /* next to read; release by the consumer, acquired by the producer */
	char pad2[56];
	struct ca_event event[CA_RING_EVENTS];
};

/* Append all n events or none (then dropped grows by n): groups stay whole. */
CA_SIGSAFE bool ca_ring_push(struct ca_ring *ring, const struct ca_event *event, size_t n);
/* Move up to max events into out; returns how many. */
CA_SIGSAFE size_t ca_ring_pop(struct ca_ring *ring, struct ca_event *out, size_t max);

#endif
