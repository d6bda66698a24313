/* SPDX-License-Identifier: MIT */
/* Lines for the user; see driver/say.h. */
#include "driver/say.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool progress_shown;

/* One write per line, so that lines of the program and ours do not mix within a line. */
static void put(const char *text, size_t length)
{
	while (length) {
		ssize_t n = write(STDERR_FILENO, text, length);

		if (n <= 0)
			return;
		text += n;
		length -= (size_t)n;
	}
}

static void say(const char *before, const char *format, va_list arguments)
{
	char *text = NULL, *line = NULL;
	int length = -1;

	if (vasprintf(&text, format, arguments) >= 0)
		length = asprintf(&line, "%s%s%s\n", progress_shown ? "\r\033[K" : "", before, text);
	progress_shown = false;
	if (length > 0)
		put(line, (size_t)length);
	free(text);
	if (length >= 0)
		free(line);
}

void ca_say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say("causal: ", format, arguments);
	va_end(arguments);
}

void ca_say_line(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say("", format, arguments);
	va_end(arguments);
}

void ca_say_progress(const char *text)
{
	char line[512];
	int length;

	if (!text && !progress_shown)
		return;
	length = snprintf(line, sizeof line, "\r\033[K%.*s", (int)ca_say_width() - 1, text ? text : "");
	put(line, length < (int)sizeof line ? (size_t)length : sizeof line - 1);
	progress_shown = text;
}

bool ca_say_colours(const struct ca_settings *settings)
{
	const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");

	if (!isatty(STDERR_FILENO) || !terminal || !strcmp(terminal, "dumb"))
		return false;
	if (settings->origin[CA_SETTING_MONOCHROME] != CA_ORIGIN_DEFAULT)
		return !settings->monochrome;
	return !none || !*none;
}

unsigned ca_say_width(void)
{
	struct winsize size;

	if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col >= 20)
		return size.ws_col;
	return 100;
}
