/* SPDX-License-Identifier: MIT */
/* causal/results/text.c, plain.c, labels.c: widths as a terminal counts them, and names of which
 * no two are alike. */
#include "causal/results/labels.h"
#include "causal/results/plain.h"
#include "causal/results/text.h"
#include "tests/unit/unit.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_width(void **state)
{
	static const struct {
		const char *text;
		size_t width;
	} cases[] = {
		{ "", 0 },
		{ "abc", 3 },
		{ "\xc3\xa9t\xc3\xa9", 3 },        /* été */
		{ "e\xcc\x81", 1 },                /* a combining accent */
		{ "\xe6\xbc\xa2\xe5\xad\x97", 4 }, /* two wide characters */
		{ "a\x1b[m", 4 },                  /* shown as ? */
		{ "\xe2\x80\xae", 3 },             /* turns the direction: a ? per byte */
		{ "\xe2\x81\xa6", 3 },             /* so does an isolate */
		{ "\xff\xfe", 2 },
		{ "\xf0\x9f\x98\x80", 2 },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++)
		assert_int_equal(ca_text_width(cases[i].text), cases[i].width);
}

static void test_cut(void **state)
{
	static const struct {
		const char *text;
		size_t width, head;
		const char *cut;
	} cases[] = {
		{ "abcdef", 6, 3, "abcdef" },
		{ "abcdefg", 6, 3, "abc…fg" },
		{ "abcdefg", 6, 0, "…cdefg" },
		{ "abcdefg", 6, 9, "abcde…" },
		{ "abcdefg", 1, 0, "…" },
		{ "abcdefg", 0, 0, "" },
		{ "\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2", 5, 2, "\xe6\xbc\xa2…\xe6\xbc\xa2" },
		{ "\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2", 4, 2, "\xe6\xbc\xa2…" }, /* half of one: none */
		{ "a\tb", 9, 4, "a?b" },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		char *cut = ca_text_cut(cases[i].text, cases[i].width, cases[i].head);

		assert_string_equal(cut, cases[i].cut);
		free(cut);
	}
}

static void test_put(void **state)
{
	static const char text[] = "\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2z";

	(void)state;
	for (size_t width = 0; width < 12; width++) {
		char *line = NULL;
		size_t size;
		FILE *out = open_memstream(&line, &size);

		ca_text_put(out, text, width);
		fclose(out);
		assert_int_equal(ca_text_width(line), width);
		free(line);
	}
}

#define REGION(number, called, where, at, in)                                                                \
	{                                                                                                    \
		.id = (number), .name = (char[]){ called }, .file = (char[]){ where },                       \
		.function = (char[]){ "caller" }, .binary = (char[]){ in }, .line = (at),                    \
	}

/* At any width no two regions have one name, and none is wider than it may be. */
static void test_apart(void **state)
{
	struct ca_region region[] = {
		REGION(1, "parse", "/src/a/p.c", 5, "/bin/app"),
		REGION(2, "parse", "/src/b/p.c", 5, "/bin/app"),
		REGION(3, "parse", "", 0, "/usr/lib/libz.so.1"),
		REGION(4, "sub_5d80", "", 0, "/bin/app"),
		REGION(5, "sub_5d80", "", 0, "/bin/other"),
		REGION(6, "ns::list<int, char>::push(int)", "/src/l.h", 9, "/bin/app"),
		REGION(7, "ns::list<int, long>::push(int)", "/src/l.h", 9, "/bin/app"),
		REGION(8, "ns::tree<int, long>::push(int)", "/src/l.h", 9, "/bin/app"),
		REGION(9, "twice", "", 0, "/bin/app"),
		REGION(10, "twice", "", 0, "/bin/app"),
	};
	const struct ca_region *list[CA_COUNT(region) + 1];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(region); i++)
		list[n++] = &region[i];
	list[n++] = &region[0]; /* with another progress point: the same name */
	for (size_t width = 6; width < 60; width++) {
		char **label = ca_labels_make(list, n, width);

		assert_non_null(label);
		assert_string_equal(label[0], label[n - 1]);
		for (size_t i = 0; i < n; i++) {
			assert_in_range(ca_text_width(label[i]), 1, width);
			for (size_t j = 0; j < i; j++)
				assert_true(list[i] == list[j] || strcmp(label[i], label[j]) != 0);
		}
		ca_labels_free(label, n);
	}
}

static void test_names(void **state)
{
	struct ca_region region[] = {
		REGION(1, "parse", "/src/a/p.c", 5, "/bin/app"),
		REGION(2, "parse", "/src/b/p.c", 5, "/bin/app"),
		REGION(3, "parse", "", 0, "/usr/lib/libz.so.1"),
		REGION(4, "p.c:7", "/src/a/p.c", 7, "/bin/app"),
		REGION(5, "look", "/src/a/p.c", 12, "/bin/app.so2"),
	};
	static const char *const wanted[] = { "parse (/src/a/p.c:5)", "parse (/src/b/p.c:5)", "libz.so!parse",
					      "p.c:7 (caller)", "look (p.c:12)" };
	const struct ca_region *list[CA_COUNT(region)];
	char **label;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(region); i++)
		list[i] = &region[i];
	region[3].kind = CA_REGION_LINE;
	label = ca_labels_make(list, CA_COUNT(region), 40);
	for (size_t i = 0; i < CA_COUNT(region); i++)
		assert_string_equal(label[i], wanted[i]);
	ca_labels_free(label, CA_COUNT(region));
	label = ca_labels_make(list + 4, 1, 12); /* no room for the place */
	assert_string_equal(label[0], "look");
	ca_labels_free(label, 1);
}

/* Names too long for their column: what the code is called is the last to go. */
static void test_long_names(void **state)
{
	struct ca_region region[] = {
		REGION(1, "x265::Group::estimateFrameCost(x265::TLD&, int, bool) const", "", 0,
		       "/l/libx265.so.1"),
		REGION(2, "x265::Group::singleCost(int)", "", 0, "/l/libx265.so.1"),
		REGION(3, "x265::Group::add(int, int, int, int)", "", 0, "/l/libx265.so.1"),
		REGION(4, "x265::Group::add(long, int, int, int)", "", 0, "/l/libx265.so.1"),
		REGION(5, "dgemm_kernel_HASWELL", "", 0, "/l/libopenblasp-r0.3.21.so"),
		REGION(6, "(anonymous namespace)::Cost::operator()(int, int) const", "", 0, "/bin/app"),
		REGION(7, "run<void (*)(int)>(int)", "/s/a.cc", 12, "/bin/app"),
		REGION(8, "fasttext::DenseMatrix::addRowToVector(fasttext::Vector&, int) const", "", 0,
		       "/l/libfasttext.so.0"),
		REGION(9, "fasttext::DenseMatrix::addRowToVector(fasttext::Vector&, int, float) const", "", 0,
		       "/l/libfasttext.so.0"),
		REGION(10,
		       "std::vector<long, std::allocator<long> > DP::swipe<Score<short>, Rows<true> >(int)",
		       "", 0, "/bin/app"),
	};
	static const char *const wanted[] = { "libx265.so!…estimateFrameCost",
					      "libx265.so!x26…up::singleCost",
					      NULL,
					      NULL,
					      "libopenb…dgemm_kernel_HASWELL",
					      "(anonymous nam…st::operator()",
					      "run<void (*)(int)>(int)",
					      "addRowToVector(…&, int) const",
					      "addRowToVector(… float) const",
					      "DP::swipe<…>" };
	const struct ca_region *list[CA_COUNT(region)];
	char **label;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(region); i++)
		list[i] = &region[i];
	label = ca_labels_make(list, CA_COUNT(region), 29);
	for (size_t i = 0; i < CA_COUNT(region); i++)
		if (wanted[i])
			assert_string_equal(label[i], wanted[i]);
	assert_non_null(strstr(label[2], "int, int)")); /* they differ in their parameters alone */
	assert_string_not_equal(label[2], label[3]);
	ca_labels_free(label, CA_COUNT(region));
}

static const char list_of[] =
	"std::__cxx11::list<Hsp, std::allocator<Hsp> > DP::swipe<Score<short, -3>, Rows<true> >"
	"(__gnu_cxx::iterator<int const*, std::vector<int, std::allocator<int> > >, int)";

/* What a name loses, step by step, and what it is called. */
static void test_plain(void **state)
{
	static const struct {
		const char *name, *plain, *bare, *templates, *last;
	} cases[] = {
		{ "main", "main", "main", "main", "main" },
		{ "", "", "", "", "" },
		{ "libz.so!inflate", "libz.so!inflate", "libz.so!inflate", "libz.so!inflate", "inflate" },
		{ "p.c:7 (caller)", "p.c:7 (caller)", "p.c:7 (caller)", "p.c:7 (caller)", "p.c:7 (caller)" },
		{ "a::f(int, char) const (a.cc:5)", "a::f(int, char) const (a.cc:5)", "a::f (a.cc:5)",
		  "a::f (a.cc:5)", "f(int, char) const (a.cc:5)" },
		{ "l.so!D::find(std::__cxx11::basic_string<char, std::char_traits<char>, "
		  "std::allocator<char> > const&) const",
		  "l.so!D::find(std::string const&) const", "l.so!D::find", "l.so!D::find",
		  "find(std::string const&) const" },
		{ list_of,
		  "std::list<Hsp> DP::swipe<Score<short, -3>, Rows<true> >"
		  "(__gnu_cxx::iterator<int const*, std::vector<int> >, int)",
		  "DP::swipe<Score<short, -3>, Rows<true> >", "DP::swipe<…>",
		  "swipe<Score<short, -3>, Rows<true> >(__gnu_cxx::iterator<int const*, std::vector<int> >, "
		  "int)" },
		{ "std::vector<std::vector<int, std::allocator<int> >, "
		  "std::allocator<std::vector<int, std::allocator<int> > > >::at(unsigned long)",
		  "std::vector<std::vector<int> >::at(unsigned long)", "std::vector<std::vector<int> >::at",
		  "std::vector<…>::at", "at(unsigned long)" },
		{ "std::__1::vector<int, std::__1::allocator<int>>::size() const",
		  "std::vector<int>::size() const", "std::vector<int>::size", "std::vector<…>::size",
		  "size() const" },
		{ "std::ostream& std::operator<< <char>(std::ostream&, char)",
		  "std::ostream& std::operator<< <char>(std::ostream&, char)", "std::operator<< <char>",
		  "std::operator<< <char>", "operator<< <char>(std::ostream&, char)" },
		{ "(anonymous namespace)::Cost::operator()(int) const",
		  "(anonymous namespace)::Cost::operator()(int) const",
		  "(anonymous namespace)::Cost::operator()", "(anonymous namespace)::Cost::operator()",
		  "operator()(int) const" },
		{ "A<int>::operator bool() const", "A<int>::operator bool() const", "A<int>::operator bool",
		  "A<…>::operator bool", "operator bool() const" },
		{ "P::operator->()", "P::operator->()", "P::operator->", "P::operator->", "operator->()" },
		{ "main::{lambda(int)#1}::operator()(int) const",
		  "main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()",
		  "main::{lambda(int)#1}::operator()", "operator()(int) const" },
		{ "run<void (*)(int)>(int)", "run<void (*)(int)>(int)", "run<void (*)(int)>", "run<…>",
		  "run<void (*)(int)>(int)" },
		{ "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
		  "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
		  "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
		  "<alloc::vec::Vec<…> as core::ops::Drop>::drop", "drop" },
		{ "app::run::{{closure}}", "app::run::{{closure}}", "app::run::{{closure}}",
		  "app::run::{{closure}}", "{{closure}}" },
		{ "broken<(", "broken<(", "broken<(", "broken<…>", "broken<(" },
		{ "f(", "f(", "f", "f", "f(" },
		{ "a>b) ]c}", "a>b) ]c}", "a>b) ]c}", "a>b) ]c}", "a>b) ]c}" },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		char *plain = ca_plain_name(cases[i].name), *bare = ca_plain_bare(plain),
		     *templates = ca_plain_templates(plain);

		assert_string_equal(plain, cases[i].plain);
		assert_string_equal(bare, cases[i].bare);
		assert_string_equal(templates, cases[i].templates);
		assert_string_equal(ca_plain_last(plain), cases[i].last);
		for (size_t width = 1; width < 90; width++) {
			char *fit = ca_plain_fit(cases[i].name, width);

			assert_in_range(ca_text_width(fit), 0, width);
			free(fit);
		}
		free(plain);
		free(bare);
		free(templates);
	}
}

static void test_fit(void **state)
{
	static const struct {
		size_t width;
		const char *text;
	} cases[] = {
		{ 200, "std::list<Hsp> DP::swipe<Score<short, -3>, Rows<true> >"
		       "(__gnu_cxx::iterator<int const*, std::vector<int> >, int)" },
		{ 60, "DP::swipe<Score<short, -3>, Rows<true> >" },
		{ 24, "DP::swipe<…>" },
		{ 11, "DP…swipe<…>" },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		char *fit = ca_plain_fit(list_of, cases[i].width);

		assert_string_equal(fit, cases[i].text);
		free(fit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_width), cmocka_unit_test(test_cut),        cmocka_unit_test(test_put),
		cmocka_unit_test(test_plain), cmocka_unit_test(test_fit),        cmocka_unit_test(test_apart),
		cmocka_unit_test(test_names), cmocka_unit_test(test_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
