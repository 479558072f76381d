/* Values that come one by one: from a command line or a file into any field, and from a file of values into a
 * new one. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "convert/datasets/dataset_input.h"
#include "io/file.h"
#include "outside/arrays/npy.h"

#include <inttypes.h>
#include <string.h>

/* ---- Any value ---- */

struct coffer_mldf_value_input {
    coffer_mldf_pack_opts opts;
    coffer__dataset_taker taker;
    coffer__dataset_value value;
};

coffer_status coffer_mldf_value_input_new(coffer_mldf_value_input **out, coffer_error *err)
{
    coffer_mldf_value_input *input = coffer__calloc(1, sizeof *input);
    if (!input)
        return coffer__fail_no_memory(err, sizeof *input);
    input->opts = (coffer_mldf_pack_opts)COFFER_MLDF_PACK_OPTS_INIT;
    input->taker.opts = &input->opts;
    input->taker.pixels = input->taker.scaled = (coffer_pixels)COFFER_PIXELS_INIT;
    coffer__buffer_init(&input->value.own, SIZE_MAX);
    *out = input;
    return COFFER_OK;
}

void coffer_mldf_value_input_free(coffer_mldf_value_input *input)
{
    if (!input)
        return;
    coffer__dataset_taker_free(&input->taker);
    coffer__buffer_free(&input->value.own);
    coffer__free(input);
}

static void clear(coffer__dataset_value *value)
{
    coffer__buffer own = value->own;
    own.len = 0;
    own.failed = false;
    *value = (coffer__dataset_value){ .own = own };
}

coffer_status coffer_mldf_value_input_set(coffer_mldf_value_input *input, coffer_mldf_writer *writer,
                                          size_t field, const void *bytes, size_t size, coffer_error *err)
{
    const coffer_mldf_field *about = coffer_mldf_writer_field_at(writer, field);
    coffer_status status = COFFER_OK;
    clear(&input->value);
    input->value.form = COFFER__DATASET_FILE;
    input->value.bytes = size > 0 ? bytes : (const uint8_t *)"";
    input->value.size = size;
    input->opts.raw = about->type == COFFER_MLDF_IMAGE_RAW;
    if (!input->taker.decoder)
        status = coffer_image_decoder_new(&input->taker.decoder, NULL, err);
    if (!status)
        status = coffer__dataset_take(&input->value, about, &input->taker, err);
    return status ? status : coffer__dataset_put(writer, field, &input->value, err);
}

/* ---- Values of a new field ---- */

typedef struct add_job {
    const coffer_mldf *set;
    coffer_mldf_field field;
    coffer_source *values;
    coffer__npy npy;
    bool is_npy;
    uint64_t offset; /* of the next line */
    coffer__buffer line, text;
    coffer_mldf_value_input *input;
} add_job;

#define REFUSE(...) coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, __VA_ARGS__)

/* The first dimension counts the samples, the others are the shape of a value. */
static coffer_status take_npy(add_job *job, coffer_error *err)
{
    const coffer__npy *npy = &job->npy;
    uint64_t samples = coffer_mldf_sample_count(job->set);
    bool is_array = coffer__dataset_is_array(job->field.type);
    bool is_number = job->field.type == COFFER_MLDF_INT || job->field.type == COFFER_MLDF_FLOAT;
    if (npy->structured || npy->fortran_order || npy->dimensions == 0 ||
        npy->dimensions > COFFER_MLDF_MAX_DIMS + 1 || !coffer__npy_is_number(&npy->fields[0]))
        return REFUSE("requires plain numbers, in rows");
    if (npy->shape[0] != samples)
        return REFUSE("%" PRIu64 " rows, the set has %" PRIu64 " samples", npy->shape[0], samples);
    if (is_number ? npy->dimensions != 1 : !is_array)
        return REFUSE("an array becomes a field of type int, float or ndarray");
    if (is_array) {
        job->field.dtype = coffer__npy_dtype(&npy->fields[0]);
        job->field.ndim = (uint32_t)(npy->dimensions - 1);
        memcpy(job->field.dims, npy->shape + 1, job->field.ndim * sizeof *job->field.dims);
    }
    return COFFER_OK;
}

static coffer_status open_values(add_job *job, coffer_error *err)
{
    uint8_t head[8] = { 0 };
    coffer_status status = COFFER_OK;
    if (coffer_source_size(job->values) >= sizeof head)
        status = coffer_source_read_at(head, job->values, 0, sizeof head, err);
    job->is_npy = !status && coffer__npy_probe(head, sizeof head);
    if (job->is_npy)
        status = coffer__npy_read(&job->npy, job->values, err);
    return !status && job->is_npy ? take_npy(job, err) : status;
}

static coffer_status fill_from_npy(add_job *job, coffer_mldf_writer *writer, uint64_t sample, size_t field,
                                   coffer_error *err)
{
    const coffer__npy *npy = &job->npy;
    size_t size = (size_t)(npy->count / npy->shape[0] * npy->item_size);
    job->line.len = 0;
    uint8_t *bytes = coffer__buffer_extend(&job->line, size);
    if (!bytes)
        return coffer__fail_no_memory(err, size);
    coffer_status status =
        coffer_source_read_at(bytes, job->values, npy->data_offset + sample * size, size, err);
    if (status)
        return status;
    if (coffer__dataset_is_array(job->field.type)) {
        if (npy->fields[0].big_endian)
            coffer__npy_swap(bytes, job->field.dtype, (size_t)(size / npy->item_size));
        return coffer_mldf_writer_set_array(writer, field, job->field.dims, bytes, size, err);
    }
    coffer__number number = coffer__npy_number(&npy->fields[0], bytes);
    if (job->field.type == COFFER_MLDF_FLOAT)
        return coffer_mldf_writer_set_float(writer, field, coffer__number_as_f64(&number), err);
    int64_t whole;
    if (!coffer__number_as_i64(&whole, &number))
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "row %" PRIu64 ": not an integer of 64 bits", sample);
    return coffer_mldf_writer_set_int(writer, field, whole, err);
}

/* The line that begins at job->offset, without its end, into job->line. */
static coffer_status read_line(add_job *job, bool *more, coffer_error *err)
{
    enum { PIECE = 4096 };
    uint64_t size = coffer_source_size(job->values);
    uint8_t piece[PIECE];
    *more = job->offset < size;
    job->line.len = 0;
    while (job->offset < size) {
        size_t len = size - job->offset < PIECE ? (size_t)(size - job->offset) : PIECE;
        coffer_status status = coffer_source_read_at(piece, job->values, job->offset, len, err);
        if (status)
            return status;
        const uint8_t *end = memchr(piece, '\n', len);
        size_t taken = end ? (size_t)(end - piece) : len;
        if (!coffer__buffer_append(&job->line, piece, taken))
            return coffer__fail_no_memory(err, job->line.len);
        job->offset += taken + (end != NULL);
        if (end)
            break;
    }
    return COFFER_OK;
}

/* A number, a text, or for fields of JSON anything; null leaves the value absent. */
static coffer_status set_json(add_job *job, coffer_mldf_writer *writer, size_t field,
                              const coffer__json_value *value, coffer_error *err)
{
    if (value->kind == COFFER__JSON_NULL)
        return COFFER_OK;
    if (value->kind == COFFER__JSON_STRING && job->field.type != COFFER_MLDF_JSON)
        return coffer_mldf_value_input_set(job->input, writer, field, value->as.string, value->string_len,
                                           err);
    coffer__json_writer json;
    job->text.len = 0;
    coffer__json_writer_init(&json, &job->text, 0);
    coffer__json_write_value(&json, value);
    if (job->text.failed)
        return coffer__fail_no_memory(err, job->text.len);
    return coffer_mldf_value_input_set(job->input, writer, field, job->text.data, job->text.len, err);
}

/* A line is the value itself, or an object that has it under the field's name. */
static coffer_status fill_from_line(add_job *job, coffer_mldf_writer *writer, uint64_t sample, size_t field,
                                    coffer_error *err)
{
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer__json *json = NULL;
    bool more;
    uint64_t begin = job->offset;
    coffer_status status = read_line(job, &more, err);
    if (!status && !more)
        status = coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                              "it has %" PRIu64 " lines, the set has %" PRIu64 " samples", sample,
                              coffer_mldf_sample_count(job->set));
    if (!status)
        status =
            coffer__json_parse(&json, coffer__buffer_text(&job->line), job->line.len, begin, &limits, err);
    if (!status) {
        const coffer__json_value *value = coffer__json_root(json);
        if (value->kind == COFFER__JSON_OBJECT && coffer__json_find(value, job->field.name))
            value = coffer__json_find(value, job->field.name);
        status = set_json(job, writer, field, value, err);
    }
    coffer__json_free(json);
    return status;
}

static coffer_status fail_values(const add_job *job, coffer_status status, coffer_error *err)
{
    const char *name = coffer_source_name(job->values);
    return coffer__fail_other(err, status, name + coffer__file_folder_len(name));
}

static coffer_status fill(void *context, coffer_mldf_writer *writer, uint64_t sample, size_t field,
                          coffer_error *err)
{
    add_job *job = context;
    if (!job->values)
        return COFFER_OK;
    coffer_status status = job->is_npy ? fill_from_npy(job, writer, sample, field, err)
                                       : fill_from_line(job, writer, sample, field, err);
    return fail_values(job, status, err);
}

coffer_status coffer_mldf_update_add_values(const char *path, const coffer_mldf *set,
                                            const coffer_mldf_field *field, coffer_source *values,
                                            const coffer_mldf_update_opts *opts, coffer_error *err)
{
    add_job job = { .set = set, .field = *field, .values = values };
    coffer__buffer_init(&job.line, SIZE_MAX);
    coffer__buffer_init(&job.text, SIZE_MAX);
    coffer_status status = coffer_mldf_value_input_new(&job.input, err);
    if (!status && values)
        status = fail_values(&job, open_values(&job, err), err);
    if (!status)
        status = coffer_mldf_update_add_field(path, &job.field, fill, &job, opts, err);
    coffer_mldf_value_input_free(job.input);
    coffer__npy_free(&job.npy);
    coffer__buffer_free(&job.line);
    coffer__buffer_free(&job.text);
    return status;
}
