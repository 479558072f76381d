/* Changing a file in place: lock, journal, append and overwrite, commit or roll back. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/source_struct.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_SIZE ((size_t)1 << 20)

struct coffer__update {
    int fd;
    char *path, *journal_path;
    coffer_source *source;
    bool begun;
    coffer_error failure; /* of a write or sync; sticks */
    coffer__range *ranges;
    size_t range_count;
    uint64_t old_size, written_end;
    uint8_t *buffer; /* goes to written_end */
    size_t buffered;
};

coffer_status coffer__update_open(coffer__update **out, const char *path, bool *rolled_back,
                                  coffer_error *err)
{
    uint64_t size = 0;
    bool done = false;
    coffer_status status;
    coffer__update *update = coffer__calloc(1, sizeof *update);
    if (!update)
        return coffer__fail_no_memory(err, sizeof *update);
    update->fd = -1;
    update->buffer = coffer__malloc(BUFFER_SIZE);
    if (!update->buffer) {
        status = coffer__fail_no_memory(err, BUFFER_SIZE);
        goto out;
    }
    status = coffer__file_resolve(&update->path, path, err);
    if (status)
        goto out;
    update->journal_path = coffer__journal_path(update->path);
    if (!update->journal_path) {
        status = coffer__fail_no_memory(err, strlen(path));
        goto out;
    }
    status = coffer__lock_open(&update->fd, update->path, err);
    if (!status)
        status = coffer__journal_roll_back(&done, update->fd, update->path, err);
    if (!status)
        status = coffer__file_size(&size, update->fd, NULL, err);
    if (!status)
        status = coffer__source_over_fd(&update->source, update->fd, false, size, path, NULL, err);
    if (status)
        goto out;
    if (rolled_back)
        *rolled_back = done;
    *out = update;
    return COFFER_OK;
out:
    coffer__update_close(update);
    return coffer__fail_output(err, status);
}

coffer_source *coffer__update_source(coffer__update *update)
{
    return update->source;
}

int coffer__update_fd(const coffer__update *update)
{
    return update->fd;
}

static coffer_status fail_again(const coffer__update *update, coffer_error *err)
{
    if (err)
        *err = update->failure;
    return update->failure.status;
}

/* Makes the failure stick. When the roll-back fails too, the journal stays: the next to open the file for
 * writing does it, and until then readers are shown the old state. */
static coffer_status fail_and_roll_back(coffer__update *update, const coffer_error *failure,
                                        coffer_error *err)
{
    update->failure = *failure;
    coffer__fail_output(&update->failure, failure->status);
    update->begun = false;
    update->buffered = 0;
    coffer__journal_roll_back(NULL, update->fd, update->path, NULL);
    return fail_again(update, err);
}

static coffer_status expect_begun(const coffer__update *update, coffer_error *err)
{
    if (update->failure.status)
        return fail_again(update, err);
    if (update->begun)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "no update is in progress");
}

static int by_offset(const void *a, const void *b)
{
    uint64_t x = ((const coffer__range *)a)->offset, y = ((const coffer__range *)b)->offset;
    return (x > y) - (x < y);
}

static coffer_status check_ranges(const coffer__range *ranges, size_t count, uint64_t size, coffer_error *err)
{
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        if (!coffer__range_fits(ranges[i].offset, ranges[i].length, size) || ranges[i].offset < end)
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, ranges[i].offset,
                                "cannot update %" PRIu64 " bytes at %" PRIu64 ": the file has %" PRIu64
                                ", the range before ends at %" PRIu64,
                                ranges[i].length, ranges[i].offset, size, end);
        end = ranges[i].offset + ranges[i].length;
    }
    return COFFER_OK;
}

coffer_status coffer__update_begin(coffer__update *update, const coffer__range *ranges, size_t count,
                                   coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    uint64_t size = 0;
    if (update->failure.status)
        return fail_again(update, err);
    if (update->begun)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "an update is already in progress");
    coffer__range *sorted = coffer__alloc_array(count, sizeof *sorted);
    if (!sorted)
        return coffer__fail_no_memory(err, count * sizeof *sorted);
    if (count > 0) {
        memcpy(sorted, ranges, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, by_offset);
    }
    coffer_status status = coffer__lock_check(NULL, update->fd, update->path, err);
    if (!status)
        status = coffer__file_size(&size, update->fd, NULL, err);
    if (!status)
        status = check_ranges(sorted, count, size, err);
    if (status) {
        coffer__free(sorted);
        return coffer__fail_output(err, status);
    }
    status = coffer__journal_write(update->journal_path, update->fd, size, sorted, count, &failure);
    if (status) {
        coffer__free(sorted);
        return fail_and_roll_back(update, &failure, err);
    }
    coffer__free(update->ranges);
    update->ranges = sorted;
    update->range_count = count;
    update->old_size = update->written_end = size;
    update->begun = true;
    return COFFER_OK;
}

static coffer_status write_out(coffer__update *update, const void *bytes, size_t len, uint64_t offset,
                               coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    if (coffer__file_write_at(update->fd, bytes, len, offset, NULL, &failure))
        return fail_and_roll_back(update, &failure, err);
    return COFFER_OK;
}

static coffer_status flush(coffer__update *update, coffer_error *err)
{
    coffer_status status = write_out(update, update->buffer, update->buffered, update->written_end, err);
    if (status)
        return status;
    update->written_end += update->buffered;
    update->buffered = 0;
    return COFFER_OK;
}

coffer_status coffer__update_append(coffer__update *update, const void *bytes, size_t len, coffer_error *err)
{
    coffer_status status = expect_begun(update, err);
    if (!status && len > BUFFER_SIZE - update->buffered)
        status = flush(update, err);
    if (status)
        return status;
    if (len < BUFFER_SIZE) {
        if (len > 0)
            memcpy(update->buffer + update->buffered, bytes, len);
        update->buffered += len;
        return COFFER_OK;
    }
    status = write_out(update, bytes, len, update->written_end, err);
    if (!status)
        update->written_end += len;
    return status;
}

/* True when every byte is in the journal or new. */
static bool may_change(const coffer__update *update, uint64_t offset, size_t len)
{
    uint64_t end = update->written_end + update->buffered, reached = offset;
    if (!coffer__range_fits(offset, len, end))
        return false;
    for (size_t i = 0; i < update->range_count; i++) {
        const coffer__range *range = &update->ranges[i];
        if (reached >= range->offset && reached - range->offset < range->length)
            reached = range->offset + range->length;
    }
    return reached >= update->old_size || reached >= offset + len;
}

coffer_status coffer__update_overwrite(coffer__update *update, uint64_t offset, const void *bytes, size_t len,
                                       coffer_error *err)
{
    coffer_status status = expect_begun(update, err);
    if (status)
        return status;
    if (!may_change(update, offset, len))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, offset,
                            "%zu bytes at %" PRIu64 " are outside the ranges of this update", len, offset);
    if (offset + len > update->written_end)
        status = flush(update, err);
    if (!status)
        status = write_out(update, bytes, len, offset, err);
    return status;
}

coffer_status coffer__update_commit(coffer__update *update, coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    coffer_status status = expect_begun(update, err);
    if (!status)
        status = flush(update, err);
    if (status)
        return status;
    status = coffer__file_sync_data(update->fd, NULL, &failure);
    if (!status)
        status = coffer__file_unlink(update->journal_path, &failure);
    if (status)
        return fail_and_roll_back(update, &failure, err);
    update->begun = false;
    status = coffer__file_sync_folder(update->journal_path, &update->failure);
    return status ? fail_again(update, err) : COFFER_OK;
}

coffer_status coffer__update_flush(coffer__update *update, coffer_error *err)
{
    coffer_status status = expect_begun(update, err);
    return status ? status : flush(update, err);
}

coffer_status coffer__update_roll_back(coffer__update *update, coffer_error *err)
{
    if (update->failure.status)
        return fail_again(update, err);
    if (!update->begun)
        return COFFER_OK;
    update->buffered = 0;
    coffer_status status = coffer__journal_roll_back(NULL, update->fd, update->path, &update->failure);
    if (status)
        return fail_again(update, err); /* close tries once more */
    update->begun = false;
    return COFFER_OK;
}

void coffer__update_close(coffer__update *update)
{
    if (!update)
        return;
    if (update->begun)
        coffer__journal_roll_back(NULL, update->fd, update->path, NULL);
    coffer_source_close(update->source);
    coffer__file_close(update->fd);
    coffer__free(update->ranges);
    coffer__free(update->buffer);
    coffer__free(update->journal_path);
    coffer__free(update->path);
    coffer__free(update);
}
