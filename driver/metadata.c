/* SPDX-License-Identifier: MIT */
/* See metadata.h. The keys are those that timemory's readers know, as far as they mean something here. */
#include "driver/metadata.h"
#include "binary/index/index.h"
#include "binary/needed.h"
#include "causal/conductor/sweep.h"
#include "causal/results/results_json.h"
#include "core/clock.h"
#include "core/path.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void add(struct json_object *to, const char *key, const char *text)
{
	json_object_object_add(to, key, ca_results_json_text(text));
}

static void add_number(struct json_object *to, const char *key, int64_t number)
{
	json_object_object_add(to, key, json_object_new_int64(number));
}

static struct json_object *split(const char *text)
{
	struct json_object *list = json_object_new_array();
	char *copy = strdup(text), *rest = copy, *word;

	while (rest && (word = strsep(&rest, " \t\n")))
		if (*word)
			json_object_array_add(list, ca_results_json_text(word));
	free(copy);
	return list;
}

/* Of the first processor; those that it has not are left out. */
static void add_processor(struct json_object *info)
{
	static const char *const lines[][2] = { { "model name", "CPU_MODEL" },
						{ "vendor_id", "CPU_VENDOR" },
						{ "cpu MHz", "CPU_FREQUENCY" },
						{ "cpu cores", "HW_PHYSICAL_CPU" },
						{ "flags", "CPU_FEATURES" } };
	FILE *file = fopen("/proc/cpuinfo", "re");
	char *line = NULL;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 1)
		for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
			char *value = strstr(line, ": ");

			if (!value || strncmp(line, lines[i][0], strlen(lines[i][0])) != 0)
				continue;
			value[strcspn(value, "\n")] = '\0';
			if (i == 4)
				json_object_object_add(info, lines[i][1], split(value + 2));
			else if (i >= 2)
				add_number(info, lines[i][1], atoll(value + 2));
			else
				add(info, lines[i][1], value + 2);
		}
	free(line);
	if (file)
		fclose(file);
}

static struct json_object *make_modules(const char *program)
{
	struct json_object *list = json_object_new_array();
	struct ca_needed needed;
	struct ca_err err;

	json_object_array_add(list, ca_results_json_text(program));
	if (ca_needed_find(&needed, program, &err))
		return list;
	for (size_t i = 0; i < needed.n; i++)
		json_object_array_add(list, ca_results_json_text(needed.path[i]));
	ca_needed_fini(&needed);
	return list;
}

static struct json_object *make_info(const char *const *words, const char *program)
{
	static const char *const variables[] = { "USER", "HOME", "SHELL", "PWD" };
	static const struct {
		const char *key;
		int name;
	} system[] = { { "HW_L1_CACHE_SIZE", _SC_LEVEL1_DCACHE_SIZE },
		       { "HW_L2_CACHE_SIZE", _SC_LEVEL2_CACHE_SIZE },
		       { "HW_L3_CACHE_SIZE", _SC_LEVEL3_CACHE_SIZE },
		       { "HW_CONCURRENCY", _SC_NPROCESSORS_ONLN } };
	struct json_object *info = json_object_new_object(), *command = json_object_new_array();
	time_t now = time(NULL);
	struct tm local;
	char text[32];

	localtime_r(&now, &local);
	add(info, "CAUSAL_VERSION", PACKAGE_VERSION);
	strftime(text, sizeof text, "%Y-%m-%d", &local);
	add(info, "LAUNCH_DATE", text);
	strftime(text, sizeof text, "%H:%M:%S", &local);
	add(info, "LAUNCH_TIME", text);
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		add(info, variables[i], getenv(variables[i]));
	for (size_t i = 0; i < sizeof system / sizeof *system; i++)
		add_number(info, system[i].key, sysconf(system[i].name));
	add_processor(info);
	for (size_t i = 0; words[i]; i++)
		json_object_array_add(command, ca_results_json_text(words[i]));
	json_object_object_add(info, "COMMAND", command);
	json_object_object_add(info, "memory_maps_files", make_modules(program));
	return info;
}

static struct json_object *make_environment(void)
{
	struct json_object *list = json_object_new_array();

	for (char **entry = environ; *entry; entry++) {
		struct json_object *one = json_object_new_object();
		char *key = strndup(*entry, strcspn(*entry, "="));

		add(one, "key", key);
		add(one, "value", strchr(*entry, '=') ? strchr(*entry, '=') + 1 : "");
		json_object_array_add(list, one);
		free(key);
	}
	return list;
}

static struct json_object *make_setting(const struct ca_settings *settings, const struct ca_setting *of)
{
	static const char *const types[] = { "bool",  "int",      "real",    "choice", "string",
					     "list",  "speedups", "sinks",   "events", "periods",
					     "clock", "numbers",  "sampler", "metrics" };
	struct json_object *one = json_object_new_object(), *options = json_object_new_array();
	struct json_object *categories = json_object_new_array();
	unsigned char origin = settings->origin[of->id];
	char name[64], *value = ca_settings_text(settings, of->id);

	for (size_t i = 0; ca_settings_option(of, i, name, sizeof name); i++)
		json_object_array_add(options, ca_results_json_text(name));
	add(one, "name", of->member);
	add(one, "environ", of->env);
	add(one, "description", of->help);
	json_object_object_add(one, "cmdline", options);
	json_object_array_add(categories, ca_results_json_text(ca_settings_category(of)));
	json_object_object_add(one, "categories", categories);
	add(one, "data_type", types[of->type]);
	add(one, "initial", of->standard);
	add(one, "value", value);
	/* how often it may be given is not limited; all of them are there always */
	add_number(one, "count", origin != CA_ORIGIN_DEFAULT);
	add_number(one, "max_count", -1);
	json_object_object_add(one, "enabled", json_object_new_boolean(true));
	json_object_object_add(one, "environ_updated",
			       json_object_new_boolean(origin == CA_ORIGIN_ENVIRONMENT));
	json_object_object_add(one, "config_updated", json_object_new_boolean(origin == CA_ORIGIN_FILE));
	free(value);
	return one;
}

static struct json_object *make_settings(const struct ca_settings *settings)
{
	struct json_object *all = json_object_new_object();

	for (int id = 0; id < CA_SETTING_COUNT; id++) {
		const struct ca_setting *of = ca_settings_get((enum ca_setting_id)id);

		json_object_object_add(all, of->env, make_setting(settings, of));
	}
	return all;
}

/* Of the program itself; none where nothing is known of it. */
static struct json_object *make_functions(const char *program)
{
	struct json_object *list = json_object_new_array();
	struct ca_index *index;
	struct ca_err err;

	if (ca_index_open(&index, program, CA_INDEX_FULL, NULL, NULL, &err))
		return list;
	for (size_t i = 0; i < ca_index_functions(index); i++) {
		struct json_object *one = json_object_new_object();
		struct ca_index_function function;

		ca_index_function_at(index, i, &function);
		add(one, "function", function.name);
		add(one, "symbol", function.linkage);
		add(one, "module", program);
		add(one, "file", function.file);
		add_number(one, "line", function.line);
		add_number(one, "address", (int64_t)function.low);
		add_number(one, "address_range", (int64_t)(function.high - function.low));
		json_object_array_add(list, one);
	}
	ca_index_close(index);
	return list;
}

/* {"causal": {key: value}} */
static enum ca_status write_file(const char *stem, const char *key, struct json_object *value,
				 struct ca_err *err)
{
	struct json_object *file = json_object_new_object(), *causal = json_object_new_object();
	enum ca_status status = CA_OK;
	char *path;

	json_object_object_add(causal, key, value);
	json_object_object_add(file, "causal", causal);
	if (asprintf(&path, "%s%s.json", stem, key) < 0) {
		json_object_put(file);
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for a path");
	}
	if (json_object_to_file_ext(path, file, JSON_C_TO_STRING_PRETTY))
		status = ca_err_set(err, CA_ERR_IO, "%s cannot be written: %s", path,
				    json_util_get_last_err());
	json_object_put(file);
	free(path);
	return status;
}

static enum ca_status write_both(const struct ca_settings *settings, const char *stem, const char *program,
				 const char *const *command, struct ca_err *err)
{
	struct json_object *metadata = json_object_new_object();
	enum ca_status status;

	json_object_object_add(metadata, "info", make_info(command, program));
	json_object_object_add(metadata, "environment", make_environment());
	json_object_object_add(metadata, "settings", make_settings(settings));
	status = write_file(stem, "metadata", metadata, err);
	return status ? status : write_file(stem, "functions", make_functions(program), err);
}

enum ca_status ca_metadata_write(const struct ca_settings *settings, const char *dir, const char *program,
				 const char *const *command, struct ca_err *err)
{
	char path[4096], *real, *stem;
	enum ca_status status;

	if (asprintf(&stem, "%s/%s", dir, settings->output_prefix) < 0)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for a path");
	real = ca_sweep_find_command(program, path, sizeof path) ? realpath(path, NULL) : NULL;
	status = write_both(settings, stem, real ? real : "", command, err);
	free(real);
	free(stem);
	return status;
}

/* ---- memory maps */

enum { SOON = 100, LOOKS = SOON + 10, APART = 10000000 /* ns; later each after twice as long */ };

void ca_metadata_look(struct ca_metadata_maps *maps, pid_t program)
{
	uint64_t now = ca_clock_now();
	char path[48], *text = NULL;
	size_t size = 0;
	FILE *file;

	if (maps->looks >= LOOKS || now < maps->next)
		return;
	maps->looks++;
	maps->next = now + ((uint64_t)APART << (maps->looks > SOON ? maps->looks - SOON : 0));
	snprintf(path, sizeof path, "/proc/%d/maps", (int)program);
	file = fopen(path, "re");
	if (file && getdelim(&text, &size, '\0', file) > 0) {
		free(maps->text);
		maps->text = text;
		text = NULL;
	}
	free(text);
	if (file)
		fclose(file);
}

/* NULL: it is no line of such a file. */
static struct json_object *make_map(char *line)
{
	char start[20], end[20], permissions[8], offset[20], device[16], inode[24];
	struct json_object *one;
	int path = 0;

	if (sscanf(line, "%19[0-9a-f]-%19[0-9a-f] %7s %19s %15s %23s %n", start, end, permissions, offset,
		   device, inode, &path) != 6)
		return NULL;
	one = json_object_new_object();
	add(one, "start_address", start);
	add(one, "end_address", end);
	add(one, "permissions", permissions);
	add(one, "offset", offset);
	add(one, "device", device);
	add_number(one, "inode", atoll(inode));
	ca_path_unescape(line + path);
	add(one, "pathname", line + path);
	return one;
}

static enum ca_status add_maps(const char *path, char *text, struct ca_err *err)
{
	struct json_object *file = json_object_from_file(path), *at = file;
	static const char *const way[] = { "causal", "metadata", "info" };
	struct json_object *list, *one;
	bool written = false;
	char *line;

	for (size_t i = 0; i < sizeof way / sizeof *way && at; i++)
		at = json_object_object_get(at, way[i]);
	if (at) {
		list = json_object_new_array();
		while ((line = strsep(&text, "\n")))
			if ((one = make_map(line)))
				json_object_array_add(list, one);
		json_object_object_add(at, "memory_maps", list);
		written = !json_object_to_file_ext(path, file, JSON_C_TO_STRING_PRETTY);
	}
	json_object_put(file);
	return written ? CA_OK
		       : ca_err_set(err, CA_ERR_IO, "memory maps cannot be added to %s: %s", path,
				    json_util_get_last_err());
}

enum ca_status ca_metadata_add_maps(const struct ca_settings *settings, const char *dir,
				    struct ca_metadata_maps *maps, struct ca_err *err)
{
	enum ca_status status = CA_OK;
	char *path = NULL;

	if (maps->text && asprintf(&path, "%s/%smetadata.json", dir, settings->output_prefix) > 0)
		status = add_maps(path, maps->text, err);
	free(path);
	free(maps->text);
	maps->text = NULL;
	return status;
}
