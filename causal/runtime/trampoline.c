/* SPDX-License-Identifier: MIT */
/* What the trampolines call: thunks that save the registers a C function may change, and call
 * the hook. Any thread, anywhere in the program's code.
 *
 * On entry the stack holds, from the top: return address into the trampoline's body, 128 bytes
 * of red zone that are not ours, then the program's own stack (for *_called: with the return
 * address of the call that brought it there). Flags go through ax: pushf and popf cost 20 cycles
 * more, and of the other flags none is changed by compiled code. */
#include "causal/runtime/patch_internal.h"

uint64_t ca_patch_nobody[CA_PATCH_COUNTERS] = { [CA_PATCH_HOT... CA_PATCH_COUNTERS - 1] = 1 };
__thread uint64_t *ca_patch_counters __attribute__((tls_model("initial-exec"))) = ca_patch_nobody;
struct ca_fine ca_patch_fine_nobody = { .limit = INT64_MAX, .counting = UINT32_MAX };
__thread struct ca_fine *ca_patch_fine __attribute__((tls_model("initial-exec"))) = &ca_patch_fine_nobody;
struct ca_patch_hooks ca_trampoline_hooks;

#define PUSH(r) "pushq %" r "\n.cfi_adjust_cfa_offset 8\n"
#define POP(r)  "popq %" r "\n.cfi_adjust_cfa_offset -8\n"
/* 11 registers, our return address, the red zone: 88 + 8 + 128 up to the program's sp */
#define THUNK(name, hook, above)          THUNK_WITH(name, hook, "leaq " above "(%rsp), %rdi\n")
#define THUNK_ARGUMENT(name, hook, above) THUNK_WITH(name, hook, "movl " above "(%rsp), %edi\n")
#define THUNK_WITH(name, hook, first_argument)                                                               \
	__asm__(".text\n.p2align 4\n.globl " name "\n.hidden " name "\n.type " name ", @function\n" name     \
		":\n.cfi_startproc\n" PUSH("rax") PUSH("rcx") PUSH("rdx") PUSH("rsi") PUSH("rdi") PUSH("r8") \
			PUSH("r9") PUSH("r10") PUSH("r11") PUSH("rbx") ".cfi_rel_offset rbx, 0\n"            \
								       "lahf\nseto %al\n" PUSH("rax")        \
									       first_argument                \
		"movq %rsp, %rbx\n.cfi_def_cfa_register rbx\n"                                               \
		"andq $-16, %rsp\n"                                                                          \
		"call *ca_trampoline_hooks+" hook "(%rip)\n"                                                 \
		"movq %rbx, %rsp\n.cfi_def_cfa_register rsp\n" POP("rax") "addb $0x7f, %al\nsahf\n" POP(     \
			"rbx") ".cfi_same_value rbx\n" POP("r11") POP("r10") POP("r9") POP("r8") POP("rdi")  \
			POP("rsi") POP("rdx") POP("rcx") POP("rax") "ret\n.cfi_endproc\n.size " name         \
								    ", . - " name "\n")

THUNK("ca_trampoline_enter", "0", "224");
THUNK("ca_trampoline_exit", "8", "224");
THUNK("ca_trampoline_enter_called", "0", "232");
THUNK("ca_trampoline_exit_called", "8", "232");
THUNK("ca_trampoline_meet", "16", "224");
/* 11 registers and our return address: the argument pushed by the body */
THUNK_ARGUMENT("ca_trampoline_stamp", "24", "96");
/* ... and beyond it and the red zone, so many words above the program's sp; or its frame pointer */
#define ABOVE_SP "movl 96(%rsp), %edi\nleaq 232(%rsp,%rdi,8), %rdi\n"
#define ABOVE_FP "movl 96(%rsp), %edi\nleaq (%rbp,%rdi,8), %rdi\n"
THUNK_WITH("ca_trampoline_enter_above", "0", ABOVE_SP);
THUNK_WITH("ca_trampoline_exit_above", "8", ABOVE_SP);
THUNK_WITH("ca_trampoline_enter_above_fp", "0", ABOVE_FP);
THUNK_WITH("ca_trampoline_exit_above_fp", "8", ABOVE_FP);
/* 11 registers: our return address */
THUNK_WITH("ca_trampoline_atomic", "32", "movq 88(%rsp), %rdi\n");
THUNK("ca_trampoline_fine", "40", "224");

unsigned ca_trampoline_registers(uintptr_t sp, uintptr_t *pc, uintptr_t all[16])
{
	/* of THUNK's frame, from its end: the red zone, the return address, rax, rcx, rdx, rsi, rdi, r8 to r11, rbx */
	static const uint8_t number[] = { 0, 2, 1, 4, 5, 8, 9, 10, 11, 3 };
	const uintptr_t *word = (const uintptr_t *)(sp - 128);
	unsigned known = 0;

	*pc = *--word;
	for (unsigned i = 0; i < sizeof number; i++) {
		all[number[i]] = *--word;
		known |= 1u << number[i];
	}
	return known;
}

/* Spelled as libc's, byte by byte: unwinders know a signal frame by these bytes. */
__asm__(".text\n.p2align 4\n.globl ca_trampoline_restore\n.hidden ca_trampoline_restore\n"
	".type ca_trampoline_restore, @function\n"
	"nop\n"
	"ca_trampoline_restore:\n"
	".byte 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00\n" /* mov $15, %rax */
	".byte 0x0f, 0x05\n"                               /* syscall */
	".size ca_trampoline_restore, . - ca_trampoline_restore\n");

CA_HIDDEN extern const char ca_trampoline_enter[], ca_trampoline_exit[];
CA_HIDDEN extern const char ca_trampoline_enter_called[], ca_trampoline_exit_called[];
CA_HIDDEN extern const char ca_trampoline_enter_above[], ca_trampoline_exit_above[];
CA_HIDDEN extern const char ca_trampoline_enter_above_fp[], ca_trampoline_exit_above_fp[];
CA_HIDDEN extern const char ca_trampoline_meet[], ca_trampoline_stamp[];
CA_HIDDEN extern const char ca_trampoline_atomic[], ca_trampoline_fine[];

const uintptr_t ca_trampoline_thunk[CA_THUNKS] = {
	[CA_THUNK_ENTER] = (uintptr_t)ca_trampoline_enter,
	[CA_THUNK_EXIT] = (uintptr_t)ca_trampoline_exit,
	[CA_THUNK_ENTER_CALLED] = (uintptr_t)ca_trampoline_enter_called,
	[CA_THUNK_EXIT_CALLED] = (uintptr_t)ca_trampoline_exit_called,
	[CA_THUNK_ENTER_ABOVE] = (uintptr_t)ca_trampoline_enter_above,
	[CA_THUNK_EXIT_ABOVE] = (uintptr_t)ca_trampoline_exit_above,
	[CA_THUNK_ENTER_ABOVE_FP] = (uintptr_t)ca_trampoline_enter_above_fp,
	[CA_THUNK_EXIT_ABOVE_FP] = (uintptr_t)ca_trampoline_exit_above_fp,
	[CA_THUNK_MEET] = (uintptr_t)ca_trampoline_meet,
	[CA_THUNK_STAMP] = (uintptr_t)ca_trampoline_stamp,
	[CA_THUNK_ATOMIC] = (uintptr_t)ca_trampoline_atomic,
	[CA_THUNK_FINE] = (uintptr_t)ca_trampoline_fine,
};
