/* SPDX-License-Identifier: MIT */
/* The table of subcommands; see driver/commands.h. */
#include "driver/commands.h"
#include <string.h>

static const struct ca_command table[] = {
#define CA_COMMAND(name_, arguments_, help_)                                                                 \
	{ .name = #name_, .arguments = arguments_, .help = help_, .run = ca_cmd_##name_ },
#define CA_COMMAND_AS(name_, spelled_, arguments_, help_)                                                    \
	{ .name = spelled_, .arguments = arguments_, .help = help_, .run = ca_cmd_##name_ },
#include "driver/commands.def"
};

const struct ca_command *ca_commands_get(size_t i)
{
	return i < sizeof table / sizeof *table ? &table[i] : NULL;
}

const struct ca_command *ca_commands_find(const char *name)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (!strcmp(table[i].name, name))
			return &table[i];
	return NULL;
}

bool ca_commands_take_options(const struct ca_command *command)
{
	return !strncmp(command->arguments, "[OPTIONS]", strlen("[OPTIONS]"));
}
