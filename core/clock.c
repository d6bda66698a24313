/* SPDX-License-Identifier: MIT */
/* The kernel's own clock function, found without libc and its names: the runtime interposes those,
 * as other preloaded libraries do. The vDSO is an ELF image whose address the auxiliary vector
 * tells (vdso(7)); where it has no such function, the system call does the same. Any context. */
#include "core/clock.h"
#include "core/sys.h"
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

static int by_system_call(clockid_t clock, struct timespec *now)
{
	return (int)ca_sys(SYS_clock_gettime, clock, (long)(intptr_t)now, 0, 0, 0, 0);
}

struct image {
	uintptr_t bias;
	const ElfW(Sym) * symbol;
	const char *strings;
	const uint32_t *hash, *gnu_hash;
};

static void read_dynamic(struct image *image, const ElfW(Dyn) * d)
{
	for (; d->d_tag != DT_NULL; d++) {
		/* the kernel does not relocate it */
		const void *at = (const void *)(image->bias + d->d_un.d_ptr);

		if (d->d_tag == DT_SYMTAB)
			image->symbol = at;
		else if (d->d_tag == DT_STRTAB)
			image->strings = at;
		else if (d->d_tag == DT_HASH)
			image->hash = at;
		else if (d->d_tag == DT_GNU_HASH)
			image->gnu_hash = at;
	}
}

static bool open_image(struct image *image)
{
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)getauxval(AT_SYSINFO_EHDR);
	const ElfW(Dyn) *dynamic = NULL;
	const ElfW(Phdr) * p;

	if (!header)
		return false;
	p = (const ElfW(Phdr) *)((uintptr_t)header + header->e_phoff);
	for (unsigned i = 0; i < header->e_phnum; i++) {
		if (p[i].p_type == PT_LOAD && p[i].p_offset == 0)
			image->bias = (uintptr_t)header - p[i].p_vaddr;
		else if (p[i].p_type == PT_DYNAMIC)
			dynamic = (const ElfW(Dyn) *)((uintptr_t)header + p[i].p_offset);
	}
	if (dynamic)
		read_dynamic(image, dynamic);
	return image->symbol && image->strings;
}

/* A hash table of either kind tells how many symbols there are. */
static uint32_t count_symbols(const struct image *image)
{
	const uint32_t *g = image->gnu_hash, *bucket, *chain;
	uint32_t last = 0;

	if (image->hash)
		return image->hash[1];
	if (!g)
		return 0;
	bucket = g + 4 + g[2] * (sizeof(ElfW(Addr)) / sizeof *g);
	chain = bucket + g[0];
	for (uint32_t i = 0; i < g[0]; i++)
		if (bucket[i] > last)
			last = bucket[i];
	if (last < g[1])
		return 0;
	while (!(chain[last - g[1]] & 1))
		last++;
	return last + 1;
}

static int first_time(clockid_t clock, struct timespec *now)
{
	struct image image = { 0 };
	uint32_t n = open_image(&image) ? count_symbols(&image) : 0;
	ca_clock_function found = by_system_call;

	for (uint32_t i = 0; i < n; i++)
		if (image.symbol[i].st_shndx != SHN_UNDEF &&
		    !strcmp(image.strings + image.symbol[i].st_name, "__vdso_clock_gettime"))
			found = (ca_clock_function)(image.bias + image.symbol[i].st_value);
	atomic_store_explicit(&ca_clock_get, found, memory_order_relaxed);
	return found(clock, now);
}

_Atomic(ca_clock_function) ca_clock_get = first_time;

enum {
	APART = 200000, /* ns between two readings that tell how fast cycles pass */
	FRESH = 500000,
	AT_ONCE = 10000 /* cycles; else the two were not read together: the thread lost its CPU in between */
};

/* If cycles are as long as they were, the counter will do for a while. */
uint64_t ca_clock_fast_read(struct ca_clock_fast *c, uint64_t cycles)
{
	uint64_t now = ca_clock_now(), passed = now - c->time, scale;

	if (c->time && passed < APART)
		return now;
	c->fresh = 0;
	if (c->time && passed < CA_NS_PER_S && cycles > c->cycles) {
		scale = (passed << 32) / (cycles - c->cycles);
		if (scale - c->scale + scale / 1024 < scale / 512)
			c->fresh = FRESH * (cycles - c->cycles) / passed;
		c->scale = scale;
	}
	c->time = now;
	c->cycles = cycles;
	if (ca_cpu_cycles() - cycles > AT_ONCE)
		c->time = c->fresh = 0;
	return now;
}
