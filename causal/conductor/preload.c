/* SPDX-License-Identifier: MIT */
/* Programs into which nothing can be preloaded: what the kernel and the loader go by, read from
 * the file before it is run. Not about what a program does with its environment later.
 * Driver's process, one thread. */
#include "causal/conductor/preload.h"
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static bool get(int fd, void *to, size_t size, uint64_t at)
{
	return pread(fd, to, size, (off_t)at) == (ssize_t)size;
}

/* The loader's path; empty: none. */
static void read_interpreter(int fd, const Elf64_Ehdr *e, char *path, size_t room)
{
	Elf64_Phdr ph;

	path[0] = 0;
	for (unsigned i = 0; i < e->e_phnum; i++)
		if (get(fd, &ph, sizeof ph, e->e_phoff + (uint64_t)i * e->e_phentsize) &&
		    ph.p_type == PT_INTERP && ph.p_filesz < room && get(fd, path, ph.p_filesz, ph.p_offset)) {
			path[ph.p_filesz] = 0;
			return;
		}
}

/* Go's linker writes this section also into stripped programs. */
static bool is_go(int fd, const Elf64_Ehdr *e)
{
	static const char wanted[] = ".go.buildinfo";
	Elf64_Shdr names, section;
	char name[sizeof wanted];

	if (!get(fd, &names, sizeof names, e->e_shoff + (uint64_t)e->e_shstrndx * e->e_shentsize))
		return false;
	for (unsigned i = 0; i < e->e_shnum; i++)
		if (get(fd, &section, sizeof section, e->e_shoff + (uint64_t)i * e->e_shentsize) &&
		    section.sh_name < names.sh_size && names.sh_size - section.sh_name >= sizeof wanted &&
		    get(fd, name, sizeof name, names.sh_offset + section.sh_name) &&
		    !memcmp(name, wanted, sizeof wanted))
			return true;
	return false;
}

/* AT_SECURE: the loader drops LD_PRELOAD. Root keeps it, and so do all where rights are ignored. */
static bool has_more_rights(int fd)
{
	struct statvfs where;
	struct stat info;

	if (fstat(fd, &info) || (fstatvfs(fd, &where) == 0 && (where.f_flag & ST_NOSUID)))
		return false;
	if (((info.st_mode & S_ISUID) && info.st_uid != getuid()) ||
	    ((info.st_mode & S_ISGID) && info.st_gid != getgid()))
		return true;
	return getuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

struct ca_preload ca_preload_check(const char *path)
{
	struct ca_preload found = { NULL, NULL };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char interpreter[256];
	Elf64_Ehdr e;

	if (fd < 0)
		return found;
	if (!get(fd, &e, sizeof e, 0) || memcmp(e.e_ident, ELFMAG, SELFMAG))
		goto out;
	read_interpreter(fd, &e, interpreter, sizeof interpreter);
	if (e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_machine != EM_X86_64)
		found = (struct ca_preload){ "is not a program for 64-bit x86", "build it for x86-64" };
	else if (is_go(fd, &e))
		found = (struct ca_preload){ "is a Go program, which keeps threads and signals to itself",
					     "use Go's own profiler (runtime/pprof)" };
	else if (!*interpreter)
		found = (struct ca_preload){ "is statically linked",
					     "link it dynamically (without -static or -static-pie)" };
	else if (strstr(interpreter, "ld-musl"))
		found = (struct ca_preload){ "uses the C library musl, and the runtime needs glibc",
					     "build it against glibc" };
	else if (has_more_rights(fd))
		found = (struct ca_preload){ "is set-user-ID, set-group-ID or has file capabilities",
					     "profile a copy without such rights (cp), or run causal as "
					     "the file's owner" };
out:
	close(fd);
	return found;
}
