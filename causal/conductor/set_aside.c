/* SPDX-License-Identifier: MIT */
/* Samples in a temporary file; see set_aside.h. */
#include "causal/conductor/set_aside.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1024 /* events; more than a page of a ring holds */ };

/* In the file: the first part of one, with its events. */
struct portion {
	struct ca_source from;
	uint64_t drained; /* with no events: a step */
	uint64_t n;
	struct ca_event event[MOST];
};

struct ca_set_aside {
	struct ca_sampling *sampling;
	int fd;
	uint64_t size, most;
	bool changed; /* since the last step */
	struct portion portion;
};

static int open_file(const char *place)
{
	char name[PATH_MAX];
	int fd = open(place, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || snprintf(name, sizeof name, "%s/causal-samples-XXXXXX", place) >= (int)sizeof name)
		return fd;
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		unlink(name);
	return fd;
}

enum ca_status ca_set_aside_new(struct ca_set_aside **aside, struct ca_sampling *sampling, uint64_t most,
				struct ca_err *err)
{
	const char *place = getenv("TMPDIR");
	struct ca_set_aside *a = calloc(1, sizeof *a);

	if (!a)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	a->fd = open_file(place && *place ? place : "/tmp");
	if (a->fd < 0) {
		free(a);
		return ca_err_set(err, CA_ERR_USAGE,
				  "no temporary file for samples: %s; TMPDIR says where it lies",
				  strerror(errno));
	}
	a->sampling = sampling;
	a->most = most;
	*aside = a;
	return CA_OK;
}

void ca_set_aside_free(struct ca_set_aside *a)
{
	if (a)
		close(a->fd);
	free(a);
}

static size_t size_of(const struct portion *p)
{
	return offsetof(struct portion, event) + p->n * sizeof *p->event;
}

/* All of it, or the file is as it was. */
static bool put(struct ca_set_aside *a)
{
	size_t size = size_of(&a->portion);

	if (a->size + size > a->most || pwrite(a->fd, &a->portion, size, (off_t)a->size) != (ssize_t)size)
		return false;
	a->size += size;
	return true;
}

void ca_set_aside_empty(struct ca_set_aside *a)
{
	struct portion *p = &a->portion;

	for (uint64_t at = 0; at < a->size; at += size_of(p)) {
		if (pread(a->fd, p, sizeof *p, (off_t)at) < (ssize_t)offsetof(struct portion, event) ||
		    p->n > MOST)
			break;
		if (p->n)
			ca_sampling_take(a->sampling, &p->from, p->event, p->n);
		else
			ca_sampling_step(a->sampling, p->drained);
	}
	a->size = 0;
	if (ftruncate(a->fd, 0))
		return; /* it is overwritten */
}

void ca_set_aside_take(struct ca_set_aside *a, const struct ca_source *from, const struct ca_event *event,
		       size_t n)
{
	a->portion.from = *from;
	a->portion.n = n;
	a->changed = true;
	if (n <= MOST) {
		memcpy(a->portion.event, event, n * sizeof *event);
		if (put(a))
			return;
	}
	ca_set_aside_empty(a);
	ca_sampling_take(a->sampling, from, event, n);
}

void ca_set_aside_step(struct ca_set_aside *a, uint64_t drained)
{
	a->portion.drained = drained;
	a->portion.n = 0;
	if (a->changed && !put(a)) {
		ca_set_aside_empty(a);
		ca_sampling_step(a->sampling, drained);
	}
	a->changed = false;
}
