/* SPDX-License-Identifier: MIT */
/* Streams. Libc reads and writes for them behind our back, so a call that will have to is a wait
 * for the stream's descriptor: its buffer has not what is asked for, or no room for what comes.
 * The others cost one look at the buffer and are no meetings: nobody can notice what is in a
 * buffer. The look is a guess (another thread may be at the stream); who guesses wrong waits
 * unseen, or sees a wait that takes no time.
 *
 * Not here: scanf, and the functions of wide characters. */
#include <features.h>
#undef __USE_EXTERN_INLINES /* stdio.h shall declare them only */
#include "causal/runtime/channel.h"
#include "causal/runtime/wrap.h"
#include <errno.h>
#include <stdio_ext.h>
#include <string.h>

enum { PRINTED = 256 /* bytes that a printf has room for, we suppose */ };

/* Streams in memory, and those of fopencookie, have none. */
static int descriptor_of(FILE *f)
{
	int saved = errno, fd = fileno_unlocked(f);

	errno = saved;
	return fd;
}

/* Reads until it has what was asked for. Less than 0 is the end of the file where a byte comes back, 0 elsewhere. */
#define FROM_STREAM(fd, call)                                                                                \
	__extension__({                                                                                      \
		struct ca_waiting waiting_ = ca_wait_begin_read_all(fd);                                     \
		__typeof__(call) result_ = (call);                                                           \
		waiting_.delivered = (intptr_t)result_ > (sizeof result_ == sizeof(int) ? -1 : 0);           \
		ca_wait_end(&waiting_);                                                                      \
		result_;                                                                                     \
	})
#define UNLESS(at_hand, f, call)                                                                             \
	(__builtin_expect((at_hand), 1) ? (call) : __extension__({                                           \
		int fd_ = descriptor_of(f);                                                                  \
		fd_ < 0 ? (call) : FROM_STREAM(fd_, (call));                                                 \
	}))
/* What waits in the buffer, and n bytes more. */
#define UNLESS_OUT(at_hand, f, n, call)                                                                      \
	(__builtin_expect((at_hand), 1) ? (call) : __extension__({                                           \
		int fd_ = descriptor_of(f);                                                                  \
		fd_ < 0 ? (call) : TO_FD(fd_, __fpending(f) + (n), (call));                                  \
	}))

/* ---- input -----------------------------------------------------------------------------------*/
static bool has(const FILE *f, size_t n)
{
	return (size_t)(f->_IO_read_end - f->_IO_read_ptr) >= n;
}

static bool has_piece(const FILE *f, int end, size_t n)
{
	size_t here = (size_t)(f->_IO_read_end - f->_IO_read_ptr);

	return here >= n || (here && memchr(f->_IO_read_ptr, end, here));
}

CA_EXPORT size_t fread(void *restrict data, size_t size, size_t n, FILE *restrict f)
{
	return UNLESS(has(f, size * n), f, REAL(fread)(data, size, n, f));
}

CA_EXPORT size_t fread_unlocked(void *restrict data, size_t size, size_t n, FILE *restrict f)
{
	return UNLESS(has(f, size * n), f, REAL(fread_unlocked)(data, size, n, f));
}

CA_EXPORT size_t __fread_chk(void *restrict data, size_t room, size_t size, size_t n, FILE *restrict f)
{
	return UNLESS(has(f, size * n), f, REAL(__fread_chk)(data, room, size, n, f));
}

CA_EXPORT size_t __fread_unlocked_chk(void *restrict data, size_t room, size_t size, size_t n,
				      FILE *restrict f)
{
	return UNLESS(has(f, size * n), f, REAL(__fread_unlocked_chk)(data, room, size, n, f));
}

CA_EXPORT char *fgets(char *restrict text, int n, FILE *restrict f)
{
	return UNLESS(has_piece(f, '\n', (size_t)n - 1), f, REAL(fgets)(text, n, f));
}

CA_EXPORT char *fgets_unlocked(char *restrict text, int n, FILE *restrict f)
{
	return UNLESS(has_piece(f, '\n', (size_t)n - 1), f, REAL(fgets_unlocked)(text, n, f));
}

CA_EXPORT char *__fgets_chk(char *restrict text, size_t room, int n, FILE *restrict f)
{
	return UNLESS(has_piece(f, '\n', (size_t)n - 1), f, REAL(__fgets_chk)(text, room, n, f));
}

CA_EXPORT char *__fgets_unlocked_chk(char *restrict text, size_t room, int n, FILE *restrict f)
{
	return UNLESS(has_piece(f, '\n', (size_t)n - 1), f, REAL(__fgets_unlocked_chk)(text, room, n, f));
}

CA_EXPORT ssize_t getline(char **restrict line, size_t *restrict room, FILE *restrict f)
{
	return UNLESS(has_piece(f, '\n', SIZE_MAX), f, REAL(getline)(line, room, f));
}

CA_EXPORT ssize_t getdelim(char **restrict line, size_t *restrict room, int end, FILE *restrict f)
{
	return UNLESS(has_piece(f, end, SIZE_MAX), f, REAL(getdelim)(line, room, end, f));
}

CA_EXPORT ssize_t __getdelim(char **restrict line, size_t *restrict room, int end, FILE *restrict f)
{
	return UNLESS(has_piece(f, end, SIZE_MAX), f, REAL(__getdelim)(line, room, end, f));
}

#define GET(name)                                                                                            \
	CA_EXPORT int name(FILE *f)                                                                          \
	{                                                                                                    \
		return UNLESS(has(f, 1), f, REAL(name)(f));                                                  \
	}
GET(fgetc)
GET(getc)
GET(_IO_getc)
GET(fgetc_unlocked)
GET(getc_unlocked)
GET(__uflow) /* what the inline form of getc_unlocked calls when nothing is left */

CA_EXPORT int getchar(void)
{
	return UNLESS(has(stdin, 1), stdin, REAL(getchar)());
}

CA_EXPORT int getchar_unlocked(void)
{
	return UNLESS(has(stdin, 1), stdin, REAL(getchar_unlocked)());
}

/* ---- output ----------------------------------------------------------------------------------*/
/* In a stream that is flushed at each line, the end of the room is where it stands. */
static bool fits(FILE *f, const void *data, size_t n)
{
	if (f->_IO_write_end > f->_IO_write_ptr)
		return (size_t)(f->_IO_write_end - f->_IO_write_ptr) >= n;
	return f->_IO_buf_end > f->_IO_write_ptr && f->_IO_write_ptr > f->_IO_write_base && __flbf(f) &&
	       (size_t)(f->_IO_buf_end - f->_IO_write_ptr) >= n && !memchr(data, '\n', n);
}

static bool fits_one(FILE *f, int c)
{
	char byte = (char)c;

	return __builtin_expect(f->_IO_write_end > f->_IO_write_ptr, 1) || fits(f, &byte, 1);
}

CA_EXPORT size_t fwrite(const void *restrict data, size_t size, size_t n, FILE *restrict f)
{
	return UNLESS_OUT(fits(f, data, size * n), f, size * n, REAL(fwrite)(data, size, n, f));
}

CA_EXPORT size_t fwrite_unlocked(const void *restrict data, size_t size, size_t n, FILE *restrict f)
{
	return UNLESS_OUT(fits(f, data, size * n), f, size * n, REAL(fwrite_unlocked)(data, size, n, f));
}

CA_EXPORT int fputs(const char *restrict text, FILE *restrict f)
{
	return UNLESS_OUT(fits(f, text, strlen(text)), f, strlen(text), REAL(fputs)(text, f));
}

CA_EXPORT int fputs_unlocked(const char *restrict text, FILE *restrict f)
{
	return UNLESS_OUT(fits(f, text, strlen(text)), f, strlen(text), REAL(fputs_unlocked)(text, f));
}

static bool fits_line(FILE *f, const char *text)
{
	return f->_IO_write_end > f->_IO_write_ptr &&
	       (size_t)(f->_IO_write_end - f->_IO_write_ptr) > strlen(text);
}

CA_EXPORT int puts(const char *text)
{
	return UNLESS_OUT(fits_line(stdout, text), stdout, strlen(text) + 1, REAL(puts)(text));
}

#define PUT(name)                                                                                            \
	CA_EXPORT int name(int c, FILE *f)                                                                   \
	{                                                                                                    \
		return UNLESS_OUT(fits_one(f, c), f, 1, REAL(name)(c, f));                                   \
	}
PUT(fputc)
PUT(putc)
PUT(_IO_putc)
PUT(fputc_unlocked)
PUT(putc_unlocked)

CA_EXPORT int __overflow(FILE *f, int c) /* as __uflow */
{
	return UNLESS_OUT(fits_one(f, c), f, 1, REAL(__overflow)(f, c));
}

CA_EXPORT int putchar(int c)
{
	return UNLESS_OUT(fits_one(stdout, c), stdout, 1, REAL(putchar)(c));
}

CA_EXPORT int putchar_unlocked(int c)
{
	return UNLESS_OUT(fits_one(stdout, c), stdout, 1, REAL(putchar_unlocked)(c));
}

CA_EXPORT int fflush(FILE *f)
{
	if (!f) /* all of them */
		return MEETING(REAL(fflush)(f));
	return UNLESS_OUT(!__fpending(f), f, 0, REAL(fflush)(f));
}

CA_EXPORT int fflush_unlocked(FILE *f)
{
	if (!f)
		return MEETING(REAL(fflush_unlocked)(f));
	return UNLESS_OUT(!__fpending(f), f, 0, REAL(fflush_unlocked)(f));
}

CA_EXPORT int fclose(FILE *f)
{
	int saved = errno;

	ca_channel_forget(fileno(f));
	errno = saved;
	return UNLESS_OUT(!__fpending(f), f, 0, REAL(fclose)(f));
}

/* ---- printf ----------------------------------------------------------------------------------*/
static bool has_room(const FILE *f)
{
	return f->_IO_write_end - f->_IO_write_ptr >= PRINTED;
}

CA_EXPORT int vfprintf(FILE *restrict f, const char *restrict format, va_list list)
{
	return UNLESS_OUT(has_room(f), f, PRINTED, REAL(vfprintf)(f, format, list));
}

CA_EXPORT int vprintf(const char *restrict format, va_list list)
{
	return UNLESS_OUT(has_room(stdout), stdout, PRINTED, REAL(vprintf)(format, list));
}

CA_EXPORT int __vfprintf_chk(FILE *restrict f, int flag, const char *restrict format, va_list list)
{
	return UNLESS_OUT(has_room(f), f, PRINTED, REAL(__vfprintf_chk)(f, flag, format, list));
}

CA_EXPORT int __vprintf_chk(int flag, const char *restrict format, va_list list)
{
	return UNLESS_OUT(has_room(stdout), stdout, PRINTED, REAL(__vprintf_chk)(flag, format, list));
}

CA_EXPORT int vdprintf(int fd, const char *restrict format, va_list list)
{
	return TO_FD(fd, PRINTED, REAL(vdprintf)(fd, format, list));
}

CA_EXPORT int __vdprintf_chk(int fd, int flag, const char *restrict format, va_list list)
{
	return TO_FD(fd, PRINTED, REAL(__vdprintf_chk)(fd, flag, format, list));
}

/* The variadic ones call those above. Code of ours is compiled without vector registers, so what is
 * saved of them is saved here (System V ABI for x86-64, 3.5.7): a va_list at the stack's top, the
 * registers above it. `named` arguments go before the "..."; the list is passed in register `list`. */
#define PRINTF(name, by, named, list)                                                                        \
	__asm__(".text\n"                                                                                    \
		".globl " #name "\n"                                                                         \
		".type " #name ", @function\n" #name ":\n"                                                   \
		"	.cfi_startproc\n"                                                                          \
		"	sub $216, %rsp\n"                                                                          \
		"	.cfi_adjust_cfa_offset 216\n"                                                              \
		"	mov %rdi, 32(%rsp)\n"                                                                      \
		"	mov %rsi, 40(%rsp)\n"                                                                      \
		"	mov %rdx, 48(%rsp)\n"                                                                      \
		"	mov %rcx, 56(%rsp)\n"                                                                      \
		"	mov %r8, 64(%rsp)\n"                                                                       \
		"	mov %r9, 72(%rsp)\n"                                                                       \
		"	test %al, %al\n"                                                                           \
		"	je 1f\n"                                                                                   \
		"	movaps %xmm0, 80(%rsp)\n"                                                                  \
		"	movaps %xmm1, 96(%rsp)\n"                                                                  \
		"	movaps %xmm2, 112(%rsp)\n"                                                                 \
		"	movaps %xmm3, 128(%rsp)\n"                                                                 \
		"	movaps %xmm4, 144(%rsp)\n"                                                                 \
		"	movaps %xmm5, 160(%rsp)\n"                                                                 \
		"	movaps %xmm6, 176(%rsp)\n"                                                                 \
		"	movaps %xmm7, 192(%rsp)\n"                                                                 \
		"1:	movl $8 * " #named ", (%rsp)\n"                                                      \
		"	movl $48, 4(%rsp)\n"                                                                       \
		"	lea 224(%rsp), %rax\n"                                                                     \
		"	mov %rax, 8(%rsp)\n"                                                                       \
		"	lea 32(%rsp), %rax\n"                                                                      \
		"	mov %rax, 16(%rsp)\n"                                                                      \
		"	mov %rsp, %" #list "\n"                                                              \
		"	call " #by "@PLT\n"                                                                  \
		"	add $216, %rsp\n"                                                                          \
		"	.cfi_adjust_cfa_offset -216\n"                                                             \
		"	ret\n"                                                                                     \
		"	.cfi_endproc\n"                                                                            \
		".size " #name ", . - " #name "\n")
PRINTF(printf, vprintf, 1, rsi);
PRINTF(fprintf, vfprintf, 2, rdx);
PRINTF(dprintf, vdprintf, 2, rdx);
PRINTF(__printf_chk, __vprintf_chk, 2, rdx);
PRINTF(__fprintf_chk, __vfprintf_chk, 3, rcx);
PRINTF(__dprintf_chk, __vdprintf_chk, 3, rcx);
