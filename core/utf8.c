/* SPDX-License-Identifier: MIT */
/* UTF-8; see utf8.h. */
#include "core/utf8.h"

size_t ca_utf8_length(const unsigned char *s)
{
	size_t n = *s < 0x80                 ? 1
		   : *s >= 0xc2 && *s < 0xe0 ? 2
		   : *s >= 0xe0 && *s < 0xf0 ? 3
		   : *s >= 0xf0 && *s < 0xf5 ? 4
					     : 0;

	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if (n == 3 && ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] >= 0xa0)))
		return 0;
	if (n == 4 && ((*s == 0xf0 && s[1] < 0x90) || (*s == 0xf4 && s[1] >= 0x90)))
		return 0;
	return n;
}

const char *ca_utf8_put(FILE *file, const char *text)
{
	size_t n = ca_utf8_length((const unsigned char *)text);

	if (!n)
		fputs("\xef\xbf\xbd", file);
	else if ((unsigned char)*text < ' ')
		putc(' ', file);
	else
		fwrite(text, 1, n, file);
	return text + (n ? n : 1);
}
