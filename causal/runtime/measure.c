/* SPDX-License-Identifier: MIT */
/* What a thread has used; see measure.h. */
#include "causal/runtime/measure.h"
#include "core/sys.h"
#include "sampler/tick.h"
#include <time.h>

CA_SIGSAFE unsigned ca_measure_add(struct ca_event *event, uint64_t now, unsigned metric, uint64_t value)
{
	*event = (struct ca_event){
		.time = now, .kind = CA_POINT, .key = CA_KEY_METRIC, .flags = (uint16_t)metric, .value = value
	};
	return 1;
}

static unsigned add_more(struct ca_thread *t, uint64_t now, unsigned metric, uint64_t value,
			 struct ca_event *event)
{
	uint64_t before = t->metric[metric];

	t->metric[metric] = value;
	return value > before ? ca_measure_add(event, now, metric, value - before) : 0;
}

CA_SIGSAFE unsigned ca_measure_all(struct ca_thread *t, uint64_t now, struct ca_event *event)
{
	uint32_t wanted = ca_rt.session->samplers.metrics >> CA_METRIC_CPU_TIME;
	struct rusage usage;
	unsigned n = 0;

	if (!wanted || !ca_sys_usage(&usage))
		return 0;
	wanted <<= CA_METRIC_CPU_TIME;
	if (wanted >> CA_METRIC_CPU_TIME & 1)
		n += add_more(t, now, CA_METRIC_CPU_TIME, ca_clock_thread_cpu(), event + n);
	if (wanted >> CA_METRIC_MINOR_FAULTS & 1)
		n += add_more(t, now, CA_METRIC_MINOR_FAULTS, (uint64_t)usage.ru_minflt, event + n);
	if (wanted >> CA_METRIC_MAJOR_FAULTS & 1)
		n += add_more(t, now, CA_METRIC_MAJOR_FAULTS, (uint64_t)usage.ru_majflt, event + n);
	if (wanted >> CA_METRIC_SWITCHES & 1)
		n += add_more(t, now, CA_METRIC_SWITCHES, (uint64_t)usage.ru_nvcsw, event + n);
	if (wanted >> CA_METRIC_PREEMPTIONS & 1)
		n += add_more(t, now, CA_METRIC_PREEMPTIONS, (uint64_t)usage.ru_nivcsw, event + n);
	if (wanted >> CA_METRIC_PEAK_RSS & 1)
		n += ca_measure_add(event + n, now, CA_METRIC_PEAK_RSS, (uint64_t)usage.ru_maxrss * 1024);
	for (unsigned i = 0; i < t->tick.counters; i++)
		n += add_more(t, now, CA_METRIC_OWN + i,
			      ca_tick_counter(&t->tick, i, t->metric[CA_METRIC_OWN + i]), event + n);
	return n;
}
