/* SPDX-License-Identifier: MIT */
/* Split DWARF in packages: BINARY.dwp in place of many .dwo files.
 *
 * libdw learnt to read packages late (elfutils 0.191), so one is taken apart here, for as long
 * as the index is being built: each unit becomes a .dwo file in a private directory, beside a
 * file with the binary's own debug sections in which the units' names are changed to those
 * files'. The package format: DWARF 5 section 7.3.5, and version 2 as GCC and binutils had it
 * before. Driver's process. */
#include "binary/index/dwp.h"
#include "core/memstream.h"
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SECTIONS = 40, MAX_COLUMNS = 16 };

struct part {
	const char *name;
	const void *at;
	size_t size;
};

static uint32_t word(const Elf_Data *data, uint64_t at)
{
	uint32_t value = 0;

	if (at + 4 <= data->d_size)
		memcpy(&value, (const char *)data->d_buf + at, 4);
	return value;
}

/* An ELF file of nothing but sections. Returns its fd, or -1. */
static int write_elf(const char *path, const struct part *part, size_t n)
{
	Elf64_Shdr header[MAX_SECTIONS + 2] = { { 0 } };
	Elf64_Ehdr ehdr = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
					 EV_CURRENT },
			    .e_type = ET_REL,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_ehsize = sizeof(ehdr),
			    .e_shentsize = sizeof(*header),
			    .e_shnum = (Elf64_Half)(n + 2),
			    .e_shstrndx = (Elf64_Half)(n + 1) };
	char names[MAX_SECTIONS * 32] = "";
	size_t used = 1;
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(dup(fd), "w");

	if (!file) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	fwrite(&ehdr, sizeof(ehdr), 1, file);
	uint64_t at = sizeof(ehdr);
	for (size_t i = 0; i < n; i++) {
		header[i + 1] = (Elf64_Shdr){ .sh_name = (Elf64_Word)used,
					      .sh_type = SHT_PROGBITS,
					      .sh_offset = at,
					      .sh_size = part[i].size,
					      .sh_addralign = 1 };
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s", part[i].name) + 1;
		fwrite(part[i].at, 1, part[i].size, file);
		at += part[i].size;
	}
	header[n + 1] =
		(Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = used, .sh_addralign = 1 };
	fwrite(names, 1, used, file);
	ehdr.e_shoff = (at + used + 7) & ~(uint64_t)7;
	fseek(file, (long)ehdr.e_shoff, SEEK_SET);
	fwrite(header, sizeof(*header), n + 2, file);
	fseek(file, 0, SEEK_SET);
	fwrite(&ehdr, sizeof(ehdr), 1, file);
	bool ok = !ferror(file);
	if (fclose(file) != 0 || !ok) {
		close(fd);
		return -1;
	}
	return fd;
}

/* The package's index of units: where each one's part of each section is. */
struct table {
	const Elf_Data *data;
	unsigned version;
	uint32_t columns, units, slots;
};

static bool read_table(struct table *table, const Elf_Data *data)
{
	if (!data || data->d_size < 16)
		return false;
	*table = (struct table){ .data = data,
				 .version = word(data, 0) & 0xffff,
				 .columns = word(data, 4),
				 .units = word(data, 8),
				 .slots = word(data, 12) };
	uint64_t cells = (uint64_t)table->columns * (2 * (uint64_t)table->units + 1);
	return (table->version == 2 || table->version == 5) && table->columns <= MAX_COLUMNS &&
	       16 + 12 * (uint64_t)table->slots + 4 * cells <= data->d_size;
}

/* The 1-based row of a unit; 0: not in the package. */
static uint32_t find_row(const struct table *table, uint64_t id)
{
	const char *hashes = (const char *)table->data->d_buf + 16;

	for (uint32_t i = 0; i < table->slots; i++) {
		uint64_t own;
		memcpy(&own, hashes + 8 * (uint64_t)i, 8);
		uint32_t row = word(table->data, 16 + 8 * (uint64_t)table->slots + 4 * (uint64_t)i);
		if (own == id && row > 0 && row <= table->units)
			return row;
	}
	return 0;
}

static const char *section_name(unsigned version, uint32_t column)
{
	static const char *const old[] = { NULL,
					   ".debug_info.dwo",
					   NULL,
					   ".debug_abbrev.dwo",
					   ".debug_line.dwo",
					   ".debug_loc.dwo",
					   ".debug_str_offsets.dwo",
					   ".debug_macinfo.dwo",
					   ".debug_macro.dwo" };
	static const char *const new[] = { NULL,
					   ".debug_info.dwo",
					   NULL,
					   ".debug_abbrev.dwo",
					   ".debug_line.dwo",
					   ".debug_loclists.dwo",
					   ".debug_str_offsets.dwo",
					   ".debug_macro.dwo",
					   ".debug_rnglists.dwo" };

	return column > 8 ? NULL : version == 5 ? new[column] : old[column];
}

/* Only the strings that a unit uses, and its offsets rewritten for them. Both to be freed. */
static bool shrink_strings(struct part *offsets, struct part *strings, const Elf_Data *all, unsigned version)
{
	size_t n = 0, header = version == 5 ? 8 : 0;
	uint8_t *new = malloc(offsets->size ? offsets->size : 1);
	char *text = NULL;
	FILE *out = open_memstream(&text, &strings->size);

	if (!new || !out || offsets->size < header)
		goto failed;
	memcpy(new, offsets->at, offsets->size);
	for (size_t at = header; at + 4 <= offsets->size; at += 4) {
		uint32_t from, to = (uint32_t)n;
		memcpy(&from, new + at, 4);
		memcpy(new + at, &to, 4);
		const char *string = from < all->d_size ? (const char *)all->d_buf + from : "";
		size_t room = from < all->d_size ? all->d_size - from : 1;
		size_t length = strnlen(string, room);
		fwrite(string, 1, length, out);
		fputc('\0', out);
		n += length + 1;
	}
	if (!ca_memstream_end(out, &text) || strings->size != n) {
		out = NULL;
		goto failed;
	}
	strings->at = text;
	offsets->at = new;
	return true;
failed:
	if (out)
		fclose(out);
	free(text);
	free(new);
	return false;
}

/* Write one unit of the package as a .dwo file. */
static bool write_unit(const struct table *table, Elf *package, uint32_t row, const char *path)
{
	struct part part[MAX_COLUMNS + 1], *offsets = NULL;
	const Elf_Data *strings = ca_object_section(package, ".debug_str.dwo", NULL);
	uint64_t ids = 16 + 12 * (uint64_t)table->slots;
	uint64_t cell = 4 * (uint64_t)table->columns;
	size_t n = 0;

	for (uint32_t c = 0; c < table->columns; c++) {
		const char *name = section_name(table->version, word(table->data, ids + 4 * c));
		const Elf_Data *data = name ? ca_object_section(package, name, NULL) : NULL;
		uint64_t at = ids + cell * row + 4 * c;
		uint64_t offset = word(table->data, at);
		uint64_t size = word(table->data, at + cell * table->units);
		if (!data || size == 0)
			continue;
		if (offset > data->d_size || size > data->d_size - offset)
			return false;
		part[n] = (struct part){ name, (const char *)data->d_buf + offset, size };
		if (strcmp(name, ".debug_str_offsets.dwo") == 0)
			offsets = &part[n];
		n++;
	}
	if (!offsets || !strings)
		return false;
	struct part *text = &part[n++];
	text->name = ".debug_str.dwo";
	if (!shrink_strings(offsets, text, strings, table->version))
		return false;
	int fd = write_elf(path, part, n);
	free((void *)(uintptr_t)offsets->at);
	free((void *)(uintptr_t)text->at);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* Change the unit's name of its .dwo file, in our copy of the section that holds it. */
static bool rename_unit(Dwarf_Die *die, const Elf_Data *from, char *copy, const char *new)
{
	Dwarf_Attribute attribute;
	const char *name =
		dwarf_attr(die, DW_AT_dwo_name, &attribute) || dwarf_attr(die, DW_AT_GNU_dwo_name, &attribute)
			? dwarf_formstring(&attribute)
			: NULL;
	const char *start = from->d_buf;

	if (!name || name < start || name >= start + from->d_size || strlen(name) < strlen(new))
		return false;
	strcpy(copy + (name - start), new);
	return true;
}

static void unpack_units(struct ca_dwp *dwp, Dwarf *dwarf, Elf *package, const Elf_Data *strings, char *copy)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	Dwarf_Die die;
	struct table table;
	char path[128], name[16];

	if (!read_table(&table, ca_object_section(package, ".debug_cu_index", NULL)))
		return;
	while (dwarf_get_units(dwarf, cu, &cu, &version, NULL, &die, NULL) == 0) {
		uint64_t id = 0;
		uint32_t row;
		if (dwarf_cu_info(cu, NULL, NULL, NULL, NULL, &id, NULL, NULL) != 0 || id == 0 ||
		    (row = find_row(&table, id)) == 0)
			continue;
		snprintf(name, sizeof(name), "%zx", dwp->files);
		snprintf(path, sizeof(path), "%s/%s", dwp->directory, name);
		if (!rename_unit(&die, strings, copy, name))
			continue;
		dwp->files++;
		write_unit(&table, package, row, path);
	}
}

/* The binary's debug sections, with the copy of .debug_str in place of its own. */
static int write_skeleton(const struct ca_dwp *dwp, Elf *elf, const struct part *strings)
{
	static const char *const name[] = { ".debug_info",   ".debug_abbrev",   ".debug_addr",
					    ".debug_line",   ".debug_line_str", ".debug_str_offsets",
					    ".debug_ranges", ".debug_rnglists" };
	struct part part[MAX_SECTIONS];
	char path[128];
	size_t n = 0;

	part[n++] = *strings;
	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++) {
		const Elf_Data *data = ca_object_section(elf, name[i], NULL);
		if (data)
			part[n++] = (struct part){ name[i], data->d_buf, data->d_size };
	}
	snprintf(path, sizeof(path), "%s/skeleton", dwp->directory);
	return write_elf(path, part, n);
}

static void unpack(struct ca_dwp *dwp, const struct ca_object *object, Elf *package,
		   struct ca_warnings *warnings)
{
	int fd = object->debug.elf ? object->debug.fd : object->fd;
	Elf *elf = ca_object_debug_elf(object);
	const char *place = getenv("TMPDIR");
	Dwarf *dwarf = dwarf_begin(fd, DWARF_C_READ);
	const Elf_Data *strings = dwarf ? ca_object_section(dwarf_getelf(dwarf), ".debug_str", NULL) : NULL;
	char *copy = strings ? malloc(strings->d_size) : NULL;

	if (!place || place[0] != '/' || strlen(place) > 40)
		place = "/tmp";
	snprintf(dwp->directory, sizeof(dwp->directory), "%s/.causal-dwp-XXXXXX", place);
	if (!copy || !mkdtemp(dwp->directory)) {
		dwp->directory[0] = '\0';
	} else {
		memcpy(copy, strings->d_buf, strings->d_size);
		unpack_units(dwp, dwarf, package, strings, copy);
		dwp->fd = write_skeleton(dwp, elf, &(struct part){ ".debug_str", copy, strings->d_size });
	}
	if (dwp->fd < 0)
		ca_warnings_add(warnings, "%s: its .dwp package cannot be unpacked: %s", object->path,
				strerror(errno));
	free(copy);
	dwarf_end(dwarf);
}

void ca_dwp_unpack(struct ca_dwp *dwp, const struct ca_object *object, struct ca_warnings *warnings)
{
	char *path = NULL;
	int fd = -1;

	*dwp = (struct ca_dwp){ .fd = -1 };
	if (asprintf(&path, "%s.dwp", object->path) >= 0) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		free(path);
	}
	if (fd < 0 && object->debug.path && asprintf(&path, "%s.dwp", object->debug.path) >= 0) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		free(path);
	}
	if (fd < 0)
		return;
	Elf *package = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (package && elf_kind(package) == ELF_K_ELF)
		unpack(dwp, object, package, warnings);
	elf_end(package);
	close(fd);
}

void ca_dwp_remove(struct ca_dwp *dwp)
{
	char path[128];

	if (dwp->fd >= 0)
		close(dwp->fd);
	if (!dwp->directory[0])
		return;
	for (size_t i = 0; i < dwp->files; i++) {
		snprintf(path, sizeof(path), "%s/%zx", dwp->directory, i);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/skeleton", dwp->directory);
	unlink(path);
	rmdir(dwp->directory);
}
