/* SPDX-License-Identifier: MIT */
/* Functions of a program that was built with -finstrument-functions, as regions; and what code at an address
 * is called: looked up once, in the symbols of its file. */
#include "causal/library/library.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names */

struct module {
	uintptr_t address, bias;
	char path[4096];
};

static int find_module(struct dl_phdr_info *info, size_t size, void *to)
{
	struct module *module = to;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type != PT_LOAD ||
		    module->address - (info->dlpi_addr + header->p_vaddr) >= header->p_memsz)
			continue;
		module->bias = info->dlpi_addr;
		snprintf(module->path, sizeof module->path, "%s",
			 info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "/proc/self/exe");
		return 1;
	}
	return 0;
}

/* A file of symbols, which stays mapped for the next address. */
static struct {
	char path[4096];
	const unsigned char *at;
	size_t size;
} file;

static void map_file(const char *path)
{
	struct stat is;
	int fd;

	if (!strcmp(file.path, path))
		return;
	if (file.at)
		munmap((void *)(uintptr_t)file.at, file.size);
	file.at = NULL;
	snprintf(file.path, sizeof file.path, "%s", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &is) && is.st_size > (off_t)sizeof(ElfW(Ehdr))) {
		void *at = mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

		file.at = at == MAP_FAILED ? NULL : at;
		file.size = (size_t)is.st_size;
	}
	if (fd >= 0)
		close(fd);
}

/* Does it lie in the file? */
static bool is_inside(uint64_t offset, uint64_t size)
{
	return offset <= file.size && size <= file.size - offset;
}

/* The function at `offset` among the symbols of one section. */
static const char *search(const ElfW(Shdr) * symbols, const ElfW(Shdr) * strings, uintptr_t offset)
{
	const ElfW(Sym) *symbol = (const void *)(file.at + symbols->sh_offset);

	for (size_t i = 0; i < symbols->sh_size / sizeof *symbol; i++)
		if (ELF64_ST_TYPE(symbol[i].st_info) == STT_FUNC && symbol[i].st_shndx != SHN_UNDEF &&
		    offset - symbol[i].st_value < (symbol[i].st_size ? symbol[i].st_size : 1) &&
		    symbol[i].st_name < strings->sh_size)
			return (const char *)file.at + strings->sh_offset + symbol[i].st_name;
	return NULL;
}

static const char *find_symbol(uintptr_t offset)
{
	const ElfW(Ehdr) *head = (const void *)file.at;
	const ElfW(Shdr) * section;
	const char *name = NULL;

	if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_shentsize != sizeof *section ||
	    !is_inside(head->e_shoff, (uint64_t)head->e_shnum * sizeof *section))
		return NULL;
	section = (const void *)(file.at + head->e_shoff);
	for (unsigned i = 0; i < head->e_shnum && !name; i++) {
		const ElfW(Shdr) * strings;

		if ((section[i].sh_type != SHT_SYMTAB && section[i].sh_type != SHT_DYNSYM) ||
		    section[i].sh_link >= head->e_shnum)
			continue;
		strings = &section[section[i].sh_link];
		if (is_inside(section[i].sh_offset, section[i].sh_size) &&
		    is_inside(strings->sh_offset, strings->sh_size) && strings->sh_size &&
		    !file.at[strings->sh_offset + strings->sh_size - 1])
			name = search(&section[i], strings, offset);
	}
	return name;
}

static const struct ca_library_key *name_it(uintptr_t address, const char *before)
{
	struct module module = { .address = address };
	const char *symbol = NULL, *base;
	char text[512];

	if (dl_iterate_phdr(find_module, &module)) {
		map_file(module.path);
		symbol = find_symbol(address - module.bias);
	}
	base = strrchr(module.path, '/');
	base = !base                                    ? "?"
	       : !strcmp(module.path, "/proc/self/exe") ? program_invocation_short_name
							: base + 1;
	if (symbol)
		snprintf(text, sizeof text, "%s%s", before, symbol);
	else
		snprintf(text, sizeof text, "%s%s+0x%zx", before, base, (size_t)(address - module.bias));
	return ca_library_key(text);
}

/* ---- by address */

enum { PLACES = 1 << 15, TRIES = 16 };
static struct {
	_Atomic uintptr_t address; /* and what stands before the name */
	_Atomic(const struct ca_library_key *) key;
} place[PLACES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of looking up: one at a time */

/* A child has only the thread that forks, perhaps from a handler in the midst of this: it begins anew, and
 * whatever was mapped stays so. */
static void begin_anew(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	file.path[0] = '\0';
	file.at = NULL;
}

static __attribute__((constructor)) void watch_forks(void)
{
	pthread_atfork(NULL, NULL, begin_anew);
}

const struct ca_library_key *ca_functions_key(const void *code, const char *before)
{
	uintptr_t address = (uintptr_t)code, known = address ^ (uintptr_t)before;
	size_t start = (size_t)((known >> 1) * UINT64_C(0x9e3779b97f4a7c15) >> 40), free_place = PLACES;
	const struct ca_library_key *key;

	for (size_t i = 0; i < TRIES; i++) {
		size_t at = (start + i) % PLACES;
		uintptr_t there = atomic_load_explicit(&place[at].address, memory_order_acquire);

		if (there == known)
			return atomic_load_explicit(&place[at].key, memory_order_relaxed);
		if (!there) {
			free_place = at;
			break;
		}
	}
	pthread_mutex_lock(&lock);
	key = name_it(address, before);
	if (key && free_place < PLACES &&
	    !atomic_load_explicit(&place[free_place].address, memory_order_relaxed)) {
		atomic_store_explicit(&place[free_place].key, key, memory_order_relaxed);
		/* release: pairs with the acquire above */
		atomic_store_explicit(&place[free_place].address, known, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	return key;
}

/* ---- called by the code that the compiler has put there */

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

/* A signal may come while a name is looked up, with its lock held. */
static _Thread_local unsigned inside;

__attribute__((visibility("default"))) void __cyg_profile_func_enter(void *function, void *site)
{
	(void)site;
	if (inside || !ca_library_is_traced())
		return;
	inside++;
	if (ca_regions_enter())
		ca_library_begin(ca_functions_key(function, ""), 1);
	inside--;
}

__attribute__((visibility("default"))) void __cyg_profile_func_exit(void *function, void *site)
{
	(void)site;
	if (inside || !ca_library_is_traced())
		return;
	inside++;
	if (ca_regions_leave())
		ca_library_end(ca_functions_key(function, ""));
	inside--;
}
