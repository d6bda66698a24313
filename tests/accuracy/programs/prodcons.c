/* SPDX-License-Identifier: MIT */
/* A producer (400) and a consumer (1000) over a bounded queue.
 *
 * Expected: the period is max(400, 1000) = 1000. consume: min(X, 60). produce: 0. */
#include "queue.h"
#include "two.h"

GT_DEFINE_REGION(consume)
GT_DEFINE_REGION(produce)
static struct queue q = QUEUE_INIT;

static void *producer(void *p)
{
	uint64_t n = gt_amount("produce", 400);

	while (!atomic_load(&gt_stop)) {
		region_produce(n); /* GT_REGION produce */
		queue_put(&q);
	}
	queue_close(&q);
	return p;
}

static void *consumer(void *p)
{
	uint64_t n = gt_amount("consume", 1000);

	while (queue_get(&q)) {
		region_consume(n); /* GT_REGION consume */
		GT_VISIT();
	}
	return p;
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "consume");
	return two_threads(producer, consumer);
}
