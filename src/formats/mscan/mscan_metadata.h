/* The parsed metadata of a scan: names, sequences, scales. */
#ifndef COFFER_FORMATS_MSCAN_METADATA_H
#define COFFER_FORMATS_MSCAN_METADATA_H

#include "base/json.h"
#include "coffer/mscan.h"
#include "coffer/report.h"

/* How the values of one column were quantized. */
typedef struct coffer__mscan_scales {
    coffer_mscan_scale_scope scope;
    bool has_common;                   /* the entry has a scale and an offset of its own */
    coffer_mscan_quantization common;  /* for scope file, and for entries missing from `values` */
    coffer_mscan_quantization *values; /* by param index or sequence index; scale NaN = missing */
} coffer__mscan_scales;

/* The checksum of everything before the records: mscan_sums.h. */
typedef struct coffer__mscan_seal {
    bool spelled;  /* it is where Coffer writes it, at the end of the metadata */
    bool readable; /* it is eight digits */
    uint32_t stored, found;
} coffer__mscan_seal;

/* A part that a repair could not verify: an entry of the key "damage". */
typedef struct coffer__mscan_mark {
    bool in_metadata; /* names, sequences and scales, not records */
    bool unverified;  /* no checksum said anything, as opposed to one that did not match */
    uint64_t first_record, num_records;
    bool has_crc;
    uint32_t crc; /* the checksum that the part had before it was damaged */
} coffer__mscan_mark;

typedef struct coffer__mscan_metadata {
    char *text; /* the JSON of the file, NUL-terminated */
    size_t text_len;
    coffer__json *json; /* owns the strings below */
    const coffer__json_value *root;
    const char *model_name; /* "" when absent */
    size_t model_name_len;

    coffer_mscan_sequence *sequences;           /* in the order of the file, with prefix sums of tokens */
    const coffer__json_value **sequence_values; /* their entries in the JSON */
    size_t sequence_count;
    uint64_t total_tokens;

    coffer_mscan_param *params; /* ascending id */
    size_t param_count;
    uint32_t *param_index; /* by param_id, 65536 of them: 1 + index into params, 0 = no name */

    coffer__mscan_scales scales[2]; /* by coffer_mscan_metric */
    coffer__mscan_mark *marks;
    size_t mark_count;
    coffer__mscan_seal seal; /* set by coffer__mscan_read_metadata */
} coffer__mscan_metadata;

/* Parses the metadata. text : from coffer__malloc, len bytes and one more for a NUL; owned by the metadata,
 * and freed on failure. base : file offset of the text. Without a report the first invalid value fails. With
 * one, every invalid value is added to it and left out; only JSON that cannot be parsed fails. */
coffer_status coffer__mscan_metadata_load(coffer__mscan_metadata *out, char *text, size_t len, uint64_t base,
                                          const coffer_limits *limits, coffer_report *report,
                                          coffer_error *err);
/* Without the white space at the end. */
size_t coffer__mscan_trimmed_length(const char *text, size_t len);
void coffer__mscan_metadata_free(coffer__mscan_metadata *metadata); /* its members, not itself */

/* ---- For the two files that load it ---- */

typedef struct coffer__mscan_loader {
    coffer__mscan_metadata *out;
    const coffer_limits *limits;
    uint64_t base;
    coffer_report *report; /* NULL: the first invalid value fails */
    coffer_error *err;
} coffer__mscan_loader;

/* Something that cannot be understood: fails, or with a report is noted and left out. */
coffer_status coffer__mscan_refuse(coffer__mscan_loader *load, coffer_status code, const char *format, ...)
    COFFER_PRINTF(3, 4);
const char *coffer__mscan_kind_name(const coffer__json_value *value); /* "a number"; NULL is "missing" */
/* Digits only and no leading zero, so that one id has one spelling. */
bool coffer__mscan_parse_id(uint64_t *out, const char *key, size_t len);
/* Scales that are not understood leave the raw integers: never a reason to refuse the file. */
coffer_status coffer__mscan_load_scales(coffer__mscan_loader *load, coffer_mscan_metric metric,
                                        const char *key);
coffer_status coffer__mscan_load_marks(coffer__mscan_loader *load);

/* ---- Access ---- */

/* The entry of the map for a param_id, or NULL. */
static inline const coffer_mscan_param *coffer__mscan_find_param(const coffer__mscan_metadata *metadata,
                                                                 uint16_t param_id)
{
    uint32_t index = metadata->param_index[param_id];
    return index ? &metadata->params[index - 1] : NULL;
}

/* Keys of a sequence that our writer adds to the specification: its records and their CRC-32. */
typedef struct coffer__mscan_extent {
    bool has_range, has_crc;
    uint64_t first_record, num_records;
    uint32_t crc;
} coffer__mscan_extent;

/* value : an entry of "sequences". */
coffer__mscan_extent coffer__mscan_extent_of(const coffer__json_value *value);

#endif
