/* SPDX-License-Identifier: MIT */
/* Corners of live patching: jumps into the middle of a site, traps that are not ours, threads
 * that must not trap, text that is gone or that somebody else has changed.
 *
 * The code to be patched is written here byte by byte, and counted, so that no planner and no
 * hook is needed. */
#include "causal/runtime/patch.h"
#include "causal/runtime/patch_internal.h"
#include "tests/unit/forbidden.h"
#include "tests/unit/unit.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { POINT = 2, PAGE = 4096 };

/* uint64_t f(uint64_t a, uint64_t entry): jumps to `site` + entry. Five instructions begin in
 * the first nine bytes of the site; a call that enters at the front returns (a + 1 - 1) + 5. */
static const uint8_t text[] = {
	0x48, 0x8d, 0x05, 0x05, 0x00, 0x00, 0x00, /* lea 5(%rip), %rax */
	0x48, 0x01, 0xf0,                         /* add %rsi, %rax */
	0xff, 0xe0,                               /* jmp *%rax */
	0x90,                                     /* site: nop */
	0x48, 0xff, 0xc7,                         /* 1: inc %rdi */
	0x90,                                     /* 4: nop */
	0x48, 0xff, 0xcf,                         /* 5: dec %rdi */
	0x48, 0x8d, 0x47, 0x05,                   /* 8: lea 5(%rdi), %rax */
	0xc3,                                     /* 12 */
};
enum { SITE = 12, SITE_LENGTH = 5 };
static const unsigned entry[] = { 0, 1, 4, 5, 8 };

static uint8_t *page;
static uint64_t (*function)(uint64_t a, uint64_t entry);
static uint64_t counter[CA_PATCH_COUNTERS];

static bool bias_of_page(uint32_t module, uintptr_t *bias)
{
	*bias = (uintptr_t)page;
	return module == 1;
}

static void map_text(void)
{
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(page != MAP_FAILED);
	memcpy(page, text, sizeof text);
	assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_EXEC), 0);
	memcpy(&function, &page, sizeof function);
}

/* nop; inc; nop: three instructions in five bytes. */
static struct ca_site middle_site(void)
{
	static const uint8_t back = 0xe9;
	struct ca_site site = { .module = 1,
				.kind = CA_SITE_COUNT,
				.length = SITE_LENGTH,
				.address = SITE,
				.point = POINT,
				.hooks = 1,
				.insns = 2,
				.fixups = 1,
				.code_length = SITE_LENGTH + 5 };

	memcpy(site.original, text + SITE, SITE_LENGTH);
	memcpy(site.code, text + SITE, SITE_LENGTH);
	site.code[SITE_LENGTH] = back;
	site.hook[0].kind = CA_SITE_COUNT;
	for (unsigned i = 0; i < 2; i++)
		site.insn[i].offset = site.insn[i].at = (uint8_t)entry[i + 1];
	site.fixup[0].at = SITE_LENGTH + 1;
	site.fixup[0].end = SITE_LENGTH + 5;
	site.fixup[0].target = SITE + SITE_LENGTH;
	return site;
}

static uint64_t expected(unsigned i)
{
	/* inc and dec, those of the two that are run */
	return 100u + (entry[i] <= 1) - (entry[i] <= 5) + 5;
}

static void call_everywhere(void)
{
	for (unsigned i = 0; i < CA_COUNT(entry); i++)
		assert_int_equal(function(100, entry[i]), expected(i));
}

static void entering_in_the_middle(void **state)
{
	struct ca_site site = middle_site();

	(void)state;
	map_text();
	call_everywhere();
	counter[POINT] = 0;
	assert_int_equal(ca_patch_install(&site, 1, bias_of_page), 0);
	assert_int_equal(ca_patch_stats().jumps, 1);
	assert_memory_not_equal(page, text, sizeof text);
	call_everywhere();
	assert_int_equal(counter[POINT], 1); /* who comes in behind the front is not counted */
	/* in place already: nothing happens, and it counts as placed */
	assert_int_equal(ca_patch_install(&site, 1, bias_of_page), 0);
	call_everywhere();
	assert_int_equal(counter[POINT], 2);
	assert_true(ca_patch_remove()); /* not the permanent ones */
	assert_int_equal(ca_patch_stats().jumps, 1);
	assert_true(ca_patch_remove_all());
	assert_memory_equal(page, text, sizeof text);
	call_everywhere();
	assert_int_equal(counter[POINT], 2);
	munmap(page, PAGE);
}

/* ---- what must not be touched --------------------------------------------------------------- */
static void other_bytes_than_planned(void **state)
{
	struct ca_site site = middle_site();

	(void)state;
	map_text();
	site.original[4] ^= 1;
	assert_int_equal(ca_patch_install(&site, 1, bias_of_page), 1);
	assert_memory_equal(page, text, sizeof text);
	/* a module that is not loaded is no failure */
	site.module = 2;
	assert_int_equal(ca_patch_install(&site, 1, bias_of_page), 0);
	assert_memory_equal(page, text, sizeof text);
	/* descriptions that make no sense */
	site = middle_site();
	site.code_length = CA_SITE_CODE + 1;
	assert_int_equal(ca_patch_install(&site, 1, bias_of_page), 1);
	site = middle_site();
	site.fixup[0].end = CA_SITE_CODE;
	assert_int_equal(ca_patch_install(&site, 1, bias_of_page), 1);
	site = middle_site();
	site.insn[0].offset = CA_SITE_BYTES;
	assert_int_equal(ca_patch_install(&site, 1, bias_of_page), 1);
	assert_memory_equal(page, text, sizeof text);
	munmap(page, PAGE);
}

static void two_sites_in_one_place(void **state)
{
	struct ca_site first = middle_site(), second = middle_site();

	(void)state;
	map_text();
	second.point = POINT + 1;
	assert_int_equal(ca_patch_install(&first, 1, bias_of_page), 0);
	assert_int_equal(ca_patch_install(&second, 1, bias_of_page), 1);
	counter[POINT] = counter[POINT + 1] = 0;
	call_everywhere();
	assert_int_equal(counter[POINT], 1);
	assert_int_equal(counter[POINT + 1], 0);
	assert_true(ca_patch_remove_all());
	assert_int_equal(ca_patch_install(&second, 1, bias_of_page), 0);
	call_everywhere();
	assert_int_equal(counter[POINT], 1);
	assert_int_equal(counter[POINT + 1], 1);
	assert_true(ca_patch_remove_all());
	assert_memory_equal(page, text, sizeof text);
	munmap(page, PAGE);
}

/* dlclose while the site is in place, then something else is mapped there. */
static void text_that_is_gone(void **state)
{
	struct ca_site site = middle_site();
	uint8_t *again;

	(void)state;
	map_text();
	assert_int_equal(ca_patch_install(&site, 1, bias_of_page), 0);
	munmap(page, PAGE);
	assert_true(ca_patch_remove_all());
	assert_int_equal(ca_patch_install(&site, 1, bias_of_page), 1);
	again = mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_true(again == page);
	assert_true(ca_patch_remove_all());
	assert_int_equal(ca_patch_install(&site, 1, bias_of_page), 1);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(page[i], 0);
	munmap(page, PAGE);
}

/* The same library again, at the same place. */
static void text_that_comes_back(void **state)
{
	struct ca_site site = middle_site();
	uint8_t *before;

	(void)state;
	map_text();
	before = page;
	assert_int_equal(ca_patch_install(&site, 1, bias_of_page), 0);
	munmap(page, PAGE);
	page = mmap(before, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memcpy(page, text, sizeof text);
	assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(ca_patch_install(&site, 1, bias_of_page), 0);
	counter[POINT] = 0;
	call_everywhere();
	assert_int_equal(counter[POINT], 1);
	assert_true(ca_patch_remove_all());
	assert_memory_equal(page, text, sizeof text);
	munmap(page, PAGE);
}

/* ---- neighbours -------------------------------------------------------------------------------- */
/* uint64_t g(uint64_t a): a + 2. */
static const uint8_t row[] = {
	0x90,                   /* nop */
	0x48, 0x8d, 0x47, 0x01, /* 1: lea 1(%rdi), %rax */
	0x48, 0xff, 0xc0,       /* 5: inc %rax */
	0x90,                   /* 8: nop */
	0xc3,                   /* 9 */
};
enum { A = 8, B, C }; /* their points */

static uint64_t (*in_a_row)(uint64_t a);

/* Far from everything else, so that any distance leads to free memory; and each time elsewhere,
 * since what was made for a site is used again for it. */
static void map_row(void)
{
	static uintptr_t lonely = 0x40000000;

	lonely += 16 * PAGE;
	page = mmap((void *)lonely, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(page != MAP_FAILED);
	memcpy(page, row, sizeof row);
	assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_EXEC), 0);
	memcpy(&in_a_row, &page, sizeof in_a_row);
	memset(counter, 0, sizeof counter);
}

/* Whole instructions that may stand anywhere; second: where the second one begins. */
static struct ca_site site_at(uint8_t at, uint8_t length, uint8_t second, uint32_t point)
{
	struct ca_site site = { .module = 1,
				.kind = CA_SITE_COUNT,
				.length = length,
				.address = at,
				.point = point,
				.hooks = 1,
				.insns = second > 0,
				.fixups = 1,
				.code_length = (uint8_t)(length + 5) };

	memcpy(site.original, row + at, length);
	memcpy(site.code, row + at, length);
	site.code[length] = 0xe9;
	site.hook[0].kind = CA_SITE_COUNT;
	site.insn[0].offset = site.insn[0].at = second;
	site.fixup[0].at = (uint8_t)(length + 1);
	site.fixup[0].end = (uint8_t)(length + 5);
	site.fixup[0].target = (uint64_t)at + length;
	return site;
}

static void visited(uint64_t a, uint64_t b, uint64_t c)
{
	assert_int_equal(in_a_row(40), 42);
	assert_int_equal(counter[A], a);
	assert_int_equal(counter[B], b);
	assert_int_equal(counter[C], c);
}

static void unmap_row(void)
{
	assert_true(ca_patch_remove_all());
	assert_memory_equal(page, row, sizeof row);
	assert_int_equal(ca_patch_stats().jumps + ca_patch_stats().traps, 0);
	munmap(page, PAGE);
}

static unsigned install(struct ca_site site)
{
	return ca_patch_install(&site, 1, bias_of_page);
}

/* A jump at the short one would be made of bytes of the other, which are not what they were. */
static void short_site_before_one_in_place(void **state)
{
	struct ca_site a = site_at(0, 1, 0, A), b = site_at(1, 7, 4, B);

	(void)state;
	map_row();
	assert_int_equal(install(b), 0);
	a.flags = CA_SITE_NO_TRAP;
	assert_int_equal(install(a), 1);
	visited(0, 1, 0);
	a.flags = 0;
	assert_int_equal(install(a), 0);
	assert_int_equal(ca_patch_stats().traps, 1);
	assert_int_equal(ca_patch_stats().jumps, 1);
	visited(1, 2, 0);
	unmap_row();
}

static void site_behind_a_short_one(void **state)
{
	struct ca_site a = site_at(0, 1, 0, A), b = site_at(1, 7, 4, B), c = site_at(5, 4, 3, C);

	(void)state;
	map_row();
	assert_int_equal(install(a), 0);
	assert_int_equal(ca_patch_stats().jumps, 1); /* the bytes behind it are its distance */
	assert_int_equal(install(b), 1);
	assert_memory_equal(page + 1, row + 1, sizeof row - 1);
	assert_int_equal(install(c), 0); /* right behind what the jump needs */
	visited(1, 0, 1);
	assert_true(ca_patch_remove_all());
	/* the other way round; what was made for one is no good where the other is */
	assert_int_equal(install(b), 0);
	assert_int_equal(install(a), 1);
	assert_int_equal(install(c), 1); /* the last bytes of b */
	visited(1, 1, 1);
	unmap_row();
}

static void short_sites_at_once(void **state)
{
	const struct ca_site sites[] = { site_at(0, 1, 0, A), site_at(1, 4, 0, B), site_at(5, 3, 0, C) };

	(void)state;
	map_row();
	assert_int_equal(ca_patch_install(sites, 3, bias_of_page), 0);
	visited(1, 1, 1);
	visited(2, 2, 2);
	assert_true(ca_patch_remove_all());
	assert_memory_equal(page, row, sizeof row);
	/* from the last to the first */
	for (unsigned i = 3; i-- > 0;)
		assert_int_equal(install(sites[i]), 0);
	visited(3, 3, 3);
	unmap_row();
}

/* The one place where a jump at `a` can lead; the bytes behind it say so. */
static uint64_t (*landing_of_a(void))(uint64_t)
{
	uint64_t (*landing)(uint64_t);
	int32_t distance;
	uint8_t *at;

	memcpy(&distance, page + 1, sizeof distance);
	at = page + 5 + distance;
	memcpy(&landing, &at, sizeof landing);
	return landing;
}

/* Kinds take turns at a site that has one landing: each has it when it is in place. */
static void short_site_of_two_kinds(void **state)
{
	struct ca_site a = site_at(0, 1, 0, A), c = site_at(0, 1, 0, C);
	unsigned records;

	(void)state;
	map_row();
	a.flags = c.flags = CA_SITE_NO_TRAP;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(install(a), 0);
		visited(2 * i + 1, 0, 2 * i);
		assert_true(ca_patch_remove_all());
		assert_int_equal(landing_of_a()(40), 42); /* a thread that stood there */
		visited(2 * i + 2, 0, 2 * i);
		assert_int_equal(install(c), 0);
		assert_int_equal(ca_patch_stats().jumps, 1);
		visited(2 * i + 2, 0, 2 * i + 1);
		assert_true(ca_patch_remove_all());
		assert_int_equal(landing_of_a()(40), 42);
		visited(2 * i + 2, 0, 2 * i + 2);
		if (!i)
			records = ca_patch_stats().records;
	}
	assert_int_equal(ca_patch_stats().records, records);
	unmap_row();
}

static bool bias_and_land(uint32_t module, uintptr_t *bias)
{
	static unsigned asked;

	/* the other site's turn: this one's landing is being turned */
	if (++asked == 2) {
		assert_int_equal(*(volatile uint8_t *)(uintptr_t)landing_of_a(), 0xcc);
		assert_int_equal(landing_of_a()(40), 42);
	}
	return bias_of_page(module, bias);
}

/* A thread that stands on a landing while that is turned goes where it will lead. */
static void standing_on_a_landing(void **state)
{
	struct ca_site sites[] = { site_at(0, 1, 0, C), site_at(5, 3, 0, B) };

	(void)state;
	map_row();
	assert_int_equal(install(site_at(0, 1, 0, A)), 0);
	assert_true(ca_patch_remove_all());
	assert_int_equal(ca_patch_install(sites, 2, bias_and_land), 0);
	assert_int_equal(counter[A], 0);
	assert_int_equal(counter[C], 1);
	visited(0, 1, 2);
	unmap_row();
}

/* Who jumps to an instruction of a site that lies behind the jump is sent to its copy, too. */
static void entering_behind_the_jump(void **state)
{
	struct ca_site site = site_at(1, 8, 4, B);
	uint64_t (*last)(uint64_t);
	uint8_t *at;

	(void)state;
	map_row();
	site.insns = 2;
	site.insn[1].offset = site.insn[1].at = 7;
	assert_int_equal(install(site), 0);
	at = page + 8;
	memcpy(&last, &at, sizeof last);
	last(40);
	visited(0, 1, 0);
	unmap_row();
}

/* ---- a fork while another thread is placing sites -------------------------------------------------- */
static pid_t child_of_install;

static bool bias_and_fork(uint32_t module, uintptr_t *bias)
{
	static unsigned asked;

	/* the second site's turn: the first one's traps are there, its jump is not */
	if (++asked == 2) {
		child_of_install = fork();
		if (!child_of_install) {
			ca_patch_forked();
			if (in_a_row(40) != 42 || counter[B] != 1 || ca_patch_stats().jumps != 1 ||
			    page[1] == 0xcc || !ca_patch_remove_all() || memcmp(page, row, sizeof row) != 0)
				_exit(1);
			_exit(in_a_row(40) != 42 || counter[B] != 1);
		}
	}
	return bias_of_page(module, bias);
}

static void fork_while_placing(void **state)
{
	const struct ca_site sites[] = { site_at(1, 7, 4, B), site_at(0, 1, 0, A) };
	int status;

	(void)state;
	map_row();
	assert_int_equal(ca_patch_install(sites, 0, bias_of_page), 0);
	assert_int_equal(ca_patch_install(sites, 2, bias_and_fork), 0);
	assert_int_equal(waitpid(child_of_install, &status, 0), child_of_install);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	ca_patch_forked(); /* nobody was at it */
	visited(1, 1, 0);
	unmap_row();
}

static void write_text(size_t at, uint8_t byte)
{
	assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_WRITE), 0);
	page[at] = byte;
	assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_EXEC), 0);
}

/* Bytes behind a short site were changed while it was out: its jump would lead elsewhere. */
static void other_bytes_behind(void **state)
{
	struct ca_site a = site_at(0, 1, 0, A);

	(void)state;
	map_row();
	assert_int_equal(install(a), 0);
	assert_int_equal(ca_patch_stats().jumps, 1);
	visited(1, 0, 0);
	assert_true(ca_patch_remove_all());
	write_text(4, 7); /* lea 7(%rdi), %rax */
	assert_int_equal(install(a), 1);
	assert_int_equal(in_a_row(40), 48);
	write_text(4, 1);
	assert_int_equal(install(a), 0);
	visited(2, 0, 0);
	unmap_row();
}

/* Somebody else's bytes stand where ours were: they stay. */
static void patched_over(void **state)
{
	static const uint8_t foreign[] = { 0x48, 0x8d, 0x47, 0x09, 0x90, 0x90, 0x90, 0x90 };
	uint8_t now[sizeof foreign];

	(void)state;
	map_row();
	assert_int_equal(install(site_at(1, 7, 4, B)), 0);
	assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_WRITE), 0);
	memcpy(page + 1, foreign, sizeof foreign);
	assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_EXEC), 0);
	assert_true(ca_patch_remove_all());
	memcpy(now, page + 1, sizeof now);
	assert_memory_equal(now, foreign, sizeof foreign);
	assert_int_equal(ca_patch_stats().jumps, 0);
	munmap(page, PAGE);
}

static void what_stays(void **state)
{
	static const struct {
		enum ca_site_kind kind;
		bool stays;
	} kinds[] = { { CA_SITE_ENTER, false }, { CA_SITE_EXIT, false }, { CA_SITE_CALL, false },
		      { CA_SITE_COUNT, true },  { CA_SITE_MEET, false }, { CA_SITE_TRIAL, false } };

	(void)state;
	map_row();
	for (unsigned i = 0; i < CA_COUNT(kinds); i++) {
		struct ca_site b = site_at(1, 7, 4, B);

		b.kind = (uint8_t)kinds[i].kind;
		assert_int_equal(install(b), 0);
		assert_true(ca_patch_remove());
		assert_int_equal(ca_patch_stats().jumps, kinds[i].stays);
		assert_true(ca_patch_remove_all());
	}
	unmap_row();
}

/* ---- the fine sampler's hooks -------------------------------------------------------------------- */
static unsigned dues;

static void due(void)
{
	dues++;
}

/* f(40) with flags and registers that the hooks use for themselves; false: they are not what they were. */
static bool call_with_all(void)
{
	uint64_t rax, rcx = 0x1111, rdx = 0x2222, before, after;

	__asm__ volatile("movb $0x7f, %%al\n\taddb $0x81, %%al\n\tincb %%al\n\t" /* CF stays, no ZF */
			 "pushfq\n\tpopq %[before]\n\t"
			 "call *%[f]\n\t"
			 "pushfq\n\tpopq %[after]"
			 : "=&a"(rax), "+c"(rcx), "+d"(rdx), [before] "=&r"(before), [after] "=&r"(after)
			 : [f] "r"(in_a_row), "D"(40)
			 : "memory", "cc");
	return rax == 42 && rcx == 0x1111 && rdx == 0x2222 && before == after;
}

/* It is entered before its first instruction and left before the second one. */
static struct ca_site fine_site(bool flags_dead)
{
	struct ca_site site = site_at(1, 7, 4, B);

	site.kind = CA_SITE_ENTER;
	site.hooks = 2;
	site.hook[0].kind = CA_SITE_FINE_ENTER;
	site.hook[1].kind = CA_SITE_FINE_EXIT;
	site.hook[1].at = 4;
	site.flags = flags_dead ? CA_SITE_FLAGS_DEAD : 0;
	return site;
}

static void fine_hooks(void **state)
{
	static const struct ca_patch_hooks hooks = { .fine = due };
	static struct ca_fine account;

	(void)state;
	ca_patch_set_hooks(&hooks);
	for (unsigned dead = 0; dead < 2; dead++) {
		uint64_t sum = 0;

		map_row();
		assert_int_equal(install(fine_site(dead)), 0);
		dues = 0;
		in_a_row(40); /* a thread without an account */
		assert_int_equal(dues, 0);
		account = (struct ca_fine){ .limit = INT64_MAX };
		ca_patch_fine = &account;
		for (unsigned i = 1; i <= 3; i++) {
			uint64_t from = __builtin_ia32_rdtsc();

			assert_true(dead ? in_a_row(40) == 42 : call_with_all());
			assert_int_equal(account.visits, i);
			assert_int_equal(account.outer, 0);
			assert_in_range(account.entered, from, account.left);
			assert_in_range(account.left, from, __builtin_ia32_rdtsc());
			sum += account.left - account.entered;
			assert_int_equal(account.sum, sum);
		}
		assert_int_equal(dues, 0);
		account.limit = account.sum + 1;
		in_a_row(40);
		assert_int_equal(dues, 1);
		/* what a handler has left is somewhat below 0 */
		account.sum = -(INT64_C(1) << 40);
		in_a_row(40);
		assert_int_equal(dues, 1);
		/* so many are only counted */
		sum = account.entered;
		account.sum = 7;
		account.counting = 2;
		assert_true(dead ? in_a_row(40) == 42 : call_with_all());
		assert_int_equal(account.counting, 1);
		assert_int_equal(account.visits, 6);
		assert_int_equal(account.outer, 0);
		assert_int_equal(dues, 1);
		in_a_row(40);
		assert_int_equal(account.counting, 0);
		assert_int_equal(account.visits, 7);
		assert_int_equal(dues, 2);
		assert_int_equal(account.sum, 7);
		assert_int_equal(account.entered, sum);
		/* inside an outer activation nothing happens */
		sum = account.entered;
		account.outer = UINT64_MAX / 2;
		assert_true(dead ? in_a_row(40) == 42 : call_with_all());
		assert_int_equal(account.outer, UINT64_MAX / 2);
		assert_int_equal(account.visits, 7);
		assert_int_equal(account.passes, 1); /* the exit is none of that one's */
		assert_int_equal(account.entered, sum);
		/* one that lies deeper has been left without an exit */
		account.outer = 1;
		in_a_row(40);
		assert_int_equal(account.outer, 0);
		assert_int_equal(account.visits, 8);
		assert_true(account.entered > sum);
		ca_patch_fine = &ca_patch_fine_nobody;
		unmap_row();
	}
}

static uintptr_t passed_at;
static unsigned passed;

static void note_pc(uintptr_t pc)
{
	passed_at = pc;
	passed++;
}

static void hook_sp(uintptr_t sp)
{
	(void)sp;
}

static uintptr_t entered_at, left_at;

static void hook_enter_at(uintptr_t sp)
{
	entered_at = sp;
}

static void hook_exit_at(uintptr_t sp)
{
	left_at = sp;
}

/* Calls f(40) with the frame pointer at 16 times 4096. */
static void call_with_fp(void)
{
	__asm__ volatile("pushq %%rbp\n\tmovl $65536, %%ebp\n\tcall *%[f]\n\tpopq %%rbp"
			 :
			 : [f] "r"(in_a_row), "D"(40)
			 : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
}

/* An activation is named by what lies so many words above the stack pointer, or the frame pointer: by either kind of
 * hook the same. */
static void names(void **state)
{
	static const struct ca_patch_hooks hooks = { .enter = hook_enter_at,
						     .exit = hook_exit_at,
						     .fine = due };
	static struct ca_fine account;
	uintptr_t sp = 0;

	(void)state;
	ca_patch_set_hooks(&hooks);
	for (unsigned i = 0; i < 4; i++) {
		struct ca_site site = fine_site(false);
		uint8_t words = i == 0 ? 0 : i == 1 ? 3 : 23;

		site.hook[0].kind = CA_SITE_ENTER;
		site.hook[1].kind = CA_SITE_EXIT;
		site.words = words;
		site.flags |= i == 3 ? CA_SITE_BY_FP : 0;
		map_row();
		assert_int_equal(install(site), 0);
		entered_at = left_at = 0;
		call_with_fp();
		if (!i)
			sp = entered_at;
		assert_int_not_equal(sp, 0);
		assert_int_equal(entered_at, (i == 3 ? 65536 : sp) + 8U * words);
		assert_int_equal(left_at, entered_at);
		assert_true(ca_patch_remove_all());
		site.hooks = 1;
		site.hook[0].kind = CA_SITE_FINE_ENTER;
		assert_int_equal(install(site), 0);
		account = (struct ca_fine){ .limit = INT64_MAX };
		ca_patch_fine = &account;
		call_with_fp();
		assert_int_equal(account.outer, entered_at);
		ca_patch_fine = &ca_patch_fine_nobody;
		unmap_row();
	}
}

static void hook_meet(uintptr_t sp)
{
	(void)sp;
}

static unsigned stamped;

static void hook_stamp(uint32_t point)
{
	stamped += point == B;
}

/* What costs too much goes and does not come back, though its neighbour does. */
static void retired(void **state)
{
	static const struct ca_patch_hooks hooks = {
		.enter = hook_sp, .exit = hook_sp, .meet = hook_meet, .stamp = hook_stamp, .atomic = note_pc
	};
	struct ca_site a = site_at(0, 1, 0, A), b = site_at(1, 7, 4, B);
	unsigned records;

	(void)state;
	map_row();
	ca_patch_set_hooks(&hooks);
	b.kind = CA_SITE_MEET;
	b.hook[0].kind = CA_SITE_ATOMIC;
	assert_int_equal(install(b), 0);
	assert_int_equal(install(a), 0);
	records = ca_patch_stats().records;
	passed = 0;
	visited(1, 0, 0);
	assert_int_equal(passed, 1);
	ca_patch_remove_retired();        /* nothing is */
	ca_patch_retire((uintptr_t)page); /* nobody's trampoline */
	ca_patch_remove_retired();
	visited(2, 0, 0);
	assert_int_equal(passed, 2);
	ca_patch_retire(passed_at);
	ca_patch_retire(passed_at);
	visited(3, 0, 0);
	assert_int_equal(passed, 3); /* the hook itself takes nothing out */
	ca_patch_remove_retired();
	visited(4, 0, 0);
	assert_int_equal(passed, 3);
	assert_true(ca_patch_remove_all());
	assert_int_equal(install(b), 1);
	assert_int_equal(install(a), 0);
	visited(5, 0, 0);
	assert_int_equal(passed, 3);
	assert_int_equal(ca_patch_stats().records, records);
	unmap_row();
}

/* ---- sites that end in a call ------------------------------------------------------------------------ */
/* uint64_t h(uint64_t a, 0, where, g): jumps to `where`, in the site, which calls g. */
static const uint8_t caller[] = {
	0x48, 0x83, 0xec, 0x08,                   /* sub $8, %rsp */
	0xff, 0xe2,                               /* 4: jmp *%rdx */
	0x48, 0x8d, 0x47, 0x01,                   /* 6: lea 1(%rdi), %rax */
	0xff, 0xd1,                               /* 10: call *%rcx */
	0x48, 0x83, 0xc4, 0x08,                   /* 12: add $8, %rsp */
	0xc3, 0x90, 0x90, 0x90, 0x48, 0xff, 0xc0, /* 20: g: inc %rax */
	0xc3,
};

/* The trampoline is reached by a call, so that its own return address is the program's. */
static void site_that_ends_in_a_call(void **state)
{
	static const uint8_t code[] = { 0x48, 0x8d, 0x47, 0x01, 0xff, 0xe1 }; /* jmp *%rcx */
	struct ca_site site = { .module = 1,
				.kind = CA_SITE_COUNT,
				.length = 6,
				.address = 6,
				.point = B,
				.hooks = 1,
				.insns = 1,
				.code_length = sizeof code,
				.flags = CA_SITE_BY_CALL };
	uint64_t (*h)(uint64_t, uint64_t, uintptr_t, uintptr_t);
	uintptr_t landing, original;
	int32_t distance;
	intptr_t shift;

	(void)state;
	map_row();
	assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_WRITE), 0);
	memcpy(page, caller, sizeof caller);
	assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_EXEC), 0);
	memcpy(&h, &page, sizeof h);
	memcpy(site.original, caller + 6, 6);
	memcpy(site.code, code, sizeof code);
	site.hook[0].kind = CA_SITE_COUNT;
	site.insn[0].offset = site.insn[0].at = 4;
	assert_int_equal(h(40, 0, (uintptr_t)page + 6, (uintptr_t)page + 20), 42);
	assert_int_equal(install(site), 0);
	assert_int_equal(ca_patch_stats().jumps, 1);
	assert_int_equal(h(40, 0, (uintptr_t)page + 6, (uintptr_t)page + 20), 42);
	assert_int_equal(counter[B], 1);
	h(40, 0, (uintptr_t)page + 10, (uintptr_t)page + 20); /* straight to its call: a trap */
	assert_int_equal(counter[B], 1);
	assert_int_equal(page[7], 0xe8);
	memcpy(&distance, page + 8, sizeof distance);
	landing = (uintptr_t)page + 12 + (uintptr_t)(intptr_t)distance;
	if (ca_patch_translate(landing, &original, &shift)) { /* else it leads there by another jump */
		assert_int_equal(original, page + 6);
		assert_int_equal(shift, 8);
	}
	assert_true(ca_patch_remove_all());
	assert_memory_equal(page, caller, sizeof caller);
	munmap(page, PAGE);
}

/* ---- visits that cost a trap --------------------------------------------------------------------- */
static unsigned told[CA_MAX_POINTS];

static void tell(uint32_t point)
{
	told[point]++;
}

static void traps_are_told(void **state)
{
	struct ca_site a = site_at(0, 1, 0, A);

	(void)state;
	map_row();
	ca_patch_on_trap = tell;
	assert_int_equal(install(site_at(1, 7, 4, B)), 0);
	assert_int_equal(install(a), 0);
	visited(1, 1, 0);
	visited(2, 2, 0);
	assert_int_equal(told[A], 2);
	assert_int_equal(told[B], 0); /* a jump */
	assert_true(ca_patch_remove_all());
	assert_int_equal(install(site_at(1, 7, 4, B)), 0);
	a.hook[0].point = C + 1; /* not the site's own */
	assert_int_equal(install(a), 0);
	visited(2, 3, 1);
	assert_int_equal(told[A], 2);
	assert_int_equal(told[C], 1);
	ca_patch_on_trap = NULL;
	visited(2, 4, 2);
	unmap_row();
}

/* Is it a trap of ours? At the first byte of a site, by the kernel, and then the thread goes on in
 * the trampoline. */
static bool trap(int number, int code, uintptr_t pc, uintptr_t *leads_to)
{
	ucontext_t context;
	siginfo_t info;
	intptr_t shift;
	bool ours;

	memset(&context, 0, sizeof context);
	memset(&info, 0, sizeof info);
	info.si_code = code;
	context.uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
	ours = ca_patch_trap(number, &info, &context);
	*leads_to = (uintptr_t)context.uc_mcontext.gregs[REG_RIP];
	ca_patch_translate(*leads_to, leads_to, &shift);
	return ours;
}

static void whose_trap(void **state)
{
	uintptr_t site, to;

	(void)state;
	map_row();
	site = (uintptr_t)page + 1;
	assert_int_equal(install(site_at(1, 7, 4, B)), 0);
	assert_true(trap(SIGTRAP, SI_KERNEL, site + 1, &to));
	assert_int_equal(to, site);
	assert_true(trap(SIGTRAP, SI_KERNEL, site + 5, &to)); /* the second instruction */
	assert_int_equal(to, site + 4);
	assert_false(trap(SIGTRAP, SI_KERNEL, site + 2, &to));
	assert_int_equal(to, site + 2);
	assert_false(trap(SIGTRAP, TRAP_TRACE, site + 1, &to)); /* a debugger's step */
	assert_false(trap(SIGTRAP, SI_TKILL, site + 1, &to));
	assert_true(trap(SIGILL, ILL_ILLOPC, site + 4, &to)); /* where another opcode stands */
	assert_int_equal(to, site + 4);
	assert_false(trap(SIGILL, SI_TKILL, site + 4, &to));
	/* taken out, while the signal was on its way: what stands there now is run */
	assert_true(ca_patch_remove_all());
	assert_true(trap(SIGTRAP, SI_KERNEL, site + 1, &to));
	assert_int_equal(to, site);
	write_text(1, 0xcc); /* a debugger's */
	assert_false(trap(SIGTRAP, SI_KERNEL, site + 1, &to));
	write_text(1, row[1]);
	unmap_row();
}

/* ---- the program's own handlers for our signals ----------------------------------------------------- */
static unsigned handled, ours_blocked;
static bool usr1_blocked;
static int handled_code;

static void on_trap(int signal_number, siginfo_t *info, void *context)
{
	sigset_t now;

	assert_int_equal(signal_number, SIGTRAP);
	assert_non_null(context);
	handled++;
	handled_code = info->si_code;
	sigprocmask(SIG_BLOCK, NULL, &now);
	usr1_blocked = sigismember(&now, SIGUSR1);
	ours_blocked = sigismember(&now, SIGTRAP) == 1 || sigismember(&now, SIGILL) == 1;
}

static void handlers_of_the_program(void **state)
{
	struct sigaction set = { .sa_flags = SA_SIGINFO }, old;
	sigset_t now;
	int status;
	pid_t child;

	(void)state;
	assert_false(ca_patch_sigaction(SIGUSR1, NULL, &old));
	set.sa_sigaction = on_trap;
	sigaddset(&set.sa_mask, SIGUSR1);
	sigaddset(&set.sa_mask, SIGILL);
	assert_true(ca_patch_sigaction(SIGTRAP, &set, &old));
	assert_true(old.sa_handler == SIG_DFL);
	assert_true(ca_patch_sigaction(SIGTRAP, NULL, &old));
	assert_true(old.sa_sigaction == on_trap);
	raise(SIGTRAP);
	assert_int_equal(handled, 1);
	assert_int_equal(handled_code, SI_TKILL);
	assert_true(usr1_blocked);
	assert_false(ours_blocked);
	sigprocmask(SIG_BLOCK, NULL, &now);
	assert_false(sigismember(&now, SIGUSR1));
	__asm__ volatile("int3");
	assert_int_equal(handled, 2);
	assert_int_equal(handled_code, SI_KERNEL);
	set.sa_flags |= (int)SA_RESETHAND;
	ca_patch_sigaction(SIGTRAP, &set, NULL);
	raise(SIGTRAP);
	assert_int_equal(handled, 3);
	ca_patch_sigaction(SIGTRAP, NULL, &old);
	assert_true(old.sa_handler == SIG_DFL);
	memset(&set, 0, sizeof set);
	set.sa_handler = SIG_IGN;
	ca_patch_sigaction(SIGTRAP, &set, NULL);
	raise(SIGTRAP);
	child = fork();
	if (!child) {
		static const struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		__asm__ volatile("int3"); /* cannot be ignored */
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP);
	/* set behind our back: taken back with the next site, and not forgotten */
	memset(&set, 0, sizeof set);
	set.sa_sigaction = on_trap;
	set.sa_flags = SA_SIGINFO;
	sigaddset(&set.sa_mask, SIGUSR1);
	assert_int_equal(sigaction(SIGTRAP, &set, NULL), 0);
	map_row();
	assert_int_equal(install(site_at(0, 1, 0, A)), 0);
	assert_int_equal(install(site_at(1, 7, 4, B)), 1);
	visited(1, 0, 0);
	assert_int_equal(handled, 3);
	usr1_blocked = false;
	raise(SIGTRAP);
	assert_int_equal(handled, 4);
	assert_true(usr1_blocked);
	unmap_row();
	set.sa_handler = SIG_DFL;
	set.sa_flags = 0;
	ca_patch_sigaction(SIGTRAP, &set, NULL);
}

/* ---- a fault in what stands in for the program's text -------------------------------------------------- */
/* uint64_t f(uint64_t *a, 0): the second instruction may fault. */
static const uint8_t loads[] = {
	0x90,             /* nop */
	0x48, 0x8b, 0x07, /* 1: mov (%rdi), %rax */
	0x48, 0x01, 0xc0, /* 4: add %rax, %rax */
	0xc3,             /* 7 */
};
static const uint8_t divides[] = {
	0x90,             /* nop */
	0x31, 0xd2,       /* 1: xor %edx, %edx */
	0x89, 0xf0,       /* 3: mov %esi, %eax */
	0x48, 0xf7, 0xf7, /* 5: div %rdi */
	0xc3,             /* 8 */
};
static uintptr_t fault_pc, fault_sp, fault_address;
static bool fault_skips;

static void on_fault(int number, siginfo_t *info, void *context)
{
	greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;

	fault_pc = (uintptr_t)reg[REG_RIP];
	fault_sp = (uintptr_t)reg[REG_RSP];
	fault_address = (uintptr_t)info->si_addr;
	if (fault_skips) {
		reg[REG_RIP] += 3;
		reg[REG_RAX] = 100;
	} else if (number == SIGSEGV) {
		mprotect(info->si_addr, PAGE, PROT_READ);
	} else {
		reg[REG_RDI] = 1;
	}
}

static void one_of_few_arguments(int number)
{
	fault_pc = (uintptr_t)number;
	__asm__ volatile("" ::: "memory");
	_exit(fault_pc == SIGFPE ? 7 : 8);
}

static struct ca_site faulting_site(const uint8_t *code, uint8_t length, const uint8_t *starts, uint8_t insns)
{
	struct ca_site site = { .module = 1,
				.kind = CA_SITE_COUNT,
				.length = length,
				.point = POINT,
				.hooks = 1,
				.insns = insns,
				.fixups = 1,
				.code_length = (uint8_t)(length + 5) };

	memcpy(site.original, code, length);
	memcpy(site.code, code, length);
	site.code[length] = 0xe9;
	site.hook[0].kind = CA_SITE_COUNT;
	for (unsigned i = 0; i < insns; i++)
		site.insn[i].offset = site.insn[i].at = starts[i];
	site.fixup[0].at = (uint8_t)(length + 1);
	site.fixup[0].end = (uint8_t)(length + 5);
	site.fixup[0].target = length;
	return site;
}

static void faults_at_home(void **state)
{
	static const uint8_t load_starts[] = { 1, 4 }, divide_starts[] = { 1, 3, 5 };
	struct ca_site load = faulting_site(loads, 7, load_starts, 2);
	struct ca_site divide = faulting_site(divides, 8, divide_starts, 3);
	struct sigaction set = { .sa_flags = SA_SIGINFO | SA_NODEFER }, old, before[2];
	char *data = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	__sighandler_t home_handler;
	uintptr_t home_sp = 0;
	int status;
	pid_t child;

	(void)state;
	assert_true(data != MAP_FAILED);
	set.sa_sigaction = on_fault;
	assert_int_equal(ca_patch_fault_action(SIGSEGV, &set, &before[0], sigaction), 0);
	set.sa_sigaction = on_fault;
	assert_int_equal(ca_patch_fault_action(SIGFPE, &set, &before[1], sigaction), 0);
	/* which is what it is told */
	assert_int_equal(ca_patch_fault_action(SIGSEGV, NULL, &old, sigaction), 0);
	assert_true(old.sa_sigaction == on_fault);
	assert_int_equal(old.sa_flags & (SA_SIGINFO | SA_NODEFER), SA_SIGINFO | SA_NODEFER);
	assert_int_equal(sigaction(SIGSEGV, NULL, &old), 0);
	assert_true(old.sa_sigaction != on_fault);
	assert_int_equal(ca_patch_fault_action(SIGSEGV, &old, NULL, sigaction), 0); /* asked past us */

	map_text();
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
	memcpy(page, loads, sizeof loads);
	mprotect(page, PAGE, PROT_READ | PROT_EXEC);
	counter[POINT] = 0;
	for (unsigned round = 0; round < 3; round++) {
		if (round == 1) {
			home_sp = fault_sp; /* in the text itself */
			assert_int_equal(ca_patch_install(&load, 1, bias_of_page), 0);
		}
		fault_skips = round == 2;
		mprotect(data, PAGE, PROT_NONE);
		fault_pc = 0;
		assert_int_equal(function((uint64_t)(uintptr_t)data, 0), fault_skips ? 200 : 0);
		assert_int_equal(fault_pc, (uintptr_t)page + 1);
		if (round)
			assert_int_equal(fault_sp, home_sp);
		assert_int_equal(fault_address, (uintptr_t)data);
		assert_int_equal(counter[POINT], round);
	}
	assert_true(ca_patch_remove_all());
	munmap(page, PAGE);

	map_text();
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
	memcpy(page, divides, sizeof divides);
	mprotect(page, PAGE, PROT_READ | PROT_EXEC);
	assert_int_equal(ca_patch_install(&divide, 1, bias_of_page), 0);
	for (unsigned round = 0; round < 2; round++) {
		fault_skips = round;
		assert_int_equal(function(0, 77), fault_skips ? 100 : 77);
		assert_int_equal(fault_pc, (uintptr_t)page + 5);
		assert_int_equal(fault_address, (uintptr_t)page + 5);
	}
	/* one that was asked for without the two more arguments */
	set.sa_handler = one_of_few_arguments;
	set.sa_flags = 0;
	assert_int_equal(ca_patch_fault_action(SIGFPE, &set, &old, sigaction), 0);
	assert_true(old.sa_sigaction == on_fault);
	assert_int_equal(ca_patch_fault_action(SIGFPE, NULL, &old, sigaction), 0);
	assert_true(old.sa_handler == one_of_few_arguments);
	assert_int_equal(old.sa_flags & SA_SIGINFO, 0);
	child = fork();
	if (!child)
		_exit((int)function(0, 77) & 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	assert_true(ca_patch_remove_all());
	munmap(page, PAGE);
	home_handler = before[1].sa_handler;
	assert_int_equal(ca_patch_fault_action(SIGSEGV, &before[0], NULL, sigaction), 0);
	assert_int_equal(ca_patch_fault_action(SIGFPE, &before[1], &old, sigaction), 0);
	assert_true(old.sa_handler == one_of_few_arguments);
	assert_int_equal(ca_patch_fault_action(SIGFPE, NULL, &old, sigaction), 0);
	assert_true(old.sa_handler == home_handler);
	munmap(data, PAGE);
}

/* ---- what the unwinder is told ------------------------------------------------------------------------ */
static unsigned steps, hooked, wrong;
static uintptr_t sp_at_start, last_original;

/* After each instruction: at home, or in a trampoline that stands in for home. */
static void on_step(int signal_number, siginfo_t *info, void *context)
{
	greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t pc = (uintptr_t)reg[REG_RIP], sp = (uintptr_t)reg[REG_RSP], original;
	intptr_t shift;

	(void)signal_number, (void)info;
	if (pc == (uintptr_t)page) {
		sp_at_start = sp;
		last_original = pc;
	}
	if (pc >= (uintptr_t)page && pc < (uintptr_t)page + PAGE && ca_patch_translate(pc, &original, &shift))
		wrong++; /* that is the program's */
	if (!sp_at_start || !ca_patch_translate(pc, &original, &shift))
		return;
	steps++;
	hooked += ca_patch_is_hook(pc);
	if (sp + (uintptr_t)shift != sp_at_start || original < last_original ||
	    original > (uintptr_t)page + 8)
		wrong++;
	last_original = original;
}

/* f(40), one instruction at a time. */
static uint64_t step_through(void)
{
	uint64_t result;

	steps = hooked = wrong = 0;
	sp_at_start = 0;
	__asm__ volatile("pushfq\n\torl $0x100, (%%rsp)\n\tpopfq\n\t"
			 "call *%[f]\n\t"
			 "pushfq\n\tandl $~0x100, (%%rsp)\n\tpopfq"
			 : "=a"(result)
			 : [f] "r"(in_a_row), "D"(40)
			 : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
	return result;
}

static void translated_at_each_step(void **state)
{
	static const enum ca_site_kind hooks[] = { CA_SITE_COUNT,      CA_SITE_COUNT,     CA_SITE_STAMP,
						   CA_SITE_ENTER,      CA_SITE_EXIT,      CA_SITE_MEET,
						   CA_SITE_ATOMIC,     CA_SITE_VISIT,     CA_SITE_VISIT,
						   CA_SITE_FINE_ENTER, CA_SITE_FINE_EXIT, CA_SITE_PART };
	static const struct ca_patch_hooks named = {
		.enter = hook_sp, .exit = hook_sp, .meet = hook_meet, .stamp = hook_stamp, .atomic = hook_sp
	};
	static struct ca_fine account = { .limit = INT64_MAX };
	struct sigaction set = { .sa_flags = SA_SIGINFO }, none = { .sa_handler = SIG_DFL };

	(void)state;
	map_row();
	assert_int_equal(install(site_at(1, 7, 4, B)), 0);
	set.sa_sigaction = on_step;
	ca_patch_set_hooks(&named);
	assert_true(ca_patch_sigaction(SIGTRAP, &set, NULL));
	stamped = 0;
	ca_patch_fine = &account;
	for (unsigned i = 0; i < 2 * CA_COUNT(hooks); i++) {
		struct ca_site b = site_at(1, 7, 4, B);

		assert_true(ca_patch_remove_all());
		b.flags = i < CA_COUNT(hooks) ? CA_SITE_FLAGS_DEAD : 0;
		b.hook[0].kind = (uint8_t)hooks[i % CA_COUNT(hooks)];
		atomic_store(&account.outer, hooks[i % CA_COUNT(hooks)] == CA_SITE_FINE_EXIT);
		b.hook[0].at = i & 1 ? 4 : 0;
		b.words = i < CA_COUNT(hooks) ? 0 : 3;
		counter[CA_PATCH_HOT + B] = i % CA_COUNT(hooks) == 7;
		assert_int_equal(install(b), 0);
		assert_int_equal(step_through(), 42);
		assert_true(steps >= 4);
		assert_in_range(hooked, 1,
				steps - 2); /* its two instructions and the jump back, if one is stepped on */
		assert_int_equal(wrong, 0);
		assert_int_equal(last_original, page + 5); /* where the second instruction stood */
	}
	assert_int_equal(counter[B], 6);
	assert_int_equal(stamped, 4);
	assert_int_equal(atomic_load(&account.visits), 2);
	ca_patch_fine = &ca_patch_fine_nobody;
	ca_patch_sigaction(SIGTRAP, &none, NULL);
	unmap_row();
}

/* uint64_t f(uint64_t a): calls g. */
static const uint8_t calling[] = {
	0x48, 0x8d, 0x05, 0x39, 0x00, 0x00, 0x00,                               /* lea 57(%rip), %rax */
	0xe8, 0x08, 0x00, 0x00, 0x00,                                           /* 7: call g */
	0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x48, 0x8d, 0x47, 0x02, /* 20: g: lea 2(%rdi), %rax */
	0xc3,
};

/* A displaced call brings the program's own return address: pushed in two halves, then a jump.
 * From the push on the stack is one word lower than it was at home, before it is not. */
static void translated_around_a_call(void **state)
{
	static const uint8_t code[] = { 0x48, 0x8d, 0x05, 0,    0, 0, 0,    /* lea */
					0x68, 0,    0,    0,    0,          /* 7: push */
					0xc7, 0x44, 0x24, 0x04, 0, 0, 0, 0, /* 12: movl, 4(%rsp) */
					0xe9, 0,    0,    0,    0 };        /* 20: jmp g */
	static const struct {
		uint8_t at, end, type, target;
	} fixups[] = { { 3, 7, CA_FIXUP_REL, 64 },
		       { 8, 12, CA_FIXUP_LOW, 12 },
		       { 16, 20, CA_FIXUP_HIGH, 12 },
		       { 21, 25, CA_FIXUP_REL, 20 } };
	static const struct {
		enum ca_site_kind kind;
		uint8_t at;
		bool call_only;
	} hooks[] = { { CA_SITE_COUNT, 0, false },
		      { CA_SITE_COUNT, 7, false },
		      { CA_SITE_ENTER, 7, false },
		      { CA_SITE_ENTER, 0, true },
		      { CA_SITE_COUNT, 0, true } };
	struct sigaction set = { .sa_flags = SA_SIGINFO }, none = { .sa_handler = SIG_DFL };

	(void)state;
	map_row();
	assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_WRITE), 0);
	memcpy(page, calling, sizeof calling);
	assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_EXEC), 0);
	set.sa_sigaction = on_step;
	assert_true(ca_patch_sigaction(SIGTRAP, &set, NULL));
	for (unsigned i = 0; i < CA_COUNT(hooks); i++) {
		uint8_t from = hooks[i].call_only ? 7 : 0;
		struct ca_site site = { .module = 1,
					.kind = CA_SITE_COUNT,
					.length = (uint8_t)(12 - from),
					.address = from,
					.point = B,
					.hooks = 1,
					.insns = !from,
					.code_length = (uint8_t)(sizeof code - from) };

		memcpy(site.original, calling + from, site.length);
		memcpy(site.code, code + from, site.code_length);
		site.hook[0].kind = (uint8_t)hooks[i].kind;
		site.hook[0].at = hooks[i].at;
		site.insn[0].offset = site.insn[0].at = from ? 0 : 7;
		for (unsigned k = hooks[i].call_only; k < CA_COUNT(fixups); k++) {
			site.fixup[site.fixups].at = (uint8_t)(fixups[k].at - from);
			site.fixup[site.fixups].end = (uint8_t)(fixups[k].end - from);
			site.fixup[site.fixups].type = fixups[k].type;
			site.fixup[site.fixups++].target = fixups[k].target;
		}
		assert_int_equal(install(site), 0);
		assert_int_equal(step_through(), 42);
		if (wrong)
			fail_msg("case %u: %u of %u steps", i, wrong, steps);
		assert_true(steps >= 4);
		assert_int_equal(last_original, page + 7);
		assert_true(ca_patch_remove_all());
		assert_memory_equal(page, calling, sizeof calling);
	}
	assert_int_equal(counter[B], 3);
	ca_patch_sigaction(SIGTRAP, &none, NULL);
	munmap(page, PAGE);
}

/* What lies in no trampoline has neither thunks nor a record. */
static void nobodys_addresses(void **state)
{
	static const uintptr_t addresses[] = { 0, 1, 4096, UINTPTR_MAX, (uintptr_t)text };

	(void)state;
	map_row();
	assert_int_equal(install(site_at(1, 7, 4, B)), 0);
	for (unsigned i = 0; i < CA_COUNT(addresses); i++) {
		assert_int_equal(ca_patch_mem_thunks(addresses[i]), 0);
		assert_int_equal(ca_patch_mem_record(addresses[i]), -1);
	}
	assert_int_equal(ca_patch_mem_thunks((uintptr_t)page), 0);
	assert_int_equal(ca_patch_mem_record((uintptr_t)page + 1), -1);
	unmap_row();
}

/* ---- without /proc --------------------------------------------------------------------------- */
/* Neither may the page be made writable for the moment. */
static void nothing_can_be_written(void **state)
{
	const char *why = "";

	(void)state;
	forbid_call(SYS_mprotect, EACCES);
	assert_false(ca_patch_init(&why));
	assert_non_null(strstr(why, "cannot be written"));
}

static void by_mprotect(void **state)
{
	const char *why = "";

	assert_true(ca_patch_init(&why));
	entering_in_the_middle(state);
	short_sites_at_once(state);
}

static void without_proc(void **state)
{
	(void)state;
	without_call(SYS_openat, EACCES, by_mprotect);
	without_call(SYS_openat, EACCES, nothing_can_be_written);
}

/* ---- where a trap would kill ------------------------------------------------------------------ */
static void *block_and_wait(void *arg)
{
	pthread_barrier_t *both = arg;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	pthread_barrier_wait(both);
	pthread_barrier_wait(both);
	return NULL;
}

static void a_thread_that_blocks_traps(void **state)
{
	struct ca_site site = middle_site();
	pthread_barrier_t both;
	pthread_t thread;

	(void)state;
	map_text();
	pthread_barrier_init(&both, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, block_and_wait, &both), 0);
	pthread_barrier_wait(&both);
	assert_int_equal(ca_patch_install(&site, 1, bias_of_page), 1);
	assert_memory_equal(page, text, sizeof text);
	pthread_barrier_wait(&both);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&both);
	assert_int_equal(ca_patch_install(&site, 1, bias_of_page), 0);
	assert_true(ca_patch_remove_all());
	munmap(page, PAGE);
}

/* A trap that is not ours, with nothing installed for it, ends the program as it would have. */
static void a_foreign_trap_kills(void **state)
{
	int status;
	pid_t child = fork();

	(void)state;
	if (!child) {
		static const struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		__asm__ volatile("int3");
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP);
}

static void *sleeps_until(void *go)
{
	while (!atomic_load((_Atomic bool *)go))
		usleep(1000);
	return NULL;
}

/* How many threads there are decides how placing goes on: only a lone one needs nobody's consent. */
static void threads_are_counted(void **state)
{
	_Atomic bool go = false;
	pthread_t thread;

	(void)state;
	assert_int_equal(ca_patch_threads_look().count, 1);
	assert_false(ca_patch_threads_look().unknown);
	assert_int_equal(pthread_create(&thread, NULL, sleeps_until, &go), 0);
	assert_int_equal(ca_patch_threads_look().count, 2);
	atomic_store(&go, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static _Atomic int blocker, unblocker; /* number + 1 of the thread that is to do so, past libc */
static _Atomic unsigned waiting, done;

static void *one_of_many(void *number)
{
	uint64_t traps = UINT64_C(1) << (SIGTRAP - 1);
	int mine = (int)(intptr_t)number + 1;

	for (atomic_fetch_add(&waiting, 1); atomic_load(&blocker) >= 0; usleep(20000)) {
		if (atomic_load(&blocker) != mine && atomic_load(&unblocker) != mine)
			continue;
		ca_sys(SYS_rt_sigprocmask, atomic_load(&blocker) == mine ? SIG_BLOCK : SIG_UNBLOCK,
		       (long)(intptr_t)&traps, 0, sizeof traps, 0, 0);
		atomic_store(&blocker, 0);
		atomic_store(&unblocker, 0);
		atomic_fetch_add(&done, 1);
	}
	return NULL;
}

static void tell_one(_Atomic int *what, int number)
{
	unsigned before = atomic_load(&done);

	atomic_store(what, number + 1);
	while (atomic_load(&done) == before)
		usleep(1000);
}

/* However many there are, the newest is looked at, and who was found to block is not forgotten. */
static void one_of_many_blocks(void **state)
{
	enum { MANY = 400 };
	static pthread_t thread[MANY];
	struct ca_site site = middle_site();
	pthread_attr_t small;
	unsigned looks = 0;

	(void)state;
	map_text();
	ca_patch_threads_look();
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(pthread_create(&thread[i], &small, one_of_many, (void *)(intptr_t)i), 0);
	while (atomic_load(&waiting) < MANY)
		usleep(1000);
	tell_one(&blocker, MANY - 1);
	assert_int_equal(ca_patch_install(&site, 1, bias_of_page), 1);
	assert_memory_equal(page, text, sizeof text);
	tell_one(&unblocker, MANY - 1);
	assert_int_equal(ca_patch_install(&site, 1, bias_of_page), 0);
	assert_true(ca_patch_remove_all());
	/* one that has been there for long */
	tell_one(&blocker, MANY / 2);
	while (looks < 3 && !ca_patch_threads_look().blocked)
		looks++;
	for (unsigned i = 0; i < 4; i++)
		assert_true(ca_patch_threads_look().blocked);
	atomic_store(&blocker, -1);
	for (int i = 0; i < MANY; i++)
		pthread_join(thread[i], NULL);
	pthread_attr_destroy(&small);
	munmap(page, PAGE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		/* first: a thread that has ended may still be listed */
		cmocka_unit_test(threads_are_counted),
		cmocka_unit_test(entering_in_the_middle),
		cmocka_unit_test(other_bytes_than_planned),
		cmocka_unit_test(two_sites_in_one_place),
		cmocka_unit_test(text_that_is_gone),
		cmocka_unit_test(text_that_comes_back),
		cmocka_unit_test(short_site_before_one_in_place),
		cmocka_unit_test(site_behind_a_short_one),
		cmocka_unit_test(short_sites_at_once),
		cmocka_unit_test(short_site_of_two_kinds),
		cmocka_unit_test(standing_on_a_landing),
		cmocka_unit_test(other_bytes_behind),
		cmocka_unit_test(entering_behind_the_jump),
		cmocka_unit_test(fork_while_placing),
		cmocka_unit_test(patched_over),
		cmocka_unit_test(what_stays),
		cmocka_unit_test(fine_hooks),
		cmocka_unit_test(names),
		cmocka_unit_test(retired),
		cmocka_unit_test(site_that_ends_in_a_call),
		cmocka_unit_test(traps_are_told),
		cmocka_unit_test(whose_trap),
		cmocka_unit_test(handlers_of_the_program),
		cmocka_unit_test(faults_at_home),
		cmocka_unit_test(translated_at_each_step),
		cmocka_unit_test(translated_around_a_call),
		cmocka_unit_test(nobodys_addresses),
		cmocka_unit_test(without_proc),
		cmocka_unit_test(a_thread_that_blocks_traps),
		cmocka_unit_test(one_of_many_blocks),
		cmocka_unit_test(a_foreign_trap_kills),
	};
	const char *why = "";

	if (!ca_patch_init(&why)) {
		printf("skipped: %s\n", why);
		return 77;
	}
	ca_patch_counters = counter;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
