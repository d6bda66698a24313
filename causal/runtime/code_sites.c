/* SPDX-License-Identifier: MIT */
/* Where the macros of causal_trace.h stand: notes that were loaded with the program say so. Each
 * no-operation instruction becomes a jump to the code out of line.
 *
 * Constructor, or a handler when a library appeared later; by whoever patches. */
#include "causal/runtime/code_sites.h"
#include "causal/runtime/patch.h"
#include "core/log.h"
#include "core/sys.h"
#include <elf.h>
#include <errno.h>
#include <string.h>

causal_trace_raise_ *ca_code_sites_raise;
_Atomic uint32_t ca_code_sites_generation = 1;
static const struct causal_trace_key_ *off[CAUSAL_TRACE_OFFS_];

static const uint8_t nop5[CA_NOP_LENGTH] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

/* By system calls, these two: the library may be closed at this very moment. */
static bool copy(void *to, uintptr_t from, size_t size)
{
	long got = ca_sys_peek(from, to, size);

	if (got == -EPERM || got == -ENOSYS) {
		memcpy(to, (const void *)from, size);
		return true;
	}
	return got == (long)size;
}

static bool put(uintptr_t to, const struct causal_trace_hook_ *hook)
{
	long done = ca_sys_poke(to, hook, sizeof *hook);

	if (done != -EPERM && done != -ENOSYS)
		return done == (long)sizeof *hook;
	*(struct causal_trace_hook_ *)to = *hook;
	return true;
}

static bool is_nop5(uintptr_t address)
{
	uint8_t now[sizeof nop5];

	return copy(now, address, sizeof now) && !memcmp(now, nop5, sizeof now);
}

bool ca_code_sites_nop(const struct ca_loaded *l, uint64_t address, uint64_t target, struct ca_site *site)
{
	if (address + l->bias < l->low || address + l->bias + sizeof nop5 > l->high ||
	    !is_nop5(address + l->bias))
		return false;
	memset(site, 0, sizeof *site);
	site->module = l->module;
	site->kind = CA_SITE_COUNT;
	site->length = CA_NOP_LENGTH;
	site->address = address;
	site->code_length = 5; /* in place of the nop: the jump */
	site->code[0] = 0xe9;
	site->fixups = 1;
	site->fixup[0].at = 1;
	site->fixup[0].end = 5;
	site->fixup[0].type = CA_FIXUP_REL;
	site->fixup[0].target = target;
	memcpy(site->original, nop5, sizeof nop5);
	return true;
}

enum {
	HEADERS = 32, /* program headers looked at */
	BATCH = 64    /* sites placed in one go */
};

struct note {
	Elf64_Nhdr head;
	char owner[8];
	int32_t at, on, hook; /* from where they stand */
};

/* Guarded by `placing`; too large for a handler's stack. */
static Elf64_Phdr header[HEADERS];
static struct ca_site site[BATCH];
static unsigned sites;
static atomic_flag placing = ATOMIC_FLAG_INIT;

/* The program headers of the module; 0: they cannot be read. */
static unsigned read_headers(const struct ca_loaded *l)
{
	Elf64_Ehdr e;
	unsigned n;

	if (!copy(&e, l->head, sizeof e) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
	    e.e_phentsize != sizeof *header)
		return 0;
	n = e.e_phnum < HEADERS ? e.e_phnum : HEADERS;
	return copy(header, l->head + e.e_phoff, n * sizeof *header) ? n : 0;
}

/* Does the module have this as data of its own? Nothing else may be written to. */
static bool is_data(const struct ca_loaded *l, unsigned headers, uintptr_t at)
{
	for (unsigned i = 0; i < headers; i++)
		if (header[i].p_type == PT_LOAD && header[i].p_flags & PF_W &&
		    at - (l->bias + header[i].p_vaddr) < header[i].p_memsz &&
		    l->bias + header[i].p_vaddr + header[i].p_memsz - at >= sizeof(struct causal_trace_hook_))
			return at % sizeof(void *) == 0;
	return false;
}

void ca_code_sites_off(const struct causal_trace_key_ *key)
{
	__atomic_store_n(&off[CAUSAL_TRACE_OFF_(key)], key, __ATOMIC_RELAXED);
}

void ca_code_sites_forget(void)
{
	atomic_fetch_add_explicit(&ca_code_sites_generation, 1, memory_order_relaxed);
	for (unsigned i = 0; i < CAUSAL_TRACE_OFFS_; i++)
		__atomic_store_n(&off[i], NULL, __ATOMIC_RELAXED);
}

static unsigned place_batch(void)
{
	unsigned failed = sites ? ca_patch_install(site, sites, ca_modules_bias) : 0;

	sites = 0;
	return failed;
}

/* Where its site is on already. */
static void mend_hook(uintptr_t hook, const struct causal_trace_hook_ *ours)
{
	struct causal_trace_hook_ now;

	if (copy(&now, hook, sizeof now) && !now.off)
		put(hook, ours);
}

/* Returns how many sites could not be placed. */
static unsigned place_note(const struct ca_loaded *l, unsigned headers, uintptr_t address,
			   const struct note *n)
{
	uintptr_t desc = address + offsetof(struct note, at);
	uintptr_t at = desc + (uintptr_t)(intptr_t)n->at;
	uintptr_t on = desc + sizeof n->at + (uintptr_t)(intptr_t)n->on;
	uintptr_t hook = desc + 2 * sizeof n->at + (uintptr_t)(intptr_t)n->hook;
	struct causal_trace_hook_ ours = { ca_code_sites_raise, off };

	if (on < l->low || on >= l->high || !is_data(l, headers, hook))
		return 0; /* not ours */
	if (!ca_code_sites_nop(l, at - l->bias, on - l->bias, &site[sites])) {
		mend_hook(hook, &ours);
		return 0;
	}
	if (!put(hook, &ours))
		return 0; /* gone */
	return ++sites == BATCH ? place_batch() : 0;
}

static unsigned place_notes(const struct ca_loaded *l, unsigned headers, uintptr_t from, uintptr_t size)
{
	unsigned failed = 0;
	struct note n;

	for (uintptr_t at = 0; at + sizeof n.head <= size;) {
		size_t whole = 0;

		if (!copy(&n.head, from + at, sizeof n.head))
			break;
		whole = sizeof n.head + (((size_t)n.head.n_namesz + 3) & ~(size_t)3) +
			(((size_t)n.head.n_descsz + 3) & ~(size_t)3);
		if (whole > size - at)
			break;
		if (n.head.n_type == 2 && n.head.n_namesz == sizeof "causal" && whole == sizeof n &&
		    copy(&n, from + at, sizeof n) && !memcmp(n.owner, "causal", sizeof "causal"))
			failed += place_note(l, headers, from + at, &n);
		at += whole;
	}
	return failed + place_batch();
}

void ca_code_sites_place(const struct ca_loaded *l)
{
	unsigned headers, failed = 0;

	if (!ca_rt.names || !ca_rt.patching ||
	    atomic_flag_test_and_set_explicit(&placing, memory_order_acquire))
		return;
	headers = read_headers(l);
	for (unsigned i = 0; i < headers; i++)
		if (header[i].p_type == PT_NOTE)
			failed += place_notes(l, headers, l->bias + header[i].p_vaddr, header[i].p_filesz);
	atomic_flag_clear_explicit(&placing, memory_order_release);
	if (failed)
		ca_log(CA_LOG_ERROR, "%u events of causal_trace.h could not be switched on: they are missing",
		       failed);
}
