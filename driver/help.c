/* SPDX-License-Identifier: MIT */
/* --help, from the settings table; see driver/help.h. */
#include "driver/help.h"
#include "core/memstream.h"
#include "core/sink.h"
#include "driver/commands.h"
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 80, INDENT = 8 };

const char *ca_help_group(enum ca_setting_group group)
{
	static const char *const names[CA_GROUP_COUNT] = {
		[CA_GROUP_DEBUG] = "Debug options",
		[CA_GROUP_GENERAL] = "General options",
		[CA_GROUP_CAUSAL] = "Causal options",
		[CA_GROUP_COMBINATORIAL] = "Combinatorial options",
	};

	return names[group];
}

static bool has_default(const struct ca_setting *setting)
{
	return *setting->standard && setting->use != CA_USE_COMMAND && setting->id != CA_SETTING_VERBOSE;
}

bool ca_help_is_on(const struct ca_setting *setting)
{
	return setting->type == CA_TYPE_BOOL && !strcmp(setting->standard, "true");
}

void ca_help_choices(FILE *out, const struct ca_setting *setting)
{
	const struct ca_sink_ops *sink;

	if (*setting->choices)
		fprintf(out, "; one of: %s", setting->choices);
	for (size_t i = 0; setting->type == CA_TYPE_SINKS && (sink = ca_sink_get(i)); i++)
		fprintf(out, "%s %s (%s)", i ? "," : "; one of:", sink->name, sink->description);
}

char *ca_help_text(const struct ca_setting *setting)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fputs(setting->help, out);
	ca_help_choices(out, setting);
	if (has_default(setting))
		fprintf(out, "; default %s%s%s", setting->standard, *setting->unit ? " " : "", setting->unit);
	if (setting->use != CA_USE_COMMAND)
		fprintf(out, " [%s]", setting->env);
	ca_memstream_end(out, &text);
	return text;
}

static void put_wrapped(FILE *out, const char *text)
{
	size_t column = 0;

	for (const char *word = text; *word; word += strspn(word, " ")) {
		size_t length = strcspn(word, " ");

		if (column && column + 1 + length > WIDTH) {
			putc('\n', out);
			column = 0;
		}
		if (column)
			column += (size_t)fprintf(out, " %.*s", (int)length, word);
		else
			column = (size_t)fprintf(out, "%*s%.*s", INDENT, "", (int)length, word);
		word += length;
	}
	putc('\n', out);
}

/* The letter and all long names, the preferred one first. */
static void put_names(FILE *out, const struct ca_setting *setting)
{
	char option[64];
	const char *argument = setting->argument;

	ca_settings_option(setting, 0, option, sizeof option);
	if (*setting->letter)
		fprintf(out, "  -%s, --%s", setting->letter, option);
	else
		fprintf(out, "      --%s%s", ca_help_is_on(setting) ? "[no-]" : "", option);
	if (*argument)
		fprintf(out, "%s%s", argument[0] == '[' && argument[1] == '=' ? "" : " ", argument);
	for (size_t i = 1; ca_settings_option(setting, i, option, sizeof option); i++)
		fprintf(out, "%s--%s", i == 1 ? "  (also " : ", ", option);
	if (ca_settings_option(setting, 1, option, sizeof option))
		putc(')', out);
	putc('\n', out);
}

static void put_commands(FILE *out)
{
	const struct ca_command *command;

	fputs("\nSubcommands\n", out);
	for (size_t i = 0; (command = ca_commands_get(i)); i++) {
		fprintf(out, "  %s%s%s\n", command->name, *command->arguments ? " " : "", command->arguments);
		put_wrapped(out, command->help);
	}
}

void ca_help_command(FILE *out, const struct ca_command *command)
{
	fprintf(out, "Usage: causal %s %s\n\n", command->name, command->arguments);
	put_wrapped(out, command->help);
	fputs("\ncausal --help shows all subcommands and options.\n", out);
}

static void put_options(FILE *out)
{
	fputs("Usage: causal [OPTIONS] -- COMMAND [ARGUMENTS]\n"
	      "       causal COMMAND [ARGUMENTS]\n"
	      "       causal SUBCOMMAND [ARGUMENTS]\n\n"
	      "Predicts how much faster a program gets if parts of its code take less time.\n"
	      "Options end at --. If the first word is no option, everything is the command.\n"
	      "--no-X turns a switch off. causal -- NAME runs a program that has the name of a\n"
	      "subcommand.\n",
	      out);
	put_commands(out);
	for (int group = 0; group < CA_GROUP_COUNT; group++) {
		fprintf(out, "\n%s\n", ca_help_group((enum ca_setting_group)group));
		if (group == CA_GROUP_DEBUG)
			fputs("  -h, -?, --help[=TOPIC]\n"
			      "        Show this text; TOPIC: man, bash or config\n"
			      "      --version\n"
			      "        Show the version\n",
			      out);
		if (group == CA_GROUP_COMBINATORIAL)
			put_wrapped(out, "Each argument is a group. Every combination of one group per "
					 "option is a variant, and each variant is run once per "
					 "iteration.");
		for (size_t i = 0; i < CA_SETTING_COUNT; i++) {
			const struct ca_setting *setting = ca_settings_get((enum ca_setting_id)i);
			char *text;

			if ((int)setting->group != group)
				continue;
			put_names(out, setting);
			text = ca_help_text(setting);
			put_wrapped(out, text ? text : setting->help);
			free(text);
		}
	}
	fputs("\n"
	      "Exit status: the program's own; 126 and 127 as in a shell; 128+N for signal N;\n"
	      "2 for a mistake in the options.\n",
	      out);
}

static const struct topic {
	const char *name;
	void (*print)(FILE *out);
} topics[] = {
	{ "", put_options },
	{ "man", ca_help_man },
	{ "bash", ca_help_bash },
	{ "config", ca_help_config },
};

bool ca_help_print(FILE *out, const char *topic)
{
	for (size_t i = 0; i < sizeof topics / sizeof *topics; i++)
		if (!strcmp(topics[i].name, topic)) {
			topics[i].print(out);
			return true;
		}
	return false;
}
