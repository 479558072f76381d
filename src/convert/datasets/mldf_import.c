/* Files of others as training sets: one input each, all written the same way. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "convert/convert.h"
#include "convert/datasets/dataset_input.h"
#include "convert/datasets/mldf_export.h"
#include "io/file.h"
#include "io/source_private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <string.h>

#define WRITE_OPTIONS                                                                                      \
    { "zstd", NULL, "compress what is not compressed yet" }, { "dedup", NULL, "store equal values once" }, \
        { "key-file", "FILE", "encrypt with this key: 32 bytes or 64 hexadecimal digits" },                \
    {                                                                                                      \
        NULL, NULL, NULL                                                                                   \
    }

#define IMAGE_OPTIONS                                                                \
    { "jpeg-quality", "N", "encode pictures again, 1 to 100" },                      \
        { "max-size", "PIXELS", "make pictures smaller so that no side is longer" }, \
    {                                                                                \
        "raw", NULL, "store decoded pixels"                                          \
    }

const coffer_convert_option coffer__mldf_import_options[] = { IMAGE_OPTIONS, WRITE_OPTIONS };
const coffer_convert_option coffer__mldf_import_manifest_options[] = {
    { "files", NULL, "read in the files that values name, from the folder of the manifest" },
    IMAGE_OPTIONS,
    WRITE_OPTIONS,
};
const coffer_convert_option coffer__mldf_import_array_options[] = { WRITE_OPTIONS };

static coffer_status take_settings(coffer_mldf_pack_opts *opts, coffer_mldf_writer_opts *write,
                                   uint8_t room[COFFER_MLDF_KEY_SIZE], const coffer__convert_job *job,
                                   coffer_error *err)
{
    uint64_t quality = 0, max_size = 0;
    coffer_status status = coffer__job_number(&quality, job, "jpeg-quality", 100, err);
    if (!status)
        status = coffer__job_number(&max_size, job, "max-size", UINT16_MAX, err);
    if (!status)
        status = coffer__mldf_job_key(&write->key, room, job, err);
    opts->jpeg_quality = (uint32_t)quality;
    opts->max_size = (uint32_t)max_size;
    opts->raw = coffer__job_has(job, "raw");
    opts->zstd = coffer__job_has(job, "zstd");
    opts->encrypt = write->key != NULL;
    write->dedup = coffer__job_has(job, "dedup");
    write->overwrite = job->overwrite;
    write->limits = &job->limits;
    opts->write = write;
    opts->progress = job->progress;
    return status;
}

static void report(coffer_report *notes, const coffer_node *account)
{
    const coffer_node *list = coffer_node_find(account, "notes");
    for (const coffer_node *note = coffer_node_first(list); note; note = coffer_node_next(note))
        coffer__report_add(notes, COFFER_E_UNSUPPORTED, COFFER_WARNING, COFFER_OFFSET_NONE, "%" PRIu64 " %s",
                           coffer_node_get_u64(coffer_node_find(note, "count")),
                           coffer_node_get_text(coffer_node_find(note, "text"), NULL));
    list = coffer_node_find(account, "left_out");
    for (const coffer_node *one = coffer_node_first(list); one; one = coffer_node_next(one))
        coffer__report_add(notes, COFFER_E_UNSUPPORTED, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "left out: %s: %s", coffer_node_get_text(coffer_node_find(one, "sample"), NULL),
                           coffer_node_get_text(coffer_node_find(one, "text"), NULL));
    const coffer_node *kept = coffer_node_find(account, "kept_as_text");
    if (kept)
        coffer__report_add(
            notes, COFFER_E_UNSUPPORTED, COFFER_WARNING, COFFER_OFFSET_NONE,
            "field \"%s\" lists files but is stored as text: some are missing or of different types",
            coffer_node_get_text(kept, NULL));
}

/* Writes and closes the input. */
static coffer_status import(const coffer__convert_job *job, coffer__dataset_input *input, coffer_error *err)
{
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    coffer_mldf_writer_opts write = COFFER_MLDF_WRITER_OPTS_INIT;
    uint8_t room[COFFER_MLDF_KEY_SIZE];
    coffer_node *account = NULL;
    input->bytes = coffer_source_size(job->in);
    coffer_status status = take_settings(&opts, &write, room, job, err);
    if (!status)
        status = coffer_node_new(&account, err);
    if (!status)
        status = coffer__dataset_write(account, input, job->out_path, &opts, false, err);
    if (!status && job->notes)
        report(job->notes, account);
    coffer_node_free(account);
    sodium_memzero(room, sizeof room);
    coffer__dataset_input_close(input);
    return status ? status : coffer_source_intact(job->in, err);
}

typedef coffer_status open_function(coffer__dataset_input **out, coffer_source *src,
                                    const coffer_limits *limits, coffer_error *err);

static coffer_status import_file(const coffer__convert_job *job, open_function *open, coffer_error *err)
{
    coffer__dataset_input *input = NULL;
    coffer_status status = open(&input, job->in, &job->limits, err);
    return status ? status : import(job, input, err);
}

coffer_status coffer__mldf_from_npy(const coffer__convert_job *job, coffer_error *err)
{
    return import_file(job, coffer__dataset_open_npy, err);
}

coffer_status coffer__mldf_from_npz(const coffer__convert_job *job, coffer_error *err)
{
    return import_file(job, coffer__dataset_open_npz, err);
}

coffer_status coffer__mldf_from_tfrecord(const coffer__convert_job *job, coffer_error *err)
{
    return import_file(job, coffer__dataset_open_tfrecord, err);
}

coffer_status coffer__mldf_from_beton(const coffer__convert_job *job, coffer_error *err)
{
    return import_file(job, coffer__dataset_open_beton, err);
}

coffer_status coffer__mldf_from_tar(const coffer__convert_job *job, coffer_error *err)
{
    coffer__dataset_input *input = NULL;
    coffer_status status = coffer__dataset_open_tar(&input, &job->in, 1, &job->limits, err);
    return status ? status : import(job, input, err);
}

typedef coffer_status open_manifest_function(coffer__dataset_input **out, coffer_source *src, int folder,
                                             const coffer_limits *limits, coffer_error *err);

static coffer_status open_folder_of(int *folder, const coffer__convert_job *job, coffer_error *err)
{
    const char *path = coffer__source_path(job->in);
    if (!coffer__job_has(job, "files"))
        return COFFER_OK;
    if (!path)
        return coffer__fail_other(err,
                                  coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                               "not a file, so its folder is unknown"),
                                  coffer__source_other_name(job->in));
    char *name = coffer__strndup(path, coffer__file_folder_len(path));
    if (!name)
        return coffer__fail_no_memory(err, strlen(path));
    coffer_status status = coffer__file_open(folder, *name ? name : ".", O_RDONLY | O_DIRECTORY, 0, err);
    coffer__free(name);
    return status;
}

static coffer_status import_manifest(const coffer__convert_job *job, open_manifest_function *open,
                                     coffer_error *err)
{
    coffer__dataset_input *input = NULL;
    int folder = -1;
    coffer_status status = open_folder_of(&folder, job, err);
    if (!status)
        status = open(&input, job->in, folder, &job->limits, err);
    if (!status)
        status = import(job, input, err);
    coffer__file_close(folder);
    return status;
}

coffer_status coffer__mldf_from_jsonl(const coffer__convert_job *job, coffer_error *err)
{
    return import_manifest(job, coffer__dataset_open_jsonl, err);
}

coffer_status coffer__mldf_from_csv(const coffer__convert_job *job, coffer_error *err)
{
    return import_manifest(job, coffer__dataset_open_csv, err);
}
