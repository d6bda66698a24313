/* SPDX-License-Identifier: MIT */
/* A site under construction; see code.h. x86-64. */
#include "binary/plan/code.h"
#include <string.h>

void ca_code_begin(struct ca_site *site, uint32_t module, enum ca_site_kind kind, uint64_t address)
{
	memset(site, 0, sizeof *site);
	site->module = module;
	site->kind = (uint8_t)kind;
	site->address = address;
}

bool ca_code_hook(struct ca_site *site, enum ca_site_kind kind)
{
	if (site->hooks == CA_SITE_HOOKS)
		return false;
	site->hook[site->hooks].at = site->code_length;
	site->hook[site->hooks++].kind = (uint8_t)kind;
	return true;
}

static bool put(struct ca_site *site, const uint8_t *bytes, unsigned n)
{
	if (site->code_length + n > CA_SITE_CODE)
		return false;
	memcpy(site->code + site->code_length, bytes, n);
	site->code_length = (uint8_t)(site->code_length + n);
	return true;
}

static bool add_fixup(struct ca_site *site, unsigned at, unsigned end, enum ca_fixup_type type,
		      uint64_t target)
{
	if (site->fixups == CA_SITE_FIXUPS)
		return false;
	site->fixup[site->fixups].at = (uint8_t)at;
	site->fixup[site->fixups].end = (uint8_t)end;
	site->fixup[site->fixups].type = (uint8_t)type;
	site->fixup[site->fixups++].target = target;
	return true;
}

/* An opcode of n bytes and 4 bytes to be filled in. */
static bool put_relative(struct ca_site *site, const uint8_t *opcode, unsigned n, enum ca_fixup_type type,
			 uint64_t target)
{
	static const uint8_t zero[4];

	return put(site, opcode, n) && put(site, zero, 4) &&
	       add_fixup(site, site->code_length - 4u, site->code_length, type, target);
}

bool ca_code_jump_back(struct ca_site *site)
{
	static const uint8_t jump = 0xe9;

	return put_relative(site, &jump, 1, CA_FIXUP_REL, site->address + site->length);
}

/* Only what stands in the text, and where its copy starts. */
static bool displace(struct ca_site *site, const struct ca_insn *insn)
{
	if (insn->is_split || site->length + insn->size > CA_SITE_BYTES)
		return false;
	if (site->length) {
		if (site->insns == CA_SITE_INSNS)
			return false;
		site->insn[site->insns].offset = site->length;
		site->insn[site->insns++].at = site->code_length;
	}
	memcpy(site->original + site->length, insn->bytes, insn->size);
	site->length = (uint8_t)(site->length + insn->size);
	return true;
}

/* The low half of the opcode's last byte, of a short jump or a long one, with prefixes or not. */
static unsigned condition(const struct ca_insn *i)
{
	return i->bytes[i->size < CA_JUMP_LENGTH ? i->size - 2 : i->size - 5] & 15;
}

/* The instruction's own bytes, with the ModRM byte changed by `flip`. */
static bool copy_bytes(struct ca_site *site, const struct ca_insn *insn, uint8_t flip)
{
	unsigned at = site->code_length;

	if (!put(site, insn->bytes, insn->size))
		return false;
	if (flip)
		site->code[at + insn->modrm_at] ^= flip;
	return !insn->disp_at ||
	       add_fixup(site, at + insn->disp_at, at + insn->size, CA_FIXUP_REL, insn->memory);
}

/* To where a call goes whose return address is on the stack already. */
static bool jump_to_called(struct ca_site *site, const struct ca_insn *insn)
{
	static const uint8_t jump = 0xe9;
	enum { CALL_TO_JUMP = 0x30 }; /* ff /2 and ff /4 */

	return insn->kind == CA_INSN_CALL ? put_relative(site, &jump, 1, CA_FIXUP_REL, insn->target)
					  : copy_bytes(site, insn, CALL_TO_JUMP);
}

static bool can_jump_to_called(const struct ca_insn *insn)
{
	return insn->kind == CA_INSN_CALL ||
	       (insn->kind == CA_INSN_CALL_INDIRECT && !insn->sp_operand && insn->modrm_at &&
		insn->bytes[insn->modrm_at - 1] == 0xff && (insn->bytes[insn->modrm_at] & 0x38) == 0x10);
}

/* A call whose return address is the program's own: push it, jump. */
static bool copy_call(struct ca_site *site, const struct ca_insn *insn)
{
	static const uint8_t push = 0x68, high[] = { 0xc7, 0x44, 0x24, 0x04 };
	uint64_t back = insn->address + insn->size;

	return put_relative(site, &push, 1, CA_FIXUP_LOW, back) &&
	       put_relative(site, high, sizeof high, CA_FIXUP_HIGH, back) && jump_to_called(site, insn);
}

bool ca_code_copy(struct ca_site *site, const struct ca_insn *insn)
{
	uint8_t jump = 0xe9, jump_if[2] = { 0x0f, 0 };

	if (insn->kind == CA_INSN_STRANGE ||
	    (insn->kind == CA_INSN_CALL_INDIRECT && !can_jump_to_called(insn)) || !displace(site, insn))
		return false;
	switch (insn->kind) {
	case CA_INSN_JUMP:
		return put_relative(site, &jump, 1, CA_FIXUP_REL, insn->target);
	case CA_INSN_JUMP_IF:
		jump_if[1] = (uint8_t)(0x80 | condition(insn));
		return put_relative(site, jump_if, 2, CA_FIXUP_REL, insn->target);
	case CA_INSN_CALL:
	case CA_INSN_CALL_INDIRECT:
		return copy_call(site, insn);
	default:
		return copy_bytes(site, insn, 0);
	}
}

bool ca_code_copy_leaving(struct ca_site *site, const struct ca_insn *insn)
{
	uint8_t skip[2] = { 0x0f, 0 }, jump = 0xe9;
	unsigned distance;

	if (insn->kind != CA_INSN_JUMP_IF) {
		/* the instruction's start is in front of the hook: who jumps there leaves too */
		unsigned at = site->code_length;

		if (!ca_code_hook(site, CA_SITE_EXIT))
			return false;
		return ca_code_copy(site, insn) && site->code_length > at;
	}
	/* taken: hook, leave; not taken: go on behind it */
	skip[1] = (uint8_t)(0x80 | (condition(insn) ^ 1));
	if (!displace(site, insn) || !put_relative(site, skip, 2, CA_FIXUP_LOCAL, 0))
		return false;
	distance = site->fixups - 1u;
	if (!ca_code_hook(site, CA_SITE_EXIT) || !put_relative(site, &jump, 1, CA_FIXUP_REL, insn->target))
		return false;
	site->fixup[distance].target = site->code_length;
	return true;
}

bool ca_code_copy_called(struct ca_site *site, const struct ca_insn *insn)
{
	return can_jump_to_called(insn) && displace(site, insn) && jump_to_called(site, insn);
}

bool ca_code_copy_many(struct ca_site *site, const struct ca_insn *insn, size_t n, size_t at, uint64_t limit)
{
	bool goes_on = true;

	for (size_t i = at; i < n && goes_on && site->length < CA_JUMP_LENGTH; i++) {
		struct ca_site before = *site;

		if (i > at &&
		    (insn[i].is_target || !ca_insn_is_movable(&insn[i]) || insn[i].address >= limit))
			break;
		if (!ca_code_copy(site, &insn[i])) {
			*site = before;
			break;
		}
		goes_on = insn[i].kind == CA_INSN_PLAIN || insn[i].kind == CA_INSN_JUMP_IF;
	}
	return site->length && (!goes_on || ca_code_jump_back(site));
}
