/* Progress points chosen by causal against those in the code: each program is profiled with its
 * macros, and compiled without them and without -P. The chosen point should lead to the same top
 * region, and to the same prediction for it. */
#include "acc.h"
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_REGIONS = 16 };
#define AT 50.0    /* percent */
#define SAME 3.0   /* points */
#define WANTED 0.9 /* share of the programs */

struct regions {
	struct {
		char name[200];
		double effect, half; /* half of the interval */
	} region[MAX_REGIONS];
	size_t n;
	char point[240];
};

static double number(struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value) || !value)
		return NAN;
	return json_object_get_double(value);
}

static const char *text(struct json_object *object, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(object, key, &value) ? json_object_get_string(value) : "";
}

static struct json_object *array(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(object, key, &value);
	return json_object_is_type(value, json_type_array) ? value : NULL;
}

static void take_region(struct json_object *region, struct regions *out)
{
	struct json_object *points = array(region, "progress"), *curve;

	for (size_t i = 0; points && i < json_object_array_length(points); i++) {
		struct json_object *p = json_object_array_get_idx(points, i);

		if (strcmp(text(p, "point"), out->point) || !strcmp(text(p, "kind"), "latency") ||
		    !(curve = array(p, "curve")))
			continue;
		for (size_t k = 0; k < json_object_array_length(curve); k++) {
			struct json_object *at = json_object_array_get_idx(curve, k);

			if (fabs(number(at, "speedup") - AT) > 0.01 || out->n == MAX_REGIONS)
				continue;
			snprintf(out->region[out->n].name, sizeof out->region[0].name, "%s", text(region, "name"));
			out->region[out->n].effect = number(at, "effect");
			out->region[out->n++].half = (number(at, "high") - number(at, "low")) / 2;
		}
	}
}

static void read_profile(const char *dir, struct regions *out)
{
	char path[ACC_PATH + 32];
	struct json_object *profile, *regions;

	snprintf(path, sizeof path, "%s/profile.json", dir);
	profile = json_object_from_file(path);
	regions = profile ? array(profile, "regions") : NULL;
	for (size_t i = 0; regions && i < json_object_array_length(regions); i++)
		take_region(json_object_array_get_idx(regions, i), out);
	json_object_put(profile);
}

/* The best of what was chosen, or "": nothing. */
static void read_choice(const char *dir, char *point, size_t size)
{
	char path[ACC_PATH + 32];
	struct json_object *choice, *points;

	snprintf(path, sizeof path, "%s/progress.json", dir);
	choice = json_object_from_file(path);
	points = choice ? array(choice, "points") : NULL;
	*point = '\0';
	if (points && json_object_array_length(points))
		snprintf(point, size, "%s", text(json_object_array_get_idx(points, 0), "name"));
	json_object_put(choice);
}

/* One region of the program; the directory is shared by all of them, and so is the choice. */
static bool profile_region(const struct acc_options *options, const struct acc_case *c, const char *flavour,
			   const char *dir, bool first)
{
	char program[ACC_PATH], scope[256], log[ACC_PATH], seconds[32], runs[16];
	struct acc_run run;

	acc_program(options, c, flavour, program);
	snprintf(scope, sizeof scope, c->function ? "%s" : "^region_%s$", c->function ? c->function : c->region);
	snprintf(log, sizeof log, "%s/stderr.log", options->work);
	snprintf(seconds, sizeof seconds, "%g", options->seconds / options->runs);
	snprintf(runs, sizeof runs, "%d", options->runs);
	const char *argv[] = { options->causal, "-n", runs, "-F", scope, "-s", "0,50", "-o", dir, first ? "-r" : "--reset=no",
			       "--", program, "--seconds", seconds, NULL };

	return acc_run_once(argv, options->seconds * 2 + 60, log, &run) && !run.status;
}

static bool profile_all(const struct acc_options *options, const struct acc_case *c, const char *flavour,
			struct regions *out)
{
	char dir[ACC_PATH];
	bool first = true;

	snprintf(dir, sizeof dir, "%s/auto-%s-%s", options->work, flavour, c->program);
	memset(out, 0, sizeof *out);
	for (size_t i = 0; i < acc_case_count; i++) {
		if (strcmp(acc_cases[i].program, c->program) || acc_cases[i].flags & ACC_LATENCY)
			continue;
		if (!profile_region(options, &acc_cases[i], flavour, dir, first))
			return false;
		first = false;
	}
	if (strcmp(flavour, "plain"))
		strcpy(out->point, "work");
	else
		read_choice(dir, out->point, sizeof out->point);
	if (*out->point)
		read_profile(dir, out);
	return out->n > 0;
}

static long top_of(const struct regions *regions)
{
	long top = -1;

	for (size_t i = 0; i < regions->n; i++)
		if (!isnan(regions->region[i].effect) &&
		    (top < 0 || regions->region[i].effect > regions->region[top].effect))
			top = (long)i;
	return top;
}

static long find(const struct regions *regions, const char *name)
{
	for (size_t i = 0; i < regions->n; i++)
		if (!strcmp(regions->region[i].name, name))
			return (long)i;
	return -1;
}

/* 1 the same, 0 not, -1 could not be measured. */
static int compare(const struct acc_options *options, const struct acc_case *c, FILE *markdown)
{
	struct regions ours, theirs;
	long top, same, our_top;
	double difference;
	bool ok, first;

	if (!profile_all(options, c, "causal", &theirs) || (top = top_of(&theirs)) < 0) {
		printf("%-12s no profile with macros\n", c->program);
		return -1;
	}
	if (!profile_all(options, c, "plain", &ours)) {
		printf("%-12s MISSED: %s\n", c->program, *ours.point ? "no profile" : "no point was chosen");
		return 0;
	}
	our_top = top_of(&ours);
	same = find(&ours, theirs.region[top].name);
	difference = same < 0 ? NAN : ours.region[same].effect - theirs.region[top].effect;
	/* two regions that are as good as each other may change places */
	first = our_top == same || (our_top >= 0 && same >= 0 &&
				    ours.region[our_top].effect - ours.region[same].effect < SAME);
	ok = first && fabs(difference) <= SAME;
	printf("%-12s %-24s top %-16s with macros %5.1f ±%4.1f  chosen %5.1f ±%4.1f  off %5.1f  %s\n", c->program,
	       ours.point, theirs.region[top].name, theirs.region[top].effect, theirs.region[top].half,
	       same < 0 ? NAN : ours.region[same].effect, same < 0 ? NAN : ours.region[same].half, difference,
	       ok ? "ok" : first ? "OFF" : "OTHER REGION");
	if (markdown)
		fprintf(markdown, "| %s | `%s` | `%s` | %.1f ±%.1f | %.1f ±%.1f | %.1f | %s |\n", c->program,
			ours.point, theirs.region[top].name, theirs.region[top].effect, theirs.region[top].half,
			same < 0 ? NAN : ours.region[same].effect, same < 0 ? NAN : ours.region[same].half,
			difference, ok ? "yes" : "no");
	fflush(stdout);
	return ok;
}

static bool is_first(size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(acc_cases[k].program, acc_cases[i].program))
			return false;
	return true;
}

bool acc_auto(const struct acc_options *options, bool (*selected)(const void *context, const struct acc_case *c),
	      const void *context)
{
	FILE *markdown = options->markdown ? fopen(options->markdown, "w") : NULL;
	size_t n = 0, good = 0;

	if (markdown)
		fputs("| program | chosen | top region | with macros | chosen | off | same |\n"
		      "|---|---|---|---|---|---|---|\n", markdown);
	for (size_t i = 0; i < acc_case_count; i++) {
		char path[ACC_PATH];
		int same;

		if (!is_first(i) || !selected(context, &acc_cases[i]))
			continue;
		if (access(acc_program(options, &acc_cases[i], "plain", path), X_OK) ||
		    access(acc_program(options, &acc_cases[i], "causal", path), X_OK)) {
			printf("%-12s skipped: not built here\n", acc_cases[i].program);
			continue;
		}
		same = compare(options, &acc_cases[i], markdown);
		n += same >= 0;
		good += same > 0;
	}
	if (markdown)
		fclose(markdown);
	printf("\nthe same top region, and within %g points at %g %%: %zu of %zu programs\n", SAME, AT, good, n);
	return n && (double)good >= WANTED * (double)n;
}
