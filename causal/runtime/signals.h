/* SPDX-License-Identifier: MIT */
/* The signals that are ours. */
#ifndef CA_CAUSAL_RUNTIME_SIGNALS_H
#define CA_CAUSAL_RUNTIME_SIGNALS_H
#include "causal/runtime/rt.h"
#include <signal.h>

/* Take CA_SIGNAL for good; the program's action for it lives on as a shadow. */
CA_HIDDEN bool ca_signals_take(void (*handler)(int, siginfo_t *, void *), uint64_t mask);
/* CA_SIGNAL came, and not from us: do what the program wants done. In the handler. */
CA_HIDDEN CA_SIGSAFE void ca_signals_forward(siginfo_t *info, void *context);
/* Masks that the program sets: ours are never blocked, except in a wait that would otherwise
 * end with EINTR. NULL stays NULL. */
CA_HIDDEN const sigset_t *ca_signals_open_mask(const sigset_t *set, sigset_t *copy);
CA_HIDDEN const sigset_t *ca_signals_wait_mask(const sigset_t *set, sigset_t *copy);
/* Of a set of signals that the program wants to be given by other ways than a handler, which is noted: where ticks
 * would come to it that way, without ours. */
CA_HIDDEN const sigset_t *ca_signals_without_ours(const sigset_t *set, sigset_t *copy);
/* Has the calling thread blocked our signal, and does its process take it in such a way? */
CA_HIDDEN CA_SIGSAFE bool ca_signals_awaited(void);
/* What the program believes: the thread's mask is as it has set it. After a call that has changed, or
 * asked for, the mask: notes what it wanted of ours, and puts into *old what it wanted before. Returns
 * as ca_signals_reopen. */
CA_HIDDEN bool ca_signals_note_mask(int how, const sigset_t *set, sigset_t *old);
/* ... of a thread that begins: it has inherited these, as bits. */
CA_HIDDEN void ca_signals_inherit(uint64_t blocked);
/* Of ours, those that it takes for blocked. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_signals_wanted(void);
/* ... where a handler of ours came in, at that frame. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_signals_wanted_at(uintptr_t frame);
/* The program's handler is to run with these blocked; what it had asked for before goes to *old. */
CA_HIDDEN void ca_signals_note_action(int signal, const struct sigaction *set, struct sigaction *old);
/* One of ours was sent by somebody, to a thread that takes it for blocked: it is sent again, and
 * blocked until it is taken or let in. In a handler. False: it does not. */
CA_HIDDEN CA_SIGSAFE bool ca_signals_keep(int signal, siginfo_t *info, void *context);
CA_HIDDEN CA_SIGSAFE uint64_t ca_signals_kept(void);
/* A handler of the program's for a signal that stays open begins: with these blocked, as far as they are ours. frame:
 * where, on its stack. And ends: returns those that stay really blocked until the kernel goes back to the mask in
 * context. In a handler. */
CA_HIDDEN CA_SIGSAFE void ca_signals_handler_begins(uint64_t blocked, uintptr_t frame);
CA_HIDDEN CA_SIGSAFE uint64_t ca_signals_handler_ends(uintptr_t frame, const void *context);
/* A jump is to lead to a frame with this stack pointer, out of handlers maybe. mask: the one that the kernel is given
 * then, and what they have blocked is not any more; NULL: it is not changed. */
CA_HIDDEN void ca_signals_jump(uintptr_t sp, const void *mask);
/* What was kept, and has been taken since, is blocked no longer. True: CA_SIGNAL is among it, and the
 * thread may have its ticks again. */
CA_HIDDEN CA_SIGSAFE bool ca_signals_reopen(void);
/* The program's sigaction for our signal: remembered and answered here. False: for another one. */
CA_HIDDEN bool ca_signals_shadow(int signal, const struct sigaction *set, struct sigaction *old);

#endif
