/* The directory of a ZIP archive. */
#include "outside/archives/zip.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOCAL_MAGIC = 0x04034b50,
    CENTRAL_MAGIC = 0x02014b50,
    END_MAGIC = 0x06054b50,
    END64_MAGIC = 0x06064b50,
    LOCATOR_MAGIC = 0x07064b50,
    LOCAL_SIZE = 30,
    CENTRAL_SIZE = 46,
    END_SIZE = 22,
    END64_SIZE = 56,
    LOCATOR_SIZE = 20,
    MAX_COMMENT = 0xffff,
    EXTRA_ZIP64 = 1,
    FLAG_ENCRYPTED = 1,
    FLAG_DESCRIBED = 8
};

/* Deflate cannot do better than this: a member that declares more is a lie, found before it is unpacked. */
#define MAX_RATIO 1032

/* The central directory's place, from the end record. */
typedef struct directory {
    uint64_t count, size, offset;
    uint64_t end; /* where the end records begin: nothing else reaches past this */
} directory;

bool coffer__zip_probe(const uint8_t *head, size_t len)
{
    if (len < 4)
        return false;
    uint32_t magic = coffer__load_u32(head);
    return magic == LOCAL_MAGIC || magic == END_MAGIC; /* the latter in an archive without members */
}

/* ---- The end record ---- */

/* The last offset at which an end record and its comment end exactly at the end of the file. */
static const uint8_t *search_end(const uint8_t *tail, size_t len)
{
    for (size_t at = len - END_SIZE + 1; at-- > 0;) {
        if (coffer__load_u32(tail + at) == END_MAGIC &&
            coffer__load_u16(tail + at + 20) == len - at - END_SIZE)
            return tail + at;
    }
    return NULL;
}

static coffer_status read_end64(directory *out, coffer_source *src, uint64_t end_at, coffer_error *err)
{
    uint8_t locator[LOCATOR_SIZE], record[END64_SIZE];
    if (end_at < LOCATOR_SIZE)
        return COFFER_OK;
    coffer_status status = coffer_source_read_at(locator, src, end_at - LOCATOR_SIZE, LOCATOR_SIZE, err);
    if (status)
        return status;
    if (coffer__load_u32(locator) != LOCATOR_MAGIC)
        return COFFER_OK;
    uint64_t at = coffer__load_u64(locator + 8);
    if (!coffer__range_fits(at, END64_SIZE, end_at - LOCATOR_SIZE))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, end_at - LOCATOR_SIZE,
                            "ZIP64 end record at %" PRIu64 ", after its locator at %" PRIu64, at,
                            end_at - LOCATOR_SIZE);
    status = coffer_source_read_at(record, src, at, END64_SIZE, err);
    if (status)
        return status;
    if (coffer__load_u32(record) != END64_MAGIC)
        return coffer__fail(err, COFFER_E_BAD_MAGIC, at, "no ZIP64 end record at %" PRIu64, at);
    if (coffer__load_u32(record + 16) != 0 || coffer__load_u32(record + 20) != 0)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, at, "an archive of several parts");
    out->count = coffer__load_u64(record + 32);
    out->size = coffer__load_u64(record + 40);
    out->offset = coffer__load_u64(record + 48);
    out->end = at;
    return COFFER_OK;
}

static coffer_status read_end(directory *out, coffer_source *src, coffer_error *err)
{
    uint64_t size = coffer_source_size(src);
    size_t len = size < END_SIZE + MAX_COMMENT ? (size_t)size : END_SIZE + MAX_COMMENT;
    coffer_status status;
    if (size < END_SIZE)
        return coffer__fail(err, COFFER_E_TRUNCATED, COFFER_OFFSET_NONE,
                            "a file of %" PRIu64 " bytes is not a ZIP archive", size);
    uint8_t *tail = coffer__malloc(len);
    if (!tail)
        return coffer__fail_no_memory(err, len);
    status = coffer_source_read_at(tail, src, size - len, len, err);
    const uint8_t *record = status ? NULL : search_end(tail, len);
    if (!status && !record)
        status =
            coffer__fail(err, COFFER_E_TRUNCATED, COFFER_OFFSET_NONE,
                         "no end record in the last %zu bytes: not a ZIP archive, or a truncated one", len);
    if (record) {
        uint64_t at = size - len + (uint64_t)(record - tail);
        *out = (directory){ coffer__load_u16(record + 10), coffer__load_u32(record + 12),
                            coffer__load_u32(record + 16), at };
        if (coffer__load_u16(record + 4) != 0 && coffer__load_u16(record + 4) != 0xffff)
            status = coffer__fail(err, COFFER_E_UNSUPPORTED, at, "an archive of several parts");
        else
            status = read_end64(out, src, at, err);
    }
    coffer__free(tail);
    return status;
}

static coffer_status check_directory(const directory *dir, const coffer_limits *limits, coffer_error *err)
{
    if (!coffer__range_fits(dir->offset, dir->size, dir->end))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, dir->end,
                            "ZIP directory of %" PRIu64 " bytes at %" PRIu64
                            ", it has to end before %" PRIu64,
                            dir->size, dir->offset, dir->end);
    if (dir->count > dir->size / CENTRAL_SIZE)
        return coffer__fail(err, COFFER_E_TRUNCATED, dir->offset,
                            "%" PRIu64 " members do not fit in a ZIP directory of %" PRIu64 " bytes",
                            dir->count, dir->size);
    if (dir->count > limits->entries || dir->size > limits->memory_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, dir->offset,
                            "a ZIP directory of %" PRIu64 " members, %" PRIu64 " bytes", dir->count,
                            dir->size);
    return COFFER_OK;
}

/* ---- Members ---- */

/* Sizes and place that need 64 bits are in an extra field, those only that do. */
static bool take_zip64(coffer__zip_member *member, uint64_t *header_at, const uint8_t *extra, size_t len)
{
    uint64_t *const wide[] = { &member->size, &member->packed, header_at };
    while (len >= 4) {
        size_t tag = coffer__load_u16(extra), size = coffer__load_u16(extra + 2), used = 0;
        if (size > len - 4)
            return false;
        for (size_t i = 0; tag == EXTRA_ZIP64 && i < 3; i++) {
            if (*wide[i] != UINT32_MAX)
                continue;
            if (size - used < 8)
                return false;
            *wide[i] = coffer__load_u64(extra + 4 + used);
            used += 8;
        }
        extra += 4 + size;
        len -= 4 + size;
    }
    return true;
}

static coffer_status check_sizes(const coffer__zip_member *member, uint64_t at, coffer_error *err)
{
    uint64_t most;
    bool deflated = member->method == COFFER__ZIP_DEFLATED, stored = member->method == COFFER__ZIP_STORED;
    if (!coffer__mul_u64(&most, member->packed, MAX_RATIO))
        most = UINT64_MAX;
    if ((deflated && member->size > most) || (stored && member->size != member->packed))
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, at,
                            "member \"%s\": %" PRIu64 " bytes cannot come out of %" PRIu64, member->name,
                            member->size, member->packed);
    return COFFER_OK;
}

/* The local header repeats the directory entry and has its own length. */
static coffer_status place_member(coffer__zip_member *member, const coffer__zip *zip, uint64_t header_at,
                                  const char *raw_name, size_t name_len, uint64_t end, coffer_error *err)
{
    uint8_t header[LOCAL_SIZE];
    if (!coffer__range_fits(header_at, LOCAL_SIZE, end))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, header_at,
                            "member \"%s\" at %" PRIu64 ", the ZIP directory begins at %" PRIu64,
                            member->name, header_at, end);
    coffer_status status = coffer_source_read_at(header, zip->src, header_at, LOCAL_SIZE, err);
    if (status)
        return status;
    if (coffer__load_u32(header) != LOCAL_MAGIC)
        return coffer__fail(err, COFFER_E_BAD_MAGIC, header_at, "member \"%s\": no header at %" PRIu64,
                            member->name, header_at);
    member->header = header_at;
    member->offset = header_at + LOCAL_SIZE + coffer__load_u16(header + 26) + coffer__load_u16(header + 28);
    if (!coffer__range_fits(member->offset, member->packed, end))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, header_at,
                            "member \"%s\": %" PRIu64 " bytes at %" PRIu64
                            ", the ZIP directory begins at %" PRIu64,
                            member->name, member->packed, member->offset, end);
    char *local_name = coffer__malloc(name_len);
    if (!local_name)
        return coffer__fail_no_memory(err, name_len);
    bool same = coffer__load_u16(header + 26) == name_len;
    if (same)
        status = coffer_source_read_at(local_name, zip->src, header_at + LOCAL_SIZE, name_len, err);
    if (!status && (!same || memcmp(local_name, raw_name, name_len) != 0))
        status = coffer__fail(err, COFFER_E_INCONSISTENT, header_at,
                              "member \"%s\" has another name at %" PRIu64 " than in the ZIP directory",
                              member->name, header_at);
    coffer__free(local_name);
    return status;
}

/* One central header; *at moves after it. Names go to *names. */
static coffer_status take_member(coffer__zip *zip, const uint8_t **at, const uint8_t *end, char **names,
                                 const directory *dir, coffer_error *err)
{
    const uint8_t *header = *at;
    uint64_t place = dir->offset + dir->size - (uint64_t)(end - header);
    size_t left = (size_t)(end - header);
    if (left < CENTRAL_SIZE || coffer__load_u32(header) != CENTRAL_MAGIC)
        return coffer__fail(err, COFFER_E_BAD_MAGIC, place,
                            "the ZIP directory has no header at %" PRIu64 ", that of member %zu of %" PRIu64,
                            place, zip->count + 1, dir->count);
    size_t name_len = coffer__load_u16(header + 28), extra_len = coffer__load_u16(header + 30);
    size_t total = CENTRAL_SIZE + name_len + extra_len + coffer__load_u16(header + 32);
    if (total > left)
        return coffer__fail(err, COFFER_E_TRUNCATED, place,
                            "ZIP directory: member %zu ends %zu bytes after the directory", zip->count + 1,
                            total - left);
    const char *name = (const char *)header + CENTRAL_SIZE;
    if (name_len == 0 || !coffer__utf8_valid(name, name_len) || memchr(name, '\0', name_len))
        return coffer__fail(err, COFFER_E_BAD_TEXT, place,
                            "ZIP directory: the name of member %zu is not text", zip->count + 1);
    coffer__zip_member *member = &zip->members[zip->count];
    uint64_t header_at = coffer__load_u32(header + 42);
    *member = (coffer__zip_member){ *names,
                                    coffer__load_u16(header + 10),
                                    (coffer__load_u16(header + 8) & FLAG_ENCRYPTED) != 0,
                                    coffer__load_u32(header + 16),
                                    coffer__load_u32(header + 24),
                                    coffer__load_u32(header + 20),
                                    0,
                                    0,
                                    (coffer__load_u16(header + 8) & FLAG_DESCRIBED) != 0 };
    memcpy(*names, name, name_len);
    (*names)[name_len] = '\0';
    *names += name_len + 1;
    *at = header + total;
    if (!take_zip64(member, &header_at, (const uint8_t *)name + name_len, extra_len))
        return coffer__fail(err, COFFER_E_BAD_VALUE, place, "member \"%s\": its extra fields do not add up",
                            member->name);
    coffer_status status = check_sizes(member, place, err);
    return status ? status : place_member(member, zip, header_at, name, name_len, dir->offset, err);
}

static int compare_places(const void *a, const void *b, void *context)
{
    const coffer__zip *zip = context;
    const coffer__zip_member *x = &zip->members[*(const size_t *)a], *y = &zip->members[*(const size_t *)b];
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->packed > y->packed) - (x->packed < y->packed);
}

static int compare_names(const void *a, const void *b, void *context)
{
    const coffer__zip *zip = context;
    return strcmp(zip->members[*(const size_t *)a].name, zip->members[*(const size_t *)b].name);
}

/* No two members share a byte (a few kilobytes could otherwise unpack to petabytes) or a name. */
static coffer_status check_members(coffer__zip *zip, coffer_error *err)
{
    for (size_t i = 0; i < zip->count; i++)
        zip->by_name[i] = i;
    qsort_r(zip->by_name, zip->count, sizeof *zip->by_name, compare_places, zip);
    for (size_t i = 1; i < zip->count; i++) {
        const coffer__zip_member *before = &zip->members[zip->by_name[i - 1]];
        const coffer__zip_member *member = &zip->members[zip->by_name[i]];
        if (before->offset + before->packed > member->offset - LOCAL_SIZE)
            return coffer__fail(err, COFFER_E_OVERLAP, member->offset,
                                "member \"%s\" at %" PRIu64 " overlaps \"%s\", which ends at %" PRIu64,
                                member->name, member->offset, before->name, before->offset + before->packed);
    }
    qsort_r(zip->by_name, zip->count, sizeof *zip->by_name, compare_names, zip);
    for (size_t i = 1; i < zip->count; i++) {
        if (compare_names(&zip->by_name[i - 1], &zip->by_name[i], zip) == 0)
            return coffer__fail(err, COFFER_E_DUPLICATE, zip->members[zip->by_name[i]].offset,
                                "two members of the name \"%s\"", zip->members[zip->by_name[i]].name);
    }
    return COFFER_OK;
}

static coffer_status take_members(coffer__zip *zip, const uint8_t *bytes, const directory *dir,
                                  coffer_error *err)
{
    const uint8_t *at = bytes, *end = bytes + dir->size;
    char *names = zip->names;
    coffer_status status = COFFER_OK;
    while (!status && zip->count < dir->count) {
        status = take_member(zip, &at, end, &names, dir, err);
        if (!status)
            zip->count++;
    }
    zip->directory = dir->offset;
    zip->listed_end = dir->offset + (uint64_t)(at - bytes);
    zip->directory_end = dir->end;
    return status ? status : check_members(zip, err);
}

static coffer_status read_members(coffer__zip *zip, const directory *dir, coffer_error *err)
{
    size_t size = (size_t)dir->size, count = (size_t)dir->count;
    uint8_t *bytes = coffer__malloc(size);
    zip->names = coffer__malloc(size); /* a name and its NUL are shorter than its header */
    zip->members = coffer__alloc_array(count, sizeof *zip->members);
    zip->by_name = coffer__alloc_array(count, sizeof *zip->by_name);
    coffer_status status = COFFER_OK;
    if (!bytes || !zip->names || !zip->members || !zip->by_name)
        status = coffer__fail_no_memory(err, dir->size);
    if (!status)
        status = coffer_source_read_at(bytes, zip->src, dir->offset, size, err);
    if (!status)
        status = take_members(zip, bytes, dir, err);
    coffer__free(bytes);
    return status;
}

coffer_status coffer__zip_open(coffer__zip **out, coffer_source *src, const coffer_limits *limits,
                               coffer_error *err)
{
    coffer_limits lim = coffer__limits(limits);
    directory dir = { 0 };
    coffer_status status = read_end(&dir, src, err);
    if (!status)
        status = check_directory(&dir, &lim, err);
    if (status)
        return status;
    coffer__zip *zip = coffer__calloc(1, sizeof *zip);
    if (!zip)
        return coffer__fail_no_memory(err, sizeof *zip);
    zip->src = src;
    zip->limits = lim;
    status = read_members(zip, &dir, err);
    if (status) {
        coffer__zip_close(zip);
        return status;
    }
    *out = zip;
    return COFFER_OK;
}

void coffer__zip_close(coffer__zip *zip)
{
    if (!zip)
        return;
    coffer__free(zip->names);
    coffer__free(zip->members);
    coffer__free(zip->by_name);
    coffer__free(zip);
}

size_t coffer__zip_count(const coffer__zip *zip)
{
    return zip->count;
}

const coffer__zip_member *coffer__zip_at(const coffer__zip *zip, size_t index)
{
    return &zip->members[index];
}

size_t coffer__zip_find(const coffer__zip *zip, const char *name)
{
    size_t low = 0, high = zip->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(zip->members[zip->by_name[middle]].name, name);
        if (order == 0)
            return zip->by_name[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return SIZE_MAX;
}
