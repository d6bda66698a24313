/* SPDX-License-Identifier: MIT */
/* Finding the runtime; see driver/runtime.h. */
#include "driver/runtime.h"
#include "driver/child.h"
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Does the table define both? */
static bool defines(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, const char *const name[2])
{
	Elf_Data *data = elf_getdata(section, NULL);
	bool found[2] = { false, false };
	GElf_Sym symbol;

	for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
		const char *here = elf_strptr(elf, header->sh_link, symbol.st_name);

		for (size_t k = 0; k < 2 && here && symbol.st_shndx != SHN_UNDEF; k++)
			found[k] = found[k] || !strcmp(here, name[k]);
	}
	return found[0] && found[1];
}

/* Is it a library with our names? Coz has the one, tools for OpenMP have the other. */
static bool is_runtime(const char *path)
{
	static const char *const names[] = { "_coz_get_counter", "ompt_start_tool" };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_version(EV_CURRENT) != EV_NONE ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	Elf_Scn *section = NULL;
	GElf_Ehdr file;
	GElf_Shdr header;
	bool found = false;

	if (elf && gelf_getehdr(elf, &file) && file.e_type == ET_DYN && file.e_machine == EM_X86_64)
		while (!found && (section = elf_nextscn(elf, section)))
			found = gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM &&
				defines(elf, section, &header, names);
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return found;
}

/* Beside the executable in a build tree (libtool's folder), then as installed. */
static char *find_installed(void)
{
	static const char *const places[] = { "../.libs", "../lib", ".libs" };
	char *self = ca_child_self(), *slash = self ? strrchr(self, '/') : NULL, *path = NULL;
	char candidate[PATH_MAX];

	for (size_t i = 0; slash && !path && i < sizeof places / sizeof *places; i++) {
		snprintf(candidate, sizeof candidate, "%.*s/%s/libcausal-rt.so", (int)(slash - self), self,
			 places[i]);
		path = realpath(candidate, NULL);
	}
	free(self);
	return path ? path : realpath(CAUSAL_LIBDIR "/libcausal-rt.so", NULL);
}

enum ca_status ca_runtime_find(const struct ca_settings *settings, char **path, struct ca_err *err)
{
	bool given = *settings->runtime;
	char *found = given ? realpath(settings->runtime, NULL) : find_installed();

	if (!found && given)
		return ca_err_set(err, CA_ERR_USAGE,
				  "runtime '%s' cannot be used (%s); give the path of "
				  "libcausal-rt.so",
				  settings->runtime, strerror(errno));
	if (!found)
		return ca_err_set(err, CA_ERR_NOT_FOUND,
				  "libcausal-rt.so is not installed beside causal; run make "
				  "install, or give its path with --runtime");
	if (strpbrk(found, ": ")) {
		enum ca_status status =
			ca_err_set(err, given ? CA_ERR_USAGE : CA_ERR_UNSUPPORTED,
				   "'%s' has a blank or colon in its path, which LD_PRELOAD cannot "
				   "carry; %s",
				   found, given ? "use another path" : "install causal elsewhere");

		free(found);
		return status;
	}
	if (given && !is_runtime(found)) {
		free(found);
		return ca_err_set(err, CA_ERR_USAGE,
				  "runtime '%s' cannot be used (not causal's runtime); give the "
				  "path of libcausal-rt.so",
				  settings->runtime);
	}
	*path = found;
	return CA_OK;
}
