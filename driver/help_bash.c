/* SPDX-License-Identifier: MIT */
/* Bash completion and the sample configuration, from the settings table; see driver/help.h. */
#include "core/sink.h"
#include "driver/commands.h"
#include "driver/help.h"
#include "driver/once.h"
#include <stdlib.h>
#include <string.h>

static bool takes_value(const struct ca_setting *setting)
{
	return *setting->argument && *setting->argument != '[';
}

static void put_names(FILE *out, const struct ca_setting *setting)
{
	char option[64];

	for (size_t i = 0; ca_settings_option(setting, i, option, sizeof option); i++)
		fprintf(out, "%s--%s", i ? "|" : "", option);
	if (*setting->letter)
		fprintf(out, "|-%s", setting->letter);
}

static void put_sinks(FILE *out)
{
	const struct ca_sink_ops *sink;

	fputs("COMPREPLY=($(compgen -W '", out);
	for (size_t i = 0; (sink = ca_sink_get(i)); i++)
		fprintf(out, "%s%s", i ? " " : "", sink->name);
	fputs("' -- \"$word\"))", out);
}

static void put_commands(FILE *out, bool with_options)
{
	const struct ca_command *command;

	for (size_t i = 0; (command = ca_commands_get(i)); i++)
		if (!with_options || ca_commands_take_options(command))
			fprintf(out, "%s%s", i ? " " : "", command->name);
}

/* All options, or those that a run without experiments takes. */
static void put_options(FILE *out, bool (*is_meant)(enum ca_setting_id))
{
	fputs("--help --version", out);
	for (size_t i = 0; i < CA_SETTING_COUNT; i++) {
		const struct ca_setting *setting = ca_settings_get((enum ca_setting_id)i);
		char option[64];

		if (is_meant && !is_meant(setting->id))
			continue;
		for (size_t j = 0; ca_settings_option(setting, j, option, sizeof option); j++)
			fprintf(out, " --%s%s", ca_help_is_on(setting) ? "no-" : "", option);
		if (*setting->letter)
			fprintf(out, " -%s", setting->letter);
	}
}

/* The options that its arguments name, and what its first word may be: "pause|resume|finish". */
static void put_own(FILE *out, const struct ca_command *command)
{
	for (const char *at = command->arguments; *at;) {
		const char *word = at + (*at == '[');
		size_t length = strcspn(word, " ]=");

		if (!strncmp(word, "OPTIONS", length))
			fputs(" $options", out);
		else if (*word == '-' && length > 1 && strncmp(word, "--", length) != 0)
			fprintf(out, " %.*s", (int)length, word);
		else if (at == command->arguments && memchr(word, '|', length))
			for (size_t i = 0; i < length; i++)
				fprintf(out, "%s%c", i ? "" : " ", word[i] == '|' ? ' ' : word[i]);
		at += strcspn(at, " ");
		at += *at == ' ';
	}
}

/* Of commands that do not take all options. */
static void put_subcommands(FILE *out)
{
	const struct ca_command *command;

	fputs("\tlocal options='", out);
	put_options(out, NULL);
	fputs("' own= hide=\n"
	      "\t((COMP_CWORD < 2)) || case ${COMP_WORDS[1]} in\n"
	      "\ttrace) options='",
	      out);
	put_options(out, ca_once_is_general);
	fputs("';;\n", out);
	for (size_t i = 0; (command = ca_commands_get(i)); i++) {
		if (ca_commands_take_options(command) || !*command->arguments)
			continue;
		fprintf(out, "\t%s) own=\"", command->name);
		put_own(out, command);
		fputs("\";;\n", out);
	}
	fputs("\tesac\n"
	      "\tif [[ -n $own && \" ${COMP_WORDS[*]:2:COMP_CWORD-2} \" != *' -- '* ]]; then\n"
	      "\t\t[[ -n $word ]] || hide='-*'\n"
	      "\t\tCOMPREPLY=($(compgen -W \"$own\" -X \"$hide\" -- \"$word\") $(compgen -f -- \"$word\"))\n"
	      "\t\treturn\n\tfi\n",
	      out);
}

/* What may follow an option: choices, folders, files, or nothing that we know. */
static void put_case(FILE *out, const struct ca_setting *setting)
{
	if (!takes_value(setting) && setting->id != CA_SETTING_GENERATE_CONFIGS)
		return;
	fputs("\t", out);
	put_names(out, setting);
	fputs(")\n\t\t", out);
	if (setting->type == CA_TYPE_CHOICE)
		fprintf(out, "COMPREPLY=($(compgen -W '%s' -- \"$word\"))", setting->choices);
	else if (setting->type == CA_TYPE_SINKS)
		put_sinks(out);
	else if (setting->id == CA_SETTING_OUTPUT || setting->id == CA_SETTING_GENERATE_CONFIGS)
		fputs("COMPREPLY=($(compgen -d -- \"$word\"))", out);
	else if (setting->id == CA_SETTING_CONFIG_FILE || setting->id == CA_SETTING_RUNTIME)
		fputs("COMPREPLY=($(compgen -f -- \"$word\"))", out);
	else
		fputs("COMPREPLY=()", out);
	fputs("\n\t\treturn;;\n", out);
}

void ca_help_bash(FILE *out)
{
	fputs("# bash completion for causal\n"
	      "_causal()\n{\n"
	      "\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} i first=1\n",
	      out);
	put_subcommands(out);
	/* Those that take the same options. */
	fputs("\t((COMP_CWORD < 2)) || [[ ! ' ", out);
	put_commands(out, true);
	fputs(" ' =~ \" ${COMP_WORDS[1]} \" ]] || first=2\n", out);
	fputs("\tfor ((i = first; i < COMP_CWORD; i++)); do\n"
	      "\t\tif [[ ${COMP_WORDS[i]} == -- || ( $i == "
	      "$first && ${COMP_WORDS[i]} != -* ) ]]; then\n"
	      "\t\t\tif ((COMP_CWORD == i + 1)) && [[ ${COMP_WORDS[i]} == -- ]]; then\n"
	      "\t\t\t\tCOMPREPLY=($(compgen -c -- \"$word\") $(compgen -f -- \"$word\"))\n"
	      "\t\t\telse\n"
	      "\t\t\t\tCOMPREPLY=($(compgen -f -- \"$word\"))\n"
	      "\t\t\tfi\n"
	      "\t\t\treturn\n"
	      "\t\tfi\n"
	      "\tdone\n"
	      "\tcase $before in\n",
	      out);
	for (size_t i = 0; i < CA_SETTING_COUNT; i++)
		put_case(out, ca_settings_get((enum ca_setting_id)i));
	fputs("\tesac\n\tif [[ $word != -* ]]; then\n"
	      "\t\tCOMPREPLY=($(compgen -c -- \"$word\"))\n"
	      "\t\t((COMP_CWORD > 1)) || COMPREPLY+=($(compgen -W '",
	      out);
	put_commands(out, false);
	fputs("' -- \"$word\"))\n"
	      "\t\treturn\n\tfi\n"
	      "\tCOMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n}\n"
	      "complete -o filenames -o bashdefault -F _causal causal causal-sample\n",
	      out);
}

void ca_help_config(FILE *out)
{
	fputs("# Settings of causal with their defaults; remove the # before a KEY to set it.\n", out);
	for (int group = 0; group < CA_GROUP_COUNT; group++) {
		fprintf(out, "\n# ---- %s\n", ca_help_group((enum ca_setting_group)group));
		for (size_t i = 0; i < CA_SETTING_COUNT; i++) {
			const struct ca_setting *setting = ca_settings_get((enum ca_setting_id)i);

			if ((int)setting->group != group || setting->use == CA_USE_COMMAND)
				continue;
			fprintf(out, "\n# %s", setting->help);
			ca_help_choices(out, setting);
			if (*setting->unit)
				fprintf(out, "; in %s", setting->unit);
			fprintf(out, "\n#%s = %s\n", setting->env,
				*setting->standard ? setting->standard : "\"\"");
		}
	}
}
