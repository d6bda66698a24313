/* SPDX-License-Identifier: MIT */
/* Regions by name, and who switches them off; see include/causal_user.h. */
#include "causal/library/library.h"
#include "include/causal_user.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_bool stopped;
static _Thread_local bool thread_stopped;
/* Of the open regions of the thread, the innermost lowest: was its begin raised? */
static _Thread_local uint64_t raised;

bool ca_regions_enter(void)
{
	bool on = !thread_stopped && !atomic_load_explicit(&stopped, memory_order_relaxed);

	raised = raised << 1 | on;
	return on;
}

bool ca_regions_leave(void)
{
	bool on = raised & 1;

	raised >>= 1;
	return on;
}

static bool is_on(void)
{
	return ca_library_is_traced() && !thread_stopped &&
	       !atomic_load_explicit(&stopped, memory_order_relaxed);
}

/* ---- threads are as who creates them */

struct child {
	void *(*start)(void *);
	void *argument;
};

static void *start_stopped(void *of)
{
	struct child child = *(struct child *)of;

	free(of);
	thread_stopped = true;
	return child.start(child.argument);
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
							  void *(*start)(void *), void *argument)
{
	static _Atomic(__typeof__(pthread_create) *) real;
	__typeof__(pthread_create) *create = atomic_load_explicit(&real, memory_order_relaxed);
	struct child *child = NULL;
	int error;

	if (!create) {
		create = (__typeof__(create))dlsym(RTLD_NEXT, "pthread_create");
		atomic_store_explicit(&real, create, memory_order_relaxed);
	}
	if (thread_stopped && (child = malloc(sizeof *child)))
		*child = (struct child){ start, argument };
	error = child ? create(thread, attr, start_stopped, child) : create(thread, attr, start, argument);
	if (error)
		free(child);
	return error;
}

/* ---- what is called unless the program says otherwise */

static int start_all(void)
{
	atomic_store_explicit(&stopped, false, memory_order_relaxed);
	return CAUSAL_USER_SUCCESS;
}

static int stop_all(void)
{
	atomic_store_explicit(&stopped, true, memory_order_relaxed);
	return CAUSAL_USER_SUCCESS;
}

static int start_thread(void)
{
	thread_stopped = false;
	return CAUSAL_USER_SUCCESS;
}

static int stop_thread(void)
{
	thread_stopped = true;
	return CAUSAL_USER_SUCCESS;
}

static int push(const char *name)
{
	const struct ca_library_key *key;

	if (!name || !*name)
		return CAUSAL_USER_BAD_VALUE;
	if (!ca_regions_enter() || !ca_library_is_traced())
		return CAUSAL_USER_SUCCESS;
	key = ca_library_key(name);
	ca_library_begin(key, 1);
	return key ? CAUSAL_USER_SUCCESS : CAUSAL_USER_INTERNAL;
}

static int pop(const char *name)
{
	const struct ca_library_key *key;

	if (!name || !*name)
		return CAUSAL_USER_BAD_VALUE;
	if (!ca_regions_leave() || !ca_library_is_traced())
		return CAUSAL_USER_SUCCESS;
	key = ca_library_key(name);
	ca_library_end(key);
	return key ? CAUSAL_USER_SUCCESS : CAUSAL_USER_INTERNAL;
}

static int make_progress(const char *name)
{
	if (!name || !*name)
		return CAUSAL_USER_BAD_VALUE;
	ca_library_count(name);
	if (is_on())
		ca_library_point(name, 1);
	return CAUSAL_USER_SUCCESS;
}

/* ---- annotations */

static uint64_t millionths(double value)
{
	return (uint64_t)(int64_t)(value * 1e6);
}

/* False: of no type that we know. */
static bool number_of(const struct causal_user_annotation *of, uint64_t *number)
{
	switch (of->type) {
	case CAUSAL_USER_INT32:
		*number = (uint64_t) * (const int32_t *)of->value;
		return true;
	case CAUSAL_USER_UINT32:
		*number = *(const uint32_t *)of->value;
		return true;
	case CAUSAL_USER_INT64:
	case CAUSAL_USER_UINT64:
		*number = *(const uint64_t *)of->value;
		return true;
	case CAUSAL_USER_FLOAT:
		*number = millionths((double)*(const float *)of->value);
		return true;
	case CAUSAL_USER_DOUBLE:
		*number = millionths(*(const double *)of->value);
		return true;
	case CAUSAL_USER_POINTER:
		*number = (uintptr_t)of->value;
		return true;
	case CAUSAL_USER_NONE:
	case CAUSAL_USER_STRING:
		*number = 1;
		return true;
	}
	return false;
}

static int annotate(const char *name, const struct causal_user_annotation *list, size_t n)
{
	int error = CAUSAL_USER_SUCCESS;

	if (!list && n)
		return CAUSAL_USER_BAD_VALUE;
	for (size_t i = 0; i < n && is_on(); i++) {
		bool text = list[i].type == CAUSAL_USER_STRING, plain = list[i].type == CAUSAL_USER_NONE;
		char key[160];
		uint64_t number;

		if (!list[i].name || (!list[i].value && !plain && list[i].type != CAUSAL_USER_POINTER) ||
		    !number_of(&list[i], &number)) {
			error = CAUSAL_USER_BAD_VALUE;
			continue;
		}
		snprintf(key, sizeof key, "%s.%s%s%.80s", name, list[i].name, text ? "=" : "",
			 text ? (const char *)list[i].value : "");
		ca_library_point(key, number);
	}
	return error;
}

static int push_annotated(const char *name, const struct causal_user_annotation *list, size_t n)
{
	int error = push(name);

	return error ? error : annotate(name, list, n);
}

static int pop_annotated(const char *name, const struct causal_user_annotation *list, size_t n)
{
	int error = name && *name ? annotate(name, list, n) : CAUSAL_USER_SUCCESS, end = pop(name);

	return end ? end : error;
}

static int make_annotated_progress(const char *name, const struct causal_user_annotation *list, size_t n)
{
	int error = make_progress(name);

	return error ? error : annotate(name, list, n);
}

/* ---- what is called */

/* Each may be changed while others call: of one configuration or of the next. */
static struct causal_user_callbacks now = {
	start_all, stop_all,       start_thread,  stop_thread,   push,
	pop,       push_annotated, pop_annotated, make_progress, make_annotated_progress,
};

#define CALLBACKS(X)                                                                                         \
	X(start_trace)                                                                                       \
	X(stop_trace)                                                                                        \
	X(start_thread_trace)                                                                                \
	X(stop_thread_trace)                                                                                 \
	X(push_region)                                                                                       \
	X(pop_region)                                                                                        \
	X(push_annotated_region)                                                                             \
	X(pop_annotated_region)                                                                              \
	X(progress)                                                                                          \
	X(annotated_progress)

int causal_user_get_callbacks(struct causal_user_callbacks *callbacks)
{
	if (!callbacks)
		return CAUSAL_USER_BAD_VALUE;
#define GET(member) callbacks->member = __atomic_load_n(&now.member, __ATOMIC_ACQUIRE);
	CALLBACKS(GET)
#undef GET
	return CAUSAL_USER_SUCCESS;
}

int causal_user_configure(enum causal_user_configure how, struct causal_user_callbacks callbacks,
			  struct causal_user_callbacks *before)
{
	struct causal_user_callbacks was;

	if (how != CAUSAL_USER_UNION && how != CAUSAL_USER_REPLACE && how != CAUSAL_USER_INTERSECT)
		return CAUSAL_USER_BAD_VALUE;
	causal_user_get_callbacks(&was);
#define MIX(member)                                                                                          \
	if (how == CAUSAL_USER_UNION && !callbacks.member)                                                   \
		callbacks.member = was.member;                                                               \
	if (how == CAUSAL_USER_INTERSECT && callbacks.member != was.member)                                  \
		callbacks.member = NULL;                                                                     \
	__atomic_store_n(&now.member, callbacks.member, __ATOMIC_RELEASE);
	CALLBACKS(MIX)
#undef MIX
	if (before)
		*before = was;
	return CAUSAL_USER_SUCCESS;
}

#define CALL(member, ...)                                                                                    \
	({                                                                                                   \
		__typeof__(now.member) call = __atomic_load_n(&now.member, __ATOMIC_ACQUIRE);                \
		call ? call(__VA_ARGS__) : CAUSAL_USER_NO_BINDING;                                           \
	})

int causal_user_start_trace(void)
{
	return CALL(start_trace);
}

int causal_user_stop_trace(void)
{
	return CALL(stop_trace);
}

int causal_user_start_thread_trace(void)
{
	return CALL(start_thread_trace);
}

int causal_user_stop_thread_trace(void)
{
	return CALL(stop_thread_trace);
}

int causal_user_push_region(const char *name)
{
	return CALL(push_region, name);
}

int causal_user_pop_region(const char *name)
{
	return CALL(pop_region, name);
}

int causal_user_push_annotated_region(const char *name, const struct causal_user_annotation *list, size_t n)
{
	return CALL(push_annotated_region, name, list, n);
}

int causal_user_pop_annotated_region(const char *name, const struct causal_user_annotation *list, size_t n)
{
	return CALL(pop_annotated_region, name, list, n);
}

int causal_user_progress(const char *name)
{
	return CALL(progress, name);
}

int causal_user_annotated_progress(const char *name, const struct causal_user_annotation *list, size_t n)
{
	return CALL(annotated_progress, name, list, n);
}

/* "CATEGORY/NAME"; false: it is none. */
static bool join(char *text, size_t size, const char *category, const char *name)
{
	if (!category || !*category || strchr(category, '/'))
		return false;
	snprintf(text, size, "%s/%s", category, name ? name : "");
	return true;
}

int causal_user_push_category_region(const char *category, const char *name)
{
	char text[160];

	return join(text, sizeof text, category, name) ? CALL(push_region, text)
						       : CAUSAL_USER_INVALID_CATEGORY;
}

int causal_user_pop_category_region(const char *category, const char *name)
{
	char text[160];

	return join(text, sizeof text, category, name) ? CALL(pop_region, text)
						       : CAUSAL_USER_INVALID_CATEGORY;
}

const char *causal_user_error_string(int error)
{
	static const char *const texts[] = { "success", "no binding", "bad value", "invalid category",
					     "internal error" };

	return error >= 0 && (size_t)error < sizeof texts / sizeof *texts ? texts[error] : "unknown error";
}
