/* SPDX-License-Identifier: MIT */
/* Fields of sections; see cursor.h. Little-endian. */
#include "binary/index/cursor.h"
#include <dwarf.h>
#include <stddef.h>
#include <string.h>

uint64_t ca_cursor_fixed(struct ca_cursor *cursor, unsigned bytes)
{
	uint64_t value = 0;

	if ((size_t)(cursor->end - cursor->at) < bytes) {
		cursor->bad = true;
		cursor->at = cursor->end;
		return 0;
	}
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)cursor->at[i] << (8 * i);
	cursor->at += bytes;
	return value;
}

/* *shift: how many bits there were. *last: the last byte, whose bit 6 is the sign of a signed one. */
static uint64_t leb(struct ca_cursor *cursor, unsigned *shift, uint8_t *last)
{
	uint64_t value = 0;

	*shift = 0;
	do {
		*last = (uint8_t)ca_cursor_fixed(cursor, 1);
		if (*shift < 64)
			value |= (uint64_t)(*last & 0x7f) << *shift;
		*shift += 7;
	} while ((*last & 0x80) && !cursor->bad);
	return value;
}

uint64_t ca_cursor_uleb(struct ca_cursor *cursor)
{
	unsigned shift;
	uint8_t last;

	return leb(cursor, &shift, &last);
}

int64_t ca_cursor_sleb(struct ca_cursor *cursor)
{
	unsigned shift;
	uint8_t last;
	uint64_t value = leb(cursor, &shift, &last);

	if (shift < 64 && (last & 0x40))
		value |= UINT64_MAX << shift;
	return (int64_t)value;
}

const char *ca_cursor_text(struct ca_cursor *cursor)
{
	const char *text = (const char *)cursor->at;
	const void *nul = memchr(cursor->at, '\0', (size_t)(cursor->end - cursor->at));

	if (!nul) {
		cursor->bad = true;
		return "";
	}
	cursor->at = (const uint8_t *)nul + 1;
	return text;
}

const uint8_t *ca_cursor_skip(struct ca_cursor *cursor, uint64_t bytes)
{
	const uint8_t *start = cursor->at;

	if (bytes > (uint64_t)(cursor->end - cursor->at))
		cursor->bad = true;
	else
		cursor->at += bytes;
	return start;
}

uint64_t ca_cursor_pointer(struct ca_cursor *cursor, uint8_t encoding,
			   const struct ca_cursor_section *section)
{
	uint64_t here = section->address + (uint64_t)(cursor->at - section->data), value;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		value = ca_cursor_fixed(cursor, 8);
		break;
	case DW_EH_PE_udata4:
		value = ca_cursor_fixed(cursor, 4);
		break;
	case DW_EH_PE_sdata4:
		value = (uint64_t)(int64_t)(int32_t)ca_cursor_fixed(cursor, 4);
		break;
	case DW_EH_PE_udata2:
		value = ca_cursor_fixed(cursor, 2);
		break;
	case DW_EH_PE_sdata2:
		value = (uint64_t)(int64_t)(int16_t)ca_cursor_fixed(cursor, 2);
		break;
	case DW_EH_PE_uleb128:
		value = ca_cursor_uleb(cursor);
		break;
	case DW_EH_PE_sleb128:
		value = (uint64_t)ca_cursor_sleb(cursor);
		break;
	default:
		cursor->bad = true;
		return 0;
	}
	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
		return value;
	case DW_EH_PE_pcrel:
		return value + here;
	default: /* text-, data- and function-relative: not written by any x86-64 toolchain */
		cursor->bad = true;
		return 0;
	}
}
