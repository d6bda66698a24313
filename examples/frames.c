/* SPDX-License-Identifier: MIT */
/* Frames, as a game or a film makes them: two threads work side by side, meet, and one of them
 * writes the picture.
 *
 *   main    simulate_frame ----------+ write_frame -+ simulate_frame of the next ...
 *   painter draw_frame -----> (waits)+ (waits)------+ draw_frame of the next ...
 *
 * draw_frame is the second hottest, but only the two others decide how fast frames come out. README
 * says by how much.
 * Usage: frames [FRAMES] [FUNCTION=PERCENT]...
 * FUNCTION=PERCENT gives that function so much of its work: what it would really bring. */
#include <causal.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Kept as a function of its own in every build, so that it can be asked about by name. */
#define STAGE __attribute__((noinline))

/* A frame takes SIMULATE + WRITE of these, some 0.2 ms each. */
enum { UNIT = 130000, SIMULATE = 10, DRAW = 6, WRITE = 4 };

static struct {
	const char *function;
	unsigned steps;
} part[] = { { "simulate_frame", SIMULATE *UNIT },
	     { "draw_frame", DRAW *UNIT },
	     { "write_frame", WRITE *UNIT } };

static unsigned frames = 10000;
static uint64_t world, picture, file;
static pthread_barrier_t drawn, written;

/* Each step needs the result of the last: so a step takes the same time in all three functions,
 * alone on a core or beside another thread, and the amounts alone decide. */
static inline uint64_t work(uint64_t x, unsigned steps)
{
	while (steps--) {
		x ^= x >> 29;
		x *= 0xbf58476d1ce4e5b9;
	}
	return x;
}

STAGE static void simulate_frame(void)
{
	world = work(world + 1, part[0].steps);
}

STAGE static void draw_frame(void)
{
	picture = work(picture + 2, part[1].steps);
}

STAGE static void write_frame(void)
{
	file = work(file ^ world ^ picture, part[2].steps);
}

static void *paint(void *unused)
{
	for (unsigned i = 0; i < frames; i++) {
		draw_frame();
		pthread_barrier_wait(&drawn);
		pthread_barrier_wait(&written);
	}
	return unused;
}

static int set(const char *argument)
{
	double percent;
	char rest;

	for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
		size_t length = strlen(part[i].function);

		if (strncmp(argument, part[i].function, length) || argument[length] != '=')
			continue;
		if (sscanf(argument + length, "=%lf%c", &percent, &rest) != 1 ||
		    !(percent >= 0 && percent <= 1000))
			return 0;
		part[i].steps = (unsigned)(part[i].steps * percent / 100);
		return 1;
	}
	return sscanf(argument, "%u%c", &frames, &rest) == 1 && frames && *argument != '-';
}

int main(int argc, char **argv)
{
	struct timespec begin, end;
	pthread_t painter;

	for (int i = 1; i < argc; i++)
		if (!set(argv[i])) {
			fprintf(stderr, "usage: frames [FRAMES] [FUNCTION=PERCENT]...\n");
			return 2;
		}
	pthread_barrier_init(&drawn, NULL, 2);
	pthread_barrier_init(&written, NULL, 2);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (pthread_create(&painter, NULL, paint, NULL))
		return 1;
	for (unsigned i = 0; i < frames; i++) {
		simulate_frame();
		pthread_barrier_wait(&drawn);
		write_frame();
		CAUSAL_PROGRESS_NAMED("frame");
		pthread_barrier_wait(&written);
	}
	pthread_join(painter, NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%u frames, %.4f ms each (%016llx)\n", frames,
	       ((double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6) /
		       (double)frames,
	       (unsigned long long)file);
	return 0;
}
