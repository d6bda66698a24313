/* SPDX-License-Identifier: MIT */
/* A program that forbids itself system calls must not die of ours. When it installs a filter,
 * the filter is run here for each call that we make: if any would kill or be noticed, we switch
 * off before it is in force. Calls that merely fail are fine: see unwind.c, tick.c. Ordinary
 * context. What the kernel runs: classic BPF over struct seccomp_data, linux/filter.h. */
#include "causal/runtime/seccomp.h"
#include "causal/runtime/timers.h"
#include "causal/runtime/wrap.h"
#include "core/sys.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>

#define HERE UINT64_C(0x7ffff7400000) /* an address, as good as any */

/* With the arguments that filters look at: those that are no addresses. */
static const struct {
	int number;
	uint64_t argument[6];
} our_calls[] = {
	{ SYS_perf_event_open, { HERE, 0, UINT32_MAX, UINT32_MAX, PERF_FLAG_FD_CLOEXEC } },
	{ SYS_timer_create, { CLOCK_THREAD_CPUTIME_ID, HERE, HERE } },
	{ SYS_timer_create, { (uint64_t)CA_TICK_CLOCK, HERE, HERE } },
	{ SYS_timer_settime, { 0, 0, HERE } },
	{ SYS_timer_delete, { 0 } },
	{ SYS_getitimer, { ITIMER_REAL, HERE } },
	{ SYS_setitimer, { ITIMER_REAL, HERE, HERE } },
	{ SYS_timerfd_settime, { 3, TFD_TIMER_ABSTIME, HERE } },
	{ SYS_process_vm_readv, { 1, HERE, 1, HERE, 1 } },
	{ SYS_process_vm_writev, { 1, HERE, 1, HERE, 1 } },
	{ SYS_rt_sigprocmask, { SIG_BLOCK, HERE, HERE, 8 } },
	{ SYS_rt_sigprocmask, { SIG_UNBLOCK, HERE, HERE, 8 } },
	{ SYS_rt_sigprocmask, { SIG_SETMASK, HERE, HERE, 8 } },
	{ SYS_rt_sigaction, { SIGTRAP, HERE, 0, 8 } },
	{ SYS_rt_sigpending, { HERE, 8 } },
	{ SYS_getcpu, { HERE, 0, 0 } },
	{ SYS_rt_sigreturn, { 0 } },
	{ SYS_mmap, { 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT32_MAX } },
	{ SYS_mmap, { 0, 4096, PROT_READ, MAP_SHARED, 3 } },
	{ SYS_mmap, { HERE, 4096, PROT_READ, MAP_SHARED | MAP_FIXED, 3 } },
	{ SYS_mmap,
	  { HERE, 4096, PROT_READ | PROT_EXEC,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, UINT32_MAX } },
	{ SYS_munmap, { HERE, 4096 } },
	{ SYS_mprotect, { HERE, 4096, PROT_READ | PROT_WRITE | PROT_EXEC } },
	{ SYS_mprotect, { HERE, 4096, PROT_READ | PROT_EXEC } },
	{ SYS_madvise, { HERE, 4096, MADV_NOHUGEPAGE } },
	{ SYS_madvise, { HERE, 4096, CA_SYS_POPULATE_WRITE } },
	{ SYS_openat, { (uint32_t)AT_FDCWD, HERE, O_RDONLY | O_CLOEXEC } },
	{ SYS_openat, { (uint32_t)AT_FDCWD, HERE, O_RDWR | O_CLOEXEC } },
	{ SYS_openat, { (uint32_t)AT_FDCWD, HERE, O_RDONLY | O_DIRECTORY | O_CLOEXEC } },
	{ SYS_openat, { 3, HERE, O_RDONLY | O_CLOEXEC } },
	{ SYS_read, { 3, HERE, 4096 } },
	{ SYS_pread64, { 3, HERE, 16 } },
	{ SYS_pwrite64, { 3, HERE, 16, HERE } },
	{ SYS_write, { 2, HERE, 80 } },
	{ SYS_close, { 3 } },
	{ SYS_readlinkat, { (uint32_t)AT_FDCWD, HERE, HERE, 512 } },
	{ SYS_getdents64, { 3, HERE, 4096 } },
	{ SYS_newfstatat, { 3, HERE, HERE, AT_EMPTY_PATH } },
	{ SYS_fstat, { 3, HERE } },
	{ SYS_fcntl, { 3, F_DUPFD_CLOEXEC, 1000 } },
	{ SYS_fcntl, { 3, F_GETFD } },
	{ SYS_kcmp, { 1, 1, 0, 3, 1000 } },
	{ SYS_fcntl, { 3, F_SETSIG, CA_SIGNAL } },
	{ SYS_fcntl, { 3, F_SETOWN_EX, HERE } },
	{ SYS_fcntl, { 3, F_GETFL } },
	{ SYS_fcntl, { 3, F_GETPIPE_SZ } },
	{ SYS_fcntl, { 3, F_SETFL, O_RDWR | O_ASYNC } },
	{ SYS_ioctl, { 3, PERF_EVENT_IOC_ENABLE } },
	{ SYS_ioctl, { 3, FIONREAD, HERE } },
	{ SYS_getsockopt, { 3, SOL_SOCKET, SO_PEERCRED, HERE, HERE } },
	{ SYS_getsockopt, { 3, SOL_SOCKET, SO_SNDBUF, HERE, HERE } },
	{ SYS_getsockname, { 3, HERE, HERE } },
	{ SYS_clock_gettime, { CLOCK_THREAD_CPUTIME_ID, HERE } },
	{ SYS_clock_gettime, { CLOCK_MONOTONIC, HERE } },
	{ SYS_membarrier, { MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE } },
	{ SYS_brk, { 0 } },
	{ SYS_getpid, { 0 } },
	{ SYS_gettid, { 0 } },
	{ SYS_kill, { 1, 0 } },
	{ SYS_tgkill, { 1, 1, SIGTRAP } },
	{ SYS_rt_sigqueueinfo, { 1, CA_SIGNAL, HERE } },
	{ SYS_rt_tgsigqueueinfo, { 1, 1, CA_SIGNAL, HERE } },
	{ SYS_nanosleep, { HERE, 0 } },
	{ SYS_ppoll, { HERE, 1, HERE, 0, 8 } },
	{ SYS_sched_yield, { 0 } },
	{ SYS_getrusage, { RUSAGE_THREAD, HERE } },
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
	struct seccomp_data data = { .arch = AUDIT_ARCH_X86_64, .instruction_pointer = HERE };

	for (size_t i = 0; i < sizeof our_calls / sizeof *our_calls; i++) {
		uint32_t verdict;

		data.nr = our_calls[i].number;
		memcpy(data.args, our_calls[i].argument, sizeof data.args);
		verdict = run(program, &data) & SECCOMP_RET_ACTION_FULL;
		if (verdict != SECCOMP_RET_ALLOW && verdict != SECCOMP_RET_ERRNO &&
		    verdict != SECCOMP_RET_LOG)
			return false;
	}
	return true;
}

/* What it executes later is under the same filter, and shall not join. */
static void withdraw(const char *reason)
{
	char *session = getenv("CAUSAL_SESSION");

	if (session)
		*session = 0;
	ca_thread_pause();
	ca_rt_off(reason);
	ca_thread_wind_down_all();
}

void ca_seccomp_comes(bool strict, const void *program)
{
	if (ca_rt.session && atomic_load(&ca_rt.on) && (strict || (program && !tolerates_us(program))))
		withdraw("the program forbids itself system calls that causal needs (seccomp)");
}

void ca_seccomp_prctl(long option, const long *argument)
{
	if (option == PR_SET_SECCOMP)
		ca_seccomp_comes(argument[0] == SECCOMP_MODE_STRICT, (const void *)argument[1]);
	else if (option == PR_SET_SYSCALL_USER_DISPATCH && argument[0] == PR_SYS_DISPATCH_ON &&
		 ca_rt.session && atomic_load(&ca_rt.on))
		withdraw("the program has its system calls given back to it (PR_SET_SYSCALL_USER_DISPATCH), "
			 "and ours would be, too");
	else if (option == PR_SET_TSC && argument[0] == PR_TSC_SIGSEGV && ca_rt.session &&
		 atomic_load(&ca_rt.on)) {
		ca_timers_forget(); /* no clock of ours is read from now on */
		withdraw("the program forbids itself to read the time-stamp counter (PR_SET_TSC)");
	}
}

CA_EXPORT int prctl(int option, ...)
{
	long a[4];
	va_list list;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	ca_seccomp_prctl(option, a);
	return REAL(prctl)(option, a[0], a[1], a[2], a[3]);
}
