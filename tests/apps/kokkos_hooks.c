/* SPDX-License-Identifier: MIT */
/* Calls the hooks of KOKKOS_TOOLS_LIBS as Kokkos itself does; for tests/integration/library.sh. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct space {
	char name[64];
};
static void *tool;
static volatile unsigned work;
static const char data[800];

#define HOOK(name, type) ((type)dlsym(tool, "kokkosp_" #name))
/* Kokkos calls those that are there. */
#define CALL(name, type, ...)                                                                                \
	do {                                                                                                 \
		type hook = HOOK(name, type);                                                                \
		if (!hook)                                                                                   \
			return printf("no hook " #name "\n"), 1;                                             \
		hook(__VA_ARGS__);                                                                           \
	} while (0)
typedef void begins(const char *, uint32_t, uint64_t *);
typedef void ends(uint64_t);
typedef void named(const char *);
typedef void plain(void);
typedef void numbered(uint32_t);
typedef void copies(struct space, const char *, const void *, struct space, const char *, const void *,
		    uint64_t);
typedef void holds(struct space, const char *, const void *, uint64_t);
typedef void creates(const char *, uint32_t *);
typedef void starts(int, uint64_t, uint32_t, void *);

static int run(void)
{
	const struct space host = { "Host" }, device = { "Cuda" };
	uint64_t id, outer;
	uint32_t section;

	CALL(init_library, starts *, 0, 20211015, 0, NULL);
	CALL(push_profile_region, named *, "timestep");
	CALL(allocate_data, holds *, host, "view", data, 800);
	for (int i = 0; i < 3; i++) {
		CALL(begin_parallel_for, begins *, "axpy", 1, &outer);
		CALL(begin_parallel_reduce, begins *, "dot", 1, &id);
		for (int k = 0; k < 1000; k++)
			work++;
		CALL(end_parallel_reduce, ends *, id);
		CALL(end_parallel_for, ends *, outer);
	}
	CALL(begin_parallel_scan, begins *, "prefix", 1, &id);
	CALL(end_parallel_scan, ends *, id);
	CALL(begin_fence, begins *, "wait", 1, &id);
	CALL(end_fence, ends *, id);
	CALL(begin_deep_copy, copies *, device, "to", NULL, host, "from", data, 4096);
	CALL(end_deep_copy, plain *);
	CALL(create_profile_section, creates *, "section", &section);
	CALL(start_profile_section, numbered *, section);
	CALL(stop_profile_section, numbered *, section);
	CALL(destroy_profile_section, numbered *, section);
	CALL(profile_event, named *, "done");
	CALL(deallocate_data, holds *, host, "view", data, 800);
	CALL(pop_profile_region, plain *);
	CALL(finalize_library, plain *);
	return 0;
}

int main(void)
{
	const char *path = getenv("KOKKOS_TOOLS_LIBS");

	tool = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
	if (!tool)
		return printf("%s\n", path ? dlerror() : "no KOKKOS_TOOLS_LIBS"), 1;
	return run();
}
