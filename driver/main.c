/* SPDX-License-Identifier: MIT */
/* The command `causal`: hands the command line to the subcommand that it names, or that it is called after. */
#include "core/path.h"
#include "driver/commands.h"
#include "driver/help.h"
#include <signal.h>
#include <string.h>

/* "causal-sample" and the like. */
static const struct ca_command *called(const char *program)
{
	const char *name = ca_path_base(program), prefix[] = "causal-";

	return strncmp(name, prefix, sizeof prefix - 1) ? NULL : ca_commands_find(name + sizeof prefix - 1);
}

/* Those that take all options show all of them. */
static int run(const struct ca_command *command, int argc, char **argv)
{
	bool asks = argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));

	if (!asks || ca_commands_take_options(command))
		return command->run(argc, argv);
	ca_help_command(stdout, command);
	return fflush(stdout) != 0;
}

static void do_nothing(int sig)
{
	(void)sig;
}

/* A file that may not grow is a full disk: the write fails, and that is told. By a handler, since a program that we
 * start gets the signal as it was. */
static void expect_limits(void)
{
	struct sigaction old, here = { .sa_handler = do_nothing, .sa_flags = SA_RESTART };

	if (!sigaction(SIGXFSZ, NULL, &old) && old.sa_handler == SIG_DFL)
		sigaction(SIGXFSZ, &here, NULL);
}

int main(int argc, char **argv)
{
	const struct ca_command *named = argc ? called(argv[0]) : NULL;

	expect_limits();
	if (named)
		return run(named, argc, argv);
	named = argc > 1 ? ca_commands_find(argv[1]) : NULL;
	return named ? run(named, argc - 1, argv + 1) : ca_commands_get(0)->run(argc, argv);
}
