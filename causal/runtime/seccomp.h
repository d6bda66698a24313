/* SPDX-License-Identifier: MIT */
/* A program that forbids itself system calls, has them given back to it, or forbids itself the time-stamp counter. */
#ifndef CA_CAUSAL_RUNTIME_SECCOMP_H
#define CA_CAUSAL_RUNTIME_SECCOMP_H
#include "causal/runtime/rt.h"

/* A filter (struct sock_fprog) or strict mode is about to be in force. */
CA_HIDDEN void ca_seccomp_comes(bool strict, const void *program);
/* A prctl call is about to be made. */
CA_HIDDEN void ca_seccomp_prctl(long option, const long *argument);

#endif
