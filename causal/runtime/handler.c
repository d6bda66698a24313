/* The tick handler: sample the stack, count hits, follow the ledger, pay.
 *
 * Signal context, on any thread of the program, at any instruction. Works on memory that
 * the thread's record holds; no lock, no malloc, no loader. */
#include "causal/runtime/rt.h"
#include "causal/runtime/patch.h"
#include "sampler/modules.h"
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	TEND = 32,      /* ticks between two looks whether there is still a run */
	HEAVIEST = 1000, /* periods that one sample may stand for ... */
	LONGEST_HIT = 8  /* ... and one in S */
};

static void drop(struct ca_thread *t, enum ca_drop why)
{
	atomic_fetch_add_explicit(&t->slot->drop[why], 1, memory_order_relaxed);
}

/* ---- the selection -----------------------------------------------------------------*/
static bool in_ranges(const struct ca_selection *sel, ca_place place)
{
	uint32_t module = CA_PLACE_MODULE(place), low = 0, high = sel->ranges;
	uint64_t address = CA_PLACE_OFFSET(place);

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		const struct ca_range *r = &sel->range[middle];

		if (r->module < module || (r->module == module && r->high <= address))
			low = middle + 1;
		else
			high = middle;
	}
	return low < sel->ranges && sel->range[low].module == module &&
	       sel->range[low].low <= address;
}

CA_SIGSAFE bool ca_handler_in_selection(const struct ca_stack *stack, unsigned *outermost)
{
	const struct ca_selection *sel = &ca_rt.session->selection;
	bool found = false;
	uint64_t seq;

	if (!ca_selection_read(sel, &seq))
		return false;
	for (unsigned i = 0; i < stack->depth; i++)
		if (in_ranges(sel, stack->place[i])) {
			found = true;
			*outermost = i;
		}
	return found && ca_selection_is_still(sel, seq);
}

/* ---- samples ------------------------------------------------------------------------*/
/* weight: periods that it stands for; waiting: the thread was not on a CPU. */
static void push_sample(struct ca_thread *t, uint64_t now, uint64_t weight, bool waiting)
{
	struct ca_event *e = t->event;
	unsigned n = t->stack.depth < CA_SAMPLE_FRAMES ? t->stack.depth : CA_SAMPLE_FRAMES;
	uint16_t flags = (uint16_t)((weight < HEAVIEST ? weight : HEAVIEST) | (waiting ? CA_SAMPLE_WAITING : 0));

	if (!n) {
		drop(t, CA_DROP_NO_MODULE);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		e[i].time = now;
		e[i].kind = CA_POINT;
		e[i].key = i ? CA_KEY_FRAME : CA_KEY_SAMPLE;
		e[i].flags = i ? 0 : flags;
		e[i].value = t->stack.place[i];
	}
	if (!t->stack.complete)
		drop(t, CA_DROP_UNWIND);
	if (!ca_ring_push(&t->slot->ring, e, n))
		drop(t, CA_DROP_RING_FULL);
}

/* How many threads are in S at this moment: a hit stands for its share of the union. */
static uint64_t threads_in_s(const struct ca_thread *t, uint64_t now)
{
	struct ca_session *s = ca_rt.session;
	uint32_t used = atomic_load_explicit(&s->slots_used, memory_order_relaxed);
	uint64_t n = 1, since = now - ca_rt.period - ca_rt.period / 2;

	for (uint32_t i = 0; i < used; i++)
		if (i != t->number && atomic_load_explicit(&s->slot[i].state, memory_order_relaxed) == CA_SLOT_LIVE &&
		    atomic_load_explicit(&s->slot[i].last_hit, memory_order_relaxed) > since)
			n++;
	return n;
}

/* perf's ticks come in user code only: CPU time between two of them that is no tick's was spent in
 * the kernel, nobody knows on whose account. It is not S: where S is sampled because it is entered
 * too often, the calls are mostly made by other functions. */
static uint64_t hit_weight(const struct ca_thread *t, uint64_t cpu)
{
	uint64_t most = t->tick.backend == CA_BACKEND_PERF ? t->tick_length : LONGEST_HIT * ca_rt.period;

	return cpu < most ? cpu : most;
}

static void sampled_selection(struct ca_thread *t, uint64_t now)
{
	uint64_t cpu = ca_clock_thread_cpu(), weight;
	unsigned outermost;

	weight = hit_weight(t, cpu - t->hit_cpu);
	t->hit_cpu = cpu;
	t->sampled_in = ca_handler_in_selection(&t->stack, &outermost);
	if (!t->sampled_in) {
		atomic_store_explicit(&t->slot->last_hit, 0, memory_order_relaxed);
		return;
	}
	t->last_hit = now;
	ca_ledger_log(CA_LOG_HIT, t, now, weight / threads_in_s(t, now));
	ca_ledger_tell(t, CA_POINT, CA_KEY_HIT, now, weight);
	atomic_store_explicit(&t->slot->last_hit, now, memory_order_relaxed);
}

static void tick(struct ca_thread *t, const void *context)
{
	struct ca_selection *sel = &ca_rt.session->selection;
	uint64_t now = ca_clock_now(), paid = atomic_load_explicit(&t->slot->paid_total, memory_order_relaxed);
	uintptr_t all[16];
	struct ca_registers r;
	bool walked = false;

	t->ticks++;
	atomic_fetch_add_explicit(&t->slot->samples, 1, memory_order_relaxed);
	ca_unwind_registers(&r, all, context);
	if (ca_probe_is_over(t, r.sp)) /* left by longjmp or an exception */
		ca_probe_left(t);
	if (t->waiting && r.sp > t->waiting_sp && (r.pc < ca_rt.own_low || r.pc >= ca_rt.own_high))
		t->waiting = NULL; /* the same */
	if (r.pc >= ca_rt.own_low && r.pc < ca_rt.own_high) {
		drop(t, CA_DROP_OWN_CODE);
	} else {
		ca_unwind(&r, false, &t->stack);
		walked = true;
		ca_points_follow(now, !t->stack.depth ||
				 (!t->stack.complete && t->stack.depth < CA_UNWIND_DEPTH));
		push_sample(t, now, t->tick_weight, false);
		if (!sel->exact && ca_ledger_open())
			sampled_selection(t, now);
	}
	if (t->ticks % TEND == 0) {
		ca_rt_tend(now);
		ca_points_collect();
	}
	ca_probe_service();
	ca_cancel_service(t);
	ca_thread_adjust_ticks(t);
	ca_ledger_accrue(t, now, t->waiting);
	if (walked)
		ca_probe_check(t, &t->stack);
	if (!t->waiting)
		ca_ledger_pay(t);
	t->last_look = ca_cpu_cycles();
	paid = atomic_load_explicit(&t->slot->paid_total, memory_order_relaxed) - paid;
	atomic_fetch_add_explicit(&t->slot->handler_ns, ca_clock_now() - now - paid,
				  memory_order_relaxed);
}

/* Call on another stack. No signal that uses an alternate stack can come in meanwhile: the
 * handler's mask keeps them off, but for those that end the program. */
static void call_on(char *top, void (*function)(struct ca_thread *, const void *), struct ca_thread *t,
		    const void *context)
{
#if defined(__x86_64__)
	__asm__ volatile("movq %%rsp, %%rbx\n\t"
			 "movq %[top], %%rsp\n\t"
			 "call *%[function]\n\t"
			 "movq %%rbx, %%rsp"
			 : "+D"(t), "+S"(context)
			 : [top] "r"(top), [function] "r"(function)
			 : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");
#else
	(void)top;
	function(t, context);
#endif
}

static void handler(int signal, siginfo_t *info, void *context)
{
	struct ca_thread *t = ca_self;
	int saved = errno;

	(void)signal;
	if (!ca_tick_is_ours(info)) {
		ca_signal_forward(info, context);
	} else if (!t) {
		; /* a thread that comes or goes */
	} else if (!atomic_load_explicit(&ca_rt.on, memory_order_relaxed)) {
		ca_rt_wind_down(t); /* at full speed from here on */
	} else if (t->guard) {
		drop(t, CA_DROP_REENTRY);
	} else {
		t->guard++;
		call_on(t->work_stack + sizeof t->work_stack, tick, t, context);
		t->guard--;
	}
	errno = saved;
}

bool ca_handler_install(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
	/* a handler of the program's on top of ours could leave it by longjmp, with our guard up;
	 * what a fault or trap raises must get through */
	memset(&action.sa_mask, 0xff, sizeof action.sa_mask); /* libc's own for cancellation, too */
	sigdelset(&action.sa_mask, SIGSEGV);
	sigdelset(&action.sa_mask, SIGBUS);
	sigdelset(&action.sa_mask, SIGFPE);
	sigdelset(&action.sa_mask, SIGILL);
	sigdelset(&action.sa_mask, SIGTRAP);
	sigdelset(&action.sa_mask, SIGABRT);
	return ca_signal_take(&action);
}

/* ---- waits -----------------------------------------------------------------------------*/
void ca_handler_stack_here(struct ca_thread *t)
{
	struct ca_registers r = { 0 };

	r.fp = (uintptr_t)__builtin_frame_address(0);
#if defined(__x86_64__)
	__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"
			 : "=r"(r.pc), "=r"(r.sp), "=r"(r.fp));
#endif
	ca_unwind(&r, false, &t->stack);
}

void ca_handler_off_cpu(struct ca_thread *t, uint64_t ns)
{
	uint64_t weight = ns / ca_rt.period;

	if (!weight)
		weight = ca_cpu_cycles() % ca_rt.period < ns; /* in proportion to its length */
	if (!weight)
		return;
	ca_handler_stack_here(t);
	push_sample(t, ca_clock_now(), weight, true);
}
