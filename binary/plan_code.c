/* Text, instructions and relocatable copies; see plan_code.h. x86-64. */
#include "binary/plan_code.h"
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct span {
	uint64_t low, high;
};
struct ca_text {
	int fd;
	Elf *elf;
	csh capstone;
	cs_insn *insn;
	struct {
		struct span span;
		const uint8_t *bytes;
	} part[16];
	unsigned parts;
	struct span *function; /* sorted by low */
	size_t functions;
};

/* ---- the file ------------------------------------------------------------------------- */
static void read_parts(struct ca_text *t, const uint8_t *image, size_t size)
{
	size_t headers = 0;

	elf_getphdrnum(t->elf, &headers);
	for (size_t i = 0; i < headers && t->parts < 16; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(t->elf, (int)i, &ph) || ph.p_type != PT_LOAD || !(ph.p_flags & PF_X) ||
		    ph.p_offset + ph.p_filesz > size)
			continue;
		t->part[t->parts].span = (struct span){ ph.p_vaddr, ph.p_vaddr + ph.p_filesz };
		t->part[t->parts++].bytes = image + ph.p_offset;
	}
}

static int by_low(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

static void read_functions(struct ca_text *t)
{
	Elf_Scn *section = NULL;
	size_t room = 0;

	while ((section = elf_nextscn(t->elf, section))) {
		GElf_Shdr sh;
		Elf_Data *data;

		if (!gelf_getshdr(section, &sh) || (sh.sh_type != SHT_SYMTAB && sh.sh_type != SHT_DYNSYM) ||
		    !(data = elf_getdata(section, NULL)) || !sh.sh_entsize)
			continue;
		for (size_t i = 0; i < sh.sh_size / sh.sh_entsize; i++) {
			GElf_Sym sym;

			if (!gelf_getsym(data, (int)i, &sym) || GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
			    !sym.st_size || sym.st_shndx == SHN_UNDEF)
				continue;
			if (t->functions == room) {
				struct span *more = realloc(t->function, (room = 2 * room + 256) * sizeof *more);

				if (!more)
					return;
				t->function = more;
			}
			t->function[t->functions++] = (struct span){ sym.st_value, sym.st_value + sym.st_size };
		}
	}
	if (t->functions)
		qsort(t->function, t->functions, sizeof *t->function, by_low);
}

enum ca_status ca_text_open(struct ca_text **text, const char *path, struct ca_err *err)
{
	struct ca_text *t = calloc(1, sizeof *t);
	const char *image;
	size_t size;

	if (!t)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	elf_version(EV_CURRENT);
	t->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (t->fd < 0) {
		ca_err_set(err, CA_ERR_IO, "%s: %s", path, strerror(errno));
		free(t);
		return CA_ERR_IO;
	}
	t->elf = elf_begin(t->fd, ELF_C_READ_MMAP, NULL);
	image = t->elf ? elf_rawfile(t->elf, &size) : NULL;
	if (!image || gelf_getclass(t->elf) != ELFCLASS64 ||
	    cs_open(CS_ARCH_X86, CS_MODE_64, &t->capstone) != CS_ERR_OK) {
		ca_text_close(t);
		return ca_err_set(err, CA_ERR_UNSUPPORTED, "%s is not an x86-64 ELF file", path);
	}
	cs_option(t->capstone, CS_OPT_DETAIL, CS_OPT_ON);
	t->insn = cs_malloc(t->capstone);
	read_parts(t, (const uint8_t *)image, size);
	read_functions(t);
	*text = t;
	return CA_OK;
}

void ca_text_close(struct ca_text *t)
{
	if (!t)
		return;
	if (t->insn)
		cs_free(t->insn, 1);
	if (t->capstone)
		cs_close(&t->capstone);
	if (t->elf)
		elf_end(t->elf);
	if (t->fd >= 0)
		close(t->fd);
	free(t->function);
	free(t);
}

bool ca_text_part(struct ca_text *t, unsigned i, uint64_t *low, uint64_t *high)
{
	if (i >= t->parts)
		return false;
	*low = t->part[i].span.low;
	*high = t->part[i].span.high;
	return true;
}

bool ca_text_function(struct ca_text *t, uint64_t address, uint64_t *low, uint64_t *high)
{
	size_t a = 0, b = t->functions;

	while (a < b) {
		size_t middle = (a + b) / 2;

		if (t->function[middle].low <= address)
			a = middle + 1;
		else
			b = middle;
	}
	if (!a || t->function[a - 1].high <= address)
		return false;
	*low = t->function[a - 1].low;
	*high = t->function[a - 1].high;
	return true;
}

/* ---- instructions --------------------------------------------------------------------- */
static bool in_group(const cs_insn *insn, uint8_t group)
{
	for (unsigned i = 0; i < insn->detail->groups_count; i++)
		if (insn->detail->groups[i] == group)
			return true;
	return false;
}

static enum ca_insn_kind kind_of(const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;
	bool direct = x->op_count && x->operands[0].type == X86_OP_IMM;

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
	case X86_INS_LJMP:
	case X86_INS_LCALL:
	case X86_INS_SYSCALL:
		return CA_INSN_STRANGE;
	case X86_INS_INT3:
	case X86_INS_UD2:
	case X86_INS_HLT:
		return CA_INSN_END;
	default:
		break;
	}
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

static bool uses_sp(csh capstone, const cs_insn *insn)
{
	static const unsigned names[] = { X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL };

	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
		if (cs_reg_read(capstone, insn, names[i]) || cs_reg_write(capstone, insn, names[i]))
			return true;
	for (unsigned i = 0; i < insn->detail->x86.op_count; i++) {
		const cs_x86_op *op = &insn->detail->x86.operands[i];

		if ((op->type == X86_OP_MEM && op->mem.base == X86_REG_RSP) ||
		    (op->type == X86_OP_REG && op->reg == X86_REG_RSP))
			return true;
	}
	return false;
}

static void find_memory(struct ca_insn *out, const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;

	for (unsigned i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_MEM && x->operands[i].mem.base == X86_REG_RIP) {
			out->disp_at = x->encoding.disp_offset;
			out->memory = insn->address + insn->size + (uint64_t)x->operands[i].mem.disp;
		}
}

bool ca_text_decode(struct ca_text *t, uint64_t address, struct ca_insn *out)
{
	for (unsigned i = 0; i < t->parts; i++) {
		const struct span *s = &t->part[i].span;
		const uint8_t *code = t->part[i].bytes + (address - s->low);
		size_t left = s->high - address;
		uint64_t at = address;

		if (address < s->low || address >= s->high)
			continue;
		if (!cs_disasm_iter(t->capstone, &code, &left, &at, t->insn) || t->insn->size > sizeof out->bytes)
			return false;
		memset(out, 0, sizeof *out);
		out->address = address;
		out->size = (uint8_t)t->insn->size;
		memcpy(out->bytes, t->insn->bytes, out->size);
		out->kind = (uint8_t)kind_of(t->insn);
		if (out->kind == CA_INSN_CALL || out->kind == CA_INSN_JUMP || out->kind == CA_INSN_JUMP_IF)
			out->target = (uint64_t)t->insn->detail->x86.operands[0].imm;
		out->uses_sp = uses_sp(t->capstone, t->insn);
		find_memory(out, t->insn);
		return true;
	}
	return false;
}

static void mark_targets(struct ca_insn *insn, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t a = 0, b = n;

		if (!insn[i].target || insn[i].kind == CA_INSN_CALL)
			continue;
		while (a < b) {
			size_t middle = (a + b) / 2;

			if (insn[middle].address < insn[i].target)
				a = middle + 1;
			else
				b = middle;
		}
		if (a < n && insn[a].address == insn[i].target)
			insn[a].is_target = true;
	}
}

struct ca_insn *ca_text_decode_all(struct ca_text *t, uint64_t low, uint64_t high, size_t *n)
{
	struct ca_insn *list = NULL, one;
	size_t room = 0;

	*n = 0;
	for (uint64_t at = low; at < high; at += one.size) {
		if (!ca_text_decode(t, at, &one)) {
			free(list);
			return NULL;
		}
		if (*n == room) {
			struct ca_insn *more = realloc(list, (room = 2 * room + 64) * sizeof *more);

			if (!more) {
				free(list);
				return NULL;
			}
			list = more;
		}
		list[(*n)++] = one;
	}
	mark_targets(list, *n);
	return list;
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

bool ca_code_bytes(struct ca_site *site, const uint8_t *bytes, unsigned n)
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

bool ca_code_relative(struct ca_site *site, const uint8_t *opcode, unsigned n, enum ca_fixup_type type,
		      uint64_t target)
{
	static const uint8_t zero[4];

	return ca_code_bytes(site, opcode, n) && ca_code_bytes(site, zero, 4) &&
	       add_fixup(site, site->code_length - 4u, site->code_length, type, target);
}

bool ca_code_jump_back(struct ca_site *site)
{
	static const uint8_t jump = 0xe9;

	return ca_code_relative(site, &jump, 1, CA_FIXUP_REL, site->address + site->length);
}

bool ca_code_displace(struct ca_site *site, const struct ca_insn *insn)
{
	if (site->length + insn->size > CA_SITE_BYTES)
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

	return ca_code_relative(site, &push, 1, CA_FIXUP_LOW, back) &&
	       ca_code_relative(site, high, sizeof high, CA_FIXUP_HIGH, back) &&
	       ca_code_relative(site, &jump, 1, CA_FIXUP_REL, insn->target);
}

bool ca_code_copy(struct ca_site *site, const struct ca_insn *insn)
{
	uint8_t jump = 0xe9, jump_if[2] = { 0x0f, 0 };
	unsigned at;

	if (!ca_code_displace(site, insn))
		return false;
	at = site->code_length;
	switch (insn->kind) {
	case CA_INSN_JUMP:
		return ca_code_relative(site, &jump, 1, CA_FIXUP_REL, insn->target);
	case CA_INSN_JUMP_IF:
		/* the condition is the low half of the last opcode byte, short or long */
		jump_if[1] = (uint8_t)(0x80 | ((insn->bytes[0] & 0xf0) == 0x70 ? insn->bytes[0] & 15 :
										 insn->bytes[insn->size - 5] & 15));
		return ca_code_relative(site, jump_if, 2, CA_FIXUP_REL, insn->target);
	case CA_INSN_CALL:
		return copy_call(site, insn);
	case CA_INSN_CALL_INDIRECT:
	case CA_INSN_STRANGE:
		return false;
	default:
		break;
	}
	if (!ca_code_bytes(site, insn->bytes, insn->size))
		return false;
	return !insn->disp_at || add_fixup(site, at + insn->disp_at, at + insn->size, CA_FIXUP_REL, insn->memory);
}
