/* SPDX-License-Identifier: MIT */
/* causal/runtime/feed.c: what comes too early from outside is held back. A real pipe; times are made up. */
#include "causal/runtime/feed.h"
#include "tests/unit/runtime.h"
#include <fcntl.h>
#include <sys/ioctl.h>

enum { KEY = 77, MS = 1000000, US = 1000 };
static int ends[2];
static uint64_t now, next_at, period;

static int set_up(void **state)
{
	(void)state;
	ca_feed_forget(KEY);
	now = MS;
	return pipe2(ends, O_NONBLOCK);
}

static int tear_down(void **state)
{
	(void)state;
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static void source_until(uint64_t time, size_t size)
{
	static const char message[4096];

	for (; next_at <= time; next_at += period)
		if (write(ends[1], message, size) < 0)
			return;
}

static int is_empty(void)
{
	int n = 0;

	return ioctl(ends[0], FIONREAD, &n) || n == 0;
}

/* Take one message as a thread does that waits for it; the time for which it is held back. */
static uint64_t take(size_t size, uint64_t lag)
{
	char data[4096];
	uint64_t hold;

	source_until(now, size);
	ca_feed_before(KEY, ends[0], now, lag);
	if (is_empty()) {
		now = next_at;
		source_until(now, size);
	}
	assert_int_equal(read(ends[0], data, size), size);
	hold = ca_feed_after(KEY, ends[0], size, now, lag);
	now += hold;
	return hold;
}

/* A feed with a message every 700, of which 500 are work, 400 of them S: with 50 % of it off every
 * second 200 are lost, and it must look as if the feed had a period of 900. */
static void keeps_its_rate(void **state)
{
	static const size_t sizes[] = { 1, 100 };
	enum { ROUNDS = 400, WORK = 500 * US, LOST = 200 * US };
	uint64_t lag, began;

	(void)state;
	for (unsigned i = 0; i < CA_COUNT(sizes); i++) {
		ca_feed_forget(KEY);
		period = 700 * US;
		next_at = now + period;
		take(sizes[i], lag = 0);
		began = now;
		for (unsigned k = 0; k < ROUNDS; k++) {
			now += WORK;
			lag += LOST;
			take(sizes[i], lag);
		}
		assert_in_range(now - began, ROUNDS * (period + LOST) - 2 * period,
				ROUNDS * (period + LOST) + 2 * period);
		/* and afterwards the lag stays, and so does the distance */
		began = now;
		for (unsigned k = 0; k < ROUNDS; k++) {
			now += WORK;
			take(sizes[i], lag);
		}
		assert_in_range(now - began, ROUNDS * period - 2 * period, ROUNDS * period + 2 * period);
		tear_down(state);
		assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	}
}

/* One that is always ahead, as far as there is room: nothing is held back for long. */
static void waits_for_room(void **state)
{
	enum { ROUNDS = 2000, SIZE = 4096 };
	uint64_t lag = 0, held = 0;

	(void)state;
	period = US;
	next_at = now;
	for (unsigned k = 0; k < ROUNDS; k++) {
		now += 500 * US;
		held += take(SIZE, lag += 200 * US);
		next_at = now;
	}
	assert_in_range(held, 0, ROUNDS * 10 * US);
}

static void starts_again(void **state)
{
	(void)state;
	period = 10 * MS;
	next_at = now + period;
	assert_int_equal(take(1, 0), 0);
	assert_int_equal(take(1, 3 * MS), 3 * MS); /* it has waited for it, and knows when it came */
	ca_feed_forget(KEY);
	next_at = now + period;
	assert_int_equal(take(1, 5 * MS), 0);
	assert_int_equal(take(1, 4 * MS), 0); /* a lag that falls is another run's */
	/* no longer than that, and then it is in step */
	period = 400 * MS;
	next_at = now + period;
	assert_int_equal(take(1, 904 * MS), 500 * MS);
	next_at = now + period;
	assert_int_equal(take(1, 904 * MS), 500 * MS);
	next_at = now + period;
	assert_int_equal(take(1, 914 * MS), 510 * MS - 10 * MS);
}

/* Feeds whose names lie together do not disturb each other, up to some. */
static void several(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(ca_feed_in_step(KEY + 32 * i, MS + i, 2 * MS), MS + i);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(ca_feed_in_step(KEY + 32 * i, 3 * MS, 3 * MS), MS + i);
	for (uint64_t i = 0; i < 5; i++)
		ca_feed_forget(KEY + 32 * i);
	assert_int_equal(ca_feed_in_step(KEY, 3 * MS, 4 * MS), 3 * MS);
	assert_int_equal(ca_feed_in_step(KEY, 9 * MS, 504 * MS), 4 * MS); /* no more than 500 ms */
	assert_int_equal(ca_feed_in_step(KEY, 3 * MS, 3 * MS), 3 * MS);   /* a lag that falls */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = { TEST(keeps_its_rate), TEST(waits_for_room),
						   TEST(starts_again), TEST(several) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
