/* pack, into a model container. */
#include "base/memory.h"
#include "cli.h"
#include "mcf/mcf_verbs.h"
#include "term.h"

#include <string.h>

static const cli_option options[] = {
    { "cast", 0, "TYPE", "keep|f16|bf16|f32", "type that float tensors are converted to", "keep" },
    { "include", 0, "GLOB", NULL, "only tensors whose name matches; repeatable" },
    { "exclude", 0, "GLOB", NULL, "leave out tensors whose name matches; repeatable" },
    { "align", 0, "SIZE", "64|4K|2M", "alignment of tensors in bytes", "64" },
    { "no-dedup", 0, NULL, NULL, "store equal tensors again instead of sharing them" },
    { "no-checksums", 0, NULL, NULL, "write no checksums for 'check --full'" },
    { "no-files", 0, NULL, NULL, "pack only tensors, configuration and tokenizer of a folder" },
    { "max-file", 0, "SIZE", NULL, "leave out other files of a folder that are larger", "64M" },
    { "damaged", 0, "MODE", "stop|keep",
      "tensors whose checksum is wrong: stop, or keep them and record the damage in OUT", "stop" },
    { "name", 0, "NAME", NULL, "name of the model", "that of the folder or file" },
    { "threads", 0, "N", NULL, "number of threads", "one per core" },
    { "force", 'f', NULL, NULL, "overwrite an existing OUT" },
    { "json", 0, NULL, NULL, "one JSON object: file, format, size, tensors, sections, files, notes" },
    { 0 },
};

typedef struct globs {
    const char **at;
    size_t count;
} globs;

typedef struct pack_job {
    const cli_args *args;
    const char **inputs;
    size_t input_count;
    const char *output;
    globs include, exclude;
    coffer_mcf_pack_opts opts;
    coffer_node *packed; /* what the library reports */
} pack_job;

/* Every value of an option, or with NULL every operand, in order. at : freed by the caller. */
static bool collect(globs *out, const cli_args *args, const char *option)
{
    cli_word word;
    size_t capacity = cli_operand_count(args);
    for (cli_place place = { 0 }; cli_next_word(&word, &place, args);)
        capacity++;
    out->at = coffer__calloc(capacity + 1, sizeof *out->at);
    for (cli_place place = { 0 }; out->at && cli_next_word(&word, &place, args);)
        if (word.option ? option && strcmp(word.option, option) == 0 : !option)
            out->at[out->count++] = word.value;
    return out->at != NULL;
}

static int parse(pack_job *job)
{
    static const coffer_dtype casts[] = { COFFER_DTYPE_NONE, COFFER_DTYPE_F16, COFFER_DTYPE_BF16,
                                          COFFER_DTYPE_F32 };
    static const uint32_t alignments[] = { 64, 4096, 2U << 20 };
    const cli_args *args = job->args;
    coffer_mcf_pack_opts *opts = &job->opts;
    globs operands = { 0 };
    uint64_t threads;
    if (!cli_number(&threads, args, "threads", 0, 1, 1024) ||
        !cli_size(&opts->max_file_bytes, args, "max-file", 0))
        return CLI_USAGE;
    if (!collect(&operands, args, NULL) || !collect(&job->include, args, "include") ||
        !collect(&job->exclude, args, "exclude")) {
        coffer__free(operands.at);
        return cli_usage(args, "out of memory");
    }
    job->inputs = operands.at;
    job->input_count = operands.count - 1;
    job->output = operands.at[operands.count - 1];
    opts->cast = casts[cli_choice(args, "cast", 0)];
    opts->align = alignments[cli_choice(args, "align", 0)];
    opts->include = job->include.at;
    opts->include_count = job->include.count;
    opts->exclude = job->exclude.at;
    opts->exclude_count = job->exclude.count;
    opts->no_dedup = cli_has(args, "no-dedup");
    opts->no_checksums = cli_has(args, "no-checksums");
    opts->no_files = cli_has(args, "no-files");
    opts->allow_damaged = cli_choice(args, "damaged", 0) == 1;
    opts->overwrite = cli_has(args, "force");
    opts->model_name = cli_value(args, "name");
    opts->threads = (uint32_t)threads;
    return CLI_OK;
}

/* With several inputs the text names the one at fault. Shows the path that the user gave instead. */
static int fail(const pack_job *job, const coffer_error *err)
{
    bool named = job->input_count > 1 && err->subject == COFFER_SUBJECT_OTHER;
    for (size_t i = 0; named && i < job->input_count; i++) {
        const char *slash = strrchr(job->inputs[i], '/'), *name = slash ? slash + 1 : job->inputs[i];
        size_t len = strlen(name);
        coffer_error own = *err;
        if (!len || strncmp(err->text, name, len) != 0 || strncmp(err->text + len, ": ", 2) != 0)
            continue;
        memmove(own.text, err->text + len + 2, strlen(err->text + len + 2) + 1);
        own.subject = COFFER_SUBJECT_INPUT;
        return cli_fail(job->inputs[i], &own, NULL);
    }
    return cli_fail_between(named ? NULL : cli_operand(job->args, 0), job->output, err, NULL);
}

/* Lists the files of a folder that are not in the model. */
static void print_left_out(const coffer_node *files)
{
    const coffer_node *list = coffer_node_find(files, "left_out");
    for (const coffer_node *file = coffer_node_first(list); file; file = coffer_node_next(file)) {
        size_t len;
        const char *name = coffer_node_get_text(coffer_node_find(file, "name"), &len);
        term_text size;
        fputs("  left out: ", stdout);
        term_print_text(stdout, name, len, 0);
        printf(", %s: %s\n", term_bytes(size, coffer_node_get_u64(coffer_node_find(file, "size"))),
               coffer_node_get_text(coffer_node_find(file, "reason"), NULL));
    }
    if (coffer_node_count(list) > 0) {
        term_text found, packed;
        printf("  files found: %s, packed: %s, left out: %zu\n",
               term_count(found, coffer_node_get_u64(coffer_node_find(files, "found"))),
               term_count(packed, coffer_node_get_u64(coffer_node_find(files, "packed"))),
               coffer_node_count(list));
    }
}

static int report(const pack_job *job)
{
    const coffer_node *files = coffer_node_find(job->packed, "files");
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = NULL;
    coffer_mcf *model = NULL;
    coffer_node *root = NULL;
    coffer_status status = coffer_source_open(&src, job->output, NULL, &err);
    int result = CLI_OK;
    if (!status)
        status = coffer_mcf_open(&model, src, NULL, &err);
    if (!status)
        status = coffer_node_new(&root, &err);
    if (status) {
        result = cli_fail(job->output, &err, NULL);
    } else if (cli_has(job->args, "json")) {
        coffer_node_add_text(root, "file", job->output);
        coffer_node_add_text(root, "format", "mcf");
        coffer_node_add_u64(root, "size", coffer_source_size(src), COFFER_UNIT_BYTES);
        coffer_node_add_u64(root, "tensors", coffer_mcf_tensor_count(model), COFFER_UNIT_NONE);
        coffer_node_add_u64(root, "sections", coffer_mcf_section_count(model), COFFER_UNIT_NONE);
        coffer_node_add_copy(root, "files", files);
        cli_add_notes(root, job->opts.notes);
        result = cli_print_json(stdout, root);
    } else {
        term_text tensors, sections, size;
        const char *output = job->output ? job->output : "";
        term_print_text(stdout, output, strlen(output), 0);
        printf(": tensors: %s, sections: %s, %s\n", term_count(tensors, coffer_mcf_tensor_count(model)),
               term_count(sections, coffer_mcf_section_count(model)),
               term_bytes(size, coffer_source_size(src)));
        print_left_out(files);
        cli_print_notes(output, job->opts.notes);
    }
    coffer_node_free(root);
    coffer_mcf_close(model);
    coffer_source_close(src);
    const coffer_node *complete = files ? coffer_node_find(files, "complete") : NULL;
    return complete && !coffer_node_get_bool(complete) ? cli_worse(result, CLI_FINDINGS) : result;
}

static int run(const cli_args *args, coffer_source *src)
{
    (void)src;
    pack_job job = { .args = args, .opts = COFFER_MCF_PACK_OPTS_INIT };
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    int result = parse(&job);
    if (!result) {
        term_progress_start(&bar, "packing", NULL);
        job.opts.progress = &bar.progress;
        coffer_status status = coffer_report_new(&job.opts.notes, 0, &err);
        if (!status)
            status = coffer_node_new(&job.packed, &err);
        job.opts.report = job.packed;
        if (!status)
            status = coffer_mcf_pack(job.output, job.inputs, job.input_count, &job.opts, &err);
        term_progress_end(&bar);
        result = !status ? cli_worse(report(&job), cli_report_damage(job.output)) : fail(&job, &err);
    }
    coffer_node_free(job.packed);
    coffer_report_free(job.opts.notes);
    coffer__free(job.inputs);
    coffer__free(job.include.at);
    coffer__free(job.exclude.at);
    return result;
}

const cli_format_verb cli_mcf_pack = {
    .format = "mcf",
    .verb = "pack",
    .options = options,
    .examples =
        "  coffer pack folder/ model.mcf                     # a Hugging Face folder, with its tokenizer\n"
        "  coffer pack folder/ half.mcf --cast bf16          # float tensors as bfloat16\n"
        "  coffer pack part1.safetensors part2.safetensors config.json model.mcf\n"
        "  coffer pack folder/ text.mcf --exclude 'vision.*' --align 4K\n",
    .run = run,
};
