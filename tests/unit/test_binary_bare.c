/* SPDX-License-Identifier: MIT */
/* Unwind rows read from instructions, against the compiler's call frame information for the same code, and against
 * what assembly says by hand. */
#include "binary/plan/insn.h"
#include "tests/unit/unit.h"

#include "tests/unit/binary_fixture.h"

/* Without padding, which nothing leads to: what its rows are does not matter. */
#define PLAIN                                                                                                \
	"%s -O2 -w -shared -fPIC -nostdlib -fcf-protection=none -fno-align-functions -fno-align-jumps "      \
	"-fno-align-loops -fno-align-labels -fno-reorder-blocks-and-partition "

static const char code[] =
	"#include <stddef.h>\n"
	"extern int use(void *, ...), other(int), (*by[9])(int);\n"
	"extern void gone(void) __attribute__((noreturn));\n"
	"int leaf(int a) { return a * 3; }\n"
	"int six(int a, int b, int c, int d, int e, int f) {\n"
	"	for (int i = 0; i < a; i++) b += other(c) + other(d + i) * other(e) + f;\n"
	"	return b + a + c + d + e + f; }\n"
	"int large(int n) { char room[70000]; use(room); return room[n] + leaf(n); }\n"
	"int small(int n) { char room[100]; use(room); return room[n]; }\n"
	"int dynamic(int n) { char room[n]; use(room); return room[n - 1] + other(n); }\n"
	"int stacked(int n) { return use(&n, 1, 2, 3, 4, 5, 6, 7, 8, 9) + use(&n, n, n, n, n, n, n, n); }\n"
	"int tail(int n) { if (n > 3) other(n); return by[n](n); }\n"
	"int early(int n) { if (!n) return 1; int x = other(n); if (x == 7) gone(); return x + other(x); }\n"
	"int table(int n, int k) { switch (n) {\n"
	"	case 0: return other(k) + 1; case 1: return other(other(k)); case 2: k = other(k + 4); "
	"break;\n"
	"	case 3: return use(&k, 1); case 4: k += other(3); case 5: gone(); case 6: return by[k](n);\n"
	"	case 7: k = other(9) * k; break; }\n"
	"	return k * other(k); }\n"
	"double sums(double *a, size_t n) { double s = 0; for (size_t i = 0; i < n; i++)\n"
	"	s += a[i] * other((int)i); return s; }\n";

/* Rows of one function of both, at each instruction. */
static unsigned compare(const struct ca_index *told, const struct ca_index *bare, const uint8_t *image,
			const struct ca_index_function *f, uint64_t in_bare)
{
	struct ca_disassembler *disassembler = ca_insn_open();
	struct ca_insn insn;
	unsigned compared = 0;

	for (uint64_t at = f->low; at < f->high; at += insn.size, compared++) {
		const struct ca_unwind_row *wanted = ca_index_find_row(told, at),
					   *row = ca_index_find_row(bare, in_bare + (at - f->low));

		assert_true(ca_insn_decode(disassembler, image + at, f->high - at, at, &insn));
		assert_non_null(wanted);
		assert_non_null(row);
		if (row->kind != wanted->kind || row->cfa_offset != wanted->cfa_offset ||
		    row->ra_offset != wanted->ra_offset ||
		    /* compilers do not say that a register has been restored just before the end */
		    (row->fp_offset != wanted->fp_offset && row->fp_offset) ||
		    (row->bx_words != wanted->bx_words && row->bx_words != CA_UNWIND_LOST && row->bx_words))
			fail_msg("%s+%#llx: kind %d cfa %d fp %d bx %d, told: %d %d %d %d", f->name,
				 (unsigned long long)(at - f->low), row->kind, row->cfa_offset,
				 row->fp_offset, row->bx_words, wanted->kind, wanted->cfa_offset,
				 wanted->fp_offset, wanted->bx_words);
	}
	ca_insn_close(disassembler);
	return compared;
}

static bool find(const struct ca_index *index, const char *name, struct ca_index_function *f)
{
	for (size_t i = 0; i < ca_index_functions(index); i++) {
		ca_index_function_at(index, i, f);
		if (strcmp(f->name, name) == 0)
			return true;
	}
	return false;
}

static void test_as_compilers_tell(void **state)
{
	static uint8_t image[1 << 16];
	struct ca_index *told, *bare;
	struct ca_index_function f, g;
	unsigned compared = 0;
	FILE *file;

	(void)state;
	fixture_write("c.c", code);
	assert_int_equal(fixture_run(PLAIN "-fasynchronous-unwind-tables -o told.so c.c", fixture_cc()), 0);
	assert_int_equal(fixture_run(PLAIN
				     "-fno-asynchronous-unwind-tables -fno-unwind-tables -o bare.so c.c",
				     fixture_cc()),
			 0);
	told = fixture_open("told.so", CA_INDEX_UNWIND);
	bare = fixture_open("bare.so", CA_INDEX_UNWIND);
	assert_non_null(told);
	assert_non_null(bare);
	file = fopen(fixture_path("told.so"), "re");
	assert_non_null(file);
	assert_true(fread(image, 1, sizeof(image), file) > 0);
	fclose(file);
	for (size_t i = 0; i < ca_index_functions(told); i++) {
		ca_index_function_at(told, i, &f);
		assert_true(find(bare, f.name, &g));
		assert_int_equal(f.high - f.low, g.high - g.low);
		compared += compare(told, bare, image, &f, g.low);
	}
	assert_true(compared > 200);
	ca_index_close(told);
	ca_index_close(bare);
}

/* Each line of assembly is followed by what is expected behind it: a label "<kind>_<offset of the CFA>_<that of the
 * frame pointer>_<number>". */
static const char assembly[] =
	".text\n.globl f\n.type f, @function\nf:\n"
	"sp_8_0_0: push %rbp\n"
	"sp_16_16_1: push %rbx\n"
	"sp_24_16_2: sub $0x1000, %rsp\n"
	"sp_4120_16_3: .byte 0x62, 0xf3, 0x75, 0x48, 0x25, 0xc2, 0x96\n"       /* vpternlogd $150, zmm */
	"sp_4120_16_4: .byte 0x62, 0xf1, 0x7c, 0x48, 0x10, 0x44, 0x24, 0x01\n" /* vmovups 64(%rsp), %zmm0 */
	"sp_4120_16_5: vmovdqa %ymm0, 0x20(%rsp)\n"
	"sp_4120_16_6: jmp *%rax\n"
	"sp_4120_16_7: call 1f\n" /* only the jump leads here */
	"sp_4120_16_8: lea 0x1000(%rsp), %rsp\n"
	"sp_24_16_9: test %eax, %eax\n"
	"jz 2f\n"
	"sp_24_16_10: pop %rbx\n"
	"sp_16_16_11: pop %rbp\n"
	"sp_8_0_12: ret\n"
	"1: sp_8_0_13: nop\n" /* a function of its own */
	"sp_8_0_14: ret\n"
	"2: sp_24_16_15: mov %rsp, %rbx\n"
	"sp_24_16_16: and $-64, %rsp\n"
	"bx_24_16_17: vmovaps %zmm0, (%rsp)\n"
	"bx_24_16_18: mov %rbx, %rsp\n"
	"sp_24_16_19: ret\n"
	".size f, . - f\n"
	".globl g\n.type g, @function\ng:\n"
	"sp_8_0_20: push %rbp\n"
	"sp_16_16_21: mov %rsp, %rbp\n"
	"fp_16_16_22: and $-32, %rsp\n"
	"fp_16_16_23: sub $0x20, %rsp\n"
	"fp_16_16_24: leave\n"
	"sp_8_0_25: ret\n"
	".size g, . - g\n"
	/* registers stored, a stack that is aligned, and the way back */
	".globl h\n.type h, @function\nh:\n"
	"sp_8_0_26: sub $0x60, %rsp\n"
	"sp_104_0_27: mov %rbx, (%rsp)\n"
	"sp_104_0_28: mov %rbp, 8(%rsp)\n"
	"sp_104_96_29: mov %rsp, %rbx\n"
	"sp_104_96_30: sub $0x7080, %rsp\n"
	"sp_28904_96_31: and $-4096, %rsp\n"
	"bx_104_96_32: mov %rsi, 0x28(%rsp)\n"
	"bx_104_96_33: mov %rdi, %rbp\n"
	"bx_104_96_34: call 3f\n"
	"bx_104_96_35: mov %rbx, %rsp\n"
	"sp_104_96_36: mov (%rsp), %rbx\n"
	"sp_104_96_37: mov 8(%rsp), %rbp\n"
	"sp_104_0_38: add $0x60, %rsp\n"
	"sp_8_0_39: ret\n"
	"3: sp_8_0_40: mov %rsp, %rdi\n"
	"sp_8_0_41: and $-64, %rsp\n"
	"di_8_0_42: xor %edi, %edi\n" /* nobody knows any longer */
	"none_0_0_43: nop\n"
	"none_0_0_44: ret\n"
	".size h, . - h\n"
	/* ... by memory */
	".globl i\n.type i, @function\ni:\n"
	"sp_8_0_45: push %rbp\n"
	"sp_16_16_46: mov %rsp, %rax\n"
	"sp_16_16_47: sub $0x40, %rsp\n"
	"sp_80_16_48: and $-16, %rsp\n"
	"ax_16_16_49: mov %rax, 0x38(%rsp)\n"
	"at_56.16_16_50: mov %rsp, %rbp\n"
	"at_56.16_16_51: sub $0x100, %rsp\n"
	"at_312.16_16_52: push %rdi\n"
	"at_320.16_16_53: call *%rsi\n"
	"at_320.16_16_54: pop %rdi\n"
	"at_312.16_16_55: mov 0x138(%rsp), %rcx\n"
	"at_312.16_16_56: lea 8(%rcx), %rsp\n"
	"sp_8_16_57: mov -8(%rsp), %rbp\n"
	"sp_8_0_58: ret\n"
	".size i, . - i\n"
	".globl j\n.type j, @function\nj:\n"
	"sp_8_0_59: push %rbp\n"
	"sp_16_16_60: mov %rsp, %rax\n"
	"sp_16_16_61: and $-16, %rsp\n"
	"ax_16_16_62: mov %rax, (%rsp)\n"
	"at_0.16_16_80: mov %rsp, %rbp\n"
	"at_0.16_16_81: lea -0x100(%rbp), %rsp\n"
	"at_256.16_16_82: push %rax\n"
	"at_264.16_16_83: mov %rbp, %rsp\n"
	"at_0.16_16_63: pop %rsp\n"
	"sp_16_16_64: pop %rbp\n"
	"sp_8_0_65: ret\n"
	".size j, . - j\n"
	/* rbp is no frame any longer; the CFA itself, as compilers keep it; rbp is saved where nobody can tell */
	".globl k\n.type k, @function\nk:\n"
	"sp_8_0_66: push %rbp\n"
	"sp_16_16_67: mov %rsp, %rbp\n"
	"fp_16_16_68: mov %rdi, %rbp\n"
	"sp_16_16_69: pop %rbp\n"
	"sp_8_0_84: push %rbp\n"
	"sp_16_16_85: mov %rsp, %rbp\n"
	"fp_16_16_86: mov 8(%rsp), %rbp\n"
	"sp_16_16_87: pop %rbp\n"
	"sp_8_0_70: lea 8(%rsp), %r10\n"
	"sp_8_0_71: and $-32, %rsp\n"
	"r10_0_0_72: nop\n"
	"r10_0_0_73: ret\n"
	".size k, . - k\n"
	".globl l\n.type l, @function\nl:\n"
	"sp_8_0_74: lea (%rsp), %r10\n"
	"sp_8_0_75: and %rdi, %rsp\n"
	"r10_8_0_76: nop\n"
	"r10_8_0_77: push %rbp\n"
	"none_0_0_78: mov %r10, %rsp\n"
	"none_0_0_79: ret\n"
	".size l, . - l\n";

static void test_assembly(void **state)
{
	static const char *const kind[] = {
		[CA_UNWIND_NONE] = "none", [CA_UNWIND_SP] = "sp", [CA_UNWIND_FP] = "fp"
	};
	static const char *const reg[] = {
		"ax", "dx", "cx", "bx", "si", "di", "bp", "sp", "r8", "r9", "r10"
	};
	struct ca_index *index;
	char line[256], got[64];
	unsigned checked = 0;
	FILE *labels;

	(void)state;
	fixture_write("a.s", assembly);
	assert_int_equal(fixture_run("%s -shared -nostdlib -o a.so a.s && nm a.so > labels && strip a.so",
				     fixture_cc()),
			 0);
	index = fixture_open("a.so", CA_INDEX_UNWIND);
	assert_non_null(index);
	labels = fopen(fixture_path("labels"), "re");
	assert_non_null(labels);
	while (fgets(line, sizeof(line), labels)) {
		unsigned long long address;
		char name[64];
		const struct ca_unwind_row *row;

		if (sscanf(line, "%llx t %63s", &address, name) != 2 || !strrchr(name, '_'))
			continue;
		row = ca_index_find_row(index, address);
		assert_non_null(row);
		if (row->kind == CA_UNWIND_SP_DEREF)
			snprintf(got, sizeof(got), "at_%d.%d_%d%s", row->cfa_offset, 8 * row->reg,
				 -row->fp_offset, strrchr(name, '_'));
		else
			snprintf(got, sizeof(got), "%s_%d_%d%s",
				 row->kind == CA_UNWIND_REG ? reg[row->reg] : kind[row->kind],
				 row->cfa_offset, -row->fp_offset, strrchr(name, '_'));
		assert_string_equal(got, name);
		checked++;
	}
	fclose(labels);
	assert_int_equal(checked, 88);
	ca_index_close(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_compilers_tell),
		cmocka_unit_test(test_assembly),
	};

	return cmocka_run_group_tests(tests, fixture_make, fixture_remove);
}
