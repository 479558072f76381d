#include "formats/mscan/mscan_keys.h"

#include "base/fail.h"
#include "base/memory.h"
#include "formats/mscan/mscan_kernel.h"
#include "formats/mscan/mscan_pass.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    case COFFER_MSCAN_BY_PARAM_BLOCK: /* mscan_stats.c */
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

#define MAX_LAYER (INT64_C(1) << 53) /* far past any model, and digits can be added without overflow */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool contains(const char *name, size_t len, const char *part)
{
    return memmem(name, len, part, strlen(part)) != NULL;
}

/* The number after the first "model.layers." that one follows. */
static bool find_number(int64_t *out, const char *name, size_t len)
{
    static const char prefix[] = "model.layers.";
    const char *end = name + len;
    while ((name = memmem(name, (size_t)(end - name), prefix, sizeof prefix - 1)) != NULL) {
        int64_t number = 0;
        name += sizeof prefix - 1;
        if (name == end || !is_digit(*name))
            continue;
        for (; name < end && is_digit(*name) && number < MAX_LAYER; name++)
            number = number * 10 + (*name - '0');
        *out = number;
        return number < MAX_LAYER;
    }
    return false;
}

int64_t coffer__mscan_layer_of_name(const char *name, size_t len)
{
    int64_t number;
    if (find_number(&number, name, len))
        return number;
    if (contains(name, len, "embed_tokens"))
        return -1;
    if (contains(name, len, "lm_head"))
        return COFFER__MSCAN_HEAD;
    if (contains(name, len, "model.norm"))
        return COFFER__MSCAN_NORM;
    return COFFER__MSCAN_NO_LAYER;
}

/* A number between two dots, for models whose layers are not called "model.layers": "blk.3.attn_q". */
static bool find_component(int64_t *out, const char *name, size_t len)
{
    const char *end = name + len;
    while (name < end) {
        const char *dot = memchr(name, '.', (size_t)(end - name));
        const char *stop = dot ? dot : end, *digit = name;
        int64_t number = 0;
        for (; digit < stop && is_digit(*digit) && number < MAX_LAYER; digit++)
            number = number * 10 + (*digit - '0');
        if (digit == stop && digit > name && dot) {
            *out = number;
            return true;
        }
        name = stop + 1;
    }
    return false;
}

typedef struct membership {
    int64_t layer;
    uint32_t param; /* id or index */
} membership;

static int compare_layers(const void *a, const void *b)
{
    const membership *x = a, *y = b;
    return (x->layer > y->layer) - (x->layer < y->layer);
}

coffer_status coffer__mscan_layers_new(coffer__mscan_layers **out, const coffer_mscan *scan,
                                       coffer_mscan_scope scope, coffer_error *err)
{
    const coffer__mscan_metadata *metadata = &scan->metadata;
    membership *members = coffer__alloc_array(COFFER__MSCAN_PARAM_IDS, sizeof *members);
    coffer__mscan_layers *layers = coffer__calloc(1, sizeof *layers);
    size_t count = 0;
    coffer_status status = COFFER_OK;

    if (!members || !layers) {
        coffer__free(layers);
        status = coffer__fail_no_memory(err, sizeof *layers + COFFER__MSCAN_PARAM_IDS * sizeof *members);
        goto out;
    }
    for (size_t i = 0; i < metadata->param_count; i++) {
        const coffer_mscan_param *param = &metadata->params[i];
        int64_t layer =
            scope == COFFER_MSCAN_SCOPE_LAYER ? coffer__mscan_layer_of_name(param->name, param->name_len) : 0;
        if (param->id < COFFER__MSCAN_PARAM_IDS && count < COFFER__MSCAN_PARAM_IDS &&
            layer != COFFER__MSCAN_NO_LAYER)
            members[count++] = (membership){ layer, (uint32_t)param->id };
    }
    qsort(members, count, sizeof *members, compare_layers);
    for (size_t i = 0; i < count; i++) {
        layers->count += i == 0 || members[i].layer != members[i - 1].layer;
        layers->of_param[members[i].param] = layers->count;
    }
    *out = layers;
out:
    coffer__free(members);
    return status;
}

/* ---- Layers to group by ---- */

static int64_t layer_to_show(const coffer_mscan_param *param)
{
    int64_t layer = coffer__mscan_layer_of_name(param->name, param->name_len);
    if (layer == COFFER__MSCAN_NO_LAYER)
        find_component(&layer, param->name, param->name_len);
    return layer;
}

static void name_layer(char out[24], int64_t layer)
{
    if (layer == COFFER__MSCAN_NORM || layer == COFFER__MSCAN_HEAD)
        snprintf(out, 24, "%s", layer == COFFER__MSCAN_NORM ? "norm" : "head");
    else if (layer < 0)
        snprintf(out, 24, "embed");
    else
        snprintf(out, 24, "%" PRId64, layer);
}

coffer_status coffer__mscan_find_layers(coffer_mscan *scan, coffer_error *err)
{
    const coffer__mscan_metadata *metadata = &scan->metadata;
    coffer__mscan_layer_list *layers = &scan->layers;
    size_t params = metadata->param_count, count = 0;
    membership *members = coffer__alloc_array(params + 1, sizeof *members);
    layers->names = coffer__alloc_array(params + 1, sizeof *layers->names);
    layers->of_param = coffer__alloc_array(params + 1, sizeof *layers->of_param);
    if (!members || !layers->names || !layers->of_param) {
        coffer__free(members);
        return coffer__fail_no_memory(err, (params + 1) * sizeof *layers->names);
    }
    for (size_t i = 0; i < params; i++) {
        int64_t layer = layer_to_show(&metadata->params[i]);
        layers->of_param[i] = UINT32_MAX;
        if (layer != COFFER__MSCAN_NO_LAYER)
            members[count++] = (membership){ layer, (uint32_t)i };
    }
    qsort(members, count, sizeof *members, compare_layers);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || members[i].layer != members[i - 1].layer)
            name_layer(layers->names[layers->count++], members[i].layer);
        layers->of_param[members[i].param] = (uint32_t)layers->count - 1;
    }
    snprintf(layers->names[layers->count], sizeof *layers->names, "other");
    for (size_t i = 0; i < params; i++) {
        if (layers->of_param[i] == UINT32_MAX)
            layers->of_param[i] = (uint32_t)layers->count;
    }
    layers->count++;
    coffer__free(members);
    return COFFER_OK;
}

size_t coffer_mscan_layer_count(const coffer_mscan *scan)
{
    return scan->layers.count;
}

const char *coffer_mscan_layer_name(const coffer_mscan *scan, size_t index)
{
    return index < scan->layers.count ? scan->layers.names[index] : NULL;
}

size_t coffer_mscan_layer_of_param(const coffer_mscan *scan, uint16_t param_id)
{
    uint32_t index = scan->metadata.param_index[param_id];
    return index ? scan->layers.of_param[index - 1] : scan->layers.count - 1;
}
