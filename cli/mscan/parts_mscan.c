/* concat and split, for scans. */
#include "base/buffer.h"
#include "base/memory.h"
#include "io/sink.h"
#include "mscan_verbs.h"
#include "term.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The new scan, as a line for people or as JSON. */
static int report_scan(const cli_args *args, const char *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mscan *scan = NULL;
    coffer_node *root = NULL;
    term_text sequences, records;
    if (coffer_mscan_open_path(&scan, path, NULL, &err) != COFFER_OK)
        return cli_fail(path, &err, NULL);
    int result = CLI_OK;
    if (!cli_has(args, "json")) {
        term_print_text(stdout, path, strlen(path), 0);
        printf(": sequences: %s, records: %s\n", term_count(sequences, coffer_mscan_sequence_count(scan)),
               term_count(records, coffer_mscan_record_count(scan)));
    } else if (coffer_node_new(&root, &err) != COFFER_OK) {
        result = cli_fail(path, &err, NULL);
    } else {
        coffer_node_add_text(root, "file", path);
        coffer_node_add_text(root, "format", "mscan");
        coffer_node_add_u64(root, "sequences", coffer_mscan_sequence_count(scan), COFFER_UNIT_NONE);
        coffer_node_add_u64(root, "tokens", coffer_mscan_total_tokens(scan), COFFER_UNIT_NONE);
        coffer_node_add_u64(root, "records", coffer_mscan_record_count(scan), COFFER_UNIT_NONE);
        result = cli_print_json(stdout, root);
    }
    coffer_node_free(root);
    coffer_mscan_close(scan);
    return result;
}

/* ---- concat ---- */

static const cli_option concat_options[] = {
    { "force", 'f', NULL, NULL, "overwrite OUT if it exists" },
    { "json", 0, NULL, NULL, "one JSON object: file, format, sequences, tokens, records" },
    { 0 },
};

static int concat_scans(const cli_args *args, coffer_mscan **scans, size_t count)
{
    coffer_mscan_extract_opts opts = COFFER_MSCAN_EXTRACT_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    const char *output = cli_operand(args, count);
    term_progress bar;
    for (size_t i = 0; i < count; i++) {
        if (cli_same_file(cli_operand(args, i), output))
            return cli_usage(args, "input and output are the same file: %s", output);
        if (coffer_mscan_open_path(&scans[i], cli_operand(args, i), NULL, &err) != COFFER_OK)
            return cli_fail(cli_operand(args, i), &err, NULL);
    }
    opts.overwrite = cli_has(args, "force");
    term_progress_start(&bar, "joining", "records");
    opts.progress = &bar.progress;
    coffer_status status =
        coffer_mscan_concat(output, (const coffer_mscan *const *)scans, count, &opts, &err);
    term_progress_end(&bar);
    if (!status)
        return cli_finish(report_scan(args, output));
    const char *input = err.subject == COFFER_SUBJECT_OTHER ? NULL : cli_operand(args, 0);
    return cli_fail_between(input, output, &err, status == COFFER_E_EXISTS ? "--force overwrites it" : NULL);
}

static int concat_run(const cli_args *args, coffer_source *src)
{
    size_t count = cli_operand_count(args) - 1;
    coffer_mscan **scans = coffer__calloc(count, sizeof *scans);
    (void)src;
    if (!scans)
        return cli_usage(args, "out of memory");
    int result = concat_scans(args, scans, count);
    for (size_t i = 0; i < count; i++)
        coffer_mscan_close(scans[i]);
    coffer__free(scans);
    return result;
}

const cli_format_verb cli_mscan_concat = {
    .format = "mscan",
    .verb = "concat",
    .options = concat_options,
    .examples = "  coffer concat monday.mscan tuesday.mscan week.mscan\n",
    .run = concat_run,
};

/* ---- split ---- */

static const cli_option split_options[] = {
    { "every", 0, "N", NULL, "number of sequences in each file", "1" },
    { "output", 'o', "FOLDER", NULL, "output folder", "the folder of FILE" },
    { "force", 'f', NULL, NULL, "overwrite existing files" },
    { "json", 0, NULL, NULL, "one JSON object per file: file, format, sequences, tokens, records" },
    { 0 },
};

typedef struct split_job {
    const cli_args *args;
    const coffer_mscan *scan;
    uint64_t every;
    char **paths;
    size_t count; /* files */
    size_t written;
} split_job;

/* "dir/scan.mscan" and the id of the first sequence become "dir/scan-3.mscan". */
static char *part_path(const split_job *job, uint64_t id)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    const char *in = cli_operand(job->args, 0), *folder = cli_value(job->args, "output");
    const char *slash = strrchr(in, '/'), *base = slash ? slash + 1 : in, *dot = strrchr(base, '.');
    size_t stem = dot && dot > base ? (size_t)(dot - base) : strlen(base);
    if (folder)
        coffer__buffer_printf(&path, "%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/");
    else
        coffer__buffer_append(&path, in, (size_t)(base - in));
    coffer__buffer_printf(&path, "%.*s-%" PRIu64 "%s", (int)stem, base, id,
                          base[stem] ? base + stem : ".mscan");
    coffer__buffer_append(&path, "", 1);
    return path.failed ? NULL : (char *)coffer__buffer_release(&path, NULL);
}

static int plan(split_job *job)
{
    size_t total = coffer_mscan_sequence_count(job->scan);
    job->count = (size_t)((total + job->every - 1) / job->every);
    job->paths = coffer__calloc(job->count + 1, sizeof *job->paths);
    for (size_t i = 0; job->paths && i < job->count; i++) {
        job->paths[i] =
            part_path(job, coffer_mscan_sequence_at(job->scan, (size_t)(i * job->every))->sequence_id);
        if (!job->paths[i])
            return cli_usage(job->args, "out of memory");
        struct stat old;
        if (lstat(job->paths[i], &old) == 0 && S_ISLNK(old.st_mode))
            return cli_usage(job->args,
                             "%s is a symbolic link: nothing is written through it; remove it first",
                             job->paths[i]);
        if (!cli_has(job->args, "force") && access(job->paths[i], F_OK) == 0)
            return cli_usage(job->args, "%s exists; --force overwrites it", job->paths[i]);
    }
    return job->paths ? CLI_OK : cli_usage(job->args, "out of memory");
}

static int write_part(split_job *job, size_t index, size_t *sequences)
{
    coffer_mscan_extract_opts opts = COFFER_MSCAN_EXTRACT_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    size_t first = (size_t)(index * job->every), left = coffer_mscan_sequence_count(job->scan) - first;
    size_t count = left < job->every ? left : (size_t)job->every;
    for (size_t i = 0; i < count; i++)
        sequences[i] = first + i;
    opts.overwrite = cli_has(job->args, "force");
    opts.sequences = sequences;
    opts.sequence_count = count;
    if (coffer_mscan_extract(job->paths[index], job->scan, &opts, &err) != COFFER_OK)
        return cli_fail_between(cli_operand(job->args, 0), job->paths[index], &err, NULL);
    job->written++;
    return CLI_OK;
}

/* All parts or none: a signal waits, and what was written goes when one cannot be. */
static int write_parts(split_job *job)
{
    size_t *sequences = coffer__alloc_array(coffer_mscan_sequence_count(job->scan) + 1, sizeof *sequences);
    int result = sequences ? CLI_OK : cli_usage(job->args, "out of memory");
    cli_hold_signals();
    for (size_t i = 0; !result && sequences && i < job->count; i++)
        result = cli_signal_waits() ? CLI_FAILED : write_part(job, i, sequences);
    for (size_t i = 0; result && i < job->written; i++)
        unlink(job->paths[i]);
    if (result)
        cli_release_signals();
    else
        cli_finish_signals();
    coffer__free(sequences);
    return result;
}

static int split_scan(const cli_args *args, const coffer_mscan *scan)
{
    split_job job = { .args = args, .scan = scan };
    if (!cli_number(&job.every, args, "every", 1, 1, UINT32_MAX))
        return CLI_USAGE;
    if (coffer_mscan_sequence_count(scan) == 0)
        return cli_usage(args, "the scan has no sequences");
    int result = plan(&job);
    if (!result)
        result = write_parts(&job);
    for (size_t i = 0; !result && i < job.count; i++)
        result = report_scan(args, job.paths[i]);
    for (size_t i = 0; job.paths && i < job.count; i++)
        coffer__free(job.paths[i]);
    coffer__free(job.paths);
    return cli_finish(result);
}

static int split_run(const cli_args *args, coffer_source *src)
{
    return mscan_with_scan(args, src, split_scan);
}

const cli_format_verb cli_mscan_split = {
    .format = "mscan",
    .verb = "split",
    .options = split_options,
    .examples =
        "  coffer split scan.mscan -o parts/               # parts/scan-0.mscan, one for each sequence\n"
        "  coffer split scan.mscan --every 100\n",
    .run = split_run,
};
