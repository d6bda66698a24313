/* SPDX-License-Identifier: MIT */
/* The file that a sink writes, record by record.
 *
 * What is in it can be read at any moment: it ends behind a whole record, and with what the format
 * wants at the end. When no more can be written, the disk being full, this stays so, and what came
 * later is counted. Driver's process, one thread. */
#ifndef CA_CORE_SINK_FILE_H
#define CA_CORE_SINK_FILE_H
#include "core/status.h"
#include "core/vec.h"
#include <stdint.h>
#include <stdio.h>

struct ca_sink_file {
	const char *sink; /* its name, for messages */
	const char *tail; /* what the format wants at the end; borrowed */
	char *path;
	int fd;
	bool seeks;         /* false: a pipe; the tail is written once */
	int error;          /* why nothing more is written; 0: all is well */
	uint64_t size;      /* bytes in the file, without the tail */
	uint64_t lost;      /* events that are not in the file */
	struct ca_vec data; /* bytes that are not in it yet */
	struct ca_vec ends; /* of the records among them */
};

/* From now on each file, or a folder's together, is full at that size, bytes; 0: there is no limit. */
void ca_sink_file_limit(uint64_t most);
/* Of n bytes, how many may be written behind `size`. */
uint64_t ca_sink_file_room(uint64_t size, uint64_t n);

/* For sinks that write when the run is over: the file, emptied; NULL: err says why not. */
FILE *ca_sink_file_stream(const char *sink, const char *path, struct ca_err *err);
/* Creates the file, or empties it, and writes head and tail. tail and sink are borrowed. path: NULL is
 * standard error. */
enum ca_status ca_sink_file_open(struct ca_sink_file *file, const char *sink, const char *path,
				 const char *head, const char *tail, struct ca_err *err);
/* Parts of a record. */
void ca_sink_file_put(struct ca_sink_file *file, const void *bytes, size_t n);
void ca_sink_file_text(struct ca_sink_file *file, const char *text);
void ca_sink_file_print(struct ca_sink_file *file, const char *format, ...) CA_PRINTF(2, 3);
/* The record is whole; it stands for that many events. */
void ca_sink_file_end(struct ca_sink_file *file, unsigned events);
/* Writes what there is, for those who look at it meanwhile. */
void ca_sink_file_flush(struct ca_sink_file *file);
/* Writes what is left. CA_ERR_IO: how many events are missing, and why. */
enum ca_status ca_sink_file_close(struct ca_sink_file *file, struct ca_err *err);

#endif
