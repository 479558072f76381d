/* Tensors in fewer bits. */
#include "verbs.h"

#include "mcf/mcf_verbs.h"

#include "base/fail.h"
#include "base/memory.h"
#include "term.h"

#include <math.h>
#include <string.h>
#include <strings.h>

typedef struct quantize_job {
    const cli_args *args;
    const char *input, *output; /* output : NULL in a dry run that names none */
    coffer_mcf_quantize_rule *rules;
    const char **globs; /* of the rules that have one, then those of --include and --exclude */
    char *texts;        /* memory of the globs of the rules */
    coffer_mcf_quantize_opts opts;
} quantize_job;

/* ---- Arguments ---- */

static coffer_dtype dtype_of(const char *name)
{
    for (int i = 0; i < COFFER_DTYPE_COUNT; i++)
        if (strcasecmp(coffer_dtype_name((coffer_dtype)i), name) == 0)
            return (coffer_dtype)i;
    return COFFER_DTYPE_NONE;
}

/* "k4", or "GLOB=k4"; the glob goes to `text`, which has room for it. */
static int parse_rule(coffer_mcf_quantize_rule *out, char *text, const cli_args *args, const char *value)
{
    const char *equals = strrchr(value, '='), *name = equals ? equals + 1 : value;
    coffer_dtype dtype = dtype_of(name);
    bool keep = strcasecmp(name, "keep") == 0;
    if (coffer_mcf_quantize_preset(name))
        return cli_usage(args, "--type %s: %s is a mixture for all tensors; after a pattern use q8, k6, k4 …",
                         value, name);
    if (strncasecmp(name, "Q5", 2) == 0)
        return cli_usage(args, "--type %s: MCF has no type of 5 bits; use k6, k4, or --target-bpw 5.5",
                         value);
    if (!keep && !coffer_dtype_is_quantized(dtype) && dtype != COFFER_DTYPE_F16 && dtype != COFFER_DTYPE_BF16)
        return cli_usage(args,
                         "--type %s: \"%s\" must be one of q8, q4, k6, k4, k3, k2, int8, int4, f16, bf16, "
                         "keep, or a name of "
                         "llama.cpp: Q8_0, Q6_K, Q4_K_M, Q4_K_S, Q4_0, Q3_K_L, Q3_K_M, Q3_K_S, Q2_K",
                         value, name);
    *out = (coffer_mcf_quantize_rule)COFFER_MCF_QUANTIZE_RULE_INIT;
    out->dtype = keep ? COFFER_DTYPE_NONE : dtype;
    if (equals) {
        memcpy(text, value, (size_t)(equals - value));
        text[equals - value] = 0;
        out->glob = text;
    }
    return CLI_OK;
}

static int collect(quantize_job *job)
{
    size_t count = 0, len = 0, globs = 0;
    cli_word word;
    for (cli_place place = { 0 }; cli_next_word(&word, &place, job->args); count++)
        len += word.value ? strlen(word.value) + 1 : 0;
    job->rules = coffer__calloc(count + 1, sizeof *job->rules);
    job->globs = coffer__calloc(count + 1, sizeof *job->globs);
    job->texts = coffer__malloc(len + 1);
    if (!job->rules || !job->globs || !job->texts)
        return cli_usage(job->args, "out of memory");
    char *text = job->texts;
    coffer_mcf_quantize_opts *opts = &job->opts;
    for (cli_place place = { 0 }; cli_next_word(&word, &place, job->args);) {
        if (!word.option || strcmp(word.option, "type") != 0)
            continue;
        if (coffer_mcf_quantize_preset(word.value)) {
            opts->preset = word.value;
            continue;
        }
        int result = parse_rule(&job->rules[opts->rule_count++], text, job->args, word.value);
        if (result)
            return result;
        text += strlen(word.value) + 1;
    }
    static const char *const names[] = { "include", "exclude" };
    const char *const **lists[] = { &opts->include, &opts->exclude };
    size_t *counts[] = { &opts->include_count, &opts->exclude_count };
    for (size_t i = 0; i < 2; i++) {
        *lists[i] = job->globs + globs;
        for (cli_place place = { 0 }; cli_next_word(&word, &place, job->args);)
            if (word.option && strcmp(word.option, names[i]) == 0)
                job->globs[globs++] = word.value;
        *counts[i] = (size_t)(job->globs + globs - *lists[i]);
    }
    opts->rules = job->rules;
    return CLI_OK;
}

/* "minmax", or a percentile. */
static bool parse_clip(double *out, const cli_args *args)
{
    const char *value = cli_value(args, "clip");
    if (!value || strcmp(value, "minmax") == 0)
        return true;
    return cli_real(out, args, "clip", 0.0);
}

static const char *const target_options[] = { "target-bpw", "max-size", "min-snr", "max-error" };

static bool has_target(const cli_args *args)
{
    for (size_t i = 0; i < sizeof target_options / sizeof *target_options; i++)
        if (cli_has(args, target_options[i]))
            return true;
    return false;
}

static int parse_targets(coffer_mcf_quantize_opts *opts, const cli_args *args)
{
    double *const reals[] = { &opts->target_bpw, NULL, &opts->min_snr, &opts->max_error };
    for (size_t i = 0; i < sizeof target_options / sizeof *target_options; i++) {
        const char *name = target_options[i];
        if (reals[i] && !cli_real(reals[i], args, name, 0.0))
            return CLI_USAGE;
        if (reals[i] && cli_has(args, name) && !(*reals[i] > 0))
            return cli_usage(args, "--%s %s: must be a number above 0", name, cli_value(args, name));
    }
    return cli_size(&opts->max_size, args, "max-size", 0) ? CLI_OK : CLI_USAGE;
}

static int parse(quantize_job *job)
{
    static const uint32_t alignments[] = { 64, 4096, 2U << 20 };
    const cli_args *args = job->args;
    coffer_mcf_quantize_opts *opts = &job->opts;
    uint64_t threads;
    int result = collect(job);
    if (!result)
        result = parse_targets(opts, args);
    if (result)
        return result;
    if (!cli_number(&threads, args, "threads", 0, 1, 1024) || !parse_clip(&opts->percentile, args) ||
        !cli_real(&opts->damping, args, "damping", 0.0))
        return CLI_USAGE;
    opts->method = (coffer_quant_method)cli_choice(args, "method", COFFER_QUANT_FIT);
    opts->activations = cli_choice(args, "domain", 0) == 1;
    opts->weights = cli_value(args, "weights");
    opts->hessian = cli_value(args, "hessian");
    opts->nan_to_zero = cli_choice(args, "nan", 0) == 1;
    opts->requantize = cli_has(args, "requantize");
    opts->portable_scales = cli_has(args, "portable-scales");
    opts->dry_run = cli_has(args, "dry-run");
    opts->align = alignments[cli_choice(args, "align", 0)];
    opts->no_dedup = cli_has(args, "no-dedup");
    opts->no_checksums = cli_has(args, "no-checksums");
    opts->allow_damaged = cli_choice(args, "damaged", 0) == 1;
    opts->overwrite = cli_has(args, "force");
    opts->model_name = cli_value(args, "name");
    opts->threads = (uint32_t)threads;
    job->input = cli_operand(args, 0);
    job->output = cli_operand(args, 1);
    if (!job->output && !opts->dry_run)
        return cli_usage(args, "no output file given; name one or add --dry-run");
    if (!opts->rule_count && !opts->preset && !has_target(args))
        return cli_usage(
            args, "no type given; use --type k4, --type 'GLOB=q8' for some of the tensors, or a target "
                  "such as --target-bpw 4.5, --max-size 4G or --min-snr 20");
    return CLI_OK;
}

/* ---- Results ---- */

static void print_number(term_table *table, int digits, const coffer_node *node)
{
    double value = coffer_node_get_f64(node);
    if (coffer_node_get_kind(node) == COFFER_NODE_NULL)
        term_table_cell(table, "-");
    else if (isinf(value))
        term_table_cell(table, "exact");
    else
        term_table_cellf(table, "%.*f", digits, value);
}

/* "1.2 %" */
static void print_share(term_table *table, const coffer_node *node)
{
    if (coffer_node_get_kind(node) == COFFER_NODE_NULL)
        term_table_cell(table, "-");
    else
        term_table_cellf(table, "%.3g %%", 100.0 * coffer_node_get_f64(node));
}

static void print_tensors(const coffer_node *list, bool calibrated)
{
    term_table *table = term_table_new();
    term_text size;
    term_table_column(table, "tensor", TERM_LEFT);
    term_table_column(table, "from", TERM_LEFT);
    term_table_column(table, "type", TERM_LEFT);
    term_table_column(table, "bits", TERM_RIGHT);
    term_table_column(table, "size", TERM_RIGHT);
    term_table_column(table, "error", TERM_RIGHT);
    term_table_column(table, "SNR dB", TERM_RIGHT);
    term_table_column(table, "max error", TERM_RIGHT);
    if (calibrated)
        term_table_column(table, "output dB", TERM_RIGHT);
    for (const coffer_node *node = coffer_node_first(list); node; node = coffer_node_next(node)) {
        size_t len;
        const char *name = coffer_node_get_text(coffer_node_find(node, "name"), &len);
        term_table_cell_len(table, name, len);
        term_table_cell(table, coffer_node_get_text(coffer_node_find(node, "from"), NULL));
        term_table_cell(table, coffer_node_get_text(coffer_node_find(node, "type"), NULL));
        print_number(table, 3, coffer_node_find(node, "bits"));
        term_table_cell(table, term_bytes(size, coffer_node_get_u64(coffer_node_find(node, "size"))));
        print_share(table, coffer_node_find(node, "error"));
        print_number(table, 2, coffer_node_find(node, "snr_db"));
        if (coffer_node_get_kind(coffer_node_find(node, "max_error")) == COFFER_NODE_NULL)
            term_table_cell(table, "-");
        else
            term_table_cellf(table, "%.3g", coffer_node_get_f64(coffer_node_find(node, "max_error")));
        if (calibrated)
            print_number(table, 2, coffer_node_find(node, "output_snr_db"));
    }
    term_table_print(table, stdout);
}

/* "quantized without moments: a, b" */
static void print_names(const char *what, const coffer_node *list)
{
    if (!coffer_node_count(list))
        return;
    printf("%s: ", what);
    for (const coffer_node *node = coffer_node_first(list); node; node = coffer_node_next(node)) {
        size_t len;
        const char *name = coffer_node_get_text(node, &len);
        term_print_text(stdout, name, len, 0);
        fputs(coffer_node_next(node) ? ", " : "\n", stdout);
    }
}

static void print_notes(const coffer_node *root)
{
    const coffer_node *moments = coffer_node_find(root, "moments"),
                      *preset = coffer_node_find(root, "preset");
    if (preset)
        printf("%s means %s\n", coffer_node_get_text(coffer_node_find(preset, "name"), NULL),
               coffer_node_get_text(coffer_node_find(preset, "meaning"), NULL));
    if (!moments)
        return;
    print_names("quantized without moments", coffer_node_find(moments, "without"));
    print_names("moments of layers that are not quantized", coffer_node_find(moments, "unused"));
}

static void print_for_people(const quantize_job *job, const coffer_node *root)
{
    const coffer_node *tensors = coffer_node_find(root, "tensors");
    const char *path = job->opts.dry_run ? job->input : job->output;
    term_text quantized, all, size;
    print_tensors(tensors, job->opts.hessian != NULL);
    print_notes(root);
    term_print_text(stdout, path, strlen(path), 0);
    printf(": %s of %s tensors %squantized, %s of payload, %.3f bits per weight\n",
           term_count(quantized, coffer_node_get_u64(coffer_node_find(root, "quantised"))),
           term_count(all, coffer_node_count(tensors)), job->opts.dry_run ? "would be " : "",
           term_bytes(size, coffer_node_get_u64(coffer_node_find(root, "size"))),
           coffer_node_get_f64(coffer_node_find(root, "bits_per_weight")));
}

/* Other programs would read the file differently. */
static void print_note(const quantize_job *job, const coffer_node *root)
{
    uint64_t small = coffer_node_get_u64(coffer_node_find(root, "small_scales"));
    const char *path = job->opts.dry_run ? job->input : job->output;
    term_text count;
    if (!small)
        return;
    fflush(stdout);
    fputs("coffer: ", stderr);
    term_print_text(stderr, path, strlen(path), 0);
    fprintf(stderr,
            ": note: scales below the normal range of float16: %s; mantle reads them as 0, --portable-scales "
            "avoids "
            "them\n",
            term_count(count, small));
}

static int fail(const quantize_job *job, const coffer_error *err)
{
    if (job->opts.hessian && !job->opts.weights && err->subject == COFFER_SUBJECT_OTHER)
        return cli_fail(NULL, err,
                        coffer__is_about_file(err->status)
                            ? "coffer.torch.calibrate(model, batches, FILE) writes moments"
                            : NULL);
    if (job->opts.weights && err->subject == COFFER_SUBJECT_OTHER)
        return cli_fail(NULL, err,
                        coffer__is_about_file(err->status)
                            ? "importances are vectors with a number for each column, found by tensor name"
                            : NULL);
    if (err->status == COFFER_E_BAD_VALUE && !job->opts.nan_to_zero)
        return cli_fail(job->input, err, "--nan zero replaces such numbers by 0");
    return cli_fail_between(job->input, job->output, err, NULL);
}

static int work(quantize_job *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    term_progress bar;
    int result = CLI_OK;
    coffer_status status = coffer_node_new(&root, &err);
    term_progress_start(&bar, job->opts.dry_run ? "measuring" : "quantizing", NULL);
    job->opts.progress = &bar.progress;
    if (status == COFFER_OK) {
        coffer_node_add_text(root, "file", job->input);
        coffer_node_add_text(root, "output", job->opts.dry_run ? NULL : job->output);
        status = coffer_mcf_quantize(root, job->output, job->input, &job->opts, &err);
    }
    term_progress_end(&bar);
    job->opts.progress = NULL;
    if (status != COFFER_OK)
        result = fail(job, &err);
    else if (cli_has(job->args, "csv"))
        result = cli_print_csv(stdout, coffer_node_find(root, "tensors"));
    else if (cli_has(job->args, "json"))
        result = cli_print_json(stdout, root);
    else
        print_for_people(job, root);
    if (status == COFFER_OK && !cli_has(job->args, "json"))
        print_note(job, root);
    coffer_node_free(root);
    return status || job->opts.dry_run ? result : cli_worse(result, cli_report_damage(job->output));
}

static int run(const cli_args *args)
{
    quantize_job job = { .args = args, .opts = COFFER_MCF_QUANTIZE_OPTS_INIT };
    int result = cli_check_output(args);
    if (!result)
        result = parse(&job);
    if (!result)
        result = work(&job);
    coffer__free(job.rules);
    coffer__free((void *)job.globs);
    coffer__free(job.texts);
    return result;
}

/* -n is the number of rows in every other verb. */
static const cli_old_spelling dry_run_old[] = { { "-n", NULL }, { 0 } };

static const cli_option options[] = {
    { "type", 't', "[GLOB=]TYPE", NULL,
      "q8, q4, k6, k4, k3, k2, int8, int4, f16, bf16, keep, or a mixture by its name in llama.cpp (Q4_K_M); "
      "repeatable, the last match applies" },
    { "method", 0, "NAME", "fit|absmax|exact",
      "how scales are chosen: least error found, as the first program does, or the "
      "optimum (slow)",
      "fit" },
    { "weights", 'w', "FILE", NULL,
      "importance of each column: .npy for all tensors, .npz or safetensors by name, or an imatrix" },
    { "hessian", 0, "FILE", NULL,
      "second moments of the inputs of layers (coffer.torch.calibrate): choose codes for the least error of "
      "the "
      "layers' outputs" },
    { "damping", 0, "X", NULL, "share of the mean moment that is added to each, with --hessian", "0.01" },
    { "target-bpw", 0, "X", NULL, "choose a type for each tensor for an average of X bits per weight" },
    { "max-size", 0, "SIZE", NULL, "the same for a file of at most SIZE bytes, such as 4G" },
    { "min-snr", 0, "DB", NULL,
      "choose the smallest type of each tensor with at least that signal-to-noise ratio" },
    { "max-error", 0, "X", NULL, "the same for a relative error of at most X, such as 0.05" },
    { "domain", 0, "WHAT", "weights|activations", "int8 and int4: symmetric, or with a zero point",
      "weights" },
    { "clip", 0, "minmax|P", NULL, "int8 and int4: clip beyond the P-th percentile", "minmax" },
    { "include", 0, "GLOB", NULL, "only tensors whose name matches, others are copied; repeatable" },
    { "exclude", 0, "GLOB", NULL, "copy tensors whose name matches; repeatable" },
    { "requantize", 0, NULL, NULL, "also quantize tensors that are already quantized" },
    { "portable-scales", 0, NULL, NULL,
      "no scales below the normal range of float16, which mantle reads as 0; see the note" },
    { "nan", 0, "WHAT", "error|zero", "treat NaN and infinities as an error or as 0", "error" },
    { "dry-run", 0, NULL, NULL, "report the result without writing it", NULL, dry_run_old },
    { "align", 0, "SIZE", "64|4K|2M", "alignment of tensors in bytes", "64" },
    { "no-dedup", 0, NULL, NULL, "store equal tensors again instead of sharing them" },
    { "no-checksums", 0, NULL, NULL, "write no checksums for 'check --full'" },
    { "damaged", 0, "MODE", "stop|keep",
      "tensors whose checksum is wrong: stop, or keep them and record the damage in OUT", "stop" },
    { "name", 0, "NAME", NULL, "name of the model", "that of the folder or file" },
    { "threads", 0, "N", NULL, "number of threads", "one per core" },
    { "force", 'f', NULL, NULL, "overwrite an existing OUT" },
    CLI_CSV_OPTION,
    { "json", 0, NULL, NULL,
      "one JSON object: file, output, tensors (name, from, type, bits, size, method, snr_db, error, "
      "max_error, "
      "output_snr_db), size, bits_per_weight, small_scales, preset, moments" },
    { 0 },
};

const cli_verb cli_verb_quantize = {
    .name = "quantize",
    .usage = "IN [OUT]",
    .summary = "store the weights of a model in 2 to 8 bits",
    .writes = CLI_WRITES_LAST,
    .group = CLI_GROUP_CONVERT,
    .description =
        "Writes IN, a folder or file of tensors, as an MCF file in which two-dimensional float tensors have "
        "fewer bits; everything else is copied. For each tensor it shows the bits per weight, the size, the "
        "error relative to the weights (root mean square), the same as signal-to-noise ratio, and the "
        "largest "
        "error. With --hessian, \"output dB\" is the ratio of the layer's output. "
        "OUT is complete or does not exist.",
    .examples = "  coffer quantize folder/ small.mcf --type k4\n"
                "  coffer quantize model.safetensors small.mcf --type k4 --type '*embed*=q8' --type "
                "'*lm_head*=keep'\n"
                "  coffer quantize model.gguf --type k3 --dry-run          # report the quality only\n"
                "  coffer quantize folder/ small.mcf --target-bpw 4.5      # the best types for the size\n"
                "  coffer quantize folder/ small.mcf --max-size 4G\n"
                "  coffer quantize folder/ small.mcf --type Q4_K_M         # prints what it means\n"
                "  coffer quantize folder/ small.mcf --type k3 --weights imatrix.gguf\n"
                "  coffer quantize folder/ small.mcf --type k3 --hessian moments.safetensors\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 2,
    .run = run,
};
