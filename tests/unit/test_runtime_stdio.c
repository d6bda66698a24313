/* SPDX-License-Identifier: MIT */
/* causal/runtime/wrap_stdio.c: a call on a stream is a wait for its descriptor where libc will have to
 * read or write, and nothing else; and it does what libc's does. The streams are real ones, on pipes. */
#include "causal/runtime/wrap.h"
#include "tests/unit/runtime.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#undef fread_unlocked
#undef fwrite_unlocked

/* ---- what stands in -------------------------------------------------------------------------------- */
static unsigned waits, meetings;
static int waited_fd;
static size_t wanted;  /* bytes, of a write */
static bool delivered; /* of a read */
static enum ca_wait waited_kind;

void ca_wait_meet_from(const void *object, uintptr_t site)
{
	(void)object, (void)site;
	meetings++;
}

struct ca_waiting ca_wait_begin_from(enum ca_wait kind, int fd, uintptr_t site)
{
	(void)site;
	waits++;
	waited_fd = fd;
	waited_kind = kind;
	return (struct ca_waiting){ .fd = fd };
}

struct ca_waiting ca_wait_begin_read_all_from(int fd, uintptr_t site)
{
	return ca_wait_begin_from(CA_WAIT_EXTERNAL, fd, site);
}

struct ca_waiting ca_wait_begin_write_from(int fd, size_t n, uintptr_t site)
{
	wanted = n;
	return ca_wait_begin_from(CA_WAIT_EXTERNAL, fd, site);
}

void ca_wait_end(struct ca_waiting *w)
{
	delivered = w->delivered > 0;
}

/* ---- streams ----------------------------------------------------------------------------------------- */
static int other_end;
static FILE *stream;

static void open_stream(const char *mode)
{
	bool in = *mode == 'r';
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	other_end = ends[in];
	stream = fdopen(ends[!in], mode);
	assert_non_null(stream);
}

static void close_stream(void)
{
	assert_int_equal(fclose(stream), 0);
	close(other_end);
}

static void put(const char *text)
{
	assert_int_equal(REAL(write)(other_end, text, strlen(text)), strlen(text));
}

static void expect(const char *text)
{
	char got[256] = "";

	assert_int_equal(REAL(read)(other_end, got, sizeof got - 1), strlen(text));
	assert_string_equal(got, text);
}

static bool covered_all(const bool *covered);
static const char *const names[] = {
#define X(name, version) #name,
	CA_WRAPPED_STDIO(X)
#undef X
};
static bool covered[CA_COUNT(names)];

static bool covered_all(const bool *which)
{
	bool all = true;

	for (unsigned i = 0; i < CA_COUNT(names); i++)
		if (!which[i]) {
			all = false;
			print_message("%s is wrapped, and has no test here\n", names[i]);
		}
	return all;
}

static void cover(const char *name)
{
	for (unsigned i = 0; i < CA_COUNT(names); i++)
		if (!strcmp(names[i], name)) {
			covered[i] = true;
			return;
		}
	fail_msg("%s is no row of CA_WRAPPED_STDIO", name);
}

/* ---- input ------------------------------------------------------------------------------------------- */
/* Each takes "ab\n", or one character. */
static char text[8], *line;
static size_t room;
#define INPUTS(X)                                                                                            \
	X(fread, 3, fread(text, 1, 3, stream))                                                               \
	X(fread_unlocked, 3, fread_unlocked(text, 1, 3, stream))                                             \
	X(__fread_chk, 3, __fread_chk(text, sizeof text, 1, 3, stream))                                      \
	X(__fread_unlocked_chk, 3, __fread_unlocked_chk(text, sizeof text, 1, 3, stream))                    \
	X(fgets, 3, fgets(text, 8, stream) ? 3 : 0)                                                          \
	X(fgets_unlocked, 3, fgets_unlocked(text, 8, stream) ? 3 : 0)                                        \
	X(__fgets_chk, 3, __fgets_chk(text, sizeof text, 8, stream) ? 3 : 0)                                 \
	X(__fgets_unlocked_chk, 3, __fgets_unlocked_chk(text, sizeof text, 8, stream) ? 3 : 0)               \
	X(getline, 3, getline(&line, &room, stream))                                                         \
	X(getdelim, 3, getdelim(&line, &room, '\n', stream))                                                 \
	X(__getdelim, 3, __getdelim(&line, &room, '\n', stream))                                             \
	X(fgetc, 'a', fgetc(stream))                                                                         \
	X(getc, 'a', (getc)(stream))                                                                         \
	X(_IO_getc, 'a', _IO_getc(stream))                                                                   \
	X(fgetc_unlocked, 'a', (*volatile_get(fgetc_unlocked))(stream))                                      \
	X(getc_unlocked, 'a', (*volatile_get(getc_unlocked))(stream))                                        \
	X(__uflow, 'a', __uflow(stream))                                                                     \
	X(getchar, 'a', (*volatile_get0(getchar))())                                                         \
	X(getchar_unlocked, 'a', (*volatile_get0(getchar_unlocked))())

typedef int get_type(FILE *);
typedef int get0_type(void);

/* not the inline form */
static get_type *volatile_get(get_type *f)
{
	get_type *volatile g = f;

	return g;
}

static get0_type *volatile_get0(get0_type *f)
{
	get0_type *volatile g = f;

	return g;
}

enum input {
#define X(name, expected, call) IN_##name,
	INPUTS(X)
#undef X
		IN_COUNT
};

static const struct {
	const char *name;
	long expected;
} inputs[] = {
#define X(name, expected, call) { #name, expected },
	INPUTS(X)
#undef X
};

static long take(enum input which)
{
	FILE *usual = stdin;
	long r = 0;

	stdin = stream;
	waits = 0;
	errno = 5;
	switch (which) {
#define X(name, expected, call)                                                                              \
	case IN_##name:                                                                                      \
		r = (long)(call);                                                                            \
		break;
		INPUTS(X)
#undef X
	default:
		break;
	}
	stdin = usual;
	return r;
}

static void input(void **state)
{
	(void)state;
	for (enum input i = 0; i < IN_COUNT; i++) {
		bool one = inputs[i].expected == 'a';

		cover(inputs[i].name);
		open_stream("r");
		put(one ? "aaa" : "ab\nab\n");
		assert_int_equal(take(i), inputs[i].expected);
		if (waits != 1 || waited_fd != fileno(stream) || waited_kind != CA_WAIT_EXTERNAL)
			fail_msg("%s: %u waits", inputs[i].name, waits);
		if (!delivered)
			fail_msg("%s: nobody would know that it has read", inputs[i].name);
		assert_int_equal(errno, 5);
		assert_int_equal(take(i), inputs[i].expected); /* it is in the buffer */
		if (waits)
			fail_msg("%s: waits for what it has", inputs[i].name);
		if (!one)
			assert_memory_equal(room ? line : text, "ab\n", 3);
		close(other_end); /* the end is waited for, too */
		other_end = -1;
		if (one)
			take(i);
		take(i);
		assert_int_equal(waits, 1);
		assert_true(feof(stream) && !delivered);
		fclose(stream);
	}
	free(line);
}

static void input_in_part(void **state)
{
	(void)state;
	open_stream("r");
	put("ab\ncd");
	assert_int_equal(fgetc(stream), 'a');
	waits = 0;
	assert_non_null(fgets(text, 2, stream)); /* as much as it asks for */
	assert_int_equal(waits, 0);
	assert_non_null(fgets(text, 8, stream)); /* the rest of a line */
	assert_int_equal(waits, 0);
	put("e\n");
	assert_non_null(fgets(text, 8, stream));
	assert_int_equal(waits, 1);
	assert_string_equal(text, "cde\n");
	put("xy");
	assert_int_equal(fgetc(stream), 'x');
	waits = 0;
	put("z");
	assert_int_equal(fread(text, 2, 1, stream), 1);
	assert_int_equal(waits, 1);
	close_stream();
}

/* A stream in memory waits for nobody. */
static void memory(void **state)
{
	char *data = NULL;
	size_t size;

	(void)state;
	waits = 0;
	stream = fmemopen((char[]){ "ab\n" }, 3, "r");
	assert_int_equal(fgetc(stream), 'a');
	assert_int_equal(fclose(stream), 0);
	stream = open_memstream(&data, &size);
	assert_int_equal(fputs("ab", stream), 1);
	assert_int_equal(fprintf(stream, "%d", 3), 1);
	assert_int_equal(fclose(stream), 0);
	assert_string_equal(data, "ab3");
	assert_int_equal(waits, 0);
	free(data);
}

/* ---- output ------------------------------------------------------------------------------------------ */
#define FORMAT    "%d %s %g %ld %d %d %g %d %g %g %g %g %g %g %g %Lg."
#define ARGUMENTS 1, "two", 3.5, 4L, 5, 6, 7.5, 8, 9.5, 10.5, 11.5, 12.5, 13.5, 14.5, 15.5, 16.5L
#define PRINTED   "1 two 3.5 4 5 6 7.5 8 9.5 10.5 11.5 12.5 13.5 14.5 15.5 16.5."

static int by_list(int which, ...)
{
	va_list list;
	int r;

	va_start(list, which);
	r = which == 0   ? vprintf(FORMAT, list)
	    : which == 1 ? vfprintf(stream, FORMAT, list)
	    : which == 2 ? __vprintf_chk(1, FORMAT, list)
			 : __vfprintf_chk(stream, 1, FORMAT, list);
	va_end(list);
	return r;
}

static int by_list_to(int which, int fd, ...)
{
	va_list list;
	int r;

	va_start(list, fd);
	r = which == 0 ? vdprintf(fd, FORMAT, list) : __vdprintf_chk(fd, 1, FORMAT, list);
	va_end(list);
	return r;
}

typedef int put_type(int, FILE *);
typedef int put0_type(int);

static put_type *volatile_put(put_type *f)
{
	put_type *volatile g = f;

	return g;
}

static put0_type *volatile_put0(put0_type *f)
{
	put0_type *volatile g = f;

	return g;
}

#define OUTPUTS(X)                                                                                           \
	X(fwrite, "ab", (int)fwrite("ab", 1, 2, stream))                                                     \
	X(fwrite_unlocked, "ab", (int)fwrite_unlocked("ab", 1, 2, stream))                                   \
	X(fputs, "ab", fputs("ab", stream))                                                                  \
	X(fputs_unlocked, "ab", fputs_unlocked("ab", stream))                                                \
	X(puts, "ab\n", puts("ab"))                                                                          \
	X(fputc, "a", (*volatile_put(fputc))('a', stream))                                                   \
	X(putc, "a", (*volatile_put(putc))('a', stream))                                                     \
	X(_IO_putc, "a", _IO_putc('a', stream))                                                              \
	X(fputc_unlocked, "a", (*volatile_put(fputc_unlocked))('a', stream))                                 \
	X(putc_unlocked, "a", (*volatile_put(putc_unlocked))('a', stream))                                   \
	X(__overflow, "a", __overflow(stream, 'a'))                                                          \
	X(putchar, "a", (*volatile_put0(putchar))('a'))                                                      \
	X(putchar_unlocked, "a", (*volatile_put0(putchar_unlocked))('a'))                                    \
	X(printf, PRINTED, printf(FORMAT, ARGUMENTS))                                                        \
	X(fprintf, PRINTED, fprintf(stream, FORMAT, ARGUMENTS))                                              \
	X(vprintf, PRINTED, by_list(0, ARGUMENTS))                                                           \
	X(vfprintf, PRINTED, by_list(1, ARGUMENTS))                                                          \
	X(__printf_chk, PRINTED, __printf_chk(1, FORMAT, ARGUMENTS))                                         \
	X(__fprintf_chk, PRINTED, __fprintf_chk(stream, 1, FORMAT, ARGUMENTS))                               \
	X(__vprintf_chk, PRINTED, by_list(2, ARGUMENTS))                                                     \
	X(__vfprintf_chk, PRINTED, by_list(3, ARGUMENTS))

enum output {
#define X(name, written, call) OUT_##name,
	OUTPUTS(X)
#undef X
		OUT_COUNT
};

static const struct {
	const char *name, *written;
} outputs[] = {
#define X(name, written, call) { #name, written },
	OUTPUTS(X)
#undef X
};

static int give(enum output which)
{
	FILE *usual = stdout;
	int r = 0;

	stdout = stream;
	waits = 0;
	errno = 5;
	switch (which) {
#define X(name, written, call)                                                                               \
	case OUT_##name:                                                                                     \
		r = (call);                                                                                  \
		break;
		OUTPUTS(X)
#undef X
	default:
		break;
	}
	stdout = usual;
	return r;
}

static void output(void **state)
{
	(void)state;
	for (enum output i = 0; i < OUT_COUNT; i++) {
		char twice[256];
		int first;

		cover(outputs[i].name);
		open_stream("w");
		setvbuf(stream, NULL, _IOFBF, 4096);
		first = give(i);
		assert_int_equal(errno, 5);
		if (i >= OUT_printf)
			assert_int_equal(first, strlen(PRINTED));
		/* now there is a buffer with room */
		if (give(i) != first || (waits && i != OUT___overflow))
			fail_msg("%s: %u waits", outputs[i].name, waits);
		waits = 0;
		assert_int_equal(fflush(stream), 0);
		assert_int_equal(waits, 1);
		assert_int_equal(waited_fd, fileno(stream));
		assert_int_equal(waited_kind, CA_WAIT_EXTERNAL);
		assert_int_equal(fflush(stream), 0); /* nothing is left to write */
		assert_int_equal(waits, 1);
		strcpy(twice, outputs[i].written);
		strcat(twice, outputs[i].written);
		if (i == OUT___overflow)
			expect("aa");
		else
			expect(twice);
		/* without a buffer each is a wait */
		setvbuf(stream, NULL, _IONBF, 0);
		give(i);
		if (!waits || waited_fd != fileno(stream))
			fail_msg("%s: is no wait without a buffer", outputs[i].name);
		expect(outputs[i].written);
		close_stream();
	}
}

static void output_by_lines(void **state)
{
	(void)state;
	open_stream("w");
	setvbuf(stream, NULL, _IOLBF, 4096);
	fputs("a", stream);
	waits = 0;
	fputs("b", stream);
	fputc('c', stream);
	assert_int_equal(waits, 0);
	fputs("d\n", stream);
	assert_int_equal(waits, 1);
	fputc('\n', stream);
	assert_int_equal(waits, 2);
	expect("abcd\n\n");
	close_stream();
}

static void flushes(void **state)
{
	(void)state;
	cover("fflush");
	cover("fflush_unlocked");
	cover("fclose");
	open_stream("w");
	fputs("ab", stream);
	waits = 0;
	assert_int_equal(fflush_unlocked(stream), 0);
	assert_int_equal(waits, 1);
	assert_int_equal(fflush_unlocked(stream), 0);
	assert_int_equal(waits, 1);
	meetings = 0;
	fflush(NULL);
	fflush_unlocked(NULL);
	assert_int_equal(meetings, 2);
	fputs("cd", stream);
	waits = 0;
	assert_int_equal(fclose(stream), 0);
	assert_int_equal(waits, 1);
	expect("abcd");
	close(other_end);
	open_stream("w");
	waits = 0;
	close_stream();
	assert_int_equal(waits, 0);
}

static void descriptors(void **state)
{
	static const char *const printers[] = { "dprintf", "__dprintf_chk", "vdprintf", "__vdprintf_chk" };

	(void)state;
	open_stream("w");
	for (unsigned i = 0; i < CA_COUNT(printers); i++) {
		int r, fd = fileno(stream);

		cover(printers[i]);
		waits = 0;
		r = i == 0   ? dprintf(fd, FORMAT, ARGUMENTS)
		    : i == 1 ? __dprintf_chk(fd, 1, FORMAT, ARGUMENTS)
			     : by_list_to((int)i - 2, fd, ARGUMENTS);
		assert_int_equal(r, strlen(PRINTED));
		assert_int_equal(waits, 1);
		assert_int_equal(waited_fd, fd);
		expect(PRINTED);
	}
	close_stream();
}

/* It is the last. */
static void every_row(void **state)
{
	(void)state;
	assert_true(covered_all(covered));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(input),       cmocka_unit_test(input_in_part),   cmocka_unit_test(memory),
		cmocka_unit_test(output),      cmocka_unit_test(output_by_lines), cmocka_unit_test(flushes),
		cmocka_unit_test(descriptors), cmocka_unit_test(every_row),
	};

	ca_real_resolve();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
