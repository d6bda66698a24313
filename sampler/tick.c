/* SPDX-License-Identifier: MIT */
/* Sample sources; see tick.h. Runtime, and the driver, which tries what can be had.
 *
 * The kernel is asked without libc, whose functions the runtime itself may interpose. */
#include "sampler/tick.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/sys.h"
#include "sampler/perf.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <time.h>
#include <ucontext.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { LEAST_BESIDE = 4000000 };

static char own_timer; /* its address marks our timers' signals */
static uint64_t of_kernel = 4000000;
/* ns of CPU time between ticks for what perf does not see; no more often, since each costs a microsecond */
static uint64_t beside_perf = LEAST_BESIDE;
static bool in_calls; /* a timer's signal does not end the system call that it finds a thread in */

static struct timespec in_parts(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
}

/* false: there is none. */
static bool create_timer(int clock, uint64_t first, uint64_t period, int signo, int *timer)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_value.sival_ptr = &own_timer,
		.sigev_signo = signo,
	};
	struct itimerspec every = { in_parts(period), in_parts(first) };

	event.sigev_notify_thread_id = ca_sys_gettid();
	if (ca_sys(SYS_timer_create, clock, (long)(intptr_t)&event, (long)(intptr_t)timer, 0, 0, 0) < 0)
		return false;
	if (ca_sys(SYS_timer_settime, *timer, 0, (long)(intptr_t)&every, 0, 0, 0) >= 0)
		return true;
	ca_sys(SYS_timer_delete, *timer, 0, 0, 0, 0, 0);
	return false;
}

static void start_kernel_timer(struct ca_tick *tick, uint64_t period, int signo)
{
	uint64_t now, first;

	if (!in_calls)
		return;
	now = ca_clock_thread_cpu();
	if (!tick->kernel_next)
		tick->kernel_next = now + 1 + ca_cpu_cycles() % period;
	first = tick->kernel_next > now ? tick->kernel_next - now : CA_TICK_NEXT;
	tick->kernel_period = period;
	tick->sees_kernel = create_timer(CLOCK_THREAD_CPUTIME_ID, first, period, signo, &tick->kernel_timer);
}

static void stop_kernel_timer(struct ca_tick *tick)
{
	if (tick->sees_kernel)
		ca_sys(SYS_timer_delete, tick->kernel_timer, 0, 0, 0, 0, 0);
	tick->sees_kernel = false;
}

static long control(int fd, int command, long argument)
{
	return ca_sys(SYS_fcntl, fd, command, argument, 0, 0, 0);
}

/* From now on, to the calling thread. */
static bool send_signals(int fd, int signo)
{
	struct f_owner_ex owner = { F_OWNER_TID, ca_sys_gettid() };

	return control(fd, F_SETSIG, signo) >= 0 && control(fd, F_SETOWN_EX, (long)(intptr_t)&owner) >= 0 &&
	       control(fd, F_SETFL, control(fd, F_GETFL, 0) | O_ASYNC) >= 0 &&
	       ca_sys(SYS_ioctl, fd, PERF_EVENT_IOC_ENABLE, 0, 0, 0, 0) >= 0;
}

/* What happens to a thread happens in the kernel, too, where that may be counted. */
static int open_counter(const struct ca_perf_counter *counter, int group)
{
	struct perf_event_attr attr = {
		.type = counter->type,
		.size = sizeof attr,
		.config = counter->config,
		.exclude_kernel = counter->type != PERF_TYPE_SOFTWARE,
		.exclude_hv = 1,
	};
	int fd = ca_perf_open_in(&attr, group);

	if (fd >= 0 || attr.exclude_kernel || ca_samplers_of_kernel(counter->type, counter->config))
		return fd;
	attr.exclude_kernel = 1;
	return ca_perf_open_in(&attr, group);
}

static void open_counters(struct ca_tick *tick, int leader)
{
	uint32_t values = 1;

	for (unsigned i = 0; i < tick->counters; i++) {
		int fd = open_counter(&tick->counter[i], leader);

		tick->place[i] = 0;
		if (fd < 0)
			continue;
		tick->sibling[i] = ca_perf_map(fd, 1);
		ca_sys_close(fd); /* without a mapping it is gone, and not in the record */
		if (tick->sibling[i])
			tick->place[i] = values++;
	}
	tick->lead = (uint32_t)(sizeof(struct perf_event_header) + (1 + values) * sizeof(uint64_t));
}

static void perf_stop(struct ca_tick *tick);

static enum ca_status start_event(struct ca_tick *tick, struct perf_event_attr *attr, size_t pages, int signo)
{
	enum ca_status status = CA_ERR_UNSUPPORTED;
	int fd = ca_perf_open(attr);
	void *page;

	tick->lead = 0;
	if (fd < 0) {
		tick->error = -fd;
		return fd == -EACCES || fd == -EPERM ? CA_ERR_PERMISSION : CA_ERR_UNSUPPORTED;
	}
	/* the mapping keeps the event alive after the descriptor is closed. */
	page = ca_perf_map(fd, pages);
	if (page && tick->counters)
		open_counters(tick, fd);
	tick->page = page;
	tick->pages = (uint32_t)pages;
	if (page && send_signals(fd, signo))
		status = CA_OK;
	else if (page)
		perf_stop(tick);
	ca_sys_close(fd);
	return status;
}

static enum ca_status perf_start(struct ca_tick *tick, uint64_t first, uint64_t period, int signo)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = first,
		.sample_type = tick->counters ? PERF_SAMPLE_READ : 0,
		.read_format = tick->counters ? PERF_FORMAT_GROUP : 0,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.disabled = 1,
		.wakeup_events = 1,
	};
	enum ca_status status;

	(void)period;
	/* Where the thread was is in the handler's ucontext, so no ring is needed, unless for counters. */
	status = start_event(tick, &attr, tick->counters ? 2 : 1, signo);
	if (status == CA_OK)
		start_kernel_timer(tick, beside_perf, signo);
	return status;
}

CA_SIGSAFE bool ca_tick_start_coarse(struct ca_tick *tick, uint64_t period, int signo)
{
	if (period < beside_perf)
		return false;
	start_kernel_timer(tick, period, signo);
	if (tick->sees_kernel)
		tick->backend = CA_BACKEND_PERF;
	return tick->sees_kernel;
}

CA_SIGSAFE enum ca_status ca_tick_overflow(struct ca_tick *tick, const struct ca_perf_counter *event,
					   uint64_t period, uint64_t frequency, int signo)
{
	struct perf_event_attr attr = {
		.type = event->type,
		.size = sizeof attr,
		.config = event->config,
		.sample_period = frequency ? frequency : period,
		.freq = frequency != 0,
		.sample_type = PERF_SAMPLE_READ,
		.exclude_kernel = !ca_samplers_of_kernel(event->type, event->config),
		.exclude_hv = 1,
		.disabled = 1,
		.wakeup_events = 1,
	};
	enum ca_status status = start_event(tick, &attr, 2, signo);

	if (status == CA_OK)
		tick->backend = CA_BACKEND_PERF;
	return status;
}

/* Bytes that the kernel has written behind the first page. */
static uint64_t written(const struct ca_tick *tick)
{
	const struct perf_event_mmap_page *page = tick->page;

	return page ? __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) : 0;
}

/* A word of what the kernel has written, so many bytes behind its beginning. */
static uint64_t word_at(const struct ca_tick *tick, uint64_t at)
{
	const volatile uint64_t *ring =
		(const volatile uint64_t *)(const void *)((const char *)tick->page + CA_PERF_PAGE);

	return ring[at / sizeof *ring % (CA_PERF_PAGE / sizeof *ring)];
}

CA_SIGSAFE uint64_t ca_tick_overflows(const struct ca_tick *tick, uint64_t otherwise)
{
	struct {
		struct perf_event_header header;
		uint64_t events;
	} record;
	uint64_t head = written(tick), first;

	if (head < sizeof record)
		return otherwise;
	first = word_at(tick, head - sizeof record);
	__builtin_memcpy(&record, &first, sizeof first);
	/* the kernel also tells that it holds back what comes too often */
	return record.header.type == PERF_RECORD_SAMPLE && record.header.size == sizeof record
		       ? word_at(tick, head - sizeof record.events)
		       : otherwise;
}

CA_SIGSAFE uint64_t ca_tick_counter(const struct ca_tick *tick, unsigned i, uint64_t otherwise)
{
	uint64_t head = tick->lead ? written(tick) : 0;

	if (head < tick->lead || !tick->lead || !tick->place[i])
		return otherwise;
	/* the record: its header, how many values, the tick's own, the others */
	return tick->base[i] + word_at(tick, head - tick->lead + (2 + tick->place[i]) * sizeof(uint64_t));
}

static void perf_stop(struct ca_tick *tick)
{
	stop_kernel_timer(tick);
	for (unsigned i = 0; tick->lead && i < tick->counters; i++) {
		tick->base[i] = ca_tick_counter(tick, i, tick->base[i]);
		if (tick->sibling[i])
			ca_perf_unmap(tick->sibling[i], 1);
		tick->sibling[i] = NULL;
	}
	tick->lead = 0;
	if (tick->page)
		ca_perf_unmap(tick->page, tick->pages);
	tick->page = NULL;
}

static void timer_stop(struct ca_tick *tick)
{
	ca_sys(SYS_timer_delete, tick->timer, 0, 0, 0, 0, 0);
}

static enum ca_status timer_start(struct ca_tick *tick, uint64_t first, uint64_t period, int signo)
{
	int clock = first > CA_TICK_NEXT ? CLOCK_THREAD_CPUTIME_ID : CA_TICK_CLOCK;

	return create_timer(clock, first, period, signo, &tick->timer) ? CA_OK : CA_ERR_UNSUPPORTED;
}

/* Since 5.9 a timer that ran out while its thread was in the kernel sends its signal when the thread goes back: no
 * call ends early. Before, one that was about to block did. */
static bool leaves_calls_alone(void)
{
	struct utsname name;
	unsigned major = 0, minor = 0;

	return !uname(&name) && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 5 || (major == 5 && minor >= 9));
}

void ca_tick_init(void)
{
	struct timespec step;

	ca_perf_init();
	if (!clock_getres(CLOCK_MONOTONIC_COARSE, &step) && !step.tv_sec && step.tv_nsec > 0)
		of_kernel = (uint64_t)step.tv_nsec;
	beside_perf = of_kernel > LEAST_BESIDE ? of_kernel : LEAST_BESIDE;
	in_calls = leaves_calls_alone();
}

CA_SIGSAFE uint64_t ca_tick_of_kernel(void)
{
	return of_kernel;
}

static const struct source {
	enum ca_backend backend;
	enum ca_status (*start)(struct ca_tick *, uint64_t, uint64_t, int);
	void (*stop)(struct ca_tick *);
} sources[] = {
	{ CA_BACKEND_PERF, perf_start, perf_stop },
	{ CA_BACKEND_TIMER, timer_start, timer_stop },
};
enum { SOURCES = sizeof sources / sizeof sources[0] };

CA_SIGSAFE enum ca_status ca_tick_start(struct ca_tick *tick, enum ca_backend wanted, uint64_t first,
					uint64_t period, int signo)
{
	enum ca_status status = CA_ERR_UNSUPPORTED;

	tick->backend = CA_BACKEND_AUTO;
	for (unsigned i = 0; i < SOURCES; i++) {
		if (wanted != CA_BACKEND_AUTO && wanted != sources[i].backend)
			continue;
		status = sources[i].start(tick, first, period, signo);
		if (status == CA_OK) {
			tick->backend = sources[i].backend;
			return CA_OK;
		}
	}
	return status;
}

CA_SIGSAFE bool ca_tick_ends_calls(void)
{
	return !in_calls;
}

CA_SIGSAFE bool ca_tick_is_of_kernel(const struct ca_tick *tick, const siginfo_t *info)
{
	return tick->sees_kernel && info->si_code == SI_TIMER;
}

CA_SIGSAFE uint64_t ca_tick_of_kernel_stands_for(struct ca_tick *tick)
{
	uint64_t now = ca_clock_thread_cpu(), length = 0;

	if (now >= tick->kernel_next)
		length = ((now - tick->kernel_next) / tick->kernel_period + 1) * tick->kernel_period;
	tick->kernel_next += length;
	return length;
}

/* The instruction leaves its successor's address in a register that code seldom keeps one in. Of a call that is to be
 * made again the kernel has gone back by its length. */
CA_SIGSAFE bool ca_tick_in_call(const void *ucontext)
{
	enum { LENGTH = 2 };
	const greg_t *reg = ((const ucontext_t *)ucontext)->uc_mcontext.gregs;

	return reg[REG_RCX] == reg[REG_RIP] || reg[REG_RCX] == reg[REG_RIP] + LENGTH;
}

/* perf's come as from a descriptor that became ready; programs send with codes up to 0, and the kernel
 * in the name of a socket. */
CA_SIGSAFE bool ca_tick_is_ours(const siginfo_t *info)
{
	return (info->si_code > 0 && info->si_code != SI_KERNEL) || info->si_code == SI_SIGIO ||
	       (info->si_code == SI_TIMER && info->si_value.sival_ptr == &own_timer) ||
	       /* what is left of it where the kernel has no room to queue it */
	       (info->si_code == SI_USER && info->si_pid == 0);
}

CA_SIGSAFE void ca_tick_stop(struct ca_tick *tick)
{
	for (unsigned i = 0; i < SOURCES; i++)
		if (tick->backend == sources[i].backend)
			sources[i].stop(tick);
	tick->backend = CA_BACKEND_AUTO;
}
