/* SPDX-License-Identifier: MIT */
/* What the harnesses share. Each is one file that defines LLVMFuzzerTestOneInput: linked with libFuzzer
 * (tests/fuzz/run.sh) it gets what that thinks of, linked with replay.c the files that are named. */
#ifndef CA_TESTS_FUZZ_FUZZ_H
#define CA_TESTS_FUZZ_FUZZ_H
#include <stddef.h>
#include <stdint.h>

enum { CA_FUZZ_PATH = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* The input as a file, the same one each time; aborts if there is no room. */
void ca_fuzz_file(const uint8_t *data, size_t size, char path[CA_FUZZ_PATH]);
/* A folder that holds the file under that name; removed at exit. Call ca_fuzz_file first. */
const char *ca_fuzz_folder(const char *name);
/* Reads each byte of the text, so that a sanitizer sees it. */
void ca_fuzz_touch(const char *text);

#endif
