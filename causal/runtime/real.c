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
