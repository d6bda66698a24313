/* SPDX-License-Identifier: MIT */
/* progress.json, which later sweeps with the same output read; and the names of points that are in it. */
#include "causal/points/choice.h"
#include "causal/points/point_name.h"
#include "tests/fuzz/fuzz.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[CA_FUZZ_PATH], *names;
	struct ca_point_name name;
	struct ca_choice choice;
	struct ca_err err;

	ca_fuzz_file(data, size, path);
	if (ca_choice_read(&choice, ca_fuzz_folder("progress.json"), &err)) {
		ca_fuzz_touch(err.text);
		return 0;
	}
	for (size_t i = 0; i < choice.points; i++)
		if (!ca_point_name_parse(&name, choice.point[i].name, &err))
			ca_point_name_fini(&name);
	names = ca_choice_names(&choice);
	if (names)
		ca_fuzz_touch(names);
	free(names);
	ca_choice_fini(&choice);
	return 0;
}
