/* SPDX-License-Identifier: MIT */
/* Writing an index file. */
#ifndef CA_BINARY_INDEX_WRITE_H
#define CA_BINARY_INDEX_WRITE_H
#include "binary/index/index_file.h"
#include "core/strings.h"

/* Write the parts as an index file into fd; buckets and strings are made here. Of the header
 * base, span, flags, want and binary are given. */
enum ca_status ca_write_index(const struct ca_index_header *about, const struct ca_vec part[CA_INDEX_PARTS],
			      const struct ca_strings *strings, int fd);

#endif
