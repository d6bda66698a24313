/* SPDX-License-Identifier: MIT */
/* Settings: the typed values of the table in core/settings.def, and where each came from.
 *
 * For: the driver and what it hands to the conductor. Not for: the runtime inside the host,
 * which gets what it needs from the session; option syntax (driver/options.h).
 * One thread; never in a handler. */
#ifndef CA_CORE_SETTINGS_H
#define CA_CORE_SETTINGS_H
#include "core/speedups.h"
#include "core/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ca_setting_id {
#define CA_SETTING(ID, ...) CA_SETTING_##ID,
#include "core/settings.def"
	CA_SETTING_COUNT
};

enum ca_setting_type {
	CA_TYPE_BOOL,
	CA_TYPE_INT,
	CA_TYPE_REAL,
	CA_TYPE_CHOICE,
	CA_TYPE_STRING,
	CA_TYPE_PATTERNS,
	CA_TYPE_SPEEDUPS,
	CA_TYPE_SINKS,
	CA_TYPE_EVENTS,
	CA_TYPE_PERIODS,
	CA_TYPE_CLOCK,
	CA_TYPE_NUMBERS,
	CA_TYPE_SAMPLER,
	CA_TYPE_METRICS
};

enum ca_setting_use { CA_USE_RUN, CA_USE_SWEEP, CA_USE_COMMAND };

enum ca_setting_group {
	CA_GROUP_DEBUG,
	CA_GROUP_GENERAL,
	CA_GROUP_CAUSAL,
	CA_GROUP_COMBINATORIAL,
	CA_GROUP_COUNT
};

/* In rising precedence. */
enum ca_origin { CA_ORIGIN_DEFAULT, CA_ORIGIN_FILE, CA_ORIGIN_ENVIRONMENT, CA_ORIGIN_COMMAND };

enum ca_mode { CA_MODE_FUNCTION, CA_MODE_LINE };
enum ca_unwinder { CA_UNWINDER_ROWS, CA_UNWINDER_LIBUNWIND };
enum ca_progress_format { CA_PROGRESS_TEXT, CA_PROGRESS_JSON };
enum ca_trace_policy { CA_TRACE_DISCARD, CA_TRACE_RING };
enum ca_node_size { CA_NODE_CONSTANT, CA_NODE_LINEAR, CA_NODE_LOG };
enum ca_clock_choice { CA_CLOCK_VIRTUAL, CA_CLOCK_REAL };
enum ca_toggle { CA_TOGGLE_NONE, CA_TOGGLE_USR1, CA_TOGGLE_USR2 };
/* The values of `backend` are enum ca_backend (core/session.h). */

/* The values. Numbers are in the unit of the table's row. Strings are owned, never NULL. */
#define CA_MEMBER_BOOL     bool
#define CA_MEMBER_INT      int64_t
#define CA_MEMBER_REAL     double
#define CA_MEMBER_CHOICE   int
#define CA_MEMBER_STRING   char *
#define CA_MEMBER_PATTERNS char *
#define CA_MEMBER_SPEEDUPS struct ca_speedups
#define CA_MEMBER_SINKS    char *
#define CA_MEMBER_EVENTS   char *
#define CA_MEMBER_PERIODS  char *
#define CA_MEMBER_CLOCK    char *
#define CA_MEMBER_NUMBERS  char *
#define CA_MEMBER_SAMPLER  char *
#define CA_MEMBER_METRICS  char *
struct ca_settings {
#define CA_SETTING(ID, member, type, ...) CA_MEMBER_##type member;
#include "core/settings.def"
	unsigned char origin[CA_SETTING_COUNT]; /* enum ca_origin */
};
#undef CA_MEMBER_BOOL
#undef CA_MEMBER_INT
#undef CA_MEMBER_REAL
#undef CA_MEMBER_CHOICE
#undef CA_MEMBER_STRING
#undef CA_MEMBER_PATTERNS
#undef CA_MEMBER_SPEEDUPS
#undef CA_MEMBER_SINKS
#undef CA_MEMBER_EVENTS
#undef CA_MEMBER_PERIODS
#undef CA_MEMBER_CLOCK
#undef CA_MEMBER_NUMBERS
#undef CA_MEMBER_SAMPLER
#undef CA_MEMBER_METRICS

/* One row of the table; all strings are constants. */
struct ca_setting {
	enum ca_setting_id id;
	enum ca_setting_type type;
	enum ca_setting_use use;
	enum ca_setting_group group;
	const char *env;      /* CAUSAL_<ID> */
	const char *member;   /* key in lower case */
	const char *standard; /* the default as text */
	double low, high;
	const char *choices, *unit;
	const char *letter, *options, *argument, *help;
	size_t offset; /* in struct ca_settings */
};

const struct ca_setting *ca_settings_get(enum ca_setting_id id);
const char *ca_settings_category(const struct ca_setting *setting); /* one word */
/* The i-th long option, the preferred one first, without dashes. False: there are not so many. */
bool ca_settings_option(const struct ca_setting *setting, size_t i, char *buffer, size_t size);
/* By long option (any of its names, '_' counts as '-') or by short one, or by configuration key
 * (CAUSAL_X, x, any case). NULL if there is none. */
const struct ca_setting *ca_settings_find_option(const char *name);
const struct ca_setting *ca_settings_find_letter(const char *letter);
const struct ca_setting *ca_settings_find_key(const char *key);
/* The long option or key that is most like `name`, or NULL if none is near. Thread-local or
 * constant storage: use it at once. */
const char *ca_settings_near_option(const char *name);
const char *ca_settings_near_key(const char *key);

/* All defaults. Every other call needs an initialised struct. */
enum ca_status ca_settings_init(struct ca_settings *settings, struct ca_err *err);
enum ca_status ca_settings_copy(struct ca_settings *to, const struct ca_settings *from, struct ca_err *err);
void ca_settings_fini(struct ca_settings *settings);

/* Check `text` and store it, unless the value there has an origin of higher precedence (then
 * it is only checked). name: what the user wrote to name the setting, for the error's text,
 * NULL: the environment name. CA_ERR_USAGE: the text says which value, why, and the remedy. */
enum ca_status ca_settings_set(struct ca_settings *settings, enum ca_setting_id id, const char *text,
			       enum ca_origin origin, const char *name, struct ca_err *err);
/* The same for speedups that have been read already; copied. */
enum ca_status ca_settings_set_speedups(struct ca_settings *settings, const struct ca_speedups *pool,
					enum ca_origin origin, struct ca_err *err);
/* How much is to be said: --verbose, and 8 more with --debug. */
int ca_settings_level(const struct ca_settings *settings);
/* The value as text that ca_settings_set takes. Owned by the caller; NULL: no memory. */
char *ca_settings_text(const struct ca_settings *settings, enum ca_setting_id id);

/* KEY = VALUE lines; '#' begins a comment; a value may stand in "..." or '...'. Or JSON (core/settings_json.h). */
enum ca_status ca_settings_read_file(struct ca_settings *settings, const char *path, struct ca_err *err);
/* Several, separated by ':'; later ones win. Empty names are passed over. */
enum ca_status ca_settings_read_files(struct ca_settings *settings, const char *paths, struct ca_err *err);
/* From an environment as in environ(7). warn (may be NULL) hears of names that look misspelt. */
enum ca_status ca_settings_read_env(struct ca_settings *settings, const char *const *environment,
				    void (*warn)(const char *text), struct ca_err *err);

#endif
