/* Saving what can be saved of a damaged file. */
#include "verbs.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/report.h"
#include "findings.h"
#include "io/file.h"
#include "io/lock.h"
#include "io/os.h"
#include "io/source_private.h"
#include "io/temporary.h"
#include "key.h"
#include "term.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct repair_job {
    const cli_args *args;
    const char *path;
    bool in_place;
    cli_key key;
    coffer_source *copy; /* a second copy that lost parts are taken from; NULL = none */
    uint64_t to;         /* the generation to go back to; 0 = the newest whole one */
    char *output;        /* where the result is written; in place, a temporary name */
    char *target;        /* in place: the input itself, links resolved */
    char *kept;          /* in place: where the original is now */
    int lock;            /* in place: keeps writers away; -1 = not held */
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

static int fail_system(const char *path, int error_number, const char *what, const char *hint)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__fail_errno(&err, what, error_number);
    return fail(path, &err, hint);
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

static char *suffixed(const char *path, const char *suffix)
{
    coffer__buffer name = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&name, "%s%s", path, suffix);
    return text_of(&name);
}

static int check_to(coffer_report **out, const char *path, coffer_source *src, const cli_key *key)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    opts.full = true;
    opts.key = key->at;
    opts.progress = &bar.progress;
    if (coffer_report_new(out, 0, &err) != COFFER_OK)
        return fail(path, &err, NULL);
    term_progress_start(&bar, "checking", NULL);
    bar.amount = coffer_source_size(src);
    coffer_status status = coffer_check(*out, src, &opts, &err);
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

/* What a link leads to; any other path as it was given. NULL with errno on failure. */
static char *resolved(const char *path)
{
    struct stat st;
    char real[PATH_MAX];
    bool is_link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
    if (is_link && !realpath(path, real))
        return NULL;
    return coffer__strdup(is_link ? real : path);
}

/* Under the lock: what a writer has put there since the file was opened would be lost. */
static int expect_unchanged(const repair_job *job, coffer_source *src)
{
    coffer_error err = { .status = COFFER_E_CHANGED,
                         .offset = COFFER_OFFSET_NONE,
                         .text = "changed while it was checked" };
    struct stat read, locked;
    bool same = fstat(src->fd, &read) == 0 && fstat(job->lock, &locked) == 0 &&
                read.st_dev == locked.st_dev && read.st_ino == locked.st_ino;
    return same && coffer__source_settled(src) ? CLI_OK : fail(job->path, &err, NULL);
}

/* The result waits under a temporary name in the same folder, with the mode of the file it will replace. */
static int begin_in_place(repair_job *job, coffer_source *src)
{
    coffer_error err = COFFER_ERROR_INIT;
    struct stat st;
    int fd;
    job->target = resolved(job->path);
    if (!job->target || stat(job->target, &st) != 0)
        return fail_system(job->path, errno, "cannot be replaced", "");
    if (coffer__lock_open(&job->lock, job->target, &err) != COFFER_OK)
        return fail(job->path, &err, NULL);
    int status = expect_unchanged(job, src);
    if (status)
        return status;
    if (coffer__temporary_create(&fd, &job->output, job->target, &err) != COFFER_OK)
        return fail(job->path, &err, NULL);
    int kept_mode = coffer__os_chmod(fd, st.st_mode & 07777);
    coffer__os_close(fd);
    return kept_mode == 0 ? CLI_OK : fail_system(job->path, errno, "its mode cannot be kept", "");
}

static int choose_output(repair_job *job, coffer_source *src)
{
    const char *given = cli_value(job->args, "output");
    if (job->in_place)
        return begin_in_place(job, src);
    if (!given && strcmp(job->path, "-") == 0)
        return cli_usage(job->args, "standard input needs -o OUT");
    if (given && cli_same_file(given, job->path))
        return cli_usage(job->args, "%s is the input itself; --in-place replaces it and keeps the original",
                         given);
    job->output = given ? coffer__strdup(given) : repaired_name(job->path);
    return job->output ? CLI_OK : fail_system(job->path, ENOMEM, "cannot name the result", "");
}

static int write_repaired(repair_job *job, coffer_source *src)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    opts.keep_tail = cli_has(job->args, "keep-tail");
    opts.to_generation = job->to;
    opts.overwrite = job->in_place || cli_has(job->args, "force");
    opts.copy = job->copy;
    opts.key = job->key.at;
    opts.progress = &bar.progress;
    term_progress_start(&bar, "repairing", NULL);
    bar.amount = coffer_source_size(src);
    coffer_status repaired = coffer_report_new(&job->done, 0, &err);
    if (repaired == COFFER_OK)
        repaired = coffer_repair(job->done, src, job->output, &opts, &err);
    term_progress_end(&bar);
    if (repaired == COFFER_E_EXISTS)
        return fail(job->output, &err, "--force overwrites it, -o OUT writes elsewhere");
    if (repaired) {
        const char *about = err.subject == COFFER_SUBJECT_OUTPUT ? job->output : job->path;
        return fail(about, &err, repaired == COFFER_E_IO ? NULL : "nothing was written");
    }
    job->written = true;
    return CLI_OK;
}

static int check_result(repair_job *job)
{
    coffer_source *src = NULL;
    if (strcmp(job->output, "-") == 0)
        return CLI_OK;
    int status = cli_open(&src, job->output);
    if (!status)
        status = check_to(&job->left, job->output, src, &job->key);
    coffer_source_close(src);
    return status;
}

/* The original gets a second name first, so that at no moment it has none. */
static int replace_original(repair_job *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    char *kept = suffixed(job->target, ".orig");
    if (!kept)
        return fail_system(job->path, ENOMEM, "cannot keep the original", "");
    if (coffer__os_link(job->target, kept) != 0) {
        int error_number = errno;
        int status = fail_system(kept, error_number, "cannot keep the original under this name",
                                 error_number == EEXIST ? "an earlier original is there; move it away first"
                                                        : "-o OUT writes the result elsewhere");
        coffer__free(kept);
        return status;
    }
    job->kept = kept;
    if (coffer__os_rename(job->output, job->target) != 0) {
        int error_number = errno;
        coffer__os_unlink(kept);
        return fail_system(job->path, error_number, "cannot be replaced", "");
    }
    coffer__temporary_forget(job->output);
    return coffer__file_sync_folder(job->target, &err) == COFFER_OK ? CLI_OK : fail(job->path, &err, NULL);
}

/* Whatever happened, no temporary file stays. */
static int end_in_place(repair_job *job, int status)
{
    if (!job->in_place || !job->output)
        return status;
    cli_hold_signals();
    if (!status)
        status = replace_original(job);
    if (status) {
        coffer__os_unlink(job->output);
        coffer__temporary_forget(job->output);
        job->written = false;
    }
    cli_release_signals();
    return status;
}

static int repair_from(repair_job *job, coffer_source *src)
{
    int status = choose_output(job, src);
    if (!status)
        status = write_repaired(job, src);
    if (!status)
        status = check_result(job);
    status = end_in_place(job, status);
    if (!status && job->left && coffer_report_total(job->left, COFFER_ERROR) > 0)
        status = CLI_FINDINGS;
    return status;
}

static int inspect(repair_job *job, coffer_source *src)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_identify(&job->format, src, &err) != COFFER_OK)
        return fail(job->path, &err, NULL);
    return check_to(&job->found, job->path, src, &job->key);
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

static bool is_known_file(const char *path)
{
    const coffer_format *format;
    coffer_source *src = NULL;
    bool known = coffer_source_open(&src, path, NULL, NULL) == COFFER_OK &&
                 coffer_identify(&format, src, NULL) == COFFER_OK;
    coffer_source_close(src);
    return known;
}

/* The file that a recording would have become, when the path is that of a part, or of a file of which only
 * parts are there; else NULL. */
static char *file_of_parts(const char *path)
{
    static const char *const suffixes[] = { ".part", ".strings" };
    size_t len = strlen(path);
    struct stat st;
    bool missing = stat(path, &st) != 0 && errno == ENOENT;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        size_t suffix_len = strlen(suffixes[i]);
        char *part = missing ? suffixed(path, suffixes[i]) : NULL;
        bool is_there = part && stat(part, &st) == 0;
        coffer__free(part);
        if (is_there)
            return coffer__strdup(path);
        if (len > suffix_len && strcmp(path + len - suffix_len, suffixes[i]) == 0 && !is_known_file(path))
            return coffer__strndup(path, len - suffix_len);
    }
    return NULL;
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
    return !result && coffer_report_total(job->left, COFFER_ERROR) > 0 ? CLI_FINDINGS : result;
}

static int repair(repair_job *job)
{
    coffer_source *src = NULL;
    bool elsewhere = cli_value(job->args, "output") != NULL;
    job->output = file_of_parts(job->path);
    if (job->output)
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
    coffer__node_text(root, "file", job->path);
    coffer__node_text(root, "format", job->format ? coffer_format_name(job->format) : NULL);
    coffer__node_bool(root, "ok", !job->left || coffer_report_total(job->left, COFFER_ERROR) == 0);
    coffer__node_bool(root, "rolled_back", job->rolled_back);
    coffer__node_text(root, "output", job->written ? written_to(job) : NULL);
    coffer__node_text(root, "original", job->kept);
    if (job->done)
        cli_add_findings(root, job->done);
    else
        coffer__node_list(root, "findings");
    int status = cli_print_json(out, root);
    coffer_node_free(root);
    return status;
}

static void print_line(FILE *out, const char *path, const char *text, const char *other)
{
    term_print_text(out, path, strlen(path), 0);
    fputs(text, out);
    if (other)
        term_print_text(out, other, strlen(other), 0);
    fputc('\n', out);
}

static void print_for_people(FILE *out, const repair_job *job)
{
    if (job->rolled_back)
        print_line(out, job->path, ": an interrupted update was rolled back; the file is as it was before it",
                   NULL);
    else if (!job->written)
        print_line(out, job->path, ": nothing to repair", NULL);
    if (!job->written)
        return;
    if (job->recovered)
        print_line(out, job->output, ": made from the parts of a recording", NULL);
    else if (job->kept)
        print_line(out, job->path,
                   job->to ? ": taken back in place; the original is "
                           : ": repaired in place; the original is ",
                   job->kept);
    else
        print_line(out, job->path,
                   job->to                    ? ": taken back into "
                   : needs_repair(job->found) ? ": repaired into "
                                              : ": nothing to repair; copied to ",
                   job->output);
    cli_print_findings(out, job->done);
    if (job->left && coffer_report_total(job->left, COFFER_ERROR) > 0) {
        print_line(out, written_to(job), " still has errors:", NULL);
        cli_print_findings(out, job->left);
    }
}

static void free_job(repair_job *job)
{
    if (job->lock >= 0)
        coffer__os_close(job->lock);
    coffer_source_close(job->copy);
    cli_key_wipe(&job->key);
    coffer__free(job->target);
    coffer__free(job->output);
    coffer__free(job->kept);
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
    repair_job job = {
        .args = args, .path = cli_operand(args, 0), .in_place = cli_has(args, "in-place"), .lock = -1
    };
    const char *output = cli_value(args, "output");
    if (!cli_number(&job.to, args, "to", 0, 1, UINT64_MAX))
        return CLI_USAGE;
    if (job.in_place && output)
        return cli_usage(args, "--in-place and -o exclude each other");
    int status = open_copy(&job);
    if (!status)
        status = repair(&job);
    FILE *out = output && strcmp(output, "-") == 0 ? stderr : stdout;
    if (status <= CLI_FINDINGS && cli_has(args, "json"))
        status = cli_worse(status, print_as_json(out, &job));
    else if (status <= CLI_FINDINGS)
        print_for_people(out, &job);
    free_job(&job);
    return status;
}

static const cli_option options[] = {
    { "output", 'o', "OUT", NULL, "write the result to OUT (NAME.repaired.EXT beside the file)" },
    { "in-place", 0, NULL, NULL, "replace the file; the original is kept as NAME.EXT.orig" },
    { "from", 0, "COPY", NULL,
      "take what is damaged from a second copy of the file, where the format can: mldf" },
    { "keep-tail", 0, NULL, NULL, "take in whole records that an unfinished append left behind" },
    { "to", 0, "N", NULL, "go back to generation N, where the format keeps older states: see 'coffer log'" },
    { "force", 'f', NULL, NULL, "replace OUT if it exists" },
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
                   "that was killed, the parts it left become the file.\n"
                   "The exit status is 0 when the result is clean, 1 when errors are left in it, 3 when "
                   "nothing could be saved.",
    .examples = "  coffer repair scan.mscan                   # writes scan.repaired.mscan\n"
                "  coffer repair scan.mscan --in-place        # keeps scan.mscan.orig\n"
                "  coffer repair scan.mscan -o saved.mscan --keep-tail\n"
                "  coffer repair train.mldf --from backup.mldf   # damaged samples come from the copy\n"
                "  coffer repair m.pycauset --to 3 --in-place # undoes what came after generation 3\n"
                "  coffer repair run.mlyze.part               # makes run.mlyze of what was recorded\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
