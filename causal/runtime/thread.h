/* SPDX-License-Identifier: MIT */
/* Threads: how they come and go, and when they are left alone. */
#ifndef CA_CAUSAL_RUNTIME_THREAD_H
#define CA_CAUSAL_RUNTIME_THREAD_H
#include "causal/runtime/rt.h"

CA_HIDDEN void ca_thread_begin(void); /* the calling thread joins; no-op without a free slot */
/* ... created by the thread that has this slot, to run that */
CA_HIDDEN void ca_thread_begin_by(uint32_t slot, uintptr_t routine);
CA_HIDDEN void ca_thread_end(void);    /* ... leaves */
CA_HIDDEN void ca_thread_forget(void); /* after fork: the records of the parent's threads */
/* A thread whose start we did not see, or that found no slot, makes itself known at a meeting.
 * NULL: it stays out. */
CA_HIDDEN struct ca_thread *ca_thread_late(void);
/* Around exec, which lets a pending signal of ours live on without its handler: no ticks, not
 * in S. The second for when exec failed. */
CA_HIDDEN void ca_thread_pause(void);
CA_HIDDEN CA_SIGSAFE void ca_thread_resume(void);
/* Neither sampled nor delayed for a while: as if always in our own code. */
CA_HIDDEN void ca_thread_leave_alone(bool alone);
/* Keep our signal off while the thread is in a call that a handler would cut short, where ticks
 * may come in system calls. Returns whether it has to be undone. errno is kept. */
CA_HIDDEN bool ca_thread_hold(void);
CA_HIDDEN void ca_thread_release(bool held);
/* A longjmp has left the call that holds our signal off, perhaps. */
CA_HIDDEN CA_SIGSAFE void ca_thread_unhold(struct ca_thread *t);
/* We were switched off: the last ticks of all threads here, and no system call of ours from then on. */
CA_HIDDEN void ca_thread_wind_down_all(void);
/* At a tick after we were switched off: this thread's last one; the text is the program's again. */
CA_HIDDEN CA_SIGSAFE void ca_thread_wind_down(struct ca_thread *t);

#endif
