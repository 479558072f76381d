/* The table of other programs' files that can be described; here those with matrices. */
#include "convert/outside_files.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "base/text.h"
#include "base/work.h"
#include "outside/arrays/hdf5.h"
#include "outside/arrays/mtx.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- Matrix Market ---- */

static coffer_status describe_mtx(coffer_node *out, coffer_source *src, const coffer_limits *given,
                                  coffer_error *err)
{
    const coffer_limits limits = coffer__limits(given);
    coffer__mtx mtx;
    coffer_status status = coffer__mtx_open(&mtx, src, &limits, err);
    if (status)
        return status;
    coffer_node_add_text(out, "layout", mtx.coordinate ? "coordinate" : "array");
    coffer_node_add_text(out, "values", coffer__mtx_field_names[mtx.field]);
    coffer_node_add_text(out, "symmetry", coffer__mtx_symmetry_names[mtx.symmetry]);
    coffer_node_add_u64(out, "rows", mtx.rows, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "cols", mtx.cols, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "entries", mtx.entries, COFFER_UNIT_NONE);
    coffer__mtx_close(&mtx);
    return coffer_node_status(out, err);
}

/* The entries are the structure of the file: they are read with and without --full. */
static coffer_status check_mtx(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                               coffer_error *err)
{
    const coffer_limits limits = coffer__limits(opts->limits);
    return coffer__mtx_check(out, src, &limits, opts->progress, err);
}

static coffer_status list_mtx(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                              coffer_error *err)
{
    static const char *const dtypes[] = { [COFFER__MTX_REAL] = "f64",
                                          [COFFER__MTX_INTEGER] = "i64",
                                          [COFFER__MTX_COMPLEX] = "c128",
                                          [COFFER__MTX_PATTERN] = "bit",
                                          [COFFER__MTX_UNSIGNED] = "u64" };
    static const char name[] = "matrix";
    const coffer_limits limits = coffer__limits(opts->limits);
    coffer__mtx mtx;
    coffer_status status = coffer__mtx_open(&mtx, src, &limits, err);
    if (status)
        return status;
    coffer_node *entries = coffer_node_add_list(out, "entries");
    if (!opts->glob || coffer__glob_match(opts->glob, name, sizeof name - 1)) {
        coffer_node *entry = coffer_node_add_map(entries, NULL);
        coffer_node_add_text(entry, "name", name);
        coffer_node_add_text(entry, "dtype", dtypes[mtx.field]);
        coffer_node *shape = coffer_node_add_list(entry, "shape");
        coffer_node_add_u64(shape, NULL, mtx.rows, COFFER_UNIT_NONE);
        coffer_node_add_u64(shape, NULL, mtx.cols, COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "entries", mtx.entries, COFFER_UNIT_NONE);
    }
    coffer__mtx_close(&mtx);
    return coffer_node_status(out, err);
}

/* ---- HDF5 ---- */

typedef struct hdf5_file {
    const coffer__hdf5_module *module;
    coffer__hdf5 *handle;
    coffer__buffer names; /* of the datasets, each with its NUL */
    uint64_t datasets, matrices;
} hdf5_file;

static void add_dataset(void *context, const char *name, bool is_matrix)
{
    hdf5_file *file = context;
    coffer__buffer_append(&file->names, name, strlen(name) + 1);
    file->datasets++;
    file->matrices += is_matrix;
}

static void close_hdf5(hdf5_file *file)
{
    if (file->handle)
        file->module->close(file->handle, NULL);
    coffer__buffer_free(&file->names);
}

static coffer_status open_hdf5(hdf5_file *file, coffer_source *src, coffer_error *err)
{
    const coffer__hdf5_bytes bytes = coffer__hdf5_bytes_of_source(src);
    *file = (hdf5_file){ .names = COFFER__BUFFER_INIT };
    file->module = coffer__hdf5_load(err);
    if (!file->module)
        return COFFER_E_UNSUPPORTED;
    coffer_status status = file->module->open(&file->handle, &bytes, err);
    if (!status)
        status = file->module->list(file->handle, add_dataset, file, err);
    if (!status && file->names.failed)
        status = coffer__fail_no_memory(err, file->names.len);
    if (status)
        close_hdf5(file);
    return status;
}

static coffer_status describe_hdf5(coffer_node *out, coffer_source *src, const coffer_limits *limits,
                                   coffer_error *err)
{
    hdf5_file file;
    (void)limits;
    coffer_status status = open_hdf5(&file, src, err);
    if (status)
        return status;
    coffer_node_add_u64(out, "datasets", file.datasets, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "matrices", file.matrices, COFFER_UNIT_NONE);
    close_hdf5(&file);
    return coffer_node_status(out, err);
}

/* Calls visit for each dataset, chosen and described. */
static coffer_status each_dataset(hdf5_file *file,
                                  coffer_status (*visit)(void *context, hdf5_file *file, const char *name,
                                                         const coffer__hdf5_dataset *dataset,
                                                         coffer_error *err),
                                  void *context, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    const char *names = coffer__buffer_text(&file->names);
    for (size_t at = 0; !status && at < file->names.len; at += strlen(names + at) + 1) {
        coffer__hdf5_dataset dataset;
        status = file->module->choose(file->handle, names + at, err);
        if (!status)
            status = file->module->describe(&dataset, file->handle, err);
        if (!status)
            status = visit(context, file, names + at, &dataset, err);
    }
    return status;
}

typedef struct hdf5_list {
    coffer_node *entries;
    const char *glob;
} hdf5_list;

static coffer_status list_dataset(void *context, hdf5_file *file, const char *name,
                                  const coffer__hdf5_dataset *dataset, coffer_error *err)
{
    const hdf5_list *list = context;
    (void)file, (void)err;
    if (list->glob && !coffer__glob_match(list->glob, name, strlen(name)))
        return COFFER_OK;
    coffer_node *entry = coffer_node_add_map(list->entries, NULL);
    coffer_node_add_text(entry, "name", name);
    coffer_node_add_text(entry, "dtype",
                         dataset->dtype == COFFER_DTYPE_NONE ? NULL : coffer_dtype_name(dataset->dtype));
    coffer_node_add_i64(entry, "dimensions", dataset->dimensions, COFFER_UNIT_NONE);
    coffer_node *shape = coffer_node_add_list(entry, "shape");
    for (int i = 0; i < dataset->dimensions; i++)
        coffer_node_add_u64(shape, NULL, dataset->extent[i], COFFER_UNIT_NONE);
    coffer_node_add_bool(entry, "chunked", dataset->is_chunked);
    coffer_node_add_u64(entry, "stored", dataset->stored_bytes, COFFER_UNIT_BYTES);
    return COFFER_OK;
}

static coffer_status list_hdf5(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                               coffer_error *err)
{
    hdf5_file file;
    hdf5_list list = { .glob = opts->glob };
    coffer_status status = open_hdf5(&file, src, err);
    if (status)
        return status;
    list.entries = coffer_node_add_list(out, "entries");
    status = each_dataset(&file, list_dataset, &list, err);
    close_hdf5(&file);
    return status ? status : coffer_node_status(out, err);
}

typedef struct hdf5_check {
    coffer_report *report;
    const coffer_check_opts *opts;
    coffer_limits limits;
    uint64_t done, total; /* datasets */
} hdf5_check;

/* Why the values of a dataset cannot be read; NULL when they can. */
static const char *unread_reason(char out[96], const coffer__hdf5_dataset *dataset)
{
    if (dataset->is_elsewhere)
        return "they are in another file";
    if (dataset->dtype == COFFER_DTYPE_NONE && !dataset->is_wide)
        return "its elements are not numbers";
    if (!dataset->filter[0])
        return NULL;
    snprintf(out, 96, "libhdf5 cannot decompress %s", dataset->filter);
    return out;
}

/* Reads everything along the first dimension, in pieces. */
static coffer_status read_values(hdf5_file *file, const coffer__hdf5_dataset *dataset,
                                 const coffer_limits *limits, coffer_error *err)
{
    enum { PIECE_BYTES = 1 << 22 };
    coffer_dtype dtype = dataset->is_wide ? COFFER_DTYPE_F64 : dataset->dtype;
    uint64_t start[COFFER__HDF5_MAX_DIMENSIONS] = { 0 }, count[COFFER__HDF5_MAX_DIMENSIONS] = { 1 };
    uint64_t rows = dataset->dimensions > 0 ? dataset->extent[0] : 1, row_bytes = coffer_dtype_size(dtype);
    bool fits = dataset->dimensions <= COFFER__HDF5_MAX_DIMENSIONS;
    for (int i = 1; fits && i < dataset->dimensions; i++) {
        count[i] = dataset->extent[i];
        fits = coffer__mul_u64(&row_bytes, row_bytes, dataset->extent[i]);
    }
    if (!fits || row_bytes > limits->memory_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "values not read: a row exceeds the limit of %" PRIu64
                            " bytes; --limit memory=SIZE raises it",
                            limits->memory_bytes);
    if (row_bytes == 0 || rows == 0)
        return COFFER_OK;
    /* A few stored bytes can describe any number of equal values. */
    uint64_t all = 0;
    if (!coffer__mul_u64(&all, rows, row_bytes) ||
        (all > limits->memory_bytes && all / limits->unpack_ratio > dataset->stored_bytes))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "values not read: %" PRIu64 " rows of %" PRIu64 " bytes, of which %" PRIu64
                            " bytes are stored; --limit memory=SIZE reads them",
                            rows, row_bytes, dataset->stored_bytes);
    uint64_t piece = PIECE_BYTES / row_bytes + 1;
    piece = piece > rows ? rows : piece;
    void *values = coffer__alloc_array((size_t)piece, (size_t)row_bytes);
    coffer_status status = values ? COFFER_OK : coffer__fail_no_memory(err, piece * row_bytes);
    for (uint64_t row = 0; !status && row < rows; row += piece) {
        start[0] = row;
        count[0] = piece < rows - row ? piece : rows - row;
        status = file->module->read_block(values, file->handle, dtype, start, count, err);
    }
    coffer__free(values);
    return status;
}

/* A dataset that is not read is a finding: nothing is known about its values. */
static coffer_status check_dataset(void *context, hdf5_file *file, const char *name,
                                   const coffer__hdf5_dataset *dataset, coffer_error *err)
{
    hdf5_check *check = context;
    coffer_error found = COFFER_ERROR_INIT;
    char text[96];
    coffer_status status = coffer__progress_step(check->opts->progress, check->done++, check->total, err);
    if (status || !check->opts->full || !dataset->has_values)
        return status;
    const char *reason = unread_reason(text, dataset);
    if (reason) {
        coffer__report_add(check->report, COFFER_E_UNSUPPORTED, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "%s: values not read: %s", name, reason);
        return COFFER_OK;
    }
    status = read_values(file, dataset, &check->limits, &found);
    if (!status)
        return COFFER_OK;
    if (status != COFFER_E_LIMIT && !coffer__is_about_file(status))
        return coffer__fail_copy(err, &found);
    coffer__report_add(check->report, status, status == COFFER_E_LIMIT ? COFFER_WARNING : COFFER_ERROR,
                       found.offset, "%s: %s", name, found.text);
    return COFFER_OK;
}

static coffer_status check_hdf5(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                coffer_error *err)
{
    hdf5_file file;
    hdf5_check check = { .report = out, .opts = opts, .limits = coffer__limits(opts->limits) };
    coffer_status status = open_hdf5(&file, src, err);
    if (status)
        return status;
    check.total = file.datasets;
    status = each_dataset(&file, check_dataset, &check, err);
    close_hdf5(&file);
    return status;
}

/* ---- The table ---- */

static const coffer__outside_file outside_files[] = {
    { "mtx", "Matrix Market file", describe_mtx, check_mtx, list_mtx },
    { "hdf5", "HDF5 file", describe_hdf5, check_hdf5, list_hdf5 },
    { "massif", "Massif profile", coffer__massif_describe, coffer__massif_check, coffer__massif_list },
    { "dhat", "DHAT profile", coffer__dhat_describe, coffer__dhat_check, coffer__dhat_list },
    { "heaptrack", "heaptrack recording", coffer__heaptrack_describe, coffer__heaptrack_check, NULL },
    { "pprof", "pprof profile", coffer__pprof_describe, coffer__pprof_check, coffer__pprof_list },
    { "collapsed", "collapsed stacks", coffer__collapsed_describe, coffer__collapsed_check, NULL },
};

const coffer__outside_file *coffer__outside_file_find(const char *kind)
{
    for (size_t i = 0; i < sizeof outside_files / sizeof *outside_files; i++) {
        if (strcmp(outside_files[i].kind, kind) == 0)
            return &outside_files[i];
    }
    return NULL;
}
