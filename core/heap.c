/* SPDX-License-Identifier: MIT */
/* A heap; see heap.h. */
#include "core/heap.h"

static void sift(void **heap, size_t n, size_t at, ca_heap_before *before)
{
	for (size_t child; (child = 2 * at + 1) < n; at = child) {
		void *moved = heap[at];

		if (child + 1 < n && before(heap[child + 1], heap[child]))
			child++;
		if (!before(heap[child], moved))
			return;
		heap[at] = heap[child];
		heap[child] = moved;
	}
}

void ca_heap_make(void **heap, size_t n, ca_heap_before *before)
{
	for (size_t at = n; at-- > 0;)
		sift(heap, n, at, before);
}

void ca_heap_sift(void **heap, size_t n, ca_heap_before *before)
{
	sift(heap, n, 0, before);
}
