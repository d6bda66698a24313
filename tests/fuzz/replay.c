/* SPDX-License-Identifier: MIT */
/* Gives a harness the files that are named, one after the other, without libFuzzer. */
#include "tests/fuzz/fuzz.h"
#include <stdio.h>
#include <stdlib.h>

static int replay(const char *path)
{
	enum { MOST = 1 << 24 };
	FILE *file = fopen(path, "re");
	uint8_t *data = file ? malloc(MOST) : NULL, *exact;
	size_t size = data ? fread(data, 1, MOST, file) : 0;

	if (!data || ferror(file)) {
		perror(path);
		return 1;
	}
	fclose(file);
	/* of just that size, so that a sanitizer sees who reads further */
	exact = realloc(data, size ? size : 1);
	printf("%s: %zu bytes\n", path, size);
	fflush(stdout);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
	return 0;
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++)
		failed |= replay(argv[i]);
	return failed;
}
