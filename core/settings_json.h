/* SPDX-License-Identifier: MIT */
/* Settings from a file in JSON. Driver's process. */
#ifndef CA_CORE_SETTINGS_JSON_H
#define CA_CORE_SETTINGS_JSON_H
#include "core/settings.h"

/* As ca_settings_read_file, which calls it for files that begin with '{'. */
enum ca_status ca_settings_read_json(struct ca_settings *settings, const char *path, struct ca_err *err);

#endif
