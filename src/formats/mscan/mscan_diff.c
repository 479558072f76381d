/* Two scans, record by record: aligned on (token, parameter, block), whatever the order of the records. Scans
 * that are sorted by token go through in slabs of whole tokens; others are sorted in memory first. */
#include "formats/mscan/mscan_diff.h"

#include "base/array.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "base/work.h"

#include <inttypes.h>
#include <stdlib.h>

#define SLAB_RECORDS ((uint64_t)1 << 16) /* of each scan, to begin with */
#define COMPARE_BATCH 16384              /* records compared as bytes at a time */
#define SMALL_SORT 32

/* A record with its place: token, parameter (of a) and block in one number. */
typedef struct keyed {
    uint64_t key;
    uint16_t value[2]; /* by coffer_mscan_metric */
} keyed;

typedef struct side {
    const coffer_mscan *scan;
    uint64_t next; /* first record that is not done */
    keyed *records, *scratch;
    size_t count;
} side;

typedef enum difference_kind {
    CHANGED,
    ONLY_IN_A,
    ONLY_IN_B,
    PARAM_ONLY_IN_B /* its parameter is not in a at all: the id is b's */
} difference_kind;

/* One to be listed. */
typedef struct difference {
    difference_kind kind;
    uint32_t token;
    uint16_t param, block;
    uint16_t value[2][2]; /* of a and b */
} difference;

typedef struct comparison {
    side a, b;
    size_t capacity; /* of each of the four arrays */
    const coffer__mscan_id_map *ids;
    coffer_diff_opts opts;
    coffer_limits limits;

    uint64_t equal, changed, only_in_a, only_in_b;
    uint64_t differing[2], sum[2]; /* by metric: records that differ by more than the tolerance; |a − b| */
    uint16_t largest[2];
    difference *shown;
    size_t shown_count, shown_capacity;
} comparison;

/* ---- Sorting ---- */

static void insertion_sort(keyed *records, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        keyed moving = records[i];
        size_t j = i;
        for (; j > 0 && records[j - 1].key > moving.key; j--)
            records[j] = records[j - 1];
        records[j] = moving;
    }
}

static bool is_ascending(const keyed *records, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (records[i].key < records[i - 1].key)
            return false;
    }
    return true;
}

/* Stable, in linear time: byte by byte from the lowest, those that are the same in all keys left out. */
static void sort_records(side *which)
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
        keyed *sorted = which->scratch;
        which->scratch = which->records;
        which->records = sorted;
    }
}

/* ---- Counting ---- */

static coffer_status show(comparison *cmp, difference what, coffer_error *err)
{
    if (cmp->shown_count >= cmp->opts.max_shown)
        return COFFER_OK;
    coffer_status status = coffer__array_reserve_one(&cmp->shown, &cmp->shown_capacity, cmp->shown_count,
                                                     sizeof *cmp->shown, err);
    if (status)
        return status;
    cmp->shown[cmp->shown_count++] = what;
    return COFFER_OK;
}

static difference difference_at(difference_kind kind, uint64_t key)
{
    return (difference){
        .kind = kind, .token = (uint32_t)(key >> 32), .param = (uint16_t)(key >> 16), .block = (uint16_t)key
    };
}

static coffer_status count_single(comparison *cmp, difference_kind kind, const keyed *record,
                                  coffer_error *err)
{
    difference what = difference_at(kind, record->key);
    memcpy(what.value[kind != ONLY_IN_A], record->value, sizeof record->value);
    ++*(kind == ONLY_IN_A ? &cmp->only_in_a : &cmp->only_in_b);
    return show(cmp, what, err);
}

static coffer_status count_pair(comparison *cmp, const keyed *a, const keyed *b, coffer_error *err)
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
    difference what = difference_at(CHANGED, a->key);
    memcpy(what.value[0], a->value, sizeof a->value);
    memcpy(what.value[1], b->value, sizeof b->value);
    return show(cmp, what, err);
}

/* Both sides are sorted. Where a key stands several times, the first is compared with the first, and so on.
 */
static coffer_status merge(comparison *cmp, coffer_error *err)
{
    const keyed *a = cmp->a.records, *a_end = a + cmp->a.count;
    const keyed *b = cmp->b.records, *b_end = b + cmp->b.count;
    coffer_status status = COFFER_OK;
    while (!status && a < a_end && b < b_end) {
        if (a->key == b->key)
            status = count_pair(cmp, a++, b++, err);
        else if (a->key < b->key)
            status = count_single(cmp, ONLY_IN_A, a++, err);
        else
            status = count_single(cmp, ONLY_IN_B, b++, err);
    }
    while (!status && a < a_end)
        status = count_single(cmp, ONLY_IN_A, a++, err);
    while (!status && b < b_end)
        status = count_single(cmp, ONLY_IN_B, b++, err);
    return status;
}

/* ---- Slabs ---- */

static coffer_status reserve(comparison *cmp, uint64_t count, coffer_error *err)
{
    keyed **arrays[4] = { &cmp->a.records, &cmp->a.scratch, &cmp->b.records, &cmp->b.scratch };
    uint64_t bytes = count * sizeof(keyed);
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

/* Takes the next `count` records in. Those of parameters that only b has are counted and left out. */
static coffer_status load(comparison *cmp, side *which, uint64_t count, coffer_error *err)
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
            keyed record = { place, { batch[i].activation, batch[i].grad_norm } };
            if (param == COFFER__MSCAN_ONLY_B) {
                record.key |= (uint64_t)batch[i].param_id << 16;
                status = count_single(cmp, PARAM_ONLY_IN_B, &record, err);
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

static coffer_status compare_slab(comparison *cmp, uint64_t a_count, uint64_t b_count, coffer_error *err)
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

/* Which tokens are whole within the next `window` records: all before *end. */
static coffer_status whole_tokens(uint64_t *end, const side *which, uint64_t window, coffer_error *err)
{
    if (window >= which->scan->record_count - which->next) {
        *end = UINT64_MAX;
        return COFFER_OK;
    }
    return token_of(end, which->scan, which->next + window - 1, err);
}

/* How many records from which->next on, of the next `window`, have a token before `end`. */
static coffer_status count_before(uint64_t *count, const side *which, uint64_t window, uint64_t end,
                                  coffer_error *err)
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

/* The next slab: whole tokens of both scans. The window grows until it holds at least one. */
static coffer_status choose_slab(uint64_t *a_count, uint64_t *b_count, const comparison *cmp,
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

static bool is_done(const side *which)
{
    return which->next >= which->scan->record_count;
}

static coffer_status compare_sorted(comparison *cmp, coffer_error *err)
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

/* ---- What is the same from the start on ---- */

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
        status = coffer__mscan_fetch(&records_a, a->source, a->record_area, same, count, scratch, err);
        if (!status)
            status = coffer__mscan_fetch(&records_b, b->source, b->record_area, same, count,
                                         scratch + scratch_size, err);
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

/* Goes back from the first record that differs to the first of its token: what lies before is whole tokens.
 */
static coffer_status start_of_token(uint64_t *out, const comparison *cmp, uint64_t record, coffer_error *err)
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

static coffer_status compare_records(comparison *cmp, coffer_error *err)
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

/* ---- The result ---- */

static void put_values(coffer_node *map, const char *const names[2], const uint16_t *values)
{
    for (unsigned metric = 0; metric < 2; metric++) {
        if (values)
            coffer__node_u64(map, names[metric], values[metric], COFFER_UNIT_NONE);
        else
            coffer__node_null(map, names[metric]);
    }
}

static void put_difference(coffer_node *list, const comparison *cmp, const difference *what)
{
    static const char *const kinds[] = { "changed", "only-in-a", "only-in-b", "only-in-b" };
    static const char *const names_a[2] = { "activation_a", "grad_norm_a" };
    static const char *const names_b[2] = { "activation_b", "grad_norm_b" };
    const coffer_mscan *named_by = what->kind == PARAM_ONLY_IN_B ? cmp->b.scan : cmp->a.scan;
    const char *name = coffer_mscan_param_name(named_by, what->param);
    coffer_node *map = coffer__node_map(list, NULL);
    coffer__node_text(map, "kind", kinds[what->kind]);
    coffer__node_u64(map, "token", what->token, COFFER_UNIT_NONE);
    if (name)
        coffer__node_text(map, "param", name);
    else
        coffer__node_printf(map, "param", "param %u", what->param);
    coffer__node_u64(map, "block", what->block, COFFER_UNIT_NONE);
    put_values(map, names_a, what->kind >= ONLY_IN_B ? NULL : what->value[0]);
    put_values(map, names_b, what->kind == ONLY_IN_A ? NULL : what->value[1]);
}

static void put_metric(coffer_node *out, const char *name, const comparison *cmp, unsigned metric)
{
    uint64_t pairs = cmp->equal + cmp->changed;
    coffer_node *map = coffer__node_map(out, name);
    coffer__node_u64(map, "changed", cmp->differing[metric], COFFER_UNIT_NONE);
    coffer__node_u64(map, "max_difference", cmp->largest[metric], COFFER_UNIT_NONE);
    coffer__node_f64(map, "mean_difference", pairs ? (double)cmp->sum[metric] / (double)pairs : 0.0,
                     COFFER_UNIT_NONE);
}

static void put_result(coffer_node *out, const comparison *cmp, const coffer__node_changes *changes)
{
    bool same_records_all = cmp->changed + cmp->only_in_a + cmp->only_in_b == 0;
    coffer__node_bool(out, "equal", same_records_all && changes->count == 0);
    coffer__node_u64(out, "metadata_differences", changes->count, COFFER_UNIT_NONE);
    coffer_node *records = coffer__node_map(out, "records");
    coffer__node_u64(records, "a", cmp->a.scan->record_count, COFFER_UNIT_NONE);
    coffer__node_u64(records, "b", cmp->b.scan->record_count, COFFER_UNIT_NONE);
    coffer__node_u64(records, "equal", cmp->equal, COFFER_UNIT_NONE);
    coffer__node_u64(records, "changed", cmp->changed, COFFER_UNIT_NONE);
    coffer__node_u64(records, "only_in_a", cmp->only_in_a, COFFER_UNIT_NONE);
    coffer__node_u64(records, "only_in_b", cmp->only_in_b, COFFER_UNIT_NONE);
    put_metric(out, "activation", cmp, COFFER_MSCAN_ACTIVATION);
    put_metric(out, "grad_norm", cmp, COFFER_MSCAN_GRAD_NORM);
    coffer_node_add_copy(out, "metadata", changes->list);
    coffer_node *list = coffer__node_list(out, "differences");
    for (size_t i = 0; i < cmp->shown_count; i++)
        put_difference(list, cmp, &cmp->shown[i]);
}

static void comparison_free(comparison *cmp)
{
    coffer__free(cmp->a.records);
    coffer__free(cmp->a.scratch);
    coffer__free(cmp->b.records);
    coffer__free(cmp->b.scratch);
    coffer__free(cmp->shown);
}

coffer_status coffer__mscan_diff(coffer_node *out, coffer_source *a, coffer_source *b,
                                 const coffer_diff_opts *opts, coffer_error *err)
{
    comparison cmp = { .opts = COFFER_DIFF_OPTS_INIT };
    coffer_node *found = NULL;
    coffer_mscan *scan_a = NULL, *scan_b = NULL;
    coffer_mscan_open_opts open_opts = COFFER_MSCAN_OPEN_OPTS_INIT;
    coffer__copy_options(&cmp.opts, sizeof cmp.opts, opts);
    cmp.limits = coffer__limits(cmp.opts.limits);
    open_opts.limits = &cmp.limits;
    coffer__mscan_id_map *ids = coffer__malloc(sizeof *ids);
    coffer_status status = ids ? COFFER_OK : coffer__fail_no_memory(err, sizeof *ids);
    if (!status)
        status = coffer_mscan_open(&scan_a, a, &open_opts, err);
    if (status)
        goto out;
    status = coffer__fail_input(err, coffer_mscan_open(&scan_b, b, &open_opts, err), coffer_source_name(b));
    if (status)
        goto out;
    status = coffer_node_new(&found, err);
    if (status)
        goto out;
    coffer__node_changes changes = coffer__node_changes_new(found, cmp.opts.max_shown);
    status = coffer__mscan_diff_metadata(&changes, ids, scan_a, scan_b, err);
    if (status)
        goto out;
    cmp.ids = ids;
    cmp.a.scan = scan_a;
    cmp.b.scan = scan_b;
    status = compare_records(&cmp, err);
    if (!status)
        status = coffer_source_intact(a, err);
    if (!status)
        status = coffer__fail_input(err, coffer_source_intact(b, err), coffer_source_name(b));
    if (status)
        goto out;
    put_result(out, &cmp, &changes);
    status = coffer__node_status(out, err);
out:
    comparison_free(&cmp);
    coffer_node_free(found);
    coffer_mscan_close(scan_a);
    coffer_mscan_close(scan_b);
    coffer__free(ids);
    return status;
}
