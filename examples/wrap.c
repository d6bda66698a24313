/* SPDX-License-Identifier: MIT */
/* Calls of exp(), looked at before and after, and replaced by expf(); and of a function of the program itself;
 * each only for a while. */
#include <causal_wrap.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

static double call_exp(double x);

static void before_exp(double x)
{
	printf("exp(%g)", x + 0 * call_exp(x)); /* this one is not looked at */
}

static void after_exp(double result)
{
	printf(" = %.15g\n", result);
}

CAUSAL_WRAP(double, exp, (double x), (x))

static double rough_exp(double x)
{
	return (double)expf((float)x);
}

CAUSAL_WRAP_REPLACE(exp, rough_exp)

/* Of one's own; static ones can be wrapped as well. C++ would give it another name. */
#ifdef __cplusplus
extern "C" {
#endif
CAUSAL_WRAPPABLE int twice(int n);
#ifdef __cplusplus
}
#endif

int twice(int n)
{
	return 2 * n;
}

static void before_twice(int n)
{
	printf("twice(%d)", n);
}

static void after_twice(int result)
{
	printf(" = %d\n", result);
}

CAUSAL_WRAP(int, twice, (int n), (n))

static int lines;

static void before_perror(const char *text)
{
	lines += text != NULL;
}

static void after_perror(void)
{
	lines++;
}

CAUSAL_WRAP_VOID(perror, (const char *text), (text))

/* In functions of their own: one that runs may have loaded an address before it is changed (-fno-plt). */
static __attribute__((noinline)) double call_exp(double x)
{
	return exp(x);
}

static __attribute__((noinline)) void call_perror(const char *text)
{
	perror(text);
}

int main(void)
{
	struct causal_wrapper none = { "no_such_function", (causal_wrap_code *)rough_exp, 0, 0, 0 };
	volatile double result; /* else the compiler leaves calls out */

	printf("plain %.15g\n", call_exp(1));
	if (causal_wrap_start(&causal_wrap_exp))
		return 1;
	result = call_exp(1);
	causal_wrap_start(&causal_wrap_exp); /* twice: it takes two stops */
	causal_wrap_stop(&causal_wrap_exp);
	result = call_exp(2);
	causal_wrap_suspend();
	result = call_exp(3);
	causal_wrap_resume();
	causal_wrap_stop(&causal_wrap_exp);
	printf("plain %.15g\n", call_exp(1));

	causal_wrap_start(&causal_replace_exp);
	printf("rough %.15g\n", call_exp(1));
	causal_wrap_start(&causal_wrap_exp); /* around the other one */
	result = call_exp(1);
	causal_wrap_stop(&causal_replace_exp); /* from below */
	result = call_exp(1);
	causal_wrap_stop(&causal_wrap_exp);
	printf("plain %.15g\n", call_exp(1));
	(void)result;

	causal_wrap_start(&causal_wrap_twice);
	lines = twice(21);
	causal_wrap_stop(&causal_wrap_twice);
	printf("plain %d\n", twice(lines));

	lines = 0;
	causal_wrap_start(&causal_wrap_perror);
	errno = ENOENT;
	call_perror("wrapped");
	causal_wrap_stop(&causal_wrap_perror);
	call_perror("plain");
	printf("%d\n", lines);
	return causal_wrap_start(&none) == ENOENT && causal_wrap_stop(&none) == EINVAL ? 0 : 1;
}
