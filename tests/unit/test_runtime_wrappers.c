/* SPDX-License-Identifier: MIT */
/* Every row of CA_WRAPPED (causal/runtime/wrap.h): what is called, with what, between which calls of
 * ours, and that result and errno are the real function's. The real functions are stood in for by
 * one that notes its arguments; wrap_signal.c, which is more than rows, has a test of its own. */
#include "causal/runtime/patch.h"
#include "causal/runtime/peers.h"
#include "causal/runtime/virtual_clock.h"
#include "causal/runtime/wrap.h"
#include "core/cpu.h"
#include "core/sys.h"
#include "sampler/modules.h"
#include "tests/unit/runtime.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

enum { ARGUMENTS = 7, RESULT = 4711, ERROR = 42, WAIT_FD = 7, PIPE_FD = 8 };

/* ---- what stands in: each leaves a letter ------------------------------------------------------ */
/* libc's headers promise (leaf) that some of the wrapped functions change nothing of this file's:
 * what they do change is not static. */
char trace[256]; /* cmocka reads clocks, too */
enum ca_wait begun, ended;
int waited_fd, mask_argument, mask_had_ours;
uint64_t slept;

static void note(char letter)
{
	size_t n = strlen(trace);

	/* cmocka prints, too: between tests, and when one fails */
	if (n + 1 == sizeof trace)
		return;
	trace[n] = letter;
	trace[n + 1] = 0;
}

static int guess_errno; /* of ours: must not be seen */

/* What the wrapper says of its wait, and whom it wakes. */
enum ca_activity said;
const void *said_object, *met_object;

static volatile uintptr_t met_from; /* where in the program; libc says that its functions leave it alone */

void ca_wait_meet_from(const void *object, uintptr_t site)
{
	note('m');
	met_from = site;
	met_object = object ? object : met_object;
}

void ca_wait_is(enum ca_activity doing, const void *object)
{
	said = doing;
	said_object = object;
}

void ca_wait_pay(void)
{
	note('p');
}

uint64_t ca_wait_blind_since(void)
{
	return ca_cpu_cycles();
}

/* Another thread signals this while we pay. */
static void *signalled;

struct ca_waiting ca_wait_begin_from(enum ca_wait kind, int fd, uintptr_t site)
{
	struct ca_waiting w = { .thread = ca_self, .kind = kind, .fd = fd };

	note('b');
	if (signalled)
		pthread_cond_signal(signalled);
	met_from = site;
	begun = kind;
	waited_fd = fd;
	return w;
}

void ca_wait_end(struct ca_waiting *w)
{
	note('e');
	ended = w->kind;
	if (w->fd != -1) /* who ended it is known */
		assert_int_equal(w->fd, waited_fd);
}

struct ca_waiting ca_wait_begin_read_all_from(int fd, uintptr_t site)
{
	return ca_wait_begin_from(CA_WAIT_EXTERNAL, fd, site);
}

struct ca_waiting ca_wait_begin_write_from(int fd, size_t n, uintptr_t site)
{
	struct ca_waiting w = ca_wait_begin_from(CA_WAIT_EXTERNAL, fd, site);

	(void)n;
	w.writes = true;
	return w;
}

enum ca_wait ca_peers_of_read(int fd, bool delivered)
{
	(void)delivered;
	return fd == PIPE_FD ? CA_WAIT_OTHERS : CA_WAIT_EXTERNAL;
}

void ca_wait_wake_from(const void *word, uintptr_t site)
{
	(void)word;
	met_from = site;
	note('W');
}

void ca_wait_woken(struct ca_waiting *w, const void *word)
{
	(void)word;
	w->kind = CA_WAIT_EXTERNAL;
}

void ca_wait_sleep(uint64_t ns)
{
	note('s');
	slept = ns;
}

/* Time limits: how often they are found to have moved on. */
static unsigned moves;
static struct timespec moved_to;

struct ca_deadline ca_deadline_begin(bool limited)
{
	(void)limited;
	return (struct ca_deadline){ 0, 0, 0 };
}

const struct timespec *ca_deadline_real(const struct ca_deadline *d, const struct timespec *until,
					struct timespec *to)
{
	*to = moved_to = (struct timespec){ 1, (long)d->lag };
	return d->lag ? to : until;
}

bool ca_deadline_moved(struct ca_deadline *d)
{
	d->lag++;
	return moves && moves--;
}

uint64_t ca_deadline_left(struct ca_deadline *d, uint64_t length)
{
	return ca_deadline_moved(d) ? length / 2 : 0;
}

const struct timespec *ca_deadline_peek(long given, struct timespec *copy)
{
	return given > 4096 ? memcpy(copy, (const void *)given, sizeof *copy) : NULL;
}

uint64_t ca_deadline_ns(const struct timespec *t)
{
	return t ? (uint64_t)t->tv_sec * CA_NS_PER_S + (uint64_t)t->tv_nsec : UINT64_MAX;
}

int ca_virtual_clock(clockid_t clock, struct timespec *now)
{
	note('v');
	*now = (struct timespec){ 4, clock == CLOCK_REALTIME ? 5006 : 7 };
	return 0;
}

static bool hold_answer;

bool ca_thread_hold(void)
{
	note('h');
	return hold_answer;
}

void ca_thread_release(bool held)
{
	note('r');
	assert_int_equal(held, hold_answer);
}

void ca_thread_begin(void)
{
	note('T');
}

void ca_thread_pause(void)
{
	note('p');
}

void ca_thread_resume(void)
{
	note('q');
}

void ca_cancel_type(bool anywhere)
{
	note(anywhere ? 'A' : 'D');
}

void ca_cancel_before(pthread_t target)
{
	(void)target;
	note('k');
}

bool ca_patch_hold(void)
{
	note('h');
	return true;
}

void ca_patch_release(bool held)
{
	assert_true(held);
	note('r');
}

void ca_points_libraries_left(void)
{
	note('L');
}

void ca_points_libraries_change(void)
{
	note('L');
	errno = guess_errno;
}

static unsigned starts;

void ca_start_once(void)
{
	starts++;
}

void ca_start_forked(void)
{
	note('F');
}

void ca_start_leave(void)
{
	note('l');
}

bool seccomp_strict;
const void *seccomp_program;

void ca_seccomp_comes(bool strict, const void *program)
{
	note('S');
	seccomp_strict = strict;
	seccomp_program = program;
}

static long prctl_option, prctl_argument[2];

void ca_seccomp_prctl(long option, const long *argument)
{
	note('P');
	prctl_option = option;
	memcpy(prctl_argument, argument, sizeof prctl_argument);
}

bool ca_modules_scan(void)
{
	note('x');
	return true;
}

/* ---- the real functions ------------------------------------------------------------------------ */
long got[ARGUMENTS], errno_seen;
static long answers[4], answer_errno;
static unsigned calls;

static long real(long a, long b, long c, long d, long e, long f, long g)
{
	long now[ARGUMENTS] = { a, b, c, d, e, f, g };

	memcpy(got, now, sizeof got);
	if (mask_argument)
		mask_had_ours = sigismember((const sigset_t *)now[mask_argument], CA_SIGNAL);
	note('c');
	errno_seen = errno;
	errno = (int)answer_errno;
	return answers[calls < CA_COUNT(answers) ? calls++ : calls - 1];
}

/* The other function of a lock: its try form. */
static long try_answers[3];
static unsigned tries;

static long try_real(long a)
{
	note('t');
	assert_int_equal((uint32_t)a, (uint32_t)got[0]);
	return try_answers[tries < CA_COUNT(try_answers) ? tries++ : tries - 1];
}

static long try_sem(long a)
{
	errno = 33; /* as sem_trywait does when it fails */
	return try_real(a);
}

typedef long any(long, long, long, long, long, long, long);
typedef void pointer(void);

static const struct {
	const char *name;
	size_t member;
} rows[] = {
#define X(name, version) { #name, offsetof(struct ca_real, name) },
	CA_WRAPPED(X)
#undef X
};
static bool covered[CA_COUNT(rows)];

static void cover(const char *name)
{
	for (unsigned i = 0; i < CA_COUNT(rows); i++)
		if (!strcmp(rows[i].name, name)) {
			covered[i] = true;
			return;
		}
	fail_msg("%s is no row of CA_WRAPPED", name);
}

static void put_real(size_t member, void *function)
{
	memcpy((char *)&ca_real + member, &function, sizeof function);
}
#define REPLACE(name, by) (cover(#name), put_real(offsetof(struct ca_real, name), (void *)(by)))

static struct ca_real all_real;

static void begin(void)
{
	trace[0] = 0;
	calls = tries = 0;
	begun = ended = (enum ca_wait)9;
	waited_fd = -2;
	memset(got, 0, sizeof got);
}

static void end(void)
{
	ca_real = all_real;
}

static int set_up(void **state)
{
	all_real = ca_real;
	hold_answer = true;
	guess_errno = 77;
	for (unsigned i = 0; i < CA_COUNT(answers); i++)
		answers[i] = RESULT;
	answer_errno = ERROR;
	return rt_set_up(state);
}

static int tear_down(void **state)
{
	end();
	return rt_tear_down(state);
}

/* ---- calls that are passed on with something before and after ------------------------------------ */
enum { NO_FD = -1 };
#define IN(kind) CA_WAIT_##kind
static const struct row {
	const char *name;
	void *wrapper;
	size_t member;
	unsigned arguments;
	const char *trace;
	enum ca_wait kind; /* of its wait */
	int fd;            /* which argument is the descriptor that it waits for */
	long failure;      /* the result that means that a time limit was reached; 0: none */
	bool by_errno;     /* ... then errno must be ETIMEDOUT */
} table[] = {
#define ROW(name, arguments, ...)                                                                            \
	{ #name, (void *)name, offsetof(struct ca_real, name), arguments, __VA_ARGS__ },
#define MEET(name, n)         ROW(name, n, "mc", (enum ca_wait)9, -2, 0, false)
#define WAIT(name, n)         ROW(name, n, "bce", IN(OTHERS), NO_FD, 0, false)
#define WAIT_HELD(name, n)    ROW(name, n, "bhcre", IN(OTHERS), NO_FD, 0, false)
#define UNTIL(name, n, limit) ROW(name, n, "bce", IN(OTHERS), NO_FD, limit, false)
#define CLOCK(name, n)        ROW(name, n, "bhcre", IN(EXTERNAL), NO_FD, 0, false)
#define SLEEP(name, n)        ROW(name, n, "sbhcre", IN(EXTERNAL), NO_FD, 0, false)
#define FD(name, n)           ROW(name, n, "bce", IN(EXTERNAL), 0, 0, false)
#define FD_HELD(name, n)      ROW(name, n, "bhcre", IN(EXTERNAL), 0, 0, false)
#define POLL(name, n)         ROW(name, n, "bhcre", IN(EXTERNAL), NO_FD, 0, false)
#define PLAIN(name, n)        ROW(name, n, "c", (enum ca_wait)9, -2, 0, false)
#define RIGHTS(name, n)       ROW(name, n, "xc", (enum ca_wait)9, -2, 0, false)
	WAIT(pthread_join, 2) MEET(pthread_tryjoin_np, 2) UNTIL(pthread_timedjoin_np, 3, ETIMEDOUT) WAIT(
		thrd_join, 2) MEET(pthread_mutex_trylock,
				   1) UNTIL(pthread_mutex_timedlock, 2,
					    ETIMEDOUT) UNTIL(pthread_mutex_clocklock, 3,
							     ETIMEDOUT) MEET(pthread_mutex_unlock,
									     1) MEET(mtx_trylock, 1)
		UNTIL(mtx_timedlock, 2, thrd_timedout) MEET(mtx_unlock, 1) WAIT(pthread_cond_wait, 2) UNTIL(
			pthread_cond_timedwait, 3,
			ETIMEDOUT) UNTIL(pthread_cond_clockwait, 4,
					 ETIMEDOUT) MEET(pthread_cond_signal,
							 1) MEET(pthread_cond_broadcast,
								 1) WAIT(cnd_wait, 2) UNTIL(cnd_timedwait, 3,
											    thrd_timedout)
			MEET(cnd_signal, 1) MEET(cnd_broadcast, 1) WAIT(pthread_barrier_wait, 1) MEET(
				pthread_rwlock_tryrdlock,
				1) UNTIL(pthread_rwlock_timedrdlock,
					 2, ETIMEDOUT) MEET(pthread_rwlock_trywrlock,
							    1) UNTIL(pthread_rwlock_timedwrlock, 2, ETIMEDOUT)
				MEET(pthread_rwlock_unlock, 1) MEET(pthread_spin_trylock, 1) MEET(
					pthread_spin_unlock,
					1) ROW(sem_timedwait, 2, "bhcre", IN(OTHERS), NO_FD, -1,
					       true) ROW(sem_clockwait, 3, "bhcre", IN(OTHERS), NO_FD, -1,
							 true) MEET(sem_trywait, 1)
					MEET(sem_post, 1) WAIT(sched_yield, 0) MEET(pthread_kill, 2) MEET(pthread_sigqueue, 3) MEET(
						kill, 2) ROW(pthread_cancel, 1, "kc", (enum ca_wait)9, -2, 0,
							     false) RIGHTS(setuid,
									   1) RIGHTS(seteuid, 1)
						RIGHTS(setreuid, 2) RIGHTS(setresuid, 3) RIGHTS(chroot, 1) FD(read, 3) FD(readv, 3) FD(
							pread,
							4) FD(pread64,
							      4) FD(__read_chk,
								    4) FD_HELD(__recv_chk,
									       5) FD_HELD(recv,
											  4) FD_HELD(recvfrom,
												     6)
							FD_HELD(recvmsg, 3) FD_HELD(accept, 3) FD_HELD(accept4, 4) PLAIN(
								pipe,
								1) PLAIN(pipe2,
									 2) PLAIN(socketpair,
										  4) PLAIN(epoll_ctl, 4)
								FD_HELD(connect, 3) FD(write, 3) FD(writev, 3) FD_HELD(
									send,
									4) FD_HELD(sendto,
										   6) FD_HELD(sendmsg,
											      3) FD(fsync,
												    1) FD(fdatasync,
													  1) POLL(poll,
														  3)
									POLL(ppoll, 4) POLL(__poll_chk, 4) POLL(
										__ppoll_chk,
										5) CLOCK(select,
											 5) CLOCK(pselect,
												  6) CLOCK(epoll_wait,
													   4)
										CLOCK(epoll_pwait, 5) CLOCK(epoll_pwait2, 5) SLEEP(
											nanosleep,
											2) SLEEP(clock_nanosleep,
												 4) SLEEP(usleep,
													  1) SLEEP(sleep,
														   1)
											WAIT(wait, 1) WAIT(waitpid, 3) WAIT(
												waitid,
												4) WAIT(wait4, 4)
												WAIT_HELD(semop, 3) WAIT_HELD(
													semtimedop,
													4) WAIT_HELD(msgrcv,
														     5)
													WAIT_HELD(
														msgsnd,
														4)
};

/* The functions of wrap_file.c and wrap_process.c. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static const struct row more[] = {
#define ENTRY(name, arguments, ...)                                                                          \
	{                                                                                                    \
#name, (void *)name, offsetof(struct ca_real, name), arguments, __VA_ARGS__                  \
	}
#define MEETS(name, n)        ENTRY(name, n, "mc", (enum ca_wait)9, -2, 0, false)
#define WAITS(name, n)        ENTRY(name, n, "bce", IN(OTHERS), NO_FD, 0, false)
#define IS_HELD(name, n)      ENTRY(name, n, "bhcre", IN(OTHERS), NO_FD, 0, false)
#define OUTSIDE(name, n)      ENTRY(name, n, "bce", IN(EXTERNAL), NO_FD, 0, false)
#define OUTSIDE_HELD(name, n) ENTRY(name, n, "bhcre", IN(EXTERNAL), NO_FD, 0, false)
#define ON_FD(name, n)        ENTRY(name, n, "bce", IN(EXTERNAL), 0, 0, false)
#define ON_FD_HELD(name, n)   ENTRY(name, n, "bhcre", IN(EXTERNAL), 0, 0, false)
#define IS_PLAIN(name, n)     ENTRY(name, n, "c", (enum ca_wait)9, -2, 0, false)
#define LIMITED(name, n)      ENTRY(name, n, "bce", IN(OTHERS), NO_FD, ETIMEDOUT, false)
#define LIMITED_HELD(name, n) ENTRY(name, n, "bhcre", IN(OTHERS), NO_FD, -1, true)
	ON_FD(preadv, 4),
	ON_FD(preadv64, 4),
	ON_FD(preadv2, 5),
	ON_FD(preadv64v2, 5),
	ON_FD(pwrite, 4),
	ON_FD(pwrite64, 4),
	ON_FD(pwritev, 4),
	ON_FD(pwritev64, 4),
	ON_FD(pwritev2, 5),
	ON_FD(pwritev64v2, 5),
	ON_FD_HELD(__recvfrom_chk, 7),
	ON_FD(__pread_chk, 5),
	ON_FD(__pread64_chk, 5),
	ON_FD_HELD(recvmmsg, 5),
	ON_FD_HELD(sendmmsg, 4),
	ON_FD_HELD(sendfile, 4),
	ON_FD_HELD(sendfile64, 4),
	ENTRY(splice, 6, "bhcre", IN(EXTERNAL), 2, 0, false),
	ENTRY(tee, 4, "bce", IN(EXTERNAL), 1, 0, false),
	ON_FD(vmsplice, 4),
	ON_FD(copy_file_range, 6),
	IS_PLAIN(eventfd, 2),
	IS_PLAIN(close, 1),
	IS_PLAIN(close_range, 3),
	IS_PLAIN(closefrom, 1),
	IS_PLAIN(dup2, 2),
	IS_PLAIN(dup3, 3),
	ON_FD(eventfd_read, 2),
	ON_FD(eventfd_write, 2),
	OUTSIDE(syncfs, 1),
	OUTSIDE(sync_file_range, 4),
	OUTSIDE(getaddrinfo, 4),
	OUTSIDE(getnameinfo, 7),
	OUTSIDE(gethostbyname, 1),
	OUTSIDE(gethostbyname2, 2),
	OUTSIDE(gethostbyaddr, 3),
	OUTSIDE(gethostbyname_r, 6),
	OUTSIDE(gethostbyname2_r, 7),
	OUTSIDE(gethostbyaddr_r, 7),
	OUTSIDE_HELD(aio_suspend, 3),
	OUTSIDE_HELD(aio_suspend64, 3),
	IS_HELD(mq_send, 4),
	IS_HELD(mq_receive, 4),
	LIMITED_HELD(mq_timedsend, 5),
	LIMITED_HELD(mq_timedreceive, 5),
	MEETS(fork, 0),
	MEETS(vfork, 0),
	WAITS(wait3, 3),
	WAITS(system, 1),
	MEETS(popen, 2),
	WAITS(pclose, 1),
	MEETS(raise, 1),
	MEETS(sigqueue, 3),
	MEETS(tgkill, 3),
	MEETS(pidfd_send_signal, 4),
	IS_HELD(__xpg_sigpause, 1),
	LIMITED(pthread_clockjoin_np, 4),
	LIMITED(pthread_rwlock_clockrdlock, 3),
	LIMITED(pthread_rwlock_clockwrlock, 3),
	ENTRY(thrd_sleep, 2, "sbhcre", IN(EXTERNAL), NO_FD, 0, false),
};
#pragma GCC diagnostic pop

/* Memory that some of them look into: zeros, but for what a test puts there. */
static long memory[ARGUMENTS][64];
static struct pollfd polled[2];

static bool is_poll(const struct row *row)
{
	return strstr(row->name, "poll") && !strstr(row->name, "epoll");
}

static const struct {
	const char *name;
	unsigned argument;
} masks[] = {
	{ "ppoll", 3 }, { "__ppoll_chk", 3 }, { "pselect", 5 }, { "epoll_pwait", 4 }, { "epoll_pwait2", 4 }
};

/* Which argument is a mask of signals; 0: none. */
static unsigned mask_of(const struct row *row)
{
	for (unsigned i = 0; i < CA_COUNT(masks); i++)
		if (!strcmp(masks[i].name, row->name))
			return masks[i].argument;
	return 0;
}

static void fill(const struct row *row, long a[ARGUMENTS])
{
	for (unsigned i = 0; i < ARGUMENTS; i++)
		a[i] = (long)(intptr_t)memory[i];
	if (mask_of(row))
		a[mask_of(row)] = 0;
	if (!strcmp(row->name, "clock_nanosleep"))
		a[1] = 0; /* not TIMER_ABSTIME */
	if (strstr(row->name, "select"))
		a[0] = 64;
	if (!strncmp(row->name, "epoll_w", 7) || !strncmp(row->name, "epoll_p", 7))
		a[2] = 1;
	if (is_poll(row)) {
		a[0] = (long)(intptr_t)polled;
		a[1] = 2;
	}
}

static long call(const struct row *row, const long a[ARGUMENTS])
{
	long r;

	begin();
	cover(row->name);
	put_real(row->member, (void *)real);
	errno = 5;
	r = ((any *)row->wrapper)(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
	end();
	return (int)r;
}

static void pass_on(const struct row *row)
{
	long a[ARGUMENTS], r;

	fill(row, a);
	r = call(row, a);
	if (strcmp(trace, row->trace) || r != RESULT || errno != ERROR || calls != 1)
		fail_msg("%s: %s, result %ld, errno %d", row->name, trace, r, errno);
	assert_int_equal(errno_seen, 5);
	for (unsigned i = 0; i < row->arguments; i++)
		if ((uint32_t)got[i] != (uint32_t)a[i])
			fail_msg("%s: argument %u is another one", row->name, i + 1);
	assert_int_equal(begun, row->kind);
	assert_int_equal(waited_fd, row->fd >= 0 ? (int)a[row->fd] : row->fd);
	if (row->kind != 9)
		assert_int_equal(ended, row->kind);
}

static void passed_on(void **state)
{
	(void)state;
	for (const struct row *row = table; row < table + CA_COUNT(table); row++)
		pass_on(row);
	for (const struct row *row = more; row < more + CA_COUNT(more); row++)
		pass_on(row);
}

/* For the timeline; object: number of the argument that it is, or -1. Without an activity: who wakes. */
static void said_of_waits(void **state)
{
	static const struct {
		const char *name;
		enum ca_activity doing;
		int object;
	} cases[] = {
		{ "pthread_join", CA_ACTIVITY_JOIN, 0 },
		{ "pthread_timedjoin_np", CA_ACTIVITY_JOIN, 0 },
		{ "pthread_cond_wait", CA_ACTIVITY_CONDITION, 0 },
		{ "pthread_cond_timedwait", CA_ACTIVITY_CONDITION, 0 },
		{ "cnd_wait", CA_ACTIVITY_CONDITION, 0 },
		{ "pthread_barrier_wait", CA_ACTIVITY_BARRIER, 0 },
		{ "mtx_timedlock", CA_ACTIVITY_LOCK, 0 },
		{ "pthread_mutex_timedlock", CA_ACTIVITY_LOCK, 0 },
		{ "sched_yield", CA_ACTIVITY_YIELD, -1 },
		{ "waitpid", CA_ACTIVITY_PROCESS, -1 },
		{ "wait", CA_ACTIVITY_PROCESS, -1 },
		{ "pthread_mutex_unlock", CA_ACTIVITY_NONE, 0 },
		{ "mtx_unlock", CA_ACTIVITY_NONE, 0 },
		{ "pthread_rwlock_unlock", CA_ACTIVITY_NONE, 0 },
		{ "pthread_spin_unlock", CA_ACTIVITY_NONE, 0 },
		{ "sem_post", CA_ACTIVITY_NONE, 0 },
		{ "pthread_cond_signal", CA_ACTIVITY_NONE, 0 },
		{ "pthread_cond_broadcast", CA_ACTIVITY_NONE, 0 },
		{ "cnd_signal", CA_ACTIVITY_NONE, 0 },
		{ "pthread_tryjoin_np", CA_ACTIVITY_NONE, -1 },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		const struct row *row = table;
		long a[ARGUMENTS], at = 0;

		while (row < table + CA_COUNT(table) && strcmp(row->name, cases[i].name))
			row++;
		assert_true(row < table + CA_COUNT(table));
		fill(row, a);
		said = CA_ACTIVITY_NONE;
		said_object = met_object = NULL;
		call(row, a);
		if (cases[i].object >= 0)
			at = a[cases[i].object];
		if (said != cases[i].doing || (long)(cases[i].doing ? said_object : met_object) != at)
			fail_msg("%s: says %d of %p, wakes %p", cases[i].name, (int)said, said_object,
				 met_object);
	}
}

/* Masks of a wait: our signal must not end it. */
static void masks_of_waits(void **state)
{
	unsigned n = 0;

	(void)state;
	for (const struct row *row = table; row < table + CA_COUNT(table); row++) {
		long a[ARGUMENTS];

		mask_argument = (int)mask_of(row);
		if (!mask_argument)
			continue;
		n++;
		fill(row, a);
		memset(memory[5], 0, sizeof memory[5]);
		a[mask_argument] = (long)(intptr_t)memory[5];
		call(row, a);
		assert_int_equal(mask_had_ours, 1);
		assert_int_equal(memory[5][0], 0); /* the program's own is as it was */
	}
	mask_argument = 0;
	assert_int_equal(n, CA_COUNT(masks));
}

/* A time limit that has moved on when it is reached is waited for again; nothing is owed for that. */
static void reach_limit(const struct row *row)
{
	long a[ARGUMENTS];

	fill(row, a);
	answers[0] = row->failure;
	answer_errno = ETIMEDOUT;
	assert_int_equal(call(row, a), row->failure);
	assert_int_equal(errno, ETIMEDOUT);
	assert_string_equal(trace, row->trace);
	assert_int_equal(ended, CA_WAIT_OTHERS);
	moves = 2;
	answers[1] = row->failure;
	answers[2] = 0;
	assert_int_equal(call(row, a), 0);
	assert_int_equal(calls, 3);
	assert_int_equal(moved_to.tv_nsec, 2);
	assert_int_equal(ended, CA_WAIT_OTHERS);
	/* not by the limit */
	answers[0] = row->by_errno ? -1 : row->failure + 1;
	answer_errno = EINTR;
	call(row, a);
	assert_int_equal(ended, CA_WAIT_OTHERS);
	answers[0] = 0;
	answer_errno = ETIMEDOUT; /* left over from something else */
	call(row, a);
	assert_int_equal(ended, CA_WAIT_OTHERS);
}

static long call_signalled(const struct row *row, const long a[ARGUMENTS], long condition)
{
	long r;

	all_real.pthread_cond_signal = (int (*)(pthread_cond_t *))(void *)real;
	ca_real.pthread_cond_signal = all_real.pthread_cond_signal;
	signalled = (void *)condition;
	r = call(row, a);
	signalled = NULL;
	return r;
}

/* A signal that comes while the waiter pays has found nobody: it does not wait. */
static void signalled_early(void **state)
{
	static const char *const waits[] = { "pthread_cond_wait", "pthread_cond_timedwait",
					     "pthread_cond_clockwait", "cnd_wait", "cnd_timedwait" };
	long a[ARGUMENTS];
	unsigned n = 0;

	(void)state;
	for (const struct row *row = table; row < table + CA_COUNT(table); row++)
		for (size_t i = 0; i < CA_COUNT(waits); i++) {
			if (strcmp(row->name, waits[i]) != 0)
				continue;
			n++;
			fill(row, a);
			assert_int_equal(call_signalled(row, a, a[0]), 0);
			assert_string_equal(trace, "bmce"); /* the call is the signal's */
			assert_int_equal(call_signalled(row, a, a[1]), RESULT);
			assert_string_equal(trace, "bmcce"); /* another one's */
		}
	assert_int_equal(n, CA_COUNT(waits));
	assert_int_equal(thrd_success, 0);
}

static void time_limits(void **state)
{
	unsigned n = 0;

	(void)state;
	for (const struct row *row = table; row < table + CA_COUNT(table); row++)
		if (row->failure) {
			n++;
			reach_limit(row);
		}
	assert_int_equal(n, 11);
	for (const struct row *row = more; row < more + CA_COUNT(more); row++)
		if (row->failure) {
			n++;
			reach_limit(row);
		}
	assert_int_equal(n, 16);
}

/* ---- locks: taken without a wait where they are free --------------------------------------------- */
static const struct lock {
	const char *name;
	void *wrapper;
	size_t member, try_member;
	int busy;
} locks[] = {
#define LOCK_ROW(name, try_name, busy)                                                                       \
	{ #name, (void *)name, offsetof(struct ca_real, name), offsetof(struct ca_real, try_name), busy },
	LOCK_ROW(pthread_mutex_lock, pthread_mutex_trylock, EBUSY) LOCK_ROW(mtx_lock, mtx_trylock, thrd_busy)
		LOCK_ROW(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, EBUSY)
			LOCK_ROW(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, EBUSY)
};

static int take(const struct lock *l, int first_try)
{
	int r;

	begin();
	cover(l->name);
	got[0] = (long)(intptr_t)memory;
	put_real(l->member, (void *)real);
	put_real(l->try_member, (void *)try_real);
	try_answers[0] = first_try;
	r = (int)((any *)l->wrapper)((long)(intptr_t)memory, 0, 0, 0, 0, 0, 0);
	assert_int_equal((uint32_t)got[0], (uint32_t)(intptr_t)memory);
	end();
	return r;
}

static void taking_locks(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CA_COUNT(locks); i++) {
		ca_self = me;
		assert_int_equal(take(&locks[i], 0), 0);
		assert_string_equal(trace, "mt");
		assert_int_equal(take(&locks[i], EOWNERDEAD), EOWNERDEAD); /* it has been taken */
		assert_string_equal(trace, "mt");
		assert_int_equal(take(&locks[i], locks[i].busy), RESULT);
		assert_string_equal(trace, "mtbce");
		assert_int_equal(begun, CA_WAIT_OTHERS);
		assert_int_equal(waited_fd, -1);
		assert_int_equal(take(&locks[i], EINVAL), RESULT); /* the real one's error, not a wait */
		assert_string_equal(trace, "mtc");
		ca_self = NULL; /* a thread that we do not follow is not made to call twice */
		assert_int_equal(take(&locks[i], 0), RESULT);
		assert_string_equal(trace, "mbce");
	}
}

static int free_mutex(const char *name, size_t member, void *wrapper, pthread_mutex_t *m)
{
	int r;

	begin();
	cover(name);
	got[0] = (long)(intptr_t)m;
	put_real(member, (void *)real);
	put_real(offsetof(struct ca_real, pthread_mutex_trylock), (void *)try_real);
	r = (int)((any *)wrapper)((long)(intptr_t)m, 0, 0, 0, 0, 0, 0);
	end();
	return r;
}

/* The only thread of a run meets nobody at a mutex, unless it is where nothing is as usual. */
static void locks_alone(void **state)
{
	static const struct {
		uint32_t threads, out;
		unsigned depth;
		uintptr_t held_sp;
		bool taken;
		const char *lock, *unlock;
	} cases[] = {
		{ 1, 0, 0, 0, false, "c", "c" },   { 2, 0, 0, 0, false, "mt", "mc" },
		{ 1, 1, 0, 0, false, "mt", "mc" }, { 1, 0, 1, 0, false, "mt", "mc" },
		{ 1, 0, 0, 8, false, "mt", "mc" }, { 1, 0, 0, 0, true, "mt", "c" },
	};
	(void)state;
	ca_self = me;
	for (size_t k = 0; k < CA_COUNT(cases); k++) {
		pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

		atomic_store(&s->threads, cases[k].threads);
		atomic_store(&s->threads_out, cases[k].out);
		me->depth = cases[k].depth;
		me->held_sp = cases[k].held_sp;
		m.__data.__lock = cases[k].taken;
		free_mutex("pthread_mutex_lock", offsetof(struct ca_real, pthread_mutex_lock),
			   (void *)pthread_mutex_lock, &m);
		assert_string_equal(trace, cases[k].lock);
		free_mutex("pthread_mutex_unlock", offsetof(struct ca_real, pthread_mutex_unlock),
			   (void *)pthread_mutex_unlock, &m);
		assert_string_equal(trace, cases[k].unlock);
	}
	atomic_store(&s->threads, 0);
	me->depth = 0;
	me->held_sp = 0;
	ca_self = NULL;
}

/* Each call in the program is a place of its own, whichever wrapper it comes to and however deep that is. */
static __attribute__((noinline)) uintptr_t met_in(int which, sem_t *object)
{
	static const long wake[] = { FUTEX_WAKE | FUTEX_PRIVATE_FLAG, FUTEX_WAKE };

	begin();
	met_from = 0;
	if (which)
		syscall(SYS_futex, object, wake[which - 1], 1, NULL, NULL, 0);
	else
		sem_post(object);
	return met_from;
}

static void places(void **state)
{
	uintptr_t here[3];
	sem_t object;

	(void)state;
	REPLACE(sem_post, real);
	REPLACE(syscall, real);
	for (int i = 0; i < 3; i++) {
		here[i] = met_in(i, &object);
		assert_in_range(here[i], (uintptr_t)met_in, (uintptr_t)met_in + 1024);
		assert_int_equal(here[i], met_in(i, &object));
	}
	assert_true(here[0] != here[1]);
	assert_int_equal(here[1], here[2]); /* one call, in which the wrapper goes two ways */
}

static void spinning(void **state)
{
	pthread_spinlock_t lock = 0;

	(void)state;
	begin();
	got[0] = (long)(intptr_t)&lock;
	REPLACE(pthread_spin_lock, real);
	REPLACE(pthread_spin_trylock, try_real);
	try_answers[0] = try_answers[1] = EBUSY;
	try_answers[2] = 0;
	assert_int_equal(pthread_spin_lock(&lock), 0);
	assert_string_equal(trace, "mtbtte");
	begin();
	got[0] = (long)(intptr_t)&lock;
	try_answers[0] = 0;
	assert_int_equal(pthread_spin_lock(&lock), 0);
	assert_string_equal(trace, "mt");
}

static void semaphores(void **state)
{
	sem_t semaphore;

	(void)state;
	begin();
	got[0] = (long)(intptr_t)&semaphore;
	REPLACE(sem_wait, real);
	REPLACE(sem_trywait, try_sem);
	try_answers[0] = -1;
	errno = 5;
	assert_int_equal(sem_wait(&semaphore), RESULT);
	assert_string_equal(trace, "mtbhcre");
	assert_int_equal(errno_seen, 5);
	assert_int_equal(errno, ERROR);
	begin();
	got[0] = (long)(intptr_t)&semaphore;
	try_answers[0] = 0;
	assert_int_equal(sem_wait(&semaphore), 0);
	assert_string_equal(trace, "mt");
}

/* ---- polls and sleeps ------------------------------------------------------------------------------ */
static void polls(void **state)
{
	unsigned n = 0;

	(void)state;
	for (const struct row *row = table; row < table + CA_COUNT(table); row++) {
		long a[ARGUMENTS] = { (long)(intptr_t)polled, 1 };

		if (!is_poll(row))
			continue;
		n++;
		polled[0] = (struct pollfd){ .fd = WAIT_FD };
		polled[1] = (struct pollfd){ .fd = PIPE_FD, .revents = POLLIN };
		answers[0] = 1;
		call(row, a); /* the result says that one is ready, but none is */
		assert_int_equal(waited_fd, -1);
		assert_int_equal(ended, CA_WAIT_EXTERNAL);
		a[1] = 2; /* the one that is ready tells whom it was for */
		call(row, a);
		assert_int_equal(ended, CA_WAIT_OTHERS);
		polled[0].revents = POLLIN; /* both: one of ours would have ended it */
		call(row, a);
		assert_int_equal(ended, CA_WAIT_OTHERS);
		polled[1].revents = 0;
		call(row, a);
		assert_int_equal(ended, CA_WAIT_EXTERNAL);
		answers[0] = -1;
		call(row, a);
		assert_int_equal(ended, CA_WAIT_EXTERNAL);
		answers[0] = 0; /* at its limit, which is one of the program's clock */
		call(row, a);
		assert_int_equal(ended, CA_WAIT_EXTERNAL);
		s->virtual_clock = 1;
		call(row, a);
		assert_int_equal(ended, CA_WAIT_OTHERS);
		s->virtual_clock = 0;
		a[0] = 0;
		a[1] = 1;
		answers[0] = -1;
		call(row, a); /* nonsense is passed on */
		assert_int_equal(waited_fd, -1);
		memset(polled, 0, sizeof polled);
	}
	assert_int_equal(n, 4);
}

/* Limits of polls: waited for again once they have moved on. */
static void poll_limits(void **state)
{
	const struct timespec second = { 1, 0 };
	struct timeval limit = { 1, 0 };
	struct epoll_event event;
	fd_set set;

	(void)state;
	answers[0] = answers[1] = 0;
	answers[2] = 1;
	REPLACE(poll, real);
	REPLACE(ppoll, real);
	REPLACE(select, real);
	REPLACE(pselect, real);
	REPLACE(epoll_wait, real);
	begin();
	moves = 2;
	assert_int_equal(poll(polled, 2, 1000), 1);
	assert_string_equal(trace, "bhcccre");
	begin();
	moves = 2; /* none, or none that waits */
	assert_int_equal(poll(polled, 2, -1), 0);
	begin();
	assert_int_equal(poll(polled, 2, 0), 0);
	begin();
	assert_int_equal(ppoll(polled, 2, NULL, NULL), 0);
	assert_string_equal(trace, "bhcre");
	begin();
	assert_int_equal(ppoll(polled, 2, &second, NULL), 1);
	/* what the kernel has cleared is there again */
	begin();
	moves = 2;
	FD_ZERO(&set);
	FD_SET(40, &set);
	assert_int_equal(select(41, &set, NULL, NULL, &limit), 1);
	assert_string_equal(trace, "bhcccre");
	assert_true(FD_ISSET(40, &set));
	assert_int_equal(limit.tv_sec, 1); /* the stand-in has not written to it, so neither do we */
	begin();
	moves = 2;
	assert_int_equal(pselect(41, &set, NULL, NULL, &second, NULL), 1);
	assert_string_equal(trace, "bhcccre");
	/* nothing but a sleep */
	begin();
	assert_int_equal(poll(NULL, 0, 5), 0);
	assert_string_equal(trace, "sbhcre");
	assert_int_equal(slept, 5000000);
	begin();
	limit = (struct timeval){ 0, 7 };
	assert_int_equal(select(0, NULL, NULL, NULL, &limit), 0);
	assert_string_equal(trace, "sbhcre");
	assert_int_equal(slept, 7000);
	/* by poll, and then what there is */
	answers[1] = answers[2] = answers[3] = 1;
	begin();
	moves = 1;
	assert_int_equal(epoll_wait(3, &event, 1, 1000), 1);
	assert_string_equal(trace, "bhcccre");
	assert_int_equal((int)got[3], 0);
	moves = 0;
	begin();
}

static void sleeps(void **state)
{
	const struct timespec time = { 3, 17 };

	(void)state;
	answers[0] = 0;
	REPLACE(nanosleep, real);
	REPLACE(clock_nanosleep, real);
	REPLACE(usleep, real);
	REPLACE(sleep, real);
	nanosleep(&time, NULL);
	assert_int_equal(slept, UINT64_C(3000000017));
	slept = 0;
	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
	assert_int_equal(slept, UINT64_C(3000000017));
	usleep(1500);
	assert_int_equal(slept, 1500000);
	sleep(2);
	assert_int_equal(slept, UINT64_C(2000000000));
	/* until a time of day, and nonsense: no length is known */
	begin();
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
	assert_string_equal(trace, "bhcre");
	begin();
	nanosleep(NULL, NULL);
	assert_string_equal(trace, "sbhcre");
	assert_int_equal(slept, UINT64_MAX);
	begin();
	clock_nanosleep(CLOCK_MONOTONIC, 0, NULL, NULL);
	assert_string_equal(trace, "sbhcre");
	/* until a time that moves on */
	begin();
	moves = 1;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
	assert_string_equal(trace, "bhccre");
}

static void clocks(void **state)
{
	struct timespec t;
	struct timeval v;
	struct timezone zone;
	time_t seconds;

	(void)state;
	REPLACE(clock_gettime, real);
	REPLACE(gettimeofday, real);
	REPLACE(time, real);
	REPLACE(timespec_get, real);
	answers[0] = 0;
	begin();
	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &t), 0);
	assert_int_equal(t.tv_nsec, 7);
	assert_int_equal(gettimeofday(&v, NULL), 0);
	assert_int_equal(v.tv_sec, 4);
	assert_int_equal(v.tv_usec, 5);
	assert_int_equal(time(&seconds), 4);
	assert_int_equal(seconds, 4);
	assert_int_equal(time(NULL), 4);
	assert_int_equal(timespec_get(&t, TIME_UTC), TIME_UTC);
	assert_int_equal(t.tv_nsec, 5006);
	assert_string_equal(trace, "pvpvpvpvpv");
	begin();
	assert_int_equal(gettimeofday(&v, &zone), 0);
	assert_ptr_equal((void *)got[1], &zone);
	assert_string_equal(trace, "cpv");
	begin();
	assert_int_equal(timespec_get(&t, TIME_UTC + 1), 0);
	assert_string_equal(trace, "c");
	begin();
	assert_int_equal(syscall(SYS_clock_gettime, (long)CLOCK_REALTIME, &t), 0);
	assert_int_equal(t.tv_nsec, 5006);
	assert_string_equal(trace, "pv");
}

/* ---- locks on files, and the disk ------------------------------------------------------------------ */
static void file_locks(void **state)
{
	static const int waits[] = { LOCK_EX, LOCK_SH }, others[] = { LOCK_UN, LOCK_EX | LOCK_NB };
	static const int other_commands[] = { F_TLOCK, F_ULOCK, F_TEST };

	(void)state;
	REPLACE(flock, real);
	REPLACE(lockf, real);
	REPLACE(lockf64, real);
	for (unsigned i = 0; i < CA_COUNT(waits); i++) {
		begin();
		assert_int_equal(flock(7, waits[i]), RESULT);
		assert_string_equal(trace, "bce");
		assert_int_equal(begun, CA_WAIT_OTHERS);
		assert_int_equal((int)got[1], waits[i]);
		begin();
		assert_int_equal(flock(7, others[i]), RESULT);
		assert_string_equal(trace, "mc");
	}
	begin();
	assert_int_equal(lockf(7, F_LOCK, 3), RESULT);
	assert_string_equal(trace, "bce");
	assert_int_equal(got[2], 3);
	begin();
	assert_int_equal(lockf64(7, F_LOCK, 3), RESULT);
	assert_string_equal(trace, "bce");
	for (unsigned i = 0; i < CA_COUNT(other_commands); i++) {
		begin();
		assert_int_equal(lockf(7, other_commands[i], 3), RESULT);
		assert_string_equal(trace, "mc");
		begin();
		assert_int_equal(lockf64(7, other_commands[i], 3), RESULT);
		assert_string_equal(trace, "mc");
	}
}

static void file_control(void **state)
{
	static int (*const wrappers[])(int, int, ...) = { fcntl, fcntl64 };
	static const struct {
		int command;
		const char *trace;
	} cases[] = { { F_SETLKW, "bce" },     { F_OFD_SETLKW, "bce" }, { F_SETLK, "mc" },
		      { F_OFD_SETLK, "mc" },   { F_GETLK, "c" },        { F_GETFL, "c" },
		      { F_DUPFD_CLOEXEC, "c" } };

	(void)state;
	REPLACE(fcntl, real);
	REPLACE(fcntl64, real);
	for (unsigned i = 0; i < CA_COUNT(wrappers); i++)
		for (unsigned k = 0; k < CA_COUNT(cases); k++) {
			begin();
			errno = 5;
			assert_int_equal(wrappers[i](7, cases[k].command, memory), RESULT);
			assert_int_equal(errno, ERROR);
			assert_string_equal(trace, cases[k].trace);
			assert_int_equal((int)got[0], 7);
			assert_int_equal((int)got[1], cases[k].command);
			assert_ptr_equal(got[2], memory);
			begin();
			wrappers[i](7, cases[k].command, 33);
			assert_int_equal((int)got[2], 33);
		}
}

static void mapped_files(void **state)
{
	(void)state;
	REPLACE(msync, real);
	begin();
	assert_int_equal(msync(memory, 5, MS_SYNC), RESULT);
	assert_string_equal(trace, "bce");
	assert_int_equal(begun, CA_WAIT_EXTERNAL);
	assert_int_equal(waited_fd, -1);
	begin();
	assert_int_equal(msync(memory, 5, MS_ASYNC), RESULT); /* waits for nothing */
	assert_string_equal(trace, "c");
}

/* ---- the end of a process ---------------------------------------------------------------------------- */
static jmp_buf before_the_end;

static void leave(int status)
{
	note('c');
	got[0] = status;
	longjmp(before_the_end, 1);
}

static void ends(void **state)
{
	static void (*const wrappers[])(int) = { exit, _exit, _Exit, quick_exit };

	(void)state;
	REPLACE(exit, leave);
	REPLACE(_exit, leave);
	REPLACE(_Exit, leave);
	REPLACE(quick_exit, leave);
	for (volatile unsigned i = 0; i < CA_COUNT(wrappers); i++) {
		begin();
		if (!setjmp(before_the_end))
			wrappers[i](17 + (int)i);
		assert_string_equal(trace, i ? "mlc" : "mc"); /* exit calls our destructor */
		assert_int_equal(got[0], 17 + i);
	}
	REPLACE(thrd_yield, real);
	begin();
	thrd_yield();
	assert_string_equal(trace, "bce");
	assert_int_equal(begun, CA_WAIT_OTHERS);
}

/* ---- System V's and BSD's calls for signals ---------------------------------------------------------- */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static struct sigaction set_action;
static int set_signal;

static int set_it(int signal_number, const struct sigaction *set, struct sigaction *old)
{
	note('a');
	set_signal = signal_number;
	if (old)
		*old = set_action;
	if (set)
		set_action = *set;
	return 0;
}

static void old_signals(void **state)
{
	static const int ours[] = { CA_SIGNAL, SIGTRAP, SIGILL };
	int all = -1, without = all;

	(void)state;
	REPLACE(sigblock, real);
	REPLACE(sigsetmask, real);
	REPLACE(sighold, real);
	REPLACE(sigignore, real);
	REPLACE(sigset, real);
	REPLACE(siginterrupt, real);
	REPLACE(sigaction, set_it);
	for (unsigned i = 0; i < CA_COUNT(ours); i++)
		without &= (int)~(1u << (ours[i] - 1));
	ca_rt.patching = true;
	begin();
	assert_int_equal(sigblock(all), RESULT);
	assert_int_equal((int)got[0], without);
	assert_int_equal(sigsetmask(all), RESULT);
	assert_int_equal((int)got[0], without);
	/* those that are not ours are libc's matter */
	begin();
	assert_int_equal(sighold(SIGUSR1), RESULT);
	assert_int_equal(sigignore(SIGUSR1), RESULT);
	assert_ptr_equal(sigset(SIGUSR1, SIG_IGN), (void *)RESULT);
	assert_int_equal(siginterrupt(SIGUSR1, 1), RESULT);
	assert_string_equal(trace, "cccc");
	/* ours are never blocked; the rest is as sigaction has it */
	for (unsigned i = 0; i < CA_COUNT(ours); i++) {
		memset(&set_action, 0, sizeof set_action);
		begin();
		assert_int_equal(sighold(ours[i]), 0);
		assert_string_equal(trace, "");
		if (ours[i] != CA_SIGNAL)
			continue;
		assert_int_equal(sigignore(ours[i]), 0);
		assert_ptr_equal(set_action.sa_handler, SIG_IGN);
		assert_ptr_equal(sigset(ours[i], (__sighandler_t)(void *)real), SIG_IGN);
		assert_ptr_equal(sigset(ours[i], SIG_HOLD), (void *)real);
		assert_ptr_equal(set_action.sa_handler, (void *)real);
		assert_int_equal(siginterrupt(ours[i], 0), 0);
		assert_int_equal(set_action.sa_flags, SA_RESTART);
		assert_int_equal(siginterrupt(ours[i], 1), 0);
		assert_int_equal(set_action.sa_flags, 0);
		assert_int_equal(set_signal, ours[i]);
	}
	/* without patched code two of them are the program's own, without a run all */
	ca_rt.patching = false;
	begin();
	sigblock(all);
	assert_int_equal((int)got[0], all & (int)~(1u << (CA_SIGNAL - 1)));
	assert_int_equal(sighold(SIGTRAP), RESULT);
	atomic_store(&ca_rt.on, false);
	sigblock(all);
	assert_int_equal((int)got[0], all);
	assert_int_equal(sighold(CA_SIGNAL), RESULT);
}
#pragma GCC diagnostic pop

/* ---- raw system calls -------------------------------------------------------------------------------- */
static void raw_calls(void **state)
{
	static const long waits[] = { FUTEX_WAIT,
				      FUTEX_WAIT_BITSET,
				      FUTEX_LOCK_PI,
				      FUTEX_LOCK_PI2,
				      FUTEX_WAIT_REQUEUE_PI,
				      FUTEX_WAIT | FUTEX_PRIVATE_FLAG,
				      FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME };
	static const struct {
		long op;
		const char *trace; /* what other processes may see is told of */
	} others[] = { { FUTEX_WAKE, "Wc" },     { FUTEX_WAKE_PRIVATE, "mc" },
		       { FUTEX_REQUEUE, "WWc" }, { FUTEX_REQUEUE | FUTEX_PRIVATE_FLAG, "mmc" },
		       { FUTEX_WAKE_OP, "WWc" }, { FUTEX_UNLOCK_PI, "Wc" } };

	const struct timespec limit = { 2, 0 };

	(void)state;
	REPLACE(syscall, real);
	for (unsigned i = 0; i < CA_COUNT(waits); i++) {
		begin();
		answers[0] = -1;
		answer_errno = EAGAIN;
		assert_int_equal(syscall(SYS_futex, 11L, waits[i], 13L, 14L, 15L, 16L), -1);
		assert_string_equal(trace, "bhcre");
		assert_int_equal(ended, CA_WAIT_OTHERS);
		assert_ptr_equal(said_object, (const void *)11);
		assert_int_equal(errno, EAGAIN);
		assert_int_equal(got[0], SYS_futex);
		assert_int_equal(got[1], 11);
		assert_int_equal(got[2], waits[i]);
		for (int k = 3; k < ARGUMENTS; k++)
			assert_int_equal(got[k], 10 + k);
		answer_errno = ETIMEDOUT;
		begin();
		syscall(SYS_futex, 11L, waits[i], 13L, 14L, 15L, 16L);
		assert_int_equal(ended, CA_WAIT_OTHERS);
		begin();
		moves = 1;
		syscall(SYS_futex, 11L, waits[i], 13L, &limit, 15L, 16L);
		assert_string_equal(trace, "bhccre");
		assert_int_equal(((const struct timespec *)got[4])->tv_sec, 1);
		/* woken: by whom? */
		begin();
		answers[0] = 0;
		syscall(SYS_futex, 11L, waits[i], 13L, 14L, 15L, 16L);
		assert_int_equal(ended, waits[i] & FUTEX_PRIVATE_FLAG ? CA_WAIT_OTHERS : CA_WAIT_EXTERNAL);
	}
	for (unsigned i = 0; i < CA_COUNT(others); i++) {
		begin();
		answers[0] = 3;
		assert_int_equal(syscall(SYS_futex, 11L, others[i].op, 13L, 14L, 15L, 16L), 3);
		assert_string_equal(trace, others[i].trace);
		if (*trace == 'm')
			assert_ptr_equal(met_object, (const void *)(trace[1] == 'm' ? 15L : 11L));
		for (int k = 3; k < ARGUMENTS; k++)
			assert_int_equal(got[k], 10 + k);
	}
	begin();
	assert_int_equal(syscall(SYS_mmap, 11L, 12L, 13L, 14L, 15L, 16L), 3);
	assert_string_equal(trace, "c");
	for (int k = 1; k < ARGUMENTS; k++)
		assert_int_equal(got[k], 10 + k);
}

/* What a wrapper does is done for the number, too. */
static void other_raw_calls(void **state)
{
	static const struct {
		long number;
		const char *trace;
		enum ca_wait kind;
		int fd;
	} cases[] = {
		{ SYS_read, "bhcre", CA_WAIT_EXTERNAL, 11 },
		{ SYS_sendmmsg, "bhcre", CA_WAIT_EXTERNAL, 11 },
		{ SYS_io_getevents, "bhcre", CA_WAIT_EXTERNAL, -1 },
		{ SYS_epoll_wait, "bhcre", CA_WAIT_EXTERNAL, -1 },
		{ 449, "bhcre", CA_WAIT_OTHERS, -1 },
		{ SYS_flock, "bhcre", CA_WAIT_OTHERS, -1 },
		{ SYS_tgkill, "mc", (enum ca_wait)9, -2 },
		{ SYS_exit_group, "mlc", (enum ca_wait)9, -2 },
		{ SYS_getpid, "c", (enum ca_wait)9, -2 },
	};

	const struct timespec limit = { 2, 0 };

	(void)state;
	REPLACE(syscall, real);
	for (unsigned i = 0; i < CA_COUNT(cases); i++) {
		begin();
		answers[0] = -1;
		answer_errno = EAGAIN;
		errno = 5;
		assert_int_equal(syscall(cases[i].number, 11L, 12L, 13L, 14L, 15L, 16L), -1);
		assert_string_equal(trace, cases[i].trace);
		assert_int_equal(begun, cases[i].kind);
		assert_int_equal(waited_fd, cases[i].fd);
		assert_int_equal(errno, EAGAIN);
		assert_int_equal(errno_seen, 5);
		assert_int_equal(got[0], cases[i].number);
		for (int k = 1; k < ARGUMENTS; k++)
			assert_int_equal(got[k], 10 + k);
	}
	answer_errno = ETIMEDOUT;
	begin();
	syscall(449, 11L, 12L, 13L, 14L, 15L, 16L);
	assert_int_equal(ended, CA_WAIT_OTHERS);
	begin();
	moves = 1;
	syscall(449, 11L, 12L, 13L, &limit, 15L, 16L);
	assert_string_equal(trace, "bhccre");
	/* the ring: submit, or wait for so many */
	begin();
	syscall(SYS_io_uring_enter, 3L, 1L, 0L, 1L, 0L, 0L);
	assert_string_equal(trace, "mc");
	begin();
	syscall(SYS_io_uring_enter, 3L, 1L, 1L, 1L, 0L, 0L);
	assert_string_equal(trace, "bhcre");
	assert_int_equal(ended, CA_WAIT_EXTERNAL);
}

static void raw_waits_look_in(void **state)
{
	const struct timespec time = { 3, 17 };
	uint64_t mask = 0;

	(void)state;
	REPLACE(syscall, real);
	polled[0] = (struct pollfd){ .fd = WAIT_FD };
	begin();
	syscall(SYS_poll, polled, 1L, 5L);
	assert_int_equal(waited_fd, WAIT_FD);
	begin();
	syscall(SYS_ppoll, polled, 1L, NULL, NULL, 8L);
	assert_int_equal(waited_fd, WAIT_FD);
	assert_int_equal(got[4], 0);
	begin();
	syscall(SYS_ppoll, polled, 2L, NULL, NULL, 8L);
	assert_int_equal(waited_fd, -1);
	slept = 0;
	begin();
	REPLACE(nanosleep, real);
	REPLACE(clock_nanosleep, real);
	answers[0] = 0;
	syscall(SYS_nanosleep, &time, NULL);
	assert_int_equal(slept, UINT64_C(3000000017));
	assert_string_equal(trace, "sbhcre");
	begin();
	syscall(SYS_clock_nanosleep, (long)CLOCK_MONOTONIC, (long)TIMER_ABSTIME, &time, NULL);
	assert_string_equal(trace, "bhcre");
	/* our signal does not end it */
	mask_argument = 4;
	syscall(SYS_ppoll, polled, 1L, NULL, &mask, 8L);
	assert_int_equal(mask_had_ours, 1);
	mask_argument = 5;
	syscall(SYS_epoll_pwait, 3L, memory, 1L, 5L, &mask, 8L);
	assert_int_equal(mask_had_ours, 1);
	mask_argument = 0;
	assert_int_equal(mask, 0);
	memset(polled, 0, sizeof polled);
}

static void raw_forks(void **state)
{
	(void)state;
	REPLACE(syscall, real);
	answers[0] = 0;
	begin();
	syscall(SYS_fork);
	assert_string_equal(trace, "cF");
	begin();
	syscall(SYS_clone, (long)SIGCHLD, 0L);
	assert_string_equal(trace, "cF");
	begin();
	syscall(SYS_clone, (long)CLONE_VM, 0L); /* shares our memory: no process of its own */
	assert_string_equal(trace, "c");
	begin();
	syscall(SYS_getppid);
	assert_string_equal(trace, "c");
	answers[0] = 1234; /* the parent */
	begin();
	syscall(SYS_fork);
	assert_string_equal(trace, "c");
}

static void filters(void **state)
{
	(void)state;
	REPLACE(syscall, real);
	REPLACE(prctl, real);
	begin();
	assert_int_equal(syscall(SYS_seccomp, (long)SECCOMP_SET_MODE_FILTER, 0L, memory), RESULT);
	assert_string_equal(trace, "Sc");
	assert_false(seccomp_strict);
	assert_ptr_equal(seccomp_program, memory);
	begin();
	syscall(SYS_seccomp, (long)SECCOMP_SET_MODE_STRICT, 0L, 0L);
	assert_string_equal(trace, "Sc");
	assert_true(seccomp_strict);
	begin();
	syscall(SYS_seccomp, (long)SECCOMP_GET_ACTION_AVAIL, 0L, memory);
	assert_string_equal(trace, "c");
	begin();
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, memory, 4L, 5L), RESULT);
	assert_string_equal(trace, "Pc");
	assert_int_equal(prctl_option, PR_SET_SECCOMP);
	assert_int_equal(prctl_argument[0], SECCOMP_MODE_FILTER);
	assert_int_equal(prctl_argument[1], (long)(intptr_t)memory);
	assert_int_equal(got[0], PR_SET_SECCOMP);
	assert_int_equal(got[1], SECCOMP_MODE_FILTER);
	assert_ptr_equal(got[2], memory);
	assert_int_equal(got[3], 4);
	assert_int_equal(got[4], 5);
	begin();
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	assert_int_equal(prctl_argument[0], SECCOMP_MODE_STRICT);
	begin();
	prctl(PR_GET_DUMPABLE);
	assert_string_equal(trace, "Pc");
	assert_int_equal(prctl_option, PR_GET_DUMPABLE);
	begin();
	syscall(SYS_prctl, (long)PR_SET_TSC, (long)PR_TSC_SIGSEGV);
	assert_string_equal(trace, "Pc");
	assert_int_equal(prctl_option, PR_SET_TSC);
	assert_int_equal(prctl_argument[0], PR_TSC_SIGSEGV);
}

/* ---- threads ----------------------------------------------------------------------------------------- */
static void *(*run_posix)(void *);
static int (*run_c11)(void *);
static void *run_argument;

static int create(pthread_t *thread_, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	note('c');
	assert_ptr_equal(thread_, memory[0]);
	assert_ptr_equal(attributes, memory[1]);
	run_posix = run;
	run_argument = argument;
	return (int)answers[0];
}

static int create_c11(thrd_t *thread_, thrd_start_t run, void *argument)
{
	note('c');
	assert_ptr_equal(thread_, memory[0]);
	run_c11 = run;
	run_argument = argument;
	return (int)answers[0];
}

static void *body(void *argument)
{
	note('B');
	assert_ptr_equal(argument, memory[2]);
	return memory[3];
}

static int body_c11(void *argument)
{
	body(argument);
	return 9;
}

static void threads_start(void **state)
{
	pthread_t *id = (pthread_t *)memory[0];
	const pthread_attr_t *attributes = (const pthread_attr_t *)memory[1];

	(void)state;
	REPLACE(pthread_create, create);
	REPLACE(thrd_create, create_c11);
	answers[0] = 0;
	starts = 0;
	begin();
	assert_int_equal(pthread_create(id, attributes, body, memory[2]), 0);
	assert_ptr_equal(run_posix(run_argument), memory[3]);
	assert_string_equal(trace, "mcTB"); /* it is known to us before it runs */
	assert_int_equal(starts, 1);        /* we may not have joined yet */
	begin();
	assert_int_equal(thrd_create(id, body_c11, memory[2]), 0);
	assert_int_equal(run_c11(run_argument), 9);
	assert_string_equal(trace, "mcTB");
	answers[0] = EAGAIN;
	begin();
	assert_int_equal(pthread_create(id, attributes, body, memory[2]), EAGAIN);
	assert_int_equal(thrd_create(id, body_c11, memory[2]), EAGAIN);
	/* switched off: nothing of ours in between */
	atomic_store(&ca_rt.on, false);
	begin();
	pthread_create(id, attributes, body, memory[2]);
	assert_true(run_posix == body);
	assert_ptr_equal(run_argument, memory[2]);
	thrd_create(id, body_c11, memory[2]);
	assert_true(run_c11 == body_c11);
	assert_string_equal(trace, "cc");
}

static void cancellation(void **state)
{
	(void)state;
	REPLACE(pthread_setcanceltype, real);
	begin();
	assert_int_equal(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, (int *)memory[1]), RESULT);
	assert_string_equal(trace, "Ac"); /* before, since it may be hit at once */
	assert_int_equal(got[0], PTHREAD_CANCEL_ASYNCHRONOUS);
	assert_ptr_equal(got[1], memory[1]);
	begin();
	assert_int_equal(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL), RESULT);
	assert_string_equal(trace, "cD");
}

/* ---- programs that are executed ------------------------------------------------------------------------ */
char *executed_argv[8], *executed_env[8];
static char executed_text[8][96];
const char *executed_path;
int executed_fd;

/* What it gets lies on the wrapper's stack. */
static void copy_list(char *const from[], char *to[8])
{
	unsigned n = 0;

	for (; from && from[n]; n++) {
		assert_true(n < 7);
		to[n] = from[n];
		if (to == executed_env) {
			assert_true(strlen(from[n]) < sizeof executed_text[n]);
			to[n] = strcpy(executed_text[n], from[n]);
		}
	}
	to[n] = NULL;
}

static int execute(const char *path, char *const argv[], char *const env[])
{
	note('c');
	executed_path = path;
	copy_list(argv, executed_argv);
	copy_list(env, executed_env);
	errno = ERROR;
	return -1;
}

static int execute_fd(int fd, char *const argv[], char *const env[])
{
	executed_fd = fd;
	return execute("fd", argv, env);
}

static int spawn(pid_t *pid, const char *path, const void *actions, const void *attributes,
		 char *const argv[], char *const env[])
{
	assert_ptr_equal(pid, memory[0]);
	assert_ptr_equal(actions, memory[1]);
	assert_ptr_equal(attributes, memory[2]);
	execute(path, argv, env);
	return RESULT;
}

static int execute_at(int fd, const char *path, char *const argv[], char *const env[], int flags)
{
	assert_int_equal(fd, 5);
	assert_int_equal(flags, 9);
	return execute(path, argv, env);
}

static void replace_exec(void)
{
	REPLACE(execve, execute);
	REPLACE(execvpe, execute);
	REPLACE(fexecve, execute_fd);
	REPLACE(execveat, execute_at);
	REPLACE(posix_spawn, spawn);
	REPLACE(posix_spawnp, spawn);
	strcpy(ca_rt.session_path, "/run/session");
	strcpy(ca_rt.own_path, "/lib/rt.so");
}

static bool env_has(const char *wanted)
{
	unsigned n = 0;

	for (unsigned i = 0; executed_env[i]; i++)
		n += !strcmp(executed_env[i], wanted);
	return n == 1;
}

static unsigned env_size(void)
{
	unsigned n = 0;

	while (executed_env[n])
		n++;
	return n;
}

static void environment_of_exec(void **state)
{
	char *argv[] = { (char *)"a", (char *)"b", NULL }, *none[] = { NULL };
	char *plain[] = { (char *)"X=1", (char *)"Y=2", NULL };
	char *other[] = { (char *)"X=1", (char *)"LD_PRELOAD=other.so", (char *)"CAUSAL_SESSION=/old", NULL };
	char *ours[] = { (char *)"CAUSAL_SESSION=/run/session", (char *)"LD_PRELOAD=a.so:/lib/rt.so", NULL };
	char *half[] = { (char *)"LD_PRELOAD=/lib/rt.so", (char *)"CAUSAL_SESSIONS=no", NULL };
	char *empty[] = { (char *)"LD_PRELOAD=", NULL };

	(void)state;
	replace_exec();
	begin();
	assert_int_equal(execve("/bin/p", argv, plain), -1);
	assert_int_equal(errno, ERROR);
	assert_string_equal(trace, "pcq");
	assert_string_equal(executed_path, "/bin/p");
	assert_string_equal(executed_argv[1], "b");
	assert_int_equal(env_size(), 4);
	assert_true(env_has("X=1") && env_has("Y=2"));
	assert_true(env_has("CAUSAL_SESSION=/run/session") && env_has("LD_PRELOAD=/lib/rt.so"));
	execve("/bin/p", argv, other);
	assert_int_equal(env_size(), 3);
	assert_true(env_has("X=1") && env_has("CAUSAL_SESSION=/run/session"));
	assert_true(env_has("LD_PRELOAD=other.so:/lib/rt.so"));
	execve("/bin/p", argv, ours);
	assert_int_equal(env_size(), 2);
	assert_string_equal(executed_env[1], ours[1]);
	execve("/bin/p", argv, half);
	assert_int_equal(env_size(), 3);
	assert_true(env_has("CAUSAL_SESSION=/run/session") && env_has("CAUSAL_SESSIONS=no"));
	execve("/bin/p", argv, none);
	assert_int_equal(env_size(), 2);
	execve("/bin/p", argv, NULL);
	assert_int_equal(env_size(), 2);
	execve("/bin/p", argv, empty);
	assert_int_equal(env_size(), 2);
	assert_true(env_has("LD_PRELOAD=/lib/rt.so"));
	/* no business of ours */
	atomic_store(&ca_rt.on, false);
	execve("/bin/p", argv, plain);
	assert_int_equal(env_size(), 2);
	atomic_store(&ca_rt.on, true);
	ca_rt.own_path[0] = 0;
	execve("/bin/p", argv, plain);
	assert_int_equal(env_size(), 2);
}

static void forms_of_exec(void **state)
{
	char *argv[] = { (char *)"a", (char *)"b", (char *)"c", NULL }, *env[] = { (char *)"Z=3", NULL };
	char **saved = environ;

	(void)state;
	replace_exec();
	cover("execv"), cover("execvp"), cover("execl"), cover("execlp"), cover("execle");
	environ = env;
	for (unsigned form = 0; form < 9; form++) {
		begin();
		memset(executed_argv, 0, sizeof executed_argv);
		assert_int_equal(form == 0   ? execv("/p", argv)
				 : form == 1 ? execvp("/p", argv)
				 : form == 2 ? execvpe("/p", argv, env)
				 : form == 3 ? execl("/p", "a", "b", "c", NULL)
				 : form == 4 ? execlp("/p", "a", "b", "c", NULL)
				 : form == 5 ? execle("/p", "a", "b", "c", NULL, env)
				 : form == 6 ? fexecve(5, argv, env)
				 : form == 7 ? execveat(5, "/p", argv, env, 9)
					     : execve("/p", argv, env),
				 -1);
		assert_string_equal(trace, "pcq");
		assert_string_equal(executed_path, form == 6 ? "fd" : "/p");
		for (unsigned i = 0; i < 3; i++)
			assert_string_equal(executed_argv[i], argv[i]);
		assert_null(executed_argv[3]);
		assert_int_equal(env_size(), 3);
		assert_true(env_has("Z=3") && env_has("LD_PRELOAD=/lib/rt.so"));
	}
	assert_int_equal(executed_fd, 5);
	environ = saved;
	for (unsigned form = 0; form < 2; form++) {
		begin();
		assert_int_equal((form ? posix_spawnp : posix_spawn)(
					 (pid_t *)memory[0], "/p", (posix_spawn_file_actions_t *)memory[1],
					 (posix_spawnattr_t *)memory[2], argv, env),
				 RESULT);
		assert_string_equal(trace, "mc");
		assert_string_equal(executed_path, "/p");
		assert_true(env_has("Z=3") && env_has("CAUSAL_SESSION=/run/session"));
	}
}

/* ---- libraries ----------------------------------------------------------------------------------------- */
static void *open_library(const char *name, int flags)
{
	note('c');
	assert_string_equal(name, "lib");
	assert_int_equal(flags, RTLD_LAZY);
	errno_seen = errno;
	return memory[4];
}

static void libraries(void **state)
{
	void *handle;

	(void)state;
	REPLACE(dlopen, open_library);
	REPLACE(dlclose, real);
	begin();
	errno = 5;
	handle = dlopen("lib", RTLD_LAZY);
	assert_ptr_equal(handle, memory[4]);
	assert_int_equal(errno_seen, 5);
	assert_string_equal(trace, "Lc");
	begin();
	guess_errno = ERROR;
	assert_int_equal(dlclose(memory[4]), RESULT);
	assert_ptr_equal(got[0], memory[4]);
	assert_string_equal(trace, "hcLr"); /* nobody patches meanwhile */
}

/* ---- numbers of the program's choice ----------------------------------------------------------------- */
static char fifo[64];
static atomic_bool opens;

static void *opens_ours(void *unused)
{
	atomic_store(&opens, true);
	ca_sys_close(ca_sys_open(fifo, O_RDONLY)); /* which takes until somebody writes */
	return unused;
}

static void place(unsigned how)
{
	switch (how) {
	case 0:
		dup2(1000, 1001);
		return;
	case 1:
		dup3(1000, 1001, O_CLOEXEC);
		return;
	case 2:
		close_range(1000, 1001, 0);
		return;
	default:
		closefrom(1000);
	}
}

/* What is put over a file of ours that is just being opened would be closed in its place: it waits, but not for
 * ever. The other thread may lose its CPU before it opens, so not each try tells. */
static void placed_while_we_open(void **state)
{
	enum { WAYS = 4, TRIES = 8, SOON = 200000, WAITED = 2000000 }; /* ns */
	unsigned waited[WAYS] = { 0 };

	(void)state;
	REPLACE(dup2, real), REPLACE(dup3, real), REPLACE(close_range, real), REPLACE(closefrom, real);
	snprintf(fifo, sizeof fifo, "/tmp/causal-wrappers-%d", (int)getpid());
	assert_int_equal(mkfifo(fifo, 0600), 0);
	for (unsigned i = 0; i < WAYS * TRIES; i++) {
		pthread_t opener;
		uint64_t from;

		atomic_store(&opens, false);
		assert_int_equal(all_real.pthread_create(&opener, NULL, opens_ours, NULL), 0);
		while (!atomic_load(&opens))
			;
		for (from = ca_clock_now(); ca_clock_now() - from < SOON;)
			;
		begin();
		from = ca_clock_now();
		place(i % WAYS);
		waited[i % WAYS] += ca_clock_now() - from > WAITED;
		assert_string_equal(trace, "c");
		all_real.close(open(fifo, O_WRONLY));
		all_real.pthread_join(opener, NULL);
	}
	unlink(fifo);
	for (unsigned i = 0; i < WAYS; i++)
		assert_in_range(waited[i], TRIES / 2, TRIES);
}

/* ---- ways out of S ---------------------------------------------------------------------------------------- */
uintptr_t checked_sp;
static uintptr_t sp_of_jump;
static const void *jump_env;
static int jump_value;

void ca_activation_check(struct ca_thread *t, uintptr_t sp)
{
	note('J');
	checked_sp = sp;
	if (t != me || t->guard != 1)
		note('!');
	errno = guess_errno;
}

/* Returns to whom the wrapper would return, since that is a jump. */
static __attribute__((noinline)) void jump(const void *env, int value)
{
	sp_of_jump = (uintptr_t)__builtin_frame_address(0);
	jump_env = env;
	jump_value = value;
	errno_seen = errno;
}

static const char *jumper[] = { "longjmp", "_longjmp", "siglongjmp", "__longjmp_chk" };

static void jumps(void **state)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	volatile unsigned jumped = 0;
	struct ca_real before = ca_real;
	void (*volatile wrapper)(const void *, int);
	jmp_buf env;

	(void)state;
	REPLACE(longjmp, jump);
	REPLACE(_longjmp, jump);
	REPLACE(siglongjmp, jump);
	REPLACE(__longjmp_chk, jump);
	for (unsigned i = 0; i < CA_COUNT(jumper); i++) {
		uintptr_t straight;
		char seen[2];

		*(void **)&wrapper = dlsym(RTLD_DEFAULT, jumper[i]);
		begin();
		ca_self = me;
		me->depth = 1;
		if (setjmp(env))
			abort();
		jump(env, 0);
		straight = sp_of_jump;
		errno = 5;
		guess_errno = ERROR;
		wrapper(env, (int)i);
		memcpy(seen, trace, 2);
		me->depth = 0; /* nothing to be looked at */
		wrapper(env, (int)i);
		ca_self = NULL;
		wrapper(env, (int)i);
		ca_real = before; /* a failure jumps, too */
		assert_int_equal(strcmp(seen, "J") || strcmp(trace, "J"), 0);
		assert_in_range(checked_sp, here - 8192, here);
		assert_ptr_equal(jump_env, env);
		assert_int_equal(jump_value, i);
		assert_int_equal(errno_seen, 5);
		assert_int_equal(sp_of_jump, straight); /* nothing of ours is below it */
		REPLACE(longjmp, jump);
		REPLACE(_longjmp, jump);
		REPLACE(siglongjmp, jump);
		REPLACE(__longjmp_chk, jump);
	}
	ca_real = before;
	if (!setjmp(env)) {
		jumped++;
		longjmp(env, 1);
	}
	assert_int_equal(jumped, 1);
	assert_int_equal(me->guard, 0);
	/* out of a payment; not if it lies further out, or on another stack */
	ca_self = me;
	for (volatile unsigned way = 0; way < 3; way++) {
		me->guard = 1;
		me->paying_sp = way == 1 ? (uintptr_t)-4096 : (uintptr_t)__builtin_frame_address(0) - 65536;
		me->stack.own_low = way == 2 ? 4096 : 0;
		me->stack.own_high = way == 2 ? 8192 : 0;
		if (!setjmp(env))
			longjmp(env, 1);
		assert_int_equal(me->guard, way ? 1 : 0);
	}
	me->guard = 0;
	me->paying_sp = me->stack.own_low = me->stack.own_high = 0;
}

/* ---- other stacks --------------------------------------------------------------------------------------- */
static ucontext_t home, away;

void ca_activation_put_aside(struct ca_aside *aside)
{
	note('P');
	aside->depth = 3;
	errno = guess_errno;
}

void ca_activation_take_up(const struct ca_aside *aside)
{
	note(aside->depth == 3 ? 'U' : '!');
	errno = guess_errno;
}

static void coroutine(void)
{
	note('a');
	swapcontext(&away, &home);
	note('b');
	errno = 7;
	setcontext(&home);
}

static void contexts(void **state)
{
	static char stack[65536];

	(void)state;
	assert_int_equal(getcontext(&away), 0);
	away.uc_stack.ss_sp = stack;
	away.uc_stack.ss_size = sizeof stack;
	makecontext(&away, coroutine, 0);
	begin();
	ca_self = me;
	me->depth = 1;
	guess_errno = ERROR;
	errno = 5;
	assert_int_equal(swapcontext(&home, &away), 0);
	assert_int_equal(errno, 5);
	assert_string_equal(trace, "PaPU");
	assert_int_equal(swapcontext(&home, &away), 0);
	assert_int_equal(errno, 7);
	assert_string_equal(trace, "PaPUPUbJU");
	assert_int_equal(checked_sp, home.uc_mcontext.gregs[REG_RSP]);
	me->depth = 0;
	cover("swapcontext");
	cover("setcontext");
}

void *__cxa_begin_catch(void *exception);

static void catches(void **state)
{
	int exception;

	(void)state;
	begin();
	ca_self = me;
	me->depth = 1;
	errno = 5;
	guess_errno = ERROR;
	assert_ptr_equal(__cxa_begin_catch(&exception), &exception); /* no C++ here */
	assert_int_equal(errno, 5);
	assert_string_equal(trace, "J");
	assert_in_range(checked_sp, (uintptr_t)__builtin_frame_address(0) - 8192,
			(uintptr_t)__builtin_frame_address(0));
	me->depth = 0;
}

/* ---- to whom datagrams go -------------------------------------------------------------------------------- */
static const void *sent_to[8];
static unsigned sendings;

void ca_peers_send_to(int fd, const void *to, socklen_t size)
{
	(void)fd;
	(void)size;
	sent_to[sendings++ % CA_COUNT(sent_to)] = to;
	guess_errno = EDOM;
}

static int send_two(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	(void)fd;
	(void)m;
	(void)flags;
	assert_int_equal(sendings, 1); /* who gets the first may answer at once */
	errno = (int)n;
	return 2;
}

static void datagrams(void **state)
{
	char a, b;
	struct mmsghdr m[] = { { .msg_hdr = { .msg_name = &a, .msg_namelen = 1 } },
			       { .msg_hdr = { .msg_name = &b, .msg_namelen = 1 } } };

	(void)state;
	begin();
	ca_self = me;
	REPLACE(sendmmsg, send_two);
	REPLACE(sendmsg, real);
	REPLACE(sendto, real);
	sendings = 0;
	assert_int_equal(sendmmsg(WAIT_FD, m, 77, 0), 2); /* of 77 that may not all be there */
	assert_int_equal(errno, 77);
	assert_int_equal(sendings, 2);
	assert_ptr_equal(sent_to[0], &a);
	assert_ptr_equal(sent_to[1], &b);
	sendmsg(WAIT_FD, &m[1].msg_hdr, 0);
	assert_int_equal(sendings, 3);
	assert_ptr_equal(sent_to[2], &b);
	sendto(WAIT_FD, "", 1, 0, (struct sockaddr *)(void *)&a, 1);
	assert_int_equal(sendings, 4);
	assert_ptr_equal(sent_to[3], &a);
}

/* ---- the table ----------------------------------------------------------------------------------------- */
/* Those of wrap_signal.c and wrap_timer.c. */
static const char *const elsewhere[] = {
	"sigaction",     "signal",         "sigprocmask",     "pthread_sigmask", "sigwait",
	"sigaltstack",   "mlockall",       "setrlimit",       "setrlimit64",     "prlimit",
	"prlimit64",     "sigwaitinfo",    "sigtimedwait",    "sigsuspend",      "pause",
	"signalfd",      "timerfd_create", "timerfd_settime", "timerfd_gettime", "timer_create",
	"timer_settime", "timer_gettime",  "timer_delete",    "setitimer",       "getitimer",
	"alarm"
};

static void every_row(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CA_COUNT(elsewhere); i++)
		cover(elsewhere[i]);
#define X(name, version) cover(#name);
	CA_WRAPPED_STDIO(X) /* test_runtime_stdio.c */
#undef X
	for (unsigned i = 0; i < CA_COUNT(rows); i++)
		if (!covered[i])
			fail_msg("%s is wrapped, and has no test here", rows[i].name);
}

static void real_ones(void **state)
{
	static const char *const versions[] = {
#define X(name, version) version,
		CA_WRAPPED(X)
#undef X
	};
	struct ca_real before = ca_real;

	(void)state;
	for (unsigned i = 0; i < CA_COUNT(rows); i++) {
		void *found, *expected = versions[i][0] ? dlvsym(RTLD_NEXT, rows[i].name, versions[i])
							: dlsym(RTLD_NEXT, rows[i].name);

		assert_non_null(expected);
		put_real(rows[i].member, NULL);
		ca_real_resolve_at((char *)&ca_real + rows[i].member);
		memcpy(&found, (char *)&ca_real + rows[i].member, sizeof found);
		assert_ptr_equal(found, expected);
	}
	assert_memory_equal(&before, &ca_real, sizeof before);
	/* only the one that is asked for, and not again where it is known */
	memset(&ca_real, 0, sizeof ca_real);
	ca_real_resolve_at(&ca_real.read);
	assert_null(ca_real.write);
	assert_true(ca_real.read == before.read);
	ca_real.read = before.pread == NULL ? NULL : (ssize_t(*)(int, void *, size_t))(void *)real;
	ca_real_resolve();
	assert_ptr_equal((void *)ca_real.read, (void *)real);
	ca_real.read = before.read;
	assert_memory_equal(&before, &ca_real, sizeof before);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(passed_on),       TEST(said_of_waits),
		TEST(masks_of_waits),  TEST(time_limits),
		TEST(taking_locks),    TEST(spinning),
		TEST(semaphores),      TEST(polls),
		TEST(poll_limits),     TEST(sleeps),
		TEST(clocks),          TEST(raw_calls),
		TEST(other_raw_calls), TEST(raw_waits_look_in),
		TEST(file_locks),      TEST(file_control),
		TEST(mapped_files),    TEST(ends),
		TEST(old_signals),     TEST(raw_forks),
		TEST(filters),         TEST(threads_start),
		TEST(cancellation),    TEST(environment_of_exec),
		TEST(forms_of_exec),   TEST(libraries),
		TEST(jumps),           TEST(catches),
		TEST(contexts),        TEST(real_ones),
		TEST(every_row),       TEST(placed_while_we_open),
		TEST(locks_alone),     TEST(places),
		TEST(signalled_early), TEST(datagrams),
	};

	ca_real_resolve();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
