/* SPDX-License-Identifier: MIT */
/* The component `papi`: presets and native events of PAPI, whose library is loaded when the first one is
 * opened. Each has an event set of its own, of the thread that has opened it.
 *   papi:EVENT+EVENT      counted from start to stop, all of one component of PAPI's
 *   papi:mpx:EVENT+...    more than there are registers: they take turns, and what they say is an estimate
 *   papi:EVENT@N          besides, an event of `causal trace` whenever N more have happened: "EVENT@N", and
 *                         its value is the address of the code */
#include "causal/library/library.h"
#include <errno.h>

#ifndef HAVE_PAPI

static int open_papi(void *state, const char *argument)
{
	(void)state;
	(void)argument;
	return ENOTSUP;
}

const struct causal_component ca_papi_component = { .label = "papi",
						    .description = "counters of PAPI; not in this build",
						    .open = open_papi };

#else

#include <dlfcn.h>
#include <papi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FUNCTIONS(X)                                                                                         \
	X(PAPI_library_init)                                                                                 \
	X(PAPI_thread_init)                                                                                  \
	X(PAPI_multiplex_init)                                                                               \
	X(PAPI_create_eventset)                                                                              \
	X(PAPI_assign_eventset_component)                                                                    \
	X(PAPI_set_multiplex)                                                                                \
	X(PAPI_event_name_to_code)                                                                           \
	X(PAPI_get_event_component)                                                                          \
	X(PAPI_get_component_info)                                                                           \
	X(PAPI_add_event)                                                                                    \
	X(PAPI_overflow)                                                                                     \
	X(PAPI_start)                                                                                        \
	X(PAPI_stop)                                                                                         \
	X(PAPI_read)                                                                                         \
	X(PAPI_cleanup_eventset)                                                                             \
	X(PAPI_destroy_eventset)                                                                             \
	X(PAPI_strerror)

static struct {
#define X(name) __typeof__(name) *name;
	FUNCTIONS(X)
#undef X
} papi;

enum { EVENTS = 8, NAME = 96, SETS = 64 };

struct state {
	int set;
	bool counts, overflows;
	unsigned n, broken; /* broken: a call that failed was told */
	char name[EVENTS][NAME];
	long long value[EVENTS];
};

/* Which key the overflow of an event set raises: by the set's number. A set that is opened later may have the
 * same; of more than these, nothing is raised. */
static const struct ca_library_key *_Atomic overflow_key[SETS];

static int fail(const char *what, int code)
{
	ca_library_say("papi: %s: %s", what, papi.PAPI_strerror(code));
	return code == PAPI_EPERM ? EACCES : code == PAPI_ENOMEM ? ENOMEM : EINVAL;
}

/* ---- loading */

static int loaded = ENOTSUP;

static unsigned long thread_id(void)
{
	return (unsigned long)syscall(SYS_gettid);
}

static void load(void)
{
	char name[64];
	void *library;
	int code;

	snprintf(name, sizeof name, "libpapi.so.%d.%d", PAPI_VERSION_MAJOR(PAPI_VERSION),
		 PAPI_VERSION_MINOR(PAPI_VERSION));
	library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		ca_library_say("papi: %s", dlerror());
		return;
	}
#define X(name)                                                                                              \
	papi.name = (__typeof__(papi.name))dlsym(library, #name);                                            \
	if (!papi.name)                                                                                      \
		return;
	FUNCTIONS(X)
#undef X
	code = papi.PAPI_library_init(PAPI_VER_CURRENT);
	if (code != PAPI_VER_CURRENT) {
		ca_library_say("papi: it cannot be initialised (%d)", code);
		return;
	}
	papi.PAPI_thread_init(thread_id);
	loaded = 0;
}

/* ---- an event set */

static void overflow(int set, void *address, long long events, void *context)
{
	const struct ca_library_key *key = (unsigned)set < SETS ? overflow_key[set] : NULL;

	(void)events;
	(void)context;
	if (key)
		causal_trace_(&key->point, &key->point, (uintptr_t)address);
}

/* name: "EVENT" or "EVENT@N". */
static int add_event(struct state *s, char *name)
{
	char *at = strrchr(name, '@');
	long long threshold = at ? atoll(at + 1) : 0;
	int event = 0, code;

	if (s->n == EVENTS || strlen(name) >= NAME)
		return E2BIG;
	strcpy(s->name[s->n], name);
	if (at)
		*at = '\0';
	code = papi.PAPI_event_name_to_code(name, &event);
	if (code == PAPI_OK)
		code = papi.PAPI_add_event(s->set, event);
	if (code != PAPI_OK)
		return fail(name, code);
	s->n++;
	if (!at)
		return 0;
	if (threshold <= 0 || threshold > INT32_MAX) {
		ca_library_say("papi: %s: give the number of events between two overflows behind @",
			       s->name[s->n - 1]);
		return EINVAL;
	}
	if ((unsigned)s->set < SETS)
		overflow_key[s->set] = ca_library_key(s->name[s->n - 1]);
	code = papi.PAPI_overflow(s->set, event, (int)threshold, 0, overflow);
	s->overflows = code == PAPI_OK;
	return code == PAPI_OK ? 0 : fail("overflow", code);
}

/* The component that counts the first event, which the set is bound to; it must be for multiplexing. */
static int choose_component(const struct state *s, const char *events, bool multiplex)
{
	char first[NAME];
	int event = 0, code;

	snprintf(first, sizeof first, "%.*s", (int)strcspn(events, "+@"), events);
	code = papi.PAPI_event_name_to_code(first, &event);
	if (code != PAPI_OK)
		return fail(first, code);
	code = papi.PAPI_get_event_component(event);
	if (code >= 0)
		code = papi.PAPI_assign_eventset_component(s->set, code);
	if (code == PAPI_OK && multiplex) {
		code = papi.PAPI_multiplex_init();
		if (code == PAPI_OK)
			code = papi.PAPI_set_multiplex(s->set);
		if (code != PAPI_OK)
			return fail("multiplexing", code);
	}
	return code == PAPI_OK ? 0 : fail(first, code);
}

static void close_papi(void *state)
{
	struct state *s = state;
	long long last[EVENTS];

	if (s->set == PAPI_NULL)
		return;
	if (s->counts)
		papi.PAPI_stop(s->set, last);
	if ((unsigned)s->set < SETS)
		overflow_key[s->set] = NULL;
	papi.PAPI_cleanup_eventset(s->set);
	papi.PAPI_destroy_eventset(&s->set);
}

static int open_papi(void *state, const char *argument)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct state *s = state;
	char *list, *rest, *name;
	bool multiplex = argument && !strncmp(argument, "mpx:", 4);
	int error;

	s->set = PAPI_NULL;
	if (!argument || !*argument) {
		ca_library_say("papi: name events, as in papi:PAPI_TOT_INS+PAPI_TOT_CYC");
		return EINVAL;
	}
	pthread_once(&once, load);
	if (loaded)
		return loaded;
	argument += multiplex ? 4 : 0;
	list = rest = strdup(argument);
	error = !list ? ENOMEM : papi.PAPI_create_eventset(&s->set) != PAPI_OK ? ENOMEM : 0;
	if (!error)
		error = choose_component(s, argument, multiplex);
	while (!error && (name = strsep(&rest, "+")))
		error = *name ? add_event(s, name) : 0;
	free(list);
	if (error)
		close_papi(s);
	return error;
}

static void start(void *state)
{
	struct state *s = state;
	int code = papi.PAPI_start(s->set);

	s->counts = code == PAPI_OK;
	if (!s->counts && !s->broken++)
		fail("start", code);
}

static void stop(void *state)
{
	struct state *s = state;

	if (s->counts)
		papi.PAPI_stop(s->set, s->value);
	s->counts = false;
}

static const char *get(const void *state, unsigned i, double *value)
{
	const struct state *s = state;

	if (i >= s->n)
		return NULL;
	*value = (double)s->value[i];
	return s->name[i];
}

const struct causal_component ca_papi_component = {
	.label = "papi",
	.description = "counters of PAPI: papi:EVENT+EVENT, papi:mpx:..., EVENT@N",
	.units = "",
	.size = sizeof(struct state),
	.open = open_papi,
	.close = close_papi,
	.start = start,
	.stop = stop,
	.get = get,
};

#endif
