/* SPDX-License-Identifier: MIT */
/* Threads that may be cancelled at any instruction. If that hits within a trampoline or on a stack
 * of ours, nothing can unwind, so they are left alone: neither sampled nor delayed.
 *
 * But for the main thread: programs make it cancellable like the rest and never cancel it
 * (redis-server does, for the case that it crashes), and it may be all that there is to profile. It
 * is left alone only from when somebody is about to cancel it.
 *
 * The wrappers' context, but for ca_cancel_service. */
#include "causal/runtime/cancel.h"
#include "causal/runtime/thread.h"
#include "core/sys.h"

enum {
	LOOKS = 40,  /* for the main thread to be left alone ... */
	NAP = 500000 /* ... and ns between them: it may be blocked, where it is in no trampoline */
};

static pthread_t main_thread;
static _Atomic bool main_anywhere; /* released after main_thread */
static _Atomic bool main_doomed, main_alone;

void ca_cancel_type(bool anywhere)
{
	struct ca_thread *t = ca_self;

	if (!t || (uint32_t)t->tid != ca_rt.pid) {
		ca_thread_leave_alone(anywhere);
		return;
	}
	if (!anywhere)
		ca_thread_leave_alone(false);
	main_thread = pthread_self();
	atomic_store_explicit(&main_anywhere, anywhere, memory_order_release);
}

CA_SIGSAFE void ca_cancel_service(struct ca_thread *t)
{
	if (!atomic_load_explicit(&main_doomed, memory_order_relaxed) || (uint32_t)t->tid != ca_rt.pid)
		return;
	ca_thread_leave_alone(true);
	atomic_store_explicit(&main_alone, true, memory_order_relaxed);
}

void ca_cancel_before(pthread_t target)
{
	struct timespec nap = { 0, NAP };

	/* acquire: pairs with the release above */
	if (!atomic_load_explicit(&main_anywhere, memory_order_acquire) ||
	    !pthread_equal(target, main_thread))
		return;
	atomic_store_explicit(&main_doomed, true, memory_order_relaxed);
	if (ca_self && pthread_equal(target, pthread_self()))
		ca_cancel_service(ca_self);
	for (int i = 0; i < LOOKS && !atomic_load_explicit(&main_alone, memory_order_relaxed); i++)
		ca_sys(SYS_nanosleep, (long)(intptr_t)&nap, 0, 0, 0, 0, 0);
}
