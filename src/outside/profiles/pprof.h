/* Profiles as pprof has them: a protocol buffer, mostly packed with gzip. What is used of profile.proto:
 *
 *   Profile    1 sample_type ValueType*  2 sample Sample*  3 mapping Mapping*  4 location Location*
 *              5 function Function*  6 string_table string*  9 time_nanos  11 period_type ValueType  12
 * period 13 comment*  14 default_sample_type ValueType  1 type  2 unit                       Sample    1
 * location_id*  2 value* Mapping    1 id  5 filename                     Location  1 id  2 mapping_id  3
 * address  4 line Line* Line       1 function_id  2 line                Function  1 id  2 name  3 system_name
 * 4 filename
 *
 * Texts are numbers of strings, of which 0 is "". Samples and lines go from the innermost frame outwards. */
#ifndef COFFER_OUTSIDE_PPROF_H
#define COFFER_OUTSIDE_PPROF_H

#include "base/buffer.h"
#include "coffer/limits.h"
#include "outside/records/protobuf.h"

enum {
    COFFER__PPROF_SAMPLE_TYPE = 1,
    COFFER__PPROF_SAMPLE = 2,
    COFFER__PPROF_MAPPING = 3,
    COFFER__PPROF_LOCATION = 4,
    COFFER__PPROF_FUNCTION = 5,
    COFFER__PPROF_STRING = 6,
    COFFER__PPROF_TIME_NANOS = 9,
    COFFER__PPROF_PERIOD_TYPE = 11,
    COFFER__PPROF_PERIOD = 12,
    COFFER__PPROF_DEFAULT_TYPE = 14,

    COFFER__PPROF_VALUE_TYPE = 1,
    COFFER__PPROF_VALUE_UNIT = 2,
    COFFER__PPROF_SAMPLE_LOCATIONS = 1,
    COFFER__PPROF_SAMPLE_VALUES = 2,
    COFFER__PPROF_ID = 1,
    COFFER__PPROF_MAPPING_START = 2,
    COFFER__PPROF_MAPPING_OFFSET = 4,
    COFFER__PPROF_MAPPING_FILE = 5,
    COFFER__PPROF_LOCATION_MAPPING = 2,
    COFFER__PPROF_LOCATION_ADDRESS = 3,
    COFFER__PPROF_LOCATION_LINE = 4,
    COFFER__PPROF_LINE_FUNCTION = 1,
    COFFER__PPROF_LINE_LINE = 2,
    COFFER__PPROF_FUNCTION_NAME = 2,
    COFFER__PPROF_FUNCTION_SYSTEM_NAME = 3,
    COFFER__PPROF_FUNCTION_FILE = 4
};

#define COFFER__PPROF_MAX_TYPES 64

/* The bytes of an unpacked profile begin with a type of values, of its samples or its period. */
bool coffer__pprof_probe(const uint8_t *head, size_t len);

typedef struct coffer__pprof_text {
    const char *text;
    size_t len;
} coffer__pprof_text;

typedef struct coffer__pprof_line {
    uint64_t function; /* position; SIZE_MAX: none */
    uint64_t line;
} coffer__pprof_line;

typedef struct coffer__pprof_location {
    uint64_t id, mapping, address; /* mapping : its id, 0 = none */
    size_t line_at, line_count;
} coffer__pprof_location;

typedef struct coffer__pprof_named {
    uint64_t id;
    uint64_t name, file;    /* numbers of strings */
    uint64_t start, offset; /* of a mapping: its first address, and where that is in the file */
} coffer__pprof_named;

typedef struct coffer__pprof_sample {
    size_t location_at, location_count; /* in location_ids */
    size_t value_at;                    /* type_count of them */
} coffer__pprof_sample;

/* Lists that grow. */
typedef struct coffer__pprof {
    coffer__pprof_text *strings;
    size_t string_count, string_capacity;
    struct {
        uint64_t name, unit; /* strings */
    } types[COFFER__PPROF_MAX_TYPES];
    size_t type_count;
    coffer__pprof_named *functions, *mappings; /* ascending ids */
    size_t function_count, function_capacity, mapping_count, mapping_capacity;
    coffer__pprof_location *locations; /* ascending ids */
    size_t location_count, location_capacity;
    coffer__pprof_line *lines;
    size_t line_count, line_capacity;
    coffer__pprof_sample *samples;
    size_t sample_count, sample_capacity;
    uint64_t *location_ids;
    size_t location_id_count, location_id_capacity;
    uint64_t *values;
    size_t value_count, value_capacity;
    uint64_t time_nanos;
} coffer__pprof;

/* bytes : borrowed, must outlive the profile. Every reference has been checked on success. */
coffer_status coffer__pprof_read(coffer__pprof *out, const void *bytes, size_t len,
                                 const coffer_limits *limits, coffer_error *err);
void coffer__pprof_free(coffer__pprof *profile);
/* NULL for an unknown id. O(log n). */
const coffer__pprof_location *coffer__pprof_find_location(const coffer__pprof *profile, uint64_t id);
const coffer__pprof_named *coffer__pprof_find_mapping(const coffer__pprof *profile, uint64_t id);
static inline coffer__pprof_text coffer__pprof_string(const coffer__pprof *profile, uint64_t number)
{
    return profile->strings[number];
}

#endif
