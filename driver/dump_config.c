/* SPDX-License-Identifier: MIT */
/* The settings as a file; see dump_config.h. Those that nobody has set are there, too, where the file is for
 * people: as comments, or apart. */
#include "driver/dump_config.h"
#include "causal/results/results_json.h"
#include "core/utf8.h"
#include "driver/configs.h"
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Command-line-only settings have no key, and a file does not name others. */
static bool is_dumped(const struct ca_setting *setting)
{
	return setting->use != CA_USE_COMMAND && setting->id != CA_SETTING_CONFIG_FILE;
}

static bool dump_text(const struct ca_settings *settings)
{
	for (unsigned i = 0; i < CA_SETTING_COUNT; i++) {
		const struct ca_setting *setting = ca_settings_get((enum ca_setting_id)i);

		if (!is_dumped(setting))
			continue;
		printf("%s%s = ", settings->origin[i] == CA_ORIGIN_DEFAULT ? "#" : "", setting->env);
		ca_configs_put_value(stdout, settings, setting);
		putchar('\n');
	}
	return true;
}

static bool dump_json(const struct ca_settings *settings)
{
	struct json_object *all = json_object_new_object(), *set = json_object_new_object();
	struct json_object *defaults = json_object_new_object();

	for (unsigned i = 0; i < CA_SETTING_COUNT; i++) {
		const struct ca_setting *setting = ca_settings_get((enum ca_setting_id)i);
		char *text = is_dumped(setting) ? ca_settings_text(settings, setting->id) : NULL;

		if (text)
			json_object_object_add(settings->origin[i] == CA_ORIGIN_DEFAULT ? defaults : set,
					       setting->env, ca_results_json_text(text));
		free(text);
	}
	json_object_object_add(all, "format", json_object_new_string("causal-config"));
	json_object_object_add(all, "version", json_object_new_int(1));
	json_object_object_add(all, "settings", set);
	json_object_object_add(all, "defaults", defaults);
	puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(all);
	return true;
}

/* ---- XML ------------------------------------------------------------------------------------*/
/* XML has no way to write other bytes. */
static bool is_xml(const char *text)
{
	while (*text) {
		size_t n = ca_utf8_length((const unsigned char *)text);

		if (!n || ((unsigned char)*text < ' ' && !strchr("\t\n\r", *text)))
			return false;
		text += n;
	}
	return true;
}

static void put_attribute(const char *name, const char *text)
{
	printf(" %s=\"", name);
	for (; *text; text++)
		if (strchr("<>&\"\t\n\r", *text))
			printf("&#%d;", *text);
		else
			putchar(*text);
	putchar('"');
}

static bool put_settings(const struct ca_settings *settings, const char *element, bool defaults)
{
	bool ok = true;

	printf("  <%s>\n", element);
	for (unsigned i = 0; i < CA_SETTING_COUNT; i++) {
		const struct ca_setting *setting = ca_settings_get((enum ca_setting_id)i);
		char *text = is_dumped(setting) ? ca_settings_text(settings, setting->id) : NULL;

		if (text && (settings->origin[i] == CA_ORIGIN_DEFAULT) == defaults) {
			ok = ok && is_xml(text);
			fputs("    <setting", stdout);
			put_attribute("name", setting->env);
			put_attribute("value", text);
			fputs("/>\n", stdout);
		}
		free(text);
	}
	printf("  </%s>\n", element);
	return ok;
}

static bool dump_xml(const struct ca_settings *settings)
{
	bool ok;

	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<causal-config version=\"1\">\n", stdout);
	ok = put_settings(settings, "settings", false);
	ok = put_settings(settings, "defaults", true) && ok;
	puts("</causal-config>");
	return ok;
}

enum ca_status ca_dump_config(const struct ca_settings *settings, const char *how, struct ca_err *err)
{
	bool ok = *how == 'x' ? dump_xml(settings) : *how == 'j' ? dump_json(settings) : dump_text(settings);

	return ok ? CA_OK
		  : ca_err_set(
			    err, CA_ERR_USAGE,
			    "avail: a value has bytes that XML cannot hold; --dump-config text or json can");
}
