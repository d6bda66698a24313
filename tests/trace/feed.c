/* SPDX-License-Identifier: MIT */
/* feed SPEC script|one|two|negative|gap|back|many N|pings N|tasks N|threads N|nothing [LIMIT [SIZE]]: opens these sinks
 * and gives them events, as the drain does: threads in turns, each in the order of its time. Says how many
 * there were, and by how many KiB the memory grew after the first tenth of many. What the script holds is
 * described in tests/trace/script.py. LIMIT: bytes of a file. SIZE: of dot's nodes, enum ca_node_size. Exit
 * status 3 with the text of the sinks: something was lost. */
#include "core/dict.h"
#include "core/sink.h"
#include "core/sink_file.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const struct ca_source conductor = { 0 };
static const struct ca_source first = { 100, 100, 1, 1 }, second = { 100, 101, 1, 2 },
			      third = { 200, 200, 2, 3 };

static struct ca_dict *dict;
static struct ca_sinks *sinks;
static uint64_t fed;
static uint32_t temperature, state, work, step, memory, message, task, cpu;

static void give(const struct ca_source *from, const struct ca_event *event, size_t n)
{
	ca_sink_events(sinks, from, event, n);
	fed += n;
}

#define GIVE(from, ...)                                                                                      \
	do {                                                                                                 \
		const struct ca_event list[] = { __VA_ARGS__ };                                              \
		give(from, list, sizeof list / sizeof *list);                                                \
	} while (0)
#define E(time, kind, key, value)                                                                            \
	{                                                                                                    \
		(time), CA_##kind, 0, (key), (value)                                                         \
	}
#define F(time, kind, key, value, flags)                                                                     \
	{                                                                                                    \
		(time), CA_##kind, (flags), (key), (value)                                                   \
	}

static void script(void)
{
	ca_sink_name(sinks, &first, "a \"quoted\" n\xc3\xa4me\\", "main");
	ca_sink_name(sinks, &second, NULL, "bad \xff byte,\nline");
	GIVE(&second, E(900, STATE_BEGIN, state, 1), E(1000, BURST_END, work, 9),
	     E(1100, BURST_BEGIN, task, 7), E(1200, BURST_END, task, 7), E(1550, PTP_END, message, 77),
	     E(1560, BURST_BEGIN, task, 8), E(1570, BURST_END, task, 8),
	     E(1650, BURST_BEGIN, CA_KEY_WAIT, 3));
	GIVE(&first, E(1000, POINT, cpu, 3), E(1000, STATE_BEGIN, state, 1), E(1100, BURST_BEGIN, work, 5),
	     E(1200, BURST_BEGIN, step, 1), E(1250, BURST_BEGIN, work, 6), E(1300, BURST_END, work, 6));
	GIVE(&third, E(500, STATE_BEGIN, state, 1), E(501, POINT, step, UINT64_MAX),
	     E(502, PTP_END, message, 78), F(2000, POINT, step, 4, 2), F(2001, STATE_END, state, 1, 1));
	GIVE(&first, E(1350, POINT, CA_KEY_HIT, 1000), E(1350, POINT, CA_KEY_SELECTION, 4),
	     E(1400, POINT, memory, 4096), E(1450, POINT, memory, 8192), E(1480, BURST_BEGIN, task, 6),
	     E(1500, PTP_BEGIN, message, 77), E(1510, BURST_END, task, 6));
	GIVE(&first, E(1600, BURST_END, work, 5), E(1700, BURST_END, step, 1), E(1750, STATE_BEGIN, state, 2),
	     E(1800, STATE_END, state, 2), E(1900, STATE_END, state, 1), E(1950, SUBSTATE_BEGIN, state, 2),
	     E(1960, SUBSTATE_END, state, 2), { 1970, 77, 0, 4000, 1 });
	GIVE(&conductor, E(600, BURST_BEGIN, CA_KEY_EXPERIMENT, 1), E(1980, BURST_END, CA_KEY_EXPERIMENT, 1));
	ca_sink_name(sinks, &third, "child", NULL);
}

/* Of a key of the program's own. */
static void below_zero(void)
{
	GIVE(&first, E(1000, POINT, temperature, UINT64_C(-3)), E(1010, POINT, temperature, 3),
	     E(1020, POINT, temperature, 0), E(1030, POINT, temperature, UINT64_C(1) << 63));
}

/* The first burst's end is among what is missing, and so is the second one's beginning. */
static void gap(void)
{
	GIVE(&first, E(1000, BURST_BEGIN, work, 1), E(2000, POINT, CA_KEY_DROPPED, 2),
	     E(2010, BURST_END, work, 1), E(2020, BURST_BEGIN, work, 1), E(2030, BURST_END, work, 1));
}

/* What is easily written down; with a second process when `two`. */
static void small(bool two)
{
	static const struct ca_source other = { 200, 200, 2, 2 };

	if (two)
		GIVE(&other, E(1005, STATE_BEGIN, state, 2), E(1025, STATE_END, state, 2),
		     E(1025, POINT, CA_KEY_HIT, 1));
	GIVE(&first, E(1000, STATE_BEGIN, state, 1), E(1000, BURST_BEGIN, work, 5),
	     E(1010, BURST_BEGIN, work, 6), E(1010, POINT, CA_KEY_HIT, 7), E(1020, BURST_END, work, 6),
	     E(1030, BURST_END, work, 5), E(1040, STATE_END, state, 1));
}

static long resident(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

/* Bursts in bursts, points and states; three threads in turns. */
static long many(uint64_t n)
{
	static const struct ca_source *const from[] = { &first, &second, &third };
	static struct ca_event event[1000];
	uint64_t time[3] = { 1000, 1000, 1000 };
	long before = 0;

	for (uint64_t turn = 0; fed < n; turn++) {
		uint64_t *now = &time[turn % 3];

		for (size_t i = 0; i < 1000; i += 10) {
			const struct ca_event ten[] = {
				E(*now, STATE_BEGIN, state, 1),      E(*now + 1, BURST_BEGIN, work, 1 + i),
				E(*now + 2, BURST_BEGIN, work, 3),   E(*now + 3, POINT, step, turn),
				E(*now + 4, POINT, memory, turn),    E(*now + 5, BURST_BEGIN, step, 2),
				E(*now + 6, BURST_END, step, 2),     E(*now + 7, BURST_END, work, 3),
				E(*now + 8, BURST_END, work, 1 + i), E(*now + 9, STATE_END, state, 1),
			};

			memcpy(event + i, ten, sizeof ten);
			*now += 10 + turn % 3;
		}
		give(from[turn % 3], event, 1000);
		if (!before && fed >= n / 10)
			before = resident();
	}
	return before;
}

/* The second thread is told of all that it gets before the first one of what it sends. */
static void pings(uint64_t n)
{
	static struct ca_event event[500];

	for (uint64_t sent = 0; sent < n; sent += 500) {
		for (uint64_t i = 0; i < 500; i++)
			event[i] = (struct ca_event)E(1000 + 10 * (sent + i) + 5, PTP_END, message,
						      1 + sent + i);
		give(&second, event, 500);
		for (uint64_t i = 0; i < 500; i++)
			event[i] =
				(struct ca_event)E(1000 + 10 * (sent + i), PTP_BEGIN, message, 1 + sent + i);
		give(&first, event, 500);
	}
}

/* Each task wakes the next one, in two threads. */
static void tasks(uint64_t n)
{
	for (uint64_t i = 1; i <= n; i++)
		GIVE(i % 2 ? &first : &second, E(10 * i, BURST_BEGIN, task, i),
		     E(10 * i, PTP_END, message, i), E(10 * i + 5, PTP_BEGIN, message, i + 1),
		     E(10 * i + 5, BURST_END, task, i));
}

/* Half as many threads at a time as there are in all, of ten processes. */
static void threads(uint32_t n)
{
	char name[32];

	for (uint32_t i = 1; i <= n + n / 2; i++) {
		const struct ca_source begins = { 1 + i % 10, i, 1 + i % 10, i };
		const struct ca_source ends = { 1 + (i - n / 2) % 10, i - n / 2, 1 + (i - n / 2) % 10,
						i - n / 2 };

		if (i <= n) {
			snprintf(name, sizeof name, "worker %u", i);
			GIVE(&begins, E(10 * i, STATE_BEGIN, state, 1), E(10 * i, BURST_BEGIN, work, i));
			ca_sink_name(sinks, &begins, NULL, name);
		}
		if (i > n / 2)
			GIVE(&ends, E(10 * i + 5, BURST_END, work, i - n / 2),
			     E(10 * i + 6, STATE_END, state, 1));
	}
}

static void fill_dict(void)
{
	state = ca_dict_register(dict, "state", "what a thread does", CA_LEVEL_DEFAULT);
	work = ca_dict_register(dict, "work", "a burst", CA_LEVEL_USER);
	step = ca_dict_register(dict, "step \"one\" \xce\xb1", "a burst or a point", CA_LEVEL_USER);
	memory = ca_dict_register(dict, "memory", "in use", CA_LEVEL_DEVELOPER);
	message = ca_dict_register(dict, "message", "from thread to thread", CA_LEVEL_DEFAULT);
	task = ca_dict_register(dict, "task", "a piece of work", CA_LEVEL_USER);
	temperature = ca_dict_register_own(dict, "temperature", "degrees", 7);
	cpu = ca_dict_register(dict, "cpu", "where it runs", CA_LEVEL_ADVANCED);
	ca_dict_set_counter(dict, memory);
	ca_dict_name_value(dict, state, 0, "unknown");
	ca_dict_name_value(dict, state, 1, "running");
	ca_dict_name_value(dict, state, 2, "waits for a lock");
	ca_dict_name_value(dict, work, 5, "five \"5\"");
	ca_dict_name_value(dict, task, 6, "six");
	ca_dict_name_value(dict, CA_KEY_SELECTION, 4, "main");
}

int main(int argc, char **argv)
{
	struct ca_err err;
	long before;

	dict = ca_dict_new();
	if (argc < 3 || !dict)
		return 1;
	signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is a full disk */
	fill_dict();
	if (argc > 4)
		ca_sink_file_limit(strtoull(argv[4], NULL, 10));
	if (argc > 5)
		ca_sink_dot_size(atoi(argv[5]));
	if (ca_sink_open(&sinks, argv[1], "feed", dict, NULL, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 2;
	}
	if (!strcmp(argv[2], "script"))
		script();
	else if (!strcmp(argv[2], "back"))
		GIVE(&first, E(1000, POINT, step, 1), E(900, POINT, step, 2), E(1100, POINT, step, 3));
	else if (!strcmp(argv[2], "negative"))
		below_zero();
	else if (!strcmp(argv[2], "gap"))
		gap();
	else if (!strcmp(argv[2], "one") || !strcmp(argv[2], "two"))
		small(*argv[2] == 't');
	else if (!strcmp(argv[2], "pings") && argc > 3)
		pings(strtoull(argv[3], NULL, 10));
	else if (!strcmp(argv[2], "tasks") && argc > 3)
		tasks(strtoull(argv[3], NULL, 10));
	else if (!strcmp(argv[2], "threads") && argc > 3)
		threads((uint32_t)strtoul(argv[3], NULL, 10));
	before = !strcmp(argv[2], "many") && argc > 3 ? many(strtoull(argv[3], NULL, 10)) : resident();
	if (ca_sink_close(sinks, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 3;
	}
	printf("%" PRIu64 " events, %ld KiB\n", fed, resident() - before);
	ca_dict_free(dict);
	return 0;
}
