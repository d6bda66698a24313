/* SPDX-License-Identifier: MIT */
/* causal/conductor/sweep.c: speedups dealt like cards, one region for an iteration's end-to-end runs, and
 * commands found as execvp(3) would. */
#include "causal/conductor/conductor.h"
#include "causal/conductor/sweep.h"
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const unsigned pool[] = { 0, 0, 0, 0, 25, 50, 50, 75, 90, 100 };
enum { POOL = CA_COUNT(pool), DECKS = 40 };

static struct ca_sweep *sweep;

static int set_up(void **state)
{
	(void)state;
	sweep = ca_sweep_new(7);
	return sweep ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	ca_sweep_free(sweep);
	return 0;
}

static unsigned deal_one(const unsigned *from, size_t n)
{
	unsigned card = ca_sweep_deal(sweep, from, n);

	assert_int_equal(ca_sweep_deal(sweep, from, n), card);
	ca_sweep_begun(sweep);
	return card;
}

static void deal(unsigned *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = deal_one(pool, POOL);
}

static unsigned count(const unsigned *dealt, size_t n, unsigned value)
{
	unsigned found = 0;

	for (size_t i = 0; i < n; i++)
		found += dealt[i] == value;
	return found;
}

/* The same numbers, equally often, in any order. */
static void check_same(const unsigned *dealt, const unsigned *wanted, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(count(dealt, n, wanted[i]), count(wanted, n, wanted[i]));
}

static void test_proportions(void **state)
{
	unsigned deck[DECKS][POOL], repeated = 0, zero_first = 0;

	(void)state;
	for (unsigned i = 0; i < DECKS; i++) {
		deal(deck[i], POOL);
		check_same(deck[i], pool, POOL);
		zero_first += deck[i][0] == 0;
		repeated += i && !memcmp(deck[i], deck[i - 1], sizeof deck[i]);
	}
	assert_int_equal(repeated, 0); /* shuffled each time */
	assert_in_range(zero_first, DECKS / 8, DECKS * 3 / 4);
}

static void test_new_pool(void **state)
{
	static const unsigned other[] = { 0, 10, 20 };
	static const unsigned reordered[POOL] = { 100, 0, 50, 0, 90, 0, 75, 0, 25, 50 };
	static const unsigned similar[POOL] = { 0, 0, 0, 0, 30, 50, 50, 75, 90, 100 };
	unsigned dealt[POOL], three[3];

	(void)state;
	deal(dealt, 4);
	for (unsigned i = 0; i < 3; i++)
		three[i] = deal_one(other, 3);
	check_same(three, other, 3);
	/* back again: a whole deck */
	deal(dealt, POOL);
	check_same(dealt, pool, POOL);
	/* the order in which the pool is given does not matter: the deck is played on */
	deal(dealt, 4);
	for (unsigned i = 4; i < POOL; i++)
		dealt[i] = deal_one(reordered, POOL);
	check_same(dealt, pool, POOL);
	/* as many cards, but others */
	deal(three, 3);
	for (unsigned i = 0; i < POOL; i++)
		dealt[i] = deal_one(similar, POOL);
	check_same(dealt, similar, POOL);
}

static void test_seeds(void **state)
{
	unsigned first[3 * POOL], again[3 * POOL];
	uint64_t draw[3 * POOL];

	(void)state;
	for (size_t i = 0; i < 3 * POOL; i++) {
		draw[i] = ca_sweep_draw(sweep);
		assert_int_equal(ca_sweep_draw(sweep), draw[i]);
		assert_true(!i || draw[i] != draw[i - 1]);
		deal(&first[i], 1);
	}
	ca_sweep_free(sweep);
	sweep = ca_sweep_new(7);
	assert_non_null(sweep);
	for (size_t i = 0; i < 3 * POOL; i++) {
		assert_int_equal(ca_sweep_draw(sweep), draw[i]);
		deal(&again[i], 1);
	}
	assert_memory_equal(first, again, sizeof first);
	ca_sweep_free(sweep);
	sweep = ca_sweep_new(8);
	assert_non_null(sweep);
	assert_int_not_equal(ca_sweep_draw(sweep), draw[0]);
	deal(again, 3 * POOL);
	assert_memory_not_equal(first, again, sizeof first);
}

static void test_counts(void **state)
{
	static const double work = 1000, timer[] = { 400, 500, 600 }, seconds[] = { 4, 5, 6 };
	enum ca_tied tied[2];

	(void)state;
	for (size_t run = 0; run < 3; run++)
		ca_sweep_add_counts(sweep, (double[]){ timer[run], work }, 2, seconds[run], tied);
	assert_int_equal(tied[0], CA_NOT_TIED);
	assert_int_equal(tied[1], CA_TIED);
	assert_true(ca_sweep_counts_follow(sweep, 1));
	assert_false(ca_sweep_counts_follow(sweep, 2));
	/* more than there is room for */
	for (size_t run = 0; run < 100; run++)
		ca_sweep_add_counts(sweep, (double[]){ timer[run % 3], work }, 2, seconds[run % 3], tied);
	assert_int_equal(tied[1], CA_TIED);
}

static void test_topics(void **state)
{
	(void)state;
	assert_true(ca_sweep_is_first(sweep, CA_SWEEP_ASKED));
	assert_true(ca_sweep_first_time(sweep, CA_SWEEP_ASKED));
	assert_false(ca_sweep_is_first(sweep, CA_SWEEP_ASKED));
	assert_false(ca_sweep_first_time(sweep, CA_SWEEP_ASKED));
	assert_true(ca_sweep_is_first(sweep, CA_SWEEP_UNTIED));
}

static void test_choice(void **state)
{
	char text[] = "hot";
	struct ca_region region = { .kind = CA_REGION_LINE, .name = text, .line = 7 };
	const struct ca_region *choice;

	(void)state;
	assert_null(ca_sweep_get_choice(sweep, 0));
	assert_null(ca_sweep_get_choice(sweep, 1));
	ca_sweep_set_choice(sweep, 1, &region);
	strcpy(text, "odd"); /* the sweep has its own copy */
	choice = ca_sweep_get_choice(sweep, 1);
	assert_non_null(choice);
	assert_string_equal(choice->name, "hot");
	assert_int_equal(choice->kind, CA_REGION_LINE);
	assert_int_equal(choice->line, 7);
	/* all variants of an iteration keep the first one's */
	ca_sweep_set_choice(sweep, 1, &region);
	assert_string_equal(ca_sweep_get_choice(sweep, 1)->name, "hot");
	assert_null(ca_sweep_get_choice(sweep, 2));
	ca_sweep_set_choice(sweep, 2, &region);
	assert_string_equal(ca_sweep_get_choice(sweep, 2)->name, "odd");
	assert_null(ca_sweep_get_choice(sweep, 1));
}

static void test_first_time(void **state)
{
	(void)state;
	assert_true(ca_sweep_first_time(sweep, CA_SWEEP_POINTS_CHECK));
	assert_false(ca_sweep_first_time(sweep, CA_SWEEP_POINTS_CHECK));
	assert_true(ca_sweep_first_time(sweep, CA_SWEEP_POINTS_REPORT));
	assert_false(ca_sweep_first_time(sweep, CA_SWEEP_POINTS_REPORT));
}

/* ---- commands ---------------------------------------------------------------------*/
static char dir[32];
static char *old_path;

static void add_file(const char *name, mode_t mode)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* a/both and b/both; a/plain is not executable, b/plain is. */
static int set_up_commands(void **state)
{
	char path[64];

	(void)state;
	old_path = getenv("PATH") ? strdup(getenv("PATH")) : NULL;
	strcpy(dir, "/tmp/ca-sweep-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	for (char c = 'a'; c <= 'b'; c++) {
		snprintf(path, sizeof path, "%s/%c", dir, c);
		if (mkdir(path, 0700))
			return -1;
	}
	add_file("a/both", 0700);
	add_file("b/both", 0700);
	add_file("a/plain", 0600);
	add_file("b/plain", 0700);
	return 0;
}

static int tear_down_commands(void **state)
{
	char command[64];

	(void)state;
	if (old_path)
		setenv("PATH", old_path, 1);
	else
		unsetenv("PATH");
	free(old_path);
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	return system(command);
}

/* wanted: below dir, NULL: is not found. */
static void find(const char *name, const char *wanted)
{
	char path[256] = "", full[64];
	bool found = ca_sweep_find_command(name, path, sizeof path);

	if (!wanted) {
		assert_false(found);
		return;
	}
	snprintf(full, sizeof full, "%s/%s", dir, wanted);
	assert_true(found);
	assert_string_equal(path, full);
}

static void test_find_command(void **state)
{
	char list[128], name[64], path[64], small[8];

	(void)state;
	snprintf(list, sizeof list, "%s/none:%s/a:%s/b", dir, dir, dir);
	setenv("PATH", list, 1);
	find("both", "a/both");
	find("plain", "b/plain");
	find("missing", NULL);
	snprintf(list, sizeof list, "%s/b:%s/a", dir, dir);
	setenv("PATH", list, 1);
	find("both", "b/both");
	/* with a slash: no search */
	snprintf(name, sizeof name, "%s/a/both", dir);
	find(name, "a/both");
	snprintf(name, sizeof name, "%s/a/plain", dir);
	find(name, NULL);
	find("a/missing", NULL);
	/* a path that does not fit is not cut short */
	assert_false(ca_sweep_find_command("both", small, sizeof small));
	/* an empty entry is the working directory */
	assert_non_null(getcwd(path, sizeof path));
	snprintf(name, sizeof name, "%s/a", dir);
	assert_int_equal(chdir(name), 0);
	snprintf(list, sizeof list, ":%s/b", dir);
	setenv("PATH", list, 1);
	assert_true(ca_sweep_find_command("both", name, sizeof name));
	assert_string_equal(name, "./both");
	assert_int_equal(chdir(path), 0);
	unsetenv("PATH");
	assert_true(ca_sweep_find_command("sh", name, sizeof name));
	setenv("PATH", "", 1);
	find("missing", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_proportions, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_new_pool, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_seeds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_choice, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_counts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_topics, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_first_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_find_command, set_up_commands, tear_down_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
