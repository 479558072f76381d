/* The journal as a file: loading, applying and writing it. */
#include "io/journal.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "coffer/source.h"
#include "io/file.h"
#include "io/os.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAGIC_AT = 0, VERSION_AT = 4, OLD_SIZE_AT = 8, COUNT_AT = 16, CRC_AT = 20 };

static const uint8_t magic[4] = { 'C', 'F', 'R', 'J' };

#define VERSION 2
#define VERSION_WITHOUT_HEAD 1
#define HEAD_SIZE_AT COFFER__JOURNAL_HEADER
#define HEAD_CRC_AT (COFFER__JOURNAL_HEADER + 4)
#define RANGES_AT (COFFER__JOURNAL_HEADER + 8)
#define HEAD_MAX ((uint32_t)64 << 10)
#define COPY_CHUNK ((size_t)1 << 20)
#define RANGE_MAX ((uint64_t)UINT32_MAX)

char *coffer__journal_path(const char *path)
{
    static const char suffix[] = "-journal";
    size_t len = strlen(path);
    char *joined = coffer__malloc(len + sizeof suffix);
    if (!joined)
        return NULL;
    memcpy(joined, path, len);
    memcpy(joined + len, suffix, sizeof suffix);
    return joined;
}

void coffer__journal_free(coffer__journal *journal)
{
    if (!journal)
        return;
    coffer__free(journal->entries);
    coffer__free(journal->memory);
    coffer__free(journal);
}

/* ---- Loading ---- */

static bool is_whole(const uint8_t *bytes, size_t size)
{
    static const uint8_t zero[4];
    if (size < COFFER__JOURNAL_HEADER || memcmp(bytes + MAGIC_AT, magic, sizeof magic) != 0)
        return false;
    uint32_t crc = coffer__crc32(0, bytes, CRC_AT);
    crc = coffer__crc32(crc, zero, sizeof zero);
    crc = coffer__crc32(crc, bytes + COFFER__JOURNAL_HEADER, size - COFFER__JOURNAL_HEADER);
    return crc == coffer__load_u32(bytes + CRC_AT);
}

static int by_offset(const void *a, const void *b)
{
    uint64_t x = ((const coffer__journal_entry *)a)->offset, y = ((const coffer__journal_entry *)b)->offset;
    return (x > y) - (x < y);
}

static coffer_status check_entries(coffer__journal *journal, coffer_error *err)
{
    uint64_t end = 0;
    if (journal->count > 0)
        qsort(journal->entries, journal->count, sizeof *journal->entries, by_offset);
    for (size_t i = 0; i < journal->count; i++) {
        const coffer__journal_entry *entry = &journal->entries[i];
        if (!coffer__range_fits(entry->offset, entry->length, journal->old_size))
            return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                                "%" PRIu32 " bytes at %" PRIu64 " are past the old size %" PRIu64,
                                entry->length, entry->offset, journal->old_size);
        if (entry->offset < end)
            return coffer__fail(err, COFFER_E_OVERLAP, COFFER_OFFSET_NONE,
                                "the range at %" PRIu64 " overlaps the one before, which ends at %" PRIu64,
                                entry->offset, end);
        end = entry->offset + entry->length;
    }
    return COFFER_OK;
}

/* Reads a journal whose CRC is right; its entries point into `bytes`. */
static coffer_status parse(coffer__journal *journal, const uint8_t *bytes, size_t size, coffer_error *err)
{
    uint32_t version = coffer__load_u32(bytes + VERSION_AT), count = coffer__load_u32(bytes + COUNT_AT);
    if (version != VERSION && version != VERSION_WITHOUT_HEAD)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, VERSION_AT,
                            "version %u, this library knows 1 and %d", version, VERSION);
    size_t at = COFFER__JOURNAL_HEADER;
    if (version == VERSION && size < RANGES_AT)
        return coffer__fail(err, COFFER_E_TRUNCATED, size, "%zu bytes, the header has %d", size, RANGES_AT);
    if (version == VERSION) {
        at = RANGES_AT;
        journal->head_size = coffer__load_u32(bytes + HEAD_SIZE_AT);
        journal->head_crc = coffer__load_u32(bytes + HEAD_CRC_AT);
        if (journal->head_size > HEAD_MAX)
            return coffer__fail(err, COFFER_E_LIMIT, HEAD_SIZE_AT, "a head of %u bytes, the limit is %u",
                                journal->head_size, HEAD_MAX);
    }
    if (count > (size - at) / COFFER__JOURNAL_RANGE)
        return coffer__fail(err, COFFER_E_TRUNCATED, COUNT_AT, "header says %u ranges, %zu bytes follow",
                            count, size - at);
    journal->old_size = coffer__load_u64(bytes + OLD_SIZE_AT);
    journal->entries = coffer__alloc_array(count, sizeof *journal->entries);
    if (!journal->entries)
        return coffer__fail_no_memory(err, count * sizeof *journal->entries);
    for (uint32_t i = 0; i < count; i++) {
        if (size - at < COFFER__JOURNAL_RANGE)
            return coffer__fail(err, COFFER_E_TRUNCATED, at, "ends inside range %u of %u", i, count);
        coffer__journal_entry *entry = &journal->entries[journal->count];
        entry->offset = coffer__load_u64(bytes + at);
        entry->length = coffer__load_u32(bytes + at + 8);
        at += COFFER__JOURNAL_RANGE;
        if (entry->length > size - at)
            return coffer__fail(err, COFFER_E_TRUNCATED, at, "range %u has %u bytes, %zu are left", i,
                                entry->length, size - at);
        entry->bytes = bytes + at;
        at += entry->length;
        journal->count++;
    }
    if (at != size)
        return coffer__fail(err, COFFER_E_TRAILING_BYTES, at, "%zu bytes after the last range", size - at);
    return check_entries(journal, err);
}

static void take_mark(coffer__journal_mark *mark, const uint8_t *bytes, size_t size)
{
    *mark = (coffer__journal_mark){ .present = true, .size = size };
    memcpy(mark->header, bytes, size < sizeof mark->header ? size : sizeof mark->header);
}

static coffer_status load_open(coffer__journal **out, coffer__journal_mark *mark, int fd, coffer_error *err)
{
    uint64_t size = 0;
    coffer_status status = coffer__file_size(&size, fd, NULL, err);
    if (status)
        return status;
    if (size > COFFER__JOURNAL_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " bytes, a journal has at most %" PRIu64, size,
                            (uint64_t)COFFER__JOURNAL_MAX);
    coffer__journal *journal = coffer__calloc(1, sizeof *journal);
    if (!journal)
        return coffer__fail_no_memory(err, sizeof *journal);
    journal->memory = coffer__malloc((size_t)size);
    if (!journal->memory) {
        status = coffer__fail_no_memory(err, size);
        goto out;
    }
    status = coffer__file_read_at(fd, journal->memory, (size_t)size, 0, NULL, err);
    if (status)
        goto out;
    if (mark)
        take_mark(mark, journal->memory, (size_t)size);
    if (!is_whole(journal->memory, (size_t)size))
        goto out;
    status = parse(journal, journal->memory, (size_t)size, err);
    if (status)
        goto out;
    *out = journal;
    return COFFER_OK;
out:
    coffer__journal_free(journal);
    return status;
}

/* Bytes of somebody else must not get into the file. Root could write to it anyway. */
static coffer_status check_owner(int journal_fd, int fd, coffer_error *err)
{
    struct stat journal, file;
    if (coffer__os_fstat(journal_fd, &journal) != 0 || coffer__os_fstat(fd, &file) != 0)
        return coffer__fail_errno(err, "cannot examine", errno);
    if (journal.st_uid == file.st_uid || journal.st_uid == geteuid() || journal.st_uid == 0)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE,
                        "the journal belongs to user %lu, who does not own the file: remove it if nobody "
                        "changes the file",
                        (unsigned long)journal.st_uid);
}

/* Bytes that are not in a range do not change below the old size, so the head is known at any time. */
static coffer_status check_head(const coffer__journal *journal, int fd, coffer_error *err)
{
    uint64_t size = 0;
    coffer_status status = coffer__file_size(&size, fd, NULL, err);
    if (!status)
        status = coffer__journal_covers(journal, size, err);
    if (status || journal->head_size == 0)
        return status;
    uint8_t *head = coffer__calloc(1, journal->head_size);
    if (!head)
        return coffer__fail_no_memory(err, journal->head_size);
    size_t len = size < journal->head_size ? (size_t)size : journal->head_size;
    status = coffer__file_read_at(fd, head, len, 0, NULL, err);
    if (!status) {
        coffer__journal_lay_over(journal, head, 0, journal->head_size);
        if (coffer__crc32(0, head, journal->head_size) != journal->head_crc)
            status = coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                                  "the journal was written for another file of this name: remove it, or put "
                                  "the file that it belongs to back");
    }
    coffer__free(head);
    return status;
}

coffer_status coffer__journal_load(coffer__journal **out, coffer__journal_mark *mark, const char *path,
                                   int fd, coffer_error *err)
{
    *out = NULL;
    if (mark)
        *mark = (coffer__journal_mark){ .present = false };
    char *name = coffer__journal_path(path);
    if (!name)
        return coffer__fail_no_memory(err, strlen(path));
    coffer_status status = COFFER_OK;
    int journal_fd = coffer__file_try_open(name, O_RDONLY | O_NONBLOCK, 0);
    if (journal_fd >= 0)
        status = check_owner(journal_fd, fd, err);
    else if (errno != ENOENT)
        status = coffer__fail_errno(err, "cannot open", errno);
    if (!status && journal_fd >= 0)
        status = load_open(out, mark, journal_fd, err);
    if (!status && *out)
        status = check_head(*out, fd, err);
    if (status) {
        coffer__journal_free(*out);
        *out = NULL;
    }
    coffer__fail_other(err, status, name);
    coffer__file_close(journal_fd);
    coffer__free(name);
    return status;
}

bool coffer__journal_mark_holds(const coffer__journal_mark *mark, const char *path)
{
    coffer__journal_mark now = { .present = false };
    uint8_t header[COFFER__JOURNAL_HEADER] = { 0 };
    uint64_t size = 0;
    char *name = coffer__journal_path(path);
    if (!name)
        return false;
    int fd = coffer__file_try_open(name, O_RDONLY | O_NONBLOCK, 0);
    bool known = fd >= 0 || errno == ENOENT;
    if (fd >= 0) {
        known = coffer__file_size(&size, fd, NULL, NULL) == COFFER_OK;
        size_t len = size < sizeof header ? (size_t)size : sizeof header;
        known = known && !coffer__file_read_at(fd, header, len, 0, NULL, NULL);
        take_mark(&now, header, sizeof header);
        now.size = size;
    }
    coffer__file_close(fd);
    coffer__free(name);
    return known && now.present == mark->present && now.size == mark->size &&
           memcmp(now.header, mark->header, sizeof now.header) == 0;
}

/* ---- Applying ---- */

/* The first entry that ends after offset. */
static size_t first_after(const coffer__journal *journal, uint64_t offset)
{
    size_t low = 0, high = journal->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (journal->entries[middle].offset + journal->entries[middle].length <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void coffer__journal_lay_over(const coffer__journal *journal, void *piece, uint64_t offset, size_t len)
{
    uint64_t end = offset + len;
    for (size_t i = first_after(journal, offset); i < journal->count; i++) {
        const coffer__journal_entry *entry = &journal->entries[i];
        if (entry->offset >= end)
            return;
        uint64_t from = entry->offset > offset ? entry->offset : offset;
        uint64_t to = entry->offset + entry->length < end ? entry->offset + entry->length : end;
        memcpy((uint8_t *)piece + (from - offset), entry->bytes + (from - entry->offset),
               (size_t)(to - from));
    }
}

coffer_status coffer__journal_covers(const coffer__journal *journal, uint64_t file_size, coffer_error *err)
{
    uint64_t reached = file_size;
    for (size_t i = first_after(journal, file_size); i < journal->count; i++) {
        if (journal->entries[i].offset > reached)
            break;
        reached = journal->entries[i].offset + journal->entries[i].length;
    }
    if (reached >= journal->old_size)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_TRUNCATED, reached,
                        "the journal was written for %" PRIu64 " bytes, the file has %" PRIu64,
                        journal->old_size, file_size);
}

static coffer_status apply(const coffer__journal *journal, int fd, coffer_error *err)
{
    uint64_t size = 0;
    coffer_status status = coffer__file_size(&size, fd, NULL, err);
    if (!status)
        status = coffer__journal_covers(journal, size, err);
    for (size_t i = 0; !status && i < journal->count; i++) {
        const coffer__journal_entry *entry = &journal->entries[i];
        status = coffer__file_write_at(fd, entry->bytes, entry->length, entry->offset, NULL, err);
    }
    if (!status && size > journal->old_size)
        status = coffer__file_truncate(fd, journal->old_size, NULL, err);
    if (!status)
        status = coffer__file_sync_data(fd, NULL, err);
    return status;
}

coffer_status coffer__journal_roll_back(bool *done, int fd, const char *path, coffer_error *err)
{
    coffer__journal *journal = NULL;
    coffer__journal_mark mark;
    char *journal_path = NULL;
    coffer_status status = coffer__journal_load(&journal, &mark, path, fd, err);
    if (status)
        return status;
    if (mark.present) {
        if (journal)
            status = apply(journal, fd, err);
        journal_path = coffer__journal_path(path);
        if (!status && !journal_path)
            status = coffer__fail_no_memory(err, strlen(path));
        if (!status)
            status = coffer__file_unlink(journal_path, err);
        if (!status)
            status = coffer__file_sync_folder(journal_path, err);
    }
    if (!status && done)
        *done = journal != NULL;
    coffer__free(journal_path);
    coffer__journal_free(journal);
    return status;
}

static bool journal_exists(const char *path)
{
    coffer__journal_mark absent = { .present = false };
    return !coffer__journal_mark_holds(&absent, path);
}

coffer_status coffer_roll_back(bool *done, const char *path, coffer_error *err)
{
    int fd = -1;
    bool rolled_back = false;
    struct stat st;
    char *resolved = NULL;
    if (coffer__os_stat(path, &st) != 0)
        return coffer__fail_errno(err, "cannot open", errno);
    coffer_status status = coffer__file_resolve(&resolved, path, err);
    if (status)
        return status;
    /* Where there is nothing to do, leave to write is not needed. */
    if (journal_exists(resolved)) {
        status = coffer__lock_open(&fd, resolved, err);
        if (!status)
            status = coffer__journal_roll_back(&rolled_back, fd, resolved, err);
        coffer__file_close(fd);
    }
    coffer__free(resolved);
    if (!status && done)
        *done = rolled_back;
    return status;
}

coffer_status coffer__journal_clear(const char *path, coffer_error *err)
{
    struct stat st;
    if (!journal_exists(path))
        return COFFER_OK;
    if (coffer__os_stat(path, &st) == 0)
        return coffer_roll_back(NULL, path, err);
    if (errno != ENOENT)
        return coffer__fail_errno(err, "cannot examine", errno);
    char *journal_path = coffer__journal_path(path);
    if (!journal_path)
        return coffer__fail_no_memory(err, strlen(path));
    coffer_status status = coffer__file_unlink(journal_path, err);
    if (!status)
        status = coffer__file_sync_folder(journal_path, err);
    coffer__free(journal_path);
    return status;
}

/* ---- Writing ---- */

struct journal_writer {
    int fd;
    const char *path;
    uint64_t at;
    uint32_t crc;
};

static coffer_status put(struct journal_writer *writer, const void *bytes, size_t len, coffer_error *err)
{
    coffer_status status = coffer__file_write_at(writer->fd, bytes, len, writer->at, writer->path, err);
    writer->crc = coffer__crc32(writer->crc, bytes, len);
    writer->at += len;
    return status;
}

static coffer_status put_range(struct journal_writer *writer, int fd, const coffer__range *range,
                               uint8_t *chunk, coffer_error *err)
{
    uint8_t head[COFFER__JOURNAL_RANGE];
    coffer__store_u64(head, range->offset);
    coffer__store_u32(head + 8, (uint32_t)range->length);
    coffer_status status = put(writer, head, sizeof head, err);
    for (uint64_t done = 0; !status && done < range->length;) {
        size_t len = range->length - done < COPY_CHUNK ? (size_t)(range->length - done) : COPY_CHUNK;
        status = coffer__file_read_at(fd, chunk, len, range->offset + done, NULL, err);
        if (!status)
            status = put(writer, chunk, len, err);
        done += len;
    }
    return status;
}

static coffer_status check_size(const coffer__range *ranges, size_t count, coffer_error *err)
{
    uint64_t total = RANGES_AT;
    for (size_t i = 0; i < count && total <= COFFER__JOURNAL_MAX; i++)
        total +=
            ranges[i].length <= RANGE_MAX ? COFFER__JOURNAL_RANGE + ranges[i].length : COFFER__JOURNAL_MAX;
    if (total <= COFFER__JOURNAL_MAX)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                        "the journal of the ranges to change needs more than %" PRIu64 " bytes",
                        (uint64_t)COFFER__JOURNAL_MAX);
}

coffer_status coffer__journal_write(const char *journal_path, int fd, uint64_t old_size,
                                    const coffer__range *ranges, size_t count, coffer_error *err)
{
    uint8_t header[RANGES_AT] = { 0 };
    uint32_t head_size = old_size < HEAD_MAX ? (uint32_t)old_size : HEAD_MAX;
    struct journal_writer writer = { .fd = -1, .path = journal_path, .at = sizeof header };
    struct stat st;
    coffer_status status = check_size(ranges, count, err);
    if (status)
        return status;
    uint8_t *chunk = coffer__malloc(COPY_CHUNK);
    if (!chunk)
        return coffer__fail_no_memory(err, COPY_CHUNK);
    if (coffer__os_fstat(fd, &st) != 0) {
        status = coffer__fail_errno(err, "cannot examine", errno);
        goto out;
    }
    status = coffer__file_open(&writer.fd, journal_path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW,
                               st.st_mode & 0777, err);
    coffer__fail_other(err, status, journal_path);
    if (status)
        goto out;
    /* It holds bytes of the file: who may read the one may read the other, nobody else. */
    status = coffer__file_take_after(writer.fd, &st, journal_path, err);
    memcpy(header + MAGIC_AT, magic, sizeof magic);
    coffer__store_u32(header + VERSION_AT, VERSION);
    coffer__store_u64(header + OLD_SIZE_AT, old_size);
    coffer__store_u32(header + COUNT_AT, (uint32_t)count);
    if (!status)
        status = coffer__file_read_at(fd, chunk, head_size, 0, NULL, err);
    coffer__store_u32(header + HEAD_SIZE_AT, head_size);
    coffer__store_u32(header + HEAD_CRC_AT, status ? 0 : coffer__crc32(0, chunk, head_size));
    writer.crc = coffer__crc32(0, header, sizeof header);
    for (size_t i = 0; !status && i < count; i++)
        status = put_range(&writer, fd, &ranges[i], chunk, err);
    coffer__store_u32(header + CRC_AT, writer.crc);
    /* The header is written last: without it the journal is incomplete. */
    if (!status)
        status = coffer__file_write_at(writer.fd, header, sizeof header, 0, journal_path, err);
    if (!status)
        status = coffer__file_sync_data(writer.fd, journal_path, err);
    if (!status)
        status = coffer__file_sync_folder(journal_path, err);
out:
    coffer__file_close(writer.fd);
    coffer__free(chunk);
    return status;
}
