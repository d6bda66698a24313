/* SPDX-License-Identifier: MIT */
/* Ticks: a signal to each thread after each `period` of its own CPU time.
 *
 * Two sources: perf's task clock (precise, only while the thread runs in user code) and a
 * POSIX timer on the thread's CPU clock (no perf needed; the kernel checks it at its own
 * tick, so it is coarse: 4 ms at 250 Hz). What a thread has the kernel do perf's ticks do not
 * see: with them goes a timer of the second kind, of whose ticks only those in system calls
 * count; and where exact ticks are not needed, that timer goes alone (ca_tick_start_coarse). None ever
 * interrupts a thread that is blocked. No descriptor of ours stays open in the program. Opened and closed by the
 * owning thread, in its handler, too. A new source is one function pair here and one row in
 * tick.c's table. */
#ifndef CA_SAMPLER_TICK_H
#define CA_SAMPLER_TICK_H
#include "core/samplers.h"
#include "core/status.h"
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* In the order of the setting's choices (core/settings.def). */
enum ca_backend { CA_BACKEND_AUTO, CA_BACKEND_PERF, CA_BACKEND_TIMER };

enum {
	/* ns; as the first tick of a timer, the next of the kernel's that finds the thread ... */
	CA_TICK_NEXT = 1,
	/* ... which is then set by the calling thread's time in whole ticks: CPUCLOCK_PROF, as the kernel
	 * numbers clocks of threads. It takes 0.6 us less than to look at the exact one. */
	CA_TICK_CLOCK = -4
};

struct ca_tick {
	enum ca_backend backend; /* CA_BACKEND_AUTO: stopped */
	void *page;              /* perf: keeps the event alive */
	uint32_t pages;          /* ... and those behind it, with what the kernel writes */
	int timer;               /* the kernel's number */
	/* The timer that goes with perf's ticks: its number; is there one? When it is due next, ns of CPU time (0: not
	 * yet), and how often: it does not begin anew with each start, which would make more of the time, or less. */
	int kernel_timer;
	bool sees_kernel;
	uint64_t kernel_next, kernel_period;
	int error; /* after a start that failed: why, an errno; 0: not known */
	/* Counters that go with perf's ticks, set by whoever starts them: what each has counted so far. */
	const struct ca_perf_counter *counter;
	uint32_t counters;
	uint32_t lead;                      /* it has those: bytes of the kernel's record; 0: none */
	void *sibling[CA_METRIC_COUNTERS];  /* keep their events alive */
	uint64_t base[CA_METRIC_COUNTERS];  /* counted before the last start */
	uint32_t place[CA_METRIC_COUNTERS]; /* in the record; 0: it could not be had */
};

/* Start ticks for the calling thread. wanted AUTO: perf, else timer; the one that runs is
 * in tick->backend. period in ns of CPU time, and so is first, the time until the first
 * tick; perf has one number for both, first, and is restarted by whoever wants another.
 * signo is delivered to this thread alone. */
CA_SIGSAFE enum ca_status ca_tick_start(struct ca_tick *tick, enum ca_backend wanted, uint64_t first,
					uint64_t period, int signo);
/* The same whenever `period` more of the event have happened in the thread, or, if frequency is not 0, about so often
 * in a second; perf only. */
CA_SIGSAFE enum ca_status ca_tick_overflow(struct ca_tick *tick, const struct ca_perf_counter *event,
					   uint64_t period, uint64_t frequency, int signo);
/* In place of perf's, where exact ones are not needed: a timer's ticks alone, for all that the thread does. They come
 * when the kernel ticks anyway, so take a fraction of the time, and leave the thread's switches alone. What each stands
 * for: ca_tick_of_kernel_stands_for. false: none started, as the period is too short for them, or they would end
 * calls. */
CA_SIGSAFE bool ca_tick_start_coarse(struct ca_tick *tick, uint64_t period, int signo);
static inline bool ca_tick_is_coarse(const struct ca_tick *tick)
{
	return tick->backend == CA_BACKEND_PERF && !tick->page;
}
/* So many of the event had happened the last time; `otherwise` if it is not known. */
CA_SIGSAFE uint64_t ca_tick_overflows(const struct ca_tick *tick, uint64_t otherwise);
/* What counter i had counted at the last tick; `otherwise` if it is not known. */
CA_SIGSAFE uint64_t ca_tick_counter(const struct ca_tick *tick, unsigned i, uint64_t otherwise);
/* Also in a handler. A signal that is on its way is delivered before this returns. */
CA_SIGSAFE void ca_tick_stop(struct ca_tick *tick);
/* What the kernel has and allows; once, with libc. */
void ca_tick_init(void);
/* Does a timer's signal end the system call that it finds a thread in? Before Linux 5.9; from then on it is sent when
 * the thread leaves the call. */
CA_SIGSAFE bool ca_tick_ends_calls(void);
/* The kernel's own tick, ns: a timer never ticks in between. 4 ms until it was asked. */
CA_SIGSAFE uint64_t ca_tick_of_kernel(void);
/* A tick of the timer that goes with perf's? */
CA_SIGSAFE bool ca_tick_is_of_kernel(const struct ca_tick *tick, const siginfo_t *info);
/* The CPU time that it stands for, ns; 0: none, it came too early. To be asked for each. */
CA_SIGSAFE uint64_t ca_tick_of_kernel_stands_for(struct ca_tick *tick);
/* Was the thread in a system call, from which it comes back with this ucontext? */
CA_SIGSAFE bool ca_tick_in_call(const void *ucontext);
/* Did one of our sources send this? Anybody may send our signal number. */
CA_SIGSAFE bool ca_tick_is_ours(const siginfo_t *info);

#endif
