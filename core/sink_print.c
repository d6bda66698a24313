/* SPDX-License-Identifier: MIT */
/* The print sink: one line per event, on stderr or into the file that the target names.
 * For tests and for looking at what happens; the columns are
 * seconds process/thread kind key value, then flags and the value's name where there are any.
 * Driver's process, one thread. */
#include "core/dict.h"
#include "core/sink.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct ca_sink_ops ca_sink_print;

struct printer {
	FILE *file;
	const struct ca_dict *dict;
	uint64_t lost; /* events */
	int error;     /* the last reason */
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

	(void)context;
	if (!printer)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for the print sink");
	printer->dict = dict;
	printer->file = target ? fopen(target, "we") : stderr;
	if (!printer->file) {
		free(printer);
		return ca_err_set(err, CA_ERR_USAGE, "the print sink cannot write %s (%s); give another file",
				  target, strerror(errno));
	}
	*state = printer;
	return CA_OK;
}

static void print_one(const struct printer *printer, const struct ca_source *from,
		      const struct ca_event *event)
{
	const struct ca_dict_key *key = printer->dict ? ca_dict_get(printer->dict, event->key) : NULL;
	const char *value =
		printer->dict ? ca_dict_value_name(printer->dict, event->key, event->value) : NULL;

	fprintf(printer->file, "%" PRIu64 ".%09" PRIu64 " %" PRIu32 "/%" PRIu32 " %s ",
		event->time / 1000000000, event->time % 1000000000, from->process, from->thread,
		kind_name(event->kind));
	if (key)
		fprintf(printer->file, "%s", key->name);
	else
		fprintf(printer->file, "key-%" PRIu32, event->key);
	/* places are addresses; everything else counts something */
	if (event->key == CA_KEY_SAMPLE || event->key == CA_KEY_FRAME)
		fprintf(printer->file, " %" PRIu64 ":0x%" PRIx64, (uint64_t)CA_PLACE_MODULE(event->value),
			CA_PLACE_OFFSET(event->value));
	else
		fprintf(printer->file, " %" PRIu64, event->value);
	if (event->flags)
		fprintf(printer->file, " flags=%u", event->flags);
	if (value)
		fprintf(printer->file, " \"%s\"", value);
	fputc('\n', printer->file);
}

static void print_events(void *state, const struct ca_source *from, const struct ca_event *event, size_t n)
{
	struct printer *printer = state;

	for (size_t i = 0; i < n; i++)
		print_one(printer, from, &event[i]);
	if (!fflush(printer->file) && !ferror(printer->file))
		return;
	printer->error = errno;
	printer->lost += n;
	clearerr(printer->file);
}

static enum ca_status close_print(void *state, struct ca_err *err)
{
	struct printer *printer = state;
	enum ca_status status = CA_OK;

	if (printer->lost)
		status = ca_err_set(err, CA_ERR_IO,
				    "the print sink could not write all (%s): %" PRIu64 " events are missing",
				    strerror(printer->error), printer->lost);
	if (printer->file != stderr)
		fclose(printer->file);
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
