/* SPDX-License-Identifier: MIT */
/* A session for the sampler's parts, and the modules of this process with their indexes. */
#ifndef CA_TESTS_SAMPLER_FIXTURE_H
#define CA_TESTS_SAMPLER_FIXTURE_H
#include "core/session.h"
#include "sampler/host.h"
#include "sampler/modules.h"
#include "tests/unit/unit.h"
#include <elf.h>
#include <sys/auxv.h>

#include "tests/unit/asm_fixture.h"
#include "tests/unit/forbidden.h"

static struct ca_session *session;

static uint32_t sampler_enlist(const struct ca_image *image, uint32_t guess)
{
	return ca_module_enlist(session, image, guess);
}

static const char *sampler_index_path(uint32_t module)
{
	return ca_module_index_path(session, module);
}

static inline int sampler_set_up(void **state)
{
	ca_sampler_host.enlist = sampler_enlist;
	ca_sampler_host.index_path = sampler_index_path;
	return fixture_make(state) != 0 ||
	       ca_session_create(fixture_path("session"), &session, NULL) != CA_OK;
}

static inline int sampler_tear_down(void **state)
{
	ca_session_detach(session);
	return fixture_remove(state);
}

/* The kernel's code has no file. */
static inline const char *sampler_file_of(const struct ca_module *m)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
	const char *path = fixture_path("vdso");
	FILE *file;

	if (strcmp(m->path, CA_MODULE_VDSO) != 0)
		return m->path;
	file = fopen(path, "w");
	if (!file || !fwrite(e, e->e_shoff + (size_t)e->e_shnum * e->e_shentsize, 1, file) || fclose(file))
		abort();
	return path;
}

/* As the conductor does: an index for each module that was registered. */
static inline void sampler_index_all(void)
{
	for (uint32_t i = 1; i < CA_MAX_MODULES; i++) {
		struct ca_module *m = &session->module[i];
		struct ca_index *index;

		if (atomic_load(&m->state) != CA_MODULE_REGISTERED)
			continue;
		index = fixture_open(sampler_file_of(m), CA_INDEX_UNWIND);
		assert_non_null(index);
		strcpy(m->index_path, ca_index_path(index));
		ca_index_close(index);
		atomic_store(&m->state, CA_MODULE_INDEXED);
	}
}

#endif
