/* SPDX-License-Identifier: MIT */
/* Regular expressions of the user's. Driver's process. */
#ifndef CA_CORE_REGEX_H
#define CA_CORE_REGEX_H
#include <regex.h>

/* As regcomp, for extended ones without parts; one whose repetitions multiply to so much that libc would
 * work on it for minutes, and take gigabytes, is refused (REG_BADBR). */
int ca_regex_compile(regex_t *regex, const char *text);

#endif
