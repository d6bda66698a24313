/* SPDX-License-Identifier: MIT */
/* The print sink: one line per event, on stderr or into the file that the target names.
 * For tests and for looking at what happens; the columns are
 * seconds process/thread kind key value, then flags and the value's name where there are any.
 * Driver's process, one thread. */
#include "core/sink_file.h"
#include "core/sink_tracks.h"
#include <inttypes.h>
#include <stdlib.h>

extern const struct ca_sink_ops ca_sink_print;

struct printer {
	struct ca_sink_file file;
	const struct ca_dict *dict;
};

static const char *kind_name(unsigned kind)
{
	static const char *const names[] = {
		[CA_STATE_BEGIN] = "state-begin",
		[CA_STATE_END] = "state-end",
		[CA_SUBSTATE_BEGIN] = "substate-begin",
		[CA_SUBSTATE_END] = "substate-end",
		[CA_BURST_BEGIN] = "burst-begin",
		[CA_BURST_END] = "burst-end",
		[CA_PTP_BEGIN] = "ptp-begin",
		[CA_PTP_END] = "ptp-end",
		[CA_POINT] = "point",
	};

	return kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

static enum ca_status open_print(void **state, const char *target, const struct ca_dict *dict,
				 const void *context, struct ca_err *err)
{
	struct printer *printer = calloc(1, sizeof *printer);
	enum ca_status status;

	(void)context;
	if (!printer)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for the print sink");
	printer->dict = dict;
	status = ca_sink_file_open(&printer->file, ca_sink_print.name, target, "", "", err);
	if (status)
		free(printer);
	else
		*state = printer;
	return status;
}

static void print_one(struct printer *printer, const struct ca_source *from, const struct ca_event *event)
{
	struct ca_sink_file *file = &printer->file;
	char buffer[CA_SINK_KEY_NAME];
	const char *value =
		printer->dict ? ca_dict_value_name(printer->dict, event->key, event->value) : NULL;

	ca_sink_file_print(file, "%" PRIu64 ".%09" PRIu64 " %" PRIu32 "/%" PRIu32 " %s ",
			   event->time / 1000000000, event->time % 1000000000, from->process, from->thread,
			   kind_name(event->kind));
	ca_sink_file_text(file, ca_sink_key_name(printer->dict, event->key, buffer));
	/* places are addresses; everything else counts something */
	if (event->key == CA_KEY_SAMPLE || event->key == CA_KEY_FRAME)
		ca_sink_file_print(file, " %" PRIu64 ":0x%" PRIx64, (uint64_t)CA_PLACE_MODULE(event->value),
				   CA_PLACE_OFFSET(event->value));
	else if (ca_sink_is_negative(printer->dict, event->key, event->value))
		ca_sink_file_print(file, " -%" PRIu64, -event->value);
	else
		ca_sink_file_print(file, " %" PRIu64, event->value);
	if (event->flags)
		ca_sink_file_print(file, " flags=%u", event->flags);
	if (value) {
		ca_sink_file_text(file, " \"");
		ca_sink_file_text(file, value);
		ca_sink_file_text(file, "\"");
	}
	ca_sink_file_text(file, "\n");
	ca_sink_file_end(file, 1);
}

static void print_events(void *state, const struct ca_source *from, const struct ca_event *event, size_t n)
{
	struct printer *printer = state;

	for (size_t i = 0; i < n; i++)
		print_one(printer, from, &event[i]);
	ca_sink_file_flush(&printer->file);
}

static enum ca_status close_print(void *state, struct ca_err *err)
{
	struct printer *printer = state;
	enum ca_status status = ca_sink_file_close(&printer->file, err);

	free(printer);
	return status;
}

const struct ca_sink_ops ca_sink_print = {
	.name = "print",
	.description = "one line of text per event, on stderr or into =FILE, which each run writes "
		       "anew",
	.open = open_print,
	.events = print_events,
	.close = close_print,
};
