/* SPDX-License-Identifier: MIT */
/* The runtime's birth: attach to the session, register the process, follow forks. Constructor
 * context except where marked. */
#include "causal/runtime/start.h"
#include "causal/runtime/activation.h"
#include "causal/runtime/code_events.h"
#include "causal/runtime/code_sites.h"
#include "causal/runtime/handler.h"
#include "causal/runtime/patch.h"
#include "causal/runtime/peers.h"
#include "causal/runtime/points.h"
#include "causal/runtime/probe.h"
#include "causal/runtime/requested.h"
#include "causal/runtime/timeline.h"
#include "causal/runtime/wrap.h"
#include "core/fmt.h"
#include "core/log.h"
#include "core/paying.h"
#include "core/sys.h"
#include "sampler/modules.h"
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	WAIT_FOR_INDEX = 3000,     /* ms a new program waits for the driver to index it */
	WAIT_FOR_SELECTION = 1000, /* ... or to select code in it */
	MAIN_STACK = 64 << 20,     /* bytes; below the first stack, the kernel maps nothing else so near */
	WIPED = 4096               /* bytes from ca_rt.on that a fork sets to zero */
};

/* glibc's. Weak: a program with another C library must start, and runs without us. */
extern void *__libc_stack_end __attribute__((weak)); /* where the first stack begins */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *) __attribute__((weak));
#pragma weak gnu_get_libc_version

static bool claim_process(struct ca_session *s, uint32_t parent)
{
	uint32_t pid = (uint32_t)getpid(), used = atomic_load(&s->processes_used);
	uint64_t space = ca_session_pid_space();
	struct ca_process *p;

	ca_rt.sees_conductor =
		space && s->pid_space ? space == s->pid_space : ca_rt_process_exists(s->conductor);

	for (uint32_t i = 0; i < used; i++) {
		p = &s->process[i];
		/* the same pid before exec, or one that died; nothing of that image is left */
		if (atomic_load_explicit(&p->state, memory_order_acquire) != CA_SLOT_LIVE ||
		    p->own_pid != pid || p->pid_space != space)
			continue;
		atomic_store(&p->off, 0);
		atomic_store(&p->patched, 0);
		atomic_store(&p->patch_failed, 0);
		ca_rt.process = i;
		return true;
	}
	for (uint32_t i = 0; i < CA_MAX_PROCESSES; i++) {
		uint32_t expected = CA_SLOT_FREE;

		p = &s->process[i];
		if (!atomic_compare_exchange_strong(&p->state, &expected, CA_SLOT_CLAIMED))
			continue;
		p->own_pid = pid;
		p->parent = parent;
		atomic_store(&p->ended, 0);
		atomic_store(&p->executes, 0);
		atomic_store(&p->makes, 0);
		p->index = 1 + atomic_fetch_add(&s->processes_begun, 1);
		p->pid_space = space;
		p->pid = ca_rt.sees_conductor ? pid : CA_PID_UNKNOWN;
		p->started = ca_clock_now();
		atomic_store(&p->off, 0);
		atomic_store(&p->patched, 0);
		atomic_store(&p->patch_failed, 0);
		ca_rt.process = i;
		/* release: the conductor acquires state before it reads the rest */
		atomic_store_explicit(&p->state, CA_SLOT_LIVE, memory_order_release);
		ca_session_use_row(&s->processes_used, i);
		return true;
	}
	return false;
}

/* In a time namespace the clock may be another one than the driver's. It is not if the driver's last sign of
 * life is as recent as it must be. */
static bool other_clock(const struct ca_session *s)
{
	uint64_t space = ca_session_time_space(), now = ca_clock_now(),
		 beat = atomic_load_explicit(&s->heartbeat, memory_order_relaxed);

	return space && s->time_space && space != s->time_space &&
	       (now + CA_NS_PER_S < beat || beat + CA_NS_PER_S < now);
}
static const char clock_text[] =
	"the program has a time namespace of its own, whose clock is not the driver's; start causal in it";

/* It runs a translation of the code, some ten times as slowly, one thread at a time: what we patch or time there
 * says nothing of the program. */
static bool under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload_");
}

static uint32_t enlist(const struct ca_image *image, uint32_t guess)
{
	return ca_module_enlist(ca_rt.session, image, guess);
}

static const char *index_path(uint32_t module)
{
	return ca_module_index_path(ca_rt.session, module);
}

/* After exec: the threads that the old image had; in S they are no longer. */
static void free_old_slots(struct ca_session *s)
{
	uint32_t used = ca_rt_slots_used();

	atomic_store(&s->slot_hint, 0);
	for (uint32_t i = 0; i < used; i++)
		if (atomic_load(&s->slot[i].state) == CA_SLOT_LIVE && s->slot[i].process == ca_rt.process) {
			if (atomic_exchange(&s->slot[i].in_s, 0))
				ca_selection_append(&s->log_head, s->log, CA_LOG_EXIT, i, ca_clock_now(), 0);
			ca_paying_end(s, &s->slot[i], ca_clock_now());
			ca_session_free_slot(s, i);
		}
}

static void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	ca_sys(SYS_nanosleep, (long)(intptr_t)&t, 0, 0, 0, 0, 0);
}

/* Progress points in the executable must be in place before main runs, and the notes that
 * tell of them are in the index: wait for the driver to make it, within reason. */
static void wait_for_index(struct ca_session *s)
{
	struct ca_loaded *l = ca_modules_at(0), *candidate;
	char exe[CA_PATH];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

	if (n <= 0)
		return;
	exe[n] = 0;
	for (unsigned i = 0; (candidate = ca_modules_at(i)); i++)
		if (!strcmp(s->module[candidate->module].path, exe))
			l = candidate;
	if (!l)
		return;
	s->module[l->module].main = 1;
	for (int ms = 0; ms < WAIT_FOR_INDEX; ms++) {
		uint32_t state = atomic_load_explicit(&s->module[l->module].state, memory_order_acquire);

		if (state == CA_MODULE_INDEXED || state == CA_MODULE_FAILED ||
		    ca_rt_conductor_is_gone(ca_clock_now()))
			break;
		sleep_ms(1);
	}
}

/* This program, or a library of it, has the code that the whole run is about: main begins when that is selected. */
static void wait_for_selection(struct ca_session *s)
{
	struct ca_loaded *l;

	if (!atomic_load(&s->awaits))
		return;
	for (unsigned i = 0; (l = ca_modules_at(i)) && strcmp(s->module[l->module].path, s->awaited) != 0;
	     i++)
		;
	for (int ms = 0; l && ms < WAIT_FOR_SELECTION && atomic_load(&s->awaits); ms++) {
		if (ca_rt_conductor_is_gone(ca_clock_now()))
			return;
		sleep_ms(1);
	}
}

static void find_own_text(void)
{
	struct ca_loaded *l = ca_modules_find((uintptr_t)&find_own_text);

	if (l) {
		ca_rt.own_low = l->low;
		ca_rt.own_high = l->high;
	}
}

/* One line in a run, not one of each of them. */
static void tell_of_many(struct ca_session *s)
{
	if (!atomic_fetch_add(&s->processes_missed, 1))
		ca_log(CA_LOG_ERROR,
		       "more than %d processes at once in one run: process %d, and perhaps others, run "
		       "without causal",
		       (int)CA_MAX_PROCESSES, (int)getpid());
}

/* In any child of a fork the page of ca_rt.on has become zeros, so that a child that was made
 * behind libc's back is left alone. One that we hear of joins again. */
static void forked(void)
{
	uintptr_t stack_low = ca_self ? ca_self->stack.own_low : 0;
	uintptr_t stack_high = ca_self ? ca_self->stack.own_high : 0;
	uint32_t parent = ca_rt.pid;

	if (!ca_rt.session || !ca_rt.joined)
		return;
	ca_rt.pid = (uint32_t)getpid();
	ca_thread_forget();
	ca_modules_forked();
	ca_probe_forked();
	if (atomic_load(&ca_rt.session->state) != CA_SESSION_OPEN) {
		ca_rt_quit();
		return;
	}
	if (!claim_process(ca_rt.session, parent)) {
		tell_of_many(ca_rt.session);
		ca_rt_quit();
		return;
	}
	atomic_store(&ca_rt.on, true);
	ca_log(CA_LOG_DEBUG, "process %d, a fork, takes part", (int)ca_rt.pid);
	ca_patch_forked();
	if (other_clock(ca_rt.session)) {
		ca_rt_off(clock_text);
		return;
	}
	ca_probe_service(); /* they stand here, too */
	ca_thread_begin();
	if (ca_self) {
		ca_self->stack.own_low = stack_low;
		ca_self->stack.own_high = stack_high;
	}
}

/* Of a fork that libc makes: who has made the child. */
static __thread uint64_t fork_pair __attribute__((tls_model("initial-exec")));

static void before_fork(void)
{
	fork_pair = ca_timeline_send();
}

static void after_fork(void)
{
	fork_pair = 0;
}

void ca_start_forked(void)
{
	int saved = errno;

	forked();
	ca_timeline_receive(fork_pair);
	fork_pair = 0;
	errno = saved;
}

/* What exec needs later, when the program has changed its environment. */
static bool remember_paths(const char *session)
{
	Dl_info info;

	if (strlen(session) >= sizeof ca_rt.session_path)
		return false;
	strcpy(ca_rt.session_path, session);
	if (dladdr((void *)(uintptr_t)&remember_paths, &info) && info.dli_fname &&
	    strlen(info.dli_fname) < sizeof ca_rt.own_path)
		strcpy(ca_rt.own_path, info.dli_fname);
	return true;
}

/* Go's runtime replaces all signal handlers behind libc's back and takes our signal for a crash;
 * its linker leaves this note. */
static bool has_go_note(const char *at, size_t size)
{
	enum { BUILD_ID = 4 };

	while (size >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)(const void *)at;
		size_t whole = sizeof *note + (((size_t)note->n_namesz + 3) & ~(size_t)3) +
			       (((size_t)note->n_descsz + 3) & ~(size_t)3);

		if (note->n_type == BUILD_ID && note->n_namesz == 4 && size >= sizeof *note + 4 &&
		    !memcmp(at + sizeof *note, "Go\0", 4))
			return true;
		if (whole > size)
			return false;
		at += whole;
		size -= whole;
	}
	return false;
}

static bool is_go_program(void)
{
	const ElfW(Phdr) *header = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	unsigned long n = header ? getauxval(AT_PHNUM) : 0;
	uintptr_t bias = 0;

	for (unsigned long i = 0; i < n; i++)
		if (header[i].p_type == PT_PHDR)
			bias = (uintptr_t)header - header[i].p_vaddr;
	for (unsigned long i = 0; i < n; i++)
		if (header[i].p_type == PT_NOTE &&
		    has_go_note((const char *)(bias + header[i].p_vaddr), header[i].p_memsz))
			return true;
	return false;
}

static bool join_session(const char *path)
{
	uint32_t slots = 0;
	enum ca_status status =
		remember_paths(path) ? ca_session_attach(path, &ca_rt.session, &slots) : CA_ERR_FORMAT;
	struct ca_session *session = ca_rt.session;

	ca_rt.slots = slots;
	/* a run that is over: we were started by something that outlives it */
	if (status == CA_ERR_NOT_FOUND)
		return false;
	if (status != CA_OK) {
		ca_log(CA_LOG_ERROR,
		       "cannot join the run at %s (%s); the program runs without "
		       "causal",
		       path, ca_status_name(status));
		return false;
	}
	ca_log_init((enum ca_log_level)(int)session->verbose, 2);
	if (atomic_load(&session->state) == CA_SESSION_OPEN && is_go_program()) {
		/* of the command itself the driver has said it */
		if ((uint32_t)getppid() != session->conductor)
			ca_log(CA_LOG_ERROR,
			       "process %d is a Go program, which keeps threads and "
			       "signals to itself; it runs without causal",
			       (int)getpid());
	} else if (atomic_load(&session->state) == CA_SESSION_OPEN) {
		ca_rt.pid = (uint32_t)getpid();
		ca_rt.period = session->period;
		if (claim_process(session, (uint32_t)getppid()))
			return true;
		tell_of_many(session);
	}
	ca_rt.session = NULL;
	munmap(session, CA_SESSION_SIZE_OF(ca_rt.slots));
	return false;
}

static void join_trace(const char *path)
{
	ca_rt.trace = ca_session_attach_trace(path, ca_rt.session);
	if (ca_rt.trace) {
		madvise(ca_rt.trace, ca_rings_here(ca_rt.trace), MADV_DONTDUMP);
		ca_rt.events = ca_rt.session->events;
		ca_rt.sampling = ca_rt.session->sampling;
		ca_rt.names = ca_session_attach_names(path, ca_rt.session);
		ca_code_sites_raise = ca_code_events_raise;
	} else if (ca_rt.session->trace_size) {
		ca_log(CA_LOG_ERROR,
		       "process %d is not traced: its address space (ulimit -v) has no room for the rings",
		       (int)ca_rt.pid);
	}
}

/* A thread that dies otherwise is seen to be dead by the driver. */
__attribute__((destructor)) void ca_start_leave(void)
{
	struct ca_thread *t = ca_self;

	if (t && !t->guard && atomic_load_explicit(&ca_rt.on, memory_order_relaxed) &&
	    (uint32_t)ca_sys_getpid() == ca_rt.pid) {
		ca_timeline_exits();
		t->guard++;
		ca_timeline_end(t);
		/* exit() in S: for the others, in the next programs of a shell, say, it does not go on */
		if (ca_rt_is_in_s(t))
			ca_activation_left(t);
		ca_activation_wait_left(t, ca_clock_now());
		t->guard--;
	}
}

/* Before anything of ours is in the program: nothing stays mapped, as if we had never been there. */
static void withdraw(const char *reason)
{
	struct ca_session *session = ca_rt.session;

	atomic_store(&ca_rt.on, true);
	ca_rt_off(reason);
	ca_rt.session = NULL;
	if (ca_rt.trace)
		munmap(ca_rt.trace, ca_rings_here(ca_rt.trace));
	ca_rt.trace = NULL;
	ca_rt.events = 0;
	ca_rt.sampling = false;
	munmap(session, CA_SESSION_SIZE_OF(ca_rt.slots));
}

static void attach(const char *path)
{
	const char *why = NULL;

	if (!join_session(path))
		return;
	if (other_clock(ca_rt.session)) {
		withdraw(clock_text);
		return;
	}
	if (under_valgrind()) {
		withdraw("valgrind translates the program, whose speed cannot be told from that");
		return;
	}
	ca_tick_init();
	free_old_slots(ca_rt.session);
	/* the program's core files and its children need not carry these */
	madvise(ca_rt.session, CA_SESSION_SIZE_OF(ca_rt.slots), MADV_DONTDUMP);
	madvise((void *)&ca_rt.on, WIPED, MADV_WIPEONFORK);
	ca_rt.joined = true;
	join_trace(path);
	/* before anything here can come back to us, through a library of others that uses locks */
	if (!ca_handler_install()) {
		withdraw("its signal handler cannot be installed");
		return;
	}
	atomic_store(&ca_rt.on, true);
	ca_sampler_host.enlist = enlist;
	ca_sampler_host.index_path = index_path;
	ca_modules_scan();
	if (!ca_modules_at(0)) {
		withdraw("/proc does not tell what code is where");
		return;
	}
	find_own_text();
	ca_paying_change(&ca_rt.session->held, ca_clock_now(), true);
	wait_for_index(ca_rt.session);
	if (ca_rt.slots < CA_MAX_THREADS)
		ca_patch_trim();
	ca_rt.is_load = getenv(CA_SESSION_LOAD_MARK);
	ca_patch_apart = CA_SYS_SIGNAL(CA_SIGNAL);
	ca_rt.patching = !ca_rt.is_load && ca_patch_init(&why);
	if (!ca_rt.patching && !ca_rt.is_load)
		ca_log(CA_LOG_ERROR,
		       "code cannot be patched here (%s): progress points are not "
		       "counted, so use -e; the selected code is sampled",
		       why ? why : "unknown");
	ca_probe_init();
	ca_requested_wait();
	ca_points_start();
	wait_for_selection(ca_rt.session);
	ca_paying_change(&ca_rt.session->held, ca_clock_now(), false);
	ca_probe_service(); /* an experiment may be open: main is to run with its sites */
	__register_atfork(before_fork, after_fork, ca_start_forked,
			  NULL); /* pthread_atfork, as a weak symbol */
	ca_peers_begin();
	ca_log(CA_LOG_DEBUG, "process %d takes part in %s", (int)ca_rt.pid, path);
	ca_thread_begin();
	ca_timeline_executed();
	ca_activation_own_stack((uintptr_t)__libc_stack_end, MAIN_STACK);
}

void ca_start_once(void)
{
	static atomic_flag started = ATOMIC_FLAG_INIT;
	const char *path;
	int saved = errno;

	if (atomic_flag_test_and_set(&started))
		return;
	ca_real_resolve();
	path = getenv("CAUSAL_SESSION");
	if (path && *path && gnu_get_libc_version)
		attach(path);
	errno = saved;
}

/* AddressSanitizer in a library of its own wants to come first of all; behind us it works as well, since
 * we call what comes next. It asks here what is usual, unless the program has an answer. */
/* For libcausal.so, when the program wraps a function of its own: code is changed in one place only. */
CA_EXPORT const struct ca_patch_wrapping *_causal_wrapping(void);
CA_EXPORT const struct ca_patch_wrapping *_causal_wrapping(void)
{
	return ca_rt.patching ? &ca_patch_wrapping : NULL;
}

CA_EXPORT const char *__asan_default_options(void);
CA_EXPORT const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}

/* The loader runs this last of all libraries'; those that start threads earlier call
 * ca_start_once through our pthread_create. */
__attribute__((constructor)) static void start(void)
{
	ca_start_once();
}
