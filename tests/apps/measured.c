/* SPDX-License-Identifier: MIT */
/* What libcausal has to bear; for tests/integration/measure.sh.
 *   measured fork       counters in the child of a fork
 *   measured threads    8 threads with bundles, counters and names of their own
 *   measured forks      children of a program whose threads are busy with the library
 *   measured odd        wrong use: NULL, twice, too many, nothing
 *   measured sde        counters that this program gives to PAPI (with -DHAVE_SDE) */
#include <causal_measure.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef HAVE_SDE
#include <sde_lib.h>
#endif

enum { PAGES = 100, THREADS = 8, LAPS = 200 };
#define CHECK(what)                                                                                          \
	do {                                                                                                 \
		if (!(what)) {                                                                               \
			printf("not so: %s\n", #what);                                                       \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)

static void touch_pages(void)
{
	char *at = mmap(NULL, PAGES << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	madvise(at, PAGES << 12, MADV_NOHUGEPAGE);
	for (int i = 0; i < PAGES; i++)
		((volatile char *)at)[i << 12] = 1;
	munmap(at, PAGES << 12);
}

static int count_in_child(void)
{
	struct causal_counters *c = causal_counters_open("page-faults");
	uint64_t before[CAUSAL_COUNTERS], after[CAUSAL_COUNTERS];
	int status;

	CHECK(c);
	touch_pages();
	if (fork() == 0) {
		CHECK(causal_counters_read(c, before) == 1);
		touch_pages();
		CHECK(causal_counters_read(c, after) == 1);
		/* its own: the parent's were 100 before, and stand still */
		_exit(before[0] < PAGES && after[0] - before[0] >= PAGES ? 0 : 1);
	}
	CHECK(wait(&status) > 0 && status == 0);
	CHECK(causal_counters_read(c, after) == 1 && after[0] >= PAGES && after[0] < 3 * PAGES);
	causal_counters_close(c);
	return 0;
}

static void *measure(void *number)
{
	char label[32], event[32];
	struct causal_bundle *bundle;
	struct causal_value value;

	snprintf(label, sizeof label, "thread %d", (int)(intptr_t)number);
	snprintf(event, sizeof event, "minor-faults,page-faults");
	bundle = causal_bundle_open(label, "wall,cpu,minor-faults,perf:page-faults+minor-faults");
	CHECK(bundle);
	for (int lap = 0; lap < LAPS; lap++) {
		causal_bundle_start(bundle);
		touch_pages();
		causal_bundle_stop(bundle);
		causal_counters_here("page-faults,minor-faults");
	}
	CHECK(causal_bundle_get(bundle, 2, &value) && !strcmp(value.label, "minor-faults"));
	CHECK(value.laps == LAPS && value.value >= PAGES && value.sum >= PAGES * LAPS);
	CHECK(causal_bundle_get(bundle, 3, &value) && !strcmp(value.label, "page-faults"));
	CHECK(value.value >= PAGES && value.sum >= PAGES * LAPS);
	CHECK(causal_bundle_get(bundle, 4, &value) && !causal_bundle_get(bundle, 5, &value));
	causal_bundle_close(bundle);
	return NULL;
}

static int measure_in_threads(void)
{
	pthread_t thread[THREADS];

	for (intptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&thread[i], NULL, measure, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return 0;
}

static _Atomic int busy = 1;

static void *keep_busy(void *unused)
{
	while (busy)
		for (unsigned i = 0; causal_component_at(i);)
			i++;
	return unused;
}

static int fork_often(void)
{
	pthread_t thread;
	int status;

	CHECK(pthread_create(&thread, NULL, keep_busy, NULL) == 0);
	for (int i = 0; i < 100; i++) {
		pid_t child = fork();

		if (child == 0) {
			struct causal_bundle *bundle;

			alarm(20);
			bundle = causal_bundle_open("child", "wall");
			causal_bundle_start(bundle);
			causal_bundle_stop(bundle);
			_exit(bundle ? 0 : 1);
		}
		CHECK(waitpid(child, &status, 0) == child && status == 0);
	}
	busy = 0;
	pthread_join(thread, NULL);
	return 0;
}

static int refused(void *state, const char *argument)
{
	(void)state;
	return argument ? ENODEV : 0;
}

static int do_oddly(void)
{
	static const struct causal_component picky = { .label = "picky", .open = refused },
					     none = { .label = "" }, bad = { .label = "a:b" },
					     again = { .label = "wall" };
	struct causal_bundle *bundle;
	struct causal_value value;
	uint64_t read[CAUSAL_COUNTERS];
	char many[1024] = "wall";

	CHECK(causal_component_register(NULL) == EINVAL && causal_component_register(&none) == EINVAL);
	CHECK(causal_component_register(&bad) == EINVAL && causal_component_register(&again) == EEXIST);
	CHECK(causal_component_register(&picky) == 0 && causal_component_register(&picky) == EEXIST);
	bundle = causal_bundle_open("odd", "nonsense,picky:x,picky,,wall");
	CHECK(bundle);
	causal_bundle_stop(bundle); /* never started */
	causal_bundle_start(bundle);
	causal_bundle_start(bundle);
	causal_bundle_stop(bundle);
	causal_bundle_stop(bundle);
	causal_bundle_stop_value(bundle, 1);
	CHECK(causal_bundle_get(bundle, 0, &value) && !strcmp(value.label, "wall") && value.laps == 1);
	CHECK(value.sum < 10); /* not the time since the machine has begun */
	CHECK(!causal_bundle_get(bundle, 0, NULL));
	causal_bundle_print(bundle, NULL);
	CHECK(!causal_bundle_get(bundle, 1, &value) && !causal_bundle_get(bundle, 99, &value));
	causal_bundle_close(bundle);
	for (int i = 0; i < 40; i++)
		strcat(many, ",wall");
	bundle = causal_bundle_open("many", many);
	CHECK(causal_bundle_get(bundle, 31, &value) && !causal_bundle_get(bundle, 32, &value));
	causal_bundle_close(bundle);
	bundle = causal_bundle_open(NULL, "wall");
	CHECK(causal_bundle_get(bundle, 0, &value));
	causal_bundle_close(bundle);
	causal_bundle_start(NULL);
	causal_bundle_stop(NULL);
	causal_bundle_sample(NULL);
	causal_bundle_print(NULL, stdout);
	causal_bundle_close(NULL);
	causal_counters_close(NULL);
	CHECK(causal_counters_read(NULL, read) == 0 && !causal_counters_name(NULL, 0));
	errno = 0;
	CHECK(!causal_counters_open("nonsense") && errno == EINVAL);
	CHECK(!causal_counters_open("") && errno == EINVAL);
	errno = 0;
	CHECK(!causal_counters_open(NULL) && errno == EINVAL);
	causal_counters_here(NULL);
	CHECK(!causal_counters_open("syscall:no/such") && errno == EINVAL);
	CHECK(!causal_counters_open("page-faults,page-faults,page-faults,page-faults,page-faults") &&
	      errno == E2BIG);
	return 0;
}

static int count_own(void)
{
#ifdef HAVE_SDE
	static long long done;
	papi_handle_t handle = papi_sde_init("measured");
	void *counter = NULL;
	struct causal_bundle *bundle;
	struct causal_value value;

	papi_sde_register_counter(handle, "done", PAPI_SDE_RO | PAPI_SDE_DELTA, PAPI_SDE_long_long, &done);
	papi_sde_create_counter(handle, "made", PAPI_SDE_DELTA, &counter);
	bundle = causal_bundle_open("sde", "papi:sde:::measured::done+sde:::measured::made");
	if (!causal_bundle_get(bundle, 1, &value))
		return 77;
	for (int lap = 1; lap <= 3; lap++) {
		causal_bundle_start(bundle);
		done += 5 * lap;
		papi_sde_inc_counter(counter, lap);
		causal_bundle_stop(bundle);
	}
	CHECK(causal_bundle_get(bundle, 0, &value) && value.value == 15 && value.sum == 30 &&
	      value.laps == 3);
	CHECK(causal_bundle_get(bundle, 1, &value) && value.value == 3 && value.sum == 6);
	causal_bundle_print(bundle, stdout);
	causal_bundle_close(bundle);
	bundle = causal_bundle_open("bad", "papi:sde:::measured::none,papi:NONSENSE,papi,papi:PAPI_TOT_INS");
	causal_bundle_start(bundle);
	causal_bundle_stop(bundle);
	causal_bundle_close(bundle);
	bundle = causal_bundle_open("more", "papi:sde:::measured::made@10");
	if (causal_bundle_get(bundle, 0, &value)) {
		causal_bundle_start(bundle);
		for (int i = 0; i < 100; i++)
			papi_sde_inc_counter(counter, 1);
		causal_bundle_stop(bundle);
		causal_bundle_get(bundle, 0, &value);
		printf("overflow: counted %.0f\n", value.value);
	}
	causal_bundle_close(bundle);
	return 0;
#else
	return 77;
#endif
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "fork"))
		return count_in_child();
	if (!strcmp(what, "threads"))
		return measure_in_threads();
	if (!strcmp(what, "forks"))
		return fork_often();
	if (!strcmp(what, "odd"))
		return do_oddly();
	return strcmp(what, "sde") ? 2 : count_own();
}
