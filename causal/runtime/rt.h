/* The runtime's own view of itself: process-wide state, threads, and the calls between its
 * files. Everything runs in the host program's threads; nothing here is exported.
 *
 * Entry points are of three kinds, and each enters the guard first:
 *   handler.c  the tick handler, in a signal
 *   probe.c    hooks of patched code, anywhere in the program, vector registers unsaved
 *   wrap_*.c   functions that we interpose, in ordinary context
 * While the guard is held, the others return at once (a tick then counts as dropped). */
#ifndef CA_CAUSAL_RUNTIME_RT_H
#define CA_CAUSAL_RUNTIME_RT_H
#include "core/clock.h"
#include "core/rng.h"
#include "core/session.h"
#include "sampler/host.h"
#include "sampler/switches.h"
#include "sampler/tick.h"
#include "sampler/unwind.h"
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define CA_HIDDEN __attribute__((visibility("hidden")))
#define CA_EXPORT __attribute__((visibility("default")))

/* Our signal: a standard one, so that it never queues up, that nothing has used since
 * the 387 coprocessor's stack fault. */
#define CA_SIGNAL SIGSTKFLT

enum { CA_INSIDE = 16, CA_FRAMES = 32, CA_SAMPLE_FRAMES = 64 };

/* Life of a thread record. All transitions are in thread.c. */
enum ca_thread_state { CA_THREAD_NONE, CA_THREAD_LIVE, CA_THREAD_EXITING };

enum ca_wait {
	CA_WAIT_OTHERS,  /* for another thread or process of the session: owes nothing */
	CA_WAIT_EXTERNAL /* for the world outside, which cannot be slowed: owes p x S time */
};

/* One thread. Written by that thread and its handler only. */
struct ca_thread {
	/* hot: ledger */
	volatile int guard;      /* > 0: in our code */
	uint32_t number;         /* slot number */
	struct ca_slot *slot;
	uint64_t selection;      /* selection.seq that cursor and inside[] belong to */
	uint64_t experiment;     /* experiment.seq that owed belongs to */
	uint64_t cursor;         /* next log entry to read */
	uint64_t last;           /* ns; all before it is accounted for */
	uint64_t last_cpu;       /* ns of thread CPU time at `last`; only without a switch log */
	int64_t owed;            /* ns; below 0: paid ahead */
	uint64_t s_time;         /* ns of the experiment in which S was active, up to `last` */
	uint64_t sleep_for;      /* see ca_wait_sleep */
	uint64_t last_look;      /* cycle counter at the last meeting */
	uint32_t inside_count;   /* threads in S in our replica of the log, without us */
	uint32_t inside_more;    /* ... those that inside_slot has no room for */
	uint32_t inside_slot[CA_INSIDE];
	uint64_t inside_until[CA_INSIDE]; /* external wait: ns at which it stops to count as S */
	uint8_t inside_flag[CA_INSIDE]; /* 0 on a CPU, 1 waiting for others, 2 external wait */
	bool inside_me;
	const enum ca_wait *waiting; /* inside a wait of this kind: nothing is paid */
	uintptr_t waiting_sp;    /* the stack pointer in it; above: it was left by longjmp */
	/* where we are in S (exact) */
	uint32_t depth;          /* frames in S on our stack */
	uintptr_t frame[CA_FRAMES];
	uint64_t entered;
	uint64_t entered_cpu;
	bool waited;             /* blocked in a call we saw since we entered S */
	bool checked;            /* looked for frames that entered S before the sites were placed */
	/* sampling */
	bool sampled_in;         /* S is sampled, and the last look at our stack found it */
	uint64_t last_hit;
	uint64_t hit_cpu;        /* thread CPU time at the last sample */
	uint64_t ticks;
	bool alone;              /* the guard is up because of ca_thread_leave_alone */
	uintptr_t held_sp;       /* our signal is blocked by a wrapper with this frame; 0: it is not */
	/* cold */
	enum ca_thread_state state;
	pid_t tid;
	_Atomic int readers;     /* threads reading `switches` right now */
	struct ca_tick tick;
	uint64_t tick_period;    /* ns of CPU time */
	uint64_t tick_length;    /* ... as drawn around it ... */
	uint64_t tick_experiment; /* ... for this experiment */
	uint64_t tick_weight;    /* periods that a tick's sample stands for */
	uint32_t meets;          /* meetings and waits since the last tick */
	struct ca_rng rng;
	struct ca_switches switches;
	struct ca_stack stack;   /* scratch of the handler */
	_Alignas(64) char work_stack[32768]; /* the handler runs here: the program's own signal
					      * stacks are small (8 KiB in Rust and Go) */
	struct ca_event event[CA_SAMPLE_FRAMES]; /* ... too: the stack it runs on may be small */
};

/* The process. Written once in the constructor, except where said. */
struct ca_runtime {
	/* false: switched off, wrappers pass through. Alone on a page that becomes zeros in the
	 * child of any fork, also of one that libc knows nothing of */
	_Alignas(4096) _Atomic bool on;
	_Alignas(4096) struct ca_session *session; /* NULL: we are not active here */
	bool joined;                 /* we were on until this process was forked */
	bool sees_conductor;         /* its pid means something here */
	bool signal_taken;           /* CA_SIGNAL is ours, for good */
	char session_path[CA_PATH];
	char own_path[CA_PATH];      /* of this object, for LD_PRELOAD */
	uint32_t process;            /* index in session->process */
	uint32_t pid;
	uint64_t period;
	_Atomic(struct ca_thread *) by_slot[CA_MAX_THREADS]; /* threads of this process */
	uintptr_t own_low, own_high; /* our own text */
	bool patching;
};
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

extern CA_HIDDEN struct ca_runtime ca_rt;
extern CA_HIDDEN __thread struct ca_thread *ca_self __attribute__((tls_model("initial-exec")));

/* ---- start.c */
/* One line, then off for good: all debts forgiven, nothing delayed any more. */
CA_HIDDEN CA_SIGSAFE void ca_rt_off(const char *reason);
CA_HIDDEN void ca_rt_forked(void); /* in the child of a fork */
/* Join the run, once: in our constructor, or before another library's starts a thread. */
CA_HIDDEN void ca_rt_start(void);
/* Now and then, in a handler: is there still a run? */
CA_HIDDEN CA_SIGSAFE void ca_rt_tend(uint64_t now);
/* At a tick after we were switched off: this thread's last one; the text is the program's again. */
CA_HIDDEN CA_SIGSAFE void ca_rt_wind_down(struct ca_thread *t);
/* The conductor's heart has stopped: nothing may be delayed now. Switches us off when its
 * process is dead. */
CA_HIDDEN CA_SIGSAFE bool ca_rt_conductor_is_gone(uint64_t now);

/* ---- thread.c */
CA_HIDDEN void ca_thread_begin(void);  /* the calling thread joins; no-op without a free slot */
CA_HIDDEN void ca_thread_end(void);    /* ... leaves */
/* Ticks at the rate that the selection asks for: sampled S needs all of them; where S is
 * probed, they only carry what no meeting has paid, and a quarter of them do. */
CA_HIDDEN CA_SIGSAFE void ca_thread_adjust_ticks(struct ca_thread *t);
CA_HIDDEN void ca_thread_forget(void); /* after fork: the records of the parent's threads */
/* A thread that we were not told of, or that found no slot, makes itself known at a meeting.
 * NULL: it stays out. */
CA_HIDDEN struct ca_thread *ca_thread_late(void);
/* Around exec, which lets a pending signal of ours live on without its handler: no ticks, not
 * in S. The second for when exec failed. */
CA_HIDDEN void ca_thread_pause(void);
CA_HIDDEN void ca_thread_resume(void);
/* Neither sampled nor delayed for a while: as if always in our own code. */
CA_HIDDEN void ca_thread_leave_alone(bool alone);
/* cancel.c: the calling thread may from now on be cancelled anywhere, or no longer; before somebody
 * is cancelled; at each tick. */
CA_HIDDEN void ca_cancel_type(bool anywhere);
CA_HIDDEN void ca_cancel_before(pthread_t target);
CA_HIDDEN CA_SIGSAFE void ca_cancel_service(struct ca_thread *t);
/* Keep our signal off while the thread is in a call that a handler would cut short, where ticks
 * may come in system calls. Returns whether it has to be undone. errno is kept. */
CA_HIDDEN bool ca_thread_hold(void);
CA_HIDDEN void ca_thread_release(bool held);
/* A longjmp has left the call that holds our signal off, perhaps. */
CA_HIDDEN CA_SIGSAFE void ca_thread_unhold(struct ca_thread *t);

/* ---- ledger.c */
CA_HIDDEN CA_SIGSAFE void ca_ledger_reset(struct ca_thread *t, uint64_t now);
/* A new selection or experiment since the last look? */
CA_HIDDEN CA_SIGSAFE void ca_ledger_follow(struct ca_thread *t);
/* Bring the account up to `now`. wait: NULL: the time since the last look was spent
 * running; else how it was spent. */
CA_HIDDEN CA_SIGSAFE void ca_ledger_accrue(struct ca_thread *t, uint64_t now,
					   const enum ca_wait *wait);
/* Pay what is owed unless the thread is in S (then returns at once). */
CA_HIDDEN CA_SIGSAFE void ca_ledger_pay(struct ca_thread *t);
/* At the end of an external wait: pay by waiting on, which takes no CPU from others. A few small
 * debts are left. */
CA_HIDDEN CA_SIGSAFE void ca_ledger_wait_on(struct ca_thread *t);
CA_HIDDEN CA_SIGSAFE void ca_ledger_log(enum ca_log_type type, struct ca_thread *t, uint64_t time,
					uint64_t value);
/* An event for the timeline, if anybody wants one. With the guard held. */
CA_HIDDEN CA_SIGSAFE void ca_ledger_tell(struct ca_thread *t, enum ca_event_kind kind, enum ca_key key,
					 uint64_t time, uint64_t value);
/* Virtual time since the experiment began, up to `now`, ns. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_ledger_virtual(struct ca_thread *t, uint64_t now);
CA_HIDDEN CA_SIGSAFE bool ca_ledger_open(void); /* an experiment with speedup > 0 is open */

/* ---- probe.c */
CA_HIDDEN void ca_probe_init(void);
/* Once per selection: is the thread, with this stack, in S as far as its hooks know? It may have
 * been in it when the sites were placed. */
CA_HIDDEN CA_SIGSAFE void ca_probe_check(struct ca_thread *t, const struct ca_stack *stack);
/* With this stack pointer, has its outermost activation of S been left by other ways than exits? */
CA_HIDDEN CA_SIGSAFE bool ca_probe_is_over(const struct ca_thread *t, uintptr_t sp);
CA_HIDDEN CA_SIGSAFE void ca_probe_left(struct ca_thread *t); /* thread ends inside S */
CA_HIDDEN CA_SIGSAFE void ca_probe_service(void); /* carry out the conductor's patch request */
CA_HIDDEN void ca_probe_forked(void);

/* ---- handler.c */
CA_HIDDEN bool ca_handler_install(void);
/* Does the stack hold a frame of S? *outermost: the number of the outermost one. */
CA_HIDDEN CA_SIGSAFE bool ca_handler_in_selection(const struct ca_stack *stack, unsigned *outermost);
/* A sample of the code that blocked, taken by the wrapper of a wait of `ns`. */
CA_HIDDEN void ca_handler_off_cpu(struct ca_thread *t, uint64_t ns);
/* Walk the calling thread's own stack into t->stack. */
CA_HIDDEN void ca_handler_stack_here(struct ca_thread *t);

/* ---- points.c */
CA_HIDDEN CA_SIGSAFE void ca_points_patch_loaded(void);
/* At a tick: look for libraries that have come or gone. lost: the stack led out of what is known. */
CA_HIDDEN CA_SIGSAFE void ca_points_follow(uint64_t now, bool lost);
/* Visits by threads that have no slot (yet, or any more) go to the points as a whole. */
CA_HIDDEN CA_SIGSAFE void ca_points_collect(void);
/* A library is being opened or has been closed. */
CA_HIDDEN void ca_points_libraries_change(void);
CA_HIDDEN struct ca_progress_point *ca_points_get(enum ca_point_kind kind, const char *name);

/* ---- wanted.c: the points of the command line */
struct ca_loaded;
struct ca_index;
/* Place the sites that the conductor has published for a module. */
CA_HIDDEN CA_SIGSAFE void ca_requested_place(const struct ca_loaded *loaded, const struct ca_index *index);
/* Before main: give the conductor time for the libraries in which points may lie. */
CA_HIDDEN void ca_requested_wait(void);

/* ---- wait.c: what the wrappers call */
struct ca_waiting {
	struct ca_thread *thread; /* NULL: nothing to do at the end */
	uint64_t since;
	enum ca_wait kind;
	int fd;          /* the descriptor waited for, or -1 */
	bool open;       /* an experiment was open at the start */
	bool in_s;       /* inside S, known exactly */
	bool sampled_s;  /* the blocking call itself is in S */
	const enum ca_wait *outer; /* the wait around this one */
	uintptr_t sp, outer_sp;
	uint64_t until;  /* a sleep: when it should be over, ns; else UINT64_MAX */
};
/* The wait that begins next is a sleep of this length: what it takes longer is the kernel's, and
 * would not be shorter if the code slept less. */
CA_HIDDEN void ca_wait_sleep(uint64_t ns);
/* About to meet other threads: pay first. Cheap when there is nothing to do. */
CA_HIDDEN void ca_meet(void);
/* About to block (pays first), and after it; errno is kept. fd >= 0: what it is decides
 * the kind, EXTERNAL being the guess. */
CA_HIDDEN struct ca_waiting ca_wait_begin(enum ca_wait kind, int fd);
CA_HIDDEN void ca_wait_end(struct ca_waiting *w);
/* How waiting on this descriptor counts. */
CA_HIDDEN enum ca_wait ca_wait_kind_of_fd(int fd);

/* ---- wrap_signal.c: the real one, for our own use */
CA_HIDDEN int ca_real_sigaction(int signal, const struct sigaction *action, struct sigaction *old);
/* Take CA_SIGNAL for good; the program's action for it lives on as a shadow. */
CA_HIDDEN bool ca_signal_take(const struct sigaction *action);
/* CA_SIGNAL came, and not from us: do what the program wants done. In the handler. */
CA_HIDDEN CA_SIGSAFE void ca_signal_forward(siginfo_t *info, void *context);

#endif
