/* SPDX-License-Identifier: MIT */
/* causal/runtime/start.c: joining a run or not, forks and execs, the off switch. The program runs
 * itself with a session of the test's own; what it finds there it says by its exit status, which is
 * the line of the first wrong answer. No conductor is there: indexes are not waited for, since the
 * session's heart does not beat. */
#include "causal/runtime/patch.h"
#include "causal/runtime/wrap.h"
#include "core/log.h"
#include "core/sys.h"
#include "tests/unit/runtime.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- what stands in -------------------------------------------------------------------------------- */
static unsigned stops, removals;
static bool removed = true;
static char log_text[256]; /* of the last message that is not for --debug: its format */

void ca_tick_stop(struct ca_tick *tick)
{
	(void)tick;
	stops++;
}

bool ca_patch_remove_all(void)
{
	removals++;
	return removed;
}

void ca_log(enum ca_log_level level, const char *format, ...)
{
	if (level < CA_LOG_DEBUG)
		snprintf(log_text, sizeof log_text, "%s", format);
}

/* ---- in a program that was told of a session --------------------------------------------------------- */
#define MUST(condition)                                                                                      \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			_exit(__LINE__ % 251 + 1);                                                           \
	} while (0)

static int status_of(pid_t child)
{
	int status;

	while (ca_real.waitpid(child, &status, 0) < 0)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static const struct ca_module *main_module(void)
{
	uint32_t used = atomic_load(&ca_rt.session->modules_used);

	for (uint32_t m = 0; m < used; m++)
		if (ca_rt.session->module[m].main)
			return &ca_rt.session->module[m];
	_exit(250);
}

static void must_be_on(void)
{
	const struct ca_process *p;

	MUST(ca_rt.session && atomic_load(&ca_rt.on) && ca_rt.joined);
	MUST(ca_rt.pid == (uint32_t)getpid());
	MUST(ca_self && ca_self->slot->pid == ca_rt.pid &&
	     atomic_load(&ca_self->slot->state) == CA_SLOT_LIVE);
	MUST(ca_self->slot->process == ca_rt.process);
	MUST((uintptr_t)&p >= ca_self->stack.own_low && (uintptr_t)&p < ca_self->stack.own_high);
	p = &ca_rt.session->process[ca_rt.process];
	MUST(atomic_load(&p->state) == CA_SLOT_LIVE && p->pid == ca_rt.pid);
	MUST(!atomic_load(&p->off) && p->started && p->started <= ca_clock_now());
	MUST(ca_rt.session->processes_used > ca_rt.process);
}

static void must_be_out(void)
{
	MUST(!ca_rt.session && !atomic_load(&ca_rt.on) && !ca_self);
}

static void joins(void)
{
	char exe[CA_PATH] = "";

	must_be_on();
	MUST(errno == 0);
	MUST(ca_rt.period == 777000);
	MUST(!strcmp(ca_rt.session_path, getenv("CAUSAL_SESSION")));
	MUST(*ca_rt.own_path);
	MUST(ca_rt.sees_conductor && ca_rt.signal_taken);
	MUST(!atomic_load(&ca_rt.session->process[ca_rt.process].patched));
	MUST(!atomic_load(&ca_rt.session->process[ca_rt.process].patch_failed));
	MUST(ca_sampler_host.translate &&
	     (!ca_rt.patching || ca_patch_on_trap)); /* what it does first of all */
	MUST(ca_rt.own_low > 4096 && (uintptr_t)ca_wait_meet_from >= ca_rt.own_low &&
	     (uintptr_t)ca_wait_meet_from < ca_rt.own_high);
	MUST(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
	MUST(!strcmp(main_module()->path, exe));
	MUST(ca_real.read && ca_real.posix_spawnp); /* the wrappers know their functions */
	MUST(!*log_text);
}

static void forks(void)
{
	uint32_t process = ca_rt.process;
	pid_t child;

	/* libc's, a raw one that we hear of, and one behind our back */
	for (int way = 0; way < 3; way++) {
		child = way == 0   ? fork()
			: way == 1 ? (pid_t)syscall(SYS_fork)
				   : (pid_t)ca_sys(SYS_fork, 0, 0, 0, 0, 0, 0);
		if (!child && way < 2) {
			MUST(ca_rt.process != process);
			must_be_on();
			_exit(0);
		} else if (!child) {
			MUST(!atomic_load(&ca_rt.on));
			_exit(0);
		}
		MUST(status_of(child) == 0);
		must_be_on();
	}
	MUST(atomic_load(&ca_rt.session->processes_used) == 3);
	/* no process is left in the table, or the run is over, or we were off */
	for (unsigned i = 3; i < CA_MAX_PROCESSES; i++)
		atomic_store(&ca_rt.session->process[i].state, CA_SLOT_LIVE);
	for (int way = 0; way < 3; way++) {
		if (way == 1)
			atomic_store(&ca_rt.session->state, CA_SESSION_CLOSED);
		if (way == 2) {
			atomic_store(&ca_rt.session->state, CA_SESSION_OPEN);
			atomic_store(&ca_rt.session->process[3].state, CA_SLOT_FREE);
			ca_rt_off("a test");
		}
		child = fork();
		if (!child) {
			MUST(!atomic_load(&ca_rt.on));
			MUST(way == 2 || !ca_self);
			_exit(0);
		}
		MUST(status_of(child) == 0);
	}
}

static void executes(char **argv)
{
	atomic_store(&ca_rt.session->process[0].off, 1);
	atomic_store(&ca_rt.session->process[0].patched, 99);
	atomic_store(&ca_rt.session->process[0].patch_failed, 99);
	atomic_store(&ca_rt.session->selection.seq, 4);
	atomic_store(&ca_self->slot->in_s, 1);
	/* one of another process is left alone */
	atomic_store(&ca_rt.session->slot[1].state, CA_SLOT_LIVE);
	ca_rt.session->slot[1].process = 1;
	atomic_store(&ca_rt.session->slot[2].state, CA_SLOT_LIVE);
	ca_rt.session->slot[2].process = 0;
	atomic_store(&ca_rt.session->slot[2].in_s, 1);
	atomic_store(&ca_rt.session->slots_used, 3);
	argv[1] = (char *)"executed";
	ca_real.execve("/proc/self/exe", argv, environ);
	MUST(false);
}

static void executed(void)
{
	must_be_on();
	MUST(ca_rt.process == 0 && atomic_load(&ca_rt.session->processes_used) == 1);
	MUST(ca_self->number == 0); /* the old image's is free again */
	MUST(!atomic_load(&ca_self->slot->in_s));
	MUST(atomic_load(&ca_rt.session->slot[1].state) == CA_SLOT_LIVE);
	MUST(atomic_load(&ca_rt.session->slot[2].state) == CA_SLOT_FREE);
	MUST(!atomic_load(&ca_rt.session->slot[2].in_s));
	/* who reads the log has been told */
	MUST(atomic_load(&ca_rt.session->log_head) == 2);
	for (uint32_t i = 0; i < 2; i++)
		MUST(ca_rt.session->log[i].seq == i + 1 && ca_rt.session->log[i].type == CA_LOG_EXIT &&
		     ca_rt.session->log[i].thread == 2 * i && ca_rt.session->log[i].time);
	/* what is selected is in place before main runs */
	MUST(atomic_load(&ca_rt.session->process[0].patched) == 4 && !ca_probe_is_behind());
	MUST(!atomic_load(&ca_rt.session->process[0].patch_failed));
}

static void is_told(const char *format)
{
	must_be_out();
	ca_start_forked(); /* no business of ours */
	must_be_out();
	MUST(format ? strstr(log_text, format) != NULL : !*log_text);
}

static void has_waited(void)
{
	must_be_on();
	MUST(atomic_load(&main_module()->state) == CA_MODULE_FAILED);
}

static void driver_is_gone(void)
{
	const struct ca_process *p = &ca_rt.session->process[0];

	MUST(!atomic_load(&ca_rt.on) && atomic_load(&p->off));
	MUST(!strcmp(p->off_text, "the driver has ended"));
}

static int run_as(char **argv)
{
	const char *as = argv[1];

	if (!strcmp(as, "joins"))
		joins();
	else if (!strcmp(as, "forks"))
		forks();
	else if (!strcmp(as, "executes"))
		executes(argv);
	else if (!strcmp(as, "executed"))
		executed();
	else if (!strcmp(as, "silent"))
		is_told(NULL);
	else if (!strcmp(as, "cannot"))
		is_told("cannot join the run");
	else if (!strcmp(as, "too many"))
		is_told("more than %d processes");
	else if (!strcmp(as, "waited"))
		has_waited();
	else if (!strcmp(as, "gone"))
		driver_is_gone();
	return 0;
}

/* ---- the sessions ------------------------------------------------------------------------------------- */
static char directory[64], path[80];
static struct ca_session *run;

static int make_session(void **state)
{
	int fd;

	(void)state;
	strcpy(directory, "/tmp/ca-start-XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof path, "%s/session", directory);
	if (ca_session_create(path, &run, NULL) != CA_OK || (fd = open(path, O_RDWR | O_CLOEXEC)) < 0 ||
	    ca_session_grow(fd, run, 8, NULL) != CA_OK)
		return -1;
	run->period = 777000;
	close(fd);
	return 0;
}

static int drop_session(void **state)
{
	(void)state;
	ca_session_detach(run);
	unlink(path);
	return rmdir(directory);
}

static void runs(const char *as, const char *session)
{
	char *argv[] = { (char *)"self", (char *)(uintptr_t)as, NULL }, text[1200];
	char *env[] = { session ? text : NULL, NULL };
	pid_t child;

	snprintf(text, sizeof text, "CAUSAL_SESSION=%s", session ? session : "");
	fflush(NULL);
	child = fork();
	if (!child) {
		execve("/proc/self/exe", argv, env);
		_exit(254);
	}
	assert_int_equal(status_of(child), 0);
}

static void a_program_joins(void **state)
{
	(void)state;
	atomic_store(&run->process[0].patched, 99);
	atomic_store(&run->process[0].patch_failed, 99);
	runs("joins", path);
	assert_int_equal(atomic_load(&run->processes_used), 1);
	assert_int_equal(atomic_load(&run->slots_used), 1);
}

static _Atomic bool done;

/* The driver, which makes an index of what it is told of; or says that there is none. */
static void *make_indexes(void *unused)
{
	const struct timespec nap = { 0, 5000000 };

	while (!atomic_load(&done)) {
		ca_real.nanosleep(&nap, NULL);
		for (unsigned i = 0; i < CA_MAX_MODULES; i++)
			if (atomic_load(&run->module[i].state) == CA_MODULE_REGISTERED)
				atomic_store(&run->module[i].state, CA_MODULE_FAILED);
	}
	return unused;
}

static void it_waits_for_its_index(void **state)
{
	pthread_t id;

	(void)state;
	atomic_store(&run->heartbeat, UINT64_MAX / 2);
	assert_int_equal(ca_real.pthread_create(&id, NULL, make_indexes, NULL), 0);
	runs("waited", path);
	atomic_store(&done, true);
	ca_real.pthread_join(id, NULL);
}

static void its_children_join(void **state)
{
	(void)state;
	runs("forks", path);
}

static void it_executes_another(void **state)
{
	(void)state;
	runs("executes", path);
}

static void no_run_to_join(void **state)
{
	char longer[1100];
	int fd;

	(void)state;
	runs("silent", NULL);
	runs("silent", "");
	runs("silent", "/nowhere/at/all");
	memset(longer, 'x', sizeof longer - 1);
	longer[0] = '/';
	longer[sizeof longer - 1] = 0;
	runs("cannot", longer);
	fd = open(path, O_RDWR | O_TRUNC | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)CA_SESSION_SIZE), 0); /* nothing but zeros */
	close(fd);
	runs("cannot", path);
}

static void a_run_that_is_over(void **state)
{
	(void)state;
	atomic_store(&run->state, CA_SESSION_CLOSED);
	runs("silent", path);
	assert_int_equal(atomic_load(&run->processes_used), 0);
}

static void more_processes_than_fit(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CA_MAX_PROCESSES; i++)
		atomic_store(&run->process[i].state, CA_SLOT_LIVE);
	runs("too many", path);
	runs("silent", path); /* one line for all of them */
	atomic_store(&run->process[CA_MAX_PROCESSES - 1].state, CA_SLOT_FREE);
	runs("joins", path);
	assert_int_equal(atomic_load(&run->processes_used), CA_MAX_PROCESSES);
}

static pid_t dead_pid(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	status_of(child);
	return child;
}

/* A process that has ended and was not waited for, and how long it takes until one is that. */
static pid_t zombie(void)
{
	pid_t child = fork();
	siginfo_t info;

	if (!child)
		_exit(0);
	ca_real.waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
	return child;
}

static void no_driver_when_it_starts(void **state)
{
	pid_t child = zombie();

	(void)state;
	run->conductor = (uint32_t)child;
	runs("gone", path);
	status_of(child);
}

/* ---- the off switch -------------------------------------------------------------------------------------- */
static void off(void **state)
{
	const struct ca_process *p = &s->process[2];

	(void)state;
	ca_rt.process = 2;
	ca_rt.joined = true;
	ca_rt_off("some reason");
	assert_false(atomic_load(&ca_rt.on));
	assert_false(ca_rt.joined); /* nor do its children join */
	assert_int_equal(atomic_load(&p->off), 1);
	assert_string_equal(p->off_text, "some reason");
	assert_non_null(strstr(log_text, "switched off"));
	log_text[0] = 0;
	ca_rt_off("another");
	assert_string_equal(p->off_text, "some reason");
	assert_string_equal(log_text, "");
}

static void the_heart_of_the_driver(void **state)
{
	static const uint64_t beat = UINT64_C(1000000000000), stale = 60000000, suspend = 1000000000;

	(void)state;
	atomic_store(&s->heartbeat, beat);
	ca_rt.sees_conductor = true;
	s->conductor = (uint32_t)getpid();
	assert_false(ca_rt_conductor_is_gone(beat - 5));
	assert_false(ca_rt_conductor_is_gone(beat + stale));
	assert_false(ca_rt_conductor_is_gone(beat + suspend));    /* it lives, and may be slow */
	assert_true(ca_rt_conductor_is_gone(beat + suspend + 1)); /* nothing is delayed meanwhile */
	assert_true(atomic_load(&ca_rt.on));
	s->conductor = (uint32_t)dead_pid();
	assert_false(ca_rt_conductor_is_gone(beat + stale - 1)); /* nobody looks */
	ca_rt.sees_conductor = false;                            /* in a container it cannot be seen */
	assert_false(ca_rt_conductor_is_gone(beat + stale + 1));
	assert_true(ca_rt_conductor_is_gone(beat + suspend + 1));
	assert_true(atomic_load(&ca_rt.on));
	ca_rt.sees_conductor = true;
	assert_true(ca_rt_conductor_is_gone(beat + stale));
	assert_false(atomic_load(&ca_rt.on));
}

static void a_driver_that_nobody_waits_for(void **state)
{
	pid_t child = zombie();

	(void)state;
	atomic_store(&s->heartbeat, 0);
	ca_rt.sees_conductor = true;
	s->conductor = (uint32_t)child;
	assert_true(ca_rt_conductor_is_gone(60000001));
	assert_false(atomic_load(&ca_rt.on));
	status_of(child);
}

static void tending(void **state)
{
	(void)state;
	ca_rt_tend(1);
	assert_true(atomic_load(&ca_rt.on));
	atomic_store(&s->state, CA_SESSION_CLOSED); /* we outlive the run, and say nothing */
	log_text[0] = 0;
	ca_rt_tend(1);
	assert_false(atomic_load(&ca_rt.on));
	assert_int_equal(atomic_load(&s->process[0].off), 0);
	assert_string_equal(log_text, "");
	atomic_store(&s->state, CA_SESSION_OPEN);
	atomic_store(&ca_rt.on, true);
	atomic_store(&s->heartbeat, 0);
	ca_rt.sees_conductor = true;
	s->conductor = (uint32_t)dead_pid();
	ca_rt_tend(ca_clock_now());
	assert_int_equal(atomic_load(&s->process[0].off), 1);
}

static void winding_down(void **state)
{
	(void)state;
	stops = removals = 0;
	ca_thread_wind_down(me);
	assert_int_equal(removals, 0); /* nothing was patched */
	ca_rt.patching = true;
	removed = false;
	ca_thread_wind_down(me);
	assert_int_equal(removals, 1);
	removed = true; /* somebody else was at it */
	ca_thread_wind_down(me);
	assert_int_equal(removals, 2);
	ca_thread_wind_down(me);
	assert_int_equal(removals, 2);
	assert_int_equal(stops, 4);
}

#define RUN(f) cmocka_unit_test_setup_teardown(f, make_session, drop_session)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		RUN(a_program_joins),
		RUN(it_waits_for_its_index),
		RUN(its_children_join),
		RUN(it_executes_another),
		RUN(no_run_to_join),
		RUN(a_run_that_is_over),
		RUN(more_processes_than_fit),
		RUN(no_driver_when_it_starts),
		RT_TEST(off),
		RT_TEST(the_heart_of_the_driver),
		RT_TEST(a_driver_that_nobody_waits_for),
		RT_TEST(tending),
		RT_TEST(winding_down),
	};

	if (argc > 1)
		return run_as(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
