/* SPDX-License-Identifier: MIT */
/* A pipeline of three stages over bounded queues, 600, 700, 500: three busy threads.
 *
 * Expected with two cores: they are the bottleneck, 1800 / 2 = 900 an item, and stay it as
 * long as (1800 - x) / 2 is above the longest stage. s2 at 25: (600 + 525 + 500) / 2 = 812:
 * 9.7 if the scheduler were perfect; it is not (a thread that fills a queue runs on until
 * it blocks), so only the measured truth counts. Three or more cores: 700 an item, s2:
 * min(X, 14.3). */
#include "gt.h"
#include "queue.h"

GT_DEFINE_REGION(s1)
GT_DEFINE_REGION(s2)
GT_DEFINE_REGION(s3)
static struct queue q1 = QUEUE_INIT, q2 = QUEUE_INIT;

static void *stage1(void *p)
{
	uint64_t n = gt_amount("s1", 600);

	while (!atomic_load(&gt_stop)) {
		region_s1(n); /* GT_REGION s1 */
		queue_put(&q1);
	}
	queue_close(&q1);
	return p;
}

static void *stage2(void *p)
{
	uint64_t n = gt_amount("s2", 700);

	while (queue_get(&q1)) {
		region_s2(n); /* GT_REGION s2 */
		queue_put(&q2);
	}
	queue_close(&q2);
	return p;
}

static void *stage3(void *p)
{
	uint64_t n = gt_amount("s3", 500);

	while (queue_get(&q2)) {
		region_s3(n); /* GT_REGION s3 */
		GT_VISIT();
	}
	return p;
}

int main(int argc, char **argv)
{
	pthread_t t[3];

	gt_start(argc, argv, "s2");
	pthread_create(&t[0], NULL, stage1, NULL);
	pthread_create(&t[1], NULL, stage2, NULL);
	pthread_create(&t[2], NULL, stage3, NULL);
	gt_wait();
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	return gt_report();
}
