/* SPDX-License-Identifier: MIT */
/* What an index knows of a text: apart from it, since libcausal-code has no index. Driver's process. */
#include "binary/index/index.h"
#include "binary/plan/text.h"
#include <stdlib.h>

void ca_text_learn(struct ca_text *text, const struct ca_index *index)
{
	size_t n = ca_index_functions(index);
	struct ca_text_function *list = calloc(n + 1, sizeof *list);

	for (size_t i = 0; i < n && list; i++) {
		struct ca_index_function f;

		ca_index_function_at(index, i, &f);
		list[i] = (struct ca_text_function){
			.low = f.low, .high = f.high, .part = f.part, .nameless = f.synthetic
		};
	}
	if (list)
		ca_text_add(text, list, n);
	free(list);
}
