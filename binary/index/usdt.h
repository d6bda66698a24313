/* SPDX-License-Identifier: MIT */
/* SystemTap probes (USDT). */
#ifndef CA_BINARY_INDEX_USDT_H
#define CA_BINARY_INDEX_USDT_H
#include "binary/index/object.h"
#include "binary/index/warnings.h"

/* Append the probes of .note.stapsdt (struct ca_record_probe), sorted. */
void ca_usdt_read(const struct ca_object *object, struct ca_strings *strings, struct ca_vec *probes,
		  struct ca_warnings *warnings);

#endif
