/* SPDX-License-Identifier: MIT */
/* A tool of Kokkos: KOKKOS_TOOLS_LIBS=libcausal.so (KOKKOS_PROFILE_LIBRARY in older versions). Kernels, fences,
 * copies, regions and sections are regions, allocations events, and the end of a kernel is a progress point
 * of its name. The names of the functions are Kokkos's. */
#include "causal/library/library.h"
#include "include/causal_user.h"

#define HOOK __attribute__((visibility("default"))) void
enum { NAME = 64, TEXT = 200 };
struct space {
	char name[NAME];
};

/* The key is the id that Kokkos hands back at the end; 0: none. */
static uint64_t begin(const char *what, const char *name)
{
	const struct ca_library_key *key = NULL;
	char text[TEXT];

	if (ca_library_is_traced()) {
		snprintf(text, sizeof text, "%s%s", what, name ? name : "");
		key = ca_library_key(text);
		ca_library_begin(key, 1);
	}
	return (uint64_t)(uintptr_t)key;
}

static void end(uint64_t id)
{
	ca_library_end((const struct ca_library_key *)(uintptr_t)id);
}

/* Kernels are told from each other by their names only: in a run without a trace nobody asks. */
#define KERNEL(kind)                                                                                         \
	HOOK kokkosp_begin_parallel_##kind(const char *name, uint32_t device, uint64_t *id);                 \
	HOOK kokkosp_end_parallel_##kind(uint64_t id);                                                       \
	HOOK kokkosp_begin_parallel_##kind(const char *name, uint32_t device, uint64_t *id)                  \
	{                                                                                                    \
		(void)device;                                                                                \
		*id = begin("kokkos " #kind ": ", name);                                                     \
	}                                                                                                    \
	HOOK kokkosp_end_parallel_##kind(uint64_t id)                                                        \
	{                                                                                                    \
		end(id);                                                                                     \
		causal_user_progress("kokkos " #kind);                                                       \
	}
KERNEL(for)
KERNEL(scan)
KERNEL(reduce)

HOOK kokkosp_init_library(int order, uint64_t version, uint32_t devices, void *device);
HOOK kokkosp_init_library(int order, uint64_t version, uint32_t devices, void *device)
{
	(void)order, (void)version, (void)devices, (void)device;
}

HOOK kokkosp_finalize_library(void);
HOOK kokkosp_finalize_library(void)
{
}

/* What ends without being named: regions and copies, the innermost of the thread. */
enum { DEPTH = 128 };
static _Thread_local uint64_t opened[DEPTH];
static _Thread_local unsigned depth;

static void push(const char *what, const char *name)
{
	uint64_t id = begin(what, name);

	if (depth < DEPTH)
		opened[depth] = id;
	depth++;
}

static void pop(void)
{
	if (depth && --depth < DEPTH)
		end(opened[depth]);
}

HOOK kokkosp_push_profile_region(const char *name);
HOOK kokkosp_push_profile_region(const char *name)
{
	push("", name);
}

HOOK kokkosp_pop_profile_region(void);
HOOK kokkosp_pop_profile_region(void)
{
	pop();
}

HOOK kokkosp_begin_deep_copy(struct space to_space, const char *to, const void *to_at,
			     struct space from_space, const char *from, const void *from_at, uint64_t size);
HOOK kokkosp_begin_deep_copy(struct space to_space, const char *to, const void *to_at,
			     struct space from_space, const char *from, const void *from_at, uint64_t size)
{
	char text[TEXT];

	(void)to_at, (void)from_at;
	if (ca_library_is_traced())
		ca_library_point("kokkos copied bytes", size);
	snprintf(text, sizeof text, "%.63s %.30s from %.63s %.30s", to_space.name, to ? to : "",
		 from_space.name, from ? from : "");
	push("kokkos copy: ", text);
}

HOOK kokkosp_end_deep_copy(void);
HOOK kokkosp_end_deep_copy(void)
{
	pop();
}

HOOK kokkosp_begin_fence(const char *name, uint32_t device, uint64_t *id);
HOOK kokkosp_begin_fence(const char *name, uint32_t device, uint64_t *id)
{
	(void)device;
	*id = begin("kokkos fence: ", name);
}

HOOK kokkosp_end_fence(uint64_t id);
HOOK kokkosp_end_fence(uint64_t id)
{
	end(id);
}

/* ---- memory, of which Kokkos tells the space */

static void tell(const char *what, struct space space, uint64_t size)
{
	char text[TEXT];

	if (!ca_library_is_traced())
		return;
	snprintf(text, sizeof text, "kokkos %s in %.63s", what, space.name);
	ca_library_point(text, size);
}

HOOK kokkosp_allocate_data(struct space space, const char *name, const void *at, uint64_t size);
HOOK kokkosp_allocate_data(struct space space, const char *name, const void *at, uint64_t size)
{
	(void)name, (void)at;
	tell("allocated", space, size);
}

HOOK kokkosp_deallocate_data(struct space space, const char *name, const void *at, uint64_t size);
HOOK kokkosp_deallocate_data(struct space space, const char *name, const void *at, uint64_t size)
{
	(void)name, (void)at;
	tell("freed", space, size);
}

/* ---- sections and events */

enum { SECTIONS = 1024 };
static const struct ca_library_key *_Atomic section[SECTIONS]; /* by id, from 1 */
static _Atomic uint32_t sections;

HOOK kokkosp_create_profile_section(const char *name, uint32_t *id);
HOOK kokkosp_create_profile_section(const char *name, uint32_t *id)
{
	*id = 1 + sections++;
	if (*id < SECTIONS)
		section[*id] = ca_library_key(name ? name : "");
}

HOOK kokkosp_start_profile_section(uint32_t id);
HOOK kokkosp_start_profile_section(uint32_t id)
{
	if (id < SECTIONS)
		ca_library_begin(section[id], 1);
}

HOOK kokkosp_stop_profile_section(uint32_t id);
HOOK kokkosp_stop_profile_section(uint32_t id)
{
	if (id < SECTIONS)
		ca_library_end(section[id]);
}

HOOK kokkosp_destroy_profile_section(uint32_t id);
HOOK kokkosp_destroy_profile_section(uint32_t id)
{
	(void)id;
}

HOOK kokkosp_profile_event(const char *name);
HOOK kokkosp_profile_event(const char *name)
{
	ca_library_point(name ? name : "", 1);
}
