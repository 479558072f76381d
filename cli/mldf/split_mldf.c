/* split, for training sets: by shares or by a number of samples, in order or shuffled. */
#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/os.h"
#include "mldf/mldf_verbs.h"
#include "mldf/set_report.h"
#include "term.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 100000 };

static const cli_option options[] = {
    { "parts", 0, "LIST", NULL, "shares of the samples, optionally named: train=0.9,val=0.1 or 0.8,0.1,0.1" },
    { "every", 0, "N", NULL, "start a new file after every N samples" },
    { "shuffle", 0, "SEED", NULL, "shuffle the samples with this seed" },
    { "output", 'o', "FOLDER", NULL, "output folder", "the folder of FILE" },
    { "dedup", 0, NULL, NULL, "store equal values of a part once" },
    { "page-size", 0, "SIZE", MLDF_PAGE_SIZES, "page size of the new files", "that of FILE" },
    { "descriptor-stride", 0, "N", "208|204",
      "size of a field descriptor; 204 for programs based on the tutorial", "208" },
    { "no-checksums", 0, NULL, NULL, "do not store the checksums that 'check --full' compares" },
    { "threads", 0, "N", NULL, "number of threads", "one per core" },
    { "force", 'f', NULL, NULL, "overwrite existing files" },
    { "json", 0, NULL, NULL, "one JSON object per file: file, format, size, samples, fields" },
    CLI_KEY_OPTION,
    { 0 },
};

typedef struct part {
    char *path;
    uint64_t first, end; /* positions in the order */
    bool written;
} part;

typedef struct split_job {
    const cli_args *args;
    const coffer_mldf *set;
    uint64_t samples;
    part *parts;
    size_t count;
} split_job;

/* ---- The parts ---- */

/* "dir/train.mldf" and "val" become "dir/train-val.mldf", or "folder/train-val.mldf". */
static char *part_path(const cli_args *args, const char *name, size_t name_len)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    const char *in = cli_operand(args, 0), *folder = cli_value(args, "output");
    const char *base = in + coffer__file_folder_len(in), *dot = strrchr(base, '.');
    size_t stem = dot && dot > base ? (size_t)(dot - base) : strlen(base);
    if (folder)
        coffer__buffer_printf(&path, "%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/");
    else
        coffer__buffer_append(&path, in, (size_t)(base - in));
    coffer__buffer_printf(&path, "%.*s-%.*s%s", (int)stem, base, (int)name_len, name,
                          base[stem] ? base + stem : ".mldf");
    coffer__buffer_append(&path, "", 1);
    return path.failed ? NULL : (char *)coffer__buffer_release(&path, NULL);
}

static int add_part(split_job *job, const char *name, size_t name_len, uint64_t end)
{
    part *grown = coffer__realloc(job->parts, (job->count + 1) * sizeof *grown);
    char *path = part_path(job->args, name, name_len);
    if (grown)
        job->parts = grown;
    if (!grown || !path) {
        coffer__free(path);
        return cli_usage(job->args, "out of memory");
    }
    uint64_t first = job->count ? job->parts[job->count - 1].end : 0;
    job->parts[job->count++] = (part){ path, first, end, false };
    return CLI_OK;
}

static bool is_twice(const split_job *job)
{
    for (size_t i = 0; i + 1 < job->count; i++)
        if (strcmp(job->parts[i].path, job->parts[job->count - 1].path) == 0)
            return true;
    return false;
}

/* "NAME=SHARE" or "SHARE"; *text is moved past it. */
static bool read_share(const char **text, const char **name, size_t *name_len, double *share)
{
    const char *end = *text + strcspn(*text, ","), *equals = memchr(*text, '=', (size_t)(end - *text));
    const char *number = equals ? equals + 1 : *text;
    char *stop;
    *name = equals ? *text : NULL;
    *name_len = equals ? (size_t)(equals - *text) : 0;
    *share = strtod(number, &stop);
    *text = *end ? end + 1 : end;
    return stop == end && stop > number && *share > 0 && *share <= 1 &&
           (!equals || coffer__file_name_is_plain(*name, *name_len));
}

/* Bounds are rounded sums, so that the parts fit without a gap; the last takes what rounding left. */
static int plan_shares(split_job *job, const char *list)
{
    double sum = 0;
    for (const char *at = list; *at;) {
        const char *name;
        char number[24];
        size_t name_len;
        double share;
        if (!read_share(&at, &name, &name_len, &share))
            return cli_usage(job->args, "--parts '%s': shares lie between 0 and 1, such as train=0.9,val=0.1",
                             list);
        if (!name) {
            name_len = (size_t)snprintf(number, sizeof number, "%zu", job->count);
            name = number;
        }
        sum += share;
        uint64_t end = (uint64_t)llround(sum * (double)job->samples);
        bool is_last = !*at && fabs(sum - 1) < 1e-9;
        int result = add_part(job, name, name_len, is_last || end > job->samples ? job->samples : end);
        if (!result && is_twice(job))
            result = cli_usage(job->args, "two parts are called '%.*s'", (int)name_len, name);
        if (result)
            return result;
    }
    if (sum > 1 + 1e-9)
        return cli_usage(job->args, "--parts '%s': the shares add up to %g, more than there is", list, sum);
    if (sum < 1 - 1e-9)
        return cli_usage(job->args, "--parts '%s': the shares add up to %g; every sample must go somewhere",
                         list, sum);
    return CLI_OK;
}

static int plan_every(split_job *job, uint64_t every)
{
    uint64_t count = coffer__divide_up(job->samples, every);
    if (count > PARTS_MAX)
        return cli_usage(job->args, "--every %" PRIu64 " would make %" PRIu64 " files; the maximum is %d",
                         every, count, PARTS_MAX);
    for (uint64_t i = 0; i < count; i++) {
        char number[24];
        size_t len = (size_t)snprintf(number, sizeof number, "%05" PRIu64, i);
        int result = add_part(job, number, len, i + 1 == count ? job->samples : (i + 1) * every);
        if (result)
            return result;
    }
    return CLI_OK;
}

static int plan(split_job *job)
{
    const char *shares = cli_value(job->args, "parts");
    uint64_t every;
    if (!cli_number(&every, job->args, "every", 0, 1, UINT64_MAX))
        return CLI_USAGE;
    if (!shares == !every)
        return cli_usage(job->args, "requires --parts train=0.9,val=0.1 or --every 10000");
    if (job->samples == 0)
        return cli_usage(job->args, "%s has no samples to divide", cli_operand(job->args, 0));
    return shares ? plan_shares(job, shares) : plan_every(job, every);
}

/* ---- Writing them ---- */

/* Samples of a part, in the order they are written. */
static uint64_t *samples_of(const split_job *job, const part *which, bool shuffle, uint64_t seed)
{
    size_t count = (size_t)(which->end - which->first);
    uint64_t *samples = coffer__alloc_array(count + 1, sizeof *samples);
    for (size_t i = 0; samples && i < count; i++)
        samples[i] =
            shuffle ? coffer_mldf_shuffle_at(job->samples, seed, 0, which->first + i) : which->first + i;
    return samples;
}

static coffer_status write_part(const split_job *job, part *which, const coffer_mldf_writer_opts *opts,
                                uint64_t seed, term_progress *bar, coffer_error *err)
{
    uint64_t *samples = samples_of(job, which, cli_has(job->args, "shuffle"), seed);
    if (!samples)
        return coffer__fail_no_memory(err, (which->end - which->first) * sizeof *samples);
    coffer_mldf_extract_opts extract = COFFER_MLDF_EXTRACT_OPTS_INIT;
    extract.samples = samples;
    extract.sample_count = which->end - which->first;
    extract.write = opts;
    extract.progress = &bar->progress;
    coffer_status status = coffer_mldf_extract(which->path, job->set, &extract, err);
    which->written = !status;
    coffer__free(samples);
    return status;
}

static int write_parts(split_job *job, const cli_key *key)
{
    coffer_mldf_writer_opts opts;
    coffer_error err = COFFER_ERROR_INIT;
    const char *folder = cli_value(job->args, "output");
    term_progress bar;
    uint64_t seed;
    int result = mldf_write_opts(&opts, job->args, key, job->set);
    if (!cli_number(&seed, job->args, "shuffle", 0, 0, UINT64_MAX))
        result = CLI_USAGE;
    if (result)
        return result;
    if (folder && coffer__os_make_folder(folder, 0777) != 0 && errno != EEXIST) {
        coffer__fail_errno(&err, "cannot create the folder", errno);
        return cli_fail(folder, &err, NULL);
    }
    term_progress_start(&bar, "splitting", "samples");
    for (size_t i = 0; i < job->count && !result; i++)
        if (write_part(job, &job->parts[i], &opts, seed, &bar, &err) != COFFER_OK)
            result = mldf_fail_between(cli_operand(job->args, 0), job->parts[i].path, &err);
    term_progress_end(&bar);
    for (size_t i = 0; i < job->count && result; i++)
        if (job->parts[i].written)
            coffer__os_unlink(job->parts[i].path);
    for (size_t i = 0; i < job->count && !result; i++)
        result = mldf_report_set(job->parts[i].path, cli_has(job->args, "json"));
    return result;
}

static int run_on(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    split_job job = { .args = args, .set = set, .samples = coffer_mldf_sample_count(set) };
    int result = plan(&job);
    if (!result)
        result = write_parts(&job, key);
    for (size_t i = 0; i < job.count; i++)
        coffer__free(job.parts[i].path);
    coffer__free(job.parts);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    if (strcmp(cli_operand(args, 0), "-") == 0 && !cli_has(args, "output"))
        return cli_usage(args, "reading standard input: give an output folder with -o");
    return mldf_with_set(args, src, run_on);
}

const cli_format_verb cli_mldf_split = {
    .format = "mldf",
    .verb = "split",
    .options = options,
    .examples =
        "  coffer split all.mldf --parts train=0.9,val=0.1 --shuffle 1   # all-train.mldf, all-val.mldf\n"
        "  coffer split all.mldf --every 10000 -o shards                 # shards/all-00000.mldf …\n",
    .run = run,
};
