/* Which layer of the model a parameter belongs to, from its name. */
#ifndef COFFER_FORMATS_MSCAN_LAYERS_H
#define COFFER_FORMATS_MSCAN_LAYERS_H

#include "formats/mscan/mscan_private.h"

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

#endif
