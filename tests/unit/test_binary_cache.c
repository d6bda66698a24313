/* SPDX-License-Identifier: MIT */
/* The index file and its cache: hits, damage of every kind, writers at the same time, places
 * that cannot be written, and binaries whose debug information is damaged. */
#include "tests/unit/unit.h"

#include "binary/index/cache.h"
#include "tests/unit/binary_fixture.h"
#include <dirent.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char source[] =
	"#include <stdlib.h>\n"
	"static inline __attribute__((always_inline)) int twice(int x) { return x * 2; }\n"
	"int work(int n) { int s = 0; for (int i = 0; i < n; i++) s += twice(rand()); return s; }\n"
	"int main(int argc, char **argv) { (void)argv; return work(argc); }\n";

static int make_program(void **state)
{
	if (fixture_make(state) != 0)
		return -1;
	fixture_write("a.c", source);
	fixture_write("b.c", "int second(int x) { return x / 3; }\n");
	fixture_write("c.c", "int third(int x) { return x % 3; }\n");
	return fixture_run("%s -w -g -O2 -o a a.c b.c c.c", fixture_cc());
}

static char *read_all(const char *path, size_t *size)
{
	FILE *file = fopen(path, "r");
	char *data;

	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	*size = (size_t)ftell(file);
	rewind(file);
	data = malloc(*size);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, *size, file), *size);
	fclose(file);
	return data;
}

static void write_all(const char *path, const char *data, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static unsigned count_files(const char *directory)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	unsigned n = 0;

	while (dir && (entry = readdir(dir)))
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	if (dir)
		closedir(dir);
	return n;
}

/* Everything that a reader can ask for; a wild access shows under the sanitizers, or dies.
 * Returns a number made of the answers. */
static size_t use_everything(const struct ca_index *index)
{
	struct ca_index_function function;
	struct ca_index_line line;
	struct ca_index_inline inlined, chain[16];
	struct ca_index_probe probe;
	struct ca_index_span span[4];
	size_t length = 0;

	for (size_t i = 0; i < ca_index_functions(index); i++) {
		ca_index_function_at(index, i, &function);
		length += strlen(function.name) + strlen(function.linkage) + strlen(function.file);
		ca_index_function_ranges(index, i, span, 4);
	}
	for (size_t i = 0; i < ca_index_lines(index); i++) {
		ca_index_line_at(index, i, &line);
		length += strlen(line.file);
	}
	for (size_t i = 0; i < ca_index_inlines(index); i++) {
		ca_index_inline_at(index, i, &inlined);
		length += strlen(inlined.name) + strlen(inlined.file) + strlen(inlined.call_file);
	}
	for (size_t i = 0; i < ca_index_probes(index); i++) {
		ca_index_probe_at(index, i, &probe);
		length += strlen(probe.name) + strlen(probe.provider) + strlen(probe.arguments);
	}
	for (uint64_t a = ca_index_base(index); a < ca_index_base(index) + 0x5000; a += 61) {
		const struct ca_unwind_row *row = ca_index_find_row(index, a);
		length += row ? row->kind : 0;
		if (ca_index_find_function(index, a, &function))
			length += strlen(function.name);
		ca_index_find_line(index, a, &line);
		length += ca_index_find_inlines(index, a, chain, 16);
	}
	return length;
}

/* What holds for every index that was built, whatever the program looked like. */
static void check_order(const struct ca_index *index)
{
	struct ca_index_function function, found;
	struct ca_index_line line;
	uint64_t before = 0;

	for (size_t i = 0; i < ca_index_functions(index); i++) {
		ca_index_function_at(index, i, &function);
		assert_true(function.low >= before && function.low < function.high);
		assert_string_not_equal(function.name, "");
		assert_true(ca_index_find_function(index, function.low, &found));
		assert_int_equal(found.low, function.low);
		before = function.low;
	}
	before = 0;
	for (size_t i = 0; i < ca_index_lines(index); i++) {
		ca_index_line_at(index, i, &line);
		assert_true(line.low >= before && line.low < line.high && line.line > 0);
		before = line.high;
	}
	for (size_t i = 1; i < ca_index_rows(index); i++)
		assert_true(ca_index_row_at(index, i - 1)->address < ca_index_row_at(index, i)->address);
}

/* All functions of `good` are in `index` under their symbols. */
static void check_symbols_kept(const struct ca_index *index, const struct ca_index *good)
{
	struct ca_index_function wanted, function;

	for (size_t i = 0; i < ca_index_functions(good); i++) {
		ca_index_function_at(good, i, &wanted);
		if (!ca_index_find_function(index, wanted.low, &function) || function.low != wanted.low ||
		    strcmp(function.linkage, wanted.linkage) != 0)
			fail_msg("%s is lost", wanted.linkage);
	}
}

static void test_hit(void **state)
{
	struct ca_index *first = fixture_open("a", CA_INDEX_FULL), *second, *mapped;
	struct stat before, after;

	(void)state;
	assert_non_null(first);
	assert_string_equal(ca_index_binary(first), fixture_path("a"));
	assert_int_equal(stat(ca_index_path(first), &before), 0);
	second = fixture_open("a", CA_INDEX_FULL);
	assert_non_null(second);
	assert_string_equal(ca_index_path(first), ca_index_path(second));
	assert_int_equal(stat(ca_index_path(second), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_mode & 0777, 0600);
	/* a full one serves those who want less */
	ca_index_close(second);
	second = fixture_open("a", CA_INDEX_UNWIND);
	assert_non_null(second);
	assert_string_equal(ca_index_path(first), ca_index_path(second));
	assert_int_equal(ca_index_map(&mapped, ca_index_path(first)), CA_OK);
	assert_int_equal(ca_index_rows(mapped), ca_index_rows(first));
	check_order(mapped);
	assert_int_equal(use_everything(mapped), use_everything(first));
	ca_index_close(mapped);
	ca_index_close(second);
	ca_index_close(first);
	assert_int_equal(count_files(fixture_path("cache/causal")), 1);
}

/* A name begins with all of the build-id and nothing else, however long that is. */
static void test_name_of_build_id(void **state)
{
	static const struct {
		size_t size;
		uint8_t id[4];
		const char *text;
	} cases[] = {
		{ 1, { 0xa5 }, "a5-" },
		{ 1, { 0xa5, 1, 2, 3 }, "a5-" },
		{ 2, { 0x00, 0x0f }, "000f-" },
		{ 3, { 1, 0x20, 0xff }, "0120ff-" },
		{ 4, { 9, 8, 7, 6 }, "09080706-" },
	};
	struct ca_object object = { .fd = open(fixture_path("a"), O_RDONLY | O_CLOEXEC) };
	char name[256];

	(void)state;
	assert_true(object.fd >= 0);
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		memcpy(object.build_id, cases[i].id, sizeof cases[i].id);
		object.build_id_size = cases[i].size;
		assert_int_equal(ca_cache_name(&object, CA_INDEX_FULL, name, sizeof name), CA_OK);
		name[strlen(cases[i].text)] = '\0';
		assert_string_equal(name, cases[i].text);
	}
	object.build_id_size = sizeof object.build_id;
	memset(object.build_id, 0x11, sizeof object.build_id);
	assert_int_equal(ca_cache_name(&object, CA_INDEX_FULL, name, sizeof name), CA_OK);
	assert_int_equal(strspn(name, "1"), 2 * sizeof object.build_id);
	assert_int_equal(name[2 * sizeof object.build_id], '-');
	close(object.fd);
}

/* strip keeps the build-id, but not the functions. */
static void test_stripped_twin(void **state)
{
	struct ca_index *full = fixture_open("a", CA_INDEX_FULL), *stripped;

	(void)state;
	assert_int_equal(fixture_run("cp a a2 && strip a2"), 0);
	stripped = fixture_open("a2", CA_INDEX_FULL);
	assert_non_null(full);
	assert_non_null(stripped);
	assert_true(ca_index_lines(full) > 0);
	assert_int_equal(ca_index_lines(stripped), 0);
	ca_index_close(full);
	ca_index_close(stripped);
}

static void test_no_build_id(void **state)
{
	struct ca_index *first, *second;

	(void)state;
	assert_int_equal(fixture_run("%s -w -g -Wl,--build-id=none -o x a.c", fixture_cc()), 0);
	first = fixture_open("x", CA_INDEX_FULL);
	assert_int_equal(
		fixture_run("sleep 0.01; %s -w -g -DX -Wl,--build-id=none -o x a.c b.c", fixture_cc()), 0);
	second = fixture_open("x", CA_INDEX_FULL);
	assert_non_null(first);
	assert_non_null(second);
	assert_string_not_equal(ca_index_path(first), ca_index_path(second));
	assert_true(ca_index_functions(second) > ca_index_functions(first));
	ca_index_close(first);
	ca_index_close(second);
}

/* Truncated anywhere: never mapped; opened: built anew. */
static void test_torn(void **state)
{
	struct ca_index *index = fixture_open("a", CA_INDEX_FULL), *mapped;
	char path[4096];
	size_t size, functions;
	char *data;

	(void)state;
	assert_non_null(index);
	functions = ca_index_functions(index);
	snprintf(path, sizeof(path), "%s", ca_index_path(index));
	ca_index_close(index);
	data = read_all(path, &size);
	for (size_t cut = 0; cut < size; cut += cut < 512 ? 7 : 997) {
		write_all(path, data, cut);
		assert_int_not_equal(ca_index_map(&mapped, path), CA_OK);
	}
	index = fixture_open("a", CA_INDEX_FULL);
	assert_non_null(index);
	assert_int_equal(ca_index_functions(index), functions);
	ca_index_close(index);
	free(data);
}

/* Flipped bytes: ca_index_open notices and rebuilds; ca_index_map, which does not read the whole
 * file, may map it, and then nothing that it is asked may crash. */
static void test_damaged(void **state)
{
	struct ca_index *index = fixture_open("a", CA_INDEX_FULL), *mapped;
	char path[4096], copy[4096];
	size_t size, good;
	char *data;
	unsigned mappable = 0;

	(void)state;
	assert_non_null(index);
	good = ca_index_functions(index);
	snprintf(path, sizeof(path), "%s", ca_index_path(index));
	ca_index_close(index);
	data = read_all(path, &size);
	snprintf(copy, sizeof(copy), "%s", fixture_path("damaged.idx"));
	srand(1);
	for (int round = 0; round < 3000; round++) {
		/* the first rounds go through the header, byte by byte */
		size_t n = round < 250 ? 1 : 1 + (size_t)rand() % 50, at[50];
		char old[50];
		for (size_t i = 0; i < n; i++) {
			at[i] = round < 250 ? (size_t)round : 256 + (size_t)rand() % (size - 256);
			old[i] = data[at[i]];
			data[at[i]] = (char)(rand() % 3 ? rand() : 0xff);
		}
		write_all(copy, data, size);
		if (ca_index_map(&mapped, copy) == CA_OK) {
			mappable++;
			use_everything(mapped);
			ca_index_close(mapped);
		}
		if (round % 100 == 99) {
			write_all(path, data, size);
			index = fixture_open("a", CA_INDEX_FULL);
			assert_non_null(index);
			assert_int_equal(ca_index_functions(index), good);
			ca_index_close(index);
		}
		for (size_t i = n; i-- > 0;)
			data[at[i]] = old[i];
	}
	assert_true(mappable > 500);
	free(data);
}

/* Many at once, on an empty cache: all get the same answer, nothing is left behind. */
static void test_concurrent(void **state)
{
	enum { CHILDREN = 8 };
	pid_t child[CHILDREN];
	int status;

	(void)state;
	assert_int_equal(fixture_run("rm -rf cache"), 0);
	for (int i = 0; i < CHILDREN; i++) {
		child[i] = fork();
		if (child[i] == 0) {
			int bad = 0;
			for (int k = 0; k < 5; k++) {
				struct ca_index *index = fixture_open("a", CA_INDEX_FULL);
				struct ca_index_function f;
				bad |= !index || ca_index_lines(index) == 0 || fixture_warned != 0;
				for (size_t n = 0; index && n < ca_index_functions(index); n++)
					ca_index_function_at(index, n, &f);
				ca_index_close(index);
			}
			_exit(bad);
		}
	}
	for (int i = 0; i < CHILDREN; i++) {
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(count_files(fixture_path("cache/causal")), 1);
}

/* A cache directory that is none: a warning, and an index all the same, until it is closed. */
static void test_no_cache(void **state)
{
	struct ca_index *index, *mapped;
	char path[4096];

	(void)state;
	fixture_write("file", "");
	setenv("XDG_CACHE_HOME", fixture_path("file"), 1);
	index = fixture_open("a", CA_INDEX_FULL);
	setenv("XDG_CACHE_HOME", fixture_path("cache"), 1);
	assert_non_null(index);
	assert_int_equal(fixture_warned, 1);
	assert_non_null(strstr(fixture_warnings, "file/causal"));
	snprintf(path, sizeof(path), "%s", ca_index_path(index));
	assert_int_equal(ca_index_map(&mapped, path), CA_OK);
	ca_index_close(mapped);
	ca_index_close(index);
	assert_int_not_equal(access(path, F_OK), 0);
}

static void cache_is(const char *home, const char *expected)
{
	char directory[CA_CACHE_PATH], own[64];
	struct ca_err err;

	snprintf(own, sizeof own, "/tmp/causal-%lu", (unsigned long)geteuid());
	if (home)
		setenv("HOME", home, 1);
	else
		unsetenv("HOME");
	assert_int_equal(ca_cache_directory(directory, &err), CA_OK);
	assert_string_equal(directory, expected ? expected : own);
	assert_int_equal(access(directory, W_OK), 0);
	assert_int_equal(!*err.text, !!expected); /* it is told where else */
}

/* Without XDG_CACHE_HOME: in the home directory, which is not made. */
static void test_homes(void **state)
{
	char home[4096], inside[4096 + 16], nowhere[4096], file[4096];
	const char *was = getenv("HOME");
	char *kept = was ? strdup(was) : NULL;

	(void)state;
	snprintf(home, sizeof home, "%s", fixture_path("home"));
	snprintf(inside, sizeof inside, "%s/.cache/causal", home);
	snprintf(nowhere, sizeof nowhere, "%s", fixture_path("nowhere"));
	fixture_write("file", "");
	snprintf(file, sizeof file, "%s", fixture_path("file"));
	assert_int_equal(mkdir(home, 0700), 0);
	unsetenv("XDG_CACHE_HOME");
	cache_is(home, inside);
	cache_is(nowhere, NULL);
	assert_int_not_equal(access(nowhere, F_OK), 0);
	cache_is(file, NULL);
	cache_is("relative", NULL);
	cache_is(NULL, NULL);
	setenv("XDG_CACHE_HOME", fixture_path("cache"), 1);
	if (kept)
		setenv("HOME", kept, 1);
	free(kept);
}

static void test_bad_input(void **state)
{
	struct ca_index *index = NULL;
	struct ca_err err;
	static const struct {
		const char *name, *text;
		enum ca_status status;
	} cases[] = {
		{ "missing", NULL, CA_ERR_NOT_FOUND },
		{ "empty", "", CA_ERR_FORMAT },
		{ "script", "#!/bin/sh\nexit 0\n", CA_ERR_FORMAT },
		{ "cut", "\177ELF\2\1\1", CA_ERR_FORMAT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (cases[i].text)
			fixture_write(cases[i].name, cases[i].text);
		assert_int_equal(
			ca_index_open(&index, fixture_path(cases[i].name), CA_INDEX_FULL, NULL, NULL, &err),
			cases[i].status);
		assert_non_null(strstr(err.text, cases[i].name));
	}
	assert_int_equal(fixture_run("%s -c -o a.o a.c", fixture_cc()), 0);
	assert_int_equal(ca_index_open(&index, fixture_path("a.o"), CA_INDEX_FULL, NULL, NULL, &err),
			 CA_ERR_FORMAT);
	assert_int_equal(ca_index_map(&index, fixture_path("missing")), CA_ERR_NOT_FOUND);
}

/* Where a section of the program lies in its file. */
static void find_section(const char *path, const char *name, size_t *offset, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;

	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	*size = 0;
	while ((scn = elf_nextscn(elf, scn))) {
		assert_non_null(gelf_getshdr(scn, &shdr));
		if (strcmp(elf_strptr(elf, names, shdr.sh_name), name) == 0) {
			*offset = shdr.sh_offset;
			*size = shdr.sh_size;
		}
	}
	elf_end(elf);
	close(fd);
	assert_true(*size > 0);
}

static bool has_line_of(const struct ca_index *index, const char *file)
{
	struct ca_index_line line;

	for (size_t i = 0; i < ca_index_lines(index); i++) {
		ca_index_line_at(index, i, &line);
		if (strstr(line.file, file))
			return true;
	}
	return false;
}

static bool has_file_of(const struct ca_index *index, const char *name)
{
	struct ca_index_function function;

	for (size_t i = 0; i < ca_index_functions(index); i++) {
		ca_index_function_at(index, i, &function);
		if (strcmp(function.name, name) == 0)
			return function.line > 0;
	}
	return false;
}

/* The second of three units is damaged: in its version, its abbreviations' offset, its line
 * table. It costs that and one warning. */
static void test_broken_unit(void **state)
{
	size_t offset, size, lines, lines_size, bytes;
	char *data = read_all(fixture_path("a"), &bytes);
	uint32_t length;
	static const struct {
		size_t at;
		char value;
		bool in_lines;
	} cases[] = { { 4, 99, false }, { 11, 0x7f, false }, { 4, 77, true } };

	(void)state;
	find_section(fixture_path("a"), ".debug_info", &offset, &size);
	find_section(fixture_path("a"), ".debug_line", &lines, &lines_size);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t unit = cases[i].in_lines ? lines : offset;
		memcpy(&length, data + unit, 4);
		unit += 4 + length;
		char old = data[unit + cases[i].at];
		data[unit + cases[i].at] = cases[i].value;
		write_all(fixture_path("broken"), data, bytes);
		data[unit + cases[i].at] = old;
		assert_int_equal(fixture_run("chmod +x broken; rm -rf cache"), 0);
		struct ca_index *index = fixture_open("broken", CA_INDEX_FULL);
		assert_non_null(index);
		if (fixture_warned != 1)
			fail_msg("case %zu: warnings: %s", i, fixture_warnings);
		assert_non_null(strstr(fixture_warnings, "broken"));
		assert_true(has_file_of(index, "work") && has_file_of(index, "third"));
		assert_true(has_line_of(index, "a.c") && has_line_of(index, "c.c"));
		assert_false(has_line_of(index, "b.c"));
		/* its symbol is still there */
		bool found = false;
		struct ca_index_function function;
		for (size_t k = 0; k < ca_index_functions(index); k++) {
			ca_index_function_at(index, k, &function);
			found |= strcmp(function.name, "second") == 0;
		}
		assert_true(found);
		ca_index_close(index);
		/* a cached index tells again */
		index = fixture_open("broken", CA_INDEX_FULL);
		assert_int_equal(fixture_warned, 1);
		ca_index_close(index);
	}
	free(data);
}

/* Random damage to the program's own sections: no crash, no hang, and an index that is in order,
 * or a reason. What the damage did not touch is in it. */
static void test_damaged_program(void **state)
{
	static const struct {
		const char *name;
		bool symbols; /* survive */
	} section[] = {
		{ ".debug_info", true },     { ".debug_abbrev", true }, { ".debug_line", true },
		{ ".debug_rnglists", true }, { ".debug_str", true },    { ".eh_frame", true },
		{ ".symtab", false },
	};
	size_t offset, size, bytes;
	struct ca_index *index, *good;
	unsigned different = 0;
	char *data;

	(void)state;
	assert_int_equal(fixture_run("%s -w -gdwarf-5 -O2 -o a5 a.c b.c c.c", fixture_cc()), 0);
	data = read_all(fixture_path("a5"), &bytes);
	good = fixture_open("a5", CA_INDEX_FULL);
	assert_non_null(good);
	srand(2);
	for (size_t s = 0; s < CA_COUNT(section); s++) {
		find_section(fixture_path("a5"), section[s].name, &offset, &size);
		for (int round = 0; round < 40; round++) {
			char *copy = malloc(bytes);
			assert_non_null(copy);
			memcpy(copy, data, bytes);
			for (int i = 0; i < 1 + round / 4; i++)
				copy[offset + (size_t)rand() % size] = (char)rand();
			write_all(fixture_path("hurt"), copy, bytes);
			free(copy);
			assert_int_equal(fixture_run("rm -rf cache"), 0);
			index = fixture_open("hurt", CA_INDEX_FULL);
			assert_non_null(index);
			check_order(index);
			if (section[s].symbols)
				check_symbols_kept(index, good);
			different += use_everything(index) != use_everything(good);
			ca_index_close(index);
		}
	}
	assert_true(different > 40); /* the damage was some */
	ca_index_close(good);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_name_of_build_id),
		cmocka_unit_test(test_hit),
		cmocka_unit_test(test_stripped_twin),
		cmocka_unit_test(test_no_build_id),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_concurrent),
		cmocka_unit_test(test_no_cache),
		cmocka_unit_test(test_bad_input),
		cmocka_unit_test(test_homes),
		cmocka_unit_test(test_bad_input),
		cmocka_unit_test(test_broken_unit),
		cmocka_unit_test(test_damaged_program),
	};

	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, make_program, fixture_remove);
}
