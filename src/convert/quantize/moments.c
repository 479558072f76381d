#include "convert/quantize/moments.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "convert/quantize/importance.h"
#include "io/file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Sums in float32 differ that much from their mirror image, relative to the diagonal. */
#define TOLERANCE 1e-3
#define DEFAULT_DAMPING 0.01

struct coffer__moments {
    coffer_tensors *set;
    char *path;
    bool *used; /* by tensor */
    uint64_t memory_bytes;
};

/* ---- Open and close ---- */

static bool is_sums(const char *name)
{
    size_t len = strlen(name), end = sizeof COFFER__MOMENTS_SUMS - 1;
    return len > end && strcmp(name + len - end, COFFER__MOMENTS_SUMS) == 0;
}

static coffer_status open_set(coffer__moments *moments, const coffer_limits *limits, coffer_error *err)
{
    coffer_tensors_open_opts opts = COFFER_TENSORS_OPEN_OPTS_INIT;
    opts.limits = limits;
    coffer_status status = coffer_tensors_open_path(&moments->set, moments->path, &opts, err);
    if (status)
        return status;
    size_t count = coffer_tensors_count(moments->set), found = 0;
    while (found < count && !is_sums(coffer_tensors_at(moments->set, found)->name))
        found++;
    if (found == count)
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                            "no tensor has a name that ends in " COFFER__MOMENTS_SUMS);
    moments->used = coffer__calloc(count, sizeof *moments->used);
    return moments->used ? COFFER_OK : coffer__fail_no_memory(err, count);
}

coffer_status coffer__moments_open(coffer__moments **out, const char *path, const coffer_limits *limits,
                                   coffer_error *err)
{
    coffer__moments *moments = coffer__calloc(1, sizeof *moments);
    if (!moments)
        return coffer__fail_no_memory(err, sizeof *moments);
    moments->memory_bytes = coffer__limits(limits).memory_bytes;
    moments->path = coffer__strdup(path);
    coffer_status status = moments->path ? coffer__fail_other(err, open_set(moments, limits, err), path)
                                         : coffer__fail_no_memory(err, strlen(path));
    if (status) {
        coffer__moments_close(moments);
        return status;
    }
    *out = moments;
    return COFFER_OK;
}

void coffer__moments_close(coffer__moments *moments)
{
    if (!moments)
        return;
    coffer_tensors_close(moments->set);
    coffer__free(moments->path);
    coffer__free(moments->used);
    coffer__free(moments);
}

const char *coffer__moments_source(const coffer__moments *moments)
{
    return moments->path + coffer__file_folder_len(moments->path);
}

/* ---- Looking up ---- */

/* A layer of the file. */
typedef struct layer {
    size_t tensor; /* SIZE_MAX = not found, or without samples */
    double samples;
} layer;

static coffer_status find_layer(layer *out, const coffer__moments *moments, const char *name,
                                coffer_error *err)
{
    layer found = { coffer__importance_find(moments->set, name, COFFER__MOMENTS_SUMS), 0.0 };
    *out = (layer){ SIZE_MAX, 0.0 };
    if (found.tensor == SIZE_MAX)
        return COFFER_OK;
    size_t count = coffer__importance_find(moments->set, name, COFFER__MOMENTS_COUNT);
    if (count == SIZE_MAX)
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                            "\"%s\" has " COFFER__MOMENTS_SUMS " and no " COFFER__MOMENTS_COUNT, name);
    if (coffer_tensors_at(moments->set, count)->elements != 1)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "\"%s\" has %" PRIu64 " counts instead of one", name,
                            coffer_tensors_at(moments->set, count)->elements);
    coffer_status status =
        coffer_tensors_read_as(&found.samples, COFFER_DTYPE_F64, moments->set, count, 0, 1, err);
    if (status)
        return status;
    if (!(found.samples >= 0.0) || isinf(found.samples))
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "\"%s\" has moments of %g samples",
                            name, found.samples);
    if (found.samples > 0.0)
        *out = found;
    return COFFER_OK;
}

static coffer_status check_shape(const coffer__moments *moments, const layer *found, const char *name,
                                 uint64_t columns, coffer_error *err)
{
    const coffer_tensor *tensor = coffer_tensors_at(moments->set, found->tensor);
    if (tensor->rank != 2 || tensor->dims[0] != tensor->dims[1])
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "the moments of \"%s\" are not a square matrix", name);
    if (tensor->dims[0] != columns)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "moments of %" PRIu64 " columns for \"%s\", which has %" PRIu64, tensor->dims[0],
                            name, columns);
    return COFFER_OK;
}

/* Finds, and checks the shape. */
static coffer_status locate(layer *out, const coffer__moments *moments, const char *name, uint64_t columns,
                            coffer_error *err)
{
    coffer_status status = find_layer(out, moments, name, err);
    return status || out->tensor == SIZE_MAX ? status : check_shape(moments, out, name, columns, err);
}

coffer_status coffer__moments_has(bool *out, const coffer__moments *moments, const char *name,
                                  coffer_error *err)
{
    layer found;
    coffer_status status = find_layer(&found, moments, name, err);
    *out = !status && found.tensor != SIZE_MAX;
    return coffer__fail_other(err, status, moments->path);
}

/* ---- Reading ---- */

/* The diagonal, and room for a row. */
typedef struct reading {
    const coffer__moments *moments;
    layer found;
    const char *name;
    size_t columns;
    double *diagonal, *row;
} reading;

static void end_reading(reading *reader)
{
    coffer__free(reader->diagonal);
    coffer__free(reader->row);
}

static coffer_status read_row(const reading *reader, size_t row, coffer_error *err)
{
    coffer_status status =
        coffer_tensors_read_as(reader->row, COFFER_DTYPE_F64, reader->moments->set, reader->found.tensor,
                               (uint64_t)row * reader->columns, reader->columns, err);
    for (size_t i = 0; !status && i < reader->columns; i++) {
        if (!isfinite(reader->row[i]))
            return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                                "the moments of \"%s\" are not finite at row %zu, column %zu", reader->name,
                                row, i);
    }
    return status;
}

/* reader : .moments, .found and .name are set; end_reading also after a failure. */
static coffer_status read_diagonal(reading *reader, uint64_t columns, coffer_error *err)
{
    if (!coffer__to_size(&reader->columns, columns))
        return coffer__fail_no_memory(err, columns);
    reader->diagonal = coffer__alloc_array(reader->columns, sizeof(double));
    reader->row = coffer__alloc_array(reader->columns, sizeof(double));
    if (!reader->diagonal || !reader->row)
        return coffer__fail_no_memory(err, columns * sizeof(double));
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < reader->columns; i++) {
        status = read_row(reader, i, err);
        reader->diagonal[i] = status ? 0.0 : reader->row[i];
        if (reader->diagonal[i] < 0.0)
            return coffer__fail(
                err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                "the moments of \"%s\" are not positive semidefinite: element %zu of the diagonal "
                "is %g",
                reader->name, i, reader->diagonal[i]);
    }
    return status;
}

/* A square is at least as large as the product of two numbers of that size. */
static coffer_status check_element(const coffer__quant_moments *matrix, size_t p, size_t q,
                                   const reading *reader, coffer_error *err)
{
    size_t n = matrix->columns, row = matrix->order[p], column = matrix->order[q];
    double here = matrix->matrix[p * n + q], mirrored = matrix->matrix[q * n + p];
    double most = sqrt(reader->diagonal[row]) * sqrt(reader->diagonal[column]);
    if (fabs(here - mirrored) > TOLERANCE * most)
        return coffer__fail(
            err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
            "the moments of \"%s\" are not symmetric: %g at row %zu, column %zu, and %g opposite",
            reader->name, here, row, column, mirrored);
    if (fabs(here) > (1.0 + TOLERANCE) * most)
        return coffer__fail(
            err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
            "the moments of \"%s\" are not positive semidefinite: %g at row %zu, column %zu is more "
            "than the diagonal allows",
            reader->name, here, row, column);
    return COFFER_OK;
}

static coffer_status fill(coffer__quant_moments *matrix, const reading *reader, coffer_error *err)
{
    size_t n = matrix->columns;
    coffer_status status = COFFER_OK;
    for (size_t p = 0; !status && p < n; p++) {
        status = read_row(reader, matrix->order[p], err);
        for (size_t q = 0; !status && q < n; q++)
            matrix->matrix[p * n + q] = reader->row[matrix->order[q]];
        for (size_t q = 0; !status && q < p; q++)
            status = check_element(matrix, p, q, reader, err);
    }
    return status;
}

static bool is_zero(const reading *reader)
{
    double sum = 0.0;
    for (size_t i = 0; i < reader->columns; i++)
        sum += reader->diagonal[i];
    return sum == 0.0;
}

static coffer_status check_memory(const coffer__moments *moments, const char *name, uint64_t columns,
                                  coffer_error *err)
{
    uint64_t bytes;
    if (coffer__mul_u64(&bytes, columns, columns) && coffer__mul_u64(&bytes, bytes, sizeof(double)) &&
        bytes <= moments->memory_bytes)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                        "the moments of \"%s\" have %" PRIu64
                        " columns and need 8 bytes for each pair of them, more "
                        "than the limit of %" PRIu64,
                        name, columns, moments->memory_bytes);
}

static coffer_status read_moments(coffer__quant_moments *out, coffer__moments *moments, const char *name,
                                  uint64_t columns, double damping, coffer__work *work, coffer_error *err)
{
    coffer__quant_moments matrix = { 0 };
    reading reader = { .moments = moments, .name = name };
    coffer_status status = locate(&reader.found, moments, name, columns, err);
    if (status || reader.found.tensor == SIZE_MAX)
        return status;
    moments->used[reader.found.tensor] = true;
    status = check_memory(moments, name, columns, err);
    if (!status)
        status = read_diagonal(&reader, columns, err);
    if (status || is_zero(&reader))
        goto out;
    status = coffer__quant_moments_new(&matrix, reader.diagonal, reader.columns, err);
    if (!status)
        status = fill(&matrix, &reader, err);
    if (!status) {
        status = coffer__quant_moments_factor(&matrix, damping > 0.0 ? damping : DEFAULT_DAMPING, work, err);
        if (status)
            (void)coffer__fail_prefix(err, status, "the moments of \"%s\"", name);
    }
    if (!status)
        *out = matrix;
    else
        coffer__quant_moments_free(&matrix);
out:
    end_reading(&reader);
    return status;
}

coffer_status coffer__moments_read(coffer__quant_moments *out, coffer__moments *moments, const char *name,
                                   uint64_t columns, double damping, coffer__work *work, coffer_error *err)
{
    *out = (coffer__quant_moments){ 0 };
    return coffer__fail_other(err, read_moments(out, moments, name, columns, damping, work, err),
                              moments->path);
}

static coffer_status diagonal_as_floats(float **out, const reading *reader, coffer_error *err)
{
    *out = coffer__alloc_array(reader->columns, sizeof **out);
    if (!*out)
        return coffer__fail_no_memory(err, reader->columns * sizeof **out);
    for (size_t i = 0; i < reader->columns; i++)
        (*out)[i] = (float)fmin(reader->diagonal[i] / reader->found.samples, 0x1p100);
    return COFFER_OK;
}

coffer_status coffer__moments_read_diagonal(float **out, const coffer__moments *moments, const char *name,
                                            uint64_t columns, coffer_error *err)
{
    reading reader = { .moments = moments, .name = name };
    *out = NULL;
    coffer_status status = locate(&reader.found, moments, name, columns, err);
    if (!status && reader.found.tensor != SIZE_MAX) {
        status = read_diagonal(&reader, columns, err);
        if (!status && !is_zero(&reader))
            status = diagonal_as_floats(out, &reader, err);
    }
    end_reading(&reader);
    return coffer__fail_other(err, status, moments->path);
}

void coffer__moments_describe_unused(coffer_node *out, const char *key, const coffer__moments *moments)
{
    coffer_node *list = coffer_node_add_list(out, key);
    for (size_t i = 0; i < coffer_tensors_count(moments->set); i++) {
        const char *name = coffer_tensors_at(moments->set, i)->name;
        if (is_sums(name) && !moments->used[i])
            coffer_node_add_text_len(list, NULL, name, strlen(name) - (sizeof COFFER__MOMENTS_SUMS - 1));
    }
}
