/* SPDX-License-Identifier: MIT */
/* causal/points/candidates.c: which counted places follow the program's work; causal/points/choice.c: the file. */
#include "causal/points/candidates.h"
#include "causal/points/choice.h"
#include "core/rng.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOWS = 30, SAMPLES = 400 };

static struct ca_candidate candidate[CA_CANDIDATES];
static struct ca_candidates set;
static struct ca_rng rng;

static int set_up(void **state)
{
	(void)state;
	memset(candidate, 0, sizeof candidate);
	set = (struct ca_candidates){ .candidate = candidate, .windows = WINDOWS, .samples = SAMPLES };
	for (unsigned w = 0; w < WINDOWS; w++)
		set.seconds[w] = 0.05;
	ca_rng_init(&rng, 11);
	return 0;
}

/* Inside of samples [from, to) of 400. */
static struct ca_candidate *add(const char *name, bool function, double depth, unsigned from, unsigned to)
{
	struct ca_candidate *c = &candidate[set.n++];

	c->name = name;
	c->function = function;
	c->depth = depth;
	for (unsigned i = from; i < to; i++)
		c->inside[i / 64] |= UINT64_C(1) << (i % 64);
	return c;
}

/* `mean` a window, each off by up to `off` of it. */
static void passes(struct ca_candidate *c, double mean, double off)
{
	for (unsigned w = 0; w < WINDOWS; w++)
		c->count[w] = (uint32_t)(mean * (1 + off * (2 * ca_rng_unit(&rng) - 1)) + 0.5);
}

/* As often as another one, times `ratio`, give or take one. */
static void goes_with(struct ca_candidate *c, const struct ca_candidate *other, double ratio)
{
	for (unsigned w = 0; w < WINDOWS; w++)
		c->count[w] = (uint32_t)(other->count[w] * ratio + ca_rng_unit(&rng));
}

static size_t judge(const char **first)
{
	size_t chosen[CA_CANDIDATES_CHOSEN], n = ca_candidates_judge(&set, chosen);

	*first = n ? candidate[chosen[0]].name : "";
	return n;
}

/* One loop around all, functions in it, a leaf that all of them call, and an innermost loop. */
static void test_nested(void **state)
{
	struct ca_candidate *loop = add("loop", false, 0.5, 0, 400), *a = add("a", true, 1, 0, 240);
	struct ca_candidate *leaf = add("leaf", true, 2, 0, 400), *hot = add("hot", false, 2.5, 0, 400);
	struct ca_candidate *start = add("start", true, 0, 0, 400);
	const char *first;

	(void)state;
	passes(loop, 50, 0.1);
	goes_with(a, loop, 1);
	goes_with(leaf, loop, 3);
	passes(hot, 5e6, 0);
	passes(start, 0, 0);
	assert_int_equal(judge(&first), 1);
	assert_string_equal(first, "loop");
	assert_int_equal(hot->fault, CA_CANDIDATE_HOT);
	assert_int_equal(start->fault, CA_CANDIDATE_NEVER);
	assert_int_equal(a->group, loop->group);
	assert_int_equal(leaf->group, loop->group);
}

/* A server under even load passes everything evenly, and so does a thread of it that goes by the clock; that one is as
 * rare and as far out as can be, but has nothing in common with what most of the time goes into. */
static void test_apart(void **state)
{
	struct ca_candidate *round = add("round", false, 1.5, 0, 316), *in = add("in", true, 3, 30, 280);
	struct ca_candidate *clock = add("clock", false, 0.5, 316, 400);
	const char *first;

	(void)state;
	passes(round, 860, 0.05);
	goes_with(in, round, 1);
	passes(clock, 148, 0);
	judge(&first);
	assert_string_equal(first, "round");
	assert_int_equal(clock->group, round->group);
}

/* The function that does a unit of work, in a loop that does nothing else. */
static void test_function_first(void **state)
{
	struct ca_candidate *loop = add("loop", false, 0.5, 0, 400), *work = add("work", true, 0.5, 0, 396);
	const char *first;

	(void)state;
	passes(loop, 50, 0.05);
	goes_with(work, loop, 1);
	judge(&first);
	assert_string_equal(first, "work");
}

/* Better one that is passed too often than none. */
static void test_all_hot(void **state)
{
	struct ca_candidate *hot = add("hot", true, 1, 0, 400), *hottest = add("hottest", false, 0.5, 0, 400),
			    *cool;
	const char *first;

	(void)state;
	passes(hot, 3e5, 0.01);
	passes(hottest, 3e6, 0.01);
	assert_int_equal(judge(&first), 1);
	assert_string_equal(first, "hot");
	cool = add("cool", true, 2, 0, 100);
	passes(cool, 100, 0.01);
	assert_int_equal(judge(&first), 1);
	assert_string_equal(first, "cool");
	assert_int_equal(hot->fault, CA_CANDIDATE_HOT);
}

/* Producer and consumer: in proportion over a while; both are kept, for they see different work. */
static void test_queue(void **state)
{
	struct ca_candidate *out = add("consume", true, 1, 0, 280), *in = add("produce", true, 1, 280, 400);
	const char *first;

	(void)state;
	passes(out, 50, 0.02);
	for (unsigned w = 0; w < WINDOWS; w++) /* runs ahead and falls back */
		in->count[w] = w % 2 ? out->count[w] + 12 : out->count[w] - 12;
	assert_int_equal(judge(&first), 2);
	assert_string_equal(first, "consume");
	assert_int_equal(in->group, out->group);
}

/* A second one is kept if it covers enough that the first does not: 15 % of all samples. */
static void test_second_choice(void **state)
{
	static const struct {
		unsigned from, to;
		size_t chosen;
	} cases[] = {
		{ 300, 360, 2 }, { 300, 359, 1 }, { 260, 360, 2 },
		{ 260, 359, 1 }, { 240, 360, 2 }, { 239, 360, 1 }
	}; /* ... and half of what it covers at least */

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_candidate *first, *second;
		const char *name;

		set_up(state);
		first = add("first", true, 1, 0, 300);
		second = add("second", true, 1, cases[i].from, cases[i].to);
		passes(first, 50, 0.02);
		goes_with(second, first, 1);
		if (judge(&name) != cases[i].chosen)
			fail_msg("%u to %u: %s", cases[i].from, cases[i].to,
				 cases[i].chosen == 1 ? "chosen" : "not chosen");
		assert_string_equal(name, "first");
	}
}

/* What spins comes in lumps, what polls goes on while the rest does not, a timer covers nothing. */
static void test_bad_ones(void **state)
{
	struct ca_candidate *work = add("work", true, 1, 0, 300), *spin = add("spin", false, 1.5, 0, 350);
	struct ca_candidate *timer = add("timer", true, 0, 399, 400), *poll = add("poll", true, 1, 300, 380);
	const char *first;

	(void)state;
	passes(work, 60, 0.5);
	for (unsigned w = 0; w < WINDOWS; w++)
		spin->count[w] = w % 3 ? 5 : 40000;
	passes(timer, 50, 0);
	for (unsigned w = 0; w < WINDOWS; w++)
		poll->count[w] = 120 - work->count[w];
	assert_int_equal(judge(&first), 1);
	assert_string_equal(first, "work");
	assert_int_equal(spin->fault, CA_CANDIDATE_ERRATIC);
	assert_int_equal(timer->fault, CA_CANDIDATE_UNTIED);
	assert_int_equal(poll->fault, CA_CANDIDATE_UNTIED);
}

/* Blocks that come out at once, 128 visits each, and long apart. */
static void test_bursts(void **state)
{
	struct ca_candidate *burst = add("burst", true, 0, 0, 400), *even = add("even", false, 3, 0, 240);
	const char *first;

	(void)state;
	for (unsigned every = 2; every <= 7; every++) {
		for (unsigned w = 0; w < WINDOWS; w++)
			burst->count[w] = w % every == every / 2 ? 128 : 0;
		passes(even, 20, 0.2);
		assert_int_equal(judge(&first), 1);
		assert_string_equal(first, "even");
		assert_int_equal(burst->fault, CA_CANDIDATE_ERRATIC);
	}
}

/* Only in the first or last part, or with a long pause: not the program's work. */
static void test_stops(void **state)
{
	struct ca_candidate *first_part = add("first", true, 1, 0, 400),
			    *pause = add("pause", true, 1, 0, 400);
	struct ca_candidate *all = add("all", true, 3, 0, 200);
	const char *first;

	(void)state;
	for (unsigned w = 0; w < WINDOWS; w++) {
		first_part->count[w] = w < 18 ? 50 : 0;
		pause->count[w] = w < 10 || w > 20 ? 50 : 0;
	}
	passes(all, 50, 0);
	judge(&first);
	assert_string_equal(first, "all");
	assert_int_equal(first_part->fault, CA_CANDIDATE_ERRATIC);
	assert_int_equal(pause->fault, CA_CANDIDATE_ERRATIC);
}

/* Frequent enough comes before outermost; rare ones are taken when there is nothing else. */
static void test_rare(void **state)
{
	struct ca_candidate *rare = add("rare", true, 0, 0, 400), *often = add("often", true, 3, 0, 390);
	const char *first;

	(void)state;
	passes(rare, 0.7, 0.7);
	goes_with(often, rare, 100);
	for (unsigned w = 0; w < WINDOWS; w++)
		often->count[w] = 60;
	judge(&first);
	assert_string_equal(first, "often");
	set.n = 1;
	for (unsigned w = 0; w < WINDOWS; w++)
		rare->count[w] = w % 2;
	judge(&first);
	assert_string_equal(first, "rare");
	for (unsigned w = 0; w < WINDOWS; w++)
		rare->count[w] = w == 3;
	assert_int_equal(judge(&first), 0);
	assert_int_equal(rare->fault, CA_CANDIDATE_RARE);
}

/* The machine was busy with other things for a moment, or the program becomes slower and slower. */
static void test_disturbances(void **state)
{
	struct ca_candidate *loop = add("loop", false, 0.5, 0, 400), *half = add("half", true, 1, 0, 200);
	const char *first;

	(void)state;
	for (unsigned w = 0; w < WINDOWS; w++)
		loop->count[w] = w > 8 && w < 12 ? 15 : 80 - w;
	goes_with(half, loop, 2);
	judge(&first);
	assert_string_equal(first, "loop");
	assert_int_equal(loop->fault, CA_CANDIDATE_GOOD);
	assert_int_equal(half->group, loop->group);
}

/* Others had the CPU for half of the time: what counts is visits for the CPU time that was left. */
static void test_starved(void **state)
{
	struct ca_candidate *loop = add("loop", false, 0.5, 0, 400), *timer = add("timer", true, 1, 0, 150);
	const char *first;

	(void)state;
	for (unsigned w = 0; w < WINDOWS; w++) {
		set.cpu[w] = w > 18 ? 0.004 : w % 2 ? 0.1 : 0.001;
		loop->count[w] = (uint32_t)(set.cpu[w] * 2000);
		timer->count[w] = 50;
	}
	judge(&first);
	assert_string_equal(first, "loop");
	assert_int_equal(loop->fault, CA_CANDIDATE_GOOD);
	assert_int_not_equal(timer->group, loop->group);
}

static void test_too_short(void **state)
{
	const char *first;

	(void)state;
	passes(add("work", true, 1, 0, 400), 50, 0);
	set.windows = 3;
	assert_int_equal(judge(&first), 0);
	set.windows = 4;
	assert_int_equal(judge(&first), 1);
	set.n = 0;
	assert_int_equal(judge(&first), 0);
}

static void test_runs(void **state)
{
	static const struct {
		double count[4], seconds[4];
		size_t runs;
		enum ca_tied tied;
	} cases[] = {
		{ { 1000, 1000, 1000 }, { 4, 5, 6 }, 3, CA_TIED },
		{ { 1000, 1004, 1001 }, { 4, 5, 6 }, 3, CA_TIED },
		{ { 1000, 1250, 1500 }, { 4, 5, 6 }, 3, CA_NOT_TIED },
		{ { 1500, 1000, 1250 }, { 4, 5, 6 }, 3, CA_NOT_TIED },
		{ { 1000, 1300 }, { 3.00, 3.02 }, 2, CA_TIED_UNKNOWN }, /* for a given time */
		{ { 1000 }, { 4 }, 1, CA_TIED_UNKNOWN },
		{ { 0, 1000 }, { 4, 5 }, 2, CA_NOT_TIED },
		{ { 1000, 1015 }, { 5, 5.2 }, 2, CA_TIED_UNKNOWN },
		{ { 1000, 1030 }, { 4, 6 }, 2, CA_TIED },    /* little, beside the lengths */
		{ { 1000, 1008 }, { 5, 5.17 }, 2, CA_TIED }, /* little by itself */
		/* runs of less than a second, and hardly any visits */
		{ { 1000, 1000, 1000 }, { 0.4, 0.5, 0.6 }, 3, CA_TIED },
		{ { 1000, 1250, 1500 }, { 0.4, 0.5, 0.6 }, 3, CA_NOT_TIED },
		{ { 1000, 1900 }, { 0.500, 0.501 }, 2, CA_TIED_UNKNOWN },
		{ { 0.5, 0.5, 0.5 }, { 0.4, 0.5, 0.6 }, 3, CA_TIED },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++)
		assert_int_equal(ca_candidates_tied(cases[i].count, cases[i].seconds, cases[i].runs),
				 cases[i].tied);
}

/* What others wrote, or an editor: refused, or taken. */
static void check_files(const char *dir, const char *path)
{
#define HEAD(version, how)                                                                                   \
	"{\"format\": \"causal-progress\", \"version\": " version ", \"how\": \"" how "\", "
#define POINT "{\"name\": \"a\"}"
	static const struct {
		const char *text;
		enum ca_status status;
		size_t points;
	} cases[] = {
		{ HEAD("1", "auto") "\"points\": [" POINT "]}", CA_OK, 1 },
		{ HEAD("1", "user") "\"points\": [" POINT ", " POINT ", " POINT "]}", CA_OK, 3 },
		{ HEAD("1", "user") "\"points\": [" POINT ", " POINT ", " POINT ", " POINT "]}",
		  CA_ERR_FORMAT, 0 },
		{ HEAD("1", "end-to-end") "\"points\": []}", CA_OK, 0 },
		{ HEAD("1", "auto") "\"points\": []}", CA_ERR_FORMAT, 0 },
		{ HEAD("1", "auto") "\"points\": [{\"rate\": 1}]}", CA_ERR_FORMAT, 0 },
		{ HEAD("1", "auto") "\"points\": {}}", CA_ERR_FORMAT, 0 },
		{ HEAD("1", "auto") "\"more\": 1}", CA_ERR_FORMAT, 0 },
		{ HEAD("2", "auto") "\"points\": [" POINT "]}", CA_ERR_FORMAT, 0 },
		{ HEAD("1", "other") "\"points\": [" POINT "]}", CA_ERR_FORMAT, 0 },
		{ "{\"version\": 1, \"how\": \"auto\", \"points\": [" POINT "]}", CA_ERR_FORMAT, 0 },
		{ "[]", CA_ERR_FORMAT, 0 },
		{ "{\"format", CA_ERR_FORMAT, 0 },
		{ "", CA_ERR_FORMAT, 0 },
	};

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_choice choice;
		struct ca_err err;
		FILE *file = fopen(path, "w");

		assert_non_null(file);
		fputs(cases[i].text, file);
		fclose(file);
		err.text[0] = '\0';
		if (ca_choice_read(&choice, dir, &err) != cases[i].status)
			fail_msg("%s: %s", cases[i].text, err.text);
		assert_int_equal(choice.points, cases[i].points);
		if (cases[i].status)
			assert_non_null(strstr(err.text, path));
		ca_choice_fini(&choice);
	}
}

static void test_file(void **state)
{
	char dir[] = "/tmp/causal-test-XXXXXX", program[] = "app", name[] = "ns::f(int) \"x\"", why[] = "so";
	char path[64], other[] = "main.c:7";
	struct ca_choice out = { .program = program, .how = CA_CHOICE_AUTO, .run = 3, .points = 2 }, in;
	char *names;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(ca_choice_read(&in, dir, NULL), CA_ERR_NOT_FOUND);
	out.point[0] =
		(struct ca_choice_point){ .name = name, .rate = 1234.5, .spread = 0.02, .coverage = 0.9 };
	out.point[1] = (struct ca_choice_point){ .name = other, .rate = 10, .dropped = why };
	assert_int_equal(ca_choice_write(&out, dir, NULL), CA_OK);
	assert_int_equal(ca_choice_read(&in, dir, NULL), CA_OK);
	assert_string_equal(in.program, "app");
	assert_int_equal(in.how, CA_CHOICE_AUTO);
	assert_int_equal(in.run, 3);
	assert_int_equal(in.points, 2);
	assert_string_equal(in.point[0].name, name);
	assert_null(in.point[0].dropped);
	assert_string_equal(in.point[1].dropped, "so");
	names = ca_choice_names(&in);
	assert_string_equal(names, name);
	free(names);
	ca_choice_fini(&in);
	out.how = CA_CHOICE_END_TO_END;
	out.points = 0;
	assert_int_equal(ca_choice_write(&out, dir, NULL), CA_OK);
	assert_int_equal(ca_choice_read(&in, dir, NULL), CA_OK);
	assert_int_equal(in.how, CA_CHOICE_END_TO_END);
	ca_choice_fini(&in);
	snprintf(path, sizeof path, "%s/progress.json", dir);
	check_files(dir, path);
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_nested, set_up),
		cmocka_unit_test_setup(test_apart, set_up),
		cmocka_unit_test_setup(test_all_hot, set_up),
		cmocka_unit_test_setup(test_function_first, set_up),
		cmocka_unit_test_setup(test_queue, set_up),
		cmocka_unit_test_setup(test_second_choice, set_up),
		cmocka_unit_test_setup(test_bad_ones, set_up),
		cmocka_unit_test_setup(test_bursts, set_up),
		cmocka_unit_test_setup(test_stops, set_up),
		cmocka_unit_test_setup(test_rare, set_up),
		cmocka_unit_test_setup(test_disturbances, set_up),
		cmocka_unit_test_setup(test_starved, set_up),
		cmocka_unit_test_setup(test_too_short, set_up),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
