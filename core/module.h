/* SPDX-License-Identifier: MIT */
/* A binary of the run as the session knows it: registered by a runtime, indexed by the conductor. */
#ifndef CA_CORE_MODULE_H
#define CA_CORE_MODULE_H
#include "core/status.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	CA_MAX_MODULES = 1024,
	CA_PATH = 512 /* room for a path in the session, bytes */
};

enum ca_module_state {
	CA_MODULE_FREE,
	CA_MODULE_CLAIMED,    /* a runtime is filling it in */
	CA_MODULE_REGISTERED, /* by a runtime (release); the conductor may index it */
	CA_MODULE_INDEXED,    /* by the conductor (release); index_path may be mapped */
	CA_MODULE_FAILED      /* no index can be had; frames in it end the unwinding */
};
/* As /proc/PID/maps calls the code that the kernel maps into each process; no file has it. */
#define CA_MODULE_VDSO "[vdso]"
/* The number of what is in no file at all, in a ca_place: code that the process has made itself. The offset is its
 * address there. No row of the table. */
enum { CA_MODULE_MADE = 0xffff };
struct ca_module {
	_Atomic uint32_t state;
	_Atomic uint32_t missed; /* looks for an index that was not there yet */
	uint32_t main;           /* it is the executable of some process */
	uint32_t openmp;         /* it is a library that runs OpenMP's threads (core/path.h) */
	uint32_t process;        /* pid of the process that registered it */
	uint32_t build_id_length;
	uint8_t build_id[32];
	char path[CA_PATH];       /* by the runtime */
	char index_path[CA_PATH]; /* by the conductor */
};
/* How a process sees a binary that is loaded into it. */
struct ca_image {
	const char *path;
	uint8_t build_id[32];
	uint32_t build_id_length;
	uintptr_t build_id_at; /* in its memory; 0: it has none */
	uintptr_t bias;
	bool main; /* the executable */
};

struct ca_session;
/* The number of the image's module, which is added if it is new. guess: looked at first, 0: none.
 * Any thread of any process of the run. Returns 0 when the table is full. */
CA_SIGSAFE uint32_t ca_module_enlist(struct ca_session *session, const struct ca_image *image,
				     uint32_t guess);
/* What the user calls the file: Debian's redis-server is a link to redis-check-rdb. Static as the session. */
const char *ca_module_called(const struct ca_session *session, const char *path);
/* The path of its index as soon as that may be mapped, else NULL. */
CA_SIGSAFE const char *ca_module_index_path(struct ca_session *session, uint32_t module);

#endif
