/* SPDX-License-Identifier: MIT */
/* Formatting into a caller's buffer, without stdio, locale or malloc.
 *
 * For: messages of the runtime, also from handlers. Text that does not fit is cut; the buffer
 * always holds a terminated string. Not for: anything that needs floating point. */
#ifndef CA_CORE_FMT_H
#define CA_CORE_FMT_H
#include "core/status.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ca_fmt {
	char *data;      /* the caller's; terminated after every call */
	size_t capacity; /* bytes of data[], the terminator included; at least 1 */
	size_t length;   /* without the terminator */
	bool cut;        /* something did not fit */
};

CA_SIGSAFE void ca_fmt_init(struct ca_fmt *fmt, char *data, size_t capacity);
CA_SIGSAFE void ca_fmt_text(struct ca_fmt *fmt, const char *text); /* NULL: "(null)" */
CA_SIGSAFE void ca_fmt_char(struct ca_fmt *fmt, char c);
CA_SIGSAFE void ca_fmt_unsigned(struct ca_fmt *fmt, uint64_t value);
CA_SIGSAFE void ca_fmt_signed(struct ca_fmt *fmt, int64_t value);
CA_SIGSAFE void ca_fmt_hex(struct ca_fmt *fmt, uint64_t value); /* no prefix */
/* A subset of printf: %s %c %d %i %u %x %p %% with l, ll, z, j; no width, no precision. Anything
 * else is copied as it stands and takes no argument. */
CA_SIGSAFE void ca_fmt_add(struct ca_fmt *fmt, const char *format, ...) CA_PRINTF(2, 3);
CA_SIGSAFE void ca_fmt_vadd(struct ca_fmt *fmt, const char *format, va_list arguments) CA_PRINTF(2, 0);
/* Write all of it to fd, resuming after signals; errno is kept. */
CA_SIGSAFE bool ca_fmt_write(const struct ca_fmt *fmt, int fd);

#endif
