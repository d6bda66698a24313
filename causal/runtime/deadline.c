/* SPDX-License-Identifier: MIT */
/* Time limits in virtual time; see deadline.h. */
#include "causal/runtime/deadline.h"
#include "causal/runtime/catch_up.h"
#include "causal/runtime/ledger.h"
#include "causal/runtime/virtual_clock.h"
#include "core/sys.h"
#include <errno.h>

enum { NEAR = 3000 }; /* ns that a limit may move without being waited for once more */

uint64_t ca_deadline_ns(const struct timespec *t)
{
	if (!t || t->tv_sec < 0 || t->tv_nsec < 0 || t->tv_nsec >= (long)CA_NS_PER_S ||
	    (uint64_t)t->tv_sec > UINT64_MAX / CA_NS_PER_S / 2)
		return UINT64_MAX;
	return (uint64_t)t->tv_sec * CA_NS_PER_S + (uint64_t)t->tv_nsec;
}

const struct timespec *ca_deadline_peek(long given, struct timespec *copy)
{
	return given && ca_sys_peek((uintptr_t)given, copy, sizeof *copy) == sizeof *copy ? copy : NULL;
}

struct ca_deadline ca_deadline_begin(bool limited)
{
	struct ca_deadline d = { 0, 0, 0, 0 };

	if (!ca_rt.session || !ca_rt.session->virtual_clock)
		return d;
	d.began = ca_clock_now();
	d.first = d.lag = ca_virtual_lag();
	if (limited) {
		ca_catch_up_waits_until(ca_self, d.lag);
		if (ca_self)
			ca_ledger_limited(ca_self);
	}
	return d;
}

const struct timespec *ca_deadline_real(const struct ca_deadline *d, const struct timespec *until,
					struct timespec *real)
{
	uint64_t ns = ca_deadline_ns(until);

	if (ns == UINT64_MAX || !d->lag)
		return until;
	real->tv_sec = (time_t)((ns + d->lag) / CA_NS_PER_S);
	real->tv_nsec = (long)((ns + d->lag) % CA_NS_PER_S);
	return real;
}

void ca_deadline_over(uint64_t lag, uint64_t length)
{
	struct ca_thread *t = ca_self;

	if (!t || t->guard || !atomic_load_explicit(&ca_rt.on, memory_order_relaxed))
		return;
	t->guard++;
	ca_ledger_limit(t, lag, length);
	t->guard--;
}

bool ca_deadline_moved(struct ca_deadline *d)
{
	int saved = errno;
	uint64_t lag = ca_virtual_lag(), now = ca_clock_now(), came = now > d->lag ? now - d->lag : 1;

	errno = saved;
	/* it came at `came`, as far as was known; by now it can be over without another wait, also where
	 * the lag grows all the time that these looks take */
	d->over = d->over && d->over < came ? d->over : came;
	if (now - lag + NEAR >= d->over) {
		ca_deadline_over(lag, now - d->began);
		return false;
	}
	d->lag = lag;
	ca_catch_up_waits_until(ca_self, lag);
	return true;
}

uint64_t ca_deadline_left(struct ca_deadline *d, uint64_t length)
{
	return d->began && length != UINT64_MAX && ca_deadline_moved(d) ? ca_deadline_rest(d, length) : 0;
}

uint64_t ca_deadline_rest(const struct ca_deadline *d, uint64_t length)
{
	uint64_t over, now = ca_clock_now();

	over = d->began + length + (d->lag - d->first);
	return over > now + NEAR ? over - now : 0;
}
