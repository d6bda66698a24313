/* The session: memory shared by the conductor (in the driver's process) and the
 * runtime in every process of one run.
 *
 * Who writes what is said at each member. All fields have fixed size and no
 * pointers; any process may die at any moment, so nobody ever waits without a
 * bound for another, and there are no locks. The file is sparse: only the thread
 * slots below slots_ready have backing store (the conductor allocates ahead, so
 * that a full disk can never raise SIGBUS in the host). */
#ifndef CA_CORE_SESSION_H
#define CA_CORE_SESSION_H
#include "core/event.h"
#include "core/ring.h"
#include "core/status.h"
#include <stdatomic.h>
#include <stdint.h>

#define CA_SESSION_MAGIC 0x31534c5553414331u /* "1CASULS1" */
enum {
	CA_SESSION_VERSION = 1,
	CA_MAX_PROCESSES = 512,
	CA_MAX_THREADS = 4096, /* at one time, all processes together */
	CA_MAX_MODULES = 1024,
	CA_MAX_POINTS = 128,
	CA_MAX_RANGES = 4096,
	CA_MAX_SITES = 128,
	CA_MAX_REQUESTED = 512,
	CA_LOG_ENTRIES = 1 << 16, /* a power of two */
	CA_PATH = 512,
	CA_MILLION = 1000000
};

enum ca_backend { CA_BACKEND_AUTO, CA_BACKEND_PERF, CA_BACKEND_TIMER };

/* ---- the S log: what happened to the selected code S, in order ---------------
 * Appended by any thread with fetch_add on log_head; a reader trusts an entry
 * when its seq is its own number + 1 (released last by the writer). */
enum ca_log_type {
	CA_LOG_ENTER = 1, /* thread is in S from `time` on */
	CA_LOG_EXIT,      /* ... until `time` */
	CA_LOG_OFF,       /* in S but waiting for others from `time` on (time may lie in the past) */
	CA_LOG_ON,        /* back on the CPU from `time` on; also ends CA_LOG_EXTERNAL */
	CA_LOG_EXTERNAL,  /* in S and waiting for the outside world: still counts as S */
	CA_LOG_HIT        /* a sample in S at `time`; value: ns of union S time it stands for */
};
struct ca_log_entry {
	_Atomic uint64_t seq;
	uint64_t time; /* ns, CLOCK_MONOTONIC */
	uint32_t thread; /* slot number */
	uint32_t type;   /* enum ca_log_type */
	uint64_t value;
};

/* ---- the experiment: written by the conductor --------------------------------*/
struct ca_range {
	uint32_t module;
	uint32_t reserved;
	uint64_t low, high; /* [low, high), file addresses */
};

/* One place in the program's text that is replaced by a jump to a trampoline.
 * Planned by the driver (capstone), carried out by the runtime. */
enum ca_site_kind {
	CA_SITE_ENTER = 1, /* thread enters S; then the displaced instructions */
	CA_SITE_EXIT,      /* thread leaves S; then the displaced instructions */
	CA_SITE_CALL,      /* a call instruction: enter S, call; its EXIT site is where it returns to */
	CA_SITE_COUNT,     /* count a visit of progress point `point` */
	CA_SITE_MEET,      /* the thread is about to spin or wait: pay first */
	CA_SITE_STAMP,     /* as COUNT, and add the time of the visit to the point's stamp */
	CA_SITE_TRIAL      /* of a site, not a hook: counts like COUNT until the next selection */
};
enum {
	CA_SITE_BYTES = 24,
	CA_SITE_CODE = 96,
	CA_SITE_FIXUPS = 6,
	CA_SITE_HOOKS = 4,
	CA_SITE_INSNS = 8
};
enum ca_site_flag {
	CA_SITE_BY_CALL = 1,    /* reach the trampoline by a call that ends at the site's end: the
				 * return address is the program's own (the site ends in a call) */
	CA_SITE_FLAGS_DEAD = 2, /* nobody reads the arithmetic flags at the site */
	CA_SITE_NO_TRAP = 4     /* leave the site alone rather than fall back to a lasting int3 */
};
enum ca_fixup_type {
	CA_FIXUP_REL = 0, /* 4 bytes, relative to `end`: file address `target` */
	CA_FIXUP_LOW,     /* 4 bytes: low half of the run-time address of `target` */
	CA_FIXUP_HIGH,    /* 4 bytes: its high half */
	CA_FIXUP_LOCAL    /* 4 bytes, relative to `end`: offset `target` in code[] */
};
struct ca_site {
	uint32_t module;
	uint8_t kind;         /* enum ca_site_kind: what it is for */
	uint8_t length;       /* bytes displaced, 1..CA_SITE_BYTES; below 5 the runtime needs luck
			       * with the bytes behind, else an int3 stays (2.4 us a visit) */
	uint8_t code_length;
	uint8_t fixups;       /* used entries of fixup[] */
	uint64_t address;     /* file address of the first displaced byte */
	uint32_t point;       /* hook CA_SITE_COUNT: the progress point */
	uint8_t hooks;        /* used entries of hook[] */
	uint8_t insns;        /* used entries of insn[] */
	uint8_t flags;        /* enum ca_site_flag */
	uint8_t reserved;
	uint8_t original[CA_SITE_BYTES]; /* what must stand there, else do not patch */
	uint8_t code[CA_SITE_CODE];      /* the displaced instructions, relocatable, with whatever
					  * brings control back: nothing is to be appended */
	struct {
		uint8_t at;   /* hook runs before code[at] */
		uint8_t kind; /* enum ca_site_kind: ENTER, EXIT, COUNT, MEET, STAMP */
		uint8_t point; /* COUNT, STAMP: which point, + 1, where it is not the site's own */
	} hook[CA_SITE_HOOKS];  /* sorted by `at` */
	struct {
		uint8_t offset; /* of a displaced instruction after the first, in original[] */
		uint8_t at;     /* ... in code[] */
	} insn[CA_SITE_INSNS];  /* all of them: a thread that arrives there is sent to the copy */
	struct {
		uint8_t at;     /* offset in code[] of the 4 bytes */
		uint8_t end;    /* offset in code[] of the end of that instruction */
		uint8_t type;   /* enum ca_fixup_type */
		uint8_t reserved[5];
		uint64_t target;
	} fixup[CA_SITE_FIXUPS];
};

struct ca_selection {
	_Atomic uint64_t seq; /* odd while the conductor writes */
	uint32_t region;      /* region id in the conductor's catalog */
	uint32_t ranges, sites;
	uint32_t exact;       /* S is known by sites, not by samples */
	uint32_t reserved;
	uint64_t log_start;   /* first log entry about this selection */
	struct ca_range range[CA_MAX_RANGES]; /* sorted by module, then low */
	struct ca_site site[CA_MAX_SITES];
};

struct ca_experiment {
	_Atomic uint64_t seq;     /* odd: open. Released after the other fields */
	uint32_t index;           /* 1-based within the run */
	uint32_t speedup;         /* millionths */
	uint64_t start;           /* ns */
};

/* ---- tables ------------------------------------------------------------------*/
enum ca_slot_state { CA_SLOT_FREE, CA_SLOT_CLAIMED, CA_SLOT_LIVE };

enum ca_module_state {
	CA_MODULE_FREE,
	CA_MODULE_CLAIMED,    /* a runtime is filling it in */
	CA_MODULE_REGISTERED, /* by a runtime (release); the conductor may index it */
	CA_MODULE_INDEXED,    /* by the conductor (release); index_path may be mapped */
	CA_MODULE_FAILED      /* no index can be had; frames in it end the unwinding */
};
/* As /proc/PID/maps calls the code that the kernel maps into each process; no file has it. */
#define CA_MODULE_VDSO "[vdso]"
struct ca_module {
	_Atomic uint32_t state;
	uint32_t main;            /* it is the executable of some process */
	uint32_t process;         /* pid of the process that registered it */
	uint32_t build_id_length;
	uint8_t build_id[32];
	char path[CA_PATH];       /* by the runtime */
	char index_path[CA_PATH]; /* by the conductor */
};

enum ca_point_kind { CA_POINT_THROUGHPUT = 1, CA_POINT_BEGIN, CA_POINT_END };
/* A progress point. Total visits = shared + the sum of count[] over all slots. */
struct ca_progress_point {
	_Atomic uint32_t state; /* enum ca_slot_state */
	uint32_t kind;          /* enum ca_point_kind */
	char name[240];
	/* Coz's struct {count, backoff}; any thread adds with relaxed order */
	_Atomic uint64_t shared;
	uint64_t backoff;
	_Atomic uint64_t trapped; /* visits, of all processes, that cost an int3 */
};

struct ca_process {
	_Atomic uint32_t state; /* enum ca_slot_state */
	uint32_t pid;
	uint64_t started;       /* ns, CLOCK_MONOTONIC */
	_Atomic uint64_t patched; /* selection.seq whose sites are in place here (or given up) */
	_Atomic uint32_t patch_failed; /* sites that could not be patched for that seq */
	_Atomic uint32_t off;   /* the runtime switched itself off here; reason in off_text */
	uint32_t main_module;
	char off_text[160];
};

/* One thread. Written by that thread, read by the conductor. count[] and stamp[]
 * only ever grow, also when the slot passes to another thread. */
struct ca_slot {
	_Atomic uint32_t state; /* enum ca_slot_state */
	uint32_t process;       /* index into process[] */
	uint32_t pid, tid;
	_Atomic uint64_t experiment; /* experiment.seq that owed/paid belong to */
	_Atomic uint64_t owed;       /* ns still to pay */
	_Atomic uint64_t paid;       /* ns paid in this experiment */
	_Atomic uint64_t paid_total;
	_Atomic uint64_t samples;    /* all samples taken */
	_Atomic uint64_t handler_ns; /* time spent in our handler */
	_Atomic uint64_t last_hit;   /* ns; last sample inside S */
	_Atomic uint32_t in_s;       /* inside S now (exact) */
	uint32_t reserved;
	_Atomic uint64_t drop[CA_DROP_COUNT];
	_Atomic uint64_t stamping; /* odd while a count and its stamp do not belong together */
	_Atomic uint64_t spare[7];
	_Alignas(64) _Atomic uint64_t count[CA_MAX_POINTS];
	_Atomic uint64_t stamp[CA_MAX_POINTS]; /* begin and end points: sum of the visits' virtual
						* times since their experiment began, ns, mod 2^64 */
	_Alignas(64) struct ca_ring ring;
};

enum ca_session_state { CA_SESSION_OPEN = 1, CA_SESSION_CLOSED };

struct ca_session {
	uint64_t magic; /* CA_SESSION_MAGIC; written last at creation */
	uint32_t version;
	uint32_t header_size; /* sizeof(struct ca_session): both sides must agree */
	uint32_t slot_size;   /* sizeof(struct ca_slot) */
	uint32_t conductor;   /* pid */
	uint64_t period;      /* ns of CPU time between samples */
	uint32_t backend;     /* enum ca_backend wanted */
	uint32_t verbose;     /* as ca_settings_level */
	uint32_t timeline;    /* 1: delays and waits travel as events, too */
	_Atomic uint32_t backends; /* that threads had ticks from: 1 << enum ca_backend, by the
				    * runtimes */
	uint64_t reserved[7];
	_Alignas(64) _Atomic uint64_t heartbeat; /* ns; by the conductor, every 20 ms */
	_Atomic uint32_t state;       /* enum ca_session_state */
	_Atomic uint32_t slots_ready; /* thread slots that have backing store */
	_Atomic uint32_t sampling;    /* 1: stacks are wanted (no experiment is open) */
	_Atomic uint32_t threads_missed; /* threads that found no free slot */
	/* Progress points of the command line: sites of kind COUNT, by the conductor, which
	 * releases requested_used after the sites; those of a module before it is INDEXED. */
	_Atomic uint32_t requested_used;
	uint32_t requested_anywhere; /* they may lie in any module: wait for all before main. Set
				   * before the first process starts */
	struct ca_site requested[CA_MAX_REQUESTED];
	_Alignas(64) struct ca_experiment experiment;
	_Alignas(64) _Atomic uint64_t log_head;
	_Alignas(64) _Atomic uint32_t slots_used; /* highest slot ever used + 1 */
	_Atomic uint32_t modules_used;
	_Atomic uint32_t points_used;
	_Atomic uint32_t processes_used;
	_Alignas(64) struct ca_selection selection;
	struct ca_process process[CA_MAX_PROCESSES];
	struct ca_progress_point point[CA_MAX_POINTS];
	struct ca_module module[CA_MAX_MODULES];
	_Alignas(64) struct ca_log_entry log[CA_LOG_ENTRIES];
	_Alignas(4096) struct ca_slot slot[]; /* CA_MAX_THREADS of them */
};

/* Length of the file and of a mapping, bytes. */
#define CA_SESSION_SIZE (sizeof(struct ca_session) + CA_MAX_THREADS * sizeof(struct ca_slot))

/* Create the file at `path` and map it; the caller owns the mapping. */
enum ca_status ca_session_create(const char *path, struct ca_session **session, struct ca_err *err);
/* Make sure that `slots` thread slots have backing store. */
enum ca_status ca_session_grow(int fd, struct ca_session *session, uint32_t slots, struct ca_err *err);
/* Map an existing one (runtime side); checks magic, version and sizes. No malloc. */
enum ca_status ca_session_attach(const char *path, struct ca_session **session);
void ca_session_detach(struct ca_session *session);

#endif
