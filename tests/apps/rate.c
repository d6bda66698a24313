/* Works for a number of seconds, and says how many pieces of work it did in each tenth of one.
 * Half of the threads run what can be selected, the others are what is delayed. */
#include "tests/apps/app.h"
#include <pthread.h>

static double until;
static long done[1000];

__attribute__((noinline)) static void chosen(void)
{
	for (volatile int i = 0; i < 2000000; i++) /* long enough for probes at entry and exit */
		;
}

static void *chooses(void *unused)
{
	while (now() < until)
		chosen();
	return unused;
}

/* The time that /proc/uptime tells. */
static double uptime(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1, start = now(), up = uptime();
	pthread_t thread;

	until = start + seconds;
	CHECK(!pthread_create(&thread, NULL, chooses, NULL));
	for (double t; (t = now()) < until;) {
		for (volatile int i = 0; i < 2000; i++)
			;
		done[(int)((t - start) * 10)]++;
		CAUSAL_PROGRESS_NAMED("piece");
	}
	CHECK(!pthread_join(thread, NULL));
	for (int i = 0; i < (int)(seconds * 10); i++)
		printf("%d %.3f %ld\n", i, up + i / 10.0, done[i]);
	return 0;
}
