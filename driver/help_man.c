/* SPDX-License-Identifier: MIT */
/* The manual page, from the settings table; see driver/help.h. */
#include "driver/commands.h"
#include "driver/help.h"
#include <stdlib.h>
#include <string.h>

#ifndef PACKAGE_VERSION
#error "configure defines PACKAGE_VERSION"
#endif

static void put_escaped(FILE *out, const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", out);
	for (; *text; text++) {
		if (*text == '\\')
			fputs("\\e", out);
		else if (*text == '-')
			fputs("\\-", out);
		else
			putc(*text, out);
	}
}

static void put_option(FILE *out, const struct ca_setting *setting)
{
	const char *argument = setting->argument;
	char option[64], *text = ca_help_text(setting);

	fputs(".TP\n", out);
	if (*setting->letter)
		fprintf(out, "\\fB\\-%s\\fR, ", setting->letter);
	for (size_t i = 0; ca_settings_option(setting, i, option, sizeof option); i++) {
		fprintf(out, "%s\\fB\\-\\-%s", i ? ", " : "", ca_help_is_on(setting) ? "[no\\-]" : "");
		put_escaped(out, option);
		fputs("\\fR", out);
	}
	if (*argument) {
		fputs(argument[0] == '[' && argument[1] == '=' ? "\\fI" : " \\fI", out);
		put_escaped(out, argument);
		fputs("\\fR", out);
	}
	putc('\n', out);
	put_escaped(out, text ? text : setting->help);
	putc('\n', out);
	free(text);
}

static void put_options(FILE *out)
{
	fputs(".SH OPTIONS\n", out);
	for (int group = 0; group < CA_GROUP_COUNT; group++) {
		fprintf(out, ".SS %s\n", ca_help_group((enum ca_setting_group)group));
		if (group == CA_GROUP_DEBUG)
			fputs(".TP\n\\fB\\-h\\fR, \\fB\\-?\\fR, \\fB\\-\\-help\\fR[=\\fITOPIC\\fR]\n"
			      "Show the options, or \\fBman\\fR this page, \\fBbash\\fR a completion script, "
			      "\\fBconfig\\fR a configuration file with all defaults.\n"
			      ".TP\n\\fB\\-\\-version\\fR\nShow the version.\n",
			      out);
		if (group == CA_GROUP_COMBINATORIAL)
			fputs("Each argument is a group. Every combination of one group per option is a "
			      "variant; patterns within a group are separated by semicolons. The first "
			      "option below varies fastest, speedups slowest, and iterations are "
			      "outermost.\n",
			      out);
		for (size_t i = 0; i < CA_SETTING_COUNT; i++)
			if ((int)ca_settings_get((enum ca_setting_id)i)->group == group)
				put_option(out, ca_settings_get((enum ca_setting_id)i));
	}
}

static void put_aliases(FILE *out)
{
	static const struct alias {
		const char *name;
		enum ca_setting_id id;
	} aliases[] = {
#define CA_SETTING(...)
#define CA_SETTING_ALIAS(name, ID, form) { name, CA_SETTING_##ID },
#include "core/settings.def"
	};

	fputs(".PP\nIf a variable is not set, its other names are read:\n", out);
	for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
		fprintf(out, ".br\n%s for %s\n", aliases[i].name, ca_settings_get(aliases[i].id)->env);
}

static void put_commands(FILE *out)
{
	const struct ca_command *command;

	fputs(".SH SUBCOMMANDS\n", out);
	for (size_t i = 0; (command = ca_commands_get(i)); i++) {
		fprintf(out, ".TP\n\\fBcausal %s\\fR ", command->name);
		put_escaped(out, command->arguments);
		putc('\n', out);
		put_escaped(out, command->help);
		fputs(".\n", out);
	}
	fputs(".PP\nTo run a program that has the name of a subcommand, write \\fBcausal \\-\\- "
	      "\\fINAME\\fR.\n",
	      out);
}

void ca_help_man(FILE *out)
{
	fputs(".TH CAUSAL 1 \"\" \"causal " PACKAGE_VERSION "\" \"User Commands\"\n"
	      ".SH NAME\n"
	      "causal \\- predict how much faster a program gets if parts of its code take less time\n"
	      ".SH SYNOPSIS\n"
	      ".B causal\n[\\fIOPTIONS\\fR] \\fB\\-\\-\\fR \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n"
	      ".br\n.B causal\n\\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n"
	      ".br\n.B causal\n\\fISUBCOMMAND\\fR [\\fIARGUMENTS\\fR]\n"
	      ".SH DESCRIPTION\n"
	      "Runs the command once for every variant and iteration. Finds by experiment how much "
	      "faster the whole program would be if a function or line took less time: while that "
	      "code runs, everything else is slowed down, and the inserted time is subtracted.\n"
	      ".PP\n"
	      "The program's standard output stays as it is. All messages of causal go to standard "
	      "error. Options end at \\fB\\-\\-\\fR. If the first word is not an option, everything "
	      "is the command. \\fB\\-\\-no\\-\\fIX\\fR turns a switch off.\n",
	      out);
	put_commands(out);
	put_options(out);
	fputs(".SH CONFIGURATION\n"
	      "Files given with \\fB\\-\\-config\\fR have lines \\fIKEY\\fR = \\fIVALUE\\fR. The keys "
	      "are the names in brackets above. # begins a comment, and values may stand in quotes; "
	      "within \\(dq \\en is a new line, and \\e\\(dq and \\e\\e are the second character. "
	      "The command line overrides the environment, the environment overrides files, and "
	      "files override defaults.\n",
	      out);
	put_aliases(out);
	fputs(".SH FILES\n"
	      ".TP\n.I causal\\-out/<app>\\-<time>/run\\-NNNN.jsonl\n"
	      "The records of each run.\n"
	      ".TP\n.I profile.json\nAll runs of the directory together, with estimates.\n"
	      ".TP\n.I progress.json\nThe progress points that were chosen, if none were named.\n"
	      ".TP\n.I profile.coz\nThe same for Coz's viewer.\n"
	      ".TP\n.I ~/.cache/causal\nIndexes of programs and libraries; in \\fI$XDG_CACHE_HOME\\fR if "
	      "that is set, in \\fI/tmp/causal\\-UID\\fR where there is no home directory.\n"
	      ".SH EXIT STATUS\n"
	      "That of the first run that failed, else 0. 126: the command cannot be executed. 127: "
	      "it is not found. 128+\\fIN\\fR: signal \\fIN\\fR ended it. 2: there is a mistake in "
	      "the options.\n"
	      ".SH EXAMPLES\n"
	      ".TP\n.B causal \\-n 20 \\-\\- ./app\n"
	      "Twenty runs, functions of the program itself, progress points from its macros.\n"
	      ".TP\n.B causal \\-m line \\-e \\-s 0,25,50 \\-S 'parse\\e.c' \\-\\- ./app input\n"
	      "Lines of parse.c, three runs, each measured from beginning to end.\n",
	      out);
}
