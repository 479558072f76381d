/* Names of types, and how many bytes a matrix takes. */
#include "formats/pycauset/pycauset_private.h"

#include "base/checked.h"

#include <string.h>

static const char *const type_names[] = {
    [COFFER_PYCAUSET_DENSE_FLOAT] = "DENSE_FLOAT",
    [COFFER_PYCAUSET_INTEGER] = "INTEGER",
    [COFFER_PYCAUSET_CAUSAL] = "CAUSAL",
    [COFFER_PYCAUSET_TRIANGULAR_FLOAT] = "TRIANGULAR_FLOAT",
    [COFFER_PYCAUSET_TRIANGULAR_INTEGER] = "TRIANGULAR_INTEGER",
    [COFFER_PYCAUSET_SYMMETRIC] = "SYMMETRIC",
    [COFFER_PYCAUSET_ANTISYMMETRIC] = "ANTISYMMETRIC",
    [COFFER_PYCAUSET_VECTOR] = "VECTOR",
    [COFFER_PYCAUSET_UNIT_VECTOR] = "UNIT_VECTOR",
    [COFFER_PYCAUSET_IDENTITY] = "IDENTITY",
    [COFFER_PYCAUSET_BLOCK] = "BLOCK",
    [COFFER_PYCAUSET_DIAGONAL] = "DIAGONAL",
};

static const char *const layout_names[] = {
    [COFFER_PYCAUSET_LAYOUT_NONE] = "none",
    [COFFER_PYCAUSET_RAW_DENSE] = "raw_dense",
    [COFFER_PYCAUSET_RAW_TRIANGULAR] = "raw_triangular",
    [COFFER_PYCAUSET_RAW_DIAGONAL] = "raw_diagonal",
};

static const char *const dtype_names[COFFER_DTYPE_COUNT] = {
    [COFFER_DTYPE_NONE] = "MIXED",
    [COFFER_DTYPE_BIT] = "BIT",
    [COFFER_DTYPE_I8] = "INT8",
    [COFFER_DTYPE_I16] = "INT16",
    [COFFER_DTYPE_I32] = "INT32",
    [COFFER_DTYPE_I64] = "INT64",
    [COFFER_DTYPE_U8] = "UINT8",
    [COFFER_DTYPE_U16] = "UINT16",
    [COFFER_DTYPE_U32] = "UINT32",
    [COFFER_DTYPE_U64] = "UINT64",
    [COFFER_DTYPE_F16] = "FLOAT16",
    [COFFER_DTYPE_F32] = "FLOAT32",
    [COFFER_DTYPE_F64] = "FLOAT64",
    [COFFER_DTYPE_C32] = "COMPLEX_FLOAT16",
    [COFFER_DTYPE_C64] = "COMPLEX_FLOAT32",
    [COFFER_DTYPE_C128] = "COMPLEX_FLOAT64",
};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* ---- Names ---- */

const char *coffer_pycauset_type_name(coffer_pycauset_type type)
{
    return (size_t)type < COUNT_OF(type_names) ? type_names[type] : NULL;
}

const char *coffer_pycauset_layout_name(coffer_pycauset_layout layout)
{
    return (size_t)layout < COUNT_OF(layout_names) ? layout_names[layout] : NULL;
}

const char *coffer_pycauset_dtype_name(coffer_dtype dtype)
{
    return (size_t)dtype < COUNT_OF(dtype_names) ? dtype_names[dtype] : NULL;
}

static bool find_name(size_t *out, const char *const *names, size_t count, const coffer_pycauset_value *name)
{
    for (size_t i = 0; i < count; i++) {
        if (names[i] && coffer__pycauset_text_is(name, names[i])) {
            *out = i;
            return true;
        }
    }
    return false;
}

bool coffer__pycauset_type_by_name(coffer_pycauset_type *out, const coffer_pycauset_value *name)
{
    size_t found;
    if (!find_name(&found, type_names, COUNT_OF(type_names), name))
        return false;
    *out = (coffer_pycauset_type)found;
    return true;
}

bool coffer__pycauset_layout_by_name(coffer_pycauset_layout *out, const coffer_pycauset_value *name)
{
    size_t found;
    if (!find_name(&found, layout_names, COUNT_OF(layout_names), name))
        return false;
    *out = (coffer_pycauset_layout)found;
    return true;
}

bool coffer__pycauset_dtype_by_name(coffer_dtype *out, const coffer_pycauset_value *name)
{
    size_t found;
    if (!find_name(&found, dtype_names, COUNT_OF(dtype_names), name))
        return false;
    *out = (coffer_dtype)found;
    return true;
}

coffer_pycauset_layout coffer__pycauset_layout_of(coffer_pycauset_type type)
{
    switch (type) {
    case COFFER_PYCAUSET_DENSE_FLOAT:
    case COFFER_PYCAUSET_INTEGER:
    case COFFER_PYCAUSET_VECTOR:
        return COFFER_PYCAUSET_RAW_DENSE;
    case COFFER_PYCAUSET_CAUSAL:
    case COFFER_PYCAUSET_TRIANGULAR_FLOAT:
    case COFFER_PYCAUSET_TRIANGULAR_INTEGER:
    case COFFER_PYCAUSET_SYMMETRIC:
    case COFFER_PYCAUSET_ANTISYMMETRIC:
        return COFFER_PYCAUSET_RAW_TRIANGULAR;
    case COFFER_PYCAUSET_DIAGONAL:
        return COFFER_PYCAUSET_RAW_DIAGONAL;
    case COFFER_PYCAUSET_UNIT_VECTOR:
    case COFFER_PYCAUSET_IDENTITY:
    case COFFER_PYCAUSET_BLOCK:
    case COFFER_PYCAUSET_UNKNOWN:
        break;
    }
    return COFFER_PYCAUSET_LAYOUT_NONE;
}

/* ---- How the first program reads them ---- */

/* Seen with pycauset 0.6.1: these classes have one element type, and are read with it whatever data_type is.
 */
static const char *misread_type(const coffer_pycauset_info *info)
{
    coffer_dtype read_as =
        info->type == COFFER_PYCAUSET_TRIANGULAR_INTEGER ? COFFER_DTYPE_I32 : COFFER_DTYPE_F64;
    switch (info->type) {
    case COFFER_PYCAUSET_TRIANGULAR_FLOAT:
    case COFFER_PYCAUSET_TRIANGULAR_INTEGER:
        if (info->has_diagonal)
            return "pycauset 0.6 does not know triangular matrices with a diagonal and reads other values";
        break;
    case COFFER_PYCAUSET_SYMMETRIC:
    case COFFER_PYCAUSET_ANTISYMMETRIC:
    case COFFER_PYCAUSET_DIAGONAL:
        break;
    default:
        return NULL;
    }
    if (info->dtype == read_as)
        return NULL;
    return read_as == COFFER_DTYPE_I32
               ? "pycauset 0.6 reads every triangular matrix of integers as INT32 and finds other values"
               : "pycauset 0.6 reads every matrix of this kind as FLOAT64 and finds other values";
}

const char *coffer_pycauset_misread(const coffer_pycauset_info *info)
{
    bool scaled = info->scalar_real != 1.0 || info->scalar_imag != 0.0;
    bool whole = info->dtype == COFFER_DTYPE_BIT || coffer_dtype_is_integer(info->dtype);
    const char *reason = misread_type(info);
    if (reason)
        return reason;
    if (info->type == COFFER_PYCAUSET_BLOCK || info->type == COFFER_PYCAUSET_UNKNOWN)
        return NULL;
    if (info->transposed && info->rows != info->cols && info->layout == COFFER_PYCAUSET_RAW_DENSE &&
        info->type != COFFER_PYCAUSET_VECTOR)
        return "pycauset 0.6 reads a transposed view of a matrix that is not square with the wrong shape";
    if (scaled && whole)
        return "pycauset 0.6 ignores the scalar of a view of integers or bits";
    if (info->scalar_imag != 0.0 && !coffer_dtype_is_complex(info->dtype))
        return "pycauset 0.6 ignores the imaginary part of the scalar of a view of real numbers";
    return NULL;
}

/* ---- Sizes ---- */

/* C32 has its parts in two planes: the size of one part. */
static size_t plane_element_bytes(coffer_dtype dtype)
{
    return coffer_dtype_size(dtype == COFFER_DTYPE_C32 ? COFFER_DTYPE_F16 : dtype);
}

static bool bit_bytes(uint64_t *out, uint64_t bits, uint64_t padded_to)
{
    return coffer__align_up(out, bits / 8 + (bits % 8 != 0), padded_to);
}

bool coffer__pycauset_dense_row_bytes(uint64_t *out, coffer_dtype dtype, uint64_t count)
{
    if (dtype == COFFER_DTYPE_BIT)
        return bit_bytes(out, count, COFFER__PYCAUSET_BIT_ROW_BYTES);
    return coffer__mul_u64(out, count, plane_element_bytes(dtype));
}

bool coffer__pycauset_triangle_row_bytes(uint64_t *out, coffer_dtype dtype, uint64_t count)
{
    uint64_t bytes;
    if (dtype == COFFER_DTYPE_BIT)
        return bit_bytes(out, count, 8);
    return coffer__mul_u64(&bytes, count, plane_element_bytes(dtype)) && coffer__align_up(out, bytes, 8);
}

/* n (n + 1) / 2 */
static bool sum_up_to(uint64_t *out, uint64_t n)
{
    if (n == UINT64_MAX)
        return false;
    return n % 2 == 0 ? coffer__mul_u64(out, n / 2, n + 1) : coffer__mul_u64(out, n, (n + 1) / 2);
}

bool coffer__pycauset_triangle_bytes(uint64_t *out, coffer_dtype dtype, uint64_t longest)
{
    size_t element = plane_element_bytes(dtype);
    uint64_t to_a_word = dtype == COFFER_DTYPE_BIT ? 64 : element < 8 ? 8 / element : 1;
    uint64_t words_each = element > 8 ? element / 8 : 1;
    /* Rows of k elements take ceil(k / to_a_word) words: to_a_word rows of one word, as many of two, … and
     * some of the longest. */
    uint64_t full = longest / to_a_word, rest = longest % to_a_word, words, longest_words;
    return sum_up_to(&words, full) && coffer__mul_u64(&words, words, to_a_word) &&
           coffer__mul_u64(&longest_words, rest, full + 1) && coffer__add_u64(&words, words, longest_words) &&
           coffer__mul_u64(&words, words, words_each) && coffer__mul_u64(out, words, 8);
}

bool coffer__pycauset_payload_needed(uint64_t *out, const coffer_pycauset_info *info)
{
    uint64_t bytes = 0, count, row;
    bool fits = true;
    switch (coffer__pycauset_layout_of(info->type)) {
    case COFFER_PYCAUSET_LAYOUT_NONE:
        break;
    case COFFER_PYCAUSET_RAW_DENSE:
        if (info->type == COFFER_PYCAUSET_VECTOR && info->dtype == COFFER_DTYPE_BIT)
            fits =
                coffer__mul_u64(&count, info->stored_rows, info->stored_cols) && bit_bytes(&bytes, count, 8);
        else
            fits = coffer__pycauset_dense_row_bytes(&row, info->dtype, info->stored_cols) &&
                   coffer__mul_u64(&bytes, row, info->stored_rows);
        break;
    case COFFER_PYCAUSET_RAW_TRIANGULAR:
        count = info->stored_rows;
        if (!info->has_diagonal && count > 0)
            count--;
        fits = coffer__pycauset_triangle_bytes(&bytes, info->dtype, count);
        break;
    case COFFER_PYCAUSET_RAW_DIAGONAL:
        fits = coffer__pycauset_dense_row_bytes(&bytes, info->dtype, info->stored_rows);
        break;
    }
    if (fits && info->dtype == COFFER_DTYPE_C32)
        fits = coffer__mul_u64(&bytes, bytes, 2);
    if (fits)
        *out = bytes;
    return fits;
}
