/* SPDX-License-Identifier: MIT */
/* PAPI's counters around some work: presets and native events of the processor, or what the program itself gives
 * to PAPI, as here.
 *   cc papi.c -lcausal -lsde
 *   ./papi                                             rows, a counter of its own: needs no hardware
 *   ./papi papi:PAPI_TOT_INS+PAPI_TOT_CYC,wall         where there are hardware counters */
#include <causal_measure.h>
#include <sde_lib.h>

static volatile long long rows;

int main(int argc, char **argv)
{
	papi_handle_t handle = papi_sde_init("example");
	struct causal_bundle *bundle;

	papi_sde_register_counter(handle, "rows", PAPI_SDE_RO | PAPI_SDE_DELTA, PAPI_SDE_long_long,
				  (void *)&rows);
	bundle = causal_bundle_open("table", argc > 1 ? argv[1] : "papi:sde:::example::rows");
	for (int lap = 0; lap < 3; lap++) {
		causal_bundle_start(bundle);
		for (int row = 0; row < 1000; row++)
			rows++;
		causal_bundle_stop(bundle);
	}
	causal_bundle_print(bundle, stdout);
	causal_bundle_close(bundle);
	return 0;
}
