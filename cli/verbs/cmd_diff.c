/* diff: the differences of two files by content. */
#include "verbs.h"

#include "args.h"
#include "files.h"
#include "term.h"

#include <string.h>

typedef struct two_files {
    const char *path[2];
    coffer_file *file[2];
} two_files;

/* In diff, 1 means "different": a file that cannot be compared is 3. */
static int fail(const char *path, const coffer_error *err)
{
    int status = cli_fail(path, err, NULL);
    return status == CLI_FINDINGS ? CLI_FAILED : status;
}

/* The library puts the name of the second file before the text. Shows the path that the user gave instead. */
static int fail_second(const char *path, const coffer_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t len = strlen(name);
    coffer_error own = *err;
    if (strncmp(err->text, name, len) != 0 || strncmp(err->text + len, ": ", 2) != 0)
        return fail(NULL, err);
    memmove(own.text, err->text + len + 2, strlen(err->text + len + 2) + 1);
    own.subject = COFFER_SUBJECT_INPUT;
    return fail(path, &own);
}

/* Which of the two a failed comparison was about: the first that has errors on its own. */
static size_t file_at_fault(const two_files *pair)
{
    const coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    for (size_t i = 0; i < 2; i++) {
        coffer_report *report = NULL;
        if (coffer_report_new(&report, 0, NULL) != COFFER_OK)
            break;
        bool good = coffer_file_check(report, pair->file[i], &opts, NULL) == COFFER_OK &&
                    coffer_report_total(report, COFFER_ERROR) == 0;
        coffer_report_free(report);
        if (!good)
            return i;
    }
    return 0;
}

static int compare(coffer_node *root, const two_files *pair, coffer_diff_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    term_progress_start(&bar, "comparing", NULL);
    bar.amount = coffer_file_size(pair->file[0]) + coffer_file_size(pair->file[1]);
    opts->progress = &bar.progress;
    coffer_status status = coffer_file_diff(root, pair->file[0], pair->file[1], opts, &err);
    if (status == COFFER_OK)
        status = coffer_node_status(root, &err);
    term_progress_end(&bar);
    opts->progress = NULL;
    if (status == COFFER_OK)
        return CLI_OK;
    if (err.subject == COFFER_SUBJECT_OTHER)
        return fail_second(pair->path[1], &err);
    return fail(pair->path[file_at_fault(pair)], &err);
}

static int print(const coffer_node *root, const two_files *pair, const cli_args *args)
{
    const coffer_node *equal = coffer_node_find(root, "equal");
    bool are_equal = coffer_node_get_bool(equal);
    int status = CLI_OK;
    if (cli_has(args, "csv")) {
        status = cli_print_csv_lists(stdout, root);
    } else if (cli_has(args, "json")) {
        status = cli_print_json(stdout, root);
    } else {
        term_print_text(stdout, pair->path[0], strlen(pair->path[0]), 0);
        fputs(" and ", stdout);
        term_print_text(stdout, pair->path[1], strlen(pair->path[1]), 0);
        puts(are_equal ? " have the same content" : " differ");
        if (!are_equal || cli_has(args, "header"))
            cli_print_nodes(stdout, coffer_node_next(equal));
    }
    return cli_worse(status, are_equal ? CLI_OK : CLI_FINDINGS);
}

static int open_both(two_files *pair)
{
    int status = CLI_OK;
    for (size_t i = 0; i < 2 && !status; i++)
        status = cli_file_open_known(&pair->file[i], pair->path[i]);
    return status == CLI_FINDINGS ? CLI_FAILED : status;
}

/* For formats without a diff verb of their own. */
static int run_generic(const cli_args *args, const two_files *pair, coffer_diff_opts *opts)
{
    coffer_node *root = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_node_new(&root, &err) != COFFER_OK)
        return fail(pair->path[0], &err);
    coffer_node_add_text(root, "file_a", pair->path[0]);
    coffer_node_add_text(root, "file_b", pair->path[1]);
    cli_key key;
    int status = cli_key_read(&key, args);
    opts->key = key.at;
    if (!status)
        status = compare(root, pair, opts);
    if (!status)
        cli_add_damaged(root);
    if (!status)
        status = print(root, pair, args);
    cli_key_wipe(&key);
    coffer_node_free(root);
    return status;
}

static int read_options(coffer_diff_opts *opts, const cli_args *args)
{
    uint64_t threads;
    if (cli_check_output(args))
        return CLI_USAGE;
    if (!cli_number(&opts->max_shown, args, "max", 20, 0, 1000000) ||
        !cli_number(&threads, args, "threads", 0, 1, 1024) ||
        !cli_real(&opts->tolerance, args, "tolerance", 0.0))
        return CLI_USAGE;
    if (opts->tolerance < 0)
        return cli_usage(args, "--tolerance must not be negative");
    opts->threads = (uint32_t)threads;
    opts->header = cli_has(args, "header");
    opts->align_by = cli_value(args, "align");
    return CLI_OK;
}

int cli_diff_nodes(const cli_args *args, const char *group_by)
{
    two_files pair = { .path = { cli_operand(args, 0), cli_operand(args, 1) } };
    coffer_diff_opts opts = COFFER_DIFF_OPTS_INIT;
    int status = read_options(&opts, args);
    opts.group_by = group_by;
    if (!status)
        status = open_both(&pair);
    if (!status)
        status = run_generic(args, &pair, &opts);
    coffer_file_close(pair.file[0]);
    coffer_file_close(pair.file[1]);
    return status;
}

static int run(const cli_args *args)
{
    two_files pair = { .path = { cli_operand(args, 0), cli_operand(args, 1) } };
    coffer_diff_opts opts = COFFER_DIFF_OPTS_INIT;
    int status = read_options(&opts, args);
    if (!status)
        status = open_both(&pair);
    if (!status) {
        const char *kind = coffer_file_kind(pair.file[0]);
        const char *other = coffer_file_kind(pair.file[1]);
        const cli_format_verb *row = cli_find_format_verb("diff", kind);
        bool alike = strcmp(kind, other) == 0 || (row && row == cli_find_format_verb("diff", other));
        row = alike ? row : NULL;
        if (alike)
            status = cli_check_row(args, row, kind);
        if (!status)
            status = row ? row->run(args, coffer_file_source(pair.file[0])) : run_generic(args, &pair, &opts);
    }
    coffer_file_close(pair.file[0]);
    coffer_file_close(pair.file[1]);
    return status;
}

static const cli_option options[] = {
    { "tolerance", 0, "X", NULL, "ignore differences of values up to X", "0" },
    { "max", 'n', "N", NULL, "number of single differences to list", "20" },
    { "align", 0, "FIELD", NULL, "training sets: the field that names a sample", "path, id …, or content" },
    { "header", 0, NULL, NULL, "also compare the header: layout, offsets, checksums" },
    CLI_DAMAGED_OPTION,
    { "threads", 0, "N", NULL, "number of threads", "one per core" },
    { "csv", 0, NULL, NULL, "print the differences as comma-separated values with a header line" },
    { "json", 0, NULL, NULL, "one JSON object" },
    CLI_KEY_OPTION,
    { 0 },
};

const cli_verb cli_verb_diff = {
    .name = "diff",
    .usage = "A B",
    .summary = "compare two files",
    .pages = true,
    .group = CLI_GROUP_LOOK,
    .description =
        "Compares the content of the files, not their bytes: files with different layouts can have the same "
        "content.\nThe exit status is 0 when the content is the same, 1 when it differs, 3 when a file "
        "cannot "
        "be read.",
    .examples = "  coffer diff monday.mscan tuesday.mscan\n"
                "  coffer diff a.mscan b.mscan --tolerance 2   # forgive rounding\n",
    .options = options,
    .min_operands = 2,
    .max_operands = 2,
    .run = run,
};
