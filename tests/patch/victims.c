/* SPDX-License-Identifier: MIT */
/* See victims.h. Built with -O2 and without debugging aids: the shapes are the point. */
#include "tests/patch/victims.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#if defined(__clang__)
#define VICTIM __attribute__((noinline))
#else
#define VICTIM __attribute__((noinline, noclone, noipa))
#endif
#define VISIT(name) (victim_visits[V_##name]++)

__thread uint64_t victim_visits[V_COUNT];

uint64_t *victims_visits(void)
{
	return victim_visits;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
	return h * 0xff51afd7ed558ccdu;
}

VICTIM uint64_t v_tiny(uint64_t a);
VICTIM uint64_t v_tiny(uint64_t a)
{
	return a + 1; /* counted by the caller: four bytes with its ret */
}

VICTIM uint64_t v_leaf(uint64_t a, uint64_t b);
VICTIM uint64_t v_leaf(uint64_t a, uint64_t b)
{
	VISIT(leaf);
	return a * b ^ (a >> 7);
}

VICTIM uint64_t v_redzone(uint64_t a);
VICTIM uint64_t v_redzone(uint64_t a)
{
	volatile uint64_t below[12]; /* in the red zone: nothing is called */

	VISIT(redzone);
	for (unsigned i = 0; i < 12; i++)
		below[i] = a * i;
	for (unsigned i = 1; i < 12; i++)
		below[i] += below[i - 1] >> 3;
	return below[11];
}

VICTIM uint64_t v_fib(unsigned n);
static uint64_t (*volatile fib)(unsigned) = v_fib; /* else the compiler makes loops of it */
VICTIM uint64_t v_fib(unsigned n)
{
	VISIT(fib);
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

VICTIM int v_odd(unsigned n);
VICTIM int v_even(unsigned n);
VICTIM int v_even(unsigned n)
{
	VISIT(even);
	return n ? v_odd(n - 1) : 1;
}
VICTIM int v_odd(unsigned n)
{
	VISIT(odd);
	return n ? v_even(n - 1) : 0;
}

VICTIM uint64_t v_selftail(uint64_t n, uint64_t sum);
VICTIM uint64_t v_selftail(uint64_t n, uint64_t sum)
{
	VISIT(selftail); /* once for each turn: compared loosely */
	return n ? v_selftail(n - 1, sum * 3 + n) : sum;
}

VICTIM double v_sum(int n, ...);
VICTIM double v_sum(int n, ...)
{
	va_list args;
	double sum = 0;

	VISIT(sum);
	va_start(args, n);
	for (int i = 0; i < n; i++)
		sum += i & 1 ? (double)va_arg(args, long) : va_arg(args, double);
	va_end(args);
	return sum;
}

VICTIM double v_average(double a, float b, double c, double d, double e, double f, double g, double h,
			double i);
VICTIM double v_average(double a, float b, double c, double d, double e, double f, double g, double h,
			double i)
{
	VISIT(average);
	return (a + (double)b + c + d + e + f + g + h * 2 + i * 3) / 9;
}

struct pair {
	uint64_t a;
	double b;
};
VICTIM struct pair v_pair(uint64_t x);
VICTIM struct pair v_pair(uint64_t x)
{
	VISIT(pair);
	return (struct pair){ x * 7, (double)(x % 1000) / 8 };
}

struct big {
	uint64_t v[9];
};
VICTIM struct big v_big(struct big in, uint64_t x);
VICTIM struct big v_big(struct big in, uint64_t x)
{
	VISIT(big);
	for (unsigned i = 0; i < 9; i++)
		in.v[i] = in.v[i] * 5 + x + i;
	return in;
}

VICTIM uint64_t v_dispatch(unsigned op, uint64_t a);
VICTIM uint64_t v_dispatch(unsigned op, uint64_t a)
{
	VISIT(dispatch);
	switch (op) {
	case 0:
		return a;
	case 1:
		return v_leaf(a, 3) + 1;
	case 2:
		return a << 3 | a >> 61;
	case 3:
		a ^= 0x5555;
		break;
	case 4:
		return ~a;
	case 5:
		a *= 12345;
		break;
	case 6:
		return v_redzone(a) ^ 6;
	case 7:
		return (uint64_t)abs((int)a);
	case 8:
		a /= 3;
		break;
	default:
		return 0;
	}
	return a % 1000003;
}

VICTIM uint64_t v_dispatch_tail(unsigned op, uint64_t a);
VICTIM uint64_t v_dispatch_tail(unsigned op, uint64_t a)
{
	VISIT(dispatch_tail);
	switch (op) {
	case 0:
		return v_leaf(a, 5);
	case 1:
		return v_redzone(a);
	case 2:
		return v_tiny(a);
	case 3:
		return v_dispatch(1, a);
	case 4:
		return v_leaf(a, a);
	case 5:
		return v_selftail(a & 7, a);
	case 6:
		return v_redzone(a + 1);
	default:
		return a;
	}
}

VICTIM uint64_t v_many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,
		       uint64_t h, uint64_t i, uint64_t j, double x);
VICTIM uint64_t v_many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,
		       uint64_t h, uint64_t i, uint64_t j, double x)
{
	VISIT(many);
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + (uint64_t)x;
}

VICTIM uint64_t v_caller_many(uint64_t a);
VICTIM uint64_t v_caller_many(uint64_t a)
{
	VISIT(caller_many);
	return v_many(a, 1, 2, 3, 4, 5, 6, 7, a, 9, 2.5) + v_many(1, a, 2, 3, 4, 5, 6, 7, 8, a, 7.5);
}

/* A signal may run all this above itself: each landing puts back what it found. */
static __thread jmp_buf *back;
VICTIM void v_jumper(unsigned n);
static void (*volatile jumper)(unsigned) = v_jumper;
VICTIM void v_jumper(unsigned n)
{
	VISIT(jumper);
	if (!n)
		longjmp(*back, 1);
	jumper(n - 1);
	__asm__ volatile("" ::: "memory");
}
VICTIM uint64_t v_landing(uint64_t a);
VICTIM uint64_t v_landing(uint64_t a)
{
	volatile uint64_t v = a;
	jmp_buf mine, *volatile outer = back;

	VISIT(landing);
	if (setjmp(mine)) {
		back = outer;
		return v + 1;
	}
	back = &mine;
	v = a * 2;
	v_jumper((unsigned)(a & 3));
	return 0;
}

/* The loop's head is the first instruction, or nearly so. */
VICTIM uint64_t v_loop_first(const uint8_t *p);
VICTIM uint64_t v_loop_first(const uint8_t *p)
{
	uint64_t sum = 0;

	do /* counted by the caller */
		sum = sum * 31 + *p;
	while (*++p);
	return sum;
}

VICTIM uint64_t v_early(const uint64_t *p, uint64_t a);
VICTIM uint64_t v_early(const uint64_t *p, uint64_t a)
{
	VISIT(early);
	if (!p)
		return a;
	if (*p & 1)
		return *p;
	for (unsigned i = 0; i < 5; i++) {
		a += p[i % 2];
		if (a & 0x400)
			return a ^ i;
	}
	return a * 3;
}

VICTIM uint64_t v_early_tail(uint64_t a);
VICTIM uint64_t v_early_tail(uint64_t a)
{
	VISIT(early_tail);
	if (a & 1)
		return v_leaf(a, 9);
	if (a & 2)
		return v_redzone(a);
	return a;
}

typedef uint64_t unary(uint64_t);
struct object {
	unary *method[4];
};
VICTIM uint64_t v_tail_pointer(const struct object *o, uint64_t a);
VICTIM uint64_t v_tail_pointer(const struct object *o, uint64_t a)
{
	VISIT(tail_pointer);
	return o->method[2](a);
}

static unary *const table[] = { v_redzone, v_tiny, v_early_tail, v_redzone };
VICTIM uint64_t v_tail_table(uint64_t a, unsigned i);
VICTIM uint64_t v_tail_table(uint64_t a, unsigned i)
{
	VISIT(tail_table);
	return table[i & 3](a);
}

typedef double four __attribute__((vector_size(32)));
VICTIM uint64_t v_vector(uint64_t a);
VICTIM uint64_t v_vector(uint64_t a)
{
	four x = { (double)(a & 255), 2, 3, 4 }, y = x;
	uint64_t sum;

	VISIT(vector);
	for (int i = 0; i < 20; i++)
		y = y * 0.5 + x;
	sum = (uint64_t)(y[0] + y[1] * 3 + y[2] * 5 + y[3] * 7);
	return sum + v_tiny(a) + (uint64_t)y[3];
}

/* Flags live across a call-free stretch where probes may lie. */
VICTIM uint64_t v_flags(uint64_t a, uint64_t b);
VICTIM uint64_t v_flags(uint64_t a, uint64_t b)
{
	uint64_t low, high = 0;

	VISIT(flags);
	__asm__("add %3, %0\n\tlea 1(%1), %1\n\tadc $0, %1" : "=r"(low), "+r"(high) : "0"(a), "r"(b) : "cc");
	return low ^ high << 5;
}

VICTIM __attribute__((cold)) void v_rare(uint64_t *a);
VICTIM __attribute__((cold)) void v_rare(uint64_t *a)
{
	*a ^= 0xdead;
}
VICTIM uint64_t v_cold(uint64_t a);
VICTIM uint64_t v_cold(uint64_t a)
{
	uint64_t kept = a;

	VISIT(cold);
	if (__builtin_expect(a % 7 == 3, 0)) {
		v_rare(&kept);
		v_rare(&a);
		return kept + a + v_leaf(a, kept);
	}
	return v_leaf(kept, 11) + a;
}

/* Calls in a row on one line, nested ones, and one through a pointer. */
VICTIM uint64_t v_line(const struct object *o, uint64_t a);
VICTIM uint64_t v_line(const struct object *o, uint64_t a)
{
	VISIT(line);
	return v_tiny(v_leaf(v_redzone(a), v_tiny(a))) + o->method[1](a) +
	       v_many(a, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1) + v_tiny(v_tiny(a));
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	VISIT(callbacks);
	return (x > y) - (x < y);
}
VICTIM int v_callbacks(const void *a, const void *b);
VICTIM int v_callbacks(const void *a, const void *b)
{
	return compare(a, b);
}

VICTIM uint64_t v_alloca_(unsigned n);
VICTIM uint64_t v_alloca_(unsigned n)
{
	volatile uint8_t *p = __builtin_alloca(n + 1);
	uint64_t sum = 0;

	VISIT(alloca_);
	for (unsigned i = 0; i <= n; i++)
		p[i] = (uint8_t)(i * 7);
	for (unsigned i = 0; i <= n; i++)
		sum += p[i];
	return sum;
}

/* A jump through a table without a frame, and labels as values. */
VICTIM uint64_t v_goto_(const uint8_t *code, uint64_t a);
VICTIM uint64_t v_goto_(const uint8_t *code, uint64_t a)
{
	static const void *const label[] = { &&stop, &&add, &&twice, &&not };

	VISIT(goto_);
	goto *label[*code++ & 3];
add:
	a += 5;
	goto *label[*code++ & 3];
twice:
	a *= 2;
	goto *label[*code++ & 3];
	not : a = ~a;
	goto *label[*code++ & 3];
stop:
	return a;
}

static uint64_t run_numbers(uint64_t h, uint64_t seed)
{
	struct big b = { { seed, 2, 3 } };
	struct pair p = v_pair(seed);

	h = mix(mix(h, p.a), (uint64_t)(p.b * 8));
	b = v_big(b, seed);
	h = mix(h, v_big(b, h).v[8]);
	h = mix(h, (uint64_t)v_sum(5, 1.5, 2L, 3.25, 4L, (double)(seed & 7)));
	h = mix(h, (uint64_t)(v_average(1, 2, 3, 4, 5, 6, 7, (double)(seed & 15), 9) * 1000));
	h = mix(h, v_vector(seed));
	h = mix(h, v_flags(~(uint64_t)0 - (seed & 1), 1 + (seed & 1)));
	return mix(h, v_flags(seed, 3));
}

static uint64_t run_control(uint64_t h, uint64_t seed)
{
	static const struct object object = { { v_tiny, v_redzone, v_early_tail, v_tiny } };
	uint64_t two[2] = { seed & ~(uint64_t)1, h }, sorted[16];
	const uint8_t code[6] = { 1, 2, (uint8_t)(seed % 3 + 1), 3, 2, 0 };

	for (unsigned op = 0; op < 10; op++) {
		h = mix(h, v_dispatch(op, h));
		h = mix(h, v_dispatch_tail(op, h));
	}
	h = mix(h, v_early(NULL, h));
	h = mix(h, v_early(two, seed & 0x3ff));
	for (uint64_t i = 0; i < 4; i++)
		h = mix(h, v_early_tail(seed + i) + v_tail_table(seed, (unsigned)i));
	h = mix(h, v_tail_pointer(&object, seed));
	h = mix(h, v_line(&object, h));
	h = mix(h, v_goto_(code, h));
	for (unsigned i = 0; i < 16; i++)
		sorted[i] = mix(h, i);
	qsort(sorted, 16, sizeof sorted[0], v_callbacks);
	return mix(h, sorted[7]);
}

/* Those that may interrupt themselves: no longjmp, whose buffer there is one of in a thread, and
 * nothing that allocates. */
uint64_t victims_in_handler(uint64_t seed)
{
	uint64_t h = mix(seed, v_leaf(seed, 3));

	h = mix(h, v_redzone(h));
	h = mix(h, v_fib((unsigned)(seed % 5) + 2));
	h = mix(h, v_caller_many(seed));
	h = mix(h, v_cold(seed));
	h = mix(h, v_alloca_((unsigned)(seed % 40)));
	h = run_numbers(h, seed);
	for (unsigned op = 0; op < 10; op++)
		h = mix(h, v_dispatch(op, h) + v_dispatch_tail(op, h));
	return mix(h, v_tail_table(seed, (unsigned)seed));
}

uint64_t victims_run(uint64_t seed)
{
	uint64_t h = seed;

	for (unsigned i = 0; i < 5; i++) {
		VISIT(tiny);
		h = mix(h, v_tiny(h));
	}
	victim_visits[V_tiny] = 0; /* others call it too: never compared */
	h = mix(h, v_leaf(h, seed));
	h = mix(h, v_redzone(h));
	h = mix(h, v_fib((unsigned)(seed % 9) + 4));
	h = mix(h, (uint64_t)v_even((unsigned)(seed % 10) + 3));
	h = mix(h, v_selftail(seed % 11, h));
	h = mix(h, v_caller_many(seed));
	h = mix(h, v_landing(seed));
	VISIT(loop_first);
	h = mix(h, v_loop_first((const uint8_t *)"the loop's head"));
	h = mix(h, v_cold(seed));
	h = mix(h, v_alloca_((unsigned)(seed % 40)));
	h = run_numbers(h, seed);
	h = run_control(h, seed);
	return mix(h, victims_run_cxx(seed));
}
