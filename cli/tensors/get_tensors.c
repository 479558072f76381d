/* get for models: a tensor, some of its rows, or a value of the metadata. */
#include "args.h"
#include "base/buffer.h"
#include "base/json_write.h"
#include "pycauset/pycauset_verbs.h"
#include "tensors/tensors_verbs.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

coffer_status tensors_open(coffer_tensors **out, const char *path, coffer_source *src, coffer_error *err)
{
    if (strcmp(path, "-") == 0)
        return coffer_tensors_open(out, src, NULL, err);
    return coffer_tensors_open_path(out, path, NULL, err);
}

enum { KIND_NPY, KIND_SAFETENSORS, KIND_CSV, KIND_RAW, KIND_COUNT };
static const char *const kinds[KIND_COUNT] = { "npy", "safetensors", "csv", "raw" };

static const cli_option options[] = {
    { "output", 'o', "FILE", NULL, "write to FILE instead of standard output" },
    { "slice", 0, "N,N…", NULL, "npy: index in all dimensions but the last two" },
    { "as", 0, "KIND", "npy|safetensors|csv|raw", "output format of a tensor",
      "by the extension of FILE, else csv" },
    { "rows", 0, "A..B", NULL, "only rows A to B of the first dimension, without B" },
    { "dequantize", 0, NULL, NULL, "write float32; quantized tensors are decoded" },
    CLI_DAMAGED_OPTION,
    { "force", 'f', NULL, NULL, "overwrite an existing output" },
    { 0 },
};

typedef struct get_job {
    const cli_args *args;
    coffer_source *src; /* NULL for a folder */
    coffer_tensors *set;
    const char *path, *name, *output;
} get_job;

/* ---- Tensors ---- */

static size_t kind_of_extension(const char *output)
{
    const char *dot = output ? strrchr(output, '.') : NULL;
    for (size_t i = 0; dot && i < KIND_COUNT; i++)
        if (strcmp(dot + 1, kinds[i]) == 0)
            return i;
    return KIND_CSV;
}

/* Whether the tensor can be written so; false after a message. */
static bool check_type(const get_job *job, const coffer_tensor *tensor, size_t kind)
{
    bool rows = cli_has(job->args, "rows");
    if (cli_has(job->args, "dequantize") || coffer_dtype_size(tensor->dtype) > 0 ||
        (kind == KIND_RAW && !rows))
        return true;
    cli_usage(job->args, "%s is %s: use --dequantize for float32%s", job->name,
              coffer_tensor_dtype_name(tensor), rows ? "" : ", --as raw for the stored bytes");
    return false;
}

static bool choose_rows(coffer_tensors_write_opts *opts, const get_job *job, const coffer_tensor *tensor)
{
    uint64_t rows = tensor->rank > 0 ? tensor->dims[0] : 1, begin = 0, end = rows;
    if (!cli_range(&begin, &end, job->args, "rows"))
        return false;
    if (end == UINT64_MAX)
        end = rows;
    if (begin > end || end > rows) {
        cli_usage(job->args, "--rows %s: %s has %" PRIu64 " rows", cli_value(job->args, "rows"), job->name,
                  rows);
        return false;
    }
    opts->first_row = begin;
    opts->row_count = end - begin;
    return true;
}

static int get_tensor(const get_job *job, size_t index)
{
    const coffer_tensor *tensor = coffer_tensors_at(job->set, index);
    const char *path = job->output ? job->output : "-";
    size_t kind = cli_choice(job->args, "as", kind_of_extension(job->output));
    coffer_tensors_write_opts opts = COFFER_TENSORS_WRITE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    if (!check_type(job, tensor, kind) || !choose_rows(&opts, job, tensor))
        return CLI_USAGE;
    if (kind != KIND_CSV && strcmp(path, "-") == 0 && term_is_terminal(stdout))
        return cli_usage(job->args, "refusing to write binary %s to a terminal; use -o FILE or redirect",
                         kinds[kind]);
    term_progress_start(&bar, "writing", NULL);
    bar.amount = tensor->size;
    opts.kind = kinds[kind];
    opts.dequantize = cli_has(job->args, "dequantize");
    opts.overwrite = cli_has(job->args, "force");
    opts.progress = &bar.progress;
    coffer_status status = coffer_tensors_write(path, job->set, index, &opts, &err);
    term_progress_end(&bar);
    if (!status)
        return CLI_OK;
    return cli_fail_between(job->path, job->output, &err, NULL);
}

/* ---- Metadata ---- */

static int write_value(const get_job *job, const coffer_node *value)
{
    coffer__buffer out = COFFER__BUFFER_INIT;
    coffer__json_writer json;
    size_t len;
    if (coffer_node_get_kind(value) == COFFER_NODE_TEXT) {
        const char *text = coffer_node_get_text(value, &len);
        coffer__buffer_append(&out, text, len);
    } else {
        coffer__json_writer_init(&json, &out, 2);
        coffer__json_write_node(&json, value);
    }
    coffer__buffer_append(&out, "\n", 1);
    int status = cli_write_out(job->output, cli_has(job->args, "force"), out.data, out.len);
    coffer__buffer_free(&out);
    return status;
}

static int fail_unknown(const get_job *job)
{
    enum { MOST_COMPARED = 10000 };
    size_t best = COFFER_INDEX_NONE;
    const char *nearest = "";
    for (size_t i = 0; i < coffer_tensors_count(job->set) && i < MOST_COMPARED; i++) {
        const char *name = coffer_tensors_at(job->set, i)->name;
        size_t distance = cli_distance(job->name, name);
        if (distance < best) {
            best = distance;
            nearest = name;
        }
    }
    if (cli_is_near(job->name, best))
        return cli_usage(job->args, "no \"%s\" in %s; did you mean \"%s\"?", job->name, job->path, nearest);
    return cli_usage(job->args, "no \"%s\" in %s; 'coffer ls' lists its tensors, 'coffer info' its metadata",
                     job->name, job->path);
}

static int get_metadata(const get_job *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    coffer_status status = coffer_node_new(&root, &err);
    if (!status)
        status = coffer_tensors_metadata_value(root, job->set, job->name, &err);
    int result;
    if (status == COFFER_E_NOT_FOUND)
        result = fail_unknown(job);
    else if (status)
        result = cli_fail(job->path, &err, NULL);
    else
        result = write_value(job, coffer_node_first(root));
    coffer_node_free(root);
    return result;
}

/* Writes a file that is packed with the model. False when the model has no such file. */
static bool get_section(int *result, const get_job *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mcf *model = NULL;
    uint8_t *bytes = NULL;
    size_t len;
    uint32_t type = coffer_mcf_section_by_name(job->name);
    if (!job->src || coffer_mcf_open(&model, job->src, NULL, NULL))
        return false;
    bool section = type != 0 && coffer_mcf_find_section(model, type);
    coffer_status status = section ? coffer_mcf_read_section(&bytes, &len, model, type, &err)
                                   : coffer_mcf_read_file(&bytes, &len, model, job->name, &err);
    bool found = section || status != COFFER_E_MISSING;
    if (found && !status)
        *result = cli_write_out(job->output, cli_has(job->args, "force"), bytes, len);
    else if (found)
        *result = cli_fail(job->path, &err, NULL);
    coffer_free(bytes);
    coffer_mcf_close(model);
    return found;
}

static int get_other(const get_job *job)
{
    static const char *const for_tensors[] = { "as", "rows", "dequantize" };
    int result;
    for (size_t i = 0; i < sizeof for_tensors / sizeof for_tensors[0]; i++)
        if (cli_has(job->args, for_tensors[i]))
            return cli_usage(job->args, "--%s is for tensors; %s is not a tensor of %s", for_tensors[i],
                             job->name, job->path);
    return get_section(&result, job) ? result : get_metadata(job);
}

static int run(const cli_args *args, coffer_source *src)
{
    get_job job = { .args = args, .src = src, .path = cli_operand(args, 0), .name = cli_operand(args, 1) };
    coffer_error err = COFFER_ERROR_INIT;
    job.output = cli_value(args, "output");
    const char *kind = NULL;
    bool array = src && coffer_convert_kind(&kind, src, NULL) == COFFER_OK && strcmp(kind, "npy") == 0;
    if (array && (!job.name || pycauset_is_tile(job.name)))
        return pycauset_get_array(args, src);
    if (!job.name)
        return cli_usage(args, "no tensor name given; 'coffer ls %s' lists them", job.path);
    if (tensors_open(&job.set, job.path, src, &err))
        return cli_fail(job.path, &err, NULL);
    size_t index = coffer_tensors_find(job.set, job.name);
    const char *shard = index != COFFER_INDEX_NONE ? coffer_tensors_at(job.set, index)->file : NULL;
    int status;
    if (job.output && shard && cli_same_file(job.output, shard))
        status = cli_usage(args, "input and output are the same file: %s", shard);
    else
        status = shard ? get_tensor(&job, index) : get_other(&job);
    coffer_tensors_close(job.set);
    return status;
}

const cli_format_verb cli_tensors_get = {
    .format = TENSORS_KINDS,
    .verb = "get",
    .options = options,
    .examples =
        "  coffer get model.mcf lm_head.weight -o head.npy          # numpy.load(\"head.npy\")\n"
        "  coffer get model.gguf blk.0.attn_q.weight --dequantize --rows 0..16 -o rows.npy\n"
        "  coffer get folder/ model.norm.weight                     # as text\n"
        "  coffer get model.mcf config.json                         # a file packed with the model\n"
        "  coffer get model.gguf tokenizer.ggml.tokens              # a value of the metadata, in full\n"
        "  coffer get model.mcf kv.general.license\n",
    .run = run,
};
