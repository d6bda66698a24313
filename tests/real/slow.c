/* SPDX-License-Identifier: MIT */
/* Hot spots of known cost in programs as they are installed, for checks of predictions (predict.py).
 *
 * Preloaded, it adds work to library functions that a program calls in its parallel part, and to
 * others that it calls in its serial part: CA_PARALLEL_NS and CA_SERIAL_NS per call, some ns of
 * computing (no clock: in the code that is sped up, the clock is virtual). The two functions
 * added_parallel and added_serial are what causal is asked about; less in the variable is what they
 * would be like if they took less time.
 *
 * Functions that everybody calls (memcpy) count only when the code of the binary whose name contains
 * CA_CALLER calls them (MAIN: the program). With CA_COUNT the calls are counted and printed. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGE = 1000 }; /* bytes: smaller copies are not worth a hot spot */

static long parallel_ns, serial_ns;
static uintptr_t caller_from, caller_to;
static bool counting, comparing;
static unsigned long count[2];
static _Thread_local int role; /* 1 main thread, 2 another, 3 a worker of pbzip2 */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* A chain of multiplications, about a ns each. Of a chain of some 100 ns the processor hides a part behind what comes
 * next, the more the shorter it is, so that half of it costs less than half; and a fence behind it is no help: samples
 * see what is fetched, and a processor that waits at a fence has fetched what comes next (of two chains of 127 and
 * 54 ns with a fence each, samples gave 29 and 69 % to the one that takes 70 and 30). So chains are long. */
static void work(long ns)
{
	unsigned long x = (unsigned long)ns;

	for (long i = 0; i < ns; i++)
		__asm__ volatile("imul $3, %0, %0" : "+r"(x));
}

void added_parallel(long ns);
__attribute__((noinline)) void added_parallel(long ns)
{
	work(ns);
}

void added_serial(long ns);
__attribute__((noinline)) void added_serial(long ns)
{
	work(ns + 1 - 1);
	__asm__ volatile("");
}

static void parallel(void)
{
	if (counting)
		__atomic_add_fetch(&count[0], 1, __ATOMIC_RELAXED);
	if (parallel_ns)
		added_parallel(parallel_ns);
}

static void serial(void)
{
	if (counting)
		__atomic_add_fetch(&count[1], 1, __ATOMIC_RELAXED);
	if (serial_ns)
		added_serial(serial_ns);
}

static bool is_main(void)
{
	if (!role)
		role = gettid() == getpid() ? 1 : 2;
	return role == 1;
}

static void by_thread(void)
{
	if (is_main())
		serial();
	else
		parallel();
}

static bool called_by(const void *address)
{
	return (uintptr_t)address >= caller_from && (uintptr_t)address < caller_to;
}

#define CALLED called_by(__builtin_return_address(0))

static int find_caller(struct dl_phdr_info *info, size_t size, void *wanted)
{
	bool is_program = !strcmp(wanted, "MAIN");

	(void)size;
	if (is_program ? info->dlpi_name[0] != '\0' : !strstr(info->dlpi_name, wanted))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD && header->p_flags & PF_X) {
			caller_from = info->dlpi_addr + header->p_vaddr;
			caller_to = caller_from + header->p_memsz;
		}
	}
	return 1;
}

__attribute__((constructor)) static void begin(void)
{
	const char *parallel_text = getenv("CA_PARALLEL_NS"), *serial_text = getenv("CA_SERIAL_NS");
	char *caller = getenv("CA_CALLER");

	/* behind env, causal is started with this preloaded, too (-l): it is not what is to be slow */
	if (!strcmp(program_invocation_short_name, "causal"))
		return;
	parallel_ns = parallel_text ? atol(parallel_text) : 0;
	serial_ns = serial_text ? atol(serial_text) : 0;
	counting = getenv("CA_COUNT") != NULL;
	comparing = getenv("CA_COMPARES") != NULL;
	if (caller)
		dl_iterate_phdr(find_caller, caller);
}

__attribute__((destructor)) static void end(void)
{
	if (counting)
		fprintf(stderr, "slow.so: %lu parallel, %lu serial\n", count[0], count[1]);
}

/* ---- libc: xz and zstd move their data with these ------------------------------------ */

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	if (size >= LARGE && CALLED)
		by_thread();
	return memmove(to, from, size);
}

void *memset(void *to, int value, size_t size)
{
	static __typeof__(&memset) real;

	if (size >= LARGE && CALLED)
		by_thread();
	if (!real)
		real = REAL(memset);
	return real(to, value, size);
}

/* sort and sqlite3, where CA_COMPARES is set: each sixteenth of a thread's comparisons, of which there are millions */
int memcmp(const void *a, const void *b, size_t size)
{
	static __typeof__(&memcmp) real;
	static _Thread_local unsigned compared;

	if (comparing && CALLED && ++compared % 16 == 0)
		by_thread();
	if (!real)
		real = REAL(memcmp);
	return real(a, b, size);
}

/* pigz's writer: once per block */
int pthread_cond_destroy(pthread_cond_t *condition)
{
	static __typeof__(&pthread_cond_destroy) real;

	if (CALLED)
		serial();
	if (!real)
		real = REAL(pthread_cond_destroy);
	return real(condition);
}

/* redis: each three times per command */
int strcasecmp(const char *a, const char *b)
{
	static __typeof__(&strcasecmp) real;

	if (CALLED)
		serial();
	if (!real)
		real = REAL(strcasecmp);
	return real(a, b);
}

char *strchr(const char *text, int c)
{
	static char *(*real)(const char *, int);

	if (CALLED)
		parallel();
	if (!real)
		real = (char *(*)(const char *, int))dlsym(RTLD_NEXT, "strchr");
	return real(text, c);
}

/* redis finds a command by a hash of what it reads here, in some processes with one comparison more: so all read the
 * same, or each would be another program. */
FILE *fopen64(const char *restrict path, const char *restrict mode)
{
	static __typeof__(&fopen64) real;

	if (!real)
		real = REAL(fopen64);
	return real(CALLED && !strcmp(path, "/dev/urandom") ? "/dev/zero" : path, mode);
}

/* memcached's workers: the end of a request's line */
void *memchr(const void *in, int c, size_t size)
{
	static void *(*real)(const void *, int, size_t);

	if (CALLED)
		parallel();
	if (!real)
		real = (void *(*)(const void *, int, size_t))dlsym(RTLD_NEXT, "memchr");
	return real(in, c, size);
}

/* nginx: each once per request of a file that it compresses */
int fstat64(int file, struct stat64 *status)
{
	static __typeof__(&fstat64) real;

	if (CALLED)
		parallel();
	if (!real)
		real = REAL(fstat64);
	return real(file, status);
}

int deflateInit2_(void *stream, int level, int method, int bits, int memory, int strategy,
		  const char *version, int size);
int deflateInit2_(void *stream, int level, int method, int bits, int memory, int strategy,
		  const char *version, int size)
{
	static __typeof__(&deflateInit2_) real;

	if (CALLED)
		serial();
	if (!real)
		real = REAL(deflateInit2_);
	return real(stream, level, method, bits, memory, strategy, version, size);
}

/* ---- zlib ---------------------------------------------------------------------------- */

unsigned long crc32(unsigned long crc, const unsigned char *data, unsigned size);
unsigned long crc32(unsigned long crc, const unsigned char *data, unsigned size)
{
	static __typeof__(&crc32) real;

	by_thread();
	if (!real)
		real = REAL(crc32);
	return real(crc, data, size);
}

/* ---- libbz2, and the end of a block in pbzip2 ------------------------------------------ */

int BZ2_bzBuffToBuffCompress(char *to, unsigned *to_size, char *from, unsigned size, int block, int verbosity,
			     int work_factor);
int BZ2_bzBuffToBuffCompress(char *to, unsigned *to_size, char *from, unsigned size, int block, int verbosity,
			     int work_factor)
{
	static __typeof__(&BZ2_bzBuffToBuffCompress) real;

	role = 3;
	parallel();
	if (!real)
		real = REAL(BZ2_bzBuffToBuffCompress);
	return real(to, to_size, from, size, block, verbosity, work_factor);
}

void _ZdaPv(void *block); /* operator delete[](void *) */
void _ZdaPv(void *block)
{
	if (CALLED && role != 3)
		serial();
	free(block);
}
