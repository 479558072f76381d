/* Rows out of a Matrix Market file: coordinates in any order, or an array by columns. */
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "convert/matrices/pycauset_input.h"
#include "convert/matrices/pycauset_values.h"
#include "io/file.h"
#include "io/source_private.h"
#include "io/temporary.h"
#include "outside/arrays/entries.h"
#include "outside/arrays/mtx.h"

#include <inttypes.h>
#include <string.h>

/* A matrix that exceeds the memory limit and has fewer than one value per this many elements is refused
 * unless the setting "dense" asks for it. */
#define MAX_SPARSE_RATIO 1000
#define SPOOL_BUFFER ((size_t)1 << 20)

static const char spool_name[] = "temporary file";

typedef struct mtx_state {
    coffer__mtx mtx;
    coffer__entries *entries; /* of coordinates */
    coffer__entry pending;
    bool has_pending;
    uint64_t next; /* row */
    /* An array that has to be turned round: in memory, or in a file when it is large. */
    coffer__buffer spool;
    int spool_fd;
    coffer_source *spooled;
} mtx_state;

static void close_state(void *state)
{
    mtx_state *from = state;
    if (!from)
        return;
    coffer__mtx_close(&from->mtx);
    coffer__entries_free(from->entries);
    coffer_source_close(from->spooled);
    coffer__file_close(from->spool_fd);
    coffer__buffer_free(&from->spool);
    coffer__free(from);
}

static coffer_dtype dtype_of(const coffer__mtx *mtx, coffer_dtype wanted)
{
    bool has_negatives = mtx->symmetry == COFFER__MTX_SKEW;
    switch (mtx->field) {
    case COFFER__MTX_PATTERN:
        return COFFER_DTYPE_BOOL;
    case COFFER__MTX_COMPLEX:
        return COFFER_DTYPE_C128;
    case COFFER__MTX_UNSIGNED:
        return COFFER_DTYPE_U64;
    case COFFER__MTX_INTEGER:
        return wanted == COFFER_DTYPE_U64 && !has_negatives ? COFFER_DTYPE_U64 : COFFER_DTYPE_I64;
    default:
        return COFFER_DTYPE_F64;
    }
}

/* ---- Values ---- */

static coffer_status take_value(coffer__entry *out, const coffer__mtx_entry *entry, coffer_dtype dtype,
                                coffer_error *err)
{
    bool fits = true;
    memset(&out->value, 0, sizeof out->value);
    if (dtype == COFFER_DTYPE_F64 || dtype == COFFER_DTYPE_C128) {
        out->value.real[0] = coffer__number_as_f64(&entry->real);
        out->value.real[1] = coffer__number_as_f64(&entry->imag);
    } else if (dtype == COFFER_DTYPE_I64) {
        fits = entry->real.kind == COFFER__NUMBER_I64 || entry->real.as.u64 <= INT64_MAX;
        out->value.i64 = entry->real.as.i64;
    } else {
        fits = entry->real.kind == COFFER__NUMBER_U64;
        out->value.u64 = entry->real.as.u64;
    }
    char text[COFFER__NUMBER_TEXT];
    if (!fits)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "line %" PRIu64 ": %s does not fit %s; use --dtype %s", entry->line,
                            coffer__number_text(text, &entry->real), coffer_dtype_name(dtype),
                            dtype == COFFER_DTYPE_I64 ? "u64" : "i64");
    return COFFER_OK;
}

/* The image of a value on the other side of the diagonal. */
static coffer__entry mirrored(coffer__entry entry, coffer__mtx_symmetry symmetry, coffer_dtype dtype)
{
    if (symmetry == COFFER__MTX_HERMITIAN) {
        entry.value.real[1] = 0 - entry.value.real[1];
    } else if (symmetry == COFFER__MTX_SKEW && dtype == COFFER_DTYPE_I64) {
        entry.value.u64 = 0 - entry.value.u64;
    } else if (symmetry == COFFER__MTX_SKEW) {
        entry.value.real[0] = 0 - entry.value.real[0];
        entry.value.real[1] = 0 - entry.value.real[1];
    }
    return entry;
}

static size_t store(uint8_t *to, const coffer__entry *entry, coffer_dtype dtype)
{
    if (dtype == COFFER_DTYPE_BOOL)
        *to = (uint8_t)entry->value.u64;
    else
        coffer__store_u64(to, entry->value.u64); /* the bits of any of them */
    if (dtype == COFFER_DTYPE_C128) {
        uint64_t bits;
        memcpy(&bits, &entry->value.real[1], sizeof bits);
        coffer__store_u64(to + 8, bits);
    }
    return coffer_dtype_size(dtype);
}

static coffer_status check_diagonal(const coffer__mtx *mtx, const coffer__mtx_entry *entry, coffer_error *err)
{
    if (mtx->symmetry != COFFER__MTX_SKEW || entry->row != entry->col)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                        "line %" PRIu64 ": a skew-symmetric matrix has no diagonal", entry->line);
}

/* ---- Coordinates ---- */

/* half : only what is on or above the diagonal; else every entry beside it comes twice. */
static coffer_status add_entry(mtx_state *from, const coffer__mtx_entry *read, bool half, coffer_dtype dtype,
                               coffer_error *err)
{
    coffer__entry entry, image;
    uint64_t cols = from->mtx.cols;
    bool symmetric = from->mtx.symmetry != COFFER__MTX_GENERAL;
    coffer_status status = check_diagonal(&from->mtx, read, err);
    if (!status)
        status = take_value(&entry, read, dtype, err);
    if (status)
        return status;
    entry.place = read->row * cols + read->col;
    image = mirrored(entry, from->mtx.symmetry, dtype);
    image.place = read->col * cols + read->row;
    if (!symmetric || !half || read->row <= read->col)
        status = coffer__entries_add(from->entries, &entry, err);
    if (!status && symmetric && read->row != read->col && (!half || read->row > read->col))
        status = coffer__entries_add(from->entries, &image, err);
    return status;
}

static coffer_status read_entries(mtx_state *from, bool half, coffer_dtype dtype,
                                  const coffer__convert_job *job, coffer_error *err)
{
    uint64_t expected = from->mtx.entries, product;
    if (!coffer__mul_u64(&product, from->mtx.rows, from->mtx.cols))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a matrix of %" PRIu64 " × %" PRIu64 " values", from->mtx.rows, from->mtx.cols);
    if (!half && from->mtx.symmetry != COFFER__MTX_GENERAL)
        expected *= 2; /* the entries fit into the file, so twice their number fits into 64 bits */
    coffer_status status =
        coffer__entries_new(&from->entries, dtype, expected, job->limits.memory_bytes / 2, err);
    bool more = true;
    while (!status && more) {
        coffer__mtx_entry entry;
        status = coffer__mtx_next(&more, &entry, &from->mtx, err);
        if (!status && more)
            status = add_entry(from, &entry, half, dtype, err);
        if (!status && from->mtx.read % 65536 == 0)
            status = coffer__job_progress(job, from->mtx.read, 2 * from->mtx.entries, err);
    }
    return status ? status : coffer__entries_next(&from->has_pending, &from->pending, from->entries, err);
}

static coffer_status read_sparse_rows(void *out, uint64_t count, coffer__pycauset_input *input,
                                      coffer_error *err)
{
    mtx_state *from = input->state;
    size_t size = coffer_dtype_size(input->dtype);
    uint64_t first = from->next * input->cols, end = (from->next + count) * input->cols;
    coffer_status status = COFFER_OK;
    memset(out, 0, (size_t)((end - first) * size));
    while (!status && from->has_pending && from->pending.place < end) {
        store((uint8_t *)out + (from->pending.place - first) * size, &from->pending, input->dtype);
        status = coffer__entries_next(&from->has_pending, &from->pending, from->entries, err);
    }
    from->next += count;
    return status;
}

static coffer_status refuse_sparse(const coffer__mtx *mtx, coffer_dtype dtype, bool bits,
                                   const coffer__convert_job *job, coffer_error *err)
{
    uint64_t values, bytes;
    bool fits = coffer__mul_u64(&values, mtx->rows, mtx->cols) &&
                coffer__mul_u64(&bytes, values, coffer_dtype_size(dtype));
    if (fits && bits)
        bytes = values / 8;
    bool huge = !fits || (bytes > job->limits.memory_bytes && mtx->entries < values / MAX_SPARSE_RATIO);
    if (!fits || (huge && !coffer__job_has(job, "dense")))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " entries in %" PRIu64 " × %" PRIu64 " would fill more than %" PRIu64
                            " bytes with zeros; use --dense to convert it anyway",
                            mtx->entries, mtx->rows, mtx->cols, job->limits.memory_bytes);
    bool sparse =
        fits && mtx->coordinate && mtx->symmetry == COFFER__MTX_GENERAL && mtx->entries < values / 2;
    if (sparse && job->notes && job->is_scratch)
        coffer__report_add(job->notes, COFFER_E_UNSUPPORTED, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "%" PRIu64 " of %" PRIu64 " values are zeros that the input does not store",
                           values - mtx->entries, values);
    if (sparse && !job->is_scratch && !coffer__job_has(job, "dense") && !coffer__job_has(job, "type"))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a sparse matrix of %" PRIu64 " × %" PRIu64 " with %" PRIu64
                            " entries would be stored with all its zeros, in %" PRIu64
                            " bytes; use --dense for that, or --type triangular, causal or diagonal",
                            mtx->rows, mtx->cols, mtx->entries, bytes);
    return COFFER_OK;
}

/* ---- Arrays ---- */

/* Column by column in the file is row by row of the upper triangle. */
static coffer_status read_half_rows(void *out, uint64_t count, coffer__pycauset_input *input,
                                    coffer_error *err)
{
    mtx_state *from = input->state;
    size_t size = coffer_dtype_size(input->dtype);
    uint64_t first = from->mtx.symmetry == COFFER__MTX_SKEW ? 1 : 0;
    memset(out, 0, (size_t)(count * input->cols * size));
    for (uint64_t row = 0; row < count; row++, from->next++) {
        uint8_t *to = (uint8_t *)out + row * input->cols * size;
        for (uint64_t col = from->next + first; col < input->cols; col++) {
            coffer__mtx_entry read;
            coffer__entry entry;
            bool more;
            coffer_status status = coffer__mtx_next(&more, &read, &from->mtx, err);
            if (!status)
                status = take_value(&entry, &read, input->dtype, err);
            if (status)
                return status;
            entry = mirrored(entry, from->mtx.symmetry, input->dtype);
            store(to + col * size, &entry, input->dtype);
        }
    }
    if (from->next < input->rows)
        return COFFER_OK;
    bool more;
    return coffer__mtx_next(&more, &(coffer__mtx_entry){ 0 }, &from->mtx, err);
}

static coffer_status flush_spool(mtx_state *from, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (from->spool_fd < 0)
        status = coffer__temporary_unnamed(&from->spool_fd, err);
    if (!status)
        status = coffer__file_write(from->spool_fd, from->spool.data, from->spool.len, spool_name, err);
    from->spool.len = 0;
    return status;
}

/* Writes all columns, with zeros above the diagonal where the file has only what is below. */
static coffer_status spool_array(mtx_state *from, coffer_dtype dtype, const coffer__convert_job *job,
                                 coffer_error *err)
{
    size_t size = coffer_dtype_size(dtype);
    uint64_t place = 0, keep = job->limits.memory_bytes / 4;
    bool more = true;
    for (;;) {
        coffer__mtx_entry read;
        coffer__entry entry;
        coffer_status status = coffer__mtx_next(&more, &read, &from->mtx, err);
        if (!status && more)
            status = take_value(&entry, &read, dtype, err);
        if (status || !more)
            return status;
        uint64_t wanted = read.col * from->mtx.rows + read.row;
        coffer__buffer_fill(&from->spool, 0, (size_t)((wanted - place) * size));
        uint8_t *to = coffer__buffer_extend(&from->spool, size);
        if (!to)
            return coffer__fail_no_memory(err, from->spool.len);
        store(to, &entry, dtype);
        place = wanted + 1;
        if (from->spool.len > keep || (from->spool_fd >= 0 && from->spool.len > SPOOL_BUFFER))
            status = flush_spool(from, err);
        if (!status && from->mtx.read % 65536 == 0)
            status = coffer__job_progress(job, from->mtx.read, 2 * from->mtx.entries, err);
        if (status)
            return status;
    }
}

static coffer_status open_spool(mtx_state *from, coffer_dtype dtype, coffer_error *err)
{
    /* The columns after the last value may be all zeros. */
    uint64_t size = from->mtx.rows * from->mtx.cols * coffer_dtype_size(dtype);
    if (from->spool_fd < 0) {
        if (!coffer__buffer_fill(&from->spool, 0, (size_t)(size - from->spool.len)))
            return coffer__fail_no_memory(err, size);
        return coffer_source_from_memory(&from->spooled, from->spool.data, (size_t)size, err);
    }
    coffer_status status = flush_spool(from, err);
    if (!status)
        status = coffer__file_truncate(from->spool_fd, size, spool_name, err);
    if (!status)
        status = coffer__source_over_fd(&from->spooled, from->spool_fd, true, size, spool_name, NULL, err);
    if (!status)
        from->spool_fd = -1;
    return status;
}

/* ---- Opening ---- */

/* Stores only half of the matrix when the file says so and the settings do not ask for another type. */
static coffer__pycauset_mirror choose_half(const coffer__mtx *mtx, const coffer__convert_job *job)
{
    const char *type = coffer__job_setting(job, "type");
    if (mtx->symmetry == COFFER__MTX_SYMMETRIC && (!type || strcmp(type, "symmetric") == 0))
        return COFFER__PYCAUSET_SYMMETRIC;
    if (mtx->symmetry == COFFER__MTX_SKEW && (!type || strcmp(type, "antisymmetric") == 0))
        return COFFER__PYCAUSET_ANTISYMMETRIC;
    return COFFER__PYCAUSET_PLAIN;
}

static coffer_status open_array(coffer__pycauset_input *out, mtx_state *from, const coffer__convert_job *job,
                                coffer_error *err)
{
    static const coffer__pycauset_mirror mirrors[] = {
        [COFFER__MTX_GENERAL] = COFFER__PYCAUSET_PLAIN,
        [COFFER__MTX_SYMMETRIC] = COFFER__PYCAUSET_SYMMETRIC,
        [COFFER__MTX_SKEW] = COFFER__PYCAUSET_ANTISYMMETRIC,
        [COFFER__MTX_HERMITIAN] = COFFER__PYCAUSET_HERMITIAN,
    };
    if (out->half != COFFER__PYCAUSET_PLAIN) {
        out->read = read_half_rows;
        return COFFER_OK;
    }
    coffer_status status = spool_array(from, out->dtype, job, err);
    if (!status)
        status = open_spool(from, out->dtype, err);
    if (status)
        return status;
    coffer__pycauset_elements elements = { .src = from->spooled,
                                           .by_columns = true,
                                           .mirror = mirrors[from->mtx.symmetry],
                                           .owner = from,
                                           .close_owner = close_state };
    return coffer__pycauset_input_elements(out, &elements, &job->limits, err);
}

coffer_status coffer__pycauset_input_mtx(coffer__pycauset_input *out, const coffer__convert_job *job,
                                         coffer_error *err)
{
    coffer_dtype wanted = COFFER_DTYPE_NONE;
    coffer_status status = coffer__pycauset_dtype_setting(&wanted, job, err);
    if (status)
        return status;
    mtx_state *from = coffer__calloc(1, sizeof *from);
    if (!from)
        return coffer__fail_no_memory(err, sizeof *from);
    coffer__buffer_init(&from->spool, SIZE_MAX);
    from->spool_fd = -1;
    status = coffer__mtx_open(&from->mtx, job->in, &job->limits, err);
    if (!status) {
        *out = (coffer__pycauset_input){ .rows = from->mtx.rows,
                                         .cols = from->mtx.cols,
                                         .is_vector = from->mtx.cols == 1 && from->mtx.rows != 1,
                                         .dtype = dtype_of(&from->mtx, wanted),
                                         .half = choose_half(&from->mtx, job),
                                         .state = from,
                                         .read = read_sparse_rows,
                                         .close = close_state };
        bool bits = wanted == COFFER_DTYPE_BIT || out->dtype == COFFER_DTYPE_BOOL;
        if (!from->mtx.coordinate)
            status = open_array(out, from, job, err);
        else
            status = refuse_sparse(&from->mtx, out->dtype, bits, job, err);
        if (!status && from->mtx.coordinate)
            status = read_entries(from, out->half != COFFER__PYCAUSET_PLAIN, out->dtype, job, err);
    }
    if (status) {
        close_state(from);
        memset(out, 0, sizeof *out);
    }
    return status;
}
