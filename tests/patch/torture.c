/* SPDX-License-Identifier: MIT */
/* To be preloaded into any program: patches the functions of the module whose path contains
 * $TORTURE (exported ones, or all that have symbols), a few hundred sites at a time, and takes
 * them out again, without end. The program's output must not change. Prints to stderr at the
 * end. Not a test by itself; see torture.sh. */
#include "binary/plan/plan.h"
#include "binary/plan/text.h"
#include "causal/runtime/patch.h"
#include "tests/patch/counts.h"
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 40000, AT_ONCE = 200 };

static char path[4096];
static uintptr_t bias;
static struct ca_site *site;
static size_t sites, functions, planned;
static _Atomic uint64_t rounds, jumps, traps, declined;

static bool the_bias(uint32_t module, uintptr_t *out)
{
	*out = bias;
	return module == 1;
}

static int find(struct dl_phdr_info *info, size_t size, void *context)
{
	const char *name = *info->dlpi_name ? info->dlpi_name : context;

	(void)size;
	if (!strstr(name, getenv("TORTURE")) || strstr(name, "torture"))
		return 0;
	snprintf(path, sizeof path, "%s", name);
	bias = info->dlpi_addr;
	return 1;
}

static void plan_symbols(struct ca_text *text, Elf *elf, Elf_Scn *section, const GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(section, NULL);
	uint64_t last = 0;

	for (size_t i = 0; data && i < sh->sh_size / sh->sh_entsize && sites + 400 < MOST; i++) {
		struct ca_range range = { 0 };
		struct ca_err err;
		GElf_Sym sym;
		size_t n;
		bool self;

		if (!gelf_getsym(data, (int)i, &sym) || GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
		    !sym.st_size || sym.st_value == last)
			continue;
		last = range.low = sym.st_value;
		range.high = sym.st_value + sym.st_size;
		functions++;
		/* some as lines: their calls */
		if (functions % 4 == 0
			    ? ca_plan_line(text, 1, &range, 1, site + sites, 400, &n, &self, &err) == CA_OK
			    : ca_plan_function(text, 1, &range, 1, site + sites, 400, &n, &err) == CA_OK) {
			sites += n;
			planned++;
		}
	}
	(void)elf;
}

static void plan_all(void)
{
	struct ca_text *text;
	Elf_Scn *section = NULL;
	struct ca_err err;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	site = calloc(MOST, sizeof *site);
	if (!elf || !site || ca_text_open(&text, path, &err) != CA_OK)
		return;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr sh;

		if (gelf_getshdr(section, &sh) && (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM))
			plan_symbols(text, elf, section, &sh);
	}
	ca_text_close(text);
	elf_end(elf);
	close(fd);
}

static void *work(void *unused)
{
	struct timespec pause = { .tv_nsec = 300000 };
	size_t at = 0;
	sigset_t all;

	/* the program's signals are its own */
	sigfillset(&all);
	sigdelset(&all, SIGTRAP);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (sites) {
		/* windows wander; records are limited to 4096 places */
		size_t span = sites < 3500 ? sites : 3500;
		size_t n = span - at < AT_ONCE ? span - at : AT_ONCE;
		struct ca_patch_stats stats;

		declined += ca_patch_install(site + at, n, the_bias);
		stats = ca_patch_stats();
		jumps += stats.jumps;
		traps += stats.traps;
		nanosleep(&pause, NULL);
		ca_patch_remove();
		rounds++;
		at = at + n >= span ? 0 : at + n;
	}
	return unused;
}

__attribute__((constructor)) static void start(void)
{
	static char exe[4096];
	pthread_t thread;
	const char *why;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

	unsetenv("LD_PRELOAD");
	if (!getenv("TORTURE") || n < 0 || !dl_iterate_phdr(find, exe) || !ca_patch_init(&why))
		return;
	counts_set();
	plan_all();
	pthread_create(&thread, NULL, work, NULL);
}

__attribute__((destructor)) static void end(void)
{
	fprintf(stderr,
		"torture: %s: %zu of %zu functions, %zu sites; %lu rounds, %lu jumps, %lu traps, %lu "
		"declined\n",
		path, planned, functions, sites, (unsigned long)rounds, (unsigned long)jumps,
		(unsigned long)traps, (unsigned long)declined);
}
