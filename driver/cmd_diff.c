/* SPDX-License-Identifier: MIT */
/* `causal diff`: two directories of samples, or two files of one kind, the second minus the first. What
 * kind that is, the files tell.
 * Driver's process, one thread. */
#include "driver/arguments.h"
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/diff.h"
#include "driver/say.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const struct ca_diff_kind *const kinds[] = { &ca_diff_callgraph };
enum { KINDS = sizeof kinds / sizeof *kinds };

/* NULL after a message. */
static struct json_object *read_file(const char *path, const struct ca_diff_kind **kind)
{
	struct json_object *file = json_object_from_file(path);

	if (!file) {
		ca_say("diff: %s cannot be read: %s", path, json_util_get_last_err());
		return NULL;
	}
	for (size_t i = 0; i < KINDS; i++)
		if (kinds[i]->is(file)) {
			*kind = kinds[i];
			return file;
		}
	json_object_put(file);
	ca_say("diff: %s holds nothing that can be compared; give two files of: %s (--sinks "
	       "callgraph=FILE.json)",
	       path, kinds[0]->name);
	return NULL;
}

static int print_files(const char *old_path, const char *now_path)
{
	const struct ca_diff_kind *kind[2] = { NULL, NULL };
	struct json_object *old = read_file(old_path, &kind[0]);
	struct json_object *now = old ? read_file(now_path, &kind[1]) : NULL;
	int code = CA_EXIT_USAGE;

	if (now && kind[0] != kind[1])
		ca_say("diff: %s is a %s, and %s is a %s", old_path, kind[0]->name, now_path, kind[1]->name);
	else if (now)
		code = kind[0]->print(old, now);
	json_object_put(old);
	json_object_put(now);
	return code;
}

static bool is_directory(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

int ca_cmd_diff(int argc, char **argv)
{
	const char *format = NULL, *of = NULL;
	const struct ca_argument list[] = { { "--format", &format }, { "--of", &of }, { NULL, NULL } };
	int words = ca_arguments_take(argc, argv, list), code;

	if (words != 2) {
		if (words >= 0)
			ca_say("diff: name two, the older one first: directories that causal sample has "
			       "written, or call graphs, as in: causal diff old.json new.json");
		return CA_EXIT_USAGE;
	}
	code = is_directory(argv[1]) ? ca_diff_samples(argv[1], argv[2], format, of)
				     : print_files(argv[1], argv[2]);
	if (fflush(stdout) || ferror(stdout)) {
		ca_say("diff: cannot write to standard output (%s)", strerror(errno));
		return 1;
	}
	return code;
}
