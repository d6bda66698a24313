/* The modules of this process; see modules.h. Runtime; all of it is safe in handlers. */
#include "sampler/modules.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LOADED = 512, TABLES = 4 };

struct table {
	unsigned n;
	struct ca_loaded loaded[MAX_LOADED]; /* sorted by low */
};
/* The newest table is current; an old one is written again only TABLES scans later, by
 * when no handler can still be reading it. */
static struct table tables[TABLES];
static _Atomic(struct table *) current;
static unsigned next_table;
static atomic_flag scanning = ATOMIC_FLAG_INIT;
static char executable[CA_PATH]; /* guarded by `scanning` */

/* ---- reading /proc/self/maps --------------------------------------------------*/
struct mapping {
	uintptr_t low, high, offset;
	bool exec, read;
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
		ssize_t got = read(r->fd, r->data, sizeof r->data);

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
	return true;
}

/* ---- ELF headers in memory ----------------------------------------------------*/
struct image {
	uintptr_t bias;
	unsigned build_id_length;
	uint8_t build_id[32];
};

static void read_notes(struct image *image, const char *p, const char *end)
{
	while (p + sizeof(Elf64_Nhdr) <= end) {
		const Elf64_Nhdr *note = (const Elf64_Nhdr *)(const void *)p;
		const char *name = p + sizeof *note;
		const char *desc = name + ((note->n_namesz + 3u) & ~3u);

		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp(name, "GNU", 4) && note->n_descsz <= sizeof image->build_id) {
			image->build_id_length = note->n_descsz;
			memcpy(image->build_id, desc, note->n_descsz);
		}
		p = desc + ((note->n_descsz + 3u) & ~3u);
	}
}

/* base: where file offset 0 is mapped, readable for `size` bytes. */
static bool read_image(struct image *image, uintptr_t base, uintptr_t size)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)base;
	const Elf64_Phdr *ph;
	bool found = false;

	memset(image, 0, sizeof *image);
	if (size < sizeof *e || memcmp(e->e_ident, ELFMAG, SELFMAG) ||
	    e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_phentsize != sizeof *ph ||
	    e->e_phoff + (uintptr_t)e->e_phnum * sizeof *ph > size)
		return false;
	ph = (const Elf64_Phdr *)(base + e->e_phoff);
	for (unsigned i = 0; i < e->e_phnum && !found; i++)
		if (ph[i].p_type == PT_LOAD) {
			image->bias = base - (ph[i].p_vaddr - ph[i].p_offset);
			found = true;
		}
	for (unsigned i = 0; found && i < e->e_phnum; i++)
		if (ph[i].p_type == PT_NOTE && ph[i].p_offset + ph[i].p_filesz <= size)
			read_notes(image, (const char *)base + ph[i].p_offset,
				   (const char *)base + ph[i].p_offset + ph[i].p_filesz);
	return found;
}

/* ---- the session's module table ------------------------------------------------*/
static bool same_module(const struct ca_module *m, const char *path, const struct image *image)
{
	return m->build_id_length == image->build_id_length &&
	       !memcmp(m->build_id, image->build_id, image->build_id_length) &&
	       !strcmp(m->path, path);
}

/* The id of the module, registered if it is new; CA_MAX_MODULES: no room. */
static uint32_t register_module(struct ca_session *session, const char *path,
				const struct image *image)
{
	uint32_t free_state = CA_MODULE_FREE;

	for (uint32_t i = 1; i < CA_MAX_MODULES; i++) {
		struct ca_module *m = &session->module[i];
		uint32_t state = atomic_load_explicit(&m->state, memory_order_acquire);

		if (state >= CA_MODULE_REGISTERED && same_module(m, path, image))
			return i;
		if (state != CA_MODULE_FREE)
			continue;
		free_state = CA_MODULE_FREE;
		if (!atomic_compare_exchange_strong(&m->state, &free_state, CA_MODULE_CLAIMED))
			continue;
		strcpy(m->path, path);
		m->process = (uint32_t)getpid();
		m->main = !strcmp(path, executable);
		m->build_id_length = image->build_id_length;
		memcpy(m->build_id, image->build_id, sizeof m->build_id);
		/* release: pairs with the conductor's acquire of state */
		atomic_store_explicit(&m->state, CA_MODULE_REGISTERED, memory_order_release);
		if (atomic_load(&session->modules_used) < i + 1)
			atomic_store(&session->modules_used, i + 1);
		return i;
	}
	return CA_MAX_MODULES;
}

static void add_loaded(struct ca_session *session, struct table *table, const struct mapping *m,
		       const struct image *image)
{
	struct table *old = atomic_load_explicit(&current, memory_order_acquire);
	struct ca_loaded *l;
	uint32_t module;

	if (table->n == MAX_LOADED)
		return;
	l = &table->loaded[table->n];
	for (unsigned i = 0; old && i < old->n; i++)
		if (old->loaded[i].low == m->low && old->loaded[i].high == m->high &&
		    old->loaded[i].bias == image->bias &&
		    same_module(&session->module[old->loaded[i].module], m->path, image)) {
			*l = old->loaded[i];
			table->n++;
			return;
		}
	module = register_module(session, m->path, image);
	if (module == CA_MAX_MODULES)
		return;
	l->low = m->low;
	l->high = m->high;
	l->bias = image->bias;
	l->module = module;
	atomic_store_explicit(&l->index, NULL, memory_order_relaxed);
	table->n++;
}

static void fill(struct ca_session *session, struct table *table, struct reader *reader)
{
	static struct mapping m, first; /* guarded by `scanning`; too large for a handler's stack */
	struct image image;
	bool usable = false;

	table->n = 0;
	first.path[0] = 0;
	while (read_mapping(reader, &m)) {
		if (m.path[0] != '/')
			continue;
		if (m.offset == 0 && m.read) {
			first = m;
			usable = read_image(&image, m.low, m.high - m.low);
		}
		if (m.exec && usable && !strcmp(m.path, first.path))
			add_loaded(session, table, &m, &image);
	}
}

CA_SIGSAFE bool ca_modules_scan(struct ca_session *session)
{
	static struct reader reader; /* guarded by `scanning` */
	struct table *table, *old;
	int saved = errno;
	ssize_t length;
	bool grew;

	if (atomic_flag_test_and_set_explicit(&scanning, memory_order_acquire))
		return false;
	reader.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (reader.fd < 0) {
		atomic_flag_clear_explicit(&scanning, memory_order_release);
		errno = saved;
		return false;
	}
	reader.n = reader.at = 0;
	length = readlink("/proc/self/exe", executable, sizeof executable - 1);
	executable[length > 0 ? length : 0] = 0;
	table = &tables[next_table++ % TABLES];
	old = atomic_load_explicit(&current, memory_order_acquire);
	fill(session, table, &reader);
	close(reader.fd);
	grew = !old || table->n != old->n;
	/* release: readers acquire the pointer and see the filled table */
	atomic_store_explicit(&current, table, memory_order_release);
	atomic_flag_clear_explicit(&scanning, memory_order_release);
	errno = saved;
	return grew;
}

CA_SIGSAFE const struct ca_index *ca_modules_index(struct ca_session *session,
						   struct ca_loaded *loaded)
{
	const struct ca_index *index = atomic_load_explicit(&loaded->index, memory_order_acquire);
	struct ca_module *m = &session->module[loaded->module];
	struct ca_index *mapped;
	int saved = errno;

	if (index || atomic_load_explicit(&m->state, memory_order_acquire) != CA_MODULE_INDEXED)
		return index;
	if (ca_index_map(&mapped, m->index_path) == CA_OK) {
		const struct ca_index *none = NULL;

		if (!atomic_compare_exchange_strong(&loaded->index, &none, mapped))
			ca_index_close(mapped);
	}
	errno = saved;
	return atomic_load_explicit(&loaded->index, memory_order_acquire);
}

CA_SIGSAFE struct ca_loaded *ca_modules_find(struct ca_session *session, uintptr_t pc)
{
	struct table *table = atomic_load_explicit(&current, memory_order_acquire);
	unsigned low = 0, high = table ? table->n : 0;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (table->loaded[middle].high <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (!table || low >= table->n || table->loaded[low].low > pc)
		return NULL;
	ca_modules_index(session, &table->loaded[low]);
	return &table->loaded[low];
}

CA_SIGSAFE struct ca_loaded *ca_modules_at(unsigned i)
{
	struct table *table = atomic_load_explicit(&current, memory_order_acquire);

	return table && i < table->n ? &table->loaded[i] : NULL;
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
