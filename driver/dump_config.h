/* SPDX-License-Identifier: MIT */
/* All settings on standard output, as a file that reads back the same. Driver's process, one thread. */
#ifndef CA_DRIVER_DUMP_CONFIG_H
#define CA_DRIVER_DUMP_CONFIG_H
#include "core/settings.h"

/* how: text, json or xml. CA_ERR_USAGE: a value is nothing that can be written so. */
enum ca_status ca_dump_config(const struct ca_settings *settings, const char *how, struct ca_err *err);

#endif
