/* SPDX-License-Identifier: MIT */
/* Names for code that a process has made itself, from the list that compilers write for perf: /tmp/perf-PID.map, a
 * line "address size name" for each function, in hexadecimal, as it is made. Driver's process, one thread. */
#ifndef CA_CAUSAL_CONDUCTOR_MADE_CODE_H
#define CA_CAUSAL_CONDUCTOR_MADE_CODE_H
#include <stdbool.h>
#include <stdint.h>

struct ca_made_code;

/* The list of the process with this number. NULL: no memory. */
struct ca_made_code *ca_made_code_new(uint32_t pid);
void ca_made_code_free(struct ca_made_code *made); /* NULL is fine */
/* NULL: unknown, *later: its line may yet come. now: ns. Of code that lay at the same address the latest. Borrowed. */
const char *ca_made_code_find(struct ca_made_code *made, uint64_t address, uint64_t now, bool *later);

#endif
