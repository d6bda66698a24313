/* SPDX-License-Identifier: MIT */
/* The driver's end of trace rings (core/rings.h): it makes them, empties them while the program runs
 * and after it has died, and counts. Driver's process, one thread. */
#ifndef CA_CORE_RINGS_READER_H
#define CA_CORE_RINGS_READER_H
#include "core/laps.h"

struct ca_rings_options {
	uint64_t memory; /* bytes, for all threads together */
	uint64_t ring;   /* bytes, for one */
	bool keep_last;  /* of a thread that raises more, keep the newest: read at the end only */
	bool laps;       /* bursts are counted where they are raised: core/laps.h */
	uint64_t throttle;
};

struct ca_rings_reader;

/* In the file `fd`, from its end `at` on. *size: bytes added to it. */
enum ca_status ca_rings_reader_new(struct ca_rings_reader **reader, int fd, uint64_t at,
				   const struct ca_rings_options *options, uint64_t *size,
				   struct ca_err *err);
void ca_rings_reader_free(struct ca_rings_reader *reader); /* NULL is fine */
struct ca_rings *ca_rings_reader_get(const struct ca_rings_reader *reader);

/* Events of one thread, in the order in which it raised them. */
typedef void (*ca_rings_take)(void *context, const struct ca_source *from, const struct ca_event *event,
			      size_t n);
/* Laps of one thread, `first` being the number of the first, each after the one that it lies in; a thread that
 * has more comes more than once. n 0: the thread goes on. */
typedef void (*ca_rings_take_laps)(void *context, const struct ca_source *from, const struct ca_lap *lap,
				   uint32_t first, size_t n);
/* Who gets them, with the same context. */
void ca_rings_reader_on_laps(struct ca_rings_reader *reader, ca_rings_take_laps take);
/* What has come since the last time. last: nothing more will: also what a dead thread left open, and what
 * was kept until now. */
void ca_rings_reader_drain(struct ca_rings_reader *reader, bool last, ca_rings_take take, void *context);
/* A process is gone: nothing more comes from it. */
void ca_rings_reader_forget(struct ca_rings_reader *reader, uint32_t process_index);

/* Events taken so far, and threads that raised any. */
uint64_t ca_rings_reader_events(const struct ca_rings_reader *reader);
uint32_t ca_rings_reader_threads(const struct ca_rings_reader *reader);
/* Events that are missing for this reason. */
uint64_t ca_rings_reader_lost(const struct ca_rings_reader *reader, enum ca_loss why);

#endif
