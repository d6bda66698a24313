/* SPDX-License-Identifier: MIT */
/* Text for a terminal; see causal/results/text.h. */
#include "causal/results/text.h"
#include "core/memstream.h"
#include "core/utf8.h"
#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* Widths are those of Unicode, whatever the language of the user is: what we write is UTF-8. */
static int width_of(wchar_t c)
{
	static locale_t unicode;
	locale_t before;
	int width;

	if (!unicode)
		unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (!unicode) /* not installed */
		return c >= 0xa0 ? 1 : -1;
	before = uselocale(unicode);
	width = wcwidth(c);
	uselocale(before);
	return width;
}

static wchar_t decode(const unsigned char *u, size_t n)
{
	static const unsigned char first[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	wchar_t c = *u & first[n];

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (u[i] & 0x3f);
	return c;
}

static bool turns(wchar_t c)
{
	return (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
	       c == 0x61c || c == 0xfeff;
}

/* One character at text: its bytes, and its columns. Not printable: one byte, shown as '?'. */
static size_t next_character(const char *text, size_t *columns, bool *shown)
{
	const unsigned char *u = (const unsigned char *)text;
	size_t n = ca_utf8_length(u);
	int width = n == 1 ? (*u >= 0x20 && *u < 0x7f ? 1 : -1) : n ? width_of(decode(u, n)) : -1;

	*shown = n > 0 && width >= 0 && !(n > 1 && turns(decode(u, n)));
	*columns = *shown ? (size_t)width : 1;
	return *shown ? n : 1;
}

/* Puts characters until `width` columns are full; out NULL: only counts them. */
static const char *put_columns(FILE *out, const char *text, size_t width, size_t *used)
{
	*used = 0;
	while (*text) {
		size_t columns, n;
		bool shown;

		n = next_character(text, &columns, &shown);
		if (*used + columns > width)
			break;
		if (out && shown)
			fwrite(text, 1, n, out);
		else if (out)
			fputc('?', out);
		*used += columns;
		text += n;
	}
	return text;
}

size_t ca_text_width(const char *text)
{
	size_t width;

	put_columns(NULL, text, SIZE_MAX / 2, &width);
	return width;
}

/* A wide character that does not fit leaves its column to spaces of the caller. */
size_t ca_text_put_cut(FILE *out, const char *text, size_t width, size_t head)
{
	size_t have = ca_text_width(text), used, tail;
	const char *end;

	if (have <= width) {
		put_columns(out, text, width, &used);
		return used;
	}
	if (!width)
		return 0;
	head = head < width ? head : width - 1;
	put_columns(out, text, head, &used);
	fputs("…", out);
	end = put_columns(NULL, text, have - (width - 1 - used), &tail);
	if (have - tail > width - 1 - used) { /* half of a wide character would be too many */
		size_t columns;
		bool shown;

		end += next_character(end, &columns, &shown);
		tail += columns;
	}
	put_columns(out, end, width, &tail);
	return used + 1 + tail;
}

void ca_text_put(FILE *out, const char *text, size_t width)
{
	size_t used = ca_text_put_cut(out, text, width, (width - !!width) / 2);

	fprintf(out, "%*s", (int)(width - used), "");
}

char *ca_text_cut(const char *text, size_t width, size_t head)
{
	char *cut = NULL;
	size_t size;
	FILE *out = open_memstream(&cut, &size);

	if (!out)
		return NULL;
	ca_text_put_cut(out, text, width, head);
	ca_memstream_end(out, &cut);
	return cut;
}
