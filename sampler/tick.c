/* Sample sources; see tick.h. Runtime. */
#include "sampler/tick.h"
#include "core/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

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
	struct f_owner_ex owner = { F_OWNER_TID, (pid_t)syscall(SYS_gettid) };
	long page_size = sysconf(_SC_PAGESIZE);
	enum ca_status status = CA_ERR_UNSUPPORTED;
	void *page = MAP_FAILED;
	int fd;

	(void)period;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return errno == EACCES || errno == EPERM ? CA_ERR_PERMISSION : CA_ERR_UNSUPPORTED;
	/* Where the thread was is in the handler's ucontext, so no ring is needed; the one
	 * page keeps the event alive after the descriptor is closed. */
	page = mmap(NULL, (size_t)page_size, PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		goto out;
	if (fcntl(fd, F_SETSIG, signo) < 0 || fcntl(fd, F_SETOWN_EX, &owner) < 0 ||
	    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC) < 0 ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0) {
		munmap(page, (size_t)page_size);
		goto out;
	}
	tick->page = page;
	status = CA_OK;
out:
	ca_sys_close(fd); /* libc's is a place where a thread may be cancelled */
	return status;
}

static void perf_stop(struct ca_tick *tick)
{
	munmap(tick->page, (size_t)sysconf(_SC_PAGESIZE));
	tick->page = NULL;
}

static char own_timer; /* its address marks our timers' signals */

static enum ca_status timer_start(struct ca_tick *tick, uint64_t first, uint64_t period, int signo)
{
	struct sigevent event;
	struct itimerspec every;

	memset(&event, 0, sizeof event);
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_value.sival_ptr = &own_timer;
	event.sigev_signo = signo;
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &tick->timer))
		return CA_ERR_UNSUPPORTED;
	every.it_value.tv_sec = (time_t)(first / 1000000000);
	every.it_value.tv_nsec = (long)(first % 1000000000);
	every.it_interval.tv_sec = (time_t)(period / 1000000000);
	every.it_interval.tv_nsec = (long)(period % 1000000000);
	if (timer_settime(tick->timer, 0, &every, NULL)) {
		timer_delete(tick->timer);
		return CA_ERR_UNSUPPORTED;
	}
	return CA_OK;
}

static void timer_stop(struct ca_tick *tick)
{
	timer_delete(tick->timer);
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

/* perf's come as from a descriptor that became ready; programs send with codes up to 0. */
CA_SIGSAFE bool ca_tick_is_ours(const siginfo_t *info)
{
	return info->si_code > 0 || info->si_code == SI_SIGIO ||
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
