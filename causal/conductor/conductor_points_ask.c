/* SPDX-License-Identifier: MIT */
/* Asks at the terminal which progress points are to be used. Driver's process, one thread; never blocks. */
#include "causal/conductor/conductor_points_parts.h"
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool ca_conductor_points_ask_open(struct ca_point_choice *p)
{
	p->terminal = open("/dev/tty", O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (p->terminal >= 0 && (!isatty(STDERR_FILENO) || tcgetpgrp(p->terminal) != getpgrp())) {
		close(p->terminal);
		p->terminal = -1;
	}
	return p->terminal >= 0;
}

static bool is_among(const size_t *chosen, size_t n, size_t candidate)
{
	for (size_t i = 0; i < n; i++)
		if (chosen[i] == candidate)
			return true;
	return false;
}

void ca_conductor_points_ask_offer(struct ca_conductor *c, struct ca_point_choice *p)
{
	p->offers = 0;
	for (size_t i = 0; i < p->set->n; i++) {
		const struct ca_candidate *k = &p->set->candidate[i];

		if (!(k->rate > 0))
			continue;
		p->offered[p->offers++] = i;
		ca_conductor_say(c, 0,
				 "%3zu%c %s: %.1f visits a second, varying by %.0f %%, %.0f %% of the "
				 "samples inside; %s",
				 p->offers, is_among(p->chosen, p->n, i) ? '*' : ' ', k->name, k->rate,
				 100 * k->spread, 100 * k->coverage, ca_candidates_fault_name(k->fault));
	}
	ca_conductor_say(c, 0,
			 "which of these is passed once for each unit of work? Give up to %d "
			 "numbers; Enter alone takes those with *",
			 (int)CA_CANDIDATES_CHOSEN);
}

bool ca_conductor_points_ask_take(struct ca_point_choice *p)
{
	size_t chosen[CA_CANDIDATES_CHOSEN], n = 0;

	for (char *at = p->line; *at && n < CA_CANDIDATES_CHOSEN;) {
		unsigned long number = strtoul(at, &at, 10);

		if (number >= 1 && number <= p->offers && !is_among(chosen, n, p->offered[number - 1]))
			chosen[n++] = p->offered[number - 1];
		at += strcspn(at, "0123456789");
	}
	if (!n)
		return false;
	memcpy(p->chosen, chosen, sizeof chosen);
	p->n = n;
	return true;
}

bool ca_conductor_points_ask_is_answered(struct ca_point_choice *p)
{
	struct pollfd fd = { .fd = p->terminal, .events = POLLIN };
	ssize_t got = poll(&fd, 1, 0) > 0
			      ? read(p->terminal, p->line + p->length, sizeof p->line - 1 - p->length)
			      : 0;

	if (got > 0)
		p->length += (size_t)got;
	p->line[p->length] = '\0';
	return strchr(p->line, '\n') || p->length == sizeof p->line - 1 || (fd.revents & (POLLHUP | POLLERR));
}
