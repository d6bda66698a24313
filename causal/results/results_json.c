/* SPDX-License-Identifier: MIT */
/* Helpers over json-c: see results_json.h. Driver's process, one thread. */
#include "causal/results/results_json.h"
#include "core/event.h"
#include "core/utf8.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct json_object *ca_results_json_text(const char *text)
{
	const unsigned char *s = (const unsigned char *)(text ? text : "");
	struct json_object *value;
	char *clean, *to;
	size_t good = 0;

	while (s[good] && ca_utf8_length(s + good))
		good += ca_utf8_length(s + good);
	if (!s[good])
		return json_object_new_string((const char *)s);
	clean = to = malloc(3 * strlen((const char *)s) + 1);
	if (!clean)
		return json_object_new_string("");
	while (*s) {
		size_t n = ca_utf8_length(s);

		memcpy(to, n ? (const char *)s : "\xef\xbf\xbd", n ? n : 3);
		to += n ? n : 3;
		s += n ? n : 1;
	}
	*to = '\0';
	value = json_object_new_string(clean);
	free(clean);
	return value;
}

struct json_object *ca_results_json_rounded(double value)
{
	char text[32];

	if (!isfinite(value))
		return NULL;
	snprintf(text, sizeof text, "%.2f", value);
	return json_object_new_double_s(value, text);
}

struct json_object *ca_results_json_get(struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_is_type(object, json_type_object) || !json_object_object_get_ex(object, key, &value))
		return NULL;
	return value;
}

const char *ca_results_json_string(struct json_object *object, const char *key)
{
	struct json_object *value = ca_results_json_get(object, key);

	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

uint64_t ca_results_json_u64(struct json_object *object, const char *key)
{
	struct json_object *value = ca_results_json_get(object, key);

	return value ? json_object_get_uint64(value) : 0;
}

double ca_results_json_double(struct json_object *object, const char *key)
{
	struct json_object *value = ca_results_json_get(object, key);

	return value ? json_object_get_double(value) : 0;
}

const char *ca_results_drop_name(unsigned drop)
{
	static const char *const name[] = {
		[CA_DROP_REENTRY] = "reentry",     [CA_DROP_RING_FULL] = "ring_full",
		[CA_DROP_UNWIND] = "unwind",       [CA_DROP_OWN_CODE] = "own_code",
		[CA_DROP_NO_MODULE] = "no_module", [CA_DROP_LOST] = "lost",
		[CA_DROP_NO_EVENT] = "no_event",
	};

	_Static_assert(sizeof name / sizeof *name == CA_DROP_COUNT, "a cause has no key");
	return name[drop];
}
