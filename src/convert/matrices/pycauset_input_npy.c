/* Rows from consecutive elements: of a NumPy array, in a file or an archive, or of a file of raw elements. */
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
#include <string.h>

/* Rows from consecutive elements in row-major or column-major order. */

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

/* Sets the shape for `count` elements from the settings "rows" and "cols", either of which may be missing.
 * COFFER_E_INVALID_ARGUMENT when the product is not `count`. */
static coffer_status pycauset_reshape(coffer__pycauset_input *out, uint64_t count,
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

/* Rows from a NumPy array, in a file or an archive, and from a file of raw elements. */

static coffer_status fail_type(const coffer__npy *npy, coffer_error *err)
{
    const coffer__npy_field *field = &npy->fields[0];
    if (npy->structured)
        return coffer__fail(
            err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
            "an array of items with %zu fields; a matrix has numbers: save one field, a[\"%s\"]",
            npy->field_count, npy->field_count ? npy->fields[0].name : "");
    if (field->kind == 'f' || field->kind == 'c')
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "elements of type %c%" PRIu64 "; the widest that a matrix has is %s", field->kind,
                            field->size,
                            field->kind == 'f' ? "f8: save a.astype(\"f8\")" : "c16: a.astype(\"c16\")");
    return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                        "elements of type %c%" PRIu64 " are not numbers", field->kind, field->size);
}

static coffer_status take_shape(coffer__pycauset_input *out, uint64_t *matrix, const coffer__npy *npy,
                                const coffer__convert_job *job, coffer_error *err)
{
    bool reshaped = coffer__job_has(job, "rows") || coffer__job_has(job, "cols");
    if (reshaped && npy->fortran_order && npy->dimensions > 1)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "an array in Fortran order keeps its shape; save a.reshape(...) instead");
    if (reshaped)
        return pycauset_reshape(out, npy->count, job, err);
    if (npy->dimensions > 2) {
        if (npy->fortran_order)
            return coffer__fail(
                err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                "an array of %zu dimensions in Fortran order; save numpy.ascontiguousarray(a)",
                npy->dimensions);
        out->rows = npy->shape[npy->dimensions - 2];
        out->cols = npy->shape[npy->dimensions - 1];
        return coffer__pycauset_slice(matrix, npy->shape, npy->dimensions, job, err);
    }
    if (coffer__job_has(job, "slice"))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "--slice is for arrays of three dimensions and more, this has %zu",
                            npy->dimensions);
    out->is_vector = npy->dimensions == 1;
    out->rows = npy->dimensions > 0 ? npy->shape[0] : 1;
    out->cols = npy->dimensions > 1 ? npy->shape[1] : 1;
    return COFFER_OK;
}

static coffer_status take_array(coffer__pycauset_input *out, coffer__pycauset_elements *elements,
                                const coffer__npy *npy, const coffer__convert_job *job, coffer_error *err)
{
    memset(out, 0, sizeof *out);
    out->dtype = npy->structured ? COFFER_DTYPE_NONE : coffer__npy_dtype(&npy->fields[0]);
    if (out->dtype == COFFER_DTYPE_NONE)
        return fail_type(npy, err);
    uint64_t matrix = 0;
    coffer_status status = take_shape(out, &matrix, npy, job, err);
    if (status)
        return status;
    /* The header was read with the whole size, so no product overflows. */
    elements->offset = npy->data_offset + matrix * out->rows * out->cols * npy->item_size;
    elements->big_endian = npy->fields[0].big_endian;
    elements->by_columns = npy->fortran_order && !out->is_vector;
    return COFFER_OK;
}

coffer_status coffer__pycauset_input_npy(coffer__pycauset_input *out, const coffer__convert_job *job,
                                         coffer_error *err)
{
    coffer__pycauset_elements elements = { .src = job->in };
    coffer__npy npy;
    coffer_status status = coffer__npy_read(&npy, job->in, err);
    if (status)
        return status;
    status = take_array(out, &elements, &npy, job, err);
    if (!status)
        status = coffer__pycauset_input_elements(out, &elements, &job->limits, err);
    coffer__npy_free(&npy);
    return status;
}

/* ---- Archives ---- */

typedef struct archive {
    coffer__npz npz;
    coffer_source *member;
} archive;

static void close_archive(void *owner)
{
    archive *held = owner;
    coffer_source_close(held->member);
    coffer__npz_close(&held->npz);
    coffer__free(held);
}

static coffer_status choose_member(size_t *out, const coffer__npz *npz, const coffer__convert_job *job,
                                   coffer_error *err)
{
    const char *name = coffer__job_setting(job, "member");
    coffer__buffer names = COFFER__BUFFER_INIT;
    *out = name ? coffer__npz_find(npz, name) : 0;
    if (*out < npz->count && (name || npz->count == 1))
        return COFFER_OK;
    for (size_t i = 0; i < npz->count && names.len < 120; i++)
        coffer__buffer_printf(&names, "%s%s", i ? ", " : "", npz->arrays[i].name);
    coffer_status status = name ? COFFER_E_NOT_FOUND : COFFER_E_INVALID_ARGUMENT;
    if (npz->count == 0)
        coffer__fail(err, status = COFFER_E_MISSING, COFFER_OFFSET_NONE, "no array in the archive");
    else if (name)
        coffer__fail(err, status, COFFER_OFFSET_NONE, "no array \"%s\" in the archive; there are %s", name,
                     coffer__buffer_text(&names));
    else
        coffer__fail(err, status, COFFER_OFFSET_NONE,
                     "%zu arrays in the archive; choose one with --member: %s", npz->count,
                     coffer__buffer_text(&names));
    coffer__buffer_free(&names);
    return status;
}

coffer_status coffer__pycauset_input_npz(coffer__pycauset_input *out, const coffer__convert_job *job,
                                         coffer_error *err)
{
    archive *held = coffer__calloc(1, sizeof *held);
    coffer__pycauset_elements elements = { .owner = held, .close_owner = close_archive };
    size_t index = 0;
    if (!held)
        return coffer__fail_no_memory(err, sizeof *held);
    coffer_status status = coffer__npz_open(&held->npz, job->in, &job->limits, err);
    if (!status)
        status = choose_member(&index, &held->npz, job, err);
    if (!status)
        status = take_array(out, &elements, &held->npz.arrays[index].npy, job, err);
    if (!status)
        status = coffer__npz_source(&held->member, &held->npz, index,
                                    elements.by_columns ? COFFER__ZIP_RANDOM : COFFER__ZIP_FORWARD, err);
    if (!status) {
        elements.src = held->member;
        status = coffer__pycauset_input_elements(out, &elements, &job->limits, err);
    }
    if (status)
        close_archive(held);
    return status;
}

/* ---- Raw elements ---- */

coffer_status coffer__pycauset_input_raw(coffer__pycauset_input *out, const coffer__convert_job *job,
                                         coffer_error *err)
{
    coffer__pycauset_elements elements = { .src = job->in };
    coffer_dtype dtype = COFFER_DTYPE_NONE;
    uint64_t size = coffer_source_size(job->in);
    memset(out, 0, sizeof *out);
    coffer_status status = coffer__pycauset_dtype_setting(&dtype, job, err);
    if (!status)
        status = coffer__job_number(&elements.offset, job, "offset", size, err);
    if (status)
        return status;
    if (dtype == COFFER_DTYPE_NONE)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "raw bytes need --dtype for the element type and --cols for the number per row");
    out->dtype = coffer__pycauset_memory_dtype(dtype);
    uint64_t element = coffer_dtype_size(out->dtype), bytes = size - elements.offset;
    if (bytes % element != 0)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "%" PRIu64 " bytes are not a multiple of the element size %" PRIu64, bytes,
                            element);
    out->rows = bytes / element;
    out->cols = 1;
    out->is_vector = true;
    if (coffer__job_has(job, "rows") || coffer__job_has(job, "cols"))
        status = pycauset_reshape(out, bytes / element, job, err);
    if (!status)
        status = coffer__pycauset_input_elements(out, &elements, &job->limits, err);
    return status;
}
