/* A set as several new ones: each is written under a temporary name, and all get their names at the end. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "coffer/dataset.h"
#include "io/file.h"
#include "io/os.h"
#include "io/temporary.h"

#include <errno.h>

COFFER__INIT_FUNCTION(coffer_mldf_split_part, COFFER_MLDF_SPLIT_PART_INIT)

typedef struct new_set {
    coffer_mldf_split_part part;
    char *temporary; /* NULL: not made yet, or renamed */
    bool renamed;
} new_set;

typedef struct split_job {
    const coffer_mldf *set;
    new_set *sets;
    size_t count, at;
    coffer_mldf_extract_opts extract;
    coffer_mldf_writer_opts write;
    bool overwrite;
} split_job;

static coffer_status prepare(split_job *job, const coffer_mldf_split_part *parts, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (job->at = 0; job->at < job->count; job->at++) {
        new_set *next = &job->sets[job->at];
        struct stat st;
        status = coffer__take_element(&next->part, sizeof next->part, parts, job->at, err);
        if (status)
            return status;
        if (!job->overwrite && coffer__os_stat(next->part.path, &st) == 0)
            return coffer__fail_output(err, coffer__fail(err, COFFER_E_EXISTS, COFFER_OFFSET_NONE,
                                                         "already exists"));
    }
    return COFFER_OK;
}

static coffer_status write_sets(split_job *job, coffer_error *err)
{
    for (job->at = 0; job->at < job->count; job->at++) {
        new_set *next = &job->sets[job->at];
        coffer_mldf_extract_opts extract = job->extract;
        coffer_status status =
            coffer__fail_output(err, coffer_temporary_create(&next->temporary, next->part.path, err));
        extract.samples = next->part.samples;
        extract.sample_count = next->part.sample_count;
        extract.write = &job->write;
        if (!status)
            status = coffer_mldf_extract(next->temporary, job->set, &extract, err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

static coffer_status rename_sets(split_job *job, coffer_error *err)
{
    for (job->at = 0; job->at < job->count; job->at++) {
        new_set *next = &job->sets[job->at];
        int failed = job->overwrite ? coffer__os_rename(next->temporary, next->part.path)
                                    : coffer__os_rename_new(next->temporary, next->part.path);
        if (failed)
            return coffer__fail_output(err, coffer__fail_errno(err, "cannot rename", errno));
        next->renamed = true;
        coffer__temporary_forget(next->temporary);
        coffer__free(next->temporary);
        next->temporary = NULL;
        coffer_status status = coffer__file_sync_folder(next->part.path, err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

/* A file that was replaced cannot come back; the new one is complete and stays. */
static void clean_up(split_job *job, bool failed)
{
    for (size_t i = 0; i < job->count; i++) {
        coffer_temporary_remove(job->sets[i].temporary);
        if (failed && job->sets[i].renamed && !job->overwrite)
            coffer__os_unlink(job->sets[i].part.path);
    }
    coffer__free(job->sets);
}

coffer_status coffer_mldf_split(size_t *failed, const coffer_mldf *set, const coffer_mldf_split_part *parts,
                                size_t count, const coffer_mldf_extract_opts *opts, coffer_error *err)
{
    split_job job = { .set = set,
                      .count = count,
                      .extract = COFFER_MLDF_EXTRACT_OPTS_INIT,
                      .write = COFFER_MLDF_WRITER_OPTS_INIT };
    coffer_status status = coffer__take_options(&job.extract, sizeof job.extract, opts, err);
    if (!status)
        status = coffer__take_options(&job.write, sizeof job.write, job.extract.write, err);
    if (status)
        return status;
    job.overwrite = job.write.overwrite;
    job.write.overwrite = true; /* of the temporary files */
    job.sets = coffer__calloc(count + 1, sizeof *job.sets);
    if (!job.sets)
        return coffer__fail_no_memory(err, count * sizeof *job.sets);
    status = prepare(&job, parts, err);
    if (!status)
        status = write_sets(&job, err);
    if (!status)
        status = rename_sets(&job, err);
    clean_up(&job, status != COFFER_OK);
    if (status && failed)
        *failed = job.at;
    return status;
}
