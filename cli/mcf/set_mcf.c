/* set, for model containers: sections and what ModelInfo says, all changes of one command in one commit. */
#include "base/fail.h"
#include "base/memory.h"
#include "mcf/mcf_verbs.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

static const cli_option options[] = {
    { "input", 'i', "FILE", NULL, "read a section or file from FILE", "standard input" },
    { "delete", 'd', "KEY", NULL, "remove a section, a file, a field or a kv.KEY; repeatable" },
    { "string", 0, NULL, NULL, "the next kv.KEY=VALUE is a string" },
    { "uint", 0, NULL, NULL, "the next kv.KEY=VALUE is an integer from 0 to 4294967295" },
    { "float", 0, NULL, NULL, "the next kv.KEY=VALUE is a floating-point number" },
    { "checksum", 0, NULL, NULL, "add or recompute the checksums for 'check --full'; reads every tensor" },
    { "damaged", 0, "MODE", "stop|keep",
      "with --checksum, tensors whose old checksum is wrong: stop, or keep them and record the damage",
      "stop" },
    { "json", 0, NULL, NULL, "one JSON object: file, format, changes, size_before, size_after" },
    { 0 },
};

typedef struct set_job {
    const cli_args *args;
    const char *path;
    coffer_mcf_editor *editor;
    coffer_mcf_kv_type next_type; /* of the next value; 0 = as it was */
    uint64_t changes;
    bool read_input; /* standard input has been taken */
} set_job;

/* ---- Changes ---- */

/* A section's or, with type 0, a file's new bytes, from --input or standard input. */
static int set_section(set_job *job, const char *name, uint32_t type)
{
    const char *input = cli_value(job->args, "input");
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = NULL;
    if (job->read_input)
        return cli_usage(job->args,
                         "%s: only one section or file per command, since each is read from the same input",
                         name);
    if (!input && term_is_terminal(stdin))
        return cli_usage(job->args, "%s is read from standard input: coffer set FILE %s < FILE", name, name);
    job->read_input = true;
    int result = cli_open(&src, input ? input : "-");
    if (result)
        return result;
    uint64_t size = coffer_source_size(src);
    uint8_t *bytes = size < SIZE_MAX ? coffer__malloc((size_t)size + 1) : NULL;
    coffer_status status =
        bytes ? coffer_source_read_at(bytes, src, 0, (size_t)size, &err) : coffer__fail_no_memory(&err, size);
    if (!status)
        status = type ? coffer_mcf_editor_set_section(job->editor, type, bytes, (size_t)size, &err)
                      : coffer_mcf_editor_set_file(job->editor, name, bytes, (size_t)size, &err);
    if (status == COFFER_E_BAD_CHECKSUM)
        result = cli_fail(job->path, &err, NULL);
    else if (status)
        result = cli_fail(input ? input : "standard input", &err, "");
    coffer__free(bytes);
    coffer_source_close(src);
    return result;
}

static int set_field(set_job *job, const char *operand, const char *equals)
{
    coffer_error err = COFFER_ERROR_INIT;
    char *field = coffer__strndup(operand, (size_t)(equals - operand));
    coffer_status status =
        field ? coffer_mcf_editor_set_model_info(job->editor, field, equals + 1, job->next_type, &err)
              : coffer__fail_no_memory(&err, strlen(operand));
    coffer__free(field);
    job->next_type = (coffer_mcf_kv_type)0;
    return !status ? CLI_OK : cli_fail(job->path, &err, NULL);
}

static int set_operand(set_job *job, const char *operand)
{
    uint32_t type = coffer_mcf_section_by_name(operand);
    const char *equals = strchr(operand, '=');
    job->changes++;
    if (type)
        return set_section(job, operand, type);
    if (equals)
        return set_field(job, operand, equals);
    /* A word alone is more likely a mistake than a file without an extension. */
    if (cli_has(job->args, "input") || strchr(operand, '.'))
        return set_section(job, operand, 0);
    return cli_usage(job->args,
                     "'%s' must be KEY=VALUE, a section such as config.json, or a file name with -i FILE",
                     operand);
}

static int remove_key(set_job *job, const char *key)
{
    coffer_error err = COFFER_ERROR_INIT;
    uint32_t type = coffer_mcf_section_by_name(key);
    job->changes++;
    coffer_status status = type ? coffer_mcf_editor_remove_section(job->editor, type, &err)
                                : coffer_mcf_editor_set_file(job->editor, key, NULL, 0, &err);
    if (!type && (status == COFFER_E_MISSING || status == COFFER_E_UNSAFE_PATH))
        status = coffer_mcf_editor_set_model_info(job->editor, key, NULL, (coffer_mcf_kv_type)0, &err);
    return !status ? CLI_OK : cli_fail(job->path, &err, "");
}

static int add_checksums(set_job *job)
{
    coffer_mcf_work_opts opts = COFFER_MCF_WORK_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    job->changes++;
    term_progress_start(&bar, "summing", NULL);
    opts.progress = &bar.progress;
    opts.allow_damaged = cli_choice(job->args, "damaged", 0) == 1;
    coffer_status status = coffer_mcf_editor_set_checksums(job->editor, &opts, &err);
    term_progress_end(&bar);
    return !status ? CLI_OK : cli_fail(job->path, &err, NULL);
}

static int apply_option(set_job *job, const cli_word *word)
{
    static const struct {
        const char *name;
        coffer_mcf_kv_type type;
    } types[] = { { "uint", COFFER_MCF_KV_U32 },
                  { "float", COFFER_MCF_KV_F32 },
                  { "string", COFFER_MCF_KV_STRING } };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].name, word->option) == 0)
            job->next_type = types[i].type;
    if (strcmp(word->option, "delete") == 0)
        return remove_key(job, word->value);
    return CLI_OK;
}

/* Changes gather in the order of the command line; sums come last, over what is then there. */
static int apply(set_job *job)
{
    cli_place place = { 0 };
    cli_word word;
    int result = CLI_OK;
    bool is_file = true;
    while (!result && cli_next_word(&word, &place, job->args)) {
        if (word.option)
            result = apply_option(job, &word);
        else if (!is_file)
            result = set_operand(job, word.value);
        else
            is_file = false;
    }
    if (!result && cli_has(job->args, "checksum"))
        result = add_checksums(job);
    return result;
}

/* ---- The command ---- */

static uint64_t size_of(const char *path)
{
    coffer_source *src = NULL;
    uint64_t size = !coffer_source_open(&src, path, NULL, NULL) ? coffer_source_size(src) : 0;
    coffer_source_close(src);
    return size;
}

static int report(const set_job *job, uint64_t before)
{
    uint64_t after = size_of(job->path);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    if (!cli_has(job->args, "json")) {
        term_text changes, size;
        term_print_text(stdout, job->path, strlen(job->path), 0);
        printf(": changes: %s, %s appended\n", term_count(changes, job->changes),
               term_bytes(size, after > before ? after - before : 0));
        return CLI_OK;
    }
    if (coffer_node_new(&root, &err))
        return cli_fail(job->path, &err, NULL);
    coffer_node_add_text(root, "file", job->path);
    coffer_node_add_text(root, "format", "mcf");
    coffer_node_add_u64(root, "changes", job->changes, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "size_before", before, COFFER_UNIT_BYTES);
    coffer_node_add_u64(root, "size_after", after, COFFER_UNIT_BYTES);
    int result = cli_print_json(stdout, root);
    coffer_node_free(root);
    return result;
}

/* A signal waits until the file is as it was or has all changes. */
static int commit(set_job *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    cli_hold_signals();
    coffer_status status = coffer_mcf_editor_commit(job->editor, &err);
    if (status)
        cli_release_signals();
    else
        cli_finish_signals();
    return status ? cli_fail(job->path, &err, NULL) : CLI_OK;
}

static int run(const cli_args *args, coffer_source *src)
{
    set_job job = { .args = args, .path = cli_operand(args, 0) };
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t before = coffer_source_size(src);
    if (strcmp(job.path, "-") == 0)
        return cli_usage(args, "set changes a file in place: give a file name, not -");
    if (cli_operand_count(args) < 2 && !cli_has(args, "delete") && !cli_has(args, "checksum"))
        return cli_usage(
            args, "no change given: use KEY=VALUE, a section such as config.json, a file name, --delete or "
                  "--checksum");
    if (coffer_mcf_editor_open(&job.editor, job.path, NULL, &err))
        return cli_fail(job.path, &err, NULL);
    int result = apply(&job);
    if (!result)
        result = commit(&job);
    coffer_mcf_editor_close(job.editor);
    return result ? result : report(&job, before);
}

const cli_format_verb cli_mcf_set = {
    .format = "mcf",
    .verb = "set",
    .options = options,
    .examples =
        "  coffer set model.mcf config.json < config.json      # a section, in time proportional to it\n"
        "  coffer set model.mcf LICENSE -i LICENSE             # any other file of the model's folder\n"
        "  coffer set model.mcf model_name='my model' context_length=8192\n"
        "  coffer set model.mcf kv.general.license=mit --delete kv.draft\n"
        "  coffer set model.mcf --checksum                     # checksums for 'check --full'\n",
    .run = run,
};
