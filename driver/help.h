/* SPDX-License-Identifier: MIT */
/* Texts that derive from the settings table. */
#ifndef CA_DRIVER_HELP_H
#define CA_DRIVER_HELP_H
#include "core/settings.h"
#include <stdbool.h>
#include <stdio.h>

struct ca_command;

/* --help[=TOPIC]: "" for the options, "man" a manual page in troff, "bash" a completion script,
 * "config" a configuration file with all defaults. False: no such topic. */
bool ca_help_print(FILE *out, const char *topic);

/* What one subcommand is for. */
void ca_help_command(FILE *out, const struct ca_command *command);

/* The parts in files of their own. */
void ca_help_man(FILE *out);
void ca_help_bash(FILE *out);
void ca_help_config(FILE *out);

/* Used by several of them. */
const char *ca_help_group(enum ca_setting_group group);
/* A switch that is on by default: it is written --no-X. */
bool ca_help_is_on(const struct ca_setting *setting);
/* "; one of: ...", where a value is one of a few. */
void ca_help_choices(FILE *out, const struct ca_setting *setting);
/* "Words; one of: ...; default Y [CAUSAL_X]" */
char *ca_help_text(const struct ca_setting *setting);

#endif
