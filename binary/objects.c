/* SPDX-License-Identifier: MIT */
/* The binaries of a run; see objects.h. */
#include "binary/objects.h"
#include "binary/plan/texts.h"
#include "core/session.h"
#include <elf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE = 500000 /* ns */, PAUSES = 400 };

struct object {
	_Atomic(struct ca_index *) index; /* released by the indexing thread */
	_Atomic(struct ca_index *) full;  /* ... if the module was taken later. The runtimes keep the first
					   * one, mapped or yet to be mapped: unwinding needs no more */
	/* The indexing thread's from before the index is there until the sites of named points are
	 * planned, from then on the conductor's. */
	pthread_mutex_t text_lock;
	struct ca_text *text; /* one of `texts`; NULL: not needed yet, or it cannot be read */
	_Atomic int in_scope; /* -1 no, 0 not known, 1 yes */
	_Atomic int taken;    /* enum ca_objects_taken */
};
struct ca_objects {
	struct ca_session *session;
	const struct ca_scope *scope;
	struct ca_texts *texts;
	struct ca_objects_planner planner;
	ca_index_warning *warning;
	void *context;
	pthread_t thread;
	_Atomic bool stop;
	pthread_mutex_t rest_lock; /* held but while it rests */
	pthread_cond_t rest;
	struct object object[CA_MAX_MODULES];
};

/* The same kernel gives all processes the same one: ours, as a file for as long as it takes. */
static enum ca_status index_vdso(struct ca_index **index, struct ca_objects *o, struct ca_err *err)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
	char path[] = "/tmp/causal-vdso-XXXXXX";
	enum ca_status status = CA_ERR_IO;
	size_t size;
	int fd;

	if (!e)
		return ca_err_set(err, CA_ERR_UNSUPPORTED, "there is no vdso");
	/* the section headers come last, and are mapped */
	size = e->e_shoff + (size_t)e->e_shnum * e->e_shentsize;
	fd = mkstemp(path);
	if (fd < 0)
		return ca_err_set(err, CA_ERR_IO, "%s cannot be made", path);
	if (write(fd, e, size) == (ssize_t)size)
		status = ca_index_open(index, path, CA_INDEX_UNWIND, o->warning, o->context, err);
	close(fd);
	unlink(path);
	return status;
}

/* The text lock is held. */
static struct ca_text *text_of(struct ca_objects *o, uint32_t module)
{
	struct object *object = &o->object[module];

	if (!object->text)
		object->text =
			ca_texts_open(o->texts, o->session->module[module].path, ca_objects_index(o, module));
	return object->text;
}

static void index_module(struct ca_objects *o, uint32_t i)
{
	struct ca_module *m = &o->session->module[i];
	bool vdso = !strcmp(m->path, CA_MODULE_VDSO);
	bool scope = !vdso && ca_scope_has_binary(o->scope, m->path, m->main);
	bool full = scope || (!vdso && o->planner.wants(o->planner.context, m->path, m->main));
	struct ca_index *index;
	struct ca_err err;
	enum ca_status status;

	atomic_store(&o->object[i].in_scope, scope ? 1 : -1);
	if (vdso)
		status = index_vdso(&index, o, &err);
	else
		status = ca_index_open(&index, m->path, full ? CA_INDEX_FULL : CA_INDEX_UNWIND, o->warning,
				       o->context, &err);
	if (status != CA_OK) {
		if (scope && o->warning)
			o->warning(o->context, err.text);
		atomic_store_explicit(&m->state, CA_MODULE_FAILED, memory_order_release);
		return;
	}
	strncpy(m->index_path, ca_index_path(index), sizeof m->index_path - 1);
	pthread_mutex_lock(&o->object[i].text_lock);
	atomic_store_explicit(&o->object[i].index, index, memory_order_release);
	if (o->planner.is_named(o->planner.context, index, i))
		o->planner.index(o->planner.context, index, text_of(o, i), i);
	pthread_mutex_unlock(&o->object[i].text_lock);
	/* release: the runtime acquires state before it maps index_path */
	atomic_store_explicit(&m->state, CA_MODULE_INDEXED, memory_order_release);
}

/* How urgent it is. Executables first: their processes wait for them before main, and then for what a whole run is
 * about. Then what most stacks have ended in for want of it: a program with two hundred libraries runs in a few. */
static uint64_t wish_for(const struct ca_session *s, const struct ca_module *m)
{
	if (m->main)
		return UINT64_C(2) + UINT32_MAX;
	if (atomic_load(&s->awaits) && !strcmp(m->path, s->awaited))
		return UINT64_C(1) + UINT32_MAX;
	return UINT64_C(1) + atomic_load_explicit(&m->missed, memory_order_relaxed);
}

/* The module to index next; 0: none. */
static uint32_t next_module(const struct ca_objects *o)
{
	uint32_t used = atomic_load_explicit(&o->session->modules_used, memory_order_acquire);
	uint64_t most = 0;
	uint32_t next = 0;

	for (uint32_t i = 1; i < used && i < CA_MAX_MODULES; i++) {
		const struct ca_module *m = &o->session->module[i];
		uint64_t wish = wish_for(o->session, m);

		if (atomic_load_explicit(&m->state, memory_order_acquire) != CA_MODULE_REGISTERED ||
		    wish <= most)
			continue;
		most = wish;
		next = i;
	}
	return next;
}

static bool index_next(struct ca_objects *o)
{
	uint32_t next = next_module(o);

	if (next)
		index_module(o, next);
	return next;
}

static void take_module(struct ca_objects *o, uint32_t i)
{
	struct object *object = &o->object[i];
	struct ca_index *index;
	struct ca_err err;

	if (atomic_load(&object->in_scope) < 1 &&
	    (!atomic_load(&object->index) || !strcmp(o->session->module[i].path, CA_MODULE_VDSO) ||
	     ca_index_open(&index, o->session->module[i].path, CA_INDEX_FULL, o->warning, o->context, &err) !=
		     CA_OK)) {
		atomic_store(&object->taken, CA_OBJECTS_FAILED);
		return;
	}
	if (atomic_load(&object->in_scope) < 1) {
		/* release: pairs with the acquire in ca_objects_index */
		atomic_store_explicit(&object->full, index, memory_order_release);
		atomic_store(&object->in_scope, 1);
	}
	atomic_store(&object->taken, CA_OBJECTS_TAKEN);
}

/* The one to take next; 0: none. */
static uint32_t next_to_take(const struct ca_objects *o)
{
	uint32_t used = atomic_load_explicit(&o->session->modules_used, memory_order_acquire);

	for (uint32_t i = 1; i < used && i < CA_MAX_MODULES; i++)
		if (atomic_load(&o->object[i].taken) == CA_OBJECTS_PENDING &&
		    atomic_load(&o->object[i].in_scope))
			return i;
	return 0;
}

static bool take_next(struct ca_objects *o)
{
	uint32_t next = next_to_take(o);

	if (next)
		take_module(o, next);
	return next;
}

static void *run(void *p)
{
	struct ca_objects *o = p;
	struct timespec pause = { 0, PAUSE };
	unsigned idle = 0;

	pthread_mutex_lock(&o->rest_lock);
	while (!atomic_load(&o->stop)) {
		if (index_next(o) || take_next(o)) {
			idle = 0;
			continue;
		}
		/* Quick at the start of a program. Later each look would wake a CPU, or take one from it. */
		if (++idle < PAUSES)
			nanosleep(&pause, NULL);
		else
			pthread_cond_wait(&o->rest, &o->rest_lock);
	}
	pthread_mutex_unlock(&o->rest_lock);
	return NULL;
}

void ca_objects_look(struct ca_objects *o)
{
	/* who does not rest will see it */
	if (!o || (!next_module(o) && !next_to_take(o)) || pthread_mutex_trylock(&o->rest_lock))
		return;
	pthread_cond_signal(&o->rest);
	pthread_mutex_unlock(&o->rest_lock);
}

enum ca_status ca_objects_new(struct ca_objects **objects, struct ca_session *session,
			      const struct ca_scope *scope, struct ca_texts *texts,
			      const struct ca_objects_planner *planner, ca_index_warning *warning,
			      void *context, struct ca_err *err)
{
	struct ca_objects *o = calloc(1, sizeof *o);

	if (!o)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	o->session = session;
	o->scope = scope;
	o->texts = texts;
	o->planner = *planner;
	o->warning = warning;
	o->context = context;
	for (uint32_t i = 0; i < CA_MAX_MODULES; i++)
		pthread_mutex_init(&o->object[i].text_lock, NULL);
	pthread_mutex_init(&o->rest_lock, NULL);
	pthread_cond_init(&o->rest, NULL);
	if (pthread_create(&o->thread, NULL, run, o)) {
		free(o);
		return ca_err_set(err, CA_ERR_NOMEM, "cannot start the indexing thread");
	}
	*objects = o;
	return CA_OK;
}

void ca_objects_free(struct ca_objects *o)
{
	if (!o)
		return;
	atomic_store(&o->stop, true);
	pthread_mutex_lock(&o->rest_lock);
	pthread_cond_signal(&o->rest);
	pthread_mutex_unlock(&o->rest_lock);
	pthread_join(o->thread, NULL);
	pthread_cond_destroy(&o->rest);
	pthread_mutex_destroy(&o->rest_lock);
	for (uint32_t i = 0; i < CA_MAX_MODULES; i++) {
		ca_index_close(atomic_load(&o->object[i].index));
		ca_index_close(atomic_load(&o->object[i].full));
		pthread_mutex_destroy(&o->object[i].text_lock);
	}
	free(o);
}

const struct ca_index *ca_objects_index(struct ca_objects *o, uint32_t module)
{
	const struct ca_index *full;

	if (module >= CA_MAX_MODULES)
		return NULL;
	full = atomic_load_explicit(&o->object[module].full, memory_order_acquire);
	return full ? full : atomic_load_explicit(&o->object[module].index, memory_order_acquire);
}

struct ca_text *ca_objects_text(struct ca_objects *o, uint32_t module)
{
	struct ca_text *text;

	if (!ca_objects_index(o, module))
		return NULL;
	pthread_mutex_lock(&o->object[module].text_lock);
	text = text_of(o, module);
	pthread_mutex_unlock(&o->object[module].text_lock);
	return text;
}

bool ca_objects_in_scope(struct ca_objects *o, uint32_t module)
{
	return module < CA_MAX_MODULES && atomic_load(&o->object[module].in_scope) > 0;
}

void ca_objects_take(struct ca_objects *o, uint32_t module)
{
	int not_asked = CA_OBJECTS_NOT_ASKED;

	atomic_compare_exchange_strong(&o->object[module].taken, &not_asked, CA_OBJECTS_PENDING);
}

enum ca_objects_taken ca_objects_taken(struct ca_objects *o, uint32_t module)
{
	return (enum ca_objects_taken)atomic_load(&o->object[module].taken);
}
