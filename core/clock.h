/* SPDX-License-Identifier: MIT */
/* The one clock: CLOCK_MONOTONIC in ns, comparable between the processes of a machine.
 * Handlers and any thread (a vDSO call, no system call on usual machines). */
#ifndef CA_CORE_CLOCK_H
#define CA_CORE_CLOCK_H
#include "core/cpu.h"
#include "core/status.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define CA_NS_PER_S UINT64_C(1000000000)

/* As clock_gettime, by the kernel's own function and not by libc's name: 0, or not on failure. */
typedef int (*ca_clock_function)(clockid_t clock, struct timespec *now);
extern __attribute__((visibility("hidden"))) _Atomic(ca_clock_function) ca_clock_get;

CA_SIGSAFE static inline uint64_t ca_clock_read(clockid_t clock)
{
	struct timespec now;

	/* Fails only for a clock that does not exist: 0 then, never garbage. */
	if (atomic_load_explicit(&ca_clock_get, memory_order_relaxed)(clock, &now) != 0)
		return 0;
	return (uint64_t)now.tv_sec * CA_NS_PER_S + (uint64_t)now.tv_nsec;
}

CA_SIGSAFE static inline uint64_t ca_clock_now(void)
{
	return ca_clock_read(CLOCK_MONOTONIC);
}

/* The same for a third of the cost, for one thread: the time-stamp counter. It may not be as fast on all
 * machines, nor at all times, so it is asked for half a ms at a time, once two readings have told its rate.
 * Such times may go back by a little. All zeros: fresh. */
struct ca_clock_fast {
	uint64_t time, cycles; /* then, and where the counter stood */
	uint64_t fresh;        /* so many cycles long each is taken to last scale / 2^32 ns */
	uint64_t scale;
};
CA_SIGSAFE uint64_t ca_clock_fast_read(struct ca_clock_fast *clock, uint64_t cycles);

CA_SIGSAFE static inline uint64_t ca_clock_fast_now(struct ca_clock_fast *clock)
{
	uint64_t cycles = ca_cpu_cycles(), passed = cycles - clock->cycles;

	if (passed < clock->fresh)
		return clock->time + (uint64_t)((unsigned __int128)passed * clock->scale >> 32);
	return ca_clock_fast_read(clock, cycles);
}

/* The same where the counter will do. False: a clock has to be asked. */
CA_SIGSAFE static inline bool ca_clock_fast_try(const struct ca_clock_fast *clock, uint64_t *now)
{
	uint64_t passed = ca_cpu_cycles() - clock->cycles;

	*now = clock->time + (uint64_t)((unsigned __int128)passed * clock->scale >> 32);
	return passed < clock->fresh;
}

/* ns of CPU time of the calling thread (a system call). */
CA_SIGSAFE static inline uint64_t ca_clock_thread_cpu(void)
{
	return ca_clock_read(CLOCK_THREAD_CPUTIME_ID);
}

/* ns of CPU time of another process; 0: it is not there, or not to be seen. */
static inline uint64_t ca_clock_process_cpu(pid_t pid)
{
	clockid_t clock;

	return pid > 0 && clock_getcpuclockid(pid, &clock) == 0 ? ca_clock_read(clock) : 0;
}

#endif
