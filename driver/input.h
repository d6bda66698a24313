/* SPDX-License-Identifier: MIT */
/* Standard input of a program that is run several times: each run shall read the same. The driver's main thread. */
#ifndef CA_DRIVER_INPUT_H
#define CA_DRIVER_INPUT_H
#include <stdbool.h>
#include <sys/types.h>

enum { CA_INPUT_PATH = 32 };

struct ca_input {
	off_t start; /* of a file; -1: it is none */
	bool fed;    /* it is a pipe or socket, and there was something in it before the first run */
};

void ca_input_open(struct ca_input *input);
/* A run begins: a file is read from where the first one read it from. */
void ca_input_begin(const struct ca_input *input);
/* It could be read but once, and has been, to its end: another run would find nothing. */
bool ca_input_is_used_up(const struct ca_input *input);

/* What to open in place of standard input, so that each of several programs reads it from its beginning: a file, else
 * nothing. */
const char *ca_input_path(char path[CA_INPUT_PATH]);

#endif
