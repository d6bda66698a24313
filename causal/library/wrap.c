/* SPDX-License-Identifier: MIT */
/* Wrappers; see include/causal_wrap.h. A file calls what it imports through a slot of its own, which the loader
 * fills in: the slots of all files get the address of the wrapper. What nobody imports is changed itself
 * (wrap_code.h). */
#include "causal/library/library.h"
#include "causal/library/wrap_code.h"
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of the thread: wrappers that are under way, or switched off. */
static _Thread_local unsigned suspended;

void causal_wrap_suspend(void)
{
	suspended++;
}

void causal_wrap_resume(void)
{
	suspended -= suspended > 0;
}

int causal_wrap_enter(void)
{
	if (suspended)
		return 0;
	suspended++;
	return 1;
}

/* ---- slots */

struct search {
	const char *symbol;
	uintptr_t target;
	unsigned found;
};

#ifdef __x86_64__

struct tables {
	const ElfW(Sym) * symbols;
	const char *strings;
	const ElfW(Rela) * list[2]; /* of calls, of other references */
	size_t size[2];
};

static void read_dynamic(const ElfW(Dyn) * at, struct tables *tables)
{
	for (; at->d_tag != DT_NULL; at++)
		switch (at->d_tag) {
		case DT_SYMTAB:
			tables->symbols = (const void *)at->d_un.d_ptr;
			break;
		case DT_STRTAB:
			tables->strings = (const void *)at->d_un.d_ptr;
			break;
		case DT_JMPREL:
			tables->list[0] = (const void *)at->d_un.d_ptr;
			break;
		case DT_PLTRELSZ:
			tables->size[0] = at->d_un.d_val;
			break;
		case DT_RELA:
			tables->list[1] = (const void *)at->d_un.d_ptr;
			break;
		case DT_RELASZ:
			tables->size[1] = at->d_un.d_val;
			break;
		}
}

/* The loader may have made it read-only since. */
static void set_slot(const struct dl_phdr_info *info, uintptr_t *slot, uintptr_t target)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)slot & ~(page - 1);
	bool locked = false;

	if (__atomic_load_n(slot, __ATOMIC_RELAXED) == target)
		return;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_GNU_RELRO)
			locked |= (uintptr_t)slot - (info->dlpi_addr + header->p_vaddr) < header->p_memsz;
	}
	if (locked && mprotect((void *)begin, page, PROT_READ | PROT_WRITE))
		return;
	__atomic_store_n(slot, target, __ATOMIC_RELEASE);
	if (locked)
		mprotect((void *)begin, page, PROT_READ);
}

/* The runtime calls nothing of the program's, and what is ours must not call itself. */
static bool is_spared(const struct dl_phdr_info *info)
{
	uintptr_t here = (uintptr_t)&causal_wrap_suspend;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    here - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) < info->dlpi_phdr[i].p_memsz)
			return true;
	return info->dlpi_name && strstr(info->dlpi_name, "/libcausal-rt.so");
}

static int set_slots(struct dl_phdr_info *info, size_t size, void *to)
{
	struct tables tables = { .symbols = NULL };
	struct search *search = to;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			read_dynamic((const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr), &tables);
	/* the kernel's own has addresses that nobody has relocated */
	if (!tables.symbols || !tables.strings || (uintptr_t)tables.symbols < info->dlpi_addr ||
	    is_spared(info))
		return 0;
	for (unsigned t = 0; t < 2; t++)
		for (size_t i = 0; tables.list[t] && i < tables.size[t] / sizeof(ElfW(Rela)); i++) {
			const ElfW(Rela) *at = &tables.list[t][i];
			unsigned type = ELF64_R_TYPE(at->r_info);

			if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) ||
			    strcmp(tables.strings + tables.symbols[ELF64_R_SYM(at->r_info)].st_name,
				   search->symbol) != 0)
				continue;
			search->found++;
			set_slot(info, (uintptr_t *)(info->dlpi_addr + at->r_offset), search->target);
		}
	return 0;
}

#endif

/* In how many places it is called. */
static unsigned point_to(const char *symbol, causal_wrap_code *target)
{
	struct search search = { symbol, (uintptr_t)target, 0 };

#ifdef __x86_64__
	dl_iterate_phdr(set_slots, &search);
#endif
	return search.found;
}

/* ---- wrappers */

/* Of each function that is wrapped, the one that was started last. */
struct wrapped {
	struct wrapped *next;
	struct causal_wrapper *top;
	causal_wrap_code *real;
	struct ca_wrap_code *code; /* NULL: calls come through imports */
	char symbol[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static struct wrapped *all;

/* As in component.c. */
static void take_lock(void)
{
	pthread_mutex_lock(&lock);
}

static void give_lock(void)
{
	pthread_mutex_unlock(&lock);
}

static __attribute__((constructor)) void watch_forks(void)
{
	pthread_atfork(take_lock, give_lock, give_lock);
}

/* NULL: no memory. */
static struct wrapped *get(const char *symbol)
{
	struct wrapped *wrapped = all;

	while (wrapped && strcmp(wrapped->symbol, symbol) != 0)
		wrapped = wrapped->next;
	if (wrapped)
		return wrapped;
	wrapped = malloc(sizeof *wrapped + strlen(symbol) + 1);
	if (!wrapped)
		return NULL;
	*wrapped = (struct wrapped){ all, NULL, (causal_wrap_code *)(uintptr_t)dlsym(RTLD_DEFAULT, symbol),
				     NULL };
	strcpy(wrapped->symbol, symbol);
	all = wrapped;
	return wrapped;
}

/* Each calls the one that was started before it. */
static void connect(struct wrapped *wrapped)
{
	for (struct causal_wrapper *at = wrapped->top; at; at = at->below)
		if (at->original)
			__atomic_store_n(at->original, at->below ? at->below->replacement : wrapped->real,
					 __ATOMIC_RELEASE);
}

/* In how many places calls are sent on. */
static unsigned place(struct wrapped *wrapped)
{
	if (!wrapped->code)
		return wrapped->real ? point_to(wrapped->symbol,
						wrapped->top ? wrapped->top->replacement : wrapped->real)
				     : 0;
	atomic_store_explicit(&wrapped->code->slot, wrapped->top ? wrapped->top->replacement : NULL,
			      memory_order_release);
	return 1;
}

static struct {
	ca_wrap_code_place_function *place;
	ca_wrap_code_restore_function *restore;
} in_code;

/* libcausal-code.so lies beside this library. */
static void load(struct ca_err *err)
{
	const char *slash;
	char path[4096];
	Dl_info here;
	void *file;

	if (in_code.place)
		return;
	/* of a function a program that is not position-independent may have an address of its own */
	slash = dladdr(&lock, &here) ? strrchr(here.dli_fname, '/') : NULL;
	snprintf(path, sizeof path, "%.*slibcausal-code.so", slash ? (int)(slash + 1 - here.dli_fname) : 0,
		 here.dli_fname);
	file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!file) {
		snprintf(err->text, sizeof err->text, "%s", dlerror());
		return;
	}
	in_code.restore = (ca_wrap_code_restore_function *)(uintptr_t)dlsym(file, "ca_wrap_code_restore");
	in_code.place = (ca_wrap_code_place_function *)(uintptr_t)dlsym(file, "ca_wrap_code_place");
}

/* Nobody imports it. */
static int place_in_code(struct wrapped *wrapped)
{
	struct ca_wrap_code *code = wrapped->code ? wrapped->code : calloc(1, sizeof *code);
	struct ca_err err;
	int error = ENOTSUP;

	if (!code)
		return ENOMEM;
	load(&err);
	if (in_code.place)
		error = in_code.place(code, wrapped->symbol, &err);
	if (error) {
		if (error != ENOENT)
			ca_library_say("%s cannot be wrapped: %s", wrapped->symbol, err.text);
		if (!wrapped->code)
			free(code);
		return error;
	}
	wrapped->code = code;
	wrapped->real = code->copy;
	return 0;
}

static int start(struct causal_wrapper *wrapper)
{
	struct wrapped *wrapped = get(wrapper->symbol);
	int error = 0;

	if (!wrapped)
		return ENOMEM;
	if (wrapped->code ? !wrapped->top : !place(wrapped))
		error = place_in_code(wrapped);
	if (error)
		return error;
	if (!wrapper->starts++) {
		wrapper->below = wrapped->top;
		wrapped->top = wrapper;
		connect(wrapped);
	}
	for (struct wrapped *other = all; other; other = other->next)
		if (other == wrapped || other->top)
			place(other);
	return 0;
}

int causal_wrap_start(struct causal_wrapper *wrapper)
{
	int error;

	if (!wrapper || !wrapper->symbol || !wrapper->replacement)
		return EINVAL;
#ifndef __x86_64__
	return ENOTSUP;
#endif
	pthread_mutex_lock(&lock);
	error = start(wrapper);
	pthread_mutex_unlock(&lock);
	return error;
}

int causal_wrap_stop(struct causal_wrapper *wrapper)
{
	struct wrapped *wrapped;
	struct causal_wrapper **at;

	if (!wrapper)
		return EINVAL;
	pthread_mutex_lock(&lock);
	wrapped = wrapper->starts ? get(wrapper->symbol) : NULL;
	if (wrapped && !--wrapper->starts) {
		for (at = &wrapped->top; *at && *at != wrapper;)
			at = &(*at)->below;
		if (*at)
			*at = wrapper->below;
		connect(wrapped);
		place(wrapped);
		if (wrapped->code && !wrapped->top)
			in_code.restore(wrapped->code);
	}
	pthread_mutex_unlock(&lock);
	return wrapped ? 0 : EINVAL;
}
