#include "mldf/mldf_verbs.h"

#include "base/memory.h"
#include "coffer/dataset.h"
#include "mldf/sample_place.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

typedef struct field_job {
    const cli_args *args;
    const coffer_mldf *set;
    char *name; /* of the field; its type is after the NUL */
    coffer_mldf_field field;
    coffer_source *values;
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

static int open_values(field_job *job)
{
    const char *path = cli_value(job->args, "values");
    if (path)
        return cli_open(&job->values, path);
    return job->field.flags & COFFER_MLDF_FIELD_OPTIONAL
               ? CLI_OK
               : cli_usage(job->args, "--values FILE says what is in it; a field of type 'TYPE?' may do "
                                      "without");
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
    term_progress_start(&bar, "adding", "samples");
    cli_hold_signals();
    coffer_status status = coffer_mldf_update_add_values(cli_operand(job->args, 0), job->set, &job->field,
                                                         job->values, &opts, &err);
    if (status)
        cli_release_signals();
    else
        cli_finish_signals();
    term_progress_end(&bar);
    if (!status)
        return report(job);
    if (err.subject == COFFER_SUBJECT_OTHER)
        return cli_fail(NULL, &err, "nothing was changed");
    return err.status == COFFER_E_INVALID_ARGUMENT ? cli_usage(job->args, "%s", err.text)
                                                   : mldf_fail(cli_operand(job->args, 0), &err);
}

int mldf_add_field(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    field_job job = { .args = args, .set = set, .field = COFFER_MLDF_FIELD_INIT };
    if (cli_operand_count(args) > 1 || cli_has(args, "delete"))
        return cli_usage(args, "--add-field is a change of its own: nothing else in the same command");
    if (cli_has(args, "encrypt") && !key->at)
        return cli_usage(args, "--encrypt needs a key: --key-file FILE or the environment's COFFER_KEY");
    int result = read_spec(&job);
    if (!result)
        result = open_values(&job);
    if (!result)
        result = add(&job, key);
    coffer_source_close(job.values);
    coffer__free(job.name);
    return result;
}

/* set --field: new values of a field for many samples. */

static int report_values(const cli_args *args, const char *field, uint64_t changes)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    const char *path = cli_operand(args, 0);
    term_text count;
    if (!cli_has(args, "json")) {
        term_print_text(stdout, path, strlen(path), 0);
        fputs(": field \"", stdout);
        term_print_text(stdout, field, strlen(field), 0);
        printf("\" set for %s samples\n", term_count(count, changes));
        return CLI_OK;
    }
    if (coffer_node_new(&root, &err) != COFFER_OK)
        return cli_fail(path, &err, NULL);
    coffer_node_add_text(root, "file", path);
    coffer_node_add_text(root, "format", "mldf");
    coffer_node_add_u64(root, "changes", changes, COFFER_UNIT_NONE);
    coffer_node_add_text(root, "field", field);
    int status = cli_print_json(stdout, root);
    coffer_node_free(root);
    return status;
}

int mldf_set_field(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    const char *name = cli_value(args, "field"), *values = cli_value(args, "values");
    coffer_mldf_update_opts opts = COFFER_MLDF_UPDATE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = NULL;
    uint64_t changes = 0;
    size_t field;
    if (cli_operand_count(args) > 1 || cli_has(args, "delete"))
        return cli_usage(args, "--field is a change of its own: nothing else in the same command");
    if (!values)
        return cli_usage(args, "--field needs --values FILE: a .csv table, lines of JSON or an .npy array");
    int result = sample_field_find(&field, args, set, name);
    if (!result)
        result = cli_open(&src, values);
    if (result)
        return result;
    opts.key = key->at;
    cli_hold_signals();
    coffer_status status =
        coffer_mldf_update_values(&changes, cli_operand(args, 0), set, field, src, &opts, &err);
    if (status)
        cli_release_signals();
    else
        cli_finish_signals();
    coffer_source_close(src);
    if (!status)
        return report_values(args, name, changes);
    return err.status == COFFER_E_INVALID_ARGUMENT
               ? cli_usage(args, "%s: %s; nothing was changed", values, err.text)
               : mldf_fail(cli_operand(args, 0), &err);
}
