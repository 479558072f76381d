#include "outside/profiles/pprof.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Types and units are numbers below this in every profile: strings are numbered as they appear. */
#define PROBE_MAX_STRING 64

bool coffer__pprof_probe(const uint8_t *head, size_t len)
{
    coffer__protobuf message = coffer__protobuf_over(head, len, 0);
    coffer__protobuf_field field, part;
    bool more = false;
    if (coffer__protobuf_next(&more, &field, &message, NULL) || !more ||
        (field.number != COFFER__PPROF_SAMPLE_TYPE && field.number != COFFER__PPROF_PERIOD_TYPE) ||
        field.shape != COFFER__PROTOBUF_BYTES)
        return false;
    coffer__protobuf type = coffer__protobuf_inside(&message, &field);
    unsigned parts = 0;
    while (!coffer__protobuf_next(&more, &part, &type, NULL) && more) {
        if (part.number != ++parts || part.shape != COFFER__PROTOBUF_VARINT || part.value == 0 ||
            part.value > PROBE_MAX_STRING)
            return false;
    }
    return parts == 2 && !more;
}

void coffer__pprof_free(coffer__pprof *profile)
{
    coffer__free(profile->strings);
    coffer__free(profile->functions);
    coffer__free(profile->mappings);
    coffer__free(profile->locations);
    coffer__free(profile->lines);
    coffer__free(profile->samples);
    coffer__free(profile->location_ids);
    coffer__free(profile->values);
}

/* ---- Messages ---- */

/* Numbers of a message without messages inside: into[n] gets field n, the rest is passed over. */
static coffer_status take_numbers(uint64_t *into, uint32_t count, coffer__protobuf message, coffer_error *err)
{
    coffer__protobuf_field field;
    bool more = true;
    while (more) {
        coffer_status status = coffer__protobuf_next(&more, &field, &message, err);
        if (status)
            return status;
        if (more && field.number < count && field.shape == COFFER__PROTOBUF_VARINT)
            into[field.number] = field.value;
    }
    return COFFER_OK;
}

static coffer_status take_type(coffer__pprof *profile, coffer__protobuf message, coffer_error *err)
{
    uint64_t numbers[3] = { 0 };
    coffer_status status = take_numbers(numbers, 3, message, err);
    if (status)
        return status;
    if (profile->type_count == COFFER__PPROF_MAX_TYPES)
        return coffer__fail(err, COFFER_E_LIMIT, message.base, "more than %d types of values",
                            COFFER__PPROF_MAX_TYPES);
    profile->types[profile->type_count].name = numbers[COFFER__PPROF_VALUE_TYPE];
    profile->types[profile->type_count].unit = numbers[COFFER__PPROF_VALUE_UNIT];
    profile->type_count++;
    return COFFER_OK;
}

static coffer_status take_named(coffer__pprof_named **items, size_t *count, size_t *capacity,
                                bool is_function, coffer__protobuf message, coffer_error *err)
{
    uint64_t numbers[6] = { 0 };
    coffer_status status = take_numbers(numbers, 6, message, err);
    if (!status)
        status = coffer__array_reserve_one(items, capacity, *count, sizeof **items, err);
    if (status)
        return status;
    coffer__pprof_named *item = &(*items)[(*count)++];
    item->id = numbers[COFFER__PPROF_ID];
    item->name = is_function ? numbers[COFFER__PPROF_FUNCTION_NAME] : 0;
    if (is_function && item->name == 0)
        item->name = numbers[COFFER__PPROF_FUNCTION_SYSTEM_NAME];
    item->file = numbers[is_function ? COFFER__PPROF_FUNCTION_FILE : COFFER__PPROF_MAPPING_FILE];
    item->start = is_function ? 0 : numbers[COFFER__PPROF_MAPPING_START];
    item->offset = is_function ? 0 : numbers[COFFER__PPROF_MAPPING_OFFSET];
    return COFFER_OK;
}

static coffer_status take_line(coffer__pprof *profile, coffer__protobuf message, coffer_error *err)
{
    uint64_t numbers[3] = { 0 };
    coffer_status status = take_numbers(numbers, 3, message, err);
    if (!status)
        status = coffer__array_reserve_one(&profile->lines, &profile->line_capacity, profile->line_count,
                                           sizeof *profile->lines, err);
    if (!status)
        profile->lines[profile->line_count++] =
            (coffer__pprof_line){ numbers[COFFER__PPROF_LINE_FUNCTION], numbers[COFFER__PPROF_LINE_LINE] };
    return status;
}

static coffer_status take_location(coffer__pprof *profile, coffer__protobuf message, coffer_error *err)
{
    coffer__pprof_location location = { .line_at = profile->line_count };
    uint64_t numbers[4] = { 0 };
    coffer__protobuf_field field;
    bool more = true;
    coffer_status status = take_numbers(numbers, 4, message, err);
    while (!status && more) {
        status = coffer__protobuf_next(&more, &field, &message, err);
        if (!status && more && field.number == COFFER__PPROF_LOCATION_LINE &&
            field.shape == COFFER__PROTOBUF_BYTES)
            status = take_line(profile, coffer__protobuf_inside(&message, &field), err);
    }
    if (!status)
        status = coffer__array_reserve_one(&profile->locations, &profile->location_capacity,
                                           profile->location_count, sizeof *profile->locations, err);
    if (status)
        return status;
    location.id = numbers[COFFER__PPROF_ID];
    location.mapping = numbers[COFFER__PPROF_LOCATION_MAPPING];
    location.address = numbers[COFFER__PPROF_LOCATION_ADDRESS];
    location.line_count = profile->line_count - location.line_at;
    profile->locations[profile->location_count++] = location;
    return COFFER_OK;
}

static coffer_status append_numbers(uint64_t **items, size_t *count, size_t *capacity,
                                    const coffer__protobuf_field *field, const coffer__protobuf *message,
                                    coffer_error *err)
{
    const uint8_t *state = NULL;
    for (;;) {
        uint64_t value = 0;
        bool more;
        coffer_status status = coffer__protobuf_number(&more, &value, &state, field, message, err);
        if (status || !more)
            return status;
        status = coffer__array_reserve_one(items, capacity, *count, sizeof **items, err);
        if (status)
            return status;
        (*items)[(*count)++] = value;
    }
}

static coffer_status take_sample(coffer__pprof *profile, coffer__protobuf message, coffer_error *err)
{
    coffer__pprof_sample sample = { profile->location_id_count, 0, profile->value_count };
    coffer__protobuf_field field;
    bool more = true;
    coffer_status status = coffer__array_reserve_one(&profile->samples, &profile->sample_capacity,
                                                     profile->sample_count, sizeof *profile->samples, err);
    while (!status && more) {
        status = coffer__protobuf_next(&more, &field, &message, err);
        if (status || !more)
            break;
        if (field.number == COFFER__PPROF_SAMPLE_LOCATIONS)
            status = append_numbers(&profile->location_ids, &profile->location_id_count,
                                    &profile->location_id_capacity, &field, &message, err);
        else if (field.number == COFFER__PPROF_SAMPLE_VALUES)
            status = append_numbers(&profile->values, &profile->value_count, &profile->value_capacity, &field,
                                    &message, err);
    }
    if (status)
        return status;
    sample.location_count = profile->location_id_count - sample.location_at;
    if (profile->value_count - sample.value_at != profile->type_count)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, message.base,
                            "sample %zu has %zu values, the profile %zu types of values",
                            profile->sample_count, profile->value_count - sample.value_at,
                            profile->type_count);
    profile->samples[profile->sample_count++] = sample;
    return COFFER_OK;
}

static coffer_status take_string(coffer__pprof *profile, const coffer__protobuf_field *field,
                                 coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&profile->strings, &profile->string_capacity,
                                                     profile->string_count, sizeof *profile->strings, err);
    if (!status)
        profile->strings[profile->string_count++] =
            (coffer__pprof_text){ (const char *)field->bytes, field->len };
    return status;
}

static coffer_status take_field(coffer__pprof *profile, const coffer__protobuf_field *field,
                                const coffer__protobuf *message, coffer_error *err)
{
    if (field->number == COFFER__PPROF_TIME_NANOS && field->shape == COFFER__PROTOBUF_VARINT)
        profile->time_nanos = field->value;
    if (field->shape != COFFER__PROTOBUF_BYTES)
        return COFFER_OK;
    coffer__protobuf inside = coffer__protobuf_inside(message, field);
    switch (field->number) {
    case COFFER__PPROF_SAMPLE_TYPE:
        return take_type(profile, inside, err);
    case COFFER__PPROF_MAPPING:
        return take_named(&profile->mappings, &profile->mapping_count, &profile->mapping_capacity, false,
                          inside, err);
    case COFFER__PPROF_LOCATION:
        return take_location(profile, inside, err);
    case COFFER__PPROF_FUNCTION:
        return take_named(&profile->functions, &profile->function_count, &profile->function_capacity, true,
                          inside, err);
    case COFFER__PPROF_STRING:
        return take_string(profile, field, err);
    default:
        return COFFER_OK;
    }
}

/* Samples need the number of types, which may come after them: they are read in a second pass. */
static coffer_status take_all(coffer__pprof *profile, coffer__protobuf message, bool samples,
                              coffer_error *err)
{
    coffer__protobuf_field field;
    bool more = true;
    coffer_status status = COFFER_OK;
    while (!status && more) {
        status = coffer__protobuf_next(&more, &field, &message, err);
        if (status || !more)
            break;
        if (!samples)
            status = take_field(profile, &field, &message, err);
        else if (field.number == COFFER__PPROF_SAMPLE && field.shape == COFFER__PROTOBUF_BYTES)
            status = take_sample(profile, coffer__protobuf_inside(&message, &field), err);
    }
    return status;
}

/* ---- References ---- */

/* Both kinds of items begin with their id. */
static int by_id(const void *left, const void *right)
{
    uint64_t a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a > b) - (a < b);
}

static const void *find_id(const void *items, size_t count, size_t size, uint64_t id)
{
    return count > 0 ? bsearch(&id, items, count, size, by_id) : NULL;
}

const coffer__pprof_location *coffer__pprof_find_location(const coffer__pprof *profile, uint64_t id)
{
    return find_id(profile->locations, profile->location_count, sizeof *profile->locations, id);
}

const coffer__pprof_named *coffer__pprof_find_mapping(const coffer__pprof *profile, uint64_t id)
{
    return find_id(profile->mappings, profile->mapping_count, sizeof *profile->mappings, id);
}

static coffer_status sort_ids(void *items, size_t count, size_t size, const char *what, coffer_error *err)
{
    uint64_t last = 0, id;
    if (count > 0)
        qsort(items, count, size, by_id);
    for (size_t i = 0; i < count; i++, last = id) {
        memcpy(&id, (const char *)items + i * size, sizeof id);
        if (id == last)
            return coffer__fail(err, id ? COFFER_E_DUPLICATE : COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                                id ? "two %ss have the id %" PRIu64 : "a %s has the id %" PRIu64, what, id);
    }
    return COFFER_OK;
}

static coffer_status check_string(const coffer__pprof *profile, uint64_t number, coffer_error *err)
{
    if (number < profile->string_count)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_DANGLING_REFERENCE, COFFER_OFFSET_NONE,
                        "string %" PRIu64 ", there are %zu", number, profile->string_count);
}

static coffer_status check_strings(const coffer__pprof *profile, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < profile->type_count; i++) {
        status = check_string(profile, profile->types[i].name, err);
        if (!status)
            status = check_string(profile, profile->types[i].unit, err);
    }
    for (size_t i = 0; !status && i < profile->function_count; i++) {
        status = check_string(profile, profile->functions[i].name, err);
        if (!status)
            status = check_string(profile, profile->functions[i].file, err);
    }
    for (size_t i = 0; !status && i < profile->mapping_count; i++)
        status = check_string(profile, profile->mappings[i].file, err);
    return status;
}

/* Functions by position from here on. */
static coffer_status resolve_functions(coffer__pprof *profile, coffer_error *err)
{
    for (size_t i = 0; i < profile->line_count; i++) {
        coffer__pprof_line *line = &profile->lines[i];
        const coffer__pprof_named *function =
            find_id(profile->functions, profile->function_count, sizeof *function, line->function);
        if (!function && line->function != 0)
            return coffer__fail(err, COFFER_E_DANGLING_REFERENCE, COFFER_OFFSET_NONE,
                                "a line of function %" PRIu64 ", which does not exist", line->function);
        line->function = function ? (uint64_t)(function - profile->functions) : SIZE_MAX;
    }
    return COFFER_OK;
}

static coffer_status check_references(coffer__pprof *profile, coffer_error *err)
{
    coffer_status status = check_strings(profile, err);
    if (!status)
        status = sort_ids(profile->functions, profile->function_count, sizeof *profile->functions, "function",
                          err);
    if (!status)
        status =
            sort_ids(profile->mappings, profile->mapping_count, sizeof *profile->mappings, "mapping", err);
    if (!status)
        status = sort_ids(profile->locations, profile->location_count, sizeof *profile->locations, "location",
                          err);
    if (!status)
        status = resolve_functions(profile, err);
    for (size_t i = 0; !status && i < profile->location_count; i++) {
        uint64_t mapping = profile->locations[i].mapping;
        if (mapping && !coffer__pprof_find_mapping(profile, mapping))
            status = coffer__fail(err, COFFER_E_DANGLING_REFERENCE, COFFER_OFFSET_NONE,
                                  "a location in mapping %" PRIu64 ", which does not exist", mapping);
    }
    for (size_t i = 0; !status && i < profile->location_id_count; i++) {
        if (!coffer__pprof_find_location(profile, profile->location_ids[i]))
            status = coffer__fail(err, COFFER_E_DANGLING_REFERENCE, COFFER_OFFSET_NONE,
                                  "a sample at location %" PRIu64 ", which does not exist",
                                  profile->location_ids[i]);
    }
    return status;
}

coffer_status coffer__pprof_read(coffer__pprof *out, const void *bytes, size_t len,
                                 const coffer_limits *limits, coffer_error *err)
{
    coffer__pprof profile = { .strings = NULL };
    coffer__protobuf message = coffer__protobuf_over(bytes, len, 0);
    coffer_status status = take_all(&profile, message, false, err);
    if (!status && (profile.string_count == 0 || profile.strings[0].len != 0))
        status = coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                              "the first of the %zu strings is not \"\"", profile.string_count);
    if (!status)
        status = take_all(&profile, message, true, err);
    if (!status && profile.sample_count > limits->entries)
        status = coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "%zu samples, the limit is %" PRIu64,
                              profile.sample_count, limits->entries);
    if (!status)
        status = check_references(&profile, err);
    if (status) {
        coffer__pprof_free(&profile);
        return status;
    }
    *out = profile;
    return COFFER_OK;
}
