/* SPDX-License-Identifier: MIT */
/* Demangling. */
#ifndef CA_BINARY_INDEX_DEMANGLE_H
#define CA_BINARY_INDEX_DEMANGLE_H

/* Demangled, malloc'd, or NULL if the name is not a mangled one (C++, Rust, D). */
char *ca_demangle(const char *name);

#endif
