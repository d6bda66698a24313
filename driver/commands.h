/* SPDX-License-Identifier: MIT */
/* The subcommands of `causal`: the table of driver/commands.def. */
#ifndef CA_DRIVER_COMMANDS_H
#define CA_DRIVER_COMMANDS_H
#include <stdbool.h>
#include <stddef.h>

struct ca_command {
	const char *name, *arguments, *help; /* see driver/commands.def */
	/* argv[0] is the subcommand's name, or the program's where none was named. Returns the
	 * exit status. */
	int (*run)(int argc, char **argv);
};

/* The i-th row; NULL: there are not so many. */
const struct ca_command *ca_commands_get(size_t i);
/* NULL: no subcommand has that name. */
const struct ca_command *ca_commands_find(const char *name);
/* All those that causal has: it is followed by [OPTIONS]. */
bool ca_commands_take_options(const struct ca_command *command);

#define CA_COMMAND(name, ...)    int ca_cmd_##name(int argc, char **argv);
#define CA_COMMAND_AS(name, ...) int ca_cmd_##name(int argc, char **argv);
#include "driver/commands.def"

struct ca_job;
/* What all commands that run a program begin with: --help, --version, or run_job. */
int ca_cmd_sweep_by(char **argv, int (*run_job)(struct ca_job *job));

#endif
