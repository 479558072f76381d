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

static bool copy_file(const char *from, const char *to)
{
    char buffer[1 << 16];
    ssize_t len = -1;
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    while (in >= 0 && out >= 0 && (len = read(in, buffer, sizeof buffer)) > 0)
        if (write(out, buffer, (size_t)len) != len) {
            len = -1;
            break;
        }
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return len == 0;
}

static bool is_running(const char *part)
{
    int fd = open(part, O_RDONLY | O_CLOEXEC);
    bool running = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return running;
}

static bool copy_parts(const char *path, const char *copy)
{
    static const char *const suffixes[] = { ".strings", ".part" };
    bool copied = true;
    for (size_t i = 0; i < 2; i++) {
        char from[PATH_MAX], to[PATH_MAX];
        snprintf(from, sizeof from, "%s%s", path, suffixes[i]);
        snprintf(to, sizeof to, "%s%s", copy, suffixes[i]);
        copied = copy_file(from, to) && copied;
    }
    return copied;
}

bool cli_parts_copy(cli_parts *out, const char *path)
{
    char *whole = NULL, part[PATH_MAX];
    const char *folder = getenv("TMPDIR");
    coffer_report *report = NULL;
    struct stat st;
    *out = (cli_parts){ .running = false };
    if (stat(path, &st) == 0 || coffer_recover_path(&whole, path, NULL) != COFFER_OK)
        return false;
    bool same = strcmp(whole, path) == 0;
    coffer_free(whole);
    snprintf(part, sizeof part, "%s.part", path);
    snprintf(out->folder, sizeof out->folder, "%.2000s/coffer-XXXXXX", folder && *folder ? folder : "/tmp");
    if (!same || !mkdtemp(out->folder))
        return false;
    snprintf(out->path, sizeof out->path, "%s/trace", out->folder);
    out->running = is_running(part);
    bool made = copy_parts(path, out->path) && coffer_report_new(&report, 64, NULL) == COFFER_OK &&
                coffer_recover(NULL, report, out->path, NULL, NULL) == COFFER_OK;
    coffer_report_free(report);
    if (!made)
        cli_parts_remove(out);
    return made;
}

void cli_parts_remove(cli_parts *parts)
{
    static const char *const suffixes[] = { "", ".idx", ".part", ".strings" };
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s%s", parts->path, suffixes[i]);
        unlink(path);
    }
    rmdir(parts->folder);
}
