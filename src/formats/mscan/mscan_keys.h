/* The keys that records are grouped by. */
#ifndef COFFER_FORMATS_MSCAN_KEYS_H
#define COFFER_FORMATS_MSCAN_KEYS_H

#include "formats/mscan/mscan_pass.h"

typedef struct coffer__mscan_keys {
    const coffer_mscan *scan;
    coffer_mscan_by by;
    uint64_t base;  /* the smallest key */
    uint64_t count; /* keys are below base + count */
    unsigned at;    /* where a record has the low 16 bits of its key, unless it has none of its own */
    bool in_record; /* false for BY_ALL and BY_SEQUENCE */
} coffer__mscan_keys;

/* Reads as little as it can to find the range: nothing for parameters, blocks and sequences, two records for
 * the tokens of a sorted scan, all of an unsorted one. */
coffer_status coffer__mscan_keys_find(coffer__mscan_keys *out, coffer__mscan_selection *selection,
                                      const coffer_mscan_stats_opts *query, coffer_error *err);

/* The tokens [begin, end) have the same key. */
typedef struct coffer__mscan_key_span {
    uint64_t key, begin, end;
} coffer__mscan_key_span;

/* For BY_ALL, BY_TOKEN and BY_SEQUENCE. False when the token belongs to no sequence; the span then has the
 * tokens of which that is true. */
bool coffer__mscan_key_of(coffer__mscan_key_span *out, const coffer__mscan_keys *keys, uint32_t token);

/* How many of the records, from the first one on, have tokens of the span. */
size_t coffer__mscan_span_records(const coffer__mscan_key_span *span, const uint8_t *records, size_t count);

#endif
