/* SPDX-License-Identifier: MIT */
/* The texts of a sweep's binaries, each opened once for all of its runs: of a large library that takes a tenth of a
 * second, in which a run that is measured as a whole would have begun without its sites. Any thread. */
#ifndef CA_BINARY_PLAN_TEXTS_H
#define CA_BINARY_PLAN_TEXTS_H
#include "binary/plan/text.h"

struct ca_texts;

/* NULL: no memory. */
struct ca_texts *ca_texts_new(void);
void ca_texts_free(struct ca_texts *texts);
/* That of the file as it is now, with what its index knows (NULL: nothing). NULL: it cannot be read. Borrowed, and used
 * by one thread at a time. */
struct ca_text *ca_texts_open(struct ca_texts *texts, const char *path, const struct ca_index *index);

#endif
