/* SPDX-License-Identifier: MIT */
/* Settings from a file in XML, as `causal avail --dump-config xml` writes it: <causal-config>, in it <settings>, and
 * in that <setting name="..." value="..."/> for each. By expat, where the build has it. Driver's process, one
 * thread. */
#include "core/settings_xml.h"

#ifndef HAVE_EXPAT

enum ca_status ca_settings_read_xml(struct ca_settings *settings, const char *path, struct ca_err *err)
{
	(void)settings;
	return ca_err_set(
		err, CA_ERR_USAGE,
		"configuration '%s' is XML, which this build of causal does not read (expat was missing); "
		"write it as text or JSON",
		path);
}

#else

#include <errno.h>
#include <expat.h>
#include <stdio.h>
#include <string.h>

struct reading {
	struct ca_settings *settings;
	const char *path;
	XML_Parser parser;
	unsigned depth;
	bool whole, inside; /* it is ours; in its settings */
	enum ca_status status;
	struct ca_err *err;
};

static const char *attribute(const char **list, const char *name)
{
	for (; *list; list += 2)
		if (!strcmp(*list, name))
			return list[1];
	return NULL;
}

static void set(struct reading *r, const char *key, const char *value)
{
	const struct ca_setting *setting = key ? ca_settings_find_key(key) : NULL;
	const char *near = key && !setting ? ca_settings_near_key(key) : NULL;
	char name[384];

	if (!setting) {
		r->status = ca_err_set(r->err, CA_ERR_USAGE, "%s: no setting '%s'%s%s", r->path,
				       key ? key : "", near ? "; did you mean " : "", near ? near : "");
		return;
	}
	snprintf(name, sizeof name, "%s: %s", r->path, key);
	r->status =
		ca_settings_set(r->settings, setting->id, value ? value : "", CA_ORIGIN_FILE, name, r->err);
}

static void begin(void *context, const char *name, const char **attributes)
{
	struct reading *r = context;

	if (r->depth == 0)
		r->whole = !strcmp(name, "causal-config");
	else if (r->depth == 1)
		r->inside = !strcmp(name, "settings");
	else if (r->depth == 2 && r->whole && r->inside && !r->status && !strcmp(name, "setting"))
		set(r, attribute(attributes, "name"), attribute(attributes, "value"));
	r->depth++;
}

static void end(void *context, const char *name)
{
	struct reading *r = context;

	(void)name;
	r->depth--;
}

/* Entities of its own are nothing that we write, and could be made to fill all memory. */
static void refuse(void *context, const char *name, const char *system, const char *public, int subset)
{
	struct reading *r = context;

	(void)name;
	(void)system;
	(void)public;
	(void)subset;
	XML_StopParser(r->parser, XML_FALSE);
}

static bool parse(struct reading *r, FILE *file)
{
	enum XML_Status status = XML_STATUS_OK;
	char text[4096];
	size_t n;

	do {
		n = fread(text, 1, sizeof text, file);
		status = XML_Parse(r->parser, text, (int)n, n < sizeof text);
	} while (status == XML_STATUS_OK && n == sizeof text);
	return status == XML_STATUS_OK && r->whole;
}

enum ca_status ca_settings_read_xml(struct ca_settings *settings, const char *path, struct ca_err *err)
{
	struct reading r = {
		.settings = settings, .path = path, .err = err, .parser = XML_ParserCreate(NULL)
	};
	FILE *file = fopen(path, "re");
	bool ok = false;

	if (file && r.parser) {
		XML_SetUserData(r.parser, &r);
		XML_SetElementHandler(r.parser, begin, end);
		XML_SetStartDoctypeDeclHandler(r.parser, refuse);
		ok = parse(&r, file);
	}
	if (file)
		fclose(file);
	if (!ok && !r.status)
		r.status = ca_err_set(
			err, CA_ERR_USAGE,
			"configuration '%s' is no XML with <causal-config> and <settings> in it, as "
			"causal avail --dump-config xml writes it%s%s",
			path, r.parser && XML_GetErrorCode(r.parser) ? ": " : "",
			r.parser && XML_GetErrorCode(r.parser) ? XML_ErrorString(XML_GetErrorCode(r.parser))
							       : "");
	if (r.parser)
		XML_ParserFree(r.parser);
	return r.status;
}

#endif
