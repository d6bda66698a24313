/* SPDX-License-Identifier: MIT */
/* The event ring: see core/ring.h. Producer side runs in handlers of the host, consumer side in
 * the conductor, which trusts nothing that it reads from the shared memory but its own indexes'
 * masks: a torn head can give wrong events, never a wild access. */
#include "core/ring.h"

bool ca_ring_push(struct ca_ring *ring, const struct ca_event *event, size_t n)
{
	/* relaxed: only this side writes head */
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	/* acquire: pairs with the release of tail in ca_ring_pop; the consumer has finished
	 * reading the entries that are overwritten below */
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

	if (n > CA_RING_EVENTS - (head - tail)) {
		atomic_fetch_add_explicit(&ring->dropped, n, memory_order_relaxed);
		return false;
	}
	for (size_t i = 0; i < n; i++)
		ring->event[(head + i) % CA_RING_EVENTS] = event[i];
	/* release: pairs with the acquire of head in ca_ring_pop; publishes the whole group */
	atomic_store_explicit(&ring->head, head + n, memory_order_release);
	return true;
}

size_t ca_ring_pop(struct ca_ring *ring, struct ca_event *out, size_t max)
{
	/* relaxed: only this side writes tail */
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	/* acquire: pairs with the release of head in ca_ring_push */
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	uint64_t n = head - tail;

	if (n > CA_RING_EVENTS) /* a corrupt head: skip to it */
		n = 0, tail = head;
	if (n > max)
		n = max;
	for (uint64_t i = 0; i < n; i++)
		out[i] = ring->event[(tail + i) % CA_RING_EVENTS];
	/* release: pairs with the acquire of tail in ca_ring_push; the entries are free again */
	atomic_store_explicit(&ring->tail, tail + n, memory_order_release);
	return (size_t)n;
}
