/* SPDX-License-Identifier: MIT */
/* `causal merge`: the runs of several results directories in one, if they are of one program.
 * Driver's process, one thread. */
#include "causal/results/profile.h"
#include "causal/results/results_json.h"
#include "driver/arguments.h"
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/say.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Is the program's own binary among b's, wherever it lies? */
static bool has_program(const struct ca_profile *a, const struct ca_profile *b)
{
	for (size_t i = 0; i < b->binaries; i++)
		if (!strcmp(a->binary->build_id, b->binary[i].build_id))
			return true;
	return false;
}

/* Two builds of one binary, in the profiles of two directories; or other programs, or other modes. */
static bool go_together(const struct ca_profile *a, const char *dir_a, const struct ca_profile *b,
			const char *dir_b)
{
	for (size_t i = 0; i < a->binaries; i++)
		for (size_t j = 0; j < b->binaries; j++)
			if (!strcmp(a->binary[i].path, b->binary[j].path) &&
			    strcmp(a->binary[i].build_id, b->binary[j].build_id) != 0) {
				ca_say("merge: %s is not the same in %s and in %s (build-ids %.12s... and "
				       "%.12s...): these are two programs; causal compare shows how they "
				       "differ",
				       a->binary[i].path, dir_a, dir_b, a->binary[i].build_id,
				       b->binary[j].build_id);
				return false;
			}
	if (a->binaries && b->binaries && !has_program(a, b) && !has_program(b, a)) {
		ca_say("merge: %s in %s and %s in %s are two programs (build-ids %.12s... and %.12s...); "
		       "causal compare shows how they differ",
		       a->binary->path, dir_a, b->binary->path, dir_b, a->binary->build_id,
		       b->binary->build_id);
		return false;
	}
	if (strcmp(a->run[0].mode, b->run[0].mode) != 0 || a->run[0].end_to_end != b->run[0].end_to_end) {
		ca_say("merge: %s and %s were not measured in the same way (functions, lines, or end to "
		       "end)",
		       dir_a, dir_b);
		return false;
	}
	if (!a->binaries || !b->binaries)
		ca_say("merge: %s has no build-ids, so it is not known whether %s is of the same program",
		       a->binaries ? dir_b : dir_a, a->binaries ? dir_a : dir_b);
	return true;
}

/* The run record, the first that can be read, says which run it is; the others are as they were. */
static bool copy_run(FILE *from, FILE *to, unsigned number)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t length;
	bool first = true, ok = true;

	while (ok && (length = getline(&line, &size, from)) > 0) {
		struct json_object *record = first ? json_tokener_parse(line) : NULL;

		if (!strcmp(ca_results_json_string(record, "type"), "run")) {
			first = false;
			json_object_object_add(record, "run", json_object_new_int64(number));
			ok = fprintf(to, "%s\n",
				     json_object_to_json_string_ext(
					     record,
					     JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)) > 0;
		} else if (line[length - 1] == '\n') { /* the last one may be torn */
			ok = fwrite(line, 1, (size_t)length, to) == (size_t)length;
		}
		json_object_put(record);
	}
	free(line);
	return ok && feof(from) && !first;
}

static bool is_same(const struct ca_profile_run *a, const struct ca_profile_run *b)
{
	return a->time && a->time == b->time && a->seed == b->seed && !strcmp(a->command, b->command);
}

/* Is that run of the n-th profile also before it, there or in another one? */
static bool is_known(struct ca_profile *const *profile, int n, size_t run)
{
	for (int p = 0; p <= n; p++)
		for (size_t i = 0; i < (p < n ? profile[p]->runs : run); i++)
			if (is_same(&profile[p]->run[i], &profile[n]->run[run]))
				return true;
	return false;
}

static size_t count_known(struct ca_profile *const *profile, int n)
{
	size_t known = 0;

	for (size_t i = 0; i < profile[n]->runs; i++)
		known += is_known(profile, n, i);
	return known;
}

/* Twice the same experiments would look like twice as many. False: there is nothing to put together. */
static bool tell_known(char **dir, struct ca_profile *const *profile, int n)
{
	bool adds = n == 1;

	for (int i = 0; i < n; i++) {
		size_t known = count_known(profile, i);

		if (known)
			ca_say("merge: %zu of the %zu runs in %s are the same as others (start time, "
			       "seed and command); they are taken once",
			       known, profile[i]->runs, dir[i]);
		adds |= i && known < profile[i]->runs;
	}
	if (!adds)
		ca_say("merge: there is nothing to add to the runs in %s; name directories of different runs",
		       *dir);
	return adds;
}

static bool copy_new(const char *dir, struct ca_profile *const *all, int n, const char *output,
		     unsigned *number)
{
	const struct ca_profile *profile = all[n];

	for (size_t i = 0; i < profile->runs; i++) {
		char path[PATH_MAX];
		FILE *from, *to;
		bool ok;

		if (is_known(all, n, i))
			continue;
		snprintf(path, sizeof path, "%s/run-%04u.jsonl", dir, profile->run[i].number);
		from = fopen(path, "re");
		if (!from) {
			ca_say("merge: cannot read %s (%s)", path, strerror(errno));
			return false;
		}
		snprintf(path, sizeof path, "%s/run-%04u.jsonl", output, ++*number);
		to = fopen(path, "wxe");
		ok = to && copy_run(from, to, *number);
		ok = to && fclose(to) == 0 && ok;
		if (!ok)
			ca_say("merge: cannot write %s (%s)", path, strerror(errno));
		fclose(from);
		if (!ok)
			return false;
	}
	return true;
}

static bool is_empty(const char *dir)
{
	DIR *open_dir = opendir(dir);
	struct dirent *entry;
	bool empty = open_dir;

	while (empty && (entry = readdir(open_dir)))
		empty = *entry->d_name == '.';
	if (open_dir)
		closedir(open_dir);
	return empty;
}

static int write_merged(const char *output)
{
	struct ca_profile *profile = ca_arguments_profile("merge", output);
	struct ca_err err;
	int code = profile ? 0 : 1;

	if (profile && ca_profile_write(profile, output, &err)) {
		ca_say("merge: %s", err.text);
		code = 1;
	}
	if (!code)
		ca_say("merge: %zu runs in %s; look at them with: causal report %s", profile->runs, output,
		       output);
	ca_profile_free(profile);
	return code;
}

static int merge(char **dir, struct ca_profile **profile, int n, const char *output)
{
	unsigned number = 0;

	for (int i = 0; i < n; i++)
		if (!(profile[i] = ca_arguments_profile("merge", dir[i])))
			return CA_EXIT_USAGE;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++)
			if (!go_together(profile[j], dir[j], profile[i], dir[i]))
				return CA_EXIT_USAGE;
	if (!tell_known(dir, profile, n))
		return CA_EXIT_USAGE;
	if (mkdir(output, 0777) && (errno != EEXIST || !is_empty(output))) {
		ca_say("merge: '%s' cannot be the new directory (%s); name one that does not exist yet",
		       output, strerror(errno));
		return CA_EXIT_USAGE;
	}
	for (int i = 0; i < n; i++)
		if (!copy_new(dir[i], profile, i, output, &number))
			return 1;
	return write_merged(output);
}

int ca_cmd_merge(int argc, char **argv)
{
	const char *output = NULL;
	const struct ca_argument list[] = { { "-o", &output }, { NULL, NULL } };
	int words = ca_arguments_take(argc, argv, list), code = 1;
	struct ca_profile **profile;

	if (words < 1 || !output) {
		if (words >= 0)
			ca_say("merge: name directories with results and a new one, as in: causal merge "
			       "causal-out/A causal-out/B -o causal-out/BOTH");
		return CA_EXIT_USAGE;
	}
	profile = calloc((size_t)words, sizeof(struct ca_profile *));
	if (profile)
		code = merge(argv + 1, profile, words, output);
	else
		ca_say("merge: no memory");
	for (int i = 0; profile && i < words; i++)
		ca_profile_free(profile[i]);
	free(profile);
	return code;
}
