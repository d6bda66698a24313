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
#define LOCK(try_call, busy, wait_call)                                                                      \
	__extension__({                                                                                      \
		int r_;                                                                                      \
		ca_wait_meet();                                                                              \
		r_ = ca_self ? (try_call) : (busy);                                                          \
		if (r_ == (busy))                                                                            \
			r_ = WAITING(CA_WAIT_OTHERS, -1, (wait_call));                                       \
		else if (r_ != 0 && r_ != EOWNERDEAD)                                                        \
			r_ = (wait_call);                                                                    \
		r_;                                                                                          \
	})

/* A wait with a time limit: when the limit ended it, the clock did, which nothing slows. */
#define WAITING_UNTIL(timed_out, call)                                                                       \
	__extension__({                                                                                      \
		struct ca_waiting until_ = ca_wait_begin(CA_WAIT_OTHERS, -1);                                \
		__typeof__(call) got_ = (call);                                                              \
		if (got_ == (timed_out))                                                                     \
			until_.kind = CA_WAIT_EXTERNAL;                                                      \
		ca_wait_end(&until_);                                                                        \
		got_;                                                                                        \
	})

CA_EXPORT int pthread_mutex_lock(pthread_mutex_t *m)
{
	return LOCK(REAL(pthread_mutex_trylock)(m), EBUSY, REAL(pthread_mutex_lock)(m));
}

CA_EXPORT int pthread_mutex_trylock(pthread_mutex_t *m)
{
	return MEETING(REAL(pthread_mutex_trylock)(m));
}

CA_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *until)
{
	return WAITING_UNTIL(ETIMEDOUT, REAL(pthread_mutex_timedlock)(m, until));
}

CA_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *until)
{
	return WAITING_UNTIL(ETIMEDOUT, REAL(pthread_mutex_clocklock)(m, clock, until));
}

CA_EXPORT int pthread_mutex_unlock(pthread_mutex_t *m)
{
	return MEETING(REAL(pthread_mutex_unlock)(m));
}

CA_EXPORT int mtx_lock(mtx_t *m)
{
	return LOCK(REAL(mtx_trylock)(m), thrd_busy, REAL(mtx_lock)(m));
}

CA_EXPORT int mtx_trylock(mtx_t *m)
{
	return MEETING(REAL(mtx_trylock)(m));
}

CA_EXPORT int mtx_timedlock(mtx_t *m, const struct timespec *until)
{
	return WAITING_UNTIL(thrd_timedout, REAL(mtx_timedlock)(m, until));
}

CA_EXPORT int mtx_unlock(mtx_t *m)
{
	return MEETING(REAL(mtx_unlock)(m));
}

CA_EXPORT int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	return WAITING(CA_WAIT_OTHERS, -1, REAL(pthread_cond_wait)(c, m));
}

CA_EXPORT int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
	return WAITING_UNTIL(ETIMEDOUT, REAL(pthread_cond_timedwait)(c, m, until));
}

CA_EXPORT int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
				     const struct timespec *until)
{
	return WAITING_UNTIL(ETIMEDOUT, REAL(pthread_cond_clockwait)(c, m, clock, until));
}

CA_EXPORT int pthread_cond_signal(pthread_cond_t *c)
{
	return MEETING(REAL(pthread_cond_signal)(c));
}

CA_EXPORT int pthread_cond_broadcast(pthread_cond_t *c)
{
	return MEETING(REAL(pthread_cond_broadcast)(c));
}

CA_EXPORT int cnd_wait(cnd_t *c, mtx_t *m)
{
	return WAITING(CA_WAIT_OTHERS, -1, REAL(cnd_wait)(c, m));
}

CA_EXPORT int cnd_timedwait(cnd_t *c, mtx_t *m, const struct timespec *until)
{
	return WAITING_UNTIL(thrd_timedout, REAL(cnd_timedwait)(c, m, until));
}

CA_EXPORT int cnd_signal(cnd_t *c)
{
	return MEETING(REAL(cnd_signal)(c));
}

CA_EXPORT int cnd_broadcast(cnd_t *c)
{
	return MEETING(REAL(cnd_broadcast)(c));
}

CA_EXPORT int pthread_barrier_wait(pthread_barrier_t *b)
{
	return WAITING(CA_WAIT_OTHERS, -1, REAL(pthread_barrier_wait)(b));
}

CA_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	return LOCK(REAL(pthread_rwlock_tryrdlock)(l), EBUSY, REAL(pthread_rwlock_rdlock)(l));
}

CA_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *l)
{
	return MEETING(REAL(pthread_rwlock_tryrdlock)(l));
}

CA_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *l, const struct timespec *until)
{
	return WAITING_UNTIL(ETIMEDOUT, REAL(pthread_rwlock_timedrdlock)(l, until));
}

CA_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
	return LOCK(REAL(pthread_rwlock_trywrlock)(l), EBUSY, REAL(pthread_rwlock_wrlock)(l));
}

CA_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *l)
{
	return MEETING(REAL(pthread_rwlock_trywrlock)(l));
}

CA_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *l, const struct timespec *until)
{
	return WAITING_UNTIL(ETIMEDOUT, REAL(pthread_rwlock_timedwrlock)(l, until));
}

CA_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
	return MEETING(REAL(pthread_rwlock_unlock)(l));
}

static int spin(pthread_spinlock_t *l)
{
	while (REAL(pthread_spin_trylock)(l) != 0)
		ca_cpu_pause();
	return 0;
}

CA_EXPORT int pthread_spin_lock(pthread_spinlock_t *l)
{
	return LOCK(REAL(pthread_spin_trylock)(l), EBUSY, spin(l));
}

CA_EXPORT int pthread_spin_trylock(pthread_spinlock_t *l)
{
	return MEETING(REAL(pthread_spin_trylock)(l));
}

CA_EXPORT int pthread_spin_unlock(pthread_spinlock_t *l)
{
	return MEETING(REAL(pthread_spin_unlock)(l));
}

CA_EXPORT int sem_wait(sem_t *s)
{
	int saved = errno;

	ca_wait_meet();
	pthread_testcancel(); /* it is a place for that also when it does not block */
	if (ca_self && REAL(sem_trywait)(s) == 0)
		return 0;
	errno = saved;
	return HELD(CA_WAIT_OTHERS, -1, REAL(sem_wait)(s));
}

/* errno says that the semaphore's limit is reached; the result does not. */
static void limit_ended_it(struct ca_waiting *w, int result)
{
	if (result < 0 && errno == ETIMEDOUT)
		w->kind = CA_WAIT_EXTERNAL;
	ca_wait_end(w);
}

CA_EXPORT int sem_timedwait(sem_t *restrict s, const struct timespec *restrict until)
{
	struct ca_waiting w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	bool held = ca_thread_hold();
	int r = REAL(sem_timedwait)(s, until);

	ca_thread_release(held);
	limit_ended_it(&w, r);
	return r;
}

CA_EXPORT int sem_clockwait(sem_t *restrict s, clockid_t clock, const struct timespec *restrict until)
{
	struct ca_waiting w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	bool held = ca_thread_hold();
	int r = REAL(sem_clockwait)(s, clock, until);

	ca_thread_release(held);
	limit_ended_it(&w, r);
	return r;
}

CA_EXPORT int sem_trywait(sem_t *s)
{
	return MEETING(REAL(sem_trywait)(s));
}

CA_EXPORT int sem_post(sem_t *s)
{
	return MEETING(REAL(sem_post)(s));
}

CA_EXPORT int sched_yield(void)
{
	return WAITING(CA_WAIT_OTHERS, -1, REAL(sched_yield)());
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
	if (number != SYS_futex) {
		r = REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
		if (r == 0 && forks(number, a[0]))
			ca_start_forked();
		return r;
	}
	if (!futex_waits(a[1]))
		return MEETING(REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]));
	struct ca_waiting w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	bool held = ca_thread_hold();

	r = REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	ca_thread_release(held);
	limit_ended_it(&w, (int)r);
	return r;
}
