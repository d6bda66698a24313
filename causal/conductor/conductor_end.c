/* SPDX-License-Identifier: MIT */
/* The end of a run: the experiment that it was in, what threads and processes have counted, the last records of the run
 * file; and how a program that goes on is left. Driver's process, one thread. */
#include "causal/conductor/conductor_state.h"
#include "causal/conductor/sweep.h"
#include "core/clock.h"
#include "core/path.h"
#include "core/suggest.h"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum {
	FEW = 10,         /* samples of a run */
	WAITS = 33,       /* on CPUs for less than 3 % of the time: nothing that it does there could matter */
	LONG = 500000000, /* ns: a shorter run may have only begun */
	ENDED = 50000000  /* ns of an experiment that ends with the program: else it is not used */
};

/* The runtime was in none of the processes, or they hardly ran. */
static bool is_idle(const struct ca_conductor *c, uint64_t now)
{
	uint64_t runtime = c->started ? now - c->started : 0;

	return !atomic_load(&c->session->processes_used) ||
	       (c->sum.samples < FEW && runtime > LONG && WAITS * c->sum.cpu_ns < runtime);
}

bool ca_conductor_is_useful(const struct ca_conductor *c, uint64_t now)
{
	bool nothing = c->sum.samples >= FEW && !c->sum.in_scope;

	return !is_idle(c, now) && !(nothing && (2 * ca_regions_in_main(c->regions) > c->sum.samples ||
						 !ca_scope_follows(c->scope)));
}

static void summarise(struct ca_conductor *c, uint64_t now, int wait_status)
{
	struct ca_session *s = c->session;
	uint32_t used = atomic_load(&s->slots_used);

	c->sum.exit_status =
		WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
	c->sum.runtime = c->started ? now - c->started : 0;
	c->sum.inserted = ca_session_lag(s);
	c->sum.kept = c->kept;
	c->sum.in_main = ca_regions_in_main(c->regions);
	c->sum.backends = atomic_load(&s->backends);
	if (c->backend != CA_BACKEND_TIMER && c->sum.backends & 1u << CA_BACKEND_TIMER &&
	    ca_sweep_first_time(c->opt.sweep, CA_SWEEP_BACKEND))
		ca_conductor_say(c, 0,
				 "%s threads got no perf events and were sampled by timers, "
				 "which is less exact: raise ulimit -l (locked memory), ulimit -n and "
				 "kernel.perf_event_mlock_kb, or have the program's sandbox "
				 "allow perf_event_open",
				 c->sum.backends & 1u << CA_BACKEND_PERF ? "some" : "all");
	c->sum.outside = !atomic_load(&s->processes_used);
	for (uint32_t p = 0; p < atomic_load(&s->processes_used); p++)
		c->sum.off |= atomic_load(&s->process[p].off) != 0;
	for (uint32_t i = 0; i < used && i < CA_MAX_THREADS; i++) {
		c->sum.handler_ns += atomic_load(&s->slot[i].handler_ns);
		for (unsigned d = 0; d < CA_DROP_COUNT; d++)
			c->sum.drop[d] += atomic_load(&s->slot[i].drop[d]);
	}
	if (atomic_load(&s->threads_missed))
		ca_conductor_say(c, 0,
				 "%u threads were not seen, and experiments meanwhile are not used: "
				 "more than %d existed at a time, or there was no room for them in "
				 "/dev/shm",
				 atomic_load(&s->threads_missed), (int)s->slots);
}

/* By their build-ids it can be told later whether two runs are of one program. */
static void record_binaries(struct ca_conductor *c)
{
	uint32_t used = atomic_load(&c->session->modules_used);

	for (uint32_t i = 1; i < used && i < CA_MAX_MODULES; i++) {
		const struct ca_module *module = &c->session->module[i];
		/* acquire: the runtime that filled it in has released it */
		uint32_t state = atomic_load_explicit(&module->state, memory_order_acquire);

		if (state >= CA_MODULE_REGISTERED && module->build_id_length &&
		    (module->main || ca_objects_in_scope(c->objects, i)))
			ca_results_binary(c->results, module->path, module->build_id, module->build_id_length,
					  NULL);
	}
}

/* After the last records: does -B name any binary of the run? */
static enum ca_status check_binaries(const struct ca_conductor *c, struct ca_err *err)
{
	struct ca_suggest nearest = { .name = c->set->binary_scope };
	uint32_t used = atomic_load(&c->session->modules_used);
	char name[CA_PATH], best[CA_PATH] = "";

	if (c->sum.outside || c->sum.off || c->sum.in_scope || !*c->set->binary_scope)
		return CA_OK;
	for (uint32_t i = 1; i < used && i < CA_MAX_MODULES; i++) {
		if (ca_objects_in_scope(c->objects, i))
			return CA_OK;
		snprintf(name, sizeof name, "%s", ca_path_base(c->session->module[i].path));
		*strchrnul(name, '.') = '\0';
		nearest.best = *best ? best : NULL;
		ca_suggest_offer(&nearest, name);
		if (nearest.best == name)
			memcpy(best, name, sizeof best);
	}
	return ca_err_set(err, CA_ERR_USAGE, "-B '%s' matches no binary that the program has loaded%s%s%s",
			  c->set->binary_scope, *best ? "; did you mean " : "", best, *best ? "?" : "");
}

/* What the run file says at its end, but for its last record. */
static void write_last(struct ca_conductor *c, uint64_t now, int wait_status)
{
	ca_conductor_host_close(c);
	ca_conductor_trace_close(c);
	ca_conductor_scope_close(c);
	record_binaries(c);
	ca_conductor_report_points(c);
	summarise(c, now, wait_status);
	if (c->opt.sweep && ca_conductor_is_useful(c, now))
		ca_sweep_set_useful(c->opt.sweep);
	ca_conductor_what_if_close(c);
	ca_conductor_plan_close(c);
}

void ca_conductor_leave(struct ca_conductor *c, uint64_t now)
{
	struct ca_err err;

	ca_conductor_silence_end(c, now, true);
	write_last(c, now, 0);
	c->sum.left = true;
	if (ca_results_close(c->results, &c->sum, &err) != CA_OK)
		ca_conductor_say(c, 0, "%s", err.text);
	c->results = NULL;
	c->left = true;
	atomic_store(&c->session->state, CA_SESSION_CLOSED);
}

void ca_conductor_leave_traced(struct ca_conductor *c, uint64_t now, int wait_status)
{
	atomic_store(&c->session->state, CA_SESSION_CLOSED);
	c->left = true;
	ca_conductor_report_points(c);
	ca_conductor_host_close(c);
	ca_conductor_trace_close(c);
	if (c->sampling) {
		summarise(c, now, wait_status);
		ca_conductor_sample_close(c, now, wait_status);
	}
}

/* ---- the program has ended --------------------------------------------------------------------*/
static void close_open_experiment(struct ca_conductor *c, uint64_t now, int wait_status)
{
	bool open;

	if (c->set->end_to_end) {
		/* chosen but never opened: the program was too short for that */
		if (c->state != RUNNING && !c->e.paused)
			return;
		if (c->e.paused && c->state == SETTLING)
			ca_conductor_sum_up(c);
		open = !c->e.paused;
		if (!c->whole)
			c->e.record.start = c->started;
		ca_conductor_experiment_close(c, now, WIFSIGNALED(wait_status) ? CA_EXPERIMENT_CUT : 0);
		c->e.record.end = now;
		if (open)
			ca_conductor_sum_up(c);
		ca_conductor_record(c);
		return;
	}
	if (c->state == WARMING_UP)
		ca_conductor_experiment_measure(c, now);
	if (c->state == RUNNING) {
		/* else the last moments of a program would be in none */
		c->e.ended = WIFEXITED(wait_status) && now - c->e.record.start >= ENDED;
		ca_conductor_experiment_close(c, now, c->e.ended ? 0 : CA_EXPERIMENT_CUT);
	}
	if (c->state == SETTLING) {
		ca_conductor_sum_up(c);
		ca_conductor_record(c);
	}
}

/* last: out, what is known at the end; or NULL. */
static void tell_and_dispose(struct ca_conductor *c, struct ca_conductor_status *last)
{
	if (last) {
		if (c->plan)
			ca_plan_estimate(c->plan);
		ca_conductor_status(c, last);
		last->region = NULL;
	}
	ca_conductor_dispose(c);
}

enum ca_status ca_conductor_close(struct ca_conductor *c, int wait_status, struct ca_conductor_status *last,
				  struct ca_err *err)
{
	uint64_t now = ca_clock_now();
	enum ca_status status = CA_OK;
	struct ca_visits_now visits;

	if (c->opt.traced && !c->left) {
		ca_conductor_step_windows(c, now);
		ca_conductor_tell_running(c);
		ca_conductor_leave_traced(c, now, wait_status);
	}
	if (c->left || c->opt.traced) {
		tell_and_dispose(c, last);
		return CA_OK;
	}
	ca_conductor_drain(c);
	ca_selection_log_read(c->log);
	ca_visits_read(c->session, &visits);
	close_open_experiment(c, now, wait_status);
	c->sum.visits += ca_visits_sum(&visits);
	if (!WIFSIGNALED(wait_status)) {
		ca_conductor_silence_end(c, now, false);
		if (c->opt.sweep && !c->set->end_to_end)
			ca_sweep_add_length(c->opt.sweep, c->opt.run,
					    (double)(now - c->started - ca_session_lag(c->session)) / 1e9);
	}
	ca_conductor_points_close(c, wait_status, &visits);
	if (!WIFSIGNALED(wait_status))
		ca_conductor_whole_close(c, now - c->started - ca_session_lag(c->session));
	write_last(c, now, wait_status);
	status = ca_results_close(c->results, &c->sum, err);
	if (!status)
		status = check_binaries(c, err);
	if (!status)
		status = ca_conductor_what_if_check(c, err);
	tell_and_dispose(c, last);
	return status;
}
