/* SPDX-License-Identifier: MIT */
/* core/samplers.c: samplers and metrics as they are written, and what they inherit. */
#include "core/samplers.h"
#include "core/settings.h"
#include "tests/unit/unit.h"
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

static struct ca_settings settings;

static int set_up(void **state)
{
	(void)state;
	return ca_settings_init(&settings, NULL) == CA_OK ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	ca_settings_fini(&settings);
	return 0;
}

static void set(enum ca_setting_id id, const char *text)
{
	struct ca_err err;

	if (ca_settings_set(&settings, id, text, CA_ORIGIN_COMMAND, NULL, &err))
		fail_msg("%s", err.text);
}

static void test_default(void **state)
{
	struct ca_samplers s;
	double delay, duration;

	(void)state;
	assert_int_equal(ca_samplers_make(&s, &settings, NULL), CA_OK);
	assert_int_equal(s.on, 1 << CA_SAMPLER_CPU);
	assert_int_equal(s.metrics, 0);
	assert_int_equal(s.of[CA_SAMPLER_CPU].period, settings.period);
	assert_int_equal(s.of[CA_SAMPLER_CPU].ranges, 0);
	assert_false(ca_samplers_window(&settings, CA_SAMPLER_CPU, &delay, &duration));
}

static void test_inheritance(void **state)
{
	struct ca_samplers s;
	double delay, duration;

	(void)state;
	set(CA_SETTING_FREQUENCY, "500");
	set(CA_SETTING_TIDS, "2,4-5");
	set(CA_SETTING_DELAY, "3");
	set(CA_SETTING_DURATION, "7");
	set(CA_SETTING_CPUTIME, "0");
	set(CA_SETTING_REALTIME, "100::2:1");
	set(CA_SETTING_OVERFLOW, "page-faults:50:1.5");
	assert_int_equal(ca_samplers_make(&s, &settings, NULL), CA_OK);
	assert_int_equal(s.on, 7);
	assert_int_equal(s.of[CA_SAMPLER_CPU].period, 2000000);
	assert_int_equal(s.of[CA_SAMPLER_CPU].ranges, 2);
	assert_int_equal(s.of[CA_SAMPLER_CPU].first[1], 4);
	assert_int_equal(s.of[CA_SAMPLER_CPU].last[1], 5);
	assert_int_equal(s.of[CA_SAMPLER_REAL].period, 10000000);
	assert_int_equal(s.of[CA_SAMPLER_REAL].ranges, 1);
	assert_int_equal(s.of[CA_SAMPLER_OVERFLOW].period, 50);
	assert_int_equal(s.overflow_frequency, 0);
	assert_int_equal(s.overflow.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(s.overflow.config, PERF_COUNT_SW_PAGE_FAULTS);
	assert_false(ca_samplers_window(&settings, CA_SAMPLER_CPU, &delay, &duration));
	assert_true(ca_samplers_window(&settings, CA_SAMPLER_REAL, &delay, &duration));
	assert_true(delay == 3 && duration == 2);
	assert_true(ca_samplers_window(&settings, CA_SAMPLER_OVERFLOW, &delay, &duration));
	assert_true(delay == 1.5 && duration == 7);
	set(CA_SETTING_OVERFLOW, "page-faults:250hz::4:3");
	assert_int_equal(ca_samplers_make(&s, &settings, NULL), CA_OK);
	assert_int_equal(s.overflow_frequency, 250);
	assert_int_equal(s.of[CA_SAMPLER_OVERFLOW].first[0], 3);
	assert_true(ca_samplers_window(&settings, CA_SAMPLER_OVERFLOW, &delay, &duration));
	assert_true(delay == 3 && duration == 4);
	set(CA_SETTING_OVERFLOW, "page-faults:0hz");
	assert_int_equal(ca_samplers_make(&s, &settings, NULL), CA_OK);
	assert_int_equal(s.overflow_frequency, 500);
	assert_int_equal(ca_samplers_check(CA_SAMPLER_OVERFLOW, "page-faults:1e6hz", NULL), CA_ERR_USAGE);
	assert_int_equal(ca_samplers_check(CA_SAMPLER_OVERFLOW, "page-faults:200001hz", NULL), CA_ERR_USAGE);
	assert_int_equal(ca_samplers_check(CA_SAMPLER_OVERFLOW, "page-faults:0", NULL), CA_ERR_USAGE);
}

static void test_metrics(void **state)
{
	struct ca_samplers s;
	const char *unit;

	(void)state;
	set(CA_SETTING_METRICS, "switches, page-faults,peak-rss,instructions");
	set(CA_SETTING_REALTIME, "5");
	assert_int_equal(ca_samplers_make(&s, &settings, NULL), CA_OK);
	assert_int_equal(s.on, 1 << CA_SAMPLER_REAL);
	assert_int_equal(s.metrics, 1 << CA_METRIC_REAL | 1 << CA_METRIC_SWITCHES | 1 << CA_METRIC_PEAK_RSS |
					    1 << CA_METRIC_OWN | 1 << (CA_METRIC_OWN + 1));
	assert_int_equal(s.counters, 2);
	assert_int_equal(s.counter[1].config, PERF_COUNT_HW_INSTRUCTIONS);
	assert_string_equal(ca_samplers_metric(&settings, CA_METRIC_OWN, &unit), "page-faults");
	assert_string_equal(ca_samplers_metric(&settings, CA_METRIC_OWN + 1, &unit), "instructions");
	assert_string_equal(ca_samplers_metric(&settings, CA_METRIC_OWN + 2, &unit), "");
	assert_string_equal(ca_samplers_metric(&settings, CA_METRIC_PEAK_RSS, &unit), "peak-rss");
	assert_string_equal(unit, "bytes");
	assert_string_equal(ca_samplers_metric(&settings, CA_METRIC_OVERFLOW, &unit), "");
}

/* As PAPI, libpfm4 and the kernel call them. */
static void test_names(void **state)
{
	static const struct {
		const char *name;
		uint64_t config;
	} cases[] = {
		{ "PAPI_TOT_INS", PERF_COUNT_HW_INSTRUCTIONS },
		{ "perf::PERF_COUNT_HW_CACHE_REFERENCES", PERF_COUNT_HW_CACHE_REFERENCES },
		{ "perf::CACHE-MISSES", PERF_COUNT_HW_CACHE_MISSES },
		{ "PERF_COUNT_SW_PAGE_FAULTS_MIN", PERF_COUNT_SW_PAGE_FAULTS_MIN },
	};
	struct ca_samplers s;
	char overflow[80];
	const char *unit;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		set(CA_SETTING_METRICS, cases[i].name);
		snprintf(overflow, sizeof overflow, "%s:77:1.5", cases[i].name);
		set(CA_SETTING_OVERFLOW, overflow);
		assert_int_equal(ca_samplers_make(&s, &settings, NULL), CA_OK);
		assert_int_equal(s.counters, 1);
		assert_int_equal(s.counter[0].config, cases[i].config);
		assert_string_equal(ca_samplers_metric(&settings, CA_METRIC_OWN, &unit), cases[i].name);
		assert_int_equal(s.overflow.config, cases[i].config);
		assert_int_equal(s.of[CA_SAMPLER_OVERFLOW].period, 77);
		snprintf(overflow, sizeof overflow, "overflow-%s", cases[i].name);
		assert_string_equal(ca_samplers_metric(&settings, CA_METRIC_OVERFLOW, &unit), overflow);
	}
	assert_int_equal(ca_samplers_check_metrics("PAPI_NOTHING", NULL), CA_ERR_USAGE);
	assert_int_equal(ca_samplers_check_metrics("perf::", NULL), CA_ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_default, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_inheritance, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_metrics, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
