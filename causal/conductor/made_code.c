/* SPDX-License-Identifier: MIT */
/* See made_code.h. */
#include "causal/conductor/made_code.h"
#include "core/vec.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PAUSE = 50000000, /* ns between two looks at a file */
	LINE = 4096,
	OVERLAPS = 16 /* older code around an address */
};

struct made {
	uint64_t low, high;
	uint32_t order; /* of its line */
	char *name;
};
struct ca_made_code {
	uint32_t pid;
	long read; /* bytes of the file */
	bool there;
	uint64_t looked; /* ns */
	struct ca_vec made;
};

struct ca_made_code *ca_made_code_new(uint32_t pid)
{
	struct ca_made_code *m = calloc(1, sizeof *m);

	if (m) {
		m->pid = pid;
		m->made.size = sizeof(struct made);
	}
	return m;
}

void ca_made_code_free(struct ca_made_code *m)
{
	struct made *made = m ? m->made.at : NULL;

	if (!m)
		return;
	for (size_t i = 0; i < m->made.n; i++)
		free(made[i].name);
	ca_vec_free(&m->made);
	free(m);
}

static int by_address(const void *a, const void *b)
{
	const struct made *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* As the process sees its files, as long as it is there. */
static FILE *open_list(uint32_t pid)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof path, "/proc/%u/root/tmp/perf-%u.map", pid, pid);
	file = fopen(path, "re");
	if (file)
		return file;
	return fopen(strstr(path, "/tmp/"), "re");
}

/* What has come since. A line that has no end yet comes later as a whole. */
static void look(struct ca_made_code *m)
{
	FILE *file = open_list(m->pid);
	char line[LINE];
	size_t before = m->made.n;

	m->there = file;
	if (!file || fseek(file, m->read, SEEK_SET)) {
		if (file)
			fclose(file);
		return;
	}
	while (fgets(line, sizeof line, file) && strchr(line, '\n')) {
		struct made made = { .order = (uint32_t)m->made.n };
		char *end;

		m->read += (long)strlen(line);
		line[strcspn(line, "\n")] = '\0';
		made.low = strtoull(line, &end, 16);
		made.high = made.low + strtoull(end, &end, 16);
		if (*end != ' ' || !end[1] || made.high <= made.low || !(made.name = strdup(end + 1)))
			continue;
		if (!ca_vec_add(&m->made, &made, 1))
			free(made.name);
	}
	fclose(file);
	if (m->made.n > before)
		qsort(m->made.at, m->made.n, sizeof(struct made), by_address);
}

static const char *find(const struct ca_made_code *m, uint64_t address)
{
	const struct made *made = m->made.at, *found = NULL;
	size_t low = 0, high = m->made.n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (made[middle].low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (unsigned i = 0; i < OVERLAPS && low-- > 0; i++)
		if (address < made[low].high && (!found || made[low].order > found->order))
			found = &made[low];
	return found ? found->name : NULL;
}

const char *ca_made_code_find(struct ca_made_code *m, uint64_t address, uint64_t now, bool *later)
{
	const char *name;

	if (now - m->looked > PAUSE) { /* the address may have become another's */
		m->looked = now;
		look(m);
	}
	name = find(m, address);
	*later = !name && m->there;
	return name;
}
