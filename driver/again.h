/* SPDX-License-Identifier: MIT */
/* The command line to type next: the user's own, with a few options in place of others. One thread. */
#ifndef CA_DRIVER_AGAIN_H
#define CA_DRIVER_AGAIN_H
#include "driver/options.h"

/* One line for a shell: "causal", what was given but for speedups, number of runs, what is for one time
 * only (--dry-run, --single, --reset) and what `instead` has (by its letter), then `instead`, "--" and
 * the command. Owned by the caller; NULL without memory. */
char *ca_again_line(const struct ca_options *options, const char *instead);

/* The options that were given as words, but for those that are for one time only, the number of runs, and
 * the directory of the results;
 * ends with NULL. Release with ca_again_free. NULL: no memory. */
char **ca_again_words(const struct ca_options *options);
void ca_again_free(char **words);
/* A word of a shell, in quotes where it must be. Owned by the caller; NULL without memory. */
char *ca_again_word(const char *text);
/* A function's name as a regular expression that matches it alone, also among others of a setting. The same. */
char *ca_again_pattern(const char *name);

#endif
