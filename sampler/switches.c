/* SPDX-License-Identifier: MIT */
/* The switch log; see switches.h. Runtime; reading is safe in handlers. */
#include "sampler/switches.h"
#include "sampler/perf.h"
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

enum { RECORD = 16, RECORDS = CA_PERF_PAGE / RECORD, NEWEST = RECORDS - 8 };

struct record {
	struct perf_event_header header;
	uint64_t time;
};
_Static_assert(sizeof(struct record) == RECORD, "switch records have a fixed size");

enum ca_status ca_switches_open(struct ca_switches *log)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.context_switch = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	int fd;

	log->page = NULL;
	fd = ca_perf_open(&attr);
	if (fd < 0)
		return fd == -EACCES || fd == -EPERM ? CA_ERR_PERMISSION : CA_ERR_UNSUPPORTED;
	log->page = ca_perf_map(fd, 2);
	ca_sys_close(fd);
	return log->page ? CA_OK : CA_ERR_UNSUPPORTED;
}

void ca_switches_close(struct ca_switches *log)
{
	if (log->page)
		ca_perf_unmap(log->page, 2);
	log->page = NULL;
}

CA_SIGSAFE static uint64_t is_runnable(const volatile struct record *out)
{
	return (out->header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
}

CA_SIGSAFE uint64_t ca_switches_count(const struct ca_switches *log)
{
	const struct perf_event_mmap_page *page = __atomic_load_n(&log->page, __ATOMIC_RELAXED);

	/* there and back again */
	return page ? __atomic_load_n(&page->data_head, __ATOMIC_RELAXED) / RECORD / 2 : 0;
}

CA_SIGSAFE unsigned ca_switches_off(const struct ca_switches *log, uint64_t a, uint64_t b,
				    struct ca_interval *out, unsigned max)
{
	const struct perf_event_mmap_page *page = __atomic_load_n(&log->page, __ATOMIC_RELAXED);
	const volatile struct record *ring;
	uint64_t head, first, i;
	unsigned n = 0;
	uint64_t out_since = 0;
	uint64_t runnable = 0;
	bool off = false;

	if (!page || a >= b)
		return 0;
	ring = (const volatile struct record *)((const char *)page + CA_PERF_PAGE);
	head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) / RECORD;
	first = head > NEWEST ? head - NEWEST : 0;
	/* walk back to the last record at or before a: it tells the state at a */
	for (i = head; i > first; i--)
		if (ring[(i - 1) % RECORDS].time <= a)
			break;
	if (i > first && ring[(i - 1) % RECORDS].header.misc & PERF_RECORD_MISC_SWITCH_OUT) {
		off = true;
		out_since = a;
		runnable = is_runnable(&ring[(i - 1) % RECORDS]);
	}
	for (; i < head && n < max; i++) {
		uint64_t time = ring[i % RECORDS].time;

		if (time >= b)
			break;
		if (ring[i % RECORDS].header.misc & PERF_RECORD_MISC_SWITCH_OUT) {
			off = true;
			out_since = time;
			runnable = is_runnable(&ring[i % RECORDS]);
		} else if (off) {
			out[n++] = (struct ca_interval){ out_since, time, runnable };
			off = false;
		}
	}
	if (off && n < max) {
		out[n++] = (struct ca_interval){ out_since, b, runnable };
	}
	return n;
}
