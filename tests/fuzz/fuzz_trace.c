/* SPDX-License-Identifier: MIT */
/* A trace of the binary sink, as causal convert reads it, for all sinks. An input that begins like a file of
 * events is one; any other is its names, beside a good file of events. */
#include "core/trace.h"
#include "tests/fuzz/fuzz.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	struct ca_trace_header header;
	struct ca_event event[4];
} good = {
	{ .magic = CA_TRACE_MAGIC,
	  .version = CA_TRACE_VERSION,
	  .order = CA_TRACE_ORDER,
	  .header_size = sizeof(struct ca_trace_header),
	  .event_size = sizeof(struct ca_event),
	  .events = 4,
	  .from = { 1, 1, 1, 1 } },
	{ { 1, CA_BURST_BEGIN, 0, CA_KEY_EXPERIMENT, 1 },
	  { 2, CA_STATE_BEGIN, 0, 21, 1 },
	  { 3, CA_POINT, 0, 22, 2 },
	  { 4, CA_STATE_END, 0, 21, 1 } },
};

static void convert(const char *folder, const struct ca_trace *trace)
{
	static const char *const endings[] = { "prv", "pcf", "row" };
	static const char *perfetto = ",perfetto=/dev/null";
	char spec[512], path[256];
	struct ca_sinks *sinks;
	struct ca_err err;

	for (;; perfetto = "") {
		snprintf(spec, sizeof spec,
			 "print=/dev/null,json=/dev/null,statistics=/dev/null,dot=/dev/null,paraver=%s/"
			 "x.prv%s",
			 folder, perfetto);
		if (!ca_sink_open(&sinks, spec, NULL, trace->dict, NULL, &err))
			break;
		if (!*perfetto) /* else it may not be in this build */
			abort();
	}
	if (ca_trace_feed(trace, sinks, &err) || ca_sink_close(sinks, &err))
		abort();
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
		snprintf(path, sizeof path, "%s/x.%s", folder, endings[i]);
		unlink(path);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool events = size >= 8 && !memcmp(data, CA_TRACE_MAGIC, 8);
	char path[CA_FUZZ_PATH], names[256];
	struct ca_trace *trace;
	const char *folder;
	struct ca_err err;
	FILE *file;

	ca_fuzz_file(events ? data : (const uint8_t *)&good, events ? size : sizeof good, path);
	folder = ca_fuzz_folder("thread-1-1.bin");
	snprintf(names, sizeof names, "%s/names", folder);
	file = events ? NULL : fopen(names, "we");
	if (!events && (!file || fwrite(data, 1, size, file) != size || fclose(file)))
		abort();
	if (ca_trace_open(&trace, folder, &err)) {
		ca_fuzz_touch(err.text);
	} else {
		convert(folder, trace);
		ca_trace_free(trace);
	}
	unlink(names);
	return 0;
}
