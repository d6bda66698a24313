/* SPDX-License-Identifier: MIT */
/* perf counters of the calling thread; see include/causal_measure.h. A set is a group of the kernel's, which
 * is scheduled as one. Where the processor may be asked for each of them directly, it is. */
#include "causal/library/library.h"
#include "core/samplers.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct known {
	const char *name;
	uint32_t type;
	uint64_t config;
} known[] = {
#define CA_PERF_EVENT(name, TYPE, CONFIG, text) { name, PERF_TYPE_##TYPE, PERF_COUNT_##CONFIG },
#include "core/perf_events.def"
};
enum { KNOWN = sizeof known / sizeof *known, NAME = 64, PAGE = 4096 };

struct causal_counters {
	unsigned n;
	unsigned forks; /* it was opened after so many */
	bool direct;    /* all of them can be read without the kernel */
	int fd[CAUSAL_COUNTERS];
	struct perf_event_mmap_page *page[CAUSAL_COUNTERS];
	struct perf_event_attr attr[CAUSAL_COUNTERS];
	char name[CAUSAL_COUNTERS][NAME];
	uint64_t last[CAUSAL_COUNTERS]; /* for causal_counters_here */
};

/* The child of a fork has its parent's descriptors, which go on counting the parent. */
static unsigned forks;

static void forked(void)
{
	forks++;
}

static __attribute__((constructor)) void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}

/* ---- names */

static int refuse(const char *name)
{
	char list[512] = "";

	for (size_t i = 0; i < KNOWN; i++) {
		strcat(list, known[i].name);
		strcat(list, ", ");
	}
	ca_library_say("counter '%s' is not known; choose from: %ssyscall:NAME", name, list);
	return EINVAL;
}

/* The number of the tracepoint at the entry of a system call; 0: errno says why it is not known. */
static uint64_t tracepoint(const char *call)
{
	static const char *const roots[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	char path[256], text[32] = "";

	for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
		int fd;

		snprintf(path, sizeof path, "%s/events/syscalls/sys_enter_%s/id", roots[i], call);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (read(fd, text, sizeof text - 1) < 0)
			*text = '\0';
		close(fd);
		if (strtoull(text, NULL, 10))
			return strtoull(text, NULL, 10);
	}
	/* a name that is wrong, or nobody may look */
	errno = access("/sys/kernel/tracing/events/syscalls", X_OK) ? EACCES : EINVAL;
	return 0;
}

static int describe(const char *name, struct perf_event_attr *attr)
{
	*attr = (struct perf_event_attr){ .size = sizeof *attr, .read_format = PERF_FORMAT_GROUP };
	if (!strncmp(name, "syscall:", 8)) {
		attr->type = PERF_TYPE_TRACEPOINT;
		errno = EINVAL;
		attr->config = strpbrk(name + 8, "/.") ? 0 : tracepoint(name + 8);
		if (attr->config)
			return 0;
		if (errno == EINVAL)
			ca_library_say("counter '%s': there is no system call of that name", name);
		return errno;
	}
	/* the kernel's part needs a right that few have */
	attr->exclude_kernel = attr->exclude_hv = 1;
	for (size_t i = 0; i < KNOWN; i++)
		if (!strcmp(known[i].name, name)) {
			attr->type = known[i].type;
			attr->config = known[i].config;
			/* what happens to a thread happens in the kernel */
			if (attr->type == PERF_TYPE_SOFTWARE)
				attr->exclude_kernel = 0;
			return 0;
		}
	return refuse(name);
}

/* Once for each reason: threads and places would repeat it. */
static void say_why(const char *name, int error)
{
	static atomic_flag refused = ATOMIC_FLAG_INIT, missing = ATOMIC_FLAG_INIT, other = ATOMIC_FLAG_INIT;

	if (error == EACCES || error == EPERM) {
		if (!atomic_flag_test_and_set(&refused))
			ca_library_say("counter %s is not allowed (%s); see kernel.perf_event_paranoid (2 or "
				       "less; 1 for context-switches and cpu-migrations, -1 for "
				       "syscall:NAME). Counters that are not allowed are left out",
				       name, strerror(error));
	} else if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV) {
		if (!atomic_flag_test_and_set(&missing))
			ca_library_say(
				"counter %s: this machine has none. Counters that it has not are left out",
				name);
	} else if (!atomic_flag_test_and_set(&other)) {
		ca_library_say("counter %s cannot be opened: %s", name, strerror(error));
	}
}

/* ---- opening */

static void shut(struct causal_counters *c)
{
	for (unsigned i = c->n; i-- > 0;) {
		if (c->page[i])
			munmap(c->page[i], PAGE);
		c->page[i] = NULL;
		if (c->fd[i] >= 0)
			close(c->fd[i]);
		c->fd[i] = -1;
	}
}

static int open_one(struct perf_event_attr *attr, int group)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC);

	/* without the kernel's part rather than not at all */
	if (fd < 0 && (errno == EACCES || errno == EPERM) && !attr->exclude_kernel &&
	    attr->type == PERF_TYPE_SOFTWARE && !ca_samplers_of_kernel(attr->type, attr->config)) {
		attr->exclude_kernel = 1;
		fd = (int)syscall(SYS_perf_event_open, attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
	}
	return fd;
}

static int open_all(struct causal_counters *c)
{
	int error = 0;

	c->direct = true;
	c->forks = forks;
	for (unsigned i = 0; i < c->n && !error; i++) {
		/* begun when all are there: one that joins a group of other ones that run does not count until
		 * the thread has been away from the processor (Linux 6.18) */
		c->attr[i].disabled = i == 0;
		c->fd[i] = open_one(&c->attr[i], i ? c->fd[0] : -1);
		if (c->fd[i] < 0) {
			error = errno;
			say_why(c->name[i], error);
			break;
		}
		c->page[i] = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, c->fd[i], 0);
		if (c->page[i] == MAP_FAILED)
			c->page[i] = NULL;
		c->direct &= c->page[i] && c->page[i]->cap_user_rdpmc;
	}
	if (!error)
		ioctl(c->fd[0], PERF_EVENT_IOC_ENABLE, 0);
	return error;
}

/* The next of "a,b+c"; false: that was the last. */
static bool next_name(const char **rest, char name[NAME])
{
	size_t n = strcspn(*rest, ",+");

	if (!**rest)
		return false;
	snprintf(name, NAME, "%.*s", (int)n, *rest);
	*rest += n + ((*rest)[n] != '\0');
	return true;
}

struct causal_counters *causal_counters_open(const char *names)
{
	struct causal_counters *c = calloc(1, sizeof *c);
	const char *rest = names ? names : "";
	char name[NAME];
	int error = c ? 0 : ENOMEM;

	while (!error && next_name(&rest, name)) {
		if (c->n == CAUSAL_COUNTERS) {
			ca_library_say("counters '%s': there are more than %d in one set", names,
				       CAUSAL_COUNTERS);
			error = E2BIG;
			break;
		}
		strcpy(c->name[c->n], name);
		c->fd[c->n] = -1;
		error = describe(name, &c->attr[c->n++]);
		if (error == EACCES)
			say_why(name, error);
	}
	if (!error && !c->n)
		error = refuse("");
	if (!error)
		error = open_all(c);
	if (!error)
		return c;
	causal_counters_close(c);
	errno = error;
	return NULL;
}

void causal_counters_close(struct causal_counters *c)
{
	int saved = errno;

	if (c)
		shut(c);
	free(c);
	errno = saved;
}

/* ---- reading */

#if defined __x86_64__ && !defined CA_RDPMC /* test_library_counters simulates it */
#define CA_RDPMC read_pmc
static inline uint64_t read_pmc(uint32_t counter)
{
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(counter));
	return (uint64_t)high << 32 | low;
}
#endif

/* As the kernel's header describes it. False: it does not count at this moment. */
static bool read_direct(const struct perf_event_mmap_page *page, uint64_t *value)
{
#ifdef CA_RDPMC
	uint32_t sequence, index;
	uint64_t count;

	do {
		sequence = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		index = page->index;
		count = (uint64_t)page->offset;
		if (!index)
			return false;
		/* it has so many bits, the topmost is its sign */
		count += (uint64_t)((int64_t)(CA_RDPMC(index - 1) << (64 - page->pmc_width)) >>
				    (64 - page->pmc_width));
		__asm__ volatile("" ::: "memory");
	} while (__atomic_load_n(&page->lock, __ATOMIC_RELAXED) != sequence);
	*value = count;
	return true;
#else
	(void)page;
	(void)value;
	return false;
#endif
}

unsigned causal_counters_read(struct causal_counters *c, uint64_t value[CAUSAL_COUNTERS])
{
	uint64_t group[1 + CAUSAL_COUNTERS];
	unsigned i = 0;

	if (!c || !value)
		return 0;
	if (c->forks != forks) {
		shut(c);
		memset(c->last, 0, sizeof c->last);
		if (open_all(c)) {
			shut(c);
			c->n = 0;
		}
	}
	while (c->direct && i < c->n && read_direct(c->page[i], &value[i]))
		i++;
	if (c->direct && i == c->n)
		return c->n;
	if (!c->n || read(c->fd[0], group, sizeof group) < (ssize_t)((1 + c->n) * sizeof *group))
		return 0;
	memcpy(value, group + 1, c->n * sizeof *value);
	return c->n;
}

const char *causal_counters_name(const struct causal_counters *c, unsigned i)
{
	return c && i < c->n ? c->name[i] : NULL;
}

const char *causal_counters_way(const struct causal_counters *c)
{
	return c && c->direct ? "rdpmc" : "read";
}

/* ---- events */

/* The sets that this thread has opened here. One without counters could not be opened. */
struct here {
	const char *names;
	struct causal_counters *counters;
	bool counts;
	struct here *next;
};
static _Thread_local struct here *heres;
static pthread_key_t at_end;

static void close_heres(void *list)
{
	struct here *here = list;

	heres = NULL;
	while (here) {
		struct here *next = here->next;

		causal_counters_close(here->counters);
		free(here);
		here = next;
	}
}

static void make_key(void)
{
	pthread_key_create(&at_end, close_heres);
}

static struct here *get_here(const char *names)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct here *here = heres;

	while (here && here->names != names && strcmp(here->names, names) != 0)
		here = here->next;
	if (here || !(here = calloc(1, sizeof *here)))
		return here;
	pthread_once(&once, make_key);
	*here = (struct here){ names, causal_counters_open(names), false, heres };
	heres = here;
	pthread_setspecific(at_end, here);
	return here;
}

void causal_counters_here(const char *names)
{
	uint64_t value[CAUSAL_COUNTERS];
	struct here *here;
	unsigned n;

	if (!names || !ca_library_is_traced())
		return;
	here = get_here(names);
	n = here ? causal_counters_read(here->counters, value) : 0;
	for (unsigned i = 0; i < n; i++) {
		uint64_t *last = &here->counters->last[i];

		ca_library_point(here->counters->name[i], here->counts ? value[i] - *last : 0);
		*last = value[i];
	}
	if (here)
		here->counts = n > 0;
}
