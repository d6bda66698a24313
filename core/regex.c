/* SPDX-License-Identifier: MIT */
/* Regular expressions that end; see regex.h. */
#include "core/regex.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 30000 }; /* characters that its repetitions may stand for: some 50 MB in libc */

/* libc writes out what is repeated: (a{100}){100} is 10,000 times an a, and each + of a++++ doubles what stands
 * before it. All repetitions of more than one character count as if one lay within the other. */
static bool is_small(const char *text)
{
	unsigned long size = strlen(text);

	for (const char *at = text; *at && size <= MOST; at++) {
		char *end = NULL;
		unsigned long n;

		if (*at == '\\' && at[1]) {
			at++;
			continue;
		}
		if (*at == '+' && at > text && strchr("+*?})", at[-1]))
			size *= 2;
		if (*at != '{')
			continue;
		n = strtoul(at + 1, &end, 10);
		if (*end == ',' && end[1] >= '0' && end[1] <= '9')
			n = strtoul(end + 1, NULL, 10);
		if (n > MOST)
			return false;
		size *= n ? n : 1;
	}
	return size <= MOST;
}

int ca_regex_compile(regex_t *regex, const char *text)
{
	return is_small(text) ? regcomp(regex, text, REG_EXTENDED | REG_NOSUB) : REG_BADBR;
}
