/* SPDX-License-Identifier: MIT */
/* Whether perf can be had is found out by starting it as the runtime does; see backend.h. */
#include "causal/conductor/backend.h"
#include "sampler/tick.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

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
