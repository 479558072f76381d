/* check: the findings of a file. */
#include "verbs.h"

#include "base/fail.h"
#include "base/report.h"
#include "cli.h"
#include "files.h"
#include "term.h"

#include <fts.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

typedef struct check_run {
    bool json, strict;
    const char *original; /* of --against; NULL = none */
    coffer_check_opts opts;
    coffer_limits limits;
    uint64_t ended[CLI_FAILED + 1]; /* files by exit status */
    bool recursive;
    uint64_t skipped; /* files in folders that are of no known format */
} check_run;

/* A part that was not read may contain anything: that is not a success. */
static bool has_unread(const coffer_report *report)
{
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        const coffer_finding *finding = coffer_report_at(report, i);
        if (finding->severity == COFFER_WARNING &&
            (finding->code == COFFER_E_UNSUPPORTED || finding->code == COFFER_E_LIMIT))
            return true;
    }
    return false;
}

static bool is_ok(const coffer_report *report)
{
    return !has_unread(report) && coffer_report_total(report, COFFER_ERROR) == 0;
}

static int print_as_json(const char *path, const char *kind, const coffer_report *report)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    if (coffer_node_new(&root, &err) != COFFER_OK)
        return cli_fail(path, &err, NULL);
    coffer_node_add_text(root, "file", path);
    coffer_node_add_text(root, "format", kind);
    coffer_node_add_bool(root, "ok", is_ok(report));
    if (coffer_report_limits(report))
        coffer_node_add_text(root, "not_verified", coffer_report_limits(report));
    coffer_report_describe(root, "findings", report);
    int status = cli_print_json(stdout, root);
    coffer_node_free(root);
    return status;
}

static void print_for_people(const char *path, const char *kind, const coffer_report *report)
{
    cli_findings_text count;
    bool ok = is_ok(report);
    term_print_text(stdout, path, strlen(path), 0);
    printf(": %s, ", kind ? kind : "format not recognized");
    cli_count_findings(count, report);
    const char *limits = coffer_report_limits(report);
    if (ok)
        printf("%sok%s%s%s%s%s%s\n", term_on(stdout, TERM_GREEN), term_off(stdout), limits ? " (" : "",
               limits ? limits : "", limits ? ")" : "", *count ? ", " : "", count);
    else
        printf("%s%s%s\n", term_on(stdout, TERM_RED), count, term_off(stdout));
    cli_print_findings(stdout, report);
}

/* A script that reads a line for each file gets one for this file too. */
static int fail_to_read(const check_run *run, const char *path, const coffer_error *err, const char *hint)
{
    coffer_report *report = NULL;
    int status = cli_fail(path, err, hint);
    if (run->json && coffer_report_new(&report, 1, NULL) == COFFER_OK) {
        coffer__report_add_error(report, COFFER_ERROR, err);
        print_as_json(path, NULL, report);
        coffer_report_free(report);
    }
    return status;
}

static coffer_status check_against(coffer_report *report, const check_run *run, const char *path,
                                   coffer_error *err)
{
    coffer_mcf_work_opts opts = COFFER_MCF_WORK_OPTS_INIT;
    opts.threads = run->opts.threads;
    opts.progress = run->opts.progress;
    return coffer_mcf_quantize_check(report, path, run->original, &opts, err);
}

static int check_open(check_run *run, const char *path, const coffer_file *file)
{
    coffer_report *report = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    int status = CLI_OK;
    coffer_status checked = coffer_report_new(&report, run->limits.findings, &err);
    if (checked == COFFER_OK) {
        term_progress_start(&bar, path, NULL);
        bar.amount = coffer_file_size(file);
        run->opts.progress = &bar.progress;
        checked = coffer_file_check(report, file, &run->opts, &err);
        if (checked == COFFER_OK && run->original && is_ok(report))
            checked = check_against(report, run, path, &err);
        term_progress_end(&bar);
        run->opts.progress = NULL;
    }
    if (checked != COFFER_OK) {
        status = fail_to_read(run, path, &err, NULL);
        goto out;
    }
    if (run->json)
        status = print_as_json(path, coffer_file_kind(file), report);
    else
        print_for_people(path, coffer_file_kind(file), report);
    if (!is_ok(report) || has_unread(report) ||
        (run->strict && coffer_report_total(report, COFFER_WARNING) > 0))
        status = cli_worse(status, CLI_FINDINGS);
out:
    coffer_report_free(report);
    return status;
}

static int check_file(check_run *run, const char *path)
{
    coffer_file *file = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    int status;
    if (coffer_file_open(&file, path, &err) == COFFER_OK) {
        status = check_open(run, path, file);
        coffer_file_close(file);
    } else {
        status = fail_to_read(run, path, &err, cli_open_hint(&err));
    }
    run->ended[status]++;
    return status;
}

/* ---- Folders ---- */

/* A file in a folder is skipped when nothing says that it is one of ours: neither its content nor its name.
 */
static bool is_foreign(const coffer_file *file, const char *path)
{
    const coffer_error *unknown = coffer_file_unknown(file);
    const char *dot = strrchr(path, '.');
    if (!unknown || unknown->status != COFFER_E_NOT_RECOGNISED)
        return false;
    for (size_t i = 0; dot && i < coffer_format_count(); i++)
        if (strcasecmp(dot, coffer_format_extension(coffer_format_at(i))) == 0)
            return false;
    return true;
}

static int skip(check_run *run, const char *path)
{
    coffer_node *root = NULL;
    int status = CLI_OK;
    run->skipped++;
    if (run->json && coffer_node_new(&root, NULL) == COFFER_OK) {
        coffer_node_add_text(root, "file", path);
        coffer_node_add_null(root, "format");
        coffer_node_add_bool(root, "skipped", true);
        status = cli_print_json_line(stdout, root);
    }
    coffer_node_free(root);
    return status;
}

static int check_found(check_run *run, const char *path)
{
    coffer_file *file = NULL;
    bool foreign = coffer_file_open(&file, path, NULL) == COFFER_OK && is_foreign(file, path);
    coffer_file_close(file);
    return foreign ? skip(run, path) : check_file(run, path);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Every regular file in a folder and those below it. Links are not followed, they could lead out of it. */
static int check_folder(check_run *run, const char *path)
{
    char *const roots[] = { (char *)(uintptr_t)path, NULL };
    int status = CLI_OK;
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    for (FTSENT *entry; walk && (entry = fts_read(walk));) {
        if (entry->fts_info == FTS_F) {
            status = cli_worse(status, check_found(run, entry->fts_path));
        } else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS) {
            coffer_error err = COFFER_ERROR_INIT;
            coffer__fail_errno(&err, "cannot read the folder", entry->fts_errno);
            status = cli_worse(status, fail_to_read(run, entry->fts_path, &err, NULL));
            run->ended[CLI_FAILED]++;
        } else if (entry->fts_info == FTS_SL || entry->fts_info == FTS_SLNONE ||
                   entry->fts_info == FTS_DEFAULT) {
            status = cli_worse(status, skip(run, entry->fts_path));
        }
    }
    if (walk)
        fts_close(walk);
    return status;
}

static int check_operand(check_run *run, const char *path)
{
    struct stat st;
    bool is_folder = run->recursive && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    return is_folder ? check_folder(run, path) : check_file(run, path);
}

static void print_summary(const check_run *run)
{
    term_text ok, bad, unread, skipped;
    printf("%s ok, %s with findings, %s not read", term_count(ok, run->ended[CLI_OK]),
           term_count(bad, run->ended[CLI_FINDINGS]), term_count(unread, run->ended[CLI_FAILED]));
    if (run->recursive)
        printf(", %s skipped (of no known format)", term_count(skipped, run->skipped));
    putchar('\n');
}

static int run(const cli_args *args)
{
    check_run run = {
        .json = cli_has(args, "json"),
        .strict = cli_has(args, "strict"),
        .recursive = cli_has(args, "recursive"),
        .original = cli_value(args, "against"),
        .opts = COFFER_CHECK_OPTS_INIT,
    };
    uint64_t threads, max;
    coffer_limits_init(&run.limits, sizeof run.limits);
    if (!cli_number(&threads, args, "threads", 0, 1, 1024) ||
        !cli_number(&max, args, "max", run.limits.findings, 1, 1000000))
        return CLI_USAGE;
    run.limits.findings = (uint32_t)max;
    run.opts.threads = (uint32_t)threads;
    run.opts.full = cli_has(args, "full");
    run.opts.decode = cli_has(args, "decode");
    if (run.original && !run.opts.full)
        return cli_usage(args, "--against reads every tensor: say --full too");
    if (run.original && cli_operand_count(args) > 1)
        return cli_usage(args, "--against compares one file with one original");
    run.opts.limits = &run.limits;
    cli_key key;
    int status = cli_key_read(&key, args);
    if (status)
        return status;
    run.opts.key = key.at;
    for (size_t i = 0; i < cli_operand_count(args); i++)
        status = cli_worse(status, check_operand(&run, cli_operand(args, i)));
    if ((cli_operand_count(args) > 1 || run.recursive) && !run.json)
        print_summary(&run);
    cli_key_wipe(&key);
    return status;
}

static const cli_option options[] = {
    { "full", 0, NULL, NULL, "verify payloads and checksums too, not only the structure" },
    { "against", 0, "ORIGINAL", NULL,
      "with --full: compare a quantized model with the model it was made from" },
    { "decode", 0, NULL, NULL, "training sets: also decode every picture and sound" },
    { "recursive", 'r', NULL, NULL, "check every file in the folders that are given, and below" },
    { "strict", 0, NULL, NULL, "warnings count as findings in the exit status" },
    { "max", 'n', "N", NULL, "number of findings to report for each file", "1000" },
    { "threads", 0, "N", NULL, "number of threads", "one per core" },
    { "json", 0, NULL, NULL, "one line of JSON per file: file, format, ok, not_verified, findings" },
    CLI_KEY_OPTION,
    { 0 },
};

const cli_verb cli_verb_check = {
    .name = "check",
    .usage = "FILE…",
    .summary = "find what is wrong with a file",
    .group = CLI_GROUP_VERIFY,
    .description =
        "Checks the structure of each file, and with --full every byte of it. A finding has a "
        "severity (error, warning, "
        "note), a code, the place in the file and a line that says what is wrong there.\n"
        "After \"ok\" it says what could not be verified: the payloads without --full, or those of a "
        "format without checksums.\n"
        "The exit status is 1 when a file has an error, and 3 when one could not be read.",
    .examples =
        "  coffer check scan.mscan\n"
        "  coffer check --full *.mscan              # every record, several files\n"
        "  coffer check --json scan.mscan | jq .ok\n"
        "  coffer check -r --full archive/          # every file in a folder that coffer knows\n"
        "  coffer check --full train.mldf           # lists damaged samples\n"
        "  coffer check --decode train.mldf         # names pictures and sounds that cannot be decoded\n"
        "  coffer check --full small.mcf --against model.safetensors\n",
    .options = options,
    .min_operands = 1,
    .max_operands = SIZE_MAX,
    .run = run,
};
