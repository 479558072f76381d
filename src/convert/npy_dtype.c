/* NumPy's types and ours. */
#include "convert/npy.h"

typedef struct dtype_row {
    coffer_dtype dtype;
    char kind;
    uint8_t size;
} dtype_row;

static const dtype_row rows[] = {
    { COFFER_DTYPE_BOOL, 'b', 1 }, { COFFER_DTYPE_I8, 'i', 1 },    { COFFER_DTYPE_U8, 'u', 1 },
    { COFFER_DTYPE_I16, 'i', 2 },  { COFFER_DTYPE_U16, 'u', 2 },   { COFFER_DTYPE_I32, 'i', 4 },
    { COFFER_DTYPE_U32, 'u', 4 },  { COFFER_DTYPE_I64, 'i', 8 },   { COFFER_DTYPE_U64, 'u', 8 },
    { COFFER_DTYPE_F16, 'f', 2 },  { COFFER_DTYPE_F32, 'f', 4 },   { COFFER_DTYPE_F64, 'f', 8 },
    { COFFER_DTYPE_C64, 'c', 8 },  { COFFER_DTYPE_C128, 'c', 16 },
};

#define ROW_COUNT (sizeof rows / sizeof rows[0])

coffer_dtype coffer__npy_dtype(const coffer__npy_field *field)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].kind == field->kind && rows[i].size == field->size)
            return rows[i].dtype;
    }
    return COFFER_DTYPE_NONE;
}

bool coffer__npy_field_of(coffer__npy_field *out, coffer_dtype dtype)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].dtype == dtype) {
            *out = (coffer__npy_field){ .kind = rows[i].kind, .size = rows[i].size, .elements = 1 };
            return true;
        }
    }
    return false;
}
