/* SPDX-License-Identifier: MIT */
/* Scopes: which binaries, functions and lines may be selected. See scope.h.
 *
 * Each list becomes an array of compiled expressions. An address is in scope if something
 * includes it (no list: everything does) and nothing excludes it. Driver's process. */
#include "binary/scope.h"
#include "core/path.h"
#include "core/regex.h"
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One compiled list. main: it holds MAIN or %MAIN%. */
struct list {
	regex_t *regex;
	size_t n;
	bool main;
};
struct ca_scope {
	struct list binary, source, function;
	struct list binary_exclude, source_exclude, function_exclude;
	struct list left; /* not taken because of samples */
	bool follows;
	bool function_mode;
};

#define SEPARATORS ";\t\r\n\"'"

/* Binaries of ours and those that make up the dynamic loader: to delay the code that delays
 * would never end. */
static const char own_binaries[] = "(^|/)(libcausal-rt[^/]*\\.so[^/]*|ld-linux[^/]*\\.so[^/]*|"
				   "ld-[0-9.]+\\.so|linux-vdso\\.so[^/]*|"
				   "linux-gate\\.so[^/]*)$|^\\[vdso\\]$";
/* Nearly every program spends time in these, and hardly anybody can change them: what happens there
 * is counted for the callers. Old names with a version in the middle, and musl's, too. */
static const char left_binaries[] =
	"(^|/)(lib(c|m|mvec|pthread|dl|rt|gcc_s|stdc\\+\\+|c\\+\\+|c\\+\\+abi|unwind)"
	"([-.]([0-9]|musl)[^/]*)?\\.so[^/]*|ld-musl[^/]*\\.so[^/]*)$";
static enum ca_status add(struct list *list, const char *text, bool at_end, const char *setting,
			  struct ca_err *err)
{
	char reason[200], *full = NULL;
	enum ca_status status = CA_OK;

	regex_t *grown = realloc(list->regex, (list->n + 1) * sizeof(*grown));
	if (grown)
		list->regex = grown;
	if (!grown || asprintf(&full, at_end ? "(%s)$" : "%s", text) < 0)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	/* compiled as it was given, so that the message is about what the user wrote */
	int code = ca_regex_compile(&list->regex[list->n], text);
	if (code == 0 && at_end) {
		regfree(&list->regex[list->n]);
		code = ca_regex_compile(&list->regex[list->n], full);
	}
	if (code != 0) {
		regerror(code, &list->regex[list->n], reason, sizeof(reason));
		status = ca_err_set(err, CA_ERR_USAGE, "'%s' is not a regular expression: %s; correct %s",
				    text, reason, setting);
	} else {
		list->n++;
	}
	free(full);
	return status;
}

/* `name` is a keyword of binary lists. */
static bool is_main(const char *name)
{
	return strcmp(name, "MAIN") == 0 || strcmp(name, "%MAIN%") == 0;
}

struct parse {
	const char *text, *setting;
	bool binaries; /* MAIN is a keyword */
	bool at_end;   /* '$' is appended */
};

static enum ca_status parse(struct list *list, struct parse how, struct ca_err *err)
{
	enum ca_status status = CA_OK;
	char *copy, *rest = NULL;

	if (!how.text)
		return CA_OK;
	copy = strdup(how.text);
	if (!copy)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	for (char *item = strtok_r(copy, SEPARATORS, &rest); item && status == CA_OK;
	     item = strtok_r(NULL, SEPARATORS, &rest)) {
		while (*item == ' ')
			item++;
		for (size_t n = strlen(item); n > 0 && item[n - 1] == ' ';)
			item[--n] = '\0';
		if (!*item)
			continue;
		if (how.binaries && is_main(item))
			list->main = true;
		else
			status = add(list, item, how.at_end, how.setting, err);
	}
	free(copy);
	return status;
}

static void free_list(struct list *list)
{
	for (size_t i = 0; i < list->n; i++)
		regfree(&list->regex[i]);
	free(list->regex);
}

static bool matches(const struct list *list, const char *text)
{
	for (size_t i = 0; i < list->n; i++)
		if (regexec(&list->regex[i], text, 0, NULL, 0) == 0)
			return true;
	return false;
}

static bool is_empty(const struct list *list)
{
	return list->n == 0 && !list->main;
}

static enum ca_status add_defaults(struct ca_scope *scope, const struct ca_scope_spec *spec,
				   struct ca_err *err)
{
	enum ca_status status = add(&scope->binary_exclude, own_binaries, false, "causal itself", err);

	scope->follows = is_empty(&scope->binary);
	if (scope->follows)
		scope->binary.main = true;
	if (status == CA_OK)
		status = add(&scope->left, left_binaries, false, "causal itself", err);
	if (status == CA_OK && spec->function_defaults)
		status = add(&scope->function_exclude, "^_", false, "causal itself", err);
	if (status == CA_OK && spec->function_defaults && spec->function_mode)
		status = add(&scope->function_exclude, "::_M", false, "causal itself", err);
	return status;
}

enum ca_status ca_scope_new(struct ca_scope **scope, const struct ca_scope_spec *spec, struct ca_err *err)
{
	struct ca_scope *new = calloc(1, sizeof(*new));
	enum ca_status status = CA_OK;

	if (!new)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	const struct {
		struct list *list;
		struct parse how;
	} step[] = {
		{ &new->binary, { spec->binary, "--binary-scope (-B)", true, false } },
		{ &new->source, { spec->source, "--source-scope (-S)", false, true } },
		{ &new->function, { spec->function, "--function-scope (-F)", false, false } },
		{ &new->binary_exclude, { spec->binary_exclude, "--binary-exclude (-BE)", true, false } },
		{ &new->source_exclude, { spec->source_exclude, "--source-exclude (-SE)", false, true } },
		{ &new->function_exclude,
		  { spec->function_exclude, "--function-exclude (-FE)", false, false } },
	};
	new->function_mode = spec->function_mode;
	for (size_t i = 0; i < sizeof(step) / sizeof(*step) && status == CA_OK; i++)
		status = parse(step[i].list, step[i].how, err);
	if (status == CA_OK)
		status = add_defaults(new, spec, err);
	if (status != CA_OK) {
		ca_scope_free(new);
		return status;
	}
	*scope = new;
	return CA_OK;
}

void ca_scope_free(struct ca_scope *scope)
{
	if (!scope)
		return;
	free_list(&scope->binary);
	free_list(&scope->left);
	free_list(&scope->source);
	free_list(&scope->function);
	free_list(&scope->binary_exclude);
	free_list(&scope->source_exclude);
	free_list(&scope->function_exclude);
	free(scope);
}

bool ca_scope_has_binary(const struct ca_scope *scope, const char *path, bool main)
{
	const struct list *in = &scope->binary, *out = &scope->binary_exclude;

	if ((out->main && main) || matches(out, path))
		return false;
	return (in->main && main) || matches(in, path);
}

bool ca_scope_follows(const struct ca_scope *scope)
{
	return scope->follows;
}

enum ca_scope_use ca_scope_use_of(const struct ca_scope *scope, const char *path)
{
	return matches(&scope->binary_exclude, path)                    ? CA_SCOPE_EXCLUDED
	       : matches(&scope->left, path) || ca_path_is_openmp(path) ? CA_SCOPE_LEAVE
									: CA_SCOPE_MAY_TAKE;
}

static bool has_name(const struct ca_scope *scope, const char *name)
{
	return (is_empty(&scope->function) || matches(&scope->function, name)) &&
	       !matches(&scope->function_exclude, name);
}

bool ca_scope_has_function(const struct ca_scope *scope, const char *name)
{
	return !(scope->function_mode && strcmp(name, "main") == 0) && has_name(scope, name);
}

bool ca_scope_names_main(const struct ca_scope *scope)
{
	return !is_empty(&scope->function) && has_name(scope, "main");
}

bool ca_scope_has_line(const struct ca_scope *scope, const char *file, unsigned line)
{
	char *place = NULL;
	bool in;

	if (asprintf(&place, "%s:%u", file, line) < 0)
		return false;
	in = is_empty(&scope->source) || matches(&scope->source, file) || matches(&scope->source, place);
	if (in && (matches(&scope->source_exclude, file) || matches(&scope->source_exclude, place)))
		in = false;
	free(place);
	return in;
}

bool ca_scope_has_source_filter(const struct ca_scope *scope)
{
	return !is_empty(&scope->source);
}

void ca_scope_pattern(const char *path, char *buffer, size_t size)
{
	const char *name = ca_path_base(path), *so = strstr(name, ".so.");
	size_t n = 0;

	for (const char *end = so ? so + 3 : name + strlen(name); name < end && n + 2 < size; name++) {
		if (strchr("+*?()[]{}|^$\\", *name))
			buffer[n++] = '\\';
		buffer[n++] = *name;
	}
	buffer[n] = '\0';
}
