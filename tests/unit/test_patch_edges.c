/* Corners of live patching: jumps into the middle of a site, traps that are not ours, threads
 * that must not trap, text that is gone or that somebody else has changed.
 *
 * The code to be patched is written here byte by byte, and counted, so that no planner and no
 * hook is needed. */
#include "causal/runtime/patch.h"
#include "tests/unit/unit.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
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
static uint64_t counter[CA_MAX_POINTS];

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
	struct ca_site site = { .module = 1, .kind = CA_SITE_COUNT, .length = SITE_LENGTH, .address = SITE,
				.point = POINT, .hooks = 1, .insns = 2, .fixups = 1,
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(entering_in_the_middle),
		cmocka_unit_test(other_bytes_than_planned),
		cmocka_unit_test(two_sites_in_one_place),
		cmocka_unit_test(text_that_is_gone),
		cmocka_unit_test(text_that_comes_back),
		cmocka_unit_test(a_thread_that_blocks_traps),
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
