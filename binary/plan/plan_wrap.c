/* SPDX-License-Identifier: MIT */
/* Plans for functions that the program wraps; see plan.h. Their callers were compiled for the function as it
 * is: who knows its code may count on registers that it happens to leave alone (gcc's -fipa-ra), or leave out
 * arguments that it does not use (clang, for static functions). So a function is wrapped if it says that it may
 * be (CAUSAL_WRAPPABLE: five bytes that do nothing at its beginning), or if it calls what nobody knows, which
 * may change any register that a function may change. */
#include "binary/plan/code.h"
#include "binary/plan/plan.h"
#include "binary/plan/text.h"
#include <stdlib.h>
#include <string.h>

enum { MARK = 5, DEPTH = 4 /* of calls in the same file */ };

static bool is_marked(const struct ca_insn *insn, size_t n)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t at = n && insn[0].size == 4 && !memcmp(insn[0].bytes, endbr64, 4), bytes = 0;

	while (at < n && insn[at].is_pad && bytes < MARK)
		bytes += insn[at++].size;
	return bytes >= MARK;
}

static bool calls_unknown(struct ca_text *text, uint64_t low, uint64_t high, unsigned depth)
{
	uint64_t first, end;
	struct ca_insn *insn;
	bool found = false;
	size_t n;

	insn = ca_text_decode_all(text, low, high, &n);
	for (size_t i = 0; insn && i < n && !found; i++) {
		bool leaves = insn[i].target && insn[i].target - low >= high - low;

		if (insn[i].kind == CA_INSN_CALL_INDIRECT)
			found = true;
		else if (leaves && ca_text_function(text, insn[i].target, &first, &end))
			found = depth && insn[i].kind == CA_INSN_CALL &&
				calls_unknown(text, first, end, depth - 1);
		else if (leaves)
			found = ca_text_is_entry(text, insn[i].target); /* of a linkage table */
	}
	free(insn);
	return found;
}

/* mov $slot, %r11; mov (%r11), %r11; test %r11, %r11; jz to behind; jmp *%r11. Nobody's at the start of a
 * function is %r11. */
static void put_switch(struct ca_site *site, const void *slot)
{
	static const uint8_t load[] = { 0x49, 0xbb },
			     go[] = { 0x4d, 0x8b, 0x1b, 0x4d, 0x85, 0xdb, 0x74, 0x03, 0x41, 0xff, 0xe3 };
	_Static_assert(sizeof load + sizeof slot + sizeof go == CA_WRAP_COPY, "as plan.h has it");

	memcpy(site->code, load, sizeof load);
	memcpy(site->code + sizeof load, &slot, sizeof slot);
	memcpy(site->code + sizeof load + sizeof slot, go, sizeof go);
	site->code_length = CA_WRAP_COPY;
}

/* Does a jump of the function, in its part that is seldom run, lead into the bytes that are displaced? */
static bool is_entered_from_cold(struct ca_text *text, const char *name, const struct ca_site *site)
{
	char cold[256];
	uint64_t low, high;
	struct ca_insn *insn;
	bool local, found = false;
	size_t n;

	if (strlen(name) + sizeof ".cold" > sizeof cold)
		return true;
	strcpy(stpcpy(cold, name), ".cold");
	if (!ca_text_find(text, cold, &low, &high, &local))
		return false;
	insn = ca_text_decode_all(text, low, high, &n);
	for (size_t i = 0; insn && i < n; i++)
		found |= insn[i].kind != CA_INSN_CALL && insn[i].target - site->address < site->length;
	free(insn);
	return found;
}

static bool put_function(struct ca_text *text, const struct ca_insn *insn, size_t n, uint64_t high,
			 struct ca_site *site)
{
	struct ca_insn pad;
	uint64_t first, end;

	if (insn[0].is_target || !ca_code_copy_many(site, insn, n, 0, UINT64_MAX))
		return false;
	/* a short one: what nobody runs behind it */
	while (site->length < CA_JUMP_LENGTH && site->address + site->length >= high &&
	       ca_text_decode(text, site->address + site->length, &pad) && pad.is_pad &&
	       !ca_text_function(text, pad.address, &first, &end) && ca_code_copy(site, &pad))
		;
	return true;
}

enum ca_status ca_plan_wrap(struct ca_text *text, const char *name, uint64_t bias, const void *slot,
			    struct ca_site *out, struct ca_err *err)
{
	uint64_t low, high;
	bool local, marked, ok;
	struct ca_insn *insn;
	unsigned found = ca_text_find(text, name, &low, &high, &local);
	size_t n;

	if (found != 1)
		return ca_err_set(err, found ? CA_ERR_USAGE : CA_ERR_NOT_FOUND, "%s",
				  found ? "there are several; FILE.c:NAME says which" : "there is none");
	insn = ca_text_decode_all(text, low, high, &n);
	if (!insn)
		return ca_err_set(err, CA_ERR_UNSUPPORTED, "its code cannot be read");
	marked = is_marked(insn, n);
	ca_code_begin(out, 0, CA_SITE_WRAP, low);
	put_switch(out, slot);
	ok = put_function(text, insn, n, high, out) && !is_entered_from_cold(text, name, out);
	free(insn);
	if (!ok)
		return ca_err_set(err, CA_ERR_UNSUPPORTED, "its beginning cannot be moved");
	if (!marked && local && !ca_text_is_gcc(text))
		return ca_err_set(err, CA_ERR_UNSUPPORTED,
				  "the compiler may have changed how a static function is called; define it "
				  "with CAUSAL_WRAPPABLE");
	if (!marked && !calls_unknown(text, low, high, DEPTH))
		return ca_err_set(err, CA_ERR_UNSUPPORTED,
				  "its callers may know which registers it leaves alone; define it with "
				  "CAUSAL_WRAPPABLE");
	out->flags |= CA_SITE_NO_TRAP;
	out->address += bias;
	for (unsigned i = 0; i < out->fixups; i++)
		out->fixup[i].target += bias;
	return CA_OK;
}
