/* SPDX-License-Identifier: MIT */
/* A library with a progress point and code that can be selected; opened by libraries.c. */
#include "tests/apps/app.h"

long plugin_run(double seconds);
__attribute__((visibility("default"))) long plugin_run(double seconds)
{
	long n = 0;

	for (double end = now() + seconds; now() < end; n++) {
		piece_of_work();
		CAUSAL_PROGRESS_NAMED("plugin");
	}
	return n;
}
