/* SPDX-License-Identifier: MIT */
/* causal_wrap.h: functions, looked at before and after each call, or replaced. Link with -lcausal.
 *
 *   static void before_exp(double x) { ... }
 *   static void after_exp(double result) { ... }
 *   CAUSAL_WRAP(double, exp, (double x), (x))
 *
 *   causal_wrap_start(&causal_wrap_exp);
 *   ...                                          calls of exp() come by
 *   causal_wrap_stop(&causal_wrap_exp);
 *
 * Of a function that files import, the calls come by that go through the import tables of the program and its
 * libraries: not those in its own file. Of one that nobody imports, also a static one, all calls come by: its
 * code is changed meanwhile. Not what the compiler has inlined or computed itself. Calls that before and after
 * make are not looked at. A wrapper may be started several times; it ends with as many stops. x86-64 only. */
#ifndef CAUSAL_WRAP_H
#define CAUSAL_WRAP_H

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* On the definition of a function: its callers know nothing of its code, and it can be wrapped in any case. */
#ifdef __clang__
#define CAUSAL_WRAPPABLE __attribute__((noinline, used, patchable_function_entry(5)))
#else
#define CAUSAL_WRAPPABLE __attribute__((noipa, patchable_function_entry(5)))
#endif

typedef void causal_wrap_code(void);

struct causal_wrapper {
	const char *symbol; /* as the linker has it; FILE.c:NAME: the static function of that file */
	causal_wrap_code *replacement;
	causal_wrap_code **original; /* set to what to call in its place; may be NULL */
	/* ours */
	struct causal_wrapper *below;
	unsigned starts;
};

/* From now on calls go to the replacement; where several wrap one function, to the one that was started last,
 * whose original is the one before. Libraries that are opened later are reached by the next start of any.
 * 0; else nothing has changed: ENOENT (there is no such function), ENOTUNIQ (there are several), ENOTSUP (its
 * callers could notice, or its code cannot be changed), EAGAIN (not now), EINVAL, ENOMEM. All but ENOENT and
 * EINVAL are told on standard error, with the reason. Any thread. */
int causal_wrap_start(struct causal_wrapper *wrapper);
/* As it was. Calls that are under way end in the replacement. 0 or EINVAL. */
int causal_wrap_stop(struct causal_wrapper *wrapper);
/* All wrappers together: off, for this thread; and on again. */
void causal_wrap_suspend(void);
void causal_wrap_resume(void);
/* For replacements: may they do something of their own here? If so, causal_wrap_resume ends it. */
int causal_wrap_enter(void);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

/* struct causal_wrapper causal_wrap_FUNCTION, which calls before_FUNCTION with the arguments, the function,
 * and after_FUNCTION with its result. parameters: with types, arguments: their names, both in parentheses. */
#define CAUSAL_WRAP(result, function, parameters, arguments)                                                 \
	static result(*causal_wrap_original_##function) parameters;                                          \
	static result causal_wrap_around_##function parameters                                               \
	{                                                                                                    \
		int causal_wrap_mine_ = causal_wrap_enter();                                                 \
		result causal_wrap_result_;                                                                  \
		if (causal_wrap_mine_)                                                                       \
			before_##function arguments;                                                         \
		if (causal_wrap_mine_)                                                                       \
			causal_wrap_resume();                                                                \
		causal_wrap_result_ = causal_wrap_original_##function arguments;                             \
		if (causal_wrap_mine_ && causal_wrap_enter()) {                                              \
			after_##function(causal_wrap_result_);                                               \
			causal_wrap_resume();                                                                \
		}                                                                                            \
		return causal_wrap_result_;                                                                  \
	}                                                                                                    \
	CAUSAL_WRAP_DESCRIBE_(function)

/* The same for one that returns nothing: after_FUNCTION() has no argument. */
#define CAUSAL_WRAP_VOID(function, parameters, arguments)                                                    \
	static void(*causal_wrap_original_##function) parameters;                                            \
	static void causal_wrap_around_##function parameters                                                 \
	{                                                                                                    \
		int causal_wrap_mine_ = causal_wrap_enter();                                                 \
		if (causal_wrap_mine_) {                                                                     \
			before_##function arguments;                                                         \
			causal_wrap_resume();                                                                \
		}                                                                                            \
		causal_wrap_original_##function arguments;                                                   \
		if (causal_wrap_mine_ && causal_wrap_enter()) {                                              \
			after_##function();                                                                  \
			causal_wrap_resume();                                                                \
		}                                                                                            \
	}                                                                                                    \
	CAUSAL_WRAP_DESCRIBE_(function)

/* Your own function in place of another. */
#define CAUSAL_WRAP_REPLACE(function, own)                                                                   \
	static struct causal_wrapper causal_replace_##function = { #function, (causal_wrap_code *)(own), 0,  \
								   0, 0 };

#define CAUSAL_WRAP_DESCRIBE_(function)                                                                      \
	static struct causal_wrapper causal_wrap_##function = {                                              \
		#function, (causal_wrap_code *)causal_wrap_around_##function,                                \
		(causal_wrap_code **)(void *)&causal_wrap_original_##function, 0, 0                          \
	};

#endif
