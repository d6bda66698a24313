/* Progress points in code: the notes of causal.h's macros become counters. And Coz's own
 * interface, so that programs built with coz.h work as they are.
 *
 * Constructor, or a handler when a library appeared later; the table in the session is
 * filled by compare-and-swap. */
#include "causal/runtime/rt.h"
#include "causal/runtime/patch.h"
#include "core/log.h"
#include "sampler/modules.h"
#include <string.h>

static const struct {
	const char *provider;
	enum ca_point_kind kind;
} providers[] = {
	{ "causal", CA_POINT_THROUGHPUT },
	{ "causal_begin", CA_POINT_BEGIN },
	{ "causal_end", CA_POINT_END },
};

struct ca_progress_point *ca_points_get(enum ca_point_kind kind, const char *name)
{
	struct ca_session *s = ca_rt.session;

	for (uint32_t i = 0; i < CA_MAX_POINTS; i++) {
		struct ca_progress_point *p = &s->point[i];
		uint32_t state = atomic_load_explicit(&p->state, memory_order_acquire), expected = CA_SLOT_FREE;

		/* somebody is writing the name: a few stores, or dead; then we skip the row */
		for (int spin = 0; state == CA_SLOT_CLAIMED && spin < 10000; spin++) {
			ca_cpu_pause();
			state = atomic_load_explicit(&p->state, memory_order_acquire);
		}
		if (state == CA_SLOT_LIVE && p->kind == (uint32_t)kind &&
		    !strncmp(p->name, name, sizeof p->name - 1))
			return p;
		if (state != CA_SLOT_FREE ||
		    !atomic_compare_exchange_strong(&p->state, &expected, CA_SLOT_CLAIMED))
			continue;
		p->kind = (uint32_t)kind;
		strncpy(p->name, name, sizeof p->name - 1);
		atomic_store_explicit(&p->state, CA_SLOT_LIVE, memory_order_release);
		if (atomic_load(&s->points_used) < i + 1)
			atomic_store(&s->points_used, i + 1);
		return p;
	}
	return NULL;
}

static bool is_nop5(const uint8_t *p)
{
	static const uint8_t nop[5] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

	return !memcmp(p, nop, sizeof nop);
}

static void patch_probe(const struct ca_loaded *l, const struct ca_index_probe *probe, enum ca_point_kind kind)
{
	struct ca_progress_point *point = ca_points_get(kind, probe->name);
	struct ca_site site;

	if (!point) {
		ca_log(CA_LOG_ERROR, "more than %d progress points: \"%s\" is not counted", (int)CA_MAX_POINTS,
		       probe->name);
		return;
	}
	if (probe->address + l->bias < l->low || probe->address + l->bias + 5 > l->high ||
	    !is_nop5((const uint8_t *)(probe->address + l->bias)))
		return;
	memset(&site, 0, sizeof site);
	site.module = l->module;
	site.kind = CA_SITE_COUNT;
	site.length = 5;
	site.address = probe->address;
	site.point = (uint32_t)(point - ca_rt.session->point);
	site.hooks = 1;
	site.hook[0].kind = CA_SITE_COUNT;
	site.code_length = 5; /* in place of the nop: the jump back */
	site.code[0] = 0xe9;
	site.fixups = 1;
	site.fixup[0].at = 1;
	site.fixup[0].end = 5;
	site.fixup[0].type = CA_FIXUP_REL;
	site.fixup[0].target = probe->address + 5;
	memcpy(site.original, (const void *)(probe->address + l->bias), 5);
	if (ca_patch_install(&site, 1, ca_modules_bias))
		ca_log(CA_LOG_ERROR, "progress point \"%s\" could not be placed", probe->name);
}

void ca_points_patch_loaded(void)
{
	struct ca_loaded *l;

	if (!ca_rt.patching)
		return;
	for (unsigned i = 0; (l = ca_modules_at(i)); i++) {
		const struct ca_index *index = ca_modules_index(ca_rt.session, l);
		size_t n = index && !l->points_done ? ca_index_probes(index) : 0;

		for (size_t k = 0; k < n; k++) {
			struct ca_index_probe probe;

			ca_index_probe_at(index, k, &probe);
			for (unsigned j = 0; j < sizeof providers / sizeof providers[0]; j++)
				if (!strcmp(probe.provider, providers[j].provider))
					patch_probe(l, &probe, providers[j].kind);
		}
		if (index)
			l->points_done = true;
	}
}

/* ---- Coz: a program looks these up with dlsym -----------------------------------------*/
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
	ca_meet();
}

CA_EXPORT void _coz_post_block(int skip)
{
	(void)skip;
}

CA_EXPORT void _coz_catch_up(void)
{
	ca_meet();
}
