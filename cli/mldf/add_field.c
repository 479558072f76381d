#include "mldf/add_field.h"

#include "base/fail.h"
#include "base/memory.h"
#include "mldf/mldf_verbs.h"
#include "mldf/sample_input.h"
#include "outside/arrays/npy.h"
#include "outside/text/jsonl.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

typedef struct field_job {
    const cli_args *args;
    const coffer_mldf *set;
    char *name; /* of the field; its type is after the NUL */
    coffer_mldf_field field;
    coffer_source *values;
    coffer__npy npy;
    bool is_npy;
    uint64_t offset; /* of the next line */
    coffer__buffer line;
    sample_input input;
    coffer_error value_error; /* what was wrong with a value, or the file of values */
} field_job;

/* ---- The field ---- */

static int read_spec(field_job *job)
{
    const char *spec = cli_value(job->args, "add-field"), *colon = strchr(spec, ':');
    job->name = coffer__strdup(spec);
    if (!job->name)
        return cli_usage(job->args, "out of memory");
    if (!colon || colon == spec)
        return cli_usage(job->args, "--add-field '%s': write NAME:TYPE, such as score:float", spec);
    char *type = job->name + (colon - spec);
    *type++ = '\0';
    size_t len = strlen(type);
    if (len > 0 && type[len - 1] == '?') {
        type[len - 1] = '\0';
        job->field.flags |= COFFER_MLDF_FIELD_OPTIONAL;
    }
    job->field.name = job->name;
    job->field.type = coffer_mldf_type_by_name(type);
    if (coffer_mldf_find_field(job->set, job->name) != SIZE_MAX)
        return cli_usage(job->args, "there is a field \"%s\" already; SAMPLE.FIELD=VALUE changes its values",
                         job->name);
    if (!job->field.type)
        return cli_usage(job->args,
                         "--add-field: unknown type '%s'; int, float, text, json, bytes, ndarray, "
                         "image-jpeg, image-png and audio are the usual ones",
                         type);
    if (cli_has(job->args, "zstd"))
        job->field.flags |= COFFER_MLDF_FIELD_ZSTD;
    if (cli_has(job->args, "encrypt"))
        job->field.flags |= COFFER_MLDF_FIELD_ENCRYPTED;
    return CLI_OK;
}

/* The first dimension counts the samples, the others are the shape of a value. */
static int take_npy(field_job *job)
{
    const coffer__npy *npy = &job->npy;
    const char *path = cli_value(job->args, "values");
    uint64_t samples = coffer_mldf_sample_count(job->set);
    bool is_array = coffer__dataset_is_array(job->field.type);
    bool is_number = job->field.type == COFFER_MLDF_INT || job->field.type == COFFER_MLDF_FLOAT;
    if (npy->structured || npy->fortran_order || npy->dimensions == 0 ||
        npy->dimensions > COFFER_MLDF_MAX_DIMS + 1 || !coffer__npy_is_number(&npy->fields[0]))
        return cli_usage(job->args, "%s: requires plain numbers, in rows", path);
    if (npy->shape[0] != samples)
        return cli_usage(job->args, "%s has %" PRIu64 " rows, the set has %" PRIu64 " samples", path,
                         npy->shape[0], samples);
    if (is_number ? npy->dimensions != 1 : !is_array)
        return cli_usage(job->args, "%s: an array becomes a field of type int, float or ndarray", path);
    if (is_array) {
        job->field.dtype = coffer__npy_dtype(&npy->fields[0]);
        job->field.ndim = (uint32_t)(npy->dimensions - 1);
        memcpy(job->field.dims, npy->shape + 1, job->field.ndim * sizeof *job->field.dims);
    }
    return CLI_OK;
}

static int open_values(field_job *job)
{
    const char *path = cli_value(job->args, "values");
    uint8_t head[8] = { 0 };
    coffer_error err = COFFER_ERROR_INIT;
    if (!path)
        return job->field.flags & COFFER_MLDF_FIELD_OPTIONAL
                   ? CLI_OK
                   : cli_usage(job->args, "--values FILE says what is in it; a field of type 'TYPE?' may do "
                                          "without");
    int result = cli_open(&job->values, path);
    if (result)
        return result;
    uint64_t size = coffer_source_size(job->values);
    if (size >= sizeof head && coffer_source_read_at(head, job->values, 0, sizeof head, &err) != COFFER_OK)
        return cli_fail(path, &err, NULL);
    job->is_npy = coffer__npy_probe(head, sizeof head);
    if (!job->is_npy)
        return CLI_OK;
    return coffer__npy_read(&job->npy, job->values, &err) == COFFER_OK ? take_npy(job)
                                                                       : cli_fail(path, &err, "");
}

/* ---- Its values ---- */

static coffer_status fill_from_npy(field_job *job, coffer_mldf_writer *writer, uint64_t sample, size_t field,
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
                            "row %" PRIu64 ": no whole number of 64 bits", sample);
    return coffer_mldf_writer_set_int(writer, field, whole, err);
}

/* The line that begins at job->offset, without its end, into job->line. */
static coffer_status read_line(field_job *job, bool *more, coffer_error *err)
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

/* A line is the value itself, or an object that has it under the field's name. */
static coffer_status fill_from_line(field_job *job, coffer_mldf_writer *writer, uint64_t sample, size_t field,
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
        status = sample_input_json(&job->input, writer, field, value, err);
    }
    coffer__json_free(json);
    return status;
}

static coffer_status fill(void *context, coffer_mldf_writer *writer, uint64_t sample, size_t field,
                          coffer_error *err)
{
    field_job *job = context;
    coffer_status status = COFFER_OK;
    if (job->values)
        status = job->is_npy ? fill_from_npy(job, writer, sample, field, &job->value_error)
                             : fill_from_line(job, writer, sample, field, &job->value_error);
    return !status ? COFFER_OK : coffer__fail_copy(err, &job->value_error);
}

/* ---- The commit ---- */

static int report(const field_job *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    term_text count;
    const char *path = cli_operand(job->args, 0);
    if (!cli_has(job->args, "json")) {
        term_print_text(stdout, path, strlen(path), 0);
        fputs(": field \"", stdout);
        term_print_text(stdout, job->name, strlen(job->name), 0);
        printf("\" added to %s samples\n", term_count(count, coffer_mldf_sample_count(job->set)));
        return CLI_OK;
    }
    if (coffer_node_new(&root, &err) != COFFER_OK)
        return cli_fail(path, &err, NULL);
    coffer_node_add_text(root, "file", path);
    coffer_node_add_text(root, "format", "mldf");
    coffer_node_add_u64(root, "changes", 1, COFFER_UNIT_NONE);
    coffer_node_add_text(root, "field", job->name);
    int status = cli_print_json(stdout, root);
    coffer_node_free(root);
    return status;
}

static int add(field_job *job, const cli_key *key)
{
    coffer_mldf_update_opts opts = COFFER_MLDF_UPDATE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    opts.key = key->at;
    opts.progress = &bar.progress;
    sample_input_init(&job->input);
    term_progress_start(&bar, "adding", "samples");
    cli_hold_signals();
    coffer_status status =
        coffer_mldf_update_add_field(cli_operand(job->args, 0), &job->field, fill, job, &opts, &err);
    if (status)
        cli_release_signals();
    else
        cli_finish_signals();
    term_progress_end(&bar);
    sample_input_free(&job->input);
    if (!status)
        return report(job);
    if (job->value_error.status)
        return cli_fail(cli_value(job->args, "values"), &err, "nothing was changed");
    return err.status == COFFER_E_INVALID_ARGUMENT ? cli_usage(job->args, "%s", err.text)
                                                   : mldf_fail(cli_operand(job->args, 0), &err);
}

int mldf_add_field(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    field_job job = { .args = args,
                      .set = set,
                      .field = COFFER_MLDF_FIELD_INIT,
                      .line = COFFER__BUFFER_INIT,
                      .value_error = COFFER_ERROR_INIT };
    if (cli_operand_count(args) > 1 || cli_has(args, "delete"))
        return cli_usage(args, "--add-field is a change of its own: nothing else in the same command");
    if (cli_has(args, "encrypt") && !key->at)
        return cli_usage(args, "--encrypt needs a key: --key-file FILE or the environment's COFFER_KEY");
    int result = read_spec(&job);
    if (!result)
        result = open_values(&job);
    if (!result)
        result = add(&job, key);
    coffer__npy_free(&job.npy);
    coffer_source_close(job.values);
    coffer__buffer_free(&job.line);
    coffer__free(job.name);
    return result;
}
