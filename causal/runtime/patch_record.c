/* SPDX-License-Identifier: MIT */
/* Records: what has been made for a site, and which bytes its jump gets. They are kept for good.
 *
 * With the lock of patch.c held; trap handlers read them meanwhile. Not for the order in which text changes
 * (patch.c) nor for the trampoline's code (patch_code.c). */
#include "causal/runtime/patch_internal.h"
#include <string.h>

enum { JUMP = 0xe9, CALL = 0xe8, PREFIX = 0x3e, BUCKETS = 4096 };

struct ca_patch_record ca_patch_records[CA_PATCH_RECORDS];
_Atomic uint32_t ca_patch_record_count;
static uint32_t bucket[BUCKETS]; /* by address: record + 1 */

/* All of it: two plans of one place may differ in where a displacement leads alone. */
static bool same_site(const struct ca_patch_record *r, const struct ca_site *site, uintptr_t bias)
{
	return r->bias == bias && memcmp(&r->site, site, sizeof(*site)) == 0;
}

static uint32_t *bucket_of(uintptr_t address)
{
	return &bucket[((address * 0x9e3779b97f4a7c15u) >> 44) & (BUCKETS - 1)];
}

struct ca_patch_record *ca_patch_record_find(const struct ca_site *site, uintptr_t bias)
{
	for (uint32_t n = *bucket_of((uintptr_t)site->address + bias); n;) {
		struct ca_patch_record *r = &ca_patch_records[n - 1];

		if (same_site(r, site, bias))
			return r;
		n = r->next;
	}
	return NULL;
}

/* What the 4 bytes behind the opcode may be, with the opcode at `prefix`. False: an instruction
 * begins where a byte that must be given would go. */
static bool pun_of(const struct ca_patch_record *r, unsigned prefix, const uint8_t *text,
		   struct ca_patch_pun *pun)
{
	*pun = (struct ca_patch_pun){ 0 };
	for (unsigned i = 0; i < r->site.insns; i++) {
		unsigned at = r->site.insn[i].offset;

		if (at <= prefix)
			return false;
		if (at < prefix + CA_PATCH_JUMP)
			pun->trap |= 0xffu << 8 * (at - prefix - 1);
	}
	for (unsigned i = 0; i < 4; i++) {
		if (prefix + 1 + i < r->site.length)
			continue;
		pun->mask |= 0xffu << 8 * i;
		pun->value |= (uint32_t)text[prefix + 1 + i] << 8 * i;
	}
	return true;
}

/* A record of the same bytes, out of use by now, that leads where a jump of this one could. Its trampoline
 * is for good, since threads may be in it, but a landing serves whoever is placed. */
static const struct ca_patch_record *find_landing(const struct ca_patch_record *r, unsigned prefix,
						  const struct ca_patch_pun *pun)
{
	for (uint32_t n = *bucket_of(r->address); n; n = ca_patch_records[n - 1].next) {
		const struct ca_patch_record *o = &ca_patch_records[n - 1];
		uint32_t distance = (uint32_t)(o->place.landing - (r->address + prefix + CA_PATCH_JUMP));

		if (o->address == r->address && o->place.landing != o->place.body && o->prefix == prefix &&
		    o->site.length == r->site.length && (distance & pun->mask) == pun->value &&
		    memcmp(o->site.original, r->site.original, o->site.length) == 0)
			return o;
	}
	return NULL;
}

/* The same place of a jump, another body. */
static bool share_landing(const struct ca_patch_text *text, struct ca_patch_record *r, unsigned prefix,
			  const struct ca_patch_pun *pun, size_t length)
{
	const struct ca_patch_record *o = find_landing(r, prefix, pun);
	uintptr_t end = r->address + prefix + CA_PATCH_JUMP;

	if (!o || !ca_patch_mem_place(text, end, &(struct ca_patch_pun){ 0 }, length, &r->place))
		return false;
	r->place.landing = o->place.landing;
	r->place.far = o->place.far;
	return true;
}

/* Find a landing and lay out the site's new bytes. */
static bool try_prefix(const struct ca_patch_text *text, struct ca_patch_record *r, unsigned prefix,
		       const uint8_t *now, size_t length, bool share)
{
	uintptr_t end = r->address + prefix + CA_PATCH_JUMP;
	struct ca_patch_pun pun;

	if (!pun_of(r, prefix, now, &pun) ||
	    !(share ? share_landing(text, r, prefix, &pun, length)
		    : ca_patch_mem_place(text, end, &pun, length, &r->place)))
		return false;
	r->prefix = (uint8_t)prefix;
	memset(r->patched, CA_PATCH_INT3, sizeof(r->patched));
	memset(r->patched, PREFIX, prefix);
	r->patched[prefix] = r->site.flags & CA_SITE_BY_CALL ? CALL : JUMP;
	for (unsigned i = 0; i < 4; i++)
		if (prefix + 1 + i < sizeof(r->patched))
			r->patched[prefix + 1 + i] = (uint8_t)((r->place.landing - end) >> 8 * i);
	r->footprint = (uint8_t)(prefix + CA_PATCH_JUMP);
	if (r->footprint < r->site.length)
		r->footprint = r->site.length;
	return true;
}

static bool place_jump(const struct ca_patch_text *text, struct ca_patch_record *r, size_t length,
		       bool (*changes)(const struct ca_patch_record *r, uintptr_t high))
{
	const struct ca_site *s = &r->site;
	uint8_t now[CA_SITE_BYTES + 8];

	if (s->flags & CA_SITE_BY_CALL) /* the call must end where the site ends */
		return s->length >= CA_PATCH_JUMP &&
		       try_prefix(text, r, s->length - CA_PATCH_JUMP, s->original, length, false);
	if (s->length >= CA_PATCH_JUMP)
		return try_prefix(text, r, 0, s->original, length, false);
	for (unsigned i = 0; i < 2u * s->length; i++) {
		unsigned prefix = i % s->length;

		if (!ca_patch_mem_read(text, r->address, now, prefix + CA_PATCH_JUMP))
			return false;
		if (!changes(r, r->address + prefix + CA_PATCH_JUMP) &&
		    try_prefix(text, r, prefix, now, length, i >= s->length))
			return true;
	}
	return false;
}

/* An int3 in the first byte, for good. */
static void place_trap(struct ca_patch_record *r)
{
	memcpy(r->patched, r->site.original, sizeof(r->patched));
	r->patched[0] = CA_PATCH_INT3;
	for (unsigned i = 0; i < r->site.insns; i++)
		r->patched[r->site.insn[i].offset] = CA_PATCH_INT3;
	r->trap = true;
	r->footprint = r->site.length;
}

struct ca_patch_record *ca_patch_record_make(const struct ca_patch_text *text, const struct ca_site *site,
					     uintptr_t bias,
					     bool (*changes)(const struct ca_patch_record *r, uintptr_t high))
{
	uint32_t number = atomic_load_explicit(&ca_patch_record_count, memory_order_relaxed);
	struct ca_patch_record *r = &ca_patch_records[number];
	uint8_t body[CA_PATCH_BODY];
	size_t length;

	if (number == CA_PATCH_RECORDS || !ca_patch_trap_room())
		return NULL;
	memset(r, 0, sizeof(*r));
	r->site = *site;
	r->bias = bias;
	r->address = (uintptr_t)site->address + bias;
	length = ca_patch_code_measure(r);
	if (!length)
		return NULL;
	if (!place_jump(text, r, length, changes)) {
		/* any place will do for the body */
		if ((site->flags & CA_SITE_NO_TRAP) ||
		    !ca_patch_mem_place(text, r->address, &(struct ca_patch_pun){ 0 }, length, &r->place))
			return NULL;
		place_trap(r);
	}
	r->body_length = (uint16_t)length;
	if (!ca_patch_code_emit(r, body) || !ca_patch_mem_write(text, r->place.body, body, length))
		return NULL;
	r->next = *bucket_of(r->address);
	*bucket_of(r->address) = number + 1;
	atomic_store_explicit(&ca_patch_record_count, number + 1, memory_order_release);
	ca_patch_trap_add(number);
	return r;
}
