#include "formats/mscan/mscan_metadata.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "formats/mscan/mscan_layout.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

coffer_status coffer__mscan_refuse(coffer__mscan_loader *load, coffer_status code, const char *format, ...)
{
    char text[sizeof load->err->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!load->report)
        return coffer__fail(load->err, code, load->base, "%s", text);
    coffer__report_add(load->report, code, COFFER_ERROR, load->base, "%s", text);
    return COFFER_OK;
}

const char *coffer__mscan_kind_name(const coffer__json_value *value)
{
    static const char *const names[] = {
        [COFFER__JSON_NULL] = "null",
        [COFFER__JSON_BOOL] = "a boolean",
        [COFFER__JSON_U64] = "a number",
        [COFFER__JSON_I64] = "a negative number",
        [COFFER__JSON_F64] = "a number with a fraction",
        [COFFER__JSON_NUMBER] = "a number out of range",
        [COFFER__JSON_STRING] = "a string",
        [COFFER__JSON_ARRAY] = "an array",
        [COFFER__JSON_OBJECT] = "an object",
    };
    return value ? names[value->kind] : "missing";
}

static bool is_kind(const coffer__json_value *value, coffer__json_kind kind)
{
    return value && value->kind == kind;
}

static void load_model_name(coffer__mscan_loader *load)
{
    const coffer__json_value *name = coffer__json_find(load->out->root, "model_name");
    load->out->model_name = "";
    if (is_kind(name, COFFER__JSON_STRING)) {
        load->out->model_name = name->as.string;
        load->out->model_name_len = name->string_len;
    } else if (load->report) {
        coffer__report_add(load->report, name ? COFFER_E_BAD_VALUE : COFFER_E_MISSING,
                           name ? COFFER_WARNING : COFFER_NOTE, load->base, "model_name is %s%s",
                           coffer__mscan_kind_name(name), name ? ", not a string" : "");
    }
}

static void check_format_version(coffer__mscan_loader *load)
{
    const coffer__json_value *version = coffer__json_find(load->out->root, "format_version");
    if (!load->report || (is_kind(version, COFFER__JSON_STRING) && strncmp(version->as.string, "1.", 2) == 0))
        return;
    if (is_kind(version, COFFER__JSON_STRING))
        coffer__report_add(load->report, COFFER_E_BAD_VALUE, COFFER_NOTE, load->base,
                           "format_version is \"%s\"; 1.1 is the one known", version->as.string);
    else
        coffer__report_add(load->report, version ? COFFER_E_BAD_VALUE : COFFER_E_MISSING, COFFER_NOTE,
                           load->base, "format_version is %s", coffer__mscan_kind_name(version));
}

/* ---- Sequences ---- */

static uint64_t id_after_the_last(const coffer__mscan_metadata *metadata)
{
    return metadata->sequence_count ? metadata->sequences[metadata->sequence_count - 1].sequence_id + 1 : 0;
}

static coffer_status load_sequence(coffer__mscan_loader *load, const coffer__json_value *value,
                                   uint64_t position)
{
    coffer__mscan_metadata *out = load->out;
    const coffer__json_value *source = coffer__json_find(value, "source");
    coffer_mscan_sequence sequence = { .first_token = out->total_tokens };
    uint64_t total;

    if (value->kind != COFFER__JSON_OBJECT)
        return coffer__mscan_refuse(load, COFFER_E_BAD_VALUE, "sequence %" PRIu64 " is %s, not an object",
                                    position, coffer__mscan_kind_name(value));
    if (!coffer__json_u64(&sequence.sequence_id, coffer__json_find(value, "sequence_id"))) {
        coffer_status status =
            coffer__mscan_refuse(load, COFFER_E_BAD_VALUE,
                                 "sequence_id of sequence %" PRIu64 " is %s, not a whole number", position,
                                 coffer__mscan_kind_name(coffer__json_find(value, "sequence_id")));
        if (status)
            return status;
        sequence.sequence_id = id_after_the_last(out); /* left out, its tokens would pass to the next one */
    }
    if (!coffer__json_u64(&sequence.num_tokens, coffer__json_find(value, "num_tokens")))
        return coffer__mscan_refuse(load, COFFER_E_BAD_VALUE,
                                    "num_tokens of sequence %" PRIu64 " is %s, not a whole number", position,
                                    coffer__mscan_kind_name(coffer__json_find(value, "num_tokens")));
    if (!coffer__add_u64(&total, out->total_tokens, sequence.num_tokens))
        return coffer__mscan_refuse(load, COFFER_E_BAD_VALUE,
                                    "num_tokens %" PRIu64 " of sequence %" PRIu64
                                    " takes the total past 64 bits",
                                    sequence.num_tokens, position);
    if (source && source->kind != COFFER__JSON_STRING && source->kind != COFFER__JSON_NULL && load->report)
        coffer__report_add(load->report, COFFER_E_BAD_VALUE, COFFER_WARNING, load->base,
                           "source of sequence %" PRIu64 " is %s, not a string", position,
                           coffer__mscan_kind_name(source));
    if (is_kind(source, COFFER__JSON_STRING)) {
        sequence.source = source->as.string;
        sequence.source_len = source->string_len;
    }
    out->sequence_values[out->sequence_count] = value;
    out->sequences[out->sequence_count++] = sequence;
    out->total_tokens = total;
    return COFFER_OK;
}

static int compare_u64(const void *left, const void *right)
{
    uint64_t a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a > b) - (a < b);
}

static coffer_status report_duplicates(coffer__mscan_loader *load)
{
    const coffer__mscan_metadata *out = load->out;
    uint64_t *ids = coffer__alloc_array(out->sequence_count, sizeof *ids);
    uint64_t twice = 0, first = 0;
    if (!ids)
        return coffer__fail_no_memory(load->err, out->sequence_count * sizeof *ids);
    for (size_t i = 0; i < out->sequence_count; i++)
        ids[i] = out->sequences[i].sequence_id;
    qsort(ids, out->sequence_count, sizeof *ids, compare_u64);
    for (size_t i = 1; i < out->sequence_count; i++) {
        if (ids[i] == ids[i - 1] && twice++ == 0)
            first = ids[i];
    }
    coffer__free(ids);
    if (twice > 0)
        coffer__report_add(load->report, COFFER_E_DUPLICATE, COFFER_ERROR, load->base,
                           "sequence_id %" PRIu64 " is used more than once (%" PRIu64 " repeated in all)",
                           first, twice);
    return COFFER_OK;
}

/* A reader can live with ids that repeat or jump back, so only a report hears of them. */
static coffer_status check_sequence_ids(coffer__mscan_loader *load)
{
    const coffer__mscan_metadata *out = load->out;
    uint64_t backward = 0, flat = 0, first = 0, gaps = 0, first_gap = 0;
    for (size_t i = 1; i < out->sequence_count; i++) {
        uint64_t before = out->sequences[i - 1].sequence_id, here = out->sequences[i].sequence_id;
        if (here < before && backward++ == 0)
            first = i;
        flat += here == before;
        if (here > before && here - before > 1 && gaps++ == 0)
            first_gap = i;
    }
    if (gaps > 0)
        coffer__report_add(load->report, COFFER_E_INCONSISTENT, COFFER_NOTE, load->base,
                           "sequence_id %" PRIu64 " follows %" PRIu64
                           ": the ids between are missing (%" PRIu64 " gaps in all)",
                           out->sequences[first_gap].sequence_id, out->sequences[first_gap - 1].sequence_id,
                           gaps);
    if (backward > 0)
        coffer__report_add(load->report, COFFER_E_NOT_SORTED, COFFER_ERROR, load->base,
                           "sequence_id %" PRIu64 " comes after %" PRIu64 " (%" PRIu64
                           " out of order in all)",
                           out->sequences[first].sequence_id, out->sequences[first - 1].sequence_id,
                           backward);
    return backward + flat > 0 ? report_duplicates(load) : COFFER_OK;
}

static coffer_status load_sequences(coffer__mscan_loader *load)
{
    coffer__mscan_metadata *out = load->out;
    const coffer__json_value *list = coffer__json_find(out->root, "sequences");
    const coffer__json_value *value;
    uint64_t position = 0;

    if (!list)
        return COFFER_OK;
    if (list->kind != COFFER__JSON_ARRAY)
        return coffer__mscan_refuse(load, COFFER_E_BAD_VALUE, "\"sequences\" is %s, not an array",
                                    coffer__mscan_kind_name(list));
    if (list->as.count > load->limits->entries)
        return coffer__fail(load->err, COFFER_E_LIMIT, load->base,
                            "%" PRIu64 " sequences, the limit is %" PRIu64, list->as.count,
                            load->limits->entries);
    out->sequences = coffer__alloc_array((size_t)list->as.count, sizeof *out->sequences);
    out->sequence_values = coffer__alloc_array((size_t)list->as.count, sizeof(coffer__json_value *));
    if (!out->sequences || !out->sequence_values)
        return coffer__fail_no_memory(load->err, list->as.count * sizeof *out->sequences);
    for (value = coffer__json_first(list); value; value = coffer__json_next(list, value)) {
        coffer_status status = load_sequence(load, value, position++);
        if (status)
            return status;
    }
    if (load->report && out->total_tokens > COFFER__MSCAN_MAX_TOKENS)
        coffer__report_add(load->report, COFFER_E_BAD_VALUE, COFFER_WARNING, load->base,
                           "%" PRIu64 " tokens in all, but token_idx can reach only the first 2^32",
                           out->total_tokens);
    return load->report ? check_sequence_ids(load) : COFFER_OK;
}

/* ---- Parameters ---- */

bool coffer__mscan_parse_id(uint64_t *out, const char *key, size_t len)
{
    uint64_t value = 0;
    if (len == 0 || (len > 1 && key[0] == '0'))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (key[i] < '0' || key[i] > '9' || !coffer__mul_u64(&value, value, 10) ||
            !coffer__add_u64(&value, value, (uint64_t)(key[i] - '0')))
            return false;
    }
    *out = value;
    return true;
}

static int compare_params(const void *left, const void *right)
{
    const coffer_mscan_param *a = left, *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

static coffer_status collect_params(coffer__mscan_loader *load, const coffer__json_value *map)
{
    coffer__mscan_metadata *out = load->out;
    const coffer__json_value *value;
    bool ascending = true;

    for (value = coffer__json_first(map); value; value = coffer__json_next(map, value)) {
        coffer_mscan_param param = { 0 };
        coffer_status status = COFFER_OK;
        if (!coffer__mscan_parse_id(&param.id, value->key, value->key_len))
            status =
                coffer__mscan_refuse(load, COFFER_E_BAD_VALUE,
                                     "parameter id \"%.40s\" is not a decimal number without leading zeros",
                                     value->key);
        else if (value->kind != COFFER__JSON_STRING)
            status = coffer__mscan_refuse(load, COFFER_E_BAD_VALUE,
                                          "the name of parameter %" PRIu64 " is %s, not a string", param.id,
                                          coffer__mscan_kind_name(value));
        else {
            param.name = value->as.string;
            param.name_len = value->string_len;
            ascending &= out->param_count == 0 || out->params[out->param_count - 1].id < param.id;
            out->params[out->param_count++] = param;
        }
        if (status)
            return status;
    }
    if (!ascending)
        qsort(out->params, out->param_count, sizeof *out->params, compare_params);
    return COFFER_OK;
}

static void index_params(coffer__mscan_loader *load)
{
    coffer__mscan_metadata *out = load->out;
    size_t i;
    for (i = 0; i < out->param_count && out->params[i].id < COFFER__MSCAN_PARAM_IDS; i++)
        out->param_index[out->params[i].id] = (uint32_t)i + 1;
    if (load->report && i < out->param_count)
        coffer__report_add(load->report, COFFER_E_BAD_VALUE, COFFER_WARNING, load->base,
                           "%" PRIu64 " parameter ids from %" PRIu64
                           " on are past 65535: no record can name them",
                           (uint64_t)(out->param_count - i), out->params[i].id);
}

static coffer_status load_params(coffer__mscan_loader *load)
{
    coffer__mscan_metadata *out = load->out;
    const coffer__json_value *map = coffer__json_find(out->root, "id_to_param_name_map");
    coffer_status status;

    out->param_index = coffer__calloc(COFFER__MSCAN_PARAM_IDS, sizeof *out->param_index);
    if (!out->param_index)
        return coffer__fail_no_memory(load->err, COFFER__MSCAN_PARAM_IDS * sizeof *out->param_index);
    if (!map && load->report)
        coffer__report_add(load->report, COFFER_E_MISSING, COFFER_WARNING, load->base,
                           "id_to_param_name_map is missing: no parameter has a name");
    if (!map)
        return COFFER_OK;
    if (map->kind != COFFER__JSON_OBJECT)
        return coffer__mscan_refuse(load, COFFER_E_BAD_VALUE, "id_to_param_name_map is %s, not an object",
                                    coffer__mscan_kind_name(map));
    if (map->as.count > load->limits->entries || map->as.count >= UINT32_MAX)
        return coffer__fail(load->err, COFFER_E_LIMIT, load->base,
                            "%" PRIu64 " parameters, the limit is %" PRIu64, map->as.count,
                            load->limits->entries);
    out->params = coffer__alloc_array((size_t)map->as.count, sizeof *out->params);
    if (!out->params)
        return coffer__fail_no_memory(load->err, map->as.count * sizeof *out->params);
    status = collect_params(load, map);
    if (!status)
        index_params(load);
    return status;
}

/* ---- All of it ---- */

size_t coffer__mscan_trimmed_length(const char *text, size_t len)
{
    while (len > 0 &&
           (text[len - 1] == ' ' || text[len - 1] == '\n' || text[len - 1] == '\r' || text[len - 1] == '\t'))
        len--;
    return len;
}

coffer_status coffer__mscan_metadata_load(coffer__mscan_metadata *out, char *text, size_t len, uint64_t base,
                                          const coffer_limits *limits, coffer_report *report,
                                          coffer_error *err)
{
    coffer__mscan_metadata metadata = { .text = text };
    coffer__mscan_loader load = { &metadata, limits, base, report, err };
    coffer_status status;

    metadata.text_len = coffer__mscan_trimmed_length(text, len);
    text[metadata.text_len] = '\0';
    status = coffer__json_parse(&metadata.json, text, metadata.text_len, base, limits, err);
    if (status)
        goto out;
    metadata.root = coffer__json_root(metadata.json);
    if (metadata.root->kind != COFFER__JSON_OBJECT) {
        status = coffer__fail(err, COFFER_E_BAD_JSON, base, "the metadata is %s, not an object",
                              coffer__mscan_kind_name(metadata.root));
        goto out;
    }
    load_model_name(&load);
    check_format_version(&load);
    status = load_params(&load);
    if (!status)
        status = load_sequences(&load);
    if (!status)
        status = coffer__mscan_load_scales(&load, COFFER_MSCAN_ACTIVATION, "activation");
    if (!status)
        status = coffer__mscan_load_scales(&load, COFFER_MSCAN_GRAD_NORM, "grad_norm");
    if (!status)
        status = coffer__mscan_load_marks(&load);
    if (status)
        goto out;
    *out = metadata;
    return COFFER_OK;
out:
    coffer__mscan_metadata_free(&metadata);
    return status;
}

void coffer__mscan_metadata_free(coffer__mscan_metadata *metadata)
{
    coffer__free(metadata->text);
    coffer__json_free(metadata->json);
    coffer__free(metadata->sequences);
    coffer__free(metadata->sequence_values);
    coffer__free(metadata->params);
    coffer__free(metadata->param_index);
    coffer__free(metadata->marks);
    coffer__free(metadata->scales[0].values);
    coffer__free(metadata->scales[1].values);
    memset(metadata, 0, sizeof *metadata);
}
