/* set and delete, for scans. */
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "mscan_verbs.h"
#include "term.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- set ---- */

static const cli_option set_options[] = {
    { "string", 0, NULL, NULL, "the next VALUE is a text, even if it looks like JSON" },
    { "delete", 'd', "KEY", NULL,
      "remove the value at KEY; 'damage' accepts what a repair could not verify" },
    { "json", 0, NULL, NULL, "one JSON object: file, format, changes" },
    { 0 },
};

typedef struct set_job {
    const cli_args *args;
    const char *path;
    coffer_mscan_editor *editor;
    bool next_is_text;
    uint64_t changes;
} set_job;

/* Whether the key has a text now: then what replaces it is one too. */
static bool has_text(const set_job *job, const char *key)
{
    coffer__json *json = NULL;
    coffer_limits limits = COFFER_LIMITS_INIT;
    size_t len;
    const char *text = coffer_mscan_editor_metadata(job->editor, &len);
    if (coffer__json_parse(&json, text, len, 0, &limits, NULL) != COFFER_OK)
        return false;
    const coffer__json_value *value = coffer__json_find(coffer__json_root(json), key);
    bool is_text = value && value->kind == COFFER__JSON_STRING;
    coffer__json_free(json);
    return is_text || strcmp(key, "model_name") == 0 || strncmp(key, "params.", 7) == 0 ||
           strncmp(key, "id_to_param_name_map.", 21) == 0 ||
           (strncmp(key, "sequences.", 10) == 0 && strstr(key, ".source"));
}

static bool is_json(const char *text)
{
    coffer__json *json = NULL;
    coffer_limits limits = COFFER_LIMITS_INIT;
    bool valid = coffer__json_parse(&json, text, strlen(text), 0, &limits, NULL) == COFFER_OK;
    coffer__json_free(json);
    return valid;
}

static int set_value(set_job *job, const char *operand)
{
    coffer_error err = COFFER_ERROR_INIT;
    const char *equals = strchr(operand, '=');
    if (!equals || equals == operand)
        return cli_usage(job->args, "'%s' must be KEY=VALUE", operand);
    char *key = coffer__strndup(operand, (size_t)(equals - operand));
    if (!key)
        return cli_usage(job->args, "out of memory");
    bool is_text = job->next_is_text || has_text(job, key) || !is_json(equals + 1);
    coffer_status status = is_text ? coffer_mscan_editor_set_text(job->editor, key, equals + 1, &err)
                                   : coffer_mscan_editor_set(job->editor, key, equals + 1, &err);
    coffer__free(key);
    job->next_is_text = false;
    job->changes++;
    return status ? cli_fail(job->path, &err, NULL) : CLI_OK;
}

static int remove_value(set_job *job, const char *key)
{
    coffer_error err = COFFER_ERROR_INIT;
    job->changes++;
    return coffer_mscan_editor_remove(job->editor, key, &err) ? cli_fail(job->path, &err, NULL) : CLI_OK;
}

static int apply_words(set_job *job)
{
    cli_place place = { 0 };
    cli_word word;
    int result = CLI_OK;
    bool is_file = true;
    while (!result && cli_next_word(&word, &place, job->args)) {
        if (word.option && strcmp(word.option, "string") == 0)
            job->next_is_text = true;
        else if (word.option && strcmp(word.option, "delete") == 0)
            result = remove_value(job, word.value);
        else if (!word.option && !is_file)
            result = set_value(job, word.value);
        else if (!word.option)
            is_file = false;
    }
    if (!result && job->changes == 0)
        result = cli_usage(job->args, "nothing to change: give KEY=VALUE or --delete KEY");
    return result;
}

static int report_number(const cli_args *args, const char *key, const char *text, uint64_t number)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    const char *path = cli_operand(args, 0);
    if (!cli_has(args, "json")) {
        term_print_text(stdout, path, strlen(path), 0);
        printf(": %s: %" PRIu64 "\n", text, number);
        return CLI_OK;
    }
    if (coffer_node_new(&root, &err) != COFFER_OK)
        return cli_fail(path, &err, NULL);
    coffer_node_add_text(root, "file", path);
    coffer_node_add_text(root, "format", "mscan");
    coffer_node_add_u64(root, key, number, COFFER_UNIT_NONE);
    int status = cli_print_json(stdout, root);
    coffer_node_free(root);
    return status;
}

/* Signals wait until the file has its old or its new content, so that no journal is left. */
static int set_run(const cli_args *args, coffer_source *src)
{
    coffer_error err = COFFER_ERROR_INIT;
    set_job job = { .args = args, .path = cli_operand(args, 0) };
    (void)src;
    if (strcmp(job.path, "-") == 0)
        return cli_usage(args, "a scan on standard input cannot be changed in place");
    cli_hold_signals();
    if (coffer_mscan_editor_open(&job.editor, job.path, NULL, &err) != COFFER_OK) {
        cli_release_signals();
        return cli_fail(job.path, &err, NULL);
    }
    int result = apply_words(&job);
    if (!result && coffer_mscan_editor_commit(job.editor, &err) != COFFER_OK)
        result = cli_fail(job.path, &err, NULL);
    coffer_mscan_editor_close(job.editor);
    if (result)
        cli_release_signals();
    else
        cli_finish_signals();
    return result ? result : report_number(args, "changes", "values changed", job.changes);
}

const cli_format_verb cli_mscan_set = {
    .format = "mscan",
    .verb = "set",
    .options = set_options,
    .examples = "  coffer set scan.mscan model_name=tiny block_size=64\n"
                "  coffer set scan.mscan params.7=model.layers.0.mlp sequences.0.source='Hello'\n"
                "  coffer set saved.mscan --delete damage          # accept what a repair could not verify\n",
    .run = set_run,
    .opens_file = true,
};

/* ---- delete ---- */

static const cli_option delete_options[] = {
    { "param", 'p', "GLOB", NULL, "remove the records and names of the parameters that match" },
    { "json", 0, NULL, NULL, "one JSON object: file, format, deleted (sequences) or params_deleted" },
    { 0 },
};

/* Marks the sequences that the operands name by id: "3" or "3..7", 7 not included. */
static int mark_sequences(bool *gone, const cli_args *args, const coffer_mscan *scan)
{
    for (size_t i = 1; i < cli_operand_count(args); i++) {
        const char *text = cli_operand(args, i);
        char *end;
        uint64_t first = strtoull(text, &end, 10), past = first + 1;
        if (end > text && strncmp(end, "..", 2) == 0) {
            const char *second = end + 2;
            past = strtoull(second, &end, 10);
            end = end == second ? (char *)(uintptr_t)text : end;
        }
        if (end == text || *end || text[0] == '-')
            return cli_usage(args, "'%s' must be the id of a sequence, or a range such as 3..7", text);
        bool found = false;
        for (size_t k = 0; k < coffer_mscan_sequence_count(scan); k++) {
            uint64_t id = coffer_mscan_sequence_at(scan, k)->sequence_id;
            if (id < first || id >= past)
                continue;
            gone[k] = found = true;
        }
        if (!found)
            return cli_usage(args, "the scan has no sequence %s; 'coffer ls' lists them", text);
    }
    return CLI_OK;
}

static int keep(const cli_args *args, const coffer_mscan *scan, const bool *gone, size_t *kept)
{
    coffer_mscan_extract_opts opts = COFFER_MSCAN_EXTRACT_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    size_t count = 0, total = coffer_mscan_sequence_count(scan);
    term_progress bar;
    for (size_t i = 0; i < total; i++) {
        if (!gone[i])
            kept[count++] = i;
    }
    opts.sequences = kept;
    opts.sequence_count = count;
    opts.without_params = cli_value(args, "param");
    cli_hold_signals();
    term_progress_start(&bar, "writing", "records");
    opts.progress = &bar.progress;
    coffer_status status = coffer_mscan_update_keep(cli_operand(args, 0), &opts, &err);
    term_progress_end(&bar);
    if (status)
        cli_release_signals();
    else
        cli_finish_signals();
    if (status)
        return cli_fail(cli_operand(args, 0), &err, NULL);
    if (opts.without_params && total == count)
        return report_number(args, "params_deleted", "parameters deleted",
                             mscan_params_matching(scan, opts.without_params));
    return report_number(args, "deleted", "sequences deleted", total - count);
}

static int delete_from(const cli_args *args, const coffer_mscan *scan)
{
    const char *glob = cli_value(args, "param");
    size_t total = coffer_mscan_sequence_count(scan);
    if (cli_operand_count(args) < 2 && !glob)
        return cli_usage(args, "nothing to delete: give ids of sequences, or --param GLOB");
    if (glob && mscan_params_matching(scan, glob) == 0)
        return cli_usage(args, "no parameter matches %s", glob);
    bool *gone = coffer__calloc(total + 1, sizeof *gone);
    size_t *kept = coffer__alloc_array(total + 1, sizeof *kept);
    int result = gone && kept ? mark_sequences(gone, args, scan) : cli_usage(args, "out of memory");
    if (!result && gone && kept)
        result = keep(args, scan, gone, kept);
    coffer__free(gone);
    coffer__free(kept);
    return result;
}

static int delete_run(const cli_args *args, coffer_source *src)
{
    if (strcmp(cli_operand(args, 0), "-") == 0)
        return cli_usage(args, "a scan on standard input cannot be changed in place");
    return mscan_with_scan(args, src, delete_from);
}

const cli_format_verb cli_mscan_delete = {
    .format = "mscan",
    .verb = "delete",
    .options = delete_options,
    .examples = "  coffer delete scan.mscan 3 7..9                 # sequences by id, 9 not included\n"
                "  coffer delete scan.mscan --param '*.bias'       # parameters and their records\n",
    .run = delete_run,
};
