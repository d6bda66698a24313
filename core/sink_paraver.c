/* SPDX-License-Identifier: MIT */
/* The paraver sink: x.prv, x.pcf and x.row, for Paraver. The first line of a .prv needs the whole, and its
 * records are in the order of time, so the events are kept in x.prv.parts, a trace of the binary sink,
 * until the run is over; see paraver.h. Driver's process, one thread. */
#include "core/paraver.h"
#include "core/path.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const struct ca_sink_ops ca_sink_paraver, ca_sink_binary;

static enum ca_status write_text(struct ca_paraver *w, const char *prv, const char *ending,
				 void (*put)(struct ca_paraver *w, FILE *file), struct ca_err *err)
{
	char path[PATH_MAX];
	int stem = (int)strlen(prv) - (int)strlen(".prv");
	bool ok;
	FILE *file;

	snprintf(path, sizeof path, "%.*s%s", stem, prv, ending);
	file = fopen(path, "we");
	if (file)
		put(w, file);
	ok = file && !ferror(file);
	ok = file && fclose(file) == 0 && ok;
	return ok ? CA_OK
		  : ca_err_set(err, CA_ERR_IO, "the paraver sink could not write %s (%s)", path,
			       strerror(errno));
}

static enum ca_status write_prv(struct ca_paraver *w, const char *target, struct ca_err *err)
{
	enum ca_status status, closed;
	struct ca_err reason;
	bool ok;

	status = ca_sink_file_open(&w->prv, ca_sink_paraver.name, target, "", "", err);
	if (status)
		return status;
	ca_paraver_labels_head(w);
	ok = ca_paraver_labels_places(w);
	ca_sink_file_text(&w->prv, "\n");
	ca_sink_file_end(&w->prv, 0);
	ok = ok && ca_paraver_records_put(w);
	if (!ok)
		status = ca_err_set(err, CA_ERR_NOMEM, "no memory for the paraver sink's files");
	closed = ca_sink_file_close(&w->prv, &reason);
	return status || !closed ? status : ca_err_set(err, closed, "%s", reason.text);
}

static enum ca_status write_all(const struct ca_trace *trace, const char *target, struct ca_err *err)
{
	struct ca_paraver w = { .trace = trace, .first = UINT64_MAX, .cpus = 1 };
	enum ca_status status = CA_ERR_NOMEM, pcf, row;
	struct ca_err reason;

	w.state = ca_dict_find(trace->dict, "state");
	w.cpu = ca_dict_find(trace->dict, "cpu");
	for (size_t i = 0; i < trace->threads; i++) {
		const struct ca_trace_thread *thread = &trace->thread[i];

		ca_paraver_records_survey(&w, thread);
		if (!thread->events)
			continue;
		w.first = w.first < thread->first ? w.first : thread->first;
		w.last = w.last > thread->last ? w.last : thread->last;
	}
	w.first = w.first < w.last ? w.first : w.last;
	if (ca_paraver_labels_number(&w) && ca_paraver_records_order(&w))
		status = write_prv(&w, target, err);
	else
		ca_err_set(err, status, "no memory for the paraver sink's files");
	/* what there is of the .prv is of no use without */
	if (!status || status == CA_ERR_IO) {
		pcf = write_text(&w, target, ".pcf", ca_paraver_labels_pcf, status ? &reason : err);
		status = status ? status : pcf;
		row = write_text(&w, target, ".row", ca_paraver_labels_row, status ? &reason : err);
		status = status ? status : row;
	}
	ca_map_free(&w.flows);
	ca_map_free(&w.unknown);
	free(w.sent);
	free(w.order);
	free(w.place);
	free(w.by_place);
	free(w.type);
	free(w.used);
	return status;
}

struct sink {
	char *target;
	char *parts;  /* the folder of its events */
	void *binary; /* the sink that keeps the events */
};

static enum ca_status open_paraver(void **state, const char *target, const struct ca_dict *dict,
				   const void *context, struct ca_err *err)
{
	struct sink *sink = calloc(1, sizeof *sink);
	enum ca_status status = CA_ERR_NOMEM;
	FILE *file;

	if (!sink ||
	    asprintf(&sink->target, "%s%s", target, ca_path_ends(target, ".prv") ? "" : ".prv") < 0 ||
	    asprintf(&sink->parts, "%s.parts", sink->target) < 0) {
		free(sink ? sink->target : NULL);
		free(sink);
		return ca_err_set(err, status, "no memory for the paraver sink");
	}
	/* better now than when the run is over */
	file = ca_sink_file_stream(ca_sink_paraver.name, sink->target, err);
	if (file)
		fclose(file);
	status = file ? ca_sink_binary.open(&sink->binary, sink->parts, dict, context, err) : CA_ERR_USAGE;
	if (!status) {
		*state = sink;
		return CA_OK;
	}
	free(sink->target);
	free(sink->parts);
	free(sink);
	return status;
}

static void take_events(void *state, const struct ca_source *from, const struct ca_event *event, size_t n)
{
	struct sink *sink = state;

	ca_sink_binary.events(sink->binary, from, event, n);
}

static void take_name(void *state, const struct ca_source *from, const char *process_name,
		      const char *thread_name)
{
	struct sink *sink = state;

	ca_sink_binary.rename(sink->binary, from, process_name, thread_name);
}

static void remove_parts(const struct ca_trace *trace, const char *dir)
{
	char path[PATH_MAX];

	for (size_t i = 0; trace && i < trace->threads; i++)
		unlink(trace->thread[i].path);
	snprintf(path, sizeof path, "%s/names", dir);
	unlink(path);
	rmdir(dir);
}

static enum ca_status close_paraver(void *state, struct ca_err *err)
{
	struct sink *sink = state;
	struct ca_err kept = { "" }, written = { "" };
	enum ca_status status = ca_sink_binary.close(sink->binary, &kept), then;
	struct ca_trace *trace = NULL;

	then = ca_trace_open(&trace, sink->parts, &written);
	if (!then && trace->threads)
		then = write_all(trace, sink->target, &written);
	else if (then == CA_ERR_NOT_FOUND && !status)
		then = CA_OK; /* there was nothing to write */
	if (!then)
		remove_parts(trace, sink->parts);
	ca_trace_free(trace);
	if (then)
		ca_err_set(err, then, "%s%s%s; the events are in %s, for causal convert", kept.text,
			   *kept.text ? "; " : "", written.text, sink->parts);
	else if (status)
		ca_err_set(err, status, "%s", kept.text);
	free(sink->target);
	free(sink->parts);
	free(sink);
	return then ? then : status;
}

const struct ca_sink_ops ca_sink_paraver = {
	.name = "paraver",
	.description = "states, events and communications for Paraver, into FILE.prv, .pcf and .row",
	.extension = ".prv",
	.open = open_paraver,
	.events = take_events,
	.rename = take_name,
	.close = close_paraver,
};
