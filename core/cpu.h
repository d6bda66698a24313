/* What the processor itself offers. Any context. */
#ifndef CA_CORE_CPU_H
#define CA_CORE_CPU_H
#include "core/clock.h"
#include <stdint.h>

static inline void ca_cpu_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}
/* A cheap clock of unknown rate, only good to tell "just now" from "a while ago". */
static inline uint64_t ca_cpu_cycles(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return ca_clock_now();
#endif
}

#endif
