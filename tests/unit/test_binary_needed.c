/* SPDX-License-Identifier: MIT */
/* binary/needed.c: the libraries that a program needs, as its own loader finds them. */
#include "binary/needed.h"
#include "tests/unit/unit.h"

#include "tests/unit/binary_fixture.h"
#include <link.h>

static bool needs(const struct ca_needed *needed, const char *path)
{
	char real[4096];

	if (!realpath(path, real))
		return false;
	for (size_t i = 0; i < needed->n; i++)
		if (!strcmp(needed->path[i], real))
			return true;
	return false;
}

static unsigned loaded;

/* What this test itself has: no other loader decides than that which has loaded it. */
static int check_loaded(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	if (info->dlpi_name[0] != '/' || strstr(info->dlpi_name, "/ld-") || strstr(info->dlpi_name, "asan") ||
	    strstr(info->dlpi_name, "ubsan"))
		return 0;
	loaded++;
	if (!needs(data, info->dlpi_name))
		fail_msg("%s is missing", info->dlpi_name);
	return 0;
}

static void test_of_this_program(void **state)
{
	struct ca_needed needed;
	struct ca_err err;
	char self[4096];

	(void)state;
	assert_non_null(realpath("/proc/self/exe", self)); /* the loader's own is another */
	memset(&needed, 0x55, sizeof needed);
	assert_int_equal(ca_needed_find(&needed, self, &err), CA_OK);
	dl_iterate_phdr(check_loaded, &needed);
	assert_true(loaded > 0);
	assert_true(needed.n >= loaded);
	for (size_t i = 0; i < needed.n; i++)
		assert_int_equal(needed.path[i][0], '/');
	ca_needed_fini(&needed);
	assert_int_equal(needed.n, 0);
}

/* By a run path of its own, and through another library. */
static void test_run_path(void **state)
{
	struct ca_needed needed;
	struct ca_err err;

	(void)state;
	fixture_write("one.c", "int two(void);\nint one(void) { return two(); }\n");
	fixture_write("two.c", "int two(void) { return 2; }\n");
	fixture_write("app.c", "int one(void);\nint main(void) { return one(); }\n");
	assert_int_equal(
		fixture_run("mkdir lib && %s -shared -fPIC -Wl,-soname,libtwo.so -o lib/libtwo.so two.c && "
			    "%s -shared -fPIC -Wl,-soname,libone.so,-rpath,'$ORIGIN' -o lib/libone.so one.c "
			    "lib/libtwo.so && "
			    "%s -Wl,-rpath,'$ORIGIN/lib',-rpath-link,lib -o app app.c lib/libone.so",
			    fixture_cc(), fixture_cc(), fixture_cc()),
		0);
	assert_int_equal(ca_needed_find(&needed, fixture_path("app"), &err), CA_OK);
	assert_true(needs(&needed, fixture_path("lib/libone.so")));
	assert_true(needs(&needed, fixture_path("lib/libtwo.so")));
	ca_needed_fini(&needed);
}

/* Nothing is needed by what has no loader: static programs, scripts, what is not there. */
static void test_nothing_needed(void **state)
{
	static const char *const names[] = { "script", "short", "static", "missing", "/" };
	struct ca_needed needed;
	struct ca_err err;

	(void)state;
	fixture_write("script", "#!/bin/sh\n# long enough to hold what could be the header of an ELF file\n");
	fixture_write("short", "\177ELF\2");
	fixture_write("s.c", "void _start(void) { for (;;); }\n");
	assert_int_equal(fixture_run("%s -static -nostdlib -o static s.c", fixture_cc()), 0);
	for (size_t i = 0; i < CA_COUNT(names); i++) {
		memset(&needed, 0x55, sizeof needed);
		assert_int_equal(
			ca_needed_find(&needed, names[i][0] == '/' ? names[i] : fixture_path(names[i]), &err),
			CA_OK);
		assert_int_equal(needed.n, 0);
		assert_null(needed.path);
		ca_needed_fini(&needed);
	}
}

static void test_no_such_loader(void **state)
{
	struct ca_needed needed;
	struct ca_err err;

	(void)state;
	fixture_write("m.c", "int main(void) { return 0; }\n");
	assert_int_equal(fixture_run("%s -Wl,--dynamic-linker=/missing/ld.so -o odd m.c", fixture_cc()), 0);
	assert_int_equal(ca_needed_find(&needed, fixture_path("odd"), &err), CA_ERR_IO);
	assert_non_null(strstr(err.text, "/missing/ld.so"));
	assert_int_equal(needed.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_this_program),
		cmocka_unit_test(test_run_path),
		cmocka_unit_test(test_nothing_needed),
		cmocka_unit_test(test_no_such_loader),
	};

	return cmocka_run_group_tests(tests, fixture_make, fixture_remove);
}
