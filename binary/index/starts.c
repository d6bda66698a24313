/* SPDX-License-Identifier: MIT */
/* Hand-written assembly, of which neither a symbol with a size nor debug nor call frame information says where its
 * functions begin (most of libx264, libavcodec, GMP and OpenBLAS, once stripped), would be one function: whatever
 * symbol happens to stand before it. Its functions begin where calls go, and where addresses go that code computes
 * or data holds, if that is aligned as functions are, and something has ended before it. A number that is none of
 * these and passes for one has to hit that, too: in 10 MB of text with 1 MB of such functions less than one does.
 * x86-64: call rel32, lea of an address relative to the instruction, R_X86_64_RELATIVE. Driver's process. */
#include "binary/index/starts.h"
#include <gelf.h>
#include <string.h>

enum {
	LEAST = 256, /* bytes; startup code of a few functions is not worth names */
	ALIGNED = 16,
	LONGEST_END = 5 /* bytes, of what has_ended looks at */
};

struct starts {
	const struct ca_object *object;
	struct ca_vec gaps; /* struct ca_known: what is not known */
	struct ca_vec *found;
};

static void add_gap(struct starts *s, uint32_t low, uint32_t high)
{
	struct ca_known *gap = high > low && high - low >= LEAST ? ca_vec_push(&s->gaps) : NULL;

	if (gap)
		*gap = (struct ca_known){ low, high };
}

static void find_gaps(struct starts *s, const struct ca_vec *known)
{
	const struct ca_object *object = s->object;
	const struct ca_known *k = known->at;
	size_t i = 0;

	for (size_t t = 0; t < object->texts; t++) {
		uint32_t at = (uint32_t)(object->text[t].low - object->base);
		uint32_t high = (uint32_t)(object->text[t].high - object->base);

		for (; i < known->n && k[i].low < high; i++) {
			if (!object->text[t].plt)
				add_gap(s, at, k[i].low);
			at = k[i].high > at ? k[i].high : at;
		}
		if (!object->text[t].plt)
			add_gap(s, at, high);
	}
}

static const struct ca_known *gap_of(const struct starts *s, uint32_t at)
{
	const struct ca_known *gap = s->gaps.at;
	size_t from = 0, to = s->gaps.n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (gap[middle].high <= at)
			from = middle + 1;
		else
			to = middle;
	}
	return from < s->gaps.n && gap[from].low <= at ? &gap[from] : NULL;
}

/* Padding (of one byte, or the end of a longer one), a return, or a jump elsewhere. */
static bool has_ended(const uint8_t *at)
{
	return at[-1] == 0x90 || at[-1] == 0x00 || at[-1] == 0xcc || at[-1] == 0xc3 || at[-5] == 0xe9 ||
	       at[-2] == 0xeb;
}

static void take(struct starts *s, uint64_t address)
{
	uint32_t at = (uint32_t)(address - s->object->base);
	const struct ca_known *gap;
	const uint8_t *bytes;
	size_t before = 0, left;
	uint32_t *start;

	if (address % ALIGNED || address < s->object->base || address - s->object->base > UINT32_MAX)
		return;
	gap = gap_of(s, at);
	bytes = gap ? ca_object_bytes(s->object, address, &before, &left) : NULL;
	if (!bytes || before < LONGEST_END || (at != gap->low && !has_ended(bytes)))
		return;
	start = ca_vec_push(s->found);
	if (start)
		*start = at;
}

static void scan(struct starts *s, const uint8_t *at, size_t n, uint64_t address)
{
	int32_t distance;

	for (size_t i = 0; i + 7 <= n; i++) {
		bool call = at[i] == 0xe8;
		bool lea = at[i + 1] == 0x8d && (at[i] & 0xfb) == 0x48 && (at[i + 2] & 0xc7) == 5;
		size_t length = call ? 5 : 7;

		if (!call && !lea)
			continue;
		memcpy(&distance, at + i + length - 4, sizeof distance);
		take(s, address + i + length + (uint64_t)(int64_t)distance);
	}
}

static void scan_text(struct starts *s)
{
	size_t headers = 0, before, left;
	GElf_Phdr ph;

	elf_getphdrnum(s->object->elf, &headers);
	for (size_t i = 0; i < headers; i++) {
		const uint8_t *text = gelf_getphdr(s->object->elf, (int)i, &ph) && ph.p_type == PT_LOAD &&
						      (ph.p_flags & PF_X)
					      ? ca_object_bytes(s->object, ph.p_vaddr, &before, &left)
					      : NULL;

		if (text)
			scan(s, text, left, ph.p_vaddr);
	}
}

static void read_pointers(struct starts *s)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	GElf_Rela rela;

	while ((scn = elf_nextscn(s->object->elf, scn))) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_RELA || !shdr.sh_entsize ||
		    !(data = elf_getdata(scn, NULL)))
			continue;
		for (size_t i = 0; i < shdr.sh_size / shdr.sh_entsize && gelf_getrela(data, (int)i, &rela);
		     i++)
			if (GELF_R_TYPE(rela.r_info) == R_X86_64_RELATIVE)
				take(s, (uint64_t)rela.r_addend);
	}
}

static void drop_repeated(struct ca_vec *starts)
{
	uint32_t *at;
	size_t n = 0;

	ca_vec_sort(starts);
	at = starts->at; /* sorting moves it */
	for (size_t i = 0; i < starts->n; i++)
		if (!n || at[n - 1] != at[i])
			at[n++] = at[i];
	starts->n = n;
}

void ca_starts_find(const struct ca_object *object, struct ca_vec *known, struct ca_vec *starts)
{
	struct starts s = { .object = object, .gaps.size = sizeof(struct ca_known), .found = starts };

	ca_vec_sort(known);
	find_gaps(&s, known);
	if (s.gaps.n) {
		scan_text(&s);
		read_pointers(&s);
		drop_repeated(starts);
	}
	starts->failed |= s.gaps.failed;
	ca_vec_free(&s.gaps);
}
