/* SPDX-License-Identifier: MIT */
/* Demangled names for people; see causal/results/plain.h. */
#include "causal/results/plain.h"
#include "causal/results/text.h"
#include "core/memstream.h"
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static const struct {
	const char *text, *plain;
} usual[] = {
	{ "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string" },
	{ "std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char>>",
	  "std::string" },
	{ "std::basic_string_view<char, std::char_traits<char> >", "std::string_view" },
	{ "std::__1::basic_string_view<char, std::__1::char_traits<char>>", "std::string_view" },
	{ "std::__cxx11::", "std::" },
	{ "std::__1::", "std::" },
};
static const char *const allocators[] = { ", std::allocator<", ", std::__1::allocator<" };

enum { LEAST_TAIL = 4 /* columns of parameters that are worth it */ };

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Behind the bracket that closes the one at `at`. */
static const char *close_of(const char *at)
{
	static const char opening[] = "<([{", closing[] = ">)]}";
	size_t depth = 0;

	do {
		if (strchr(opening, *at))
			depth++;
		else if (strchr(closing, *at) && !(*at == '>' && at[-1] == '-'))
			depth--;
	} while (*++at && depth);
	return at;
}

char *ca_plain_name(const char *name)
{
	char *plain = NULL, last = 0;
	size_t size;
	FILE *out = open_memstream(&plain, &size);

	while (out && *name) {
		const char *from = name;

		for (size_t i = 0; i < sizeof usual / sizeof *usual && from == name; i++)
			if (!strncmp(name, usual[i].text, strlen(usual[i].text))) {
				name += strlen(usual[i].text);
				fputs(usual[i].plain, out);
			}
		for (size_t i = 0; i < sizeof allocators / sizeof *allocators && from == name; i++)
			if (!strncmp(name, allocators[i], strlen(allocators[i]))) {
				name = close_of(name + strlen(allocators[i]) - 1);
				name += name[0] == ' ' && name[1] == '>' && last != '>';
			}
		if (from == name)
			fputc(*name++, out);
		last = name[-1];
	}
	if (out)
		ca_memstream_end(out, &plain);
	return plain;
}

struct parts {
	const char *start; /* behind the library, which is what comes before "!" */
	const char *name;  /* behind what it returns */
	const char *last;
	const char *parameters; /* NULL: none */
};

/* Behind "operator+" and the like at `at`; `at`: it is none. */
static const char *skip_operator(const char *text, const char *at)
{
	static const char word[] = "operator";

	if (strncmp(at, word, sizeof word - 1) != 0 || (at > text && is_word(at[-1])) ||
	    is_word(at[sizeof word - 1]))
		return at;
	at += sizeof word - 1;
	if (!strncmp(at, "()", 2) || !strncmp(at, "[]", 2))
		return at + 2;
	return at + strspn(at, "<>=!+-*/%^&|~,");
}

static struct parts take_apart(const char *text)
{
	const char *library = strstr(text, ".so!");
	struct parts p = { .start = library ? library + 4 : text };
	bool is_operator = false;

	p.name = p.last = p.start;
	for (const char *at = p.start; *at && !p.parameters;) {
		const char *behind = skip_operator(p.start, at);

		if (behind > at) {
			is_operator = true;
			at = behind;
		} else if (*at == '(' && at > p.start &&
			   (is_word(at[-1]) || strchr(">])}~=!+-*/%^&|,<", at[-1]))) {
			p.parameters = at;
		} else if (strchr("<([{", *at)) {
			at = close_of(at);
		} else if (at[0] == ':' && at[1] == ':') {
			p.last = at += 2;
		} else {
			if (*at++ == ' ' && !is_operator)
				p.name = at;
		}
	}
	if (!p.parameters) /* a space is no end of a type then */
		p.name = p.start;
	if (p.last < p.name)
		p.last = p.name;
	return p;
}

char *ca_plain_bare(const char *name)
{
	struct parts p = take_apart(name);
	char *bare = strdup(name);
	size_t before, kept;
	const char *rest;

	if (!bare || !p.parameters)
		return bare;
	before = (size_t)(p.start - name);
	kept = (size_t)(p.parameters - p.name);
	rest = close_of(p.parameters);
	rest += strncmp(rest, " const", 6) ? 0 : 6;
	memcpy(bare + before, p.name, kept);
	strcpy(bare + before + kept, rest);
	return bare;
}

char *ca_plain_templates(const char *name)
{
	char *bare = ca_plain_bare(name), *plain = NULL;
	size_t size;
	FILE *out = bare ? open_memstream(&plain, &size) : NULL;

	for (const char *at = bare; out && *at;) {
		const char *behind = skip_operator(bare, at);

		if (behind > at) {
			fwrite(at, 1, (size_t)(behind - at), out);
			at = behind;
		} else if (*at == '<' && at > bare && is_word(at[-1])) {
			fputs("<…>", out);
			at = close_of(at);
		} else {
			fputc(*at++, out);
		}
	}
	if (out)
		ca_memstream_end(out, &plain);
	free(bare);
	return plain;
}

const char *ca_plain_last(const char *name)
{
	return take_apart(name).last;
}

size_t ca_plain_head(const char *name, size_t width)
{
	struct parts p = take_apart(name);
	size_t tail = ca_text_width(p.last), most = width ? width - 1 : 0, head;

	if (p.last == name && p.parameters) {
		head = (size_t)(p.parameters + 1 - name);
		return head + LEAST_TAIL < most ? head : most / 2;
	}
	return p.last > name && tail > width / 2 && tail < most ? most - tail : most / 2;
}

char *ca_plain_fit(const char *name, size_t width)
{
	static char *(*const less[])(const char *) = { ca_plain_bare, ca_plain_templates };
	char *text = ca_plain_name(name), *cut;

	for (size_t i = 0; text && i < sizeof less / sizeof *less && ca_text_width(text) > width; i++) {
		char *now = less[i](text);

		free(text);
		text = now;
	}
	cut = text ? ca_text_cut(text, width, ca_plain_head(text, width)) : NULL;
	free(text);
	return cut;
}
