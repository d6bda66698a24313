/* Instructions, and relocatable copies of them; see plan_code.h. x86-64. */
#include "binary/plan/plan_code.h"
#include <capstone.h>
#include <stdlib.h>
#include <string.h>

struct ca_disassembler {
	csh capstone;
	cs_insn *insn;
};

struct ca_disassembler *ca_insn_open(void)
{
	struct ca_disassembler *d = calloc(1, sizeof *d);

	if (!d)
		return NULL;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &d->capstone) != CS_ERR_OK) {
		free(d);
		return NULL;
	}
	cs_option(d->capstone, CS_OPT_DETAIL, CS_OPT_ON);
	d->insn = cs_malloc(d->capstone);
	if (!d->insn) {
		ca_insn_close(d);
		return NULL;
	}
	return d;
}

void ca_insn_close(struct ca_disassembler *d)
{
	if (!d)
		return;
	if (d->insn)
		cs_free(d->insn, 1);
	cs_close(&d->capstone);
	free(d);
}

/* ---- what an instruction is -------------------------------------------------------------- */
static bool in_group(const cs_insn *insn, uint8_t group)
{
	for (unsigned i = 0; i < insn->detail->groups_count; i++)
		if (insn->detail->groups[i] == group)
			return true;
	return false;
}

static bool is_strange(const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;

	switch (insn->id) {
	case X86_INS_LOOP:
	case X86_INS_LOOPE:
	case X86_INS_LOOPNE:
	case X86_INS_JCXZ:
	case X86_INS_JECXZ:
	case X86_INS_JRCXZ:
	case X86_INS_XBEGIN:
	case X86_INS_INT:
	case X86_INS_INT1:
	case X86_INS_INTO:
	case X86_INS_LJMP:
	case X86_INS_LCALL:
	case X86_INS_SYSCALL:
	case X86_INS_SYSENTER:
		return true;
	default:
		break;
	}
	/* relative to eip: its copy would have to lie below 4 GiB */
	for (unsigned i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_MEM && x->operands[i].mem.base == X86_REG_EIP)
			return true;
	/* a 16-bit distance on some processors, a 32-bit one on others */
	return in_group(insn, X86_GRP_BRANCH_RELATIVE) && !in_group(insn, X86_GRP_CALL) &&
	       memchr(x->prefix, 0x66, sizeof x->prefix);
}

static enum ca_insn_kind kind_of(const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;
	bool direct = x->op_count && x->operands[0].type == X86_OP_IMM;

	if (is_strange(insn))
		return CA_INSN_STRANGE;
	if (insn->id == X86_INS_INT3 || insn->id == X86_INS_UD2 || insn->id == X86_INS_HLT ||
	    insn->id == X86_INS_UD0)
		return CA_INSN_END;
	if (in_group(insn, X86_GRP_RET) || in_group(insn, X86_GRP_IRET))
		return insn->id == X86_INS_RET ? CA_INSN_RETURN : CA_INSN_STRANGE;
	if (in_group(insn, X86_GRP_CALL))
		return direct ? CA_INSN_CALL : CA_INSN_CALL_INDIRECT;
	if (insn->id == X86_INS_JMP)
		return direct ? CA_INSN_JUMP : CA_INSN_JUMP_INDIRECT;
	if (in_group(insn, X86_GRP_JUMP))
		return direct ? CA_INSN_JUMP_IF : CA_INSN_STRANGE;
	return CA_INSN_PLAIN;
}

static bool is_sp(unsigned reg)
{
	return reg == X86_REG_RSP || reg == X86_REG_ESP || reg == X86_REG_SP || reg == X86_REG_SPL;
}

static void find_stack(struct ca_insn *out, csh capstone, const cs_insn *insn)
{
	static const unsigned names[] = { X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL };

	for (unsigned i = 0; i < insn->detail->x86.op_count; i++) {
		const cs_x86_op *op = &insn->detail->x86.operands[i];

		if ((op->type == X86_OP_MEM && is_sp(op->mem.base)) ||
		    (op->type == X86_OP_REG && is_sp(op->reg)))
			out->sp_operand = true;
	}
	out->uses_sp = out->sp_operand;
	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
		if (cs_reg_read(capstone, insn, names[i]) || cs_reg_write(capstone, insn, names[i]))
			out->uses_sp = true;
	/* not said by capstone everywhere */
	if (insn->id == X86_INS_LEAVE || insn->id == X86_INS_ENTER || in_group(insn, X86_GRP_CALL) ||
	    in_group(insn, X86_GRP_RET))
		out->uses_sp = true;
}

static void find_memory(struct ca_insn *out, const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;

	out->modrm_at = x->encoding.modrm_offset;
	for (unsigned i = 0; i < x->op_count; i++) {
		const x86_op_mem *m = &x->operands[i].mem;

		if (x->operands[i].type != X86_OP_MEM)
			continue;
		if (m->base == X86_REG_RIP) {
			out->disp_at = x->encoding.disp_offset;
			out->memory = insn->address + insn->size + (uint64_t)m->disp;
			if (insn->id == X86_INS_LEA)
				out->table = out->memory;
		} else if (m->base == X86_REG_INVALID && m->index != X86_REG_INVALID && m->scale == 8) {
			out->table = (uint64_t)m->disp;
		}
	}
}

static bool is_pad(const cs_insn *insn)
{
	return insn->id == X86_INS_NOP || insn->id == X86_INS_INT3 ||
	       (insn->size == 2 && insn->bytes[0] == 0x66 && insn->bytes[1] == 0x90);
}

bool ca_insn_decode(struct ca_disassembler *d, const uint8_t *code, size_t left, uint64_t address,
		    struct ca_insn *out)
{
	const cs_insn *insn = d->insn;
	uint64_t at = address;

	if (!cs_disasm_iter(d->capstone, &code, &left, &at, d->insn) || insn->size > sizeof out->bytes)
		return false;
	memset(out, 0, sizeof *out);
	out->address = address;
	out->size = (uint8_t)insn->size;
	memcpy(out->bytes, insn->bytes, out->size);
	out->kind = (uint8_t)kind_of(insn);
	if (out->kind == CA_INSN_CALL || out->kind == CA_INSN_JUMP || out->kind == CA_INSN_JUMP_IF)
		out->target = (uint64_t)insn->detail->x86.operands[0].imm;
	out->is_pad = is_pad(insn);
	find_stack(out, d->capstone, insn);
	find_memory(out, insn);
	return true;
}

bool ca_insn_mark(struct ca_insn *insn, size_t n, uint64_t target)
{
	size_t a = 0, b = n;

	while (a < b) {
		size_t middle = (a + b) / 2;

		if (insn[middle].address <= target)
			a = middle + 1;
		else
			b = middle;
	}
	if (!a || target >= insn[a - 1].address + insn[a - 1].size)
		return false;
	if (insn[a - 1].address != target) {
		insn[a - 1].is_split = true;
		return false;
	}
	insn[a - 1].is_target = true;
	return true;
}

bool ca_insn_is_point(const struct ca_insn *i)
{
	static const uint8_t nop[5] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

	return i->size == 5 && !memcmp(i->bytes, nop, 5);
}

bool ca_insn_is_movable(const struct ca_insn *i)
{
	return i->kind != CA_INSN_CALL && i->kind != CA_INSN_CALL_INDIRECT && i->kind != CA_INSN_STRANGE &&
	       i->kind != CA_INSN_END && !i->is_split && !ca_insn_is_point(i);
}

/* ---- relocatable copies ----------------------------------------------------------------- */
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

/* A call whose return address is the program's own: push it, jump. */
static bool copy_call(struct ca_site *site, const struct ca_insn *insn)
{
	static const uint8_t push = 0x68, high[] = { 0xc7, 0x44, 0x24, 0x04 }, jump = 0xe9;
	uint64_t back = insn->address + insn->size;

	return put_relative(site, &push, 1, CA_FIXUP_LOW, back) &&
	       put_relative(site, high, sizeof high, CA_FIXUP_HIGH, back) &&
	       put_relative(site, &jump, 1, CA_FIXUP_REL, insn->target);
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

bool ca_code_copy(struct ca_site *site, const struct ca_insn *insn)
{
	uint8_t jump = 0xe9, jump_if[2] = { 0x0f, 0 };

	if (insn->kind == CA_INSN_CALL_INDIRECT || insn->kind == CA_INSN_STRANGE || !displace(site, insn))
		return false;
	switch (insn->kind) {
	case CA_INSN_JUMP:
		return put_relative(site, &jump, 1, CA_FIXUP_REL, insn->target);
	case CA_INSN_JUMP_IF:
		jump_if[1] = (uint8_t)(0x80 | condition(insn));
		return put_relative(site, jump_if, 2, CA_FIXUP_REL, insn->target);
	case CA_INSN_CALL:
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
	static const uint8_t jump = 0xe9;
	enum { CALL_TO_JUMP = 0x30 }; /* ff /2 and ff /4 */

	if (insn->kind == CA_INSN_CALL)
		return displace(site, insn) && put_relative(site, &jump, 1, CA_FIXUP_REL, insn->target);
	/* the return address is on the stack already */
	if (insn->kind != CA_INSN_CALL_INDIRECT || insn->sp_operand || !insn->modrm_at ||
	    insn->bytes[insn->modrm_at - 1] != 0xff || (insn->bytes[insn->modrm_at] & 0x38) != 0x10)
		return false;
	return displace(site, insn) && copy_bytes(site, insn, CALL_TO_JUMP);
}
