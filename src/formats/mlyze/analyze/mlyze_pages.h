/* Live blocks by the number of their allocation, for archives, whose frees name it. Allocations are numbered
 * in sequence, so a block is found without a search, next to those that were allocated with it. A page with
 * few live blocks left gives them to a table and is used again. */
#ifndef COFFER_FORMATS_MLYZE_PAGES_H
#define COFFER_FORMATS_MLYZE_PAGES_H

#include "formats/mlyze/analyze/mlyze_live_slots.h"

#define COFFER__MLYZE_PAGE_BITS 12
#define COFFER__MLYZE_PAGE_SLOTS (1 << COFFER__MLYZE_PAGE_BITS)

typedef struct coffer__mlyze_page {
    uint32_t live;
    bool is_old; /* no allocation is added any more */
    struct coffer__mlyze_page *next_unused;
    coffer__mlyze_slot *slots; /* two in a cache line; their `address` is the number */
    void *memory;
} coffer__mlyze_page;

typedef struct coffer__mlyze_pages {
    coffer__mlyze_page **items; /* by number; NULL = its blocks are in the table, if they are live */
    size_t count, capacity;
    size_t shards; /* this shard has every so-many-th page */
    coffer__mlyze_page *unused;
    size_t made;              /* in all; the budget counts them */
    coffer__mlyze_live *live; /* the table */
} coffer__mlyze_pages;

/* The page that has a number. */
static inline size_t coffer__mlyze_page_of(uint64_t number, size_t shards)
{
    return (size_t)(number >> COFFER__MLYZE_PAGE_BITS) / shards;
}

/* NULL when it was given back. */
static inline coffer__mlyze_page *coffer__mlyze_page_at(const coffer__mlyze_pages *pages, uint64_t number)
{
    size_t at = pages->shards == 1 ? (size_t)(number >> COFFER__MLYZE_PAGE_BITS)
                                   : coffer__mlyze_page_of(number, pages->shards);
    return at < pages->count ? pages->items[at] : NULL;
}

__attribute__((always_inline)) static inline void coffer__mlyze_prefetch_number(
    const coffer__mlyze_pages *pages, uint64_t number)
{
    const coffer__mlyze_page *page = coffer__mlyze_page_at(pages, number);
    if (page)
        __builtin_prefetch(&page->slots[number % COFFER__MLYZE_PAGE_SLOTS], 1);
}

coffer_status coffer__mlyze_pages_new(coffer__mlyze_pages **out, coffer__mlyze_live *live, size_t shards,
                                      coffer_error *err);
void coffer__mlyze_pages_free(coffer__mlyze_pages *pages);
/* Makes the page for a number that follows all others, and closes an older one. */
coffer_status coffer__mlyze_pages_open(coffer__mlyze_pages *pages, uint64_t number, coffer_error *err);
/* An old page has lost most of its blocks: the others move to the table. */
coffer_status coffer__mlyze_pages_thin(coffer__mlyze_pages *pages, uint64_t number, coffer_error *err);
/* Moves all blocks to the table. */
coffer_status coffer__mlyze_pages_empty(coffer__mlyze_pages *pages, coffer_error *err);

/* Whether a page is worth its memory. */
static inline bool coffer__mlyze_page_is_thin(const coffer__mlyze_page *page)
{
    return page->is_old & (page->live < COFFER__MLYZE_PAGE_SLOTS / 8);
}

#endif
