/* SPDX-License-Identifier: MIT */
/* Arguments of the subcommands that read results: a few options and words. The options of a sweep
 * are settings (driver/options.h). One thread. */
#ifndef CA_DRIVER_ARGUMENTS_H
#define CA_DRIVER_ARGUMENTS_H
#include <stdbool.h>

struct ca_profile;

struct ca_argument {
	const char *name;  /* "--format" or "-o" */
	const char **text; /* set to the value */
};

/* Takes options out of argv, wherever they stand before "--", and returns how many words are left
 * behind argv[0], or -1 after a message to the user. "--" itself stays. The list ends with a name of
 * NULL. */
int ca_arguments_take(int argc, char **argv, const struct ca_argument *list);
/* Between low and high, else a message. */
bool ca_arguments_number(const char *command, const char *name, const char *text, double low, double high,
			 double *number);
/* The results of a directory with at least one run, or NULL after a message. */
struct ca_profile *ca_arguments_profile(const char *command, const char *dir);

#endif
