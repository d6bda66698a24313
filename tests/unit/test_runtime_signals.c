/* SPDX-License-Identifier: MIT */
/* causal/runtime/wrap_signal.c: the program does as it likes with its signals and does not notice
 * ours. And cancel.c, which knows who must be left alone. What the kernel would be told is noted by
 * stand-ins for the real functions. */
#include "causal/runtime/patch.h"
#include "causal/runtime/wrap.h"
#include "core/sys.h"
#include "tests/unit/runtime.h"
#include <errno.h>
#include <sys/resource.h>
#include <ucontext.h>

enum { RESULT = 4711 };

/* ---- what stands in -------------------------------------------------------------------------------- */
/* Not static: see test_runtime_wrappers.c. */
struct sigaction kernel_action;
int kernel_signal, kernel_how, taken_signal, answer;
unsigned kernel_calls, holds, begins, unholds;
sigset_t kernel_set;
bool kernel_had_set;
int alone;

static int real_sigaction(int number, const struct sigaction *set, struct sigaction *old)
{
	kernel_calls++;
	kernel_signal = number;
	if (set)
		kernel_action = *set;
	if (old) {
		memset(old, 0, sizeof *old);
		old->sa_handler = SIG_IGN;
	}
	return answer;
}

static int real_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	kernel_calls++;
	kernel_how = how;
	kernel_had_set = set != NULL;
	if (set)
		kernel_set = *set;
	if (old)
		sigemptyset(old);
	return RESULT;
}

static int real_wait(const sigset_t *set)
{
	real_sigmask(-1, set, NULL);
	errno = 42;
	return RESULT;
}

static int real_wait_2(const sigset_t *set, void *out)
{
	if (out)
		memset(out, 1, sizeof(int));
	return real_wait(set);
}

static int real_timed(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	assert_int_equal(timeout->tv_nsec, 17);
	return real_wait_2(set, info);
}

static int real_pause(void)
{
	return real_wait(NULL);
}

static int real_signalfd(int fd, const sigset_t *set, int flags)
{
	assert_int_equal(fd, 5);
	assert_int_equal(flags, 6);
	return real_wait(set);
}

static __sighandler_t real_signal(int number, __sighandler_t handler)
{
	(void)handler;
	kernel_calls++;
	kernel_signal = number;
	return SIG_IGN;
}

bool ca_patch_take_signal(int number, void (*handler)(int, siginfo_t *, void *), int flags, uint64_t mask,
			  struct sigaction *was)
{
	struct sigaction set = { .sa_sigaction = handler };

	assert_int_equal(flags, 0);
	assert_int_equal(mask, 5);
	return real_sigaction(number, &set, was) == 0;
}

int ca_patch_fault_action(int number, struct sigaction *set, struct sigaction *old,
			  int (*install)(int, const struct sigaction *, struct sigaction *))
{
	return install(number, set, old);
}

bool ca_patch_sigaction(int number, const struct sigaction *set, struct sigaction *old)
{
	(void)set;
	if (number != taken_signal)
		return false;
	if (old)
		old->sa_handler = SIG_IGN;
	return true;
}

struct ca_waiting ca_wait_begin_from(enum ca_wait kind, int fd, uintptr_t site)
{
	(void)site;
	assert_int_equal(kind, CA_WAIT_OTHERS);
	assert_int_equal(fd, -1);
	begins += 1;
	return (struct ca_waiting){ .thread = me };
}

void ca_wait_end(struct ca_waiting *w)
{
	assert_ptr_equal(w->thread, me);
	begins += 100;
}

bool ca_thread_hold(void)
{
	holds += 1;
	return true;
}

void ca_thread_release(bool held)
{
	assert_true(held);
	holds += 100;
}

void ca_thread_unhold(struct ca_thread *t)
{
	t->held_sp = 0;
	unholds++;
}

void ca_thread_resume(void)
{
}

void ca_thread_leave_alone(bool now)
{
	alone = now;
}

/* ---- helpers ----------------------------------------------------------------------------------------- */
static struct ca_real all_real;

static int set_up(void **state)
{
	if (rt_set_up(state))
		return -1;
	all_real = ca_real;
	taken_signal = answer = 0;
	alone = -1;
	ca_rt.patching = true;
	return 0;
}

/* By each test itself: cmocka sets signals, too. */
static void stand_in(void)
{
	ca_real.sigaction = real_sigaction;
	ca_real.sigprocmask = ca_real.pthread_sigmask = real_sigmask;
	ca_real.sigsuspend = real_wait;
	ca_real.sigwait = (int (*)(const sigset_t *, int *))(void *)real_wait_2;
	ca_real.sigwaitinfo = (int (*)(const sigset_t *, siginfo_t *))(void *)real_wait_2;
	ca_real.sigtimedwait = real_timed;
	ca_real.pause = real_pause;
	ca_real.signalfd = real_signalfd;
	ca_real.signal = real_signal;
	memset(&kernel_action, 0, sizeof kernel_action);
	kernel_calls = holds = begins = unholds = 0;
}

static int tear_down(void **state)
{
	ca_real = all_real;
	return rt_tear_down(state);
}

static void handler_1(int number)
{
	(void)number;
}

static void handler_2(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
}

static struct sigaction action_of(__sighandler_t handler)
{
	struct sigaction a;

	memset(&a, 0, sizeof a);
	a.sa_handler = handler;
	sigfillset(&a.sa_mask);
	return a;
}

static bool has(const sigset_t *set, int number)
{
	return sigismember(set, number) == 1;
}

/* ---- actions ------------------------------------------------------------------------------------------ */
static void take(void)
{
	assert_true(ca_signals_take(handler_2, 5));
	assert_int_equal(kernel_signal, CA_SIGNAL);
	assert_true(kernel_action.sa_sigaction == handler_2);
	assert_true(ca_rt.signal_taken);
	kernel_calls = 0;
}

static void our_signal_is_a_shadow(void **state)
{
	struct sigaction set = action_of(handler_1), old;

	(void)state;
	stand_in();
	assert_int_equal(sigaction(CA_SIGNAL, &set, &old), 0); /* it is not ours yet */
	assert_int_equal(kernel_calls, 1);
	take();
	memset(&old, 0, sizeof old);
	assert_int_equal(sigaction(CA_SIGNAL, NULL, &old), 0);
	assert_true(old.sa_handler == SIG_IGN); /* as it was found */
	assert_int_equal(sigaction(CA_SIGNAL, &set, &old), 0);
	assert_true(old.sa_handler == SIG_IGN);
	assert_int_equal(sigaction(CA_SIGNAL, NULL, &old), 0);
	assert_true(old.sa_handler == handler_1);
	assert_int_equal(sigaction(CA_SIGNAL, NULL, NULL), 0);
	assert_true(signal(CA_SIGNAL, SIG_DFL) == handler_1);
	assert_int_equal(sigaction(CA_SIGNAL, NULL, &old), 0);
	assert_true(old.sa_handler == SIG_DFL);
	assert_int_equal(old.sa_flags, SA_RESTART);
	assert_int_equal(kernel_calls, 0);
	answer = -1;
	assert_false(ca_signals_take(handler_2, 5));
}

static void other_signals(void **state)
{
	struct sigaction set = action_of(handler_1), old;

	(void)state;
	stand_in();
	take();
	assert_int_equal(sigaction(SIGUSR1, &set, &old), 0);
	assert_int_equal(kernel_signal, SIGUSR1);
	assert_true(kernel_action.sa_handler == handler_1);
	assert_true(old.sa_handler == SIG_IGN);
	/* its handler must not keep ours off, nor the traps of patched code; one on a stack of its own
	 * shall not have ours on top */
	assert_false(has(&kernel_action.sa_mask, CA_SIGNAL) || has(&kernel_action.sa_mask, SIGTRAP) ||
		     has(&kernel_action.sa_mask, SIGILL));
	assert_true(has(&kernel_action.sa_mask, SIGUSR2));
	assert_true(has(&set.sa_mask, CA_SIGNAL)); /* the program's own is as it was */
	ca_rt.patching = false;
	sigaction(SIGUSR1, &set, NULL);
	assert_true(has(&kernel_action.sa_mask, SIGTRAP));
	assert_false(has(&kernel_action.sa_mask, CA_SIGNAL));
	atomic_store(&ca_rt.on, false);
	sigaction(SIGUSR1, &set, NULL);
	assert_true(has(&kernel_action.sa_mask, CA_SIGNAL));
	answer = -1;
	assert_int_equal(sigaction(SIGUSR1, &set, NULL), -1);
	kernel_calls = 0;
	taken_signal = SIGTRAP; /* by patched code */
	assert_int_equal(sigaction(SIGTRAP, &set, &old), 0);
	assert_int_equal(kernel_calls, 0);
	assert_true(signal(SIGTRAP, handler_1) == SIG_IGN);
	assert_int_equal(kernel_calls, 0);
	assert_true(signal(SIGILL, handler_1) == SIG_ERR); /* as the kernel answers */
	assert_int_equal(kernel_calls, 1);
	assert_true(signal(SIGUSR1, handler_1) == SIG_IGN);
	assert_int_equal(kernel_signal, SIGUSR1);
}

/* ---- masks ----------------------------------------------------------------------------------------------- */
static void masks(void **state)
{
	int (*const set_mask[])(int, const sigset_t *, sigset_t *) = { sigprocmask, pthread_sigmask };
	sigset_t full, old;

	(void)state;
	stand_in();
	sigfillset(&full);
	for (unsigned i = 0; i < CA_COUNT(set_mask); i++) {
		for (int how = SIG_BLOCK; how <= SIG_SETMASK; how++) {
			sigfillset(&old);
			assert_int_equal(set_mask[i](how, &full, &old), RESULT);
			assert_int_equal(kernel_how, how);
			assert_false(has(&old, SIGUSR1));
			assert_true(has(&kernel_set, SIGUSR1));
			assert_int_equal(has(&kernel_set, CA_SIGNAL), how == SIG_UNBLOCK);
			assert_int_equal(has(&kernel_set, SIGTRAP), how == SIG_UNBLOCK);
			assert_int_equal(has(&kernel_set, SIGILL), how == SIG_UNBLOCK);
		}
		set_mask[i](SIG_SETMASK, NULL, &old);
		assert_false(kernel_had_set);
		ca_rt.patching = false;
		set_mask[i](SIG_BLOCK, &full, NULL);
		assert_true(has(&kernel_set, SIGTRAP));
		assert_false(has(&kernel_set, CA_SIGNAL));
		atomic_store(&ca_rt.on, false);
		set_mask[i](SIG_BLOCK, &full, NULL);
		assert_true(has(&kernel_set, CA_SIGNAL));
		atomic_store(&ca_rt.on, true);
		ca_rt.patching = true;
		/* what a longjmp has left blocked */
		assert_int_equal(unholds, 2 * i);
		me->held_sp = 1;
		set_mask[i](SIG_BLOCK, &full, NULL);
		assert_int_equal(unholds, 2 * i + 1);
		set_mask[i](SIG_BLOCK, &full, NULL);
		me->held_sp = 1;
		sigaction(SIGUSR1, NULL, NULL);
		assert_int_equal(unholds, 2 * i + 2);
	}
	assert_true(has(&full, CA_SIGNAL));
}

static void waits_for_signals(void **state)
{
	const struct timespec timeout = { 0, 17 };
	sigset_t full, none;
	int number = 0;
	siginfo_t info;

	(void)state;
	stand_in();
	sigfillset(&full);
	sigemptyset(&none);
	me->tick.backend = CA_BACKEND_PERF; /* its ticks do not come in system calls */
	sigwait(&full, &number);
	assert_true(has(&kernel_set, CA_SIGNAL));
	me->tick.backend = CA_BACKEND_TIMER;
	for (unsigned i = 0; i < 6; i++) {
		begins = holds = 0;
		kernel_had_set = false;
		errno = 5;
		assert_int_equal(i == 0   ? sigwait(&full, &number)
				 : i == 1 ? sigwaitinfo(&full, &info)
				 : i == 2 ? sigtimedwait(&full, &info, &timeout)
				 : i == 3 ? sigsuspend(&none)
				 : i == 4 ? pause()
					  : signalfd(5, &full, 6),
				 RESULT);
		assert_int_equal(errno, 42);
		assert_int_equal(begins, i == 5 ? 0 : 101);
		assert_int_equal(holds, i == 3 || i == 5 ? 0 : 101);
		assert_int_equal(kernel_had_set, i != 4);
		if (i == 3) /* ours would end it */
			assert_true(has(&kernel_set, CA_SIGNAL) && !has(&kernel_set, SIGUSR1));
		else if (i != 4)
			assert_true(!has(&kernel_set, CA_SIGNAL) && has(&kernel_set, SIGUSR1));
	}
	assert_int_equal(number, 0x01010101);
	sigaddset(&none, SIGUSR1);
	sigsuspend(&none);
	assert_true(has(&kernel_set, SIGUSR1) && has(&kernel_set, CA_SIGNAL));
	assert_false(has(&none, CA_SIGNAL));
	sigsuspend(&full); /* a trap must come through all the same */
	assert_false(has(&kernel_set, SIGTRAP) || has(&kernel_set, SIGILL));
	assert_true(has(&full, SIGTRAP));
	atomic_store(&ca_rt.on, false);
	sigsuspend(&none);
	assert_false(has(&kernel_set, CA_SIGNAL));
	sigwait(&full, &number);
	assert_true(has(&kernel_set, CA_SIGNAL));
}

/* ---- our signal, sent by somebody else ------------------------------------------------------------------- */
int handled;
static siginfo_t *handled_info;
static void *handled_context;
uint64_t mask_in_handler;

static void plain(int number)
{
	handled = number;
	mask_in_handler = ca_sys_sigmask(SIG_BLOCK, 0);
}

static void with_info(int number, siginfo_t *info, void *context)
{
	handled = number;
	handled_info = info;
	handled_context = context;
}

static void forwarded(void **state)
{
	struct sigaction set;
	siginfo_t info;
	ucontext_t context;
	uint64_t before = ca_sys_sigmask(SIG_BLOCK, 0);

	(void)state;
	stand_in();
	memset(&context, 0, sizeof context);
	sigaddset(&context.uc_sigmask, SIGUSR2);
	take();
	set = action_of(SIG_IGN);
	sigaction(CA_SIGNAL, &set, NULL);
	handled = 0;
	ca_signals_forward(&info, &context);
	assert_int_equal(handled, 0);
	set = action_of(SIG_DFL);
	sigaction(CA_SIGNAL, &set, NULL);
	ca_signals_forward(&info, &context); /* it is ignored where nobody handles it */
	assert_int_equal(handled, 0);
	set = action_of(plain);
	sigemptyset(&set.sa_mask);
	sigaddset(&set.sa_mask, SIGUSR1);
	sigaddset(&set.sa_mask, SIGTRAP);
	sigaction(CA_SIGNAL, &set, NULL);
	ca_signals_forward(&info, &context);
	assert_int_equal(handled, CA_SIGNAL);
	assert_int_equal(mask_in_handler,
			 CA_SYS_SIGNAL(SIGUSR1) | CA_SYS_SIGNAL(SIGUSR2) | CA_SYS_SIGNAL(CA_SIGNAL));
	assert_int_equal(ca_sys_sigmask(SIG_BLOCK, 0), before);
	set.sa_flags = SA_SIGINFO;
	set.sa_sigaction = with_info;
	sigaction(CA_SIGNAL, &set, NULL);
	ca_signals_forward(&info, &context);
	assert_ptr_equal(handled_info, &info);
	assert_ptr_equal(handled_context, &context);
	sigaction(CA_SIGNAL, NULL, &set);
	assert_true(set.sa_sigaction == with_info);
	set.sa_flags |= (int)SA_RESETHAND;
	sigaction(CA_SIGNAL, &set, NULL);
	ca_signals_forward(&info, &context);
	sigaction(CA_SIGNAL, NULL, &set);
	assert_true(set.sa_handler == SIG_DFL);
}

/* ---- cancellation ------------------------------------------------------------------------------------------ */
static void *other_thread(void *unused)
{
	ca_self = &thread[1];
	ca_self->tid = 1;
	ca_cancel_type(true);
	ca_cancel_service(ca_self); /* the main thread's business */
	return unused;
}

static void *cancel_main(void *main_thread)
{
	uint64_t *took = main_thread, before = ca_clock_now();

	ca_cancel_before((pthread_t)*took);
	*took = ca_clock_now() - before;
	return NULL;
}

static void who_may_be_cancelled(void **state)
{
	uint64_t took = (uint64_t)pthread_self();
	pthread_t id;

	(void)state;
	stand_in();
	assert_int_equal(ca_real.pthread_create(&id, NULL, other_thread, NULL), 0);
	assert_int_equal(ca_real.pthread_join(id, NULL), 0);
	assert_int_equal(alone, 1); /* at once */
	alone = -1;
	me->tid = getpid();
	ca_cancel_type(true); /* the main thread: only when somebody is about to */
	ca_cancel_service(me);
	assert_int_equal(alone, -1);
	ca_cancel_type(false);
	assert_int_equal(alone, 0);
	ca_cancel_before(pthread_self()); /* it is not cancelled anywhere */
	assert_int_equal(alone, 0);
	ca_cancel_type(true);
	ca_cancel_before(id); /* another one is */
	assert_int_equal(alone, 0);
	ca_cancel_service(me);
	assert_int_equal(alone, 0);
	/* whoever does it gives the main thread time for a tick, but not for ever */
	assert_int_equal(ca_real.pthread_create(&id, NULL, cancel_main, &took), 0);
	assert_int_equal(ca_real.pthread_join(id, NULL), 0);
	assert_in_range(took, 15000000, UINT64_C(60000000000));
	ca_cancel_before(pthread_self());
	assert_int_equal(alone, 1);
	alone = -1;
	ca_cancel_service(&thread[1]);
	assert_int_equal(alone, -1);
	ca_cancel_service(me); /* at each tick from now on */
	assert_int_equal(alone, 1);
	alone = -1;
	ca_self = NULL;
	ca_cancel_type(true);
	assert_int_equal(alone, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(our_signal_is_a_shadow), TEST(other_signals), TEST(masks),
		TEST(waits_for_signals),      TEST(forwarded),     TEST(who_may_be_cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
