/* SPDX-License-Identifier: MIT */
/* sampler/unwind.c: real stacks against glibc's backtrace(), each kind of row on a stack made by
 * hand, stacks that are broken; and all of it where memory cannot be copied by a system call. */
#include "binary/index/index_file.h"
#include "sampler/unwind.h"
#include "tests/unit/sampler_fixture.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { PAGE = 4096, FRAMES = 64 };

/* A call through the linkage table makes the linker write one. Each label is where a frame is interrupted, or what a call returns to. */
static const char library[] = ASM_MACROS
	/* counted from rsp; the frame pointer is kept, or saved at CFA - 16 */
	"fn by_sp\n sub $16,%rsp\n.cfi_def_cfa_offset 24\nsp_kept: nop\n add $16,%rsp\n.cfi_def_cfa_offset "
	"8\n"
	" push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp,-16\nsp_saved: nop\n pop %rbp\n ret\nend by_sp\n"
	/* a frame of 40,000 bytes, which a row states in words */
	"fn by_large\n sub $40000,%rsp\n.cfi_def_cfa_offset 40008\nlarge_frame: nop\n add $40000,%rsp\n "
	"ret\nend by_large\n"
	/* from rbp */
	"fn by_fp\n push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp,-16\n mov %rsp,%rbp\n"
	".cfi_def_cfa_register rbp\nfp_frame: nop\n leave\n ret\nend by_fp\n"
	/* from r10 */
	"fn by_reg\n lea 8(%rsp),%r10\n.cfi_def_cfa r10,0\nreg_frame: nop\n ret\nend by_reg\n"
	"fn by_kept\n.cfi_def_cfa r12,0\nkept_frame: nop\n ret\nend by_kept\n"
	/* realigned, as gcc says it: the CFA is stored at rbp - 8, the caller's rbp at rbp */
	"fn by_memory\n.cfi_escape 0xf,0x3,0x76,0x78,0x6\n.cfi_escape 0x10,0x6,0x2,0x76,0\n"
	"memory_frame: nop\n ret\nend by_memory\n"
	/* realigned, as assembly does it: the frame's end is one word above what is stored at rsp + 16 */
	"fn by_stored\n.cfi_escape 0xf,0x5,0x77,0x10,0x6,0x23,0x8\n.cfi_offset rbp,-16\n"
	"stored_frame: nop\n ret\nend by_stored\n"
	/* with a frame pointer, and a call */
	"fn calls_by_fp\n push %rbp\n mov %rsp,%rbp\n sub $64,%rsp\n call *%rdi\ncalls_back: leave\n ret\n"
	"end calls_by_fp\n"
	/* nobody called it; nothing is known of it */
	"fn outermost\n.cfi_undefined rip\nlast_frame: nop\n ret\nend outermost\n"
	"fn linked\n call abort@PLT\nend linked\n"
	".globl unknown\n.type unknown,@function\nunknown: mov (%rdi), %rsp\nunknown_frame: nop\n ret\n.size "
	"unknown,.-unknown\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static uintptr_t bias;

static uintptr_t at(const char *label)
{
	return bias + asm_at(label);
}

static int set_up(void **state)
{
	void *handle;

	if (sampler_set_up(state) != 0)
		return -1;
	asm_make("lib", library);
	handle = dlopen(fixture_path("lib.so"), RTLD_NOW);
	if (!handle)
		return -1;
	bias = (uintptr_t)dlsym(handle, "by_sp") - asm_at("by_sp");
	backtrace((void *[4]){ NULL }, 4); /* loads what it needs */
	ca_modules_scan();
	sampler_index_all();
	return 0;
}

static uintptr_t address_of(ca_place place)
{
	uintptr_t found = 0;

	assert_true(ca_modules_bias(CA_PLACE_MODULE(place), &found));
	return found + CA_PLACE_OFFSET(place);
}

/* ---- real stacks --------------------------------------------------------------------------*/
static struct ca_stack stack;
static ucontext_t interrupted;
static void *wanted[FRAMES];
static int frames;
static uintptr_t behind[CA_UNWIND_DEPTH]; /* the words in front of the frames' ends */

static void handle_alone(int signo, siginfo_t *info, void *context)
{
	struct ca_registers r;
	uintptr_t all[16];

	(void)signo;
	(void)info;
	ca_unwind_registers(&r, all, context);
	ca_unwind(&r, false, &stack);
}

static void handle(int signo, siginfo_t *info, void *context)
{
	frames = backtrace(wanted, FRAMES);
	interrupted = *(ucontext_t *)context;
	handle_alone(signo, info, context);
	for (unsigned i = 0; i + 1 < stack.depth; i++)
		behind[i] = ((uintptr_t *)stack.cfa[i])[-1];
}

/* Frames of different sizes, and of an unknown one. */
static __attribute__((noinline)) int deep(int depth)
{
	volatile char room[depth * 40 + 8];

	room[0] = (char)depth;
	if (depth == 0)
		raise(SIGUSR1);
	else
		deep(depth - 1);
	return room[0] + 1;
}

static void check_against_backtrace(void)
{
	int from = 0;

	/* behind the handler's own frames and the signal's */
	while (from < frames && wanted[from] != (void *)interrupted.uc_mcontext.gregs[REG_RIP])
		from++;
	assert_true(from < frames && frames < FRAMES);
	assert_int_equal(stack.depth, frames - from);
	assert_true(stack.complete);
	assert_int_equal(address_of(stack.place[0]), wanted[from]);
	for (unsigned i = 1; i < stack.depth; i++) {
		assert_int_equal(address_of(stack.place[i]) + 1, wanted[from + (int)i]);
		if (i + 1 < stack.depth)
			assert_true(stack.cfa[i] > stack.cfa[i - 1]);
	}
	/* a frame ends behind its return address */
	for (unsigned i = 0; i + 1 < stack.depth; i++)
		assert_int_equal(behind[i], address_of(stack.place[i + 1]) + 1);
}

static void test_real(void **state)
{
	struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO };

	(void)state;
	sigaction(SIGUSR1, &action, NULL);
	for (int depth = 0; depth < 12; depth++) {
		memset(&stack, 0, sizeof stack);
		deep(depth);
		assert_true(stack.depth > (unsigned)depth + 3);
		check_against_backtrace();
		/* again with what was learnt about the stack */
		deep(depth);
		check_against_backtrace();
	}
}

/* Inside a handler: through the signal's frame to whom it interrupted. */
static void handle_inside(int signo, siginfo_t *info, void *context)
{
	ucontext_t here;
	struct ca_registers r;
	uintptr_t all[16];

	(void)signo;
	(void)info;
	getcontext(&here);
	frames = backtrace(wanted, FRAMES);
	interrupted = *(ucontext_t *)context;
	ca_unwind_registers(&r, all, &here);
	ca_unwind(&r, false, &stack);
}

static void test_handler(void **state)
{
	struct sigaction action = { .sa_sigaction = handle_inside, .sa_flags = SA_SIGINFO };

	(void)state;
	memset(&stack, 0, sizeof stack);
	sigaction(SIGUSR1, &action, NULL);
	deep(2);
	assert_true(stack.complete);
	/* all but the handler's own; whom it interrupted was not calling. A sanitizer's backtrace()
	 * may begin with a frame of its own */
	assert_true(stack.depth > 5 && stack.depth <= (unsigned)frames);
	for (unsigned i = 1; i < stack.depth; i++) {
		void *pc = wanted[frames - (int)i];

		assert_int_equal(address_of(stack.place[stack.depth - i]) +
					 (pc != (void *)interrupted.uc_mcontext.gregs[REG_RIP]),
				 pc);
	}
}

/* A stack that nothing readable follows: a copy across its end fails as a whole. */
static void *run_deep(void *context)
{
	(void)context;
	deep(1);
	return NULL;
}

static void test_end_of_mapping(void **state)
{
	struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO };
	enum { SIZE = 64 * PAGE };
	char *memory = mmap(NULL, SIZE + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;

	(void)state;
	assert_int_equal(mprotect(memory + SIZE, PAGE, PROT_NONE), 0);
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstack(&attr, memory, SIZE), 0);
	memset(&stack, 0, sizeof stack);
	sigaction(SIGUSR1, &action, NULL);
	assert_int_equal(pthread_create(&thread, &attr, run_deep, NULL), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	check_against_backtrace();
	munmap(memory, SIZE + PAGE);
}

/* ---- stacks made by hand ------------------------------------------------------------------*/
enum { WORDS = 5064, FP = 40 };

struct frame {
	const char *label;
	unsigned cfa; /* index of the word behind the return address; 0: not looked for */
};
static const struct made {
	const char *name;
	struct {
		unsigned at;
		const char *label; /* the word's value: a label, */
		unsigned word;     /* or a word's address */
	} word[6];
	struct frame frame[4];
	bool no_registers, complete;
} made[] = {
	{ "by rsp", { { 2, "last_frame", 0 } }, { { "sp_kept", 3 }, { "last_frame", 0 } }, .complete = true },
	{ "large",
	  { { 5000, "last_frame", 0 } },
	  { { "large_frame", 5001 }, { "last_frame", 0 } },
	  .complete = true },
	/* rbp is kept by the first, and the second counts from it */
	{ "rbp kept",
	  { { 2, "fp_frame", 0 }, { FP, NULL, 50 }, { FP + 1, "last_frame", 0 } },
	  { { "sp_kept", 3 }, { "fp_frame", FP + 2 }, { "last_frame", 0 } },
	  .complete = true },
	/* ... saved by the first, at its CFA - 16 */
	{ "rbp saved",
	  { { 0, NULL, 20 }, { 1, "fp_frame", 0 }, { 21, "last_frame", 0 } },
	  { { "sp_saved", 2 }, { "fp_frame", 22 }, { "last_frame", 0 } },
	  .complete = true },
	{ "by rbp",
	  { { FP, NULL, 45 }, { FP + 1, "fp_frame", 0 }, { 46, "last_frame", 0 } },
	  { { "fp_frame", FP + 2 }, { "fp_frame", 47 }, { "last_frame", 0 } },
	  .complete = true },
	/* r10 holds word 10's address */
	{ "by r10",
	  { { 9, "last_frame", 0 } },
	  { { "reg_frame", 10 }, { "last_frame", 0 } },
	  .complete = true },
	{ "r10 not known", { { 9, "last_frame", 0 } }, { { "reg_frame", 0 } }, .no_registers = true },
	{ "r10 of a caller",
	  { { 2, "reg_frame", 0 }, { 9, "last_frame", 0 } },
	  { { "sp_kept", 3 }, { "reg_frame", 10 }, { "last_frame", 0 } },
	  .complete = true },
	{ "r12 of a caller: whoever it calls may have saved it",
	  { { 2, "kept_frame", 0 }, { 9, "last_frame", 0 } },
	  { { "sp_kept", 3 }, { "kept_frame", 0 } } },
	{ "by memory",
	  { { FP - 1, NULL, 50 }, { FP, NULL, 52 }, { 49, "fp_frame", 0 }, { 53, "last_frame", 0 } },
	  { { "memory_frame", 50 }, { "fp_frame", 54 }, { "last_frame", 0 } },
	  .complete = true },
	/* and rbp in word 8, for whoever is called by it */
	{ "by what is stored",
	  { { 2, NULL, 9 }, { 9, "fp_frame", 0 }, { 8, NULL, 20 }, { 21, "last_frame", 0 } },
	  { { "stored_frame", 10 }, { "fp_frame", 22 }, { "last_frame", 0 } },
	  .complete = true },
	{ "nothing known", { { 0, "last_frame", 0 } }, { { "unknown_frame", 0 } } },
	{ "nobody's code", { { 2, NULL, 5 } }, { { "sp_kept", 3 } } },
	{ "no caller", { { 2, NULL, 0 } }, { { "sp_kept", 3 } }, .complete = true },
	/* outward no more: the caller's frame would lie below */
	{ "inward",
	  { { FP + 1, "fp_frame", 0 }, { FP, NULL, 3 } },
	  { { "fp_frame", FP + 2 }, { "fp_frame", 0 } } },
};

static void check_made(const struct made *m)
{
	uintptr_t words[WORDS] = { 0 },
		  all[16] = { [10] = (uintptr_t)&words[10], [12] = (uintptr_t)&words[10] };
	struct ca_registers r = { .sp = (uintptr_t)words,
				  .fp = (uintptr_t)&words[FP],
				  .all = m->no_registers ? NULL : all };
	unsigned depth = 0;

	for (unsigned i = 0; i < CA_COUNT(m->word); i++)
		if (m->word[i].label)
			words[m->word[i].at] = at(m->word[i].label) + 1;
		else if (m->word[i].word)
			words[m->word[i].at] = (uintptr_t)&words[m->word[i].word];
	r.pc = at(m->frame[0].label);
	ca_unwind(&r, false, &stack);
	for (; depth < CA_COUNT(m->frame) && m->frame[depth].label; depth++) {
		if (stack.depth <= depth || address_of(stack.place[depth]) != at(m->frame[depth].label))
			fail_msg("%s: frame %u of %u", m->name, depth, stack.depth);
		if (m->frame[depth].cfa && stack.cfa[depth] != (uintptr_t)&words[m->frame[depth].cfa])
			fail_msg("%s: frame %u ends at word %ld", m->name, depth,
				 ((long)stack.cfa[depth] - (long)words) / 8);
	}
	if (stack.depth != depth || stack.complete != m->complete)
		fail_msg("%s: %u frames, %s", m->name, stack.depth,
			 stack.complete ? "complete" : "not complete");
}

static void test_made(void **state)
{
	(void)state;
	for (size_t i = 0; i < CA_COUNT(made); i++)
		check_made(&made[i]);
}

/* Never a wild read. */
static void test_broken(void **state)
{
	char *none = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t word[4] = { 0 };
	const uintptr_t sp[] = { 0,
				 8,
				 UINTPTR_MAX - 7,
				 (uintptr_t)none + PAGE,
				 (uintptr_t)none + PAGE - 16,
				 (uintptr_t)word + 1 };

	(void)state;
	mprotect(none + PAGE, PAGE, PROT_NONE);
	for (size_t i = 0; i < CA_COUNT(sp); i++) {
		struct ca_registers r = { .pc = at("sp_kept"), .sp = sp[i] };

		memset(&stack, 0, sizeof stack);
		errno = 44;
		ca_unwind(&r, false, &stack);
		assert_int_equal(errno, 44);
		assert_int_equal(stack.depth, 1);
		assert_false(stack.complete);
		assert_int_equal(address_of(stack.place[0]), at("sp_kept"));
		/* the frame pointer alone */
		r = (struct ca_registers){ .pc = at("fp_frame"), .sp = (uintptr_t)word, .fp = sp[i] };
		ca_unwind(&r, false, &stack);
		assert_int_equal(stack.depth, 1);
		assert_false(stack.complete);
	}
	munmap(none, 2 * PAGE);
}

/* The linkage table: its entries push a number for the loader at their 11th byte. */
static void test_linkage(void **state)
{
	uintptr_t words[4] = { 0 }, plt = 0;
	FILE *file;

	(void)state;
	assert_int_equal(fixture_run("objdump -d -j .plt lib.so | sed -n 's/ <abort@plt>.*//p' >plt"), 0);
	file = fopen(fixture_path("plt"), "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lx", &plt), 1);
	fclose(file);
	for (unsigned i = 0; i < 16; i++) {
		struct ca_registers r = { .pc = bias + plt + i, .sp = (uintptr_t)words };

		words[0] = words[1] = 0;
		words[i >= 11] = at("last_frame") + 1;
		ca_unwind(&r, false, &stack);
		assert_int_equal(stack.depth, 2);
		assert_int_equal(stack.cfa[0], (uintptr_t)&words[1 + (i >= 11)]);
		assert_true(stack.complete);
	}
}

/* Where nothing is copied, only what is above the stack pointer is sure to stay. */
static void check_below(bool copied)
{
	uintptr_t words[16] = { [1] = at("last_frame") + 1 };
	struct ca_registers r = { .pc = at("fp_frame"), .sp = (uintptr_t)&words[8], .fp = (uintptr_t)words };

	ca_unwind(&r, false, &stack);
	assert_int_equal(stack.depth, 1);
	assert_int_equal(stack.cfa[0], copied ? (uintptr_t)&words[2] : r.sp);
}

/* A return address belongs to the call in front of it. */
static void test_call(void **state)
{
	struct ca_registers r = { .pc = at("by_fp"), .sp = (uintptr_t)(uintptr_t[4]){ 0 } };

	(void)state;
	memset(&stack, 0, sizeof stack);
	ca_unwind(&r, true, &stack);
	assert_int_equal(address_of(stack.place[0]), at("by_fp") - 1);
	ca_unwind(&r, false, &stack);
	assert_int_equal(address_of(stack.place[0]), at("by_fp"));
}

static bool translate(uintptr_t pc, uintptr_t *original, intptr_t *shift)
{
	if (pc != 12345)
		return false;
	*original = at("sp_kept");
	*shift = 16;
	return true;
}

/* In code of the runtime's own: as if at its original, with the stack pointer that it had. */
static void test_translated(void **state)
{
	uintptr_t words[8] = { [4] = at("last_frame") + 1 };
	struct ca_registers r = { .pc = 12345, .sp = (uintptr_t)words };

	(void)state;
	memset(&stack, 0, sizeof stack);
	ca_unwind(&r, false, &stack);
	assert_int_equal(stack.depth, 0);
	ca_sampler_host.translate = translate;
	ca_unwind(&r, false, &stack);
	ca_sampler_host.translate = NULL;
	assert_int_equal(stack.depth, 2);
	assert_int_equal(address_of(stack.place[0]), at("sp_kept"));
	assert_int_equal(stack.cfa[0], (uintptr_t)&words[5]);
	assert_int_equal(address_of(stack.place[1]), at("last_frame"));
	assert_true(stack.complete);
}

/* Of the thread's own stack, and of nothing else, words are read where no system call gets them. */
static void walk_own_stack(void **state)
{
	uintptr_t words[8] = { [4] = at("last_frame") + 1 };
	struct ca_registers r = { .pc = 12345, .sp = (uintptr_t)words };

	(void)state;
	ca_sampler_host.translate = translate;
	for (unsigned end = 3; end <= 6; end++) {
		memset(&stack, 0, sizeof stack);
		stack.own_low = (uintptr_t)words - 4096;
		stack.own_high = (uintptr_t)&words[end];
		ca_unwind(&r, false, &stack);
		assert_int_equal(stack.depth, end > 4 ? 2 : 1);
		assert_int_equal(stack.complete, end > 4);
	}
	stack.own_low = (uintptr_t)&words[1]; /* the stack pointer is elsewhere */
	ca_unwind(&r, false, &stack);
	assert_int_equal(stack.depth, 1);
	ca_sampler_host.translate = NULL;
}

static void test_own_stack(void **state)
{
	(void)state;
	without_call(SYS_process_vm_readv, EFAULT, walk_own_stack);
}

static __attribute__((noinline)) void raise_here(void)
{
	raise(SIGUSR1);
	__asm__ volatile("");
}

/* Behind the frame at `inside` are those of the test: `wanted`, but for where in it the call was. A sanitizer's
 * backtrace() begins with a frame of its own. */
static void check_behind(ca_place inside)
{
	unsigned n = 0, more;

	while (n < stack.depth && stack.place[n] != inside)
		n++;
	assert_true(n < stack.depth);
	assert_true(stack.complete);
	more = (unsigned)frames - (stack.depth - n - 1);
	assert_in_range(more, 0, getenv("CA_SANITIZER") && *getenv("CA_SANITIZER") ? 1 : 0);
	for (unsigned i = n + 2; i < stack.depth; i++)
		assert_int_equal(address_of(stack.place[i]) + 1, wanted[i - n - 1 + more]);
}

/* Code of a binary that has no row, with a frame pointer: what V8's compiler made when node was built. */
static void test_no_row(void **state)
{
	struct sigaction action = { .sa_sigaction = handle_alone, .sa_flags = SA_SIGINFO };
	void (*call)(void (*)(void));
	struct ca_loaded *loaded = ca_modules_find(at("calls_by_fp"));
	const struct ca_index *index;
	struct ca_index without_rows;

	(void)state;
	assert_non_null(loaded);
	*(void **)&call = (void *)at("calls_by_fp");
	index = atomic_load(&loaded->index);
	without_rows = *index;
	without_rows.rows = 0;
	atomic_store(&loaded->index, &without_rows);
	sigaction(SIGUSR1, &action, NULL);
	memset(&stack, 0, sizeof stack);
	frames = backtrace(wanted, FRAMES);
	call(raise_here);
	atomic_store(&loaded->index, index);
	check_behind(CA_PLACE(loaded->module, at("calls_back") - 1 - loaded->bias));
}

/* Code made at run time that keeps no frame pointer, as PCRE's: whoever called it is found by what its frame holds, and
 * what earlier calls have left there, a return address of the same library, misleads nobody. */
static void test_made_code(void **state)
{
	static const unsigned char code[] = {
		0x55,                         /* push %rbp */
		0xbd, 0x34, 0x12, 0x00, 0x00, /* mov $0x1234, %ebp */
		0x48, 0x83, 0xec, 0x30,       /* sub $0x30, %rsp */
		0x48, 0x89, 0x74, 0x24, 0x08, /* mov %rsi, 8(%rsp) */
		0xff, 0xd7,                   /* call *%rdi */
		0x48, 0x83, 0xc4, 0x30,       /* add $0x30, %rsp */
		0x5d, 0xc3                    /* pop %rbp, ret */
	};
	struct sigaction action = { .sa_sigaction = handle_alone, .sa_flags = SA_SIGINFO };
	enum { CALL_ENDS = 17 };
	ca_place inside;
	void (*call)(void (*)(void), void *);
	void *memory =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	memcpy(memory, code, sizeof code);
	*(void **)&call = memory;
	ca_modules_scan();
	inside = CA_PLACE(CA_MODULE_MADE, (uintptr_t)memory + CALL_ENDS - 1);
	sigaction(SIGUSR1, &action, NULL);
	memset(&stack, 0, sizeof stack);
	frames = backtrace(wanted, FRAMES);
	call(raise_here, NULL);
	check_behind(inside);
	/* stale: where this function has been called from, and no call at all */
	call(raise_here, wanted[1]);
	check_behind(inside);
	call(raise_here, (void *)(at("last_frame") + 1));
	check_behind(inside);
	munmap(memory, PAGE);
}

static void test_registers(void **state)
{
	static const int order[16] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP
	};
	ucontext_t context = { 0 };
	struct ca_registers r;
	uintptr_t all[16];

	(void)state;
	for (int i = 0; i < NGREG; i++)
		context.uc_mcontext.gregs[i] = 100 + i;
	ca_unwind_registers(&r, all, &context);
	assert_int_equal(r.pc, 100 + REG_RIP);
	assert_int_equal(r.sp, 100 + REG_RSP);
	assert_int_equal(r.fp, 100 + REG_RBP);
	assert_ptr_equal(r.all, all);
	for (int i = 0; i < 16; i++)
		assert_int_equal(all[i], 100 + (i < 8 ? order[i] : REG_R8 + i - 8));
}

static void test_below(void **state)
{
	(void)state;
	check_below(true);
}

static void all_again(void **state)
{
	check_below(false);
	test_broken(state);
	test_made(state);
	test_linkage(state);
	test_real(state);
	test_handler(state);
	test_end_of_mapping(state);
	test_broken(state);
}

static void test_without_copies(void **state)
{
	(void)state;
	without_call(SYS_process_vm_readv, EPERM, all_again);
	without_call(SYS_process_vm_readv, ENOSYS, all_again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registers),      cmocka_unit_test(test_real),
		cmocka_unit_test(test_handler),        cmocka_unit_test(test_end_of_mapping),
		cmocka_unit_test(test_made),           cmocka_unit_test(test_broken),
		cmocka_unit_test(test_linkage),        cmocka_unit_test(test_below),
		cmocka_unit_test(test_call),           cmocka_unit_test(test_translated),
		cmocka_unit_test(test_without_copies), cmocka_unit_test(test_own_stack),
		cmocka_unit_test(test_made_code),      cmocka_unit_test(test_no_row),
	};

	return cmocka_run_group_tests(tests, set_up, sampler_tear_down);
}
