/* SPDX-License-Identifier: MIT */
/* Sample sources; see tick.h. Runtime, and the driver, which tries what can be had.
 *
 * The kernel is asked without libc, whose functions the runtime itself may interpose. */
#include "sampler/tick.h"
#include "core/sys.h"
#include "sampler/perf.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <time.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

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

static enum ca_status perf_start(struct ca_tick *tick, uint64_t first, uint64_t period, int signo)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = first,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.disabled = 1,
		.wakeup_events = 1,
	};
	enum ca_status status = CA_ERR_UNSUPPORTED;
	void *page;
	int fd;

	(void)period;
	fd = ca_perf_open(&attr);
	if (fd < 0) {
		tick->error = -fd;
		return fd == -EACCES || fd == -EPERM ? CA_ERR_PERMISSION : CA_ERR_UNSUPPORTED;
	}
	/* Where the thread was is in the handler's ucontext, so no ring is needed; the one
	 * page keeps the event alive after the descriptor is closed. */
	page = ca_perf_map(fd, 1);
	if (page && send_signals(fd, signo)) {
		tick->page = page;
		status = CA_OK;
	} else if (page) {
		ca_perf_unmap(page, 1);
	}
	ca_sys_close(fd);
	return status;
}

static void perf_stop(struct ca_tick *tick)
{
	ca_perf_unmap(tick->page, 1);
	tick->page = NULL;
}

static char own_timer; /* its address marks our timers' signals */

static void timer_stop(struct ca_tick *tick)
{
	ca_sys(SYS_timer_delete, tick->timer, 0, 0, 0, 0, 0);
}

static struct timespec in_parts(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
}

static enum ca_status timer_start(struct ca_tick *tick, uint64_t first, uint64_t period, int signo)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_value.sival_ptr = &own_timer,
		.sigev_signo = signo,
	};
	struct itimerspec every = { in_parts(period), in_parts(first) };

	event.sigev_notify_thread_id = ca_sys_gettid();
	if (ca_sys(SYS_timer_create, first > CA_TICK_NEXT ? CLOCK_THREAD_CPUTIME_ID : CA_TICK_CLOCK,
		   (long)(intptr_t)&event, (long)(intptr_t)&tick->timer, 0, 0, 0) < 0)
		return CA_ERR_UNSUPPORTED;
	if (ca_sys(SYS_timer_settime, tick->timer, 0, (long)(intptr_t)&every, 0, 0, 0) < 0) {
		timer_stop(tick);
		return CA_ERR_UNSUPPORTED;
	}
	return CA_OK;
}

static uint64_t of_kernel = 4000000;

void ca_tick_init(void)
{
	struct timespec step;

	ca_perf_init();
	if (!clock_getres(CLOCK_MONOTONIC_COARSE, &step) && !step.tv_sec && step.tv_nsec > 0)
		of_kernel = (uint64_t)step.tv_nsec;
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
