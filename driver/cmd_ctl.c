/* SPDX-License-Identifier: MIT */
/* `causal ctl`: tells a running sweep, sample or trace to pause, to go on, or to end. Driver's process, one thread. */
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/control.h"
#include "driver/say.h"
#include <stdio.h>
#include <string.h>

int ca_cmd_ctl(int argc, char **argv)
{
	static const char *const words[] = { CA_CONTROL_WORDS };
	struct ca_err err;

	for (int i = 0; argc == 3 && i < (int)(sizeof words / sizeof *words); i++) {
		if (strcmp(argv[1], words[i]))
			continue;
		if (!ca_control_ask(argv[2], (enum ca_control_word)(CA_CONTROL_PAUSE + i), &err))
			return 0;
		ca_say("%s", err.text);
		return 1;
	}
	ca_say("say what a running causal should do, and name its directory: causal ctl pause|resume|finish "
	       "DIR; to run a program of that name, write causal -- ctl");
	return CA_EXIT_USAGE;
}
