/* Files of other kinds to matrices: rows come from an input, are cast to the type that is stored, and go to
 * the format's writer. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "convert/matrices/pycauset_input.h"
#include "convert/matrices/pycauset_values.h"

#include <inttypes.h>
#include <string.h>

#define BAND_BYTES (UINT64_C(4) << 20)

#define COMMON_OPTIONS                                                                               \
    { "dtype", "TYPE", "element type: bit, i8 to i64, u8 to u64, f16, f32, f64, c32, c64 or c128" }, \
        { "type", "TYPE", "kind of matrix (default: by the values)",                                 \
          "dense|vector|triangular|symmetric|antisymmetric|causal|diagonal", NULL },                 \
        { "diagonal", NULL, "store the diagonal of a triangular matrix too" },                       \
        { "portable", NULL, "choose a form that the program pycauset reads correctly" },             \
        { "checksum", NULL, "accepted for older scripts: checksums are always stored" },             \
        { "metadata", "FILE", "read properties and other metadata from a JSON file" },               \
    {                                                                                                \
        NULL, NULL, NULL                                                                             \
    }

const coffer_convert_option coffer__pycauset_from_npy_options[] = {
    { "slice", "N,N…", "index in all dimensions but the last two" },
    { "rows", "N", "number of rows of the matrix" },
    { "cols", "N", "number of columns of the matrix" },
    COMMON_OPTIONS,
};

const coffer_convert_option coffer__pycauset_from_npz_options[] = {
    { "slice", "N,N…", "index in all dimensions but the last two" },
    { "member", "NAME", "name of the array in the archive" },
    { "rows", "N", "number of rows of the matrix" },
    { "cols", "N", "number of columns of the matrix" },
    COMMON_OPTIONS,
};

const coffer_convert_option coffer__pycauset_from_raw_options[] = {
    { "rows", "N", "number of rows of the matrix" },
    { "cols", "N", "number of columns of the matrix" },
    { "offset", "N", "number of bytes to skip (default: 0)" },
    COMMON_OPTIONS,
};

const coffer_convert_option coffer__pycauset_from_csv_options[] = {
    { "delimiter", "CHAR", "separator of numbers: a character, tab or space (default: by the first line)" },
    { "header", NULL, "the first line names the columns, even when the names are numbers" },
    COMMON_OPTIONS,
};

const coffer_convert_option coffer__pycauset_from_mtx_options[] = {
    { "dense", NULL, "store a sparse matrix with all its zeros" },
    COMMON_OPTIONS,
};

const coffer_convert_option coffer__pycauset_from_hdf5_options[] = {
    { "slice", "N,N…", "index in all dimensions but the last two" },
    { "dataset", "NAME", "name of the dataset in the file" },
    { "dense", NULL, "convert a large dataset even if almost none of its values are stored" },
    COMMON_OPTIONS,
};

typedef struct import {
    const coffer__convert_job *job;
    coffer__pycauset_input input;
    coffer_pycauset_shape shape;
    coffer_dtype stored; /* of what the writer takes */
    coffer_pycauset_writer *writer;
    coffer__mirror_check mirror;
    uint64_t band_rows;
    uint8_t *read, *cast; /* the latter NULL when nothing is to cast */
} import;

static coffer_status choose_band(import *state, coffer_error *err)
{
    const coffer__pycauset_input *input = &state->input;
    size_t in_size = coffer_dtype_size(input->dtype), out_size = coffer_dtype_size(state->stored);
    uint64_t limit = state->job->limits.memory_bytes, row_bytes;
    if (!coffer__mul_u64(&row_bytes, input->cols, in_size > out_size ? in_size : out_size) ||
        row_bytes > limit)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a row of %" PRIu64 " elements takes more than the limit of %" PRIu64 " bytes",
                            input->cols, limit);
    if (row_bytes == 0)
        row_bytes = 1;
    uint64_t rows = (input->band_bytes ? input->band_bytes : BAND_BYTES) / row_bytes;
    uint64_t unit = input->band_rows ? input->band_rows : 1;
    if (unit <= limit / 4 / row_bytes)
        rows = rows < unit ? unit : rows - rows % unit;
    if (rows > input->rows)
        rows = input->rows;
    state->band_rows = rows ? rows : 1;
    state->read = coffer__malloc((size_t)(state->band_rows * input->cols * in_size));
    if (state->stored != input->dtype)
        state->cast = coffer__malloc((size_t)(state->band_rows * input->cols * out_size));
    if (!state->read || (state->stored != input->dtype && !state->cast))
        return coffer__fail_no_memory(err, 2 * state->band_rows * row_bytes);
    return COFFER_OK;
}

static coffer_status write_band(import *state, uint64_t first, uint64_t count, coffer_error *err)
{
    const coffer__pycauset_input *input = &state->input;
    const uint8_t *rows = state->read;
    coffer_status status = COFFER_OK;
    if (state->cast) {
        coffer__pycauset_place place = { .row = first, .cols = input->cols };
        status = coffer__pycauset_cast(state->cast, state->stored, state->read, input->dtype,
                                       (size_t)(count * input->cols), &place, err);
        rows = state->cast;
    }
    bool mirrored =
        state->shape.type == COFFER_PYCAUSET_SYMMETRIC || state->shape.type == COFFER_PYCAUSET_ANTISYMMETRIC;
    if (!status && mirrored && input->half == COFFER__PYCAUSET_PLAIN)
        coffer__mirror_check_add(&state->mirror, rows, state->stored, first, count, input->cols);
    /* A row that becomes a vector is as many rows of one element. */
    uint64_t stored_rows = state->shape.cols == input->cols ? count : count * input->cols;
    return status ? status : coffer_pycauset_writer_put_rows(state->writer, rows, stored_rows, err);
}

static coffer_status copy_rows(import *state, coffer_error *err)
{
    coffer__pycauset_input *input = &state->input;
    coffer_status status = COFFER_OK;
    uint64_t row = 0;
    while (!status && row < input->rows) {
        uint64_t some = input->rows - row < state->band_rows ? input->rows - row : state->band_rows;
        status = input->read(state->read, some, input, err);
        if (!status)
            status = write_band(state, row, some, err);
        row += some;
        if (!status)
            status = coffer__job_progress(state->job, row, input->rows, err);
    }
    if (!status && !coffer__mirror_check_holds(&state->mirror))
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "the values are not %s; use --type dense",
                              state->mirror.negative ? "antisymmetric" : "symmetric");
    return status;
}

static coffer_status write_metadata(import *state, coffer_error *err)
{
    coffer_pycauset_changes **changes = &state->input.changes;
    coffer_status status = *changes ? COFFER_OK : coffer_pycauset_changes_new(changes, err);
    if (!status)
        status = coffer__pycauset_import_metadata(*changes, state->job, err);
    if (!status)
        status = coffer_pycauset_writer_set_metadata(state->writer, *changes, err);
    return status;
}

static void note_misread(const import *state)
{
    coffer_pycauset_info info;
    coffer__pycauset_info_of_shape(&info, &state->shape);
    const char *misread = coffer_pycauset_misread(&info);
    if (misread && state->job->notes)
        coffer__report_add(state->job->notes, COFFER_E_INCONSISTENT, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "%s; --portable chooses a form that it reads", misread);
}

static coffer_status run(import *state, coffer__pycauset_opener open, coffer_error *err)
{
    const coffer__convert_job *job = state->job;
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    opts.overwrite = job->overwrite;
    if (job->is_scratch)
        opts.durability = COFFER_DURABILITY_NONE;
    coffer_status status = open(&state->input, job, err);
    if (status)
        return status;
    status = coffer__pycauset_choose_shape(&state->shape, &state->input, job, err);
    state->stored = coffer__pycauset_memory_dtype(state->shape.dtype);
    state->mirror.negative = state->shape.type == COFFER_PYCAUSET_ANTISYMMETRIC;
    if (!status)
        status = choose_band(state, err);
    if (!status)
        status = coffer_pycauset_writer_create(&state->writer, job->out_path, &state->shape, &opts, err);
    if (!status)
        status = write_metadata(state, err);
    if (!status)
        status = copy_rows(state, err);
    if (!status)
        note_misread(state);
    if (!status) {
        status = coffer_pycauset_writer_commit(state->writer, err);
        state->writer = NULL;
    }
    return status;
}

static coffer_status import_with(coffer__pycauset_opener open, const coffer__convert_job *job,
                                 coffer_error *err)
{
import state = {.job = job, .shape = COFFER_PYCAUSET_SHAPE_INIT };
    coffer_status status = run(&state, open, err);
    coffer_pycauset_writer_discard(state.writer);
    coffer_pycauset_changes_free(state.input.changes);
    if (state.input.close)
        state.input.close(state.input.state);
    coffer__free(state.read);
    coffer__free(state.cast);
    return status;
}

coffer_status coffer__pycauset_from_npy(const coffer__convert_job *job, coffer_error *err)
{
    return import_with(coffer__pycauset_input_npy, job, err);
}

coffer_status coffer__pycauset_from_npz(const coffer__convert_job *job, coffer_error *err)
{
    return import_with(coffer__pycauset_input_npz, job, err);
}

coffer_status coffer__pycauset_from_raw(const coffer__convert_job *job, coffer_error *err)
{
    return import_with(coffer__pycauset_input_raw, job, err);
}

coffer_status coffer__pycauset_from_csv(const coffer__convert_job *job, coffer_error *err)
{
    return import_with(coffer__pycauset_input_csv, job, err);
}

coffer_status coffer__pycauset_from_mtx(const coffer__convert_job *job, coffer_error *err)
{
    return import_with(coffer__pycauset_input_mtx, job, err);
}

coffer_status coffer__pycauset_from_hdf5(const coffer__convert_job *job, coffer_error *err)
{
    return import_with(coffer__pycauset_input_hdf5, job, err);
}
