/* SPDX-License-Identifier: MIT */
/* causal_user.h: regions whose names are only known at run time, switches, and callbacks; for programs,
 * libraries and language bindings that call functions rather than macros. Link with -lcausal, or define
 * CAUSAL_OPTIONAL before including this: then nothing is to be linked, and each call does nothing unless
 * libcausal.so is in the program all the same (LD_PRELOAD=libcausal.so causal trace -- ./app).
 *
 * All of it may be called from any thread. What is raised goes to `causal trace`; without, a call costs a
 * few ns. Each returns an enum causal_user_error. */
#ifndef CAUSAL_USER_H
#define CAUSAL_USER_H
#include <stddef.h>

#ifdef CAUSAL_OPTIONAL
#define CAUSAL_USER_LINK_ __attribute__((weak))
#else
#define CAUSAL_USER_LINK_
#endif
#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum causal_user_error {
	CAUSAL_USER_SUCCESS,
	CAUSAL_USER_NO_BINDING, /* the library is not there, or there is no callback for this */
	CAUSAL_USER_BAD_VALUE,
	CAUSAL_USER_INVALID_CATEGORY,
	CAUSAL_USER_INTERNAL /* no memory */
};

enum causal_user_type {                   /* what `value` points to */
			CAUSAL_USER_NONE, /* nothing */
			CAUSAL_USER_INT32,
			CAUSAL_USER_UINT32,
			CAUSAL_USER_INT64,
			CAUSAL_USER_UINT64,
			CAUSAL_USER_FLOAT, /* in millionths, as events are whole numbers */
			CAUSAL_USER_DOUBLE,
			CAUSAL_USER_STRING, /* itself the text */
			CAUSAL_USER_POINTER /* itself the value */
};
struct causal_user_annotation {
	const char *name;
	enum causal_user_type type;
	const void *value;
};

/* What the functions below call. NULL: nothing. */
struct causal_user_callbacks {
	int (*start_trace)(void);
	int (*stop_trace)(void);
	int (*start_thread_trace)(void);
	int (*stop_thread_trace)(void);
	int (*push_region)(const char *name);
	int (*pop_region)(const char *name);
	int (*push_annotated_region)(const char *name, const struct causal_user_annotation *list, size_t n);
	int (*pop_annotated_region)(const char *name, const struct causal_user_annotation *list, size_t n);
	int (*progress)(const char *name);
	int (*annotated_progress)(const char *name, const struct causal_user_annotation *list, size_t n);
};
enum causal_user_configure {
	CAUSAL_USER_UNION,    /* those that are given replace those that are there */
	CAUSAL_USER_REPLACE,  /* all of them, also by nothing */
	CAUSAL_USER_INTERSECT /* those stay that are the same in both */
};

/* Regions from now on, in all threads, or the calling one and the threads that it creates from then on. A
 * region whose begin was raised ends; one whose begin was not, does not. */
CAUSAL_USER_LINK_ int causal_user_start_trace(void);
CAUSAL_USER_LINK_ int causal_user_stop_trace(void);
CAUSAL_USER_LINK_ int causal_user_start_thread_trace(void);
CAUSAL_USER_LINK_ int causal_user_stop_thread_trace(void);

/* In the same thread, in one another. Annotations are events "NAME.ANNOTATION" with its value; of a text,
 * "NAME.ANNOTATION=TEXT". */
CAUSAL_USER_LINK_ int causal_user_push_region(const char *name);
CAUSAL_USER_LINK_ int causal_user_pop_region(const char *name);
CAUSAL_USER_LINK_ int causal_user_push_annotated_region(const char *name,
							const struct causal_user_annotation *list, size_t n);
CAUSAL_USER_LINK_ int causal_user_pop_annotated_region(const char *name,
						       const struct causal_user_annotation *list, size_t n);
/* The same called "CATEGORY/NAME": `--events -:CATEGORY/` leaves them out. */
CAUSAL_USER_LINK_ int causal_user_push_category_region(const char *category, const char *name);
CAUSAL_USER_LINK_ int causal_user_pop_category_region(const char *category, const char *name);
/* A unit of work is done: a progress point of sweeps, and an event of timelines. */
CAUSAL_USER_LINK_ int causal_user_progress(const char *name);
CAUSAL_USER_LINK_ int causal_user_annotated_progress(const char *name,
						     const struct causal_user_annotation *list, size_t n);

/* before: what was there; NULL: not wanted. Not while other threads call the functions above. */
CAUSAL_USER_LINK_ int causal_user_configure(enum causal_user_configure how,
					    struct causal_user_callbacks callbacks,
					    struct causal_user_callbacks *before);
CAUSAL_USER_LINK_ int causal_user_get_callbacks(struct causal_user_callbacks *callbacks);
CAUSAL_USER_LINK_ const char *causal_user_error_string(int error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#ifdef CAUSAL_OPTIONAL
#define CAUSAL_USER_IF_(function, ...)   ((function) ? (function)(__VA_ARGS__) : CAUSAL_USER_NO_BINDING)
#define causal_user_start_trace()        CAUSAL_USER_IF_(causal_user_start_trace, )
#define causal_user_stop_trace()         CAUSAL_USER_IF_(causal_user_stop_trace, )
#define causal_user_start_thread_trace() CAUSAL_USER_IF_(causal_user_start_thread_trace, )
#define causal_user_stop_thread_trace()  CAUSAL_USER_IF_(causal_user_stop_thread_trace, )
#define causal_user_push_region(name)    CAUSAL_USER_IF_(causal_user_push_region, name)
#define causal_user_pop_region(name)     CAUSAL_USER_IF_(causal_user_pop_region, name)
#define causal_user_push_annotated_region(name, list, n)                                                     \
	CAUSAL_USER_IF_(causal_user_push_annotated_region, name, list, n)
#define causal_user_pop_annotated_region(name, list, n)                                                      \
	CAUSAL_USER_IF_(causal_user_pop_annotated_region, name, list, n)
#define causal_user_push_category_region(category, name)                                                     \
	CAUSAL_USER_IF_(causal_user_push_category_region, category, name)
#define causal_user_pop_category_region(category, name)                                                      \
	CAUSAL_USER_IF_(causal_user_pop_category_region, category, name)
#define causal_user_progress(name) CAUSAL_USER_IF_(causal_user_progress, name)
#define causal_user_annotated_progress(name, list, n)                                                        \
	CAUSAL_USER_IF_(causal_user_annotated_progress, name, list, n)
#define causal_user_configure(how, callbacks, before)                                                        \
	CAUSAL_USER_IF_(causal_user_configure, how, callbacks, before)
#define causal_user_get_callbacks(callbacks) CAUSAL_USER_IF_(causal_user_get_callbacks, callbacks)
#define causal_user_error_string(error)                                                                      \
	((causal_user_error_string) ? (causal_user_error_string)(error) : "no binding")
#endif

#endif
