/* SPDX-License-Identifier: MIT */
/* Wraps functions of its own, which nobody imports: what comes by, while threads run them; that their code is as
 * it was afterwards; and which are declined, with nothing changed. Says what it has found.
 * With -DOTHER the other file of it, which has a static function of the same name. */
#include <causal_wrap.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef OTHER
CAUSAL_WRAPPABLE static int twin(int x)
{
	return x + 2;
}

int call_other_twin(int x);
int call_other_twin(int x)
{
	return twin(x);
}
#else
enum { ROUNDS = 100, THREADS = 2 };

struct large {
	long value[6];
};

/* ---- what is wrapped */
CAUSAL_WRAPPABLE static int twice(int x)
{
	return 2 * x;
}

CAUSAL_WRAPPABLE static int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

CAUSAL_WRAPPABLE double many(int a, double b, long c, float d, int e, int f, int g, int h, double i, short j);
double many(int a, double b, long c, float d, int e, int f, int g, int h, double i, short j)
{
	return a + b + (double)c + (double)d + e + f + g + h + i + j;
}

CAUSAL_WRAPPABLE static struct large fill(long from, long step)
{
	struct large large;

	for (int i = 0; i < 6; i++)
		large.value[i] = from + i * step;
	return large;
}

/* Not marked, but it calls what nobody knows. */
int noisy(int x);
__attribute__((noinline)) int noisy(int x)
{
	return x + (getenv("NOT_THERE") == NULL);
}

CAUSAL_WRAPPABLE static int twin(int x)
{
	return x + 1;
}

int call_other_twin(int x);

/* ---- what is declined */
static __attribute__((noinline)) int leaf(int x)
{
	return 3 * x;
}

/* A loop that begins where the function does; and a name that two have. */
int looped(int n);
__asm__(".text\n.globl looped\n.type looped, @function\n"
	"looped: dec %edi\njnz looped\nxor %eax, %eax\njmp *nowhere(%rip)\nret\n.size looped, . - looped\n"
	".data\nnowhere: .quad 0\n.text");

/* ---- wrappers */
static atomic_int before, after, last;

#define AUDIT(name, keep)                                                                                    \
	static void before_##name keep                                                                       \
	{                                                                                                    \
		(void)x;                                                                                     \
		before++;                                                                                    \
	}                                                                                                    \
	static void after_##name(int result)                                                                 \
	{                                                                                                    \
		after++;                                                                                     \
		last = result;                                                                               \
	}                                                                                                    \
	CAUSAL_WRAP(int, name, keep, (x))
AUDIT(twice, (int x))
AUDIT(fib, (int x))
AUDIT(noisy, (int x))
AUDIT(leaf, (int x))
AUDIT(looped, (int x))
AUDIT(twin, (int x))

static double sum_seen;
static void before_many(int a, double b, long c, float d, int e, int f, int g, int h, double i, short j)
{
	sum_seen = a * b * (double)c * (double)d * e * f * g * h * i * j;
}
static void after_many(double result)
{
	sum_seen += result;
}
CAUSAL_WRAP(double, many, (int a, double b, long c, float d, int e, int f, int g, int h, double i, short j),
	    (a, b, c, d, e, f, g, h, i, j))

static void before_fill(long from, long step)
{
	sum_seen = (double)(from + step);
}
static void after_fill(struct large result)
{
	sum_seen += (double)result.value[5];
}
CAUSAL_WRAP(struct large, fill, (long from, long step), (from, step))

/* Uses all registers that a function may use. */
static int thousand_more(int x)
{
	char text[64];

	snprintf(text, sizeof text, "%d %g", x, x * 1.5);
	return 2 * x + 1000 * (text[0] != 0);
}
CAUSAL_WRAP_REPLACE(twice, thousand_more)

/* Not while a thread that begins has all signals blocked, or a sweep has selected the function. */
static int start(struct causal_wrapper *wrapper)
{
	int error;

	while ((error = causal_wrap_start(wrapper)) == EAGAIN)
		;
	return error;
}

/* ---- under threads */
static atomic_bool stop;
static atomic_int wrong, plain, replaced;

static void *run(void *none)
{
	double d = 0.5;

	for (int i = 1; !stop; i = i % 1000 + 1) {
		long a = i, b = a + 3, c = b * 5, e = a ^ c;
		int result = twice(i);

		if (result == 2 * i)
			plain++;
		else if (result == 2 * i + 1000)
			replaced++;
		else
			wrong++;
		d += (double)i;
		if (b != i + 3 || c != (i + 3) * 5L || e != (i ^ c))
			wrong++;
	}
	return d > 0 ? none : NULL;
}

static void in_threads(void)
{
	pthread_t thread[THREADS];
	int have;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		have = i % 2 ? plain : replaced;
		wrong += (i % 2 ? causal_wrap_stop : start)(&causal_replace_twice) != 0;
		while ((i % 2 ? plain : replaced) == have && !wrong)
			usleep(100);
	}
	stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	printf("threads: wrong %d\n", wrong);
}

static void *block(void *barrier)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_barrier_wait((pthread_barrier_t *)barrier);
	pthread_barrier_wait((pthread_barrier_t *)barrier);
	return NULL;
}

static const char *name_of(int error)
{
	return error == ENOENT     ? "ENOENT"
	       : error == ENOTUNIQ ? "ENOTUNIQ"
	       : error == ENOTSUP  ? "ENOTSUP"
	       : error == EAGAIN   ? "EAGAIN"
	       : error             ? "?"
				   : "0";
}

static unsigned char code[2][64];

static void copy_code(int at, int (*function)(int))
{
	memcpy(code[at], (const void *)(size_t)function, sizeof code[0]);
}

static void decline(struct causal_wrapper *wrapper, int (*function)(int))
{
	int error;

	copy_code(0, function);
	error = causal_wrap_start(wrapper);
	copy_code(1, function);
	printf("%s: %s, %s\n", wrapper->symbol, name_of(error),
	       memcmp(code[0], code[1], sizeof code[0]) ? "changed" : "as it was");
}

static void decline_where_blocked(void)
{
	pthread_barrier_t barrier;
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, block, &barrier);
	pthread_barrier_wait(&barrier);
	decline(&causal_wrap_fib, fib);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
}

#define WITH(name, expression)                                                                               \
	do {                                                                                                 \
		int error_ = start(&causal_wrap_##name);                                                     \
		before = after = last = 0;                                                                   \
		int value_ = (expression);                                                                   \
		causal_wrap_stop(&causal_wrap_##name);                                                       \
		printf(#name ": %s, %d, before %d, after %d, last %d\n", name_of(error_), value_, before,    \
		       after, last);                                                                         \
	} while (0)

int main(int count, char **arguments)
{
	struct causal_wrapper own_twin = causal_wrap_twin, none = causal_wrap_twin;
	struct large large;

	if (count > 1 && !strcmp(arguments[1], "blocked")) {
		decline_where_blocked();
		return 0;
	}
	copy_code(0, twice);
	WITH(twice, twice(21));
	if (count > 1)
		return 0;
	WITH(twice, twice(4) + twice(5)); /* once more */
	copy_code(1, twice);
	printf("its code: %s\n", memcmp(code[0], code[1], sizeof code[0]) ? "changed" : "as it was");
	start(&causal_wrap_fib);
	before = after = 0;
	printf("fib: %d, ", fib(10));
	causal_wrap_stop(&causal_wrap_fib);
	printf("%s\n", before > 1 && before == after ? "its own calls as well" : "?");
	WITH(noisy, noisy(1));
	WITH(many, (int)many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
	printf("sum %.0f\n", sum_seen);
	start(&causal_wrap_fill);
	large = fill(10, 1);
	causal_wrap_stop(&causal_wrap_fill);
	printf("large %ld, sum %.0f\n", large.value[3], sum_seen);
	start(&causal_replace_twice);
	start(&causal_wrap_twice); /* around the other one */
	last = 0;
	printf("replaced %d, ", twice(1));
	printf("seen %d, ", last);
	/* other arguments: clang calls what it takes for a pure function only once */
	causal_wrap_stop(&causal_replace_twice);
	printf("%d, ", twice(2));
	causal_wrap_stop(&causal_wrap_twice);
	printf("%d\n", twice(3));
	in_threads();
	decline(&causal_wrap_leaf, leaf);
	decline(&causal_wrap_looped, looped);
	decline(&causal_wrap_twin, twin);
	own_twin.symbol = "wrapped.c:twin";
	before = 0;
	printf("%s: %s, ", own_twin.symbol, name_of(start(&own_twin)));
	printf("%d %d, ", twin(1), call_other_twin(1));
	printf("before %d\n", before);
	causal_wrap_stop(&own_twin);
	none.symbol = "wrapped.c:no_such_function";
	decline(&none, twin);
	return 0;
}
#endif
