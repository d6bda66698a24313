/* SPDX-License-Identifier: MIT */
/* Configuration files of variants; see driver/configs.h. What is written here reads back to
 * the same settings (core/settings_read.c). */
#include "driver/configs.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_axis(const struct ca_setting *setting)
{
	return setting->group == CA_GROUP_COMBINATORIAL;
}

/* Command-line-only settings have no key; a child does not read those of the sweep. */
static bool is_written(const struct ca_settings *settings, const struct ca_setting *setting)
{
	return setting->use == CA_USE_RUN && settings->origin[setting->id] != CA_ORIGIN_DEFAULT;
}

static void put_text(FILE *file, const char *text)
{
	putc('"', file);
	for (; *text; text++) {
		if (strchr("\"\\\n", *text))
			putc('\\', file);
		putc(*text == '\n' ? 'n' : *text, file);
	}
	putc('"', file);
}

void ca_configs_put_value(FILE *file, const struct ca_settings *settings, const struct ca_setting *setting)
{
	char *text = ca_settings_text(settings, setting->id);

	if (setting->type >= CA_TYPE_STRING && setting->type != CA_TYPE_SPEEDUPS)
		put_text(file, text ? text : "");
	else
		fputs(text ? text : "", file);
	free(text);
}

static void put_settings(FILE *file, const struct ca_settings *settings, bool axes)
{
	int width = 0;

	for (size_t i = 0; i < CA_SETTING_COUNT; i++) {
		const struct ca_setting *setting = ca_settings_get((enum ca_setting_id)i);

		if (is_written(settings, setting) && is_axis(setting) == axes &&
		    (int)strlen(setting->env) > width)
			width = (int)strlen(setting->env);
	}
	for (size_t i = 0; i < CA_SETTING_COUNT; i++) {
		const struct ca_setting *setting = ca_settings_get((enum ca_setting_id)i);

		if (!is_written(settings, setting) || is_axis(setting) != axes)
			continue;
		fprintf(file, "%-*s = ", width, setting->env);
		ca_configs_put_value(file, settings, setting);
		putc('\n', file);
	}
}

enum ca_status ca_configs_prepare(const char *folder, struct ca_err *err)
{
	struct stat info;

	if (!mkdir(folder, 0777))
		return CA_OK;
	if (errno == EEXIST && !stat(folder, &info) && !S_ISDIR(info.st_mode))
		errno = ENOTDIR;
	else if (errno == EEXIST && !access(folder, W_OK | X_OK))
		return CA_OK;
	return ca_err_set(err, CA_ERR_USAGE,
			  "folder '%s' cannot be written to (%s); give another one with -g", folder,
			  strerror(errno));
}

enum ca_status ca_configs_write(const char *folder, const struct ca_settings *settings,
				const struct ca_variant *variant, size_t total, char **path,
				struct ca_err *err)
{
	FILE *file;
	bool failed;

	if (asprintf(path, "%s/causal-%0*zu.cfg", folder, ca_variants_width(total), variant->index) < 0)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for a path");
	file = fopen(*path, "we");
	if (file) {
		fputs("# causal common settings\n", file);
		put_settings(file, settings, false);
		fputs("\n# causal variant settings\n", file);
		put_settings(file, settings, true);
		failed = ferror(file);
		failed = fclose(file) || failed;
	}
	if (!file || failed) {
		ca_err_set(err, CA_ERR_USAGE, "'%s' cannot be written (%s); give another folder with -g",
			   *path, strerror(errno));
		free(*path);
		return CA_ERR_USAGE;
	}
	return CA_OK;
}
