/* coffer append, for scans: the sequences of another scan, or of a table that can be converted into one. */
#include "base/fail.h"
#include "base/memory.h"
#include "cli.h"
#include "coffer/convert.h"
#include "mscan_verbs.h"
#include "term.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PARAM_IDS = 65536, STEPS_BETWEEN = 64 };

static const cli_option options[] = {
    { "from", 0, "KIND", NULL, "kind of IN", "by its content, else by its name" },
    { "source", 0, "TEXT", NULL, "name of the scanned model or data, if IN does not have it" },
    { "tokens", 0, "N", NULL, "number of tokens of the sequence, if IN is a table", "its largest token + 1" },
    { "json", 0, NULL, NULL, "one JSON object: file, format, sequences_added, records_added, tokens_added" },
    { 0 },
};

typedef struct append_job {
    const cli_args *args;
    const coffer_mscan *old; /* the scan as it is */
    coffer_source *in;
    coffer_source *converted;
    char *temporary; /* IN as a scan, where it is a table */
    coffer_mscan *new;
    coffer_mscan_replay *replay;
    coffer_mscan_writer *writer;
    uint16_t *ids; /* by param_id of IN */
    uint64_t written;
    term_progress bar;
} append_job;

/* ---- IN as a scan ---- */

static coffer_status convert(append_job *job, coffer_error *err)
{
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    const char *tokens = cli_value(job->args, "tokens");
    const coffer_setting setting = { "sequence-lengths", tokens };
    coffer_status status = coffer_temporary_create(&job->temporary, cli_operand(job->args, 0), err);
    if (status)
        return status;
    opts.from = cli_value(job->args, "from");
    opts.to = "mscan";
    opts.overwrite = true;
    opts.settings = &setting;
    opts.setting_count = tokens ? 1 : 0;
    status = coffer_convert(job->in, job->temporary, &opts, err);
    if (!status)
        status = coffer_source_open(&job->converted, job->temporary, NULL, err);
    return status;
}

static coffer_status open_new(append_job *job, coffer_error *err)
{
    const coffer_format *format = NULL;
    bool is_scan = coffer_identify(&format, job->in, NULL) == COFFER_OK &&
                   strcmp(coffer_format_name(format), "mscan") == 0;
    coffer_status status = is_scan ? COFFER_OK : convert(job, err);
    if (!status)
        status = coffer_mscan_open(&job->new, is_scan ? job->in : job->converted, NULL, err);
    if (!status)
        status = coffer_mscan_replay_new(&job->replay, job->new, NULL, err);
    return status;
}

/* ---- Does it fit? ---- */

/* Numbers of one file are worth the same throughout it. A table without a scale has those of FILE. */
static coffer_status compare_scales(const append_job *job, coffer_error *err)
{
    static const char *const names[2] = { "activation", "grad_norm" };
    for (int i = 0; i < 2; i++) {
        coffer_mscan_metric metric = (coffer_mscan_metric)i;
        const coffer_mscan_quantization *old = coffer_mscan_quantization_of(job->old, metric, 0, 0);
        const coffer_mscan_quantization *new = coffer_mscan_quantization_of(job->new, metric, 0, 0);
        coffer_mscan_scale_scope old_scope = coffer_mscan_quantization_scope(job->old, metric);
        coffer_mscan_scale_scope new_scope = coffer_mscan_quantization_scope(job->new, metric);
        bool is_table = job->temporary != NULL;
        if (new_scope == COFFER_MSCAN_SCALE_UNKNOWN && (is_table || old_scope == new_scope))
            continue;
        bool same = old_scope == COFFER_MSCAN_SCALE_FILE && new_scope == COFFER_MSCAN_SCALE_FILE && old &&
                    new && old->scale == new->scale && old->offset == new->offset;
        if (!same)
            return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                                "%s is quantized in another way there than in %s", names[i],
                                cli_operand(job->args, 0));
    }
    return COFFER_OK;
}

/* Whether a table gave this id and no name, so that a conversion made one up. */
static bool is_unnamed(const coffer_mscan_param *param)
{
    char made_up[32];
    snprintf(made_up, sizeof made_up, "param %" PRIu64, param->id);
    return strcmp(param->name, made_up) == 0;
}

/* A name means the same parameter in both; an id without a name is that of FILE. */
static coffer_status match_params(append_job *job, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < coffer_mscan_param_count(job->new); i++) {
        const coffer_mscan_param *param = coffer_mscan_param_at(job->new, i);
        if (param->id >= PARAM_IDS)
            continue;
        uint16_t id = (uint16_t)param->id;
        if (is_unnamed(param) && coffer_mscan_param_name(job->old, id))
            job->ids[id] = id;
        else
            status = coffer_mscan_writer_add_param(&job->ids[id], job->writer, param->name, err);
    }
    return status;
}

/* ---- Copying ---- */

static coffer_status write_step(append_job *job, const coffer_mscan_step *step, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < step->record_count; i++) {
        coffer_mscan_record record = step->records[i];
        if (!coffer_mscan_param_name(job->new, record.param_id))
            return coffer__fail(err, COFFER_E_DANGLING_REFERENCE, COFFER_OFFSET_NONE,
                                "a record of token %" PRIu64 " has param_id %u, which has no name",
                                step->token, record.param_id);
        record.token_idx = (uint32_t)step->position;
        record.param_id = job->ids[record.param_id];
        status = coffer_mscan_writer_put_records(job->writer, &record, 1, err);
    }
    job->written += step->record_count;
    if (status || step->position % STEPS_BETWEEN != 0)
        return status;
    job->bar.progress.step(&job->bar, job->written, coffer_mscan_record_count(job->new));
    if (cli_signal_waits())
        status = coffer__fail(err, COFFER_E_CANCELLED, COFFER_OFFSET_NONE, "interrupted");
    return status;
}

static coffer_status write_sequence(append_job *job, size_t index, coffer_error *err)
{
    const coffer_mscan_sequence *sequence = coffer_mscan_sequence_at(job->new, index);
    coffer_status status =
        sequence->source
            ? coffer_mscan_writer_begin_sequence_len(job->writer, sequence->source, sequence->source_len, err)
            : coffer_mscan_writer_begin_sequence(job->writer, cli_value(job->args, "source"), err);
    if (!status)
        status = coffer_mscan_replay_seek(job->replay, sequence->first_token, err);
    for (uint64_t i = 0; !status && i < sequence->num_tokens; i++) {
        coffer_mscan_step step = COFFER_MSCAN_STEP_INIT;
        bool more;
        status = coffer_mscan_replay_next(&more, &step, job->replay, err);
        if (!status)
            status = write_step(job, &step, err);
    }
    if (!status)
        status = coffer_mscan_writer_end_sequence(job->writer, sequence->num_tokens, err);
    return status;
}

/* A signal waits until FILE is as it was, or has all of IN: it leaves no journal behind. */
static coffer_status append_sequences(append_job *job, coffer_error *err)
{
    job->ids = coffer__calloc(PARAM_IDS, sizeof *job->ids);
    if (!job->ids)
        return coffer__fail_no_memory(err, PARAM_IDS * sizeof *job->ids);
    cli_hold_signals();
    term_progress_start(&job->bar, "appending", "records");
    coffer_status status = coffer_mscan_writer_append_to(&job->writer, cli_operand(job->args, 0), NULL, err);
    if (!status)
        status = match_params(job, err);
    for (size_t i = 0; !status && i < coffer_mscan_sequence_count(job->new); i++)
        status = write_sequence(job, i, err);
    if (!status)
        status = coffer_mscan_writer_commit(job->writer, err);
    else
        coffer_mscan_writer_discard(job->writer);
    job->writer = NULL;
    term_progress_end(&job->bar);
    if (status)
        cli_release_signals();
    else
        cli_finish_signals();
    return status;
}

static void clean_up(append_job *job)
{
    coffer_mscan_replay_free(job->replay);
    coffer_mscan_close(job->new);
    coffer_source_close(job->converted);
    coffer_temporary_remove(job->temporary);
    coffer__free(job->ids);
    coffer_source_close(job->in);
}

static int print_for_people(const char *path, const coffer_mscan *new)
{
    term_text sequences, records, tokens;
    term_print_text(stdout, path, strlen(path), 0);
    printf(": sequences added: %s, with %s records of %s tokens\n",
           term_count(sequences, coffer_mscan_sequence_count(new)),
           term_count(records, coffer_mscan_record_count(new)),
           term_count(tokens, coffer_mscan_total_tokens(new)));
    return CLI_OK;
}

static int print_json(const char *path, const coffer_mscan *new)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    if (coffer_node_new(&root, &err) != COFFER_OK)
        return cli_fail(path, &err, NULL);
    coffer_node_add_text(root, "file", path);
    coffer_node_add_text(root, "format", "mscan");
    coffer_node_add_u64(root, "sequences_added", coffer_mscan_sequence_count(new), COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "records_added", coffer_mscan_record_count(new), COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "tokens_added", coffer_mscan_total_tokens(new), COFFER_UNIT_NONE);
    int status = cli_print_json(stdout, root);
    coffer_node_free(root);
    return status;
}

static int append(const cli_args *args, const coffer_mscan *old)
{
    coffer_error err = COFFER_ERROR_INIT;
    append_job job = { .args = args, .old = old };
    const char *path = cli_operand(args, 0), *in_path = cli_operand(args, 1);
    int result = cli_open(&job.in, in_path);
    if (result != CLI_OK)
        return result;
    coffer_status status = open_new(&job, &err);
    if (!status)
        status = compare_scales(&job, &err);
    if (status) {
        const char *hint = status == COFFER_E_NOT_RECOGNISED
                               ? "--from says what it is; 'coffer convert --list' shows what becomes a scan"
                               : NULL;
        result = cli_fail(in_path, &err, hint);
    } else if ((status = append_sequences(&job, &err)) != COFFER_OK) {
        result = cli_fail(status == COFFER_E_DANGLING_REFERENCE ? in_path : path, &err, NULL);
    } else {
        result = cli_has(args, "json") ? print_json(path, job.new) : print_for_people(path, job.new);
        result = cli_finish(result);
    }
    clean_up(&job);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    uint64_t tokens;
    if (strcmp(cli_operand(args, 0), "-") == 0)
        return cli_usage(args, "a scan can be appended to in a file only, not on standard input");
    if (!cli_number(&tokens, args, "tokens", 0, 1, UINT32_MAX))
        return CLI_USAGE;
    return mscan_with_scan(args, src, append);
}

const cli_format_verb cli_mscan_append = {
    .format = "mscan",
    .verb = "append",
    .options = options,
    .examples = "  coffer append all.mscan monday.mscan            # every sequence of another scan\n"
                "  coffer append all.mscan rows.csv --source 'Hello' --tokens 12\n",
    .run = run,
};
