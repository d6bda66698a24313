/* SPDX-License-Identifier: MIT */
/* `causal what-if`: a sweep with --what-if. Driver's process, one thread. */
#include "causal/results/what_if.h"
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/say.h"
#include <stdio.h>
#include <stdlib.h>

int ca_cmd_what_if(int argc, char **argv)
{
	struct ca_what_if what_if;
	struct ca_err err;
	char *option, *second;
	int code;

	if (argc < 2 || *argv[1] == '-') {
		ca_say("what-if: say first what is to take less time, as in: causal what-if "
		       "'parse=20,render=50' -- ./app");
		return CA_EXIT_USAGE;
	}
	if (ca_what_if_parse(&what_if, argv[1], &err) != CA_OK) {
		ca_say("%s", err.text);
		return CA_EXIT_USAGE;
	}
	if (asprintf(&option, "--what-if=%s", argv[1]) < 0) {
		ca_say("what-if: no memory");
		return 1;
	}
	second = argv[1];
	argv[1] = option;
	code = ca_commands_get(0)->run(argc, argv);
	argv[1] = second;
	free(option);
	return code;
}
