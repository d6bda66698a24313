/* SPDX-License-Identifier: MIT */
/* Two threads that meet after each round, by several means, of which most first spin and then
 * sleep: one with 500 (region slow) and 50 (region rest), one with 350 (region fast). Linked as
 * meet-VARIANT, and with a fifth of the work as meet-VARIANT_short:
 *
 *   barrier    std::barrier
 *   semaphore  two std::counting_semaphore, a hand-over through one slot
 *   futex      a barrier that spins for some us, then sleeps in a futex of its own
 *   spin       a barrier that only spins
 *   yield      the fast one waits with sched_yield until the slow one has finished the round;
 *              the slow one waits only when it is a round ahead
 *
 * meet-VARIANT_two meets twice a round: after 400 (slow) and 300 (rest), against 300 (fast) and 200
 * (tail). A debt that the fast one has not paid before it comes to the first meeting is paid in the
 * second half, where it has time for it, and lengthens nothing.
 *
 * Expected: the period is max(550, 350). slow: 500 / 550 X = 0.909 X until X = 40. fast: 0. When
 * it is short, the wake-ups count. Two: max(400 (1 - X), 300) + 300, that is 0.571 X until
 * X = 25, less where the wake-ups come late. */
#include "two.h"
#include <barrier>
#include <linux/futex.h>
#include <sched.h>
#include <semaphore>
#include <sys/syscall.h>

GT_DEFINE_REGION(slow)
GT_DEFINE_REGION(rest)
GT_DEFINE_REGION(fast)
GT_DEFINE_REGION(tail)
enum { SLOW, FAST, SIDES };
static void (*meet)(int side);
static double unit = 1;
static bool twice;

static void pause_cpu()
{
#if defined __x86_64__ || defined __i386__
	__builtin_ia32_pause();
#else
	__asm__ volatile("" ::: "memory");
#endif
}

static void meet_barrier(int)
{
	static std::barrier barrier(SIDES);

	barrier.arrive_and_wait();
}

static void meet_semaphore(int side)
{
	static std::counting_semaphore<8> empty(1), full(0);

	(side == SLOW ? empty : full).acquire();
	(side == SLOW ? full : empty).release();
}

static std::atomic_int arrived, turn;

static void meet_and_spin(int spins, bool sleeps)
{
	int mine = turn.load();

	if (arrived.fetch_add(1) + 1 == SIDES) {
		arrived.store(0);
		turn.fetch_add(1);
		if (sleeps)
			syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, SIDES, NULL, NULL, 0);
		return;
	}
	for (int i = 0; turn.load() == mine; i++) {
		if (i < spins || !sleeps)
			pause_cpu();
		else
			syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, mine, NULL, NULL, 0);
	}
}

static void meet_futex(int)
{
	meet_and_spin(500, true);
}

static void meet_spin(int)
{
	meet_and_spin(0, false);
}

static void meet_yield(int side)
{
	static std::atomic_long rounds[SIDES];
	long mine = rounds[side].fetch_add(1) + 1, ahead = side == SLOW ? 1 : 0;

	while (rounds[!side].load() < mine - ahead)
		sched_yield();
}

/* Nobody may be left waiting: both end after the same round. */
static std::atomic_long last(-1);

static void *slow(void *p)
{
	uint64_t ns = gt_amount("slow", unit * (twice ? 400 : 500));
	uint64_t nr = gt_amount("rest", unit * (twice ? 300 : 50));

	for (long i = 0; last != i; i++) {
		if (atomic_load(&gt_stop))
			last = i + 1;
		region_slow(ns); /* GT_REGION slow */
		if (twice)
			meet(SLOW);
		region_rest(nr); /* GT_REGION rest */
		GT_VISIT();
		meet(SLOW);
	}
	return p;
}

static void *fast(void *p)
{
	uint64_t n = gt_amount("fast", unit * (twice ? 300 : 350)), nt = gt_amount("tail", unit * 200);

	for (long i = 0; last != i; i++) {
		region_fast(n); /* GT_REGION fast */
		if (twice) {
			meet(FAST);
			region_tail(nt); /* GT_REGION tail */
		}
		meet(FAST);
	}
	return p;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*meet)(int side);
	} means[] = {
		{ "barrier", meet_barrier }, { "semaphore", meet_semaphore }, { "futex", meet_futex },
		{ "spin", meet_spin },       { "yield", meet_yield },
	};

	meet = meet_barrier;
	for (auto &m : means)
		if (!strncmp(m.name, gt_variant(), strlen(m.name)))
			meet = m.meet;
	if (strstr(gt_variant(), "_short"))
		unit = 0.2;
	twice = strstr(gt_variant(), "_two");
	gt_start(argc, argv, "slow");
	return two_threads(slow, fast);
}
