/* SPDX-License-Identifier: MIT */
/* `causal avail`: what there is: settings, sources of samples, sinks, events; the functions, lines and probes
 * of a binary. And the settings as a file that reads back. Driver's process, one thread. */
#include "binary/index/index.h"
#include "causal/conductor/backend.h"
#include "causal/results/profile.h"
#include "causal/results/results_json.h"
#include "causal/results/text.h"
#include "core/dict.h"
#include "core/regex.h"
#include "core/samplers.h"
#include "core/sink.h"
#include "driver/arguments.h"
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/dump_config.h"
#include "driver/say.h"
#include "sampler/tick.h"
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 7, WIDEST = 48 };

/* One section: its cells are owned. */
struct table {
	const char *name;
	const char *column[COLUMNS]; /* NULL: no more */
	size_t columns;
	char **cell;
	size_t cells;
	bool failed;
};

struct avail {
	const struct ca_settings *settings;
	const char *binary;            /* NULL: none was named */
	const char *filter, *category; /* NULL: all rows */
	struct ca_err err;
};

static void put_cell(struct table *t, const char *format, ...) CA_PRINTF(2, 3);
static void put_cell(struct table *t, const char *format, ...)
{
	char **more = realloc(t->cell, (t->cells + 1) * sizeof *more);
	va_list args;

	va_start(args, format);
	if (more)
		t->cell = more;
	if (!more || vasprintf(&t->cell[t->cells], format, args) < 0)
		t->failed = true;
	else
		t->cells++;
	va_end(args);
}

/* ---- the sections -----------------------------------------------------------------------------*/
static enum ca_status list_settings(struct avail *a, struct table *t)
{
	static const char *const origins[] = { "default", "file", "environment", "command" };

	for (unsigned i = 0; i < CA_SETTING_COUNT; i++) {
		const struct ca_setting *setting = ca_settings_get((enum ca_setting_id)i);
		char option[64] = "", *text = ca_settings_text(a->settings, setting->id);

		ca_settings_option(setting, 0, option, sizeof option);
		put_cell(t, "%s", setting->use == CA_USE_COMMAND ? "" : setting->env);
		put_cell(t, "--%s%s%s", option, *setting->letter ? " -" : "", setting->letter);
		put_cell(t, "%s", text ? text : "");
		put_cell(t, "%s", setting->unit);
		put_cell(t, "%s", origins[a->settings->origin[i]]);
		put_cell(t, "%s", ca_settings_category(setting));
		put_cell(t, "%s", setting->help);
		free(text);
	}
	return CA_OK;
}

static enum ca_status list_sources(struct avail *a, struct table *t)
{
	struct ca_err why = { "" };
	bool perf = ca_backend_perf(&why) == CA_OK;

	(void)a;
	put_cell(t, "perf");
	put_cell(t, "%s", perf ? "yes" : "no");
	put_cell(t, "samples by perf's task clock, in user code%s%s", perf ? "" : "; ", why.text);
	put_cell(t, "timer");
	put_cell(t, "yes");
	put_cell(t, "samples by a timer on each thread's CPU clock, when the kernel ticks");
	put_cell(t, "switches");
	put_cell(t, "%s", perf ? "yes" : "no");
	put_cell(t,
		 "when a thread was off a CPU, by perf's context switch records; without, by its CPU clock");
	put_cell(t, "waits");
	put_cell(t, "yes");
	put_cell(t, "a sample of each wait and of who ends it, by the preloaded library");
	return CA_OK;
}

static enum ca_status list_components(struct avail *a, struct table *t)
{
	(void)a;
#define CA_COMPONENT(name, text, unit, factor, flag, function)                                               \
	put_cell(t, "%s", name);                                                                             \
	put_cell(t, "%s", unit);                                                                             \
	put_cell(t, "%s", "measured");                                                                       \
	put_cell(t, "%s", text);
#include "causal/library/components.def"
	put_cell(t, "perf");
	put_cell(t, "%s", "");
	put_cell(t, "counters");
	put_cell(t, "counters of the kernel and the processor: perf:NAME+NAME, up to 4");
	put_cell(t, "papi");
	put_cell(t, "%s", "");
	put_cell(t, "counters");
#ifdef HAVE_PAPI
	put_cell(t, "presets and native events of PAPI: papi:EVENT+EVENT");
#else
	put_cell(t, "counters of PAPI; not in this build");
#endif
	return CA_OK;
}

/* As the runtime opens it for a thread. */
static bool has_event(const struct ca_perf_counter *counter)
{
	struct ca_tick tick = { .backend = CA_BACKEND_AUTO };

	if (ca_tick_overflow(&tick, counter, UINT64_C(1) << 50, 0, SIGURG) != CA_OK)
		return false;
	ca_tick_stop(&tick);
	return true;
}

static enum ca_status list_counters(struct avail *a, struct table *t)
{
	static const char *const metrics[][2] = {
#define X(id, name, unit, text) { name, text },
		CA_METRICS(X)
#undef X
	};
	struct ca_perf_counter counter;
	const char *name, *text;

	(void)a;
	for (size_t i = CA_METRIC_CPU_TIME; i < CA_METRIC_OWN; i++) {
		put_cell(t, "%s", metrics[i][0]);
		put_cell(t, "yes");
		put_cell(t, "metric");
		put_cell(t, "%s", metrics[i][1]);
	}
	for (size_t i = 0; (name = ca_samplers_event(i, &counter, &text)); i++) {
		put_cell(t, "%s", name);
		put_cell(t, "%s", has_event(&counter) ? "yes" : "no");
		put_cell(t, "%s", counter.type == PERF_TYPE_SOFTWARE ? "software" : "hardware");
		put_cell(t, "%s", text);
	}
	return CA_OK;
}

static enum ca_status list_sinks(struct avail *a, struct table *t)
{
	const struct ca_sink_ops *sink;

	(void)a;
	for (size_t i = 0; (sink = ca_sink_get(i)); i++) {
		put_cell(t, "%s", sink->name);
		put_cell(t, "%s", sink->extension ? sink->extension : "");
		put_cell(t, "%s", sink->description);
	}
	return CA_OK;
}

static enum ca_status list_events(struct avail *a, struct table *t)
{
	struct ca_dict *dict = ca_dict_new();

	if (!dict)
		return ca_err_set(&a->err, CA_ERR_NOMEM, "no memory for the events");
	for (uint32_t key = 1; key < ca_dict_count(dict); key++) {
		const struct ca_dict_key *k = ca_dict_get(dict, key);

		put_cell(t, "%s", k->name);
		put_cell(t, "%s", ca_dict_level_name(k->level));
		put_cell(t, "%s", k->description);
	}
	ca_dict_free(dict);
	return CA_OK;
}

static void put_functions(struct table *t, const struct ca_index *index)
{
	for (size_t i = 0; i < ca_index_functions(index); i++) {
		struct ca_index_function f;

		ca_index_function_at(index, i, &f);
		put_cell(t, "%s%s", f.name, f.part ? " (part)" : "");
		put_cell(t, "%s", f.file);
		if (f.line)
			put_cell(t, "%u", f.line);
		else
			put_cell(t, "%s", "");
		put_cell(t, "0x%" PRIx64, f.low);
		put_cell(t, "%" PRIu64, f.high - f.low);
	}
}

static void put_lines(struct table *t, const struct ca_index *index)
{
	for (size_t i = 0; i < ca_index_lines(index); i++) {
		struct ca_index_line l;

		ca_index_line_at(index, i, &l);
		put_cell(t, "%s", l.file);
		put_cell(t, "%u", l.line);
		put_cell(t, "0x%" PRIx64, l.low);
		put_cell(t, "%" PRIu64, l.high - l.low);
	}
}

static void put_probes(struct table *t, const struct ca_index *index)
{
	for (size_t i = 0; i < ca_index_probes(index); i++) {
		struct ca_index_probe p;

		ca_index_probe_at(index, i, &p);
		put_cell(t, "usdt:%s:%s", p.provider, p.name);
		put_cell(t, "%s", p.arguments);
		put_cell(t, "0x%" PRIx64, p.address);
	}
}

static enum ca_status list_of(struct avail *a, struct table *t,
			      void (*put)(struct table *t, const struct ca_index *index))
{
	struct ca_index *index;
	enum ca_status status;

	if (!a->binary)
		return ca_err_set(&a->err, CA_ERR_USAGE, "avail: name a binary, as in: causal avail %s ./app",
				  t->name);
	status = ca_index_open(&index, a->binary, CA_INDEX_FULL, NULL, NULL, &a->err);
	if (status) /* the binary was named by a person */
		return status == CA_ERR_NOMEM ? status : CA_ERR_USAGE;
	put(t, index);
	ca_index_close(index);
	return CA_OK;
}

static enum ca_status list_functions(struct avail *a, struct table *t)
{
	return list_of(a, t, put_functions);
}

static enum ca_status list_lines(struct avail *a, struct table *t)
{
	return list_of(a, t, put_lines);
}

static enum ca_status list_probes(struct avail *a, struct table *t)
{
	return list_of(a, t, put_probes);
}

static const struct section {
	const char *name;
	bool usual; /* also where none is named */
	enum ca_status (*list)(struct avail *a, struct table *t);
	const char *column[COLUMNS];
} sections[] = {
	{ "settings",
	  true,
	  list_settings,
	  { "variable", "option", "value", "unit", "from", "category", "description" } },
	{ "components", true, list_components, { "component", "unit", "category", "description" } },
	{ "sources", true, list_sources, { "source", "available", "description" } },
	{ "counters", true, list_counters, { "counter", "available", "category", "description" } },
	{ "sinks", true, list_sinks, { "sink", "file", "description" } },
	{ "events", true, list_events, { "event", "level", "description" } },
	{ "functions", false, list_functions, { "function", "file", "line", "address", "bytes" } },
	{ "lines", false, list_lines, { "file", "line", "address", "bytes" } },
	{ "probes", false, list_probes, { "probe", "arguments", "address" } },
};
enum { SECTIONS = sizeof sections / sizeof *sections };

/* The cells that a category is looked for in; in the name of the section, where it has none. */
static size_t category_of(const struct table *t)
{
	size_t i = 0;

	while (i < t->columns && strcmp(t->column[i], "category") != 0 && strcmp(t->column[i], "level") != 0)
		i++;
	return i;
}

/* Only rows with a cell, or the category, that matches; after '~': that does not. CA_ERR_USAGE: it is no regular
 * expression. */
static enum ca_status filter(struct table *t, struct avail *a, const char *expression, bool category)
{
	size_t kept = 0, column = category_of(t);
	bool invert = expression && *expression == '~';
	regex_t regex;

	if (!expression)
		return CA_OK;
	if (ca_regex_compile(&regex, expression + invert))
		return ca_err_set(&a->err, CA_ERR_USAGE, "avail: %s '%s' is not a regular expression",
				  category ? "--category" : "-r", expression);
	for (size_t row = 0; row + t->columns <= t->cells; row += t->columns) {
		bool found = false;

		if (category)
			found = !regexec(&regex, column < t->columns ? t->cell[row + column] : t->name, 0,
					 NULL, 0);
		for (size_t i = 0; i < t->columns && !found && !category; i++)
			found = !regexec(&regex, t->cell[row + i], 0, NULL, 0);
		found = found != invert;
		for (size_t i = 0; i < t->columns; i++)
			if (found)
				t->cell[kept++] = t->cell[row + i];
			else
				free(t->cell[row + i]);
	}
	t->cells = kept;
	regfree(&regex);
	return CA_OK;
}

/* ---- how they are written ---------------------------------------------------------------------*/
static const char *cell_of(const struct table *t, size_t row, size_t i)
{
	return row ? t->cell[(row - 1) * t->columns + i] : t->column[i];
}

static size_t rows_of(const struct table *t)
{
	return t->cells / t->columns;
}

static void write_text(const struct table *t, bool first)
{
	size_t width[COLUMNS] = { 0 };

	for (size_t row = 0; row <= rows_of(t); row++)
		for (size_t i = 0; i + 1 < t->columns; i++) {
			size_t one = ca_text_width(cell_of(t, row, i));

			width[i] = one < width[i] ? width[i] : one < WIDEST ? one : WIDEST;
		}
	printf("%s%s\n", first ? "" : "\n", t->name);
	for (size_t row = 0; row <= rows_of(t); row++) {
		for (size_t i = 0; i < t->columns; i++) {
			const char *text = cell_of(t, row, i);

			if (i)
				fputs("  ", stdout);
			ca_text_put(stdout, text, i + 1 < t->columns ? width[i] : ca_text_width(text));
		}
		putchar('\n');
	}
}

static void write_csv(const struct table *t, bool first)
{
	(void)first;
	for (size_t row = 0; row <= rows_of(t); row++)
		for (size_t i = 0; i < t->columns; i++) {
			putchar('"');
			for (const char *at = cell_of(t, row, i); *at; at++)
				printf(*at == '"' ? "%c\"" : "%c", *at);
			fputs(i + 1 < t->columns ? "\"," : "\"\n", stdout);
		}
}

static void write_markdown(const struct table *t, bool first)
{
	printf("%s## %s\n\n|", first ? "" : "\n", t->name);
	for (size_t i = 0; i < t->columns; i++)
		printf(" %s |", t->column[i]);
	fputs("\n|", stdout);
	for (size_t i = 0; i < t->columns; i++)
		fputs("---|", stdout);
	putchar('\n');
	for (size_t row = 1; row <= rows_of(t); row++) {
		fputs("| ", stdout);
		for (size_t i = 0; i < t->columns; i++) {
			ca_export_markdown(stdout, cell_of(t, row, i));
			fputs(i + 1 < t->columns ? " | " : " |\n", stdout);
		}
	}
}

static struct json_object *json_of(const struct table *t)
{
	struct json_object *array = json_object_new_array();

	for (size_t row = 1; row <= rows_of(t); row++) {
		struct json_object *object = json_object_new_object();

		for (size_t i = 0; i < t->columns; i++)
			json_object_object_add(object, t->column[i],
					       ca_results_json_text(cell_of(t, row, i)));
		json_object_array_add(array, object);
	}
	return array;
}

static enum ca_status show(struct avail *a, const bool *wanted, const char *format)
{
	struct json_object *all = json_object_new_object();
	enum ca_status status = CA_OK;
	bool first = true;

	for (size_t s = 0; s < SECTIONS && !status; s++) {
		struct table t = { .name = sections[s].name };

		if (!wanted[s])
			continue;
		for (; t.columns < COLUMNS && sections[s].column[t.columns]; t.columns++)
			t.column[t.columns] = sections[s].column[t.columns];
		status = sections[s].list(a, &t);
		if (!status)
			status = t.failed ? ca_err_set(&a->err, CA_ERR_NOMEM, "avail: no memory")
					  : filter(&t, a, a->filter, false);
		if (!status)
			status = filter(&t, a, a->category, true);
		if (!status && *format == 'j')
			json_object_object_add(all, t.name, json_of(&t));
		else if (!status)
			(*format == 'm'   ? write_markdown
			 : *format == 'c' ? write_csv
					  : write_text)(&t, first);
		first = false;
		for (size_t i = 0; i < t.cells; i++)
			free(t.cell[i]);
		free(t.cell);
	}
	if (!status && *format == 'j')
		puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY |
								 JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(all);
	return status;
}

/* ---- the settings -----------------------------------------------------------------------------*/
static void warn(const char *text)
{
	ca_say("%s", text);
}

static enum ca_status read_settings(struct ca_settings *settings, const char *files, struct ca_err *err)
{
	enum ca_status status = ca_settings_init(settings, err);

	if (status)
		return status;
	if (files)
		status = ca_settings_set(settings, CA_SETTING_CONFIG_FILE, files, CA_ORIGIN_COMMAND, "-c",
					 err);
	if (!status)
		status = ca_settings_read_env(settings, (const char *const *)environ, warn, err);
	if (!status)
		status = ca_settings_read_files(settings, settings->config_file, err);
	if (status)
		ca_settings_fini(settings);
	return status;
}

/* ---- the command line -------------------------------------------------------------------------*/
/* The words that name sections, then perhaps a binary; false: another one. */
static bool take_words(struct avail *a, bool *wanted, int words, char **argv)
{
	bool any = false;

	for (int i = 1; i <= words; i++) {
		size_t s = 0;

		while (s < SECTIONS && strcmp(sections[s].name, argv[i]) != 0)
			s++;
		if (s < SECTIONS)
			wanted[s] = any = true;
		else if (any && i == words)
			a->binary = argv[i];
		else
			return false;
	}
	for (size_t s = 0; s < SECTIONS && !any; s++)
		wanted[s] = sections[s].usual;
	return true;
}

static bool is_one_of(const char *text, const char *a, const char *b, const char *c, const char *d)
{
	return !strcmp(text, a) || !strcmp(text, b) || !strcmp(text, c) || !strcmp(text, d);
}

int ca_cmd_avail(int argc, char **argv)
{
	const char *format = "text", *dump = NULL, *files = NULL;
	struct avail a = { .err = { "" } };
	const struct ca_argument list[] = { { "--format", &format },    { "-r", &a.filter },
					    { "--filter", &a.filter },  { "--category", &a.category },
					    { "-c", &files },           { "--config", &files },
					    { "--dump-config", &dump }, { NULL, NULL } };
	int words = ca_arguments_take(argc, argv, list), code = 0;
	bool wanted[SECTIONS] = { false };
	struct ca_settings settings;
	enum ca_status status;

	size_t tables = 0;

	if (words < 0)
		return CA_EXIT_USAGE;
	if (!take_words(&a, wanted, words, argv) || !is_one_of(format, "text", "markdown", "csv", "json") ||
	    (dump && !is_one_of(dump, "text", "json", "xml", "xml"))) {
		ca_say("avail: name settings, components, sources, counters, sinks or events, or functions, "
		       "lines or probes and a binary; --format text, markdown, csv or json; -r REGEX; "
		       "--category REGEX; --dump-config text, json or xml");
		return CA_EXIT_USAGE;
	}
	for (size_t s = 0; s < SECTIONS; s++)
		tables += wanted[s];
	if (*format == 'c' && tables > 1 && !dump) {
		ca_say("avail: csv holds one table; name one, as in: causal avail settings --format csv");
		return CA_EXIT_USAGE;
	}
	status = read_settings(&settings, files, &a.err);
	if (status) {
		ca_say("%s", a.err.text);
		return ca_child_exit_code(status);
	}
	a.settings = &settings;
	status = dump ? ca_dump_config(&settings, dump, &a.err) : show(&a, wanted, format);
	if (status) {
		ca_say("%s", a.err.text);
		code = ca_child_exit_code(status);
	} else if (fflush(stdout)) {
		ca_say("avail: cannot write to standard output (%s)", strerror(errno));
		code = 1;
	}
	ca_settings_fini(&settings);
	return code;
}
