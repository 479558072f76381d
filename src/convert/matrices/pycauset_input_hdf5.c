/* Rows out of a dataset of an HDF5 file. */
#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "convert/matrices/pycauset_input.h"
#include "outside/arrays/hdf5.h"

#include <inttypes.h>
#include <string.h>

/* Values that are not stored read as the same number over and over. More of them than the limit of memory
 * must be asked for; no filter packs better than this. */
#define MAX_RATIO 2000
/* Bytes of names that a message lists. */
#define MAX_LISTED 120

typedef struct hdf5_state {
    const coffer__hdf5_module *hdf5;
    coffer__hdf5 *file;
    char *name;    /* of the dataset */
    uint64_t next; /* row */
    /* Where the matrix begins in a dataset of three dimensions and more. */
    int dimensions;
    uint64_t start[COFFER__HDF5_MAX_DIMENSIONS];
} hdf5_state;

static void close_state(void *state)
{
    hdf5_state *from = state;
    if (!from)
        return;
    if (from->file)
        from->hdf5->close(from->file, NULL);
    coffer__free(from->name);
    coffer__free(from);
}

/* ---- Which dataset ---- */

typedef struct candidates {
    size_t count;    /* of those that can be a matrix */
    size_t datasets; /* of any kind */
    coffer__buffer names;
    coffer__buffer first; /* the first matrix, or the first other dataset without matrices */
} candidates;

static void add_candidate(void *context, const char *name, bool is_matrix)
{
    candidates *found = context;
    if (found->datasets++ == 0 || (is_matrix && found->count == 0)) {
        found->first.len = 0;
        coffer__buffer_append(&found->first, name, strlen(name) + 1);
    }
    if (is_matrix && found->names.len < MAX_LISTED)
        coffer__buffer_printf(&found->names, "%s%s", found->count ? ", " : "", name);
    found->count += is_matrix;
}

static coffer_status choose(hdf5_state *from, const char *name, coffer_error *err)
{
    from->name = coffer__strdup(name + (name[0] == '/'));
    return from->name ? from->hdf5->choose(from->file, name, err) : coffer__fail_no_memory(err, strlen(name));
}

static coffer_status find_dataset(hdf5_state *from, coffer_error *err)
{
    candidates found = { 0, 0, COFFER__BUFFER_INIT, COFFER__BUFFER_INIT };
    coffer_status status = from->hdf5->list(from->file, add_candidate, &found, err);
    if (!status && (found.names.failed || found.first.failed))
        status = coffer__fail_no_memory(err, found.names.len);
    /* A single dataset is opened even if it is not a matrix: the error then says why. */
    if (!status && found.count == 0 && found.datasets != 1)
        status = coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                              "no dataset of numbers with one or two dimensions");
    if (!status && found.count > 1)
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "%zu datasets; choose one with --dataset: %s", found.count,
                              coffer__buffer_text(&found.names));
    if (!status)
        status = choose(from, (const char *)found.first.data, err);
    coffer__buffer_free(&found.names);
    coffer__buffer_free(&found.first);
    return status;
}

static coffer_status choose_dataset(hdf5_state *from, const coffer__convert_job *job, coffer_error *err)
{
    const char *name = coffer__job_setting(job, "dataset");
    return name ? choose(from, name, err) : find_dataset(from, err);
}

/* ---- Shape and type ---- */

/* One matrix of an array with more dimensions. */
static coffer_status take_slice(coffer__pycauset_input *out, hdf5_state *from,
                                const coffer__hdf5_dataset *dataset, const coffer__convert_job *job,
                                coffer_error *err)
{
    uint64_t matrix = 0;
    int outer = dataset->dimensions - 2;
    coffer_status status =
        coffer__pycauset_slice(&matrix, dataset->extent, (size_t)dataset->dimensions, job, err);
    if (status)
        return status;
    for (int i = outer; i-- > 0; matrix /= dataset->extent[i])
        from->start[i] = matrix % dataset->extent[i];
    from->dimensions = dataset->dimensions;
    out->rows = dataset->extent[outer];
    out->cols = dataset->extent[outer + 1];
    return COFFER_OK;
}

static coffer_status take_shape(coffer__pycauset_input *out, hdf5_state *from,
                                const coffer__hdf5_dataset *dataset, const coffer__convert_job *job,
                                coffer_error *err)
{
    if (!dataset->has_values)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "the dataset has no values");
    if (dataset->dimensions > 2)
        return take_slice(out, from, dataset, job, err);
    if (coffer__job_has(job, "slice"))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "--slice is for arrays of three dimensions and more, this has %d",
                            dataset->dimensions);
    out->rows = dataset->size[0];
    out->cols = dataset->size[1];
    out->is_vector = dataset->dimensions == 1;
    return COFFER_OK;
}

static coffer_status take_type(coffer__pycauset_input *out, const coffer__hdf5_dataset *dataset,
                               const coffer__convert_job *job, coffer_error *err)
{
    out->dtype = dataset->dtype;
    if (dataset->is_wide && coffer__job_has(job, "dtype"))
        out->dtype = COFFER_DTYPE_F64;
    if (out->dtype == COFFER_DTYPE_NONE)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            dataset->is_wide ? "numbers of more than 64 bits; --dtype f64 rounds them"
                                             : "the dataset does not contain numbers");
    return COFFER_OK;
}

/* The values must be in this file, in pieces that fit into memory. */
static coffer_status check_storage(coffer__pycauset_input *out, const coffer__hdf5_dataset *dataset,
                                   const coffer__convert_job *job, coffer_error *err)
{
    uint64_t bytes;
    if (dataset->is_elsewhere)
        return coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE,
                            "the dataset's values are in external files, which coffer does not follow");
    if (dataset->filter[0])
        return coffer__fail(
            err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
            "the dataset is compressed with %s, which libhdf5 cannot decompress; rewrite it with "
            "gzip: h5repack -f GZIP=6 OLD.h5 NEW.h5",
            dataset->filter);
    if (dataset->is_chunked) {
        if (dataset->chunk_bytes > job->limits.memory_bytes)
            return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                "chunks of %" PRIu64 " × %" PRIu64 " values, the limit is %" PRIu64 " bytes",
                                dataset->chunk[0], dataset->chunk[1], job->limits.memory_bytes);
        if (dataset->dimensions <= 2)
            out->band_rows = dataset->chunk[0];
    }
    uint64_t stored = dataset->stored_bytes;
    if (!coffer__mul_u64(&bytes, out->rows, out->cols) ||
        !coffer__mul_u64(&bytes, bytes, coffer_dtype_size(out->dtype)) ||
        (bytes > job->limits.memory_bytes && bytes / MAX_RATIO > stored && !coffer__job_has(job, "dense")))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " × %" PRIu64 " values, of which %" PRIu64
                            " bytes are stored; use --dense to fill in the rest",
                            out->rows, out->cols, stored);
    return COFFER_OK;
}

static coffer_status read_rows(void *out, uint64_t count, coffer__pycauset_input *input, coffer_error *err)
{
    hdf5_state *from = input->state;
    uint8_t *bytes = out;
    coffer_status status;
    if (from->dimensions > 2) {
        uint64_t counts[COFFER__HDF5_MAX_DIMENSIONS];
        for (int i = 0; i < from->dimensions; i++)
            counts[i] = 1;
        from->start[from->dimensions - 2] = from->next;
        counts[from->dimensions - 2] = count;
        counts[from->dimensions - 1] = input->cols;
        status = from->hdf5->read_block(out, from->file, input->dtype, from->start, counts, err);
    } else {
        status = from->hdf5->read_rows(out, from->file, input->dtype, from->next, count, err);
    }
    if (status)
        return status;
    for (uint64_t i = 0; input->dtype == COFFER_DTYPE_BOOL && i < count * input->cols; i++)
        bytes[i] = bytes[i] != 0;
    from->next += count;
    return COFFER_OK;
}

/* ---- Attributes ---- */

typedef struct properties {
    coffer_pycauset_changes *changes;
    const char *prefix; /* "properties." for those of the dataset, else those of the file */
    coffer__buffer path;
    coffer__buffer lost; /* names of those that are not kept */
    size_t lost_count;
} properties;

/* The prefix and the name, whose dots are escaped. */
static const char *path_of(properties *into, const char *name)
{
    into->path.len = 0;
    coffer__buffer_printf(&into->path, "%s", into->prefix);
    for (; *name; name++) {
        if (*name == '.' || *name == '\\')
            coffer__buffer_append(&into->path, "\\", 1);
        coffer__buffer_append(&into->path, name, 1);
    }
    return coffer__buffer_text(&into->path);
}

static coffer_status take_attribute(void *context, const coffer__hdf5_attribute *attribute, coffer_error *err)
{
    properties *into = context;
    const char *path = path_of(into, attribute->name);
    if (into->path.failed)
        return coffer__fail_no_memory(err, strlen(attribute->name));
    switch (attribute->kind) {
    case COFFER__HDF5_BOOL:
        return coffer_pycauset_changes_set_bool(into->changes, path, attribute->boolean, err);
    case COFFER__HDF5_I64:
        return coffer_pycauset_changes_set_i64(into->changes, path, attribute->i64, err);
    case COFFER__HDF5_U64:
        return coffer_pycauset_changes_set_u64(into->changes, path, attribute->u64, err);
    case COFFER__HDF5_F64:
        return coffer_pycauset_changes_set_f64(into->changes, path, attribute->f64, err);
    case COFFER__HDF5_OTHER:
        if (into->lost.len < MAX_LISTED)
            coffer__buffer_printf(&into->lost, "%s%s", into->lost_count ? ", " : "", attribute->name);
        into->lost_count++;
        return COFFER_OK;
    default:
        return coffer_pycauset_changes_set_string(into->changes, path, attribute->text, attribute->len, err);
    }
}

static coffer_status take_attributes(coffer_pycauset_changes **out, const hdf5_state *from,
                                     const coffer__convert_job *job, coffer_error *err)
{
    properties into = { .prefix = "properties.", .path = COFFER__BUFFER_INIT, .lost = COFFER__BUFFER_INIT };
    coffer_status status = coffer_pycauset_changes_new(&into.changes, err);
    if (!status)
        status = from->hdf5->attributes(from->file, NULL, take_attribute, &into, err);
    into.prefix = "provenance.hdf5.";
    if (!status)
        status = from->hdf5->attributes(from->file, "/", take_attribute, &into, err);
    if (!status && into.lost_count > 0 && job->notes)
        coffer__report_add(job->notes, COFFER_E_UNSUPPORTED, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "attributes that are arrays or of other types are not kept: %zu (%s%s)",
                           into.lost_count, coffer__buffer_text(&into.lost),
                           into.lost.len < MAX_LISTED ? "" : ", …");
    coffer__buffer_free(&into.lost);
    coffer__buffer_free(&into.path);
    if (status)
        coffer_pycauset_changes_free(into.changes);
    else
        *out = into.changes;
    return status;
}

/* ---- Other datasets ---- */

typedef struct others {
    const char *chosen;
    size_t count;
    coffer__buffer names;
} others;

static void add_other(void *context, const char *name, bool is_matrix)
{
    others *left = context;
    (void)is_matrix;
    if (strcmp(name + (name[0] == '/'), left->chosen) == 0)
        return;
    if (left->names.len < MAX_LISTED)
        coffer__buffer_printf(&left->names, "%s%s", left->count ? ", " : "", name);
    left->count++;
}

/* Everything else in the file is counted and named. */
static coffer_status note_others(const hdf5_state *from, const coffer__convert_job *job, coffer_error *err)
{
    others left = { .chosen = from->name, .names = COFFER__BUFFER_INIT };
    coffer_status status = job->notes ? from->hdf5->list(from->file, add_other, &left, err) : COFFER_OK;
    if (!status && left.count > 0)
        coffer__report_add(job->notes, COFFER_E_UNSUPPORTED, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "datasets of the file that are left out: %zu (%s%s)", left.count,
                           coffer__buffer_text(&left.names), left.names.len < MAX_LISTED ? "" : ", …");
    coffer__buffer_free(&left.names);
    return status;
}

coffer_status coffer__pycauset_input_hdf5(coffer__pycauset_input *out, const coffer__convert_job *job,
                                          coffer_error *err)
{
    coffer__hdf5_bytes bytes = coffer__hdf5_bytes_of_source(job->in);
    coffer__hdf5_dataset dataset;
    const coffer__hdf5_module *hdf5 = coffer__hdf5_load(err);
    if (!hdf5)
        return COFFER_E_UNSUPPORTED;
    hdf5_state *from = coffer__calloc(1, sizeof *from);
    if (!from)
        return coffer__fail_no_memory(err, sizeof *from);
    bytes.memory_bytes = job->limits.memory_bytes;
    from->hdf5 = hdf5;
    *out = (coffer__pycauset_input){ .state = from, .read = read_rows, .close = close_state };
    coffer_status status = hdf5->open(&from->file, &bytes, err);
    if (!status)
        status = choose_dataset(from, job, err);
    if (!status)
        status = note_others(from, job, err);
    if (!status)
        status = hdf5->describe(&dataset, from->file, err);
    if (!status)
        status = take_shape(out, from, &dataset, job, err);
    if (!status)
        status = take_type(out, &dataset, job, err);
    if (!status)
        status = check_storage(out, &dataset, job, err);
    if (!status)
        status = take_attributes(&out->changes, from, job, err);
    if (status) {
        close_state(from);
        memset(out, 0, sizeof *out);
    }
    return status;
}
