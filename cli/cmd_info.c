/* What is in a file. */
#include "verbs.h"

#include "base/report.h"
#include "term.h"

#include <string.h>

typedef struct file_info {
    const char *path;
    coffer_source *src;
    const coffer_format *format; /* NULL when not recognised */
    coffer_node *root;
    coffer_error err; /* status 0 when all could be read */
} file_info;

static void add_error(coffer_node *root, const coffer_error *err)
{
    coffer_node *map = coffer__node_map(root, "error");
    coffer__node_text(map, "code", coffer_status_name(err->status));
    if (err->offset == COFFER_OFFSET_NONE)
        coffer__node_null(map, "offset");
    else
        coffer__node_u64(map, "offset", err->offset, COFFER_UNIT_OFFSET);
    coffer__node_text(map, "text", err->text);
}

static int print_as_json(const file_info *info)
{
    if (info->err.status)
        add_error(info->root, &info->err);
    int status = cli_print_json(stdout, info->root);
    if (info->err.status)
        status = cli_worse(status, cli_fail(info->path, &info->err, NULL));
    return status;
}

static int print_for_people(const file_info *info)
{
    term_text size;
    fputs(term_on(stdout, TERM_BOLD), stdout);
    term_print_text(stdout, info->path, strlen(info->path), 0);
    printf("%s: %s, %s\n", term_off(stdout),
           info->format ? coffer_format_title(info->format) : "format not recognised",
           term_bytes(size, coffer_source_size(info->src)));
    /* File, format and size stand in the first line. */
    cli_print_nodes(stdout, coffer_node_next(coffer_node_find(info->root, "size")));
    if (coffer_source_interrupted_update(info->src))
        printf("  %shint: 'coffer repair' rolls the update back%s\n", term_on(stdout, TERM_DIM),
               term_off(stdout));
    return info->err.status ? cli_fail(info->path, &info->err, NULL) : CLI_OK;
}

static int show(const char *path, bool json)
{
    file_info info = { .path = path, .err = COFFER_ERROR_INIT };
    int status = cli_open(&info.src, path);
    if (status)
        return status;
    if (coffer_node_new(&info.root, &info.err) != COFFER_OK) {
        status = cli_fail(path, &info.err, NULL);
        goto out;
    }
    bool known = coffer_identify(&info.format, info.src, &info.err) == COFFER_OK;
    coffer__node_text(info.root, "file", path);
    coffer__node_text(info.root, "format", known ? coffer_format_name(info.format) : NULL);
    coffer__node_u64(info.root, "size", coffer_source_size(info.src), COFFER_UNIT_BYTES);
    if (known)
        coffer_describe(info.root, info.src, NULL, &info.err);
    if (coffer__node_status(info.root, &info.err) != COFFER_OK) {
        status = cli_fail(path, &info.err, NULL);
        goto out;
    }
    status = json ? print_as_json(&info) : print_for_people(&info);
    if (coffer_node_find(info.root, "damage"))
        status = cli_worse(status, CLI_FINDINGS);
out:
    coffer_node_free(info.root);
    coffer_source_close(info.src);
    return status;
}

static int run(const cli_args *args)
{
    bool json = cli_has(args, "json");
    int status = CLI_OK;
    for (size_t i = 0; i < cli_operand_count(args); i++) {
        if (i > 0 && !json)
            putchar('\n');
        status = cli_worse(status, show(cli_operand(args, i), json));
    }
    return status;
}

static const cli_option options[] = {
    { "json", 0, NULL, NULL, "one line of JSON per file" },
    { 0 },
};

const cli_verb cli_verb_info = {
    .name = "info",
    .usage = "FILE…",
    .summary = "tell what is in a file",
    .description =
        "Recognises the format by the file's content and sums up what it holds. Only the head of the file is "
        "read, however large it is. '-' is standard input.",
    .examples = "  coffer info scan.mscan\n"
                "  coffer info --json *.mscan | jq .records   # one line of JSON per file\n",
    .options = options,
    .min_operands = 1,
    .max_operands = SIZE_MAX,
    .run = run,
};
