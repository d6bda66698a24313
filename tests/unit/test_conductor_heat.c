/* SPDX-License-Identifier: MIT */
/* causal/conductor/heat.c: how often code is entered, by each thread and by all. */
#include "causal/conductor/heat.h"
#include "sampler/tick.h"
#include "tests/unit/unit.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MS = 1000000, FROM = 7 * MS };

static struct ca_session *s;
static struct ca_heat_look look;

static int set_up(void **state)
{
	(void)state;
	s = aligned_alloc(_Alignof(struct ca_session), sizeof *s);
	if (!s)
		return -1;
	memset(s, 0, sizeof *s);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(s);
	return 0;
}

static void limits(void **state)
{
	uint64_t cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	const struct {
		uint32_t threads;
		uint32_t visits; /* of each in 10 ms */
		enum ca_heat heat;
		uint32_t passes; /* by others, of each */
		enum ca_backend backend;
	} cases[] = {
		{ 1, 0, CA_HEAT_COOL },
		{ 1, 500, CA_HEAT_COOL },
		{ 1, 501, CA_HEAT_HOT },
		{ 64, 31, CA_HEAT_COOL }, /* many threads that pass seldom */
		{ 64, 32, CA_HEAT_HOT },
		{ 1, 40000, CA_HEAT_HOT },
		{ 1, 40001, CA_HEAT_TOO_HOT },
		{ (uint32_t)cpus * 10, 4000, CA_HEAT_HOT },
		{ (uint32_t)cpus * 10, 4001, CA_HEAT_TOO_HOT },
		/* what is not timed, timers' ticks tell little of */
		{ 1, 200000, CA_HEAT_HOT, .backend = CA_BACKEND_TIMER },
		{ 1, 200001, CA_HEAT_TOO_HOT, .backend = CA_BACKEND_TIMER },
		{ 2, 10, CA_HEAT_COOL, 30000 },
		{ 1, 10, CA_HEAT_HOT, 30001 },
		{ 1, 0, CA_HEAT_HOT, 200000 },
		{ 1, 10, CA_HEAT_TOO_HOT, 200001 },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		for (uint32_t k = 0; k < CA_MAX_THREADS; k++)
			atomic_store(&s->fine[k].visits, 1000 * k - 1);
		atomic_store(&s->slots_used, cases[i].threads);
		s->backend = cases[i].backend;
		ca_heat_begin(&look, s, FROM);
		for (uint32_t k = 0; k < CA_MAX_THREADS; k++)
			atomic_fetch_add(&s->fine[k].visits, cases[i].visits);
		for (uint32_t k = 0; k < CA_MAX_THREADS; k++)
			atomic_fetch_add(&s->fine[k].passes, cases[i].passes);
		if (ca_heat_judge(&look, s, FROM + 10 * MS) != cases[i].heat)
			fail_msg("case %zu", i);
	}
	assert_int_equal(ca_heat_judge(&look, s, FROM), CA_HEAT_COOL); /* no time has passed */
	/* threads change stacks in it: once may be a signal's handler */
	atomic_store(&s->elsewhere, CA_ELSEWHERE - 1);
	assert_int_equal(ca_heat_judge(&look, s, FROM), CA_HEAT_COOL);
	atomic_store(&s->elsewhere, CA_ELSEWHERE);
	assert_int_equal(ca_heat_judge(&look, s, FROM), CA_HEAT_TOO_HOT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(limits, set_up,
										   tear_down) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
