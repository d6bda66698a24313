/* SPDX-License-Identifier: MIT */
/* Words that threads spin on, watched; see handover.h. */
#include "causal/conductor/handover.h"
#include "causal/conductor/pace.h"
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	THREADS = 4, /* that are watched at once: 60 us of ours for each */
	HITS = 4,    /* of each: who takes a lock writes there, too, and who gives it back is looked for */
	PLACES = 8,  /* that are asked for */
	LONGEST = 60000000, /* ns of a watch, and of waiting for an answer */
	APART = 10000000,   /* ns from one look for a spinning thread to the next, at least */
	IN_VAIN = 24,       /* watches of a sweep that find nothing new ... */
	FEW = 2             /* ... but so many of each run */
};

/* The breakpoint of one thread, and the ring into which the kernel writes where it was met. */
struct watched {
	int fd;
	struct perf_event_mmap_page *page;
};

struct ca_handover {
	struct ca_session *session;
	struct watched watched[THREADS];
	unsigned n, *in_vain;
	uint32_t process; /* whose they are */
	uint64_t since;
	struct ca_pace pace; /* of looks at all threads */
	uint32_t first;      /* slot from which on threads are taken: each time others */
	uint64_t ip[PLACES]; /* behind the stores that were met ... */
	unsigned ips;
	bool asked; /* the runtime is to say where the last of them is */
};

struct ca_handover *ca_handover_new(struct ca_session *session, unsigned *in_vain)
{
	struct ca_handover *h = calloc(1, sizeof *h);

	if (!h)
		return NULL;
	h->session = session;
	h->in_vain = in_vain;
	if (*in_vain > IN_VAIN - FEW)
		*in_vain = IN_VAIN - FEW;
	return h;
}

/* ---- one breakpoint ---------------------------------------------------------------------------*/
static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static bool watch(struct watched *w, pid_t thread, uint64_t word)
{
	struct perf_event_attr a = { .type = PERF_TYPE_BREAKPOINT,
				     .size = sizeof a,
				     .bp_type = HW_BREAKPOINT_W,
				     .bp_addr = CA_SPUN_ADDRESS(word),
				     .bp_len = CA_SPUN_WIDTH(word),
				     .sample_period = 1,
				     .sample_type = PERF_SAMPLE_IP,
				     .disabled = 1,
				     .exclude_kernel = 1,
				     .exclude_hv = 1 };

	w->fd = (int)syscall(SYS_perf_event_open, &a, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (w->fd < 0)
		return false;
	w->page = mmap(NULL, 2 * page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
	/* a breakpoint that is met costs the thread a microsecond or two */
	if (w->page != MAP_FAILED && ioctl(w->fd, PERF_EVENT_IOC_REFRESH, HITS) == 0)
		return true;
	if (w->page != MAP_FAILED)
		munmap(w->page, 2 * page_size());
	close(w->fd);
	return false;
}

static void add_place(struct ca_handover *h, uint64_t ip)
{
	for (unsigned i = 0; i < h->ips; i++)
		if (h->ip[i] == ip)
			return;
	if (h->ips < PLACES)
		h->ip[h->ips++] = ip;
}

/* Behind which stores was it met? */
static void take_places(struct ca_handover *h, const struct watched *w)
{
	const char *data = (const char *)w->page + page_size();
	/* acquire: pairs with the kernel's store of it, behind the data */
	uint64_t head = __atomic_load_n(&w->page->data_head, __ATOMIC_ACQUIRE);
	struct {
		struct perf_event_header header;
		uint64_t ip;
	} one;

	for (uint64_t at = 0; at + sizeof one <= head && at + sizeof one <= page_size();
	     at += one.header.size) {
		memcpy(&one, data + at, sizeof one);
		if (one.header.size < sizeof one.header)
			return;
		if (one.header.type == PERF_RECORD_SAMPLE)
			add_place(h, one.ip);
	}
}

static void unwatch(struct ca_handover *h)
{
	while (h->n) {
		struct watched *w = &h->watched[--h->n];

		munmap(w->page, 2 * page_size());
		close(w->fd);
	}
}

void ca_handover_free(struct ca_handover *h)
{
	if (h)
		unwatch(h);
	free(h);
}

/* ---- from who spins to who writes ---------------------------------------------------------------*/
/* In threads of the process of that slot, and not in its own. */
static void begin(struct ca_handover *h, uint32_t spinner, uint64_t word, uint64_t now)
{
	struct ca_session *s = h->session;
	uint32_t used = atomic_load(&s->slots_used);

	h->process = s->slot[spinner].process;
	for (uint32_t i = 0; i < used && h->n < THREADS; i++) {
		uint32_t k = (h->first + i) % used;

		if (k != spinner && atomic_load(&s->slot[k].state) == CA_SLOT_LIVE &&
		    s->slot[k].process == h->process && watch(&h->watched[h->n], (pid_t)s->slot[k].tid, word))
			h->n++;
	}
	h->first = used ? (h->first + THREADS) % used : 0;
	h->since = now;
	++*h->in_vain;
}

static void look_for_spinner(struct ca_handover *h, uint64_t now)
{
	struct ca_session *s = h->session;
	uint32_t used = atomic_load(&s->slots_used), i = 0;

	if (!ca_pace_begin(&h->pace, now, APART))
		return;
	for (; i < used; i++) {
		uint64_t word = atomic_load_explicit(&s->slot[i].spun_on, memory_order_relaxed)
					? atomic_exchange(&s->slot[i].spun_on, 0)
					: 0;

		/* by other numbers in another namespace its threads would be strangers */
		if (word && s->process[s->slot[i].process].pid_space == s->pid_space) {
			begin(h, i, word, now);
			break;
		}
	}
	ca_pace_end(&h->pace);
}

static bool answer(struct ca_handover *h, uint64_t now, ca_place *end)
{
	struct ca_process *p = &h->session->process[h->process];

	*end = atomic_load(&p->store_place);
	if (!*end && now - h->since < LONGEST)
		return false;
	h->asked = false;
	atomic_store(&p->store, 0);
	atomic_store(&p->store_place, 0);
	return *end > 1;
}

static void ask(struct ca_handover *h, uint64_t now)
{
	atomic_store(&h->session->process[h->process].store, h->ip[--h->ips]);
	h->asked = true;
	h->since = now;
}

bool ca_handover_step(struct ca_handover *h, uint64_t now, ca_place *end)
{
	if (h->asked)
		return answer(h, now, end);
	for (unsigned i = 0; i < h->n; i++)
		take_places(h, &h->watched[i]);
	if (h->ips || now - h->since >= LONGEST)
		unwatch(h);
	if (h->ips)
		ask(h, now);
	else if (!h->n && *h->in_vain < IN_VAIN)
		look_for_spinner(h, now);
	return false;
}

bool ca_handover_is_busy(const struct ca_handover *h)
{
	return h->n || h->ips || h->asked;
}

void ca_handover_was_new(struct ca_handover *h)
{
	*h->in_vain = 0;
}
