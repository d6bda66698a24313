/* SPDX-License-Identifier: MIT */
/* Settings from a file in JSON, as `causal avail --dump-config json` writes it: an object whose member `settings`
 * has the keys of the configuration. Driver's process, one thread. */
#include "core/settings_json.h"
#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct json_object *member(struct json_object *object, const char *key)
{
	struct json_object *value;

	return json_object_is_type(object, json_type_object) && json_object_object_get_ex(object, key, &value)
		       ? value
		       : NULL;
}

/* Without the mark that some editors put before a text in UTF-8. NULL: it is no JSON. */
static struct json_object *read_object(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct json_object *object;
	char mark[3];

	if (fd < 0)
		return NULL;
	if (pread(fd, mark, sizeof mark, 0) == sizeof mark && !memcmp(mark, "\xef\xbb\xbf", sizeof mark))
		lseek(fd, sizeof mark, SEEK_SET);
	object = json_object_from_fd(fd);
	close(fd);
	return object;
}

enum ca_status ca_settings_read_json(struct ca_settings *settings, const char *path, struct ca_err *err)
{
	struct json_object *file = read_object(path), *list = member(file, "settings");
	enum ca_status status = CA_OK;
	char name[384];

	if (!json_object_is_type(list, json_type_object)) {
		json_object_put(file);
		return ca_err_set(err, CA_ERR_USAGE,
				  "configuration '%s' is no JSON with an object 'settings', as causal avail "
				  "--dump-config json writes it",
				  path);
	}
	json_object_object_foreach(list, key, value)
	{
		const struct ca_setting *setting = ca_settings_find_key(key);
		const char *text = value ? json_object_get_string(value) : "";

		if (status)
			break;
		if (!setting) {
			const char *near = ca_settings_near_key(key);

			status = ca_err_set(err, CA_ERR_USAGE, "%s: no setting '%s'%s%s", path, key,
					    near ? "; did you mean " : "", near ? near : "");
			break;
		}
		snprintf(name, sizeof name, "%s: %s", path, key);
		status = ca_settings_set(settings, setting->id, text, CA_ORIGIN_FILE, name, err);
	}
	json_object_put(file);
	return status;
}
