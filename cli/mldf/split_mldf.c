/* split, for training sets: by shares or by a number of samples, in order or shuffled. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "mldf/mldf_verbs.h"
#include "mldf/sample_place.h"
#include "term.h"

#include "coffer/dataset.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PARTS_MAX = 100000 };

static const cli_option options[] = {
    { "parts", 0, "LIST", NULL, "shares of the samples, optionally named: train=0.9,val=0.1 or 0.8,0.1,0.1" },
    { "every", 0, "N", NULL, "start a new file after every N samples" },
    { "shuffle", 0, "SEED", NULL, "shuffle the samples with this seed" },
    { "stratify", 0, "FIELD", NULL, "with --parts: give every part the same share of each value of FIELD" },
    MLDF_WHERE_OPTION,
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
    CLI_DAMAGED_OPTION,
    { 0 },
};

typedef struct part {
    char *path;
    uint64_t first, end; /* positions in the order */
    double share_end;    /* sum of the shares up to this part */
} part;

typedef struct split_job {
    const cli_args *args;
    const coffer_mldf *set;
    uint64_t *order; /* the samples to divide */
    uint64_t samples;
    part *parts;
    size_t count;
} split_job;

/* A sample with the value of the field that is stratified. */
typedef struct stratum {
    uint64_t value, position; /* in the order */
} stratum;

/* ---- The parts ---- */

/* "dir/train.mldf" and "val" become "dir/train-val.mldf", or "folder/train-val.mldf". */
static char *part_path(const cli_args *args, const char *name, size_t name_len)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    const char *in = cli_operand(args, 0), *folder = cli_value(args, "output");
    const char *slash = strrchr(in, '/'), *base = slash ? slash + 1 : in, *dot = strrchr(base, '.');
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
    job->parts[job->count++] = (part){ .path = path, .first = first, .end = end };
    return CLI_OK;
}

static bool is_twice(const split_job *job)
{
    for (size_t i = 0; i + 1 < job->count; i++)
        if (strcmp(job->parts[i].path, job->parts[job->count - 1].path) == 0)
            return true;
    return false;
}

/* Part of a file name. */
static bool is_plain_name(const char *name, size_t len)
{
    return len > 0 && !memchr(name, '/', len) && !memchr(name, '\\', len);
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
           (!equals || is_plain_name(*name, *name_len));
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
        if (!result && job->parts)
            job->parts[job->count - 1].share_end = is_last ? 1 : sum;
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
    uint64_t count = job->samples / every + (job->samples % every != 0);
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

/* ---- The order of the samples ---- */

static int make_order(split_job *job)
{
    sample_list list;
    bool selected = false;
    uint64_t seed;
    if (!cli_number(&seed, job->args, "shuffle", 0, 0, UINT64_MAX))
        return CLI_USAGE;
    int result = sample_where_read(&list, &selected, job->args, job->set);
    if (!result && selected)
        job->samples = list.count;
    job->order = result ? NULL : coffer__alloc_array((size_t)job->samples + 1, sizeof *job->order);
    if (!result && !job->order)
        result = cli_usage(job->args, "not enough memory for %" PRIu64 " sample numbers", job->samples);
    bool shuffle = cli_has(job->args, "shuffle");
    for (uint64_t i = 0; !result && job->order && i < job->samples; i++) {
        uint64_t at = shuffle ? coffer_mldf_shuffle_at(job->samples, seed, 0, i) : i;
        job->order[i] = selected ? list.at[at] : at;
    }
    sample_list_free(&list);
    return result;
}

static int compare_strata(const void *a, const void *b)
{
    const stratum *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->position > y->position) - (x->position < y->position);
}

/* FNV-1a: equal values have equal numbers, and different ones almost never do. */
static uint64_t hash_of(const coffer_bytes *bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes->size; i++)
        hash = (hash ^ bytes->data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static coffer_status read_value(uint64_t *out, const split_job *job, size_t field, uint64_t sample,
                                coffer_bytes *bytes, coffer_error *err)
{
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_status status = coffer_mldf_read(bytes, &entry, job->set, sample, field, err);
    *out = coffer_mldf_field_at(job->set, field)->kind == COFFER_MLDF_ENTRY_INT ? (uint64_t)entry.i64
                                                                                : hash_of(bytes);
    return status;
}

/* Deals each group of equal values out by the shares. What rounding leaves over in one group is carried to
 * the next, so that the parts have their shares of the whole, too. */
static coffer_status deal(uint64_t *order, const split_job *job, const stratum *strata, coffer_error *err)
{
    double *carry = coffer__calloc(job->count, sizeof *carry);
    uint32_t *part_of = coffer__alloc_array((size_t)job->samples + 1, sizeof *part_of);
    uint64_t placed = 0;
    if (!carry || !part_of) {
        coffer__free(carry);
        coffer__free(part_of);
        return coffer__fail_no_memory(err, job->samples * sizeof *part_of);
    }
    for (uint64_t first = 0, end; first < job->samples; first = end) {
        for (end = first; end < job->samples && strata[end].value == strata[first].value;)
            end++;
        uint64_t at = first;
        for (size_t p = 0; p < job->count; p++) {
            double exact = job->parts[p].share_end * (double)(end - first) + carry[p];
            uint64_t until = p + 1 == job->count ? end : first + (uint64_t)floor(exact + 0.5);
            until = until > end ? end : until < at ? at : until;
            carry[p] = exact - (double)(until - first);
            for (; at < until; at++)
                part_of[strata[at].position] = (uint32_t)p;
        }
    }
    for (size_t p = 0; p < job->count; p++) {
        job->parts[p].first = placed;
        for (uint64_t i = 0; i < job->samples; i++)
            if (part_of[i] == p)
                order[placed++] = job->order[i];
        job->parts[p].end = placed;
    }
    coffer__free(carry);
    coffer__free(part_of);
    return COFFER_OK;
}

static int stratify(split_job *job)
{
    const char *name = cli_value(job->args, "stratify");
    coffer_error err = COFFER_ERROR_INIT;
    coffer_bytes bytes = COFFER_BYTES_INIT;
    size_t field;
    if (!name)
        return CLI_OK;
    if (!cli_has(job->args, "parts"))
        return cli_usage(job->args, "--stratify divides by shares: give --parts train=0.9,val=0.1");
    int result = sample_field_find(&field, job->args, job->set, name);
    if (result)
        return result;
    stratum *strata = coffer__alloc_array((size_t)job->samples + 1, sizeof *strata);
    uint64_t *order = coffer__alloc_array((size_t)job->samples + 1, sizeof *order);
    coffer_status status =
        strata && order ? COFFER_OK : coffer__fail_no_memory(&err, job->samples * sizeof *strata);
    for (uint64_t i = 0; !status && i < job->samples; i++) {
        strata[i].position = i;
        status = read_value(&strata[i].value, job, field, job->order[i], &bytes, &err);
    }
    if (!status) {
        qsort(strata, (size_t)job->samples, sizeof *strata, compare_strata);
        status = deal(order, job, strata, &err);
    }
    if (!status) {
        coffer__free(job->order);
        job->order = order;
        order = NULL;
    }
    coffer_free(bytes.data);
    coffer__free(strata);
    coffer__free(order);
    return status ? mldf_fail(cli_operand(job->args, 0), &err) : CLI_OK;
}

/* ---- Writing them ---- */

/* Ctrl-C ends the work between two samples; none of the files is left then. */
static int step(void *context, uint64_t done, uint64_t total)
{
    term_progress *bar = context;
    return bar->progress.step(bar->progress.context, done, total) || cli_signal_waits();
}

static coffer_status write_all(const split_job *job, const coffer_mldf_writer_opts *opts, size_t *failed,
                               coffer_error *err)
{
    coffer_mldf_extract_opts extract = COFFER_MLDF_EXTRACT_OPTS_INIT;
    term_progress bar;
    coffer_progress progress = { sizeof(coffer_progress), step, &bar };
    coffer_mldf_split_part *parts = coffer__alloc_array(job->count, sizeof *parts);
    if (!parts)
        return coffer__fail_no_memory(err, job->count * sizeof *parts);
    for (size_t i = 0; i < job->count; i++) {
        const part *from = &job->parts[i];
        parts[i] = (coffer_mldf_split_part){ sizeof *parts, from->path, job->order + from->first,
                                             from->end - from->first };
    }
    extract.write = opts;
    extract.progress = &progress;
    term_progress_start(&bar, "splitting", "samples");
    coffer_status status = coffer_mldf_split(failed, job->set, parts, job->count, &extract, err);
    term_progress_end(&bar);
    coffer__free(parts);
    return status;
}

static int write_parts(split_job *job, const cli_key *key)
{
    coffer_mldf_writer_opts opts;
    coffer_error err = COFFER_ERROR_INIT;
    const char *folder = cli_value(job->args, "output");
    size_t failed = 0;
    int result = mldf_write_opts(&opts, job->args, key, job->set);
    if (result)
        return result;
    if (folder && mkdir(folder, 0777) != 0 && errno != EEXIST) {
        coffer__fail_errno(&err, "cannot create the folder", errno);
        return cli_fail(folder, &err, NULL);
    }
    opts.overwrite = cli_has(job->args, "force");
    cli_hold_signals();
    coffer_status status = write_all(job, &opts, &failed, &err);
    if (status) {
        const char *path = job->parts && failed < job->count ? job->parts[failed].path : folder;
        cli_release_signals(); /* a signal that waits ends the program here */
        return mldf_fail_between(cli_operand(job->args, 0), path, &err);
    }
    cli_finish_signals();
    for (size_t i = 0; i < job->count && !result; i++)
        result = mldf_report_set(job->parts[i].path, cli_has(job->args, "json"));
    return result;
}

static int run_on(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    split_job job = { .args = args, .set = set, .samples = coffer_mldf_sample_count(set) };
    int result = make_order(&job);
    if (!result)
        result = plan(&job);
    if (!result)
        result = stratify(&job);
    if (!result)
        result = write_parts(&job, key);
    for (size_t i = 0; i < job.count; i++)
        coffer__free(job.parts[i].path);
    coffer__free(job.parts);
    coffer__free(job.order);
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
        "  coffer split all.mldf --every 10000 -o shards                 # shards/all-00000.mldf …\n"
        "  coffer split all.mldf --parts train=0.9,val=0.1 --stratify label --shuffle 1\n",
    .run = run,
};
