/* SPDX-License-Identifier: MIT */
/* A site under construction: its hooks, and copies of the instructions that it displaces, which run
 * at any address. Driver's process. */
#ifndef CA_BINARY_PLAN_CODE_H
#define CA_BINARY_PLAN_CODE_H
#include "binary/plan/insn.h"
#include "core/site.h"

enum { CA_JUMP_LENGTH = 5 };

void ca_code_begin(struct ca_site *site, uint32_t module, enum ca_site_kind kind, uint64_t address);
bool ca_code_hook(struct ca_site *site, enum ca_site_kind kind); /* before what comes next */
/* Append the displaced instruction's copy. False: it cannot be moved, or there is no room. */
bool ca_code_copy(struct ca_site *site, const struct ca_insn *insn);
/* The same for an instruction that may leave the function: with an EXIT hook when it does. */
bool ca_code_copy_leaving(struct ca_site *site, const struct ca_insn *insn);
/* The same for a call reached by CA_SITE_BY_CALL: a jump to where it calls. */
bool ca_code_copy_called(struct ca_site *site, const struct ca_insn *insn);
/* Copies from insn[at] on until a jump fits, then the way back; the hooks before the first one are
 * the caller's. Stops at what cannot be moved, before known targets and at `limit` (an address). */
bool ca_code_copy_many(struct ca_site *site, const struct ca_insn *insn, size_t n, size_t at, uint64_t limit);
bool ca_code_jump_back(struct ca_site *site); /* to behind the site's bytes */

#endif
