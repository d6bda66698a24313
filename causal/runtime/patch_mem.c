/* SPDX-License-Identifier: MIT */
/* Writing into text, and finding memory for trampolines. Handler-safe; one thread at a time (the
 * lock in patch.c). Nothing is ever writable and executable: bytes go in through /proc/thread-self/mem,
 * which ignores the protection of private mappings. Where that file cannot be opened (no /proc,
 * not dumpable) mprotect opens the page for the moment.
 *
 * The descriptor is opened for each operation: a kept one would shift the program's own numbers
 * and, after a fork, still lead to the parent's memory. */
#include "causal/runtime/patch_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define MIB ((uintptr_t)1 << 20)
enum {
	PAGE = 4096,
	REGIONS = 64,
	ISLANDS = 1024,
	HEADER = 16,
	LANDING = 8,                      /* jmp rel32 and three int3 */
	MARK = 0x5eca5ada,                /* before each body */
	ISLAND_LANDING = CA_PATCH_LANDING /* jmp *(%rip), address, two int3 */
};

/* Trampolines for the text in one 16 MiB block. A jump of distance filler << 24 .. (filler + 1)
 * << 24 from the block ends in [block + (filler << 24), + 32 MiB); bodies lie below that.
 * Only pages that are used take memory. The address space is set aside as a whole, but where the
 * program may have little of it: there, pages of landings are mapped when they are used. */
enum { LANDING_PAGES = 32 * 256 };
struct region {
	uintptr_t low, bodies, landings, high; /* bodies: their end */
	uint64_t used[LANDING_PAGES / 64];     /* pages of landings */
	bool whole;
	_Atomic uintptr_t next; /* free for bodies */
	uintptr_t block;
	uint8_t filler;
};
static struct region region[REGIONS];
/* Released after the entry is filled in; acquired by ca_patch_mem_record in any thread. */
static _Atomic unsigned regions;
static uintptr_t island[ISLANDS]; /* single pages, for jumps whose distance is given */
static unsigned islands;
static uintptr_t stack_base;

static const uintptr_t bodies_size = 4 * MIB;
static bool scarce; /* address space is */
enum { SCARCE_BODIES = 256 * 1024 };

/* Opcodes that trap in 64-bit mode, as the high byte of the distance: int3 first, then such that
 * are invalid. Large distances upwards first: they leave the heap room to grow. */
static const uint8_t filler_choice[] = { 0xcc, 0xce, 0xea, 0x82, 0x61, 0x3f, 0x37, 0x2f,
					 0x27, 0x1f, 0x1e, 0x17, 0x16, 0x0e, 0x07, 0x06 };

void ca_patch_mem_init(uintptr_t stack)
{
	stack_base = stack;
}

/* ---- text ------------------------------------------------------------------------------- */

void ca_patch_mem_open(struct ca_patch_text *text)
{
	int fd = ca_sys_open("/proc/thread-self/mem", O_RDWR);

	text->fd = fd < 0 ? -1 : fd;
}

void ca_patch_mem_close(struct ca_patch_text *text)
{
	if (text->fd >= 0)
		ca_sys_close(text->fd);
	text->fd = -1;
}

bool ca_patch_mem_read(const struct ca_patch_text *text, uintptr_t from, void *to, size_t length)
{
	if (text->fd >= 0)
		return ca_sys(SYS_pread64, text->fd, (long)to, (long)length, (long)from, 0, 0) ==
		       (long)length;
	return ca_sys_peek(from, to, length) == (long)length;
}

/* By a system call where there is one: the library may be closed at this very moment. */
static bool store(uintptr_t to, const void *from, size_t length)
{
	long put = ca_sys_poke(to, from, length);
	volatile uint8_t *out = (volatile uint8_t *)to;

	if (put != -EPERM && put != -ENOSYS)
		return put == (long)length;
	for (size_t i = 0; i < length; i++)
		if (out[i] != ((const uint8_t *)from)[i])
			out[i] = ((const uint8_t *)from)[i];
	return true;
}

static bool write_by_mprotect(uintptr_t to, const void *from, size_t length)
{
	uintptr_t page = to & ~(uintptr_t)(PAGE - 1);
	size_t span = ((to + length - 1) | (PAGE - 1)) + 1 - page;
	bool done;

	if (ca_sys(SYS_mprotect, (long)page, (long)span, PROT_READ | PROT_WRITE | PROT_EXEC, 0, 0, 0) != 0)
		return false;
	done = store(to, from, length);
	ca_sys(SYS_mprotect, (long)page, (long)span, PROT_READ | PROT_EXEC, 0, 0, 0);
	return done;
}

bool ca_patch_mem_write(const struct ca_patch_text *text, uintptr_t to, const void *from, size_t length)
{
	if (text->fd < 0)
		return write_by_mprotect(to, from, length);
	return ca_sys(SYS_pwrite64, text->fd, (long)from, (long)length, (long)to, 0, 0) == (long)length;
}

/* Tried on a byte of our own text that nobody runs. */
bool ca_patch_mem_check(const char **why)
{
	uintptr_t at = (uintptr_t)ca_trampoline_restore - 1;
	struct ca_patch_text text;
	uint8_t byte;
	bool ok;

	ca_patch_mem_open(&text);
	ok = ca_patch_mem_read(&text, at, &byte, 1) && ca_patch_mem_write(&text, at, &byte, 1);
	ca_patch_mem_close(&text);
	if (!ok)
		*why = "program text cannot be written: neither /proc/self/mem nor mprotect works";
	return ok;
}

/* ---- memory ----------------------------------------------------------------------------- */

static bool map_at(uintptr_t at, size_t length)
{
	long got = ca_sys(SYS_mmap, (long)at, (long)length, PROT_READ | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (got == (long)at) {
		/* a huge page for a few hundred bytes would be a poor trade */
		ca_sys(SYS_madvise, (long)at, (long)length, MADV_NOHUGEPAGE, 0, 0, 0);
		return true;
	}
	if (got > 0) /* a kernel before 4.17 takes the address as a hint */
		ca_sys(SYS_munmap, got, (long)length, 0, 0, 0, 0);
	return false;
}

/* Where the stack or the heap will want to grow. */
static bool wanted_by_program(uintptr_t low, uintptr_t high)
{
	uintptr_t brk = (uintptr_t)ca_sys(SYS_brk, 0, 0, 0, 0, 0, 0);

	if (low < 64 * 1024 || high < low || high >= (uintptr_t)1 << 47)
		return true;
	if (low < brk + 256 * MIB && high > brk)
		return true;
	return low < stack_base + MIB && high > stack_base - 160 * MIB;
}

void ca_patch_mem_trim(void)
{
	scarce = true;
	for (unsigned i = 0; i < regions; i++) {
		struct region *r = &region[i];
		uintptr_t end = (atomic_load_explicit(&r->next, memory_order_relaxed) | (PAGE - 1)) + 1 +
				SCARCE_BODIES;

		if (!r->whole)
			continue;
		r->whole = false;
		if (end < r->bodies) {
			ca_sys_unmap((const void *)end, r->bodies - end);
			r->bodies = end;
		}
		for (size_t page = 0; page < LANDING_PAGES; page++)
			if (!(r->used[page / 64] >> page % 64 & 1))
				ca_sys_unmap((const void *)(r->landings + page * PAGE), PAGE);
	}
}

bool ca_patch_mem_has(uintptr_t address)
{
	for (unsigned i = 0; i < regions; i++)
		if (address >= region[i].low && address < region[i].high)
			return true;
	return false;
}

static struct region *region_make(const struct ca_patch_text *text, uintptr_t block)
{
	unsigned n = atomic_load_explicit(&regions, memory_order_relaxed);
	struct region *r = &region[n];

	if (n == REGIONS)
		return NULL;
	for (size_t i = 0; i < sizeof(filler_choice); i++) {
		intptr_t distance = (intptr_t)(int8_t)filler_choice[i] * (1 << 24);
		uintptr_t landings = block + (uintptr_t)distance;
		uintptr_t low = landings - bodies_size;
		uintptr_t high = landings + 32 * MIB;
		uintptr_t bodies = scarce ? low + SCARCE_BODIES : landings;

		if ((distance < 0 && low >= block) || wanted_by_program(low, high) ||
		    !map_at(low, scarce ? SCARCE_BODIES : high - low))
			continue;
		if (!ca_patch_mem_write(text, low, ca_trampoline_thunk, sizeof(ca_trampoline_thunk)))
			return NULL;
		*r = (struct region){ .low = low,
				      .bodies = bodies,
				      .whole = !scarce,
				      .landings = landings,
				      .high = high,
				      .block = block,
				      .filler = filler_choice[i] };
		atomic_store_explicit(&r->next, low + PAGE, memory_order_relaxed);
		atomic_store_explicit(&regions, n + 1, memory_order_release);
		return r;
	}
	return NULL;
}

static struct region *region_for(const struct ca_patch_text *text, uintptr_t end)
{
	uintptr_t block = end & ~(16 * MIB - 1);

	for (unsigned i = 0; i < regions; i++)
		if (region[i].block == block)
			return &region[i];
	return region_make(text, block);
}

uintptr_t ca_patch_mem_thunks(uintptr_t body)
{
	for (unsigned i = 0; i < regions; i++)
		if (body >= region[i].low && body < region[i].high)
			return region[i].low;
	return 0;
}

static uintptr_t body_take(const struct ca_patch_text *text, struct region *r, size_t length, uint32_t number)
{
	uint32_t head[4] = { 0, 0, MARK, number };
	uintptr_t at = atomic_load_explicit(&r->next, memory_order_relaxed);
	size_t size = (HEADER + length + 15) & ~(size_t)15;

	if (at + size > r->bodies || !ca_patch_mem_write(text, at, head, sizeof(head)))
		return 0;
	atomic_store_explicit(&r->next, at + size, memory_order_release);
	return at + HEADER;
}

/* Bodies are at most CA_PATCH_BODY long and start at a multiple of 16, so that the mark is near.
 * Bytes that merely look like one are refused by the record's own range. */
int ca_patch_mem_record(uintptr_t pc)
{
	unsigned n = atomic_load_explicit(&regions, memory_order_acquire);

	for (unsigned i = 0; i < n; i++) {
		if (pc < region[i].low + PAGE + HEADER ||
		    pc >= atomic_load_explicit(&region[i].next, memory_order_acquire))
			continue;
		for (uintptr_t at = pc & ~(uintptr_t)15;
		     at >= region[i].low + PAGE + HEADER && pc - at < CA_PATCH_BODY; at -= 16) {
			uint32_t head[4];
			const struct ca_patch_record *r;

			memcpy(head, (const void *)(at - HEADER), sizeof(head));
			if (head[2] != MARK || head[3] >= CA_PATCH_RECORDS)
				continue;
			r = &ca_patch_records[head[3]];
			if (r->place.body == at && pc < at + r->body_length)
				return (int)head[3];
		}
		return -1;
	}
	return -1;
}

static bool all_zero(uintptr_t at, size_t length)
{
	uint8_t bytes[ISLAND_LANDING];

	memcpy(bytes, (const void *)at, length);
	for (size_t i = 0; i < length; i++)
		if (bytes[i])
			return false;
	return true;
}

/* May this be written to? */
static bool landing_is_mapped(struct region *r, uintptr_t at)
{
	size_t first = (at - r->landings) / PAGE, last = (at + LANDING - 1 - r->landings) / PAGE;

	for (size_t page = first; page <= last; page++) {
		uint64_t bit = UINT64_C(1) << page % 64;

		if (!r->whole && !(r->used[page / 64] & bit) && !map_at(r->landings + page * PAGE, PAGE))
			return false;
		r->used[page / 64] |= bit;
	}
	return true;
}

size_t ca_patch_mem_landing(const struct ca_patch_place *place, uint8_t bytes[CA_PATCH_LANDING])
{
	uint32_t distance = (uint32_t)(place->body - (place->landing + 5));

	memset(bytes, 0xcc, CA_PATCH_LANDING);
	if (!place->far) {
		bytes[0] = 0xe9;
		memcpy(bytes + 1, &distance, 4);
		return LANDING;
	}
	memcpy(bytes, (const uint8_t[]){ 0xff, 0x25, 0, 0, 0, 0 }, 6);
	memcpy(bytes + 6, &place->body, 8);
	return ISLAND_LANDING;
}

/* A landing in the region. Of the free bytes the low ones run fastest: few pages are touched. */
static uintptr_t landing_near(struct region *r, uintptr_t end, const struct ca_patch_pun *pun)
{
	uint32_t mask = pun->mask | pun->trap | 0xff000000u;
	uint32_t value =
		(pun->value & pun->mask) | (pun->trap & 0xccccccccu & 0xffffffu) | (uint32_t)r->filler << 24;

	/* counting up in the free bits: set the given ones, add one, clear them again */
	for (uint32_t free = 0, tries = 0; tries < 4096; tries++) {
		uintptr_t at = end + (uintptr_t)(intptr_t)(int32_t)(value | free);

		if (at >= r->landings && at + LANDING <= r->high && landing_is_mapped(r, at) &&
		    all_zero(at, LANDING))
			return at;
		free = ((free | mask) + 1) & ~mask;
		if (!free)
			break;
	}
	return 0;
}

static bool island_has(uintptr_t page)
{
	for (unsigned i = 0; i < islands; i++)
		if (island[i] == page)
			return true;
	return false;
}

static bool island_at(uintptr_t at)
{
	uintptr_t first = at & ~(uintptr_t)(PAGE - 1);
	uintptr_t last = (at + ISLAND_LANDING - 1) & ~(uintptr_t)(PAGE - 1);

	for (uintptr_t page = first; page <= last; page += PAGE) {
		if (island_has(page))
			continue;
		if (islands == ISLANDS || wanted_by_program(page, page + PAGE) || !map_at(page, PAGE))
			return false;
		island[islands++] = page;
	}
	return all_zero(at, ISLAND_LANDING);
}

/* A landing at a distance whose high byte is given by bytes of the program. */
static uintptr_t landing_far(uintptr_t end, const struct ca_patch_pun *pun)
{
	uint32_t mask = pun->mask | pun->trap;
	uint32_t value = (pun->value & pun->mask) | (pun->trap & 0xccccccccu);

	for (uint32_t free = 0, tries = 0; tries < 64; tries++) {
		uintptr_t at = end + (uintptr_t)(intptr_t)(int32_t)(value | free);

		if (island_at(at))
			return at;
		/* another page each time, if the free bytes allow it */
		free = ((free | mask) + 0x95) & ~mask;
		if (mask == 0xffffffffu)
			break;
	}
	return 0;
}

bool ca_patch_mem_place(const struct ca_patch_text *text, uintptr_t end, const struct ca_patch_pun *pun,
			size_t length, struct ca_patch_place *place)
{
	struct region *r = region_for(text, end);
	uint32_t number = atomic_load_explicit(&ca_patch_record_count, memory_order_relaxed);
	uint8_t jump[CA_PATCH_LANDING];

	if (!r)
		return false;
	*place = (struct ca_patch_place){ .far = pun->mask >> 24 };
	if (pun->mask || pun->trap) {
		place->landing = place->far ? landing_far(end, pun) : landing_near(r, end, pun);
		if (!place->landing)
			return false;
	}
	place->body = body_take(text, r, length, number);
	if (!place->body)
		return false;
	if (place->landing)
		return ca_patch_mem_write(text, place->landing, jump, ca_patch_mem_landing(place, jump));
	place->landing = place->body;
	return true;
}
