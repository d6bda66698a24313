/* SPDX-License-Identifier: MIT */
/* Names of progress points: reading them, and what is like them; see point_name.h. */
#include "causal/points/point_name.h"
#include "core/path.h"
#include "core/regex.h"
#include "core/suggest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ------------------------------------------------------------------------------*/
static bool parse_line(struct ca_point_name *name, const char *text)
{
	const char *colon = strrchr(text, ':');
	char *end;
	unsigned long line;

	if (!colon || colon == text || colon[-1] == ':' || !colon[1])
		return false;
	line = strtoul(colon + 1, &end, 10);
	if (*end || !line || line > INT32_MAX || colon[1] < '0' || colon[1] > '9')
		return false;
	name->kind = CA_POINT_NAME_LINE;
	name->line = (unsigned)line;
	name->name = strndup(text, (size_t)(colon - text));
	return true;
}

/* FUNCTION+0xOFFSET or 0xADDRESS. */
static bool parse_address(struct ca_point_name *name, const char *text)
{
	const char *hex = !strncmp(text, "0x", 2) ? text : strstr(text, "+0x");
	const char *digits;

	if (!hex)
		return false;
	digits = hex + (*hex == '+' ? 3 : 2);
	if (!*digits || strlen(digits) > 16 || digits[strspn(digits, "0123456789abcdefABCDEF")])
		return false;
	name->kind = CA_POINT_NAME_ADDRESS;
	name->offset = strtoull(digits, NULL, 16);
	name->name = strndup(text, (size_t)(hex - text));
	return true;
}

static enum ca_status parse_probe(struct ca_point_name *name, const char *text, struct ca_err *err)
{
	const char *colon = strchr(text, ':');

	if (!colon || colon == text || !colon[1])
		return ca_err_set(err, CA_ERR_USAGE,
				  "-P '%s': a USDT probe is written "
				  "usdt:PROVIDER:NAME",
				  name->text);
	name->kind = CA_POINT_NAME_PROBE;
	name->name = strndup(text, (size_t)(colon - text));
	name->probe = strdup(colon + 1);
	return CA_OK;
}

static enum ca_status parse_function(struct ca_point_name *name, const char *text, struct ca_err *err)
{
	char reason[128];
	int code;

	name->kind = CA_POINT_NAME_FUNCTION;
	name->name = strdup(text);
	if (!strpbrk(text, ".*+?[](){}|^$\\"))
		return CA_OK;
	code = ca_regex_compile(&name->regex, text);
	if (!code) {
		name->is_regex = true;
	} else if (!strpbrk(text, "(<[")) { /* these occur in names of C++ */
		regerror(code, &name->regex, reason, sizeof reason);
		return ca_err_set(err, CA_ERR_USAGE, "-P '%s': bad regular expression: %s", name->text,
				  reason);
	}
	return CA_OK;
}

enum ca_status ca_point_name_parse(struct ca_point_name *name, const char *text, struct ca_err *err)
{
	const char *mark = strchr(text, '!');
	enum ca_status status = CA_OK;

	memset(name, 0, sizeof *name);
	name->text = strdup(text);
	if (mark && mark > text)
		name->binary = strndup(text, (size_t)(mark - text));
	if (mark)
		text = mark + 1;
	if (!*text)
		status = ca_err_set(err, CA_ERR_USAGE,
				    "-P '%s' names no place: write FILE:LINE, "
				    "FUNCTION or usdt:PROVIDER:NAME",
				    name->text);
	else if (!strncmp(text, "usdt:", 5))
		status = parse_probe(name, text + 5, err);
	else if (!parse_line(name, text) && !parse_address(name, text))
		status = parse_function(name, text, err);
	if (status == CA_OK && (!name->text || !name->name))
		status = ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	if (status != CA_OK)
		ca_point_name_fini(name);
	return status;
}

void ca_point_name_fini(struct ca_point_name *name)
{
	if (name->is_regex)
		regfree(&name->regex);
	free(name->text);
	free(name->binary);
	free(name->name);
	free(name->probe);
	memset(name, 0, sizeof *name);
}

bool ca_point_name_is_plain(const char *function)
{
	return *function && !strpbrk(function, "!;\t\n") && strncmp(function, "begin=", 6) &&
	       strncmp(function, "usdt:", 5) && strncmp(function, "list", 4) && strcmp(function, "auto") &&
	       strcmp(function, "ask") && strcmp(function, "none");
}

/* ---- matching -----------------------------------------------------------------------------*/
bool ca_point_name_is_file(const char *path, const char *file)
{
	size_t p = strlen(path), f = strlen(file);

	return p >= f && !strcmp(path + p - f, file) && (p == f || path[p - f - 1] == '/' || *file == '/');
}

/* libz.so means libz.so.1.3, too. */
static bool is_binary(const char *path, const char *binary)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t length = strlen(binary);

	if (ca_point_name_is_file(path, binary))
		return true;
	return !strncmp(base, binary, length) && base[length] == '.';
}

bool ca_point_name_applies(const struct ca_point_name *name, const char *path, bool main, bool in_scope)
{
	if (name->binary)
		return is_binary(path, name->binary);
	return main || in_scope || name->kind == CA_POINT_NAME_PROBE;
}

/* ---- suggestions --------------------------------------------------------------------------*/
static bool near_line(const struct ca_point_name *name, const struct ca_index *index, char *buffer,
		      size_t size)
{
	struct ca_suggest file = { .name = ca_path_base(name->name) };
	unsigned line = 0, best = UINT32_MAX;
	struct ca_index_line l;

	for (size_t i = 0; i < ca_index_lines(index); i++) {
		unsigned distance;

		ca_index_line_at(index, i, &l);
		ca_suggest_offer(&file, ca_path_base(l.file));
		if (!ca_point_name_is_file(l.file, name->name) || !l.line || !l.is_stmt)
			continue;
		distance = l.line > name->line ? l.line - name->line : name->line - l.line;
		if (distance < best || (distance == best && l.line > name->line)) {
			best = distance;
			line = l.line;
		}
	}
	if (line)
		snprintf(buffer, size, "%s:%u", name->name, line);
	else if (file.best && name->line)
		snprintf(buffer, size, "%s:%u", file.best, name->line);
	else if (file.best)
		snprintf(buffer, size, "%s", file.best);
	return line || file.best;
}

static bool near_function(const struct ca_point_name *name, const struct ca_index *index, char *buffer,
			  size_t size)
{
	struct ca_suggest nearest = { .name = name->name };

	for (size_t i = 0; i < ca_index_functions(index); i++) {
		struct ca_index_function f;

		ca_index_function_at(index, i, &f);
		ca_suggest_offer(&nearest, f.name);
	}
	for (size_t i = 0; i < ca_index_inlines(index); i++) {
		struct ca_index_inline in;

		ca_index_inline_at(index, i, &in);
		ca_suggest_offer(&nearest, in.name);
	}
	if (nearest.best)
		snprintf(buffer, size, "%s", nearest.best);
	return nearest.best;
}

static bool near_probe(const struct ca_point_name *name, const struct ca_index *index, char *buffer,
		       size_t size)
{
	struct ca_suggest nearest = { .name = name->probe };
	const char *provider = NULL;

	for (size_t i = 0; i < ca_index_probes(index); i++) {
		const char *before = nearest.best;
		struct ca_index_probe p;

		ca_index_probe_at(index, i, &p);
		ca_suggest_offer(&nearest, p.name);
		if (nearest.best != before)
			provider = p.provider;
	}
	if (nearest.best)
		snprintf(buffer, size, "usdt:%s:%s", provider, nearest.best);
	return nearest.best;
}

bool ca_point_name_near(const struct ca_point_name *name, const struct ca_index *index, char *buffer,
			size_t size)
{
	if (name->kind == CA_POINT_NAME_LINE)
		return near_line(name, index, buffer, size);
	if (name->kind == CA_POINT_NAME_FUNCTION)
		return near_function(name, index, buffer, size);
	if (name->kind == CA_POINT_NAME_ADDRESS)
		return false;
	return near_probe(name, index, buffer, size);
}
