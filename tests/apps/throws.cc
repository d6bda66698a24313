/* SPDX-License-Identifier: MIT */
/* C++ exceptions that leave calls which we wrap: through a stream of the program's own, by cancellation,
 * and out of signal handlers, which compilers for other languages do. */
#include <atomic>
#include <cxxabi.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdexcept>
#include <thread>
extern "C" {
#include "tests/apps/app.h"
}

static int destroyed;

struct counted {
	~counted()
	{
		destroyed++;
	}
};

static ssize_t throws_at(void *left, char *data, size_t n)
{
	counted here;

	if (!--*(int *)left)
		throw std::runtime_error("read");
	memset(data, 'a', n);
	return (ssize_t)n;
}

/* through fread and getline */
static void streams()
{
	for (int i = 1; i <= 50; i++) {
		int left = 1 + i % 3;
		cookie_io_functions_t io = { throws_at, NULL, NULL, NULL };
		FILE *f = fopencookie(&left, "r", io);
		char data[5000];
		bool caught = false;

		CHECK(f && !setvbuf(f, NULL, _IOFBF, 1000));
		destroyed = 0;
		try {
			counted here;
			while (fread(data, 1, i % 2 ? 700 : sizeof data, f) > 0)
				work_once();
		} catch (const std::runtime_error &e) {
			caught = !strcmp(e.what(), "read");
		}
		CHECK(caught && destroyed >= 2 && left == 0);
		fclose(f);
		work_for(0.002);
	}
}

static std::atomic<int> unwound;

static void *is_cancelled(void *ends)
{
	try {
		counted here;
		char c;

		work_for(0.005);
		while (read(*(int *)ends, &c, 1) >= 0)
			work_once();
	} catch (abi::__forced_unwind &) {
		unwound++;
		throw;
	}
	return NULL;
}

static void cancellation()
{
	int ends[2];

	CHECK(!pipe(ends));
	for (int i = 1; i <= 30; i++) {
		pthread_t thread;
		void *result;

		CHECK(!pthread_create(&thread, NULL, is_cancelled, ends));
		work_for(0.01);
		CHECK(!pthread_cancel(thread) && !pthread_join(thread, &result));
		CHECK(result == PTHREAD_CANCELED && unwound == i);
	}
}

static void throws(int number)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	throw number;
}

static volatile int *volatile nowhere;

static void faults()
{
	work_once();
	*nowhere = 1;
}

static sigset_t none;

static void suspended()
{
	sigsuspend(&none);
}

static void polled()
{
	ppoll(NULL, 0, NULL, &none);
}

static void killed()
{
	sigprocmask(SIG_SETMASK, &none, NULL); /* it comes in here */
	CHECK(false);
}

/* out of calls that wait, in which one that was pending comes for sure, and out of the program's own code */
static void handlers()
{
	static void (*volatile calls[])() = { suspended, polled, killed, faults };
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	signal(SIGUSR1, throws);
	signal(SIGSEGV, throws);
	for (int i = 0; i < 100; i++) {
		int caught = 0, wanted = calls[i % 4] == faults ? SIGSEGV : SIGUSR1;

		destroyed = 0;
		try {
			counted here;

			CHECK(!sigprocmask(SIG_BLOCK, &blocked, NULL));
			if (wanted == SIGUSR1)
				raise(SIGUSR1);
			calls[i % 4]();
		} catch (int number) {
			caught = number;
		}
		CHECK(caught == wanted && destroyed == 1);
		CHECK(!sigprocmask(SIG_UNBLOCK, &blocked, NULL));
		work_for(0.003);
	}
}

int main()
{
	std::thread(streams).join();
	cancellation();
	handlers();
	printf("throws: good\n");
	return 0;
}
