/* SPDX-License-Identifier: MIT */
/* Profiles of samples: what is added up, and what is read back. */
#include "causal/results/samples.h"
#include "tests/unit/unit.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t code(struct ca_samples *s, const char *name)
{
	return ca_samples_function(s, CA_SAMPLES_CODE, name, "a.c", 7, "/bin/a");
}

/* main -> work 30 ms; main -> work -> work 5 ms; main -> [wait] 40 ms; main 1 ms */
static struct ca_samples *make(void)
{
	struct ca_samples *s = ca_samples_new();
	uint32_t root = ca_samples_node(s, 0, ca_samples_function(s, CA_SAMPLES_PROCESS, "a", "", 0, ""));
	uint32_t main = ca_samples_node(s, root, code(s, "main"));
	uint32_t work = ca_samples_node(s, main, code(s, "work"));
	uint32_t again = ca_samples_node(s, work, code(s, "work"));
	uint32_t wait =
		ca_samples_node(s, main, ca_samples_function(s, CA_SAMPLES_WAIT, "[waiting]", "", 0, ""));
	char *command[] = { strdup("./a"), strdup("b c"), NULL };

	s->command = malloc(sizeof command);
	memcpy(s->command, command, sizeof command);
	strcpy(s->backend, "perf");
	s->period = 1000000;
	s->exit_status = 3;
	ca_samples_add(s, main, 1000000);
	ca_samples_add(s, work, 10000000);
	ca_samples_add(s, work, 20000000);
	ca_samples_add(s, again, 5000000);
	ca_samples_add(s, wait, 40000000);
	s->node[work].path = 30000000;
	s->node[wait].path = 1000000;
	ca_samples_add_wake(s, wait, work, 30000000);
	ca_samples_add_wake(s, wait, work, 5000000);
	ca_samples_add_wake(s, wait, 0, 5000000);
	ca_samples_add_threads(s, "a", "t", &(struct ca_samples_threads){ .threads = 1, .lifetime = 8 });
	ca_samples_add_threads(s, "a", "t", &(struct ca_samples_threads){ .threads = 1, .cpu = 4 });
	ca_samples_add_loss(s, "because", 5);
	ca_samples_add_loss(s, "never", 0);
	return s;
}

static const struct ca_samples_row *row_of(const struct ca_samples *s, const struct ca_samples_row *row,
					   size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(s->function[row[i].function - 1].name, name))
			return &row[i];
	fail_msg("no row %s", name);
	return NULL;
}

static void check(const struct ca_samples *s)
{
	uint64_t cpu, waiting;
	size_t n;
	struct ca_samples_row *row = ca_samples_rows(s, &n, &cpu, &waiting);
	const struct ca_samples_row *r;

	assert_non_null(row);
	assert_int_equal(n, 2); /* neither the process nor the wait */
	assert_int_equal(cpu, 36000000);
	assert_int_equal(waiting, 40000000);
	assert_int_equal(ca_samples_path(s), 31000000);
	assert_string_equal(s->function[row[0].function - 1].name, "work");
	r = row_of(s, row, n, "work");
	assert_int_equal(r->self, 35000000);
	assert_int_equal(r->path, 30000000);
	assert_int_equal(r->total, 35000000); /* what calls itself counts once */
	assert_int_equal(r->wall, 35000000);
	r = row_of(s, row, n, "main");
	assert_int_equal(r->self, 1000000);
	assert_int_equal(r->total, 36000000);
	assert_int_equal(r->wall, 76000000);
	free(row);
	assert_int_equal(s->wakes, 2);
	assert_int_equal(s->wake[0].ns, 35000000);
	assert_int_equal(s->wake[0].count, 2);
	assert_int_equal(s->wake[1].waker, 0);
	assert_int_equal(s->groups, 1);
	assert_int_equal(s->group[0].threads, 2);
	assert_int_equal(s->group[0].lifetime, 8);
	assert_int_equal(s->group[0].cpu, 4);
	assert_int_equal(s->losses, 1);
	assert_int_equal(s->samples, 5);
}

static void adds_up(void **state)
{
	struct ca_samples *s = make();

	(void)state;
	check(s);
	assert_false(s->failed);
	ca_samples_free(s);
}

static void is_read_back(void **state)
{
	char dir[] = "/tmp/test_samples_XXXXXX", path[64];
	struct ca_samples *s = make(), *back;
	struct ca_err err;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_false(ca_samples_is_there(dir));
	assert_int_equal(ca_samples_read(&back, dir, &err), CA_ERR_NOT_FOUND);
	assert_int_equal(ca_samples_write(s, dir, &err), CA_OK);
	ca_samples_free(s);
	assert_true(ca_samples_is_there(dir));
	assert_int_equal(ca_samples_read(&back, dir, &err), CA_OK);
	check(back);
	assert_string_equal(back->command[1], "b c");
	assert_null(back->command[2]);
	assert_string_equal(back->backend, "perf");
	assert_int_equal(back->period, 1000000);
	assert_int_equal(back->exit_status, 3);
	ca_samples_free(back);
	snprintf(path, sizeof path, "%s/" CA_SAMPLES_FILE, dir);
	unlink(path);
	rmdir(dir);
}

static const struct ca_samples_change *change_of(const struct ca_samples_change *c, size_t n,
						 const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(c[i].name, name))
			return &c[i];
	fail_msg("no %s", name);
	return NULL;
}

/* By its own time, also where it is in several places; and by stack. */
static void compares(void **state)
{
	struct ca_samples *a = make(), *b = make();
	struct ca_samples_change *c;
	size_t n;

	(void)state;
	for (int i = 0; i < 100; i++) {
		ca_samples_add(b, 2, 1000000);              /* main */
		ca_samples_add(i < 90 ? a : b, 3, 1000000); /* work */
	}
	ca_samples_add(b, ca_samples_node(b, 2, code(b, "new")), 3000000);
	c = ca_samples_compare(a, b, CA_SAMPLES_OF_FUNCTIONS, &n);
	assert_non_null(c);
	assert_int_equal(n, 4);
	assert_string_equal(c[0].name, "main");
	assert_int_equal(c[0].ns[0], 1000000);
	assert_int_equal(c[0].ns[1], 101000000);
	assert_true(c[0].sure);
	assert_int_equal(change_of(c, n, "work")->ns[0], 125000000);
	assert_int_equal(change_of(c, n, "work")->ns[1], 45000000);
	assert_true(change_of(c, n, "work")->sure);
	assert_false(change_of(c, n, "new")->sure); /* one sample */
	assert_true(change_of(c, n, "[waiting]")->wait);
	assert_false(change_of(c, n, "[waiting]")->sure);
	ca_samples_compare_free(c, n);
	c = ca_samples_compare(a, b, CA_SAMPLES_OF_STACKS, &n);
	assert_int_equal(n, 5);
	assert_int_equal(change_of(c, n, "a;main;work")->ns[0], 120000000);
	assert_int_equal(change_of(c, n, "a;main;work;work")->ns[0], 5000000);
	assert_int_equal(change_of(c, n, "a;main;new")->ns[0], 0);
	ca_samples_compare_free(c, n);
	/* what takes as long as before may have come onto the critical path */
	for (uint32_t i = 1; i < a->nodes; i++)
		a->node[i].path = 0;
	for (uint32_t i = 1; i < b->nodes; i++)
		b->node[i].path = 0;
	a->node[2].path = 1000000;
	b->node[2].path = 3000000;
	b->node[3].path = b->node[3].ns / 2;
	b->node[4].path = 1000000; /* once, though its function is twice on the stack */
	c = ca_samples_compare(a, b, CA_SAMPLES_OF_PATH, &n);
	assert_int_equal(n, 2);
	assert_int_equal(change_of(c, n, "work")->ns[0], 0);
	assert_int_equal(change_of(c, n, "work")->ns[1], b->node[3].ns / 2 + 1000000);
	assert_int_equal(change_of(c, n, "work")->count[1], (b->node[3].count + 1) / 2 + 1);
	assert_true(change_of(c, n, "work")->sure);
	assert_int_equal(change_of(c, n, "main")->ns[0], 1000000);
	assert_int_equal(change_of(c, n, "main")->count[0], 1);
	assert_int_equal(change_of(c, n, "main")->ns[1], b->node[3].ns / 2 + 4000000);
	assert_true(change_of(c, n, "main")->sure);
	ca_samples_compare_free(c, n);
	ca_samples_free(a);
	ca_samples_free(b);
}

/* Two callees that turn out to be one: their nodes are one, with what was measured in each. */
static void renames(void **state)
{
	struct ca_samples *s = make();
	uint32_t late = code(s, "late"), of[16], n;
	uint32_t node = ca_samples_node(s, 2, late), below = ca_samples_node(s, node, code(s, "below"));
	struct ca_samples_row *row;
	uint64_t cpu, waiting;
	size_t rows;

	(void)state;
	n = (uint32_t)s->functions;
	ca_samples_add_metric(s, "switches", "", false);
	ca_samples_add(s, node, 2000000);
	ca_samples_add(s, below, 500000);
	ca_samples_measure(s, node, 0, 3, 1);
	ca_samples_measure(s, below, 0, 8, 1);
	ca_samples_measure(s, 3, 0, 4, 2); /* work */
	ca_samples_add_wake(s, below, node, 7);
	for (uint32_t f = 0; f < n; f++)
		of[f] = f + 1 == late ? code(s, "work") : f + 1;
	ca_samples_rename(s, of);
	assert_false(s->failed);
	assert_int_equal(s->functions, n - 1);
	row = ca_samples_rows(s, &rows, &cpu, &waiting);
	assert_int_equal(cpu, 38500000);
	assert_int_equal(waiting, 40000000);
	assert_int_equal(row_of(s, row, rows, "work")->self, 37000000);
	assert_int_equal(row_of(s, row, rows, "below")->self, 500000);
	assert_int_equal(s->node[3].count, 3);
	assert_int_equal(ca_samples_measured(s, 3, 0).value, 7);
	assert_int_equal(ca_samples_measured(s, 3, 0).count, 3);
	assert_int_equal(ca_samples_measured_sum(s, 0), 15);
	assert_int_equal(s->wake[s->wakes - 1].waker, 3);
	assert_string_equal(s->function[s->node[s->wake[s->wakes - 1].waiter].function - 1].name, "below");
	free(row);
	ca_samples_free(s);
}

/* CPU time where it was sampled; else what was; and what is asked for. */
static void weighs(void **state)
{
	static const struct {
		const char *of, *name;
	} cases[] = {
		{ NULL, "" },
		{ "cputime", "" },
		{ "realtime", "real-time" },
		{ "overflow", "overflow-page-faults" },
		{ "switches", "switches" },
	};
	struct ca_samples *s = make();
	uint64_t all, waiting;
	struct ca_samples_row *row;
	struct ca_err err;
	size_t n;

	(void)state;
	ca_samples_add_metric(s, "peak-rss", "bytes", true);
	ca_samples_add_metric(s, "real-time", "ns", false);
	ca_samples_add_metric(s, "overflow-page-faults", "", false);
	ca_samples_add_metric(s, "switches", "", false);
	ca_samples_measure(s, 2, 0, 4096, 1);  /* main */
	ca_samples_measure(s, 3, 2, 70, 1);    /* work */
	ca_samples_measure(s, 5, 1, 90000, 1); /* the wait */
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		assert_int_equal(ca_samples_weigh(s, cases[i].of, &err), CA_OK);
		assert_string_equal(ca_samples_unit(s).name, cases[i].name);
	}
	assert_int_equal(ca_samples_weigh(s, "peak-rss", &err), CA_ERR_USAGE);
	assert_int_equal(ca_samples_weigh(s, "overflow", &err), CA_OK);
	row = ca_samples_rows(s, &n, &all, &waiting);
	assert_non_null(row);
	assert_int_equal(all, 70);
	assert_int_equal(waiting, 0);
	assert_int_equal(row_of(s, row, n, "work")->self, 70);
	assert_int_equal(row_of(s, row, n, "main")->total, 70);
	free(row);
	for (uint32_t i = 1; i < 5; i++)
		s->node[i].ns = 0;
	assert_int_equal(ca_samples_weigh(s, NULL, &err), CA_OK);
	assert_string_equal(ca_samples_unit(s).name, "real-time");
	ca_samples_free(s);
}

/* How sure it is hangs on the samples of what is compared, not on all that there are; also when it is read back. */
static void compares_by_their_own_samples(void **state)
{
	struct ca_samples *a = make(), *b = make(), *back;
	char path[] = "/tmp/test_samples_XXXXXX", file[64];
	struct ca_samples_change *c;
	struct ca_err err;
	size_t n;

	(void)state;
	assert_non_null(mkdtemp(path));
	for (int i = 0; i < 10000; i++) {
		ca_samples_add(a, 3, 1000000); /* work */
		ca_samples_add(b, 3, 1000000);
	}
	for (int i = 0; i < 2; i++)
		ca_samples_add_metric(i ? b : a, "overflow-page-faults", "", false);
	ca_samples_measure(a, 3, 0, 400, 4);
	ca_samples_measure(b, 3, 0, 600, 6);
	assert_int_equal(ca_samples_write(b, path, &err), CA_OK);
	assert_int_equal(ca_samples_read(&back, path, &err), CA_OK);
	assert_int_equal(ca_samples_weigh(a, "overflow", &err), CA_OK);
	assert_int_equal(ca_samples_weigh(back, "overflow", &err), CA_OK);
	c = ca_samples_compare(a, back, CA_SAMPLES_OF_FUNCTIONS, &n);
	assert_int_equal(change_of(c, n, "work")->count[0], 4);
	assert_int_equal(change_of(c, n, "work")->count[1], 6);
	assert_int_equal(change_of(c, n, "work")->ns[1], 600);
	assert_false(change_of(c, n, "work")->sure);
	ca_samples_compare_free(c, n);
	ca_samples_free(a);
	ca_samples_free(b);
	ca_samples_free(back);
	snprintf(file, sizeof file, "%s/" CA_SAMPLES_FILE, path);
	unlink(file);
	rmdir(path);
}

/* Callers come before those whom they call, and numbers are of what there is. */
static void refuses_what_is_damaged(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"{\"format\":\"causal-sample\",\"version\":2}",
		"{\"format\":\"causal-sample\",\"version\":1,\"nodes\":[[0,1,5,1]]}",
		"{\"format\":\"causal-sample\",\"version\":1,\"functions\":[{}],\"nodes\":[[1,1,5,1]]}",
		"{\"format\":\"causal-sample\",\"version\":1,\"functions\":[{}],\"nodes\":[[0,1,5]]}",
		("{\"format\":\"causal-sample\",\"version\":1,\"functions\":[{}],\"nodes\":[[0,1,5,1]],"
		 "\"wakes\":[[2,0,1,1]]}"),
		("{\"format\":\"causal-sample\",\"version\":1,\"functions\":[{}],\"nodes\":[[0,1,5,1]],"
		 "\"path\":[[9999,5]]}"),
		"{\"format\":\"causal-sample\",\"version\":1,\"functions\":[{}],\"nodes\":[[0,1,-5,1]]}",
		"{\"format\":\"causal-sample\",\"version\":1,\"runtime\":-1}",
	};
	char path[] = "/tmp/test_samples_XXXXXX";
	int fd = mkstemp(path);
	struct ca_samples *s;
	struct ca_err err;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, texts[i], strlen(texts[i]), 0), strlen(texts[i]));
		assert_int_equal(ca_samples_read(&s, path, &err), CA_ERR_FORMAT);
	}
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adds_up),
		cmocka_unit_test(is_read_back),
		cmocka_unit_test(compares),
		cmocka_unit_test(weighs),
		cmocka_unit_test(renames),
		cmocka_unit_test(compares_by_their_own_samples),
		cmocka_unit_test(refuses_what_is_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
