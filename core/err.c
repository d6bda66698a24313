/* SPDX-License-Identifier: MIT */
/* Error texts. Driver's process and tests only: vsnprintf is not for handlers. */
#include "core/err.h"
#include <stdarg.h>
#include <stdio.h>

enum ca_status ca_err_set(struct ca_err *err, enum ca_status status, const char *format, ...)
{
	if (err) {
		va_list arguments;

		va_start(arguments, format);
		vsnprintf(err->text, sizeof err->text, format, arguments);
		va_end(arguments);
	}
	return status;
}
