#include "formats/mscan/mscan_keys.h"

#include "base/fail.h"
#include "base/memory.h"
#include "formats/mscan/mscan_kernel.h"
#include "formats/mscan/mscan_pass.h"

typedef struct token_range {
    uint32_t low, high;
    bool any;
} token_range;

static void widen(token_range *range, uint32_t low, uint32_t high)
{
    range->low = !range->any || low < range->low ? low : range->low;
    range->high = !range->any || high > range->high ? high : range->high;
    range->any = true;
}

static void visit_tokens(void *context, uint32_t worker, const uint8_t *records, size_t count)
{
    token_range *ranges = context;
    uint32_t low = UINT32_MAX, high = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t token = coffer__mscan_load_token(records + i * COFFER__MSCAN_RECORD_SIZE);
        low = token < low ? token : low;
        high = token > high ? token : high;
    }
    if (count > 0)
        widen(&ranges[worker], low, high);
}

static coffer_status range_of_unsorted(token_range *out, const coffer__mscan_selection *selection,
                                       const coffer_mscan_stats_opts *query, coffer_error *err)
{
    coffer__mscan_pass pass = { .selection = selection, .visit = visit_tokens };
    token_range *ranges;
    coffer_status status;
    pass.threads = coffer__mscan_pass_threads(selection, query->threads, UINT32_MAX);
    ranges = coffer__calloc(pass.threads, sizeof *ranges);
    if (!ranges)
        return coffer__fail_no_memory(err, pass.threads * sizeof *ranges);
    pass.context = ranges;
    status = coffer__mscan_pass_run(&pass, err);
    for (uint32_t i = 0; !status && i < pass.threads; i++) {
        if (ranges[i].any)
            widen(out, ranges[i].low, ranges[i].high);
    }
    coffer__free(ranges);
    return status;
}

static coffer_status range_of_sorted(token_range *out, const coffer__mscan_selection *selection,
                                     coffer_error *err)
{
    coffer_mscan_record first, last;
    if (selection->count == 0)
        return COFFER_OK;
    coffer_status status = coffer_mscan_read(&first, selection->scan, selection->first, 1, err);
    if (!status)
        status = coffer_mscan_read(&last, selection->scan, selection->first + selection->count - 1, 1, err);
    if (!status)
        widen(out, first.token_idx, last.token_idx);
    return status;
}

static coffer_status find_token_keys(coffer__mscan_keys *out, coffer__mscan_selection *selection,
                                     const coffer_mscan_stats_opts *query, coffer_error *err)
{
    token_range range = { 0, 0, false };
    coffer_status status = coffer_mscan_is_sorted(&selection->sorted, selection->scan, err);
    if (status)
        return status;
    status = selection->sorted ? range_of_sorted(&range, selection, err)
                               : range_of_unsorted(&range, selection, query, err);
    if (status)
        return status;
    out->at = COFFER__MSCAN_TOKEN_AT;
    out->base = range.low;
    out->count = range.any ? (uint64_t)range.high - range.low + 1 : 0;
    return COFFER_OK;
}

coffer_status coffer__mscan_keys_find(coffer__mscan_keys *out, coffer__mscan_selection *selection,
                                      const coffer_mscan_stats_opts *query, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    *out = (coffer__mscan_keys){
        .scan = selection->scan,
        .by = query->by,
        .count = COFFER__MSCAN_KEYS,
        .at = COFFER__MSCAN_PARAM_AT,
        .in_record = true,
    };
    switch (query->by) {
    case COFFER_MSCAN_BY_ALL:
        out->in_record = false;
        out->count = 1;
        break;
    case COFFER_MSCAN_BY_PARAM:
        break;
    case COFFER_MSCAN_BY_BLOCK:
        out->at = COFFER__MSCAN_BLOCK_AT;
        break;
    case COFFER_MSCAN_BY_TOKEN:
        status = find_token_keys(out, selection, query, err);
        break;
    case COFFER_MSCAN_BY_PARAM_BLOCK: /* mscan_stats_folded.c */
    case COFFER_MSCAN_BY_LAYER:
        break;
    case COFFER_MSCAN_BY_SEQUENCE:
        out->in_record = false;
        out->count = selection->scan->metadata.sequence_count;
        if (out->count > COFFER__MSCAN_KEYS)
            status = coffer_mscan_is_sorted(&selection->sorted, selection->scan, err);
        break;
    default:
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "no such grouping: %d",
                            (int)query->by);
    }
    return status;
}

bool coffer__mscan_key_of(coffer__mscan_key_span *out, const coffer__mscan_keys *keys, uint32_t token)
{
    const coffer__mscan_metadata *metadata = &keys->scan->metadata;
    size_t sequence;
    *out = (coffer__mscan_key_span){ token, token, (uint64_t)token + 1 };
    if (keys->by == COFFER_MSCAN_BY_TOKEN)
        return true;
    if (keys->by == COFFER_MSCAN_BY_ALL) {
        *out = (coffer__mscan_key_span){ 0, 0, UINT64_MAX };
        return true;
    }
    sequence = coffer_mscan_sequence_of_token(keys->scan, token);
    if (sequence == COFFER_INDEX_NONE) {
        *out = (coffer__mscan_key_span){ 0, metadata->total_tokens, UINT64_MAX };
        return false;
    }
    out->key = sequence;
    out->begin = metadata->sequences[sequence].first_token;
    out->end = out->begin + metadata->sequences[sequence].num_tokens;
    return true;
}

size_t coffer__mscan_span_records(const coffer__mscan_key_span *span, const uint8_t *records, size_t count)
{
    uint64_t width = span->end - span->begin;
    size_t i = 0;
    while (i < count &&
           coffer__mscan_load_token(records + i * COFFER__MSCAN_RECORD_SIZE) - span->begin < width)
        i++;
    return i;
}
