#include "formats/mscan/mscan_select.h"

#include "base/fail.h"
#include "base/glob.h"

#include <string.h>

static void select_params(coffer__mscan_selection *out, const char *param_glob)
{
    const coffer__mscan_metadata *metadata = &out->scan->metadata;
    out->by_param = param_glob != NULL;
    memset(out->params, out->by_param ? 0 : 0xFF, sizeof out->params);
    for (size_t i = 0; out->by_param && i < metadata->param_count; i++) {
        const coffer_mscan_param *param = &metadata->params[i];
        if (param->id < COFFER__MSCAN_PARAM_IDS &&
            coffer__glob_match(param_glob, param->name, param->name_len))
            out->params[param->id / 64] |= UINT64_C(1) << (param->id % 64);
    }
}

static coffer_status select_tokens(coffer__mscan_selection *out, coffer_error *err)
{
    coffer_status status;
    if (out->token_begin == 0 && out->token_end >= COFFER__MSCAN_MAX_TOKENS)
        return COFFER_OK;
    status = coffer_mscan_is_sorted(&out->sorted, out->scan, err);
    if (!status && out->sorted)
        status = coffer_mscan_find_tokens(&out->first, &out->count, out->scan, out->token_begin,
                                          out->token_end, err);
    out->by_token = !out->sorted;
    return status;
}

coffer_status coffer__mscan_select(coffer__mscan_selection *out, const coffer_mscan *scan,
                                   const char *param_glob, uint64_t begin, uint64_t end, size_t sequence,
                                   coffer_error *err)
{
    memset(out, 0, sizeof *out);
    out->scan = scan;
    out->count = scan->record_count;
    out->token_begin = begin;
    out->token_end = end;
    if (sequence != COFFER_INDEX_NONE) {
        if (sequence >= scan->metadata.sequence_count)
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "sequence %zu asked for, the scan has %zu", sequence,
                                scan->metadata.sequence_count);
        const coffer_mscan_sequence *only = &scan->metadata.sequences[sequence];
        uint64_t last = only->first_token + only->num_tokens;
        out->token_begin = begin > only->first_token ? begin : only->first_token;
        out->token_end = end < last ? end : last;
    }
    if (out->token_end < out->token_begin)
        out->token_end = out->token_begin;
    select_params(out, param_glob);
    return select_tokens(out, err);
}

coffer_status coffer__mscan_select_query(coffer__mscan_selection *out, const coffer_mscan *scan,
                                         const coffer_mscan_stats_opts *query, coffer_error *err)
{
    return coffer__mscan_select(out, scan, query->param_glob, query->token_begin, query->token_end,
                                query->sequence, err);
}

size_t coffer__mscan_pack(uint8_t *out, const coffer__mscan_selection *selection, const uint8_t *records,
                          size_t count)
{
    const uint8_t *end = records + count * COFFER__MSCAN_RECORD_SIZE;
    uint64_t span = selection->by_token ? selection->token_end - selection->token_begin : UINT64_MAX;
    uint64_t begin = selection->by_token ? selection->token_begin : 0;
    size_t kept = 0;
    for (const uint8_t *at = records; at < end; at += COFFER__MSCAN_RECORD_SIZE) {
        /* Every record is written, and the next one over it unless it is kept: no branch to mispredict. */
        memcpy(out + kept * COFFER__MSCAN_RECORD_SIZE, at, COFFER__MSCAN_RECORD_SIZE);
        kept += (size_t)coffer__mscan_has_param(selection, coffer__mscan_load_param(at)) &
                (size_t)(coffer__mscan_load_token(at) - begin < span);
    }
    return kept;
}
