/* SPDX-License-Identifier: MIT */
/* Warnings; see warnings.h. */
#include "binary/index/warnings.h"
#include <stdarg.h>
#include <stdio.h>

void ca_warnings_add(struct ca_warnings *warnings, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	uint32_t offset = ca_strings_put(warnings->strings, text);
	ca_vec_add(warnings->list, &offset, 1);
}
