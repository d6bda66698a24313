/* SPDX-License-Identifier: MIT */
/* What wrapped calls come to: what the log says of a wait in S, and that who hands something over has
 * paid first. Wrappers, waits and the ledger's log are real; paying is stood in for. */
#include "causal/runtime/peers.h"
#include "causal/runtime/wrap.h"
#include "core/sys.h"
#include "tests/unit/runtime.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static unsigned paid;

uint64_t ca_ledger_pay(struct ca_thread *t)
{
	paid++;
	t->owed = 0;
	return ca_clock_now();
}

bool ca_sample_in_selection(const struct ca_stack *stack, unsigned *outermost, unsigned *part)
{
	(void)stack, (void)outermost, (void)part;
	return false;
}

static int set_up(void **state)
{
	if (rt_set_up(state))
		return -1;
	paid = 0;
	s->selection.exact = 1;
	rt_open_experiment(500000);
	ca_ledger_accrue(me, ca_clock_now(), NULL);
	return 0;
}

static FILE *pipe_stream(int *other_end, const char *mode)
{
	int ends[2], in = *mode == 'r';

	assert_int_equal(pipe(ends), 0);
	*other_end = ends[in];
	return fdopen(ends[!in], mode);
}

/* The log has nothing but a wait of this kind. */
static void expect_wait(enum ca_log_type begin)
{
	assert_int_equal(atomic_load(&s->log_head), 2);
	rt_logged(0, begin, 0);
	assert_int_equal(rt_logged(1, CA_LOG_ON, 0)->value, begin);
	atomic_store(&s->log_head, 0);
	memset(s->log, 0, 4 * sizeof *s->log);
}

/* Somebody who writes that, when its reader has begun to wait. */
struct later {
	pthread_t thread;
	int fd;
	const char *text;
};

static void *write_later(void *arg)
{
	const struct later *l = arg;
	struct timespec nap = { 0, 50000000 };

	ca_sys(SYS_nanosleep, (long)(intptr_t)&nap, 0, 0, 0, 0, 0);
	ca_sys(SYS_write, l->fd, (long)(intptr_t)l->text, (long)strlen(l->text), 0, 0, 0);
	return NULL;
}

static void begin_later(struct later *l, int fd, const char *text)
{
	l->fd = fd;
	l->text = text;
	assert_int_equal(REAL(pthread_create)(&l->thread, NULL, write_later, l), 0);
}

static void streams_in_s(void **state)
{
	struct later later;
	char text[8];
	int other;
	FILE *in = pipe_stream(&other, "r"), *disk = tmpfile();

	(void)state;
	begin_later(&later, other, "abcdef");
	me->depth = 1;
	assert_int_equal(fread(text, 1, 3, in), 3); /* a pipe joins threads of the run: S stops */
	REAL(pthread_join)(later.thread, NULL);
	expect_wait(CA_LOG_OFF);
	assert_int_equal(fread(text, 1, 3, in), 3); /* that is in the buffer */
	assert_int_equal(atomic_load(&s->log_head), 0);
	fputs("ab", disk);
	atomic_store(&s->log_head, 0);
	memset(s->log, 0, 4 * sizeof *s->log);
	assert_int_equal(fflush(disk), 0); /* S's own */
	expect_wait(CA_LOG_EXTERNAL);
	me->depth = 0;
	fclose(in);
	fclose(disk);
	close(other);
}

static void raw_calls_in_s(void **state)
{
	struct later later;
	char c = 0;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	begin_later(&later, ends[1], "a");
	me->depth = 1;
	assert_int_equal(syscall(SYS_read, ends[0], &c, 1), 1);
	assert_int_equal(c, 'a');
	REAL(pthread_join)(later.thread, NULL);
	expect_wait(CA_LOG_OFF);
	me->depth = 0;
	close(ends[0]);
	close(ends[1]);
}

/* Room for what is written, and what is there to be read, are not waited for. */
static void goes_on_in_s(void **state)
{
	char c = 'a';
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	me->depth = 1;
	assert_int_equal(syscall(SYS_write, ends[1], &c, 1), 1);
	assert_int_equal(atomic_load(&s->log_head), 0);
	assert_int_equal(syscall(SYS_read, ends[0], &c, 1), 1);
	assert_int_equal(atomic_load(&s->log_head), 0);
	me->depth = 0;
	close(ends[0]);
	close(ends[1]);
}

static bool goes_on(int fd, size_t n, bool reads_all)
{
	struct ca_waiting w = reads_all ? ca_wait_begin_read_all(fd) : ca_wait_begin_write(fd, n);
	bool on = !atomic_load(&s->log_head);

	ca_wait_end(&w);
	atomic_store(&s->log_head, 0);
	memset(s->log, 0, 4 * sizeof *s->log);
	return on;
}

/* A call that comes back when all is there, or written, may wait although something is. sort, which reads 53,248 bytes
 * from a pipe at once, was in S while it waited for who pays because of that: for ever, at 100 %. */
static void stops_in_s(void **state)
{
	static char page[4096];
	int ends[2], pair[2], room;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ca_peers_made(ends); /* so that all of these are channels of the run */
	ca_peers_made(pair);
	room = fcntl(ends[1], F_GETPIPE_SZ);
	me->depth = 1;
	assert_true(goes_on(ends[1], (size_t)room, false));
	assert_false(goes_on(ends[1], (size_t)room + 1, false));
	assert_false(goes_on(ends[1], SIZE_MAX, false));
	assert_int_equal(ca_sys(SYS_write, ends[1], (long)(intptr_t)page, sizeof page, 0, 0, 0), sizeof page);
	assert_false(goes_on(ends[0], 0, true));
	assert_true(goes_on(ends[1], (size_t)room / 2 - sizeof page, false));
	assert_false(goes_on(ends[1], (size_t)room / 2, false));
	assert_true(goes_on(ends[1], PIPE_BUF, false));
	fcntl(ends[1], F_SETFL, O_WRONLY | O_NONBLOCK);
	assert_true(goes_on(ends[1], (size_t)room, false));
	assert_true(goes_on(pair[0], 65536, false));
	assert_false(goes_on(pair[0], 1 << 30, false));
	me->depth = 0;
	for (int i = 0; i < 2; i++) {
		close(ends[i]);
		close(pair[i]);
	}
}

static void owe(void)
{
	paid = 0;
	me->owed = 1000000;
	me->last_look = 0;
}

static jmp_buf end;

static void no_end(int status)
{
	(void)status;
	assert_int_equal(paid, 1);
	longjmp(end, 1);
}

static pid_t no_fork(void)
{
	assert_int_equal(paid, 1);
	return 4711;
}

static void paid_before(void **state)
{
	struct ca_real all = ca_real;
	int other;
	FILE *out = pipe_stream(&other, "w");

	(void)state;
	ca_real.fork = no_fork;
	owe();
	assert_int_equal(fork(), 4711);
	ca_real.exit = (__typeof__(ca_real.exit))(void *)no_end;
	owe();
	if (!setjmp(end))
		exit(3);
	ca_real = all;
	/* what is in a buffer nobody sees */
	fputs("a", out);
	owe();
	fputs("b", out);
	assert_int_equal(paid, 0);
	fflush(out);
	assert_int_equal(paid, 1);
	fclose(out);
	close(other);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, rt_tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(streams_in_s), TEST(raw_calls_in_s), TEST(goes_on_in_s),
		TEST(stops_in_s),   TEST(paid_before),
	};

	ca_real_resolve();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
