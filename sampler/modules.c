/* SPDX-License-Identifier: MIT */
/* The modules of this process; see modules.h. Runtime; all of it is safe in handlers. */
#include "sampler/modules.h"
#include "core/path.h"
#include "core/sys.h"
#include "sampler/host.h"
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

struct ca_sampler_host ca_sampler_host;

enum { MAX_LOADED = 512, TABLES = 4, ROWS = 4 * MAX_LOADED, MAX_RANGES = 256 };

struct table {
	_Atomic unsigned n;
	_Atomic(struct ca_loaded *) loaded[MAX_LOADED]; /* sorted by low */
	/* code in no file: what compilers have made in this process; sorted as well */
	_Atomic unsigned ranges;
	struct {
		_Atomic uintptr_t low, high;
	} range[MAX_RANGES];
};
/* The newest table is current; an old one is written again TABLES scans later. A handler that was
 * interrupted for as long may miss a module in it, but each row that it holds stays what it is: for what
 * is mapped where it has been before the row is found again, and else a new one is taken. */
static struct table tables[TABLES];
static _Atomic(struct table *) current;
static _Atomic uint64_t scans; /* that have changed it */
static unsigned next_table;
static struct ca_loaded rows[ROWS]; /* with next_row guarded by `scanning`, but for what is in a table */
static unsigned next_row;
static atomic_flag scanning = ATOMIC_FLAG_INIT;
static char executable[CA_PATH]; /* guarded by `scanning` */
/* Mapped once and kept, however often a library is closed and opened again. */
static _Atomic(const struct ca_index *) by_module[CA_MAX_MODULES];

/* ---- reading the maps: thread-self, since self is empty once the main thread has ended --*/
struct mapping {
	uintptr_t low, high, offset;
	bool exec, read, write;
	char path[CA_PATH];
};

struct reader {
	int fd;
	unsigned n, at;
	char data[2048];
};

static int next_char(struct reader *r)
{
	if (r->at == r->n) {
		long got = ca_sys_read(r->fd, r->data, sizeof r->data);

		if (got <= 0)
			return -1;
		r->n = (unsigned)got;
		r->at = 0;
	}
	return (unsigned char)r->data[r->at++];
}

static int read_hex(struct reader *r, uintptr_t *value)
{
	int c;

	for (*value = 0;; *value = *value << 4 | (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10)) {
		c = next_char(r);
		if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
			return c;
	}
}

/* One line "low-high perms offset dev inode path"; false at the end. */
static bool read_mapping(struct reader *r, struct mapping *m)
{
	char perm[4];
	unsigned fields = 0, n = 0;
	int c;

	if (read_hex(r, &m->low) != '-' || read_hex(r, &m->high) != ' ')
		return false;
	for (unsigned i = 0; i < 4; i++)
		perm[i] = (char)next_char(r);
	m->read = perm[0] == 'r';
	m->write = perm[1] == 'w';
	m->exec = perm[2] == 'x';
	next_char(r);
	read_hex(r, &m->offset);
	while ((c = next_char(r)) != '\n' && c >= 0) {
		if (n == 0 && c == ' ') {
			fields++;
			continue;
		}
		if (n == 0 && fields < 2)
			continue;
		if (n == 0 && c != '/' && c != '[') /* the inode */
			continue;
		if (n + 1 < sizeof m->path)
			m->path[n++] = (char)c;
	}
	m->path[n] = 0;
	ca_path_unescape(m->path);
	return true;
}

/* ---- ELF headers in memory ----------------------------------------------------*/
/* The memory may go away while we look at it, or belong to a file that has become shorter than
 * its mapping: never touched directly where a system call can copy it. */
static bool copy(void *to, uintptr_t from, size_t size)
{
	long got = ca_sys_peek(from, to, size);
	int fd;

	if (got == (long)size)
		return true;
	if (got != -ENOSYS && got != -EPERM)
		return false;
	fd = ca_sys_open("/proc/thread-self/mem", O_RDONLY);
	if (fd < 0)
		return false;
	got = ca_sys(SYS_pread64, fd, (long)(intptr_t)to, (long)size, (long)from, 0, 0);
	ca_sys_close(fd);
	return got == (long)size;
}

enum { NOTES = 1024, HEADERS = 32 };

static void read_notes(struct ca_image *image, uintptr_t from, size_t size)
{
	static _Alignas(8) char notes[NOTES]; /* guarded by `scanning` */
	size_t at = 0;

	if (size > NOTES)
		size = NOTES;
	if (!copy(notes, from, size))
		return;
	while (at + sizeof(Elf64_Nhdr) <= size) {
		const Elf64_Nhdr *note = (const Elf64_Nhdr *)(const void *)(notes + at);
		size_t name = at + sizeof *note;
		size_t desc = name + (((size_t)note->n_namesz + 3) & ~(size_t)3);

		if (desc > size || note->n_descsz > size - desc)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp(notes + name, "GNU", 4) && note->n_descsz <= sizeof image->build_id) {
			image->build_id_length = note->n_descsz;
			image->build_id_at = from + desc;
			memcpy(image->build_id, notes + desc, note->n_descsz);
		}
		at = desc + (((size_t)note->n_descsz + 3) & ~(size_t)3);
	}
}

/* base: where file offset 0 is mapped, readable for `size` bytes. */
static bool read_image(struct ca_image *image, uintptr_t base, uintptr_t size)
{
	static Elf64_Phdr ph[HEADERS]; /* guarded by `scanning` */
	unsigned n;
	Elf64_Ehdr e;
	bool found = false;

	memset(image, 0, sizeof *image);
	if (size < sizeof e || !copy(&e, base, sizeof e) || memcmp(e.e_ident, ELFMAG, SELFMAG) ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phentsize != sizeof *ph)
		return false;
	n = e.e_phnum < HEADERS ? e.e_phnum : HEADERS;
	if (e.e_phoff > size || n * sizeof *ph > size - e.e_phoff ||
	    !copy(ph, base + e.e_phoff, n * sizeof *ph))
		return false;
	for (unsigned i = 0; i < n && !found; i++)
		if (ph[i].p_type == PT_LOAD) {
			image->bias = base - (ph[i].p_vaddr - ph[i].p_offset);
			found = true;
		}
	for (unsigned i = 0; found && i < n; i++)
		if (ph[i].p_type == PT_NOTE && ph[i].p_offset < size &&
		    ph[i].p_filesz <= size - ph[i].p_offset)
			read_notes(image, base + ph[i].p_offset, ph[i].p_filesz);
	return found;
}

/* ---- the table of what is loaded ----------------------------------------------*/
static struct ca_loaded *loaded_at(const struct table *table, unsigned i)
{
	return table && i < atomic_load_explicit(&table->n, memory_order_relaxed)
		       ? atomic_load_explicit(&table->loaded[i], memory_order_relaxed)
		       : NULL;
}

static bool is_there(const struct ca_loaded *l, const struct mapping *m, uintptr_t bias)
{
	return l->low == m->low && l->high == m->high && l->bias == bias;
}

/* What was mapped in the same place when the maps were last read; NULL: nothing. */
static struct ca_loaded *loaded_before(const struct mapping *m)
{
	const struct table *old = atomic_load_explicit(&current, memory_order_acquire);
	struct ca_loaded *l;

	for (unsigned i = 0; (l = loaded_at(old, i)); i++)
		if (l->low == m->low && l->high == m->high)
			return l;
	return NULL;
}

/* The same file is still there if it has the same build-id in the same place: most libraries stay, and their headers
 * need not be read again for each that comes. */
static bool has_stayed(struct ca_image *image, const struct mapping *m, uintptr_t head)
{
	const struct ca_loaded *l = loaded_before(m);

	memset(image, 0, sizeof *image);
	if (!l || l->head != head || !l->build_id_at ||
	    !copy(image->build_id, l->build_id_at, l->build_id_length) ||
	    memcmp(image->build_id, l->build_id, l->build_id_length) != 0)
		return false;
	image->build_id_length = l->build_id_length;
	image->build_id_at = l->build_id_at;
	image->bias = l->bias;
	return true;
}

static bool is_in(const struct table *table, const struct ca_loaded *row)
{
	const struct ca_loaded *l;

	for (unsigned i = 0; (l = loaded_at(table, i)); i++)
		if (l == row)
			return true;
	return false;
}

static struct ca_loaded *row_for(const struct table *table, const struct mapping *m, uintptr_t bias,
				 uint32_t module)
{
	const struct table *old = atomic_load_explicit(&current, memory_order_relaxed);
	struct ca_loaded *l;

	for (unsigned i = 0; i < ROWS && i < next_row; i++)
		if (rows[i].module == module && is_there(&rows[i], m, bias))
			return &rows[i];
	do {
		l = &rows[next_row++ % ROWS];
	} while (is_in(old, l) || is_in(table, l));
	l->low = m->low;
	l->high = m->high;
	l->bias = bias;
	l->module = module;
	atomic_store_explicit(&l->index, NULL, memory_order_relaxed);
	return l;
}

/* Returns whether it is new. */
static bool add_loaded(struct table *table, const struct mapping *m, uintptr_t head,
		       const struct ca_image *image)
{
	struct ca_loaded *l = loaded_before(m);
	unsigned n = atomic_load_explicit(&table->n, memory_order_relaxed);
	uint32_t module;
	bool is_new;

	if (n == MAX_LOADED)
		return false;
	if (l && l->bias != image->bias)
		l = NULL;
	module = ca_sampler_host.enlist(image, l ? l->module : 0);
	if (!module)
		return false;
	is_new = !l || l->module != module;
	if (is_new) {
		l = row_for(table, m, image->bias, module);
		l->mark = l->events = false;
		l->head = head;
		l->build_id_length = image->build_id_length;
		memcpy(l->build_id, image->build_id, sizeof l->build_id);
		l->build_id_at = image->build_id_at;
	}
	atomic_store_explicit(&table->loaded[n], l, memory_order_relaxed);
	atomic_store_explicit(&table->n, n + 1, memory_order_relaxed);
	return is_new;
}

/* What is full holds the lowest ones. */
static void add_range(struct table *table, const struct mapping *m)
{
	unsigned n = atomic_load_explicit(&table->ranges, memory_order_relaxed);

	if (n && atomic_load_explicit(&table->range[n - 1].high, memory_order_relaxed) == m->low) {
		atomic_store_explicit(&table->range[n - 1].high, m->high, memory_order_relaxed);
	} else if (n < MAX_RANGES) {
		atomic_store_explicit(&table->range[n].low, m->low, memory_order_relaxed);
		atomic_store_explicit(&table->range[n].high, m->high, memory_order_relaxed);
		atomic_store_explicit(&table->ranges, n + 1, memory_order_relaxed);
	}
}

/* Returns whether anything is new. */
static bool fill(struct table *table, struct reader *reader)
{
	static struct mapping m, first; /* guarded by `scanning`; too large for a handler's stack */
	struct ca_image image;
	bool looked = false, usable = false, grew = false;

	atomic_store_explicit(&table->n, 0, memory_order_relaxed);
	atomic_store_explicit(&table->ranges, 0, memory_order_relaxed);
	first.path[0] = 0;
	while (read_mapping(reader, &m)) {
		/* the kernel's own code, such as clock_gettime: its callers must be found, too */
		if (m.path[0] != '/' && strcmp(m.path, CA_MODULE_VDSO) != 0) {
			if (m.exec && strcmp(m.path, "[vsyscall]") != 0)
				add_range(table, &m);
			continue;
		}
		if (m.offset == 0 && m.read) {
			first = m;
			looked = usable = false;
		}
		if (!m.exec)
			continue;
		if (strcmp(m.path, first.path) != 0) {
			add_range(table, &m);
			continue;
		}
		/* only now: what is not code may be a device, whose reading has effects */
		if (!looked)
			usable = has_stayed(&image, &m, first.low) ||
				 read_image(&image, first.low, first.high - first.low);
		looked = true;
		if (usable) {
			image.path = m.path;
			image.main = !strcmp(m.path, executable);
			grew |= add_loaded(table, &m, first.low, &image);
		} else {
			add_range(table, &m); /* as a memfd that a compiler writes to elsewhere */
		}
	}
	return grew;
}

CA_SIGSAFE bool ca_modules_scan(void)
{
	static struct reader reader; /* guarded by `scanning` */
	struct table *table, *old;
	unsigned n;
	long length;
	bool changed;

	if (atomic_flag_test_and_set_explicit(&scanning, memory_order_acquire))
		return false;
	reader.fd = ca_sys_open("/proc/thread-self/maps", O_RDONLY);
	if (reader.fd < 0) {
		atomic_flag_clear_explicit(&scanning, memory_order_release);
		return false;
	}
	reader.n = reader.at = 0;
	length = ca_sys(SYS_readlinkat, AT_FDCWD, (long)(intptr_t) "/proc/thread-self/exe",
			(long)(intptr_t)executable, sizeof executable - 1, 0, 0);
	executable[length > 0 ? length : 0] = 0;
	table = &tables[next_table++ % TABLES];
	old = atomic_load_explicit(&current, memory_order_acquire);
	changed = fill(table, &reader);
	ca_sys_close(reader.fd);
	n = atomic_load_explicit(&table->n, memory_order_relaxed);
	changed |= !old || n != atomic_load_explicit(&old->n, memory_order_relaxed);
	/* release: readers acquire the pointer and see the filled table. No mapping at all: it
	 * cannot be read any more */
	if (n) {
		atomic_store_explicit(&current, table, memory_order_release);
		atomic_fetch_add_explicit(&scans, 1, memory_order_release);
	}
	atomic_flag_clear_explicit(&scanning, memory_order_release);
	return changed;
}

CA_SIGSAFE bool ca_modules_mapping(uintptr_t address, uintptr_t *low, uintptr_t *high)
{
	static struct reader reader; /* both guarded by `scanning` */
	static struct mapping m;
	bool found = false;

	if (atomic_flag_test_and_set_explicit(&scanning, memory_order_acquire))
		return false;
	reader.fd = ca_sys_open("/proc/thread-self/maps", O_RDONLY);
	reader.n = reader.at = 0;
	while (reader.fd >= 0 && !found && read_mapping(&reader, &m))
		if (m.low <= address && address < m.high && m.read && m.write) {
			*low = m.low;
			*high = m.high;
			found = true;
		}
	if (reader.fd >= 0)
		ca_sys_close(reader.fd);
	atomic_flag_clear_explicit(&scanning, memory_order_release);
	return found;
}

CA_SIGSAFE void ca_modules_forked(void)
{
	atomic_flag_clear_explicit(&scanning, memory_order_release);
}

CA_SIGSAFE const struct ca_index *ca_modules_index(struct ca_loaded *loaded)
{
	const struct ca_index *index = atomic_load_explicit(&loaded->index, memory_order_acquire);
	struct ca_index *mapped;
	const char *path;
	int saved = errno;

	if (index)
		return index;
	path = ca_sampler_host.index_path(loaded->module);
	if (!path)
		return NULL;
	index = atomic_load_explicit(&by_module[loaded->module], memory_order_acquire);
	if (!index && ca_index_map(&mapped, path) == CA_OK) {
		/* release: pairs with the acquire above, in other threads */
		if (atomic_compare_exchange_strong(&by_module[loaded->module], &index, mapped))
			index = mapped;
		else
			ca_index_close(mapped);
	}
	atomic_store_explicit(&loaded->index, index, memory_order_release);
	errno = saved;
	return index;
}

CA_SIGSAFE struct ca_loaded *ca_modules_find(uintptr_t pc)
{
	struct table *table = atomic_load_explicit(&current, memory_order_acquire);
	unsigned low = 0, high = table ? atomic_load_explicit(&table->n, memory_order_relaxed) : 0;
	struct ca_loaded *l;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		l = atomic_load_explicit(&table->loaded[middle], memory_order_relaxed);
		if (l->high <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	l = loaded_at(table, low);
	if (!l || l->low > pc || l->high <= pc)
		return NULL;
	ca_modules_index(l);
	return l;
}

CA_SIGSAFE uint64_t ca_modules_scans(void)
{
	return atomic_load_explicit(&scans, memory_order_acquire);
}

CA_SIGSAFE bool ca_modules_has_range(uintptr_t pc)
{
	const struct table *table = atomic_load_explicit(&current, memory_order_acquire);
	unsigned low = 0, high = table ? atomic_load_explicit(&table->ranges, memory_order_relaxed) : 0;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (atomic_load_explicit(&table->range[middle].high, memory_order_relaxed) <= pc)
			low = middle + 1;
		else if (atomic_load_explicit(&table->range[middle].low, memory_order_relaxed) > pc)
			high = middle;
		else
			return true;
	}
	return false;
}

CA_SIGSAFE struct ca_loaded *ca_modules_at(unsigned i)
{
	return loaded_at(atomic_load_explicit(&current, memory_order_acquire), i);
}

CA_SIGSAFE bool ca_modules_bias(uint32_t module, uintptr_t *bias)
{
	const struct ca_loaded *l;

	for (unsigned i = 0; (l = ca_modules_at(i)); i++)
		if (l->module == module) {
			*bias = l->bias;
			return true;
		}
	return false;
}
