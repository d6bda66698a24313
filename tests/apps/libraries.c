/* SPDX-License-Identifier: MIT */
/* Libraries that come and go. Arguments: the case, and the path of plugin.so. */
#include "tests/apps/app.h"
#include <dlfcn.h>
#include <pthread.h>

static const char *path;
static long pieces;

static long run(void *library, double seconds)
{
	long (*f)(double);

	CHECK(library);
	f = (long (*)(double))dlsym(library, "plugin_run");
	CHECK(f);
	long n = f(seconds);

	pieces += n;
	return n;
}

static void case_open(void)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	CHECK(run(library, 1.5) > 0);
	CHECK(!dlclose(library));
	work_for(0.1);
}

static void case_reopen(void)
{
	for (int i = 0; i < 4; i++) {
		void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);

		run(library, 0.5);
		CHECK(!dlclose(library));
		/* the same address the next time */
	}
	work_for(0.1);
}

/* while an experiment on it is open */
static void case_churn(void)
{
	for (double end = now() + 2; now() < end;) {
		void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);

		run(library, 0.03);
		CHECK(!dlclose(library));
	}
}

static _Atomic bool over;

static void *works(void *unused)
{
	while (!over)
		work_once();
	return unused;
}

/* ... as quickly as it goes, while others work */
static void case_race(void)
{
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread[i], NULL, works, NULL));
	for (double end = now() + 2; now() < end;) {
		void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);

		run(library, 0.0005);
		CHECK(!dlclose(library));
	}
	over = true;
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_join(thread[i], NULL));
}

int main(int argc, char **argv)
{
	static const struct app_case cases[] = {
		{ "open", case_open },
		{ "reopen", case_reopen },
		{ "churn", case_churn },
		{ "race", case_race },
	};

	CHECK(argc > 2);
	path = argv[2];
	int status = RUN_CASE(cases, argc, argv);

	printf("pieces %ld\n", pieces);
	return status;
}
