/* Status codes and error texts.
 *
 * For: every fallible function of every layer. Not for: printing (lower layers
 * never print; the driver decides). ca_err_set is not for signal handlers. */
#ifndef CA_CORE_STATUS_H
#define CA_CORE_STATUS_H

/* On a declaration: may run in a signal handler. Calls only such functions;
 * no lock, no malloc, no stdio; bounded time; errno kept. */
#define CA_SIGSAFE

#define CA_PRINTF(f, a) __attribute__((format(printf, f, a)))

enum ca_status {
	CA_OK = 0,
	CA_ERR_USAGE,       /* the user gave something that cannot be used */
	CA_ERR_IO,          /* a file or system call failed */
	CA_ERR_NOMEM,
	CA_ERR_FORMAT,      /* data that is not what it should be */
	CA_ERR_UNSUPPORTED, /* not on this machine, kernel or build */
	CA_ERR_PERMISSION,
	CA_ERR_NOT_FOUND,
	CA_ERR_FULL,        /* a fixed table has no room left */
	CA_ERR_AGAIN        /* not now; the same call may work later */
};

/* A status with a text for a person: what happened, why, what to do next. */
struct ca_err {
	enum ca_status status;
	char text[512];
};

/* Fill `err` (may be NULL) and return `status`. */
enum ca_status ca_err_set(struct ca_err *err, enum ca_status status, const char *format, ...)
	CA_PRINTF(3, 4);

/* A short noun phrase for a status, never NULL. */
const char *ca_status_name(enum ca_status status);

#endif
