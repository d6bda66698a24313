/* SPDX-License-Identifier: MIT */
/* An ELF file and, if there is one, the separate file with its debug information.
 * Driver's process; one thread. */
#ifndef CA_BINARY_INDEX_OBJECT_H
#define CA_BINARY_INDEX_OBJECT_H
#include "binary/index/debugfile.h"
#include "binary/index/index.h"
#include "core/status.h"
#include <libelf.h>

/* Executable addresses of one section (or, without section headers, of one segment). */
struct ca_object_text {
	uint64_t low, high;
	bool plt;
};

struct ca_object {
	char *path;
	int fd;
	Elf *elf;
	struct ca_debugfile debug; /* none: debug information, if any, is in the file itself */
	uint8_t build_id[64];
	size_t build_id_size;        /* 0: none */
	uint64_t base, span;         /* of the PT_LOAD segments */
	struct ca_object_text *text; /* sorted, not overlapping */
	size_t texts;
};

/* Every kind of trouble with the debug file is a warning; trouble with the file itself fails:
 * NOT_FOUND, PERMISSION, IO, FORMAT (not an ELF program or library), UNSUPPORTED (machine). */
enum ca_status ca_object_open(struct ca_object *object, const char *path, ca_index_warning *warning,
			      void *context, struct ca_err *err);
void ca_object_close(struct ca_object *object);

/* The file with debug information, else the file itself. */
Elf *ca_object_debug_elf(const struct ca_object *object);
/* The text section that holds the address, or NULL. */
const struct ca_object_text *ca_object_text(const struct ca_object *object, uint64_t address);
/* [low, high) relative to the base; false if it does not lie within one text section. */
bool ca_object_range(const struct ca_object *object, uint64_t low, uint64_t high, uint32_t *from,
		     uint32_t *to);
/* What the file has at an address of a segment; NULL: nothing. before, left: bytes of the segment below it and from
 * it on. Borrowed from the file. */
const uint8_t *ca_object_bytes(const struct ca_object *object, uint64_t address, size_t *before,
			       size_t *left);
/* The data of a section by name, decompressed; NULL if absent, empty or damaged. */
Elf_Data *ca_object_section(Elf *elf, const char *name, uint64_t *address);

#endif
