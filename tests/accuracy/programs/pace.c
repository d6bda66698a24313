/* SPDX-License-Identifier: MIT */
/* Work that is paced by the clock: linked once for each row of the table below, as pace-NAME.
 *
 * Expected: a frame is as long as the clock says, whatever the work in it costs, as long as
 * it fits: 0. The exceptions:
 *   usleep       a relative sleep follows the work: X w / (w + s), with w = 800 nominal and
 *                s = 1.2 ms and the kernel's timer slack: about 0.36 X.
 *   late         ticks of 0.85 w, work begins at the next tick: two ticks a frame; from
 *                X = 15 on the work fits into one, so 50 at 25, 50 and 75.
 *   bucket_knee  a token every 0.6 w: the work leads until it is as short: min(X, 40). */
#include "gt.h"
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/timerfd.h>

GT_DEFINE_REGION(work)
static double period; /* s */

static void wait_abstime(double end)
{
	struct timespec ts = gt_timespec(end);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* Frames that were missed are left out. */
static void wait_tick(double end)
{
	(void)end;
	wait_abstime((double)((uint64_t)(gt_now() / period) + 1) * period);
}

static void wait_nanosleep(double end)
{
	gt_sleep_until(end);
}

static void wait_usleep(double end)
{
	(void)end;
	usleep((useconds_t)(period * 1e6));
}

static void wait_busy(double end)
{
	while (gt_now() < end)
		;
}

/* A late frame (the unit is 1 ms) makes the next wait shorter. */
static void wait_poll(double end)
{
	double left;

	while ((left = end - gt_now()) > 0)
		poll(NULL, 0, (int)(left * 1e3) + 1);
}

static void cond_until(pthread_cond_t *cond, double deadline)
{
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	struct timespec ts = gt_timespec(deadline);

	pthread_mutex_lock(&m);
	while (pthread_cond_timedwait(cond, &m, &ts) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&m);
}

static void wait_cond(double end)
{
	static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	cond_until(&cond, (double)now.tv_sec + (double)now.tv_nsec * 1e-9 + (end - gt_now()));
}

static void wait_condmono(double end)
{
	static pthread_cond_t cond;
	static int made;

	if (!made) {
		pthread_condattr_t attr;

		pthread_condattr_init(&attr);
		pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
		pthread_cond_init(&cond, &attr);
		made = 1;
	}
	cond_until(&cond, end);
}

static int timer_fd(void)
{
	static int fd = -1;
	struct itimerspec every = { gt_timespec(period), gt_timespec(period) };

	if (fd < 0) {
		fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
		timerfd_settime(fd, 0, &every, NULL);
	}
	return fd;
}

static void wait_timerfd(double end)
{
	uint64_t n;

	(void)end;
	while (read(timer_fd(), &n, sizeof n) < 0 && errno == EINTR)
		;
}

static void wait_epoll(double end)
{
	static int epoll = -1;
	struct epoll_event event = { .events = EPOLLIN };

	if (epoll < 0) {
		epoll = epoll_create1(EPOLL_CLOEXEC);
		epoll_ctl(epoll, EPOLL_CTL_ADD, timer_fd(), &event);
	}
	while (epoll_wait(epoll, &event, 1, -1) < 1)
		;
	wait_timerfd(end);
}

static void wait_signal(int number)
{
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, number);
	sigwait(&set, &got);
}

static void block(int number)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void wait_timer(double end)
{
	static timer_t timer;
	static int made;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec every = { gt_timespec(period), gt_timespec(period) };

	(void)end;
	if (!made) {
		block(SIGUSR1);
		timer_create(CLOCK_MONOTONIC, &event, &timer);
		timer_settime(timer, 0, &every, NULL);
		made = 1;
	}
	wait_signal(SIGUSR1);
}

static void wait_itimer(double end)
{
	static int made;
	struct itimerval every = { { 0, (long)(period * 1e6) }, { 0, (long)(period * 1e6) } };

	(void)end;
	if (!made) {
		block(SIGALRM);
		setitimer(ITIMER_REAL, &every, NULL);
		made = 1;
	}
	wait_signal(SIGALRM);
}

/* A token every `period`, four of them at most. */
static void wait_bucket(double end)
{
	static double tokens, at;
	double now;

	(void)end;
	for (;;) {
		now = gt_now();
		tokens += at > 0 ? (now - at) / period : 1;
		tokens = tokens > 4 ? 4 : tokens;
		at = now;
		if (tokens >= 1)
			break;
		gt_sleep_until(now + (1 - tokens) * period);
	}
	tokens--;
}

static const struct pace {
	const char *name;
	void (*wait)(double end);
	double work;   /* nominal us */
	double period; /* us; below 1: a share of the work */
} paces[] = {
	{ "abstime", wait_abstime, 800, 2000 },     { "tick", wait_tick, 2400, 6000 },
	{ "late", wait_tick, 4800, 0.85 },          { "nanosleep", wait_nanosleep, 800, 2000 },
	{ "usleep", wait_usleep, 800, 1200 },       { "busy", wait_busy, 800, 2000 },
	{ "poll", wait_poll, 800, 2000 },           { "cond", wait_cond, 800, 2000 },
	{ "condmono", wait_condmono, 800, 2000 },   { "timerfd", wait_timerfd, 800, 2000 },
	{ "epoll", wait_epoll, 800, 2000 },         { "timer", wait_timer, 800, 2000 },
	{ "itimer", wait_itimer, 800, 2000 },       { "bucket", wait_bucket, 800, 2000 },
	{ "bucket_knee", wait_bucket, 2000, 0.60 },
};

int main(int argc, char **argv)
{
	const struct pace *pace = paces, *last = paces + sizeof paces / sizeof *paces - 1;
	double end;

	while (pace < last && strcmp(pace->name, gt_variant()))
		pace++;
	gt_start(argc, argv, "work");
	period = pace->period < 1 ? pace->period * gt_real(pace->work) : pace->period * 1e-6;
	uint64_t n = gt_amount("work", pace->work);

	end = gt_now();
	while (!gt_expired()) {
		region_work(n); /* GT_REGION work */
		end += period;
		pace->wait(end);
		GT_VISIT();
	}
	return gt_report();
}
