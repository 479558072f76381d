/* set --field: new values of a field for many samples, from a table, JSON lines or an array. */
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "mldf/add_field.h"
#include "mldf/mldf_verbs.h"
#include "mldf/sample_input.h"
#include "mldf/sample_place.h"
#include "outside/arrays/npy.h"
#include "outside/text/csv.h"
#include "outside/text/jsonl.h"
#include "term.h"

#include <inttypes.h>
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
    const cli_args *args;
    const coffer_mldf *set;
    const char *path;  /* of the values */
    size_t field, key; /* key : field that names samples; SIZE_MAX = by number or in order */
    coffer_source *src;
    coffer__arena texts;
    new_value *values;
    size_t count, capacity;
    named *names;
    sample_input input;
    const new_value *wrong;
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

/* ---- Names of samples ---- */

static int read_names(field_job *job, size_t key)
{
    uint64_t samples = coffer_mldf_sample_count(job->set);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_bytes bytes = COFFER_BYTES_INIT;
    coffer_status status = COFFER_OK;
    job->key = key;
    job->names = coffer__alloc_array((size_t)samples + 1, sizeof *job->names);
    if (!job->names)
        return cli_usage(job->args, "out of memory");
    for (uint64_t i = 0; i < samples && !status; i++) {
        status = coffer_mldf_get_text(&bytes, job->set, i, key, &err);
        job->names[i] = (named){ status ? 0 : coffer__hash(bytes.data, bytes.size), i };
    }
    coffer_free(bytes.data);
    if (!status && samples)
        qsort(job->names, (size_t)samples, sizeof *job->names, compare_named);
    return status ? mldf_fail(cli_operand(job->args, 0), &err) : CLI_OK;
}

static int find_sample(uint64_t *out, const field_job *job, const char *text, size_t len, uint64_t line)
{
    uint64_t samples = coffer_mldf_sample_count(job->set);
    if (job->key == SIZE_MAX) {
        const char *end = text;
        uint64_t number = 0;
        if (!cli_read_digits(&number, &end) || end != text + len || number >= samples)
            return cli_usage(job->args, "%s: line %" PRIu64 ": '%.*s' is not a sample; there are %" PRIu64,
                             job->path, line, (int)(len < 60 ? len : 60), text, samples);
        *out = number;
        return CLI_OK;
    }
    uint64_t hash = coffer__hash(len ? text : "", len);
    size_t low = 0, high = (size_t)samples;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (job->names[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == samples || job->names[low].hash != hash)
        return cli_usage(job->args, "%s: line %" PRIu64 ": no sample has the %s '%.*s'", job->path, line,
                         coffer_mldf_field_at(job->set, job->key)->name, (int)(len < 60 ? len : 60), text);
    if (low + 1 < samples && job->names[low + 1].hash == hash)
        return cli_usage(job->args,
                         "%s: line %" PRIu64
                         ": several samples have the %s '%.*s'; name samples by number in a "
                         "column \"sample\"",
                         job->path, line, coffer_mldf_field_at(job->set, job->key)->name,
                         (int)(len < 60 ? len : 60), text);
    *out = job->names[low].sample;
    return CLI_OK;
}

static int add_value(field_job *job, uint64_t sample, const char *text, size_t len, uint64_t line)
{
    if (job->count == job->capacity) {
        size_t capacity = job->capacity ? 2 * job->capacity : 1024;
        new_value *grown = coffer__realloc(job->values, capacity * sizeof *grown);
        if (!grown)
            return cli_usage(job->args, "out of memory");
        job->values = grown;
        job->capacity = capacity;
    }
    char *copy = text ? coffer__arena_text(&job->texts, text, len) : NULL;
    if (text && !copy)
        return cli_usage(job->args, "out of memory");
    job->values[job->count++] = (new_value){ sample, copy, len, line };
    return CLI_OK;
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
static int read_header(columns *out, field_job *job, const coffer__csv_row *row)
{
    const char *field = coffer_mldf_field_at(job->set, job->field)->name;
    *out = (columns){ SIZE_MAX, SIZE_MAX };
    for (size_t i = 0; i < row->count; i++) {
        if (is_cell(&row->fields[i], field))
            out->value = i;
        else if (is_cell(&row->fields[i], "sample"))
            out->sample = i;
    }
    if (out->value == SIZE_MAX)
        return cli_usage(job->args, "%s has no column \"%s\" in its first row", job->path, field);
    for (size_t i = 0; i < row->count && out->sample == SIZE_MAX; i++) {
        for (size_t f = 0; f < coffer_mldf_field_count(job->set); f++) {
            const coffer_mldf_field *about = coffer_mldf_field_at(job->set, f);
            if (i == out->value || about->type != COFFER_MLDF_TEXT || !is_cell(&row->fields[i], about->name))
                continue;
            out->sample = i;
            return read_names(job, f);
        }
    }
    return CLI_OK;
}

static int take_row(field_job *job, const columns *where, const coffer__csv_row *row)
{
    uint64_t sample = job->count;
    if (row->count <= where->value || (where->sample != SIZE_MAX && row->count <= where->sample))
        return cli_usage(job->args, "%s: line %" PRIu64 " has %zu cells, fewer than the first row", job->path,
                         row->line, row->count);
    if (where->sample != SIZE_MAX) {
        const coffer__csv_field *name = &row->fields[where->sample];
        int result = find_sample(&sample, job, name->text, name->len, row->line);
        if (result)
            return result;
    }
    const coffer__csv_field *cell = &row->fields[where->value];
    return add_value(job, sample, cell->len ? cell->text : NULL, cell->len, row->line);
}

static int read_csv(field_job *job, bool *in_order)
{
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer__csv_reader *reader = NULL;
    const coffer__csv_row *row = NULL;
    columns where = { SIZE_MAX, SIZE_MAX };
    coffer_status status = coffer__csv_open(&reader, job->src, &limits, &err);
    if (!status)
        status = coffer__csv_next(&row, reader, &err);
    int result = status ? CLI_OK
                 : row  ? read_header(&where, job, row)
                        : cli_usage(job->args, "%s is empty", job->path);
    while (!status && !result) {
        status = coffer__csv_next(&row, reader, &err);
        if (status || !row)
            break;
        result = take_row(job, &where, row);
    }
    coffer__csv_close(reader);
    *in_order = where.sample == SIZE_MAX;
    return status ? cli_fail(job->path, &err, "") : result;
}

/* ---- JSON lines and arrays ---- */

static int read_jsonl(field_job *job, bool *in_order)
{
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer__jsonl_reader *reader = NULL;
    const coffer__json_value *object = NULL;
    const char *field = coffer_mldf_field_at(job->set, job->field)->name;
    bool is_json = coffer_mldf_field_at(job->set, job->field)->type == COFFER_MLDF_JSON;
    int result = CLI_OK;
    coffer_status status = coffer__jsonl_open(&reader, job->src, &limits, &err);
    while (!status && !result && !(status = coffer__jsonl_next(&object, reader, &err)) && object) {
        const char *raw = NULL;
        size_t raw_len = 0, at = 0;
        const coffer__json_value *value = coffer__json_first(object);
        while (value && coffer__jsonl_next_raw(&raw, &raw_len, reader, &at) &&
               !(value->key_len == strlen(field) && memcmp(value->key, field, value->key_len) == 0))
            value = coffer__json_next(object, value);
        uint64_t line = coffer__jsonl_line(reader), sample = job->count;
        const coffer__json_value *number = coffer__json_find(object, "sample");
        *in_order = *in_order && !number;
        if (!value)
            result = cli_usage(job->args, "%s: line %" PRIu64 " has no \"%s\"", job->path, line, field);
        else if (number &&
                 (!coffer__json_u64(&sample, number) || sample >= coffer_mldf_sample_count(job->set)))
            result = cli_usage(job->args, "%s: line %" PRIu64 ": no such sample", job->path, line);
        else if (value->kind == COFFER__JSON_NULL)
            result = add_value(job, sample, NULL, 0, line);
        else if (value->kind == COFFER__JSON_STRING && !is_json)
            result = add_value(job, sample, value->as.string, value->string_len, line);
        else
            result = add_value(job, sample, raw, raw_len, line);
    }
    coffer__jsonl_close(reader);
    return status ? cli_fail(job->path, &err, "") : result;
}

static int read_npy(field_job *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__npy npy = { 0 };
    uint8_t bytes[32];
    coffer_status status = coffer__npy_read(&npy, job->src, &err);
    int result = CLI_OK;
    if (!status && (npy.structured || npy.dimensions != 1 || !coffer__npy_is_number(&npy.fields[0])))
        result = cli_usage(job->args, "%s: requires an array of numbers with one dimension", job->path);
    for (uint64_t i = 0; !status && !result && i < npy.count; i++) {
        status = coffer_source_read_at(bytes, job->src, npy.data_offset + i * npy.item_size,
                                       (size_t)npy.item_size, &err);
        coffer__number number = { 0 };
        if (!status)
            number = coffer__npy_number(&npy.fields[0], bytes);
        char text[40];
        int64_t whole;
        int len = coffer__number_as_i64(&whole, &number)
                      ? snprintf(text, sizeof text, "%" PRId64, whole)
                      : snprintf(text, sizeof text, "%.17g", coffer__number_as_f64(&number));
        if (!status)
            result = add_value(job, i, text, (size_t)len, i);
    }
    coffer__npy_free(&npy);
    return status ? cli_fail(job->path, &err, "") : result;
}

static int read_values(field_job *job)
{
    uint8_t head[8] = { 0 };
    bool in_order = true;
    size_t len = strlen(job->path);
    int result = cli_open(&job->src, job->path);
    if (result)
        return result;
    if (coffer_source_size(job->src) >= sizeof head)
        coffer__ignore(coffer_source_read_at(head, job->src, 0, sizeof head, NULL));
    if (coffer__npy_probe(head, sizeof head))
        result = read_npy(job);
    else if (len > 4 && strcmp(job->path + len - 4, ".csv") == 0)
        result = read_csv(job, &in_order);
    else
        result = read_jsonl(job, &in_order);
    uint64_t samples = coffer_mldf_sample_count(job->set);
    if (!result && in_order && job->count != samples)
        result = cli_usage(job->args,
                           "%s has %zu values, the set has %" PRIu64
                           " samples; a column \"sample\" or \"path\" says "
                           "which samples they are for",
                           job->path, job->count, samples);
    return result;
}

/* ---- The commit ---- */

static coffer_status fill(void *context, coffer_mldf_writer *writer, uint64_t sample, size_t field,
                          coffer_error *err)
{
    field_job *job = context;
    const new_value wanted = { .sample = sample };
    const new_value *found = bsearch(&wanted, job->values, job->count, sizeof *job->values, compare_values);
    if (!found || !found->text)
        return COFFER_OK;
    coffer_status status = sample_input_plain(&job->input, writer, field, found->text, found->len, err);
    if (status)
        job->wrong = found;
    return status;
}

static int check_values(field_job *job)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(job->set, job->field);
    bool optional = field->flags & COFFER_MLDF_FIELD_OPTIONAL;
    qsort(job->values, job->count, sizeof *job->values, compare_values);
    for (size_t i = 0; i < job->count; i++) {
        if (i && job->values[i].sample == job->values[i - 1].sample)
            return cli_usage(job->args,
                             "%s: sample %" PRIu64 " gets two values, in lines %" PRIu64 " and %" PRIu64,
                             job->path, job->values[i].sample, job->values[i - 1].line, job->values[i].line);
        if (!job->values[i].text && !optional)
            return cli_usage(job->args,
                             "%s: line %" PRIu64 ": no value, and those of \"%s\" may not be absent",
                             job->path, job->values[i].line, field->name);
    }
    return CLI_OK;
}

static int report(const field_job *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    const char *path = cli_operand(job->args, 0), *field = coffer_mldf_field_at(job->set, job->field)->name;
    term_text count;
    if (!cli_has(job->args, "json")) {
        term_print_text(stdout, path, strlen(path), 0);
        fputs(": field \"", stdout);
        term_print_text(stdout, field, strlen(field), 0);
        printf("\" set for %s samples\n", term_count(count, job->count));
        return CLI_OK;
    }
    if (coffer_node_new(&root, &err) != COFFER_OK)
        return cli_fail(path, &err, NULL);
    coffer_node_add_text(root, "file", path);
    coffer_node_add_text(root, "format", "mldf");
    coffer_node_add_u64(root, "changes", job->count, COFFER_UNIT_NONE);
    coffer_node_add_text(root, "field", field);
    int status = cli_print_json(stdout, root);
    coffer_node_free(root);
    return status;
}

static int commit(field_job *job, const cli_key *key)
{
    coffer_mldf_update_opts opts = COFFER_MLDF_UPDATE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t *samples = coffer__alloc_array(job->count + 1, sizeof *samples);
    size_t *fields = coffer__alloc_array(job->count + 1, sizeof *fields);
    coffer_status status =
        samples && fields ? COFFER_OK : coffer__fail_no_memory(&err, job->count * sizeof *samples);
    for (size_t i = 0; !status && i < job->count; i++) {
        samples[i] = job->values[i].sample;
        fields[i] = job->field;
    }
    opts.key = key->at;
    sample_input_init(&job->input);
    cli_hold_signals();
    if (!status)
        status = coffer_mldf_update_replace(cli_operand(job->args, 0), samples, fields, job->count, fill, job,
                                            &opts, &err);
    if (status)
        cli_release_signals();
    else
        cli_finish_signals();
    sample_input_free(&job->input);
    coffer__free(samples);
    coffer__free(fields);
    if (!status)
        return report(job);
    if (job->wrong)
        return cli_usage(job->args, "%s: line %" PRIu64 ": %s; nothing was changed", job->path,
                         job->wrong->line, err.text);
    return mldf_fail(cli_operand(job->args, 0), &err);
}

int mldf_set_field(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    field_job job = { .args = args, .set = set, .path = cli_value(args, "values"), .key = SIZE_MAX };
    if (cli_operand_count(args) > 1 || cli_has(args, "delete"))
        return cli_usage(args, "--field is a change of its own: nothing else in the same command");
    if (!job.path)
        return cli_usage(args, "--field needs --values FILE: a .csv table, lines of JSON or an .npy array");
    int result = sample_field_find(&job.field, args, set, cli_value(args, "field"));
    if (result)
        return result;
    const coffer_mldf_field *field = coffer_mldf_field_at(set, job.field);
    if (field->type != COFFER_MLDF_INT && field->type != COFFER_MLDF_FLOAT &&
        field->type != COFFER_MLDF_TEXT && field->type != COFFER_MLDF_JSON)
        return cli_usage(args, "--field sets numbers, texts and JSON; SAMPLE.%s=@FILE sets a single value",
                         field->name);
    result = read_values(&job);
    if (!result)
        result = check_values(&job);
    if (!result && job.count == 0)
        result = cli_usage(args, "%s has no values", job.path);
    if (!result)
        result = commit(&job, key);
    coffer_source_close(job.src);
    coffer__arena_free(&job.texts);
    coffer__free(job.values);
    coffer__free(job.names);
    return result;
}
