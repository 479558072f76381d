/* The keys that records are grouped by, and the layer of a parameter. */
#ifndef COFFER_FORMATS_MSCAN_KEYS_H
#define COFFER_FORMATS_MSCAN_KEYS_H

#include "formats/mscan/mscan_pass.h"
#include "formats/mscan/mscan_private.h"

/* Which layer of the model a parameter belongs to, from its name. */
#define COFFER__MSCAN_NO_LAYER INT64_MIN

/* The layer of a name: N for "model.layers.N", −1 for embeddings; numbers above every N (COFFER__MSCAN_NORM,
 * COFFER__MSCAN_HEAD) for what comes after the last layer; COFFER__MSCAN_NO_LAYER for any other. */
#define COFFER__MSCAN_NORM (INT64_MAX - 1)
#define COFFER__MSCAN_HEAD INT64_MAX
int64_t coffer__mscan_layer_of_name(const char *name, size_t len);

/* Fills scan->layers. */
coffer_status coffer__mscan_find_layers(coffer_mscan *scan, coffer_error *err);

typedef struct coffer__mscan_layers {
    uint32_t count;
    uint32_t of_param[COFFER__MSCAN_PARAM_IDS]; /* 1 + index of its layer, 0 when it has none */
} coffer__mscan_layers;

/* Numbers the layers that the scan's parameters belong to; with global scope there is one, of all that have a
 * name. Owned by the caller: coffer__free. */
coffer_status coffer__mscan_layers_new(coffer__mscan_layers **out, const coffer_mscan *scan,
                                       coffer_mscan_scope scope, coffer_error *err);

/* The keys that records are grouped by. */
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
