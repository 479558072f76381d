#include "coffer/dtype.h"

#include <string.h>

enum { FLOAT = 1, INTEGER = 2, COMPLEX = 4, QUANTIZED = 8 };

static const struct type_facts {
    const char *name;
    uint8_t size, kind;
} types[COFFER_DTYPE_COUNT] = {
    [COFFER_DTYPE_NONE] = { "none", 0, 0 },           [COFFER_DTYPE_BOOL] = { "bool", 1, 0 },
    [COFFER_DTYPE_I8] = { "i8", 1, INTEGER },         [COFFER_DTYPE_U8] = { "u8", 1, INTEGER },
    [COFFER_DTYPE_I16] = { "i16", 2, INTEGER },       [COFFER_DTYPE_U16] = { "u16", 2, INTEGER },
    [COFFER_DTYPE_I32] = { "i32", 4, INTEGER },       [COFFER_DTYPE_U32] = { "u32", 4, INTEGER },
    [COFFER_DTYPE_I64] = { "i64", 8, INTEGER },       [COFFER_DTYPE_U64] = { "u64", 8, INTEGER },
    [COFFER_DTYPE_F16] = { "f16", 2, FLOAT },         [COFFER_DTYPE_BF16] = { "bf16", 2, FLOAT },
    [COFFER_DTYPE_F32] = { "f32", 4, FLOAT },         [COFFER_DTYPE_F64] = { "f64", 8, FLOAT },
    [COFFER_DTYPE_C32] = { "c32", 4, COMPLEX },       [COFFER_DTYPE_C64] = { "c64", 8, COMPLEX },
    [COFFER_DTYPE_C128] = { "c128", 16, COMPLEX },    [COFFER_DTYPE_F8_E4M3] = { "f8_e4m3", 1, FLOAT },
    [COFFER_DTYPE_F8_E5M2] = { "f8_e5m2", 1, FLOAT }, [COFFER_DTYPE_BIT] = { "bit", 0, 0 },
    [COFFER_DTYPE_INT8] = { "int8", 0, QUANTIZED },   [COFFER_DTYPE_INT4] = { "int4", 0, QUANTIZED },
    [COFFER_DTYPE_Q8] = { "q8", 0, QUANTIZED },       [COFFER_DTYPE_Q4] = { "q4", 0, QUANTIZED },
    [COFFER_DTYPE_K6] = { "k6", 0, QUANTIZED },       [COFFER_DTYPE_K4] = { "k4", 0, QUANTIZED },
    [COFFER_DTYPE_K3] = { "k3", 0, QUANTIZED },       [COFFER_DTYPE_K2] = { "k2", 0, QUANTIZED },
};

static const struct type_facts *facts_of(coffer_dtype dtype)
{
    return &types[(unsigned)dtype < COFFER_DTYPE_COUNT ? dtype : COFFER_DTYPE_NONE];
}

const char *coffer_dtype_name(coffer_dtype dtype)
{
    return facts_of(dtype)->name;
}

coffer_dtype coffer_dtype_by_name(const char *name)
{
    for (int i = 0; i < COFFER_DTYPE_COUNT; i++) {
        if (strcmp(types[i].name, name) == 0)
            return (coffer_dtype)i;
    }
    return COFFER_DTYPE_NONE;
}

size_t coffer_dtype_size(coffer_dtype dtype)
{
    return facts_of(dtype)->size;
}

bool coffer_dtype_is_complex(coffer_dtype dtype)
{
    return facts_of(dtype)->kind == COMPLEX;
}

bool coffer_dtype_is_float(coffer_dtype dtype)
{
    return facts_of(dtype)->kind == FLOAT;
}

bool coffer_dtype_is_integer(coffer_dtype dtype)
{
    return facts_of(dtype)->kind == INTEGER;
}

bool coffer_dtype_is_quantized(coffer_dtype dtype)
{
    return facts_of(dtype)->kind == QUANTIZED;
}
