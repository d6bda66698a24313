/* SPDX-License-Identifier: MIT */
/* Limits of control groups; see quota.h. */
#include "causal/conductor/quota.h"
#include "core/clock.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
	EVERY = 100000000, /* ns between two readings */
	FEW = 3            /* periods, from which on they tell */
};

static void look_upwards(const char *root, const char *group, void (*look)(const char *folder, void *arg),
			 void *arg)
{
	char folder[600];

	snprintf(folder, sizeof folder, "%s%s", root, group);
	for (;;) {
		char *end = strrchr(folder, '/');

		look(folder, arg);
		if (!end || (size_t)(end - folder) < strlen(root))
			return;
		*end = '\0';
	}
}

/* Lines are NUMBER:CONTROLLERS:GROUP; version 2 has no controllers. */
void ca_quota_each_group(const char *self, const char *root, void (*look)(const char *folder, void *arg),
			 void *arg)
{
	static const char *const below[] = { "", "/cpu", "/cpu,cpuacct", "/unified" };
	FILE *f = fopen(self, "re");
	char line[512], folder[256];

	while (f && fgets(line, sizeof line, f)) {
		const char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;

		line[strcspn(line, "\n")] = '\0';
		if (!group || (group != controllers + 1 && !strstr(controllers, "cpu")))
			continue;
		for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
			snprintf(folder, sizeof folder, "%s%s", root, below[i]);
			look_upwards(folder, group + 1, look, arg);
		}
	}
	if (f)
		fclose(f);
}

/* Of the groups that one which was held back most often. */
static void add_group(const char *folder, void *arg)
{
	struct ca_quota_count *count = arg;
	unsigned long long periods = 0, throttled = 0, n;
	char path[700], line[128];
	FILE *f;

	snprintf(path, sizeof path, "%s/cpu.stat", folder);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f)) {
		if (sscanf(line, "nr_periods %llu", &n) == 1)
			periods = n;
		if (sscanf(line, "nr_throttled %llu", &n) == 1)
			throttled = n;
	}
	if (f)
		fclose(f);
	if (throttled > count->throttled || !count->periods) {
		count->periods = periods;
		count->throttled = throttled;
	}
}

double ca_quota_held_back(struct ca_quota *quota, const char *self, const char *root, uint64_t now)
{
	struct ca_quota_count count = { .time = now }, *before = &quota->before;
	bool known, old;

	/* most programs have no limit, and hardly any gets one while it runs */
	if (quota->last.time && now - quota->last.time < (quota->last.periods ? EVERY : CA_NS_PER_S))
		return quota->held;
	ca_quota_each_group(self, root, add_group, &count);
	known = before->time && count.periods >= before->periods + FEW &&
		count.throttled >= before->throttled;
	old = !before->time || count.periods < before->periods || now - before->time > CA_NS_PER_S;
	if (known)
		quota->held = (double)(count.throttled - before->throttled) /
			      (double)(count.periods - before->periods);
	else if (old) /* no period goes by while nothing runs */
		quota->held = 0;
	if (old)
		*before = quota->last.time && known ? quota->last : count;
	quota->last = count;
	return quota->held;
}
