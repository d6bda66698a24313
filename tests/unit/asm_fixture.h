/* SPDX-License-Identifier: MIT */
/* Small functions in assembly, and where their labels have come to lie. */
#ifndef CA_TESTS_ASM_FIXTURE_H
#define CA_TESTS_ASM_FIXTURE_H
#include "tests/unit/binary_fixture.h"

/* Begins and ends a function. */
#define ASM_MACROS                                                                                           \
	".macro fn name\n.globl \\name\n.type \\name,@function\n\\name: .cfi_startproc\n.endm\n"             \
	".macro end name\n.cfi_endproc\n.size \\name, .-\\name\n.endm\n.text\n"

enum { ASM_LABELS = 256 };
static struct {
	char name[64];
	uint64_t address;
} asm_label[ASM_LABELS];
static unsigned asm_labels;

static inline void asm_read_labels(const char *binary)
{
	char line[256], type;
	FILE *pipe;

	if (fixture_run("${NM:-nm} '%s' >labels", binary) != 0)
		abort();
	pipe = fopen(fixture_path("labels"), "r");
	asm_labels = 0;
	while (pipe && asm_labels < ASM_LABELS && fgets(line, sizeof line, pipe))
		if (sscanf(line, "%lx %c %63s", &asm_label[asm_labels].address, &type,
			   asm_label[asm_labels].name) == 3)
			asm_labels++;
	if (pipe)
		fclose(pipe);
}

/* Makes a shared object `name`.so of the text. */
static inline void asm_make(const char *name, const char *text)
{
	char file[64];

	snprintf(file, sizeof file, "%s.s", name);
	fixture_write(file, text);
	if (fixture_run("%s -nostdlib -shared -o %s.so %s", fixture_cc(), name, file) != 0)
		abort();
	snprintf(file, sizeof file, "%s.so", name);
	asm_read_labels(file);
}

static inline uint64_t asm_at(const char *name)
{
	for (unsigned i = 0; i < asm_labels; i++)
		if (strcmp(asm_label[i].name, name) == 0)
			return asm_label[i].address;
	fail_msg("no label %s", name);
	return 0;
}

#endif
