/* SPDX-License-Identifier: MIT */
/* Call frame information as .eh_frame and .debug_frame hold it: finds the CIEs and FDEs,
 * sorts them, and has cfi_run.c turn each into unwind rows.
 *
 * Own code rather than libdw's dwarf_cfi_addrframe, which answers for one address at a time
 * and takes 20 times as long for a whole binary. The formats: DWARF 5 section 6.4 and the
 * Linux Standard Base Core, "Exception Frames". Tests compare the rows with libdw's.
 * Driver's process. */
#include "binary/index/cfi.h"
#include "binary/index/cfi_run.h"
#include <dwarf.h>
#include <string.h>

/* A section being read. */
struct section {
	struct ca_cursor_section place;
	const uint8_t *end;
	bool eh;
};

/* Start of an entry. id points at the CIE id or pointer, which is wide ? 8 : 4 bytes. */
struct entry {
	const uint8_t *start, *id, *end;
	uint64_t id_value;
	bool wide;
};

/* False at the end of the section or where it is broken. */
static bool read_entry(const struct section *section, const uint8_t *at, struct entry *entry)
{
	struct ca_cursor cursor = { .at = at, .end = section->end };

	*entry = (struct entry){ .start = at };
	uint64_t length = ca_cursor_fixed(&cursor, 4);
	if (length == 0xffffffff) {
		entry->wide = true;
		length = ca_cursor_fixed(&cursor, 8);
	}
	if (cursor.bad || length > (uint64_t)(section->end - cursor.at))
		return false;
	entry->id = cursor.at;
	entry->end = cursor.at + length;
	if (length == 0) /* .eh_frame's terminator; crt files may put one in the middle */
		return true;
	entry->id_value = ca_cursor_fixed(&cursor, entry->wide && !section->eh ? 8 : 4);
	return !cursor.bad;
}

static bool is_cie(const struct section *section, const struct entry *entry)
{
	if (section->eh)
		return entry->id_value == 0;
	return entry->id_value == (entry->wide ? UINT64_MAX : UINT32_MAX);
}

static const uint8_t *cie_of(const struct section *section, const struct entry *entry)
{
	uint64_t size = (uint64_t)(section->end - section->place.data);
	uint64_t id = (uint64_t)(entry->id - section->place.data);
	uint64_t at = section->eh ? id - entry->id_value : entry->id_value;

	return at < size ? section->place.data + at : NULL;
}

static bool read_augmentation(struct ca_cursor *cursor, const char *augmentation,
			      const struct section *section, struct ca_cie *cie)
{
	uint64_t length = ca_cursor_uleb(cursor);

	if (cursor->bad || length > (uint64_t)(cursor->end - cursor->at))
		return false;
	struct ca_cursor data = { .at = cursor->at, .end = cursor->at + length };
	cursor->at += length;
	cie->has_augmentation_data = true;
	for (const char *c = augmentation + 1; *c; c++) {
		if (*c == 'R')
			cie->fde_encoding = (uint8_t)ca_cursor_fixed(&data, 1);
		else if (*c == 'L')
			ca_cursor_fixed(&data, 1); /* of pointers to handlers: nobody needs them */
		else if (*c == 'S')
			cie->is_signal = true;
		else if (*c == 'P') {
			uint8_t encoding = (uint8_t)ca_cursor_fixed(&data, 1);
			ca_cursor_pointer(&data, encoding & 0x7f, &section->place);
		} else if (*c != 'B')
			break; /* unknown: the length says where the rest starts */
	}
	return !data.bad;
}

static bool read_cie(const struct section *section, const uint8_t *at, struct ca_cie *cie)
{
	struct entry entry;

	if (!at || !read_entry(section, at, &entry) || entry.id == entry.end || !is_cie(section, &entry))
		return false;
	*cie = (struct ca_cie){ .start = at };
	struct ca_cursor cursor = { .at = entry.id + (entry.wide && !section->eh ? 8 : 4), .end = entry.end };
	uint64_t version = ca_cursor_fixed(&cursor, 1);
	const char *augmentation = ca_cursor_text(&cursor);
	if (cursor.bad || (version != 1 && version != 3 && version != 4))
		return false;
	if (version == 4 && (ca_cursor_fixed(&cursor, 1) != 8 || ca_cursor_fixed(&cursor, 1) != 0))
		return false; /* address size 8, no segments */
	cie->code_factor = ca_cursor_uleb(&cursor);
	cie->data_factor = ca_cursor_sleb(&cursor);
	cie->ra_column = version == 1 ? ca_cursor_fixed(&cursor, 1) : ca_cursor_uleb(&cursor);
	if (augmentation[0] == 'z') {
		if (!read_augmentation(&cursor, augmentation, section, cie))
			return false;
	} else if (augmentation[0] != '\0') {
		return false; /* "eh" of gcc 2 and the like */
	}
	cie->code = cursor;
	return !cursor.bad;
}

static bool read_fde(const struct ca_object *object, const struct section *section, const struct entry *entry,
		     const struct ca_cie *cie, struct ca_fde *fde)
{
	struct ca_cursor cursor = { .at = entry->id + (entry->wide && !section->eh ? 8 : 4),
				    .end = entry->end };
	uint64_t low = ca_cursor_pointer(&cursor, cie->fde_encoding & 0x7f, &section->place);
	uint64_t size = ca_cursor_pointer(&cursor, cie->fde_encoding & 0x0f, &section->place);

	if (cie->has_augmentation_data)
		ca_cursor_skip(&cursor, ca_cursor_uleb(&cursor));
	fde->cie = cie->start;
	fde->code = cursor;
	/* code that the linker threw away has its FDE at 0: not broken, just not there */
	if (!ca_object_range(object, low, low + size, &fde->low, &fde->high))
		fde->low = fde->high = 0;
	return !cursor.bad;
}

/* All FDEs of live code. Returns how many were broken. */
static size_t find_fdes(const struct ca_object *object, const struct section *section, struct ca_vec *fdes)
{
	struct ca_cie cie = { 0 };
	struct ca_fde fde;
	struct entry entry;
	size_t broken = 0;

	for (const uint8_t *at = section->place.data; at < section->end; at = entry.end) {
		if (!read_entry(section, at, &entry))
			return broken + 1;
		if (entry.id == entry.end || is_cie(section, &entry))
			continue;
		const uint8_t *start = cie_of(section, &entry);
		if (cie.start != start && !read_cie(section, start, &cie)) {
			cie.start = NULL;
			broken++;
		} else if (!read_fde(object, section, &entry, &cie, &fde)) {
			broken++;
		} else if (fde.low < fde.high && !ca_vec_add(fdes, &fde, 1)) {
			return broken;
		}
	}
	return broken;
}

static void push_none(struct ca_vec *rows, uint32_t address)
{
	struct ca_unwind_row row = { .address = address, .kind = CA_UNWIND_NONE };

	ca_vec_add(rows, &row, 1);
}

/* Returns how many FDEs were broken. */
static size_t run_all(const struct section *section, uint64_t base, const struct ca_vec *fdes,
		      struct ca_vec *rows, struct ca_vec *frames)
{
	const struct ca_fde *fde = fdes->at;
	struct ca_cie cie = { 0 };
	size_t broken = 0;
	uint32_t end = 0;

	for (size_t i = 0; i < fdes->n; i++) {
		if (fde[i].low < end)
			continue; /* overlaps the one before: the first wins */
		if (fde[i].low > end || i == 0)
			push_none(rows, end);
		/* it was read before, when the FDE was found */
		if (cie.start != fde[i].cie && !read_cie(section, fde[i].cie, &cie))
			continue;
		broken += !ca_cfi_run(&fde[i], &cie, &section->place, base, rows);
		end = fde[i].high;
		ca_vec_add(frames, &(struct ca_frame){ fde[i].low, end }, 1);
	}
	if (fdes->n > 0)
		push_none(rows, end);
	return broken;
}

static bool same_rule(const struct ca_unwind_row *a, const struct ca_unwind_row *b)
{
	return a->cfa_offset == b->cfa_offset && a->fp_offset == b->fp_offset && a->kind == b->kind &&
	       a->reg == b->reg && a->ra_offset == b->ra_offset && a->bx_words == b->bx_words;
}

/* Drop rows that say what the row before says, and all but the last at one address. */
static void compact(struct ca_vec *vec)
{
	struct ca_unwind_row *row = vec->at;
	size_t n = 0;

	for (size_t i = 0; i < vec->n; i++) {
		if (n > 0 && row[n - 1].address == row[i].address)
			n--;
		if (n == 0 || !same_rule(&row[n - 1], &row[i]))
			row[n++] = row[i];
	}
	vec->n = n;
}

void ca_cfi_read(const struct ca_object *object, struct ca_vec *rows, struct ca_vec *frames,
		 struct ca_warnings *warnings)
{
	struct section section = { .eh = true };
	struct ca_vec fdes = { .size = sizeof(struct ca_fde) };
	const char *name = ".eh_frame";
	Elf_Data *data = ca_object_section(object->elf, name, &section.place.address);

	if (!data) {
		section.eh = false;
		name = ".debug_frame";
		data = ca_object_section(ca_object_debug_elf(object), name, &section.place.address);
	}
	if (!data)
		return;
	section.place.data = data->d_buf;
	section.end = section.place.data + data->d_size;
	size_t broken = find_fdes(object, &section, &fdes);
	ca_vec_sort(&fdes);
	broken += run_all(&section, object->base, &fdes, rows, frames);
	compact(rows);
	if (broken > 0)
		ca_warnings_add(warnings, "%s: %zu entries of %s cannot be used; stacks may end there",
				object->path, broken, name);
	ca_vec_free(&fdes);
}
