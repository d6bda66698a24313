/* SPDX-License-Identifier: MIT */
/* A configuration file; each of its lines also as an environment variable; and what was read, written and
 * read again. */
#include "core/settings.h"
#include "tests/fuzz/fuzz.h"
#include <stdlib.h>
#include <string.h>

static void read_again(const struct ca_settings *settings)
{
	struct ca_settings copy;
	struct ca_err err;

	if (ca_settings_copy(&copy, settings, &err))
		return;
	for (int id = 0; id < CA_SETTING_COUNT; id++) {
		char *text = ca_settings_text(settings, (enum ca_setting_id)id);

		/* what was taken is taken again */
		if (text && settings->origin[id] != CA_ORIGIN_DEFAULT &&
		    ca_settings_set(&copy, (enum ca_setting_id)id, text, CA_ORIGIN_COMMAND, NULL, &err))
			abort();
		free(text);
	}
	ca_settings_fini(&copy);
}

static void read_environment(char *lines)
{
	char *rest = NULL, *line = strtok_r(lines, "\n", &rest);
	struct ca_settings settings;
	struct ca_err err;

	for (; line; line = strtok_r(NULL, "\n", &rest)) {
		const char *const environment[] = { line, NULL };

		if (ca_settings_init(&settings, &err))
			return;
		if (ca_settings_read_env(&settings, environment, ca_fuzz_touch, &err))
			ca_fuzz_touch(err.text);
		ca_settings_fini(&settings);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[CA_FUZZ_PATH], *lines = calloc(size + 1, 1);
	struct ca_settings settings;
	struct ca_err err;

	ca_fuzz_file(data, size, path);
	if (!ca_settings_init(&settings, &err)) {
		if (ca_settings_read_file(&settings, path, &err))
			ca_fuzz_touch(err.text);
		read_again(&settings);
		ca_settings_fini(&settings);
	}
	if (lines && size)
		read_environment(memcpy(lines, data, size));
	free(lines);
	return 0;
}
