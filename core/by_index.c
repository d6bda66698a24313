/* SPDX-License-Identifier: MIT */
/* Records by growing numbers; see by_index.h. */
#include "core/by_index.h"
#include <stdlib.h>
#include <string.h>

enum { EACH = 64 };

struct ca_by_index_page {
	uint64_t there; /* a bit for each */
	_Alignas(16) char record[];
};

static struct ca_by_index_page *page_of(const struct ca_by_index *records, uint32_t i)
{
	return i / EACH < records->pages ? records->page[i / EACH] : NULL;
}

static void *record_of(const struct ca_by_index *records, struct ca_by_index_page *page, uint32_t i)
{
	return page->record + i % EACH * records->size;
}

static struct ca_by_index_page *make_page(struct ca_by_index *records, uint32_t i)
{
	size_t n = i / EACH, pages = records->pages ? records->pages : EACH;
	struct ca_by_index_page **more;

	while (pages <= n)
		pages *= 2;
	if (pages > records->pages) {
		more = realloc(records->page, pages * sizeof(*more));
		if (!more)
			return NULL;
		memset(more + records->pages, 0, (pages - records->pages) * sizeof(*more));
		records->page = more;
		records->pages = pages;
	}
	records->page[n] = calloc(1, sizeof(**more) + EACH * records->size);
	return records->page[n];
}

void *ca_by_index_get(struct ca_by_index *records, uint32_t i)
{
	struct ca_by_index_page *page = page_of(records, i);
	uint64_t bit = UINT64_C(1) << i % EACH;

	if (!page && !(page = make_page(records, i)))
		return NULL;
	if (!(page->there & bit))
		memset(record_of(records, page, i), 0, records->size);
	page->there |= bit;
	return record_of(records, page, i);
}

void *ca_by_index_find(const struct ca_by_index *records, uint32_t i)
{
	struct ca_by_index_page *page = page_of(records, i);

	return page && page->there >> i % EACH & 1 ? record_of(records, page, i) : NULL;
}

void *ca_by_index_next(const struct ca_by_index *records, uint32_t *i)
{
	void *found = NULL;

	while (*i / EACH < records->pages && !(found = ca_by_index_find(records, *i)))
		*i = page_of(records, *i) ? *i + 1 : (*i / EACH + 1) * EACH;
	return found;
}

void ca_by_index_drop(struct ca_by_index *records, uint32_t i)
{
	struct ca_by_index_page *page = page_of(records, i);

	if (!page || (page->there &= ~(UINT64_C(1) << i % EACH)))
		return;
	free(page);
	records->page[i / EACH] = NULL;
}

void ca_by_index_free(struct ca_by_index *records)
{
	for (size_t i = 0; i < records->pages; i++)
		free(records->page[i]);
	free(records->page);
	*records = (struct ca_by_index){ .size = records->size };
}
