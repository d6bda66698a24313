/* SPDX-License-Identifier: MIT */
/* causal/conductor/critical_path.c: paths that are known by hand. */
#include "causal/conductor/critical_path.h"
#include "causal/results/samples.h"
#include "tests/unit/unit.h"
#include <malloc.h>
#include <stdio.h>

enum { MAIN = 1, A, B, C };

static struct ca_critical_path *path;
static struct ca_samples *samples;
static uint32_t f, g, h;

static int set_up(void **state)
{
	(void)state;
	samples = ca_samples_new();
	path = ca_critical_path_new(samples);
	f = ca_samples_node(samples, 0, ca_samples_function(samples, CA_SAMPLES_CODE, "f", "", 0, ""));
	g = ca_samples_node(samples, 0, ca_samples_function(samples, CA_SAMPLES_CODE, "g", "", 0, ""));
	h = ca_samples_node(samples, 0, ca_samples_function(samples, CA_SAMPLES_CODE, "h", "", 0, ""));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ca_critical_path_free(path);
	ca_samples_free(samples);
	return 0;
}

static void check(uint64_t in_f, uint64_t in_g, uint64_t in_h)
{
	ca_critical_path_finish(path);
	assert_int_equal(samples->node[f].path, in_f);
	assert_int_equal(samples->node[g].path, in_g);
	assert_int_equal(samples->node[h].path, in_h);
}

/* Main makes A and B. B works in g for 3 and waits for A, which works in f for 10; then B works in g for 5. C works in
 * h for 12, and ends before B. Main waits for all, and for B last. What the threads tell comes one thread after the
 * other, and in two lots. */
static void wake(void **state)
{
	(void)state;
	ca_critical_path_begins(path, MAIN, 1);
	ca_critical_path_spent(path, MAIN, 3, h, 2);
	ca_critical_path_wakes(path, MAIN, 4, 1); /* pthread_create */
	ca_critical_path_wakes(path, MAIN, 5, 2);
	ca_critical_path_woken(path, MAIN, 26, 5);
	ca_critical_path_begins(path, B, 5);
	ca_critical_path_woken(path, B, 5, 2);
	ca_critical_path_spent(path, B, 8, g, 3);
	ca_critical_path_woken(path, B, 16, 3);
	ca_critical_path_begins(path, A, 4);
	ca_critical_path_woken(path, A, 4, 1);
	ca_critical_path_spent(path, A, 14, f, 10);
	ca_critical_path_step(path, 9);
	ca_critical_path_wakes(path, A, 15, 3);
	ca_critical_path_ends(path, A, 16);
	ca_critical_path_begins(path, C, 5);
	ca_critical_path_spent(path, C, 17, h, 12);
	ca_critical_path_wakes(path, C, 18, 4);
	ca_critical_path_ends(path, C, 18);
	ca_critical_path_spent(path, B, 21, g, 5);
	ca_critical_path_wakes(path, B, 25, 5);
	ca_critical_path_ends(path, B, 25);
	ca_critical_path_ends(path, MAIN, 27);
	check(10, 5, 2);
}

/* Nobody wakes anybody: the path is that of who ended last, or was heard of last. */
static void alone(void **state)
{
	(void)state;
	ca_critical_path_begins(path, MAIN, 1);
	ca_critical_path_spent(path, MAIN, 5, f, 4);
	ca_critical_path_begins(path, A, 5);
	ca_critical_path_spent(path, A, 9, g, 3);
	ca_critical_path_spent(path, MAIN, 8, h, 3);
	check(4, 3, 0); /* A goes on where the first thread was */
	ca_critical_path_ends(path, MAIN, 10);
	check(4, 3, 3);
}

/* A pair that nobody remembers, or of which nothing was told, leaves the path as it is; several may be woken by one. */
static void pairs(void **state)
{
	(void)state;
	ca_critical_path_spent(path, A, 5, f, 5);
	ca_critical_path_wakes(path, A, 5, 7);
	ca_critical_path_spent(path, B, 4, g, 4);
	ca_critical_path_spent(path, C, 3, h, 3);
	ca_critical_path_woken(path, B, 6, 7);
	ca_critical_path_woken(path, C, 6, 7);
	ca_critical_path_spent(path, B, 8, g, 2);
	ca_critical_path_spent(path, C, 9, h, 1);
	ca_critical_path_woken(path, C, 10, 8);
	ca_critical_path_ends(path, B, 9);
	ca_critical_path_ends(path, C, 11);
	check(5, 0, 1);
}

/* A path remembers so many nodes; time in others is that of who has called them. */
static void many(void **state)
{
	enum { NODES = 5000 };
	uint64_t sum = 0;

	(void)state;
	for (unsigned i = 0; i < NODES; i++) {
		char name[16];

		snprintf(name, sizeof name, "x%u", i);
		ca_critical_path_spent(
			path, MAIN, i,
			ca_samples_node(samples, f,
					ca_samples_function(samples, CA_SAMPLES_CODE, name, "", 0, "")),
			1);
	}
	ca_critical_path_spent(path, MAIN, 0, f, 1);
	ca_critical_path_finish(path);
	for (size_t i = 0; i < samples->nodes; i++)
		sum += samples->node[i].path;
	assert_int_equal(sum, NODES + 1);
	assert_int_equal(samples->node[f].path, NODES + 1 - 4095);
}

/* Paths of 3,000 functions, each of which has woken others: the memory for them is bounded, and who has done so just
 * now is known. */
static void long_paths(void **state)
{
	enum { NODES = 3000, WAKES = 6000 };
	static uint32_t node[NODES];
	size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
	char name[20];
	uint64_t now = 1;

	(void)state;
	for (unsigned i = 0; i < NODES; i++) {
		snprintf(name, sizeof name, "f%u", i);
		node[i] = ca_samples_node(samples, 0,
					  ca_samples_function(samples, CA_SAMPLES_CODE, name, "", 0, ""));
		ca_critical_path_spent(path, A, now++, node[i], 1);
	}
	for (unsigned i = 1; i <= WAKES; i++) {
		ca_critical_path_spent(path, A, now++, node[i % NODES], 1);
		ca_critical_path_wakes(path, A, now++, i);
		ca_critical_path_step(path, now);
	}
	assert_true(mallinfo2().uordblks + mallinfo2().hblkhd < before + 20000000);
	ca_critical_path_woken(path, B, now++, WAKES - 20);
	ca_critical_path_spent(path, B, now++, f, 5);
	ca_critical_path_ends(path, B, now);
	check(5, 0, 0);
	assert_int_equal(ca_samples_path(samples), NODES + WAKES - 20 + 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(long_paths, set_up, tear_down),
		cmocka_unit_test_setup_teardown(wake, set_up, tear_down),
		cmocka_unit_test_setup_teardown(alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(pairs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
