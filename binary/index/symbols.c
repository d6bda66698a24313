/* SPDX-License-Identifier: MIT */
/* The functions of a binary, from four sources in this order: symbol tables (the file's own,
 * its dynamic one, the debug file's), DWARF subprograms, the ranges of call frame
 * information that nobody has named, and, where all these say nothing, what calls and
 * pointers lead to (starts.c). Aliases are folded, symbols without a size reach to
 * whatever comes next, .cold parts join their function. PLT entries and IFUNC symbols are
 * not functions that a program spends time in, and are left out. Driver's process. */
#include "binary/index/symbols.h"
#include "binary/index/cfi.h"
#include "binary/index/demangle.h"
#include "binary/index/dwarf_unit.h"
#include "binary/index/index_file.h"
#include "binary/index/starts.h"
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function in the making; vectors of them are sorted by low. */
struct candidate {
	uint32_t low, high; /* equal: size unknown */
	uint32_t linkage, name;
	uint32_t file, line;
	uint32_t source; /* ordinal of the symbol's source file; 0: global or unknown */
	uint32_t owner;  /* of the subprogram + 1; 0: none */
	uint16_t rank;   /* of several names for one address the lowest wins */
	bool hidden, weak_claim, synthetic, entry;
};

static uint16_t rank_of(const GElf_Sym *sym, const char *name)
{
	unsigned rank = GELF_ST_TYPE(sym->st_info) == STT_FUNC ? 0 : 1000;
	unsigned bind = GELF_ST_BIND(sym->st_info);

	rank += bind == STB_GLOBAL ? 0 : bind == STB_WEAK ? 100 : 200;
	/* of "write", "__write", "__GI___write" people know the first */
	return (uint16_t)(rank + (unsigned)strspn(name, "_") % 50);
}

/* What the functions are made from, and where they go. */
struct reader {
	const struct ca_object *object;
	const struct ca_vec *frames;
	struct ca_strings *strings;
	struct ca_vec found; /* struct candidate */
	struct ca_vec *functions;
};

static void add_symbol(struct reader *reader, const GElf_Sym *sym, const char *name, uint32_t source)
{
	unsigned type = GELF_ST_TYPE(sym->st_info), bind = GELF_ST_BIND(sym->st_info);
	const struct ca_object_text *text = ca_object_text(reader->object, sym->st_value);

	if (!text || text->plt || sym->st_shndx == SHN_UNDEF || !*name)
		return;
	/* assembly that does not say what it defines: believe global labels only */
	bool label = type == STT_NOTYPE && bind == STB_GLOBAL;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && !label)
		return;
	struct candidate *new = ca_vec_push(&reader->found);
	if (!new)
		return;
	uint64_t room = text->high - sym->st_value;
	new->low = (uint32_t)(sym->st_value - reader->object->base);
	new->high = new->low + (uint32_t)(sym->st_size < room ? sym->st_size : room);
	new->linkage = ca_strings_put(reader->strings, name);
	new->source = bind == STB_LOCAL ? source : 0;
	new->rank = rank_of(sym, name);
	new->hidden = type == STT_GNU_IFUNC;
	new->weak_claim = label;
}

static void read_table(struct reader *reader, Elf *elf, Elf_Scn *scn, const GElf_Shdr *shdr)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	GElf_Sym sym;
	uint32_t source = 1;

	if (!data || shdr->sh_entsize == 0)
		return;
	for (size_t i = 1; i < shdr->sh_size / shdr->sh_entsize; i++) {
		if (!gelf_getsym(data, (int)i, &sym))
			break;
		const char *name = elf_strptr(elf, shdr->sh_link, sym.st_name);
		if (GELF_ST_TYPE(sym.st_info) == STT_FILE)
			source++;
		else if (name)
			add_symbol(reader, &sym, name, source);
	}
}

static void read_tables(struct reader *reader, Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &shdr) && (shdr.sh_type == SHT_SYMTAB || shdr.sh_type == SHT_DYNSYM))
			read_table(reader, elf, scn, &shdr);
}

static void name_by_address(struct reader *reader, struct candidate *to)
{
	char name[32];

	snprintf(name, sizeof(name), "sub_%llx", (unsigned long long)(reader->object->base + to->low));
	to->name = ca_strings_put(reader->strings, name);
	to->synthetic = true;
}

static void add_known(struct ca_vec *known, uint32_t low, uint32_t high)
{
	struct ca_known *new = high > low ? ca_vec_push(known) : NULL;

	if (new)
		*new = (struct ca_known){ low, high };
}

/* Functions without a size, in text that nobody else knows. */
static void add_starts(struct reader *reader, const struct ca_vec *subprograms)
{
	const struct ca_subprogram *sub = subprograms->at;
	const struct ca_frame *frame = reader->frames->at;
	const struct candidate *at = reader->found.at;
	struct ca_vec known = { .size = sizeof(struct ca_known) }, starts = { .size = sizeof(uint32_t) };

	for (size_t i = 0; i < reader->found.n; i++)
		add_known(&known, at[i].low, at[i].high);
	for (size_t i = 0; i < subprograms->n; i++)
		add_known(&known, sub[i].low, sub[i].high);
	for (size_t i = 0; i < reader->frames->n; i++)
		add_known(&known, frame[i].low, frame[i].high);
	ca_starts_find(reader->object, &known, &starts);
	for (size_t i = 0; i < starts.n; i++) {
		struct candidate *new = ca_vec_push(&reader->found);

		if (!new)
			break;
		*new = (struct candidate){ .low = ((uint32_t *)starts.at)[i], .rank = UINT16_MAX };
		new->high = new->low;
		name_by_address(reader, new);
	}
	reader->found.failed |= known.failed || starts.failed;
	ca_vec_free(&known);
	ca_vec_free(&starts);
}

/* One candidate per address. Hidden only if all its names are. */
static void fold_aliases(struct ca_vec *found)
{
	struct candidate *at = found->at;
	size_t n = 0;

	for (size_t i = 0; i < found->n; i++) {
		struct candidate *last = n > 0 ? &at[n - 1] : NULL;
		if (!last || last->low != at[i].low) {
			at[n++] = at[i];
			continue;
		}
		uint32_t high = last->high > at[i].high ? last->high : at[i].high;
		if (last->hidden != at[i].hidden ? last->hidden : at[i].rank < last->rank)
			*last = at[i];
		last->high = high;
	}
	found->n = n;
}

static const struct ca_frame *frame_from(const struct ca_vec *frames, uint32_t low)
{
	const struct ca_frame *frame = frames->at;
	size_t from = 0, to = frames->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		if (frame[middle].low < low)
			from = middle + 1;
		else
			to = middle;
	}
	return from < frames->n ? &frame[from] : NULL;
}

/* Symbols without a size: as far as their frame says, else up to what comes next. */
static void size_up(struct reader *reader)
{
	struct candidate *at = reader->found.at;
	size_t n = reader->found.n;

	for (size_t i = 0; i < n; i++) {
		if (at[i].high > at[i].low)
			continue;
		const struct ca_frame *frame = frame_from(reader->frames, at[i].low);
		const struct ca_object_text *text =
			ca_object_text(reader->object, reader->object->base + at[i].low);
		uint32_t high = (uint32_t)(text->high - reader->object->base);
		if (i + 1 < n && at[i + 1].low < high)
			high = at[i + 1].low;
		if (frame && frame->low == at[i].low)
			high = frame->high;
		else if (frame && frame->low < high)
			high = frame->low;
		at[i].high = high;
	}
}

/* Labels inside a function are not functions. */
static void drop_labels(struct ca_vec *found)
{
	struct candidate *at = found->at;
	uint32_t covered = 0;
	size_t n = 0;

	for (size_t i = 0; i < found->n; i++) {
		if (at[i].weak_claim && at[i].low < covered)
			continue;
		if (!at[i].weak_claim && at[i].high > covered)
			covered = at[i].high;
		at[n++] = at[i];
	}
	found->n = n;
}

/* Both sorted: what DWARF knows of the symbols; subprograms without a symbol join. */
static void add_subprograms(const struct ca_vec *subprograms, struct ca_vec *found)
{
	const struct ca_subprogram *sub = subprograms->at;
	struct ca_vec extra = { .size = sizeof(struct candidate) };
	struct candidate *at = found->at;
	uint32_t covered = 0, last = UINT32_MAX;

	for (size_t i = 0, k = 0; i < subprograms->n; i++) {
		for (; k < found->n && at[k].low < sub[i].low; k++)
			if (at[k].high > covered)
				covered = at[k].high;
		bool known = k < found->n && at[k].low == sub[i].low;
		struct candidate *to = known ? &at[k] : NULL;
		if (!known && sub[i].low >= covered && sub[i].low != last) {
			to = ca_vec_push(&extra);
			if (to)
				*to = (struct candidate){ .low = sub[i].low,
							  .high = sub[i].high,
							  .linkage = sub[i].linkage,
							  .name = sub[i].name };
		}
		last = sub[i].low;
		if (!to || to->owner)
			continue;
		to->owner = sub[i].owner + 1;
		to->entry = sub[i].entry;
		to->file = sub[i].file;
		to->line = sub[i].line;
	}
	ca_vec_add(found, extra.at, extra.n);
	ca_vec_free(&extra);
	ca_vec_sort(found);
}

static void add_frames(struct reader *reader)
{
	const struct ca_frame *frame = reader->frames->at;
	struct ca_vec *found = &reader->found;
	struct ca_vec extra = { .size = sizeof(struct candidate) };
	const struct candidate *at = found->at;
	uint32_t covered = 0;

	for (size_t i = 0, k = 0; i < reader->frames->n; i++) {
		uint64_t address = reader->object->base + frame[i].low;
		const struct ca_object_text *text = ca_object_text(reader->object, address);
		for (; k < found->n && at[k].low <= frame[i].low; k++)
			if (at[k].high > covered)
				covered = at[k].high;
		if (frame[i].low < covered || !text || text->plt)
			continue;
		struct candidate *new = ca_vec_push(&extra);
		if (!new)
			break;
		*new = (struct candidate){ .low = frame[i].low, .high = frame[i].high };
		name_by_address(reader, new);
	}
	ca_vec_add(found, extra.at, extra.n);
	ca_vec_free(&extra);
	ca_vec_sort(found);
}

static uint32_t demangled(struct ca_strings *strings, uint32_t linkage)
{
	char *text = ca_demangle(ca_strings_get(strings, linkage));
	uint32_t name = text && *text ? ca_strings_put(strings, text) : linkage;

	free(text);
	return name;
}

static void emit(struct reader *reader, const struct candidate *from)
{
	struct ca_record_function *to = ca_vec_push(reader->functions);

	if (!to)
		return;
	*to = (struct ca_record_function){
		.low = from->low,
		.high = from->high,
		.linkage = from->linkage,
		.name = from->name ? from->name : demangled(reader->strings, from->linkage),
		.file = from->file,
		.line = from->line,
		.next = (uint32_t)reader->functions->n - 1,
		.flags = from->synthetic ? CA_FUNCTION_SYNTHETIC : 0,
	};
}

static void join(struct ca_record_function *function, uint32_t head, uint32_t part)
{
	struct ca_record_function *from = &function[head], *to = &function[part];

	if (head == part || to->next != part || (to->flags & CA_FUNCTION_PART))
		return;
	to->next = from->next;
	from->next = part;
	to->name = from->name;
	to->linkage = from->linkage;
	to->file = from->file;
	to->line = from->line;
	to->flags |= CA_FUNCTION_PART;
}

/* Ranges of one subprogram belong together. */
static void join_by_owner(struct ca_record_function *function, const struct candidate *from, size_t n)
{
	struct ca_map heads = { 0 };
	bool known;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t *head =
			from[i].owner && from[i].entry ? ca_map_add(&heads, from[i].owner, &known) : NULL;
		if (head && !known)
			*head = i;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!from[i].owner || from[i].entry)
			continue;
		const uint32_t *head = ca_map_find(&heads, from[i].owner);
		if (head)
			join(function, *head, i);
	}
	ca_map_free(&heads);
}

/* "foo.cold" and "foo.cold.7" to the length of "foo"; 0 for all others. */
static size_t cold_stem(const char *name)
{
	const char *dot = strstr(name, ".cold");

	if (!dot || dot == name || dot[5 + strspn(dot + 5, ".0123456789")] != '\0')
		return 0;
	return (size_t)(dot - name);
}

static uint64_t key_of(uint32_t linkage, uint32_t source)
{
	return (uint64_t)linkage << 32 | source;
}

/* Without DWARF the names say it: foo.cold belongs to the foo of the same source file. */
static void join_by_name(struct ca_strings *strings, struct ca_record_function *function,
			 const struct candidate *from, size_t n)
{
	struct ca_map heads = { 0 };
	bool known;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t *head = from[i].linkage
					 ? ca_map_add(&heads, key_of(from[i].linkage, from[i].source), &known)
					 : NULL;
		if (head && !known)
			*head = i;
	}
	for (uint32_t i = 0; i < n; i++) {
		const char *name = ca_strings_get(strings, from[i].linkage);
		size_t length = cold_stem(name);
		if (length == 0)
			continue;
		char *stem = strndup(name, length);
		uint32_t id = stem ? ca_strings_add(strings, stem, length) : 0;
		free(stem);
		if (!id)
			continue;
		const uint32_t *head = ca_map_find(&heads, key_of(id, from[i].source));
		if (!head)
			head = ca_map_find(&heads, key_of(id, 0));
		if (head)
			join(function, *head, i);
	}
	ca_map_free(&heads);
}

static size_t drop_hidden(struct candidate *at, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!at[i].hidden && at[i].low < at[i].high)
			at[kept++] = at[i];
	return kept;
}

void ca_symbols_read(const struct ca_object *object, const struct ca_vec *subprograms,
		     const struct ca_vec *frames, struct ca_strings *strings, struct ca_vec *functions)
{
	struct reader reader = { .object = object,
				 .frames = frames,
				 .strings = strings,
				 .found.size = sizeof(struct candidate),
				 .functions = functions };
	struct ca_vec *found = &reader.found;

	read_tables(&reader, object->elf);
	if (object->debug.elf)
		read_tables(&reader, object->debug.elf);
	add_starts(&reader, subprograms);
	ca_vec_sort(found);
	fold_aliases(found);
	size_up(&reader);
	drop_labels(found);
	add_subprograms(subprograms, found);
	add_frames(&reader);
	found->n = drop_hidden(found->at, found->n);
	for (size_t i = 0; i < found->n; i++)
		emit(&reader, (struct candidate *)found->at + i);
	if (functions->n == found->n) {
		join_by_owner(functions->at, found->at, found->n);
		join_by_name(strings, functions->at, found->at, found->n);
	}
	functions->failed |= found->failed;
	ca_vec_free(found);
}
