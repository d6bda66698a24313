/* SPDX-License-Identifier: MIT */
/* An ELF file: its index with DWARF, CFI, symbols and notes, and plans for its first functions. Not for: the
 * list of needed libraries, which runs the loader that the file names. */
#include "binary/index/index.h"
#include "binary/plan/plan.h"
#include "binary/plan/text.h"
#include "tests/fuzz/fuzz.h"
#include <stdlib.h>

enum { FUNCTIONS = 16, RANGES = 4, SITES = 64, SPINS = 8 };

static void plan(struct ca_text *text, const struct ca_index *index, size_t i)
{
	static struct ca_site site[SITES];
	struct ca_spin spin[SPINS];
	struct ca_index_span span[RANGES];
	struct ca_range range[RANGES];
	struct ca_err err;
	bool self;
	size_t n = ca_index_function_ranges(index, i, span, RANGES), count;

	if (n > RANGES)
		n = RANGES;
	for (size_t r = 0; r < n; r++)
		range[r] = (struct ca_range){ .low = span[r].low, .high = span[r].high };
	ca_plan_function(text, 0, range, n, site, SITES, &count, &err);
	ca_plan_line(text, 0, range, n, site, SITES, &count, &self, &err);
	ca_plan_edges(text, 0, range, n, site, SITES, &count, &err);
	ca_plan_count(text, 0, range[0].low, 0, site, &err);
	count = SPINS;
	ca_plan_meetings(text, 0, site, SITES, spin, &count);
	ca_plan_store(text, 0, range[0].low + 8, site, &err);
}

static void warn(void *context, const char *text)
{
	(void)context;
	ca_fuzz_touch(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[CA_FUZZ_PATH];
	struct ca_index *index;
	struct ca_text *text;
	struct ca_err err;

	/* no cache: it tells files apart by build-id and size */
	setenv("XDG_CACHE_HOME", "/dev/null/none", 1);
	ca_fuzz_file(data, size, path);
	if (ca_index_open(&index, path, CA_INDEX_FULL, warn, NULL, &err) != CA_OK) {
		ca_fuzz_touch(err.text);
		return 0;
	}
	if (ca_text_open(&text, path, &err) == CA_OK) {
		for (size_t i = 0; i < ca_index_functions(index) && i < FUNCTIONS; i++)
			plan(text, index, i);
		ca_text_close(text);
	}
	ca_index_close(index);
	return 0;
}
