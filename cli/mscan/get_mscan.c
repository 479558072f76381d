/* get, for scans: records and columns by way of the conversions, everything else from the metadata. */
#include "mscan/mscan_verbs.h"

#include "base/buffer.h"
#include "base/json_write.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

enum as { AS_NPY, AS_CSV, AS_JSONL, AS_JSON, AS_RAW, AS_DEFAULT };
static const char *const as_names[] = { "npy", "csv", "jsonl", "json", "raw" };

typedef struct get_job {
    const cli_args *args;
    coffer_source *src;
    const char *path, *what, *output;
    enum as as;
    bool force;
} get_job;

static const cli_option options[] = {
    { "output", 'o', "FILE", NULL, "write to FILE instead of standard output" },
    { "as", 0, "KIND", "npy|csv|jsonl|json|raw", "format of the output",
      "by the extension of FILE, else csv or json" },
    { "force", 'f', NULL, NULL, "overwrite an existing output" },
    { "param", 'p', "GLOB", NULL, "records: only parameters whose name matches" },
    { "tokens", 't', "A..B", NULL, "records: only tokens A to B - 1" },
    { "sequence", 's', "ID", NULL, "records: only this sequence" },
    { "raw", 0, NULL, NULL, "records: stored integers, even if the scan has a scale" },
    { "real", 0, NULL, NULL, "records: real units or an error", "real units if the scan has a scale" },
    { "names", 0, NULL, NULL, "records: add the parameter's name and the sequence" },
    CLI_DAMAGED_OPTION,
    { 0 },
};

static const char *const record_options[] = { "param", "tokens", "sequence", "raw", "real", "names" };
#define RECORD_OPTIONS (sizeof record_options / sizeof *record_options)

static const char *const columns[] = { "token_idx", "param_id", "block_idx", "activation", "grad_norm" };

static bool is_column(const char *what)
{
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        if (strcmp(columns[i], what) == 0)
            return true;
    }
    return false;
}

static enum as as_of_extension(const char *output)
{
    const char *dot = output ? strrchr(output, '.') : NULL;
    for (unsigned as = 0; dot && as < AS_DEFAULT; as++) {
        if (strcmp(dot + 1, as_names[as]) == 0)
            return (enum as)as;
    }
    return AS_DEFAULT;
}

/* ---- Records ---- */

static int get_records(const get_job *job)
{
    coffer_setting settings[RECORD_OPTIONS + 1];
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    enum as as = job->as == AS_DEFAULT ? AS_CSV : job->as;
    if (as == AS_JSON)
        return cli_usage(job->args, "records can be had as npy, csv, jsonl or raw");
    if (!job->output && term_is_terminal(stdout) && !coffer_convert_is_text(as_names[as]))
        return cli_usage(job->args, "%s is nothing to look at: -o names a file for it", as_names[as]);
    for (size_t i = 0; i < RECORD_OPTIONS; i++) {
        if (cli_has(job->args, record_options[i]))
            settings[opts.setting_count++] =
                (coffer_setting){ record_options[i], cli_value(job->args, record_options[i]) };
    }
    if (is_column(job->what))
        settings[opts.setting_count++] = (coffer_setting){ "only", job->what };
    opts.to = as_names[as];
    opts.overwrite = job->force;
    opts.settings = settings;
    term_progress_start(&bar, "writing", "records");
    opts.progress = &bar.progress;
    coffer_status status = coffer_convert(job->src, job->output ? job->output : "-", &opts, &err);
    term_progress_end(&bar);
    if (!status)
        return CLI_OK;
    return cli_fail_between(job->path, job->output, &err, NULL);
}

/* ---- Lists ---- */

typedef struct list_writer {
    coffer__buffer *out;
    coffer__json_writer json;
    enum as as;
    bool first; /* of the row's fields */
} list_writer;

static void begin_row(list_writer *list)
{
    list->first = true;
    if (list->as == AS_JSONL)
        coffer__json_writer_init(&list->json, list->out, 0);
    if (list->as != AS_CSV)
        coffer__json_open_object(&list->json);
}

static void end_row(list_writer *list)
{
    if (list->as != AS_CSV)
        coffer__json_close_object(&list->json);
    if (list->as != AS_JSON)
        coffer__buffer_append(list->out, "\n", 1);
}

/* Writes the text before a value. */
static void begin_field(list_writer *list, const char *name)
{
    if (list->as != AS_CSV)
        coffer__json_key(&list->json, name);
    else if (!list->first)
        coffer__buffer_append(list->out, ",", 1);
    list->first = false;
}

static void put_number(list_writer *list, const char *name, uint64_t value)
{
    begin_field(list, name);
    if (list->as == AS_CSV)
        coffer__buffer_printf(list->out, "%" PRIu64, value);
    else
        coffer__json_write_u64(&list->json, value);
}

static void put_text(list_writer *list, const char *name, const char *text, size_t len)
{
    begin_field(list, name);
    if (list->as != AS_CSV && text)
        coffer__json_string_len(&list->json, text, len);
    else if (list->as != AS_CSV)
        coffer__json_write_null(&list->json);
    else if (text)
        cli_put_csv_cell(list->out, text, len);
}

static void list_params(list_writer *list, const coffer_mscan *scan)
{
    for (size_t i = 0; i < coffer_mscan_param_count(scan); i++) {
        const coffer_mscan_param *param = coffer_mscan_param_at(scan, i);
        begin_row(list);
        put_number(list, "id", param->id);
        put_text(list, "name", param->name, param->name_len);
        end_row(list);
    }
}

static void list_sequences(list_writer *list, const coffer_mscan *scan)
{
    for (size_t i = 0; i < coffer_mscan_sequence_count(scan); i++) {
        const coffer_mscan_sequence *sequence = coffer_mscan_sequence_at(scan, i);
        begin_row(list);
        put_number(list, "sequence_id", sequence->sequence_id);
        put_number(list, "num_tokens", sequence->num_tokens);
        put_number(list, "first_token", sequence->first_token);
        put_text(list, "source", sequence->source, sequence->source_len);
        end_row(list);
    }
}

typedef struct scan_list {
    const char *name;
    const char *csv_title;
    void (*write)(list_writer *list, const coffer_mscan *scan);
} scan_list;

static const scan_list lists[] = {
    { "params", "id,name\n", list_params },
    { "sequences", "sequence_id,num_tokens,first_token,source\n", list_sequences },
};

static const scan_list *find_list(const char *what)
{
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (strcmp(lists[i].name, what) == 0)
            return &lists[i];
    }
    return NULL;
}

static void put_list(coffer__buffer *out, const scan_list *what, const coffer_mscan *scan, enum as as)
{
    list_writer list = { .out = out, .as = as };
    if (as == AS_CSV)
        coffer__buffer_printf(out, "%s", what->csv_title);
    if (as == AS_JSON) {
        coffer__json_writer_init(&list.json, out, 2);
        coffer__json_open_array(&list.json);
    }
    what->write(&list, scan);
    if (as == AS_JSON) {
        coffer__json_close_array(&list.json);
        coffer__buffer_append(out, "\n", 1);
    }
}

/* ---- Values of the metadata ---- */

/* "sequences.0.source" */
static const coffer__json_value *find_value(const coffer__json_value *root, const char *path)
{
    const coffer__json_value *value = root;
    while (value && *path)
        value = coffer__json_step(value, &path);
    return value;
}

static void put_value(coffer__buffer *out, const coffer__json_value *value, enum as as)
{
    coffer__json_writer json;
    if (value->kind == COFFER__JSON_STRING && as != AS_JSON) {
        coffer__buffer_append(out, value->as.string, value->string_len);
        if (as == AS_RAW)
            return;
    } else {
        coffer__json_writer_init(&json, out, as == AS_RAW ? 0 : 2);
        coffer__json_write_value(&json, value);
    }
    coffer__buffer_append(out, "\n", 1);
}

/* ---- The rest ---- */

static int fail_unknown(const get_job *job, const coffer__json_value *root)
{
    coffer__buffer keys = COFFER__BUFFER_INIT;
    for (const coffer__json_value *member = coffer__json_first(root); member;
         member = coffer__json_next(root, member))
        coffer__buffer_printf(&keys, "%s%s", keys.len ? ", " : "", member->key);
    int status = cli_usage(job->args,
                           "no \"%s\" in %s; there are records, token_idx, param_id, block_idx, activation, "
                           "grad_norm, params, sequences, metadata, and in the metadata: %s",
                           job->what, job->path, coffer__buffer_text(&keys));
    coffer__buffer_free(&keys);
    return status;
}

static int get_metadata(const get_job *job, coffer_mscan *scan, const coffer__json *json)
{
    static const char prefix[] = "metadata";
    const coffer__json_value *root = coffer__json_root(json);
    const scan_list *list = find_list(job->what);
    coffer__buffer out = COFFER__BUFFER_INIT;
    const char *path = job->what;
    if (strncmp(path, prefix, sizeof prefix - 1) == 0 && (path[8] == '.' || !path[8]))
        path += path[8] ? 9 : 8;
    const coffer__json_value *value = find_value(root, path);
    bool wants_table = job->as == AS_CSV || job->as == AS_JSONL;
    if (list && (job->as == AS_NPY || (job->as == AS_RAW && !value)))
        return cli_usage(job->args, "%s can be had as csv, jsonl or json", job->what);
    if (list && job->as != AS_RAW) {
        put_list(&out, list, scan, wants_table ? job->as : AS_JSON);
    } else if (!value) {
        return fail_unknown(job, root);
    } else if (wants_table || job->as == AS_NPY) {
        return cli_usage(job->args, "%s can be had as json or raw", job->what);
    } else if (!*path && job->as == AS_RAW) {
        size_t len;
        const char *text = coffer_mscan_metadata(scan, &len);
        coffer__buffer_append(&out, text, len);
    } else {
        put_value(&out, value, job->as);
    }
    int status = cli_write_out(job->output, job->force, out.data, out.len);
    coffer__buffer_free(&out);
    return status;
}

static int get_other(const get_job *job)
{
    coffer_mscan *scan = NULL;
    coffer__json *json = NULL;
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mscan_open_opts opts = COFFER_MSCAN_OPEN_OPTS_INIT;
    size_t len;
    for (size_t i = 0; i < RECORD_OPTIONS; i++) {
        if (cli_has(job->args, record_options[i]))
            return cli_usage(job->args, "--%s chooses among records, and %s is none", record_options[i],
                             job->what);
    }
    opts.lenient = true; /* the metadata of a scan whose records are cut is still there */
    coffer_status status = coffer_mscan_open(&scan, job->src, &opts, &err);
    if (!status) {
        const char *text = coffer_mscan_metadata(scan, &len);
        status = coffer__json_parse(&json, text, len, 0, &limits, &err);
    }
    int exit_status = status == COFFER_OK ? get_metadata(job, scan, json) : cli_fail(job->path, &err, NULL);
    coffer__json_free(json);
    coffer_mscan_close(scan);
    return exit_status;
}

static int run(const cli_args *args, coffer_source *src)
{
    get_job job = { .args = args, .src = src, .path = cli_operand(args, 0), .what = cli_operand(args, 1) };
    job.output = cli_value(args, "output");
    job.as = (enum as)cli_choice(args, "as", as_of_extension(job.output));
    job.force = cli_has(args, "force");
    if (!job.what)
        job.what = "records";
    if (strcmp(job.what, "records") == 0 || is_column(job.what))
        return get_records(&job);
    return get_other(&job);
}

const cli_format_verb cli_mscan_get = {
    .format = "mscan",
    .verb = "get",
    .options = options,
    .examples = "  coffer get scan.mscan --tokens 0..2                    # records, as CSV\n"
                "  coffer get scan.mscan activation -o activation.npy     # one column\n"
                "  coffer get scan.mscan sequences.0.source               # a text of the metadata\n"
                "  coffer get scan.mscan params --as csv\n",
    .run = run,
};
