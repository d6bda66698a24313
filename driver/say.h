/* SPDX-License-Identifier: MIT */
/* Lines for the user, on standard error: standard output belongs to the program.
 * One thread. */
#ifndef CA_DRIVER_SAY_H
#define CA_DRIVER_SAY_H
#include "core/settings.h"

/* One line that begins with "causal: ". Removes a progress line that is being shown. */
void ca_say(const char *format, ...) CA_PRINTF(1, 2);
/* The same without the beginning; for text that has its own. */
void ca_say_line(const char *format, ...) CA_PRINTF(1, 2);
/* Show, in place of the one shown before, a line that stays until the next output. Only for
 * terminals; NULL removes it. */
void ca_say_progress(const char *text);

/* May standard error have colours? On a terminal, as --[no-]monochrome says, else unless NO_COLOR
 * (no-color.org) is set. */
bool ca_say_colours(const struct ca_settings *settings);
/* Columns of the terminal at standard error; 100 if it is none. */
unsigned ca_say_width(void);

#endif
