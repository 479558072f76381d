/* concat, for training sets. */
#include "base/memory.h"
#include "mldf/mldf_verbs.h"
#include "term.h"

static const cli_option options[] = {
    { "dedup", 0, NULL, NULL, "store equal values once, also of different files" },
    { "page-size", 0, "SIZE", MLDF_PAGE_SIZES, "page size of the new file", "that of the first" },
    { "descriptor-stride", 0, "N", "208|204",
      "size of a field descriptor; 204 for programs based on the tutorial", "208" },
    { "no-checksums", 0, NULL, NULL, "do not store the checksums that 'check --full' compares" },
    { "threads", 0, "N", NULL, "number of threads", "one per core" },
    { "force", 'f', NULL, NULL, "overwrite OUT if it exists" },
    { "json", 0, NULL, NULL, "one JSON object: file, format, size, samples, fields" },
    CLI_KEY_OPTION,
    CLI_DAMAGED_OPTION,
    { 0 },
};

typedef struct concat_job {
    const cli_args *args;
    size_t count;
    coffer_source **sources;
    coffer_mldf **sets;
    cli_key key;
} concat_job;

static int open_inputs(concat_job *job)
{
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    const char *output = cli_operand(job->args, job->count);
    opts.key = job->key.at;
    opts.verify = true;
    for (size_t i = 0; i < job->count; i++) {
        const char *path = cli_operand(job->args, i);
        if (cli_same_file(path, output))
            return cli_usage(job->args, "input and output are the same file: %s", path);
        int result = cli_open(&job->sources[i], path);
        if (result)
            return result;
        if (coffer_mldf_open(&job->sets[i], job->sources[i], &opts, &err) != COFFER_OK)
            return mldf_fail(path, &err);
    }
    return CLI_OK;
}

static int concat(concat_job *job)
{
    coffer_mldf_writer_opts opts;
    coffer_error err = COFFER_ERROR_INIT;
    const char *output = cli_operand(job->args, job->count);
    term_progress bar;
    int result = mldf_write_opts(&opts, job->args, &job->key, job->sets[0]);
    if (result)
        return result;
    term_progress_start(&bar, "joining", "samples");
    coffer_mldf_concat_opts concat_opts = COFFER_MLDF_CONCAT_OPTS_INIT;
    concat_opts.write = &opts;
    concat_opts.progress = &bar.progress;
    coffer_status status = coffer_mldf_concat(output, job->sets, job->count, &concat_opts, &err);
    term_progress_end(&bar);
    if (!status)
        return mldf_report_set(output, cli_has(job->args, "json"));
    const char *input = err.subject == COFFER_SUBJECT_OTHER ? NULL : cli_operand(job->args, 0);
    if (status == COFFER_E_INCONSISTENT)
        return cli_fail(input, &err, "'coffer ls' shows the fields of each");
    return mldf_fail_between(input, output, &err);
}

static int run(const cli_args *args, coffer_source *src)
{
    (void)src;
    concat_job job = { .args = args, .count = cli_operand_count(args) - 1 };
    int result = cli_key_read(&job.key, args);
    if (result)
        return result;
    job.sources = coffer__calloc(job.count, sizeof *job.sources);
    job.sets = coffer__calloc(job.count, sizeof *job.sets);
    bool allocated = job.sources && job.sets;
    result = allocated ? open_inputs(&job) : cli_usage(args, "out of memory");
    if (!result && allocated)
        result = concat(&job);
    for (size_t i = 0; i < job.count; i++) {
        if (job.sets)
            coffer_mldf_close(job.sets[i]);
        if (job.sources)
            coffer_source_close(job.sources[i]);
    }
    coffer__free(job.sets);
    coffer__free(job.sources);
    cli_key_wipe(&job.key);
    return result;
}

const cli_format_verb cli_mldf_concat = {
    .format = "mldf",
    .verb = "concat",
    .options = options,
    .examples = "  coffer concat monday.mldf tuesday.mldf week.mldf\n"
                "  coffer concat shard-*.mldf all.mldf --dedup\n",
    .run = run,
};
