#ifndef COFFER_BYTES_H
#define COFFER_BYTES_H

#include "coffer/api.h"

COFFER_BEGIN_DECLS

/* A growing block of memory that functions fill and reuse: set it to COFFER_BYTES_INIT before the first call
 * and free it with coffer_free(bytes.data) after the last. It has these three members in every version. */
typedef struct coffer_bytes {
    uint8_t *data;
    size_t size, capacity;
} coffer_bytes;

#define COFFER_BYTES_INIT \
    {                     \
        NULL, 0, 0        \
    }

COFFER_END_DECLS

#endif
