/* New values of a field for many samples, from a table, JSON lines or an array. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sorted.h"
#include "convert/datasets/dataset_input.h"
#include "io/file.h"
#include "outside/arrays/npy.h"
#include "outside/text/csv.h"
#include "outside/text/jsonl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The new value of a sample. */
typedef struct new_value {
    uint64_t sample;
    const char *text; /* in the arena; NULL = the value becomes absent */
    size_t len;
    uint64_t line; /* where it comes from */
} new_value;

/* A name of a sample, for values that are given by name. */
typedef struct named {
    uint64_t hash, sample;
} named;

typedef struct field_job {
    const coffer_mldf *set;
    const coffer_mldf_field *about;
    size_t field, key; /* key : field that names samples; SIZE_MAX = by number or in order */
    coffer_source *src;
    bool in_order;
    coffer__arena texts;
    new_value *values;
    size_t count, capacity;
    named *names;
    coffer_mldf_pack_opts opts;
    coffer__dataset_taker taker;
    coffer__dataset_value value;
} field_job;

static int compare_named(const void *a, const void *b)
{
    const named *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->sample > y->sample) - (x->sample < y->sample);
}

static int compare_values(const void *a, const void *b)
{
    const new_value *x = a, *y = b;
    return (x->sample > y->sample) - (x->sample < y->sample);
}

#define REFUSE(...) coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, __VA_ARGS__)

/* ---- Names of samples ---- */

static coffer_status read_names(field_job *job, size_t key, coffer_error *err)
{
    uint64_t samples = coffer_mldf_sample_count(job->set);
    coffer_bytes bytes = COFFER_BYTES_INIT;
    coffer_status status = COFFER_OK;
    job->key = key;
    job->names = coffer__alloc_array((size_t)samples + 1, sizeof *job->names);
    if (!job->names)
        return coffer__fail_no_memory(err, samples * sizeof *job->names);
    for (uint64_t i = 0; i < samples && !status; i++) {
        status = coffer_mldf_read(&bytes, NULL, job->set, i, key, err);
        if (!status)
            job->names[i] =
                (named){ coffer__hash(bytes.size ? bytes.data : (const uint8_t *)"", bytes.size), i };
    }
    coffer_free(bytes.data);
    if (!status && samples)
        qsort(job->names, (size_t)samples, sizeof *job->names, compare_named);
    return status;
}

static coffer_status read_sample_number(uint64_t *out, const field_job *job, const char *text, size_t len,
                                        uint64_t line, coffer_error *err)
{
    uint64_t number = 0, samples = coffer_mldf_sample_count(job->set);
    bool good = len > 0 && len < 19;
    for (size_t i = 0; good && i < len; i++) {
        good = text[i] >= '0' && text[i] <= '9';
        number = number * 10 + (uint64_t)(text[i] - '0');
    }
    if (!good || number >= samples)
        return REFUSE("line %" PRIu64 ": '%.*s' is not a sample; there are %" PRIu64, line,
                      (int)(len < 60 ? len : 60), text, samples);
    *out = number;
    return COFFER_OK;
}

static coffer_status find_sample(uint64_t *out, const field_job *job, const char *text, size_t len,
                                 uint64_t line, coffer_error *err)
{
    if (job->key == SIZE_MAX)
        return read_sample_number(out, job, text, len, line, err);
    const char *key = coffer_mldf_field_at(job->set, job->key)->name;
    uint64_t hash = coffer__hash(len ? text : "", len), samples = coffer_mldf_sample_count(job->set);
    size_t low = COFFER__COUNT_BELOW(job->names, (size_t)samples, named, hash, hash);
    if (low == samples || job->names[low].hash != hash)
        return REFUSE("line %" PRIu64 ": no sample has the %s '%.*s'", line, key, (int)(len < 60 ? len : 60),
                      text);
    if (low + 1 < samples && job->names[low + 1].hash == hash)
        return REFUSE("line %" PRIu64
                      ": several samples have the %s '%.*s'; a column \"sample\" can name them by "
                      "number",
                      line, key, (int)(len < 60 ? len : 60), text);
    *out = job->names[low].sample;
    return COFFER_OK;
}

static coffer_status add_value(field_job *job, uint64_t sample, const char *text, size_t len, uint64_t line,
                               coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&job->values, &job->capacity, job->count, sizeof *job->values, err);
    if (status)
        return status;
    char *copy = text ? coffer__arena_text(&job->texts, text, len) : NULL;
    if (text && !copy)
        return coffer__fail_no_memory(err, len);
    job->values[job->count++] = (new_value){ sample, copy, len, line };
    return COFFER_OK;
}

/* ---- A table ---- */

typedef struct columns {
    size_t value, sample; /* SIZE_MAX = none: rows are in the order of the samples */
} columns;

static bool is_cell(const coffer__csv_field *cell, const char *text)
{
    return cell->len == strlen(text) && memcmp(cell->text, text, cell->len) == 0;
}

/* The column of the values has the name of the field. Samples are named by a column "sample" with numbers, or
 * by one with the name of a text field, such as path. */
static coffer_status read_header(columns *out, field_job *job, const coffer__csv_row *row, coffer_error *err)
{
    *out = (columns){ SIZE_MAX, SIZE_MAX };
    for (size_t i = 0; i < row->count; i++) {
        if (is_cell(&row->fields[i], job->about->name))
            out->value = i;
        else if (is_cell(&row->fields[i], "sample"))
            out->sample = i;
    }
    if (out->value == SIZE_MAX)
        return REFUSE("no column \"%s\" in the first row", job->about->name);
    for (size_t i = 0; i < row->count && out->sample == SIZE_MAX; i++) {
        for (size_t f = 0; f < coffer_mldf_field_count(job->set); f++) {
            const coffer_mldf_field *about = coffer_mldf_field_at(job->set, f);
            if (i == out->value || about->type != COFFER_MLDF_TEXT || !is_cell(&row->fields[i], about->name))
                continue;
            out->sample = i;
            return read_names(job, f, err);
        }
    }
    return COFFER_OK;
}

static coffer_status take_row(field_job *job, const columns *where, const coffer__csv_row *row,
                              coffer_error *err)
{
    uint64_t sample = job->count;
    coffer_status status = COFFER_OK;
    if (row->count <= where->value || (where->sample != SIZE_MAX && row->count <= where->sample))
        return REFUSE("line %" PRIu64 " has %zu cells, fewer than the first row", row->line, row->count);
    if (where->sample != SIZE_MAX) {
        const coffer__csv_field *name = &row->fields[where->sample];
        status = find_sample(&sample, job, name->text, name->len, row->line, err);
    }
    const coffer__csv_field *cell = &row->fields[where->value];
    return status ? status : add_value(job, sample, cell->len ? cell->text : NULL, cell->len, row->line, err);
}

static coffer_status read_csv(field_job *job, coffer_error *err)
{
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer__csv_reader *reader = NULL;
    const coffer__csv_row *row = NULL;
    columns where = { SIZE_MAX, SIZE_MAX };
    coffer_status status = coffer__csv_open(&reader, job->src, &limits, err);
    if (!status)
        status = coffer__csv_next(&row, reader, err);
    if (!status)
        status = row ? read_header(&where, job, row, err) : REFUSE("no header row");
    while (!status && !(status = coffer__csv_next(&row, reader, err)) && row)
        status = take_row(job, &where, row, err);
    coffer__csv_close(reader);
    job->in_order = where.sample == SIZE_MAX;
    return status;
}

/* ---- JSON lines and arrays ---- */

static coffer_status take_line(field_job *job, const coffer__jsonl_reader *reader,
                               const coffer__json_value *object, coffer_error *err)
{
    const char *raw = NULL, *field = job->about->name;
    size_t raw_len = 0, at = 0;
    uint64_t line = coffer__jsonl_line(reader), sample = job->count;
    const coffer__json_value *value = coffer__json_first(object),
                             *number = coffer__json_find(object, "sample");
    while (value && coffer__jsonl_next_raw(&raw, &raw_len, reader, &at) &&
           !(value->key_len == strlen(field) && memcmp(value->key, field, value->key_len) == 0))
        value = coffer__json_next(object, value);
    job->in_order = job->in_order && !number;
    if (!value)
        return REFUSE("line %" PRIu64 " has no \"%s\"", line, field);
    if (number && (!coffer__json_u64(&sample, number) || sample >= coffer_mldf_sample_count(job->set)))
        return REFUSE("line %" PRIu64 ": no such sample", line);
    if (value->kind == COFFER__JSON_NULL)
        return add_value(job, sample, NULL, 0, line, err);
    if (value->kind == COFFER__JSON_STRING && job->about->type != COFFER_MLDF_JSON)
        return add_value(job, sample, value->as.string, value->string_len, line, err);
    return add_value(job, sample, raw, raw_len, line, err);
}

static coffer_status read_jsonl(field_job *job, coffer_error *err)
{
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer__jsonl_reader *reader = NULL;
    const coffer__json_value *object = NULL;
    coffer_status status = coffer__jsonl_open(&reader, job->src, &limits, err);
    while (!status && !(status = coffer__jsonl_next(&object, reader, err)) && object)
        status = take_line(job, reader, object, err);
    coffer__jsonl_close(reader);
    return status;
}

static coffer_status read_npy(field_job *job, coffer_error *err)
{
    coffer__npy npy = { 0 };
    uint8_t bytes[32];
    coffer_status status = coffer__npy_read(&npy, job->src, err);
    if (!status && (npy.structured || npy.dimensions != 1 || npy.item_size > sizeof bytes ||
                    !coffer__npy_is_number(&npy.fields[0])))
        status = REFUSE("requires an array of numbers with one dimension");
    for (uint64_t i = 0; !status && i < npy.count; i++) {
        status = coffer_source_read_at(bytes, job->src, npy.data_offset + i * npy.item_size,
                                       (size_t)npy.item_size, err);
        if (status)
            break;
        coffer__number number = coffer__npy_number(&npy.fields[0], bytes);
        char text[40];
        int64_t whole;
        int len = coffer__number_as_i64(&whole, &number)
                      ? snprintf(text, sizeof text, "%" PRId64, whole)
                      : snprintf(text, sizeof text, "%.17g", coffer__number_as_f64(&number));
        status = add_value(job, i, text, (size_t)len, i, err);
    }
    coffer__npy_free(&npy);
    return status;
}

static coffer_status read_values(field_job *job, coffer_error *err)
{
    uint8_t head[8] = { 0 };
    coffer_status status = COFFER_OK;
    uint64_t samples = coffer_mldf_sample_count(job->set);
    job->in_order = true;
    if (coffer_source_size(job->src) >= sizeof head)
        status = coffer_source_read_at(head, job->src, 0, sizeof head, err);
    if (!status)
        status = coffer__npy_probe(head, sizeof head)                               ? read_npy(job, err)
                 : coffer__file_has_extension(coffer_source_name(job->src), ".csv") ? read_csv(job, err)
                                                                                    : read_jsonl(job, err);
    if (!status && job->in_order && job->count != samples)
        status =
            REFUSE("%zu values, the set has %" PRIu64 " samples; a column \"sample\" or \"path\" says which "
                   "samples they are for",
                   job->count, samples);
    return status;
}

/* ---- The update ---- */

static coffer_status fill(void *context, coffer_mldf_writer *writer, uint64_t sample, size_t field,
                          coffer_error *err)
{
    field_job *job = context;
    const new_value wanted = { .sample = sample };
    const new_value *found = bsearch(&wanted, job->values, job->count, sizeof *job->values, compare_values);
    if (!found || !found->text)
        return COFFER_OK;
    job->value.form = COFFER__DATASET_FILE;
    job->value.has_entry = false;
    job->value.bytes = (const uint8_t *)found->text;
    job->value.size = found->len;
    coffer_error why = COFFER_ERROR_INIT;
    coffer_status status = coffer__dataset_take(&job->value, job->about, &job->taker, &why);
    if (status)
        return REFUSE("line %" PRIu64 ": %s", found->line, why.text);
    return coffer__dataset_put(writer, field, &job->value, err);
}

static coffer_status check_values(field_job *job, coffer_error *err)
{
    bool optional = job->about->flags & COFFER_MLDF_FIELD_OPTIONAL;
    if (job->count)
        qsort(job->values, job->count, sizeof *job->values, compare_values);
    for (size_t i = 0; i < job->count; i++) {
        const new_value *value = &job->values[i];
        if (i && value->sample == value[-1].sample)
            return REFUSE("sample %" PRIu64 " gets two values, in lines %" PRIu64 " and %" PRIu64,
                          value->sample, value[-1].line, value->line);
        if (!value->text && !optional)
            return REFUSE("line %" PRIu64 ": no value, and those of \"%s\" may not be absent", value->line,
                          job->about->name);
    }
    return COFFER_OK;
}

static coffer_status update(const field_job *job, const char *path, const coffer_mldf_update_opts *opts,
                            coffer_error *err)
{
    uint64_t *samples = coffer__alloc_array(job->count + 1, sizeof *samples);
    size_t *fields = coffer__alloc_array(job->count + 1, sizeof *fields);
    coffer_status status =
        samples && fields ? COFFER_OK : coffer__fail_no_memory(err, job->count * sizeof *samples);
    for (size_t i = 0; !status && i < job->count; i++) {
        samples[i] = job->values[i].sample;
        fields[i] = job->field;
    }
    if (!status)
        status = coffer_mldf_update_replace(path, samples, fields, job->count, fill, (void *)(uintptr_t)job,
                                            opts, err);
    coffer__free(samples);
    coffer__free(fields);
    return status;
}

coffer_status coffer_mldf_update_values(uint64_t *count, const char *path, const coffer_mldf *set,
                                        size_t field, coffer_source *values,
                                        const coffer_mldf_update_opts *opts, coffer_error *err)
{
    field_job job = { .set = set,
                      .about = coffer_mldf_field_at(set, field),
                      .field = field,
                      .key = SIZE_MAX,
                      .src = values,
                      .opts = COFFER_MLDF_PACK_OPTS_INIT };
    if (!job.about)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                            "field %zu requested, the set has %zu", field, coffer_mldf_field_count(set));
    uint16_t type = job.about->type;
    if (type != COFFER_MLDF_INT && type != COFFER_MLDF_FLOAT && type != COFFER_MLDF_TEXT &&
        type != COFFER_MLDF_JSON)
        return REFUSE("values of \"%s\" are not numbers, texts or JSON", job.about->name);
    job.taker.opts = &job.opts;
    coffer_status status = read_values(&job, err);
    if (!status)
        status = check_values(&job, err);
    if (!status)
        status = update(&job, path, opts, err);
    if (!status)
        *count = job.count;
    coffer__arena_free(&job.texts);
    coffer__free(job.values);
    coffer__free(job.names);
    coffer__dataset_taker_free(&job.taker);
    return status;
}
