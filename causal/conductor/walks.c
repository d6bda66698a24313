/* SPDX-License-Identifier: MIT */
/* Stacks walked by libunwind; see walks.h.
 *
 * Its address space is the ca_places of the session: module m's file addresses from m << 48 on, and the stacks below,
 * where module 0 would be. So what it remembers of an address holds for all processes. */
#include "causal/conductor/walks.h"
#include <stdlib.h>

#ifdef HAVE_LIBUNWIND
#include "core/map.h"
#include "core/session.h"
#include "core/vec.h"
#include <elf.h>
#include <fcntl.h>
#include <libunwind.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PC = 16, REGISTERS, FRAMES = 250, CACHE = 10 /* log 2 of addresses */ };

/* Exported for debuggers, in no header; perf uses it, too. */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t *, unw_proc_info_t *, int,
				       void *);

struct image {
	bool looked;
	const uint8_t *data; /* NULL: none */
	size_t size;
	const Elf64_Phdr *load; /* all headers */
	unsigned headers;
	uint64_t frame_header; /* file address of .eh_frame_hdr; 0: none */
};
struct word {
	uint32_t index;
	uint64_t value;
};
/* What has come of a thread's next stack. */
struct copy {
	uint64_t reg[REGISTERS], end;
	struct ca_vec word; /* struct word, by index */
};
struct ca_walks {
	const struct ca_session *session;
	unw_addr_space_t space;
	struct image image[CA_MAX_MODULES];
	struct ca_map known;  /* address: number in procs. libunwind leaves its part of them to us */
	struct ca_vec procs;  /* unw_proc_info_t */
	struct ca_vec copies; /* struct copy *, by index of the thread */
	struct ca_vec out;    /* struct ca_event */
	struct copy *at;      /* being walked */
	struct ca_walks_count count;
};

/* ---- what libunwind asks for --------------------------------------------------------------------*/
static const uint8_t *open_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *data = MAP_FAILED;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode)) {
		*size = (size_t)st.st_size;
		data = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	if (fd >= 0)
		close(fd);
	return data == MAP_FAILED ? NULL : data;
}

static const struct image *image_of(struct ca_walks *w, uint64_t address)
{
	uint32_t module = CA_PLACE_MODULE(address);
	struct image *image = &w->image[module < CA_MAX_MODULES ? module : 0];
	const Elf64_Ehdr *e;

	if (image->looked || !module || module >= CA_MAX_MODULES)
		return image->data ? image : NULL;
	image->looked = true;
	if (strcmp(w->session->module[module].path, CA_MODULE_VDSO) != 0) {
		image->data = open_file(w->session->module[module].path, &image->size);
	} else {
		e = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR); /* the section headers come last */
		image->size = e ? e->e_shoff + (size_t)e->e_shnum * e->e_shentsize : 0;
		image->data = (const uint8_t *)e;
	}
	e = (const Elf64_Ehdr *)(const void *)image->data;
	if (!e || image->size < sizeof *e || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 ||
	    e->e_phentsize != sizeof *image->load || e->e_phoff > image->size ||
	    e->e_phnum * sizeof *image->load > image->size - e->e_phoff) {
		image->data = NULL;
		return NULL;
	}
	image->load = (const Elf64_Phdr *)(const void *)(image->data + e->e_phoff);
	image->headers = e->e_phnum;
	for (unsigned i = 0; i < image->headers; i++)
		if (image->load[i].p_type == PT_GNU_EH_FRAME)
			image->frame_header = image->load[i].p_vaddr;
	return image;
}

/* What the file holds for an address; NULL: not so many bytes. */
static const void *in_file(const struct image *image, uint64_t address, size_t size)
{
	for (unsigned i = 0; i < image->headers; i++) {
		const Elf64_Phdr *p = &image->load[i];
		uint64_t at = address - p->p_vaddr;

		/* libunwind reads whole words, also over the segment's end */
		if (p->p_type == PT_LOAD && at < p->p_filesz && p->p_offset + at + size <= image->size)
			return image->data + p->p_offset + at;
	}
	return NULL;
}

static int find_procedure(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info, int need,
			  void *context)
{
	struct ca_walks *w = context;
	const uint32_t *known = ca_map_find(&w->known, ip);
	const struct image *image = image_of(w, ip);
	uint64_t base = ip & ~UINT64_C(0xffffffffffff);
	const uint8_t *header;
	unw_dyn_info_t table = { .format = UNW_INFO_FORMAT_REMOTE_TABLE,
				 .start_ip = base,
				 .end_ip = base | ~base };
	uint32_t fdes, *number;
	bool there;
	int error;

	if (known) {
		*info = ((unw_proc_info_t *)w->procs.at)[*known];
		return 0;
	}
	header = image && image->frame_header ? in_file(image, image->frame_header, 12) : NULL;
	/* version 1, the number of entries in 4 bytes, the table relative to the header */
	if (!header || header[0] != 1 || header[2] != 0x03 || header[3] != 0x3b)
		return -UNW_ENOINFO;
	memcpy(&fdes, header + 8, sizeof fdes);
	table.u.rti.segbase = base + image->frame_header;
	table.u.rti.table_data = table.u.rti.segbase + 12;
	table.u.rti.table_len = (unw_word_t)fdes * 8 / sizeof(unw_word_t);
	error = UNW_OBJ(dwarf_search_unwind_table)(space, ip, &table, info, need, context);
	/* what it calls a table, libunwind takes back after each walk, and uses for another */
	info->format = UNW_INFO_FORMAT_REMOTE_TABLE;
	if (!error && need && ca_vec_add(&w->procs, info, 1) && (number = ca_map_add(&w->known, ip, &there)))
		*number = (uint32_t)(w->procs.n - 1);
	return error;
}

static void put_info(unw_addr_space_t space, unw_proc_info_t *info, void *context)
{
	(void)space;
	(void)info;
	(void)context;
}

static int no_list(unw_addr_space_t space, unw_word_t *address, void *context)
{
	(void)space;
	(void)address;
	(void)context;
	return -UNW_ENOINFO;
}

static int in_stack(const struct copy *copy, uint64_t low, unw_word_t address, unw_word_t *value)
{
	const struct word *word = copy->word.at;
	size_t from = 0, to = copy->word.n;
	uint32_t index = (uint32_t)((address - low) / sizeof *value);

	if (address < low || address >= copy->end || (address - low) % sizeof *value)
		return -UNW_EINVAL;
	while (from < to) {
		size_t middle = (from + to) / 2;

		if (word[middle].index < index)
			from = middle + 1;
		else
			to = middle;
	}
	*value = from < copy->word.n && word[from].index == index ? word[from].value : 0;
	return 0;
}

static int access_memory(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write,
			 void *context)
{
	struct ca_walks *w = context;
	const struct image *image;
	const void *from;

	(void)space;
	if (write)
		return -UNW_EINVAL;
	if (!CA_PLACE_MODULE(address))
		return in_stack(w->at, (w->at->reg[7] & ~UINT64_C(7)) - CA_WORDS_BELOW, address, value);
	image = image_of(w, address);
	from = image ? in_file(image, CA_PLACE_OFFSET(address), sizeof *value) : NULL;
	if (!from)
		return -UNW_EINVAL;
	memcpy(value, from, sizeof *value);
	return 0;
}

static int access_register(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value, int write,
			   void *context)
{
	struct ca_walks *w = context;

	(void)space;
	if (write || reg < 0 || reg >= REGISTERS)
		return -UNW_EBADREG;
	*value = w->at->reg[reg]; /* its numbers are DWARF's */
	return 0;
}

static int access_vector(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t *value, int write,
			 void *context)
{
	(void)space;
	(void)reg;
	(void)value;
	(void)write;
	(void)context;
	return -UNW_EINVAL;
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *context)
{
	(void)space;
	(void)cursor;
	(void)context;
	return -UNW_EINVAL;
}

static int get_name(unw_addr_space_t space, unw_word_t address, char *name, size_t size, unw_word_t *offset,
		    void *context)
{
	(void)space;
	(void)address;
	(void)name;
	(void)size;
	(void)offset;
	(void)context;
	return -UNW_EUNSPEC;
}

/* ---- walking ------------------------------------------------------------------------------------*/
enum ca_status ca_walks_new(struct ca_walks **walks, const struct ca_session *session, struct ca_err *err)
{
	static unw_accessors_t ask = {
		.find_proc_info = find_procedure,
		.put_unwind_info = put_info,
		.get_dyn_info_list_addr = no_list,
		.access_mem = access_memory,
		.access_reg = access_register,
		.access_fpreg = access_vector,
		.resume = resume,
		.get_proc_name = get_name,
	};
	struct ca_walks *w = calloc(1, sizeof *w);

	if (!w || !(w->space = unw_create_addr_space(&ask, 0))) {
		free(w);
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	}
	unw_set_caching_policy(w->space, UNW_CACHE_GLOBAL);
	unw_set_cache_size(w->space, 1 << CACHE, 0);
	w->session = session;
	w->procs.size = sizeof(unw_proc_info_t);
	w->copies.size = sizeof(struct copy *);
	w->out.size = sizeof(struct ca_event);
	*walks = w;
	return CA_OK;
}

void ca_walks_free(struct ca_walks *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->copies.n; i++) {
		struct copy *copy = ((struct copy **)w->copies.at)[i];

		if (copy)
			ca_vec_free(&copy->word);
		free(copy);
	}
	for (unsigned i = 0; i < CA_MAX_MODULES; i++)
		if (w->image[i].data && strcmp(w->session->module[i].path, CA_MODULE_VDSO) != 0)
			munmap((void *)(uintptr_t)w->image[i].data, w->image[i].size);
	unw_destroy_addr_space(w->space);
	ca_map_free(&w->known);
	ca_vec_free(&w->procs);
	ca_vec_free(&w->copies);
	ca_vec_free(&w->out);
	free(w);
}

/* NULL: no memory. */
static struct copy *copy_of(struct ca_walks *w, uint32_t thread)
{
	struct copy **copy = ca_vec_reach(&w->copies, thread);

	if (!copy)
		return NULL;
	if (!*copy && (*copy = calloc(1, sizeof **copy)))
		(*copy)->word.size = sizeof(struct word);
	return *copy;
}

static void take_part(struct copy *copy, const struct ca_event *e)
{
	if (e->key == CA_KEY_REGISTER && e->flags < REGISTERS) {
		if (e->flags == 0) { /* another one begins */
			copy->word.n = 0;
			copy->end = 0;
		}
		copy->reg[e->flags] = e->value;
	} else if (e->key == CA_KEY_WORD && e->flags == CA_WORDS_END) {
		copy->end = e->value;
	} else if (e->key == CA_KEY_WORD) {
		ca_vec_add(&copy->word, &(struct word){ e->flags, e->value }, 1);
	}
}

/* Of a call it is the address before the one to which it returns. False: it did not come to the end. */
static bool walk(struct ca_walks *w, ca_place place[FRAMES], unsigned *n)
{
	bool is_call = false;
	unw_cursor_t cursor;
	int more = 1;

	*n = 0;
	if (unw_init_remote(&cursor, w->space, w))
		return false;
	while (more > 0 && *n < FRAMES) {
		unw_word_t ip;

		if (unw_get_reg(&cursor, UNW_REG_IP, &ip) || !CA_PLACE_MODULE(ip))
			return *n && !ip;
		place[(*n)++] = ip - is_call;
		more = unw_step(&cursor);
		is_call = unw_is_signal_frame(&cursor) <= 0; /* then a signal came there */
	}
	return more == 0;
}

static void put(struct ca_walks *w, const struct ca_event *event)
{
	ca_vec_add(&w->out, event, 1);
}

/* As by our own rows? They leave out the frames between of a deep stack. */
static bool is_alike(const ca_place *place, unsigned frames, const struct ca_event *event, size_t came)
{
	unsigned left_out = came == CA_SAMPLE_FRAMES && frames > came ? frames - CA_SAMPLE_FRAMES : 0;

	if (frames != came + left_out)
		return false;
	for (size_t i = 0; i < came; i++)
		if (place[came - i > CA_SAMPLE_OUTERMOST ? i : i + left_out] != event[i].value)
			return false;
	return true;
}

/* The sample at event[0]; returns how many events its frames are. */
static size_t put_sample(struct ca_walks *w, struct copy *copy, const struct ca_event *event, size_t n)
{
	struct ca_event frame = event[0];
	ca_place place[FRAMES];
	unsigned frames = 0;
	size_t came = 1;
	bool complete = false;

	while (came < n && event[came].key == CA_KEY_FRAME)
		came++;
	if (copy && copy->end) {
		w->at = copy;
		complete = walk(w, place, &frames);
		copy->end = 0;
		/* there may be many threads */
		ca_vec_free(&copy->word);
	}
	w->count.same += is_alike(place, frames, event, came);
	if (!frames)
		place[frames++] = event[0].value;
	for (unsigned i = 0; i < frames; i++) {
		frame.key = i ? CA_KEY_FRAME : CA_KEY_SAMPLE;
		frame.flags = i ? 0 : event[0].flags;
		frame.value = place[i];
		put(w, &frame);
	}
	w->count.stacks++;
	w->count.incomplete += !complete;
	return came;
}

const struct ca_event *ca_walks_take(struct ca_walks *w, const struct ca_source *from,
				     const struct ca_event *event, size_t *n)
{
	struct copy *copy = copy_of(w, from->thread_index);

	w->out.n = 0;
	for (size_t i = 0; i < *n;) {
		if (event[i].key == CA_KEY_SAMPLE) {
			i += put_sample(w, copy, event + i, *n - i);
			continue;
		}
		if (event[i].key != CA_KEY_REGISTER && event[i].key != CA_KEY_WORD)
			put(w, &event[i]);
		else if (copy)
			take_part(copy, &event[i]);
		i++;
	}
	*n = w->out.n;
	return w->out.at;
}

struct ca_walks_count ca_walks_count(const struct ca_walks *w)
{
	return w->count;
}
#else
enum ca_status ca_walks_new(struct ca_walks **walks, const struct ca_session *session, struct ca_err *err)
{
	(void)walks;
	(void)session;
	return ca_err_set(err, CA_ERR_USAGE,
			  "--unwinder libunwind: causal was built without libunwind (configure says "
			  "why); use --unwinder rows");
}

void ca_walks_free(struct ca_walks *walks)
{
	(void)walks;
}

const struct ca_event *ca_walks_take(struct ca_walks *walks, const struct ca_source *from,
				     const struct ca_event *event, size_t *n)
{
	(void)walks;
	(void)from;
	(void)n;
	return event;
}

struct ca_walks_count ca_walks_count(const struct ca_walks *walks)
{
	(void)walks;
	return (struct ca_walks_count){ 0 };
}
#endif
