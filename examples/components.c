/* SPDX-License-Identifier: MIT */
/* Components of a program's own, in a bundle. What a component has is called, what it has not is left out:
 * prints  A/spam B/foo,bar C/foo D/spam
 * Then a bundle of what CAUSAL_COMPONENTS names measures some work: CAUSAL_COMPONENTS=wall,cpu,switches */
#include <causal_measure.h>
#include <stdlib.h>

static const char *between; /* the names of who is called */

static void called(const char *name)
{
	printf("%s%s", between, name);
	between = ",";
}

static void sample_foo(void *state)
{
	(void)state;
	called("foo");
}

static void sample_bar(void *state, long value)
{
	*(long *)state += value;
	called("bar");
}

static const char *get_bar(const void *state, unsigned i, double *value)
{
	*value = (double)*(const long *)state;
	return i ? NULL : "bar";
}

static void start_spam(void *state, long value)
{
	(void)state;
	(void)value;
	called("spam");
}

static void stop_spam(void *state)
{
	(void)state;
	called("spam");
}

static const struct causal_component foo = { .label = "foo", .sample = sample_foo };
static const struct causal_component bar = {
	.label = "bar", .size = sizeof(long), .sample_value = sample_bar, .get = get_bar
};
static const struct causal_component spam = { .label = "spam", .start_value = start_spam, .stop = stop_spam };

static void say(const char *what)
{
	printf("%s", what);
	between = "/";
}

static void demonstrate(void)
{
	struct causal_bundle *bundle;

	causal_component_register(&foo);
	causal_component_register(&bar);
	causal_component_register(&spam);
	bundle = causal_bundle_open("demo", "foo,bar,spam");
	say("A");
	causal_bundle_start_value(bundle, 5);
	say(" B");
	causal_bundle_sample_value(bundle, 10);
	say(" C");
	causal_bundle_sample(bundle);
	say(" D");
	causal_bundle_stop(bundle);
	printf("\n");
	causal_bundle_print(bundle, stdout);
	causal_bundle_close(bundle);
}

int main(void)
{
	struct causal_bundle *bundle;

	demonstrate();
	bundle = causal_bundle_open("work", NULL);
	for (int lap = 0; lap < 3; lap++) {
		volatile char *page;

		causal_bundle_start(bundle);
		page = malloc(64 << 12);
		for (int i = 0; page && i < 64; i++)
			page[i << 12] = 1;
		free((void *)page);
		causal_bundle_stop(bundle);
	}
	causal_bundle_print(bundle, stdout);
	causal_bundle_close(bundle);
	return 0;
}
