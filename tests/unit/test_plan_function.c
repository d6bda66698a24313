/* SPDX-License-Identifier: MIT */
/* Plans of patch sites, over every function of real binaries: whatever is planned must be right,
 * and most functions must have a plan. Prints the shares, with the reasons against.
 *
 *   test_plan [BINARY...]    others than the usual ones */
#include "binary/plan/code.h"
#include "binary/plan/plan.h"
#include "binary/plan/text.h"
#include "tests/unit/unit.h"
#include <capstone.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SITES = 512, REASONS = 32, MOST_FUNCTIONS = 6000 / CA_OF_SWEEPS };
#define BIAS UINT64_C(0x555500000000)

static csh capstone;
static unsigned checked_sites;

struct shares {
	unsigned functions, planned, sites, exits, brief;
	struct {
		char why[96];
		unsigned n;
	} reason[REASONS];
};

/* Says which address is at fault; cmocka says which check. */
#define CHECK(condition, at)                                                                                 \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			print_error("at %#lx: ", (unsigned long)(at));                                       \
			assert_true(condition);                                                              \
		}                                                                                            \
	} while (0)

/* ---- one site ----------------------------------------------------------------------------- */
struct copy {
	uint8_t code[CA_SITE_CODE];
	uint64_t base;
	cs_insn *insn;
	size_t n;
};

static void relocate(const struct ca_site *s, struct copy *c)
{
	c->base = s->address + BIAS + 0x10000000;
	memcpy(c->code, s->code, sizeof c->code);
	for (unsigned i = 0; i < s->fixups; i++) {
		uint64_t target = s->fixup[i].target + BIAS, end = c->base + s->fixup[i].end;
		uint32_t value = 0;

		CHECK(s->fixup[i].at + 4 <= s->fixup[i].end && s->fixup[i].end <= s->code_length, s->address);
		switch (s->fixup[i].type) {
		case CA_FIXUP_REL:
			value = (uint32_t)(target - end);
			break;
		case CA_FIXUP_LOW:
			value = (uint32_t)target;
			break;
		case CA_FIXUP_HIGH:
			value = (uint32_t)(target >> 32);
			break;
		case CA_FIXUP_LOCAL:
			value = (uint32_t)(s->fixup[i].target - s->fixup[i].end);
			break;
		default:
			CHECK(false, s->address);
		}
		memcpy(c->code + s->fixup[i].at, &value, 4);
	}
	c->n = cs_disasm(capstone, c->code, s->code_length, c->base, 0, &c->insn);
	CHECK(c->n && c->insn[c->n - 1].address + c->insn[c->n - 1].size == c->base + s->code_length,
	      s->address);
}

static const cs_insn *copy_at(const struct copy *c, unsigned at)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->insn[i].address == c->base + at)
			return &c->insn[i];
	return NULL;
}

static uint64_t branch(const cs_insn *i)
{
	return (uint64_t)i->detail->x86.operands[0].imm;
}

static bool is_direct(const cs_insn *i)
{
	return cs_insn_group(capstone, i, X86_GRP_BRANCH_RELATIVE);
}

/* The same operands, wherever the two instructions stand. */
static void check_operands(const cs_insn *was, const cs_insn *is)
{
	const cs_x86 *a = &was->detail->x86, *b = &is->detail->x86;

	CHECK(a->op_count == b->op_count && was->size == is->size, was->address);
	for (unsigned i = 0; i < a->op_count; i++) {
		const cs_x86_op *x = &a->operands[i], *y = &b->operands[i];

		CHECK(x->type == y->type && x->size == y->size, was->address);
		if (x->type == X86_OP_REG)
			CHECK(x->reg == y->reg, was->address);
		if (x->type == X86_OP_IMM)
			CHECK(x->imm == y->imm, was->address);
		if (x->type == X86_OP_MEM) {
			uint64_t from = 0, to = 0;

			CHECK(x->mem.base == y->mem.base && x->mem.index == y->mem.index &&
				      x->mem.scale == y->mem.scale && x->mem.segment == y->mem.segment,
			      was->address);
			if (x->mem.base == X86_REG_RIP) {
				from = was->address + was->size;
				to = is->address + is->size;
			}
			CHECK(from + (uint64_t)x->mem.disp == to + (uint64_t)y->mem.disp, was->address);
		}
	}
}

/* Equal but for where it stands. */
static void check_same(const cs_insn *was, const cs_insn *is)
{
	CHECK(was->id == is->id, was->address);
	if (is_direct(was)) {
		CHECK(branch(was) == branch(is), was->address);
		return;
	}
	check_operands(was, is);
	if (!strstr(was->op_str, "rip"))
		CHECK(!memcmp(was->bytes, is->bytes, was->size), was->address);
}

static unsigned exits_between(const struct ca_site *s, unsigned from, unsigned to)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->hooks; i++)
		n += s->hook[i].kind == CA_SITE_EXIT && s->hook[i].at >= from && s->hook[i].at < to;
	return n;
}

/* One displaced instruction `was` and its copy in code[from, to). */
static void check_copy(const struct ca_site *s, const struct copy *c, const cs_insn *was, unsigned from,
		       unsigned to, bool last)
{
	const cs_insn *is = copy_at(c, from);
	bool called = s->flags & CA_SITE_BY_CALL && last;

	CHECK(is, was->address);
	if (cs_insn_group(capstone, was, X86_GRP_CALL) && called) {
		CHECK(is->id == X86_INS_JMP, was->address);
		if (is_direct(was))
			CHECK(branch(is) == branch(was), was->address);
		else
			check_operands(was, is);
		/* the return address is on the stack already */
		CHECK(!strstr(was->op_str, "sp"), was->address);
	} else if (was->id == X86_INS_CALL) { /* push its return address, jump */
		uint64_t back = was->address + was->size;

		CHECK(is->id == X86_INS_PUSH && (uint32_t)is->detail->x86.operands[0].imm == (uint32_t)back,
		      was->address);
		CHECK(is[1].id == X86_INS_MOV &&
			      (uint32_t)is[1].detail->x86.operands[1].imm == (uint32_t)(back >> 32),
		      was->address);
		CHECK(is[2].id == X86_INS_JMP, was->address);
		if (is_direct(was))
			CHECK(branch(&is[2]) == branch(was), was->address);
		else
			check_operands(was, &is[2]);
		CHECK(!strstr(was->op_str, "sp"), was->address);
	} else if (cs_insn_group(capstone, was, X86_GRP_JUMP) && was->id != X86_INS_JMP &&
		   exits_between(s, from, to)) {
		/* the opposite condition past it: the last bit of the opcode says which */
		uint8_t cond = was->bytes[was->size > 4 ? was->size - 5 : was->size - 2] & 15;

		CHECK(is->size == 6 && (is->bytes[1] & 15) == (cond ^ 1), was->address);
		CHECK(branch(is) == c->base + from + 11, was->address);
		CHECK(is[1].id == X86_INS_JMP && branch(&is[1]) == branch(was), was->address);
		CHECK(exits_between(s, from + 6, from + 7) == 1, was->address);
	} else {
		check_same(was, is);
	}
}

/* Is the way on behind the site's bytes there, if control goes on? */
static void check_end(const struct ca_site *s, const struct copy *c, const cs_insn *last)
{
	const cs_insn *end = &c->insn[c->n - 1];
	bool on = !cs_insn_group(capstone, last, X86_GRP_RET) && last->id != X86_INS_JMP &&
		  last->id != X86_INS_CALL;

	if (on)
		CHECK(end->id == X86_INS_JMP && branch(end) == s->address + s->length + BIAS, s->address);
	else
		CHECK(end->id == X86_INS_JMP || cs_insn_group(capstone, end, X86_GRP_RET), s->address);
}

static void check_site(struct ca_text *text, const struct ca_site *s)
{
	uint8_t bytes[CA_SITE_BYTES];
	struct copy c = { .insn = NULL };
	cs_insn *was;
	size_t n;

	CHECK(s->length && s->length <= CA_SITE_BYTES && s->insns <= CA_SITE_INSNS, s->address);
	CHECK(ca_text_read(text, s->address, bytes, s->length), s->address);
	CHECK(!memcmp(bytes, s->original, s->length), s->address);
	relocate(s, &c);
	n = cs_disasm(capstone, s->original, s->length, s->address + BIAS, 0, &was);
	CHECK(n == s->insns + 1u && was[n - 1].address + was[n - 1].size == s->address + BIAS + s->length,
	      s->address);
	for (size_t i = 0; i < n; i++) {
		unsigned from = i ? s->insn[i - 1].at : 0;
		unsigned to = i + 1 < n ? s->insn[i].at : s->code_length;

		CHECK(was[i].address == s->address + BIAS + (i ? s->insn[i - 1].offset : 0u), s->address);
		check_copy(s, &c, &was[i], from, to, i + 1 == n);
	}
	check_end(s, &c, &was[n - 1]);
	checked_sites++;
	cs_free(was, n);
	cs_free(c.insn, c.n);
}

/* ---- one function ------------------------------------------------------------------------- */
/* The site that holds an instruction's start, and the limits of its copy. */
static const struct ca_site *site_of(const struct ca_site *site, size_t sites, uint64_t address,
				     unsigned *from, unsigned *to)
{
	for (size_t i = 0; i < sites; i++) {
		const struct ca_site *s = &site[i];

		if (address < s->address || address >= s->address + s->length)
			continue;
		*from = 0;
		*to = s->insns ? s->insn[0].at : s->code_length;
		for (unsigned k = 0; k < s->insns && address != s->address; k++)
			if (s->address + s->insn[k].offset == address) {
				*from = s->insn[k].at;
				*to = k + 1u < s->insns ? s->insn[k + 1].at : s->code_length;
				return s;
			}
		return address == s->address ? s : NULL;
	}
	return NULL;
}

static void check_disjoint(const struct ca_site *site, size_t sites)
{
	for (size_t i = 0; i < sites; i++)
		for (size_t k = 0; k < i; k++)
			CHECK(site[i].address >= site[k].address + site[k].length ||
				      site[k].address >= site[i].address + site[i].length,
			      site[i].address);
}

/* Known jumps into a site lead to its first byte or to an entry of insn[]. */
static void check_targets(const struct ca_insn *insn, size_t n, const struct ca_site *site, size_t sites)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t t = insn[i].target;
		unsigned from, to;

		for (size_t k = 0; t && k < sites; k++)
			if (t >= site[k].address && t < site[k].address + site[k].length)
				CHECK(site_of(site, sites, t, &from, &to), t);
	}
}

static bool stays(struct ca_text *text, const struct ca_range *range, uint64_t target)
{
	uint64_t low, high;

	return (target >= range->low && target < range->high) || ca_text_is_cold(text, target, &low, &high);
}

/* Every return, and every jump out, has one exit hook in front. */
static void check_exits(struct ca_text *text, const struct ca_insn *insn, size_t n,
			const struct ca_range *range, const struct ca_site *site, size_t sites,
			struct shares *shares)
{
	for (size_t i = 0; i < n; i++) {
		const struct ca_insn *in = &insn[i];
		bool jump = in->kind == CA_INSN_JUMP || in->kind == CA_INSN_JUMP_IF;
		const struct ca_site *s;
		unsigned from, to;

		if (in->kind != CA_INSN_RETURN && (!jump || stays(text, range, in->target)))
			continue;
		s = site_of(site, sites, in->address, &from, &to);
		CHECK(s, in->address);
		CHECK(exits_between(s, from, to) == 1, in->address);
		shares->exits++;
	}
}

static void count_reason(struct shares *shares, const char *why)
{
	size_t length = strcspn(why, "(");

	for (unsigned i = 0; i < REASONS; i++) {
		if (shares->reason[i].n && strncmp(shares->reason[i].why, why, length) != 0)
			continue;
		snprintf(shares->reason[i].why, sizeof shares->reason[i].why, "%.*s", (int)length, why);
		shares->reason[i].n++;
		return;
	}
}

static void check_function(struct ca_text *text, const struct ca_range *range, struct shares *shares)
{
	static struct ca_site site[SITES];
	struct ca_insn *insn;
	struct ca_err err;
	size_t sites, n;

	shares->functions++;
	if (ca_plan_function(text, 1, range, 1, site, SITES, &sites, &err) != CA_OK) {
		count_reason(shares, err.text);
		return;
	}
	shares->planned++;
	assert_true(sites >= 1 && sites <= SITES);
	for (size_t i = 0; i < sites; i++) {
		check_site(text, &site[i]);
		shares->brief += site[i].length < CA_JUMP_LENGTH;
	}
	shares->sites += (unsigned)sites;
	check_disjoint(site, sites);
	insn = ca_text_decode_all(text, range->low, range->high, &n);
	assert_non_null(insn);
	check_targets(insn, n, site, sites);
	check_exits(text, insn, n, range, site, sites, shares);
	free(insn);
}

/* ---- lines --------------------------------------------------------------------------------- */
/* Each call has one site, which enters; and no other instruction does. */
static void check_calls(const struct ca_insn *insn, size_t n, const struct ca_range *range,
			const struct ca_site *site, size_t sites)
{
	size_t calls = 0, enters = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ca_site *s;
		unsigned from, to;

		if (insn[i].address < range->low || insn[i].address >= range->high ||
		    (insn[i].kind != CA_INSN_CALL && insn[i].kind != CA_INSN_CALL_INDIRECT))
			continue;
		calls++;
		s = site_of(site, sites, insn[i].address, &from, &to);
		CHECK(s && s->kind == CA_SITE_CALL && (s->flags & CA_SITE_BY_CALL), insn[i].address);
		CHECK(insn[i].address + insn[i].size == s->address + s->length, insn[i].address);
		CHECK(s->hooks && s->hook[s->hooks - 1].kind == CA_SITE_ENTER &&
			      s->hook[s->hooks - 1].at == from,
		      insn[i].address);
		/* what runs before the call has the return address on the stack already */
		for (size_t k = i; k-- > 0 && insn[k].address >= s->address;)
			CHECK(!insn[k].uses_sp, insn[k].address);
	}
	for (size_t i = 0; i < sites; i++)
		for (unsigned k = 0; k < site[i].hooks; k++)
			enters += site[i].hook[k].kind == CA_SITE_ENTER;
	CHECK(calls == enters, range->low);
}

static void check_line(struct ca_text *text, const struct ca_insn *insn, size_t n,
		       const struct ca_range *range, struct shares *shares)
{
	static struct ca_site site[SITES];
	struct ca_err err;
	size_t sites;
	bool self;

	shares->functions++;
	if (ca_plan_line(text, 1, range, 1, site, SITES, &sites, &self, &err) != CA_OK) {
		count_reason(shares, err.text);
		return;
	}
	shares->planned++;
	for (size_t i = 0; i < sites; i++) {
		check_site(text, &site[i]);
		shares->brief += site[i].length < CA_JUMP_LENGTH;
	}
	shares->sites += (unsigned)sites;
	check_disjoint(site, sites);
	check_targets(insn, n, site, sites);
	check_calls(insn, n, range, site, sites);
}

/* Each call as a line of its own, pairs of neighbours, and the whole function as one line. */
static void check_lines(struct ca_text *text, const struct ca_range *range, struct shares *shares)
{
	struct ca_insn *insn;
	uint64_t before = 0;
	size_t n;

	insn = ca_text_decode_all(text, range->low, range->high, &n);
	for (size_t i = 0; insn && i < n; i++) {
		struct ca_range line = { .low = insn[i].address, .high = insn[i].address + insn[i].size };

		if (insn[i].kind != CA_INSN_CALL && insn[i].kind != CA_INSN_CALL_INDIRECT)
			continue;
		check_line(text, insn, n, &line, shares);
		line.low = before;
		if (before)
			check_line(text, insn, n, &line, shares);
		before = insn[i].address;
	}
	if (insn)
		check_line(text, insn, n, range, shares);
	free(insn);
}

/* ---- meetings ------------------------------------------------------------------------------ */
/* At the beginning of an instruction that spins, or reads and writes memory at once. */
static void check_meetings(struct ca_text *text)
{
	static struct ca_site site[SITES];
	size_t sites = ca_plan_meetings(text, 1, site, SITES, NULL, NULL);

	printf("  meetings: %zu\n", sites);
	for (size_t i = 0; i < sites; i++) {
		uint64_t low, high;
		struct ca_insn *insn, first;
		size_t n, at = 0;

		check_site(text, &site[i]);
		assert_true(ca_text_decode(text, site[i].address, &first));
		CHECK(first.is_pause ? site[i].hook[0].kind == CA_SITE_MEET
				     : first.is_atomic && site[i].hook[0].kind == CA_SITE_ATOMIC,
		      site[i].address);
		assert_true(ca_text_function(text, site[i].address, &low, &high));
		insn = ca_text_decode_all(text, low, high, &n);
		assert_non_null(insn);
		while (at < n && insn[at].address < site[i].address)
			at++;
		CHECK(at < n && insn[at].address == site[i].address && !insn[at].is_split, site[i].address);
		check_targets(insn, n, &site[i], 1);
		free(insn);
	}
	check_disjoint(site, sites);
}

/* ---- binaries ------------------------------------------------------------------------------ */
static void print_shares(const char *what, const struct shares *s)
{
	printf("  %s: %u of %u planned (%.1f %%), %u sites, %.1f %% of them under 5 bytes\n", what,
	       s->planned, s->functions, 100.0 * s->planned / (s->functions ? s->functions : 1), s->sites,
	       100.0 * s->brief / (s->sites ? s->sites : 1));
	for (unsigned i = 0; i < REASONS && s->reason[i].n; i++)
		printf("    %5.2f %%  %s\n", 100.0 * s->reason[i].n / s->functions, s->reason[i].why);
}

/* Where a function begins; of those that begin there, the longest first. */
static int by_low(const void *a, const void *b)
{
	const struct ca_range *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->high > y->high ? -1 : x->high < y->high;
}

/* The function symbols that say how long they are, read without the code that is tested. */
static size_t read_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *sh, struct ca_range *out)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t n = 0;

	assert_non_null(data);
	for (size_t i = 0; i < sh->sh_size / sh->sh_entsize; i++) {
		GElf_Sym sym;

		assert_non_null(gelf_getsym(data, (int)i, &sym));
		if (GELF_ST_TYPE(sym.st_info) == STT_FUNC && sym.st_shndx != SHN_UNDEF && sym.st_size &&
		    !strstr(elf_strptr(elf, sh->sh_link, sym.st_name), ".cold"))
			out[n++] =
				(struct ca_range){ .low = sym.st_value, .high = sym.st_value + sym.st_size };
	}
	return n;
}

/* The functions of a file, each once; those that are tested must know the same. */
static size_t functions_of(struct ca_text *text, const char *path, struct ca_range **out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	Elf_Scn *section = NULL;
	struct ca_range *list = NULL;
	size_t n = 0, kept = 0;
	GElf_Shdr sh;

	assert_non_null(elf);
	while ((section = elf_nextscn(elf, section))) {
		assert_non_null(gelf_getshdr(section, &sh));
		if (sh.sh_type != SHT_SYMTAB && sh.sh_type != SHT_DYNSYM)
			continue;
		list = realloc(list, (n + sh.sh_size / sh.sh_entsize) * sizeof *list);
		assert_non_null(list);
		n += read_symbols(elf, section, &sh, list + n);
	}
	assert_true(n > 0);
	qsort(list, n, sizeof *list, by_low);
	for (size_t i = 0; i < n; i++) {
		uint64_t low = 0, high = 0;

		if (kept && list[i].low == list[kept - 1].low)
			continue;
		CHECK(ca_text_is_entry(text, list[i].low), list[i].low);
		CHECK(ca_text_function(text, list[i].low, &low, &high), list[i].low);
		CHECK(low == list[i].low && high == list[i].high, list[i].low);
		list[kept++] = list[i];
	}
	elf_end(elf);
	close(fd);
	*out = list;
	return kept;
}

/* Half of all functions at the very least; for most binaries it is nearer to all. */
static void check_binary(const char *path, bool strict)
{
	struct shares functions = { 0 }, lines = { 0 };
	struct ca_range *list = NULL;
	struct ca_text *text;
	struct ca_err err;
	size_t n;

	if (access(path, R_OK) != 0) {
		print_message("SKIP %s: not here\n", path);
		return;
	}
	assert_int_equal(ca_text_open(&text, path, &err), CA_OK);
	n = functions_of(text, path, &list);
	printf("%s: %zu functions\n", path, n);
	/* the largest binaries by samples */
	for (size_t i = 0; i < n; i += n / MOST_FUNCTIONS + 1) {
		check_function(text, &list[i], &functions);
		if (i % 4 == 0)
			check_lines(text, &list[i], &lines);
	}
	check_meetings(text);
	print_shares("functions", &functions);
	print_shares("lines", &lines);
	if (strict) {
		assert_true(functions.planned * 2 > functions.functions);
		assert_true(lines.planned * 2 > lines.functions);
	}
	free(list);
	ca_text_close(text);
}

static char **paths;

static void test_binaries(void **state)
{
	static const char *const usual[] = { "/lib/x86_64-linux-gnu/libc.so.6",
					     "/usr/lib/x86_64-linux-gnu/libcapstone.so.4",
					     "/usr/lib/x86_64-linux-gnu/libz.so.1",
					     "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/bin/bash" };

	(void)state;
	for (unsigned i = 0; i < CA_COUNT(usual) && !*paths; i++)
		check_binary(usual[i], true);
	for (char **p = paths; *p; p++)
		check_binary(*p, false);
	check_binary("/proc/self/exe", true);
	assert_true(checked_sites > 100);
}

/* What must be refused. */
static void test_refused(void **state)
{
	struct ca_text *text = NULL;
	struct ca_err err;

	(void)state;
	assert_int_not_equal(ca_text_open(&text, "/etc/passwd", &err), CA_OK);
	assert_int_not_equal(ca_text_open(&text, "/proc/self/missing", &err), CA_OK);
	assert_null(text);
}

/* A file that ends with its code, without sections: as from a packer, or a dump. And one whose
 * code would end behind it. */
static void test_end_of_file(void **state)
{
	static const uint8_t code[] = { 0x90, 0xc3 };
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr ph;
		uint8_t code[sizeof code];
	} file = {
		.e = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		       .e_type = ET_EXEC,
		       .e_machine = EM_X86_64,
		       .e_version = EV_CURRENT,
		       .e_phoff = sizeof(Elf64_Ehdr),
		       .e_ehsize = sizeof(Elf64_Ehdr),
		       .e_phentsize = sizeof(Elf64_Phdr),
		       .e_phnum = 1 },
		.ph = { .p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
			.p_vaddr = 0x400000,
			.p_filesz = sizeof code,
			.p_memsz = sizeof code,
			.p_align = 1 },
	};
	char path[] = "/tmp/ca-plan-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	memcpy(file.code, code, sizeof code);
	for (int more = -1; more <= 1; more++) {
		size_t size = offsetof(__typeof__(file), code) + sizeof code;
		uint64_t low, high;
		struct ca_text *text;
		const uint8_t *bytes;
		struct ca_insn insn;

		file.ph.p_filesz = file.ph.p_memsz = (uint64_t)((int)sizeof code + more);
		assert_int_equal(pwrite(fd, &file, size, 0), (ssize_t)size);
		assert_int_equal(ca_text_open(&text, path, NULL), CA_OK);
		assert_int_equal(ca_text_part(text, 0, &low, &high, &bytes), more <= 0);
		assert_int_equal(ca_text_decode(text, 0x400000, &insn), more <= 0);
		assert_int_equal(ca_text_decode(text, 0x400001, &insn), more == 0);
		ca_text_close(text);
	}
	close(fd);
	unlink(path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_binaries),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_end_of_file),
	};

	(void)argc;
	paths = argv + 1;
	elf_version(EV_CURRENT);
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &capstone) != CS_ERR_OK)
		return 1;
	cs_option(capstone, CS_OPT_DETAIL, CS_OPT_ON);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
