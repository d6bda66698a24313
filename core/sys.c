/* SPDX-License-Identifier: MIT */
/* Numbers of descriptors that are ours for a moment; see sys.h. Any context. */
#include "core/sys.h"
#include "core/cpu.h"
#include <stdatomic.h>

enum {
	LEAST = 1000,
	SAME_FILE = 0, /* KCMP_FILE */
	/* cycles, some 10 ms: by then it was left by a jump, or has not got a CPU again ... */
	LONGEST = 30000000,
	IN_HANDLER = 300000 /* ... and those that a handler may stand still */
};

/* Those who open a file of ours, and those who put one of the program's under a number of its choice. One at a time:
 * what is put over ours would be closed in its place. */
static struct users {
	_Atomic int count;
	_Atomic uint64_t since; /* cycle counter when the last of them began */
} opening, placing;

/* seq_cst: of two that begin at once, one sees the other at least */
CA_SIGSAFE static void enter(struct users *u)
{
	atomic_store(&u->since, ca_cpu_cycles());
	atomic_fetch_add(&u->count, 1);
}

CA_SIGSAFE static void leave(struct users *u)
{
	atomic_fetch_sub(&u->count, 1);
}

CA_SIGSAFE static bool is_used(const struct users *u, uint64_t from, uint64_t longest)
{
	uint64_t now = ca_cpu_cycles();

	return atomic_load(&u->count) > 0 && now - atomic_load(&u->since) < LONGEST && now - from < longest;
}

void ca_sys_place_begin(void)
{
	uint64_t from = ca_cpu_cycles();

	for (enter(&placing); is_used(&opening, from, LONGEST);)
		ca_sys(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

void ca_sys_place_end(void)
{
	leave(&placing);
}

void ca_sys_forget(void)
{
	atomic_store(&opening.count, 0);
	atomic_store(&placing.count, 0);
}

/* A descriptor that was just opened: where there is room, under a number that no program takes for its own.
 * It is looked at once more, as whoever puts a file there past libc has not waited. */
CA_SIGSAFE static long lift(long low)
{
	long high = low < 0 ? low : ca_sys(SYS_fcntl, low, F_DUPFD_CLOEXEC, LEAST, 0, 0, 0);
	long self = ca_sys_gettid();
	bool same;

	if (high < 0)
		return high == -EBADF ? high : low;                        /* closed by others, or no room */
	same = ca_sys(SYS_kcmp, self, self, SAME_FILE, low, high, 0) <= 0; /* above 0: they differ */
	if (ca_sys(SYS_fcntl, low, F_GETFD, 0, 0, 0, 0) & FD_CLOEXEC) {
		if (same)
			ca_sys_close((int)low);
	} else if (same) { /* it was there before we looked: both are its own */
		ca_sys_close((int)high);
		return -EBADF;
	}
	return high;
}

CA_SIGSAFE int ca_sys_own(long number, long a, long b, long c, long d, long e)
{
	uint64_t from = ca_cpu_cycles();
	long fd;

	for (enter(&opening); is_used(&placing, from, IN_HANDLER); enter(&opening)) {
		leave(&opening);
		while (is_used(&placing, from, IN_HANDLER))
			ca_cpu_pause();
	}
	fd = lift(ca_sys(number, a, b, c, d, e, 0));
	leave(&opening);
	return (int)fd;
}
