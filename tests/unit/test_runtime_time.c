/* SPDX-License-Identifier: MIT */
/* Virtual time: causal/runtime/virtual_clock.c, deadline.c, timers.c and wrap_timer.c, over a session
 * in which another thread is in S for as long as a test wants. Real clocks and the kernel's timers. */
#include "causal/runtime/deadline.h"
#include "causal/runtime/timers.h"
#include "causal/runtime/virtual_clock.h"
#include "causal/runtime/wait.h"
#include "core/sys.h"
#include "tests/unit/runtime.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>

#define MS   UINT64_C(1000000)
#define LATE (900 * MS) /* others have the CPU; too early is what matters */
enum { HALF = 500000 };

static int set_up(void **state)
{
	int r = rt_set_up(state);

	s->virtual_clock = 1;
	return r;
}

static uint64_t read_as(struct ca_thread *t, clockid_t clock)
{
	struct timespec now;

	ca_self = t;
	assert_int_equal(ca_virtual_clock(clock, &now), 0);
	ca_self = me;
	return (uint64_t)now.tv_sec * CA_NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t v_now(void)
{
	return read_as(me, CLOCK_MONOTONIC);
}

static void pass(uint64_t ns)
{
	for (uint64_t until = ca_clock_now() + ns; ca_clock_now() < until;)
		;
}

static void enter(void)
{
	ca_ledger_log(CA_LOG_ENTER, &thread[1], ca_clock_now(), 0);
	ca_slot_set_add(&s->in_s, 1);
	atomic_store(&thread[1].slot->in_s, CA_IN_S);
}

static void leave(void)
{
	atomic_store(&thread[1].slot->in_s, 0);
	ca_ledger_log(CA_LOG_EXIT, &thread[1], ca_clock_now(), 0);
}

static void close_experiment(void)
{
	s->experiment.end = ca_clock_now();
	atomic_fetch_add(&s->experiment.seq, 1);
}

static void settle(uint64_t delay)
{
	atomic_fetch_add(&s->settled_delay, delay);
	atomic_store(&s->settled_seq, atomic_load(&s->experiment.seq));
}

/* The other thread is in S for that long while we wait for something. */
static void idle_in_s(uint64_t ns)
{
	static const enum ca_wait others = CA_WAIT_OTHERS;

	ca_ledger_accrue(me, ca_clock_now(), NULL);
	enter();
	pass(ns);
	leave();
	ca_ledger_accrue(me, ca_clock_now(), &others);
}

/* S is active for that long, at 50 %. Returns the real time for which it was. */
static uint64_t experiment(uint64_t ns)
{
	uint64_t from, to;

	rt_open_experiment(HALF);
	from = ca_clock_now();
	enter();
	pass(ns);
	leave();
	to = ca_clock_now();
	return to - from;
}

static void is_real(void)
{
	uint64_t before = ca_clock_now(), v = v_now(), after = ca_clock_now();

	assert_in_range(v, before, after);
}

/* ---- the clock --------------------------------------------------------------------------------------- */
static void real_at_first(void **state)
{
	(void)state;
	is_real();
	assert_int_equal(ca_virtual_lag(), 0);
	rt_open_experiment(0); /* nothing is delayed in it */
	is_real();
}

static void slows_down(void **state)
{
	uint64_t took, v, t, more;

	(void)state;
	t = ca_clock_now();
	v = v_now();
	took = experiment(4 * MS);
	t = ca_clock_now() - t;
	v = v_now() - v;
	more = t - v;
	assert_in_range(more, took / 2 - 100000, took / 2 + 100000);
	/* it is over: at full speed, but behind for good */
	close_experiment();
	more = ca_virtual_lag();
	pass(MS);
	assert_int_equal(ca_virtual_lag(), more);
	settle(more);
	assert_int_equal(ca_virtual_lag(), more);
	assert_int_equal(me->s_time, 0);
	took = experiment(2 * MS);
	more = ca_virtual_lag() - more;
	assert_in_range(more, took / 2 - 100000, took / 2 + 100000);
}

/* The driver's sum differs from what a thread knew, and one thread from another. */
static void never_goes_back(void **state)
{
	uint64_t v, next;

	(void)state;
	experiment(2 * MS);
	v = v_now();
	close_experiment();
	settle(3 * MS); /* more than this thread has accounted for */
	next = read_as(&thread[2], CLOCK_MONOTONIC);
	assert_true(next >= v);
	assert_true(v_now() >= next);
	pass(3 * MS);
	assert_in_range(ca_virtual_lag(), 3 * MS, 3 * MS); /* it has caught up */
}

/* A thread that comes in the midst of it knows what the others know. */
static void a_new_thread(void **state)
{
	uint64_t lag, its;

	(void)state;
	rt_open_experiment(HALF);
	enter();
	pass(3 * MS);
	lag = ca_virtual_lag();
	memset(&thread[3], 0, offsetof(struct ca_thread, readers));
	thread[3].number = 3;
	thread[3].slot = &s->slot[3];
	thread[3].switches.page = switch_log[3];
	ca_ledger_join(&thread[3], UINT32_MAX);
	its = thread[3].settled + thread[3].s_time / 2; /* at 50 % */
	assert_in_range(its, lag, lag + MS);
	assert_int_equal(thread[3].owed, 0);
	assert_int_equal(thread[3].inside_count, 1);
}

/* Who created it has looked just now, or is in S since: nobody else is asked. */
static void a_new_thread_of(void **state)
{
	static const struct {
		uint32_t creator;
		uint64_t ago;
		uint32_t in_s;
		uint64_t s_time;
	} cases[] = {
		{ 2, 10000, 0, 700 },
		{ 2, MS, CA_IN_S, 700 },
		{ 2, MS, 0, 500 },
		/* long ago */ { 2, MS, CA_IN_S | CA_IN_S_OFF, 500 },
		{ UINT32_MAX, 10000, 0, 500 },
		{ RT_THREADS + 1, 10000, 0, 500 },
	};

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		uint64_t now;

		assert_int_equal(rt_set_up(state), 0);
		rt_open_experiment(HALF);
		s->experiment.start -= 10 * (uint64_t)MS;
		now = ca_clock_now();
		for (uint32_t k = 1; k < 3; k++)
			atomic_store(&s->slot[k].experiment, atomic_load(&s->experiment.seq));
		atomic_store(&s->slot[1].s_time, 500);
		atomic_store(&s->slot[1].s_until, now - 1);
		atomic_store(&s->slot[2].s_time, 700);
		atomic_store(&s->slot[2].s_until, now - cases[i].ago);
		atomic_store(&s->slot[2].in_s, cases[i].in_s); /* not in the set: nothing goes on */
		memset(&thread[3], 0, offsetof(struct ca_thread, readers));
		thread[3].number = 3;
		thread[3].slot = &s->slot[3];
		thread[3].fine = &s->fine[3];
		ca_ledger_join(&thread[3], cases[i].creator);
		if (thread[3].s_time != cases[i].s_time)
			fail_msg("case %zu: %u", i, (unsigned)thread[3].s_time);
		rt_tear_down(state);
	}
	rt_set_up(state);
}

static void other_clocks(void **state)
{
	uint64_t lag, real;
	struct timespec now;

	(void)state;
	experiment(3 * MS);
	close_experiment();
	settle(10 * MS);
	lag = ca_virtual_lag();
	real = ca_clock_read(CLOCK_REALTIME);
	real -= read_as(me, CLOCK_REALTIME);
	assert_in_range(real, lag - MS, lag + MS);
	real = ca_clock_read(CLOCK_REALTIME);
	real -= read_as(me, CLOCK_REALTIME_COARSE);
	assert_in_range(real, lag - MS, lag + MS);
	real = ca_clock_read(CLOCK_BOOTTIME);
	real -= read_as(me, CLOCK_BOOTTIME);
	assert_in_range(real, lag - MS, lag + MS);
	real = ca_clock_thread_cpu();
	assert_true(read_as(me, CLOCK_THREAD_CPUTIME_ID) >= real);
	errno = 0;
	assert_int_equal(ca_virtual_clock(99, &now), -1);
	assert_int_equal(errno, EINVAL);
	for (uint64_t i = 0, v = 0, next; i < 20000; i++, v = next) {
		next = read_as(me, CLOCK_REALTIME);
		assert_true(next >= v);
	}
}

/* Switched off: it stays where it was, and goes on at full speed. */
static void switched_off(void **state)
{
	uint64_t lag;

	(void)state;
	experiment(2 * MS);
	lag = ca_virtual_lag();
	atomic_store(&ca_rt.on, false);
	pass(MS);
	assert_int_equal(ca_virtual_lag(), lag);
	ca_self = NULL; /* a thread that nobody knows */
	assert_int_equal(ca_virtual_lag(), lag);
	ca_self = me;
}

static void real_on_request(void **state)
{
	(void)state;
	s->virtual_clock = 0;
	experiment(2 * MS);
	is_real();
	assert_int_equal(ca_virtual_lag(), 0);
}

/* ---- time limits --------------------------------------------------------------------------------------- */
static void limits_move(void **state)
{
	struct timespec until = { 100, 999999000 }, bad = { 1, -1 }, to;
	struct ca_deadline d = ca_deadline_begin(true);
	uint64_t lag;

	(void)state;
	assert_ptr_equal(ca_deadline_real(&d, &until, &to), &until);
	assert_false(ca_deadline_moved(&d));
	d = ca_deadline_begin(true);
	experiment(2 * MS);
	errno = 17;
	assert_true(ca_deadline_moved(&d));
	assert_int_equal(errno, 17);
	lag = ca_virtual_lag();
	assert_ptr_equal(ca_deadline_real(&d, &until, &to), &to);
	assert_int_equal(to.tv_sec, 101);
	assert_int_equal(to.tv_nsec, 999999000 + (long)lag - 1000000000);
	assert_int_equal(me->slot->limited, 0);
	assert_false(ca_deadline_moved(&d));
	/* it has waited longer, and that counts as paying */
	assert_in_range(me->slot->limited, lag, lag);
	assert_ptr_equal(ca_deadline_real(&d, &bad, &to), &bad);
	assert_null(ca_deadline_real(&d, NULL, &to));
}

/* Where the limit moves all the time, and by more than a look at it takes, there is an end nevertheless: when
 * virtual time has come to it. */
static void limits_come(void **state)
{
	struct ca_deadline d;
	uint64_t looks = 0, late;

	(void)state;
	rt_open_experiment(HALF);
	d = ca_deadline_begin(true);
	enter();
	do { /* 4 ms by the program's clock, in which it is half as fast */
		uint64_t until = d.began + 4 * MS + d.lag - d.first;

		assert_true(looks++ < 100000);
		while (ca_clock_now() < until)
			;
		pass(MS / 50); /* a look takes long */
	} while (ca_deadline_moved(&d));
	late = ca_clock_now() - d.began;
	leave();
	assert_true(late > 7900000);
	assert_in_range(looks, late > 16 * MS ? 1 : 2, 100); /* fewer if it lost the CPU for long */
}

/* So does who looks at the clock until it is time; who only wants to know it does not wait. */
static void spins_wait(void **state)
{
	uint64_t lag;

	(void)state;
	experiment(2 * MS);
	lag = ca_virtual_lag();
	for (int i = 0; i < 40; i++) {
		pass(3000);
		v_now();
	}
	assert_int_equal(me->slot->limited, 0);
	for (int i = 0; i < 100000 && !me->slot->limited; i++)
		v_now();
	assert_in_range(me->slot->limited, lag, ca_virtual_lag());
}

/* A server notes when each request begins and ends, and reads and writes in between. */
static void servers_do_not_wait(void **state)
{
	struct ca_waiting w;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	experiment(2 * MS);
	for (int i = 0; i < 1000; i++) {
		w = i % 2 ? ca_wait_begin_write(pair[0], 1) : ca_wait_begin(CA_WAIT_EXTERNAL, pair[0]);
		w.delivered = i % 2 ? 0 : 10;
		ca_wait_end(&w);
		for (int k = 0; k < 9; k++)
			v_now();
	}
	assert_int_equal(me->slot->limited, 0);
	close(pair[0]);
	close(pair[1]);
}

static void lengths_move(void **state)
{
	struct ca_deadline d = ca_deadline_begin(true);
	uint64_t left;
	int tries = 0;

	(void)state;
	assert_int_equal(ca_deadline_left(&d, MS), 0); /* over as it should be */
	rt_open_experiment(HALF);
	do { /* it is over at once where others had the CPU meanwhile */
		d = ca_deadline_begin(true);
		enter();
		pass(4 * MS);
		leave();
		left = ca_deadline_left(&d, 4 * MS);
	} while (!left && tries++ < 50);
	assert_in_range(left, 1, 2 * MS + 100000);
	pass(left);
	assert_int_equal(ca_deadline_left(&d, 4 * MS), 0);
	assert_int_equal(ca_deadline_left(&d, UINT64_MAX), 0);
}

/* ---- timers ---------------------------------------------------------------------------------------------- */
static void virtual_timerfd(void **state)
{
	struct itimerspec every = { { 0, 5000000 }, { 0, 5000000 } }, now;
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	uint64_t v, n;
	ssize_t got = 0;

	(void)state;
	experiment(MS);
	v = v_now();
	assert_int_equal(timerfd_settime(fd, 0, &every, NULL), 0);
	idle_in_s(3 * MS); /* 1.5 ms of it are missing at the first expiry */
	assert_int_equal(read(fd, &n, sizeof n), sizeof n);
	v = v_now() - v;
	assert_in_range(v, 5 * MS, 5 * MS + LATE);
	assert_int_equal(timerfd_gettime(fd, &now), 0);
	assert_int_equal(now.it_interval.tv_nsec, 5000000);
	assert_in_range(now.it_value.tv_nsec, 0, 5000000);
	pass(11 * MS);
	assert_int_equal(read(fd, &n, sizeof n), sizeof n);
	assert_in_range(n, 2, 200);
	/* not blocking: it has not come yet, though the kernel thinks so */
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	every = (struct itimerspec){ { 0, 0 }, { 0, 2000000 } };
	assert_int_equal(timerfd_settime(fd, 0, &every, &now), 0);
	assert_int_equal(now.it_interval.tv_nsec, 5000000);
	for (int tries = 0; tries < 100 && got != -1; tries++) { /* it may, where others have the CPU */
		assert_int_equal(timerfd_settime(fd, 0, &every, NULL), 0);
		idle_in_s(3 * MS);
		errno = 0;
		got = read(fd, &n, sizeof n);
	}
	assert_int_equal(got, -1);
	assert_int_equal(errno, EAGAIN);
	pass(3 * MS);
	assert_int_equal(read(fd, &n, sizeof n), sizeof n);
	assert_int_equal(n, 1);
	close(fd);
}

/* What a wait tells to be ready can be read, and comes by virtual time. */
static void timerfd_in_waits(void **state)
{
	struct itimerspec once = { { 0, 0 }, { 0, 2000000 } };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), epoll = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };

	(void)state;
	experiment(MS);
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	for (int way = 0; way < 7; way++) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		struct timespec limit = { 10, 0 };
		struct timeval time = { 10, 0 };
		uint64_t v = v_now(), n = 0;
		fd_set set;

		FD_ZERO(&set);
		FD_SET(fd, &set);
		assert_int_equal(timerfd_settime(fd, 0, &once, NULL), 0);
		idle_in_s(3 * MS); /* 1.5 ms of it are missing when it expires */
		assert_int_equal(way == 0   ? poll(&p, 1, -1)
				 : way == 1 ? poll(&p, 1, 10000)
				 : way == 2 ? ppoll(&p, 1, &limit, NULL)
				 : way == 3 ? select(fd + 1, &set, NULL, NULL, NULL)
				 : way == 4 ? select(fd + 1, &set, NULL, NULL, &time)
				 : way == 5 ? epoll_wait(epoll, &event, 1, -1)
					    : epoll_wait(epoll, &event, 1, 10000),
				 1);
		assert_in_range(v_now() - v, 2 * MS - 3000, 2 * MS + LATE);
		assert_int_equal(read(fd, &n, sizeof n), sizeof n);
		assert_int_equal(n, 1);
		assert_true(way < 3 || way > 4 || FD_ISSET(fd, &set));
		/* who does not wait is told of nothing */
		for (int tries = 0, got = 1; got; tries++) { /* but where others have the CPU */
			assert_int_equal(timerfd_settime(fd, 0, &once, NULL), 0);
			idle_in_s(3 * MS);
			got = poll(&p, 1, 0);
			assert_true(tries < 100);
		}
		/* nor who does not wait for that long */
		time = (struct timeval){ 0, 1 };
		FD_SET(fd, &set);
		assert_int_equal(timerfd_settime(fd, 0, &once, NULL), 0);
		idle_in_s(3 * MS);
		n = (uint64_t)select(fd + 1, &set, NULL, NULL, &time);
		assert_int_equal(n, FD_ISSET(fd, &set) ? 1 : 0);
	}
	close(fd);
	close(epoll);
}

/* More of them than fit where one may lie, and one that was made behind our back. */
static void many_timerfds(void **state)
{
	enum { MANY = 80 };
	struct itimerspec when = { { 0, 0 }, { 0, 0 } };
	int fd[MANY + 1];
	uint64_t n, v;

	(void)state;
	experiment(10 * MS);
	for (int i = 0; i < MANY; i++)
		fd[i] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	fd[MANY] = (int)ca_sys(SYS_timerfd_create, CLOCK_MONOTONIC, 0, 0, 0, 0, 0);
	for (int i = 0; i <= MANY; i += MANY / 4) {
		v = v_now() + 2 * MS;
		when.it_value = (struct timespec){ (time_t)(v / CA_NS_PER_S), (long)(v % CA_NS_PER_S) };
		assert_int_equal(timerfd_settime(fd[i], TFD_TIMER_ABSTIME, &when, NULL), 0);
		assert_int_equal(read(fd[i], &n, sizeof n), sizeof n);
		v = v_now() - v;
		assert_in_range(v, 0, LATE);
	}
	for (int i = 0; i <= MANY; i++)
		close(fd[i]);
}

/* The descriptor belongs to something else meanwhile: that is read as it is. */
static void a_descriptor_again(void **state)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), pair[2];
	struct itimerspec once = { { 0, 0 }, { 0, 1000 } };
	uint64_t n = 0x0102030405060708;

	(void)state;
	experiment(MS);
	timerfd_settime(fd, 0, &once, NULL);
	assert_int_equal(pipe(pair), 0);
	assert_int_equal(write(pair[1], &n, sizeof n), sizeof n);
	dup2(pair[0], fd);
	n = 0;
	assert_int_equal(read(fd, &n, sizeof n), sizeof n);
	assert_int_equal(n, 0x0102030405060708);
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

static void virtual_timer(void **state)
{
	struct itimerspec every = { { 0, 5000000 }, { 0, 5000000 } }, now;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct timespec soon = { 0, 1000000 };
	timer_t timer;
	sigset_t set;
	uint64_t v, next;
	int number;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	experiment(MS);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	v = v_now();
	assert_int_equal(timer_settime(timer, 0, &every, NULL), 0);
	for (uint64_t i = 1; i <= 3; i++) {
		idle_in_s(2 * MS);
		assert_int_equal(sigwait(&set, &number), 0);
		assert_int_equal(number, SIGUSR1);
		next = v_now() - v;
		assert_in_range(next, 5 * i * MS, 5 * i * MS + LATE);
	}
	assert_int_equal(timer_gettime(timer, &now), 0);
	assert_int_equal(now.it_interval.tv_nsec, 5000000);
	assert_int_equal(timer_settime(timer, 0, &(struct itimerspec){ { 0, 0 }, { 0, 0 } }, NULL), 0);
	errno = 0;
	assert_int_equal(sigtimedwait(&set, NULL, &soon), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(timer_delete(timer), 0);
	assert_false(ca_timers_has(CA_TIMERS_POSIX, (long)(intptr_t)timer));
}

static volatile sig_atomic_t alarms;

static void alarmed(int number)
{
	(void)number;
	alarms++;
}

/* Whose signals come to handlers: armed anew before each wait, and at ticks. */
static void virtual_itimer(void **state)
{
	struct itimerval every = { { 0, 5000 }, { 0, 5000 } }, now, none = { { 0, 0 }, { 0, 0 } };
	uint64_t v, next, from;
	bool delayed = false;

	(void)state;
	alarms = 0;
	signal(SIGALRM, alarmed);
	experiment(MS);
	v = v_now();
	assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
	for (int i = 1; i <= 3; i++) {
		from = ca_clock_now();
		idle_in_s(2 * MS);
		delayed |= ca_clock_now() - from > 4 * MS; /* it may have come before we wait for it */
		while (alarms < i)
			pause();
		next = v_now() - v;
		if (delayed)
			continue;
		/* on the real clock the third would be 3 ms early */
		assert_in_range(next + 3 * MS / 2, 5 * (uint64_t)i * MS, 5 * (uint64_t)i * MS + LATE);
	}
	assert_int_equal(getitimer(ITIMER_REAL, &now), 0);
	assert_int_equal(now.it_interval.tv_usec, 5000);
	assert_int_equal(setitimer(ITIMER_REAL, &none, &now), 0);
	assert_in_range(now.it_value.tv_usec, 1, 5000);
	assert_int_equal(alarm(7), 0);
	assert_int_equal(alarm(0), 7);
	assert_int_equal(alarm(0), 0);
	signal(SIGALRM, SIG_DFL);
}

static void bad_timers(void **state)
{
	struct itimerspec bad = { { 0, 0 }, { 0, -5 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	timer_t timer;
	int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC);

	(void)state;
	experiment(MS);
	assert_int_equal(timerfd_settime(fd, 0, &bad, NULL), -1);
	assert_int_equal(errno, EINVAL);
	close(fd);
	assert_int_equal(timerfd_settime(fd, 0, &(struct itimerspec){ { 0, 0 }, { 1, 0 } }, NULL), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(timer_create(99, &event, &timer), -1);
	/* of CPU time: as it is */
	assert_int_equal(timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &bad, NULL), -1);
	assert_int_equal(timer_delete(timer), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, rt_tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(real_at_first),  TEST(slows_down),         TEST(never_goes_back),
		TEST(a_new_thread),   TEST(a_new_thread_of),    TEST(other_clocks),
		TEST(switched_off),   TEST(real_on_request),    TEST(limits_move),
		TEST(limits_come),    TEST(spins_wait),         TEST(servers_do_not_wait),
		TEST(lengths_move),   TEST(virtual_timerfd),    TEST(timerfd_in_waits),
		TEST(many_timerfds),  TEST(a_descriptor_again), TEST(virtual_timer),
		TEST(virtual_itimer), TEST(bad_timers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
