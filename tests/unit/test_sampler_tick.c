/* SPDX-License-Identifier: MIT */
/* sampler/tick.c: which source runs, what it sends and to whom, and what is taken where another is
 * forbidden. Times are only asserted where the kernel has no choice. */
#include "core/sys.h"
#include "sampler/perf.h"
#include "sampler/tick.h"
#include "tests/unit/files.h"
#include "tests/unit/forbidden.h"
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

enum { SIGNAL = 40, MS = 1000000, COARSE = 4 * MS };

static volatile sig_atomic_t ticks, strangers;
static volatile pid_t receiver;
static bool no_perf;
static struct ca_tick *volatile watched;
static volatile uint64_t in_calls, in_user; /* ns that its ticks of the kernel stand for */

static void handle(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	if (watched && ca_tick_is_of_kernel(watched, info))
		*(ca_tick_in_call(context) ? &in_calls : &in_user) += ca_tick_of_kernel_stands_for(watched);
	ticks++;
	strangers += !ca_tick_is_ours(info);
	receiver = (pid_t)syscall(SYS_gettid);
}

static int set_up(void **state)
{
	struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART };

	(void)state;
	return sigaction(SIGNAL, &action, NULL);
}

static uint64_t time_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

static uint64_t cpu_time(void)
{
	return time_of(CLOCK_THREAD_CPUTIME_ID);
}

/* Until there are that many ticks, or so much CPU time is used. */
static void burn(int until, uint64_t most)
{
	uint64_t end = cpu_time() + most;

	while (ticks < until && cpu_time() < end)
		for (volatile int i = 0; i < 10000; i++)
			;
}

static void check_ticks(enum ca_backend wanted, enum ca_backend got)
{
	struct ca_tick tick = { .backend = CA_BACKEND_AUTO };
	unsigned files = open_files();
	int before;

	ticks = strangers = 0;
	assert_int_equal(ca_tick_start(&tick, wanted, MS, MS, SIGNAL), CA_OK);
	assert_int_equal(tick.backend, got);
	assert_int_equal(open_files(), files);
	burn(3, 5000 * (uint64_t)MS);
	ca_tick_stop(&tick);
	before = ticks;
	assert_true(before >= 3);
	assert_int_equal(strangers, 0);
	assert_int_equal(receiver, syscall(SYS_gettid));
	assert_int_equal(tick.backend, CA_BACKEND_AUTO);
	assert_int_equal(open_files(), files);
	burn(before + 1, 50 * MS);
	assert_int_equal(ticks, before);
	ca_tick_stop(&tick); /* twice does no harm */
}

static void test_timer(void **state)
{
	(void)state;
	check_ticks(CA_BACKEND_TIMER, CA_BACKEND_TIMER);
}

static void test_perf(void **state)
{
	struct ca_tick tick = { .backend = CA_BACKEND_AUTO };

	(void)state;
	if (ca_tick_start(&tick, CA_BACKEND_PERF, MS, MS, SIGNAL) != CA_OK) {
		no_perf = true;
		return;
	}
	ca_tick_stop(&tick);
	check_ticks(CA_BACKEND_PERF, CA_BACKEND_PERF);
	check_ticks(CA_BACKEND_AUTO, CA_BACKEND_PERF);
}

/* The one to the first tick, the other from then on. */
static void test_first(void **state)
{
	struct itimerspec left;
	struct ca_tick tick = { .backend = CA_BACKEND_AUTO };

	(void)state;
	assert_int_equal(ca_tick_start(&tick, CA_BACKEND_TIMER, 5000000007, 2500000009, SIGNAL), CA_OK);
	assert_int_equal(syscall(SYS_timer_gettime, tick.timer, &left), 0);
	assert_int_equal(left.it_interval.tv_sec, 2);
	assert_int_equal(left.it_interval.tv_nsec, 500000009);
	assert_true(left.it_value.tv_sec == 4 || (left.it_value.tv_sec == 5 && left.it_value.tv_nsec <= 7));
	ca_tick_stop(&tick);
	ticks = 0;
	assert_int_equal(ca_tick_start(&tick, CA_BACKEND_TIMER, MS, 1000 * UINT64_C(1000) * MS, SIGNAL),
			 CA_OK);
	burn(1,
	     5000 * (uint64_t)
			     MS); /* the kernel has taken 0.7 s of CPU time to see it, where CPUs are shared */
	burn(2, 100 * MS);
	ca_tick_stop(&tick);
	assert_int_equal(ticks, 1);
}

/* It is the kernel's own: 100 to 1000 Hz. */
static void test_of_kernel(void **state)
{
	struct timespec step;

	(void)state;
	assert_int_equal(ca_tick_of_kernel(), 4 * MS); /* not asked yet */
	ca_tick_init();
	assert_int_equal(clock_getres(CLOCK_MONOTONIC_COARSE, &step), 0);
	assert_int_equal(ca_tick_of_kernel(), step.tv_nsec);
}

/* So much CPU time, ns, in system calls or not, with few others to look how much it was; returns it. */
static uint64_t spend(bool calls, uint64_t ns)
{
	static char block[1 << 20];
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	uint64_t from = cpu_time(), spent;

	do {
		if (calls)
			/* not read(): a sanitizer looks through the whole block in each, and that is no call */
			assert_int_equal(syscall(SYS_read, fd, block, sizeof block), sizeof block);
		else
			for (volatile int i = 0; i < 100000; i++)
				;
		spent = cpu_time() - from;
	} while (spent < ns);
	close(fd);
	return spent;
}

static bool start(struct ca_tick *tick, bool coarse)
{
	return coarse ? ca_tick_start_coarse(tick, COARSE, SIGNAL)
		      : ca_tick_start(tick, CA_BACKEND_PERF, MS, MS, SIGNAL) == CA_OK;
}

/* Half of the time in calls, of random length: none is in step. coarse: every second time without perf's. */
static bool is_in_proportion(struct ca_tick *tick, bool coarse)
{
	uint64_t called = 0, spent = 0;

	watched = tick;
	in_calls = in_user = 0;
	for (unsigned i = 0; i < 100; i++) {
		unsigned ms = 3 + (unsigned)random() % 5;
		uint64_t from = cpu_time(); /* what it takes to start and to stop ticks is in none */

		called += spend(true, ms * (uint64_t)MS);
		spend(false, ms * (uint64_t)MS);
		assert_int_equal(poll(NULL, 0, 1), 0);
		spent += cpu_time() - from;
		ca_tick_stop(tick);
		assert_false(tick->sees_kernel);
		assert_true(start(tick, coarse && i % 2));
		assert_int_equal(ca_tick_is_coarse(tick), coarse && i % 2);
	}
	watched = NULL;
	print_message("ticks stand for %.1f of %.1f ms, in calls %.1f of %.1f\n",
		      (double)(in_calls + in_user) / MS, (double)spent / MS, (double)in_calls / MS,
		      (double)called / MS);
	/* none counts twice */
	return in_calls + in_user > spent / 100 * 97 && in_calls + in_user < spent / 100 * 103 &&
	       in_calls > called / 10 * 7 && in_calls < called / 10 * 13;
}

/* With perf's ticks come others, for what is done in the kernel: in proportion, however often perf's start anew and
 * others get the CPU, and no call ends early. Whoever takes the CPU at the kernel's ticks takes the place of some, and
 * where a virtual CPU stands still for longer than a tick, ticks are lost. */
static void check_kernel_time(bool coarse)
{
	struct ca_tick tick = { .backend = CA_BACKEND_AUTO };
	bool good = false;

	if (ca_tick_start(&tick, CA_BACKEND_PERF, MS, MS, SIGNAL) == CA_OK && tick.sees_kernel) {
		for (unsigned tries = 0; tries < 8 && !good; tries++)
			good = is_in_proportion(&tick, coarse);
		assert_true(good);
	}
	ca_tick_stop(&tick);
}

static void test_kernel_time(void **state)
{
	(void)state;
	check_kernel_time(false);
}

/* The same without perf's, by turns: no CPU time is lost in between, and none counts twice. */
static void test_coarse(void **state)
{
	struct ca_tick tick = { .backend = CA_BACKEND_AUTO };

	(void)state;
	assert_false(ca_tick_start_coarse(&tick, ca_tick_of_kernel() - 1,
					  SIGNAL)); /* the kernel ticks no more often */
	assert_int_equal(tick.backend, CA_BACKEND_AUTO);
	ticks = 0;
	if (ca_tick_start_coarse(&tick, COARSE, SIGNAL)) {
		burn(3, 1000 * (uint64_t)MS);
		assert_true(ticks >= 3);
		assert_int_equal(strangers, 0);
	}
	ca_tick_stop(&tick);
	assert_int_equal(tick.backend, CA_BACKEND_AUTO);
	check_kernel_time(true);
}

static void *burn_elsewhere(void *context)
{
	(void)context;
	burn(1, 100 * MS);
	return NULL;
}

/* Neither another thread's time counts, nor time asleep. */
static void test_own_time(void **state)
{
	struct ca_tick tick = { .backend = CA_BACKEND_AUTO };
	pthread_t thread;

	(void)state;
	ticks = 0;
	assert_int_equal(ca_tick_start(&tick, CA_BACKEND_TIMER, 50 * MS, 50 * MS, SIGNAL), CA_OK);
	assert_int_equal(pthread_create(&thread, NULL, burn_elsewhere, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(ticks, 0);
	ca_tick_stop(&tick);
}

static void test_is_ours(void **state)
{
	static char other;
	static const struct {
		int code;
		pid_t pid;
		bool ours;
	} cases[] = {
		{ 1, 5, true },         { SI_KERNEL, 0, false }, { SI_SIGIO, 5, true },
		{ SI_USER, 0, true },   { SI_USER, 5, false },   { SI_QUEUE, 0, false },
		{ SI_TKILL, 0, false }, { SI_TIMER, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		siginfo_t info = { .si_code = cases[i].code };

		if (cases[i].code == SI_TIMER)
			info.si_value.sival_ptr = &other;
		else
			info.si_pid = cases[i].pid;
		if (ca_tick_is_ours(&info) != cases[i].ours)
			fail_msg("code %d of process %d", cases[i].code, cases[i].pid);
	}
}

static void instead_of_perf(void **state)
{
	(void)state;
	check_ticks(CA_BACKEND_AUTO, CA_BACKEND_TIMER);
}

static void perf_denied(void **state)
{
	struct ca_tick tick = { .backend = CA_BACKEND_AUTO };

	(void)state;
	assert_int_equal(ca_tick_start(&tick, CA_BACKEND_PERF, MS, MS, SIGNAL), CA_ERR_PERMISSION);
	assert_int_equal(tick.backend, CA_BACKEND_AUTO);
	ca_tick_stop(&tick);
	instead_of_perf(state);
}

static void perf_unknown(void **state)
{
	struct ca_tick tick = { .backend = CA_BACKEND_AUTO };

	(void)state;
	assert_int_equal(ca_tick_start(&tick, CA_BACKEND_PERF, MS, MS, SIGNAL), CA_ERR_UNSUPPORTED);
	instead_of_perf(state);
}

static void no_timer(void **state)
{
	struct ca_tick tick = { .backend = CA_BACKEND_AUTO };

	(void)state;
	assert_int_equal(ca_tick_start(&tick, CA_BACKEND_TIMER, MS, MS, SIGNAL), CA_ERR_UNSUPPORTED);
	assert_int_equal(tick.backend, CA_BACKEND_AUTO);
	ca_tick_stop(&tick);
}

static void test_forbidden(void **state)
{
	(void)state;
	without_call(SYS_perf_event_open, EACCES, perf_denied);
	without_call(SYS_perf_event_open, EPERM, perf_denied);
	without_call(SYS_perf_event_open, ENOSYS, perf_unknown);
	without_call(SYS_timer_create, EAGAIN, no_timer);
	without_call(SYS_timer_settime, EINVAL, no_timer);
}

/* ---- descriptors ------------------------------------------------------------------------------------ */
static void lifted(void **state)
{
	int low = open("/dev/null", O_RDONLY | O_CLOEXEC), high, next;
	struct rlimit few, all;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	few = all;
	few.rlim_cur = 100;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	next = ca_sys_open("/dev/null", O_RDONLY);
	assert_in_range(next, low + 1, 99); /* no room above; what this process was given may lie between */
	close(next);
	few.rlim_cur = 1024;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(ca_sys_open("/none", O_RDONLY), -ENOENT);
	high = ca_sys_open("/dev/null", O_RDONLY);
	assert_in_range(high, 1000, 1023);
	assert_int_equal(fcntl(high, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(next, F_GETFD), -1);
	ca_sys_close(high);
	/* somebody has been quicker, and put a file of his own there */
	assert_int_equal(ca_sys_own(SYS_dup, low, 0, 0, 0, 0), -EBADF);
	assert_int_equal(fcntl(next, F_GETFD), 0);
	assert_int_equal(fcntl(high, F_GETFD), -1);
	close(next);
	/* or closed it: it may be another one's by the time that we would */
	assert_int_equal(ca_sys_own(SYS_getpid, 0, 0, 0, 0, 0), -EBADF);
	close(low);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
}

static atomic_bool over;

static void *opens(void *unused)
{
	struct ca_tick tick = { .backend = CA_BACKEND_AUTO };

	while (!atomic_load(&over)) {
		if (ca_tick_start(&tick, CA_BACKEND_PERF, 1000 * (uint64_t)MS, 1000 * (uint64_t)MS, SIGNAL) ==
		    CA_OK)
			ca_tick_stop(&tick);
		ca_sys_close(ca_sys_open("/proc/thread-self/maps", O_RDONLY));
	}
	return unused;
}

/* A number that another thread gives to a file of its own while it is ours is not closed by us. */
static void given_to_others(void **state)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), number = dup(null);
	uint64_t wall = time_of(CLOCK_MONOTONIC);
	unsigned given = 0, gone = 0;
	struct stat own, there;
	pthread_t thread;
	bool alone;

	(void)state;
	close(number);
	assert_int_equal(fstat(null, &own), 0);
	assert_int_equal(pthread_create(&thread, NULL, opens, NULL), 0);
	for (uint64_t end = cpu_time() + 400 * (uint64_t)MS; cpu_time() < end;) {
		int done;

		ca_sys_place_begin();
		done = given % 2 ? dup2(null, number) : dup3(null, number, O_CLOEXEC);
		ca_sys_place_end();
		if (done < 0)
			continue; /* being opened: EBUSY */
		given++;
		for (unsigned i = 0; i < 20; i++)
			if (fstat(number, &there) || there.st_ino != own.st_ino) {
				gone++;
				break;
			}
		close(number);
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	close(null);
	/* Who waits for the other does not wait for ever: where the CPUs are shared it may lose its own meanwhile. */
	alone = time_of(CLOCK_MONOTONIC) - wall < 600 * (uint64_t)MS;
	assert_true(gone <= 1 + given / (alone ? 10000 : 1000));
}

static void touch(size_t pages)
{
	volatile char *at =
		mmap(NULL, pages * CA_PERF_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	madvise((void *)(uintptr_t)at, pages * CA_PERF_PAGE, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < pages; i++)
		at[i * CA_PERF_PAGE] = 1;
	munmap((void *)(uintptr_t)at, pages * CA_PERF_PAGE);
}

enum { PAGES = 2000, EACH = 20 };
static const struct ca_perf_counter faults[] = { { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
						 { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK } };

/* A signal for each so many, and none of its own descriptors stays. */
static void test_overflow(void **state)
{
	struct ca_tick tick = { .backend = CA_BACKEND_AUTO };
	unsigned files = open_files();
	const struct ca_perf_counter none = { 77, 77 };

	(void)state;
	assert_int_not_equal(ca_tick_overflow(&tick, &none, EACH, 0, SIGNAL), CA_OK);
	if (ca_tick_overflow(&tick, faults, EACH, 0, SIGNAL) != CA_OK)
		return; /* main says so */
	assert_int_equal(open_files(), files);
	assert_int_equal(ca_tick_overflows(&tick, 17), 17);
	ticks = strangers = 0;
	touch(PAGES);
	assert_in_range(ca_tick_overflows(&tick, 17), PAGES - EACH, PAGES + 20 * EACH);
	assert_true(ticks > 0);
	assert_int_equal(strangers, 0);
	ca_tick_stop(&tick);
	assert_int_equal(ca_tick_overflows(&tick, 17), 17);
	/* so often in a second, however many that are: the kernel begins with each one */
	assert_int_equal(ca_tick_overflow(&tick, faults, EACH, 100, SIGNAL), CA_OK);
	ticks = strangers = 0;
	for (int i = 0; i < 10; i++)
		touch(PAGES);
	assert_in_range(ca_tick_overflows(&tick, 17), 1, 10 * (PAGES + 500));
	assert_in_range(ticks, 1, 10 * PAGES / EACH - 1);
	assert_int_equal(strangers, 0);
	ca_tick_stop(&tick);
}

/* They are as of the last tick, and go on over a new start. */
static void test_counters(void **state)
{
	struct ca_tick tick = { .backend = CA_BACKEND_AUTO, .counter = faults, .counters = 2 };
	unsigned files = open_files();
	uint64_t counted;

	(void)state;
	assert_int_equal(ca_tick_counter(&tick, 0, 17), 17);
	if (ca_tick_start(&tick, CA_BACKEND_PERF, MS, MS, SIGNAL) != CA_OK)
		return;
	assert_int_equal(open_files(), files);
	touch(PAGES);
	ticks = 0;
	burn(2, 5000 * (uint64_t)MS);
	counted = ca_tick_counter(&tick, 0, 17);
	assert_in_range(counted, PAGES, PAGES + 500);
	assert_true(ca_tick_counter(&tick, 1, 17) > MS);
	ca_tick_stop(&tick);
	assert_int_equal(ca_tick_start(&tick, CA_BACKEND_PERF, MS, MS, SIGNAL), CA_OK);
	touch(PAGES);
	ticks = 0;
	burn(2, 5000 * (uint64_t)MS);
	assert_in_range(ca_tick_counter(&tick, 0, 17), counted + PAGES, counted + PAGES + 500);
	ca_tick_stop(&tick);
	assert_int_equal(open_files(), files);
}

/* They happen in the kernel alone: with the right to look there they are counted, and without it they are not to be
 * had. */
static const struct ca_perf_counter moves[] = { { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
						{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS } };
enum { NOT_ALLOWED = 1, COUNTED, NOT_COUNTED, NO_PERF };

static void count_waits(void)
{
	struct ca_tick tick = { .backend = CA_BACKEND_AUTO, .counter = moves, .counters = 2 }, other = { 0 };
	bool allowed = ca_tick_overflow(&other, moves, UINT64_C(1) << 50, 0, SIGNAL) == CA_OK;

	ca_tick_stop(&other);
	if (ca_tick_start(&tick, CA_BACKEND_PERF, MS, MS, SIGNAL) != CA_OK)
		_exit(NO_PERF);
	if (!tick.place[0] && !tick.place[1] && !allowed)
		_exit(NOT_ALLOWED);
	for (int i = 0; i < 20; i++)
		nanosleep(&(struct timespec){ 0, MS }, NULL);
	ticks = 0;
	burn(2, 5000 * (uint64_t)MS);
	_exit(allowed && ca_tick_counter(&tick, 0, 0) >= 20 ? COUNTED : NOT_COUNTED);
}

static void test_of_kernel_alone(void **state)
{
	for (int user = 0; user < 2; user++) {
		pid_t child = fork();
		int status;

		if (!child && user && setresuid(65534, 65534, 65534))
			_exit(NO_PERF);
		if (!child)
			count_waits();
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_not_equal(WEXITSTATUS(status), NOT_COUNTED);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overflow),   cmocka_unit_test(test_counters),
		cmocka_unit_test(test_timer),      cmocka_unit_test(test_perf),
		cmocka_unit_test(test_first),      cmocka_unit_test(test_own_time),
		cmocka_unit_test(test_of_kernel),  cmocka_unit_test(lifted),
		cmocka_unit_test(given_to_others), cmocka_unit_test(test_is_ours),
		cmocka_unit_test(test_forbidden),  cmocka_unit_test(test_kernel_time),
		cmocka_unit_test(test_coarse),     cmocka_unit_test(test_of_kernel_alone),
	};
	int failed = cmocka_run_group_tests(tests, set_up, NULL);

	if (failed || !no_perf)
		return failed;
	fprintf(stderr, "SKIP: perf cannot be used here, only timers were tested\n");
	return 77;
}
