/* SPDX-License-Identifier: MIT */
/* The conductor's part in --host: a thread of the driver measures machine and processes (host.h) from the fork of the
 * program to the end of the run. Driver's process, the conductor's thread. */
#include "causal/conductor/conductor_state.h"
#include <stdio.h>

/* Its thread begins when the child has been forked, and ends with the run. */
void ca_conductor_host_start(struct ca_conductor *c)
{
	char path[CA_PATH];
	struct ca_err err;

	if (!c->set->host)
		return;
	if (c->opt.traced)
		snprintf(path, sizeof path, "%s/%shost.jsonl", c->opt.dir, c->set->output_prefix);
	else
		snprintf(path, sizeof path, "%s/host-%04u.jsonl", c->opt.dir, c->opt.run);
	if (ca_host_new(&c->host, c->set, c->session, path, &err) != CA_OK)
		ca_conductor_say(c, 0, "%s", err.text);
}

void ca_conductor_host_step(struct ca_conductor *c)
{
	if (!c->host)
		return;
	ca_host_follow(c->host, ca_windows_is_open(c->windows));
	ca_host_drain(c->host, c->sinks, c->dict);
}

void ca_conductor_host_close(struct ca_conductor *c)
{
	struct ca_err err;

	if (ca_host_close(c->host, c->sinks, c->dict, &err) != CA_OK)
		ca_conductor_say(c, 0, "%s", err.text);
	c->host = NULL;
}
