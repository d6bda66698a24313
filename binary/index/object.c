/* SPDX-License-Identifier: MIT */
/* Opening ELF objects and finding their separate debug files: by build-id below
 * /usr/lib/debug/.build-id, then by .gnu_debuglink, as debuggers do. Compressed sections
 * (-gz) are decompressed by libelf. Nothing here reads DWARF. Driver's process. */
#include "binary/index/object.h"
#include "core/vec.h"
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int text_order(const void *a, const void *b)
{
	const struct ca_object_text *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

static bool add_text(struct ca_vec *vec, uint64_t low, uint64_t size, bool plt)
{
	struct ca_object_text *text;

	if (size == 0 || low + size < low)
		return true;
	text = ca_vec_push(vec);
	if (text)
		*text = (struct ca_object_text){ .low = low, .high = low + size, .plt = plt };
	return text;
}

static bool text_from_sections(const struct ca_object *object, struct ca_vec *vec)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;

	if (elf_getshdrstrndx(object->elf, &names) != 0)
		return true;
	while ((scn = elf_nextscn(object->elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_EXECINSTR) ||
		    !(shdr.sh_flags & SHF_ALLOC))
			continue;
		const char *name = elf_strptr(object->elf, names, shdr.sh_name);
		bool plt = name && strncmp(name, ".plt", 4) == 0;
		if (!add_text(vec, shdr.sh_addr, shdr.sh_size, plt))
			return false;
	}
	return true;
}

static bool read_segments(struct ca_object *object, struct ca_vec *text, bool want_text)
{
	size_t n;
	uint64_t low = UINT64_MAX, high = 0;
	GElf_Phdr phdr;

	if (elf_getphdrnum(object->elf, &n) != 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(object->elf, (int)i, &phdr) || phdr.p_type != PT_LOAD)
			continue;
		if (phdr.p_vaddr + phdr.p_memsz < phdr.p_vaddr)
			return false;
		if (phdr.p_vaddr < low)
			low = phdr.p_vaddr;
		if (phdr.p_vaddr + phdr.p_memsz > high)
			high = phdr.p_vaddr + phdr.p_memsz;
		if (want_text && (phdr.p_flags & PF_X) && !add_text(text, phdr.p_vaddr, phdr.p_memsz, false))
			return false;
	}
	if (low >= high || high - low > UINT32_MAX || low > UINT64_MAX - UINT32_MAX)
		return false;
	object->base = low;
	object->span = high - low;
	return true;
}

/* Records count from the base, in 32 bits. A section that is not loaded, which only a damaged file has, would
 * not fit. */
static void drop_unloaded(const struct ca_object *object, struct ca_vec *vec)
{
	struct ca_object_text *text = vec->at;
	size_t n = 0;

	for (size_t i = 0; i < vec->n; i++)
		if (text[i].low >= object->base && text[i].high - object->base <= object->span)
			text[n++] = text[i];
	vec->n = n;
}

static enum ca_status read_layout(struct ca_object *object, struct ca_err *err)
{
	struct ca_vec text = { .size = sizeof(struct ca_object_text) };
	bool ok = text_from_sections(object, &text);

	ok = ok && read_segments(object, &text, text.n == 0);
	if (!ok || text.failed) {
		bool failed = text.failed;
		ca_vec_free(&text);
		if (failed)
			return ca_err_set(err, CA_ERR_NOMEM, "%s: out of memory", object->path);
		return ca_err_set(err, CA_ERR_FORMAT,
				  "%s: its program headers cannot be used (none, or more than 4 GiB)",
				  object->path);
	}
	drop_unloaded(object, &text);
	if (text.n > 1)
		qsort(text.at, text.n, text.size, text_order);
	object->text = text.at;
	object->texts = text.n;
	return CA_OK;
}

static enum ca_status check_kind(struct ca_object *object, struct ca_err *err)
{
	GElf_Ehdr ehdr;

	if (elf_kind(object->elf) != ELF_K_ELF || !gelf_getehdr(object->elf, &ehdr) ||
	    (ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN))
		return ca_err_set(err, CA_ERR_FORMAT, "%s: not an ELF program or library", object->path);
	if (ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_machine != EM_X86_64)
		return ca_err_set(err, CA_ERR_UNSUPPORTED, "%s: not for x86-64; build it for this machine",
				  object->path);
	const void *id;
	ssize_t size = dwelf_elf_gnu_build_id(object->elf, &id);
	if (size > 0 && (size_t)size <= sizeof(object->build_id)) {
		memcpy(object->build_id, id, (size_t)size);
		object->build_id_size = (size_t)size;
	}
	return CA_OK;
}

static enum ca_status open_failure(const char *path, struct ca_err *err)
{
	enum ca_status status = errno == ENOENT || errno == ENOTDIR ? CA_ERR_NOT_FOUND
				: errno == EACCES                   ? CA_ERR_PERMISSION
								    : CA_ERR_IO;

	return ca_err_set(err, status, "%s: cannot be opened: %s", path, strerror(errno));
}

enum ca_status ca_object_open(struct ca_object *object, const char *path, ca_index_warning *warning,
			      void *context, struct ca_err *err)
{
	enum ca_status status;

	*object = (struct ca_object){ .fd = -1, .debug.fd = -1 };
	elf_version(EV_CURRENT);
	object->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (object->fd < 0)
		return open_failure(path, err);
	object->path = realpath(path, NULL);
	if (!object->path)
		object->path = strdup(path);
	if (!object->path) {
		status = ca_err_set(err, CA_ERR_NOMEM, "%s: out of memory", path);
		goto failed;
	}
	object->elf = elf_begin(object->fd, ELF_C_READ_MMAP, NULL);
	if (!object->elf) {
		status = ca_err_set(err, CA_ERR_FORMAT, "%s: not an ELF program or library (%s)", path,
				    elf_errmsg(-1));
		goto failed;
	}
	status = check_kind(object, err);
	if (status == CA_OK)
		status = read_layout(object, err);
	if (status != CA_OK)
		goto failed;
	ca_debugfile_find(&object->debug, object->path, object->fd, object->elf, warning, context);
	return CA_OK;
failed:
	ca_object_close(object);
	return status;
}

void ca_object_close(struct ca_object *object)
{
	ca_debugfile_close(&object->debug);
	elf_end(object->elf);
	if (object->fd >= 0)
		close(object->fd);
	free(object->path);
	free(object->text);
	*object = (struct ca_object){ .fd = -1, .debug.fd = -1 };
}

Elf *ca_object_debug_elf(const struct ca_object *object)
{
	return object->debug.elf ? object->debug.elf : object->elf;
}

const struct ca_object_text *ca_object_text(const struct ca_object *object, uint64_t address)
{
	size_t low = 0, high = object->texts;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (object->text[middle].high <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < object->texts && object->text[low].low <= address ? &object->text[low] : NULL;
}

bool ca_object_range(const struct ca_object *object, uint64_t low, uint64_t high, uint32_t *from,
		     uint32_t *to)
{
	const struct ca_object_text *text = ca_object_text(object, low);

	if (!text || high <= low || high > text->high)
		return false;
	*from = (uint32_t)(low - object->base);
	*to = (uint32_t)(high - object->base);
	return true;
}

const uint8_t *ca_object_bytes(const struct ca_object *object, uint64_t address, size_t *before, size_t *left)
{
	size_t size = 0, headers = 0;
	const char *image = elf_rawfile(object->elf, &size);
	GElf_Phdr ph;

	elf_getphdrnum(object->elf, &headers);
	for (size_t i = 0; i < headers && image; i++)
		if (gelf_getphdr(object->elf, (int)i, &ph) && ph.p_type == PT_LOAD && ph.p_offset <= size &&
		    ph.p_filesz <= size - ph.p_offset && address >= ph.p_vaddr &&
		    address - ph.p_vaddr < ph.p_filesz) {
			*before = address - ph.p_vaddr;
			*left = ph.p_filesz - *before;
			return (const uint8_t *)image + ph.p_offset + *before;
		}
	return NULL;
}

/* Plain, compressed (-gz), or compressed and named as GNU tools did before (.zdebug_). */
static bool is_named(const char *own, const char *name, bool *gnu)
{
	*gnu = own && strncmp(own, ".zdebug", 7) == 0 && strcmp(own + 2, name + 1) == 0;
	return *gnu || (own && strcmp(own, name) == 0);
}

Elf_Data *ca_object_section(Elf *elf, const char *name, uint64_t *address)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;
	bool gnu;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS ||
		    !is_named(elf_strptr(elf, names, shdr.sh_name), name, &gnu))
			continue;
		/* libdw may have been here before: then it is plain already */
		if (gnu)
			elf_compress_gnu(scn, 0, 0);
		else if ((shdr.sh_flags & SHF_COMPRESSED) && elf_compress(scn, 0, 0) < 0)
			return NULL;
		Elf_Data *data = elf_getdata(scn, NULL);
		if (!data || !data->d_buf || data->d_size == 0)
			return NULL;
		if (address)
			*address = shdr.sh_addr;
		return data;
	}
	return NULL;
}
