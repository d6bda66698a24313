/* SPDX-License-Identifier: MIT */
/* Is it UTF-8? Names come from programs and file systems, what we write has to stay readable. */
#ifndef CA_CORE_UTF8_H
#define CA_CORE_UTF8_H
#include <stddef.h>
#include <stdio.h>

/* Length of the UTF-8 sequence at s (1..4), or 0 when it is not one. */
size_t ca_utf8_length(const unsigned char *s);
/* One character of text, as it can stand in a line: what is none becomes U+FFFD, and control characters
 * blanks. Returns what comes behind it. */
const char *ca_utf8_put(FILE *file, const char *text);

#endif
