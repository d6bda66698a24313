/* Signal-safe messages: see core/log.h. Any thread, handlers included. */
#include "core/log.h"
#include "core/fmt.h"
#include <stdarg.h>

/* Written by ca_log_init only, before other threads exist. */
static enum ca_log_level shown = CA_LOG_ERROR;
static int log_fd = 2;

void ca_log_init(enum ca_log_level level, int fd)
{
	shown = level;
	log_fd = fd;
}

bool ca_log_shows(enum ca_log_level level)
{
	return level <= shown;
}

void ca_log(enum ca_log_level level, const char *format, ...)
{
	char line[512];
	struct ca_fmt fmt;
	va_list arguments;

	if (!ca_log_shows(level))
		return;
	ca_fmt_init(&fmt, line, sizeof line - 1); /* one byte is kept for the newline */
	ca_fmt_text(&fmt, "causal: ");
	va_start(arguments, format);
	ca_fmt_vadd(&fmt, format, arguments);
	va_end(arguments);
	fmt.capacity = sizeof line;
	ca_fmt_char(&fmt, '\n');
	ca_fmt_write(&fmt, log_fd);
}
