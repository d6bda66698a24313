/* Works for a number of seconds, and says how many pieces of work it did in each tenth of one.
 * Half of the threads run what can be selected, the others are what is delayed. */
#include "tests/apps/app.h"
#include <pthread.h>

static double until;
static long done[1000];

__attribute__((noinline)) static void chosen(void)
{
	for (volatile int i = 0; i < 20000; i++)
		;
}

static void *chooses(void *unused)
{
	while (now() < until)
		chosen();
	return unused;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1, start = now();
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
		printf("%d %.3f %ld\n", i, start + i / 10.0, done[i]);
	return 0;
}
