/* A source over HTTP: reads go through the cache of blocks, and what will be read next is fetched ahead. */
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/remote/block_cache.h"
#include "io/remote/disk_cache.h"
#include "io/remote/remote.h"
#include "io/source_struct.h"
#include "io/temporary.h"

#include <inttypes.h>
#include <string.h>

#define BLOCK COFFER__REMOTE_BLOCK
#define RUN_BLOCKS 64                       /* in one request: 1 MiB */
#define FIRST_WINDOW (UINT64_C(256) * 1024) /* bytes to read ahead at first */
#define LONGEST_WINDOW (UINT64_C(16) << 20)
#define BRIDGED ((uint64_t)2 * BLOCK) /* holes between ranges that are fetched, too */

/* A fetch of blocks that follow one another. */
typedef struct block_run {
    coffer__remote_fetch fetch;
    uint64_t first_block;
    uint32_t count;
    uint32_t frames[RUN_BLOCKS];
} block_run;

void coffer__remote_file_release(coffer__remote_file *file)
{
    if (--file->users)
        return;
    coffer__cache_forget(file->id);
    coffer__disk_cache_close(file->disk);
    coffer__url_free(&file->moved);
    coffer__remote_address_free(&file->address);
    coffer__free(file->asked_as);
    coffer__free(file);
}

static size_t block_length(const coffer__remote_file *file, uint64_t block)
{
    uint64_t left = file->size - block * BLOCK;
    return left < BLOCK ? (size_t)left : BLOCK;
}

static bool run_take(coffer__remote_fetch *fetch, const uint8_t *bytes, size_t len)
{
    block_run *run = fetch->owner;
    uint64_t at = fetch->got;
    while (len) {
        size_t inside = (size_t)(at % BLOCK), room = BLOCK - inside;
        size_t n = len < room ? len : room;
        uint32_t i = (uint32_t)(at / BLOCK);
        memcpy(coffer__cache_bytes(run->frames[i]) + inside, bytes, n);
        size_t whole = block_length(fetch->file, run->first_block + i);
        if (fetch->file->disk && inside + n == whole)
            coffer__disk_cache_store(fetch->file->disk, run->first_block + i,
                                     coffer__cache_bytes(run->frames[i]), whole);
        bytes += n;
        len -= n;
        at += n;
    }
    return true;
}

static void run_ended(coffer__remote_fetch *fetch)
{
    block_run *run = fetch->owner;
    if (fetch->error.status)
        fetch->file->failure = fetch->error;
    for (uint32_t i = 0; i < run->count; i++) {
        coffer__cache_settle(run->frames[i], fetch->error.status == COFFER_OK);
        coffer__cache_release(run->frames[i]);
    }
    coffer__free(run);
}

static coffer_status submit_run(coffer__remote_file *file, block_run *run, bool ahead, coffer_error *err)
{
    uint64_t end = (run->first_block + run->count) * BLOCK;
    run->fetch.file = file;
    run->fetch.first = run->first_block * BLOCK;
    run->fetch.len = (size_t)((end < file->size ? end : file->size) - run->fetch.first);
    run->fetch.is_ahead = ahead;
    run->fetch.owner = run;
    run->fetch.take = run_take;
    run->fetch.ended = run_ended;
    coffer_status status = coffer__remote_submit(&run->fetch, err);
    if (status) {
        if (err)
            run->fetch.error = *err;
        run->fetch.error.status = status;
        run_ended(&run->fetch);
    }
    return status;
}

/* Claims frames for the blocks from `block` on that nobody has asked for yet, at most RUN_BLOCKS; those that
 * the disk has are ready at once. *block moves behind what was looked at. */
static void collect_run(block_run *run, coffer__remote_file *file, uint64_t *block, uint64_t end)
{
    run->count = 0;
    while (*block < end && run->count < RUN_BLOCKS) {
        if (coffer__cache_find(file->id, *block) != COFFER__FRAME_NONE) {
            if (run->count)
                return;
            ++*block;
            continue;
        }
        uint32_t frame = coffer__cache_claim(file->id, *block);
        if (frame == COFFER__FRAME_NONE) {
            *block = end;
            return;
        }
        if (file->disk && coffer__disk_cache_load(file->disk, *block, coffer__cache_bytes(frame),
                                                  block_length(file, *block))) {
            coffer__cache_settle(frame, true);
            coffer__cache_release(frame);
            if (run->count)
                return;
            ++*block;
            continue;
        }
        if (run->count == 0)
            run->first_block = *block;
        run->frames[run->count++] = frame;
        ++*block;
    }
}

/* Asks for what is missing of the bytes first..end. With the lock. */
static coffer_status request(coffer__remote_file *file, uint64_t first, uint64_t end, bool ahead,
                             coffer_error *err)
{
    uint64_t block = first / BLOCK, last = (end + BLOCK - 1) / BLOCK;
    while (block < last) {
        block_run *run = coffer__calloc(1, sizeof *run);
        if (!run)
            return coffer__fail_no_memory(err, sizeof *run);
        collect_run(run, file, &block, last);
        if (run->count == 0) {
            coffer__free(run);
            continue;
        }
        coffer_status status = submit_run(file, run, ahead, err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

/* A read that fits no frame goes past the cache. */
typedef struct direct_read {
    coffer__remote_fetch fetch;
    uint8_t *out;
    bool has_ended;
} direct_read;

static bool direct_take(coffer__remote_fetch *fetch, const uint8_t *bytes, size_t len)
{
    direct_read *read = fetch->owner;
    memcpy(read->out + fetch->got, bytes, len);
    return true;
}

static void direct_ended(coffer__remote_fetch *fetch)
{
    direct_read *read = fetch->owner;
    read->has_ended = true;
}

/* With the lock. */
static coffer_status wait_for(coffer__remote_fetch *fetch, const bool *has_ended, coffer_error *err)
{
    coffer_status status = coffer__remote_submit(fetch, err);
    if (status)
        return status;
    while (!*has_ended)
        pthread_cond_wait(&coffer__remote_progress, &coffer__remote_lock);
    return fetch->error.status ? coffer__fail_copy(err, &fetch->error) : COFFER_OK;
}

static coffer_status read_past_cache(coffer__remote_file *file, uint8_t *out, uint64_t offset, size_t len,
                                     coffer_error *err)
{
    direct_read *read = coffer__calloc(1, sizeof *read);
    if (!read)
        return coffer__fail_no_memory(err, sizeof *read);
    read->out = out;
    read->fetch.file = file;
    read->fetch.first = offset;
    read->fetch.len = len;
    read->fetch.owner = read;
    read->fetch.take = direct_take;
    read->fetch.ended = direct_ended;
    coffer_status status = wait_for(&read->fetch, &read->has_ended, err);
    coffer__free(read);
    return status;
}

/* Copies from one block, waiting for it. */
static coffer_status copy_block(coffer__remote_file *file, uint32_t frame, uint8_t *out, size_t inside,
                                size_t len, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    coffer__cache_hold(frame);
    while (coffer__cache_state(frame) == COFFER__FRAME_LOADING)
        pthread_cond_wait(&coffer__remote_progress, &coffer__remote_lock);
    if (coffer__cache_state(frame) == COFFER__FRAME_READY) {
        pthread_mutex_unlock(&coffer__remote_lock);
        memcpy(out, coffer__cache_bytes(frame) + inside, len);
        pthread_mutex_lock(&coffer__remote_lock);
    } else {
        status = coffer__fail_copy(err, &file->failure);
    }
    coffer__cache_release(frame);
    return status;
}

static uint64_t longest_window(void)
{
    uint64_t quarter = (uint64_t)coffer__cache_capacity() / 4 * BLOCK;
    return quarter < LONGEST_WINDOW ? quarter : LONGEST_WINDOW;
}

/* Readers that go through a file from front to back find the next bytes there. */
static void read_ahead(coffer__remote_file *file, uint64_t offset, uint64_t end)
{
    bool follows = offset >= file->next_in_sequence && offset - file->next_in_sequence <= BRIDGED;
    file->next_in_sequence = end;
    if (!follows || offset == 0) {
        file->window = 0;
        file->ahead_until = end;
        return;
    }
    uint64_t longest = longest_window();
    file->window = file->window ? 2 * file->window : FIRST_WINDOW;
    if (file->window > longest)
        file->window = longest;
    if (file->ahead_until < end)
        file->ahead_until = end;
    uint64_t until = file->size - end < file->window ? file->size : end + file->window;
    if (until <= file->ahead_until || until - file->ahead_until < file->window / 4)
        return;
    coffer__ignore(request(file, file->ahead_until, until, true, NULL));
    file->ahead_until = until;
}

static coffer_status remote_read_at(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    coffer__remote_file *file = context;
    uint8_t *to = out;
    uint64_t at = offset, end = offset + len, asked = offset;
    coffer_status status = COFFER_OK;
    pthread_mutex_lock(&coffer__remote_lock);
    while (at < end && !status) {
        uint64_t window = longest_window();
        if (asked < end && asked - at < window / 2) {
            uint64_t until = end - at < window ? end : at + window;
            status = request(file, asked, until, false, err);
            asked = until;
            if (until == end)
                read_ahead(file, offset, end);
        }
        if (status)
            break;
        uint32_t frame = coffer__cache_find(file->id, at / BLOCK);
        size_t inside = (size_t)(at % BLOCK);
        size_t n = (frame == COFFER__FRAME_NONE ? RUN_BLOCKS * BLOCK : BLOCK) - inside;
        if (n > end - at)
            n = (size_t)(end - at);
        status = frame == COFFER__FRAME_NONE ? read_past_cache(file, to, at, n, err)
                                             : copy_block(file, frame, to, inside, n, err);
        to += n;
        at += n;
    }
    pthread_mutex_unlock(&coffer__remote_lock);
    return status;
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

static void remote_prefetch(void *context, const coffer_range *ranges, size_t count)
{
    coffer__remote_file *file = context;
    uint64_t budget = (uint64_t)coffer__cache_capacity() / 2 * BLOCK;
    pthread_mutex_lock(&coffer__remote_lock);
    for (size_t i = 0; i < count && budget; i++) {
        uint64_t first = ranges[i].offset, end = first + ranges[i].len;
        while (i + 1 < count && ranges[i + 1].offset >= first && ranges[i + 1].offset <= end + BRIDGED) {
            uint64_t next = ranges[i + 1].offset + ranges[i + 1].len;
            end = next > end ? next : end;
            i++;
        }
        if (end - first > budget)
            end = first + budget;
        budget -= end - first;
        if (request(file, first, end, true, NULL))
            break;
    }
    pthread_mutex_unlock(&coffer__remote_lock);
}

/* Keeps what the first request brought. */
static void keep_beginning(coffer__remote_file *file, const uint8_t *bytes, size_t len)
{
    for (uint64_t block = 0; block * BLOCK < len; block++) {
        size_t n = block_length(file, block);
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
static coffer_status ask_first(coffer__remote_file *file, direct_read *read, coffer_error *err)
{
    const coffer__remote_settings *settings = coffer__remote_settings_now();
    coffer__remote_fetch *fetch = &read->fetch;
    fetch->file = file;
    fetch->len = COFFER__REMOTE_OPENING;
    fetch->is_opening = true;
    fetch->owner = read;
    fetch->take = direct_take;
    fetch->ended = direct_ended;
    coffer_status status = wait_for(fetch, &read->has_ended, err);
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
    keep_beginning(file, read->out, (size_t)fetch->got);
    return COFFER_OK;
}

static coffer_status open_file(coffer__remote_file *file, coffer_error *err)
{
    static uint64_t last_id;
    direct_read *read = coffer__calloc(1, sizeof *read + COFFER__REMOTE_OPENING);
    if (!read)
        return coffer__fail_no_memory(err, sizeof *read + COFFER__REMOTE_OPENING);
    read->out = (uint8_t *)(read + 1);
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
    status = wait_for(&job->fetch, &job->has_ended, err);
    pthread_mutex_unlock(&coffer__remote_lock);
    if (!status)
        status = coffer__source_over_map(out, job->fd, job->fetch.got, file->address.shown, NULL, false, err);
    if (status)
        coffer__file_close(job->fd);
    coffer__free(job);
    return status;
}

/* Opens a file that this process has not opened before; the caller holds it once. */
static coffer_status open_new(coffer__remote_file **out, const char *address, coffer_error *err)
{
    coffer__remote_file *file = coffer__calloc(1, sizeof *file);
    if (!file)
        return coffer__fail_no_memory(err, sizeof *file);
    file->users = 1;
    coffer_status status = coffer__remote_address_parse(&file->address, address, err);
    if (!status)
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
    coffer__remote_file *file = coffer__calloc(1, sizeof *file);
    if (!file)
        return coffer__fail_no_memory(err, sizeof *file);
    file->users = 1;
    coffer_status status = coffer__remote_address_parse(&file->address, address, err);
    if (!status)
        status = download_file(out, file, err);
    remote_close(file);
    return status;
}

coffer_status coffer__source_over_remote(coffer_source **out, const char *name, coffer_error *err)
{
    static const coffer_source_ops ops = {
        .struct_size = sizeof ops,
        .read_at = remote_read_at,
        .close = remote_close,
        .prefetch = remote_prefetch,
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
