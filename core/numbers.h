/* SPDX-License-Identifier: MIT */
/* Lists of whole numbers as people write them: 0,2-4. Any thread. */
#ifndef CA_CORE_NUMBERS_H
#define CA_CORE_NUMBERS_H
#include "core/status.h"
#include <stdbool.h>
#include <stdint.h>

/* CA_ERR_USAGE: it is none, or has others than least to most (INT32_MAX: no end); the text says what is. */
enum ca_status ca_numbers_check(const char *text, uint32_t least, uint32_t most, struct ca_err *err);
/* Is the number in the list? All are in "". */
bool ca_numbers_hold(const char *text, uint32_t number);
/* The i-th range; false: there are not so many. */
bool ca_numbers_range(const char *text, unsigned i, uint32_t *first, uint32_t *last);

#endif
