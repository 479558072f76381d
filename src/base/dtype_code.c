#include "base/dtype_code.h"

static const struct dtype_code {
    coffer_dtype dtype;
    uint8_t code;
} dtype_codes[] = {
    { COFFER_DTYPE_F32, 1 },     { COFFER_DTYPE_F16, 2 },     { COFFER_DTYPE_BF16, 3 },
    { COFFER_DTYPE_F64, 4 },     { COFFER_DTYPE_I8, 5 },      { COFFER_DTYPE_U8, 6 },
    { COFFER_DTYPE_I16, 7 },     { COFFER_DTYPE_U16, 8 },     { COFFER_DTYPE_I32, 9 },
    { COFFER_DTYPE_U32, 10 },    { COFFER_DTYPE_I64, 11 },    { COFFER_DTYPE_U64, 12 },
    { COFFER_DTYPE_INT8, 0x10 }, { COFFER_DTYPE_INT4, 0x11 }, { COFFER_DTYPE_Q8, 0x20 },
    { COFFER_DTYPE_Q4, 0x21 },   { COFFER_DTYPE_K6, 0x30 },   { COFFER_DTYPE_K4, 0x31 },
    { COFFER_DTYPE_K3, 0x32 },   { COFFER_DTYPE_K2, 0x33 },
};

uint8_t coffer__dtype_code(coffer_dtype dtype)
{
    for (size_t i = 0; i < sizeof dtype_codes / sizeof dtype_codes[0]; i++) {
        if (dtype_codes[i].dtype == dtype)
            return dtype_codes[i].code;
    }
    return 0;
}

coffer_dtype coffer__dtype_of_code(uint32_t code)
{
    for (size_t i = 0; i < sizeof dtype_codes / sizeof dtype_codes[0]; i++) {
        if (dtype_codes[i].code == code)
            return dtype_codes[i].dtype;
    }
    return COFFER_DTYPE_NONE;
}
