/* SPDX-License-Identifier: MIT */
/* libcausal.so while it is traced, in threads: what it raises is whole and exact. The places are switched on as
 * the runtime does it (include/causal_trace.h describes their notes), so that a build with a sanitizer looks at
 * these paths as well. */
#include "include/causal_measure.h"
#include "include/causal_trace.h"
#include "include/causal_user.h"
#include "include/causal_wrap.h"
#include "tests/unit/unit.h"
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 8, TURNS = 2000, NOP = 5, FIELDS = 3 };

/* What was raised. */
static atomic_ulong begins, ends, points, strange;
static _Thread_local long depth;

static void take(const struct causal_trace_key_ *key, const struct causal_trace_key_ *of,
		 unsigned long long value)
{
	(void)value;
	if (key->kind == CAUSAL_TRACE_KIND_BEGIN_) {
		begins++;
		depth++;
	} else if (key->kind == CAUSAL_TRACE_KIND_END_) {
		ends++;
		depth--;
	} else if (key->kind == CAUSAL_TRACE_KIND_POINT_) {
		points++;
	}
	strange += !of->name || !*of->name || depth < 0;
}

/* ---- switching on */

static const struct causal_trace_key_ *off[CAUSAL_TRACE_OFFS_]; /* nobody is */

static void switch_on(const unsigned char *fields)
{
	unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
	unsigned char *address[FIELDS], jump[NOP] = { 0xe9 };
	int32_t distance;

	for (int i = 0; i < FIELDS; i++) {
		memcpy(&distance, fields + 4 * i, sizeof distance);
		address[i] = (unsigned char *)(uintptr_t)(fields + 4 * i) + distance;
	}
	distance = (int32_t)(address[1] - address[0] - NOP);
	memcpy(jump + 1, &distance, sizeof distance);
	assert_int_equal(mprotect((void *)((uintptr_t)address[0] & ~(page - 1)), 2 * page,
				  PROT_READ | PROT_WRITE | PROT_EXEC),
			 0);
	memcpy(address[0], jump, NOP);
	*(struct causal_trace_hook_ *)(void *)address[2] = (struct causal_trace_hook_){ take, off };
}

static int find_places(struct dl_phdr_info *info, size_t size, void *found)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		const unsigned char *at = (const unsigned char *)info->dlpi_addr + header->p_vaddr;
		const unsigned char *end = at + header->p_memsz;

		while (header->p_type == PT_NOTE && at + sizeof(ElfW(Nhdr)) <= end) {
			const ElfW(Nhdr) *note = (const void *)at;

			at += sizeof *note;
			if (note->n_namesz == 7 && note->n_type == 2 && !memcmp(at, "causal", 7)) {
				switch_on(at + 8);
				++*(int *)found;
			}
			at += ((note->n_namesz + 3) & ~3u) + ((note->n_descsz + 3) & ~3u);
		}
	}
	return 0;
}

static int switch_all_on(void **state)
{
	int found = 0;

	(void)state;
	dl_iterate_phdr(find_places, &found);
	return found ? 0 : -1;
}

/* ---- what threads do */

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);
void kokkosp_begin_parallel_for(const char *name, uint32_t device, uint64_t *id);
void kokkosp_end_parallel_for(uint64_t id);
void kokkosp_push_profile_region(const char *name);
void kokkosp_pop_profile_region(void);

static void *work(void *number)
{
	const struct causal_user_annotation list[] = { { "number", CAUSAL_USER_POINTER, number },
						       { "kind", CAUSAL_USER_STRING, "any" } };
	char own[32], shared[32];
	uint64_t id;

	for (unsigned i = 0; i < TURNS; i++) {
		snprintf(own, sizeof own, "own %zu %u", (size_t)number, i % 10);
		snprintf(shared, sizeof shared, "shared %u", i);
		causal_user_push_region(own);
		causal_user_push_annotated_region(shared, list, 2);
		__cyg_profile_func_enter((void *)(uintptr_t)work, NULL);
		kokkosp_begin_parallel_for(shared, 0, &id);
		kokkosp_push_profile_region(own);
		causal_user_progress("turn");
		kokkosp_pop_profile_region();
		kokkosp_end_parallel_for(id);
		__cyg_profile_func_exit((void *)(uintptr_t)work, NULL);
		causal_user_pop_region(shared);
		causal_user_pop_region(own);
		causal_user_stop_thread_trace();
		causal_user_push_region("hidden");
		causal_user_start_thread_trace();
		causal_user_pop_region("hidden");
	}
	return depth ? number : NULL;
}

static void threads_are_exact(void **state)
{
	enum { REGIONS = 5, POINTS = 4 /* two annotations, a turn, a kernel */ };
	pthread_t thread[THREADS];
	void *bad;

	(void)state;
	begins = ends = points = strange = 0;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, work, (void *)(i + 1)), 0);
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &bad);
		assert_null(bad);
	}
	assert_int_equal(strange, 0);
	assert_int_equal(begins, REGIONS * THREADS * TURNS);
	assert_int_equal(ends, begins);
	assert_int_equal(points, POINTS * THREADS * TURNS);
}

static void *measure(void *unused)
{
	struct causal_bundle *bundle = causal_bundle_open("b", "wall,cpu,switches");

	for (int i = 0; i < 100; i++) {
		causal_bundle_start(bundle);
		causal_bundle_stop(bundle);
		causal_counters_here("page-faults");
	}
	causal_bundle_close(bundle);
	return unused;
}

static void laps_are_events(void **state)
{
	struct causal_counters *counters = causal_counters_open("page-faults");
	pthread_t thread[THREADS];

	(void)state;
	begins = ends = points = strange = 0;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, measure, NULL), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(points, (3 + (counters != NULL)) * 100 * THREADS);
	assert_int_equal(begins + ends + strange, 0);
	causal_counters_close(counters);
}

/* ---- what is configured while others call */

static int push_nothing(const char *name)
{
	return name ? CAUSAL_USER_SUCCESS : CAUSAL_USER_BAD_VALUE;
}

static atomic_ulong wrapped_calls;

static void before_getppid(void)
{
	wrapped_calls++;
}
static void after_getppid(pid_t result)
{
	(void)result;
}
CAUSAL_WRAP(pid_t, getppid, (void), ())

static void *call_often(void *unused)
{
	pid_t parent = getppid();

	(void)unused;
	for (unsigned i = 0; i < TURNS; i++) {
		assert_int_equal(causal_user_push_region("configured"), CAUSAL_USER_SUCCESS);
		assert_int_equal(getppid(), parent);
	}
	return NULL;
}

static void others_may_configure(void **state)
{
	const struct causal_user_callbacks own = { .push_region = push_nothing };
	struct causal_user_callbacks before, now;
	pthread_t thread[THREADS];

	(void)state;
	assert_int_equal(causal_user_get_callbacks(&before), CAUSAL_USER_SUCCESS);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, call_often, NULL), 0);
	for (unsigned i = 0; i < TURNS; i++) {
		assert_int_equal(causal_user_configure(CAUSAL_USER_UNION, own, NULL), CAUSAL_USER_SUCCESS);
		assert_int_equal(causal_user_configure(CAUSAL_USER_REPLACE, before, NULL),
				 CAUSAL_USER_SUCCESS);
		assert_int_equal(causal_wrap_start(&causal_wrap_getppid), 0);
		assert_int_equal(causal_wrap_stop(&causal_wrap_getppid), 0);
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	causal_user_configure(CAUSAL_USER_UNION, own, NULL);
	causal_user_configure(CAUSAL_USER_INTERSECT, before, &now);
	assert_ptr_equal(now.push_region, push_nothing);
	causal_user_get_callbacks(&now);
	assert_true(!now.push_region && now.pop_region == before.pop_region);
	causal_user_configure(CAUSAL_USER_REPLACE, before, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_are_exact),
		cmocka_unit_test(laps_are_events),
		cmocka_unit_test(others_may_configure),
	};

	return cmocka_run_group_tests(tests, switch_all_on, NULL);
}
