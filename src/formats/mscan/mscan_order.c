/* Whether the records are sorted by token, and finding tokens in sorted ones. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/work.h"
#include "formats/mscan/mscan_private.h"

#define ORDER_CHUNK 262144 /* records a task looks at: 3 MiB */

typedef struct order_search {
    const coffer_mscan *scan;
    uint8_t *scratch; /* ORDER_CHUNK + 1 records for each worker */
    atomic_bool unsorted;
} order_search;

static bool is_ascending(const uint8_t *records, size_t count)
{
    uint32_t before = 0;
    uint32_t backward = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t token = coffer__mscan_load_token(records + i * COFFER__MSCAN_RECORD_SIZE);
        backward |= token < before;
        before = token;
    }
    return !backward;
}

static coffer_status check_order(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    order_search *search = context;
    const coffer_mscan *scan = search->scan;
    uint64_t first = index * ORDER_CHUNK;
    uint64_t end = first + ORDER_CHUNK < scan->record_count ? first + ORDER_CHUNK : scan->record_count;
    uint8_t *scratch = search->scratch + (size_t)worker * (ORDER_CHUNK + 1) * COFFER__MSCAN_RECORD_SIZE;
    const uint8_t *records = NULL;
    coffer_status status;

    if (atomic_load(&search->unsorted))
        return COFFER_OK;
    first -= first > 0; /* with the last record of the chunk before, so that no neighbors go unseen */
    status = coffer__mscan_records(&records, scan, first, (size_t)(end - first), scratch, err);
    if (!status && !is_ascending(records, (size_t)(end - first)))
        atomic_store(&search->unsorted, true);
    return status;
}

static coffer_status find_order(coffer__mscan_order *out, const coffer_mscan *scan, coffer_error *err)
{
    uint64_t chunks = (scan->record_count + ORDER_CHUNK - 1) / ORDER_CHUNK;
    order_search search = { .scan = scan };
    coffer__pool *pool = NULL;
    size_t scratch_size;
    coffer_status status = coffer__pool_new(&pool, chunks < 4 ? 1 : 0, err);
    if (status)
        return status;
    scratch_size = (size_t)coffer__pool_threads(pool) * (ORDER_CHUNK + 1) * COFFER__MSCAN_RECORD_SIZE;
    search.scratch = coffer__malloc(scratch_size);
    if (!search.scratch) {
        status = coffer__fail_no_memory(err, scratch_size);
        goto out;
    }
    status = coffer__pool_run(pool, chunks, check_order, &search, err);
    if (!status)
        status = coffer_source_intact(scan->source, err);
    if (!status)
        *out = atomic_load(&search.unsorted) ? COFFER__MSCAN_ORDER_UNSORTED : COFFER__MSCAN_ORDER_SORTED;
out:
    coffer__free(search.scratch);
    coffer__pool_free(pool);
    return status;
}

coffer_status coffer_mscan_is_sorted(bool *out, const coffer_mscan *scan, coffer_error *err)
{
    /* Caching does not change the logical value of a const scan. */
    atomic_int *memory = &((coffer_mscan *)(uintptr_t)scan)->order;
    coffer__mscan_order order = (coffer__mscan_order)atomic_load(memory);
    if (order == COFFER__MSCAN_ORDER_UNKNOWN) {
        coffer_status status = find_order(&order, scan, err);
        if (status)
            return status;
        atomic_store(memory, (int)order);
    }
    *out = order == COFFER__MSCAN_ORDER_SORTED;
    return COFFER_OK;
}

/* Index of the first record whose token is not below `token`; the records are sorted. */
static coffer_status lower_bound(uint64_t *out, const coffer_mscan *scan, uint64_t token, coffer_error *err)
{
    uint64_t low = 0, high = scan->record_count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        uint8_t scratch[COFFER__MSCAN_RECORD_SIZE];
        const uint8_t *record = NULL;
        coffer_status status = coffer__mscan_records(&record, scan, middle, 1, scratch, err);
        if (status)
            return status;
        if (coffer__mscan_load_token(record) < token)
            low = middle + 1;
        else
            high = middle;
    }
    *out = low;
    return COFFER_OK;
}

coffer_status coffer_mscan_find_tokens(uint64_t *first, uint64_t *count, const coffer_mscan *scan,
                                       uint64_t begin, uint64_t end, coffer_error *err)
{
    uint64_t low, high;
    bool sorted = false;
    coffer_status status = coffer_mscan_is_sorted(&sorted, scan, err);
    if (status)
        return status;
    if (!sorted)
        return coffer__fail(err, COFFER_E_NOT_SORTED, scan->record_area,
                            "token_idx is not sorted: tokens cannot be found by searching");
    if (begin > end)
        end = begin;
    status = lower_bound(&low, scan, begin, err);
    if (!status)
        status = lower_bound(&high, scan, end, err);
    if (!status)
        status = coffer_source_intact(scan->source, err);
    if (status)
        return status;
    *first = low;
    *count = high - low;
    return COFFER_OK;
}
