/* SPDX-License-Identifier: MIT */
/* What the processor itself offers: x86-64. Any context. */
#ifndef CA_CORE_CPU_H
#define CA_CORE_CPU_H
#include <stdint.h>

static inline void ca_cpu_pause(void)
{
	__builtin_ia32_pause();
}
/* A cheap clock of unknown rate, only good to tell "just now" from "a while ago". */
static inline uint64_t ca_cpu_cycles(void)
{
	return __builtin_ia32_rdtsc();
}
/* The same once all that comes before it is done, and before anything else is begun. */
static inline uint64_t ca_cpu_cycles_fenced(void)
{
	__asm__ volatile("lfence" ::: "memory");
	return __builtin_ia32_rdtsc();
}

#endif
