/* SPDX-License-Identifier: MIT */
/* The command `causal`: hands the command line to the subcommand that it names. */
#include "driver/commands.h"

int main(int argc, char **argv)
{
	const struct ca_command *named = argc > 1 ? ca_commands_find(argv[1]) : NULL;

	return named ? named->run(argc - 1, argv + 1) : ca_commands_get(0)->run(argc, argv);
}
