/* SPDX-License-Identifier: MIT */
/* Rows of the session's table of modules; see core/module.h.
 *
 * Runs in the host, in handlers too. */
#include "core/module.h"
#include "core/path.h"
#include "core/session.h"
#include "core/sys.h"
#include <string.h>

static bool is_same(struct ca_module *m, const struct ca_image *image)
{
	return atomic_load_explicit(&m->state, memory_order_acquire) >= CA_MODULE_REGISTERED &&
	       m->build_id_length == image->build_id_length &&
	       !memcmp(m->build_id, image->build_id, image->build_id_length) && !strcmp(m->path, image->path);
}

static void fill(struct ca_module *m, const struct ca_image *image)
{
	memcpy(m->path, image->path, strnlen(image->path, sizeof m->path - 1)); /* the row was zeros */
	m->openmp = ca_path_is_openmp(m->path);
	m->process = (uint32_t)ca_sys_getpid();
	m->main = image->main;
	m->build_id_length = image->build_id_length;
	memcpy(m->build_id, image->build_id, sizeof m->build_id);
	/* release: pairs with the acquire in is_same and in the conductor */
	atomic_store_explicit(&m->state, CA_MODULE_REGISTERED, memory_order_release);
}

CA_SIGSAFE uint32_t ca_module_enlist(struct ca_session *session, const struct ca_image *image, uint32_t guess)
{
	if (guess && is_same(&session->module[guess], image))
		return guess;
	for (uint32_t i = 1; i < CA_MAX_MODULES; i++) {
		struct ca_module *m = &session->module[i];
		uint32_t expected = CA_MODULE_FREE;

		if (is_same(m, image))
			return i;
		if (!atomic_compare_exchange_strong(&m->state, &expected, CA_MODULE_CLAIMED))
			continue;
		fill(m, image);
		ca_session_use_row(&session->modules_used, i);
		return i;
	}
	return 0;
}

CA_SIGSAFE const char *ca_module_index_path(struct ca_session *session, uint32_t module)
{
	struct ca_module *m = &session->module[module];
	/* acquire: pairs with the conductor's release of state, after index_path */
	uint32_t state = atomic_load_explicit(&m->state, memory_order_acquire);

	if (state == CA_MODULE_INDEXED)
		return m->index_path;
	atomic_fetch_add_explicit(&m->missed, 1, memory_order_relaxed);
	return NULL;
}

const char *ca_module_called(const struct ca_session *session, const char *path)
{
	return *session->called && !strcmp(path, session->command) ? session->called : path;
}
