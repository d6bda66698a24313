/* SPDX-License-Identifier: MIT */
/* See target.h. */
#include "tests/patch/target.h"
#include "tests/patch/victims.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uintptr_t the_bias;
static struct target target;

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

bool target_bias(uint32_t module, uintptr_t *bias)
{
	*bias = the_bias;
	return module == 1;
}

static void plan_one(struct target *t, const char *name, const GElf_Sym *sym)
{
	struct target_function *f = &t->function[t->functions++];
	struct ca_err err;
	bool self;

	if (t->functions > TARGET_FUNCTIONS)
		fail("more functions than room");
	snprintf(f->name, sizeof f->name, "%s", name);
	f->range =
		(struct ca_range){ .module = 1, .low = sym->st_value, .high = sym->st_value + sym->st_size };
	if (ca_plan_function(t->text, 1, &f->range, 1, f->site, 96, &f->sites, &err) != CA_OK) {
		printf("# %s: %s\n", name, err.text);
		f->sites = 0;
	}
	if (ca_plan_line(t->text, 1, &f->range, 1, f->call, 96, &f->calls, &self, &err) != CA_OK) {
		printf("# %s as a line: %s\n", name, err.text);
		f->calls = 0;
	}
}

static void read_symbols(struct target *t, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		Elf_Data *data = elf_getdata(section, NULL);
		GElf_Shdr sh;

		if (!gelf_getshdr(section, &sh) || sh.sh_type != SHT_SYMTAB)
			continue;
		for (size_t i = 0; data && i < sh.sh_size / sh.sh_entsize; i++) {
			const char *name;
			GElf_Sym sym;

			if (!gelf_getsym(data, (int)i, &sym) || GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
			    !sym.st_size)
				continue;
			name = elf_strptr(elf, sh.sh_link, sym.st_name);
			if (name && !strncmp(name, "v_", 2) && !strstr(name, ".cold"))
				plan_one(t, name, &sym);
		}
	}
	elf_end(elf);
	close(fd);
}

struct target *target_open(const char *library)
{
	const char *path = library ? library : "/proc/self/exe";
	struct target *t = &target;
	struct link_map *map = NULL;
	struct ca_err err;
	void *handle;

	elf_version(EV_CURRENT);
	handle = dlopen(library, RTLD_NOW);
	if (!handle)
		fail(dlerror());
	*(void **)&t->run = dlsym(handle, "victims_run");
	*(void **)&t->visits = dlsym(handle, "victims_visits");
	*(void **)&t->in_handler = dlsym(handle, "victims_in_handler");
	if (!t->run || !t->visits || !t->in_handler || dlinfo(handle, RTLD_DI_LINKMAP, &map))
		fail("no victims in it");
	the_bias = map->l_addr;
	if (ca_text_open(&t->text, path, &err) != CA_OK)
		fail(err.text);
	read_symbols(t, path);
	if (t->functions < 25)
		fail("too few functions found: is there a symbol table?");
	return t;
}

bool target_is_clean(const struct target_function *f)
{
	for (size_t i = 0; i < f->sites; i++)
		if (memcmp((const void *)(f->site[i].address + the_bias), f->site[i].original,
			   f->site[i].length) != 0)
			return false;
	return true;
}
