/* Opening a remote file: the first request, the files that are kept open, and whole downloads. */
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/remote/block_cache.h"
#include "io/remote/disk_cache.h"
#include "io/remote/remote.h"
#include "io/source_struct.h"
#include "io/temporary.h"

#include <string.h>

#define BLOCK COFFER__REMOTE_BLOCK

void coffer__remote_file_release(coffer__remote_file *file)
{
    if (--file->users)
        return;
    coffer__cache_forget(file->id);
    coffer__disk_cache_close(file->disk);
    coffer__free(file->plan.ranges);
    coffer__url_free(&file->moved);
    coffer__remote_address_free(&file->address);
    coffer__free(file->asked_as);
    coffer__free(file);
}

static coffer__remote_file *kept_files; /* under the lock */

/* A file that this process opened before. */
static coffer__remote_file *find_kept(const char *address)
{
    pthread_mutex_lock(&coffer__remote_lock);
    coffer__remote_file *file = kept_files;
    while (file && strcmp(file->asked_as, address) != 0)
        file = file->next_kept;
    if (file)
        file->users++;
    pthread_mutex_unlock(&coffer__remote_lock);
    return file;
}

static coffer_status keep_file(coffer__remote_file *file, const char *address, coffer_error *err)
{
    if (!coffer__remote_settings_now()->one_version)
        return COFFER_OK;
    file->asked_as = coffer__strdup(address);
    if (!file->asked_as)
        return coffer__fail_no_memory(err, strlen(address) + 1);
    pthread_mutex_lock(&coffer__remote_lock);
    file->users++;
    file->next_kept = kept_files;
    kept_files = file;
    pthread_mutex_unlock(&coffer__remote_lock);
    return COFFER_OK;
}

static void remote_close(void *context)
{
    coffer__remote_file *file = context;
    pthread_mutex_lock(&coffer__remote_lock);
    file->closed = !file->asked_as;
    if (file->closed)
        coffer__remote_forget(file);
    coffer__remote_file_release(file);
    pthread_mutex_unlock(&coffer__remote_lock);
}

/* Keeps what the first request brought. */
static void keep_beginning(coffer__remote_file *file, const uint8_t *bytes, size_t len)
{
    for (uint64_t block = 0; block * BLOCK < len; block++) {
        size_t n = coffer__remote_block_length(file, block);
        uint32_t frame = block * BLOCK + n <= len ? coffer__cache_claim(file->id, block) : COFFER__FRAME_NONE;
        if (frame == COFFER__FRAME_NONE)
            return;
        memcpy(coffer__cache_bytes(frame), bytes + block * BLOCK, n);
        coffer__cache_settle(frame, true);
        coffer__cache_release(frame);
        if (file->disk)
            coffer__disk_cache_store(file->disk, block, bytes + block * BLOCK, n);
    }
}

/* The first request: size, validators and the beginning in one round trip. With the lock. */
static coffer_status ask_first(coffer__remote_file *file, coffer__direct_read *read, coffer_error *err)
{
    const coffer__remote_settings *settings = coffer__remote_settings_now();
    coffer__remote_fetch *fetch = &read->fetch;
    fetch->is_opening = true;
    coffer_status status = coffer__remote_wait_for(fetch, &read->has_ended, err);
    if (status)
        return status;
    const coffer__http_answer *answer = &fetch->answer;
    file->size = answer->total;
    memcpy(file->etag, answer->etag, sizeof file->etag);
    memcpy(file->modified, answer->modified, sizeof file->modified);
    file->is_pinned = coffer__http_answer_has_strong_etag(answer);
    if (settings->cache_folder && file->is_pinned)
        file->disk =
            coffer__disk_cache_open(settings->cache_folder, file->address.shown, file->etag, file->size);
    else if (settings->spool && file->size > settings->cache_bytes)
        file->disk = coffer__disk_cache_open_unnamed();
    keep_beginning(file, read->out, (size_t)fetch->got);
    return COFFER_OK;
}

static coffer_status open_file(coffer__remote_file *file, coffer_error *err)
{
    static uint64_t last_id;
    coffer__direct_read *read = coffer__calloc(1, sizeof *read + COFFER__REMOTE_OPENING);
    if (!read)
        return coffer__fail_no_memory(err, sizeof *read + COFFER__REMOTE_OPENING);
    coffer__direct_read_init(read, file, (uint8_t *)(read + 1), 0, COFFER__REMOTE_OPENING);
    pthread_mutex_lock(&coffer__remote_lock);
    file->id = ++last_id;
    coffer_status status = coffer__cache_prepare(coffer__remote_settings_now()->cache_bytes, err);
    if (!status)
        status = ask_first(file, read, err);
    pthread_mutex_unlock(&coffer__remote_lock);
    coffer__free(read);
    return status;
}

typedef struct download {
    coffer__remote_fetch fetch;
    int fd;
    bool has_ended;
} download;

static bool download_take(coffer__remote_fetch *fetch, const uint8_t *bytes, size_t len)
{
    download *job = fetch->owner;
    return !coffer__file_write_at(job->fd, bytes, len, fetch->got, "temporary file", &fetch->error);
}

static void download_ended(coffer__remote_fetch *fetch)
{
    download *job = fetch->owner;
    job->has_ended = true;
}

static coffer_status download_file(coffer_source **out, coffer__remote_file *file, coffer_error *err)
{
    download *job = coffer__calloc(1, sizeof *job);
    if (!job)
        return coffer__fail_no_memory(err, sizeof *job);
    coffer_status status = coffer__temporary_unnamed(&job->fd, err);
    if (status) {
        coffer__free(job);
        return status;
    }
    job->fetch.file = file;
    job->fetch.wants_whole = job->fetch.is_opening = true;
    job->fetch.owner = job;
    job->fetch.take = download_take;
    job->fetch.ended = download_ended;
    pthread_mutex_lock(&coffer__remote_lock);
    status = coffer__remote_wait_for(&job->fetch, &job->has_ended, err);
    pthread_mutex_unlock(&coffer__remote_lock);
    if (!status)
        status = coffer__source_over_map(out, job->fd, job->fetch.got, file->address.shown, NULL,
                                         COFFER_ACCESS_AUTO, err);
    if (status)
        coffer__file_close(job->fd);
    coffer__free(job);
    return status;
}

/* A file that is not open yet; the caller holds it once. */
static coffer_status new_file(coffer__remote_file **out, const char *address, coffer_error *err)
{
    coffer__remote_file *file = coffer__calloc(1, sizeof *file);
    if (!file)
        return coffer__fail_no_memory(err, sizeof *file);
    file->users = 1;
    coffer_status status = coffer__remote_address_parse(&file->address, address, err);
    if (status)
        remote_close(file);
    else
        *out = file;
    return status;
}

/* Opens a file that this process has not opened before. */
static coffer_status open_new(coffer__remote_file **out, const char *address, coffer_error *err)
{
    coffer__remote_file *file = NULL;
    coffer_status status = new_file(&file, address, err);
    if (status)
        return status;
    status = open_file(file, err);
    if (!status)
        status = keep_file(file, address, err);
    if (status)
        remote_close(file);
    else
        *out = file;
    return status;
}

/* The whole file, from a server that has no ranges. */
static coffer_status open_whole(coffer_source **out, const char *address, coffer_error *err)
{
    coffer__remote_file *file = NULL;
    coffer_status status = new_file(&file, address, err);
    if (status)
        return status;
    status = download_file(out, file, err);
    remote_close(file);
    return status;
}

coffer_status coffer__source_over_remote(coffer_source **out, const char *name, coffer_error *err)
{
    static const coffer_source_ops ops = {
        .struct_size = sizeof ops,
        .read_at = coffer__remote_read_at,
        .close = remote_close,
        .prefetch = coffer__remote_prefetch,
    };
    coffer_error problem = COFFER_ERROR_INIT;
    coffer_status status = COFFER_OK;
    const char *address = coffer__remote_address_behind(name);
    coffer__remote_file *file = find_kept(address);
    if (!file)
        status = open_new(&file, address, &problem);
    if (status == COFFER_E_UNSUPPORTED && coffer__remote_settings_now()->download)
        return open_whole(out, address, err);
    if (!status) {
        status = coffer_source_new(out, &ops, file, file->size, name, &problem);
        if (status)
            remote_close(file);
    }
    return status ? coffer__fail_copy(err, &problem) : COFFER_OK;
}

bool coffer_source_is_pinned(const coffer_source *src)
{
    if (src->ops.read_at != coffer__remote_read_at)
        return true;
    const coffer__remote_file *file = src->context;
    return file->etag[0] || file->modified[0];
}
