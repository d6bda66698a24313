/* SPDX-License-Identifier: MIT */
/* Names of progress points: what is understood, and which binaries and files they mean. */
#include "binary/plan/text.h"
#include "causal/points/point_list.h"
#include "causal/points/point_places.h"
#include "causal/points/requested.h"
#include "core/point.h"
#include "core/session.h"
#include "tests/unit/unit.h"

#include "tests/unit/binary_fixture.h"

static void kinds(void **state)
{
	static const struct {
		const char *text;
		enum ca_point_name_kind kind;
		const char *binary, *name, *probe;
		unsigned line;
		bool is_regex;
	} cases[] = {
		{ "app.c:12", CA_POINT_NAME_LINE, NULL, "app.c", NULL, 12, false },
		{ "src/app.c:1", CA_POINT_NAME_LINE, NULL, "src/app.c", NULL, 1, false },
		{ "libx.so!app.c:12", CA_POINT_NAME_LINE, "libx.so", "app.c", NULL, 12, false },
		{ "work", CA_POINT_NAME_FUNCTION, NULL, "work", NULL, 0, false },
		{ "ns::work", CA_POINT_NAME_FUNCTION, NULL, "ns::work", NULL, 0, false },
		{ "ns::12", CA_POINT_NAME_FUNCTION, NULL, "ns::12", NULL, 0, false },
		{ "app.c:0", CA_POINT_NAME_FUNCTION, NULL, "app.c:0", NULL, 0, true },
		{ "work:12x", CA_POINT_NAME_FUNCTION, NULL, "work:12x", NULL, 0, false },
		{ "^work", CA_POINT_NAME_FUNCTION, NULL, "^work", NULL, 0, true },
		{ "f(int, char)", CA_POINT_NAME_FUNCTION, NULL, "f(int, char)", NULL, 0, true },
		{ "operator[](", CA_POINT_NAME_FUNCTION, NULL, "operator[](", NULL, 0, false },
		{ "libx.so!work", CA_POINT_NAME_FUNCTION, "libx.so", "work", NULL, 0, false },
		{ "usdt:libc:setjmp", CA_POINT_NAME_PROBE, NULL, "libc", "setjmp", 0, false },
		{ "libc.so!usdt:a:b:c", CA_POINT_NAME_PROBE, "libc.so", "a", "b:c", 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct ca_point_name name;
		struct ca_err err;

		assert_int_equal(ca_point_name_parse(&name, cases[i].text, &err), CA_OK);
		assert_int_equal(name.kind, cases[i].kind);
		assert_string_equal(name.text, cases[i].text);
		assert_string_equal(name.name, cases[i].name);
		assert_int_equal(name.line, cases[i].line);
		assert_int_equal(name.is_regex, cases[i].is_regex);
		assert_int_equal(!name.binary, !cases[i].binary);
		if (name.binary)
			assert_string_equal(name.binary, cases[i].binary);
		assert_int_equal(!name.probe, !cases[i].probe);
		if (name.probe)
			assert_string_equal(name.probe, cases[i].probe);
		ca_point_name_fini(&name);
	}
}

static void mistakes(void **state)
{
	static const char *const texts[] = { "usdt:", "usdt:x", "usdt::x", "usdt:x:", "lib!", "*", "a\\" };
	static const char *const latencies[] = { "begin=a", "begin=a,end=", "begin=,end=a", "begin=a;end=b" };
	struct ca_point_name name;
	struct ca_requested *progress;
	struct ca_err err;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		assert_int_equal(ca_point_name_parse(&name, texts[i], &err), CA_ERR_USAGE);
		assert_non_null(strstr(err.text, texts[i]));
	}
	for (size_t i = 0; i < sizeof latencies / sizeof latencies[0]; i++)
		assert_int_equal(ca_requested_new(&progress, latencies[i], NULL, &err), CA_ERR_USAGE);
}

static void binaries(void **state)
{
	static const struct {
		const char *name, *path;
		bool main, in_scope, applies;
	} cases[] = {
		{ "f", "/bin/app", true, false, true },
		{ "f", "/lib/libx.so", false, false, false },
		{ "f", "/lib/libx.so", false, true, true },
		{ "app!f", "/bin/app", true, true, true },
		{ "libx.so!f", "/bin/app", true, true, false },
		{ "libx.so!f", "/lib/libx.so", false, false, true },
		{ "libx.so!f", "/lib/libx.so.1.2", false, false, true },
		{ "libx!f", "/lib/libx.so.1.2", false, false, true },
		{ "x.so!f", "/lib/libx.so", false, false, false },
		{ "libx.so!f", "/lib/libx.soup", false, false, false },
		{ "lib/libx.so!f", "/usr/lib/libx.so", false, false, true },
		{ "usdt:a:b", "/lib/libx.so", false, false, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct ca_point_name name;

		assert_int_equal(ca_point_name_parse(&name, cases[i].name, NULL), CA_OK);
		assert_int_equal(
			ca_point_name_applies(&name, cases[i].path, cases[i].main, cases[i].in_scope),
			cases[i].applies);
		ca_point_name_fini(&name);
	}
}

static void files(void **state)
{
	(void)state;
	assert_true(ca_point_name_is_file("/src/app.c", "app.c"));
	assert_true(ca_point_name_is_file("/src/app.c", "src/app.c"));
	assert_true(ca_point_name_is_file("/src/app.c", "/src/app.c"));
	assert_true(ca_point_name_is_file("app.c", "app.c"));
	assert_false(ca_point_name_is_file("/src/myapp.c", "app.c"));
	assert_false(ca_point_name_is_file("app.c", "src/app.c"));
}

/* Which names of functions may stand alone in --progress. */
static void plain(void **state)
{
	static const struct {
		const char *function;
		bool plain;
	} cases[] = {
		{ "", false },     { "work", true },      { "ns::work(int)", true }, { "lib!work", false },
		{ "a;b", false },  { "a\tb", false },     { "a\nb", false },         { "begin=a", false },
		{ "begin", true }, { "begins", true },    { "usdt:a", false },       { "usdt", true },
		{ "list", false }, { "list:^a", false },  { "lis", true },           { "my_list", true },
		{ "auto", false }, { "automatic", true }, { "ask", false },          { "asks", true },
		{ "none", false }, { "none_of", true },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++)
		if (ca_point_name_is_plain(cases[i].function) != cases[i].plain)
			fail_msg("%s", cases[i].function);
}

static void lists(void **state)
{
	const char *filter;

	(void)state;
	assert_true(ca_point_list_is_asked("list", &filter));
	assert_string_equal(filter, "");
	assert_true(ca_point_list_is_asked("list:^a", &filter));
	assert_string_equal(filter, "^a");
	assert_false(ca_point_list_is_asked("list_add", &filter));
	assert_false(ca_point_list_is_asked("", &filter));
}

static void rows(void **state)
{
	struct ca_session *s = aligned_alloc(_Alignof(struct ca_session), sizeof *s);
	char name[400];

	(void)state;
	assert_non_null(s);
	memset(s, 0, sizeof *s);
	assert_ptr_equal(ca_point_get(s, CA_POINT_BEGIN, "a"), &s->point[0]);
	assert_ptr_equal(ca_point_get(s, CA_POINT_END, "a"), &s->point[1]);
	assert_ptr_equal(ca_point_get(s, CA_POINT_END, "ab"), &s->point[2]);
	assert_ptr_equal(ca_point_get(s, CA_POINT_BEGIN, "a"), &s->point[0]);
	/* a name that does not fit is cut, and found again */
	memset(name, 'x', sizeof name);
	name[sizeof name - 1] = '\0';
	assert_ptr_equal(ca_point_get(s, CA_POINT_END, name), &s->point[3]);
	assert_ptr_equal(ca_point_get(s, CA_POINT_END, name), &s->point[3]);
	assert_int_equal(s->point[3].name[sizeof s->point[3].name - 1], '\0');
	assert_int_equal(s->points_used, 4);
	/* whoever died while writing a name leaves a row that nobody uses */
	s->point[4].state = CA_SLOT_CLAIMED;
	assert_ptr_equal(ca_point_get(s, CA_POINT_END, "b"), &s->point[5]);
	for (unsigned i = 6; i < CA_MAX_POINTS; i++) {
		snprintf(name, sizeof name, "n%u", i);
		assert_non_null(ca_point_get(s, CA_POINT_END, name));
	}
	assert_null(ca_point_get(s, CA_POINT_END, "one more"));
	assert_ptr_equal(ca_point_get(s, CA_POINT_END, "b"), &s->point[5]);
	free(s);
}

static bool in_part(const struct ca_index *index, uint64_t address)
{
	struct ca_index_function f;

	return ca_index_find_function(index, address, &f) && f.part;
}

/* How many places a name has, and how many of them are in code that was moved out to .cold. Those
 * that have any are found, too. */
static size_t count_places(const char *text, const struct ca_index *index, size_t *cold)
{
	struct ca_point_places places;
	struct ca_point_name name;
	struct ca_text *code;
	size_t n;

	assert_int_equal(ca_point_name_parse(&name, text, NULL), CA_OK);
	assert_int_equal(ca_text_open(&code, fixture_path("cold"), NULL), CA_OK);
	n = ca_point_places_find(&name, index, code, &places);
	if (ca_point_places_any(&name, index) != (n > 0))
		fail_msg("%s has %zu places", text, n);
	*cold = 0;
	for (size_t i = 0; i < n; i++)
		*cold += in_part(index, places.place[i].address);
	free(places.place);
	ca_text_close(code);
	ca_point_name_fini(&name);
	return n;
}

/* The rest of a line in .cold continues what began in the function; a line that is only there
 * begins there. gcc makes such parts, whatever the tests are compiled with. */
static void cold_lines(void **state)
{
	struct ca_index *index;
	size_t cold, n;

	(void)state;
	fixture_write("cold.c",
		      "#include <stdlib.h>\n"
		      "volatile int sink;\n"
		      "__attribute__((cold, noinline)) void rare(int x) { sink = x; }\n"
		      "__attribute__((noinline)) int outer(int x)\n"
		      "{\n"
		      "\tint y = x * sink;\n"
		      "\tif (__builtin_expect(x == 77, 0)) { rare(x); sink += y; } else sink ^= y;\n"
		      "\tif (__builtin_expect(y == 78, 0)) {\n"
		      "\t\trare(x);\n"
		      "\t\tabort();\n"
		      "\t}\n"
		      "\treturn y;\n"
		      "}\n"
		      "int main(int argc, char **argv) { (void)argv; return outer(argc); }\n");
	assert_int_equal(fixture_run("gcc -g -O2 -o cold cold.c"), 0);
	index = fixture_open("cold", CA_INDEX_FULL);
	assert_non_null(index);
	n = count_places("cold.c:7", index, &cold);
	assert_true(n >= 1);
	assert_int_equal(cold, 0);
	n = count_places("cold.c:9", index, &cold);
	assert_true(n >= 1);
	assert_int_equal(cold, n);
	assert_int_equal(count_places("outer", index, &cold), 1);
	assert_int_equal(cold, 0);
	ca_index_close(index);
}

/* All names that mean a function, and those that nearly do. */
static void functions(void **state)
{
	static const struct {
		const char *name;
		size_t places;
	} cases[] = {
		{ "work", 1 },
		{ "work(int)", 1 },
		{ "work(char)", 0 },
		{ "_Z4worki", 1 },
		{ "wor", 0 },
		{ "orker", 0 },
		{ "worker", 1 },
		{ "ns::work", 1 },
		{ "s::work", 0 },
		{ "ns", 0 },
		{ "twice", 2 },
		{ "twice<int>", 1 },
		{ "twice<long>", 1 },
		{ "int", 0 },
		{ "plain", 1 },
		{ "pla", 0 },
		{ "(anonymous namespace)::hidden", 1 },
	};
	/* what is near to names that mean nothing */
	static const struct {
		const char *name, *near;
	} mistaken[] = {
		{ "worke", "worker(int)" },
		{ "plaim", "plain" },
		{ "nothing_like_it", NULL },
		{ "names.cc:100", "names.cc:8" },
		{ "name.cc:5", "names.cc:5" },
		{ "work+0x1000", NULL },
		{ "0x10", NULL },
		{ "usdt:a:work", NULL },
	};
	struct ca_index *index;
	size_t cold;

	(void)state;
	fixture_write("names.cc",
		      "#define KEEP __attribute__((noinline, noclone, used))\n"
		      "KEEP int work(int x) { return x + 1; }\n"
		      "KEEP int worker(int x) { return x + 2; }\n"
		      "namespace ns { KEEP int work(int x) { return x + 3; } }\n"
		      "namespace { KEEP int hidden(int x) { return x + 4; } }\n"
		      "template <class T> KEEP T twice(T x) { return x + x; }\n"
		      "extern \"C\" KEEP int plain(int x) { return x + 5; }\n"
		      "int main(int c, char **) { return work(c) + worker(c) + ns::work(c) + hidden(c) + "
		      "twice<int>(c) + (int)twice<long>(c) + plain(c); }\n");
	assert_int_equal(fixture_run("%s -g -O1 -o cold names.cc", fixture_cxx()), 0);
	index = fixture_open("cold", CA_INDEX_FULL);
	assert_non_null(index);
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		size_t n = count_places(cases[i].name, index, &cold);

		if (n != cases[i].places)
			fail_msg("%s: %zu places", cases[i].name, n);
	}
	for (size_t i = 0; i < CA_COUNT(mistaken); i++) {
		struct ca_point_name name;
		char near[100] = "nothing";
		bool found;

		assert_int_equal(ca_point_name_parse(&name, mistaken[i].name, NULL), CA_OK);
		found = ca_point_name_near(&name, index, near, sizeof near);
		if (found != (mistaken[i].near != NULL) || strcmp(near, found ? mistaken[i].near : "nothing"))
			fail_msg("%s: %d, %s", mistaken[i].name, found, near);
		ca_point_name_fini(&name);
	}
	ca_index_close(index);
}

/* Lines of code that belongs to no function that is known: as written by hand, and stripped. */
static void lines_of_nobody(void **state)
{
	static const struct {
		const char *name;
		size_t places;
	} cases[] = { { "nobody.s:2", 1 }, { "nobody.s:3", 1 }, { "nobody.s:4", 1 }, { "nobody.s:6", 0 } };
	struct ca_index_function f;
	struct ca_index *index;
	size_t cold;

	(void)state;
	fixture_write("nobody.s", ".text\nnop\nincl %eax\nret\n.section .note.GNU-stack,\"\",@progbits\n");
	assert_int_equal(fixture_run("gcc -g -nostdlib -static -Wl,-e,0 -o cold nobody.s 2>log"), 0);
	index = fixture_open("cold", CA_INDEX_FULL);
	assert_non_null(index);
	assert_true(ca_index_lines(index) > 0);
	for (size_t i = 0; i < ca_index_lines(index); i++) {
		struct ca_index_line line;

		ca_index_line_at(index, i, &line);
		assert_false(ca_index_find_function(index, line.low, &f));
	}
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		size_t n = count_places(cases[i].name, index, &cold);

		if (n != cases[i].places)
			fail_msg("%s: %zu places", cases[i].name, n);
	}
	ca_index_close(index);
}

/* The way from the first part of a line to its second leads through code behind both: the second
 * continues the first. */
static void continued_from_behind(void **state)
{
	struct ca_index *index;
	size_t cold;

	(void)state;
	fixture_write("far.s", ".text\n.file 1 \"far.c\"\n.globl f\n.type f,@function\nf: .cfi_startproc\n"
			       ".loc 1 10\ntest %edi, %edi\njne 3f\n"
			       ".loc 1 11\nincl %eax\nret\n"
			       "2: .loc 1 10\nincl %ecx\n"
			       ".loc 1 12\nret\n"
			       "3: .loc 1 13\nincl %edx\njmp 2b\n"
			       ".cfi_endproc\n.size f, . - f\n.section .note.GNU-stack,\"\",@progbits\n");
	assert_int_equal(fixture_run("gcc -g -nostdlib -static -Wl,-e,f -o cold far.s 2>log"), 0);
	index = fixture_open("cold", CA_INDEX_FULL);
	assert_non_null(index);
	assert_int_equal(count_places("far.c:10", index, &cold), 1);
	assert_int_equal(count_places("far.c:11", index, &cold), 1);
	assert_int_equal(count_places("far.c:13", index, &cold), 1);
	ca_index_close(index);
}

/* Whoever selects a function needs its first bytes: it is counted behind them, if all who enter
 * pass there, and nobody else does. */
static void counted_behind_the_entry(void **state)
{
	static const struct {
		const char *name;
		uint64_t behind;
	} cases[] = { { "straight", 5 }, { "brief", 0 }, { "looping", 0 } };
	struct ca_session *s = aligned_alloc(_Alignof(struct ca_session), sizeof *s);
	struct ca_index_function f;
	struct ca_requested *progress;
	struct ca_scope *scope;
	struct ca_index *index;
	struct ca_text *text;

	(void)state;
#define BEGIN(name) ".globl " name "\n.type " name ",@function\n" name ": .cfi_startproc\n"
#define MOVES       "mov $1, %eax\nmov $2, %ecx\nmov $3, %edx\nmov $4, %esi\n" /* of five bytes each */
#define END(name)   ".cfi_endproc\n.size " name ", . - " name "\n"
	fixture_write("entry.s", ".text\n" BEGIN("straight") MOVES
		      "ret\n" END("straight") BEGIN("brief") "mov $5, %ecx\nret\n" END("brief") BEGIN(
			      "looping") "mov $5, %ecx\n1: " MOVES "decl %edi\njne 1b\n" MOVES
					 "ret\n" END("looping") ".section .note.GNU-stack,\"\",@progbits\n");
	assert_int_equal(fixture_run("%s -nostdlib -static -Wl,-e,straight -o entry entry.s", fixture_cc()),
			 0);
	assert_non_null(s);
	memset(s, 0, sizeof *s);
	strcpy(s->module[1].path, fixture_path("entry"));
	s->module[1].main = 1;
	assert_int_equal(ca_scope_new(&scope, &(struct ca_scope_spec){ .function_mode = true }, NULL), CA_OK);
	assert_int_equal(ca_requested_new(&progress, "straight;brief;looping", scope, NULL), CA_OK);
	ca_requested_join(progress, s, false);
	index = fixture_open("entry", CA_INDEX_FULL);
	assert_non_null(index);
	assert_int_equal(ca_text_open(&text, fixture_path("entry"), NULL), CA_OK);
	assert_true(ca_requested_is_named(progress, index, 1));
	ca_requested_index(progress, index, NULL, 1);
	assert_int_equal(atomic_load(&s->requested_used), 0);
	ca_requested_index(progress, index, text, 1);
	assert_int_equal(atomic_load(&s->requested_used), CA_COUNT(cases));
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		unsigned n = 0;

		for (size_t k = 0; k < CA_COUNT(cases); k++) {
			assert_true(ca_index_find_function(index, s->requested[k].address, &f));
			if (strcmp(f.name, cases[i].name))
				continue;
			assert_int_equal(s->requested[k].address, f.low + cases[i].behind);
			assert_int_equal(s->requested[k].kind, CA_SITE_COUNT);
			n++;
		}
		assert_int_equal(n, 1);
	}
	ca_text_close(text);
	ca_index_close(index);
	ca_requested_free(progress);
	ca_scope_free(scope);
	free(s);
}

/* The sites of named points, as "FUNCTION+OFFSET ROW ROW; ..." with a letter for what a hook does: each
 * hook counts in its own point's row of the session's table. */
static void sites(void **state)
{
	static const struct {
		const char *names, *sites;
	} cases[] = {
		/* names of one place are one site, be it the first or not */
		{ "leaves;app!leaves", "leaves+5 v0 v1; " },
		{ "leaves;other;app!leaves", "leaves+5 v0 v2; other+5 v1; " },
		{ "leaves;other;app!other", "leaves+5 v0; other+5 v1 v2; " },
		/* a latency ends at each return, as another one may */
		{ "other;begin=leaves,end=leaves", "leaves+24 s2; leaves+29 s2; leaves+5 s1; other+5 v0; " },
		{ "begin=other,end=leaves;begin=leaves,end=leaves",
		  "leaves+24 s1 s3; leaves+29 s1 s3; leaves+5 s2; other+5 s0; " },
	};
	struct ca_session *s = aligned_alloc(_Alignof(struct ca_session), sizeof *s);
	struct ca_index_function f;
	struct ca_scope *scope;
	struct ca_index *index;
	struct ca_text *text;

	(void)state;
	fixture_write("sites.s", ".text\n" BEGIN("leaves") MOVES
		      "test %edi, %edi\njne 2f\nret\nnop\nnop\nnop\nnop\n2: mov $7, %eax\nret\n" END("leaves")
			      BEGIN("other") MOVES
		      "ret\n" END("other") ".section .note.GNU-stack,\"\",@progbits\n");
	assert_int_equal(fixture_run("%s -nostdlib -static -Wl,-e,leaves -o app sites.s", fixture_cc()), 0);
	assert_non_null(s);
	assert_int_equal(ca_scope_new(&scope, &(struct ca_scope_spec){ .function_mode = true }, NULL), CA_OK);
	index = fixture_open("app", CA_INDEX_FULL);
	assert_non_null(index);
	assert_int_equal(ca_text_open(&text, fixture_path("app"), NULL), CA_OK);
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_requested *progress;
		char got[400] = "";
		int n = 0;

		memset(s, 0, sizeof *s);
		strcpy(s->module[1].path, fixture_path("app"));
		s->module[1].main = 1;
		assert_int_equal(ca_requested_new(&progress, cases[i].names, scope, NULL), CA_OK);
		ca_requested_join(progress, s, false);
		ca_requested_index(progress, index, text, 1);
		for (uint32_t k = 0; k < atomic_load(&s->requested_used) && n < 300; k++) {
			const struct ca_site *site = &s->requested[k];

			assert_int_equal(site->kind, CA_SITE_COUNT);
			assert_true(ca_index_find_function(index, site->address, &f));
			n += sprintf(got + n, "%s+%u", f.name, (unsigned)(site->address - f.low));
			for (unsigned h = 0; h < site->hooks; h++)
				n += sprintf(got + n, " %c%u",
					     site->hook[h].kind == CA_SITE_VISIT   ? 'v'
					     : site->hook[h].kind == CA_SITE_STAMP ? 's'
										   : '?',
					     site->hook[h].point ? site->hook[h].point - 1u : site->point);
			n += sprintf(got + n, "; ");
		}
		assert_string_equal(got, cases[i].sites);
		ca_requested_free(progress);
	}
	ca_text_close(text);
	ca_index_close(index);
	ca_scope_free(scope);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(binaries),
		cmocka_unit_test(files),
		cmocka_unit_test(plain),
		cmocka_unit_test(lists),
		cmocka_unit_test(rows),
		cmocka_unit_test(cold_lines),
		cmocka_unit_test(functions),
		cmocka_unit_test(lines_of_nobody),
		cmocka_unit_test(continued_from_behind),
		cmocka_unit_test(counted_behind_the_entry),
		cmocka_unit_test(sites),
	};

	return cmocka_run_group_tests(tests, fixture_make, fixture_remove);
}
