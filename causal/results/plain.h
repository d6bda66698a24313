/* SPDX-License-Identifier: MIT */
/* Demangled names as people read them on a terminal. Of C++ (GCC's and LLVM's demangler) and Rust; other names stay
 * as they are. A library before it ("libz.so!") and a place behind it (" (a.cc:5)") belong to a name. Results are
 * owned by the caller, NULL without memory. One thread. */
#ifndef CA_CAUSAL_RESULTS_PLAIN_H
#define CA_CAUSAL_RESULTS_PLAIN_H
#include <stddef.h>

/* std::string by its short name, and containers without allocators that are the usual ones. */
char *ca_plain_name(const char *name);
/* "a::f<int>" of "long a::f<int>(char) const": without what it returns, and its parameters. */
char *ca_plain_bare(const char *name);
/* "a<…>::f" of "a<int, char>::f": without what templates are made for, bare. */
char *ca_plain_templates(const char *name);
/* "f(int)" in "x a<int>::f(int)": what the code itself is called. Points into name. */
const char *ca_plain_last(const char *name);
/* At most `width` columns: as much of all that as it takes, then cut before its last part. */
char *ca_plain_fit(const char *name, size_t width);
/* How much of a name of `width` columns or more stands before the cut, so that its last part stays whole where there
 * is room for it; of the last part alone what stands before its parameters. */
size_t ca_plain_head(const char *name, size_t width);

#endif
