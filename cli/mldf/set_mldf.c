/* set, for training sets: single values, all of one command in one commit, or a new field. */
#include "base/fail.h"
#include "base/memory.h"
#include "mldf/mldf_verbs.h"
#include "mldf/sample_input.h"
#include "mldf/sample_place.h"
#include "term.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    { "delete", 'd', "KEY", NULL, "delete the value at KEY, such as 42.caption" },
    { "add-field", 0, "NAME:TYPE", NULL,
      "add a field after the others: score:float, caption:text, thumb:image-jpeg; text? may be absent" },
    { "field", 0, "NAME", NULL, "set this field of many samples to the values of --values" },
    { "values", 0, "FILE", NULL,
      "values of the field: an .npy array, one line of JSON per sample (null = absent), or with --field a "
      ".csv "
      "table whose columns are the field and, for values in another order, \"sample\" or \"path\"" },
    { "zstd", 0, NULL, NULL, "with --add-field: compress its values" },
    { "encrypt", 0, NULL, NULL, "with --add-field: encrypt its values with the key" },
    { "json", 0, NULL, NULL, "one JSON object: file, format, changes" },
    CLI_KEY_OPTION,
    { 0 },
};

typedef struct change {
    uint64_t sample;
    size_t field;
    const char *text; /* NULL: the value goes */
} change;

typedef struct set_job {
    const cli_args *args;
    const coffer_mldf *set;
    const cli_key *key;
    change *changes;
    size_t count;
    coffer_mldf_value_input *input;
    const change *wrong; /* whose value was refused */
} set_job;

/* ---- The command line ---- */

static int add_change(set_job *job, const char *key, size_t key_len, const char *text)
{
    sample_place place;
    char *what = coffer__strndup(key, key_len);
    if (!what)
        return cli_usage(job->args, "out of memory");
    int result = sample_place_read(&place, job->args, job->set, what);
    if (!result && (!place.is_one || place.field == MLDF_ALL_FIELDS))
        result = cli_usage(job->args, "'%s' is not a value: write SAMPLE.FIELD, such as 42.caption", what);
    coffer__free(what);
    if (result)
        return result;
    const coffer_mldf_field *field = coffer_mldf_field_at(job->set, place.field);
    if (!text && !(field->flags & COFFER_MLDF_FIELD_OPTIONAL))
        return cli_usage(job->args, "field \"%s\" is not one whose values may be absent", field->name);
    job->changes[job->count++] = (change){ place.first, place.field, text };
    return CLI_OK;
}

static int gather(set_job *job)
{
    cli_place place = { 0, 0 };
    cli_word word;
    int result = CLI_OK;
    size_t operands = 0;
    while (!result && cli_next_word(&word, &place, job->args)) {
        if (word.option && strcmp(word.option, "delete") == 0) {
            result = add_change(job, word.value, strlen(word.value), NULL);
        } else if (!word.option && operands++ > 0) {
            const char *equals = strchr(word.value, '=');
            result = equals ? add_change(job, word.value, (size_t)(equals - word.value), equals + 1)
                            : cli_usage(job->args, "'%s' is not SAMPLE.FIELD=VALUE", word.value);
        }
    }
    if (!result && job->count == 0)
        result = cli_usage(job->args, "nothing to change: give SAMPLE.FIELD=VALUE, --delete SAMPLE.FIELD or "
                                      "--add-field NAME:TYPE");
    return result;
}

static int compare(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->sample != y->sample)
        return x->sample < y->sample ? -1 : 1;
    return (x->field > y->field) - (x->field < y->field);
}

static int sort_changes(set_job *job)
{
    if (job->count > 1)
        qsort(job->changes, job->count, sizeof *job->changes, compare);
    for (size_t i = 1; i < job->count; i++)
        if (compare(&job->changes[i - 1], &job->changes[i]) == 0)
            return cli_usage(job->args, "%" PRIu64 ".%s is set twice", job->changes[i].sample,
                             coffer_mldf_field_at(job->set, job->changes[i].field)->name);
    return CLI_OK;
}

/* ---- The commit ---- */

static coffer_status fill(void *context, coffer_mldf_writer *writer, uint64_t sample, size_t field,
                          coffer_error *err)
{
    set_job *job = context;
    const change wanted = { sample, field, NULL };
    const change *found = bsearch(&wanted, job->changes, job->count, sizeof *job->changes, compare);
    if (!found || !found->text)
        return COFFER_OK;
    coffer_status status = sample_input_text(job->input, writer, field, found->text, err);
    job->wrong = status ? found : NULL;
    return status;
}

static coffer_status replace(set_job *job, coffer_error *err)
{
    coffer_mldf_update_opts opts = COFFER_MLDF_UPDATE_OPTS_INIT;
    uint64_t *samples = coffer__alloc_array(job->count, sizeof *samples);
    size_t *fields = coffer__alloc_array(job->count, sizeof *fields);
    coffer_status status = COFFER_OK;
    opts.key = job->key->at;
    if (!samples || !fields)
        status = coffer__fail_no_memory(err, job->count * sizeof *samples);
    for (size_t i = 0; !status && i < job->count; i++) {
        samples[i] = job->changes[i].sample;
        fields[i] = job->changes[i].field;
    }
    if (!status)
        status = coffer_mldf_value_input_new(&job->input, err);
    cli_hold_signals();
    if (!status)
        status = coffer_mldf_update_replace(cli_operand(job->args, 0), samples, fields, job->count, fill, job,
                                            &opts, err);
    if (status)
        cli_release_signals();
    else
        cli_finish_signals();
    coffer_mldf_value_input_free(job->input);
    coffer__free(samples);
    coffer__free(fields);
    return status;
}

static int report(const set_job *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    const char *path = cli_operand(job->args, 0);
    if (!cli_has(job->args, "json")) {
        term_print_text(stdout, path, strlen(path), 0);
        printf(": %zu change%s\n", job->count, job->count == 1 ? "" : "s");
        return CLI_OK;
    }
    if (coffer_node_new(&root, &err) != COFFER_OK)
        return cli_fail(path, &err, NULL);
    coffer_node_add_text(root, "file", path);
    coffer_node_add_text(root, "format", "mldf");
    coffer_node_add_u64(root, "changes", job->count, COFFER_UNIT_NONE);
    int status = cli_print_json(stdout, root);
    coffer_node_free(root);
    return status;
}

/* A bad value is the fault of the arguments, not of the set. */
static int fail(const set_job *job, const coffer_error *err)
{
    bool about_value =
        job->wrong && (coffer__is_about_file(err->status) || err->status == COFFER_E_INVALID_ARGUMENT);
    bool is_file = job->wrong && job->wrong->text[0] == '@' && job->wrong->text[1] != '@';
    if (is_file && err->status != COFFER_E_INVALID_ARGUMENT)
        return cli_fail(job->wrong->text + 1, err, about_value ? "nothing was changed" : NULL);
    if (about_value)
        return cli_usage(job->args, "%" PRIu64 ".%s: %s", job->wrong->sample,
                         coffer_mldf_field_at(job->set, job->wrong->field)->name, err->text);
    if (err->status == COFFER_E_INVALID_ARGUMENT)
        return cli_usage(job->args, "%s", err->text);
    return mldf_fail(cli_operand(job->args, 0), err);
}

static int run_on(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    set_job job = { .args = args, .set = set, .key = key };
    coffer_error err = COFFER_ERROR_INIT;
    cli_word word;
    size_t words = 0;
    if (cli_has(args, "add-field"))
        return mldf_add_field(args, set, key);
    if (cli_has(args, "field"))
        return mldf_set_field(args, set, key);
    if (cli_has(args, "values") || cli_has(args, "zstd") || cli_has(args, "encrypt"))
        return cli_usage(args,
                         "--values belongs to --field or --add-field; --zstd and --encrypt to --add-field");
    for (cli_place place = { 0, 0 }; cli_next_word(&word, &place, args);)
        words++;
    job.changes = coffer__alloc_array(words + 1, sizeof *job.changes);
    int result = job.changes ? gather(&job) : cli_usage(args, "out of memory");
    if (!result)
        result = sort_changes(&job);
    if (!result)
        result = replace(&job, &err) == COFFER_OK ? report(&job) : fail(&job, &err);
    coffer__free(job.changes);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    int result = mldf_expect_file(args);
    return result ? result : mldf_with_set(args, src, run_on);
}

const cli_format_verb cli_mldf_set = {
    .format = "mldf",
    .verb = "set",
    .options = options,
    .examples = "  coffer set train.mldf 42.label=3 42.caption='a red kite'    # in one commit\n"
                "  coffer set train.mldf 42.image=@better.jpg --delete 43.caption\n"
                "  coffer set train.mldf --field label --values labels.csv    # columns path and label\n"
                "  coffer set train.mldf --add-field score:float --values scores.npy\n"
                "  coffer set train.mldf --add-field 'summary:text?' --values summaries.jsonl --zstd\n",
    .run = run,
};
