/* SPDX-License-Identifier: MIT */
/* What compilers call for copies of structures. libc's own use vector registers, which are the
 * program's, live and unsaved, where a hook is called: so the runtime has its own, with hidden
 * names, for general registers only. Any context. */
#include "causal/runtime/rt.h"
#include <string.h>

CA_HIDDEN void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	void *at = to;

	__asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(size) : : "memory");
	return to;
}

CA_HIDDEN void *memset(void *to, int value, size_t size)
{
	void *at = to;

	__asm__ volatile("rep stosb" : "+D"(at), "+c"(size) : "a"(value) : "memory");
	return to;
}

CA_HIDDEN void *memmove(void *to, const void *from, size_t size)
{
	volatile char *t = to; /* volatile: or the compiler makes a call of memmove of it */
	const char *f = from;

	if ((uintptr_t)to - (uintptr_t)from >= size)
		return memcpy(to, from, size);
	while (size--)
		t[size] = f[size];
	return to;
}

CA_HIDDEN int memcmp(const void *a, const void *b, size_t size)
{
	const volatile unsigned char *x = a, *y = b;

	for (size_t i = 0; i < size; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}
