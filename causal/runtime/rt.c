/* SPDX-License-Identifier: MIT */
/* The runtime's state and its off switch. Any context. */
#include "causal/runtime/rt.h"
#include "core/fmt.h"
#include "core/log.h"
#include "core/sys.h"
#include <errno.h>
#include <string.h>

struct ca_runtime ca_rt;
__thread struct ca_thread *ca_self __attribute__((tls_model("initial-exec")));

enum {
	STALE = 60000000,    /* ns without a heartbeat before we ask whether it is dead */
	SUSPEND = 1000000000 /* ns without a heartbeat and we stop delaying anyway */
};

CA_SIGSAFE bool ca_rt_quit(void)
{
	ca_rt.joined = false;
	return atomic_exchange_explicit(&ca_rt.on, false, memory_order_relaxed);
}

CA_SIGSAFE void ca_rt_off(const char *reason)
{
	struct ca_process *p = &ca_rt.session->process[ca_rt.process];
	struct ca_fmt text;

	if (!ca_rt_quit())
		return;
	ca_fmt_init(&text, p->off_text, sizeof p->off_text);
	ca_fmt_text(&text, reason);
	/* release: the conductor acquires it before it reads the text */
	atomic_store_explicit(&p->off, 1, memory_order_release);
	/* one line in a run, not one of each of its processes */
	if (!atomic_fetch_add(&ca_rt.session->processes_off, 1))
		ca_log(CA_LOG_ERROR, "switched off: %s; the program runs on", reason);
}

/* State letter of a process; '?': it cannot be known, as in a chroot without /proc. */
CA_SIGSAFE static char process_state(uint32_t pid)
{
	char path[32], data[256];
	struct ca_fmt f;
	long got, n;
	int fd;

	ca_fmt_init(&f, path, sizeof path);
	ca_fmt_add(&f, "/proc/%u/stat", pid);
	fd = ca_sys_open(path, O_RDONLY);
	if (fd < 0)
		return '?';
	got = n = ca_sys_read(fd, data, sizeof data);
	ca_sys_close(fd);
	/* "pid (name) S ...", where the name may hold anything */
	while (n > 0 && data[n - 1] != ')')
		n--;
	return n > 0 && n + 1 < got ? data[n + 1] : '?';
}

CA_SIGSAFE bool ca_rt_process_exists(uint32_t pid)
{
	return ca_sys(SYS_kill, (long)pid, 0, 0, 0, 0, 0) != -ESRCH;
}

CA_SIGSAFE bool ca_rt_conductor_is_gone(uint64_t now)
{
	struct ca_session *s = ca_rt.session;
	uint64_t beat = atomic_load_explicit(&s->heartbeat, memory_order_relaxed);
	char state = 0;

	if (now < beat + STALE)
		return false;
	/* in another pid namespace we could not see it alive either */
	if (ca_rt.sees_conductor && ca_rt_process_exists(s->conductor))
		state = process_state(s->conductor);
	if (ca_rt.sees_conductor && (state == 0 || state == 'Z' || state == 'X')) {
		ca_rt_off("the driver has ended");
		return true;
	}
	return now > beat + SUSPEND;
}

CA_SIGSAFE void ca_rt_tend(uint64_t now)
{
	/* the run is over; we are in a process that outlives it, and say nothing */
	if (atomic_load_explicit(&ca_rt.session->state, memory_order_relaxed) != CA_SESSION_OPEN)
		ca_rt_quit();
	else
		ca_rt_conductor_is_gone(now);
}
