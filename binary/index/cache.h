/* SPDX-License-Identifier: MIT */
/* Where index files are kept. Driver's process. */
#ifndef CA_BINARY_INDEX_CACHE_H
#define CA_BINARY_INDEX_CACHE_H
#include "binary/index/object.h"
#include "core/status.h"
#include <stdbool.h>

enum { CA_CACHE_PATH = 4096 };

/* The cache directory, made if needed: $XDG_CACHE_HOME/causal, else ~/.cache/causal if there is a
 * home, else /tmp/causal-UID if that is ours alone; then err says so, with CA_OK. PERMISSION or
 * IO if none can be had. */
enum ca_status ca_cache_directory(char out[CA_CACHE_PATH], struct ca_err *err);
/* Name of the index of an object, without directory. Equal names mean equal contents. */
enum ca_status ca_cache_name(const struct ca_object *object, enum ca_index_want want, char *out, size_t size);
/* A new empty file in the directory (NULL: a private temporary one elsewhere); fd or -1. */
int ca_cache_create(const char *directory, char out[CA_CACHE_PATH]);

#endif
