/* Repair in place, and files from the parts of a recording. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "formats/format.h"
#include "io/file.h"
#include "io/os.h"
#include "io/source_private.h"
#include "io/temporary.h"

#include <errno.h>
#include <string.h>

void coffer__note_interrupted(coffer_report *out, const coffer_source *src)
{
    if (coffer_source_interrupted_update(src))
        coffer__report_add(out, COFFER_E_INTERRUPTED_UPDATE, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "interrupted update, old state shown");
}

coffer_status coffer__expect_settled(const coffer_source *src, coffer_error *err)
{
    if (coffer__source_settled(src))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE, "changed while it was checked, try again");
}

coffer_status coffer__rescue_write(const char *path, bool overwrite, coffer_source *src,
                                   const coffer_progress *progress, coffer__rescue_compose compose,
                                   void *context, coffer_error *err)
{
    coffer__sink_opts options = { .exclusive = !overwrite };
    coffer__sink *sink = NULL;
    coffer_status status = coffer__sink_create(&sink, path, &options, err);
    if (status)
        return status;
    status = compose ? compose(sink, context, err)
                     : coffer__sink_copy_source(sink, src, 0, coffer_source_size(src), progress, err);
    if (status) {
        coffer__sink_discard(sink);
        return status;
    }
    return coffer__sink_commit(sink, err);
}

/* ---- Repair in place ---- */

typedef struct in_place {
    coffer_source *src;
    const char *target; /* the path without symbolic links */
    char *temporary;    /* the result, in the same folder */
    char *original;     /* the second name of the original */
    int lock;
} in_place;

static char *join(const char *path, const char *suffix)
{
    size_t len = strlen(path), suffix_len = strlen(suffix);
    char *name = coffer__malloc(len + suffix_len + 1);
    if (name) {
        memcpy(name, path, len);
        memcpy(name + len, suffix, suffix_len + 1);
    }
    return name;
}

/* Under the lock: what a writer has changed since the file was opened would be lost. */
static coffer_status expect_unchanged(const in_place *job, coffer_error *err)
{
    if (coffer__source_is_open_as(job->src, job->lock) && coffer__source_settled(job->src))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE, "changed while it was checked");
}

/* The result gets the mode of the file before it has any content. */
static coffer_status begin(in_place *job, coffer_error *err)
{
    struct stat st;
    int fd;
    if (coffer__os_stat(job->target, &st) != 0)
        return coffer__fail_errno(err, "cannot be replaced", errno);
    coffer_status status = coffer__lock_open(&job->lock, job->target, err);
    if (!status)
        status = expect_unchanged(job, err);
    if (!status)
        status = coffer__temporary_create(&fd, &job->temporary, job->target, err);
    if (status)
        return status;
    int changed = coffer__os_chmod(fd, st.st_mode & 07777), error_number = errno;
    coffer__os_close(fd);
    return changed == 0 ? COFFER_OK : coffer__fail_errno(err, "its mode cannot be kept", error_number);
}

static coffer_status check_result(coffer_report *left, const in_place *job, const coffer_format *format,
                                  const coffer_repair_opts *opts, coffer_error *err)
{
    coffer_check_opts check = COFFER_CHECK_OPTS_INIT;
    coffer_source *result = NULL;
    coffer_status status = coffer_source_open(&result, job->temporary, NULL, err);
    if (status)
        return status;
    check.full = true;
    check.limits = opts->limits;
    check.progress = opts->progress;
    check.key = opts->key;
    status = coffer_format_check(left, format, result, &check, err);
    coffer_source_close(result);
    return status;
}

/* The original gets its second name first, so that it always has one. */
static coffer_status replace(in_place *job, coffer_error *err)
{
    job->original = join(job->target, ".orig");
    if (!job->original)
        return coffer__fail_no_memory(err, strlen(job->target) + sizeof ".orig");
    if (coffer__os_link(job->target, job->original) != 0) {
        int error_number = errno;
        if (error_number != EEXIST)
            return coffer__fail_errno(err, "the original cannot be kept as a second name", error_number);
        return coffer__fail_other(err,
                                  coffer__fail(err, COFFER_E_EXISTS, COFFER_OFFSET_NONE, "already exists"),
                                  job->original);
    }
    if (coffer__os_rename(job->temporary, job->target) != 0) {
        coffer_status status = coffer__fail_errno(err, "cannot be replaced", errno);
        coffer__os_unlink(job->original);
        return status;
    }
    coffer__temporary_forget(job->temporary);
    coffer__free(job->temporary);
    job->temporary = NULL;
    return coffer__file_sync_folder(job->target, err);
}

coffer_status coffer_repair_in_place(coffer_report *out, coffer_report *left, char **original,
                                     coffer_source *src, const coffer_repair_opts *opts, coffer_error *err)
{
    coffer_repair_opts options = COFFER_REPAIR_OPTS_INIT;
    in_place job = { .src = src, .target = coffer__source_path(src), .lock = -1 };
    const coffer_format *format;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    if (!job.target)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "only a file that was opened by its path can be repaired in place");
    if (coffer_source_interrupted_update(src))
        return coffer__fail(err, COFFER_E_INTERRUPTED_UPDATE, COFFER_OFFSET_NONE,
                            "an interrupted update has to be rolled back first");
    status = coffer_identify(&format, src, err);
    if (!status)
        status = begin(&job, err);
    options.overwrite = options.in_place = true;
    if (!status)
        status = coffer_format_repair(out, format, src, job.temporary, &options, err);
    if (!status && left)
        status = check_result(left, &job, format, &options, err);
    if (!status)
        status = replace(&job, err);
    if (job.temporary) {
        coffer__os_unlink(job.temporary);
        coffer__temporary_forget(job.temporary);
        coffer__free(job.temporary);
    }
    coffer__file_close(job.lock);
    if (!status && original)
        *original = job.original;
    else
        coffer__free(job.original);
    return status;
}

/* ---- Files from the parts of a recording ---- */

static bool exists(const char *path)
{
    struct stat st;
    return coffer__os_stat(path, &st) == 0;
}

static bool ends_with(const char *text, const char *suffix)
{
    size_t len = strlen(text), suffix_len = strlen(suffix);
    return len > suffix_len && strcmp(text + len - suffix_len, suffix) == 0;
}

/* Whether `path` belongs to a recording whose parts have this suffix: *len is that of the path of the file.
 */
static coffer_status is_of_recording(bool *yes, size_t *len, const char *path, const char *suffix,
                                     coffer_error *err)
{
    const coffer_format *known;
    *len = strlen(path);
    *yes = false;
    if (!exists(path)) {
        char *part = join(path, suffix);
        if (!part)
            return coffer__fail_no_memory(err, *len + strlen(suffix) + 1);
        *yes = exists(part);
        coffer__free(part);
    }
    if (!*yes && ends_with(path, suffix) && coffer_identify_path(&known, path, NULL) != COFFER_OK) {
        *len -= strlen(suffix);
        *yes = true;
    }
    return COFFER_OK;
}

coffer_status coffer_recover_path(char **out, const char *path, coffer_error *err)
{
    for (size_t i = 0; i < coffer_format_count(); i++) {
        const coffer_format *format = coffer_format_at(i);
        for (size_t j = 0; j < coffer_format_part_suffix_count(format); j++) {
            bool yes;
            size_t len;
            coffer_status status =
                is_of_recording(&yes, &len, path, coffer_format_part_suffix_at(format, j), err);
            if (status)
                return status;
            if (!yes)
                continue;
            char *file = coffer__strndup(path, len);
            if (!file)
                return coffer__fail_no_memory(err, len + 1);
            *out = file;
            return COFFER_OK;
        }
    }
    return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "not a part of a recording");
}

coffer_status coffer_recover(const coffer_format **format, coffer_report *out, const char *path,
                             const coffer_repair_opts *opts, coffer_error *err)
{
    coffer_repair_opts options = COFFER_REPAIR_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    for (size_t i = 0; i < coffer_format_count(); i++) {
        const coffer_format *row = coffer_format_at(i);
        if (!row->recover)
            continue;
        status = row->recover(out, path, &options, err);
        if (status == COFFER_E_NOT_FOUND)
            continue;
        if (!status && format)
            *format = row;
        return status;
    }
    return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE,
                        "no parts of a recording were found next to it");
}
