/* SPDX-License-Identifier: MIT */
/* causal/conductor/quota.c: is a process held back by the limits of its control groups? By files as the kernel has
 * them, in a folder of our own. */
#include "causal/conductor/quota.h"
#include "tests/unit/unit.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define S UINT64_C(1000000000)
static char root[64], self[96];

static void write_to(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void group(const char *name, unsigned periods, unsigned throttled)
{
	char path[160], text[160];

	snprintf(path, sizeof path, "%s%s", root, name);
	assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
	strcat(path, "/cpu.stat");
	snprintf(text, sizeof text, "usage_usec 5\nnr_periods %u\nnr_throttled %u\nthrottled_usec 9\n",
		 periods, throttled);
	write_to(path, text);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(root, "/tmp/ca-quota-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(self, sizeof self, "%s/self", root);
	return 0;
}

static int tear_down(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof command, "rm -r %s", root);
	return system(command);
}

static double at(struct ca_quota *q, double s)
{
	return ca_quota_held_back(q, self, root, S + (uint64_t)(s * 1e9));
}

static void test_version_2(void **state)
{
	struct ca_quota q = { 0 };

	(void)state;
	write_to(self, "0::/a/b\n");
	group("/a", 1000, 500);
	group("/a/b", 0, 0);                       /* without a limit of its own */
	assert_true(fabs(at(&q, 0) - (0)) < 1e-9); /* what was before is nobody's */
	group("/a", 1002, 502);
	assert_true(fabs(at(&q, 0.2) - (0)) < 1e-9); /* too few to tell */
	group("/a", 1005, 503);
	assert_true(fabs(at(&q, 0.25) - (0)) < 1e-9); /* it has just looked */
	assert_true(fabs(at(&q, 0.5) - (0.6)) < 1e-9);
	group("/a", 1009, 507);
	assert_true(fabs(at(&q, 0.9) - (7. / 9)) < 1e-9);
	group("/a", 1011, 507);
	assert_true(fabs(at(&q, 1.1) - (7. / 11)) < 1e-9); /* from here on since 0.9 s */
	group("/a", 1015, 507);
	assert_true(fabs(at(&q, 1.5) - (0)) < 1e-9);
}

/* In a container the group is named as outside, and is not there. */
static void test_container(void **state)
{
	struct ca_quota q = { 0 };

	(void)state;
	write_to(self, "5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n");
	group("/cpu,cpuacct", 10, 1);
	at(&q, 0);
	group("/cpu,cpuacct", 20, 11);
	assert_true(fabs(at(&q, 1) - (1)) < 1e-9);
}

static void test_none(void **state)
{
	struct ca_quota q = { 0 };

	(void)state;
	assert_true(fabs(at(&q, 0) - (0)) < 1e-9); /* no such process */
	write_to(self, "0::/a\n");
	assert_true(fabs(at(&q, 1) - (0)) < 1e-9);
	group("/a", 0, 0);
	assert_true(fabs(at(&q, 2) - (0)) < 1e-9);
	assert_true(fabs(at(&q, 3) - (0)) < 1e-9);
}

/* It sleeps, or goes into another group: what was known is over. */
static void test_over(void **state)
{
	struct ca_quota q = { 0 };

	(void)state;
	write_to(self, "0::/a\n");
	group("/a", 100, 0);
	group("/b", 5, 2);
	at(&q, 0);
	group("/a", 110, 10);
	assert_true(fabs(at(&q, 1) - (1)) < 1e-9);
	assert_true(fabs(at(&q, 1.5) - (1)) < 1e-9);
	assert_true(fabs(at(&q, 2.6) - (0)) < 1e-9);
	group("/a", 120, 20);
	assert_true(fabs(at(&q, 3.6) - (1)) < 1e-9);
	write_to(self, "0::/b\n");
	assert_true(fabs(at(&q, 3.8) - (0)) < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_version_2, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_container, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_over, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
