/* SPDX-License-Identifier: MIT */
/* Scopes: tables of what is in and what is out. */
#include "tests/unit/unit.h"

#include "binary/scope.h"
#include <string.h>

static struct ca_scope *make(const struct ca_scope_spec *spec)
{
	struct ca_scope *scope = NULL;
	struct ca_err err;

	assert_int_equal(ca_scope_new(&scope, spec, &err), CA_OK);
	return scope;
}

static void test_binaries(void **state)
{
	static const struct {
		const char *scope, *exclude, *path;
		bool main, in;
	} cases[] = {
		{ NULL, NULL, "/bin/app", true, true },
		{ "", "", "/bin/app", true, true },
		{ NULL, NULL, "/lib/libz.so.1", false, false },
		{ "MAIN", NULL, "/bin/app", true, true },
		{ "%MAIN%", NULL, "/bin/app", true, true },
		{ "%MAIN%", NULL, "/lib/MAIN.so", false, false },
		{ "libz", NULL, "/lib/libz.so.1", false, true },
		{ "libz", NULL, "/bin/app", true, false },
		{ "MAIN;libz", NULL, "/bin/app", true, true },
		{ "MAIN\tlibz", NULL, "/lib/libz.so.1", false, true },
		{ "MAIN\nlib[xyz]\\.so", NULL, "/lib/libz.so.1", false, true },
		{ ".*", NULL, "/lib/libc.so.6", false, true },
		{ ".*", "libc", "/lib/libc.so.6", false, false },
		{ ".*", "MAIN", "/bin/app", true, false },
		{ ".*", NULL, "/usr/lib/causal/libcausal-rt.so", false, false },
		{ ".*", NULL, "/lib64/ld-linux-x86-64.so.2", false, false },
		{ ".*", NULL, "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", false, false },
		{ ".*", NULL, "linux-vdso.so.1", false, false },
		{ ".*", NULL, "[vdso]", false, false },
		{ ".*", NULL, "/opt/build-ld-linux/app", false, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ca_scope *scope = make(&(struct ca_scope_spec){ .binary = cases[i].scope,
								       .binary_exclude = cases[i].exclude });
		if (ca_scope_has_binary(scope, cases[i].path, cases[i].main) != cases[i].in)
			fail_msg("case %zu: %s", i, cases[i].path);
		ca_scope_free(scope);
	}
}

static void test_following(void **state)
{
	static const struct {
		const char *exclude, *path;
		enum ca_scope_use use;
	} cases[] = {
		{ NULL, "/usr/lib/x86_64-linux-gnu/libz.so.1.2.13", CA_SCOPE_MAY_TAKE },
		{ "libz", "/usr/lib/x86_64-linux-gnu/libz.so.1.2.13", CA_SCOPE_EXCLUDED },
		{ NULL, "/usr/lib/x86_64-linux-gnu/libc.so.6", CA_SCOPE_LEAVE },
		{ "libc", "/usr/lib/x86_64-linux-gnu/libc.so.6", CA_SCOPE_EXCLUDED },
		{ NULL, "/lib/x86_64-linux-gnu/libc-2.31.so", CA_SCOPE_LEAVE },
		{ NULL, "/lib/x86_64-linux-gnu/libm-2.31.so", CA_SCOPE_LEAVE },
		{ NULL, "/lib/x86_64-linux-gnu/libpthread.so.0", CA_SCOPE_LEAVE },
		{ NULL, "/lib/libc.musl-x86_64.so.1", CA_SCOPE_LEAVE },
		{ NULL, "/lib/ld-musl-x86_64.so.1", CA_SCOPE_LEAVE },
		{ NULL, "/usr/lib/libstdc++.so.6.0.30", CA_SCOPE_LEAVE },
		{ NULL, "/usr/lib/libc++.so.1.0", CA_SCOPE_LEAVE },
		{ NULL, "/usr/lib/libc++abi.so.1", CA_SCOPE_LEAVE },
		{ NULL, "/usr/lib/libgcc_s.so.1", CA_SCOPE_LEAVE },
		{ NULL, "/usr/lib/libgomp.so.1.0.0", CA_SCOPE_LEAVE },
		{ NULL, "/opt/numpy.libs/libgomp-a34b3233.so.1.0.0", CA_SCOPE_LEAVE },
		{ NULL, "/usr/lib/llvm-14/lib/libomp.so.5", CA_SCOPE_LEAVE },
		{ NULL, "/usr/lib/libompl.so.1", CA_SCOPE_MAY_TAKE },
		{ NULL, "/usr/lib/libcrypto.so.3", CA_SCOPE_MAY_TAKE },
		{ NULL, "/usr/lib/libc-client.so.2007e", CA_SCOPE_MAY_TAKE },
		{ NULL, "/usr/lib/libcap.so.2", CA_SCOPE_MAY_TAKE },
		{ NULL, "/usr/lib/libmount.so.1", CA_SCOPE_MAY_TAKE },
		{ NULL, "/opt/libc.so.6/plugin.so", CA_SCOPE_MAY_TAKE },
		{ NULL, "/lib64/ld-linux-x86-64.so.2", CA_SCOPE_EXCLUDED },
		{ NULL, "[vdso]", CA_SCOPE_EXCLUDED },
		{ NULL, "/usr/lib/causal/libcausal-rt.so", CA_SCOPE_EXCLUDED },
	};
	static const char *const named[] = { "MAIN", "%MAIN%", "libz", ";MAIN;" };

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_scope *scope = make(&(struct ca_scope_spec){ .binary_exclude = cases[i].exclude });

		assert_true(ca_scope_follows(scope));
		if (ca_scope_use_of(scope, cases[i].path) != cases[i].use)
			fail_msg("case %zu: %s", i, cases[i].path);
		ca_scope_free(scope);
	}
	for (size_t i = 0; i < CA_COUNT(named); i++) {
		struct ca_scope *scope = make(&(struct ca_scope_spec){ .binary = named[i] });

		assert_false(ca_scope_follows(scope));
		ca_scope_free(scope);
	}
}

static void test_functions(void **state)
{
	static const struct {
		const char *scope, *exclude, *name;
		bool defaults, mode, in;
	} cases[] = {
		{ NULL, NULL, "parse", true, true, true },
		{ NULL, NULL, "_start", true, true, false },
		{ NULL, NULL, "_start", true, false, false },
		{ NULL, NULL, "_start", false, true, true },
		{ NULL, NULL, "std::vector<int>::_M_grow()", true, true, false },
		{ NULL, NULL, "std::vector<int>::_M_grow()", true, false, true },
		{ NULL, NULL, "std::vector<int>::_M_grow()", false, true, true },
		{ NULL, NULL, "main", true, true, false },
		{ NULL, NULL, "main", false, true, false },
		{ "main", NULL, "main", false, true, false },
		{ NULL, NULL, "main", true, false, true },
		{ NULL, NULL, "domain", true, true, true },
		{ "foo", NULL, "a_foo_b", true, true, true },
		{ "^foo$", NULL, "foobar", true, true, false },
		{ "^foo$;bar", NULL, "foobar", true, true, true },
		{ ".", "^slow", "slow_path", true, true, false },
		{ "a(b|c){2}", NULL, "abc", true, true, true },
		{ "\"foo\" ; 'bar'", NULL, "bar", true, true, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ca_scope *scope = make(&(struct ca_scope_spec){ .function = cases[i].scope,
								       .function_exclude = cases[i].exclude,
								       .function_defaults = cases[i].defaults,
								       .function_mode = cases[i].mode });
		if (ca_scope_has_function(scope, cases[i].name) != cases[i].in)
			fail_msg("case %zu: %s", i, cases[i].name);
		ca_scope_free(scope);
	}
}

static void test_lines(void **state)
{
	static const struct {
		const char *scope, *exclude, *file;
		unsigned line;
		bool in;
	} cases[] = {
		{ NULL, NULL, "/src/a.c", 3, true },
		{ "a.c", NULL, "/src/a.c", 3, true },
		{ "a.c", NULL, "/src/a.cpp", 3, false },
		{ "a.c:3", NULL, "/src/a.c", 3, true },
		{ "a.c:3", NULL, "/src/a.c", 30, false },
		{ "a.c:3", NULL, "/src/a.c", 13, false },
		{ "a.c:3;b.c", NULL, "/src/b.c", 99, true },
		{ "a.c|b.c", NULL, "/src/a.c", 99, true },
		{ "a.c|b.c", NULL, "/src/a.c.in", 99, false },
		{ "/src/.*", "b.c", "/src/b.c", 99, false },
		{ "/src/.*", "b.c:99", "/src/b.c", 99, false },
		{ "/src/.*", "b.c:99", "/src/b.c", 98, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ca_scope *scope = make(&(struct ca_scope_spec){ .source = cases[i].scope,
								       .source_exclude = cases[i].exclude });
		if (ca_scope_has_line(scope, cases[i].file, cases[i].line) != cases[i].in)
			fail_msg("case %zu: %s:%u", i, cases[i].file, cases[i].line);
		assert_int_equal(ca_scope_has_source_filter(scope), cases[i].scope != NULL);
		ca_scope_free(scope);
	}
}

static void test_bad_expressions(void **state)
{
	static const struct {
		struct ca_scope_spec spec;
		const char *option;
	} cases[] = {
		{ { .binary = "ok;a(b" }, "--binary-scope" },
		{ { .source = "a(b" }, "--source-scope" },
		{ { .function = "a(b" }, "--function-scope" },
		{ { .binary_exclude = "a(b" }, "--binary-exclude" },
		{ { .source_exclude = "x\ta(b" }, "--source-exclude" },
		{ { .function_exclude = "a(b" }, "--function-exclude" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ca_scope *scope = NULL;
		struct ca_err err;
		assert_int_equal(ca_scope_new(&scope, &cases[i].spec, &err), CA_ERR_USAGE);
		assert_null(scope);
		assert_non_null(strstr(err.text, "'a(b'"));
		assert_non_null(strstr(err.text, cases[i].option));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_binaries),        cmocka_unit_test(test_following),
		cmocka_unit_test(test_functions),       cmocka_unit_test(test_lines),
		cmocka_unit_test(test_bad_expressions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
