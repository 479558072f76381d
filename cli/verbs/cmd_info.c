/* info: a summary of a file. */
#include "base/fail.h"
#include "verbs.h"

#include "files.h"
#include "record/parts.h"
#include "term.h"

#include <string.h>

typedef struct file_info {
    const char *path;
    coffer_file *file;
    coffer_node *root;
    bool verbose;
    coffer_error err; /* status 0 when all could be read */
} file_info;

static void add_error(coffer_node *root, const coffer_error *err)
{
    coffer_node *map = coffer_node_add_map(root, "error");
    coffer_node_add_text(map, "code", coffer_status_name(err->status));
    coffer_node_add_offset(map, "offset", err->offset);
    coffer_node_add_text(map, "text", err->text);
}

static int print_as_json(const file_info *info)
{
    if (info->err.status)
        add_error(info->root, &info->err);
    int status = cli_print_json(stdout, info->root);
    if (info->err.status)
        status = cli_worse(status, cli_fail(info->path, &info->err, cli_file_hint(info->file)));
    return status;
}

static int print_for_people(const file_info *info)
{
    term_text size;
    fputs(term_on(stdout, TERM_BOLD), stdout);
    term_print_text(stdout, info->path, strlen(info->path), 0);
    printf("%s: %s", term_off(stdout), coffer_file_title(info->file));
    if (coffer_file_source(info->file) || coffer_file_tensors(info->file))
        printf(", %s\n", term_bytes(size, coffer_file_size(info->file)));
    else
        putchar('\n'); /* a folder whose model cannot be read */
    /* The first line has file, format and size. */
    const coffer_node *first = coffer_node_next(coffer_node_find(info->root, "size"));
    if (info->verbose)
        cli_print_nodes(stdout, first);
    else
        cli_print_facts(stdout, first);
    coffer_source *src = coffer_file_source(info->file);
    if (src && coffer_source_interrupted_update(src))
        printf("  %shint: 'coffer repair' rolls the update back%s\n", term_on(stdout, TERM_DIM),
               term_off(stdout));
    return info->err.status ? cli_fail(info->path, &info->err, cli_file_hint(info->file)) : CLI_OK;
}

static void describe(file_info *info, const coffer_describe_opts *how)
{
    coffer_describe_opts opts = *how;
    term_progress bar;
    /* Everything but the hash is read at once. */
    if (opts.hash) {
        term_progress_start(&bar, "hashing", NULL);
        opts.progress = &bar.progress;
    }
    coffer__ignore(coffer_file_describe(info->root, info->file, &opts, &info->err)); /* err has the status */
    if (opts.hash)
        term_progress_end(&bar);
}

/* stored : where the file is, when that is not `path`. */
static int show(const char *path, const char *stored, const coffer_describe_opts *how, bool json)
{
    file_info info = { .path = path, .verbose = how->verbose, .err = COFFER_ERROR_INIT };
    int status = CLI_OK;
    if (coffer_file_open(&info.file, stored, &info.err) != COFFER_OK)
        return cli_fail(path, &info.err, cli_open_hint(&info.err));
    if (coffer_node_new(&info.root, &info.err) != COFFER_OK) {
        status = cli_fail(path, &info.err, NULL);
        goto out;
    }
    coffer_node_add_text(info.root, "file", path);
    coffer_node_add_text(info.root, "format", coffer_file_kind(info.file));
    coffer_node_add_u64(info.root, "size", coffer_file_size(info.file), COFFER_UNIT_BYTES);
    describe(&info, how);
    if (coffer_node_status(info.root, &info.err) != COFFER_OK) {
        status = cli_fail(path, &info.err, NULL);
        goto out;
    }
    status = json ? print_as_json(&info) : print_for_people(&info);
    if (coffer_node_find(info.root, "damage"))
        status = cli_worse(status, CLI_FINDINGS);
out:
    coffer_node_free(info.root);
    coffer_file_close(info.file);
    return status;
}

/* A recording that runs, or was killed, is described from a copy of its parts: looking changes nothing. */
static int show_any(const char *path, const coffer_describe_opts *how, bool json)
{
    cli_parts parts;
    int status = cli_parts_copy(&parts, path);
    if (status)
        return status;
    bool copied = parts.path;
    status = show(path, copied ? parts.path : path, how, json);
    cli_parts_remove(&parts);
    if (copied && !json)
        printf("  %s%s%s\n", term_on(stdout, TERM_DIM),
               parts.running ? "note: the recording is running; this is what its part files have so far"
                             : "hint: the recording was killed; 'coffer repair' makes the file of its parts",
               term_off(stdout));
    return parts.running && status == CLI_FINDINGS ? CLI_OK : status;
}

static int run(const cli_args *args)
{
    coffer_describe_opts how = COFFER_DESCRIBE_OPTS_INIT;
    uint64_t threads;
    bool json = cli_has(args, "json");
    int status = CLI_OK;
    if (!cli_number(&how.generation, args, "generation", 0, 1, UINT64_MAX) ||
        !cli_number(&threads, args, "threads", 0, 1, 1024))
        return CLI_USAGE;
    how.hash = cli_has(args, "hash");
    how.threads = (uint32_t)threads;
    how.verbose = cli_has(args, "verbose");
    for (size_t i = 0; i < cli_operand_count(args); i++) {
        if (i > 0 && !json)
            putchar('\n');
        status = cli_worse(status, show_any(cli_operand(args, i), &how, json));
    }
    return status;
}

static const cli_option options[] = {
    { "generation", 'g', "N", NULL, "describe generation N, for formats with generations: see 'coffer log'" },
    { "hash", 0, NULL, NULL, "add a hash of the content, independent of the layout; reads the whole file" },
    { "threads", 0, "N", NULL, "number of threads for --hash", "one per core" },
    { "verbose", 'v', NULL, NULL, "add where the parts of the file are, and other internals" },
    { "json", 0, NULL, NULL, "one line of JSON per file" },
    { 0 },
};

const cli_verb cli_verb_info = {
    .name = "info",
    .usage = "FILE…",
    .summary = "describe a file",
    .pages = true,
    .group = CLI_GROUP_LOOK,
    .description = "Recognizes the format by the file's content and sums up what it holds. Of Coffer's own "
                   "formats and of "
                   "models, only the headers are read, however large the file is; profiles and tables of "
                   "other programs are "
                   "read whole. '-' is standard input.",
    .examples = "  coffer info scan.mscan\n"
                "  coffer info --json *.mscan | jq .records   # one line of JSON per file\n"
                "  coffer info m.pycauset --generation 3      # as it was then\n",
    .options = options,
    .min_operands = 1,
    .max_operands = SIZE_MAX,
    .run = run,
};
