/* SPDX-License-Identifier: MIT */
/* A run file, as report, export, merge, compare and resume read it: the profile, all that is written from it,
 * and a comparison with itself. */
#include "causal/results/compare.h"
#include "causal/results/profile.h"
#include "causal/results/report_data.h"
#include "causal/results/results_json.h"
#include "tests/fuzz/fuzz.h"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void write_all(const struct ca_profile *profile)
{
	static bool (*const write[])(const struct ca_profile *, FILE *) = {
		ca_profile_write_json,     ca_profile_write_coz,    ca_profile_write_csv,
		ca_profile_write_markdown, ca_profile_write_folded, ca_profile_write_speedscope,
	};
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	struct json_object *page = ca_report_data(profile, NULL);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (size_t i = 0; file && i < sizeof write / sizeof *write; i++)
		write[i](profile, file);
	if (null >= 0)
		ca_results_print(profile, null, 100, true);
	if (file)
		fclose(file);
	free(text);
	json_object_put(page);
	close(null);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ca_profile *profile;
	struct ca_compare compare;
	char path[CA_FUZZ_PATH];
	struct ca_err err;

	ca_fuzz_file(data, size, path);
	if (ca_profile_load(&profile, ca_fuzz_folder("run-0001.jsonl"), &err)) {
		ca_fuzz_touch(err.text);
		return 0;
	}
	if (profile->runs) { /* the commands want one */
		write_all(profile);
		if (!ca_compare_make(&compare, profile, profile))
			ca_compare_fini(&compare);
	}
	ca_profile_free(profile);
	return 0;
}
