/* Recordings of which only the part files exist: the command makes the file of one that was killed, and
 * `info` looks at one that may still be running. */
#include "args.h"
#include "base/fail.h"
#include "base/memory.h"
#include "parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Making the file ---- */

static int recover(const char *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_report *report = NULL;
    const coffer_format *format = NULL;
    coffer_status status = coffer_report_new(&report, 64, &err);
    if (!status)
        status = coffer_recover(&format, report, path, NULL, &err);
    int result = CLI_OK;
    if (status == COFFER_E_LOCKED)
        result = cli_fail(path, &err, "'coffer info %' shows what is there so far");
    else if (status)
        result = cli_fail(path, &err, NULL);
    else
        cli_warn(path, "made from the parts of a recording that was killed");
    for (size_t i = 0; !status && i < coffer_report_count(report); i++)
        cli_warn(path, "%s", coffer_report_at(report, i)->text);
    coffer_report_free(report);
    return result;
}

int cli_recover_operands(const cli_args *args)
{
    static const char *const others[] = { "record", "repair", "info" };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(args->verb->name, others[i]) == 0)
            return CLI_OK;
    for (size_t i = 0; i < cli_operand_count(args); i++) {
        const char *path = cli_operand(args, i);
        char *whole = NULL;
        struct stat st;
        if (stat(path, &st) == 0 || coffer_recover_path(&whole, path, NULL) != COFFER_OK)
            continue;
        int status = strcmp(whole, path) == 0 ? recover(path) : CLI_OK;
        coffer_free(whole);
        if (status)
            return status;
    }
    return CLI_OK;
}

/* ---- Looking at it ---- */

/* 0, or the errno of what failed. */
static int copy_file(const char *from, const char *to)
{
    char buffer[1 << 16];
    ssize_t len = -1;
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int number = out < 0 ? errno : 0;
    while (!number && (len = read(in, buffer, sizeof buffer)) > 0)
        if (write(out, buffer, (size_t)len) != len)
            number = errno ? errno : ENOSPC;
    if (!number && len < 0)
        number = errno;
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return number;
}

static bool is_running(const char *part)
{
    int fd = open(part, O_RDONLY | O_CLOEXEC);
    bool running = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return running;
}

/* `path` with another end; the caller frees it. */
static char *with_suffix(const char *path, const char *suffix)
{
    size_t len = strlen(path) + strlen(suffix) + 1;
    char *out = coffer__malloc(len);
    if (out)
        snprintf(out, len, "%s%s", path, suffix);
    return out;
}

static coffer_status copy_part(cli_parts *parts, const char *path, const char *suffix, coffer_error *err)
{
    char *from = with_suffix(path, suffix), *to = with_suffix(parts->path, suffix);
    coffer_status status = COFFER_OK;
    if (!from || !to) {
        status = coffer__fail_no_memory(err, strlen(path) + strlen(parts->path));
    } else {
        parts->running = parts->running || is_running(from);
        int number = copy_file(from, to);
        if (number)
            status = coffer__fail_errno(err, "cannot copy the parts of the recording", number);
    }
    coffer__free(from);
    coffer__free(to);
    return status;
}

/* Says which folder was tried: the one that TMPDIR names, or the usual one. */
static int fail_folder(const char *folder, bool named, int number)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__ignore(coffer__fail_errno(&err, "cannot make a temporary folder here", number));
    return cli_fail(folder, &err,
                    named ? "set TMPDIR to a folder that exists and can be written to"
                          : "set TMPDIR to a folder with room for a copy of the recording");
}

static int make_folder(cli_parts *out)
{
    const char *folder = getenv("TMPDIR");
    bool named = folder && *folder;
    folder = named ? folder : "/tmp";
    out->folder = with_suffix(folder, "/coffer-XXXXXX");
    if (!out->folder || !mkdtemp(out->folder)) {
        int number = out->folder ? errno : ENOMEM;
        coffer__free(out->folder);
        out->folder = NULL;
        return fail_folder(folder, named, number);
    }
    out->path = with_suffix(out->folder, "/trace");
    return out->path ? CLI_OK : fail_folder(folder, named, ENOMEM);
}

int cli_parts_copy(cli_parts *out, const char *path)
{
    char *whole = NULL;
    coffer_report *report = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    struct stat st;
    *out = (cli_parts){ 0 };
    if (stat(path, &st) == 0 || coffer_recover_path(&whole, path, NULL) != COFFER_OK)
        return CLI_OK;
    bool same = strcmp(whole, path) == 0;
    coffer_free(whole);
    if (!same)
        return CLI_OK;
    int result = make_folder(out);
    if (result)
        goto out;
    coffer_status status = copy_part(out, path, ".strings", &err);
    if (!status)
        status = copy_part(out, path, ".part", &err);
    if (!status)
        status = coffer_report_new(&report, 64, &err);
    if (!status)
        status = coffer_recover(NULL, report, out->path, NULL, &err);
    coffer_report_free(report);
    if (status)
        result = cli_fail(path, &err, "'coffer repair %' makes the trace of its parts");
out:
    if (result)
        cli_parts_remove(out);
    return result;
}

void cli_parts_remove(cli_parts *parts)
{
    static const char *const suffixes[] = { "", ".idx", ".part", ".strings" };
    for (size_t i = 0; parts->path && i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char *path = with_suffix(parts->path, suffixes[i]);
        if (path)
            unlink(path);
        coffer__free(path);
    }
    if (parts->folder)
        rmdir(parts->folder);
    coffer__free(parts->path);
    coffer__free(parts->folder);
    *parts = (cli_parts){ .running = parts->running };
}
