/* SPDX-License-Identifier: MIT */
/* binary/index/dwarf.c: the order of inlined copies in an index. What the compiler's output makes of it
 * is in test_binary_index.c. */
#include "binary/index/dwarf.c"
#include "tests/unit/unit.h"

enum { MOST = 6 };

/* Numbers name the records. Those behind the first n are in the array, but not in the vector. */
static void test_order(void **state)
{
	static const struct {
		struct ca_inlined in[MOST];
		size_t n, used;
		const char *order;
	} cases[] = {
#define IN(low_, high_, depth_, name_) { .low = low_, .high = high_, .depth = depth_, .name = name_ }
		{ { { 0 } }, 0, 0, "" },
		{ { IN(1, 2, 0, 1) }, 1, 1, "1" },
		{ { IN(5, 6, 0, 1), IN(3, 4, 0, 2), IN(1, 2, 0, 3) }, 3, 3, "321" },
		/* together: the longest first, then the outermost */
		{ { IN(1, 4, 1, 1), IN(1, 9, 0, 2) }, 2, 2, "21" },
		{ { IN(1, 4, 2, 1), IN(1, 4, 0, 2), IN(1, 4, 1, 3) }, 3, 3, "231" },
		{ { IN(2, 4, 1, 1), IN(2, 9, 0, 2), IN(1, 3, 1, 3), IN(1, 3, 0, 4) }, 4, 4, "4321" },
		{ { IN(1, 2, 0, 1), IN(2, 4, 1, 2), IN(2, 9, 0, 3) }, 3, 3, "132" },
		/* what lies behind the last is none of them, even if it starts with it */
		{ { IN(1, 4, 0, 1), IN(1, 9, 0, 2) }, 2, 1, "1" },
		{ { IN(1, 3, 0, 1), IN(1, 4, 0, 2), IN(1, 9, 0, 3) }, 3, 2, "21" },
		{ { IN(1, 3, 0, 1), IN(2, 4, 0, 2), IN(2, 9, 0, 3) }, 3, 2, "12" },
#undef IN
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_vec inlines = { .size = sizeof(struct ca_inlined) };
		char order[MOST + 1] = "";

		assert_true(ca_vec_add(&inlines, cases[i].in, cases[i].n));
		inlines.n = cases[i].used;
		sort_inlines(&inlines);
		for (size_t k = 0; k < inlines.n; k++)
			order[k] = (char)('0' + ((struct ca_inlined *)inlines.at)[k].name);
		assert_string_equal(order, cases[i].order);
		ca_vec_free(&inlines);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_order) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
