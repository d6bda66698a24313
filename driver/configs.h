/* SPDX-License-Identifier: MIT */
/* Configuration files that the driver writes: one per variant, and the sample. */
#ifndef CA_DRIVER_CONFIGS_H
#define CA_DRIVER_CONFIGS_H
#include "core/settings.h"
#include "core/status.h"
#include "driver/variants.h"
#include <stdio.h>

/* Make the folder, and see that files can be written there. */
enum ca_status ca_configs_prepare(const char *folder, struct ca_err *err);

/* The value of a setting, as a configuration file has it behind the '='. */
void ca_configs_put_value(FILE *file, const struct ca_settings *settings, const struct ca_setting *setting);
/* Write <folder>/causal-<index>.cfg (index filled with zeros to the digits of total).
 * *path: what was written, owned by the caller. */
enum ca_status ca_configs_write(const char *folder, const struct ca_settings *settings,
				const struct ca_variant *variant, size_t total, char **path,
				struct ca_err *err);

#endif
