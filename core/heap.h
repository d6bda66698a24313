/* SPDX-License-Identifier: MIT */
/* A heap of pointers, the first of all at the top. Driver's process; one thread each. */
#ifndef CA_CORE_HEAP_H
#define CA_CORE_HEAP_H
#include <stdbool.h>
#include <stddef.h>

/* Is a before b? */
typedef bool ca_heap_before(void *a, void *b);
/* Puts n pointers in that order. */
void ca_heap_make(void **heap, size_t n, ca_heap_before *before);
/* The top has changed: puts it where it belongs. */
void ca_heap_sift(void **heap, size_t n, ca_heap_before *before);

#endif
