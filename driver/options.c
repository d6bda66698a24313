/* SPDX-License-Identifier: MIT */
/* The command line of `causal`; see driver/options.h. All names come from the settings table. */
#include "driver/options.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct parser {
	struct ca_options *options;
	char **at;      /* the next word */
	bool separator; /* there is a "--" further on */
	struct ca_err *err;
};

/* One option as written: "--name=value" or "-n5" taken apart. */
struct word {
	const struct ca_setting *setting;
	char name[96];     /* with dashes, without value */
	const char *value; /* NULL: none attached */
	bool negated;      /* --no-X */
};

/* "-5" and "-.5" are numbers; "-" is a name for standard input. */
static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] && !isdigit((unsigned char)word[1]) && word[1] != '.';
}

static bool is_integer(const char *word)
{
	char *end;

	strtol(word, &end, 10);
	return end != word && !*end;
}

static bool is_truth(const char *word)
{
	static const char *const words[] = { "true", "false", "yes", "no", "on", "off", "0", "1" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strcasecmp(word, words[i]))
			return true;
	return false;
}

static bool takes_list(const struct ca_setting *setting)
{
	size_t length = strlen(setting->argument);

	return length > 3 && !strcmp(setting->argument + length - 3, "...") &&
	       setting->id != CA_SETTING_SINKS;
}

static bool is_axis(const struct ca_setting *setting)
{
	return setting->group == CA_GROUP_COMBINATORIAL;
}

static enum ca_status no_memory(struct parser *parser)
{
	return ca_err_set(parser->err, CA_ERR_NOMEM, "no memory for the options");
}

/* ---- storing ------------------------------------------------------------------- */

static enum ca_status assign(struct parser *parser, const struct word *word, const char *text)
{
	struct ca_options *options = parser->options;
	struct ca_assignment *grown;
	char *name = strdup(word->name), *copy = strdup(text);

	grown = realloc(options->assignment, (options->assignments + 1) * sizeof *grown);
	if (grown)
		options->assignment = grown;
	if (!grown || !name || !copy) {
		free(name);
		free(copy);
		return no_memory(parser);
	}
	grown[options->assignments++] =
		(struct ca_assignment){ .id = word->setting->id, .name = name, .text = copy };
	return CA_OK;
}

static enum ca_status add_group(struct parser *parser, const struct word *word, const char *text)
{
	struct ca_axis *axis = &parser->options->axis[word->setting->id - CA_AXIS_FIRST];
	char **grown = realloc(axis->group, (axis->count + 1) * sizeof *grown);

	if (!grown)
		return no_memory(parser);
	axis->group = grown;
	axis->group[axis->count] = strdup(text);
	if (!axis->group[axis->count])
		return no_memory(parser);
	axis->count++;
	if (!axis->name)
		axis->name = strdup(word->name);
	return axis->name ? CA_OK : no_memory(parser);
}

/* Several words become one setting: paths joined by ':', others by ';'. */
static enum ca_status add_more(struct parser *parser, const struct word *word, const char *text)
{
	char separator = word->setting->id == CA_SETTING_CONFIG_FILE ? ':' : ';';
	struct ca_options *options = parser->options;
	struct ca_assignment *last = NULL;
	char *joined;

	for (size_t i = 0; i < options->assignments; i++)
		if (options->assignment[i].id == word->setting->id)
			last = &options->assignment[i];
	if (!last)
		return assign(parser, word, text);
	if (asprintf(&joined, "%s%c%s", last->text, separator, text) < 0)
		return no_memory(parser);
	free(last->text);
	last->text = joined;
	return CA_OK;
}

static enum ca_status add_value(struct parser *parser, const struct word *word, const char *text)
{
	if (is_axis(word->setting))
		return add_group(parser, word, text);
	if (takes_list(word->setting))
		return add_more(parser, word, text);
	return assign(parser, word, text);
}

/* ---- recognising --------------------------------------------------------------- */

static enum ca_status unknown(struct parser *parser, const char *word)
{
	const char *near = NULL;
	char name[96];

	snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
	if (word[1] == '-')
		near = ca_settings_near_option(name + 2);
	else if (strlen(name) > 2)
		near = ca_settings_near_option(name + 1);
	if (near)
		return ca_err_set(parser->err, CA_ERR_USAGE, "unknown option %s; did you mean --%s?", name,
				  near);
	return ca_err_set(parser->err, CA_ERR_USAGE,
			  "unknown option %s; causal --help lists all (the program's own options "
			  "go after --)",
			  name);
}

static bool find_long(struct word *word, const char *text)
{
	char name[96];
	size_t length = strcspn(text, "=");

	if (length >= sizeof name)
		return false;
	snprintf(name, sizeof name, "%.*s", (int)length, text);
	word->value = text[length] ? text + length + 1 : NULL;
	word->setting = ca_settings_find_option(name);
	if (!word->setting && !strncmp(name, "no-", 3)) {
		word->setting = ca_settings_find_option(name + 3);
		word->negated = word->setting && word->setting->type == CA_TYPE_BOOL;
		if (!word->negated)
			word->setting = NULL;
	}
	snprintf(word->name, sizeof word->name, "--%.90s", name);
	return word->setting;
}

static bool find_short(struct word *word, const char *text)
{
	char letter[8];
	size_t length = strcspn(text, "=");

	if (length < sizeof letter) {
		snprintf(letter, sizeof letter, "%.*s", (int)length, text);
		word->setting = ca_settings_find_letter(letter);
		word->value = text[length] ? text + length + 1 : NULL;
	}
	if (!word->setting && isdigit((unsigned char)text[1])) { /* -n20 */
		snprintf(letter, sizeof letter, "%c", text[0]);
		word->setting = ca_settings_find_letter(letter);
		word->value = text + 1;
		if (word->setting && word->setting->type != CA_TYPE_INT &&
		    word->setting->type != CA_TYPE_REAL)
			word->setting = NULL;
	}
	if (word->setting)
		snprintf(word->name, sizeof word->name, "-%s", word->setting->letter);
	return word->setting;
}

/* ---- arguments ----------------------------------------------------------------- */

static enum ca_status parse_flag(struct parser *parser, const struct word *word)
{
	const char *text = word->value ? word->value : "true";

	if (word->negated) {
		if (word->value)
			return ca_err_set(parser->err, CA_ERR_USAGE, "%s takes no value", word->name);
		text = "false";
	} else if (!word->value && parser->separator && *parser->at && is_truth(*parser->at)) {
		/* Before "--" a lone word can only be this option's value. */
		text = *parser->at++;
	}
	return assign(parser, word, text);
}

static enum ca_status no_speedups(const char *name, struct ca_err *err)
{
	return ca_err_set(err, CA_ERR_USAGE, "%s needs speedups, as in: %s 0 10 20-50", name, name);
}

static enum ca_status parse_list(struct parser *parser, const struct word *word)
{
	enum ca_status status = CA_OK;
	size_t count = 0;

	if (word->value)
		return add_value(parser, word, word->value);
	for (; !status && *parser->at && !is_option(*parser->at); count++)
		status = add_value(parser, word, *parser->at++);
	if (!count && word->setting->id == CA_SETTING_FIXED_SPEEDUP)
		return no_speedups(word->name, parser->err);
	if (!count && word->setting->id == CA_SETTING_PROGRESS)
		return ca_err_set(parser->err, CA_ERR_USAGE,
				  "%s needs a progress point, as in: %s file.c:12; %s list shows "
				  "what there is",
				  word->name, word->name, word->name);
	return status;
}

static enum ca_status parse_optional(struct parser *parser, const struct word *word)
{
	const char *argument = word->setting->argument, *next = *parser->at;
	bool attached_only = argument[1] == '=';
	bool integer = word->setting->type == CA_TYPE_INT;

	if (word->value)
		return add_value(parser, word, word->value);
	if (!attached_only && next && (integer ? is_integer(next) : !is_option(next))) {
		parser->at++;
		return add_value(parser, word, next);
	}
	if (!integer)
		return add_value(parser, word, "");
	return add_value(parser, word, attached_only ? "0" : "1");
}

static enum ca_status parse_argument(struct parser *parser, const struct word *word)
{
	const char *argument = word->setting->argument;

	if (word->setting->type == CA_TYPE_BOOL)
		return parse_flag(parser, word);
	if (takes_list(word->setting))
		return parse_list(parser, word);
	if (*argument == '[')
		return parse_optional(parser, word);
	if (word->value)
		return add_value(parser, word, word->value);
	if (!*parser->at || is_option(*parser->at))
		return ca_err_set(parser->err, CA_ERR_USAGE, "%s needs a value: %s %s", word->name,
				  word->name, argument);
	return add_value(parser, word, *parser->at++);
}

static enum ca_status parse_option(struct parser *parser)
{
	const char *text = *parser->at++;
	struct word word = { 0 };

	if (!strcmp(text, "-h") || !strcmp(text, "-?") || !strcmp(text, "--help") ||
	    !strncmp(text, "--help=", 7)) {
		parser->options->action = CA_ACTION_HELP;
		parser->options->topic = strncmp(text, "--help=", 7) ? "" : text + 7;
		return CA_OK;
	}
	if (!strcmp(text, "--version")) {
		parser->options->action = CA_ACTION_VERSION;
		return CA_OK;
	}
	if (text[1] == '-' ? !find_long(&word, text + 2) : !find_short(&word, text + 1))
		return strncmp(text, "--version=", 10)
			       ? unknown(parser, text)
			       : ca_err_set(parser->err, CA_ERR_USAGE, "--version takes no value");
	return parse_argument(parser, &word);
}

enum ca_status ca_options_parse(struct ca_options *options, char **argv, struct ca_err *err)
{
	struct parser parser = { .options = options, .at = argv + (*argv != NULL), .err = err };
	enum ca_status status = CA_OK;

	memset(options, 0, sizeof *options);
	options->topic = "";
	for (char **word = parser.at; *word; word++)
		parser.separator = parser.separator || !strcmp(*word, "--");
	/* A first word that is no option begins the command, whatever follows. */
	if (*parser.at && !is_option(*parser.at)) {
		options->command = parser.at;
		return CA_OK;
	}
	while (!status && *parser.at && strcmp(*parser.at, "--") && is_option(*parser.at) &&
	       options->action == CA_ACTION_RUN)
		status = parse_option(&parser);
	if (status) {
		ca_options_fini(options);
		return status;
	}
	if (options->action != CA_ACTION_RUN)
		return CA_OK;
	if (*parser.at && strcmp(*parser.at, "--") && parser.separator) {
		ca_options_fini(options);
		return ca_err_set(err, CA_ERR_USAGE,
				  "'%s' is not an option; only options of causal may stand before --",
				  *parser.at);
	}
	if (*parser.at && !strcmp(*parser.at, "--"))
		parser.at++;
	options->command = *parser.at ? parser.at : NULL;
	return CA_OK;
}

/* ---- afterwards ---------------------------------------------------------------- */

static enum ca_status check_axis(enum ca_setting_id id, struct ca_axis *axis, struct ca_err *err)
{
	struct ca_settings scratch;
	enum ca_status status = ca_settings_init(&scratch, err);

	if (status)
		return status;
	if (id == CA_SETTING_FIXED_SPEEDUP) {
		axis->speedups = calloc(axis->count + 1, sizeof *axis->speedups);
		if (!axis->speedups)
			status = ca_err_set(err, CA_ERR_NOMEM, "no memory for the options");
	}
	for (size_t i = 0; i < axis->count && !status; i++) {
		status = ca_settings_set(&scratch, id, axis->group[i], CA_ORIGIN_COMMAND, axis->name, err);
		if (!status && axis->speedups && !scratch.fixed_speedup.count)
			status = no_speedups(axis->name, err);
		if (!status && axis->speedups) {
			axis->speedups[i] = scratch.fixed_speedup;
			scratch.fixed_speedup = (struct ca_speedups){ 0 };
		}
	}
	ca_settings_fini(&scratch);
	return status;
}

enum ca_status ca_options_apply(struct ca_options *options, struct ca_settings *settings, struct ca_err *err)
{
	enum ca_status status = CA_OK;

	for (size_t i = 0; i < options->assignments && !status; i++) {
		const struct ca_assignment *given = &options->assignment[i];

		status = ca_settings_set(settings, given->id, given->text, CA_ORIGIN_COMMAND, given->name,
					 err);
	}
	for (size_t i = 0; i < CA_AXES && !status; i++)
		status = check_axis((enum ca_setting_id)(CA_AXIS_FIRST + i), &options->axis[i], err);
	return status;
}

const char *ca_options_text(const struct ca_options *options, enum ca_setting_id id)
{
	for (size_t i = options->assignments; i-- > 0;)
		if (options->assignment[i].id == id)
			return options->assignment[i].text;
	return NULL;
}

void ca_options_fini(struct ca_options *options)
{
	for (size_t i = 0; i < options->assignments; i++) {
		free((char *)options->assignment[i].name);
		free(options->assignment[i].text);
	}
	free(options->assignment);
	for (size_t i = 0; i < CA_AXES; i++) {
		for (size_t j = 0; j < options->axis[i].count; j++) {
			free(options->axis[i].group[j]);
			if (options->axis[i].speedups)
				ca_speedups_fini(&options->axis[i].speedups[j]);
		}
		free(options->axis[i].group);
		free(options->axis[i].speedups);
		free((char *)options->axis[i].name);
	}
	memset(options, 0, sizeof *options);
}
