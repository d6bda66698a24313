/* SPDX-License-Identifier: MIT */
/* See wrap_code.h. Where the runtime is in the program it is asked to change the code, since it may be about to
 * change it, too. */
#include "causal/library/wrap_code.h"
#include "binary/plan/plan.h"
#include "binary/plan/text.h"
#include "causal/runtime/patch.h"
#include <errno.h>
#include <link.h>
#include <string.h>

__attribute__((weak, visibility("default"))) const struct ca_patch_wrapping *_causal_wrapping(void);

/* NULL: *why says why not. */
static const struct ca_patch_wrapping *wrapping(const char **why)
{
	static bool ready;

	*why = "the system does not let us";
	if (_causal_wrapping && _causal_wrapping())
		return _causal_wrapping();
	ready = ready || ca_patch_init(why);
	return ready ? &ca_patch_wrapping : NULL;
}

struct search {
	const char *symbol;
	struct ca_wrap_code *code;
	enum ca_status status;
	struct ca_err *err;
	unsigned files;
};

/* The program first; then its libraries, in their order. */
static int look(struct dl_phdr_info *info, size_t size, void *to)
{
	struct search *search = to;
	const char *path = search->files++ ? info->dlpi_name : "/proc/self/exe";
	struct ca_text *text;

	(void)size;
	if (!strchr(path, '/') || ca_text_open(&text, path, search->err) != CA_OK)
		return 0;
	search->status = ca_plan_wrap(text, search->symbol, info->dlpi_addr, &search->code->slot,
				      &search->code->site, search->err);
	ca_text_close(text);
	return search->status != CA_ERR_NOT_FOUND;
}

static int error_of(enum ca_status status)
{
	switch (status) {
	case CA_OK:
		return 0;
	case CA_ERR_NOT_FOUND:
		return ENOENT;
	case CA_ERR_USAGE:
		return ENOTUNIQ;
	default:
		return ENOTSUP;
	}
}

static bool place(struct ca_wrap_code *code, const struct ca_patch_wrapping *by)
{
	uintptr_t copy = by->wrap(&code->site, CA_WRAP_COPY);

	if (copy)
		code->copy = (causal_wrap_code *)copy;
	return copy;
}

int ca_wrap_code_place(struct ca_wrap_code *code, const char *symbol, struct ca_err *err)
{
	struct search search = { symbol, code, CA_ERR_NOT_FOUND, err, 0 };
	const char *why;
	const struct ca_patch_wrapping *by = wrapping(&why);

	if (!by) {
		ca_err_set(err, CA_ERR_UNSUPPORTED, "%s", why);
		return ENOTSUP;
	}
	/* as it was the last time, as a rule: unless its library has been closed since */
	if (code->site.length && place(code, by))
		return 0;
	dl_iterate_phdr(look, &search);
	if (search.status == CA_OK && !place(code, by)) {
		ca_err_set(err, CA_ERR_AGAIN,
			   "its code cannot be changed: it is too short, a thread blocks SIGTRAP, "
			   "a debugger is there, or causal has changed it");
		return EAGAIN;
	}
	return error_of(search.status);
}

void ca_wrap_code_restore(struct ca_wrap_code *code)
{
	const char *why;
	const struct ca_patch_wrapping *by = wrapping(&why);

	if (by)
		by->unwrap((uintptr_t)code->site.address);
}
