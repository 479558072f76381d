/* repair, for models of other programs: safetensors, in one file or several, and GGUF. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "cli.h"
#include "tensors/tensors_verbs.h"
#include "term.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct tensors_repair {
    const cli_args *args;
    const char *path, *kind;
    bool in_place;
    char *output;        /* where the result is, at the end `path` itself for --in-place */
    char *kept;          /* in place: where the original is now */
    coffer_report *done; /* what the repair lost */
    coffer_report *left; /* what is wrong with the result */
    bool written;
} tensors_repair;

static bool is_kind(const char *kind)
{
    return strcmp(kind, "gguf") == 0 || strncmp(kind, "safetensors", strlen("safetensors")) == 0;
}

static bool has_extension(const char *path, const char *extension)
{
    size_t len = strlen(path), extension_len = strlen(extension);
    return len > extension_len && strcmp(path + len - extension_len, extension) == 0;
}

/* The name decides for a file whose first bytes are damaged. */
const char *cli_repairable_model(const char *path)
{
    coffer_file *file = NULL;
    const char *kind = NULL;
    if (coffer_file_open(&file, path, NULL) == COFFER_OK) {
        kind = coffer_file_kind(file);
        if (!kind && !coffer_file_format(file))
            kind = has_extension(path, ".safetensors") ? "safetensors" : NULL;
        if (kind)
            kind = !is_kind(kind) ? NULL : strcmp(kind, "gguf") == 0 ? "gguf" : "safetensors";
    }
    coffer_file_close(file);
    return kind;
}

/* 1 would mean that something was saved. */
static int fail(const char *path, const coffer_error *err, const char *hint)
{
    int status = cli_fail(path, err, hint);
    return status == CLI_FINDINGS ? CLI_FAILED : status;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* "model.repaired.safetensors" for model.safetensors, for its index and for a folder "model". */
static char *repaired_name(const tensors_repair *job)
{
    static const char index[] = ".safetensors.index.json";
    coffer__buffer name = COFFER__BUFFER_INIT;
    size_t len = strlen(job->path), total;
    const char *slash = strrchr(job->path, '/'), *base = slash ? slash + 1 : job->path;
    const char *dot = strrchr(base, '.'), *extension = job->kind;
    if (is_folder(job->path)) {
        while (len > 1 && job->path[len - 1] == '/')
            len--;
    } else if (has_extension(job->path, index)) {
        len -= sizeof index - 1;
    } else if (dot && dot > base) {
        len = (size_t)(dot - job->path);
        extension = dot + 1;
    }
    coffer__buffer_printf(&name, "%.*s.repaired.%s%c", (int)len, job->path, extension, 0);
    return name.failed ? NULL : (char *)coffer__buffer_release(&name, &total);
}

/* opened : the structure is intact. */
static int check_to(coffer_report **out, bool *opened, const char *path)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_file *file = NULL;
    term_progress bar;
    opts.full = true;
    opts.progress = &bar.progress;
    coffer_status status = coffer_report_new(out, 0, &err);
    if (!status)
        status = coffer_file_open(&file, path, &err);
    if (!status) {
        term_progress_start(&bar, "checking", NULL);
        status = coffer_file_check(*out, file, &opts, &err);
        *opened = coffer_file_tensors(file) != NULL;
        term_progress_end(&bar);
    }
    coffer_file_close(file);
    return status ? fail(path, &err, NULL) : CLI_OK;
}

static int write_result(tensors_repair *job)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    opts.overwrite = cli_has(job->args, "force");
    opts.progress = &bar.progress;
    coffer_status status = coffer_report_new(&job->done, 0, &err);
    term_progress_start(&bar, "repairing", NULL);
    if (!status)
        status = coffer_tensors_repair(job->done, job->path, job->output, &opts, &err);
    term_progress_end(&bar);
    if (status == COFFER_E_EXISTS)
        return fail(job->output, &err, "--force overwrites it, -o OUT writes elsewhere");
    if (status)
        return fail(err.subject == COFFER_SUBJECT_OUTPUT ? job->output : job->path, &err,
                    status == COFFER_E_IO ? NULL : "nothing was written");
    job->written = true;
    return CLI_OK;
}

/* The original gets its second name first, so that it always has one. */
static int replace(tensors_repair *job)
{
    coffer__buffer name = COFFER__BUFFER_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    size_t total;
    coffer__buffer_printf(&name, "%s.orig%c", job->path, 0);
    job->kept = name.failed ? NULL : (char *)coffer__buffer_release(&name, &total);
    if (!job->kept)
        coffer__fail_no_memory(&err, strlen(job->path));
    else if (link(job->path, job->kept) != 0)
        coffer__fail_errno(&err, "the original cannot be kept as NAME.orig", errno);
    else if (rename(job->output, job->path) != 0)
        coffer__fail_errno(&err, "cannot be replaced", errno);
    if (err.status)
        return fail(job->path, &err, errno == EEXIST ? "move the earlier original away first" : NULL);
    coffer__free(job->output);
    job->output = coffer__strdup(job->path);
    return job->output ? CLI_OK : CLI_FAILED;
}

static bool needs_repair(const coffer_report *found)
{
    return coffer_report_total(found, COFFER_ERROR) + coffer_report_total(found, COFFER_WARNING) > 0;
}

static int repair(tensors_repair *job)
{
    const char *given = cli_value(job->args, "output");
    bool intact = false;
    int status = check_to(&job->done, &intact, job->path);
    if (status)
        return status;
    /* Tensors that an earlier repair lost cannot be brought back. */
    if (intact && !given)
        return needs_repair(job->done) ? CLI_FINDINGS : CLI_OK;
    coffer_report_free(job->done);
    job->done = NULL;
    job->output = given ? coffer__strdup(given) : repaired_name(job);
    if (!job->output)
        return fail(job->path, &(coffer_error){ .status = COFFER_E_NO_MEMORY, .text = "out of memory" },
                    NULL);
    status = write_result(job);
    if (!status && job->in_place)
        status = replace(job);
    if (!status && !cli_is_stream(job->output))
        status = check_to(&job->left, &intact, job->output);
    if (!status && (needs_repair(job->done) || (job->left && needs_repair(job->left))))
        status = CLI_FINDINGS;
    return status;
}

static void print_for_people(FILE *out, const tensors_repair *job)
{
    if (!job->written) {
        cli_print_line(out, job->path, ": nothing to repair", NULL);
        cli_print_findings(out, job->done);
        return;
    }
    cli_print_line(out, job->path,
                   job->kept                 ? ": repaired in place; the original is "
                   : needs_repair(job->done) ? ": complete tensors were saved to "
                                             : ": nothing to repair; copied to ",
                   job->kept ? job->kept : job->output);
    cli_print_findings(out, job->done);
    if (needs_repair(job->done))
        fputs("  the format has no checksums: damage inside of a tensor cannot be found\n", out);
}

static int print_as_json(FILE *out, const tensors_repair *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    if (coffer_node_new(&root, &err) != COFFER_OK)
        return fail(job->path, &err, NULL);
    coffer_node_add_text(root, "file", job->path);
    coffer_node_add_text(root, "format", job->kind);
    coffer_node_add_bool(root, "ok", !job->done || !needs_repair(job->done));
    coffer_node_add_bool(root, "rolled_back", false);
    coffer_node_add_text(root, "output", job->written ? job->output : NULL);
    coffer_node_add_text(root, "original", job->kept);
    if (job->done)
        coffer_report_describe(root, "findings", job->done);
    else
        coffer_node_add_list(root, "findings");
    int status = cli_print_json(out, root);
    coffer_node_free(root);
    return status;
}

int cli_repair_model(const cli_args *args, const char *kind)
{
    static const char *const others[] = { "from", "keep-tail", "to" };
    tensors_repair job = {
        .args = args, .path = cli_operand(args, 0), .kind = kind, .in_place = cli_has(args, "in-place")
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (cli_has(args, others[i]))
            return cli_usage(args, "--%s does not apply to %s files", others[i], kind);
    if (job.in_place && is_folder(job.path))
        return cli_usage(args, "--in-place repairs one file: name the shard");
    int status = repair(&job);
    FILE *out = job.output && cli_is_stream(job.output) ? stderr : stdout;
    if (status <= CLI_FINDINGS && cli_has(args, "json"))
        status = cli_worse(status, print_as_json(out, &job));
    else if (status <= CLI_FINDINGS)
        print_for_people(out, &job);
    coffer__free(job.output);
    coffer__free(job.kept);
    coffer_report_free(job.done);
    coffer_report_free(job.left);
    return status;
}
