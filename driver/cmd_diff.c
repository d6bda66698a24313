/* SPDX-License-Identifier: MIT */
/* `causal diff`: two files of one kind, the second minus the first. What kind that is, the files tell.
 * Driver's process, one thread. */
#include "driver/arguments.h"
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/diff.h"
#include "driver/say.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

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

int ca_cmd_diff(int argc, char **argv)
{
	const struct ca_argument list[] = { { NULL, NULL } };
	int words = ca_arguments_take(argc, argv, list), code = CA_EXIT_USAGE;
	const struct ca_diff_kind *kind[2] = { NULL, NULL };
	struct json_object *old, *now;

	if (words != 2) {
		if (words >= 0)
			ca_say("diff: name two files, the older one first, as in: causal diff old.json "
			       "new.json");
		return CA_EXIT_USAGE;
	}
	old = read_file(argv[1], &kind[0]);
	now = old ? read_file(argv[2], &kind[1]) : NULL;
	if (now && kind[0] != kind[1])
		ca_say("diff: %s is a %s, and %s is a %s", argv[1], kind[0]->name, argv[2], kind[1]->name);
	else if (now)
		code = kind[0]->print(old, now);
	json_object_put(old);
	json_object_put(now);
	if (fflush(stdout) || ferror(stdout)) {
		ca_say("diff: cannot write to standard output (%s)", strerror(errno));
		return 1;
	}
	return code;
}
