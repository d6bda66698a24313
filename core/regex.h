/* SPDX-License-Identifier: MIT */
/* Regular expressions of the user's. Driver's process. */
#ifndef CA_CORE_REGEX_H
#define CA_CORE_REGEX_H
#include <regex.h>

/* As regcomp, for extended ones without parts; one on which libc would work for minutes, take gigabytes, or run
 * out of stack is refused (REG_ESPACE). It is tried in a child first, unless it is short and plain. */
int ca_regex_compile(regex_t *regex, const char *text);

#endif
