/* SPDX-License-Identifier: MIT */
/* Locks, conditions, barriers, semaphores: the places where threads meet.
 *
 * A lock that is free is taken with the try form, so that only real waits count as waits. */
#include "causal/runtime/seccomp.h"
#include "causal/runtime/start.h"
#include "causal/runtime/wrap.h"
#include "core/cpu.h"
#include <errno.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/syscall.h>

/* try_call: 0 taken; busy: wait for it; anything else: let the real call say it. */
#define LOCK(object, try_call, busy, wait_call)                                                              \
	__extension__({                                                                                      \
		int r_;                                                                                      \
		ca_wait_meet();                                                                              \
		r_ = ca_self ? (try_call) : (busy);                                                          \
		if (r_ == (busy))                                                                            \
			r_ = DOING(LOCK, object, WAITING(CA_WAIT_OTHERS, -1, (wait_call)));                  \
		else if (r_ != 0 && r_ != EOWNERDEAD)                                                        \
			r_ = (wait_call);                                                                    \
		r_;                                                                                          \
	})

/* A thread by itself meets nobody. sqlite3 takes a million locks a second, and sorts alone. */
CA_EXPORT int pthread_mutex_lock(pthread_mutex_t *m)
{
	if (ca_wait_is_alone() && !m->__data.__lock)
		return REAL(pthread_mutex_lock)(m);
	return LOCK(m, REAL(pthread_mutex_trylock)(m), EBUSY, REAL(pthread_mutex_lock)(m));
}

CA_EXPORT int pthread_mutex_trylock(pthread_mutex_t *m)
{
	return MEETING(REAL(pthread_mutex_trylock)(m));
}

CA_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *until)
{
	return DOING(LOCK, m, WAITING_UNTIL(until, ETIMEDOUT, REAL(pthread_mutex_timedlock)(m, until_)));
}

CA_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *until)
{
	return DOING(LOCK, m,
		     WAITING_UNTIL(until, ETIMEDOUT, REAL(pthread_mutex_clocklock)(m, clock, until_)));
}

CA_EXPORT int pthread_mutex_unlock(pthread_mutex_t *m)
{
	return ca_wait_is_alone() ? REAL(pthread_mutex_unlock)(m) : WAKING(m, REAL(pthread_mutex_unlock)(m));
}

CA_EXPORT int mtx_lock(mtx_t *m)
{
	return LOCK(m, REAL(mtx_trylock)(m), thrd_busy, REAL(mtx_lock)(m));
}

CA_EXPORT int mtx_trylock(mtx_t *m)
{
	return MEETING(REAL(mtx_trylock)(m));
}

CA_EXPORT int mtx_timedlock(mtx_t *m, const struct timespec *until)
{
	return DOING(LOCK, m, WAITING_UNTIL(until, thrd_timedout, REAL(mtx_timedlock)(m, until_)));
}

CA_EXPORT int mtx_unlock(mtx_t *m)
{
	return WAKING(m, REAL(mtx_unlock)(m));
}

/* ---- conditions --------------------------------------------------------------------------------*/
/* A thread pays before it waits, or looks at the clock for how long, and a time limit that has moved is waited for once
 * more: a signal that comes just then finds nobody waiting. Who changes what is waited for with the lock held cannot
 * signal so early; of programs that do without, some rely on being quick, and have a limit of seconds in case they are
 * not. So each signal notes when it was sent, by the condition's address; after it the waiter returns as if woken, and
 * looks at what it waits for, as POSIX wants it to. Who owe for the same S are through at the same time: so who begins to
 * wait notes that, too, and a signal right after it lets libc come so far. */
static struct {
	_Atomic uint64_t signalled, waits; /* cycles */
} conditions[1024];
enum { GETS_THERE = 3000 /* cycles */ };

#define AT(condition)                                                                                        \
	(&conditions[((uintptr_t)(condition) >> 4 ^ (uintptr_t)(condition) >> 14) %                          \
		     (sizeof conditions / sizeof *conditions)])

/* May it still wait, which could not see what others did from `since` on? */
static bool is_not_signalled(const void *condition, uint64_t since)
{
	atomic_store(&AT(condition)->waits, ca_cpu_cycles());
	return atomic_load(&AT(condition)->signalled) < since;
}

static void note_signal(const void *condition)
{
	uint64_t waits;

	atomic_store(&AT(condition)->signalled, ca_cpu_cycles());
	waits = atomic_load(&AT(condition)->waits);
	while (ca_cpu_cycles() - waits < GETS_THERE)
		ca_cpu_pause();
}

#define UNLESS_SIGNALLED(wait)                                                                               \
	__extension__({                                                                                      \
		uint64_t since_ = ca_wait_blind_since();                                                     \
		(wait);                                                                                      \
	})
#define NOT_YET(c, woken, call) (is_not_signalled((c), since_) ? (call) : (woken))
#define CONDITION(c, woken, call)                                                                            \
	DOING(CONDITION, c, UNLESS_SIGNALLED(WAITING(CA_WAIT_OTHERS, -1, NOT_YET(c, woken, call))))
#define CONDITION_UNTIL(c, limit, timed_out, woken, call)                                                    \
	DOING(CONDITION, c, UNLESS_SIGNALLED(WAITING_UNTIL(limit, timed_out, NOT_YET(c, woken, call))))
#define SIGNALLING(c, call) (ca_wait_meet_at(c), note_signal(c), (call))

CA_EXPORT int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	return CONDITION(c, 0, REAL(pthread_cond_wait)(c, m));
}

CA_EXPORT int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
	return CONDITION_UNTIL(c, until, ETIMEDOUT, 0, REAL(pthread_cond_timedwait)(c, m, until_));
}

CA_EXPORT int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
				     const struct timespec *until)
{
	return CONDITION_UNTIL(c, until, ETIMEDOUT, 0, REAL(pthread_cond_clockwait)(c, m, clock, until_));
}

CA_EXPORT int pthread_cond_signal(pthread_cond_t *c)
{
	return SIGNALLING(c, REAL(pthread_cond_signal)(c));
}

CA_EXPORT int pthread_cond_broadcast(pthread_cond_t *c)
{
	return SIGNALLING(c, REAL(pthread_cond_broadcast)(c));
}

CA_EXPORT int cnd_wait(cnd_t *c, mtx_t *m)
{
	return CONDITION(c, thrd_success, REAL(cnd_wait)(c, m));
}

CA_EXPORT int cnd_timedwait(cnd_t *c, mtx_t *m, const struct timespec *until)
{
	return CONDITION_UNTIL(c, until, thrd_timedout, thrd_success, REAL(cnd_timedwait)(c, m, until_));
}

CA_EXPORT int cnd_signal(cnd_t *c)
{
	return SIGNALLING(c, REAL(cnd_signal)(c));
}

CA_EXPORT int cnd_broadcast(cnd_t *c)
{
	return SIGNALLING(c, REAL(cnd_broadcast)(c));
}

CA_EXPORT int pthread_barrier_wait(pthread_barrier_t *b)
{
	return DOING(BARRIER, b, WAITING(CA_WAIT_OTHERS, -1, REAL(pthread_barrier_wait)(b)));
}

CA_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	return LOCK(l, REAL(pthread_rwlock_tryrdlock)(l), EBUSY, REAL(pthread_rwlock_rdlock)(l));
}

CA_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *l)
{
	return MEETING(REAL(pthread_rwlock_tryrdlock)(l));
}

CA_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *l, const struct timespec *until)
{
	return DOING(LOCK, l, WAITING_UNTIL(until, ETIMEDOUT, REAL(pthread_rwlock_timedrdlock)(l, until_)));
}

CA_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
	return LOCK(l, REAL(pthread_rwlock_trywrlock)(l), EBUSY, REAL(pthread_rwlock_wrlock)(l));
}

CA_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *l)
{
	return MEETING(REAL(pthread_rwlock_trywrlock)(l));
}

CA_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *l, const struct timespec *until)
{
	return DOING(LOCK, l, WAITING_UNTIL(until, ETIMEDOUT, REAL(pthread_rwlock_timedwrlock)(l, until_)));
}

CA_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
	return WAKING(l, REAL(pthread_rwlock_unlock)(l));
}

static int spin(pthread_spinlock_t *l)
{
	while (REAL(pthread_spin_trylock)(l) != 0) {
		ca_cpu_pause();
		ca_rt_spins(ca_self, 1);
	}
	return 0;
}

CA_EXPORT int pthread_spin_lock(pthread_spinlock_t *l)
{
	return LOCK((const void *)(uintptr_t)l, REAL(pthread_spin_trylock)(l), EBUSY, spin(l));
}

CA_EXPORT int pthread_spin_trylock(pthread_spinlock_t *l)
{
	return MEETING(REAL(pthread_spin_trylock)(l));
}

CA_EXPORT int pthread_spin_unlock(pthread_spinlock_t *l)
{
	return WAKING((const void *)(uintptr_t)l, REAL(pthread_spin_unlock)(l));
}

CA_EXPORT int sem_wait(sem_t *s)
{
	int saved = errno;

	ca_wait_meet();
	pthread_testcancel(); /* it is a place for that also when it does not block */
	if (ca_self && REAL(sem_trywait)(s) == 0)
		return 0;
	errno = saved;
	return DOING(LOCK, s, HELD(CA_WAIT_OTHERS, -1, REAL(sem_wait)(s)));
}

CA_EXPORT int sem_timedwait(sem_t *restrict s, const struct timespec *restrict until)
{
	return DOING(LOCK, s, HELD_UNTIL(until, ETIMEDOUT, REAL(sem_timedwait)(s, until_)));
}

CA_EXPORT int sem_clockwait(sem_t *restrict s, clockid_t clock, const struct timespec *restrict until)
{
	return DOING(LOCK, s, HELD_UNTIL(until, ETIMEDOUT, REAL(sem_clockwait)(s, clock, until_)));
}

CA_EXPORT int sem_trywait(sem_t *s)
{
	return MEETING(REAL(sem_trywait)(s));
}

CA_EXPORT int sem_post(sem_t *s)
{
	return WAKING(s, REAL(sem_post)(s));
}

CA_EXPORT int sched_yield(void)
{
	ca_rt_spins(ca_self, CA_RT_YIELD_TURNS);
	return DOING(YIELD, NULL, WAITING(CA_WAIT_OTHERS, -1, REAL(sched_yield)()));
}

static bool futex_waits(long op)
{
	switch (op & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
	case FUTEX_WAIT_REQUEUE_PI:
		return true;
	default:
		return false;
	}
}

/* Memory that is not shared with other processes need not say so. */
static bool is_private(const long a[6])
{
	return a[1] & FUTEX_PRIVATE_FLAG;
}

static long woken(struct ca_waiting *w, const long a[6], long result)
{
	if (result == 0 && !is_private(a))
		ca_wait_woken(w, (const void *)a[0]);
	return result;
}

CA_WAIT_HERE void wake_at(const long a[6], long word)
{
	if (is_private(a))
		ca_wait_meet_at((const void *)word);
	else
		ca_wait_wake((const void *)word);
}

CA_WAIT_HERE void wake(const long a[6])
{
	long op = a[1] & FUTEX_CMD_MASK;

	wake_at(a, a[0]);
	if (op == FUTEX_REQUEUE || op == FUTEX_CMP_REQUEUE || op == FUTEX_WAKE_OP)
		wake_at(a, a[4]);
}

/* The time limit of FUTEX_WAIT is a length, that of the others a time. */
CA_WAIT_HERE long futex_wait(const long a[6])
{
	struct timespec copy;
	const struct timespec *limit = ca_deadline_peek(a[3], &copy);

	if ((a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT)
		return HELD_FOR(ca_deadline_ns(limit), ETIMEDOUT,
				woken(&waiting_, a,
				      REAL(syscall)(SYS_futex, a[0], a[1], a[2],
						    left_ ? (long)(intptr_t)left_ : a[3], a[4], a[5])));
	return HELD_UNTIL(limit, ETIMEDOUT,
			  woken(&waiting_, a,
				REAL(syscall)(SYS_futex, a[0], a[1], a[2],
					      until_ ? (long)(intptr_t)until_ : a[3], a[4], a[5])));
}

/* How many threads of which kind a raw call makes: a child with memory of its own joins. */
static bool forks(long number, long flags)
{
#ifdef SYS_fork
	if (number == SYS_fork)
		return true;
#endif
	return number == SYS_clone && !(flags & CLONE_VM);
}

/* Locks of other languages' libraries (Rust's std among them) call futex this way. */
CA_EXPORT long syscall(long number, ...)
{
	long a[6], r;
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_seccomp && (a[0] == SECCOMP_SET_MODE_STRICT || a[0] == SECCOMP_SET_MODE_FILTER))
		ca_seccomp_comes(a[0] == SECCOMP_SET_MODE_STRICT, (const void *)a[2]);
	if (number == SYS_prctl)
		ca_seccomp_prctl(a[0], a + 1);
	if (number != SYS_futex) {
		r = ca_wrap_raw(number, a);
		if (r == 0 && forks(number, a[0]))
			ca_start_forked();
		return r;
	}
	if (futex_waits(a[1]))
		return DOING(OTHERS, (const void *)a[0], futex_wait(a));
	wake(a);
	return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
