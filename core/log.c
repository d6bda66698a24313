/* SPDX-License-Identifier: MIT */
/* Signal-safe messages: see core/log.h. Any thread, handlers included. */
#include "core/log.h"
#include "core/fmt.h"
#include "core/sys.h"
#include <poll.h>
#include <stdarg.h>

/* Written by ca_log_init only, before other threads exist. */
static enum ca_log_level shown = CA_LOG_ERROR;
static int log_fd = 2;
/* What log_fd was then. A program may close it, and open a file of its own in its place. */
static bool known;
static dev_t log_device;
static ino_t log_inode;

void ca_log_init(enum ca_log_level level, int fd)
{
	struct stat now;

	shown = level;
	log_fd = fd;
	if (ca_sys_stat(fd, &now)) {
		log_device = now.st_dev;
		log_inode = now.st_ino;
	} else {
		log_inode = (ino_t)-1; /* closed: nothing that is opened there later is for us */
	}
	known = true;
}

/* Somebody reads it, and a write would neither block nor raise SIGPIPE. */
CA_SIGSAFE static bool takes_text(void)
{
	struct pollfd fd = { .fd = log_fd, .events = POLLOUT };
	struct timespec none = { 0, 0 };

	return ca_sys(SYS_ppoll, (long)(intptr_t)&fd, 1, (long)(intptr_t)&none, 0, 8, 0) == 1 &&
	       fd.revents == POLLOUT;
}

CA_SIGSAFE static bool still_there(void)
{
	struct stat now;

	return !known || (ca_sys_stat(log_fd, &now) && now.st_dev == log_device && now.st_ino == log_inode);
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

	if (!ca_log_shows(level) || !still_there() || !takes_text())
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
