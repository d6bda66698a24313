/* SPDX-License-Identifier: MIT */
/* A program that forbids itself system calls must not die of ours. When it installs a filter,
 * the filter is run here for each call that we make: if any would kill or be noticed, we switch
 * off before it is in force. Calls that merely fail are fine: see unwind.c, tick.c. Ordinary
 * context. What the kernel runs: classic BPF over struct seccomp_data, linux/filter.h. */
#include "causal/runtime/seccomp.h"
#include "causal/runtime/wrap.h"
#include "core/sys.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static const int our_calls[] = {
	SYS_perf_event_open, SYS_timer_create, SYS_timer_settime, SYS_timer_delete, SYS_process_vm_readv,
	SYS_rt_sigprocmask,  SYS_rt_sigaction, SYS_rt_sigreturn,  SYS_mmap,         SYS_munmap,
	SYS_mprotect,        SYS_madvise,      SYS_openat,        SYS_read,         SYS_pread64,
	SYS_pwrite64,        SYS_write,        SYS_close,         SYS_readlinkat,   SYS_getdents64,
	SYS_newfstatat,      SYS_fstat,        SYS_fcntl,         SYS_ioctl,        SYS_clock_gettime,
	SYS_membarrier,      SYS_getpid,       SYS_gettid,        SYS_kill,         SYS_nanosleep,
	SYS_ppoll,           SYS_sched_yield
};

static uint32_t arithmetic(uint16_t operation, uint32_t a, uint32_t b)
{
	switch (operation) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_OR:
		return a | b;
	case BPF_AND:
		return a & b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return b < 32 ? a << b : 0;
	case BPF_RSH:
		return b < 32 ? a >> b : 0;
	default: /* BPF_NEG */
		return 0u - a;
	}
}

static bool jumps(uint16_t operation, uint32_t a, uint32_t b)
{
	switch (operation) {
	case BPF_JEQ:
		return a == b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	default: /* BPF_JSET */
		return a & b;
	}
}

/* The filter's verdict; one that we do not understand kills. */
static uint32_t run(const struct sock_fprog *program, const struct seccomp_data *data)
{
	uint32_t a = 0, x = 0, memory[BPF_MEMWORDS] = { 0 };

	for (size_t at = 0; at < program->len; at++) {
		const struct sock_filter *i = &program->filter[at];
		uint32_t operand = BPF_SRC(i->code) == BPF_X ? x : i->k;

		switch (BPF_CLASS(i->code)) {
		case BPF_LD:
		case BPF_LDX: {
			uint32_t value = i->k;

			if (BPF_MODE(i->code) == BPF_ABS && i->k + 4 <= sizeof *data)
				memcpy(&value, (const char *)data + i->k, 4);
			else if (BPF_MODE(i->code) == BPF_MEM && i->k < BPF_MEMWORDS)
				value = memory[i->k];
			else if (BPF_MODE(i->code) == BPF_LEN)
				value = sizeof *data;
			else if (BPF_MODE(i->code) != BPF_IMM)
				return SECCOMP_RET_KILL_PROCESS;
			*(BPF_CLASS(i->code) == BPF_LD ? &a : &x) = value;
			break;
		}
		case BPF_ST:
		case BPF_STX:
			if (i->k >= BPF_MEMWORDS)
				return SECCOMP_RET_KILL_PROCESS;
			memory[i->k] = BPF_CLASS(i->code) == BPF_ST ? a : x;
			break;
		case BPF_ALU:
			a = arithmetic(BPF_OP(i->code), a, operand);
			break;
		case BPF_JMP:
			at += BPF_OP(i->code) == BPF_JA            ? i->k
			      : jumps(BPF_OP(i->code), a, operand) ? i->jt
								   : i->jf;
			break;
		case BPF_RET:
			return BPF_RVAL(i->code) == BPF_A ? a : i->k;
		default: /* BPF_MISC */
			*(BPF_MISCOP(i->code) == BPF_TAX ? &x : &a) = BPF_MISCOP(i->code) == BPF_TAX ? a : x;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

static bool tolerates_us(const struct sock_fprog *program)
{
	struct seccomp_data data = { .arch = AUDIT_ARCH_X86_64 };

	for (size_t i = 0; i < sizeof our_calls / sizeof *our_calls; i++) {
		uint32_t verdict;

		data.nr = our_calls[i];
		verdict = run(program, &data) & SECCOMP_RET_ACTION_FULL;
		if (verdict != SECCOMP_RET_ALLOW && verdict != SECCOMP_RET_ERRNO &&
		    verdict != SECCOMP_RET_LOG)
			return false;
	}
	return true;
}

/* What it executes later is under the same filter, and shall not join. */
static void withdraw(void)
{
	char *session = getenv("CAUSAL_SESSION");

	if (session)
		*session = 0;
	ca_thread_pause();
	ca_rt_off("the program forbids itself system calls that causal needs (seccomp)");
	if (ca_self)
		ca_thread_wind_down(ca_self);
}

void ca_seccomp_comes(bool strict, const void *program)
{
	if (ca_rt.session && atomic_load(&ca_rt.on) && (strict || (program && !tolerates_us(program))))
		withdraw();
}

CA_EXPORT int prctl(int option, ...)
{
	unsigned long a[4];
	va_list list;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(list, unsigned long);
	va_end(list);
	if (option == PR_SET_SECCOMP)
		ca_seccomp_comes(a[0] == SECCOMP_MODE_STRICT, (const void *)a[1]);
	return REAL(prctl)(option, a[0], a[1], a[2], a[3]);
}
