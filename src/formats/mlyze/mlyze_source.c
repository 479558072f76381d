/* Single values of the metadata, and the file of another program that a trace was made of. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mlyze/mlyze_private.h"

#include <math.h>

static const char *text_of(const coffer__json_value *object, const char *key)
{
    const coffer__json_value *value = object ? coffer__json_find(object, key) : NULL;
    return value && value->kind == COFFER__JSON_STRING ? value->as.string : NULL;
}

/* Absent means `otherwise`. */
static bool is_true(const coffer__json_value *object, const char *key, bool otherwise)
{
    const coffer__json_value *value = object ? coffer__json_find(object, key) : NULL;
    return value && value->kind == COFFER__JSON_BOOL ? value->as.boolean : otherwise;
}

/* Version 0.1 kept the names that valgrind's tools use. */
static const char *unit_of(const coffer__json_value *source)
{
    const char *unit = text_of(source, "time_unit");
    if (!unit || strcmp(unit, "ms") == 0)
        return NULL;
    if (strcmp(unit, "i") == 0 || strcmp(unit, "instrs") == 0)
        return "instructions";
    return strcmp(unit, "B") == 0 ? "allocated bytes" : unit;
}

coffer_status coffer_mlyze_source_of(coffer_mlyze_source_info *out, const coffer_mlyze *trace,
                                     coffer_error *err)
{
    coffer_mlyze_source_info info = COFFER_MLYZE_SOURCE_INFO_INIT;
    const coffer__json_value *source = coffer__json_find(coffer__json_root(trace->metadata.json), "source");
    if (source && source->kind != COFFER__JSON_OBJECT)
        source = NULL;
    const coffer__json_value *blocks = source ? coffer__json_find(source, "blocks_per_event") : NULL;
    info.format = text_of(source, "format");
    info.synthetic = is_true(source, "synthetic", false);
    info.time_unit = unit_of(source);
    if (blocks)
        coffer__json_u64(&info.blocks_per_event, blocks);
    bool massif = info.format && strcmp(info.format, "massif") == 0;
    bool pprof = info.format && strcmp(info.format, "pprof") == 0;
    info.has_total = is_true(source, "has_total", !massif);
    info.has_peak = is_true(source, "has_peak", !pprof);
    info.has_leaks = !massif;
    info.has_order = !info.synthetic;
    return coffer__give_struct(out, &info, sizeof info, err);
}

COFFER__INIT_FUNCTION(coffer_mlyze_source_info, COFFER_MLYZE_SOURCE_INFO_INIT)

/* ---- Values ---- */

static const coffer__json_value *step_into(const coffer__json_value *value, const char *key, size_t len)
{
    uint64_t position = 0, index = 0;
    bool is_array = value->kind == COFFER__JSON_ARRAY;
    if (is_array && !coffer__mlyze_parse_id(&position, key, len))
        return NULL;
    for (const coffer__json_value *v = coffer__json_first(value); v;
         v = coffer__json_next(value, v), index++) {
        if (is_array ? index == position : v->key_len == len && memcmp(v->key, key, len) == 0)
            return v;
    }
    return NULL;
}

/* Keys may contain dots: the longest key that is there comes first. */
static const coffer__json_value *find_value(const coffer__json_value *root, const char *path)
{
    if (!*path)
        return root;
    for (size_t len = strlen(path); len > 0; len--) {
        if (path[len] != '\0' && path[len] != '.')
            continue;
        const coffer__json_value *value =
            root->kind == COFFER__JSON_OBJECT || root->kind == COFFER__JSON_ARRAY ? step_into(root, path, len)
                                                                                  : NULL;
        if (value)
            value = find_value(value, path + len + (path[len] == '.'));
        if (value)
            return value;
    }
    return NULL;
}

coffer_status coffer_mlyze_metadata_json(char **out, size_t *len, const coffer_mlyze *trace, const char *path,
                                         coffer_error *err)
{
    size_t json_len;
    const char *json_text = coffer_mlyze_metadata(trace, &json_len);
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__json_writer writer;
    coffer__json *json = NULL;
    /* The stacks are not in the tree that the handle keeps. */
    coffer_status status =
        coffer__json_parse(&json, json_text, json_len, COFFER__MLYZE_HEADER_SIZE, &trace->limits, err);
    if (status)
        return status;
    const coffer__json_value *value = find_value(coffer__json_root(json), path);
    if (!value) {
        status =
            coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "the metadata has no \"%s\"", path);
        goto out;
    }
    coffer__json_writer_init(&writer, &text, 0);
    coffer__json_write_value(&writer, value);
    coffer__buffer_append(&text, "", 1);
    if (text.failed) {
        status = coffer__fail_no_memory(err, json_len);
        goto out;
    }
    size_t size;
    *out = (char *)coffer__buffer_release(&text, &size);
    *len = size - 1;
out:
    coffer__buffer_free(&text);
    coffer__json_free(json);
    return status;
}

/* ---- Sampling ---- */

uint64_t coffer_mlyze_sampling_bytes(const coffer_mlyze *trace)
{
    const coffer__json_value *root = coffer__json_root(trace->metadata.json);
    const coffer__json_value *said = root ? coffer__json_find(root, "sampling_bytes") : NULL;
    return said && said->kind == COFFER__JSON_U64 ? said->as.u64 : 0;
}

/* A block of s bytes is recorded with probability p = 1 − exp(−s/T), and counts as s/p: the variance of the
 * sum is that of Horvitz and Thompson, Σ (s/p)² (1 − p), and no term of it is larger than T². */
uint64_t coffer_mlyze_sampling_error(const coffer_mlyze *trace, uint64_t allocs)
{
    const double deviations = 1.96; /* 95 % of a normal distribution */
    double error = deviations * (double)coffer_mlyze_sampling_bytes(trace) * sqrt((double)allocs);
    return error < 1e18 ? (uint64_t)(error + 0.5) : UINT64_C(1000000000000000000);
}
