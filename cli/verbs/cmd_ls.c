/* ls: the entries of a file. */
#include "verbs.h"

#include "base/text.h"

#include "files.h"
#include "ls_picture.h"
#include "term.h"

#include <string.h>
#include <unistd.h>

/* ---- Order ---- */

typedef struct entry_order {
    const char *column;
    bool reverse;
} entry_order;

static int compare_numbers(double a, double b)
{
    return (a > b) - (a < b);
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
    int order =
        kind == COFFER_NODE_TEXT
            ? coffer__natural_compare(coffer_node_get_text(left, NULL), coffer_node_get_text(right, NULL))
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
        return cli_usage(args, "--sort %s: the list does not have this column", order.column);
    coffer_node_sort(root, "entries", compare_entries, &order);
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

static int print_entries(const coffer_node *entries, const cli_args *args)
{
    int status = CLI_OK;
    if (!entries)
        return CLI_OK;
    if (cli_has(args, "csv"))
        return cli_print_csv(stdout, entries);
    if (!cli_has(args, "json")) {
        cli_print_table(stdout, entries);
        print_totals(entries);
        return CLI_OK;
    }
    for (const coffer_node *entry = coffer_node_first(entries); entry && !status;
         entry = coffer_node_next(entry))
        status = cli_print_json_line(stdout, entry);
    return status;
}

/* Entries of several files in one list: each begins with the name of its file. */
static void add_entries(coffer_node *all, const char *path, const coffer_node *entries)
{
    for (const coffer_node *entry = entries ? coffer_node_first(entries) : NULL; entry;
         entry = coffer_node_next(entry)) {
        coffer_node *copy = coffer_node_add_map(all, NULL);
        coffer_node_add_text(copy, "file", path);
        for (const coffer_node *cell = coffer_node_first(entry); cell; cell = coffer_node_next(cell))
            coffer_node_add_copy(copy, coffer_node_get_name(cell), cell);
    }
}

/* ---- Files and the pattern ---- */

enum { MOST_CONDITIONS = 64 };

typedef struct ls_run {
    const cli_args *args;
    const char *pattern; /* NULL = every entry */
    size_t files;
    uint64_t found;   /* entries */
    coffer_node *all; /* of several files, for programs; NULL = print each file's own */
    coffer_node *all_entries;
    const char *const *conditions; /* of --where */
    size_t condition_count;
} ls_run;

static bool is_file(const char *operand)
{
    return strcmp(operand, "-") == 0 || access(operand, F_OK) == 0;
}

/* An operand after the first that is not a file is the pattern. */
static int find_pattern(ls_run *run)
{
    for (size_t i = 0; i < cli_operand_count(run->args); i++) {
        const char *operand = cli_operand(run->args, i);
        if (i == 0 || is_file(operand))
            run->files++;
        else if (run->pattern)
            return cli_usage(run->args, "neither '%s' nor '%s' is a file; only one pattern can be given",
                             run->pattern, operand);
        else
            run->pattern = operand;
    }
    return CLI_OK;
}

static int show(ls_run *run, const char *path, const coffer_node *entries)
{
    run->found += entries ? coffer_node_count(entries) : 0;
    if (cli_has(run->args, "output") && run->found > 0)
        return ls_draw(run->args, path, entries);
    if (run->all) {
        add_entries(run->all_entries, path, entries);
        return CLI_OK;
    }
    if (run->files > 1) {
        term_print_text(stdout, path, strlen(path), 0);
        fputs(":\n", stdout);
    }
    return print_entries(entries, run->args);
}

static int list(ls_run *run, const char *path, const coffer_file *file)
{
    coffer_list_opts opts = COFFER_LIST_OPTS_INIT;
    coffer_node *root = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    int status;
    opts.glob = run->pattern;
    opts.what = cli_value(run->args, "what");
    opts.natural = !cli_has(run->args, "json");
    opts.where = run->conditions;
    opts.where_count = run->condition_count;
    if (coffer_node_new(&root, &err) != COFFER_OK || coffer_file_list(root, file, &opts, &err) != COFFER_OK ||
        coffer_node_status(root, &err) != COFFER_OK) {
        status = cli_fail(path, &err, NULL);
    } else {
        status = sort_entries(run->args, root);
        if (!status)
            status = show(run, path, coffer_node_find(root, "entries"));
    }
    coffer_node_free(root);
    return status;
}

static int list_files(ls_run *run)
{
    int status = CLI_OK;
    bool first = true;
    for (size_t i = 0; i < cli_operand_count(run->args); i++) {
        const char *path = cli_operand(run->args, i);
        coffer_file *file = NULL;
        if (path == run->pattern)
            continue;
        if (!first && !run->all)
            putchar('\n');
        first = false;
        int result = cli_file_open_known(&file, path);
        if (!result)
            result = list(run, path, file);
        coffer_file_close(file);
        status = cli_worse(status, result);
    }
    return status;
}

/* A script that looks for entries learns from the exit status whether there are any. */
static int finish(const ls_run *run, int status)
{
    if (status || (!run->pattern && !run->condition_count) || run->found > 0)
        return status;
    if (!run->pattern) {
        cli_warn(run->files == 1 ? cli_operand(run->args, 0) : NULL, "no sample meets the conditions");
        return CLI_FINDINGS;
    }
    cli_warn(run->files == 1 ? cli_operand(run->args, 0) : NULL, "nothing matches '%s'%s", run->pattern,
             strpbrk(run->pattern, "*?[") ? "" : ", and no file has this name");
    return CLI_FINDINGS;
}

static int run(const cli_args *args)
{
    ls_run job = { .args = args };
    coffer_error err = COFFER_ERROR_INIT;
    if (cli_check_output(args) || find_pattern(&job))
        return CLI_USAGE;
    const char *conditions[MOST_CONDITIONS];
    job.conditions = conditions;
    cli_word word;
    for (cli_place place = { 0 }; cli_next_word(&word, &place, args);) {
        if (!word.option || strcmp(word.option, "where") != 0)
            continue;
        if (job.condition_count == MOST_CONDITIONS)
            return cli_usage(args, "more than %d conditions", MOST_CONDITIONS);
        conditions[job.condition_count++] = word.value;
    }
    bool for_programs = cli_has(args, "json") || cli_has(args, "csv");
    if (cli_has(args, "output") && (job.files > 1 || for_programs))
        return cli_usage(args, "-o draws one file; it cannot be combined with --csv or --json");
    if (job.files > 1 && for_programs) {
        if (coffer_node_new(&job.all, &err) != COFFER_OK)
            return cli_fail(NULL, &err, NULL);
        job.all_entries = coffer_node_add_list(job.all, "entries");
    }
    int status = list_files(&job);
    if (job.all)
        status = cli_worse(status, print_entries(job.all_entries, args));
    coffer_node_free(job.all);
    return finish(&job, status);
}

/* "which list; mcf: tensors (default), sections; mscan: …" */
static const char *describe_lists(void)
{
    static char text[512] = "which list";
    size_t len = strlen(text);
    for (size_t i = 0; i < coffer_format_count(); i++) {
        const coffer_format *format = coffer_format_at(i);
        for (size_t j = 0; j < coffer_format_list_count(format) && len < sizeof text; j++)
            len += (size_t)snprintf(text + len, sizeof text - len, j == 0 ? "; %s: %s (default)" : ", %.0s%s",
                                    coffer_format_name(format), coffer_format_list_at(format, j));
    }
    return text;
}

static cli_option options[] = {
    { "what", 0, "LIST", NULL, NULL },
    { "where", 0, "CONDITION", NULL,
      "mldf: samples that meet it, such as label=3, score>=0.5, 'path~cat/*', image.width<64; repeatable" },
    { "sort", 0, "COLUMN", NULL, "sort by a column, sizes with the largest first", "the order of the file" },
    { "reverse", 'r', NULL, NULL, "with --sort: reverse the order" },
    LS_PICTURE_OPTIONS,
    CLI_CSV_OPTION,
    { "json", 0, NULL, NULL, "one JSON object per line; with \"file\" first when there are several files" },
    { 0 },
};

static const cli_option *make_options(void)
{
    if (!options[0].help)
        options[0].help = describe_lists();
    return options;
}

const cli_verb cli_verb_ls = {
    .name = "ls",
    .usage = "FILE… [PATTERN]",
    .summary = "list the entries of a file",
    .pages = true,
    .group = CLI_GROUP_LOOK,
    .description = "Lists what the files are made of, one entry a line. PATTERN, an argument that is not a "
                   "file, chooses by "
                   "name: * ? and [a-z], where * also crosses dots and slashes. Quote it, or the shell will "
                   "take it for file "
                   "names. The exit status is 1 when nothing matches it.",
    .examples =
        "  coffer ls scan.mscan\n"
        "  coffer ls scan.mscan '*.mlp.*' --what params   # parameters by name\n"
        "  coffer ls model.mcf '*.q_proj.*' --sort size   # tensors: name, dtype, shape, offset, size\n"
        "  coffer ls model.mcf -o map.png                 # where the bytes are: a treemap\n"
        "  coffer ls train.mldf --where 'label=3'         # samples: number, name, values, size\n"
        "  coffer ls folder/                              # those of a Hugging Face folder\n",
    .make_options = make_options,
    .min_operands = 1,
    .max_operands = SIZE_MAX,
    .run = run,
};
