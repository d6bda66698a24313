/* SPDX-License-Identifier: MIT */
/* causal/runtime/seccomp.c: would a filter that the program installs kill us, or tell on us? It is
 * run for each call that we make, so each filter here asks a question of the machine that runs it and
 * lets all calls pass if the answer is right; wrong ones kill. Not a system call is made. */
#include "causal/runtime/wrap.h"
#include "tests/unit/runtime.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static unsigned offs, pauses, wound;
static const char *why; /* a word of the reason */

void ca_rt_off(const char *reason)
{
	assert_non_null(strstr(reason, why));
	offs++;
}

void ca_thread_pause(void)
{
	assert_int_equal(offs, pauses); /* first */
	pauses++;
}

void ca_thread_wind_down_all(void)
{
	assert_int_equal(offs, pauses);
	wound++;
}

static int set_up(void **state)
{
	offs = pauses = wound = 0;
	why = "seccomp";
	setenv("CAUSAL_SESSION", "/some/where", 1);
	return rt_set_up(state);
}

static bool withdraws(const struct sock_filter *code, size_t n)
{
	struct sock_fprog program = { (unsigned short)n, (struct sock_filter *)(uintptr_t)code };

	offs = pauses = wound = 0;
	ca_seccomp_comes(false, &program);
	assert_int_equal(offs, pauses);
	assert_int_equal(offs, wound);
	return offs;
}
#define WITHDRAWS(...)                                                                                       \
	withdraws((struct sock_filter[]){ __VA_ARGS__ },                                                     \
		  sizeof((struct sock_filter[]){ __VA_ARGS__ }) / sizeof(struct sock_filter))
#define OP(code, k) BPF_STMT(code, k)
#define RETURN(k)   BPF_STMT(BPF_RET | BPF_K, k)
#define ALLOW       RETURN(SECCOMP_RET_ALLOW)
#define KILL        RETURN(SECCOMP_RET_KILL_PROCESS)
/* The accumulator must be k now. */
#define MUST_BE(k) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, 1, 0), KILL, ALLOW

static void verdicts(void **state)
{
	(void)state;
	assert_false(WITHDRAWS(ALLOW));
	assert_false(WITHDRAWS(RETURN(SECCOMP_RET_ERRNO | 13)));
	assert_false(WITHDRAWS(RETURN(SECCOMP_RET_LOG)));
	assert_true(WITHDRAWS(KILL));
	assert_true(WITHDRAWS(RETURN(SECCOMP_RET_KILL_THREAD)));
	assert_true(WITHDRAWS(RETURN(SECCOMP_RET_TRAP)));
	assert_true(WITHDRAWS(RETURN(SECCOMP_RET_TRACE)));
	assert_true(WITHDRAWS(RETURN(SECCOMP_RET_USER_NOTIF)));
	assert_string_equal(getenv("CAUSAL_SESSION"), ""); /* whoever is executed later stays out */
	/* the verdict in the accumulator */
	assert_false(WITHDRAWS(OP(BPF_LD | BPF_IMM, SECCOMP_RET_ALLOW), OP(BPF_RET | BPF_A, 0)));
	assert_true(
		WITHDRAWS(OP(BPF_LD | BPF_IMM, SECCOMP_RET_TRAP), OP(BPF_RET | BPF_A, SECCOMP_RET_ALLOW)));
	/* one that does not end, or is not understood */
	assert_true(WITHDRAWS(OP(BPF_LD | BPF_IMM, 1)));
	assert_true(WITHDRAWS(OP(BPF_LD | BPF_IND, 1), ALLOW));
	assert_true(WITHDRAWS(OP(BPF_ST, BPF_MEMWORDS), ALLOW));
	assert_true(WITHDRAWS(OP(BPF_LD | BPF_MEM, BPF_MEMWORDS), ALLOW));
	assert_true(WITHDRAWS(OP(BPF_LD | BPF_W | BPF_ABS, sizeof(struct seccomp_data) - 3), ALLOW));
}

/* Each call that we make is asked about; of others it does not matter. */
static void calls(void **state)
{
	static const int ours[] = { SYS_perf_event_open,
				    SYS_timer_create,
				    SYS_timer_settime,
				    SYS_timer_delete,
				    SYS_process_vm_readv,
				    SYS_rt_sigprocmask,
				    SYS_rt_sigaction,
				    SYS_rt_sigreturn,
				    SYS_mmap,
				    SYS_munmap,
				    SYS_openat,
				    SYS_read,
				    SYS_write,
				    SYS_close,
				    SYS_membarrier,
				    SYS_getpid,
				    SYS_gettid,
				    SYS_nanosleep,
				    SYS_getrusage,
				    SYS_clock_gettime };
	static const int others[] = { SYS_execve, SYS_socket, SYS_unlink };

	(void)state;
	for (unsigned i = 0; i < CA_COUNT(ours); i++)
		assert_true(WITHDRAWS(OP(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
				      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)ours[i], 0, 1), KILL,
				      ALLOW));
	for (unsigned i = 0; i < CA_COUNT(others); i++)
		assert_false(WITHDRAWS(OP(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
				       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)others[i], 0, 1), KILL,
				       ALLOW));
	assert_false(WITHDRAWS(OP(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
			       MUST_BE(AUDIT_ARCH_X86_64)));
	assert_false(WITHDRAWS(OP(BPF_LD | BPF_W | BPF_LEN, 0), MUST_BE(sizeof(struct seccomp_data))));
	assert_false(WITHDRAWS(OP(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 44),
			       MUST_BE(0))); /* its last word */
	/* with the arguments that we give: executable memory, and files to be written */
	for (unsigned bits = 1; bits <= 8; bits *= 2)
		assert_int_equal(
			WITHDRAWS(OP(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
				  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 2),
				  OP(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 16),
				  BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0), ALLOW, KILL),
			bits <= 4);
	assert_true(WITHDRAWS(OP(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
			      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 1), KILL, ALLOW));
}

static void arithmetic(void **state)
{
	static const struct {
		unsigned short operation;
		uint32_t a, b, result;
	} cases[] = {
		{ BPF_ADD, 7, 5, 12 },         { BPF_SUB, 7, 5, 2 },           { BPF_SUB, 5, 7, 0xfffffffe },
		{ BPF_MUL, 7, 5, 35 },         { BPF_DIV, 36, 5, 7 },          { BPF_DIV, 7, 0, 0 },
		{ BPF_OR, 6, 3, 7 },           { BPF_AND, 6, 3, 2 },           { BPF_XOR, 6, 3, 5 },
		{ BPF_LSH, 3, 4, 48 },         { BPF_LSH, 3, 31, 0x80000000 }, { BPF_LSH, 1, 32, 0 },
		{ BPF_RSH, 48, 4, 3 },         { BPF_RSH, 0x80000000, 31, 1 }, { BPF_RSH, 5, 32, 0 },
		{ BPF_NEG, 5, 0, 0xfffffffb },
	};

	(void)state;
	for (unsigned i = 0; i < CA_COUNT(cases); i++) {
		assert_false(WITHDRAWS(OP(BPF_LD | BPF_IMM, cases[i].a),
				       OP((unsigned short)(BPF_ALU | cases[i].operation | BPF_K), cases[i].b),
				       MUST_BE(cases[i].result)));
		assert_false(WITHDRAWS(OP(BPF_LDX | BPF_IMM, cases[i].b), OP(BPF_LD | BPF_IMM, cases[i].a),
				       OP((unsigned short)(BPF_ALU | cases[i].operation | BPF_X), 99),
				       MUST_BE(cases[i].result)));
		assert_true(WITHDRAWS(OP(BPF_LD | BPF_IMM, cases[i].a),
				      OP((unsigned short)(BPF_ALU | cases[i].operation | BPF_K), cases[i].b),
				      MUST_BE(cases[i].result ^ 1)));
	}
}

static void jumps(void **state)
{
	static const struct {
		unsigned short operation;
		uint32_t a, b;
		bool taken;
	} cases[] = {
		{ BPF_JEQ, 5, 5, true },  { BPF_JEQ, 5, 6, false },  { BPF_JGT, 6, 5, true },
		{ BPF_JGT, 5, 5, false }, { BPF_JGE, 5, 5, true },   { BPF_JGE, 4, 5, false },
		{ BPF_JSET, 6, 2, true }, { BPF_JSET, 6, 1, false }, { BPF_JGT, 0x80000000, 1, true },
	};

	(void)state;
	for (unsigned i = 0; i < CA_COUNT(cases); i++) {
		assert_int_equal(WITHDRAWS(OP(BPF_LD | BPF_IMM, cases[i].a),
					   BPF_JUMP((unsigned short)(BPF_JMP | cases[i].operation | BPF_K),
						    cases[i].b, 1, 0),
					   ALLOW, KILL),
				 cases[i].taken);
		assert_int_equal(
			WITHDRAWS(OP(BPF_LDX | BPF_IMM, cases[i].b), OP(BPF_LD | BPF_IMM, cases[i].a),
				  BPF_JUMP((unsigned short)(BPF_JMP | cases[i].operation | BPF_X), 77, 2, 1),
				  KILL, ALLOW, KILL),
			cases[i].taken);
	}
	assert_false(WITHDRAWS(OP(BPF_JMP | BPF_JA, 2), KILL, KILL, ALLOW, KILL));
}

static void memory(void **state)
{
	(void)state;
	for (unsigned i = 0; i < BPF_MEMWORDS; i++) {
		assert_false(WITHDRAWS(OP(BPF_LD | BPF_IMM, 8), OP(BPF_ST, i), OP(BPF_LD | BPF_IMM, 9),
				       OP(BPF_LD | BPF_MEM, i), MUST_BE(8)));
		assert_false(WITHDRAWS(OP(BPF_LDX | BPF_IMM, 8), OP(BPF_STX, i), OP(BPF_LD | BPF_MEM, i),
				       MUST_BE(8)));
		assert_false(WITHDRAWS(OP(BPF_LD | BPF_IMM, 8), OP(BPF_ST, i), OP(BPF_LDX | BPF_MEM, i),
				       OP(BPF_LD | BPF_IMM, 9), OP(BPF_MISC | BPF_TXA, 0), MUST_BE(8)));
	}
	assert_false(WITHDRAWS(OP(BPF_LD | BPF_IMM, 8), OP(BPF_MISC | BPF_TAX, 0), OP(BPF_LD | BPF_IMM, 9),
			       OP(BPF_ALU | BPF_ADD | BPF_X, 0), MUST_BE(17)));
	assert_false(WITHDRAWS(OP(BPF_LD | BPF_MEM, 3), MUST_BE(0)));
}

static void when_not_to_look(void **state)
{
	struct sock_filter kill = KILL;
	struct sock_fprog program = { 1, &kill };

	(void)state;
	ca_seccomp_comes(false, NULL); /* the kernel will say what it thinks of that */
	assert_int_equal(offs, 0);
	atomic_store(&ca_rt.on, false);
	ca_seccomp_comes(true, NULL);
	ca_seccomp_comes(false, &program);
	atomic_store(&ca_rt.on, true);
	ca_rt.session = NULL;
	ca_seccomp_comes(true, NULL);
	assert_int_equal(offs, 0);
	assert_string_equal(getenv("CAUSAL_SESSION"), "/some/where");
	ca_rt.session = s;
	unsetenv("CAUSAL_SESSION");
	ca_seccomp_comes(true, NULL); /* strict mode forbids nearly all */
	assert_int_equal(offs, 1);
	ca_self = NULL;
	ca_seccomp_comes(false, &program);
	assert_int_equal(offs, 2);
	assert_int_equal(wound, 2);
}

/* Which calls of prctl matter, and how: as they did when prctl itself asked. */
static void by_prctl(void **state)
{
	struct sock_filter kill = KILL, allow = ALLOW;
	struct sock_fprog kills = { 1, &kill }, allows = { 1, &allow };

	(void)state;
	ca_seccomp_prctl(PR_GET_DUMPABLE, (long[]){ 0, 0 });
	ca_seccomp_prctl(PR_SET_TSC, (long[]){ PR_TSC_ENABLE, 0 });
	ca_seccomp_prctl(PR_SET_SECCOMP, (long[]){ SECCOMP_MODE_FILTER, (long)(intptr_t)&allows });
	assert_int_equal(offs, 0);
	ca_seccomp_prctl(PR_SET_SECCOMP, (long[]){ SECCOMP_MODE_FILTER, (long)(intptr_t)&kills });
	assert_int_equal(offs, 1);
	ca_seccomp_prctl(PR_SET_SECCOMP, (long[]){ SECCOMP_MODE_STRICT, 0 });
	assert_int_equal(offs, 2);
	why = "PR_SET_TSC";
	ca_seccomp_prctl(PR_SET_TSC, (long[]){ PR_TSC_SIGSEGV, 0 });
	assert_int_equal(offs, 3);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, rt_tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(verdicts),         TEST(calls),    TEST(arithmetic), TEST(jumps), TEST(memory),
		TEST(when_not_to_look), TEST(by_prctl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
