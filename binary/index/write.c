/* SPDX-License-Identifier: MIT */
/* Writing an index file. Driver's process. */
#include "binary/index/write.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t mix(uint64_t lane, uint64_t word)
{
	lane = (lane ^ word) * 0x9fb21c651e98df25u;
	return lane ^ lane >> 35;
}

/* Four lanes, so that the multiplications overlap: about 10 bytes a nanosecond. */
uint64_t ca_index_checksum(const void *data, uint64_t size)
{
	const char *at = data;
	uint64_t lane[4] = { 1, 2, 3, 4 }, word[4];

	for (uint64_t left = size; left > 0;) {
		size_t n = left < sizeof(word) ? (size_t)left : sizeof(word);
		memset(word, 0, sizeof(word));
		memcpy(word, at, n);
		for (unsigned i = 0; i < 4; i++)
			lane[i] = mix(lane[i], word[i]);
		at += n;
		left -= n;
	}
	return mix(mix(mix(mix(size, lane[0]), lane[1]), lane[2]), lane[3]);
}

/* Buckets of about four rows, of at least 16 bytes. */
static uint32_t choose_shift(uint64_t span, const struct ca_vec *rows)
{
	uint64_t wanted = rows->n / 4 + 1;
	uint32_t shift = 4;

	while (span >> shift > wanted)
		shift++;
	return shift;
}

/* bucket[b]: the last row that starts at or below the first byte of bucket b. */
static bool make_buckets(uint64_t span, const struct ca_vec *rows, uint32_t shift, struct ca_vec *buckets)
{
	const struct ca_unwind_row *row = rows->at;
	uint64_t n = rows->n ? (span >> shift) + 2 : 0;
	uint32_t last = 0;

	for (uint64_t b = 0; b < n; b++) {
		while (last + 1 < rows->n && row[last + 1].address <= b << shift)
			last++;
		if (!ca_vec_add(buckets, &last, 1))
			return false;
	}
	return true;
}

static uint64_t place(struct ca_index_header *header, enum ca_index_part part, uint64_t at, uint64_t count,
		      uint64_t size)
{
	header->part[part] = (struct ca_index_part_place){ at, count };
	return (at + count * size + 7) & ~(uint64_t)7;
}

static enum ca_status write_all(int fd, const char *at, size_t left)
{
	while (left > 0) {
		ssize_t n = write(fd, at, left);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 && errno == EACCES ? CA_ERR_PERMISSION : CA_ERR_IO;
		at += n;
		left -= (size_t)n;
	}
	return CA_OK;
}

static enum ca_status assemble(struct ca_index_header *header, const struct ca_vec *part,
			       const struct ca_strings *strings, int fd)
{
	uint64_t at = sizeof(*header);

	for (unsigned i = 0; i < CA_PART_STRINGS; i++)
		at = place(header, i, at, part[i].n, part[i].size);
	at = place(header, CA_PART_STRINGS, at, strings->text.n, 1);
	header->file_size = at;
	if (at > UINT32_MAX)
		return CA_ERR_FULL;
	char *image = calloc(1, at);
	if (!image)
		return CA_ERR_NOMEM;
	for (unsigned i = 0; i < CA_PART_STRINGS; i++)
		if (part[i].n > 0)
			memcpy(image + header->part[i].offset, part[i].at, part[i].n * part[i].size);
	memcpy(image + header->part[CA_PART_STRINGS].offset, strings->text.at, strings->text.n);
	header->checksum = ca_index_checksum(header, sizeof(*header)) +
			   ca_index_checksum(image + sizeof(*header), at - sizeof(*header));
	memcpy(image, header, sizeof(*header));
	enum ca_status status = write_all(fd, image, at);
	free(image);
	return status;
}

enum ca_status ca_write_index(const struct ca_index_header *about, const struct ca_vec part[CA_INDEX_PARTS],
			      const struct ca_strings *strings, int fd)
{
	struct ca_index_header header = *about;
	struct ca_vec parts[CA_INDEX_PARTS];
	struct ca_vec buckets = { .size = sizeof(uint32_t) };

	header.magic = CA_INDEX_MAGIC;
	header.version = CA_INDEX_VERSION;
	header.header_size = sizeof(header);
	header.row_shift = choose_shift(header.span, &part[CA_PART_ROWS]);
	if (!make_buckets(header.span, &part[CA_PART_ROWS], header.row_shift, &buckets)) {
		ca_vec_free(&buckets);
		return CA_ERR_NOMEM;
	}
	memcpy(parts, part, sizeof(parts));
	parts[CA_PART_BUCKETS] = buckets;
	enum ca_status status = assemble(&header, parts, strings, fd);
	ca_vec_free(&buckets);
	return status;
}
