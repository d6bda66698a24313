/* SPDX-License-Identifier: MIT */
/* Whether perf can be had is found out by starting it as the runtime does, and what its switch log costs with two threads
 * that wake each other; see backend.h. */
#include "causal/conductor/backend.h"
#include "core/clock.h"
#include "sampler/switches.h"
#include "sampler/tick.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	ROUNDS = 100,
	TRIES = 5,
	LONGEST = 100000 /* ns of a round: beyond that it is others that are measured */
};

static const uint64_t never = UINT64_C(1) << 50; /* ns: days */

enum ca_status ca_backend_perf(struct ca_err *err)
{
	const char *remedy = "this kernel has no perf events for programs";
	char level[40] = "";
	int paranoid = -1;
	struct ca_tick tick = { 0 };
	enum ca_status status = ca_tick_start(&tick, CA_BACKEND_PERF, never, never, SIGURG);
	FILE *file;

	if (!status) {
		ca_tick_stop(&tick);
		return CA_OK;
	}
	file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	if (file && fscanf(file, "%d", &paranoid) == 1)
		snprintf(level, sizeof level, "; kernel.perf_event_paranoid is %d", paranoid);
	if (file)
		fclose(file);
	if (status == CA_ERR_PERMISSION)
		remedy = paranoid > 2 ? "as root, do sysctl kernel.perf_event_paranoid=2"
				      : "have the container or sandbox allow that call";
	return ca_err_set(err, status, "perf_event_open is not allowed here (%s%s): %s",
			  strerror(tick.error ? tick.error : EOPNOTSUPP), level, remedy);
}

/* ---- what a switch costs ------------------------------------------------------------------------------*/
struct pair {
	int ping[2], pong[2];
	bool logged;
	uint64_t ns; /* of a round, in which each of the two leaves the CPU once */
};

/* Closes `to`, so that the other one never waits for what does not come. */
static bool hop(int from, int to, bool begin)
{
	char c = 0;
	int i = 0;

	while (i < ROUNDS && (!begin || write(to, &c, 1) == 1) && read(from, &c, 1) == 1 &&
	       (begin || write(to, &c, 1) == 1))
		i++;
	close(to);
	return i == ROUNDS;
}

static void *answer(void *context)
{
	struct pair *p = context;
	struct ca_switches log = { NULL };

	if (p->logged)
		ca_switches_open(&log);
	hop(p->ping[0], p->pong[1], false);
	ca_switches_close(&log);
	return NULL;
}

/* On one CPU, the one that it is on. */
static void *ask(void *context)
{
	struct pair *p = context;
	struct ca_switches log = { NULL };
	pthread_t other;
	cpu_set_t one;
	uint64_t from;
	int cpu = sched_getcpu();

	CPU_ZERO(&one);
	CPU_SET((size_t)(cpu < 0 ? CPU_SETSIZE : cpu), &one); /* sets none beyond its size */
	if (sched_setaffinity(0, sizeof one, &one) || pthread_create(&other, NULL, answer, p)) {
		close(p->ping[1]);
		close(p->pong[1]);
		return NULL;
	}
	if (p->logged)
		ca_switches_open(&log);
	from = ca_clock_now();
	p->ns = hop(p->pong[0], p->ping[1], true) ? (ca_clock_now() - from) / ROUNDS : 0;
	pthread_join(other, NULL);
	ca_switches_close(&log);
	return NULL;
}

/* 0: it could not be measured. */
static uint64_t time_of_round(bool logged)
{
	struct pair p = { .logged = logged };
	pthread_t thread;

	if (pipe2(p.ping, O_CLOEXEC))
		return 0;
	if (pipe2(p.pong, O_CLOEXEC)) {
		close(p.ping[1]);
	} else {
		if (!pthread_create(&thread, NULL, ask, &p)) {
			pthread_join(thread, NULL);
		} else {
			close(p.ping[1]);
			close(p.pong[1]);
		}
		close(p.pong[0]);
	}
	close(p.ping[0]);
	return p.ns;
}

uint32_t ca_backend_switch_cost(void)
{
	static uint32_t cost;
	static bool known;
	uint64_t least[2] = { UINT64_MAX, UINT64_MAX };

	if (known)
		return cost;
	known = true;
	for (int i = 0; i < 2 * TRIES; i++) {
		uint64_t ns = time_of_round(i % 2);

		if (!ns)
			return 0;
		least[i % 2] = ns < least[i % 2] ? ns : least[i % 2];
	}
	if (least[1] > least[0] && least[1] < LONGEST)
		cost = (uint32_t)((least[1] - least[0]) / 2);
	return cost;
}
