/* SPDX-License-Identifier: MIT */
/* Coz's own interface, so that programs built with coz.h work as they are: they look these up
 * with dlsym. Ordinary context. */
#include "causal/runtime/points.h"
#include "causal/runtime/wait.h"

struct coz_counter {
	uint64_t count, backoff;
};
CA_EXPORT struct coz_counter *_coz_get_counter(int type, const char *name);
CA_EXPORT void _coz_pre_block(void);
CA_EXPORT void _coz_post_block(int skip);
CA_EXPORT void _coz_catch_up(void);

CA_EXPORT struct coz_counter *_coz_get_counter(int type, const char *name)
{
	struct ca_progress_point *p;

	_Static_assert(sizeof(struct coz_counter) == 2 * sizeof(uint64_t), "as coz.h declares it");
	if (!ca_rt.session || type < CA_POINT_THROUGHPUT || type > CA_POINT_END || !name)
		return NULL;
	p = ca_points_get((enum ca_point_kind)type, name);
	return p ? (struct coz_counter *)(void *)&p->shared : NULL;
}

/* Blocking needs no announcement here: who waited owes nothing anyway. */
CA_EXPORT void _coz_pre_block(void)
{
	ca_wait_meet();
}

CA_EXPORT void _coz_post_block(int skip)
{
	(void)skip;
}

CA_EXPORT void _coz_catch_up(void)
{
	ca_wait_meet();
}
