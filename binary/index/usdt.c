/* SPDX-License-Identifier: MIT */
/* SystemTap probes (USDT): the notes in .note.stapsdt. Each holds the probe's address, the
 * link-time address of .stapsdt.base, a semaphore or 0, and three strings: provider, name,
 * arguments. If .stapsdt.base has moved since (prelink), all addresses moved with it.
 * Format: the "UserSpaceProbeImplementation" page of the SystemTap wiki. Driver's process. */
#include "binary/index/usdt.h"
#include "binary/index/cursor.h"
#include "binary/index/index_file.h"
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

enum { NT_STAPSDT = 3 };

static uint64_t base_section(Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return 0;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name = gelf_getshdr(scn, &shdr) ? elf_strptr(elf, names, shdr.sh_name) : NULL;
		if (name && strcmp(name, ".stapsdt.base") == 0)
			return shdr.sh_addr;
	}
	return 0;
}

static bool add_probe(const struct ca_object *object, struct ca_cursor cursor, uint64_t base,
		      struct ca_strings *strings, struct ca_vec *probes)
{
	uint64_t address = ca_cursor_fixed(&cursor, 8);
	uint64_t link_base = ca_cursor_fixed(&cursor, 8);
	uint64_t semaphore = ca_cursor_fixed(&cursor, 8);
	const char *provider = ca_cursor_text(&cursor);
	const char *name = ca_cursor_text(&cursor);
	bool bad = cursor.bad;
	const char *arguments = ca_cursor_text(&cursor);

	if (bad)
		return false;
	uint64_t moved = base && link_base ? base - link_base : 0;
	if (!ca_object_text(object, address + moved))
		return true; /* code that the linker threw away */
	struct ca_record_probe *probe = ca_vec_push(probes);
	if (!probe)
		return true;
	probe->address = address + moved;
	probe->semaphore = semaphore ? semaphore + moved : 0;
	probe->provider = ca_strings_put(strings, provider);
	probe->name = ca_strings_put(strings, name);
	probe->arguments = ca_strings_put(strings, arguments);
	return true;
}

static int probe_order(const void *a, const void *b)
{
	const struct ca_record_probe *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

void ca_usdt_read(const struct ca_object *object, struct ca_strings *strings, struct ca_vec *probes,
		  struct ca_warnings *warnings)
{
	Elf_Data *data = ca_object_section(object->elf, ".note.stapsdt", NULL);
	uint64_t base = base_section(object->elf);
	size_t at = 0, next, name, desc, broken = 0;
	GElf_Nhdr nhdr;

	while (data && (next = gelf_getnote(data, at, &nhdr, &name, &desc)) > 0) {
		const uint8_t *start = (const uint8_t *)data->d_buf;
		struct ca_cursor cursor = { .at = start + desc, .end = start + desc + nhdr.n_descsz };
		if (nhdr.n_type == NT_STAPSDT && nhdr.n_namesz == sizeof("stapsdt") &&
		    memcmp(start + name, "stapsdt", sizeof("stapsdt")) == 0)
			broken += !add_probe(object, cursor, base, strings, probes);
		at = next;
	}
	if (probes->n > 1)
		qsort(probes->at, probes->n, probes->size, probe_order);
	if (broken > 0)
		ca_warnings_add(warnings, "%s: %zu damaged probe notes; left out", object->path, broken);
}
