/* Rows from consecutive elements in row-major or column-major order. */
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/matrices/pycauset_input.h"
#include "convert/matrices/pycauset_values.h"
#include "outside/arrays/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Pieces of columns that are turned into rows at a time. The wider a band, the longer the pieces that are
 * read of each column. */
#define MAX_BAND_BYTES (UINT64_C(256) << 20)
#define COLUMN_BLOCK 16

typedef struct elements_state {
    coffer__pycauset_elements from;
    uint64_t next; /* row */
    uint8_t *columns;
    uint64_t columns_bytes;
} elements_state;

static void close_state(void *state)
{
    elements_state *elements = state;
    if (!elements)
        return;
    if (elements->from.close_owner)
        elements->from.close_owner(elements->from.owner);
    coffer__free(elements->columns);
    coffer__free(elements);
}

/* Converts the byte order, and makes every nonzero boolean 1. */
static void tidy(void *out, const elements_state *state, coffer_dtype dtype, size_t count)
{
    uint8_t *bytes = out;
    if (state->from.big_endian)
        coffer__npy_swap(out, dtype, count);
    for (size_t i = 0; dtype == COFFER_DTYPE_BOOL && i < count; i++)
        bytes[i] = bytes[i] != 0;
}

static coffer_status read_rows(void *out, uint64_t count, coffer__pycauset_input *input, coffer_error *err)
{
    elements_state *state = input->state;
    uint64_t row_bytes = input->cols * coffer_dtype_size(input->dtype);
    size_t len = (size_t)(count * row_bytes);
    coffer_status status =
        coffer_source_read_at(out, state->from.src, state->from.offset + state->next * row_bytes, len, err);
    if (status)
        return status;
    tidy(out, state, input->dtype, (size_t)(count * input->cols));
    state->next += count;
    return COFFER_OK;
}

static coffer_status make_room(elements_state *state, uint64_t bytes, coffer_error *err)
{
    if (bytes <= state->columns_bytes)
        return COFFER_OK;
    coffer__free(state->columns);
    state->columns = coffer__malloc((size_t)bytes);
    state->columns_bytes = state->columns ? bytes : 0;
    return state->columns ? COFFER_OK : coffer__fail_no_memory(err, bytes);
}

/* Of an I64, F64 or C128, which is what text becomes. Zero stays as it is. */
static void negate(uint8_t *element, coffer_dtype dtype)
{
    for (size_t at = 0; at < coffer_dtype_size(dtype); at += 8) {
        uint64_t bits = coffer__load_u64(element + at);
        if (bits != 0)
            coffer__store_u64(element + at, dtype == COFFER_DTYPE_I64 ? 0 - bits : bits ^ UINT64_C(1) << 63);
    }
}

/* The part of a row after its diagonal mirrors a column. */
static coffer_status read_mirrored(uint8_t *row, uint64_t index, coffer__pycauset_input *input,
                                   coffer_error *err)
{
    elements_state *state = input->state;
    size_t size = coffer_dtype_size(input->dtype);
    uint64_t first = index + 1;
    coffer_status status = coffer_source_read_at(row + first * size, state->from.src,
                                                 state->from.offset + (index * input->rows + first) * size,
                                                 (size_t)((input->cols - first) * size), err);
    for (uint64_t col = first; !status && col < input->cols; col++) {
        uint8_t *element = row + col * size;
        if (state->from.mirror == COFFER__PYCAUSET_ANTISYMMETRIC)
            negate(element, input->dtype);
        else if (state->from.mirror == COFFER__PYCAUSET_HERMITIAN)
            element[size - 1] ^= 0x80;
    }
    return status;
}

static coffer_status read_columns(void *out, uint64_t count, coffer__pycauset_input *input, coffer_error *err)
{
    elements_state *state = input->state;
    size_t size = coffer_dtype_size(input->dtype);
    uint64_t piece = count * size;
    coffer_status status = make_room(state, piece * COLUMN_BLOCK, err);
    for (uint64_t col = 0; !status && col < input->cols; col += COLUMN_BLOCK) {
        uint64_t some = input->cols - col < COLUMN_BLOCK ? input->cols - col : COLUMN_BLOCK;
        for (uint64_t i = 0; !status && i < some; i++)
            status =
                coffer_source_read_at(state->columns + i * piece, state->from.src,
                                      state->from.offset + ((col + i) * input->rows + state->next) * size,
                                      (size_t)piece, err);
        if (!status)
            coffer__pycauset_columns_to_rows((uint8_t *)out + col * size, (size_t)(input->cols * size),
                                             state->columns, (size_t)count, (size_t)some, size);
    }
    for (uint64_t i = 0; !status && state->from.mirror != COFFER__PYCAUSET_PLAIN && i < count; i++)
        status = read_mirrored((uint8_t *)out + i * input->cols * size, state->next + i, input, err);
    if (status)
        return status;
    tidy(out, state, input->dtype, (size_t)(count * input->cols));
    state->next += count;
    return COFFER_OK;
}

coffer_status coffer__pycauset_input_elements(coffer__pycauset_input *out,
                                              const coffer__pycauset_elements *elements,
                                              const coffer_limits *limits, coffer_error *err)
{
    elements_state *state = coffer__calloc(1, sizeof *state);
    if (!state)
        return coffer__fail_no_memory(err, sizeof *state);
    state->from = *elements;
    out->state = state;
    out->close = close_state;
    out->read = elements->by_columns ? read_columns : read_rows;
    if (elements->by_columns)
        out->band_bytes =
            limits->memory_bytes / 4 < MAX_BAND_BYTES ? limits->memory_bytes / 4 : MAX_BAND_BYTES;
    return COFFER_OK;
}

coffer_status coffer__pycauset_slice(uint64_t *matrix, const uint64_t *shape, size_t dimensions,
                                     const coffer__convert_job *job, coffer_error *err)
{
    const char *text = coffer__job_setting(job, "slice"), *at = text ? text : "";
    size_t given = 0;
    uint64_t number = 0;
    for (; *at && given + 2 < dimensions; given++) {
        char *end;
        bool negative = *at == '-';
        errno = 0;
        uint64_t index = strtoull(at + negative, &end, 10);
        if (end == at + negative || errno || (*end && *end != ',') || index > shape[given] ||
            (!negative && index == shape[given]) || (negative && index == 0))
            break;
        number = number * shape[given] + (negative ? shape[given] - index : index);
        at = end + (*end == ',');
    }
    *matrix = number;
    if (given + 2 == dimensions && !*at)
        return COFFER_OK;
    coffer__buffer sizes = COFFER__BUFFER_INIT;
    for (size_t i = 0; i < dimensions && i < 8; i++)
        coffer__buffer_printf(&sizes, "%s%" PRIu64, i ? " x " : "", shape[i]);
    coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                 "an array of %s: --slice selects a matrix by %zu ind%s", coffer__buffer_text(&sizes),
                 dimensions - 2, dimensions == 3 ? "ex" : "ices");
    coffer__buffer_free(&sizes);
    return COFFER_E_INVALID_ARGUMENT;
}

coffer_status coffer__pycauset_reshape(coffer__pycauset_input *out, uint64_t count,
                                       const coffer__convert_job *job, coffer_error *err)
{
    bool has_rows = coffer__job_has(job, "rows"), has_cols = coffer__job_has(job, "cols");
    uint64_t rows = 0, cols = 0, product;
    coffer_status status = coffer__job_number(&rows, job, "rows", UINT64_MAX, err);
    if (!status)
        status = coffer__job_number(&cols, job, "cols", UINT64_MAX, err);
    if (status)
        return status;
    if (!has_rows && cols > 0)
        rows = count / cols;
    if (!has_cols && rows > 0)
        cols = count / rows;
    if (!coffer__mul_u64(&product, rows, cols) || product != count)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " elements do not make %" PRIu64 " rows of %" PRIu64, count, rows,
                            cols);
    out->rows = rows;
    out->cols = cols;
    out->is_vector = false;
    return COFFER_OK;
}
