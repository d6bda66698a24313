/* SPDX-License-Identifier: MIT */
/* The scope that follows the samples: from shares to what is taken, left out, and said. */
#include "causal/conductor/follow.h"
#include "core/event.h"
#include "tests/unit/unit.h"
#include <string.h>

#define LIB "/usr/lib/x86_64-linux-gnu/"

enum { OBJECTS = 6 };
struct counts {
	const char *path;
	bool main;
	uint64_t own, through;
};

static struct ca_scope *make(const char *exclude)
{
	struct ca_scope *scope;

	assert_int_equal(ca_scope_new(&scope, &(struct ca_scope_spec){ .binary_exclude = exclude }, NULL),
			 CA_OK);
	return scope;
}

static void add(struct ca_follow *follow, const struct counts *counts)
{
	for (size_t i = 0; i < OBJECTS && counts[i].path; i++)
		ca_follow_add(follow, counts[i].path, counts[i].main, counts[i].own, counts[i].through);
}

/* Those that are taken are indexed; useless: what was found out of the one with that name. */
static void settle(struct ca_follow *follow, const char *name, const char *useless)
{
	for (size_t i = 0; i < follow->n; i++) {
		follow->object[i].settled = follow->object[i].taken;
		if (name && strstr(follow->object[i].path, name))
			follow->object[i].useless = useless;
	}
}

static void test_decisions(void **state)
{
	static const struct {
		const char *exclude;
		struct counts counts[OBJECTS];
		const char *taken, *text; /* NULL: none, nothing */
	} cases[] = {
		/* pigz, as Debian has it */
		{ NULL,
		  { { "/usr/bin/pigz", true, 24, 0 },
		    { LIB "libz.so.1.2.13", false, 160, 12 },
		    { LIB "libc.so.6", false, 16, 0 } },
		  "libz.so.1.2.13",
		  "scope: libz.so.1.2.13 80 %, pigz 12 % of the CPU samples; left out: libc.so.6 8 % "
		  "(-B 'MAIN;libz.so;libc.so' adds it)" },
		/* redis: what it calls in the kernel */
		{ NULL,
		  { { "/usr/bin/redis", true, 20, 0 },
		    { CA_KERNEL, false, 150, 0 },
		    { LIB "liba.so.1", false, 10, 100 },
		    { LIB "libc.so.6", false, 20, 0 } },
		  "liba.so.1",
		  "scope: redis 10 %, liba.so.1 5 % of the CPU samples; left out: [kernel] 75 % (counts for "
		  "the code that calls it), libc.so.6 10 % (-B 'MAIN;libc.so;liba.so' adds it)" },
		/* tesseract, with more threads than CPUs */
		{ NULL,
		  { { "/usr/bin/app", true, 20, 0 }, { LIB "libgomp.so.1.0.0", false, 180, 0 } },
		  NULL,
		  "scope: app 10 % of the CPU samples; left out: libgomp.so.1.0.0 90 % (OpenMP's threads, "
		  "which "
		  "wait for each other there)" },
		/* node: what it compiles */
		{ NULL,
		  { { "/usr/bin/node", true, 20, 0 }, { CA_MADE, false, 180, 0 } },
		  NULL,
		  "scope: node 10 % of the CPU samples; left out: [made at run time] 90 % (counts for the "
		  "code that "
		  "calls it; causal sample has its names)" },
		/* the limit: 5 % is much, less is not, and is not worth a word */
		{ NULL,
		  { { "/bin/app", true, 180, 0 },
		    { LIB "liba.so.1", false, 10, 0 },
		    { LIB "libb.so.1", false, 9, 0 },
		    { LIB "libc.so.6", false, 1, 0 } },
		  "liba.so.1",
		  "scope: app 90 %, liba.so.1 5 % of the CPU samples" },
		{ NULL, { { "/bin/app", true, 192, 0 }, { LIB "libb.so.1", false, 8, 0 } }, NULL, NULL },
		{ NULL, { { "/bin/app", true, 192, 0 }, { LIB "libc.so.6", false, 8, 0 } }, NULL, NULL },
		/* one sample is none */
		{ NULL, { { "/bin/app", true, 10, 0 }, { LIB "liba.so.1", false, 1, 0 } }, NULL, NULL },
		/* what it does in libc is its own business */
		{ NULL,
		  { { "/bin/app", true, 100, 0 },
		    { LIB "liba.so.1", false, 2, 90 },
		    { LIB "libc.so.6", false, 98, 0 } },
		  "liba.so.1",
		  "scope: app 50 %, liba.so.1 1 % of the CPU samples; left out: libc.so.6 49 % "
		  "(-B 'MAIN;libc.so;liba.so' adds it)" },
		/* nobody can have these */
		{ NULL,
		  { { "/bin/app", true, 20, 0 },
		    { "[vdso]", false, 100, 0 },
		    { LIB "ld-linux-x86-64.so.2", false, 80, 0 } },
		  NULL,
		  "scope: app 10 % of the CPU samples; left out: [vdso] 50 %, ld-linux-x86-64.so.2 40 %" },
		{ NULL,
		  { { "/bin/app", true, 60, 0 },
		    { LIB "libstdc++.so.6.0.30", false, 80, 0 },
		    { LIB "libm.so.6", false, 60, 0 } },
		  NULL,
		  "scope: app 30 % of the CPU samples; left out: libstdc++.so.6.0.30 40 %, libm.so.6 30 % "
		  "(-B 'MAIN;libstdc\\+\\+.so;libm.so' adds them)" },
		{ "liba",
		  { { "/bin/app", true, 60, 0 }, { LIB "liba.so.1", false, 140, 0 } },
		  NULL,
		  "scope: app 30 % of the CPU samples; left out: liba.so.1 70 %" },
		{ "MAIN",
		  { { "/bin/app", true, 60, 0 }, { LIB "liba.so.1", false, 140, 0 } },
		  "liba.so.1",
		  "scope: liba.so.1 70 % of the CPU samples" },
		/* several executables: the busy ones, one at least */
		{ NULL,
		  { { "/bin/dash", true, 0, 0 },
		    { "/bin/app", true, 100, 0 },
		    { "/bin/two", true, 50, 0 },
		    { LIB "liba.so.1", false, 50, 0 } },
		  "liba.so.1",
		  "scope: app 50 %, two 25 %, liba.so.1 25 % of the CPU samples" },
		{ NULL,
		  { { "/bin/dash", true, 0, 0 },
		    { "/bin/python3", true, 1, 0 },
		    { LIB "liba.so.1", false, 200, 0 } },
		  "liba.so.1",
		  "scope: liba.so.1 100 %, python3 <1 % of the CPU samples" },
		/* line mode, a library without lines */
		{ NULL,
		  { { "/bin/app", true, 100, 0 }, { LIB "libuseless.so.1", false, 100, 0 } },
		  "libuseless.so.1",
		  "scope: app 50 % of the CPU samples; left out: libuseless.so.1 50 % (no lines)" },
		{ NULL, { { NULL, false, 0, 0 } }, NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_scope *scope = make(cases[i].exclude);
		struct ca_follow follow = { 0 };
		const char *taken = NULL;
		char text[400];
		bool told;

		add(&follow, cases[i].counts);
		assert_int_equal(ca_follow_decide(&follow, scope), cases[i].taken != NULL);
		for (size_t k = 0; k < follow.n; k++)
			if (follow.object[k].taken) {
				assert_null(taken);
				taken = strrchr(follow.object[k].path, '/') + 1;
			}
		settle(&follow, "libuseless", "no lines");
		told = ca_follow_tell(&follow, scope, text, sizeof text);
		if (!taken != !cases[i].taken || (taken && strcmp(taken, cases[i].taken)))
			fail_msg("case %zu takes %s", i, taken ? taken : "nothing");
		if (told != (cases[i].text != NULL) || strcmp(text, cases[i].text ? cases[i].text : ""))
			fail_msg("case %zu says: %s", i, text);
		ca_follow_fini(&follow);
		ca_scope_free(scope);
	}
}

/* What is taken stays, also when its share falls; the line comes again when there is more. */
static void test_growing(void **state)
{
	static const struct counts start[OBJECTS] = { { "/bin/app", true, 50, 0 },
						      { LIB "liba.so", false, 150, 0 } };
	static const struct counts later[OBJECTS] = { { "/bin/app", true, 3800, 0 },
						      { LIB "libc.so.6", false, 1000, 0 } };
	static const struct counts last[OBJECTS] = { { LIB "libb.so", false, 5000, 0 } };
	struct ca_scope *scope = make(NULL);
	struct ca_follow follow = { 0 };
	char text[400];

	(void)state;
	add(&follow, start);
	assert_true(ca_follow_decide(&follow, scope));
	assert_false(
		ca_follow_tell(&follow, scope, text, sizeof text)); /* it is not known of what use it is */
	settle(&follow, NULL, NULL);
	assert_true(ca_follow_tell(&follow, scope, text, sizeof text));
	assert_string_equal(text, "scope: liba.so 75 %, app 25 % of the CPU samples");
	assert_false(ca_follow_tell(&follow, scope, text, sizeof text));
	add(&follow, later);
	assert_false(ca_follow_decide(&follow, scope));
	assert_true(ca_follow_find(&follow, LIB "liba.so")->taken);
	assert_false(ca_follow_tell(&follow, scope, text, sizeof text));
	add(&follow, last);
	assert_true(ca_follow_decide(&follow, scope));
	settle(&follow, NULL, NULL);
	assert_true(ca_follow_tell(&follow, scope, text, sizeof text));
	assert_string_equal(text, "scope: libb.so 50 %, app 38 %, liba.so 2 % of the CPU samples; "
				  "left out: libc.so.6 10 % (-B 'MAIN;libb.so;libc.so;liba.so' adds it)");
	ca_follow_fini(&follow);
	ca_scope_free(scope);
}

static void test_small_buffer(void **state)
{
	static const struct counts counts[OBJECTS] = { { "/bin/app", true, 50, 0 },
						       { LIB "liba.so", false, 150, 0 } };
	struct ca_scope *scope = make(NULL);
	struct ca_follow follow = { 0 };
	char text[12];

	(void)state;
	add(&follow, counts);
	ca_follow_decide(&follow, scope);
	settle(&follow, NULL, NULL);
	assert_true(ca_follow_tell(&follow, scope, text, sizeof text));
	assert_string_equal(text, "scope: liba");
	ca_follow_fini(&follow);
	ca_scope_free(scope);
}

/* Debian's redis-server is a link to redis-check-rdb: it is told by the name that the user knows. */
static void test_called(void **state)
{
	static const struct counts counts[OBJECTS] = { { "/usr/bin/redis-check-rdb", true, 180, 0 },
						       { LIB "liba.so.1", false, 20, 0 } };
	struct ca_scope *scope = make(NULL);
	struct ca_follow follow = { 0 };
	char text[400];

	(void)state;
	add(&follow, counts);
	ca_follow_call(&follow, "/usr/bin/other", "/usr/bin/link");
	ca_follow_call(&follow, LIB "liba.so.1", "/usr/lib/liba.so.1"); /* the same name elsewhere is none */
	ca_follow_call(&follow, "/usr/bin/redis-check-rdb", "/usr/bin/redis-server");
	assert_true(ca_follow_decide(&follow, scope));
	settle(&follow, NULL, NULL);
	assert_true(ca_follow_tell(&follow, scope, text, sizeof text));
	assert_string_equal(text, "scope: redis-server 90 %, liba.so.1 10 % of the CPU samples");
	assert_string_equal(ca_follow_name(&follow.object[0]), "/usr/bin/redis-server");
	assert_string_equal(ca_follow_name(&follow.object[1]), LIB "liba.so.1");
	ca_follow_fini(&follow);
	ca_scope_free(scope);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_called),
		cmocka_unit_test(test_decisions),
		cmocka_unit_test(test_growing),
		cmocka_unit_test(test_small_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
