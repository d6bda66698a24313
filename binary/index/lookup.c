/* SPDX-License-Identifier: MIT */
/* Reading an index: mapping the file and looking addresses up.
 *
 * Links with libc alone and never allocates, since it is part of the runtime too. What is
 * marked CA_SIGSAFE in index.h reads the mapping only; everything is safe to call from any
 * number of threads. A damaged file can give wrong answers here, but never a wild access:
 * sections are checked on mapping, indexes and string offsets where they are used.
 * Building an index is in build.c, the cache in cache.c. */
#include "binary/index/index_file.h"
#include "core/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { PAGE = 4096 };

static const uint32_t part_size[CA_INDEX_PARTS] = {
	[CA_PART_FUNCTIONS] = sizeof(struct ca_record_function),
	[CA_PART_LINES] = sizeof(struct ca_record_line),
	[CA_PART_INLINES] = sizeof(struct ca_record_inline),
	[CA_PART_ROWS] = sizeof(struct ca_unwind_row),
	[CA_PART_BUCKETS] = sizeof(uint32_t),
	[CA_PART_PROBES] = sizeof(struct ca_record_probe),
	[CA_PART_WARNINGS] = sizeof(uint32_t),
	[CA_PART_STRINGS] = 1,
};

static bool part_is_valid(const struct ca_index_header *header, unsigned i)
{
	const struct ca_index_part_place *place = &header->part[i];

	return place->offset % 8 == 0 && place->offset >= sizeof(*header) &&
	       place->offset <= header->file_size && place->count < CA_INDEX_NOTHING &&
	       place->count <= (header->file_size - place->offset) / part_size[i];
}

static bool header_is_valid(const struct ca_index_header *header, uint64_t size)
{
	if (header->magic != CA_INDEX_MAGIC || header->version != CA_INDEX_VERSION ||
	    header->header_size != sizeof(*header) || header->file_size != size)
		return false;
	for (unsigned i = 0; i < CA_INDEX_PARTS; i++)
		if (!part_is_valid(header, i))
			return false;
	const struct ca_index_part_place *strings = &header->part[CA_PART_STRINGS];
	if (strings->count == 0 || header->row_shift > 31 || header->base > UINT64_MAX - UINT32_MAX ||
	    header->span > UINT32_MAX)
		return false;
	const char *text = (const char *)header + strings->offset;
	if (text[0] != '\0' || text[strings->count - 1] != '\0')
		return false;
	/* one more than the span needs, so that a look-up may read [b + 1] */
	return header->part[CA_PART_ROWS].count == 0 ||
	       header->part[CA_PART_BUCKETS].count > (header->span >> header->row_shift) + 1;
}

static const void *part_at(const struct ca_index *index, unsigned i)
{
	return (const char *)index->header + index->header->part[i].offset;
}

static const char *string_at(const struct ca_index *index, uint32_t offset)
{
	return index->string + (offset < index->strings ? offset : 0);
}

static void fill(struct ca_index *index)
{
	const struct ca_index_part_place *part = index->header->part;

	index->function = part_at(index, CA_PART_FUNCTIONS);
	index->line = part_at(index, CA_PART_LINES);
	index->inlined = part_at(index, CA_PART_INLINES);
	index->row = part_at(index, CA_PART_ROWS);
	index->bucket = part_at(index, CA_PART_BUCKETS);
	index->probe = part_at(index, CA_PART_PROBES);
	index->warning = part_at(index, CA_PART_WARNINGS);
	index->string = part_at(index, CA_PART_STRINGS);
	index->functions = (uint32_t)part[CA_PART_FUNCTIONS].count;
	index->lines = (uint32_t)part[CA_PART_LINES].count;
	index->inlines = (uint32_t)part[CA_PART_INLINES].count;
	index->rows = (uint32_t)part[CA_PART_ROWS].count;
	index->buckets = (uint32_t)part[CA_PART_BUCKETS].count;
	index->probes = (uint32_t)part[CA_PART_PROBES].count;
	index->warnings = (uint32_t)part[CA_PART_WARNINGS].count;
	index->strings = part[CA_PART_STRINGS].count;
}

static void copy_path(char out[CA_INDEX_MAX_PATH], const char *path)
{
	size_t length = 0;

	/* no libc: hooks come here while the program's vector registers are live */
	while (length < CA_INDEX_MAX_PATH - 1 && path[length])
		length++;
	memcpy(out, path, length);
	out[length] = '\0';
}

static enum ca_status status_of(int error)
{
	switch (error) {
	case ENOENT:
		return CA_ERR_NOT_FOUND;
	case ENOMEM:
		return CA_ERR_NOMEM;
	case EACCES:
	case EPERM:
		return CA_ERR_PERMISSION;
	default:
		return CA_ERR_IO;
	}
}

/* Private pages for struct ca_index, directly followed by the file. Returns -errno, or where. */
static long map_behind(int fd, size_t head, size_t size)
{
	long at = ca_sys_map(NULL, head + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1),
	     file;

	if (at < 0)
		return at;
	file = ca_sys_map((char *)at + head, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd);
	if (file < 0)
		ca_sys_unmap((void *)at, head + size);
	return file < 0 ? file : at;
}

/* By system calls: libc's names may be somebody else's, who is in the midst of something. */
enum ca_status ca_index_map(struct ca_index **index, const char *index_path)
{
	struct stat st;
	size_t head = (sizeof(struct ca_index) + PAGE - 1) / PAGE * PAGE;
	int fd = ca_sys_open(index_path, O_RDONLY);

	if (fd < 0)
		return status_of(-fd);
	if (!ca_sys_stat(fd, &st) || !S_ISREG(st.st_mode) ||
	    (size_t)st.st_size < sizeof(struct ca_index_header) || st.st_size > UINT32_MAX) {
		ca_sys_close(fd);
		return CA_ERR_FORMAT;
	}
	size_t size = (size_t)st.st_size;
	long at = map_behind(fd, head, size);
	ca_sys_close(fd);
	if (at < 0)
		return status_of((int)-at);
	struct ca_index *new = (struct ca_index *)at;
	new->header = (const struct ca_index_header *)((const char *)new + head);
	new->mapped = head + size;
	if (!header_is_valid(new->header, size)) {
		ca_sys_unmap(new, head + size);
		return CA_ERR_FORMAT;
	}
	fill(new);
	copy_path(new->path, index_path);
	copy_path(new->binary, string_at(new, new->header->binary));
	*index = new;
	return CA_OK;
}

void ca_index_close(struct ca_index *index)
{
	if (!index)
		return;
	if (index->temporary)
		ca_sys(SYS_unlink, (long)(intptr_t)index->path, 0, 0, 0, 0, 0);
	ca_sys_unmap(index, index->mapped);
}

const char *ca_index_path(const struct ca_index *index)
{
	return index->path;
}

const char *ca_index_binary(const struct ca_index *index)
{
	return index->binary;
}

bool ca_index_has_lines(const struct ca_index *index)
{
	return index->header->flags & CA_INDEX_HAS_LINES;
}

size_t ca_index_functions(const struct ca_index *index)
{
	return index->functions;
}

size_t ca_index_lines(const struct ca_index *index)
{
	return index->lines;
}

size_t ca_index_inlines(const struct ca_index *index)
{
	return index->inlines;
}

size_t ca_index_probes(const struct ca_index *index)
{
	return index->probes;
}

size_t ca_index_rows(const struct ca_index *index)
{
	return index->rows;
}

uint64_t ca_index_base(const struct ca_index *index)
{
	return index->header->base;
}

void ca_index_function_at(const struct ca_index *index, size_t i, struct ca_index_function *out)
{
	const struct ca_record_function *record = &index->function[i];

	out->low = index->header->base + record->low;
	out->high = index->header->base + record->high;
	out->name = string_at(index, record->name);
	out->linkage = string_at(index, record->linkage);
	out->file = string_at(index, record->file);
	out->line = record->line;
	out->synthetic = record->flags & CA_FUNCTION_SYNTHETIC;
	out->part = record->flags & CA_FUNCTION_PART;
}

void ca_index_line_at(const struct ca_index *index, size_t i, struct ca_index_line *out)
{
	const struct ca_record_line *record = &index->line[i];

	out->low = index->header->base + record->low;
	out->high = index->header->base + record->high;
	out->file = string_at(index, record->file);
	out->line = record->line & ~CA_LINE_IS_STMT;
	out->is_stmt = record->line & CA_LINE_IS_STMT;
}

void ca_index_inline_at(const struct ca_index *index, size_t i, struct ca_index_inline *out)
{
	const struct ca_record_inline *record = &index->inlined[i];

	out->low = index->header->base + record->low;
	out->high = index->header->base + record->high;
	out->name = string_at(index, record->name);
	out->file = string_at(index, record->file);
	out->line = record->line;
	out->call_file = string_at(index, record->call_file);
	out->call_line = record->call_line;
	out->depth = record->depth;
}

void ca_index_probe_at(const struct ca_index *index, size_t i, struct ca_index_probe *out)
{
	const struct ca_record_probe *record = &index->probe[i];

	out->address = record->address;
	out->semaphore = record->semaphore;
	out->provider = string_at(index, record->provider);
	out->name = string_at(index, record->name);
	out->arguments = string_at(index, record->arguments);
}

const struct ca_unwind_row *ca_index_row_at(const struct ca_index *index, size_t i)
{
	return &index->row[i];
}

/* File address to what records hold; false if the binary does not reach there. */
static bool offset_of(const struct ca_index *index, uint64_t address, uint32_t *offset)
{
	if (address < index->header->base || address - index->header->base >= index->header->span)
		return false;
	*offset = (uint32_t)(address - index->header->base);
	return true;
}

/* The last of n records of `size` bytes, sorted by a leading uint32_t, that starts at or below
 * offset; CA_INDEX_NOTHING if all start above. */
static uint32_t last_at_or_below(const void *records, uint32_t n, size_t size, uint32_t offset)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2, start;
		memcpy(&start, (const char *)records + middle * size, sizeof(start));
		if (start <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low == 0 ? CA_INDEX_NOTHING : low - 1;
}

/* Parents come earlier, so a chain that does not is damage, and ends. */
static uint32_t parent_of(uint32_t i, uint32_t parent)
{
	return parent < i ? parent : CA_INDEX_NOTHING;
}

size_t ca_index_find_function_number(const struct ca_index *index, uint64_t address)
{
	uint32_t offset;

	if (!offset_of(index, address, &offset))
		return SIZE_MAX;
	uint32_t i = last_at_or_below(index->function, index->functions, sizeof(*index->function), offset);
	while (i != CA_INDEX_NOTHING && index->function[i].high <= offset)
		i = parent_of(i, index->function[i].parent);
	return i == CA_INDEX_NOTHING ? SIZE_MAX : i;
}

bool ca_index_find_function(const struct ca_index *index, uint64_t address, struct ca_index_function *out)
{
	size_t i = ca_index_find_function_number(index, address);

	if (i == SIZE_MAX)
		return false;
	ca_index_function_at(index, i, out);
	return true;
}

size_t ca_index_function_ranges(const struct ca_index *index, size_t i, struct ca_index_span *out, size_t max)
{
	size_t n = 0;
	uint32_t at = (uint32_t)i;

	/* a ring has at most as many members as there are functions, unless damaged */
	for (uint32_t left = index->functions; left > 0 && at < index->functions; left--) {
		if (n < max) {
			out[n].low = index->header->base + index->function[at].low;
			out[n].high = index->header->base + index->function[at].high;
		}
		n++;
		at = index->function[at].next;
		if (at == i)
			break;
	}
	return n;
}

bool ca_index_find_line(const struct ca_index *index, uint64_t address, struct ca_index_line *out)
{
	uint32_t offset;

	if (!offset_of(index, address, &offset))
		return false;
	uint32_t i = last_at_or_below(index->line, index->lines, sizeof(*index->line), offset);
	if (i == CA_INDEX_NOTHING || index->line[i].high <= offset)
		return false;
	ca_index_line_at(index, i, out);
	return true;
}

size_t ca_index_find_inlines(const struct ca_index *index, uint64_t address, struct ca_index_inline *out,
			     size_t max)
{
	uint32_t offset;
	size_t n = 0;

	if (!offset_of(index, address, &offset))
		return 0;
	uint32_t last = last_at_or_below(index->inlined, index->inlines, sizeof(*index->inlined), offset);
	for (uint32_t i = last; i != CA_INDEX_NOTHING; i = parent_of(i, index->inlined[i].parent))
		n += index->inlined[i].high > offset;
	size_t total = n;
	/* innermost first on the way up: fill from the back, what does not fit is innermost */
	for (uint32_t i = last; i != CA_INDEX_NOTHING; i = parent_of(i, index->inlined[i].parent)) {
		if (index->inlined[i].high <= offset)
			continue;
		if (--n < max)
			ca_index_inline_at(index, i, &out[n]);
	}
	return total < max ? total : max;
}

const struct ca_unwind_row *ca_index_find_row(const struct ca_index *index, uint64_t address)
{
	uint32_t offset;

	if (!offset_of(index, address, &offset) || index->rows == 0)
		return NULL;
	uint32_t bucket = offset >> index->header->row_shift;
	uint32_t low = index->bucket[bucket], high = index->bucket[bucket + 1];
	if (high >= index->rows)
		high = index->rows - 1;
	/* the wanted row is in [low, high]: each bucket names the row at its first byte */
	while (low < high) {
		uint32_t middle = low + (high - low + 1) / 2;
		if (index->row[middle].address <= offset)
			low = middle;
		else
			high = middle - 1;
	}
	if (low >= index->rows || index->row[low].address > offset)
		return NULL;
	return &index->row[low];
}
