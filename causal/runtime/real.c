/* SPDX-License-Identifier: MIT */
/* Finding the functions behind our wrappers. Ordinary context. */
#include "causal/runtime/real.h"
#include <dlfcn.h>
#include <stddef.h>

#pragma weak dlvsym /* not in every C library, see start.c */
struct ca_real ca_real;
int (*ca_real_old_pthread_kill)(pthread_t, int);

static const struct {
	const char *name, *version;
	size_t offset;
} wanted[] = {
#define X(name, version) { #name, version, offsetof(struct ca_real, name) },
	CA_WRAPPED(X)
#undef X
};

static void resolve(size_t i)
{
	void **slot = (void **)(void *)((char *)&ca_real + wanted[i].offset);
	void *found = NULL;

	if (*slot)
		return;
	if (wanted[i].version[0] && dlvsym)
		found = dlvsym(RTLD_NEXT, wanted[i].name, wanted[i].version);
	*slot = found ? found : dlsym(RTLD_NEXT, wanted[i].name);
}

void ca_real_resolve(void)
{
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
		resolve(i);
	if (dlvsym)
		*(void **)&ca_real_old_pthread_kill = dlvsym(RTLD_NEXT, "pthread_kill", "GLIBC_2.2.5");
}

void ca_real_resolve_at(void *member)
{
	size_t offset = (size_t)((char *)member - (char *)&ca_real);

	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
		if (wanted[i].offset == offset)
			resolve(i);
}

void *ca_real_find(const char *name, const void *caller)
{
	void *function = dlsym(RTLD_NEXT, name);
	Dl_info info;
	void *handle;

	if (function || !dladdr(caller, &info) || !info.dli_fname)
		return function;
	handle = REAL(dlopen)(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return NULL;
	function = dlsym(handle, name);
	REAL(dlclose)(handle);
	return function;
}

/* ---- for a caller ------------------------------------------------------------------------*/
enum { CACHE = 1024, PROBES = 4 };
struct binding {
	_Atomic(const char *) name; /* written first, by compare-and-swap */
	_Atomic(const void *) caller;
	_Atomic(void *) function; /* released last */
};
static struct binding cache[CACHE];

void *ca_real_for(const char *name, const void *caller)
{
	size_t at = (uintptr_t)caller >> 2 ^ (uintptr_t)name >> 3;
	const char *none = NULL;
	struct binding *b;
	void *function;

	for (size_t i = 0; i < PROBES; i++) {
		b = &cache[(at + i) % CACHE];
		function = atomic_load_explicit(&b->function, memory_order_acquire);
		if (function && atomic_load(&b->caller) == caller && atomic_load(&b->name) == name)
			return function;
	}
	function = ca_real_find(name, caller);
	for (size_t i = 0; function && i < PROBES; i++, none = NULL) {
		b = &cache[(at + i) % CACHE];
		if (atomic_compare_exchange_strong(&b->name, &none, name)) {
			atomic_store(&b->caller, caller);
			atomic_store_explicit(&b->function, function, memory_order_release);
			break;
		}
	}
	return function;
}
