#ifndef COFFER_DTYPE_H
#define COFFER_DTYPE_H

#include "coffer/api.h"

COFFER_BEGIN_DECLS

/* The element types that the formats share. Each format has its own numbers and names for those that it
 * supports. Functions that return the bytes of a file return elements as the file has them, little-endian on
 * every machine. Functions that convert elements, and those of coffer/pycauset.h, use the machine's byte
 * order. A complex element is a pair (real, imaginary), a BOOL is a byte of 0 or 1. */
typedef enum coffer_dtype {
    COFFER_DTYPE_NONE = 0,
    COFFER_DTYPE_BOOL,
    COFFER_DTYPE_I8,
    COFFER_DTYPE_U8,
    COFFER_DTYPE_I16,
    COFFER_DTYPE_U16,
    COFFER_DTYPE_I32,
    COFFER_DTYPE_U32,
    COFFER_DTYPE_I64,
    COFFER_DTYPE_U64,
    COFFER_DTYPE_F16,
    COFFER_DTYPE_BF16,
    COFFER_DTYPE_F32,
    COFFER_DTYPE_F64,
    COFFER_DTYPE_C32,  /* two F16 */
    COFFER_DTYPE_C64,  /* two F32 */
    COFFER_DTYPE_C128, /* two F64 */
    COFFER_DTYPE_F8_E4M3,
    COFFER_DTYPE_F8_E5M2,
    /* Several elements to a byte, or a special layout: size 0. */
    COFFER_DTYPE_BIT,  /* of a stored matrix */
    COFFER_DTYPE_INT8, /* the quantized types of a model container */
    COFFER_DTYPE_INT4,
    COFFER_DTYPE_Q8,
    COFFER_DTYPE_Q4,
    COFFER_DTYPE_K6,
    COFFER_DTYPE_K4,
    COFFER_DTYPE_K3,
    COFFER_DTYPE_K2,
    COFFER_DTYPE_COUNT
} coffer_dtype;

/* "f32", "c128", "k4"; "none" for any other number. */
COFFER_API const char *coffer_dtype_name(coffer_dtype dtype);
/* COFFER_DTYPE_NONE when no type has that name. */
COFFER_API coffer_dtype coffer_dtype_by_name(const char *name);
/* Bytes of one element; 0 for types that are packed or quantized. */
COFFER_API size_t coffer_dtype_size(coffer_dtype dtype);
COFFER_API bool coffer_dtype_is_complex(coffer_dtype dtype);
COFFER_API bool coffer_dtype_is_float(coffer_dtype dtype);   /* real, not complex, not quantized */
COFFER_API bool coffer_dtype_is_integer(coffer_dtype dtype); /* without BOOL and BIT */
COFFER_API bool coffer_dtype_is_quantized(coffer_dtype dtype);

/* Whether elements of one type can be converted to another: all types with a size can, complex ones only to
 * complex ones. */
COFFER_API bool coffer_dtype_can_convert(coffer_dtype to, coffer_dtype from);
/* Converts `count` elements in the machine's byte order; in and out do not overlap. Integers out of range are
 * clamped, NaN becomes the integer 0, everything but zero becomes the BOOL 1. False, and nothing is written,
 * where the types cannot be converted. */
COFFER_API bool coffer_dtype_convert(void *out, coffer_dtype to, const void *in, coffer_dtype from,
                                     size_t count);

COFFER_END_DECLS

#endif
