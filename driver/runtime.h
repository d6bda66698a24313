/* SPDX-License-Identifier: MIT */
/* Finding libcausal-rt.so, which is preloaded. */
#ifndef CA_DRIVER_RUNTIME_H
#define CA_DRIVER_RUNTIME_H
#include "core/settings.h"
#include "core/status.h"

/* As the setting says, beside the executable of a build tree, or installed. *path: owned by the
 * caller. CA_ERR_USAGE: the setting names something else. */
enum ca_status ca_runtime_find(const struct ca_settings *settings, char **path, struct ca_err *err);

#endif
