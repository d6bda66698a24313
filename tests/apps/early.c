/* SPDX-License-Identifier: MIT */
/* A library whose constructor starts a thread and uses locks before anything else has run, and
 * whose destructor works on. */
#include "tests/apps/app.h"
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread;
static bool stop;

static void *runs(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		work_once();
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
		CAUSAL_PROGRESS_NAMED("early");
	}
	return unused;
}

__attribute__((constructor)) static void begin(void)
{
	struct timespec a_little = { 0, 1000000 };

	pthread_mutex_lock(&lock);
	pthread_create(&thread, NULL, runs, NULL);
	nanosleep(&a_little, NULL);
	pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void end(void)
{
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	work_for(0.05);
}
