/* SPDX-License-Identifier: MIT */
/* causal/runtime/wait.c: meetings and waits; who pays when, what the log is told, what kind of wait
 * it was. The ledger's account and log are real; paying, and the look at the stack, are stood in
 * for. */
#include "causal/runtime/channel.h"
#include "causal/runtime/fine.h"
#include "causal/runtime/patch.h"
#include "causal/runtime/peers.h"
#include "core/cpu.h"
#include "core/sys.h"
#include "tests/unit/runtime.h"
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* ---- what stands in -------------------------------------------------------------------------------- */
static unsigned of_file, of_data; /* system calls that ask for these */

int fstat(int fd, struct stat *st)
{
	of_file++;
	return (int)syscall(SYS_fstat, fd, st);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *at;

	of_data++;
	va_start(list, request);
	at = va_arg(list, void *);
	va_end(list);
	return (int)syscall(SYS_ioctl, fd, request, at);
}

static unsigned paid, waited_on, looks, unheld, late_calls;
static uint64_t off_cpu;
static int64_t owed_then; /* when it waited on */
static bool in_selection;
static struct ca_thread *late;

uint64_t ca_ledger_pay(struct ca_thread *t)
{
	assert_int_equal(t->guard, 1);
	paid++;
	errno = 99;
	return ca_clock_now();
}

uint64_t ca_ledger_wait_on(struct ca_thread *t)
{
	assert_int_equal(t->guard, 1);
	waited_on++;
	owed_then = t->owed;
	return 0;
}

void ca_sample_off_cpu(struct ca_thread *t, uint64_t ns)
{
	assert_int_equal(t->guard, 1);
	off_cpu = ns;
	errno = 99;
}

void ca_sample_stack_here(struct ca_thread *t)
{
	(void)t;
	looks++;
}

bool ca_sample_in_selection(const struct ca_stack *stack, unsigned *outermost, unsigned *part)
{
	(void)stack;
	*outermost = 0;
	*part = 0;
	return in_selection;
}

void ca_thread_unhold(struct ca_thread *t)
{
	t->held_sp = 0;
	unheld++;
}

struct ca_thread *ca_thread_late(void)
{
	late_calls++;
	return late;
}

/* While this is not 0 no time passes. */
static uint64_t stands_still;

/* cmocka's own look at the clock is no meeting. */
CA_EXPORT int clock_gettime(clockid_t clock, struct timespec *now)
{
	return (int)ca_sys(SYS_clock_gettime, clock, (long)(intptr_t)now, 0, 0, 0, 0);
}

static int read_clock(clockid_t clock, struct timespec *now)
{
	if (!stands_still)
		return (int)ca_sys(SYS_clock_gettime, clock, (long)(intptr_t)now, 0, 0, 0, 0);
	now->tv_sec = (time_t)(stands_still / CA_NS_PER_S);
	now->tv_nsec = (long)(stands_still % CA_NS_PER_S);
	return 0;
}

/* ---- helpers ---------------------------------------------------------------------------------------- */
enum { SPEEDUP = 500000 };

static int set_up(void **state)
{
	if (rt_set_up(state))
		return -1;
	paid = waited_on = looks = unheld = late_calls = 0;
	off_cpu = 0;
	in_selection = false;
	late = NULL;
	s->selection.exact = 1;
	rt_trace();
	ca_ledger_accrue(me, ca_clock_now(), NULL);
	return 0;
}

static void open_experiment(void)
{
	rt_open_experiment(SPEEDUP);
	ca_ledger_accrue(me, ca_clock_now(), NULL);
}

static void pass(uint64_t ns)
{
	uint64_t end = ca_clock_now() + ns;

	while (ca_clock_now() < end)
		;
}

/* The same, asleep, as the kernel counts; a ms at least, or the time may be over before the thread is off its CPU. */
static void sleep_for(uint64_t ns)
{
	struct timespec nap = { 0, ns > 1000000 ? (long)ns : 1000000 };

	assert_int_equal(ca_sys(SYS_nanosleep, (long)(intptr_t)&nap, 0, 0, 0, 0, 0), 0);
}

static uint64_t entries(void)
{
	return atomic_load(&s->log_head);
}

static void enter_s(void)
{
	me->depth = 1;
	ca_ledger_log(CA_LOG_ENTER, me, ca_clock_now(), 0);
}

/* As the kernel would tell it; runnable: others were chosen to run. */
static void was_off(uint64_t from, uint64_t to, bool runnable)
{
	struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)me->switches.page;
	struct {
		struct perf_event_header header;
		uint64_t time;
	} record[2] = { { { PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT, sizeof *record }, from },
			{ { PERF_RECORD_SWITCH, 0, sizeof *record }, to } };

	if (runnable)
		record[0].header.misc |= PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	memcpy((char *)page + RT_PAGE + page->data_head, record, sizeof record);
	page->data_head += sizeof record;
}

/* ---- meetings --------------------------------------------------------------------------------------- */
static void meetings_pay(void **state)
{
	(void)state;
	ca_clock_get = read_clock;
	ca_wait_meet(); /* nothing is open, and nothing owed */
	assert_int_equal(paid, 0);
	assert_int_equal(me->meets, 1);
	me->owed = 1;
	errno = 5;
	ca_wait_meet();
	assert_int_equal(paid, 1);
	assert_int_equal(errno, 5);
	assert_int_equal(me->guard, 0);
	assert_int_equal(me->meets, 2);
	assert_int_equal(unheld, 0);
	me->owed = 0;
	open_experiment();
	me->last_look = 0;
	ca_wait_meet();
	assert_int_equal(paid, 2);
	assert_true(ca_cpu_cycles() - me->last_look < ca_cpu_cycles() / 2);
	me->last_look = 0;
	me->depth = 1; /* nobody pays inside S */
	ca_wait_meet();
	assert_int_equal(paid, 2);
}

static void meetings_that_do_nothing(void **state)
{
	(void)state;
	me->owed = 1;
	me->guard = 1;
	ca_wait_meet();
	assert_int_equal(me->guard, 1);
	me->guard = 0;
	atomic_store(&ca_rt.on, false);
	ca_wait_meet();
	assert_int_equal(late_calls, 0);
	atomic_store(&ca_rt.on, true);
	ca_self = NULL;
	ca_wait_meet(); /* a thread that we do not know, and shall not */
	assert_int_equal(late_calls, 1);
	assert_int_equal(paid + me->meets, 0);
	late = me;
	ca_wait_meet();
	assert_int_equal(paid, 1);
	ca_self = me;
	me->held_sp = 1;
	ca_wait_meet();
	me->held_sp = 2;
	ca_wait_meet();
	assert_int_equal(unheld, 2);
}

/* Where S is sampled, who owes much looks whether he is in it. */
static void meetings_with_sampled_s(void **state)
{
	(void)state;
	s->selection.exact = 0;
	open_experiment();
	me->last_look = 0;
	assert_int_equal(atomic_load(&me->slot->met), 0);
	me->owed = 19999; /* a little waits until it is worth a look */
	ca_wait_meet();
	assert_int_equal(looks, 0);
	assert_int_equal(paid, 0);
	assert_int_equal(atomic_load(&me->slot->met), 1);
	in_selection = true;
	me->owed = 20000;
	me->last_look = 0;
	ca_wait_meet();
	assert_int_equal(looks, 1);
	assert_true(me->sampled_in);
	in_selection = false;
	me->last_look = 0;
	ca_wait_meet();
	assert_false(me->sampled_in);
	s->selection.exact = 1;
	me->last_look = 0;
	ca_wait_meet();
	assert_int_equal(looks, 2);
	assert_int_equal(paid, 3);
	/* much is owed, but nobody has looked at the log yet */
	s->selection.exact = 0;
	me->owed = 0;
	ca_ledger_log(CA_LOG_ENTER, &thread[1], ca_clock_now(), 0);
	pass(50000);
	me->last_look = 0;
	ca_wait_meet();
	assert_int_equal(looks, 3);
	assert_int_equal(atomic_load(&me->slot->met), 4); /* not those where S is exact */
}

/* ---- waits ---------------------------------------------------------------------------------------------- */
static void a_wait(void **state)
{
	struct ca_waiting w;
	uint64_t before = ca_clock_now();
	uintptr_t sp;

	(void)state;
	me->owed = 1; /* paid first, whatever that does to errno */
	errno = 5;
	w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	assert_int_equal(paid, 1);
	me->owed = paid = 0;
	assert_ptr_equal(w.thread, me);
	assert_int_equal(me->guard, 0);
	assert_int_equal(*me->waiting, CA_WAIT_OTHERS);
	__asm__("mov %%rsp, %0" : "=r"(sp));
	assert_int_equal(me->waiting_sp, sp); /* all that lies below is gone when we are back */
	assert_in_range(w.since, before, ca_clock_now());
	assert_int_equal(errno, 5);
	ca_wait_end(&w);
	assert_null(me->waiting);
	assert_int_equal(me->guard, 0);
	assert_int_equal(errno, 5);
	assert_int_equal(me->waiting_sp, 0);
	assert_int_equal(paid + waited_on + entries(), 0);
	/* nothing of it in our own code, or where we are off */
	me->guard = 1;
	w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	assert_null(w.thread);
	ca_wait_end(&w);
	assert_int_equal(me->guard, 1);
}

static void waits_in_waits(void **state)
{
	struct ca_waiting inner;

	(void)state;
	ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	me->waiting_sp = UINTPTR_MAX;              /* as from a frame further out */
	inner = ca_wait_begin(CA_WAIT_OTHERS, -1); /* in a handler of the program's */
	assert_int_equal(*me->waiting, CA_WAIT_OTHERS);
	ca_wait_end(&inner);
	assert_int_equal(*me->waiting, CA_WAIT_EXTERNAL);
	assert_int_equal(me->waiting_sp, UINTPTR_MAX);
	/* the outer one was left by longjmp: its frame is where ours is now, or below */
	me->waiting_sp = 1;
	inner = ca_wait_begin(CA_WAIT_OTHERS, -1);
	ca_wait_end(&inner);
	assert_null(me->waiting);
	/* ended by another thread than the one that began: a child of vfork, or nobody */
	inner = ca_wait_begin(CA_WAIT_OTHERS, -1);
	ca_self = &thread[1];
	ca_wait_end(&inner);
	assert_non_null(me->waiting);
}

/* Owes nothing for a wait for others; for the world outside p of the S time in it. */
static void waits_while_another_is_in_s(void **state)
{
	struct ca_waiting w;

	(void)state;
	open_experiment();
	ca_ledger_log(CA_LOG_ENTER, &thread[1], ca_clock_now(), 0);
	me->last_look = 0;
	w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	assert_int_equal(paid, 1); /* first */
	ca_ledger_accrue(me, ca_clock_now(), NULL);
	me->owed = 0;
	pass(100000);
	ca_wait_end(&w);
	assert_int_equal(me->owed, 0);
	assert_int_equal(waited_on, 0);
	assert_true(me->last >= w.since + 100000); /* and that time is over */
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	ca_ledger_accrue(me, w.since, NULL);
	me->owed = 0;
	pass(100000);
	ca_wait_end(&w);
	assert_in_range(me->owed, (me->last - w.since) / 2, (me->last - w.since) / 2 + 1);
	assert_int_equal(waited_on, 1);
	/* begun in the experiment before: its kind was not looked at; owes nothing for it */
	atomic_fetch_add(&s->experiment.seq, 1);
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	ca_wait_end(&w);
	assert_int_equal(waited_on, 1);
}

static void waits_in_s(void **state)
{
	struct ca_waiting w;

	(void)state;
	open_experiment();
	enter_s();
	me->last_look = 0;
	w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	assert_int_equal(paid, 0);
	assert_true(me->waited);
	assert_int_equal(rt_logged(1, CA_LOG_OFF, 0)->time, w.since);
	ca_wait_end(&w);
	assert_true(rt_logged(2, CA_LOG_ON, 0)->time >= w.since);
	assert_int_equal(s->log[2].value, CA_LOG_OFF);
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	assert_int_equal(rt_logged(3, CA_LOG_EXTERNAL, 0)->time, w.since);
	assert_int_equal(s->log[3].value, UINT64_MAX);
	ca_wait_end(&w);
	rt_logged(4, CA_LOG_ON, 0);
	assert_int_equal(s->log[4].value, CA_LOG_EXTERNAL);
	assert_int_equal(waited_on, 0);
	/* left it by longjmp meanwhile */
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	me->depth = 0;
	ca_wait_end(&w);
	assert_int_equal(entries(), 6);
}

/* Others are told once when it was off a CPU: as that it waited, or as that it was preempted. */
static void waits_in_s_are_told_once(void **state)
{
	struct ca_waiting w;
	uint64_t from;

	(void)state;
	open_experiment();
	enter_s();
	from = me->entered = ca_clock_now();
	pass(100000);
	was_off(from + 10000, from + 50000, true);
	w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	assert_int_equal(rt_logged(1, CA_LOG_WAS_OFF, 0)->time, from + 10000);
	assert_int_equal(s->log[1].value, from + 50000);
	rt_logged(2, CA_LOG_OFF, 0);
	pass(100000);
	was_off(w.since + 10000, w.since + 90000, false);
	ca_wait_end(&w);
	rt_logged(3, CA_LOG_ON, 0);
	ca_activation_tell(me, ca_clock_now());
	assert_int_equal(entries(), 4);
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	pass(100000);
	was_off(w.since + 10000, w.since + 90000, false);
	ca_wait_end(&w);
	ca_activation_tell(me, ca_clock_now());
	assert_int_equal(entries(), 6);
}

/* Something else is selected before it is over: the thread is no more in that than anybody. What it owes because of a
 * wait for the outside it pays by waiting on, and not on a CPU that others could have. */
static void selected_anew_in_a_wait(void **state)
{
	struct ca_waiting w;

	(void)state;
	open_experiment();
	for (unsigned kind = CA_WAIT_OTHERS; kind <= CA_WAIT_EXTERNAL; kind++) {
		enter_s();
		w = ca_wait_begin((enum ca_wait)kind, -1);
		atomic_fetch_add(&s->selection.seq, 2);
		ca_wait_end(&w);
		assert_int_equal(me->depth, 0);
		assert_int_equal(me->slot->in_s, 0);
		assert_int_equal(waited_on, kind == CA_WAIT_EXTERNAL);
	}
	s->selection.exact = 0; /* the same where a sample would have found it in S */
	in_selection = true;
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	assert_true(w.wait_in_s);
	atomic_fetch_add(&s->selection.seq, 2);
	ca_wait_end(&w);
	in_selection = false;
	assert_int_equal(waited_on, 2);
}

/* It began before the experiment, and S would go on in all of it if it counted as one for the outside: whoever has
 * to make room pays for that, and has no time to (tar, which starts gzip). */
static void waits_in_s_before_it_opens(void **state)
{
	struct ca_waiting w;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	ca_peers_made(fd);
	enter_s();
	w = ca_wait_begin_write(fd[1], 1);
	assert_false(w.open);
	assert_int_equal(w.kind, CA_WAIT_OTHERS);
	assert_int_equal(w.logged, CA_WAIT_OTHERS);
	ca_wait_end(&w);
	close(fd[0]);
	close(fd[1]);
}

/* A call that could have waited and did not, as a write to a socket with room: what others had of its CPU is
 * not S. Of one that has waited, all is, in its own account, too. */
static void calls_in_s(void **state)
{
	uint64_t before, took;
	struct ca_waiting w;

	(void)state;
	open_experiment();
	enter_s();
	w = ca_wait_begin_write(-1, 1);
	pass(100000);
	was_off(w.since + 10000, w.since + 90000, true);
	before = me->s_time;
	ca_wait_end(&w);
	assert_int_equal(rt_logged(2, CA_LOG_ON, 0)->time, w.since);
	assert_int_equal(s->log[2].value, CA_LOG_EXTERNAL);
	ca_ledger_accrue(me, took = ca_clock_now(), NULL);
	assert_int_equal(me->s_time - before, took - w.since - 80000);
	before = w.since;
	w = ca_wait_begin_write(-1, 1);
	assert_int_equal(rt_logged(3, CA_LOG_WAS_OFF, 0)->time,
			 before + 10000); /* told before the next one */
	pass(100000);
	was_off(w.since + 10000, w.since + 90000, false);
	before = me->s_time;
	ca_wait_end(&w);
	assert_true(rt_logged(5, CA_LOG_ON, 0)->time >= w.since + 100000);
	ca_ledger_accrue(me, took = ca_clock_now(), NULL);
	assert_int_equal(me->s_time - before, took - w.since);
}

/* The same without a switch log, as the kernel's count of sleeps tells. Who was preempted tells that when it leaves S, unless
 * it has waited, too. */
static void calls_in_s_uncounted(void **state)
{
	struct ca_waiting w;
	void *log = me->switches.page;

	(void)state;
	me->switches.page = NULL;
	me->sleeps = UINT64_MAX;
	open_experiment();
	enter_s();
	me->waited = false;
	w = ca_wait_begin_write(-1, 1);
	assert_true(me->waited); /* as far as is known */
	pass(100000);
	ca_wait_end(&w);
	assert_int_equal(rt_logged(2, CA_LOG_ON, 0)->time, w.since);
	assert_false(me->waited);
	w = ca_wait_begin_write(-1, 1);
	sleep_for(100000);
	ca_wait_end(&w);
	assert_true(rt_logged(4, CA_LOG_ON, 0)->time >= w.since + 100000);
	assert_true(me->waited);
	me->switches.page = log;
}

static void sleeps_in_s(void **state)
{
	struct ca_waiting w;

	(void)state;
	open_experiment();
	enter_s();
	ca_wait_sleep(100000);
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	assert_int_equal(w.until, w.since + 100000);
	assert_int_equal(rt_logged(1, CA_LOG_EXTERNAL, 0)->value, w.until);
	pass(150000);
	was_off(w.since, ca_clock_now(), false);
	ca_wait_end(&w); /* what it took longer is the kernel's */
	assert_int_equal(entries(), 5);
	assert_int_equal(rt_logged(2, CA_LOG_ON, 0)->time, w.until);
	assert_int_equal(s->log[2].value, CA_LOG_EXTERNAL);
	assert_int_equal(rt_logged(3, CA_LOG_OFF, 0)->time, w.until);
	assert_true(rt_logged(4, CA_LOG_ON, 0)->time > w.until);
	assert_int_equal(s->log[4].value, CA_LOG_OFF);
	/* by our own account, too */
	assert_true(me->last >= s->log[3].time + 50000);
	assert_int_equal(me->s_time, w.until - s->log[0].time);
	/* the length was for that one alone; one that ends early is all S */
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	assert_int_equal(w.until, UINT64_MAX);
	ca_wait_end(&w);
	ca_wait_sleep(UINT64_C(3600000000000));
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	ca_wait_end(&w);
	assert_int_equal(entries(), 9);
	me->guard = 1; /* not ours to keep */
	ca_wait_sleep(5);
	assert_int_equal(me->sleep_for, 0);
}

/* A sleep of a ms in S, and when it ends: what the kernel adds is none of S, but nothing is added
 * to one that ends on time. */
static void sleeps_end(void **state)
{
	static const struct {
		uint64_t took, entries;
	} cases[] = { { 0, 1 }, { 999999, 1 }, { 1000000, 1 }, { 1000001, 3 }, { 5000000, 3 } };

	(void)state;
	open_experiment();
	enter_s();
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_waiting w;
		uint64_t before;

		stands_still = ca_clock_now();
		ca_wait_sleep(1000000);
		w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
		before = entries();
		stands_still += cases[i].took;
		ca_wait_end(&w);
		assert_int_equal(entries() - before, cases[i].entries);
		assert_int_equal(rt_logged(entries() - 1, CA_LOG_ON, 0)->time, stands_still);
		stands_still = 0;
	}
}

static void kinds_by_descriptor(void **state)
{
	struct ca_waiting w;
	int pair[2];

	(void)state;
	ca_self = NULL;
	assert_int_equal(pipe(pair), 0);
	ca_self = me;
	w = ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]); /* not worth a look */
	assert_int_equal(w.kind, CA_WAIT_EXTERNAL);
	ca_wait_end(&w);
	open_experiment();
	w = ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]);
	assert_int_equal(w.kind, CA_WAIT_OTHERS);
	assert_int_equal(*me->waiting, CA_WAIT_OTHERS);
	ca_wait_end(&w);
	enter_s();
	w = ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]);
	rt_logged(entries() - 1, CA_LOG_OFF, 0);
	ca_wait_end(&w);
	ca_self = NULL;
	close(pair[0]);
	close(pair[1]);
}

/* Numbers of descriptors come again, sooner than anybody looks. */
static void close_both(const int fd[2])
{
	for (int i = 0; i < 2; i++) {
		close(fd[i]);
		ca_channel_forget(fd[i]);
	}
}

static atomic_bool rivals_end;

static void *rival(void *unused)
{
	while (!atomic_load(&rivals_end))
		;
	return unused;
}

/* Others have been chosen to run on our CPU, as the kernel counts. */
static void be_preempted(void)
{
	cpu_set_t all, here;
	struct rusage used = { 0 };
	pthread_t other;
	long before;

	assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
	CPU_ZERO(&here);
	CPU_SET((size_t)sched_getcpu(), &here);
	assert_int_equal(sched_setaffinity(0, sizeof here, &here), 0);
	getrusage(RUSAGE_THREAD, &used);
	before = used.ru_nivcsw;
	atomic_store(&rivals_end, false);
	assert_int_equal(pthread_create(&other, NULL, rival, NULL), 0);
	while (used.ru_nivcsw == before)
		getrusage(RUSAGE_THREAD, &used);
	atomic_store(&rivals_end, true);
	sched_setaffinity(0, sizeof all, &all);
	me->preempted = (uint64_t)before;
	me->sleeps = UINT64_MAX;
	ca_self = NULL;
	pthread_join(other, NULL);
	ca_self = me;
}

/* One that ends a wait from outside owes from when it was asked, also before the wait began. */
static void asked_before(void **state)
{
	struct ca_waiting w;
	void *log = me->switches.page;
	uint64_t outside;
	int pair[2];

	(void)state;
	ca_self = NULL;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ca_peers_made(pair);
	ca_self = me;
	open_experiment();
	w = ca_wait_begin_write(pair[0], 1);
	assert_true(w.writes);
	ca_wait_end(&w);
	ca_ledger_log(CA_LOG_ENTER, &thread[1], ca_clock_now(), 0);
	pass(100000);
	/* a call that only takes long has not waited: what it takes was there */
	w = ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]);
	ca_ledger_accrue(me, ca_clock_now(), NULL);
	me->owed = 0;
	pass(20000);
	ca_wait_end(&w);
	assert_in_range(me->owed, 0, (ca_clock_now() - w.since) / 2);
	assert_int_equal(atomic_load(&me->slot->outside), 0);
	me->switches.page = NULL; /* nor where the kernel's count tells */
	me->sleeps = me->preempted = UINT64_MAX;
	w = ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]);
	ca_ledger_accrue(me, ca_clock_now(), NULL);
	me->owed = 0;
	pass(20000);
	ca_wait_end(&w);
	assert_in_range(me->owed, 0, (ca_clock_now() - w.since) / 2);
	assert_int_equal(atomic_load(&me->slot->outside), 0);
	/* ... unless others had the CPU in it, as in the log */
	be_preempted();
	for (int is_long = 0; is_long < 2; is_long++) {
		uint64_t before = me->preempted;

		w = ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]);
		pass(is_long ? 100000 : 10000); /* so little is no time for them */
		ca_wait_end(&w);
		if (!is_long && ca_clock_now() - w.since < 50000)
			assert_false(w.was_off);
		assert_true(!is_long || w.was_off);
		me->preempted = before;
		me->sleeps = UINT64_MAX;
	}
	atomic_store(&me->slot->outside, 0);
	w = ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]);
	ca_ledger_accrue(me, ca_clock_now(), NULL);
	me->owed = 0;
	sleep_for(20000);
	w.delivered = 1;
	ca_wait_end(&w);
	assert_int_equal(w.kind, CA_WAIT_EXTERNAL);
	assert_in_range(me->owed, 60000, 10000000);
	outside = atomic_load(&me->slot->outside);
	assert_in_range(outside, 20000, ca_clock_now() - w.since);
	/* it has answered, and nobody has asked again */
	w = ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]);
	assert_int_equal(w.kind, CA_WAIT_EXTERNAL);
	assert_true(w.feed != 0);
	ca_ledger_accrue(me, ca_clock_now(), NULL);
	me->owed = 0;
	sleep_for(20000);
	w.delivered = 1;
	ca_wait_end(&w);
	assert_in_range(me->owed, 10000, (me->last - w.since) / 2 + 1);
	assert_true(atomic_load(&me->slot->outside) >= outside + 20000);
	outside = atomic_load(&me->slot->outside);
	/* one of ours writes */
	ca_self = &thread[1];
	w = ca_wait_begin_write(pair[1], 1);
	ca_wait_end(&w);
	ca_self = me;
	w = ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]);
	assert_int_equal(w.kind, CA_WAIT_OTHERS);
	assert_int_equal(w.feed, 0);
	me->owed = 0;
	w.delivered = 1;
	sleep_for(20000);
	ca_wait_end(&w);
	assert_int_equal(me->owed, 0);
	assert_int_equal(atomic_load(&me->slot->outside), outside);
	ca_self = NULL;
	me->switches.page = log;
	close_both(pair);
}

/* A read that takes what it wanted, one message, is held back by all that was lost since the feed was in
 * step with us; one of another length, too, if it had to wait. */
static void held_back(void **state)
{
	struct ca_waiting w;
	void *log = me->switches.page;
	int pair[2];

	(void)state;
	me->switches.page = NULL;
	ca_self = NULL;
	assert_int_equal(pipe(pair), 0);
	ca_self = me;
	open_experiment();
	w = ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]);
	w.wanted = 1;
	w.delivered = 1;
	ca_wait_end(&w);
	ca_ledger_log(CA_LOG_ENTER, &thread[1], ca_clock_now(), 0);
	pass(200000);
	w = ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]);
	assert_true(w.feed != 0);
	ca_ledger_accrue(me, ca_clock_now(), NULL);
	me->owed = -5;
	sleep_for(20000);
	w.wanted = 1;
	w.delivered = 1;
	ca_wait_end(&w);
	assert_in_range(me->owed, 105000, 10000000);
	w = ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]);
	ca_ledger_accrue(me, ca_clock_now(), NULL);
	me->owed = 0;
	sleep_for(20000);
	w.delivered = 1;
	w.wanted = 100;
	ca_wait_end(&w);
	assert_in_range(me->owed, 115000, 10000000);
	assert_int_equal(atomic_load(&me->slot->ahead), 0); /* so far he was held back */
	w = ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]);
	sleep_for(20000);
	w.delivered = 1;
	w.wanted = 100;
	ca_wait_end(&w);
	assert_in_range(atomic_load(&me->slot->ahead), 115000, 10000000);
	ca_self = NULL;
	close_both(pair);
	me->switches.page = log;
}

/* In S, too: S does not go on meanwhile, and what the thread owes otherwise it carries on. The wait for an
 * answer is S. */
static void held_back_in_s(void **state)
{
	struct ca_waiting w;
	void *log = me->switches.page;
	int pair[2];

	(void)state;
	me->switches.page = NULL;
	ca_self = NULL;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ca_peers_made(pair);
	ca_self = me;
	open_experiment();
	w = ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]);
	w.delivered = 1;
	ca_wait_end(&w);
	ca_ledger_log(CA_LOG_ENTER, &thread[1], ca_clock_now(), 0);
	pass(200000);
	ca_ledger_log(CA_LOG_EXIT, &thread[1], ca_clock_now(), 0);
	enter_s();
	ca_ledger_accrue(me, ca_clock_now(), NULL);
	me->owed = 7;
	waited_on = 0;
	w = ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]);
	assert_true(w.by_itself);
	rt_logged(entries() - 1, CA_LOG_OFF, 0);
	sleep_for(20000);
	w.delivered = 1;
	w.wanted = 1;
	ca_wait_end(&w);
	rt_logged(entries() - 1, CA_LOG_ON, 0);
	assert_int_equal(waited_on, 1);
	assert_in_range(owed_then, 100000, 10000000);
	assert_int_equal(me->owed, owed_then + 7);
	/* asked */
	w = ca_wait_begin_write(pair[0], 1);
	ca_wait_end(&w);
	waited_on = 0;
	w = ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]);
	assert_false(w.by_itself);
	rt_logged(entries() - 1, CA_LOG_EXTERNAL, 0);
	w.delivered = 1;
	ca_wait_end(&w);
	assert_int_equal(waited_on, 0);
	ca_self = NULL;
	close_both(pair);
	me->switches.page = log;
}

/* A connection from somebody outside; returns the end that was accepted. */
static int accept_client(int *client, int *listener)
{
	struct sockaddr_in here = { .sin_family = AF_INET };
	socklen_t size = sizeof here;
	int fd;

	here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(*listener, (struct sockaddr *)&here, size), 0);
	assert_int_equal(listen(*listener, 1), 0);
	assert_int_equal(getsockname(*listener, (struct sockaddr *)&here, &size), 0);
	*client = socket(AF_INET, SOCK_STREAM, 0);
	ca_self = NULL; /* it is no part of the run */
	assert_int_equal(connect(*client, (struct sockaddr *)&here, size), 0);
	fd = accept(*listener, NULL, NULL);
	ca_self = me;
	assert_true(fd >= 0);
	assert_int_equal(ca_peers_of_accept(*listener, fd), CA_WAIT_EXTERNAL);
	return fd;
}

/* Another thread is in S for so long. */
static void thread_in_s(uint64_t ns)
{
	ca_ledger_log(CA_LOG_ENTER, &thread[1], ca_clock_now(), 0);
	pass(ns);
	ca_ledger_log(CA_LOG_EXIT, &thread[1], ca_clock_now(), 0);
}

/* Data that come after so long. */
static struct ca_waiting get_after(int fd, uint64_t ns)
{
	struct ca_waiting w = ca_wait_begin(CA_WAIT_EXTERNAL, fd);

	if (ns && !me->switches.page)
		sleep_for(ns);
	else
		pass(ns);
	w.delivered = 1;
	w.wanted = 1;
	return w;
}

static void ask(int fd)
{
	struct ca_waiting w = ca_wait_begin_write(fd, 1);

	ca_wait_end(&w);
}

/* Where nothing is selected: an answer of somebody outside is waited for by the code that has asked; the next request of
 * a client is not. */
static void waits_that_are_sampled(void **state)
{
	struct ca_waiting w;
	int client, listener, fd, pair[2];

	(void)state;
	fd = accept_client(&client, &listener);
	ca_self = NULL;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ca_peers_made(pair);
	ca_self = me;
	w = get_after(pair[0], 0); /* from now on it is somebody outside */
	ca_wait_end(&w);
	for (int is_client = 0; is_client < 2; is_client++) {
		ask(is_client ? fd : pair[0]);
		off_cpu = 0;
		w = get_after(is_client ? fd : pair[0], 50000);
		ca_wait_end(&w);
		assert_int_equal(w.kind, CA_WAIT_EXTERNAL);
		assert_int_equal(off_cpu >= 50000, !is_client);
	}
	ca_self = NULL;
	close_both(pair);
	close(client);
	close(listener);
	close(fd);
}

/* A client asks when it wants to, also when it has had its answer: no S of ours makes it faster, and the wait for it is
 * no S. It is early by what was inserted since it had that answer; what is too little for a nap adds up. */
static void client_in_s(void **state)
{
	struct ca_waiting w;
	void *log = me->switches.page;
	int client, listener, fd;
	int64_t first;

	(void)state;
	me->switches.page = NULL;
	fd = accept_client(&client, &listener);
	assert_true(ca_peers_by_itself(listener));
	open_experiment();
	enter_s();
	waited_on = 0;
	for (int i = 0; i < 2; i++) {
		ask(fd);
		first = me->owed;
		thread_in_s(50000);
		w = get_after(fd, 20000);
		assert_true(w.by_itself);
		rt_logged(entries() - 1, CA_LOG_OFF, 0);
		ca_wait_end(&w);
		assert_int_equal(waited_on, i + 1);
		assert_in_range(me->owed - first, 25000, 10000000);
		assert_int_equal(owed_then, me->owed);
	}
	/* what was paid elsewhere is not waited for again; where others take the CPU meanwhile, that is owed */
	for (int tries = 0; tries < 5; tries++) {
		me->owed = 0;
		ask(fd);
		w = get_after(fd, 0);
		ca_wait_end(&w);
		if (me->owed < 20000)
			break;
	}
	assert_in_range(me->owed, 0, 20000);
	ca_self = NULL;
	close(client);
	close(listener);
	close(fd);
	me->switches.page = log;
}

/* A server that answers thousands of requests a second: it is not asked three times per request what its descriptors are,
 * and what there is to read or to take. */
static void clients_are_cheap(void **state)
{
	enum { MS = 1000000, WARM = 200 * MS, LONG = 40 * MS, LOOKS_AT_MOST = 20 };
	struct ca_waiting w;
	int client, listener, fd;
	uint64_t began, warm;
	unsigned requests = 0;

	(void)state;
	fd = accept_client(&client, &listener);
	open_experiment();
	thread_in_s(50000); /* there is a lag */
	began = warm = ca_clock_now();
	for (uint64_t now = began; now - warm < LONG; now = ca_clock_now(), requests++) {
		if (now - began < WARM) {
			of_file = of_data = requests = 0;
			warm = now;
		}
		ca_self = NULL; /* it is no part of the run */
		assert_int_equal(syscall(SYS_write, client, "?", 1), 1);
		ca_self = me;
		w = get_after(fd, 0);
		assert_int_equal(syscall(SYS_read, fd, &(char){ 0 }, 1), 1);
		ca_wait_end(&w);
		w = ca_wait_begin_write(fd, 1);
		assert_true(w.kind == CA_WAIT_EXTERNAL && w.lag);
		ca_wait_end(&w);
	}
	assert_true(requests > 100);                /* many per millisecond */
	assert_in_range(of_file, 1, LOOKS_AT_MOST); /* 4 to 5; without its age it would be 40 */
	/* none but where the machine holds a request up; it was one and two per request */
	assert_in_range(of_data, 0, LOOKS_AT_MOST);
	/* another one at its number, of which nobody tells, is found out */
	ca_self = NULL;
	assert_int_equal(syscall(SYS_dup3, STDERR_FILENO, fd, 0), fd);
	ca_self = me;
	assert_int_equal(poll(NULL, 0, 30), 0);
	assert_int_equal(ca_channel_of_fd(fd).kind, ca_channel_of_fd(STDERR_FILENO).kind);
	ca_self = NULL;
	close(client);
	close(listener);
	close(fd);
}

/* A call that blocks may be S itself, where S is sampled. */
static void calls_that_are_s(void **state)
{
	struct ca_waiting w;

	(void)state;
	s->selection.exact = 0;
	in_selection = true;
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1); /* no experiment */
	ca_wait_end(&w);
	open_experiment();
	w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	ca_wait_end(&w);
	assert_int_equal(entries(), 0);
	ca_wait_sleep(100000);
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	assert_int_equal(looks, 1);
	assert_int_equal(rt_logged(0, CA_LOG_ENTER, 0)->time, w.since);
	assert_int_equal(rt_logged(1, CA_LOG_EXTERNAL, 0)->time, w.since);
	assert_int_equal(s->log[1].value, w.until);
	pass(150000);
	ca_wait_end(&w);
	assert_int_equal(rt_logged(2, CA_LOG_ON, 0)->time, w.until);
	assert_int_equal(s->log[2].value, CA_LOG_EXTERNAL);
	assert_int_equal(rt_logged(3, CA_LOG_EXIT, 0)->time, w.until);
	assert_int_equal(me->owed, 0);
	assert_int_equal(waited_on, 0);
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1); /* of unknown length */
	pass(100000);
	was_off(w.since + 10000, w.since + 50000, false);
	ca_wait_end(&w);
	assert_in_range(rt_logged(7, CA_LOG_EXIT, 0)->time, w.since, ca_clock_now());
	assert_int_equal(rt_logged(6, CA_LOG_ON, 0)->time, s->log[7].time);
	/* left by a jump: the next wait, further out or in the same place, tells that it is over */
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	assert_int_equal(entries(), 10);
	in_selection = false;
	w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	assert_int_equal(entries(), 11);
	rt_logged(10, CA_LOG_EXIT, 0);
	ca_wait_end(&w);
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	ca_wait_end(&w);
	assert_int_equal(entries(), 11);
	assert_int_equal(waited_on, 1);
	/* one that has not waited: what others had of its CPU is not S */
	in_selection = true;
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	pass(100000);
	was_off(w.since + 10000, w.since + 50000, true);
	ca_wait_end(&w);
	assert_int_equal(rt_logged(13, CA_LOG_ON, 0)->time, w.since);
	assert_int_equal(rt_logged(14, CA_LOG_WAS_OFF, 0)->time, w.since + 10000);
	assert_int_equal(s->log[14].value, w.since + 50000);
	assert_in_range(rt_logged(15, CA_LOG_EXIT, 0)->time, w.since + 100000, ca_clock_now());
}

/* S that is timed is so up to the wait, which is told of from there on. */
static void waits_in_timed_s(void **state)
{
	uint64_t cycles, ns, behind = UINT64_MAX;
	struct ca_waiting w;
	double rate;

	(void)state;
	s->selection.fine = 1;
	ca_fine_init();
	ca_fine_join(me);
	open_experiment();
	cycles = ca_cpu_cycles();
	ns = ca_clock_now();
	pass(10000000);
	rate = (double)(ca_cpu_cycles() - cycles) / (double)(ca_clock_now() - ns);
	for (int i = 0; i < 100 && behind > 100; i++) { /* others may have the CPU between two readings */
		me->fine->entered = ca_cpu_cycles();
		me->fine->outer = UINTPTR_MAX;
		w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
		assert_int_not_equal(w.fine_s, 0);
		assert_int_equal(rt_logged(entries() - 2, CA_LOG_ENTER, 0)->time, w.since);
		cycles = ca_cpu_cycles();
		ns = ca_clock_now() - (uint64_t)((double)(cycles - me->fine->left) / rate);
		behind = ns > w.since ? ns - w.since : 0;
		ca_wait_end(&w);
		assert_int_equal(me->fine->outer, UINTPTR_MAX);
	}
	assert_in_range(behind, 0, 100);
	ca_patch_fine = &ca_patch_fine_nobody;
}

/* ---- what is told of a wait ------------------------------------------------------------------------------ */
/* The next thing that was told. */
static struct ca_event next_told(void)
{
	static const struct ca_event *event;
	static size_t n;

	if (!n)
		event = rt_told(&n);
	if (!n)
		return (struct ca_event){ 0 };
	n--;
	return *event++;
}

static void nothing_told(void)
{
	assert_int_equal(next_told().key, 0);
}

static void is_told(enum ca_event_kind kind, enum ca_key key, uint64_t value)
{
	struct ca_event e = next_told();

	assert_int_equal(e.key, key);
	assert_int_equal(e.kind, kind);
	assert_int_equal(e.value, value);
}

/* A read of what is in memory takes long on a CPU, and ticks see that; only the rest of it is a wait's. */
static void calls_on_a_cpu(void **state)
{
	struct ca_waiting w;
	void *log = me->switches.page;

	(void)state;
	for (int seen = 0; seen < 2; seen++) {
		me->tick.sees_kernel = seen;
		w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
		was_off(w.since + 10000, w.since + 15000, false);
		pass(50000);
		ca_wait_end(&w);
		assert_true(seen ? off_cpu == 5000 : off_cpu >= 50000);
	}
	me->tick.sees_kernel = false;
	me->switches.page = NULL;
	me->sleeps = UINT64_MAX;
	off_cpu = 0;
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	pass(50000);
	ca_wait_end(&w);
	assert_int_equal(off_cpu, 0);
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	sleep_for(50000);
	ca_wait_end(&w);
	assert_true(off_cpu >= 50000);
	me->switches.page = log;
}

#define STATE(kind, activity) is_told(CA_STATE_##kind, CA_KEY_STATE, CA_ACTIVITY_##activity)

/* How long a wait takes on a busy machine is anybody's guess: not what is told of long ones alone. */
static const uint64_t short_ones = ~(UINT64_C(1) << CA_KEY_WAIT);

static void told(void **state)
{
	struct ca_event e, end;
	struct ca_waiting w;
	int pair[2];

	(void)state;
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	STATE(BEGIN, IO); /* at once: one that never ends is seen, too */
	pass(25000);
	errno = 5;
	ca_wait_end(&w);
	assert_int_equal(errno, 5);
	assert_true(off_cpu > 20000);
	end = next_told();
	assert_int_equal(end.kind, CA_STATE_END);
	assert_int_equal(end.time - w.since, off_cpu);
	is_told(CA_POINT, CA_KEY_WAIT, CA_WAIT_EXTERNAL);
	nothing_told();
	/* one for others is no sample, even if it only turns out at the end */
	off_cpu = 0;
	w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	pass(25000);
	ca_wait_end(&w);
	STATE(BEGIN, OTHERS);
	STATE(END, OTHERS);
	is_told(CA_POINT, CA_KEY_WAIT, CA_WAIT_OTHERS);
	ca_self = NULL;
	assert_int_equal(pipe(pair), 0);
	ca_self = me;
	w = ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]);
	pass(25000);
	ca_wait_end(&w);
	assert_int_equal(off_cpu, 0);
	ca_self = NULL;
	close(pair[0]);
	close(pair[1]);
	ca_self = me;
	while ((e = next_told()).key)
		;
	/* what its wrapper says that it is, once */
	ca_rt.events = short_ones;
	ca_wait_is(CA_ACTIVITY_BARRIER, NULL);
	w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	STATE(BEGIN, BARRIER);
	ca_wait_end(&w);
	STATE(END, BARRIER);
	ca_rt.events = UINT64_MAX;
	ca_wait_sleep(1000);
	w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	STATE(BEGIN, SLEEP);
	pass(25000);
	ca_wait_end(&w);
	STATE(END, SLEEP);
	nothing_told(); /* time ends it, nobody */
}

/* A wait that was left by longjmp is over when the next one begins, further out or in the same place. */
static void told_of_a_jump(void **state)
{
	struct ca_waiting w;

	(void)state;
	ca_rt.events = short_ones;
	ca_wait_is(CA_ACTIVITY_LOCK, NULL);
	w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	STATE(BEGIN, LOCK);
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	STATE(END, LOCK);
	STATE(BEGIN, IO);
	ca_wait_end(&w);
	STATE(END, IO);
}

/* OpenMP's runtimes do not tell each end of a wait for the team, and tasks run in the midst of it. */
static void told_of_teams(void **state)
{
	struct ca_waiting team, lock;

	(void)state;
	ca_rt.events = short_ones;
	ca_wait_is(CA_ACTIVITY_TEAM, NULL);
	team = ca_wait_begin(CA_WAIT_OTHERS, -1);
	STATE(BEGIN, TEAM);
	me->waiting_sp = UINTPTR_MAX; /* the next one is further in */
	ca_wait_is(CA_ACTIVITY_TEAM, NULL);
	team = ca_wait_begin(CA_WAIT_OTHERS, -1);
	STATE(END, TEAM);
	STATE(BEGIN, TEAM);
	me->waiting_sp = UINTPTR_MAX;
	ca_wait_is(CA_ACTIVITY_LOCK, NULL);
	lock = ca_wait_begin(CA_WAIT_OTHERS, -1);
	STATE(END, TEAM);
	STATE(BEGIN, LOCK);
	ca_wait_end(&lock);
	STATE(END, LOCK);
	ca_wait_end(&team);
	nothing_told();
}

/* Who wakes whom: only where somebody waits, and only what came meanwhile. */
static void told_of_pairs(void **state)
{
	static int object, others[100];
	struct ca_waiting w;

	(void)state;
	ca_rt.events = short_ones;
	ca_wait_meet_at(&object);
	nothing_told();
	ca_wait_is(CA_ACTIVITY_LOCK, &object);
	w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	STATE(BEGIN, LOCK);
	ca_wait_meet_at(&others[50]);
	nothing_told();
	ca_wait_meet_at(&object);
	is_told(CA_PTP_BEGIN, CA_KEY_WAKE, 1);
	ca_wait_end(&w);
	is_told(CA_PTP_END, CA_KEY_WAKE, 1);
	STATE(END, LOCK);
	ca_wait_meet_at(&object);
	nothing_told();
	ca_wait_is(CA_ACTIVITY_LOCK, &object); /* nobody wakes it: a time limit */
	w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	ca_wait_end(&w);
	STATE(BEGIN, LOCK);
	STATE(END, LOCK);
	/* switched off */
	ca_rt.events = 0;
	ca_wait_is(CA_ACTIVITY_LOCK, &object);
	w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	ca_wait_meet_at(&object);
	ca_wait_end(&w);
	ca_rt.events = short_ones;
	nothing_told();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, rt_tear_down)

/* What others did while it paid for a look at the clock, it cannot have seen before the wait that the look was for. */
static void blind_in_a_look(void **state)
{
	uint64_t before = ca_cpu_cycles(), after;

	(void)state;
	ca_wait_pay();
	after = ca_cpu_cycles();
	assert_in_range(ca_wait_blind_since(), before, after);
	assert_in_range(ca_wait_blind_since(), before, after);
	ca_wait_meet();
	assert_true(ca_wait_blind_since() > after);
	/* nor is that kept for when the program is left alone: each wait would be over at once */
	ca_wait_pay();
	after = ca_cpu_cycles();
	atomic_store(&ca_rt.on, false);
	assert_true(ca_wait_blind_since() > after);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(meetings_pay),
		TEST(meetings_that_do_nothing),
		TEST(meetings_with_sampled_s),
		TEST(a_wait),
		TEST(waits_in_waits),
		TEST(waits_while_another_is_in_s),
		TEST(waits_in_s),
		TEST(waits_in_s_are_told_once),
		TEST(selected_anew_in_a_wait),
		TEST(waits_in_s_before_it_opens),
		TEST(calls_in_s),
		TEST(calls_in_s_uncounted),
		TEST(waits_in_timed_s),
		TEST(sleeps_in_s),
		TEST(sleeps_end),
		TEST(kinds_by_descriptor),
		TEST(asked_before),
		TEST(held_back),
		TEST(held_back_in_s),
		TEST(client_in_s),
		TEST(waits_that_are_sampled),
		TEST(calls_on_a_cpu),
		TEST(clients_are_cheap),
		TEST(calls_that_are_s),
		TEST(told),
		TEST(told_of_a_jump),
		TEST(told_of_teams),
		TEST(told_of_pairs),
		TEST(blind_in_a_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
