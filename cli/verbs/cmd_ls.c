/* The entries of a file. */
#include "verbs.h"

#include "any_file.h"
#include "base/report.h"
#include "term.h"

#include <string.h>

/* ---- Order ---- */

typedef struct entry_order {
    const char *column;
    bool reverse;
} entry_order;

static int compare_numbers(double a, double b)
{
    return (a > b) - (a < b);
}

static int compare_texts(const coffer_node *a, const coffer_node *b)
{
    size_t a_len, b_len;
    const char *a_text = coffer_node_get_text(a, &a_len), *b_text = coffer_node_get_text(b, &b_len);
    int order = memcmp(a_text, b_text, a_len < b_len ? a_len : b_len);
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

/* Sizes begin with the largest, everything else with the smallest; what is not there comes last. */
static int compare_entries(const coffer_node *a, const coffer_node *b, const void *context)
{
    const entry_order *wanted = context;
    const coffer_node *left = coffer_node_find(a, wanted->column);
    const coffer_node *right = coffer_node_find(b, wanted->column);
    coffer_node_kind kind = coffer_node_get_kind(left), other = coffer_node_get_kind(right);
    bool reverse = wanted->reverse != (coffer_node_get_unit(left) == COFFER_UNIT_BYTES);
    if (kind == COFFER_NODE_NULL || other == COFFER_NODE_NULL)
        return (kind == COFFER_NODE_NULL) - (other == COFFER_NODE_NULL);
    int order = kind == COFFER_NODE_TEXT
                    ? compare_texts(left, right)
                    : compare_numbers(coffer_node_get_f64(left), coffer_node_get_f64(right));
    return reverse ? -order : order;
}

static int sort_entries(const cli_args *args, coffer_node *root)
{
    const entry_order order = { cli_value(args, "sort"), cli_has(args, "reverse") };
    const coffer_node *entries = coffer_node_find(root, "entries");
    const coffer_node *first = entries ? coffer_node_first(entries) : NULL;
    if (!order.column || !first)
        return CLI_OK;
    const coffer_node *cell = coffer_node_find(first, order.column);
    if (!cell || coffer_node_get_kind(cell) >= COFFER_NODE_LIST)
        return cli_usage(args, "--sort %s: there is no such column to sort by here", order.column);
    coffer__node_sort(root, "entries", compare_entries, &order);
    return CLI_OK;
}

/* ---- Output ---- */

/* How many entries there are, and their bytes, where the list has a column of those. */
static void print_totals(const coffer_node *entries)
{
    uint64_t bytes = 0;
    bool any = false;
    for (const coffer_node *entry = coffer_node_first(entries); entry; entry = coffer_node_next(entry))
        for (const coffer_node *cell = coffer_node_first(entry); cell; cell = coffer_node_next(cell))
            if (coffer_node_get_unit(cell) == COFFER_UNIT_BYTES) {
                bytes += coffer_node_get_u64(cell);
                any = true;
            }
    term_text count, size;
    if (any)
        printf("%s%s in all, %s%s\n", term_on(stdout, TERM_DIM),
               term_count(count, coffer_node_count(entries)), term_bytes(size, bytes), term_off(stdout));
}

static int print_entries(const coffer_node *entries, bool json)
{
    int status = CLI_OK;
    if (!entries)
        return CLI_OK;
    if (!json) {
        cli_print_table(stdout, entries);
        print_totals(entries);
        return CLI_OK;
    }
    for (const coffer_node *entry = coffer_node_first(entries); entry && !status;
         entry = coffer_node_next(entry))
        status = cli_print_json_line(stdout, entry);
    return status;
}

static int list(const cli_args *args, const cli_file *file)
{
    coffer_list_opts opts = COFFER_LIST_OPTS_INIT;
    coffer_node *root = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    int status;
    opts.glob = cli_operand(args, 1);
    opts.what = cli_value(args, "what");
    if (coffer_node_new(&root, &err) != COFFER_OK || cli_file_list(root, file, &opts, &err) != COFFER_OK ||
        coffer__node_status(root, &err) != COFFER_OK) {
        status = cli_fail(file->path, &err, NULL);
    } else {
        status = sort_entries(args, root);
        if (!status)
            status = print_entries(coffer_node_find(root, "entries"), cli_has(args, "json"));
    }
    coffer_node_free(root);
    return status;
}

static int run(const cli_args *args)
{
    cli_file file;
    int status = cli_file_open_known(&file, cli_operand(args, 0));
    if (status)
        return status;
    status = list(args, &file);
    cli_file_close(&file);
    return status;
}

static const cli_option options[] = {
    { "what", 0, "LIST", NULL,
      "which of the format's lists; mscan: sequences (default) or params; mcf: tensors (default) or "
      "sections" },
    { "sort", 0, "COLUMN", NULL, "order by a column, sizes with the largest first" },
    { "reverse", 'r', NULL, NULL, "with --sort: the other way round" },
    { "json", 0, NULL, NULL, "one JSON object per line" },
    { 0 },
};

const cli_verb cli_verb_ls = {
    .name = "ls",
    .usage = "FILE [PATTERN]",
    .summary = "list the entries of a file",
    .group = CLI_GROUP_LOOK,
    .description =
        "Lists what the file is made of, one entry a line. PATTERN chooses by name: * ? and [a-z], where * "
        "also crosses dots and slashes. Quote it, or the shell will take it for file names.",
    .examples =
        "  coffer ls scan.mscan\n"
        "  coffer ls scan.mscan '*.mlp.*' --what params   # parameters by name\n"
        "  coffer ls model.mcf '*.q_proj.*' --sort size   # tensors: name, dtype, shape, offset, size\n"
        "  coffer ls folder/                              # those of a Hugging Face folder\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 2,
    .run = run,
};
