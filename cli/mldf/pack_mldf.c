/* pack, into a training set. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "mldf/mldf_verbs.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

static const cli_option options[] = {
    { "kind", 0, "KIND", "images|audio|text|arrays|webdataset|manifest|video", "kind of the input",
      "detected" },
    { "exclude", 0, "GLOB", NULL,
      "leave out the files of a folder that match, by name or by path; repeatable" },
    { "strict", 0, NULL, NULL,
      "fail if a file would be left out, or if only a part of it can be stored (first frame, first page)" },
    { "decode", 0, NULL, NULL,
      "decode every picture and sound to find damage inside; without it they are only checked for "
      "completeness" },
    { "store-damaged", 0, NULL, NULL,
      "store pictures that are incomplete or cannot be decoded instead of failing" },
    { "follow-links", 0, NULL, NULL, "pack the files that symbolic links in a folder lead to" },
    { "root", 0, "FOLDER", NULL, "folder that the paths in a manifest are relative to",
      "that of the manifest" },
    { "labels", 0, "FIELD", NULL,
      "number the values of a text column of a manifest, and store the numbers in a field \"label\"" },
    { "jpeg-quality", 0, "N", NULL, "encode pictures again as JPEG of quality 1 to 100" },
    { "max-size", 0, "N", NULL, "scale larger pictures down so that no side is longer than N pixels" },
    { "raw", 0, NULL, NULL, "store decoded pixels: a larger file, no decoding during training" },
    { "zstd", 0, NULL, NULL, "compress texts, arrays and other values that are not compressed yet" },
    { "zstd-level", 0, "N", NULL, "compression level, 1 to 22", "3" },
    { "dictionary", 0, "SIZE", NULL,
      "with --zstd: train a dictionary of at most SIZE, such as 110K, for each text field" },
    { "dedup", 0, NULL, NULL, "store equal values once" },
    { "encrypt", 0, NULL, NULL, "encrypt every value with the key" },
    { "keep-going", 'k', NULL, NULL, "skip files that cannot be read, and report them" },
    { "resume", 0, NULL, NULL, "continue an interrupted pack of the same input" },
    { "restart", 0, NULL, NULL, "discard an interrupted pack and start again" },
    { "page-size", 0, "SIZE", MLDF_PAGE_SIZES, "page size of the file", "4K for less than 64M, else 2M" },
    { "descriptor-stride", 0, "N", "208|204",
      "size of a field descriptor; 204 for programs based on the tutorial", "208" },
    { "no-checksums", 0, NULL, NULL, "do not store the checksums that 'check --full' compares" },
    { "threads", 0, "N", NULL, "number of threads", "one per core" },
    { "force", 'f', NULL, NULL, "overwrite OUT if it exists" },
    { "json", 0, NULL, NULL,
      "one JSON object: file, format, size, samples, fields, classes, resumed, found, packed, skipped, "
      "complete, "
      "left_out, notes" },
    CLI_KEY_OPTION,
    { 0 },
};

typedef struct pack_job {
    const cli_args *args;
    const char **inputs, **exclude;
    size_t input_count, exclude_count;
    const char *output;
    coffer_mldf_pack_opts opts;
    coffer_mldf_writer_opts write;
    cli_key key;
    term_progress bar;
    coffer_progress progress;
} pack_job;

static int parse(pack_job *job)
{
    const cli_args *args = job->args;
    coffer_mldf_pack_opts *opts = &job->opts;
    uint64_t quality, max_size, dictionary;
    int result = mldf_write_opts(&job->write, args, &job->key, NULL);
    if (result)
        return result;
    if (!cli_number(&quality, args, "jpeg-quality", 0, 1, 100) ||
        !cli_number(&max_size, args, "max-size", 0, 1, 65535) ||
        !cli_size(&dictionary, args, "dictionary", 0))
        return CLI_USAGE;
    if (cli_has(args, "dictionary") && (dictionary < 256 || dictionary > 16U << 20))
        return cli_usage(args, "--dictionary must be from 256 bytes to 16M; 110K is usual");
    if (dictionary && !cli_has(args, "zstd"))
        return cli_usage(args, "--dictionary requires --zstd");
    if (cli_has(args, "raw") && quality)
        return cli_usage(args, "--raw and --jpeg-quality exclude each other");
    if (cli_has(args, "resume") && cli_has(args, "restart"))
        return cli_usage(args, "--resume and --restart exclude each other");
    if (cli_has(args, "encrypt") && !job->key.at)
        return cli_usage(
            args, "--encrypt needs a key: --key-file FILE or the environment variable COFFER_KEY; 'head "
                  "-c 32 /dev/urandom >FILE' makes one");
    opts->write = &job->write;
    opts->kind =
        cli_has(args, "kind") ? (coffer_dataset_kind)(cli_choice(args, "kind", 0) + 1) : COFFER_DATASET_AUTO;
    opts->jpeg_quality = (uint32_t)quality;
    opts->max_size = (uint32_t)max_size;
    opts->raw = cli_has(args, "raw");
    opts->zstd = cli_has(args, "zstd");
    opts->dictionary = (uint32_t)dictionary;
    opts->encrypt = cli_has(args, "encrypt");
    opts->keep_going = cli_has(args, "keep-going");
    opts->resume = cli_has(args, "resume");
    opts->restart = cli_has(args, "restart");
    opts->strict = cli_has(args, "strict");
    opts->decode = cli_has(args, "decode");
    opts->store_damaged = cli_has(args, "store-damaged");
    opts->follow_links = cli_has(args, "follow-links");
    opts->root = cli_value(args, "root");
    opts->labels = cli_value(args, "labels");
    opts->exclude = job->exclude;
    opts->exclude_count = job->exclude_count;
    return CLI_OK;
}

/* Ctrl-C stops between two samples; packed samples are kept for --resume. */
static int step(void *context, uint64_t done, uint64_t total)
{
    pack_job *job = context;
    return job->bar.progress.step(job->bar.progress.context, done, total) || cli_signal_waits();
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool has_partial(const pack_job *job)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    struct stat st;
    coffer__buffer_printf(&path, "%s.partial", job->output);
    bool found = stat(coffer__buffer_text(&path), &st) == 0;
    coffer__buffer_free(&path);
    return found;
}

/* A refused input has to change before another try, so a partial pack of it is useless. */
static void drop_useless(const pack_job *job, coffer_status status)
{
    bool refused = coffer__is_about_file(status) || status == COFFER_E_UNSUPPORTED ||
                   status == COFFER_E_INVALID_ARGUMENT || status == COFFER_E_NOT_FOUND;
    if (refused && !cli_has(job->args, "resume"))
        coffer__ignore(coffer_mldf_writer_drop_partial(job->output, NULL));
}

/* For a failure of one sample, which the user may want to skip. */
static const char *hint_for_sample(const pack_job *job, const coffer_error *err)
{
    bool about_input = coffer__is_about_file(err->status) || err->status == COFFER_E_IO ||
                       err->status == COFFER_E_NOT_FOUND || err->status == COFFER_E_UNSUPPORTED;
    if (!about_input || cli_has(job->args, "keep-going"))
        return "";
    if (has_partial(job))
        return "--resume continues there once it can be read; --resume --keep-going skips it";
    if (err->status == COFFER_E_UNSAFE_PATH)
        return "--keep-going skips what is not a file; --follow-links packs what symbolic links lead to";
    return err->status == COFFER_E_TRUNCATED || err->status == COFFER_E_BAD_CHECKSUM
               ? "--keep-going skips what is damaged, --store-damaged stores it as it is"
               : "--keep-going skips what cannot be read";
}

/* The usual hints recommend 'check' and 'repair', which do not read files of other programs; and a folder is
 * not a mistake here. */
static const char *hint_for(const pack_job *job, const char *culprit, const coffer_error *err, bool of_sample)
{
    bool is_left = has_partial(job);
    if (err->status == COFFER_E_EXISTS)
        return is_left ? "--resume continues it, --restart discards it" : NULL;
    if (of_sample)
        return hint_for_sample(job, err);
    if (is_left && err->status == COFFER_E_INCONSISTENT)
        return "--restart discards what was left";
    if (is_left)
        return "packed samples were kept: repeat the command with --resume";
    if (err->status == COFFER_E_UNSAFE_PATH)
        return "a set contains only plain files of the input folder";
    if (err->status == COFFER_E_NOT_FOUND && cli_has(job->args, "kind"))
        return "without --kind, the most common kind is chosen";
    if (cli_has(job->args, "strict") && err->status == COFFER_E_UNSUPPORTED)
        return "--exclude GLOB leaves files out on purpose; without --strict they are left out and reported";
    if (err->status == COFFER_E_NOT_RECOGNISED)
        return "use 'coffer convert' for single files of other formats";
    return coffer__is_about_file(err->status) || is_folder(culprit) ? "" : NULL;
}

static int fail(const pack_job *job, const coffer_node *packed, const coffer_error *err)
{
    bool named = job->input_count > 1 && err->subject == COFFER_SUBJECT_OTHER;
    const char *about = err->subject == COFFER_SUBJECT_OUTPUT ? job->output : job->inputs[0];
    drop_useless(job, err->status);
    const char *hint = hint_for(job, about, err, coffer_node_find(packed, "failed") != NULL);
    return cli_fail(named ? NULL : about, err, hint);
}

static void print_left_out(const coffer_node *list, uint64_t skipped)
{
    enum { SHOWN = 10 };
    uint64_t shown = 0;
    for (const coffer_node *node = list ? coffer_node_first(list) : NULL; node && shown < SHOWN;
         node = coffer_node_next(node), shown++) {
        size_t len;
        const char *sample = coffer_node_get_text(coffer_node_find(node, "sample"), &len);
        fputs("    ", stdout);
        term_print_text(stdout, sample, len, 0);
        fputs(": ", stdout);
        const char *why = coffer_node_get_text(coffer_node_find(node, "text"), &len);
        term_print_text(stdout, why, len, 0);
        putchar('\n');
    }
    if (shown > 0 && shown < skipped)
        printf("    … and %" PRIu64 " more (--json lists all)\n", skipped - shown);
}

static void print_changed(const coffer_node *changed)
{
    size_t len;
    const char *name = changed ? coffer_node_get_text(changed, &len) : NULL;
    if (!name)
        return;
    printf("  %snote%s     ", term_on(stdout, TERM_YELLOW), term_off(stdout));
    term_print_text(stdout, name, len, 0);
    puts(" has changed since the interruption: it and what follows was packed again");
}

/* "  left out 5 of 17 files" */
static void print_account(const coffer_node *packed)
{
    uint64_t skipped = coffer_node_get_u64(coffer_node_find(packed, "skipped"));
    term_text out, found;
    if (skipped == 0)
        return;
    printf("  %sleft out%s %s of %s %s\n", term_on(stdout, TERM_YELLOW), term_off(stdout),
           term_count(out, skipped),
           term_count(found, coffer_node_get_u64(coffer_node_find(packed, "found"))),
           coffer_node_get_text(coffer_node_find(packed, "unit"), NULL));
    print_left_out(coffer_node_find(packed, "left_out"), skipped);
}

static void print_notes(const coffer_node *packed)
{
    const coffer_node *notes = coffer_node_find(packed, "notes");
    term_text count;
    for (const coffer_node *note = notes ? coffer_node_first(notes) : NULL; note;
         note = coffer_node_next(note))
        printf("  %snote%s     %s %s\n", term_on(stdout, TERM_YELLOW), term_off(stdout),
               term_count(count, coffer_node_get_u64(coffer_node_find(note, "count"))),
               coffer_node_get_text(coffer_node_find(note, "text"), NULL));
    const coffer_node *kept = coffer_node_find(packed, "kept_as_text");
    size_t len;
    const char *name = kept ? coffer_node_get_text(kept, &len) : NULL;
    if (!name)
        return;
    printf("  %snote%s     ", term_on(stdout, TERM_YELLOW), term_off(stdout));
    term_print_text(stdout, name, len, 0);
    puts(" lists files but is stored as text: some are missing or of different types");
}

static void print_text(const coffer_node *root, const coffer_node *packed)
{
    uint64_t resumed = coffer_node_get_u64(coffer_node_find(packed, "resumed"));
    uint64_t classes = coffer_node_get_u64(coffer_node_find(packed, "classes"));
    term_text count;
    mldf_print_set(root);
    print_changed(coffer_node_find(packed, "changed_since"));
    if (classes)
        printf("  classes  %s\n", term_count(count, classes));
    if (resumed)
        printf("  resumed  %s samples were there already\n", term_count(count, resumed));
    print_account(packed);
    print_notes(packed);
}

/* Lists of maps with texts and numbers. */
static void add_list(coffer_node *root, const coffer_node *packed, const char *name)
{
    const coffer_node *from = coffer_node_find(packed, name);
    if (!from || !coffer_node_first(from))
        return;
    coffer_node *list = coffer_node_add_list(root, name);
    for (const coffer_node *node = coffer_node_first(from); node; node = coffer_node_next(node)) {
        coffer_node *map = coffer_node_add_map(list, NULL);
        for (const coffer_node *member = coffer_node_first(node); member; member = coffer_node_next(member)) {
            size_t len;
            if (strcmp(coffer_node_get_name(member), "count") == 0) {
                coffer_node_add_u64(map, "count", coffer_node_get_u64(member), COFFER_UNIT_NONE);
                continue;
            }
            const char *text = coffer_node_get_text(member, &len);
            coffer_node_add_text_len(map, coffer_node_get_name(member), text, len);
        }
    }
}

/* The numbers of the packer after samples and fields. */
static void add_rest(coffer_node *root, const coffer_node *packed)
{
    static const char *const names[] = { "classes", "resumed", "found", "packed", "skipped" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        coffer_node_add_u64(root, names[i], coffer_node_get_u64(coffer_node_find(packed, names[i])),
                            COFFER_UNIT_NONE);
    const coffer_node *changed = coffer_node_find(packed, "changed_since");
    if (changed)
        coffer_node_add_text(root, "changed_since", coffer_node_get_text(changed, NULL));
    coffer_node_add_text(root, "unit", coffer_node_get_text(coffer_node_find(packed, "unit"), NULL));
    coffer_node_add_bool(root, "complete", coffer_node_get_bool(coffer_node_find(packed, "complete")));
    const coffer_node *kept = coffer_node_find(packed, "kept_as_text");
    if (kept)
        coffer_node_add_text(root, "kept_as_text", coffer_node_get_text(kept, NULL));
    add_list(root, packed, "left_out");
    add_list(root, packed, "notes");
}

static void describe(coffer_node *root, const pack_job *job, const coffer_node *packed)
{
    coffer_node_add_text(root, "file", job->output);
    coffer_node_add_text(root, "format", "mldf");
    coffer_node_add_u64(root, "size", coffer_node_get_u64(coffer_node_find(packed, "size")),
                        COFFER_UNIT_BYTES);
    coffer_node_add_u64(root, "samples", coffer_node_get_u64(coffer_node_find(packed, "samples")),
                        COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "fields", coffer_node_get_u64(coffer_node_find(packed, "fields")),
                        COFFER_UNIT_NONE);
}

static int report(const pack_job *job, const coffer_node *packed)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    int result = CLI_OK;
    coffer_status status = coffer_node_new(&root, &err);
    if (!status)
        describe(root, job, packed);
    if (!status && cli_has(job->args, "json")) {
        add_rest(root, packed);
        result = cli_print_json(stdout, root);
    } else if (!status) {
        print_text(root, packed);
        if (!coffer_node_get_bool(coffer_node_find(packed, "complete")) &&
            coffer_node_get_u64(coffer_node_find(packed, "skipped")))
            puts("  --exclude GLOB and --kind leave files out on purpose; with --strict, pack fails instead");
    } else {
        result = cli_fail(job->output, &err, NULL);
    }
    coffer_node_free(root);
    return result || coffer_node_get_bool(coffer_node_find(packed, "complete")) ? result : CLI_FINDINGS;
}

static int pack(pack_job *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *packed = NULL;
    coffer_status status = coffer_node_new(&packed, &err);
    term_progress_start(&job->bar, "packing", "samples");
    job->progress = (coffer_progress){ sizeof(coffer_progress), step, job };
    job->opts.progress = &job->progress;
    cli_hold_signals();
    if (!status)
        status = coffer_mldf_pack(packed, job->inputs, job->input_count, job->output, &job->opts, &err);
    term_progress_end(&job->bar);
    int result = status ? fail(job, packed, &err) : report(job, packed);
    if (status)
        cli_release_signals();
    else
        cli_finish_signals();
    coffer_node_free(packed);
    return result;
}

static int read_excludes(pack_job *job)
{
    cli_place place = { 0 };
    cli_word word;
    size_t words = 0;
    for (cli_place count = { 0 }; cli_next_word(&word, &count, job->args);)
        words++;
    job->exclude = coffer__calloc(words + 1, sizeof *job->exclude);
    if (!job->exclude)
        return cli_usage(job->args, "out of memory");
    while (cli_next_word(&word, &place, job->args))
        if (word.option && strcmp(word.option, "exclude") == 0)
            job->exclude[job->exclude_count++] = word.value;
    return CLI_OK;
}

static int run(const cli_args *args, coffer_source *src)
{
    pack_job job = { .args = args, .opts = COFFER_MLDF_PACK_OPTS_INIT };
    (void)src;
    job.input_count = cli_operand_count(args) - 1;
    job.output = cli_operand(args, job.input_count);
    int result = cli_key_read(&job.key, args);
    if (result)
        return result;
    job.inputs = coffer__calloc(job.input_count, sizeof *job.inputs);
    for (size_t i = 0; job.inputs && i < job.input_count; i++)
        job.inputs[i] = cli_operand(args, i);
    result = read_excludes(&job);
    if (!result)
        result = job.inputs ? parse(&job) : cli_usage(args, "out of memory");
    if (!result)
        result = pack(&job);
    coffer__free(job.inputs);
    coffer__free(job.exclude);
    cli_key_wipe(&job.key);
    return result;
}

const cli_format_verb cli_mldf_pack = {
    .format = "mldf",
    .verb = "pack",
    .options = options,
    .examples =
        "  coffer pack pictures/ train.mldf                  # pictures/CLASS/NAME.jpg: folders are labels\n"
        "  coffer pack pictures/ small.mldf --max-size 256 --jpeg-quality 90\n"
        "  coffer pack shard-*.tar train.mldf                # WebDataset shards\n"
        "  coffer pack captions.jsonl train.mldf --zstd      # a line is a sample; files it names are read "
        "in\n"
        "  coffer pack secret/ secret.mldf --encrypt --key-file key\n",
    .run = run,
};
