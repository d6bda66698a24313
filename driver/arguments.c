/* SPDX-License-Identifier: MIT */
/* Arguments of the subcommands that read results; see driver/arguments.h. */
#include "driver/arguments.h"
#include "causal/results/profile.h"
#include "driver/say.h"
#include <stdlib.h>
#include <string.h>

/* The value of "NAME VALUE" or "NAME=VALUE" at argv[*i], which moves on; NULL: it is another word. */
static const char *take_value(const char *name, int argc, char **argv, int *i)
{
	size_t length = strlen(name);

	if (strncmp(argv[*i], name, length) != 0)
		return NULL;
	if (argv[*i][length] == '=' && name[1] == '-')
		return argv[*i] + length + 1;
	if (argv[*i][length] || *i + 1 >= argc)
		return NULL;
	return argv[++*i];
}

static bool take_option(int argc, char **argv, int *i, const struct ca_argument *list)
{
	for (; list->name; list++) {
		const char *value = take_value(list->name, argc, argv, i);

		if (value) {
			*list->text = value;
			return true;
		}
	}
	return false;
}

int ca_arguments_take(int argc, char **argv, const struct ca_argument *list)
{
	int words = 0;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--")) {
			while (i < argc)
				argv[++words] = argv[i++];
		} else if (*argv[i] != '-') {
			argv[++words] = argv[i];
		} else if (!take_option(argc, argv, &i, list)) {
			ca_say("%s: '%s' is not one of its options, or lacks its value; see causal --help",
			       argv[0], argv[i]);
			return -1;
		}
	}
	argv[words + 1] = NULL;
	return words;
}

bool ca_arguments_number(const char *command, const char *name, const char *text, double low, double high,
			 double *number)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || strcmp(end + (*end == '%'), "") != 0 || !(value >= low && value <= high)) {
		ca_say("%s: %s %s: give a number from %g to %g", command, name, text, low, high);
		return false;
	}
	*number = value;
	return true;
}

struct ca_profile *ca_arguments_profile(const char *command, const char *dir)
{
	struct ca_profile *profile;
	struct ca_err err;

	if (ca_profile_load(&profile, dir, &err)) {
		ca_say("%s: %s", command, err.text);
		return NULL;
	}
	if (profile->unread)
		ca_say("%s: %s: %zu lines of the run files could not be read and were left out", command, dir,
		       profile->unread);
	if (profile->runs)
		return profile;
	ca_say("%s: %s holds no run files (run-*.jsonl); name a directory that a sweep has written, as in: "
	       "causal -o DIR -- ./app",
	       command, dir);
	ca_profile_free(profile);
	return NULL;
}
