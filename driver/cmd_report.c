/* SPDX-License-Identifier: MIT */
/* `causal report`: a page to look at the results of a directory. One file, which needs no other and
 * no network. Driver's process, one thread. */
#include "causal/results/profile.h"
#include "causal/results/report_data.h"
#include "causal/results/results_json.h"
#include "causal/results/samples.h"
#include "core/memstream.h"
#include "driver/again.h"
#include "driver/arguments.h"
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/report_page.h"
#include "driver/say.h"
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A command as one line, which a shell takes. NULL: no memory. */
static struct json_object *line_of(char *const *words)
{
	struct json_object *text = NULL;
	char *line = NULL;
	size_t size;
	FILE *out = open_memstream(&line, &size);
	bool ok = out;

	for (char *const *word = words; ok && *word; word++) {
		char *quoted = ca_again_word(*word);

		ok = quoted && fprintf(out, "%s%s", word == words ? "" : " ", quoted) >= 0;
		free(quoted);
	}
	if (out && ca_memstream_end(out, &line) && ok)
		text = ca_results_json_text(line);
	free(line);
	return text;
}

/* The data with that as their command; NULL, and none of both is left: no memory. */
static struct json_object *with_command(struct json_object *data, char *const *words)
{
	struct json_object *line = data && words ? line_of(words) : NULL;

	if (!words || (line && !json_object_object_add(data, "command", line)))
		return data;
	json_object_put(line);
	json_object_put(data);
	errno = ENOMEM;
	return NULL;
}

/* Half a page is none. A device is left alone. */
static void drop(const char *path)
{
	struct stat status;

	if (!stat(path, &status) && S_ISREG(status.st_mode))
		unlink(path);
}

static int write_page(struct json_object *data, bool (*write)(struct json_object *, FILE *), const char *path)
{
	FILE *file = data ? fopen(path, "we") : NULL;
	bool ok = file && write(data, file);

	if (file && fclose(file) != 0)
		ok = false;
	if (!ok)
		ca_say("report: cannot write %s (%s); give another file with -o", path, strerror(errno));
	if (!ok && file)
		drop(path);
	else
		ca_say("report: written to %s; open it in a browser", path);
	json_object_put(data);
	return ok ? 0 : 1;
}

static int report_samples(const char *dir, const char *path)
{
	struct ca_samples *samples;
	struct ca_err err;
	int code;

	if (ca_samples_read(&samples, dir, &err) != CA_OK) {
		ca_say("report: %s", err.text);
		return CA_EXIT_USAGE;
	}
	code = write_page(with_command(ca_samples_json(samples), samples->command),
			  ca_report_page_write_samples, path);
	ca_samples_free(samples);
	return code;
}

static int report(const char *dir, const char *source, const char *path)
{
	struct ca_profile *profile;
	int code;

	if (ca_samples_is_there(dir))
		return report_samples(dir, path);
	profile = ca_arguments_profile("report", dir);
	if (!profile)
		return CA_EXIT_USAGE;
	code = write_page(with_command(ca_report_data(profile, source), profile->run->word),
			  ca_report_page_write, path);
	ca_profile_free(profile);
	return code;
}

int ca_cmd_report(int argc, char **argv)
{
	const char *source = NULL, *output = NULL;
	const struct ca_argument list[] = { { "--source", &source }, { "-o", &output }, { NULL, NULL } };
	int words = ca_arguments_take(argc, argv, list), code = 1;
	char *path = NULL;

	if (words != 1) {
		if (words >= 0)
			ca_say("report: name one directory with results, as in: causal report "
			       "causal-out/DIR");
		return CA_EXIT_USAGE;
	}
	if (asprintf(&path, "%s/report.html", argv[1]) < 0)
		path = NULL;
	if (output || path)
		code = report(argv[1], source, output ? output : path);
	else
		ca_say("report: no memory");
	free(path);
	return code;
}
