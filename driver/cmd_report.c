/* SPDX-License-Identifier: MIT */
/* `causal report`: a page to look at the results of a directory. One file, which needs no other and
 * no network. Driver's process, one thread. */
#include "causal/results/profile.h"
#include "causal/results/report_data.h"
#include "driver/arguments.h"
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/report_page.h"
#include "driver/say.h"
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

static int write_page(const struct ca_profile *profile, const char *source, const char *path)
{
	struct json_object *data = ca_report_data(profile, source);
	FILE *file = data ? fopen(path, "we") : NULL;
	bool ok = file && ca_report_page_write(data, file);

	if (file && fclose(file) != 0)
		ok = false;
	if (!ok)
		ca_say("report: cannot write %s (%s); give another file with -o", path, strerror(errno));
	else
		ca_say("report: written to %s; open it in a browser", path);
	json_object_put(data);
	return ok ? 0 : 1;
}

int ca_cmd_report(int argc, char **argv)
{
	const char *source = NULL, *output = NULL;
	const struct ca_argument list[] = { { "--source", &source }, { "-o", &output }, { NULL, NULL } };
	int words = ca_arguments_take(argc, argv, list), code;
	struct ca_profile *profile;
	char *path = NULL;

	if (words != 1) {
		if (words >= 0)
			ca_say("report: name one directory with results, as in: causal report "
			       "causal-out/DIR");
		return CA_EXIT_USAGE;
	}
	profile = ca_arguments_profile("report", argv[1]);
	if (!profile)
		return CA_EXIT_USAGE;
	if (asprintf(&path, "%s/report.html", argv[1]) < 0)
		path = NULL;
	if (output || path) {
		code = write_page(profile, source, output ? output : path);
	} else {
		ca_say("report: no memory");
		code = 1;
	}
	free(path);
	ca_profile_free(profile);
	return code;
}
