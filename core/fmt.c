/* SPDX-License-Identifier: MIT */
/* Signal-safe formatting: see core/fmt.h. Any thread, handlers included. */
#include "core/fmt.h"
#include "core/sys.h"
#include <errno.h>

void ca_fmt_init(struct ca_fmt *fmt, char *data, size_t capacity)
{
	*fmt = (struct ca_fmt){ .data = data, .capacity = capacity };
	data[0] = '\0';
}

void ca_fmt_char(struct ca_fmt *fmt, char c)
{
	if (fmt->length + 1 >= fmt->capacity) {
		fmt->cut = true;
		return;
	}
	fmt->data[fmt->length++] = c;
	fmt->data[fmt->length] = '\0';
}

void ca_fmt_text(struct ca_fmt *fmt, const char *text)
{
	for (const char *c = text ? text : "(null)"; *c; c++)
		ca_fmt_char(fmt, *c);
}

static void add_number(struct ca_fmt *fmt, uint64_t value, unsigned base, unsigned least_digits)
{
	char digits[20]; /* 2^64 - 1 has 20 decimal digits */
	unsigned n = 0;

	do {
		digits[n++] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value || n < least_digits);
	while (n)
		ca_fmt_char(fmt, digits[--n]);
}

void ca_fmt_unsigned(struct ca_fmt *fmt, uint64_t value)
{
	add_number(fmt, value, 10, 1);
}

void ca_fmt_signed(struct ca_fmt *fmt, int64_t value)
{
	if (value < 0)
		ca_fmt_char(fmt, '-');
	/* negated as unsigned: INT64_MIN has no positive twin */
	add_number(fmt, value < 0 ? -(uint64_t)value : (uint64_t)value, 10, 1);
}

void ca_fmt_hex(struct ca_fmt *fmt, uint64_t value)
{
	add_number(fmt, value, 16, 1);
}

/* One conversion; *at points behind the '%' and is moved behind the conversion. All 64-bit
 * lengths are one type on x86-64 Linux. */
static void add_conversion(struct ca_fmt *fmt, const char **at, va_list *arguments)
{
	const char *c = *at;
	bool wide = false;

	for (; *c == 'l' || *c == 'z' || *c == 'j'; c++)
		wide = true;
	switch (*c) {
	case 's':
		ca_fmt_text(fmt, va_arg(*arguments, const char *));
		break;
	case 'c':
		ca_fmt_char(fmt, (char)va_arg(*arguments, int));
		break;
	case 'd':
	case 'i':
		ca_fmt_signed(fmt, wide ? va_arg(*arguments, long) : va_arg(*arguments, int));
		break;
	case 'u':
		ca_fmt_unsigned(fmt, wide ? va_arg(*arguments, unsigned long) : va_arg(*arguments, unsigned));
		break;
	case 'x':
		ca_fmt_hex(fmt, wide ? va_arg(*arguments, unsigned long) : va_arg(*arguments, unsigned));
		break;
	case 'p':
		ca_fmt_text(fmt, "0x");
		ca_fmt_hex(fmt, (uintptr_t)va_arg(*arguments, void *));
		break;
	case '%':
		ca_fmt_char(fmt, '%');
		break;
	default:
		ca_fmt_char(fmt, '%');
		return;
	}
	*at = c + 1;
}

void ca_fmt_vadd(struct ca_fmt *fmt, const char *format, va_list arguments)
{
	va_list rest;

	va_copy(rest, arguments);
	while (*format) {
		if (*format == '%') {
			format++;
			add_conversion(fmt, &format, &rest);
		} else {
			ca_fmt_char(fmt, *format++);
		}
	}
	va_end(rest);
}

void ca_fmt_add(struct ca_fmt *fmt, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	ca_fmt_vadd(fmt, format, arguments);
	va_end(arguments);
}

bool ca_fmt_write(const struct ca_fmt *fmt, int fd)
{
	size_t done = 0;

	while (done < fmt->length) {
		/* not libc's: that one is a place where a thread may be cancelled */
		long n = ca_sys(SYS_write, fd, (long)(intptr_t)(fmt->data + done), (long)(fmt->length - done),
				0, 0, 0);

		if (n > 0)
			done += (size_t)n;
		else if (n != -EINTR)
			break;
	}
	return done == fmt->length;
}
