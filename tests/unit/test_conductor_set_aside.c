/* SPDX-License-Identifier: MIT */
/* causal/conductor/set_aside.c: samples that lay in a file make the same profile, byte for byte. */
#include "causal/conductor/set_aside.h"
#include "core/rng.h"
#include "core/session.h"
#include "core/settings.h"
#include "tests/unit/forbidden.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 40, STEPS = 300, MS = 1000000 };

static struct ca_settings settings;
static struct ca_session *session;
static struct ca_windows *windows;

static int set_up(void **state)
{
	(void)state;
	session = mmap(NULL, sizeof *session, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (session == MAP_FAILED || ca_settings_init(&settings, NULL) != CA_OK)
		return -1;
	windows = ca_windows_new(&settings, NULL, NULL);
	ca_windows_begin(windows, 1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ca_windows_free(windows);
	ca_settings_fini(&settings);
	munmap(session, sizeof *session);
	return 0;
}

static struct ca_event *add(struct ca_event *e, uint64_t time, uint8_t kind, uint32_t key, uint16_t flags,
			    uint64_t value)
{
	*e = (struct ca_event){ .time = time, .kind = kind, .key = key, .flags = flags, .value = value };
	return e + 1;
}

/* What one thread tells between two steps. */
static size_t make(struct ca_event *first, uint32_t thread, uint64_t now, struct ca_rng *rng, bool begins,
		   bool ends)
{
	struct ca_event *e = first;

	if (begins)
		e = add(e, now, CA_BURST_BEGIN, CA_KEY_THREAD, 0, thread);
	for (uint64_t i = ca_rng_below(rng, 4); i-- > 0; now += MS) {
		uint64_t pair = 1 + ca_rng_below(rng, 50);

		e = add(e, now, CA_POINT, CA_KEY_SAMPLE, 1,
			CA_PLACE(CA_MODULE_MADE, 1 + ca_rng_below(rng, 9)));
		for (uint64_t k = ca_rng_below(rng, 5); k-- > 0;)
			e = add(e, now, CA_POINT, CA_KEY_FRAME, 0, CA_PLACE(CA_MODULE_MADE, 100 + k));
		if (ca_rng_below(rng, 3) == 0) {
			e = add(e, now, CA_POINT, CA_KEY_BLOCKED, CA_ACTIVITY_SLEEP, 3 * MS);
			e = add(e, now, CA_POINT, CA_KEY_WOKEN, 0, pair);
		}
		e = add(e, now, ca_rng_below(rng, 2) ? CA_PTP_BEGIN : CA_PTP_END, CA_KEY_WAKE, 0, pair);
	}
	if (ends && thread % 2) { /* in a wait that began 5 ms before */
		e = add(e, now - 5 * MS, CA_POINT, CA_KEY_SAMPLE, CA_SAMPLE_WAITING,
			CA_PLACE(CA_MODULE_MADE, 1));
		e = add(e, now - 5 * MS, CA_POINT, CA_KEY_BLOCKED, CA_ACTIVITY_LOCK, 0);
		e = add(e, now - 5 * MS, CA_POINT, CA_KEY_WOKEN, 0, 7);
		e = add(e, now, CA_POINT, CA_KEY_BLOCKED, 0, now - 5 * MS);
		e = add(e, now, CA_POINT, CA_KEY_WOKEN, 0,
			thread % 4 == 1 ? 7 : 8); /* 8: of which nothing is known */
	}
	if (ends)
		e = add(e, now, CA_BURST_END, CA_KEY_THREAD, 0, thread);
	return (size_t)(e - first);
}

/* All of it, `most` bytes of it in a file at a time; 0: in none. The profile as text. */
static char *profile_of(uint64_t most)
{
	const struct ca_windows *all[CA_SAMPLER_COUNT + 1];
	struct ca_samples *samples = ca_samples_new();
	struct ca_sampling *sampling;
	struct ca_set_aside *aside = NULL;
	struct ca_event event[256];
	struct ca_rng rng;
	struct ca_err err;
	uint64_t now = MS;
	char *text;
	size_t size;
	FILE *out;

	for (size_t i = 0; i < CA_COUNT(all); i++)
		all[i] = windows;
	ca_rng_init(&rng, 5);
	samples->period = MS;
	session->samplers.on = 1u << CA_SAMPLER_CPU;
	sampling = ca_sampling_new(samples, session, NULL, all, &settings);
	assert_non_null(sampling);
	if (most && ca_set_aside_new(&aside, sampling, most, &err) != CA_OK)
		fail_msg("%s", err.text);
	for (uint32_t step = 0; step < STEPS; step++, now += 10 * MS) {
		for (uint32_t t = 0; t < THREADS; t++) {
			struct ca_source from = { 999999999, 999999999 + t, 1,
						  1 + t + THREADS * (step / 100) };
			size_t n = make(event, t, now, &rng, step % 100 == 0, step % 100 == 99);

			if (!n)
				continue;
			if (aside)
				ca_set_aside_take(aside, &from, event, n);
			else
				ca_sampling_take(sampling, &from, event, n);
		}
		if (aside)
			ca_set_aside_step(aside, now);
		else
			ca_sampling_step(sampling, now);
	}
	if (aside)
		ca_set_aside_empty(aside);
	ca_windows_step(windows, now);
	ca_sampling_end(sampling, now);
	ca_set_aside_free(aside);
	ca_sampling_free(sampling);
	strcpy(samples->backend, "timer");
	out = open_memstream(&text, &size);
	assert_true(ca_samples_write_json(samples, out));
	fclose(out);
	assert_true(samples->threads == 3 * THREADS && samples->samples > 1000 && ca_samples_path(samples));
	ca_samples_free(samples);
	return text;
}

static void makes_the_same(void **state)
{
	/* one file; many; so small that much finds no room at all */
	static const uint64_t most[] = { 1 << 28, 20000, 300 };
	char *at_once = profile_of(0);

	(void)state;
	for (size_t i = 0; i < CA_COUNT(most); i++) {
		char *text = profile_of(most[i]);

		assert_string_equal(text, at_once);
		free(text);
	}
	free(at_once);
}

/* The disk is full from the first byte on. */
static void without_room(void **state)
{
	without_call(SYS_pwrite64, ENOSPC, makes_the_same);
	(void)state;
}

static void without_a_place(void **state)
{
	struct ca_set_aside *aside;
	struct ca_err err;

	(void)state;
	setenv("TMPDIR", "/nowhere/at all", 1);
	assert_int_equal(ca_set_aside_new(&aside, NULL, 1000, &err), CA_ERR_USAGE);
	assert_non_null(strstr(err.text, "TMPDIR"));
	unsetenv("TMPDIR");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(makes_the_same, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_room, set_up, tear_down),
		cmocka_unit_test(without_a_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
