#include "formats/mlyze/write/mlyze_parts.h"

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/os.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

uint32_t coffer__mlyze_parts_header(uint64_t *start_time, const uint8_t header[COFFER__MLYZE_PARTS_HEADER],
                                    const char *magic)
{
    uint32_t version = coffer__load_u32(header + COFFER__MLYZE_PARTS_VERSION_AT);
    if (memcmp(header, magic, 4) != 0 || version > COFFER__MLYZE_PARTS_VERSION ||
        coffer__load_u32(header + COFFER__MLYZE_PARTS_CRC_AT) !=
            coffer__crc32(0, header, COFFER__MLYZE_PARTS_CRC_AT))
        return 0;
    *start_time = coffer__load_u64(header + COFFER__MLYZE_PARTS_START_AT);
    return version;
}

static coffer_status write_header(int fd, const char *magic, uint64_t start_time, const char *name,
                                  coffer_error *err)
{
    uint8_t header[COFFER__MLYZE_PARTS_HEADER] = { 0 };
    memcpy(header, magic, 4);
    coffer__store_u32(header + COFFER__MLYZE_PARTS_VERSION_AT, COFFER__MLYZE_PARTS_VERSION);
    coffer__store_u64(header + COFFER__MLYZE_PARTS_START_AT, start_time);
    coffer__store_u32(header + COFFER__MLYZE_PARTS_CRC_AT,
                      coffer__crc32(0, header, COFFER__MLYZE_PARTS_CRC_AT));
    return coffer__file_write_at(fd, header, sizeof header, 0, name, err);
}

static char *beside(const char *path, const char *suffix)
{
    size_t len = strlen(path), suffix_len = strlen(suffix) + 1;
    char *name = coffer__malloc(len + suffix_len);
    if (name) {
        memcpy(name, path, len);
        memcpy(name + len, suffix, suffix_len);
    }
    return name;
}

static coffer_status name_parts(coffer__mlyze_parts *parts, const char *path, coffer_error *err)
{
    coffer_status status = coffer__file_resolve(&parts->path, path, err);
    if (status)
        return status;
    parts->part_path = beside(parts->path, ".part");
    parts->strings_path = beside(parts->path, ".strings");
    if (parts->part_path && parts->strings_path)
        return COFFER_OK;
    return coffer__fail_no_memory(err, strlen(parts->path) + sizeof ".strings");
}

static coffer_status create_one(int *fd, const char *part, coffer_error *err)
{
    *fd = coffer__file_try_open(part, O_RDWR | O_CREAT | O_EXCL, 0666);
    if (*fd >= 0)
        return COFFER_OK;
    if (errno == EEXIST)
        return coffer__fail_other(err,
                                  coffer__fail(err, COFFER_E_EXISTS, COFFER_OFFSET_NONE,
                                               "belongs to another recording, running or killed; "
                                               "'coffer repair' saves it"),
                                  part);
    return coffer__fail_output(err, coffer__fail_errno(err, "cannot create a file in the folder", errno));
}

/* Removes what a failed create made. */
static void drop(coffer__mlyze_parts *parts)
{
    if (parts->strings >= 0)
        coffer__os_unlink(parts->strings_path);
    if (parts->part >= 0)
        coffer__os_unlink(parts->part_path);
}

static coffer_status lock_part(const coffer__mlyze_parts *parts, coffer_error *err)
{
    int result;
    do
        result = coffer__os_lock(parts->part);
    while (result != 0 && errno == EINTR);
    if (result == 0)
        return COFFER_OK;
    return coffer__fail_other(err, coffer__fail_errno(err, "cannot lock", errno), parts->part_path);
}

/* The parts of a trace that replaces another one: nobody may read more than of the old one. */
static coffer_status protect(const coffer__mlyze_parts *parts, coffer_error *err)
{
    struct stat st;
    if (coffer__os_stat(parts->path, &st) != 0)
        return COFFER_OK;
    coffer_status status = coffer__file_take_after(parts->part, &st, parts->part_path, err);
    return status ? status : coffer__file_take_after(parts->strings, &st, parts->strings_path, err);
}

coffer_status coffer__mlyze_parts_create(coffer__mlyze_parts *parts, const char *path, uint64_t start_time,
                                         coffer_error *err)
{
    coffer_status status = name_parts(parts, path, err);
    if (status)
        return status;
    status = create_one(&parts->part, parts->part_path, err);
    if (!status)
        status = lock_part(parts, err);
    if (!status)
        status = create_one(&parts->strings, parts->strings_path, err);
    if (!status)
        status = protect(parts, err);
    if (!status)
        status =
            write_header(parts->strings, COFFER__MLYZE_STRINGS_MAGIC, start_time, parts->strings_path, err);
    if (!status)
        status = write_header(parts->part, COFFER__MLYZE_PART_MAGIC, start_time, parts->part_path, err);
    if (status) {
        drop(parts);
        return status;
    }
    parts->part_size = parts->strings_size = COFFER__MLYZE_PARTS_HEADER;
    return COFFER_OK;
}

static coffer_status open_strings(coffer__mlyze_parts *parts, coffer_error *err)
{
    parts->strings = coffer__file_try_open(parts->strings_path, O_RDONLY, 0);
    if (parts->strings >= 0)
        return coffer__file_size(&parts->strings_size, parts->strings, parts->strings_path, err);
    if (errno == ENOENT)
        return COFFER_OK;
    return coffer__fail_other(err, coffer__fail_errno(err, "cannot open", errno), parts->strings_path);
}

static coffer_status open_part(coffer__mlyze_parts *parts, coffer_error *err)
{
    struct stat st;
    if (coffer__os_stat(parts->part_path, &st) != 0 && errno == ENOENT)
        return COFFER_OK;
    coffer_status status = coffer__lock_open(&parts->part, parts->part_path, err);
    if (status == COFFER_E_LOCKED)
        coffer__fail(err, status, COFFER_OFFSET_NONE, "the recording is still running");
    return status ? coffer__fail_other(err, status, parts->part_path)
                  : coffer__file_size(&parts->part_size, parts->part, parts->part_path, err);
}

coffer_status coffer__mlyze_parts_open(coffer__mlyze_parts *parts, const char *path, coffer_error *err)
{
    coffer_status status = name_parts(parts, path, err);
    if (status)
        return status;
    status = open_part(parts, err);
    if (!status)
        status = open_strings(parts, err);
    if (status)
        return status;
    if (parts->part < 0 && parts->strings < 0)
        return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE,
                            "no unfinished recording has its parts next to it");
    return COFFER_OK;
}

coffer_status coffer__mlyze_parts_add_block(coffer__mlyze_parts *parts, const uint8_t *block, size_t len,
                                            coffer_error *err)
{
    coffer_status status =
        coffer__file_write_at(parts->part, block, len, parts->part_size, parts->part_path, err);
    if (!status)
        parts->part_size += len;
    return status;
}

coffer_status coffer__mlyze_parts_add_strings(coffer__mlyze_parts *parts, const coffer__buffer *chunks,
                                              coffer_error *err)
{
    coffer_status status = coffer__file_write_at(parts->strings, chunks->data, chunks->len,
                                                 parts->strings_size, parts->strings_path, err);
    if (!status)
        parts->strings_size += chunks->len;
    return status;
}

coffer_status coffer__mlyze_parts_sync(coffer__mlyze_parts *parts, coffer_error *err)
{
    coffer_status status = coffer__file_sync_data(parts->strings, parts->strings_path, err);
    if (!status)
        status = coffer__file_sync_data(parts->part, parts->part_path, err);
    if (status)
        return status;
    if (!parts->folder_synced)
        status = coffer__file_sync_folder(parts->path, err);
    if (status)
        return status;
    parts->folder_synced = true;
    return COFFER_OK;
}

/* The events first: names without events do no harm, events without names would look like a recording. */
coffer_status coffer__mlyze_parts_remove(coffer__mlyze_parts *parts, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (parts->part >= 0)
        status = coffer__file_unlink(parts->part_path, err);
    if (!status && parts->strings >= 0)
        status = coffer__file_unlink(parts->strings_path, err);
    return status ? status : coffer__file_sync_folder(parts->path, err);
}

void coffer__mlyze_parts_close(coffer__mlyze_parts *parts)
{
    coffer__file_close(parts->strings);
    coffer__file_close(parts->part);
    coffer__free(parts->path);
    coffer__free(parts->part_path);
    coffer__free(parts->strings_path);
    *parts = (coffer__mlyze_parts)COFFER__MLYZE_PARTS_INIT;
}
