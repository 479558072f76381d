/* One tensor, or some of its rows, as a file for other programs. */
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/real.h"
#include "base/work.h"
#include "convert/convert.h"
#include "convert/tensors/tensor_selection.h"
#include "convert/tensors/tensors.h"
#include "io/sink.h"
#include "outside/arrays/npy.h"
#include "outside/models/safetensors.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define PIECE_BYTES ((size_t)1 << 20)

typedef enum file_kind { AS_NPY, AS_SAFETENSORS, AS_CSV, AS_RAW, KIND_COUNT } file_kind;

static const char *const kind_names[KIND_COUNT] = { "npy", "safetensors", "csv", "raw" };

typedef struct tensor_job {
    const coffer_tensors *set;
    size_t index;
    file_kind as;
    coffer_dtype dtype; /* of the elements that are written; COFFER_DTYPE_NONE: the payload unchanged */
    uint64_t first, row_count; /* along the first dimension; all of it for a scalar */
    const char *path;          /* "-" = standard output */
    bool replace;
} tensor_job;

/* The type that elements of `dtype` have in such a file: NumPy has no bfloat16, but float32 holds it exactly.
 * COFFER_DTYPE_NONE when they can only be had as they are. */
static coffer_dtype written_as(file_kind as, coffer_dtype dtype)
{
    coffer__npy_field field;
    if (dtype == COFFER_DTYPE_NONE || coffer_dtype_size(dtype) == 0)
        return COFFER_DTYPE_NONE;
    if (as != AS_NPY || coffer__npy_field_of(&field, dtype))
        return dtype;
    return coffer_dtype_is_complex(dtype) ? COFFER_DTYPE_C64 : COFFER_DTYPE_F32;
}

/* The first dimension; 1 for a scalar. */
static uint64_t rows_of(const coffer_tensor *tensor)
{
    return tensor->rank > 0 ? tensor->dims[0] : 1;
}

/* ---- Headers of the output ---- */

typedef struct written {
    coffer__sink *sink;
    const tensor_job *job;
    const coffer_tensor *tensor;
    uint64_t *dims;        /* of what is written */
    uint64_t first, count; /* elements */
    uint64_t line;         /* elements of a line of text: the last dimension */
} written;

static void put_npy_header(coffer__buffer *header, const written *out)
{
    coffer__npy_field field = { 0 };
    coffer__npy npy = { .fields = &field, .field_count = 1, .dimensions = out->tensor->rank };
    coffer__npy_field_of(&field, out->job->dtype);
    for (uint32_t i = 0; i < out->tensor->rank; i++)
        npy.shape[i] = out->dims[i];
    coffer__npy_put_header(header, &npy);
}

static void put_safetensors_header(coffer__buffer *header, const written *out)
{
    const coffer__safetensors_entry entry = {
        .name = out->tensor->name,
        .type = coffer__safetensors_type_of(out->job->dtype)->name,
        .rank = out->tensor->rank,
        .dims = out->dims,
        .size = out->count * coffer_dtype_size(out->job->dtype),
    };
    const coffer__safetensors_metadata none = { 0 };
    coffer__safetensors_put_header(header, &entry, 1, &none);
}

static coffer_status write_header(const written *out, coffer_error *err)
{
    coffer__buffer header = COFFER__BUFFER_INIT;
    if (out->job->as == AS_NPY)
        put_npy_header(&header, out);
    else if (out->job->as == AS_SAFETENSORS)
        put_safetensors_header(&header, out);
    coffer_status status = header.failed ? coffer__fail_no_memory(err, header.len)
                                         : coffer__sink_write(out->sink, header.data, header.len, err);
    coffer__buffer_free(&header);
    return status;
}

/* ---- Elements ---- */

static void put_real(coffer__buffer *text, double value)
{
    char digits[COFFER__REAL_TEXT];
    coffer__buffer_append(text, digits, (size_t)(coffer__put_f64(digits, value) - digits));
}

static double load_real(const uint8_t *at)
{
    double value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void put_number(coffer__buffer *text, const uint8_t *element, coffer_dtype dtype)
{
    char digits[COFFER__REAL_TEXT];
    float narrow;
    if (dtype == COFFER_DTYPE_I64) {
        coffer__buffer_printf(text, "%" PRId64, (int64_t)coffer__load_u64(element));
    } else if (dtype == COFFER_DTYPE_U64) {
        coffer__buffer_printf(text, "%" PRIu64, coffer__load_u64(element));
    } else if (dtype == COFFER_DTYPE_F32) {
        memcpy(&narrow, element, sizeof narrow);
        coffer__buffer_append(text, digits, (size_t)(coffer__put_f32(digits, narrow) - digits));
    } else {
        put_real(text, load_real(element));
    }
    if (dtype == COFFER_DTYPE_C128) {
        double imaginary = load_real(element + sizeof(double));
        coffer__buffer_append(text, "+", signbit(imaginary) ? 0 : 1);
        put_real(text, imaginary);
        coffer__buffer_append(text, "j", 1);
    }
}

/* The type in which numbers come to be written as text: it holds all of them. */
static coffer_dtype text_dtype(coffer_dtype dtype)
{
    if (coffer_dtype_is_complex(dtype))
        return COFFER_DTYPE_C128;
    if (coffer_dtype_is_float(dtype))
        return dtype == COFFER_DTYPE_F64 ? dtype : COFFER_DTYPE_F32;
    return dtype == COFFER_DTYPE_U64 ? dtype : COFFER_DTYPE_I64;
}

static coffer_status write_text(const written *out, const uint8_t *elements, uint64_t at, size_t count,
                                coffer_dtype dtype, coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    for (size_t i = 0; i < count && !text.failed; i++) {
        put_number(&text, elements + i * coffer_dtype_size(dtype), dtype);
        bool ends = (at + i + 1 - out->first) % out->line == 0;
        coffer__buffer_append(&text, ends ? "\n" : ",", 1);
    }
    coffer_status status = text.failed ? coffer__fail_no_memory(err, text.len)
                                       : coffer__sink_write(out->sink, text.data, text.len, err);
    coffer__buffer_free(&text);
    return status;
}

/* Quantized elements come in whole rows, others in pieces of any size. */
static size_t piece_elements(const written *out, size_t element_size)
{
    uint64_t piece = PIECE_BYTES / element_size, line = out->line;
    if (coffer_dtype_size(out->tensor->dtype) == 0)
        piece = line > piece ? line : piece / line * line;
    return piece < out->count ? (size_t)piece : (size_t)out->count;
}

static coffer_status write_elements(const written *out, const coffer_progress *progress, coffer_error *err)
{
    const tensor_job *job = out->job;
    coffer_dtype dtype = job->as == AS_CSV ? text_dtype(job->dtype) : job->dtype;
    size_t size = coffer_dtype_size(dtype), piece = piece_elements(out, size);
    uint8_t *elements = coffer__alloc_array(piece, size);
    if (!elements)
        return coffer__fail_no_memory(err, piece * size);
    coffer_status status = COFFER_OK;
    for (uint64_t at = out->first; !status && at < out->first + out->count;) {
        uint64_t left = out->first + out->count - at;
        size_t some = left < piece ? (size_t)left : piece;
        status = coffer_tensors_read_as(elements, dtype, job->set, job->index, at, some, err);
        if (!status && job->as == AS_CSV)
            status = write_text(out, elements, at, some, dtype, err);
        else if (!status)
            status = coffer__sink_write(out->sink, elements, some * size, err);
        at += some;
        if (!status)
            status = coffer__progress_step(progress, at - out->first, out->count, err);
    }
    coffer__free(elements);
    return status;
}

static coffer_status write_payload(const written *out, const coffer_progress *progress, coffer_error *err)
{
    uint8_t *piece = coffer__malloc(PIECE_BYTES);
    if (!piece)
        return coffer__fail_no_memory(err, PIECE_BYTES);
    coffer_status status = COFFER_OK;
    for (uint64_t at = 0; !status && at < out->tensor->size;) {
        uint64_t left = out->tensor->size - at;
        size_t some = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        status = coffer_tensors_read(piece, out->job->set, out->job->index, at, some, err);
        if (!status)
            status = coffer__sink_write(out->sink, piece, some, err);
        at += some;
        if (!status)
            status = coffer__progress_step(progress, at, out->tensor->size, err);
    }
    coffer__free(piece);
    return status;
}

/* Elements of a line of text: the last dimension; all that are wanted of a vector. */
static uint64_t line_of(const written *out)
{
    uint64_t line = out->tensor->rank > 0 ? out->dims[out->tensor->rank - 1] : 1;
    return line > 0 ? line : 1;
}

static coffer_status write_all(written *out, const coffer_progress *progress, coffer_error *err)
{
    const tensor_job *job = out->job;
    const coffer__sink_opts opts = { .exclusive = !job->replace };
    coffer_status status = coffer__sink_create(&out->sink, job->path, &opts, err);
    if (!status)
        status = write_header(out, err);
    if (!status)
        status = job->dtype == COFFER_DTYPE_NONE ? write_payload(out, progress, err)
                                                 : write_elements(out, progress, err);
    if (!status)
        return coffer__sink_commit(out->sink, err);
    coffer__sink_discard(out->sink);
    return status;
}

static coffer_status write_tensor(const tensor_job *job, const coffer_progress *progress, coffer_error *err)
{
    const coffer_tensor *tensor = coffer_tensors_at(job->set, job->index);
    uint64_t rows = rows_of(tensor), row = rows > 0 ? tensor->elements / rows : 0;
    written out = { .job = job, .tensor = tensor, .first = job->first * row, .count = job->row_count * row };
    if (tensor->rank > COFFER__NPY_MAX_DIMENSIONS && job->as == AS_NPY)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "tensor \"%s\" has %" PRIu32 " dimensions, an .npy file allows at most %d",
                            tensor->name, tensor->rank, COFFER__NPY_MAX_DIMENSIONS);
    out.dims = coffer__alloc_array((size_t)tensor->rank + 1, sizeof *out.dims);
    if (!out.dims)
        return coffer__fail_no_memory(err, tensor->rank * sizeof *out.dims);
    for (uint32_t i = 0; i < tensor->rank; i++)
        out.dims[i] = i == 0 ? job->row_count : tensor->dims[i];
    out.line = line_of(&out);
    if (job->first == 0 && job->row_count == rows)
        coffer_tensors_prefetch(job->set, &job->index, 1);
    coffer_status status = write_all(&out, progress, err);
    coffer__free(out.dims);
    return status;
}

coffer_status coffer_npy_header(uint8_t **out, size_t *size, coffer_dtype dtype, const uint64_t *dims,
                                size_t ndim, coffer_error *err)
{
    coffer__buffer header = COFFER__BUFFER_INIT;
    coffer__npy_field field = { 0 };
    if (!coffer__npy_field_of(&field, dtype))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "NumPy has no type for %s",
                            coffer_dtype_name(dtype));
    if (ndim > COFFER__NPY_MAX_DIMENSIONS)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "%zu dimensions, an .npy file allows at most %d", ndim,
                            COFFER__NPY_MAX_DIMENSIONS);
    coffer__npy npy = { .fields = &field, .field_count = 1, .item_size = field.size, .dimensions = ndim };
    for (size_t i = 0; i < ndim; i++)
        npy.shape[i] = dims[i];
    coffer__npy_put_header(&header, &npy);
    if (header.failed) {
        coffer__buffer_free(&header);
        return coffer__fail_no_memory(err, header.len);
    }
    *out = coffer__buffer_release(&header, size);
    return COFFER_OK;
}

/* ---- The public function ---- */

COFFER__INIT_FUNCTION(coffer_tensors_write_opts, COFFER_TENSORS_WRITE_OPTS_INIT)

static coffer_status choose_kind(file_kind *out, const char *kind, const char *path, coffer_error *err)
{
    const char *dot = strrchr(path, '.'), *name = kind ? kind : dot ? dot + 1 : "";
    for (unsigned i = 0; i < KIND_COUNT; i++) {
        if (strcmp(name, kind_names[i]) == 0) {
            *out = (file_kind)i;
            return COFFER_OK;
        }
    }
    *out = AS_CSV;
    return kind ? coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                               "a tensor cannot be written as \"%s\": must be npy, safetensors, csv or raw",
                               kind)
                : COFFER_OK;
}

static coffer_status choose_part(tensor_job *job, const coffer_tensor *tensor,
                                 const coffer_tensors_write_opts *opts, coffer_error *err)
{
    uint64_t rows = rows_of(tensor), left = opts->first_row <= rows ? rows - opts->first_row : 0;
    bool whole = opts->first_row == 0 && opts->row_count >= rows;
    if (opts->first_row > rows || (opts->row_count != UINT64_MAX && opts->row_count > left))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "rows from %" PRIu64 " of tensor \"%s\", which has %" PRIu64, opts->first_row,
                            tensor->name, rows);
    job->first = opts->first_row;
    job->row_count = opts->row_count < left ? opts->row_count : left;
    job->dtype = opts->dequantize ? COFFER_DTYPE_F32 : written_as(job->as, tensor->dtype);
    if (job->dtype == COFFER_DTYPE_NONE && (job->as != AS_RAW || !whole))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "tensor \"%s\" is %s: decode it to float32, or write all of it raw", tensor->name,
                            coffer_tensor_dtype_name(tensor));
    return COFFER_OK;
}

coffer_status coffer_tensors_write(const char *path, const coffer_tensors *set, size_t index,
                                   const coffer_tensors_write_opts *opts, coffer_error *err)
{
    coffer_tensors_write_opts options = COFFER_TENSORS_WRITE_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    const coffer_tensor *tensor = coffer_tensors_at(set, index);
    if (!tensor)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "tensor %zu of a set of %zu tensors", index, coffer_tensors_count(set));
    tensor_job job = { .set = set, .index = index, .path = path, .replace = options.overwrite };
    status = choose_kind(&job.as, options.kind, path, err);
    if (!status)
        status = choose_part(&job, tensor, &options, err);
    return status ? status : write_tensor(&job, options.progress, err);
}

/* One tensor of a model as an array. */

const coffer_convert_option coffer__tensors_to_array_options[] = {
    { "tensor", "NAME", "name of the tensor; optional when there is only one" },
    { "rows", "A..B", "only these rows" },
    { NULL, NULL, NULL },
};

static coffer_status choose_tensor(tensor_job *out, const coffer__convert_job *job, coffer_error *err)
{
    const char *name = coffer__job_setting(job, "tensor");
    if (name)
        out->index = coffer_tensors_find(out->set, name);
    if (name && out->index == SIZE_MAX)
        return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE,
                            "no tensor \"%s\" among the %zu tensors", name, coffer_tensors_count(out->set));
    if (!name && coffer_tensors_count(out->set) != 1)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the file has %zu tensors: choose one with the option \"tensor\"",
                            coffer_tensors_count(out->set));
    return COFFER_OK;
}

static coffer_status choose_rows(tensor_job *out, const coffer__convert_job *job, coffer_error *err)
{
    const coffer_tensor *tensor = coffer_tensors_at(out->set, out->index);
    uint64_t rows = rows_of(tensor), begin = 0, end = rows;
    coffer_status status = coffer__job_range(&begin, &end, job, "rows", err);
    if (status)
        return status;
    if (end > rows && end != UINT64_MAX)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "rows %" PRIu64 "..%" PRIu64 " of tensor \"%s\", which has %" PRIu64, begin, end,
                            tensor->name, rows);
    end = end < rows ? end : rows;
    out->first = begin < end ? begin : end;
    out->row_count = end - out->first;
    return COFFER_OK;
}

coffer_status coffer__tensors_to_array(const coffer__convert_job *job, coffer_error *err)
{
    coffer_tensors *set = NULL;
    coffer_status status = coffer__tensors_settings_open(&set, job, err);
    if (status)
        return status;
    tensor_job out = { .set = set, .path = job->out_path, .replace = job->overwrite };
    out.as = strcmp(job->to, "npy") == 0 ? AS_NPY : AS_CSV;
    status = choose_tensor(&out, job, err);
    if (!status)
        status = choose_rows(&out, job, err);
    if (!status) {
        const coffer_tensor *tensor = coffer_tensors_at(set, out.index);
        bool plain = coffer_dtype_size(tensor->dtype) > 0;
        out.dtype = plain ? written_as(out.as, tensor->dtype) : COFFER_DTYPE_F32;
        status = write_tensor(&out, job->progress, err);
    }
    coffer_tensors_close(set);
    return status;
}
