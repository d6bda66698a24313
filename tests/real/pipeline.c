/* SPDX-License-Identifier: MIT */
/* A log pipeline: one thread makes lines, one matches them against rules, one adds up.
 *
 *   make_line -> [queue] -> match_line -> [queue] -> add_line
 *
 * All three threads are busy. Only match_line decides how fast batches come out.
 * Usage: pipeline [BATCHES] */
#include <causal.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kept as a function of its own in every build, so that it can be asked about by name. */
#define STAGE __attribute__((noinline))

/* MAKE and ADD weigh the two other stages: each about a third of match_line. */
enum { MAKE = 14, ADD = 5 };
enum { LINES = 512, LINE = 96, QUEUE = 4, BUCKETS = 1024 };

struct batch {
	char line[LINES][LINE];
	unsigned matched[LINES];
};

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct batch *item[QUEUE];
	unsigned first, count;
};

static struct queue made = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, { 0 }, 0, 0 };
static struct queue matched = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, { 0 }, 0, 0 };
static unsigned batches = 3000;

static unsigned long seen[BUCKETS];

static void put(struct queue *queue, struct batch *item)
{
	pthread_mutex_lock(&queue->lock);
	while (queue->count == QUEUE)
		pthread_cond_wait(&queue->change, &queue->lock);
	queue->item[(queue->first + queue->count++) % QUEUE] = item;
	pthread_cond_broadcast(&queue->change);
	pthread_mutex_unlock(&queue->lock);
}

static struct batch *take(struct queue *queue)
{
	struct batch *item;

	pthread_mutex_lock(&queue->lock);
	while (queue->count == 0)
		pthread_cond_wait(&queue->change, &queue->lock);
	item = queue->item[queue->first];
	queue->first = (queue->first + 1) % QUEUE;
	queue->count--;
	pthread_cond_broadcast(&queue->change);
	pthread_mutex_unlock(&queue->lock);
	return item;
}

static char *append_number(char *to, uint32_t number)
{
	char digits[10];
	int n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	while (n)
		*to++ = digits[--n];
	return to;
}

STAGE static void make_line(char *line, uint32_t *seed)
{
	static const char agent[] = " agent=Example/1.0 path=/index/of/something/long";

	line = stpcpy(line, "user=");
	line = append_number(line, (*seed = *seed * 1664525 + 1013904223) >> 20);
	line = stpcpy(line, " status=");
	line = append_number(line, *seed >> 28 ? 200 : 500);
	line = stpcpy(line, " bytes=");
	line = append_number(line, *seed >> 8 & 0xffff);
	stpcpy(line, agent);
}

static void *make_batches(void *unused)
{
	uint32_t seed = 1;

	(void)unused;
	for (unsigned i = 0; i < batches; i++) {
		struct batch *batch = malloc(sizeof *batch);

		if (!batch)
			abort();
		for (unsigned repeat = 0; repeat < MAKE; repeat++)
			for (unsigned j = 0; j < LINES; j++)
				make_line(batch->line[j], &seed);
		put(&made, batch);
	}
	put(&made, NULL);
	return NULL;
}

static inline int starts_with(const char *text, const char *pattern)
{
	while (*pattern && *text == *pattern)
		text++, pattern++;
	return !*pattern;
}

/* Which rules match the line: each is tried at every place, slow as first versions are. */
STAGE static void match_line(struct batch *batch, unsigned i)
{
	static const char *const rule[] = { "user=1",   "user=2",   "user=3",   "status=2",
					    "status=3", "status=4", "status=5", "bytes=1",
					    "bytes=9",  "agent=A",  "agent=B",  "agent=E",
					    "path=/a",  "path=/b",  "path=/i",  "index" };
	unsigned matched = 0;

	for (unsigned r = 0; r < sizeof rule / sizeof *rule; r++)
		for (const char *at = batch->line[i]; *at; at++)
			if (starts_with(at, rule[r]))
				matched |= 1u << r;
	batch->matched[i] = matched;
}

static void *match_batches(void *unused)
{
	struct batch *batch;

	(void)unused;
	while ((batch = take(&made))) {
		for (unsigned i = 0; i < LINES; i++)
			match_line(batch, i);
		put(&matched, batch);
	}
	put(&matched, NULL);
	return NULL;
}

STAGE static void add_line(const struct batch *batch, unsigned i)
{
	uint32_t hash = 2166136261;

	for (unsigned repeat = 0; repeat < ADD; repeat++)
		for (const char *c = batch->line[i]; *c; c++)
			hash = (hash ^ (unsigned char)*c) * 16777619;
	seen[hash % BUCKETS] += batch->matched[i] & 1 << 6 ? 1 : 0; /* status=5xx */
}

static void add_batches(void)
{
	struct batch *batch;

	while ((batch = take(&matched))) {
		for (unsigned i = 0; i < LINES; i++)
			add_line(batch, i);
		free(batch);
		CAUSAL_PROGRESS_NAMED("batch");
	}
}

int main(int argc, char **argv)
{
	pthread_t maker, matcher;
	unsigned long errors = 0;

	if (argc > 1)
		batches = (unsigned)strtoul(argv[1], NULL, 10);
	if (pthread_create(&maker, NULL, make_batches, NULL) ||
	    pthread_create(&matcher, NULL, match_batches, NULL))
		return 1;
	add_batches();
	pthread_join(maker, NULL);
	pthread_join(matcher, NULL);
	for (unsigned i = 0; i < BUCKETS; i++)
		errors += seen[i];
	printf("%u batches, %lu errors\n", batches, errors);
	return 0;
}
