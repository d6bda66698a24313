/* SPDX-License-Identifier: MIT */
/* A status, and a text for a person with it. Not for signal handlers. */
#ifndef CA_CORE_ERR_H
#define CA_CORE_ERR_H

#define CA_PRINTF(f, a) __attribute__((format(printf, f, a)))

enum ca_status {
	CA_OK = 0,
	CA_ERR_USAGE, /* the user gave something that cannot be used */
	CA_ERR_IO,    /* a file or system call failed */
	CA_ERR_NOMEM,
	CA_ERR_FORMAT,      /* data that is not what it should be */
	CA_ERR_UNSUPPORTED, /* not on this machine, kernel or build */
	CA_ERR_PERMISSION,
	CA_ERR_NOT_FOUND,
	CA_ERR_FULL, /* a fixed table has no room left */
	CA_ERR_AGAIN /* not now; the same call may work later */
};

/* A text for a person: what happened, why, what to do next. */
struct ca_err {
	char text[512];
};

/* Fill `err` (may be NULL) and return `status`. */
enum ca_status ca_err_set(struct ca_err *err, enum ca_status status, const char *format, ...) CA_PRINTF(3, 4);

#endif
