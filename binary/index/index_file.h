/* SPDX-License-Identifier: MIT */
/* Layout of an index file, shared by the writer (binary/index/write.c) and the readers
 * (binary/index/lookup.c). Private to binary/.
 *
 * One header, then arrays of fixed-size records, each 8-aligned, then strings.
 * Addresses are 32 bits, relative to `base`. Strings are offsets into the strings
 * section; offset 0 is "". Readers trust nothing but what ca_index_map has checked:
 * the place and size of each section and that the strings end in NUL; every index and
 * string offset inside a record is checked where it is used. */
#ifndef CA_BINARY_INDEX_INDEX_FILE_H
#define CA_BINARY_INDEX_INDEX_FILE_H
#include "binary/index/index.h"
#include <stdint.h>

#define CA_INDEX_MAGIC 0x3158444955414331u
enum {
	/* Part of the cache's key: raise it whenever the layout or the contents change. */
	CA_INDEX_VERSION = 8,
	CA_INDEX_NOTHING = 0xffffffff, /* no such record */
	CA_INDEX_MAX_PATH = 4096
};

enum ca_index_part {
	CA_PART_FUNCTIONS,
	CA_PART_LINES,
	CA_PART_INLINES,
	CA_PART_ROWS,
	CA_PART_BUCKETS,
	CA_PART_PROBES,
	CA_PART_WARNINGS,
	CA_PART_STRINGS,
	CA_INDEX_PARTS
};

struct ca_index_part_place {
	uint64_t offset; /* from the start of the file */
	uint64_t count;  /* records; bytes for the strings */
};

enum { CA_INDEX_HAS_LINES = 1 };

struct ca_index_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_size;
	uint64_t file_size;
	uint64_t checksum; /* of the header with this field 0, plus that of the rest */
	uint64_t base;     /* lowest address of any PT_LOAD */
	uint64_t span;     /* highest address - base */
	uint32_t flags;
	uint32_t want;      /* enum ca_index_want */
	uint32_t binary;    /* string: path it was built from */
	uint32_t row_shift; /* buckets of 1 << row_shift bytes */
	struct ca_index_part_place part[CA_INDEX_PARTS];
};

enum { CA_FUNCTION_SYNTHETIC = 1, CA_FUNCTION_PART = 2 /* a .cold part */ };

struct ca_record_function {
	uint32_t low, high;
	uint32_t name, linkage, file, line;
	uint32_t parent; /* earlier record that may cover what this one does not; or NOTHING */
	uint32_t next;   /* next range of the same function, in a ring; itself if alone */
	uint32_t flags;
	uint32_t reserved;
};
struct ca_record_line {
	uint32_t low, high;
	uint32_t file;
	uint32_t line; /* bit 31: is_stmt */
};
struct ca_record_inline {
	uint32_t low, high;
	uint32_t name, file, call_file;
	uint32_t line, call_line;
	uint32_t parent; /* as in functions */
	uint32_t depth;
};
struct ca_record_probe {
	uint64_t address, semaphore;
	uint32_t provider, name, arguments, reserved;
};
#define CA_LINE_IS_STMT 0x80000000u

/* A fast checksum, not a cryptographic one: it finds torn and damaged files. */
uint64_t ca_index_checksum(const void *data, uint64_t size);

/* An open index. Lies in private pages in front of the mapping of the file. */
struct ca_index {
	const struct ca_index_header *header;
	const struct ca_record_function *function;
	const struct ca_record_line *line;
	const struct ca_record_inline *inlined;
	const struct ca_unwind_row *row;
	const uint32_t *bucket;
	const struct ca_record_probe *probe;
	const uint32_t *warning;
	const char *string;
	uint32_t functions, lines, inlines, rows, buckets, probes, warnings;
	uint64_t strings;
	uint64_t mapped; /* bytes from this struct to the end of the mapping */
	bool temporary;  /* unlink the file on close */
	char path[CA_INDEX_MAX_PATH];
	char binary[CA_INDEX_MAX_PATH];
};

#endif
