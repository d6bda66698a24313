/* SPDX-License-Identifier: MIT */
/* One-line messages, each with a single write(2): "causal: text\n".
 *
 * For: the runtime, from any thread and from handlers; the driver may use it too. Not for:
 * results or tables. The level and the file descriptor are set once, before threads exist. */
#ifndef CA_CORE_LOG_H
#define CA_CORE_LOG_H
#include "core/status.h"
#include <stdbool.h>

enum ca_log_level {
	CA_LOG_SILENT = -1,
	CA_LOG_ERROR = 0, /* something of ours failed, or is off */
	CA_LOG_INFO = 1,  /* -v 1: what is being done */
	CA_LOG_DEBUG = 8  /* --debug: how */
};

/* Show messages up to `level` on `fd`. Default: CA_LOG_ERROR on 2. */
void ca_log_init(enum ca_log_level level, int fd);
CA_SIGSAFE bool ca_log_shows(enum ca_log_level level);
/* format: as ca_fmt_add (core/fmt.h). Cut at 500 bytes. errno is kept. */
CA_SIGSAFE void ca_log(enum ca_log_level level, const char *format, ...) CA_PRINTF(2, 3);

#endif
