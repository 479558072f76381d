/* Saving what can be saved of a damaged file. */
#include "verbs.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "cli.h"
#include "files.h"
#include "tensors/tensors_verbs.h"
#include "term.h"

#include <string.h>

typedef struct repair_job {
    const cli_args *args;
    const char *path;
    bool in_place;
    cli_key key;
    coffer_source *copy; /* a second copy that lost parts are taken from; NULL = none */
    uint64_t to;         /* the generation to go back to; 0 = the newest whole one */
    char *output;        /* where the result is written; NULL in place */
    char *kept;          /* in place: where the original is now */
    const coffer_format *format;
    coffer_report *found; /* what was wrong before */
    coffer_report *done;  /* what the repair did and lost */
    coffer_report *left;  /* what is wrong with the result */
    bool rolled_back, recovered, written;
} repair_job;

/* 1 would say that the file has findings; here it says that nothing could be saved. */
static int fail(const char *path, const coffer_error *err, const char *hint)
{
    int status = cli_fail(path, err, hint);
    return status == CLI_FINDINGS ? CLI_FAILED : status;
}

static int fail_no_memory(const char *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__fail_no_memory(&err, strlen(path));
    return fail(path, &err, NULL);
}

static char *text_of(coffer__buffer *name)
{
    size_t len;
    coffer__buffer_append(name, "", 1);
    return name->failed ? NULL : (char *)coffer__buffer_release(name, &len);
}

/* "dir/scan.mscan" becomes "dir/scan.repaired.mscan". */
static char *repaired_name(const char *path)
{
    coffer__buffer name = COFFER__BUFFER_INIT;
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    size_t stem = dot && dot > base ? (size_t)(dot - path) : strlen(path);
    coffer__buffer_printf(&name, "%.*s.repaired%s", (int)stem, path, path + stem);
    return text_of(&name);
}

static int check_to(coffer_report **out, const char *path, coffer_source *src, const repair_job *job)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    opts.full = true;
    opts.key = job->key.at;
    opts.progress = &bar.progress;
    if (coffer_report_new(out, 0, &err) != COFFER_OK)
        return fail(path, &err, NULL);
    term_progress_start(&bar, "checking", NULL);
    bar.amount = coffer_source_size(src);
    coffer_status status = coffer_format_check(*out, job->format, src, &opts, &err);
    term_progress_end(&bar);
    return status == COFFER_OK ? CLI_OK : fail(path, &err, NULL);
}

static bool needs_repair(const coffer_report *report)
{
    return coffer_report_total(report, COFFER_ERROR) + coffer_report_total(report, COFFER_WARNING) > 0;
}

static int roll_back(repair_job *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    cli_hold_signals();
    coffer_status status = coffer_roll_back(&job->rolled_back, job->path, &err);
    cli_release_signals();
    return status == COFFER_OK ? CLI_OK : fail(job->path, &err, NULL);
}

static int choose_output(repair_job *job)
{
    const char *given = cli_value(job->args, "output");
    if (!given && strcmp(job->path, "-") == 0)
        return cli_usage(job->args, "standard input needs -o OUT");
    job->output = given ? coffer__strdup(given) : repaired_name(job->path);
    return job->output ? CLI_OK : fail_no_memory(job->path);
}

/* In place, signals are held back: a repair that is asked to end removes its temporary file first. */
static int step_or_stop(void *context, uint64_t done, uint64_t total)
{
    term_progress *bar = context;
    return bar->progress.step(bar->progress.context, done, total) || cli_signal_waits();
}

static coffer_status run_in_place(repair_job *job, coffer_source *src, const coffer_repair_opts *opts,
                                  coffer_error *err)
{
    coffer_status status = coffer_report_new(&job->left, 0, err);
    if (status)
        return status;
    cli_hold_signals();
    status = coffer_repair_in_place(job->done, job->left, &job->kept, src, opts, err);
    cli_release_signals();
    return status;
}

static int fail_repair(const repair_job *job, coffer_status status, const coffer_error *err)
{
    if (job->in_place)
        return fail(job->path, err,
                    status == COFFER_E_EXISTS ? "move the earlier original away first"
                    : status == COFFER_E_IO   ? NULL
                                              : "nothing was written");
    if (status == COFFER_E_EXISTS)
        return fail(job->output, err, "--force overwrites it, -o OUT writes elsewhere");
    return fail(err->subject == COFFER_SUBJECT_OUTPUT ? job->output : job->path, err,
                status == COFFER_E_IO ? NULL : "nothing was written");
}

static int write_repaired(repair_job *job, coffer_source *src)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    coffer_progress progress = COFFER_PROGRESS_INIT;
    progress.step = step_or_stop;
    progress.context = &bar;
    opts.keep_tail = cli_has(job->args, "keep-tail");
    opts.to_generation = job->to;
    opts.overwrite = cli_has(job->args, "force");
    opts.copy = job->copy;
    opts.key = job->key.at;
    opts.progress = &progress;
    term_progress_start(&bar, "repairing", NULL);
    bar.amount = coffer_source_size(src);
    coffer_status status = coffer_report_new(&job->done, 0, &err);
    if (!status && job->in_place)
        status = run_in_place(job, src, &opts, &err);
    else if (!status)
        status = coffer_format_repair(job->done, job->format, src, job->output, &opts, &err);
    term_progress_end(&bar);
    if (status)
        return fail_repair(job, status, &err);
    job->written = true;
    return CLI_OK;
}

static int check_result(repair_job *job)
{
    coffer_source *src = NULL;
    if (cli_is_stream(job->output))
        return CLI_OK;
    int status = cli_open(&src, job->output);
    if (!status)
        status = check_to(&job->left, job->output, src, job);
    coffer_source_close(src);
    return status;
}

static int repair_from(repair_job *job, coffer_source *src)
{
    int status = job->in_place ? CLI_OK : choose_output(job);
    if (!status)
        status = write_repaired(job, src);
    if (!status && !job->in_place)
        status = check_result(job);
    if (!status && ((job->left && coffer_report_total(job->left, COFFER_ERROR) > 0) ||
                    (job->to == 0 && needs_repair(job->done))))
        status = CLI_FINDINGS; /* something was lost, or could not be verified */
    return status;
}

static int inspect(repair_job *job, coffer_source *src)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_identify(&job->format, src, &err) != COFFER_OK)
        return fail(job->path, &err, NULL);
    return check_to(&job->found, job->path, src, job);
}

/* 1 would say that the result has findings. */
static int open_input(coffer_source **src, const repair_job *job)
{
    int status = cli_open(src, job->path);
    return status == CLI_FINDINGS ? CLI_FAILED : status;
}

/* Under a whole journal the check saw the state before the update, and so does whoever opens the file after
 * the roll-back. A journal that was never finished just goes. */
static int settle_journal(coffer_source **src, repair_job *job)
{
    bool interrupted = coffer_source_interrupted_update(*src);
    if (interrupted) {
        coffer_source_close(*src);
        *src = NULL;
    }
    int status = roll_back(job);
    return status || !interrupted ? status : open_input(src, job);
}

static int recover(repair_job *job)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    if (job->in_place || cli_value(job->args, "output"))
        return cli_usage(job->args, "%s: the parts of a recording become the file beside them", job->path);
    opts.overwrite = cli_has(job->args, "force");
    coffer_status status = coffer_report_new(&job->done, 0, &err);
    if (status == COFFER_OK)
        status = coffer_recover(&job->format, job->done, job->output, &opts, &err);
    if (status == COFFER_E_EXISTS)
        return fail(job->output, &err, "--force replaces it; move it away to keep it");
    if (status != COFFER_OK)
        return fail(job->path, &err, status == COFFER_E_LOCKED ? "wait for the program that records" : NULL);
    job->recovered = job->written = true;
    int result = check_result(job);
    bool lost = coffer_report_total(job->left, COFFER_ERROR) > 0 || needs_repair(job->done);
    return !result && lost ? CLI_FINDINGS : result;
}

static int repair(repair_job *job)
{
    coffer_source *src = NULL;
    bool elsewhere = cli_value(job->args, "output") != NULL;
    if (coffer_recover_path(&job->output, job->path, NULL) == COFFER_OK)
        return recover(job);
    int status = open_input(&src, job);
    if (!status)
        status = inspect(job, src);
    if (!status && !elsewhere && strcmp(job->path, "-") != 0)
        status = settle_journal(&src, job);
    if (!status && (elsewhere || job->to || needs_repair(job->found)))
        status = repair_from(job, src);
    coffer_source_close(src);
    return status;
}

static const char *written_to(const repair_job *job)
{
    return job->in_place ? job->path : job->output;
}

static int print_as_json(FILE *out, const repair_job *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    if (coffer_node_new(&root, &err) != COFFER_OK)
        return fail(job->path, &err, NULL);
    coffer_node_add_text(root, "file", job->path);
    coffer_node_add_text(root, "format", job->format ? coffer_format_name(job->format) : NULL);
    coffer_node_add_bool(root, "ok", !job->left || coffer_report_total(job->left, COFFER_ERROR) == 0);
    coffer_node_add_bool(root, "rolled_back", job->rolled_back);
    coffer_node_add_text(root, "output", job->written ? written_to(job) : NULL);
    coffer_node_add_text(root, "original", job->kept);
    if (job->done)
        coffer_report_describe(root, "findings", job->done);
    else
        coffer_node_add_list(root, "findings");
    int status = cli_print_json(out, root);
    coffer_node_free(root);
    return status;
}

static void print_for_people(FILE *out, const repair_job *job)
{
    if (job->rolled_back)
        cli_print_line(out, job->path,
                       ": an interrupted update was rolled back; the file is as it was before it", NULL);
    else if (!job->written)
        cli_print_line(out, job->path, ": nothing to repair", NULL);
    if (!job->written)
        return;
    if (job->recovered)
        cli_print_line(out, job->output, ": made from the parts of a recording", NULL);
    else if (job->kept)
        cli_print_line(out, job->path,
                       job->to ? ": taken back in place; the original is "
                               : ": repaired in place; the original is ",
                       job->kept);
    else
        cli_print_line(out, job->path,
                       job->to                    ? ": taken back into "
                       : needs_repair(job->found) ? ": repaired into "
                                                  : ": nothing to repair; copied to ",
                       job->output);
    cli_print_findings(out, job->done);
    if (job->left && coffer_report_total(job->left, COFFER_ERROR) > 0) {
        cli_print_line(out, written_to(job), " still has errors:", NULL);
        cli_print_findings(out, job->left);
    }
}

static void free_job(repair_job *job)
{
    coffer_source_close(job->copy);
    cli_key_wipe(&job->key);
    coffer_free(job->output);
    coffer_free(job->kept);
    coffer_report_free(job->found);
    coffer_report_free(job->done);
    coffer_report_free(job->left);
}

/* The key and the copy, before anything is looked at. */
static int open_copy(repair_job *job)
{
    const char *from = cli_value(job->args, "from");
    int status = cli_key_read(&job->key, job->args);
    if (status || !from)
        return status;
    if (cli_same_file(from, job->path))
        return cli_usage(job->args, "--from %s is the damaged file itself", from);
    const coffer_format *format;
    coffer_error err = COFFER_ERROR_INIT;
    status = cli_open(&job->copy, from);
    if (!status && coffer_identify(&format, job->copy, &err) != COFFER_OK)
        status = cli_fail(from, &err, NULL);
    return status == CLI_FINDINGS ? CLI_FAILED : status;
}

static int run(const cli_args *args)
{
    repair_job job = { .args = args, .path = cli_operand(args, 0), .in_place = cli_has(args, "in-place") };
    const char *output = cli_value(args, "output");
    if (!cli_number(&job.to, args, "to", 0, 1, UINT64_MAX))
        return CLI_USAGE;
    if (job.in_place && output)
        return cli_usage(args, "--in-place and -o exclude each other");
    if (!output && coffer_is_remote(job.path))
        return cli_usage(args, "a remote file cannot be repaired in place; -o FILE writes a repaired copy");
    const char *model = cli_repairable_model(job.path);
    if (model)
        return cli_repair_model(args, model);
    int status = open_copy(&job);
    if (!status)
        status = repair(&job);
    FILE *out = output && cli_is_stream(output) ? stderr : stdout;
    if (status <= CLI_FINDINGS && cli_has(args, "json"))
        status = cli_worse(status, print_as_json(out, &job));
    else if (status <= CLI_FINDINGS)
        print_for_people(out, &job);
    free_job(&job);
    return status;
}

static const cli_option options[] = {
    { "output", 'o', "OUT", NULL, "write the result to OUT", "NAME.repaired.EXT next to the file" },
    { "in-place", 0, NULL, NULL, "replace the file; the original is kept as NAME.EXT.orig" },
    { "from", 0, "COPY", NULL, "replace damaged parts from a second copy, for formats that support it" },
    { "keep-tail", 0, NULL, NULL, "keep complete records of an unfinished append" },
    { "to", 0, "N", NULL, "restore generation N, for formats with generations: see 'coffer log'" },
    { "force", 'f', NULL, NULL, "overwrite OUT if it exists" },
    { "json", 0, NULL, NULL, "one JSON object: file, format, ok, rolled_back, output, original, findings" },
    CLI_KEY_OPTION,
    { 0 },
};

const cli_verb cli_verb_repair = {
    .name = "repair",
    .usage = "FILE",
    .summary = "save what is intact in a damaged file",
    .group = CLI_GROUP_VERIFY,
    .description = "Checks every byte, writes what is whole to a new file and tells what was done and what "
                   "was lost. The damaged "
                   "file is left alone unless --in-place is given, and even then it is kept under another "
                   "name. A file that is "
                   "only halfway through an interrupted update is rolled back where it is. Of a recording "
                   "that was killed, the parts it left become the file. Of a safetensors or GGUF file, or a "
                   "folder with a model, the complete tensors are saved and the lost ones named.\n"
                   "The exit status is 0 when nothing was lost, 1 when something was lost or could not be "
                   "verified, 3 when "
                   "nothing could be saved.",
    .examples = "  coffer repair scan.mscan                   # writes scan.repaired.mscan\n"
                "  coffer repair scan.mscan --in-place        # keeps scan.mscan.orig\n"
                "  coffer repair scan.mscan -o saved.mscan --keep-tail\n"
                "  coffer repair train.mldf --from backup.mldf   # damaged samples come from the copy\n"
                "  coffer repair m.pycauset --to 3 --in-place # undoes what came after generation 3\n"
                "  coffer repair run.mlyze.part               # makes run.mlyze of what was recorded\n"
                "  coffer repair model.gguf                   # complete tensors of a broken download\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
