/* SPDX-License-Identifier: MIT */
/* `causal resume`: more runs for a results directory, with the command and the options of its last run.
 * Driver's process, one thread. */
#include "causal/results/profile.h"
#include "driver/arguments.h"
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/say.h"
#include <stdlib.h>
#include <string.h>

static size_t count(char *const *words)
{
	size_t n = 0;

	while (words && words[n])
		n++;
	return n;
}

/* What a sweep of that command line gets; the later of two options counts. */
static int resume(const struct ca_profile_run *run, char *dir, char **given)
{
	static char name[] = "causal", output[] = "-o", end[] = "--";
	size_t room = count(run->options) + count(given) + count(run->word) + 5, n = 0;
	char **argv = calloc(room, sizeof *argv);
	int code;

	if (!argv) {
		ca_say("resume: no memory");
		return 1;
	}
	argv[n++] = name;
	for (char **word = run->options; word && *word; word++)
		argv[n++] = *word;
	for (char **word = given; *word; word++)
		argv[n++] = *word;
	argv[n++] = output;
	argv[n++] = dir;
	argv[n++] = end;
	for (char **word = run->word; *word; word++)
		argv[n++] = *word;
	code = ca_commands_get(0)->run((int)n, argv);
	free(argv);
	return code;
}

int ca_cmd_resume(int argc, char **argv)
{
	struct ca_profile *profile;
	int code;

	if (argc < 2 || *argv[1] == '-') {
		ca_say("resume: name a directory with results, then what to add, as in: causal resume "
		       "causal-out/DIR -n 20");
		return CA_EXIT_USAGE;
	}
	for (char **word = argv + 2; *word; word++)
		if (!strcmp(*word, "--")) {
			ca_say("resume: it runs the command that %s was recorded with, and takes no "
			       "other behind --; to sweep another program: causal -o OTHER-DIR -- ./app",
			       argv[1]);
			return CA_EXIT_USAGE;
		}
	profile = ca_arguments_profile("resume", argv[1]);
	if (!profile)
		return CA_EXIT_USAGE;
	if (profile->run[profile->runs - 1].word) {
		code = resume(&profile->run[profile->runs - 1], argv[1], argv + 2);
	} else {
		ca_say("resume: %s does not say what was run", argv[1]);
		code = CA_EXIT_USAGE;
	}
	ca_profile_free(profile);
	return code;
}
