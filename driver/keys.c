/* SPDX-License-Identifier: MIT */
/* See keys.h. */
#include "driver/keys.h"
#include "core/map.h"
#include "core/memstream.h"
#include "core/path.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct keys {
	const struct ca_settings *settings;
	char *const *command;
	FILE *out;
};

/* ---- what stands for a key: written to `out` as it is */

static void put_words(const struct keys *keys, FILE *out, size_t first, bool base)
{
	for (size_t i = 0; keys->command[i]; i++)
		if (i >= first)
			fprintf(out, "%s%s", i > first ? "_" : "",
				i == 0 && base ? ca_path_base(keys->command[i]) : keys->command[i]);
}

static bool put_words_of(const struct keys *keys, const char *name, FILE *out)
{
	size_t words = 0, number;
	int end = 0;

	while (keys->command[words])
		words++;
	if (!strcmp(name, "argv"))
		put_words(keys, out, 0, false);
	else if (!strcmp(name, "argt"))
		put_words(keys, out, 0, true);
	else if (!strcmp(name, "args"))
		put_words(keys, out, 1, false);
	else if (!strcmp(name, "tag"))
		fputs(words ? ca_path_base(keys->command[0]) : "", out);
	else if (sscanf(name, "arg%zu%n", &number, &end) == 1 && end && !name[end])
		fputs(number < words ? keys->command[number] : "", out);
	else
		return false;
	return true;
}

/* The first of these variables that is set. */
static const char *variable(const char *const *names, const char *otherwise)
{
	for (; *names; names++)
		if (getenv(*names))
			return getenv(*names);
	return otherwise;
}

static long siblings(void)
{
	char path[64];
	long n = 0;
	int pid;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)getppid(), (int)getppid());
	file = fopen(path, "re");
	while (file && fscanf(file, "%d", &pid) == 1)
		n++;
	if (file)
		fclose(file);
	return n;
}

static bool put_process(const char *name, FILE *out)
{
	static const char *const jobs[] = { "SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", NULL };
	static const char *const ranks[] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK",
					     "SLURM_PROCID", NULL };
	static const char *const sizes[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE",
					     "SLURM_NTASKS", NULL };
	char pid[16];

	snprintf(pid, sizeof pid, "%d", (int)getpid());
	if (!strcmp(name, "pid"))
		fputs(pid, out);
	else if (!strcmp(name, "ppid"))
		fprintf(out, "%d", (int)getppid());
	else if (!strcmp(name, "pgid"))
		fprintf(out, "%d", (int)getpgrp());
	else if (!strcmp(name, "psid"))
		fprintf(out, "%d", (int)getsid(0));
	else if (!strcmp(name, "psize"))
		fprintf(out, "%ld", siblings());
	else if (!strcmp(name, "job"))
		fputs(variable(jobs, "0"), out);
	else if (!strcmp(name, "rank"))
		fputs(variable(ranks, "0"), out);
	else if (!strcmp(name, "size"))
		fputs(variable(sizes, "1"), out);
	else if (!strcmp(name, "nid"))
		fputs(variable(ranks, pid), out);
	else
		return false;
	return true;
}

static void put_time(FILE *out)
{
	char text[32];
	time_t now = time(NULL);
	struct tm local;

	localtime_r(&now, &local);
	strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
	fputs(text, out);
}

/* env{NAME} or cfg{NAME} */
static bool put_named(const struct keys *keys, const char *name, FILE *out)
{
	const struct ca_setting *setting;
	char inner[128], *text;
	int end = 0;

	if (sscanf(name, "%*3[a-z]{%127[^}]}%n", inner, &end) != 1 || !end || name[end])
		return false;
	if (!strncmp(name, "env{", 4)) {
		fputs(getenv(inner) ? getenv(inner) : "", out);
		return true;
	}
	setting = strncmp(name, "cfg{", 4) ? NULL : ca_settings_find_key(inner);
	text = setting ? ca_settings_text(keys->settings, setting->id) : NULL;
	fputs(text ? text : "", out);
	free(text);
	return setting;
}

static bool put_raw(const struct keys *keys, const char *name, FILE *out)
{
	if (!strcmp(name, "launch_time"))
		put_time(out);
	else if (!put_words_of(keys, name, out) && !put_process(name, out) && !put_named(keys, name, out))
		return false;
	return true;
}

/* ---- text with keys in it */

/* The value of the key, as a file's name can have it; false: it is none. */
static bool put_value(const struct keys *keys, const char *name)
{
	static const char hash_ending[] = "_hash";
	char *raw = NULL, plain[160];
	const char *at;
	size_t size = 0, length = strlen(name), ending = sizeof hash_ending - 1;
	bool known, hash = length > ending && !strcmp(name + length - ending, hash_ending);
	FILE *out = open_memstream(&raw, &size);

	if (!out)
		return false;
	snprintf(plain, sizeof plain, "%.*s", (int)(hash ? length - ending : length), name);
	known = hash ? put_words_of(keys, plain, out) : put_raw(keys, plain, out);
	if (!ca_memstream_end(out, &raw))
		known = false;
	if (known && hash) {
		fprintf(keys->out, "%016" PRIx64, ca_map_key(UINT64_C(0xcbf29ce484222325), raw));
	} else if (known) {
		for (at = raw; *at == '/' || *at == '_';)
			at++;
		for (; *at; at++)
			putc(*at == '/' ? '_' : *at, keys->out);
	}
	free(raw);
	return known;
}

/* %NAME% or $NAME{...} at `at`, or a short one. Returns what is behind it; NULL: there is none. */
static const char *put_key(const struct keys *keys, const char *at)
{
	static const char *const shorts[][2] = {
		{ "m", "argt_hash" }, { "p", "pid" }, { "j", "job" }, { "r", "rank" }, { "s", "size" }
	};
	const char *end = *at == '%' ? strchr(at + 1, '%') : strchr(at, '}');
	char name[160];

	if (end && end - at < (long)sizeof name) {
		snprintf(name, sizeof name, "%.*s", (int)(end - at - 1 + (*at == '$')), at + 1);
		if ((*at == '%' || strchr(name, '{')) && put_value(keys, name))
			return end + 1;
	}
	for (size_t i = 0; *at == '%' && i < sizeof shorts / sizeof *shorts; i++)
		if (at[1] == *shorts[i][0] && !isalnum((unsigned char)at[2])) {
			put_value(keys, shorts[i][1]);
			return at + 2;
		}
	return NULL;
}

char *ca_keys_expand(const char *text, const struct ca_settings *settings, char *const *command)
{
	static char *const nothing[] = { NULL };
	char *made = NULL;
	size_t size = 0;
	struct keys keys = { settings, command ? command : nothing, open_memstream(&made, &size) };

	if (!keys.out)
		return NULL;
	while (*text) {
		const char *behind = *text == '%' || *text == '$' ? put_key(&keys, text) : NULL;

		if (!behind)
			putc(*text, keys.out);
		text = behind ? behind : text + 1;
	}
	ca_memstream_end(keys.out, &made);
	return made;
}
