/* SPDX-License-Identifier: MIT */
/* Separate debug files: /usr/lib/debug/.build-id/xx/rest.debug first, then what debuginfod has fetched before, then the
 * name in .gnu_debuglink beside the binary, in .debug/ below it, and below /usr/lib/debug.
 * A file counts only if it matches: by equal build-ids, or by the link's CRC where a
 * build-id is missing on either side. Driver's process. */
#include "binary/index/debugfile.h"
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEBUG_ROOT "/usr/lib/debug"

enum { MAX_BUILD_ID = 64 };

static bool has_section(Elf *elf, const char *name)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *own = gelf_getshdr(scn, &shdr) ? elf_strptr(elf, names, shdr.sh_name) : NULL;
		if (own && strcmp(own, name) == 0 && shdr.sh_type != SHT_NOBITS)
			return true;
	}
	return false;
}

/* The CRC of .gnu_debuglink: CRC-32 with the polynomial of IEEE 802.3, reflected. */
static uint32_t crc_step(const uint32_t table[256], uint32_t crc, const uint8_t *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		crc = table[(crc ^ at[i]) & 0xff] ^ crc >> 8;
	return crc;
}

static bool file_crc(int fd, uint32_t *out)
{
	uint8_t buffer[1 << 15];
	uint32_t table[256], crc = 0xffffffff;
	off_t at = 0;
	ssize_t n;

	for (uint32_t i = 0; i < 256; i++) {
		uint32_t value = i;
		for (int bit = 0; bit < 8; bit++)
			value = value >> 1 ^ (value & 1 ? 0xedb88320 : 0);
		table[i] = value;
	}
	while ((n = pread(fd, buffer, sizeof(buffer), at)) > 0) {
		crc = crc_step(table, crc, buffer, (size_t)n);
		at += n;
	}
	*out = ~crc;
	return n == 0;
}

static bool is_same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The file whose debug information is looked for, and what was found. */
struct search {
	const char *path;
	int fd;
	Elf *elf;
	const uint8_t *build_id;
	size_t build_id_size; /* 0: none */
	ca_index_warning *warning;
	void *context;
	struct ca_debugfile *found;
};

/* link_crc: NULL when found by build-id. */
static bool matches(const struct search *search, int fd, Elf *elf, const uint32_t *link_crc)
{
	const void *id;
	uint32_t crc;
	ssize_t size = dwelf_elf_gnu_build_id(elf, &id);

	if (size > 0 && search->build_id_size > 0)
		return (size_t)size == search->build_id_size &&
		       memcmp(id, search->build_id, (size_t)size) == 0;
	return link_crc && file_crc(fd, &crc) && crc == *link_crc;
}

/* True when the search is over. */
static bool try_file(const struct search *search, const char *path, const uint32_t *link_crc)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	Elf *elf = NULL;
	char *copy;

	if (fd < 0)
		return false;
	if (is_same_file(fd, search->fd))
		goto no;
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	bool good = elf && elf_kind(elf) == ELF_K_ELF && matches(search, fd, elf, link_crc);
	copy = good ? strdup(path) : NULL;
	if (!copy) {
		char text[PATH_MAX + 100];
		snprintf(text, sizeof(text),
			 good ? "%s: no memory to read it for %s; left out"
			      : "%s: does not belong to %s; left out",
			 path, search->path);
		if (search->warning)
			search->warning(search->context, text);
		goto no;
	}
	*search->found = (struct ca_debugfile){ copy, fd, elf };
	return true;
no:
	elf_end(elf);
	close(fd);
	return false;
}

/* Where its client keeps files, as debuginfod_find_debuginfo(3) says. What was not found is an empty file there. We do
 * not fetch any: that can take minutes. */
static bool find_fetched(const struct search *search, const char *build_id)
{
	static const char *const base[][2] = { { "DEBUGINFOD_CACHE_PATH", "" },
					       { "XDG_CACHE_HOME", "/debuginfod_client" },
					       { "HOME", "/.cache/debuginfod_client" },
					       { "HOME", "/.debuginfod_client_cache" } };
	char path[PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < sizeof(base) / sizeof(*base); i++) {
		const char *at = getenv(base[i][0]);

		snprintf(path, sizeof(path), "%s%s/%s/debuginfo", at ? at : "", base[i][1], build_id);
		if (at && *at && stat(path, &st) == 0 && st.st_size > 0 && try_file(search, path, NULL))
			return true;
	}
	return false;
}

static bool find_by_build_id(const struct search *search)
{
	char path[sizeof(DEBUG_ROOT "/.build-id/") + 2 * MAX_BUILD_ID + 8], id[2 * MAX_BUILD_ID + 1] = "";

	if (search->build_id_size < 2)
		return false;
	for (size_t i = 0; i < search->build_id_size; i++)
		snprintf(id + 2 * i, 3, "%02x", search->build_id[i]);
	snprintf(path, sizeof(path), DEBUG_ROOT "/.build-id/%.2s/%s.debug", id, id + 2);
	return try_file(search, path, NULL) || find_fetched(search, id);
}

static void find_by_link(const struct search *search)
{
	static const char *const place[][2] = { { "", "" }, { "", "/.debug" }, { DEBUG_ROOT, "" } };
	GElf_Word crc;
	const char *name = dwelf_elf_gnu_debuglink(search->elf, &crc);
	const char *slash = strrchr(search->path, '/');
	char directory[PATH_MAX], path[2 * PATH_MAX];

	if (!name || !*name || strchr(name, '/'))
		return;
	snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash - search->path) : 1,
		 slash ? search->path : ".");
	for (size_t i = 0; i < sizeof(place) / sizeof(*place); i++) {
		snprintf(path, sizeof(path), "%s%s%s/%s", place[i][0], directory, place[i][1], name);
		if (try_file(search, path, &crc))
			return;
	}
}

void ca_debugfile_find(struct ca_debugfile *found, const char *path, int fd, Elf *elf,
		       ca_index_warning *warning, void *context)
{
	struct search search = { path, fd, elf, NULL, 0, warning, context, found };
	const void *id;
	ssize_t size = dwelf_elf_gnu_build_id(elf, &id);

	*found = (struct ca_debugfile){ .fd = -1 };
	if (has_section(elf, ".debug_info") || has_section(elf, ".zdebug_info"))
		return;
	if (size > 0 && size <= MAX_BUILD_ID) {
		search.build_id = id;
		search.build_id_size = (size_t)size;
	}
	if (!find_by_build_id(&search))
		find_by_link(&search);
}

void ca_debugfile_close(struct ca_debugfile *file)
{
	elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	*file = (struct ca_debugfile){ .fd = -1 };
}
