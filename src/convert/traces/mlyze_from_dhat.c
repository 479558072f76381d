/* Profiles of DHAT: for each stack its total, peak and final allocations. */
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "convert/traces/mlyze_import.h"
#include "outside/archives/unpack.h"

#include <inttypes.h>
#include <string.h>

typedef struct dhat {
    const coffer__convert_job *job;
    coffer__mlyze_import import;
    coffer__json *json;
    const coffer__json_value *root;
    coffer_mlyze_frame *table; /* of frames, as the file numbers them */
    size_t table_count;
    bool *allocators;           /* which frames of the table allocate for their callers */
    size_t innermost;           /* of the current stack, in the table */
    coffer_mlyze_frame *frames; /* of one stack */
    size_t frame_capacity;
    coffer__mlyze_sample *samples;
    size_t sample_count;
} dhat;

/* A number of a program point or of the file; a missing optional one is 0. */
static coffer_status take_number(uint64_t *out, const coffer__json_value *object, const char *key,
                                 bool needed, coffer_error *err)
{
    const coffer__json_value *value = coffer__json_find(object, key);
    *out = 0;
    if (!value && !needed)
        return COFFER_OK;
    if (!value)
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "no \"%s\"", key);
    if (!coffer__json_u64(out, value) || *out > INT64_MAX)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "\"%s\" is not a number from 0 to 2^63", key);
    return COFFER_OK;
}

static const coffer__json_value *find_array(const dhat *from, const char *key, coffer_error *err)
{
    const coffer__json_value *array = coffer__json_find(from->root, key);
    if (array && array->kind == COFFER__JSON_ARRAY)
        return array;
    coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "the array \"%s\" is missing", key);
    return NULL;
}

static coffer_status check_head(const dhat *from, coffer_error *err)
{
    const coffer__json_value *mode = coffer__json_find(from->root, "mode");
    uint64_t version;
    coffer_status status = take_number(&version, from->root, "dhatFileVersion", true, err);
    if (status)
        return status;
    if (version != COFFER__DHAT_VERSION)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, COFFER_OFFSET_NONE,
                            "dhatFileVersion %" PRIu64 ", only version %d is supported", version,
                            COFFER__DHAT_VERSION);
    if (mode && (mode->kind != COFFER__JSON_STRING ||
                 (strcmp(mode->as.string, "heap") != 0 && strcmp(mode->as.string, "rust-heap") != 0)))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "mode \"%s\" does not count memory; only heap profiles can be converted",
                            mode->kind == COFFER__JSON_STRING ? mode->as.string : "?");
    return COFFER_OK;
}

static coffer_status take_table(dhat *from, coffer_error *err)
{
    const coffer__json_value *array = find_array(from, "ftbl", err);
    if (!array)
        return COFFER_E_MISSING;
    from->table = coffer__alloc_array((size_t)array->as.count + 1, sizeof *from->table);
    from->allocators = coffer__calloc((size_t)array->as.count + 1, sizeof *from->allocators);
    if (!from->table || !from->allocators)
        return coffer__fail_no_memory(err, array->as.count * sizeof *from->table);
    for (const coffer__json_value *item = coffer__json_first(array); item;
         item = coffer__json_next(array, item)) {
        if (item->kind != COFFER__JSON_STRING)
            return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                                "frame %zu of \"ftbl\" is not text", from->table_count);
        from->allocators[from->table_count] = coffer__mlyze_is_allocator(item->as.string, item->string_len);
        coffer_status status = coffer__mlyze_import_label(&from->table[from->table_count++], &from->import,
                                                          item->as.string, item->string_len, err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

static coffer_status take_stack(uint64_t *stack, dhat *from, const coffer__json_value *point,
                                coffer_error *err)
{
    const coffer__json_value *list = coffer__json_find(point, "fs");
    size_t depth = 0, wanted = list && list->kind == COFFER__JSON_ARRAY ? (size_t)list->as.count : 0;
    if (wanted > from->frame_capacity) {
        coffer__free(from->frames);
        from->frames = coffer__alloc_array(wanted, sizeof *from->frames);
        from->frame_capacity = from->frames ? wanted : 0;
        if (!from->frames)
            return coffer__fail_no_memory(err, wanted * sizeof *from->frames);
    }
    for (const coffer__json_value *item = wanted ? coffer__json_first(list) : NULL; item;
         item = coffer__json_next(list, item)) {
        uint64_t index;
        if (!coffer__json_u64(&index, item) || index >= from->table_count)
            return coffer__fail(err, COFFER_E_DANGLING_REFERENCE, COFFER_OFFSET_NONE,
                                "a frame that is not one of the %zu in \"ftbl\"", from->table_count);
        if (depth == 1 && from->allocators[from->innermost])
            depth = 0; /* malloc and operator new say nothing about who allocates */
        from->innermost = depth == 0 ? (size_t)index : from->innermost;
        from->frames[depth++] = from->table[index];
    }
    return coffer__mlyze_import_stack(stack, &from->import, from->frames, depth, err);
}

static coffer_status take_point(dhat *from, const coffer__json_value *point, coffer_error *err)
{
    coffer__mlyze_sample *sample = &from->samples[from->sample_count];
    const struct {
        const char *key;
        bool needed;
        uint64_t *to;
    } numbers[] = {
        { "tb", true, &sample->total.bytes }, { "tbk", true, &sample->total.count },
        { "gb", false, &sample->peak.bytes }, { "gbk", false, &sample->peak.count },
        { "eb", false, &sample->end.bytes },  { "ebk", false, &sample->end.count },
    };
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < sizeof numbers / sizeof *numbers; i++)
        status = take_number(numbers[i].to, point, numbers[i].key, numbers[i].needed, err);
    if (!status)
        status = take_stack(&sample->stack, from, point, err);
    if (!status)
        from->sample_count++;
    return status;
}

static coffer_status take_points(dhat *from, coffer_error *err)
{
    const coffer__json_value *array = find_array(from, "pps", err);
    coffer_error why = COFFER_ERROR_INIT;
    if (!array)
        return COFFER_E_MISSING;
    from->samples = coffer__calloc((size_t)array->as.count + 1, sizeof *from->samples);
    if (!from->samples)
        return coffer__fail_no_memory(err, array->as.count * sizeof *from->samples);
    for (const coffer__json_value *point = coffer__json_first(array); point;
         point = coffer__json_next(array, point)) {
        coffer_status status = take_point(from, point, &why);
        if (status)
            return coffer__fail(err, status, COFFER_OFFSET_NONE, "program point %zu of \"pps\": %s",
                                from->sample_count, why.text);
    }
    return COFFER_OK;
}

/* Times are in the unit that the file names. */
static uint64_t put_unit(dhat *from)
{
    const coffer__json_value *unit = coffer__json_find(from->root, "tu");
    bool is_text = unit && unit->kind == COFFER__JSON_STRING;
    return coffer__mlyze_import_unit(&from->import, is_text ? unit->as.string : "?");
}

/* The blocks that all program points count, before the trace is created. */
static coffer_status expect_points(dhat *from, coffer_error *err)
{
    static const char *const keys[] = { "tbk", "gbk", "ebk" };
    const coffer__json_value *array = coffer__json_find(from->root, "pps");
    uint64_t blocks = 0;
    if (!array || array->kind != COFFER__JSON_ARRAY)
        return COFFER_OK; /* an error later */
    for (const coffer__json_value *point = coffer__json_first(array); point;
         point = coffer__json_next(array, point)) {
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            const coffer__json_value *value = coffer__json_find(point, keys[i]);
            uint64_t count = 0;
            if (value && coffer__json_u64(&count, value) && __builtin_add_overflow(blocks, count, &blocks))
                blocks = UINT64_MAX;
        }
    }
    return coffer__mlyze_import_expect(&from->import, blocks, err);
}

static coffer_status take_profile(dhat *from, coffer_error *err)
{
    const coffer__json_value *command = coffer__json_find(from->root, "cmd");
    bool has_command = command && command->kind == COFFER__JSON_STRING;
    uint64_t peak_time = 0, end_time = 0;
    coffer_status status = check_head(from, err);
    if (!status)
        status = take_number(&peak_time, from->root, "tg", false, err);
    if (!status)
        status = take_number(&end_time, from->root, "te", false, err);
    if (status)
        return status;
    uint64_t factor = put_unit(from);
    if (__builtin_mul_overflow(peak_time, factor, &peak_time))
        peak_time = UINT64_MAX;
    if (__builtin_mul_overflow(end_time, factor, &end_time))
        end_time = UINT64_MAX;
    status = expect_points(from, err);
    if (status)
        return status;
    status = coffer__mlyze_import_create(&from->import, has_command ? command->as.string : NULL,
                                         has_command ? command->string_len : 0, 0, err);
    if (!status)
        status = take_table(from, err);
    if (!status)
        status = take_points(from, err);
    if (!status)
        status = coffer__mlyze_import_samples(&from->import, from->samples, from->sample_count, peak_time,
                                              end_time, err);
    return status ? status : coffer__mlyze_import_commit(&from->import, err);
}

coffer_status coffer__mlyze_from_dhat(const coffer__convert_job *job, coffer_error *err)
{
    dhat from = { .job = job };
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__mlyze_import_open(&from.import, job, true);
    coffer_status status = coffer__unpack_all(&text, job->in, job->limits.json_bytes, &job->limits, err);
    if (!status)
        status = coffer__json_parse(&from.json, coffer__buffer_text(&text), text.len, 0, &job->limits, err);
    if (!status) {
        from.root = coffer__json_root(from.json);
        status = take_profile(&from, err);
    }
    coffer__mlyze_import_close(&from.import);
    coffer__json_free(from.json);
    coffer__buffer_free(&text);
    coffer__free(from.table);
    coffer__free(from.allocators);
    coffer__free(from.frames);
    coffer__free(from.samples);
    return status;
}

/* A DHAT file begins with its version. */
bool coffer__dhat_probe(const uint8_t *head, size_t len)
{
    static const char key[] = "\"dhatFileVersion\"";
    size_t at = 0;
    if (len == 0 || head[at++] != '{')
        return false;
    while (at < len && head[at] && strchr(" \t\r\n", head[at]))
        at++;
    return len - at >= sizeof key - 1 && memcmp(head + at, key, sizeof key - 1) == 0;
}
