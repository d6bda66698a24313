/* SPDX-License-Identifier: MIT */
/* Instructions; see insn.h. x86-64. */
#include "binary/plan/insn.h"
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

/* ---- registers ------------------------------------------------------------------------------ */
#define WORDS(number, q, d, w, b)                                                                            \
	[q] = (number) + 1, [d] = (number) + 1, [w] = (number) + 1, [b] = (number) + 1
#define NUMBERED(r) WORDS(r, X86_REG_R##r, X86_REG_R##r##D, X86_REG_R##r##W, X86_REG_R##r##B)

static unsigned number_of(unsigned reg)
{
	static const uint8_t number[X86_REG_ENDING] = {
		/* + 1; 0: another register, or none */
		WORDS(0, X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL),
		WORDS(1, X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL),
		WORDS(2, X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL),
		WORDS(3, X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL),
		[X86_REG_AH] = 1,
		[X86_REG_DH] = 2,
		[X86_REG_CH] = 3,
		[X86_REG_BH] = 4,
		WORDS(4, X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL),
		WORDS(5, X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL),
		WORDS(6, X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL),
		WORDS(7, X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL),
		NUMBERED(8),
		NUMBERED(9),
		NUMBERED(10),
		NUMBERED(11),
		NUMBERED(12),
		NUMBERED(13),
		NUMBERED(14),
		NUMBERED(15)
	};

	return reg < X86_REG_ENDING && number[reg] ? number[reg] - 1u : CA_INSN_NO_REGISTER;
}

/* System V ABI, 3.2.1: rbx, rbp, rsp and r12 to r15 are the caller's. */
enum { KEPT_BY_CALLS = 1 << 3 | 1 << 6 | 1 << 7 | 0xf << 12 };

static uint16_t changed_by(csh capstone, const cs_insn *insn)
{
	cs_regs read, written;
	uint8_t reads, writes;
	unsigned all = 0;

	if (in_group(insn, X86_GRP_CALL))
		return (uint16_t)~KEPT_BY_CALLS;
	if (cs_regs_access(capstone, insn, read, &reads, written, &writes) != CS_ERR_OK)
		return UINT16_MAX;
	for (unsigned i = 0; i < writes; i++) {
		unsigned r = number_of(written[i]);

		if (r < CA_INSN_REGISTERS)
			all |= 1u << r;
	}
	return (uint16_t)all;
}

static void find_access(struct ca_insn *out, csh capstone, const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;

	out->changes = changed_by(capstone, insn);
	out->base = out->index = CA_INSN_NO_REGISTER;
	for (unsigned i = 0; i < x->op_count; i++) {
		const cs_x86_op *op = &x->operands[i];
		const x86_op_mem *m = &op->mem;

		if (op->type != X86_OP_MEM || insn->id == X86_INS_LEA || insn->id == X86_INS_NOP)
			continue;
		out->reads = op->access & CS_AC_READ;
		out->writes = op->access & CS_AC_WRITE;
		out->base = (uint8_t)number_of(m->base);
		out->index = (uint8_t)number_of(m->index);
		out->scale = (uint8_t)m->scale;
		out->disp = (int32_t)m->disp;
		if (x->addr_size == 8 && m->segment == X86_REG_INVALID && m->disp == out->disp &&
		    (m->base == X86_REG_RIP || m->base == X86_REG_INVALID || out->base < CA_INSN_REGISTERS) &&
		    (m->index == X86_REG_INVALID || out->index < CA_INSN_REGISTERS))
			out->width = op->size;
	}
}

static bool is_pad(const cs_insn *insn)
{
	return insn->id == X86_INS_NOP || insn->id == X86_INS_INT3 ||
	       (insn->size == 2 && insn->bytes[0] == 0x66 && insn->bytes[1] == 0x90);
}

static bool is_atomic(const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;

	if (x->prefix[0] == X86_PREFIX_LOCK)
		return true;
	return insn->id == X86_INS_XCHG && x->op_count == 2 &&
	       (x->operands[0].type == X86_OP_MEM || x->operands[1].type == X86_OP_MEM);
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
	if (out->kind == CA_INSN_CALL || ca_insn_is_jump(out))
		out->target = (uint64_t)insn->detail->x86.operands[0].imm;
	out->is_pad = is_pad(insn);
	out->is_pause = insn->id == X86_INS_PAUSE;
	out->is_atomic = is_atomic(insn);
	find_stack(out, d->capstone, insn);
	find_memory(out, insn);
	find_access(out, d->capstone, insn);
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

long ca_insn_find(const struct ca_insn *insn, size_t n, uint64_t address)
{
	size_t a = 0, b = n;

	while (a < b) {
		size_t middle = (a + b) / 2;

		if (insn[middle].address < address)
			a = middle + 1;
		else
			b = middle;
	}
	return a < n && insn[a].address == address ? (long)a : -1;
}

bool ca_insn_is_jump(const struct ca_insn *i)
{
	return i->kind == CA_INSN_JUMP || i->kind == CA_INSN_JUMP_IF;
}

bool ca_insn_falls_through(const struct ca_insn *i)
{
	return i->kind != CA_INSN_JUMP && i->kind != CA_INSN_JUMP_INDIRECT && i->kind != CA_INSN_RETURN &&
	       i->kind != CA_INSN_END;
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

bool ca_insn_may_end(const struct ca_insn *i)
{
	bool call = i->kind == CA_INSN_CALL || i->kind == CA_INSN_CALL_INDIRECT;

	return ca_insn_is_movable(i) || (call && !i->is_split);
}
