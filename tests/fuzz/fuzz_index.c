/* SPDX-License-Identifier: MIT */
/* An index file, as the runtime and the conductor read it: wrong answers are fine, wild accesses are not. */
#include "binary/index/index_file.h"
#include "tests/fuzz/fuzz.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, size)   ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif

enum { PAGE = 4096, MOST = 512 };

static void look_up(const struct ca_index *index, uint64_t address)
{
	struct ca_index_function function;
	struct ca_index_inline inlined[4];
	struct ca_index_span span[4];
	struct ca_index_line line;
	size_t i = ca_index_find_function_number(index, address);
	const struct ca_unwind_row *row = ca_index_find_row(index, address);

	if (row && row->kind > CA_UNWIND_SP8)
		ca_fuzz_touch("");
	if (i != SIZE_MAX) {
		ca_index_function_at(index, i, &function);
		ca_index_function_ranges(index, i, span, 4);
		ca_fuzz_touch(function.name);
		ca_fuzz_touch(function.linkage);
		ca_fuzz_touch(function.file);
	}
	if (ca_index_find_line(index, address, &line))
		ca_fuzz_touch(line.file);
	for (size_t n = ca_index_find_inlines(index, address, inlined, 4); n-- > 0;) {
		ca_fuzz_touch(inlined[n].name);
		ca_fuzz_touch(inlined[n].file);
		ca_fuzz_touch(inlined[n].call_file);
	}
}

static void read_all(const struct ca_index *index)
{
	uint64_t base = ca_index_base(index);

	ca_fuzz_touch(ca_index_binary(index));
	for (size_t i = 0; i < ca_index_functions(index) && i < MOST; i++) {
		struct ca_index_function function;
		ca_index_function_at(index, i, &function);
		look_up(index, function.low);
		look_up(index, function.high);
	}
	for (size_t i = 0; i < ca_index_lines(index) && i < MOST; i++) {
		struct ca_index_line line;
		ca_index_line_at(index, i, &line);
		look_up(index, line.low);
	}
	for (size_t i = 0; i < ca_index_inlines(index) && i < MOST; i++) {
		struct ca_index_inline inlined;
		ca_index_inline_at(index, i, &inlined);
		look_up(index, inlined.low);
	}
	for (size_t i = 0; i < ca_index_rows(index) && i < MOST; i++)
		look_up(index, base + ca_index_row_at(index, i)->address);
	for (size_t i = 0; i < ca_index_probes(index) && i < MOST; i++) {
		struct ca_index_probe probe;
		ca_index_probe_at(index, i, &probe);
		ca_fuzz_touch(probe.provider);
		ca_fuzz_touch(probe.name);
		ca_fuzz_touch(probe.arguments);
	}
	for (unsigned i = 0; i < 33; i++) /* also what no record names */
		look_up(index, base + (1ull << i) - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[CA_FUZZ_PATH];
	struct ca_index *index;

	ca_fuzz_file(data, size, path);
	if (ca_index_map(&index, path) != CA_OK)
		return 0;
	/* the mapping goes on to the end of the page, and nothing may be read there */
	const char *file = (const char *)index->header;
	size_t rest = (PAGE - size % PAGE) % PAGE;
	ASAN_POISON_MEMORY_REGION(file + size, rest);
	read_all(index);
	ASAN_UNPOISON_MEMORY_REGION(file + size, rest);
	ca_index_close(index);
	return 0;
}
