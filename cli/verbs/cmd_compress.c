/* Smaller on disk, or as plain as other programs want it; the content stays. */
#include "verbs.h"

#include "term.h"

#include <string.h>

static void print_for_people(const char *written, const coffer_node *root)
{
    const coffer_node *after = coffer_node_find(root, "size_after");
    uint64_t before = coffer_node_get_u64(coffer_node_find(root, "size_before"));
    term_text old_size, new_size;
    term_print_text(stdout, written, strlen(written), 0);
    printf(": %s instead of %s\n", term_bytes(new_size, coffer_node_get_u64(after)),
           term_bytes(old_size, before));
    cli_print_nodes(stdout, coffer_node_next(after));
}

static int run(const cli_args *args)
{
    coffer_compress_opts opts = COFFER_COMPRESS_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    term_progress bar;
    const char *path = cli_operand(args, 0), *output = cli_value(args, "output");
    bool to_stdout = output && cli_is_stream(output);
    uint64_t level;
    bool archive = cli_has(args, "archive");
    if (!cli_number(&level, args, "level", 0, 0, archive ? 19 : 12))
        return CLI_USAGE;
    if (strcmp(path, "-") == 0)
        return cli_usage(args, "a file is compressed where it is: standard input cannot be");
    if (cli_has(args, "plain") && cli_has(args, "level"))
        return cli_usage(args, "--plain and --level exclude each other");
    if (archive && cli_has(args, "plain"))
        return cli_usage(args, "--plain and --archive exclude each other");
    opts.plain = cli_has(args, "plain");
    opts.archive = archive;
    opts.level = (int)level;
    opts.overwrite = cli_has(args, "force");
    opts.drop_extensions = cli_has(args, "drop-extensions");
    opts.progress = &bar.progress;
    term_progress_start(&bar, opts.plain ? "unpacking" : "compressing", NULL);
    coffer_status status = cli_begin_rewrite(&root, path, output, &err);
    if (status == COFFER_OK)
        status = coffer_compress(root, path, output, &opts, &err);
    term_progress_end(&bar);
    int result = CLI_OK;
    if (status != COFFER_OK)
        result = cli_fail_rewriting(args, path, output, &err);
    else if (cli_has(args, "json"))
        result = cli_print_json(to_stdout ? stderr : stdout, root);
    else if (!to_stdout)
        print_for_people(output ? output : path, root);
    coffer_node_free(root);
    return result;
}

static const cli_option options[] = {
    { "output", 'o', "OUT", NULL, "write to OUT and leave FILE unchanged" },
    { "plain", 0, NULL, NULL, "remove the compression, for programs that read only version 1" },
    { "drop-extensions", 0, NULL, NULL,
      "leave out extension events (threads, memory use, objects), which a plain trace cannot have" },
    { "archive", 0, NULL, NULL,
      "write the smallest form, for traces that are kept: a tenth of the size, and faster to analyze" },
    { "level", 0, "N", NULL,
      "0 is fast; 1 to 12 are smaller and slower to write; with --archive 1 to 19 (0 = 9)", "0" },
    { "force", 'f', NULL, NULL, "overwrite OUT if it exists" },
    { "json", 0, NULL, NULL, "one JSON object: file, output, size_before, size_after, events" },
    { 0 },
};

const cli_verb cli_verb_compress = {
    .name = "compress",
    .usage = "FILE",
    .summary = "rewrite a trace in compressed blocks, or plain",
    .group = CLI_GROUP_CHANGE,
    .description =
        "The events and what the file says about them stay byte for byte; only how they are stored "
        "changes. A plain trace that is compressed and made plain again is the file it was. The new file "
        "takes the place of the old one when it is complete, unless -o says where else it goes.\n"
        "An archive has the same events in the smallest form: a few percent of a plain trace. Every verb "
        "reads it, and compress turns it back. Numbers that another program wrote with more bytes than "
        "needed are written with as many as needed.\n"
        "Beside a compressed trace, FILE.idx is written: an index for timelines and moments, made of the "
        "trace. "
        "It may be deleted at any time.",
    .examples = "  coffer compress run.mlyze                    # in place, atomically\n"
                "  coffer compress run.mlyze --level 9 -o small.mlyze\n"
                "  coffer compress run.mlyze --archive          # to keep it\n"
                "  coffer compress run.mlyze --plain -o for-others.mlyze\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
