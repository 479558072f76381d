/* Comparison of two scans record by record, matched by token, parameter and block in any order. Scans that
 * are sorted by token are compared in slabs of whole tokens; others are sorted in memory first. */
#include "formats/mscan/mscan_diff.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SLAB_RECORDS ((uint64_t)1 << 16) /* records of each scan, at first */
#define COMPARE_BATCH 16384              /* records compared as bytes at a time */
#define SMALL_SORT 32

/* ---- Sorting ---- */

static void insertion_sort(coffer__mscan_keyed *records, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        coffer__mscan_keyed moving = records[i];
        size_t j = i;
        for (; j > 0 && records[j - 1].key > moving.key; j--)
            records[j] = records[j - 1];
        records[j] = moving;
    }
}

static bool is_ascending(const coffer__mscan_keyed *records, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (records[i].key < records[i - 1].key)
            return false;
    }
    return true;
}

/* A stable radix sort from the lowest byte; bytes that are equal in all keys are skipped. */
static void sort_records(coffer__mscan_diff_side *which)
{
    size_t count = which->count;
    if (is_ascending(which->records, count))
        return;
    if (count <= SMALL_SORT) {
        insertion_sort(which->records, count);
        return;
    }
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t starts[256] = { 0 };
        for (size_t i = 0; i < count; i++)
            starts[which->records[i].key >> shift & 255]++;
        if (starts[which->records[0].key >> shift & 255] == count)
            continue;
        size_t sum = 0;
        for (size_t digit = 0; digit < 256; digit++) {
            size_t here = starts[digit];
            starts[digit] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++)
            which->scratch[starts[which->records[i].key >> shift & 255]++] = which->records[i];
        coffer__mscan_keyed *sorted = which->scratch;
        which->scratch = which->records;
        which->records = sorted;
    }
}

/* ---- Counting ---- */

static coffer_status show(coffer__mscan_comparison *cmp, coffer__mscan_difference what, coffer_error *err)
{
    coffer_status status = coffer__mscan_diff_groups_take(&cmp->groups, cmp->a.scan, &what, err);
    if (status || cmp->shown_count >= cmp->opts.max_shown)
        return status;
    status = coffer__array_reserve_one(&cmp->shown, &cmp->shown_capacity, cmp->shown_count,
                                       sizeof *cmp->shown, err);
    if (status)
        return status;
    cmp->shown[cmp->shown_count++] = what;
    return COFFER_OK;
}

static coffer__mscan_difference difference_at(coffer__mscan_difference_kind kind, uint64_t key)
{
    return (coffer__mscan_difference){
        .kind = kind, .token = (uint32_t)(key >> 32), .param = (uint16_t)(key >> 16), .block = (uint16_t)key
    };
}

static coffer_status count_single(coffer__mscan_comparison *cmp, coffer__mscan_difference_kind kind,
                                  const coffer__mscan_keyed *record, coffer_error *err)
{
    coffer__mscan_difference what = difference_at(kind, record->key);
    memcpy(what.value[kind != COFFER__MSCAN_DIFF_ONLY_IN_A], record->value, sizeof record->value);
    ++*(kind == COFFER__MSCAN_DIFF_ONLY_IN_A ? &cmp->only_in_a : &cmp->only_in_b);
    return show(cmp, what, err);
}

static coffer_status count_pair(coffer__mscan_comparison *cmp, const coffer__mscan_keyed *a,
                                const coffer__mscan_keyed *b, coffer_error *err)
{
    bool differs = false;
    for (unsigned metric = 0; metric < 2; metric++) {
        uint16_t left = a->value[metric], right = b->value[metric];
        uint16_t distance = left > right ? left - right : right - left;
        cmp->sum[metric] += distance;
        if (distance > cmp->largest[metric])
            cmp->largest[metric] = distance;
        if (distance > cmp->opts.tolerance) {
            cmp->differing[metric]++;
            differs = true;
        }
    }
    if (!differs) {
        cmp->equal++;
        return COFFER_OK;
    }
    cmp->changed++;
    coffer__mscan_difference what = difference_at(COFFER__MSCAN_DIFF_CHANGED, a->key);
    memcpy(what.value[0], a->value, sizeof a->value);
    memcpy(what.value[1], b->value, sizeof b->value);
    return show(cmp, what, err);
}

/* Both sides are sorted. Records with equal keys are paired in the order of the files. */
static coffer_status merge(coffer__mscan_comparison *cmp, coffer_error *err)
{
    const coffer__mscan_keyed *a = cmp->a.records, *a_end = a + cmp->a.count;
    const coffer__mscan_keyed *b = cmp->b.records, *b_end = b + cmp->b.count;
    coffer_status status = COFFER_OK;
    while (!status && a < a_end && b < b_end) {
        if (a->key == b->key)
            status = count_pair(cmp, a++, b++, err);
        else if (a->key < b->key)
            status = count_single(cmp, COFFER__MSCAN_DIFF_ONLY_IN_A, a++, err);
        else
            status = count_single(cmp, COFFER__MSCAN_DIFF_ONLY_IN_B, b++, err);
    }
    while (!status && a < a_end)
        status = count_single(cmp, COFFER__MSCAN_DIFF_ONLY_IN_A, a++, err);
    while (!status && b < b_end)
        status = count_single(cmp, COFFER__MSCAN_DIFF_ONLY_IN_B, b++, err);
    return status;
}

/* ---- Slabs ---- */

static coffer_status reserve(coffer__mscan_comparison *cmp, uint64_t count, coffer_error *err)
{
    coffer__mscan_keyed **arrays[4] = { &cmp->a.records, &cmp->a.scratch, &cmp->b.records, &cmp->b.scratch };
    uint64_t bytes = count * sizeof(coffer__mscan_keyed);
    if (count <= cmp->capacity)
        return COFFER_OK;
    if (bytes > cmp->limits.memory_bytes / 4)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " records have to be sorted to be compared, which takes %" PRIu64
                            " bytes; the limit is %" PRIu64,
                            count, bytes * 4, cmp->limits.memory_bytes);
    for (size_t i = 0; i < 4; i++) {
        coffer__free(*arrays[i]);
        *arrays[i] = NULL;
    }
    cmp->capacity = 0;
    for (size_t i = 0; i < 4; i++) {
        *arrays[i] = coffer__alloc_array((size_t)count, sizeof **arrays[i]);
        if (!*arrays[i])
            return coffer__fail_no_memory(err, bytes);
    }
    cmp->capacity = (size_t)count;
    return COFFER_OK;
}

/* Loads the next `count` records. Records of parameters that only b has are counted and left out. */
static coffer_status load(coffer__mscan_comparison *cmp, coffer__mscan_diff_side *which, uint64_t count,
                          coffer_error *err)
{
    coffer_mscan_record batch[1024];
    bool is_b = which == &cmp->b;
    which->count = 0;
    while (count > 0) {
        size_t some = count < 1024 ? (size_t)count : 1024;
        coffer_status status = coffer_mscan_read(batch, which->scan, which->next, some, err);
        for (size_t i = 0; !status && i < some; i++) {
            uint32_t param = is_b ? cmp->ids->to_a[batch[i].param_id] : batch[i].param_id;
            uint64_t place = (uint64_t)batch[i].token_idx << 32 | batch[i].block_idx;
            coffer__mscan_keyed record = { place, { batch[i].activation, batch[i].grad_norm } };
            if (param == COFFER__MSCAN_ONLY_B) {
                record.key |= (uint64_t)batch[i].param_id << 16;
                status = count_single(cmp, COFFER__MSCAN_DIFF_PARAM_ONLY_IN_B, &record, err);
            } else {
                record.key |= (uint64_t)param << 16;
                which->records[which->count++] = record;
            }
        }
        if (status)
            return status;
        which->next += some;
        count -= some;
    }
    return COFFER_OK;
}

static coffer_status compare_slab(coffer__mscan_comparison *cmp, uint64_t a_count, uint64_t b_count,
                                  coffer_error *err)
{
    coffer_status status = reserve(cmp, a_count > b_count ? a_count : b_count, err);
    if (!status)
        status = load(cmp, &cmp->a, a_count, err);
    if (!status)
        status = load(cmp, &cmp->b, b_count, err);
    if (status)
        return status;
    sort_records(&cmp->a);
    sort_records(&cmp->b);
    status = merge(cmp, err);
    if (status)
        return status;
    return coffer__progress_step(cmp->opts.progress, cmp->a.next + cmp->b.next,
                                 cmp->a.scan->record_count + cmp->b.scan->record_count, err);
}

static coffer_status token_of(uint64_t *token, const coffer_mscan *scan, uint64_t record, coffer_error *err)
{
    coffer_mscan_record found;
    coffer_status status = coffer_mscan_read(&found, scan, record, 1, err);
    if (!status)
        *token = found.token_idx;
    return status;
}

/* All records of the tokens before *end are among the next `window` records. */
static coffer_status whole_tokens(uint64_t *end, const coffer__mscan_diff_side *which, uint64_t window,
                                  coffer_error *err)
{
    if (window >= which->scan->record_count - which->next) {
        *end = UINT64_MAX;
        return COFFER_OK;
    }
    return token_of(end, which->scan, which->next + window - 1, err);
}

/* Counts the records with a token before `end` among the next `window` records. */
static coffer_status count_before(uint64_t *count, const coffer__mscan_diff_side *which, uint64_t window,
                                  uint64_t end, coffer_error *err)
{
    uint64_t left = which->scan->record_count - which->next;
    uint64_t low = which->next, high = low + (window < left ? window : left);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2, token;
        coffer_status status = token_of(&token, which->scan, middle, err);
        if (status)
            return status;
        if (token < end)
            low = middle + 1;
        else
            high = middle;
    }
    *count = low - which->next;
    return COFFER_OK;
}

/* Chooses whole tokens of both scans. The window grows until it contains at least one. */
static coffer_status choose_slab(uint64_t *a_count, uint64_t *b_count, const coffer__mscan_comparison *cmp,
                                 coffer_error *err)
{
    for (uint64_t window = SLAB_RECORDS;; window *= 2) {
        uint64_t a_end, b_end;
        coffer_status status = whole_tokens(&a_end, &cmp->a, window, err);
        if (!status)
            status = whole_tokens(&b_end, &cmp->b, window, err);
        if (status)
            return status;
        uint64_t end = a_end < b_end ? a_end : b_end;
        status = count_before(a_count, &cmp->a, window, end, err);
        if (!status)
            status = count_before(b_count, &cmp->b, window, end, err);
        if (status || *a_count + *b_count > 0)
            return status;
    }
}

static bool is_done(const coffer__mscan_diff_side *which)
{
    return which->next >= which->scan->record_count;
}

static coffer_status compare_sorted(coffer__mscan_comparison *cmp, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    while (!status && !(is_done(&cmp->a) && is_done(&cmp->b))) {
        uint64_t a_count, b_count;
        status = choose_slab(&a_count, &b_count, cmp, err);
        if (!status)
            status = compare_slab(cmp, a_count, b_count, err);
    }
    return status;
}

/* ---- Common prefix ---- */

static size_t same_records(const uint8_t *a, const uint8_t *b, size_t count)
{
    if (memcmp(a, b, count * COFFER__MSCAN_RECORD_SIZE) == 0)
        return count;
    size_t same = 0;
    while (memcmp(a + same * COFFER__MSCAN_RECORD_SIZE, b + same * COFFER__MSCAN_RECORD_SIZE,
                  COFFER__MSCAN_RECORD_SIZE) == 0)
        same++;
    return same;
}

static coffer_status common_prefix(uint64_t *out, const coffer_mscan *a, const coffer_mscan *b,
                                   coffer_error *err)
{
    const size_t scratch_size = (size_t)COMPARE_BATCH * COFFER__MSCAN_RECORD_SIZE;
    uint64_t shorter = a->record_count < b->record_count ? a->record_count : b->record_count;
    uint64_t same = 0;
    coffer_status status = COFFER_OK;
    uint8_t *scratch = coffer__malloc(2 * scratch_size);
    if (!scratch)
        return coffer__fail_no_memory(err, 2 * scratch_size);
    while (same < shorter) {
        uint64_t left = shorter - same;
        size_t count = left < COMPARE_BATCH ? (size_t)left : COMPARE_BATCH;
        const uint8_t *records_a, *records_b;
        status = coffer__mscan_records(&records_a, a, same, count, scratch, err);
        if (!status)
            status = coffer__mscan_records(&records_b, b, same, count, scratch + scratch_size, err);
        if (status)
            break;
        size_t here = same_records(records_a, records_b, count);
        same += here;
        if (here < count)
            break;
    }
    coffer__free(scratch);
    if (!status)
        *out = same;
    return status;
}

/* Finds the first record of the token of `record`, the first record that differs. The records before it are
 * whole tokens. */
static coffer_status start_of_token(uint64_t *out, const coffer__mscan_comparison *cmp, uint64_t record,
                                    coffer_error *err)
{
    uint64_t token_a = UINT64_MAX, token_b = UINT64_MAX;
    coffer_status status = COFFER_OK;
    if (record < cmp->a.scan->record_count)
        status = token_of(&token_a, cmp->a.scan, record, err);
    if (!status && record < cmp->b.scan->record_count)
        status = token_of(&token_b, cmp->b.scan, record, err);
    if (status)
        return status;
    return count_before(out, &cmp->a, record, token_a < token_b ? token_a : token_b, err);
}

coffer_status coffer__mscan_compare_records(coffer__mscan_comparison *cmp, coffer_error *err)
{
    bool a_sorted, b_sorted;
    uint64_t same = 0;
    coffer_status status = COFFER_OK;
    uint64_t a_count = cmp->a.scan->record_count, b_count = cmp->b.scan->record_count;
    if (cmp->ids->identity)
        status = common_prefix(&same, cmp->a.scan, cmp->b.scan, err);
    if (!status && same == a_count && same == b_count) {
        cmp->equal = same;
        return COFFER_OK;
    }
    if (!status)
        status = coffer_mscan_is_sorted(&a_sorted, cmp->a.scan, err);
    if (!status)
        status = coffer_mscan_is_sorted(&b_sorted, cmp->b.scan, err);
    if (status)
        return status;
    if (!a_sorted || !b_sorted)
        return compare_slab(cmp, a_count, b_count, err);
    status = start_of_token(&same, cmp, same, err);
    if (status)
        return status;
    cmp->equal = cmp->a.next = cmp->b.next = same;
    return compare_sorted(cmp, err);
}
