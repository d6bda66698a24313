/* SPDX-License-Identifier: MIT */
/* The one function of core/rng.h that needs a floating-point register: apart, so that the runtime,
 * which must not touch those, can have the rest. */
#include "core/rng.h"

double ca_rng_unit(struct ca_rng *rng)
{
	return (double)(ca_rng_next(rng) >> 11) * 0x1p-53;
}
