/* SPDX-License-Identifier: MIT */
/* All the ways to end. */
#include "tests/apps/app.h"
#include <sys/prctl.h>
#include <sys/resource.h>

static void says(void)
{
	printf("at exit\n");
	fflush(stdout);
}

static void on_segv(int number, siginfo_t *info, void *context)
{
	(void)context;
	_exit(number == SIGSEGV && info->si_addr == (void *)8 ? 42 : 43);
}

static void lives(int number)
{
	_exit(number);
}

static volatile int *volatile nowhere = (volatile int *)8;

static void fault(void)
{
	*nowhere = 1;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	struct rlimit no_core = { 0, 0 };
	struct sigaction action;
	sigset_t trap;

	setrlimit(RLIMIT_CORE, &no_core);
	atexit(says);
	at_quick_exit(says);
	work_for(0.25);
	if (!strcmp(how, "return"))
		return 3;
	if (!strcmp(how, "exit"))
		exit(4);
	if (!strcmp(how, "_exit"))
		_exit(5);
	if (!strcmp(how, "quick_exit"))
		quick_exit(6);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "segv"))
		fault();
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "term"))
		raise(SIGTERM);
	if (!strcmp(how, "trap"))
		__builtin_trap();
	if (!strcmp(how, "blocked_trap")) { /* what the kernel cannot deliver ends the program */
		signal(SIGTRAP, lives);
		sigemptyset(&trap);
		sigaddset(&trap, SIGTRAP);
		sigprocmask(SIG_BLOCK, &trap, NULL);
		__asm__ volatile("int3");
	}
	if (!strcmp(how, "stkflt"))
		raise(SIGSTKFLT);
	if (!strcmp(how, "handler")) {
		memset(&action, 0, sizeof action);
		action.sa_sigaction = on_segv;
		action.sa_flags = SA_SIGINFO;
		sigaction(SIGSEGV, &action, NULL);
		fault();
	}
	return 97;
}
