/* SPDX-License-Identifier: MIT */
/* Functions, lines and inlined calls of small programs, built in every way that the index
 * must cope with, against nm and against libdw's own look-ups. */
#include "tests/unit/unit.h"

#include "tests/unit/binary_fixture.h"
#include "tests/unit/files.h"
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>

static const char source_a[] =
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"#include \"b.h\"\n"
	"volatile int sink;\n"
	"static inline __attribute__((always_inline)) int leaf(int x)\n"
	"{\n"
	"\tint i, s = 0;\n"
	"\tfor (i = 0; i < x; i++)\n"
	"\t\ts += i * sink;\n"
	"\treturn s;\n"
	"}\n"
	"static inline __attribute__((always_inline)) int middle(int x)\n"
	"{\n"
	"\tif (x > 3)\n"
	"\t\tsink = leaf(x);\n"
	"\treturn leaf(x + 1);\n"
	"}\n"
	"__attribute__((cold, noinline)) void rare(int x) { fprintf(stderr, \"%d\", x); }\n"
	"__attribute__((noinline)) int outer(int x)\n"
	"{\n"
	"\tif (__builtin_expect(x == 77, 0)) {\n"
	"\t\trare(x);\n"
	"\t\tsink++;\n"
	"\t}\n"
	"\treturn middle(x) + middle(x * 2);\n"
	"}\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"\t(void)argv;\n"
	"\tsink = outer(argc) + other(argc);\n"
	"\treturn 0;\n"
	"}\n";
static const char source_b[] = "#include \"b.h\"\n"
			       "extern volatile int sink;\n"
			       "int other(int x)\n"
			       "{\n"
			       "\treturn twice(x) + sink;\n"
			       "}\n"
			       "int alias(int x) __attribute__((alias(\"other\")));\n";
static const char source_h[] = "static inline __attribute__((always_inline)) int twice(int x)\n"
			       "{\n"
			       "\textern volatile int sink;\n"
			       "\tsink = x;\n"
			       "\treturn x * 2;\n"
			       "}\n"
			       "int other(int x);\n";
static const char source_cc[] =
	"#include <vector>\n"
	"#include <algorithm>\n"
	"namespace outer { namespace { struct hidden { int v; int get(int x) const;"
	" bool operator<(const hidden &o) const { return v < o.v; } }; }\n"
	"__attribute__((noinline)) int hidden::get(int x) const { return v * x; }\n"
	"template <class T> __attribute__((noinline)) T sum(const std::vector<T> &v)\n"
	"{ T s{}; for (auto &x : v) s += x; return s; } }\n"
	"int main(int argc, char **) {\n"
	" std::vector<int> v(argc * 10); outer::hidden h{argc};\n"
	" std::sort(v.begin(), v.end(), [&](int a, int b) { return a * h.v < b; });\n"
	" return outer::sum(v) + h.get(argc); }\n";

/* What this machine cannot build; told in the last line, and by the exit status. */
static char missing[512];

static void miss(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void miss(const char *format, ...)
{
	size_t n = strlen(missing);
	va_list args;

	n += (size_t)snprintf(missing + n, sizeof(missing) - n, n ? "; " : "");
	va_start(args, format);
	vsnprintf(missing + n, sizeof(missing) - n, format, args);
	va_end(args);
}

static int make_sources(void **state)
{
	if (fixture_make(state) != 0)
		return -1;
	fixture_write("a.c", source_a);
	fixture_write("b.c", source_b);
	fixture_write("b.h", source_h);
	fixture_write("p.cc", source_cc);
	return 0;
}

/* Every function symbol that nm knows starts a function of the index. */
static void check_symbols(const struct ca_index *index, const char *path)
{
	char command[1200], line[4096], type, name[2048];
	unsigned long long address;
	struct ca_index_function function;
	unsigned compared = 0;
	const char *nm = getenv("NM");
	FILE *pipe;

	snprintf(command, sizeof(command), "%s '%s'", nm && *nm ? nm : "nm", path);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		if (sscanf(line, "%llx %c %2047s", &address, &type, name) != 3 || !strchr("tT", type))
			continue;
		if (!ca_index_find_function(index, address, &function) || function.low != address)
			fail_msg("%s: no function at %llx, where nm has %s", path, address, name);
		compared++;
	}
	pclose(pipe);
	assert_true(compared > 5);
}

static int same_basename(const char *a, const char *b)
{
	const char *x = strrchr(a, '/'), *y = strrchr(b, '/');

	return strcmp(x ? x + 1 : a, y ? y + 1 : b) == 0;
}

static void check_line(const struct ca_index *index, Dwarf_Die *cu, uint64_t address, unsigned *compared)
{
	struct ca_index_line line;
	Dwarf_Line *wanted = dwarf_getsrc_die(cu, address);
	bool found = ca_index_find_line(index, address, &line);
	int number;

	if (!wanted)
		return;
	dwarf_lineno(wanted, &number);
	if (found != (number != 0))
		fail_msg("%#llx: line found: %d, libdw says %d", (unsigned long long)address, found, number);
	if (!found)
		return;
	assert_true(line.low <= address && address < line.high);
	if ((int)line.line != number || !same_basename(line.file, dwarf_linesrc(wanted, NULL, NULL)))
		fail_msg("%#llx: %s:%u, libdw says %s:%d", (unsigned long long)address, line.file, line.line,
			 dwarf_linesrc(wanted, NULL, NULL), number);
	if (line.file[0] != '/')
		fail_msg("%s is not a full path", line.file);
	(*compared)++;
}

/* libdw's scopes come innermost first, the index's chain outermost first. */
static void check_inlines(const struct ca_index *index, Dwarf_Die *unit, bool split, uint64_t address,
			  unsigned *compared)
{
	struct ca_index_inline chain[32];
	size_t n = ca_index_find_inlines(index, address, chain, 32), wanted = 0;
	Dwarf_Die *innermost = NULL, *scopes = NULL;
	int count = dwarf_getscopes(unit, address, &innermost);

	/* from there on outwards as the code lies, not as the source is nested */
	if (count > 0)
		count = dwarf_getscopes_die(innermost, &scopes);
	free(innermost);
	for (int i = 0; i < count; i++) {
		if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram)
			break;
		wanted += dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine;
	}
	if (count <= 0)
		wanted = 0;
	if (n != wanted)
		fail_msg("%#llx: %zu inlined calls, libdw has %zu", (unsigned long long)address, n, wanted);
	for (int i = 0; i < count && wanted > 0; i++) {
		Dwarf_Attribute attribute;
		Dwarf_Word line = 0;
		if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine)
			continue;
		wanted--;
		dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_line, &attribute), &line);
		/* the demangler writes out default template arguments, DWARF does not */
		char name[256];
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(dwarf_diename(&scopes[i]), "<"),
			 dwarf_diename(&scopes[i]));
		if (!strstr(chain[wanted].name, name))
			fail_msg("%s is not %s", chain[wanted].name, name);
		assert_int_equal(chain[wanted].call_line, line);
		assert_int_equal(chain[wanted].depth, wanted + 1);
		assert_int_equal(chain[wanted].call_file[0], '/');
		int declared = 0;
		dwarf_decl_line(&scopes[i], &declared);
		assert_int_equal(chain[wanted].line, declared);
		/* of split units dwarf_decl_file dies, and file 0 it does not know */
		const char *file = split ? NULL : dwarf_decl_file(&scopes[i]);
		if (file && !same_basename(chain[wanted].file, file))
			fail_msg("%s: in %s, libdw says %s", name, chain[wanted].file, file);
		(*compared)++;
	}
	free(scopes);
}

static void check_unit(const struct ca_index *index, Dwarf_Die *cu, Dwarf_Die *split, unsigned *lines,
		       unsigned *inlines)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(cu, at, &base, &low, &high)) > 0) {
		struct ca_index_function function;
		if (!ca_index_find_function(index, low, &function))
			continue; /* code that the linker dropped */
		for (uint64_t address = low; address < high; address++) {
			check_line(index, cu, address, lines);
			if (inlines)
				check_inlines(index, split->addr ? split : cu, split->addr, address, inlines);
		}
	}
}

/* Every address of every unit. file: where the DWARF is; inlines: at least as many inlined
 * calls; -1: do not compare them. */
static void check_dwarf(const struct ca_index *index, const char *file, int wants_inlines)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	Dwarf *dwarf = dwarf_begin(fd, DWARF_C_READ);
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	uint8_t type;
	Dwarf_Die die, split;
	unsigned lines = 0, inlines = 0;

	assert_non_null(dwarf);
	while (dwarf_get_units(dwarf, cu, &cu, &version, &type, &die, &split) == 0)
		check_unit(index, &die, &split, &lines, wants_inlines < 0 ? NULL : &inlines);
	assert_true(lines > 50);
	assert_true((int)inlines >= wants_inlines);
	dwarf_end(dwarf);
	close(fd);
}

static size_t number_of(const struct ca_index *index, const char *name)
{
	struct ca_index_function function;

	for (size_t i = 0; i < ca_index_functions(index); i++) {
		ca_index_function_at(index, i, &function);
		if (strcmp(function.name, name) == 0 && !function.part)
			return i;
	}
	return SIZE_MAX;
}

/* Returns whether the compiler has moved a part of outer away. */
static bool check_program(const char *name, bool lto)
{
	struct ca_index *index = fixture_open(name, CA_INDEX_FULL);
	struct ca_index_function function;
	struct ca_index_span span[8];
	size_t outer;

	assert_non_null(index);
	assert_string_equal(fixture_warnings, "");
	assert_true(ca_index_has_lines(index));
	check_symbols(index, fixture_path(name));
	/* libdw's scopes miss inlined calls whose origin is in another unit, as with LTO */
	check_dwarf(index, fixture_path(name), lto ? -1 : 10);
	outer = number_of(index, "outer");
	assert_int_not_equal(outer, SIZE_MAX);
	ca_index_function_at(index, outer, &function);
	assert_string_equal(function.linkage, "outer");
	assert_int_equal(function.line, 19);
	assert_string_equal(function.file, fixture_path("a.c"));
	/* its body, and the part with the call to rare if gcc has moved it away */
	bool cold = fixture_run("nm %s | grep -q ' outer.cold$'", name) == 0;
	assert_int_equal(ca_index_function_ranges(index, outer, span, 8), cold ? 2 : 1);
	assert_int_equal(span[0].low, function.low);
	assert_int_equal(span[0].high, function.high);
	if (cold) {
		assert_true(ca_index_find_function(index, span[1].low, &function));
		assert_string_equal(function.name, "outer");
		assert_true(function.part);
	}
	/* aliases are one function, under the name that comes first */
	if (!lto)
		assert_int_not_equal(number_of(index, "other") == SIZE_MAX,
				     number_of(index, "alias") == SIZE_MAX);
	ca_index_close(index);
	return cold;
}

static void test_variants(void **state)
{
	static const char *const flags[] = {
		"-O2 -gdwarf-2 -gstrict-dwarf",
		"-O2 -gdwarf-3 -gstrict-dwarf",
		"-O2 -gdwarf-4",
		"-O2 -gdwarf-5",
		"-O0 -gdwarf-5",
		"-O3 -gdwarf-5 -gz",
		"-O2 -gdwarf-4 -gz=zlib-gnu",
		"-O2 -g -no-pie -fno-pie",
		"-O2 -g -static",
		"-O2 -g -static-pie -fPIE",
		"-O2 -gdwarf-5 -gsplit-dwarf",
		"-O2 -gdwarf-4 -gsplit-dwarf",
		"-O2 -g -flto",
		"-O2 -g -ffunction-sections -Wl,--gc-sections",
	};
	unsigned cold = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		if (fixture_run("%s -w %s -o v%zu a.c b.c 2>log", fixture_cc(), flags[i], i) != 0) {
			miss("%s %s does not build", fixture_cc(), flags[i]);
			continue;
		}
		char name[16];
		snprintf(name, sizeof(name), "v%zu", i);
		print_message("%s\n", flags[i]);
		cold += check_program(name, strstr(flags[i], "-flto"));
	}
	if (cold == 0)
		miss("this compiler makes no .cold parts");
}

static void test_clang(void **state)
{
	char name[16];

	(void)state;
	for (int version = 4; version <= 5; version++) {
		snprintf(name, sizeof(name), "k%d", version);
		if (fixture_run("command -v clang >log") != 0) {
			miss("no clang");
			return;
		}
		assert_int_equal(fixture_run("clang -w -O2 -gdwarf-%d -o %s a.c b.c", version, name), 0);
		struct ca_index *index = fixture_open(name, CA_INDEX_FULL);
		assert_non_null(index);
		check_symbols(index, fixture_path(name));
		check_dwarf(index, fixture_path(name), 10);
		ca_index_close(index);
	}
}

static void test_cplusplus(void **state)
{
	struct ca_index *index;

	(void)state;
	for (int level = 0; level <= 2; level++) {
		assert_int_equal(fixture_run("%s -g -O%d -o p%d p.cc", fixture_cxx(), level, level), 0);
		char name[16];
		snprintf(name, sizeof(name), "p%d", level);
		index = fixture_open(name, CA_INDEX_FULL);
		assert_non_null(index);
		check_symbols(index, fixture_path(name));
		check_dwarf(index, fixture_path(name), level > 0 ? 10 : 0);
		assert_int_not_equal(number_of(index, "int outer::sum<int>(std::vector<int, "
						      "std::allocator<int> > const&)"),
				     SIZE_MAX);
		ca_index_close(index);
	}
}

/* Two lambdas of one function are two functions, each named by where it stands. */
static void test_lambdas(void **state)
{
	static const char source[] =
		"volatile int sink;\n"
		"template <class F> inline __attribute__((always_inline)) void on(F f) { f(sink); }\n"
		"int main(int argc, char **) {\n"
		" on([&](int x) __attribute__((always_inline)) { sink = x * argc + 3; });\n"
		" { on([&](int x) __attribute__((always_inline)) { sink = x / argc - 5; }); }\n"
		" return sink; }\n";
	bool first = false, second = false;
	struct ca_index *index;

	(void)state;
	fixture_write("l.cc", source);
	assert_int_equal(fixture_run("%s -g -O2 -o l l.cc", fixture_cxx()), 0);
	index = fixture_open("l", CA_INDEX_FULL);
	assert_non_null(index);
	for (size_t i = 0; i < ca_index_inlines(index); i++) {
		struct ca_index_inline in;

		ca_index_inline_at(index, i, &in);
		first |= !strcmp(in.name, "main()::<lambda:4>::operator()");
		second |= !strcmp(in.name, "main()::<lambda:5>::operator()");
		assert_string_not_equal(in.name, "operator()");
	}
	assert_true(first && second);
	ca_index_close(index);
}

/* strip and objcopy as distributions do, then again with the wrong debug file. */
static void test_separate_debug_file(void **state)
{
	struct ca_index *index;
	static const char *const id[] = { "sha1", "none" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fixture_run("rm -rf .debug && mkdir .debug && "
					     "%s -w -g -O2 -Wl,--build-id=%s -o s a.c b.c && cp s full && "
					     "objcopy --only-keep-debug s .debug/s.debug && strip s && "
					     "objcopy --add-gnu-debuglink=.debug/s.debug s",
					     fixture_cc(), id[i]),
				 0);
		index = fixture_open("s", CA_INDEX_FULL);
		assert_non_null(index);
		assert_string_equal(fixture_warnings, "");
		assert_true(ca_index_has_lines(index));
		check_symbols(index, fixture_path("full"));
		check_dwarf(index, fixture_path("full"), 10);
		ca_index_close(index);
		/* another program's file under that name; the cached index must not be used */
		assert_int_equal(fixture_run("%s -w -g -O1 -Wl,--build-id=%s -o t a.c b.c && "
					     "objcopy --only-keep-debug t .debug/s.debug",
					     fixture_cc(), id[i]),
				 0);
		index = fixture_open("s", CA_INDEX_FULL);
		assert_non_null(index);
		assert_false(ca_index_has_lines(index));
		assert_non_null(strstr(fixture_warnings, "does not belong"));
		ca_index_close(index);
	}
}

/* What a command changes of where debug files lie: has the program lines then, and what is said? */
struct debug_case {
	const char *command, *warning;
	bool lines;
};
static void check_debug_cases(const struct debug_case *cases, size_t n, const char *program)
{
	for (size_t i = 0; i < n; i++) {
		struct ca_index *index;

		assert_int_equal(fixture_run("%s", cases[i].command), 0);
		index = fixture_open(program, CA_INDEX_FULL);
		assert_non_null(index);
		if (ca_index_has_lines(index) != cases[i].lines ||
		    fixture_warned != (*cases[i].warning != 0) || !strstr(fixture_warnings, cases[i].warning))
			fail_msg("%s: lines: %d; %s", cases[i].command, ca_index_has_lines(index),
				 fixture_warnings);
		ca_index_close(index);
	}
}

/* Where a debug file is looked for: beside the program, then in .debug; what does not belong there
 * does not end the search, and the program is not its own debug file. */
static void test_debug_places(void **state)
{
	static const struct debug_case cases[] = {
		{ "true", "", false },
		{ "cp l.good l.debug", "", true },
		{ "rm l.debug; cp l.good .debug/l.debug", "", true },
		{ "cp other l.debug", "/l.debug: does not belong to ", true },
		{ "echo no ELF file > .debug/l.debug; cp l.good l.debug", "", true },
		{ "rm l.debug", "/.debug/l.debug: does not belong to ", false },
		{ "rm .debug/l.debug; ln l l.debug", "", false },
	};

	(void)state;
	assert_int_equal(fixture_run("rm -rf .debug && mkdir .debug && "
				     "%s -w -g -O1 -o other a.c b.c && %s -w -g -O2 -o l a.c b.c && "
				     "objcopy --only-keep-debug l l.good && strip l && cp l.good l.debug && "
				     "objcopy --add-gnu-debuglink=l.debug l && rm l.debug",
				     fixture_cc(), fixture_cc()),
			 0);
	check_debug_cases(cases, CA_COUNT(cases), "l");
}

/* What debuginfod's client has fetched, where it keeps that; an empty file says that there is none. */
static void test_fetched(void **state)
{
	static const struct debug_case cases[] = {
		{ "mkdir -p cache/debuginfod_client/$(cat id) kept/$(cat id)", "", false },
		{ ": > cache/debuginfod_client/$(cat id)/debuginfo", "", false },
		{ "cp f.good kept/$(cat id)/debuginfo", "", true },
		{ "rm kept/*/debuginfo; cp f.good cache/debuginfod_client/$(cat id)/debuginfo", "", true },
		{ "cp other cache/debuginfod_client/$(cat id)/debuginfo", "/debuginfo: does not belong to ",
		  false },
	};

	(void)state;
	setenv("DEBUGINFOD_CACHE_PATH", fixture_path("kept"), 1);
	assert_int_equal(fixture_run("%s -w -g -Wl,--build-id=sha1 -o other b.c a.c -DX && "
				     "%s -w -g -O2 -Wl,--build-id=0x0123456789abcdef -o f a.c b.c && "
				     "objcopy --only-keep-debug f f.good && strip f && "
				     "echo 0123456789abcdef >id",
				     fixture_cc(), fixture_cc()),
			 0);
	check_debug_cases(cases, CA_COUNT(cases), "f");
	unsetenv("DEBUGINFOD_CACHE_PATH");
}

/* No symbols but dynamic ones: the frames give the functions. */
static void test_stripped(void **state)
{
	struct ca_index *full, *index;
	struct ca_index_function wanted, function;
	size_t synthetic = 0;
	char name[32];

	(void)state;
	assert_int_equal(fixture_run("%s -w -g -O2 -o f a.c b.c && cp f g && strip g", fixture_cc()), 0);
	full = fixture_open("f", CA_INDEX_FULL);
	index = fixture_open("g", CA_INDEX_FULL);
	assert_non_null(full);
	assert_non_null(index);
	assert_false(ca_index_has_lines(index));
	for (size_t i = 0; i < ca_index_functions(index); i++) {
		ca_index_function_at(index, i, &function);
		if (!function.synthetic)
			continue;
		synthetic++;
		snprintf(name, sizeof(name), "sub_%llx", (unsigned long long)function.low);
		assert_string_equal(function.name, name);
		assert_true(ca_index_find_function(full, function.low, &wanted));
		assert_int_equal(wanted.low, function.low);
		assert_int_equal(wanted.high, function.high);
	}
	assert_true(synthetic >= 4); /* _start, outer, main, other */
	assert_true(ca_index_rows(index) > 10);
	ca_index_close(full);
	ca_index_close(index);
}

/* Resolvers of IFUNC symbols and PLT entries are no functions of the program. */
static void test_ifunc_and_plt(void **state)
{
	struct ca_index *index;
	struct ca_index_function function;

	(void)state;
	fixture_write("i.c", "#include <stdio.h>\nstatic int one(void) { return 1; }\n"
			     "static void *pick(void) { return one; }\n"
			     "int chosen(void) __attribute__((ifunc(\"pick\")));\n"
			     "int main(void) { return puts(\"\") + chosen(); }\n");
	assert_int_equal(fixture_run("%s -w -O1 -o i i.c", fixture_cc()), 0);
	index = fixture_open("i", CA_INDEX_FULL);
	assert_non_null(index);
	for (size_t i = 0; i < ca_index_functions(index); i++) {
		ca_index_function_at(index, i, &function);
		assert_string_not_equal(function.name, "chosen");
		assert_null(strstr(function.name, "@plt"));
		assert_string_not_equal(function.name, "");
		assert_true(function.low < function.high);
	}
	assert_int_not_equal(number_of(index, "one"), SIZE_MAX);
	ca_index_close(index);
}

/* Symbols that do not say how long they are. */
static void test_unsized(void **state)
{
	struct ca_index *index;
	struct ca_index_function function;

	(void)state;
	fixture_write("z.s", ".globl first, second, main\n.text\n"
			     "first: nop\nnop\n.type second,@function\nsecond: nop\n"
			     ".type main,@function\nmain: xor %eax,%eax\nret\n.size main, .-main\n"
			     ".section .note.GNU-stack,\"\",@progbits\n");
	assert_int_equal(fixture_run("%s -o z z.s", fixture_cc()), 0);
	index = fixture_open("z", CA_INDEX_UNWIND);
	assert_non_null(index);
	assert_int_not_equal(number_of(index, "first"), SIZE_MAX);
	ca_index_function_at(index, number_of(index, "first"), &function);
	assert_int_equal(function.high - function.low, 2);
	ca_index_function_at(index, number_of(index, "second"), &function);
	assert_int_equal(function.high - function.low, 1);
	ca_index_close(index);
}

/* C++, Rust's old and new scheme, and what only looks mangled. */
static void test_names(void **state)
{
	static const char *const names[][2] = {
		{ "_ZN2ns3fooEi", "ns::foo(int)" },
		{ "_ZN1r5inner1P2go17h5d92bda45d007113E", "r::inner::P::go" },
		{ "_RNvCs6GmmlP4bgsG_1r4main", "r::main" },
		{ "_Zebra", "_Zebra" },
		{ "_ZN2ns3fooEi.part.0", "ns::foo(int) [clone .part.0]" },
	};
	struct ca_index *index;
	struct ca_index_function function;
	FILE *file = fopen(fixture_path("names.s"), "w");

	(void)state;
	assert_non_null(file);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		fprintf(file, ".globl %s\n.type %s,@function\n%s: ret\n.size %s, 1\n", names[i][0],
			names[i][0], names[i][0], names[i][0]);
	fprintf(file, ".section .note.GNU-stack,\"\",@progbits\n");
	fclose(file);
	assert_int_equal(fixture_run("%s -shared -o names.so names.s", fixture_cc()), 0);
	index = fixture_open("names.so", CA_INDEX_UNWIND);
	assert_non_null(index);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t number = number_of(index, names[i][1]);
		if (number == SIZE_MAX)
			fail_msg("no %s", names[i][1]);
		ca_index_function_at(index, number, &function);
		assert_string_equal(function.linkage, names[i][0]);
	}
	ca_index_close(index);
}

static void test_missing_dwo(void **state)
{
	struct ca_index *index;

	(void)state;
	assert_int_equal(fixture_run("%s -w -gdwarf-5 -gsplit-dwarf -O2 -o w a.c b.c && "
				     "for f in *.dwo; do mv $f $f.away; done",
				     fixture_cc()),
			 0);
	index = fixture_open("w", CA_INDEX_FULL);
	assert_non_null(index);
	assert_non_null(strstr(fixture_warnings, ".dwo"));
	assert_true(ca_index_has_lines(index));
	assert_int_equal(ca_index_inlines(index), 0);
	ca_index_close(index);
	/* once it is back, what was found without it does not count */
	assert_int_equal(fixture_run("for f in *.dwo; do :; done; "
				     "for f in *.away; do mv $f ${f%%.away}; done"),
			 0);
	index = fixture_open("w", CA_INDEX_FULL);
	assert_non_null(index);
	assert_string_equal(fixture_warnings, "");
	assert_true(ca_index_inlines(index) > 0);
	ca_index_close(index);
}

static void test_package(void **state)
{
	unsigned open_before = open_files();
	struct ca_index *index;

	(void)state;
	for (int version = 4; version <= 5; version++) {
		assert_int_equal(fixture_run("rm -f *.dwo; "
					     "%s -w -gdwarf-%d -gsplit-dwarf -O2 -o y%d a.c b.c",
					     fixture_cc(), version, version),
				 0);
		/* binutils' dwp knows version 4, LLVM's both */
		if (fixture_run("(llvm-dwp -e y%d -o y%d.dwp || dwp -e y%d -o y%d.dwp) 2>log", version,
				version, version, version) != 0) {
			miss("no dwp for version %d", version);
			continue;
		}
		char name[16];
		snprintf(name, sizeof(name), "y%d", version);
		assert_int_equal(fixture_run("mkdir -p away && mv *.dwo away"), 0);
		index = fixture_open(name, CA_INDEX_FULL);
		assert_non_null(index);
		assert_string_equal(fixture_warnings, "");
		assert_true(ca_index_inlines(index) > 0);
		check_symbols(index, fixture_path(name));
		/* libdw 0.188 reads no packages: give it the pieces */
		assert_int_equal(fixture_run("mv away/*.dwo ."), 0);
		check_dwarf(index, fixture_path(name), 10);
		ca_index_close(index);
		/* there may be thousands of units in a package */
		assert_int_equal(open_files(), open_before);
	}
}

static void test_probes(void **state)
{
	struct ca_index *index;
	struct ca_index_probe probe;
	struct ca_index_function function;

	(void)state;
	fixture_write("n.c",
		      "__attribute__((noinline)) void work(int x) { __asm__ volatile(\n"
		      "\"990: nop\\n.pushsection .note.stapsdt,\\\"?\\\",\\\"note\\\"\\n.balign 4\\n\"\n"
		      "\".4byte 992f-991f,994f-993f,3\\n991: .asciz \\\"stapsdt\\\"\\n992: .balign "
		      "4\\n\"\n"
		      "\"993: .8byte 990b\\n.8byte _.stapsdt.base\\n.8byte 0\\n\"\n"
		      "\".asciz \\\"causal\\\"\\n.asciz \\\"done\\\"\\n.asciz \\\"-4@%0\\\"\\n\"\n"
		      "\"994: .balign 4\\n.popsection\\n\"\n"
		      "\".ifndef _.stapsdt.base\\n.pushsection "
		      ".stapsdt.base,\\\"aG\\\",\\\"progbits\\\",\"\n"
		      "\".stapsdt.base,comdat\\n.weak _.stapsdt.base\\n.hidden _.stapsdt.base\\n\"\n"
		      "\"_.stapsdt.base: .space 1\\n.size _.stapsdt.base,1\\n.popsection\\n.endif\\n\"\n"
		      ":: \"r\"(x)); }\nint main(int c, char **v) { (void)v; work(c); return 0; }\n");
	assert_int_equal(fixture_run("%s -w -O1 -o n n.c", fixture_cc()), 0);
	index = fixture_open("n", CA_INDEX_UNWIND);
	assert_non_null(index);
	assert_int_equal(ca_index_probes(index), 1);
	ca_index_probe_at(index, 0, &probe);
	assert_string_equal(probe.provider, "causal");
	assert_string_equal(probe.name, "done");
	assert_int_equal(strncmp(probe.arguments, "-4@%", 4), 0);
	assert_int_equal(probe.semaphore, 0);
	assert_true(ca_index_find_function(index, probe.address, &function));
	assert_string_equal(function.name, "work");
	ca_index_close(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_variants),
		cmocka_unit_test(test_clang),
		cmocka_unit_test(test_lambdas),
		cmocka_unit_test(test_cplusplus),
		cmocka_unit_test(test_separate_debug_file),
		cmocka_unit_test(test_debug_places),
		cmocka_unit_test(test_fetched),
		cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_ifunc_and_plt),
		cmocka_unit_test(test_unsized),
		cmocka_unit_test(test_missing_dwo),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_package),
		cmocka_unit_test(test_probes),
	};

	int failed = cmocka_run_group_tests(tests, make_sources, fixture_remove);

	if (failed || !*missing)
		return failed;
	fprintf(stderr, "SKIP: not all could be tested here: %s\n", missing);
	return 77;
}
