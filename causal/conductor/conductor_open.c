/* SPDX-License-Identifier: MIT */
/* Opening and disposing of a conductor: session, scope, indexes, run file; what cannot work
 * is said here, before the program runs. Driver's process, one thread. */
#include "binary/needed.h"
#include "binary/plan/texts.h"
#include "causal/conductor/backend.h"
#include "causal/conductor/conductor_state.h"
#include "causal/conductor/preload.h"
#include "causal/conductor/sweep.h"
#include "causal/conductor/walks.h"
#include "core/clock.h"
#include "core/dict.h"
#include "core/memstream.h"
#include "core/settings.h"
#include "core/speedups.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static void index_warning(void *context, const char *text)
{
	struct ca_conductor *c = context;

	if (c->opt.message)
		c->opt.message(c->opt.context, 1, text);
}

/* Are binaries in scope besides the command's own? */
static bool has_other_binaries(const struct ca_conductor *c)
{
	return !ca_scope_follows(c->scope) && strcmp(c->set->binary_scope, "%MAIN%") &&
	       strcmp(c->set->binary_scope, "MAIN");
}

static enum ca_status choose_backend(struct ca_conductor *c, struct ca_err *err)
{
	struct ca_err why;

	c->backend = (enum ca_backend)c->set->backend;
	if (c->backend == CA_BACKEND_TIMER || ca_backend_perf(&why) == CA_OK)
		return CA_OK;
	if (c->backend == CA_BACKEND_PERF)
		return ca_err_set(err, CA_ERR_USAGE, "-b perf: %s, or use -b timer", why.text);
	c->backend = CA_BACKEND_TIMER;
	if (ca_sweep_first_time(c->opt.sweep, CA_SWEEP_BACKEND))
		ca_conductor_say(c, 0, "timers give the samples, which is less exact than perf: %s",
				 why.text);
	return CA_OK;
}

/* The session of a driver that was killed: nobody holds its lock. One that is just being made is not
 * locked yet, but its driver lives. */
static void remove_if_left(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		unlinkat(dir, name, 0);
	close(fd);
}

static void remove_leftovers(void)
{
	DIR *dir = opendir("/dev/shm");
	struct dirent *d;
	unsigned user, run;
	int pid, end;

	while (dir && (d = readdir(dir))) {
		end = 0;
		if (sscanf(d->d_name, "causal-%u-%d-%u%n", &user, &pid, &run, &end) == 3 && !d->d_name[end] &&
		    user == getuid() && kill(pid, 0) && errno == ESRCH)
			remove_if_left(dirfd(dir), d->d_name);
	}
	if (dir)
		closedir(dir);
}

static void name_command(struct ca_conductor *c)
{
	char path[CA_PATH], *real = NULL;

	if (ca_sweep_find_command(c->opt.command[0], path, sizeof path) && (real = realpath(path, NULL)) &&
	    strlen(real) < sizeof c->session->command) {
		strcpy(c->session->command, real);
		strcpy(c->session->called, path);
	}
	free(real);
}

static enum ca_status open_session(struct ca_conductor *c, struct ca_err *err)
{
	enum ca_status status;

	remove_leftovers();
	/* tmpfs first: pages of an ordinary file would be written back, and fault again */
	snprintf(c->session_path, sizeof c->session_path, "/dev/shm/causal-%u-%d-%u", (unsigned)getuid(),
		 (int)getpid(), c->opt.run);
	status = ca_session_create(c->session_path, &c->session, NULL);
	if (status != CA_OK) {
		char *dir = realpath(c->opt.dir, NULL);

		snprintf(c->session_path, sizeof c->session_path, "%s/session-%u", dir ? dir : c->opt.dir,
			 c->opt.run);
		free(dir);
		remove_if_left(AT_FDCWD, c->session_path);
		status = ca_session_create(c->session_path, &c->session, err);
	}
	if (status != CA_OK)
		return status;
	c->session_fd = open(c->session_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (c->session_fd < 0)
		return ca_err_set(err, CA_ERR_IO, "%s: %s", c->session_path, strerror(errno));
	flock(c->session_fd, LOCK_EX | LOCK_NB); /* as long as we live, see remove_if_left */
	status = ca_session_grow(c->session_fd, c->session, CA_SLOTS_AHEAD, err);
	c->session->conductor = (uint32_t)getpid();
	c->session->period = (uint64_t)c->set->period;
	c->session->backend = c->backend;
	c->session->switch_cost =
		c->backend == CA_BACKEND_TIMER || c->opt.traced ? 0 : ca_backend_switch_cost();
	c->session->verbose = (uint32_t)ca_settings_level(c->set);
	c->session->virtual_clock = !c->opt.traced && c->set->clock == CA_CLOCK_VIRTUAL;
	atomic_store(&c->session->heartbeat, ca_clock_now());
	name_command(c);
	ca_requested_join(c->progress, c->session, has_other_binaries(c));
	atomic_store(&c->session->state, CA_SESSION_OPEN);
	return status;
}

static enum ca_status open_pool(struct ca_conductor *c, struct ca_err *err)
{
	size_t step = (size_t)c->set->speedup_divisions, n = 0, steps = 100 / step, zeros = (steps + 3) / 4;

	if (c->set->fixed_speedup.count)
		return ca_speedups_copy(&c->pool, &c->set->fixed_speedup, err);
	/* steps..100 and a quarter as many zeros on top, as in FEATURES A.11 */
	c->pool.percent = calloc(steps + zeros, sizeof *c->pool.percent);
	if (!c->pool.percent)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	for (size_t i = 1; i <= steps; i++)
		c->pool.percent[n++] = (unsigned)(i * step);
	while (n < steps + zeros)
		c->pool.percent[n++] = 0;
	c->pool.count = n;
	return CA_OK;
}

static enum ca_status open_scope(struct ca_conductor *c, struct ca_err *err)
{
	struct ca_scope_spec spec = {
		.binary = c->set->binary_scope,
		.source = c->set->source_scope,
		.function = c->set->function_scope,
		.binary_exclude = c->set->binary_exclude,
		.source_exclude = c->set->source_exclude,
		.function_exclude = c->set->function_exclude,
		.function_defaults = c->set->function_exclude_defaults,
		.function_mode = c->set->mode == CA_MODE_FUNCTION,
	};

	return ca_scope_new(&c->scope, &spec, err);
}

static void point_warning(void *context, const char *text)
{
	ca_conductor_say(context, 0, "%s", text);
}

static void point_record(void *context, const char *text)
{
	struct ca_conductor *c = context;

	ca_results_warning(c->results, text, NULL);
}

void ca_conductor_report_points(struct ca_conductor *c)
{
	bool first = ca_sweep_first_time(c->opt.sweep, CA_SWEEP_POINTS_REPORT);

	static const char *const kinds[] = {
		[CA_POINT_THROUGHPUT] = "", [CA_POINT_BEGIN] = ", begin", [CA_POINT_END] = ", end"
	};
	struct ca_visits_now visits;

	ca_requested_report(c->progress, first ? point_warning : point_record, c);
	ca_visits_read(c->session, &visits);
	ca_conductor_report_traps(c, &visits);
	for (unsigned i = 0; i < visits.points; i++) {
		const struct ca_progress_point *p = &c->session->point[i];

		if (atomic_load(&p->state) == CA_SLOT_LIVE && p->kind <= CA_POINT_END)
			ca_conductor_say(c, 2, "progress point %s%s: %llu visits", p->name, kinds[p->kind],
					 (unsigned long long)visits.total[i]);
	}
}

static bool is_elf(const char *path)
{
	char magic[4] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool elf = fd >= 0 && read(fd, magic, 4) == 4 && !memcmp(magic, "\177ELF", 4);

	if (fd >= 0)
		close(fd);
	return elf;
}

static bool is_shell(const char *path)
{
	static const char *const shells[] = { "sh",      "bash",    "dash",    "zsh",   "ksh",
					      "busybox", "env",     "timeout", "nice",  "taskset",
					      "numactl", "setarch", "stdbuf",  "xargs", "time" };
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
		if (!strcmp(name, shells[i]))
			return true;
	return false;
}

/* Is there something to be selected, in the program or in a library that may yet be taken? */
static bool has_code(struct ca_conductor *c, const struct ca_index *index, const char *path)
{
	enum ca_mode mode = (enum ca_mode)c->set->mode;
	struct ca_needed needed;
	bool found = ca_regions_index_in_scope(c->scope, mode, index);

	if (found || !ca_scope_follows(c->scope) || ca_needed_find(&needed, path, NULL) != CA_OK)
		return found;
	for (size_t i = 0; i < needed.n && !found; i++) {
		struct ca_index *library;

		if (ca_scope_use_of(c->scope, needed.path[i]) != CA_SCOPE_MAY_TAKE ||
		    ca_index_open(&library, needed.path[i], CA_INDEX_FULL, index_warning, c, NULL) != CA_OK)
			continue;
		found = ca_regions_index_in_scope(c->scope, mode, library);
		ca_index_close(library);
	}
	ca_needed_fini(&needed);
	return found;
}

/* ... or in another program that the command names, as one for mpirun or srun? */
static bool names_code(struct ca_conductor *c)
{
	bool found = false;

	for (const char *const *word = c->opt.command + 1; c->opt.command[0] && *word && !found; word++) {
		char path[CA_PATH];
		struct ca_index *index;

		if (!ca_sweep_find_command(*word, path, sizeof path) || !is_elf(path) ||
		    ca_index_open(&index, path, CA_INDEX_FULL, index_warning, c, NULL) != CA_OK)
			continue;
		found = has_code(c, index, path);
		ca_index_close(index);
	}
	return found;
}

/* The function or file that a filter was meant to name: what is between ^ and $. */
static bool is_near(const struct ca_index *index, enum ca_point_name_kind kind, const char *pattern,
		    char *near, size_t size)
{
	char text[200];
	struct ca_point_name name = { .kind = kind, .name = text };

	snprintf(text, sizeof text, "%s", pattern + (*pattern == '^'));
	text[strcspn(text, "$")] = '\0';
	return *text && ca_point_name_near(&name, index, near, size);
}

static enum ca_status nothing_in_scope(const struct ca_conductor *c, const struct ca_index *index,
				       const char *path, struct ca_err *err)
{
	const char *function = c->set->function_scope, *source = c->set->source_scope;
	char near[200], filters[600];

	snprintf(filters, sizeof filters, "%s%s%s%s%s%s%s", *function ? "-F '" : "", function,
		 *function ? "'" : "", *function && *source ? " and " : "", *source ? "-S '" : "", source,
		 *source ? "'" : "");
	if (ca_scope_names_main(c->scope) && c->set->mode == CA_MODE_FUNCTION)
		return ca_err_set(err, CA_ERR_USAGE,
				  "%s names main, which as a whole is the program; %stry its lines: "
				  "causal -m line %s -- %s%s",
				  filters, ca_index_has_lines(index) ? "" : "build it with -g and ", filters,
				  c->opt.command[0], c->opt.command[1] ? " ..." : "");
	if (is_near(index, CA_POINT_NAME_FUNCTION, function, near, sizeof near) ||
	    is_near(index, CA_POINT_NAME_LINE, source, near, sizeof near))
		return ca_err_set(err, CA_ERR_USAGE, "nothing in %s matches %s; did you mean %s?", path,
				  filters, near);
	return ca_err_set(err, CA_ERR_USAGE,
			  "nothing in %s is in scope%s%s; name a library, or the program that it starts, "
			  "with -B",
			  path, *filters ? ": widen " : "", filters);
}

/* Index the command's binary before it runs: its own start then finds it done, and what
 * cannot work is said before anything has run. A launcher, shell or script says nothing
 * about the programs that it starts. */
static enum ca_status check_command(struct ca_conductor *c, struct ca_err *err)
{
	char path[CA_PATH], real[4096];
	bool first = ca_sweep_first_time(c->opt.sweep, CA_SWEEP_POINTS_CHECK);
	struct ca_index *index;
	enum ca_status status;
	struct ca_preload bar;
	bool others = has_other_binaries(c), named, code;

	if (!ca_sweep_find_command(c->opt.command[0], path, sizeof path) || !realpath(path, real) ||
	    !is_elf(real) || is_shell(path) || is_shell(real) || *c->set->launcher)
		return CA_OK;
	bar = ca_preload_check(real);
	if (bar.why && first)
		ca_conductor_say(c, 0,
				 "%s %s: the runtime cannot be preloaded into it, so only "
				 "programs that it starts can be profiled; %s",
				 path, bar.why, bar.remedy);
	status = ca_index_open(&index, real, CA_INDEX_FULL, index_warning, c, err);
	if (status != CA_OK)
		return status;
	named = ca_requested_mode(c->set->progress) == CA_REQUESTED_NAMED;
	code = others || c->opt.traced || !ca_scope_has_binary(c->scope, real, true) ||
	       has_code(c, index, real);
	if (!code || (named && !others)) /* they may be large */
		others = names_code(c);
	if (!code && !others) {
		if (c->set->mode == CA_MODE_LINE && !ca_index_has_lines(index))
			status = ca_err_set(
				err, CA_ERR_USAGE,
				"%s has no debug information, which line mode needs: compile it with "
				"-g, or use -m function",
				path);
		else
			status = nothing_in_scope(c, index, path, err);
	}
	if (status == CA_OK)
		status = ca_requested_check(c->progress, index, real, others, first ? point_warning : NULL, c,
					    err);
	ca_index_close(index);
	return status;
}

/* "-B 'libz' -F '^deflate$'": all that picks the code of this run. Owned; NULL: no memory. */
static char *scope_text(const struct ca_settings *set)
{
	const struct {
		const char *option, *pattern;
	} part[] = { { "-B", set->binary_scope },    { "-S", set->source_scope },
		     { "-F", set->function_scope },  { "-BE", set->binary_exclude },
		     { "-SE", set->source_exclude }, { "-FE", set->function_exclude } };
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < sizeof part / sizeof *part && out; i++)
		if (*part[i].pattern)
			fprintf(out, "%s%s '%s'", ftell(out) ? " " : "", part[i].option, part[i].pattern);
	return out && ca_memstream_end(out, &text) ? text : NULL;
}

static enum ca_status open_results(struct ca_conductor *c, struct ca_err *err)
{
	char *pool = ca_speedups_text(&c->pool), *scope = scope_text(c->set);
	struct ca_run_info info = {
		.run = c->opt.run,
		.iteration = c->opt.iteration,
		.command = c->opt.command,
		.options = c->opt.arguments,
		.mode = c->set->mode == CA_MODE_LINE ? "line" : "function",
		.backend = c->backend == CA_BACKEND_TIMER ? "timer" : "perf",
		.end_to_end = c->set->end_to_end,
		.speedups = pool ? pool : "",
		.scope = scope ? scope : "",
		.seed = (uint64_t)c->set->random_seed,
	};
	enum ca_status status = ca_results_open(&c->results, c->opt.dir, &info, &c->catalog, err);

	free(pool);
	free(scope);
	return status;
}

void ca_conductor_dispose(struct ca_conductor *c)
{
	ca_host_close(c->host, NULL, NULL, NULL);
	ca_conductor_trace_free(c);
	ca_set_aside_free(c->set_aside);
	ca_sampling_free(c->sampling);
	ca_walks_free(c->walks);
	if (c->opt.suggestion)
		ca_stacks_free(c->stacks);
	ca_sink_close(c->sinks, NULL);
	ca_dict_free(c->dict);
	ca_objects_free(c->objects);
	ca_texts_free(c->own_texts);
	ca_conductor_silence_free(c);
	ca_conductor_points_free(c);
	ca_conductor_scope_free(c);
	ca_requested_free(c->progress);
	ca_regions_free(c->regions);
	ca_handover_free(c->handover);
	ca_scope_free(c->scope);
	ca_selection_log_free(c->log);
	ca_catalog_fini(&c->catalog);
	if (c->session) {
		atomic_store(&c->session->state, CA_SESSION_CLOSED);
		ca_session_detach(c->session);
		unlink(c->session_path);
	}
	if (c->session_fd >= 0)
		close(c->session_fd);
	ca_speedups_fini(&c->pool);
	ca_windows_free(c->windows);
	for (unsigned i = 0; i < CA_SAMPLER_COUNT; i++)
		ca_windows_free(c->own_windows[i]);
	free(c);
}

static enum ca_status open_objects(struct ca_conductor *c, struct ca_err *err)
{
	struct ca_objects_planner planner = ca_requested_planner(c->progress);
	struct ca_texts *texts = c->opt.sweep ? ca_sweep_texts(c->opt.sweep) : NULL;

	if (!texts && !(texts = c->own_texts = ca_texts_new()))
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	return ca_objects_new(&c->objects, c->session, c->scope, texts, &planner, index_warning, c, err);
}

/* What every run needs once it is known what it is about. */
static enum ca_status open_run(struct ca_conductor *c, struct ca_err *err)
{
	enum ca_status status;

	if ((status = check_command(c, err)) == CA_OK && (status = choose_backend(c, err)) == CA_OK &&
	    (status = open_session(c, err)) == CA_OK && (status = open_objects(c, err)) == CA_OK)
		status = ca_regions_new(&c->regions, (enum ca_mode)c->set->mode, c->scope, c->objects,
					&c->catalog, err);
	return status;
}

static enum ca_status open_traced(struct ca_conductor *c, struct ca_err *err)
{
	enum ca_status status = open_run(c, err);

	c->state = FINISHED;
	if (!status && c->opt.samples)
		status = ca_conductor_sample_open(c, err);
	return status ? status : ca_conductor_trace_open(c, err);
}

static enum ca_status open_sweep(struct ca_conductor *c, struct ca_err *err)
{
	enum ca_status status;

	if ((status = open_pool(c, err)) == CA_OK && (status = ca_conductor_what_if_open(c, err)) == CA_OK &&
	    (status = ca_conductor_scope_open(c, err)) == CA_OK &&
	    (status = ca_conductor_points_open(c, err)) == CA_OK && (status = open_run(c, err)) == CA_OK &&
	    (status = ca_conductor_whole_open(c, err)) == CA_OK &&
	    (status = ca_conductor_plan_open(c, err)) == CA_OK &&
	    (status = ca_conductor_trace_open(c, err)) == CA_OK &&
	    (!c->opt.clear || (status = c->opt.clear(c->opt.context, err)) == CA_OK))
		status = open_results(c, err);
	/* a debugger (--single) wants the processor's breakpoints for itself */
	if (status == CA_OK && c->opt.sweep && c->set->single < 0 && c->backend != CA_BACKEND_TIMER)
		c->handover = ca_handover_new(c->session, ca_sweep_in_vain(c->opt.sweep));
	return status;
}

/* Of all processes of the program. */
static uint64_t cpu_time(void *conductor)
{
	struct ca_conductor *c = conductor;

	return ca_conductor_cpu_time(c);
}

enum ca_status ca_conductor_open(struct ca_conductor **conductor, const struct ca_conductor_options *options,
				 struct ca_err *err)
{
	struct ca_conductor *c = calloc(1, sizeof *c);
	enum ca_status status;

	if (!c)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	c->opt = *options;
	c->set = options->settings;
	c->session_fd = -1;
	ca_conductor_length_init(c);
	ca_rng_init(&c->rng, ca_clock_now());
	c->windows = ca_windows_new(c->set, cpu_time, c);
	if (!c->windows)
		status = ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	else if ((status = open_scope(c, err)) == CA_OK &&
		 (status = ca_requested_new(&c->progress, c->set->progress, c->scope, err)) == CA_OK)
		status = c->opt.traced ? open_traced(c, err) : open_sweep(c, err);
	c->log = c->session ? ca_selection_log_new(c->session) : NULL;
	if (status == CA_OK && !c->log)
		status = ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	if (status != CA_OK) {
		if (c->results)
			ca_results_close(c->results, &c->sum, NULL);
		ca_conductor_dispose(c);
		return status;
	}
	*conductor = c;
	return CA_OK;
}
