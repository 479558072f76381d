/* Folders, shards and manifests into one training set. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "convert/datasets/dataset_input.h"
#include "io/file.h"
#include "io/os.h"
#include "io/source_private.h"
#include "outside/archives/folder_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

COFFER__INIT_FUNCTION(coffer_mldf_pack_opts, COFFER_MLDF_PACK_OPTS_INIT)

typedef struct pack {
    coffer_mldf_pack_opts opts;
    coffer_mldf_writer_opts write;
    coffer_limits limits;
    coffer__folder_list list; /* the files of `listed` */
    const char *listed;       /* a folder of the inputs, or NULL */
    const char *const *inputs;
    size_t input_count;
    /* Shards of tar, or one manifest or array. */
    coffer_source **sources;
    size_t source_count, source_capacity;
    int folder; /* of the manifest, or −1 */
    coffer__dataset_input *input;
} pack;

static bool is_shard(const char *path)
{
    static const char *const ends[] = { ".tar", ".tar.gz", ".tgz", ".tar.zst" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (coffer__file_has_extension(path, ends[i]))
            return true;
    }
    return false;
}

static bool is_jsonl(const char *path)
{
    return coffer__file_has_extension(path, ".jsonl") || coffer__file_has_extension(path, ".ndjson");
}

static bool is_folder(const char *path)
{
    struct stat st;
    return coffer__os_stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static coffer_status add_source(pack *work, const char *path, coffer_error *err)
{
    struct stat st;
    coffer_status status = coffer__array_reserve_one(&work->sources, &work->source_capacity,
                                                     work->source_count, sizeof *work->sources, err);
    if (status)
        return status;
    coffer_source *src = NULL;
    bool named = work->input_count == 1 && path == work->inputs[0];
    status = (named ? coffer_source_open : coffer__source_open_other)(&src, path, NULL, err);
    if (status)
        return status;
    work->sources[work->source_count++] = src;
    if (coffer__os_stat(path, &st) != 0)
        return coffer__fail_errno(err, "cannot examine", errno);
    return COFFER_OK;
}

/* Adds names, sizes and times of the files to the digest. */
static void fingerprint(const pack *work)
{
    for (size_t i = 0; i < work->source_count; i++) {
        const char *name = coffer_source_name(work->sources[i]);
        struct stat st;
        coffer__digest_add(work->input->seen, name, strlen(name) + 1);
        if (coffer__os_stat(name, &st) != 0)
            continue;
        uint64_t facts[] = { (uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec,
                             (uint64_t)st.st_mtim.tv_nsec };
        coffer__digest_add(work->input->seen, facts, sizeof facts);
        work->input->bytes += (uint64_t)st.st_size;
    }
}

static coffer_status add_files_of(pack *work, size_t index, coffer_error *err)
{
    const coffer__folder_walk_opts opts = { .follow_links = work->opts.follow_links,
                                            .keep_unreadable = work->opts.keep_going,
                                            .root = (uint32_t)index };
    return coffer__folder_list_read(&work->list, work->inputs[index], &opts, &work->limits, err);
}

/* Each folder is walked once. */
static coffer_status list_files(pack *work, size_t index, coffer_error *err)
{
    if (work->listed == work->inputs[index])
        return COFFER_OK;
    coffer__folder_list_free(&work->list);
    work->list = (coffer__folder_list){ 0 };
    work->listed = work->inputs[index];
    return add_files_of(work, index, err);
}

/* Adds the shards of a folder, sorted by name. */
static coffer_status add_shards_of(pack *work, size_t index, coffer_error *err)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    const char *folder = work->inputs[index];
    coffer_status status = list_files(work, index, err);
    for (size_t i = 0; !status && i < work->list.count; i++) {
        const coffer__folder_file *file = &work->list.files[i];
        if (!is_shard(file->path) || file->hidden)
            continue;
        path.len = 0;
        coffer__buffer_printf(&path, "%s/%s", folder, file->path);
        if (path.failed)
            status = coffer__fail_no_memory(err, strlen(folder));
        else if (file->entry != COFFER__ENTRY_FILE)
            status =
                coffer__fail_other(err,
                                   coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE,
                                                "%s, not a file", coffer__folder_entry_name(file->entry)),
                                   file->path);
        else
            status = add_source(work, coffer__buffer_text(&path), err);
    }
    coffer__buffer_free(&path);
    return status;
}

/* The files next to the shards of a folder. */
static coffer_status leave_out_others(pack *work, size_t index, coffer_error *err)
{
    coffer_status status = list_files(work, index, err);
    for (size_t i = 0; !status && i < work->list.count; i++) {
        const coffer__folder_file *file = &work->list.files[i];
        if (is_shard(file->path) && !file->hidden)
            continue;
        work->input->found++;
        status = coffer__dataset_leave_out(work->input, file->path, COFFER_E_UNSUPPORTED,
                                           file->hidden ? "hidden" : "not a tar file", file->hidden, err);
    }
    return status;
}

static coffer_status open_shards(pack *work, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < work->input_count; i++)
        status =
            is_folder(work->inputs[i]) ? add_shards_of(work, i, err) : add_source(work, work->inputs[i], err);
    if (!status && work->source_count == 0)
        status = coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "no tar files in the folder");
    if (!status)
        status =
            coffer__dataset_open_tar(&work->input, work->sources, work->source_count, &work->limits, err);
    for (size_t i = 0; !status && i < work->input_count; i++)
        if (is_folder(work->inputs[i]))
            status = leave_out_others(work, i, err);
    return status;
}

static coffer_status open_manifest(pack *work, coffer_error *err)
{
    const char *path = work->inputs[0];
    size_t len = coffer__file_folder_len(path);
    char *folder = work->opts.root ? coffer__strdup(work->opts.root)
                   : len           ? coffer__strndup(path, len)
                                   : coffer__strdup(".");
    if (!folder)
        return coffer__fail_no_memory(err, len + 1);
    coffer_status status = coffer__file_open(&work->folder, folder, O_RDONLY | O_DIRECTORY, 0, err);
    if (status && work->opts.root)
        status = coffer__fail_other(err, status, folder);
    coffer__free(folder);
    if (!status)
        status = add_source(work, path, err);
    if (status)
        return status;
    return (is_jsonl(path)
                ? coffer__dataset_open_jsonl
                : coffer__dataset_open_csv)(&work->input, work->sources[0], work->folder, &work->limits, err);
}

static coffer_status open_array(pack *work, coffer_error *err)
{
    coffer_status status = add_source(work, work->inputs[0], err);
    return status ? status : coffer__dataset_open_npy(&work->input, work->sources[0], &work->limits, err);
}

static coffer_status fail_one(const pack *work, const char *what, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "%zu inputs: %s must be packed alone; tar shards and folders can be packed together",
                        work->input_count, what);
}

/* *out : true when at least half of the files of a folder are shards. */
static coffer_status holds_shards(bool *out, pack *work, coffer_error *err)
{
    coffer_status status = list_files(work, 0, err);
    size_t shards = 0, others = 0;
    for (size_t i = 0; i < work->list.count; i++) {
        bool shard = is_shard(work->list.files[i].path);
        shards += shard && !work->list.files[i].hidden;
        others += !shard && !work->list.files[i].hidden;
    }
    *out = shards && shards >= others;
    return status;
}

static coffer_status choose_kind(coffer_dataset_kind *kind, pack *work, coffer_error *err)
{
    const char *first = work->inputs[0];
    bool shards = is_shard(first);
    if (*kind != COFFER_DATASET_AUTO)
        return COFFER_OK;
    if (is_folder(first)) {
        coffer_status status = holds_shards(&shards, work, err);
        if (status)
            return status;
    } else if (!shards) {
        *kind = coffer__file_has_extension(first, ".npy")                      ? COFFER_DATASET_ARRAYS
                : is_jsonl(first) || coffer__file_has_extension(first, ".csv") ? COFFER_DATASET_MANIFEST
                                                                               : COFFER_DATASET_AUTO;
        return *kind != COFFER_DATASET_AUTO
                   ? COFFER_OK
                   : coffer__fail(err, COFFER_E_NOT_RECOGNISED, COFFER_OFFSET_NONE,
                                  "neither a folder nor a .tar, .jsonl, .csv or .npy file");
    }
    if (shards)
        *kind = COFFER_DATASET_WEBDATASET;
    return COFFER_OK;
}

static coffer_status fail_input(int error_number, coffer_error *err)
{
    coffer_status status = coffer__fail_errno(err, "cannot open", error_number);
    if (error_number == ENOENT)
        status = COFFER_E_NOT_FOUND;
    if (err)
        err->status = status;
    return status;
}

static coffer_status open_input(pack *work, coffer_error *err)
{
    coffer_dataset_kind kind = work->opts.kind;
    struct stat st;
    if (coffer__os_stat(work->inputs[0], &st) != 0)
        return fail_input(errno, err);
    coffer_status status = choose_kind(&kind, work, err);
    if (status)
        return status;
    if (kind == COFFER_DATASET_WEBDATASET)
        return open_shards(work, err);
    size_t folders = 0;
    for (size_t i = 0; i < work->input_count; i++)
        folders += is_folder(work->inputs[i]);
    if (work->input_count != 1 && folders != work->input_count)
        return fail_one(work, folders ? "folders and files" : "such a file", err);
    if (kind == COFFER_DATASET_MANIFEST)
        return open_manifest(work, err);
    if (kind == COFFER_DATASET_ARRAYS && folders == 0)
        return open_array(work, err);
    status = list_files(work, 0, err);
    for (size_t i = 1; !status && i < work->input_count; i++)
        status = add_files_of(work, i, err);
    return status ? status
                  : coffer__dataset_open_folders(&work->input, work->inputs, work->input_count, &work->list,
                                                 &work->opts, &work->limits, err);
}

/* With `strict`, nothing is left out that the options did not name. */
static coffer_status expect_all(const pack *work, coffer_error *err)
{
    const coffer__left_out *first = NULL;
    size_t count = 0;
    for (size_t i = work->input->left_out_count; work->opts.strict && i-- > 0;) {
        if (work->input->left_out[i].expected)
            continue;
        first = &work->input->left_out[i];
        count++;
    }
    if (count == 0)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                        "%zu of %" PRIu64 " %s would be left out, the first is %s: %s", count,
                        work->input->found, work->input->unit, first->name, first->text);
}

/* Leftovers are neither resumed nor deleted unless asked. */
static coffer_status check_partial(const char *out_path, const coffer_mldf_pack_opts *opts, coffer_error *err)
{
    coffer__buffer partial = COFFER__BUFFER_INIT;
    struct stat st;
    coffer_status status = COFFER_OK;
    if (opts->restart)
        return coffer_mldf_writer_drop_partial(out_path, err);
    coffer__buffer_printf(&partial, "%s.partial", out_path);
    if (partial.failed)
        status = coffer__fail_no_memory(err, strlen(out_path));
    else if (!opts->resume && coffer__os_stat(coffer__buffer_text(&partial), &st) == 0)
        status =
            coffer__fail_output(err, coffer__fail(err, COFFER_E_EXISTS, COFFER_OFFSET_NONE,
                                                  "an interrupted pack left a partial file: resume it or "
                                                  "restart"));
    coffer__buffer_free(&partial);
    return status;
}

static coffer_status check_options(const coffer_mldf_pack_opts *opts, size_t input_count, coffer_error *err)
{
    if (input_count == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "no input to pack");
    if (opts->jpeg_quality > 100)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a JPEG quality of %" PRIu32 " is not in 1 to 100", opts->jpeg_quality);
    if (opts->raw && opts->jpeg_quality)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "decoded pixels have no JPEG quality");
    if (opts->resume && opts->restart)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "resume and restart exclude each other");
    if ((opts->resume || opts->restart) && (opts->dry_run || opts->count || opts->part_count))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a pack in parts cannot be resumed");
    if (opts->count && opts->part_count)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a call either packs a part or joins parts");
    if (opts->encrypt && !opts->write->key)
        return coffer__fail(err, COFFER_E_KEY_NEEDED, COFFER_OFFSET_NONE, "encryption requires a key");
    return COFFER_OK;
}

static coffer_status intact(const pack *work, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < work->source_count; i++)
        status = coffer_source_intact(work->sources[i], err);
    return status;
}

coffer_status coffer_mldf_pack(coffer_node *out, const char *const *inputs, size_t input_count,
                               const char *out_path, const coffer_mldf_pack_opts *opts, coffer_error *err)
{
    pack work = { .opts = COFFER_MLDF_PACK_OPTS_INIT,
                  .write = COFFER_MLDF_WRITER_OPTS_INIT,
                  .inputs = inputs,
                  .input_count = input_count,
                  .folder = -1 };
    coffer_status status = coffer__take_options(&work.opts, sizeof work.opts, opts, err);
    if (!status)
        status = coffer__take_options(&work.write, sizeof work.write, work.opts.write, err);
    work.opts.write = &work.write;
    if (!status)
        status = check_options(&work.opts, input_count, err);
    if (!status && !work.opts.dry_run)
        status = check_partial(out_path, &work.opts, err);
    if (status)
        return status;
    work.limits = coffer__limits(work.write.limits);
    status = open_input(&work, err);
    if (!status && work.opts.labels)
        status = coffer__dataset_number_labels(&work.input, work.opts.labels, err);
    if (!status) {
        fingerprint(&work);
        status = expect_all(&work, err);
    }
    if (!status)
        status = coffer__dataset_expect_list(work.input, &work.opts, err);
    bool resumable = !work.write.no_partial && !work.opts.count && !work.opts.part_count;
    if (!status)
        status = work.opts.dry_run
                     ? coffer__dataset_survey(out, work.input, err)
                     : coffer__dataset_write(out, work.input, out_path, &work.opts, resumable, err);
    if (!status)
        status = intact(&work, err);
    coffer__dataset_input_close(work.input);
    for (size_t i = 0; i < work.source_count; i++)
        coffer_source_close(work.sources[i]);
    coffer__free(work.sources);
    coffer__folder_list_free(&work.list);
    coffer__file_close(work.folder);
    return status;
}
