/* SPDX-License-Identifier: MIT */
/* `causal export`: the results of a directory for other programs, on standard output.
 * Driver's process, one thread. */
#include "causal/results/profile.h"
#include "causal/results/samples.h"
#include "driver/arguments.h"
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/say.h"
#include <errno.h>
#include <string.h>

static const struct format {
	const char *name;
	bool (*write)(const struct ca_profile *profile, FILE *file); /* NULL: sweeps have no such thing */
	bool (*write_samples)(const struct ca_samples *samples, FILE *file);
	bool stacks; /* it is made of them */
} formats[] = {
	{ "json", ca_profile_write_json, ca_samples_write_json, false },
	{ "csv", ca_profile_write_csv, ca_samples_write_csv, false },
	{ "markdown", ca_profile_write_markdown, ca_samples_write_markdown, false },
	{ "coz", ca_profile_write_coz, NULL, false },
	{ "folded", ca_profile_write_folded, ca_samples_write_folded, true },
	{ "speedscope", ca_profile_write_speedscope, ca_samples_write_speedscope, true },
	{ "tree", NULL, ca_samples_write_tree, true },
	{ "pprof", NULL, ca_samples_write_pprof, true },
};

static const struct format *find_format(const char *name)
{
	for (size_t i = 0; name && i < sizeof formats / sizeof *formats; i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

static int finish(bool ok)
{
	if (ok && !fflush(stdout))
		return 0;
	ca_say("export: cannot write to standard output (%s)", strerror(errno));
	return 1;
}

static int export_samples(const struct format *format, const char *path, const char *of)
{
	struct ca_samples *samples;
	struct ca_err err;
	int code;

	if (!format->write_samples) {
		ca_say("export: %s holds samples and no experiments, which --format %s is for", path,
		       format->name);
		return CA_EXIT_USAGE;
	}
	if (ca_samples_read(&samples, path, &err) != CA_OK) {
		ca_say("export: %s", err.text);
		return CA_EXIT_USAGE;
	}
	if (ca_samples_weigh(samples, of, &err)) {
		ca_say("export: %s: %s", path, err.text);
		code = CA_EXIT_USAGE;
	} else {
		code = finish(format->write_samples(samples, stdout));
	}
	ca_samples_free(samples);
	return code;
}

int ca_cmd_export(int argc, char **argv)
{
	const char *name = NULL, *of = NULL;
	const struct ca_argument list[] = { { "--format", &name }, { "--of", &of }, { NULL, NULL } };
	int words = ca_arguments_take(argc, argv, list), code = 0;
	const struct format *format = find_format(name);
	struct ca_profile *profile;

	if (words != 1 || !format) {
		if (words >= 0)
			ca_say("export: give one directory with results and --format json, csv, markdown, "
			       "coz, folded or speedscope (of samples also tree and pprof), as in: causal "
			       "export "
			       "causal-out/DIR --format csv");
		return CA_EXIT_USAGE;
	}
	if (ca_samples_is_there(argv[1]))
		return export_samples(format, argv[1], of);
	if (!format->write || of) {
		ca_say("export: --%s %s is for what causal sample writes", of ? "of" : "format",
		       of ? of : format->name);
		return CA_EXIT_USAGE;
	}
	profile = ca_arguments_profile("export", argv[1]);
	if (!profile)
		return CA_EXIT_USAGE;
	if (format->stacks && !profile->stacks) {
		ca_say("export: the runs in %s recorded no stacks; run the program again, and export that",
		       argv[1]);
		code = 1;
	} else {
		code = finish(format->write(profile, stdout));
	}
	ca_profile_free(profile);
	return code;
}
