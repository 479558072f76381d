/* unpack, for model containers: the folder that a model was packed from. */
#include "coffer/tensors.h"
#include "mcf/mcf_verbs.h"
#include "term.h"

#include <string.h>

static const cli_option options[] = {
    { "force", 'f', NULL, NULL, "overwrite files that exist in FOLDER" },
    { "json", 0, NULL, NULL, "one JSON object: file, folder, files (name, size, exact, reason), exact" },
    { 0 },
};

/* A file that differs from the original is a finding. */
static int print_for_people(const char *folder, const coffer_node *root)
{
    const coffer_node *files = coffer_node_find(root, "files");
    term_text count, exact;
    int result = CLI_OK;
    term_print_text(stdout, folder, strlen(folder), 0);
    printf(": files: %s, byte for byte: %s\n", term_count(count, coffer_node_count(files)),
           term_count(exact, coffer_node_get_u64(coffer_node_find(root, "exact"))));
    for (const coffer_node *file = coffer_node_first(files); file; file = coffer_node_next(file)) {
        size_t len, reason_len;
        const char *name = coffer_node_get_text(coffer_node_find(file, "name"), &len);
        const char *reason = coffer_node_get_text(coffer_node_find(file, "reason"), &reason_len);
        if (coffer_node_get_bool(coffer_node_find(file, "exact")))
            continue;
        fputs("  not as it was: ", stdout);
        term_print_text(stdout, name, len, 0);
        fputs(": ", stdout);
        term_print_text(stdout, reason, reason_len, 0);
        putchar('\n');
        result = CLI_FINDINGS;
    }
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    const char *path = cli_operand(args, 0), *folder = cli_operand(args, 1);
    coffer_mcf_unpack_opts opts = COFFER_MCF_UNPACK_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    term_progress bar;
    (void)src;
    if (coffer_node_new(&root, &err))
        return cli_fail(path, &err, NULL);
    coffer_node_add_text(root, "file", path);
    coffer_node_add_text(root, "folder", folder);
    opts.overwrite = cli_has(args, "force");
    term_progress_start(&bar, "unpacking", NULL);
    opts.progress = &bar.progress;
    coffer_status status = coffer_mcf_unpack(root, folder, path, &opts, &err);
    term_progress_end(&bar);
    int result;
    if (status)
        result =
            cli_fail_between(path, folder, &err, status == COFFER_E_EXISTS ? "--force overwrites it" : NULL);
    else if (!cli_has(args, "json"))
        result = print_for_people(folder, root);
    else
        result = cli_print_json(stdout, root);
    if (!status && !result &&
        coffer_node_get_u64(coffer_node_find(root, "exact")) <
            coffer_node_count(coffer_node_find(root, "files")))
        result = CLI_FINDINGS;
    coffer_node_free(root);
    return result;
}

const cli_format_verb cli_mcf_unpack = {
    .format = "mcf",
    .verb = "unpack",
    .options = options,
    .examples = "  coffer unpack model.mcf folder/           # config, tokenizer, other files and weights\n"
                "  coffer unpack small.mcf folder/ --json    # which files are not byte for byte\n",
    .run = run,
};
