/* SPDX-License-Identifier: MIT */
/* Progress points chosen by causal against those in the code. Each program, compiled without
 * macros, is first run without -P; then with the chosen point and the line where the macro would be
 * (GT_VISIT), both counted in the same experiments, so that the state of the machine cancels. They
 * should lead to the same top region, and to the same prediction for it. */
#include "acc.h"
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_REGIONS = 16 };
#define AT       50.0 /* percent */
#define SAME     3.0  /* points */
#define SCOUTING 4.0  /* s of the run in which a point is chosen */
#define WANTED   0.9  /* share of the programs */

enum { CODE, CHOSEN, POINTS }; /* points */
struct regions {
	struct {
		char name[200];
		double effect[POINTS], half[POINTS]; /* half: of the interval */
	} region[MAX_REGIONS];
	size_t n;
	char point[POINTS][240];
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
	size_t n = out->n;

	if (n == MAX_REGIONS)
		return;
	snprintf(out->region[n].name, sizeof out->region[n].name, "%s", text(region, "name"));
	out->region[n].effect[CODE] = out->region[n].effect[CHOSEN] = NAN;
	for (size_t i = 0; points && i < json_object_array_length(points); i++) {
		struct json_object *p = json_object_array_get_idx(points, i);

		if (strcmp(text(p, "kind"), "throughput") || !(curve = array(p, "curve")))
			continue;
		for (size_t k = 0; k < json_object_array_length(curve); k++) {
			struct json_object *at = json_object_array_get_idx(curve, k);

			for (int which = 0; which < POINTS; which++) {
				if (fabs(number(at, "speedup") - AT) > 0.01 ||
				    strcmp(text(p, "point"), out->point[which]))
					continue;
				out->region[n].effect[which] = number(at, "effect");
				out->region[n].half[which] = (number(at, "high") - number(at, "low")) / 2;
			}
		}
	}
	out->n++;
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

/* FILE:LINE of the place where the macro would be; false: not there. */
static bool find_visit(const struct acc_options *options, const struct acc_case *c, char *point, size_t size)
{
	char path[ACC_PATH], line[512];
	unsigned number = 0;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", options->sources, c->source);
	f = fopen(path, "r");
	while (f && !found && fgets(line, sizeof line, f)) {
		number++;
		found = strstr(line, "GT_VISIT();") || strstr(line, "shim_visit() }");
	}
	if (f)
		fclose(f);
	snprintf(point, size, "%s:%u", c->source, number);
	return found;
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

/* scope, points: NULL: not given. fresh: forget what is in dir. */
static bool run_once(const struct acc_options *options, const struct acc_case *c, const char *dir,
		     double length, const char *scope, const struct regions *points, bool fresh)
{
	char program[ACC_PATH], log[ACC_PATH], seconds[32];
	const char *argv[24] = { options->causal, "-s", "0,50", "-o", dir };
	struct acc_run run;
	size_t n = 5;

	snprintf(log, sizeof log, "%s/stderr.log", options->work);
	snprintf(seconds, sizeof seconds, "%g", length);
	if (fresh)
		argv[n++] = "-r";
	if (scope) {
		argv[n++] = "-F";
		argv[n++] = scope;
	}
	for (int which = 0; points && which < POINTS; which++) {
		argv[n++] = "-P";
		argv[n++] = points->point[which];
	}
	argv[n++] = "--";
	argv[n++] = acc_program(options, c, "plain", program);
	argv[n++] = "--seconds";
	argv[n++] = seconds;
	argv[n] = NULL;
	return acc_run_once(argv, length * 3 + 60, log, &run) && !run.status;
}

/* False: no point was chosen, or a run failed. */
static bool profile_all(const struct acc_options *options, const struct acc_case *c, struct regions *out)
{
	char dir[ACC_PATH], scope[256];
	unsigned runs = 0;

	memset(out, 0, sizeof *out);
	snprintf(dir, sizeof dir, "%s/auto-%s", options->work, c->program);
	if (!find_visit(options, c, out->point[CODE], sizeof out->point[CODE]) ||
	    !run_once(options, c, dir, SCOUTING, NULL, NULL, true))
		return false;
	read_choice(dir, out->point[CHOSEN], sizeof out->point[CHOSEN]);
	if (!*out->point[CHOSEN])
		return false;
	snprintf(dir, sizeof dir, "%s/both-%s", options->work, c->program);
	for (size_t i = 0; i < acc_case_count; i++) {
		const struct acc_case *k = &acc_cases[i];

		if (strcmp(k->program, c->program) || k->flags & ACC_LATENCY)
			continue;
		snprintf(scope, sizeof scope, k->function ? "%s" : "^region_%s$",
			 k->function ? k->function : k->region);
		for (int run = 0; run < options->runs; run++)
			if (!run_once(options, c, dir, options->seconds / options->runs, scope, out, !runs++))
				return false;
	}
	read_profile(dir, out);
	return true;
}

static long top_of(const struct regions *regions, int which)
{
	long top = -1;

	for (size_t i = 0; i < regions->n; i++)
		if (!isnan(regions->region[i].effect[which]) &&
		    (top < 0 || regions->region[i].effect[which] > regions->region[top].effect[which]))
			top = (long)i;
	return top;
}

/* 1 the same, 0 not, -1 could not be measured. */
static int compare(const struct acc_options *options, const struct acc_case *c, FILE *markdown)
{
	struct regions r;
	bool ok, same, ran = profile_all(options, c, &r);
	long top = top_of(&r, CODE), ours = top_of(&r, CHOSEN);
	double off;

	if (*r.point[CODE] && !*r.point[CHOSEN]) {
		printf("%-12s MISSED: no point was chosen\n", c->program);
		return 0;
	}
	if (!ran || top < 0) {
		printf("%-12s could not be measured\n", c->program);
		return -1;
	}
	off = r.region[top].effect[CHOSEN] - r.region[top].effect[CODE];
	/* two regions that are as good as each other may change places */
	same = ours == top ||
	       (ours >= 0 && r.region[ours].effect[CHOSEN] - r.region[top].effect[CHOSEN] < SAME);
	ok = same && fabs(off) <= SAME;
	printf("%-12s %-20s top %-16s in the code %5.1f ±%4.1f  chosen %5.1f ±%4.1f  off %5.1f  "
	       "%s\n",
	       c->program, r.point[CHOSEN], r.region[top].name, r.region[top].effect[CODE],
	       r.region[top].half[CODE], r.region[top].effect[CHOSEN], r.region[top].half[CHOSEN], off,
	       ok     ? "ok"
	       : same ? "OFF"
		      : "OTHER REGION");
	if (markdown)
		fprintf(markdown, "| %s | `%s` | `%s` | %.1f | %.1f | %.1f | %s |\n", c->program,
			r.point[CHOSEN], r.region[top].name, r.region[top].effect[CODE],
			r.region[top].effect[CHOSEN], off, ok ? "yes" : "no");
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

bool acc_auto(const struct acc_options *options,
	      bool (*selected)(const void *context, const struct acc_case *c), const void *context)
{
	FILE *markdown = options->markdown ? fopen(options->markdown, "w") : NULL;
	size_t n = 0, good = 0;

	if (markdown)
		fputs("| program | chosen point | top region | at 50 %, by the point in the code | "
		      "by the chosen one | off | same |\n"
		      "|---|---|---|---|---|---|---|\n",
		      markdown);
	for (size_t i = 0; i < acc_case_count; i++) {
		char path[ACC_PATH];
		int same;

		if (!is_first(i) || !selected(context, &acc_cases[i]))
			continue;
		if (access(acc_program(options, &acc_cases[i], "plain", path), X_OK)) {
			printf("%-12s skipped: not built here\n", acc_cases[i].program);
			continue;
		}
		same = compare(options, &acc_cases[i], markdown);
		n += same >= 0;
		good += same > 0;
	}
	if (markdown)
		fclose(markdown);
	printf("\nthe same top region, and within %g points at %g %%: %zu of %zu programs\n", SAME, AT, good,
	       n);
	return n && (double)good >= WANTED * (double)n;
}
