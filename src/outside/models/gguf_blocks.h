/* The block types of GGUF tensors: numbers in groups that share scales. Float32 arithmetic, each operation
 * rounded once, in the order in which ggml has it. */
#ifndef COFFER_CONVERT_GGUF_BLOCKS_H
#define COFFER_CONVERT_GGUF_BLOCKS_H

#include "coffer/dtype.h"

/* Whole blocks, one after the other. */
typedef void (*coffer__gguf_decode)(float *out, const uint8_t *blocks, size_t count);

typedef struct coffer__gguf_type {
    uint32_t id;
    const char *name;
    coffer_dtype dtype;         /* of a plain type, else COFFER_DTYPE_NONE */
    uint16_t elements, bytes;   /* of a block; 1 and the element's size for a plain type */
    coffer__gguf_decode decode; /* NULL: plain, or a type that we know by name alone */
} coffer__gguf_type;

/* NULL for an unknown type. */
const coffer__gguf_type *coffer__gguf_find_type(uint32_t id);
/* The plain type of the same kind; NULL when GGUF has none (unsigned integers, bool, complex). */
const coffer__gguf_type *coffer__gguf_type_for(coffer_dtype dtype);

enum { /* those that are converted without decoding */
       COFFER__GGUF_Q4_0 = 2,
       COFFER__GGUF_Q5_0 = 6,
       COFFER__GGUF_Q8_0 = 8,
       COFFER__GGUF_Q4_K = 12,
       COFFER__GGUF_Q6_K = 14,
       COFFER__GGUF_IQ4_NL = 20
};

/* The sixteen levels of the non-linear types. */
extern const int8_t coffer__gguf_iq4_levels[16];

#endif
