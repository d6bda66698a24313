/* SPDX-License-Identifier: MIT */
/* Progress points named on the command line: the conductor has found them and planned their
 * sites; here they are put in place.
 *
 * Constructor, or a handler when a library appeared later, or when the conductor has chosen points
 * while the program runs. */
#include "causal/runtime/requested.h"
#include "causal/runtime/patch.h"
#include "core/log.h"
#include "core/sys.h"
#include "sampler/modules.h"

enum {
	WAIT_FOR_ALL = 3000, /* ms for the libraries that are there at the start */
	PAUSE = 1000000      /* ns between two looks */
};

static uint32_t requested_used(void)
{
	/* acquire: pairs with the conductor's release once the sites are complete */
	uint32_t used = atomic_load_explicit(&ca_rt.session->requested_used, memory_order_acquire);

	return used < CA_MAX_REQUESTED ? used : CA_MAX_REQUESTED;
}

/* A probe with a semaphore is passed only where that is not 0. By system calls: the library may be
 * closed at this very moment. */
static void enable(uintptr_t semaphore)
{
	uint16_t value = 0, one = 1;

	if (ca_sys_peek(semaphore, &value, sizeof value) == sizeof value && value == 0)
		ca_sys_poke(semaphore, &one, sizeof one);
}

static void enable_probes(const struct ca_loaded *l, const struct ca_index *index, const struct ca_site *site,
			  uint32_t sites)
{
	size_t n = ca_index_probes(index);

	for (size_t k = 0; k < n; k++) {
		struct ca_index_probe probe;

		ca_index_probe_at(index, k, &probe);
		for (uint32_t i = 0; i < sites && probe.semaphore; i++)
			if (probe.address >= site[i].address &&
			    probe.address < site[i].address + site[i].length) {
				enable((uintptr_t)probe.semaphore + l->bias);
				break;
			}
	}
}

/* What has been placed, or is being placed. */
static _Atomic uint32_t seen;
static _Atomic bool told[CA_MAX_REQUESTED]; /* by first site: that some could not be placed */

CA_SIGSAFE bool ca_requested_changed(void)
{
	uint32_t used = requested_used(), before = atomic_load_explicit(&seen, memory_order_relaxed);

	return used != before && atomic_compare_exchange_strong(&seen, &before, used);
}

/* The sites [low, high), all of this module. */
CA_SIGSAFE static void place(const struct ca_loaded *l, const struct ca_index *index, uint32_t low,
			     uint32_t high)
{
	const struct ca_site *site = ca_rt.session->requested;
	unsigned failed = ca_patch_install(site + low, high - low, ca_modules_bias);

	if (failed && atomic_exchange_explicit(&told[low], true, memory_order_relaxed) == false)
		ca_log(CA_LOG_ERROR,
		       "%u places of the progress points in %s could not be patched: they "
		       "are not counted",
		       failed, ca_rt.session->module[l->module].path);
	enable_probes(l, index, site + low, high - low);
}

CA_SIGSAFE void ca_requested_place(const struct ca_loaded *l, const struct ca_index *index)
{
	const struct ca_site *site = ca_rt.session->requested;
	uint32_t used = requested_used(), high;

	/* what is published at one time is in one piece */
	for (uint32_t low = 0; low < used; low = high) {
		for (high = low; high < used && site[high].module == site[low].module; high++)
			;
		if (site[low].module == l->module)
			place(l, index, low, high);
	}
}

static bool all_known(void)
{
	struct ca_loaded *l;

	for (unsigned i = 0; (l = ca_modules_at(i)); i++) {
		/* acquire: the sites come before the state */
		uint32_t state =
			atomic_load_explicit(&ca_rt.session->module[l->module].state, memory_order_acquire);

		if (state == CA_MODULE_CLAIMED || state == CA_MODULE_REGISTERED)
			return false;
	}
	return true;
}

void ca_requested_wait(void)
{
	struct timespec pause = { 0, PAUSE };

	if (!ca_rt.session->requested_anywhere)
		return;
	for (int ms = 0; ms < WAIT_FOR_ALL && !all_known(); ms++) {
		if (ca_rt_conductor_is_gone(ca_clock_now()))
			break;
		ca_sys(SYS_nanosleep, (long)(intptr_t)&pause, 0, 0, 0, 0, 0);
	}
}
