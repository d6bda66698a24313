/* SPDX-License-Identifier: MIT */
/* Stages with queues between them: linked once for each row of the table below, as queues-NAME.
 * The number in a name is that of the queues' places.
 *
 * Expected, with costs in the table: an item takes as long as the longest stage, once the queues are
 * as full as they stay. Each stage has a thread; all work is done on two CPUs.
 *   two*    600, 1000: second: min(X, 40). first: 0.
 *   late    850, 1000: second: min(X, 15). Its queue holds as much as the stage does in some seconds.
 *   slow20, slow200  as two, with units of 20 and 200 ms.
 *   three*  100, 1000, 300: second: X to 60, where both CPUs are busy. first, third: 0.
 *   burst   20 items at once for 20000, then 600 each: first: min(X, 40). second: 0.
 *   short03, short1, short5  as two, but only so many items that a run takes 0.3, 1 and 5 s. */
#include "gt.h"

GT_DEFINE_REGION(first)
GT_DEFINE_REGION(second)
GT_DEFINE_REGION(third)

struct queue {
	pthread_mutex_t m;
	pthread_cond_t can_put, can_get;
	int n, closed;
};
static struct queue queue[2] = {
	{ PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0 },
	{ PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0 },
};

static const struct row {
	const char *name;
	int places;
	double cost[3]; /* nominal us; 0: no such stage */
	int burst;
	double seconds; /* of work; 0: as long as --seconds says */
} rows[] = {
	{ "two4", 4, { 600, 1000, 0 }, 1, 0 },           { "two64", 64, { 600, 1000, 0 }, 1, 0 },
	{ "two1024", 1024, { 600, 1000, 0 }, 1, 0 },     { "late4096", 4096, { 850, 1000, 0 }, 1, 0 },
	{ "slow20", 64, { 12000, 20000, 0 }, 1, 0 },     { "slow200", 4, { 120000, 200000, 0 }, 1, 0 },
	{ "three4", 4, { 100, 1000, 300 }, 1, 0 },       { "three64", 64, { 100, 1000, 300 }, 1, 0 },
	{ "three1024", 1024, { 100, 1000, 300 }, 1, 0 }, { "burst64", 64, { 20000, 600, 0 }, 20, 0 },
	{ "short03", 64, { 600, 1000, 0 }, 1, 0.3 },     { "short1", 64, { 600, 1000, 0 }, 1, 1 },
	{ "short5", 64, { 600, 1000, 0 }, 1, 5 },
};
static const struct row *row = rows;
static long items = -1; /* -1: without an end */

static int put(struct queue *q)
{
	int ok;

	pthread_mutex_lock(&q->m);
	while (q->n == row->places && !atomic_load(&gt_stop))
		pthread_cond_wait(&q->can_put, &q->m);
	q->n++;
	ok = !atomic_load(&gt_stop);
	pthread_cond_signal(&q->can_get);
	pthread_mutex_unlock(&q->m);
	return ok;
}

static int get(struct queue *q)
{
	int ok;

	pthread_mutex_lock(&q->m);
	while (q->n == 0 && !q->closed && !atomic_load(&gt_stop))
		pthread_cond_wait(&q->can_get, &q->m);
	ok = q->n > 0 && !atomic_load(&gt_stop);
	q->n -= ok;
	pthread_cond_signal(&q->can_put);
	pthread_mutex_unlock(&q->m);
	return ok;
}

static void end(struct queue *q)
{
	pthread_mutex_lock(&q->m);
	q->closed = 1;
	pthread_cond_broadcast(&q->can_put);
	pthread_cond_broadcast(&q->can_get);
	pthread_mutex_unlock(&q->m);
}

static void *run_first(void *p)
{
	uint64_t n = gt_amount("first", row->cost[0]);
	long left = items;
	int ok = 1;

	while (ok && left) {
		region_first(n); /* GT_REGION first */
		for (int i = 0; i < row->burst && ok && left; i++, left -= left > 0)
			ok = put(&queue[0]);
	}
	end(&queue[0]);
	return p;
}

static void *run_second(void *p)
{
	uint64_t n = gt_amount("second", row->cost[1]);

	while (get(&queue[0])) {
		region_second(n); /* GT_REGION second */
		if (!row->cost[2])
			GT_VISIT();
		else if (!put(&queue[1]))
			break;
	}
	end(&queue[1]);
	return p;
}

static void *run_third(void *p)
{
	uint64_t n = gt_amount("third", row->cost[2]);

	while (get(&queue[1])) {
		region_third(n); /* GT_REGION third */
		GT_VISIT();
	}
	return p;
}

/* A run of a given number of items is measured from its beginning to its end. */
static void wait_for_all(pthread_t *thread, int threads)
{
	if (items < 0) {
		gt_wait();
		end(&queue[0]);
		end(&queue[1]);
	}
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	if (items > 0) {
		gt_warm.time = gt_t0;
		GT_SNAPSHOT(gt_end);
	}
}

int main(int argc, char **argv)
{
	static void *(*const stage[])(void *) = { run_first, run_second, run_third };
	const struct row *last = rows + sizeof rows / sizeof *rows - 1;
	pthread_t thread[3];
	int threads = 0;

	while (row < last && strcmp(row->name, gt_variant()))
		row++;
	gt_start(argc, argv, "second");
	if (row->seconds > 0)
		items = (long)(row->seconds * 1e6 / row->cost[1]);
	for (; threads < 3 && row->cost[threads] > 0; threads++)
		if (pthread_create(&thread[threads], NULL, stage[threads], NULL))
			return 1;
	wait_for_all(thread, threads);
	return gt_report();
}
