#include "formats/mlyze/analyze/mlyze_pages.h"

#include "base/fail.h"
#include "base/memory.h"

#include <string.h>

/* Number of pages before the newest one that stay open: most blocks die while they are young. */
#define YOUNG 8
#define FIRST_CAPACITY 64
#define CACHE_LINE 64
#define PAGE_SIZE (COFFER__MLYZE_PAGE_SLOTS * sizeof(coffer__mlyze_slot) + CACHE_LINE)

coffer_status coffer__mlyze_pages_new(coffer__mlyze_pages **out, coffer__mlyze_live *live, size_t shards,
                                      coffer_error *err)
{
    coffer__mlyze_pages *pages = coffer__calloc(1, sizeof *pages);
    if (!pages)
        return coffer__fail_no_memory(err, sizeof *pages);
    pages->live = live;
    pages->shards = shards;
    *out = pages;
    return COFFER_OK;
}

static void free_page(coffer__mlyze_page *page)
{
    if (page)
        coffer__free(page->memory);
    coffer__free(page);
}

/* NULL without memory. */
static coffer__mlyze_page *new_page(void)
{
    coffer__mlyze_page *page = coffer__calloc(1, sizeof *page);
    if (page)
        page->memory = coffer__calloc(1, PAGE_SIZE);
    if (!page || !page->memory) {
        free_page(page);
        return NULL;
    }
    uintptr_t aligned = ((uintptr_t)page->memory + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    page->slots = (coffer__mlyze_slot *)aligned;
    return page;
}

void coffer__mlyze_pages_free(coffer__mlyze_pages *pages)
{
    if (!pages)
        return;
    if (pages->live->budget)
        atomic_fetch_sub(&pages->live->budget->used, pages->made * PAGE_SIZE);
    for (size_t i = 0; i < pages->count; i++)
        free_page(pages->items[i]);
    while (pages->unused) {
        coffer__mlyze_page *next = pages->unused->next_unused;
        free_page(pages->unused);
        pages->unused = next;
    }
    coffer__free(pages->items);
    coffer__free(pages);
}

static coffer_status move(coffer__mlyze_pages *pages, size_t at, coffer_error *err)
{
    coffer__mlyze_page *page = pages->items[at];
    coffer_status status = COFFER_OK;
    for (size_t i = 0; page->live > 0 && i < COFFER__MLYZE_PAGE_SLOTS && !status; i++) {
        const coffer__mlyze_slot *slot = &page->slots[i];
        coffer__mlyze_held block, old;
        coffer__mlyze_put what;
        /* A page that was used before has slots of other numbers. */
        if (coffer__mlyze_page_of(slot->address, pages->shards) != at || slot->address == 0 ||
            coffer__mlyze_is_dead(slot))
            continue;
        coffer__mlyze_unpack(&block, slot);
        status =
            coffer__mlyze_live_put(&what, pages->live, coffer__mlyze_hash(&pages->live->key, slot->address),
                                   slot->address, &block, &old, err);
        page->live--;
    }
    page->next_unused = pages->unused;
    pages->unused = page;
    pages->items[at] = NULL;
    return status;
}

static coffer_status extend(coffer__mlyze_pages *pages, size_t at, coffer_error *err)
{
    size_t capacity = pages->capacity ? pages->capacity : FIRST_CAPACITY;
    while (capacity <= at)
        capacity *= 2;
    if (capacity > pages->capacity) {
        coffer__mlyze_page **items = coffer__realloc(pages->items, capacity * sizeof(coffer__mlyze_page *));
        if (!items)
            return coffer__fail_no_memory(err, capacity * sizeof(coffer__mlyze_page *));
        pages->items = items;
        pages->capacity = capacity;
    }
    while (pages->count <= at)
        pages->items[pages->count++] = NULL;
    return COFFER_OK;
}

static coffer_status close_old(coffer__mlyze_pages *pages, size_t newest, coffer_error *err)
{
    coffer__mlyze_page *page = newest >= YOUNG ? pages->items[newest - YOUNG] : NULL;
    if (!page)
        return COFFER_OK;
    page->is_old = true;
    return coffer__mlyze_page_is_thin(page) ? move(pages, newest - YOUNG, err) : COFFER_OK;
}

static coffer_status count_memory(const coffer__mlyze_pages *pages, coffer_error *err)
{
    coffer__mlyze_budget *budget = pages->live->budget;
    const size_t size = PAGE_SIZE;
    if (!budget || atomic_fetch_add(&budget->used, size) + size <= budget->max)
        return COFFER_OK;
    atomic_fetch_sub(&budget->used, size);
    atomic_store(&budget->exceeded, true);
    return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "the live blocks do not fit into %zu bytes",
                        budget->max);
}

coffer_status coffer__mlyze_pages_open(coffer__mlyze_pages *pages, uint64_t number, coffer_error *err)
{
    size_t at = coffer__mlyze_page_of(number, pages->shards);
    coffer_status status = at < pages->count ? COFFER_OK : extend(pages, at, err);
    if (status || pages->items[at])
        return status;
    status = close_old(pages, at, err);
    coffer__mlyze_page *page = pages->unused;
    if (!status && page) {
        pages->unused = page->next_unused;
    } else if (!status) {
        status = count_memory(pages, err);
        page = status ? NULL : new_page();
        pages->made += !status;
        if (!status && !page)
            status = coffer__fail_no_memory(err, PAGE_SIZE);
    }
    if (status)
        return status;
    page->live = 0;
    page->is_old = false;
    pages->items[at] = page;
    return COFFER_OK;
}

coffer_status coffer__mlyze_pages_thin(coffer__mlyze_pages *pages, uint64_t number, coffer_error *err)
{
    return move(pages, coffer__mlyze_page_of(number, pages->shards), err);
}

coffer_status coffer__mlyze_pages_empty(coffer__mlyze_pages *pages, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; pages && i < pages->count && !status; i++) {
        if (pages->items[i])
            status = move(pages, i, err);
    }
    return status;
}
