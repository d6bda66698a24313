/* The runtime's birth and its off switch: attach to the session, register the process,
 * follow forks. Constructor context except where marked. */
#include "causal/runtime/rt.h"
#include "causal/runtime/patch.h"
#include "core/fmt.h"
#include "core/log.h"
#include "sampler/modules.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ca_runtime ca_rt;

enum {
	STALE = 60000000,        /* ns without a heartbeat before we ask whether it is dead */
	SUSPEND = 1000000000,    /* ns without a heartbeat and we stop delaying anyway */
	WAIT_FOR_INDEX = 3000    /* ms a new program waits for the driver to index it */
};

/* ---- off --------------------------------------------------------------------------*/
CA_SIGSAFE void ca_rt_off(const char *reason)
{
	struct ca_process *p = &ca_rt.session->process[ca_rt.process];
	struct ca_fmt text;

	if (!atomic_exchange_explicit(&ca_rt.on, false, memory_order_relaxed))
		return;
	ca_fmt_init(&text, p->off_text, sizeof p->off_text);
	ca_fmt_text(&text, reason);
	atomic_store_explicit(&p->off, 1, memory_order_release);
	ca_log(CA_LOG_ERROR, "switched off: %s; the program runs on", reason);
}

/* State letter of a process, or 0 if there is none such. */
static char process_state(uint32_t pid)
{
	char path[32], data[256], *p;
	struct ca_fmt f;
	ssize_t n;
	int fd;

	ca_fmt_init(&f, path, sizeof path);
	ca_fmt_add(&f, "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, data, sizeof data - 1);
	close(fd);
	if (n <= 0)
		return 0;
	data[n] = 0;
	p = strrchr(data, ')');
	return p && p[1] ? p[2] : 0;
}

CA_SIGSAFE bool ca_rt_conductor_is_gone(uint64_t now)
{
	struct ca_session *s = ca_rt.session;
	uint64_t beat = atomic_load_explicit(&s->heartbeat, memory_order_relaxed);
	int saved = errno;
	char state;

	if (now < beat + STALE)
		return false;
	state = process_state(s->conductor);
	errno = saved;
	if (state == 0 || state == 'Z' || state == 'X') {
		ca_rt_off("the driver is gone");
		return true;
	}
	return now > beat + SUSPEND;
}

/* ---- on ---------------------------------------------------------------------------*/
static bool claim_process(struct ca_session *s)
{
	uint32_t pid = (uint32_t)getpid();

	for (uint32_t i = 0; i < CA_MAX_PROCESSES; i++) {
		struct ca_process *p = &s->process[i];
		uint32_t state = atomic_load_explicit(&p->state, memory_order_acquire);

		/* the same pid before exec */
		if (state == CA_SLOT_LIVE && p->pid == pid) {
			ca_rt.process = i;
			return true;
		}
	}
	for (uint32_t i = 0; i < CA_MAX_PROCESSES; i++) {
		struct ca_process *p = &s->process[i];
		uint32_t expected = CA_SLOT_FREE;

		if (!atomic_compare_exchange_strong(&p->state, &expected, CA_SLOT_CLAIMED))
			continue;
		p->pid = pid;
		p->started = ca_clock_now();
		atomic_store(&p->off, 0);
		atomic_store(&p->patched, 0);
		ca_rt.process = i;
		/* release: the conductor acquires state before it reads the rest */
		atomic_store_explicit(&p->state, CA_SLOT_LIVE, memory_order_release);
		if (atomic_load(&s->processes_used) < i + 1)
			atomic_store(&s->processes_used, i + 1);
		return true;
	}
	return false;
}

/* After exec: the threads that the old image had. */
static void free_old_slots(struct ca_session *s)
{
	uint32_t used = atomic_load(&s->slots_used);

	for (uint32_t i = 0; i < used; i++)
		if (atomic_load(&s->slot[i].state) == CA_SLOT_LIVE && s->slot[i].pid == ca_rt.pid) {
			atomic_store(&s->slot[i].in_s, 0);
			atomic_store_explicit(&s->slot[i].state, CA_SLOT_FREE, memory_order_release);
		}
}

static void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
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
	s->process[ca_rt.process].main_module = l->module;
	for (int ms = 0; ms < WAIT_FOR_INDEX; ms++) {
		uint32_t state = atomic_load_explicit(&s->module[l->module].state,
						      memory_order_acquire);

		if (state == CA_MODULE_INDEXED || state == CA_MODULE_FAILED ||
		    ca_rt_conductor_is_gone(ca_clock_now()))
			break;
		sleep_ms(1);
	}
}

static void find_own_text(void)
{
	struct ca_loaded *l = ca_modules_find(ca_rt.session, (uintptr_t)&find_own_text);

	if (l) {
		ca_rt.own_low = l->low;
		ca_rt.own_high = l->high;
	}
}

void ca_rt_forked(void)
{
	if (!ca_rt.session || !atomic_load(&ca_rt.on))
		return;
	ca_rt.pid = (uint32_t)getpid();
	ca_thread_forget();
	if (!claim_process(ca_rt.session)) {
		atomic_store(&ca_rt.on, false);
		return;
	}
	ca_rt.session->process[ca_rt.process].main_module =
		ca_modules_at(0) ? ca_modules_at(0)->module : 0;
	ca_patch_forked();
	ca_thread_begin();
}

static void attach(const char *path)
{
	struct ca_session *session;
	const char *why = NULL;
	enum ca_status status = ca_session_attach(path, &session);

	if (status != CA_OK) {
		ca_log(CA_LOG_ERROR, "cannot join the run at %s (%s); the program runs without us", path,
		       ca_status_name(status));
		return;
	}
	ca_log_init((enum ca_log_level)(int)session->verbose, 2);
	if (atomic_load(&session->state) != CA_SESSION_OPEN) {
		ca_session_detach(session);
		return;
	}
	ca_rt.session = session;
	ca_rt.pid = (uint32_t)getpid();
	ca_rt.period = session->period;
	if (!claim_process(session)) {
		ca_rt.session = NULL;
		ca_log(CA_LOG_ERROR, "more than %d processes in one run; this one runs without us",
		       (int)CA_MAX_PROCESSES);
		return;
	}
	free_old_slots(session);
	atomic_store(&ca_rt.on, true);
	ca_modules_scan(session);
	find_own_text();
	wait_for_index(session);
	ca_rt.patching = ca_patch_init(&why);
	if (!ca_rt.patching)
		ca_log(CA_LOG_ERROR, "code cannot be patched (%s): progress points in it stay silent, "
		       "use -e; the selected code is sampled", why ? why : "unknown");
	ca_probe_init();
	ca_points_patch_loaded();
	if (!ca_handler_install()) {
		ca_rt_off("its signal handler cannot be installed");
		return;
	}
	pthread_atfork(NULL, NULL, ca_rt_forked);
	ca_thread_begin();
}

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("CAUSAL_SESSION");
	int saved = errno;

	if (path && *path)
		attach(path);
	errno = saved;
}
