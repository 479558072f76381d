/* Checking a set: the header and the bounds of its parts. The parts have files of their own. */
#include "formats/mldf/mldf_check.h"

#include "base/fail.h"
#include "formats/rescue.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <stdlib.h>

#define HEADER(field) (COFFER__MLDF_HEADER_AT + COFFER__MLDF_##field##_AT)
#define KNOWN_FLAGS \
    (COFFER_MLDF_LITTLE_ENDIAN | COFFER_MLDF_COMPRESSED | COFFER_MLDF_CHECKSUMMED | COFFER_MLDF_ENCRYPTED)

/* ---- The header ---- */

static void check_page_size(const coffer__mldf_checker *check)
{
    const coffer__mldf_header *header = &check->set.header;
    uint32_t page = header->page_size;
    if (page < COFFER__MLDF_PAGE_SIZE_MIN || (page & (page - 1)) != 0)
        coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_WARNING, HEADER(PAGE_SIZE),
                           "page size %lu, it should be a power of two from %lu on", (unsigned long)page,
                           (unsigned long)COFFER__MLDF_PAGE_SIZE_MIN);
    else if (header->stated_data % page != 0)
        coffer__report_add(check->report, COFFER_E_MISALIGNED, COFFER_WARNING, HEADER(DATA),
                           "the data region begins at %" PRIu64 ", no multiple of the page size %lu",
                           header->stated_data, (unsigned long)page);
}

static void check_header(const coffer__mldf_checker *check)
{
    const coffer__mldf_header *header = &check->set.header;
    bool checksummed = (header->flags & COFFER_MLDF_CHECKSUMMED) != 0;
    if (header->minor > COFFER__MLDF_MINOR)
        coffer__report_add(check->report, COFFER_E_UNSUPPORTED_VERSION, COFFER_WARNING, HEADER(MINOR),
                           "version %u.%u is newer than %d.%d: what is new in it is not understood",
                           header->major, header->minor, COFFER__MLDF_MAJOR, COFFER__MLDF_MINOR);
    if (header->flags & ~(uint32_t)KNOWN_FLAGS)
        coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_WARNING, HEADER(FLAGS),
                           "flags that this program does not know: 0x%lx",
                           (unsigned long)(header->flags & ~(uint32_t)KNOWN_FLAGS));
    if (header->pad != 0)
        coffer__report_add(check->report, COFFER_E_RESERVED_NOT_ZERO, COFFER_WARNING, HEADER(FIELDS) + 2,
                           "the padding of the header is %u, not 0", header->pad);
    if (!checksummed && (header->data_crc != 0 || header->table_crc != 0))
        coffer__report_add(check->report, COFFER_E_RESERVED_NOT_ZERO, COFFER_WARNING, HEADER(DATA_CRC),
                           "checksums %08lx and %08lx in a file that says it has none",
                           (unsigned long)header->data_crc, (unsigned long)header->table_crc);
    if (header->fields == 0 && header->samples > 0)
        coffer__report_add(check->report, COFFER_E_INCONSISTENT, COFFER_WARNING, HEADER(FIELDS),
                           "%" PRIu64 " samples, but no field", header->samples);
    check_page_size(check);
}

/* ---- The parts ---- */

/* Adds what a part's check found; gives whether the part is there. */
static bool take(const coffer__mldf_checker *check, coffer_status status, const coffer_error *found)
{
    if (status)
        coffer__report_add_error(check->report, COFFER_ERROR, found);
    return !status;
}

static void locate_parts(coffer__mldf_checker *check)
{
    coffer_mldf *set = &check->set;
    coffer_error found = COFFER_ERROR_INIT;
    check->has_data = take(check, coffer__mldf_check_data(&set->header, set->file_size, &found), &found);
    check->has_table = take(check, coffer__mldf_check_table(&set->header, set->file_size, &found), &found);
    if (set->header.table > set->file_size)
        coffer__report_add(check->report, COFFER_E_TRUNCATED, COFFER_ERROR, set->file_size,
                           "the file ends at %" PRIu64 ", before its allocation table", set->file_size);
    if (check->has_table)
        set->table_count = (set->file_size - set->header.table) / COFFER__MLDF_TABLE_ENTRY;
}

static coffer_status find_sums(coffer__mldf_checker *check, coffer_error *err)
{
    coffer_mldf *set = &check->set;
    coffer_status status =
        coffer__mldf_read_guard(&set->guard, &set->guard_state, set->source, &set->header, true, err);
    return status || !check->has_table ? status : coffer__mldf_find_region_only(set, err);
}

static coffer_status locate_rows(coffer__mldf_checker *check, coffer_error *err)
{
    coffer_mldf *set = &check->set;
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status = coffer__mldf_read_schema(&set->schema, set->source, &set->header, &set->limits,
                                                    check->report, &found);
    if (status)
        return coffer__report_take(check->report, COFFER_ERROR, &found, err);
    check->has_schema = true;
    status = coffer__mldf_settle_fields(set, err);
    if (status)
        return status;
    check->has_rows =
        take(check, coffer__mldf_check_rows(&set->header, set->schema.row_size, set->file_size, &found),
             &found);
    if (check->has_rows)
        check->has_rows = take(check,
                               coffer__mldf_bound_row(set->schema.row_size, &set->header, set->file_size,
                                                      &set->limits, &found),
                               &found);
    if (check->has_rows && set->header.samples > 0 &&
        set->header.metadata % COFFER__MLDF_METADATA_ALIGNMENT != 0)
        coffer__report_add(check->report, COFFER_E_MISALIGNED, COFFER_NOTE, HEADER(METADATA),
                           "the rows begin at %" PRIu64 ", no multiple of %u", set->header.metadata,
                           COFFER__MLDF_METADATA_ALIGNMENT);
    return COFFER_OK;
}

typedef struct part {
    const char *name;
    uint64_t from, to;
} part;

static int by_place(const void *a, const void *b)
{
    const part *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* Header, descriptors, rows and table; payloads are compared with them in the pass over the table. */
static void check_parts_overlap(const coffer__mldf_checker *check)
{
    const coffer_mldf *set = &check->set;
    uint64_t descriptors = (uint64_t)set->schema.count * set->schema.stride;
    uint64_t rows = set->header.samples * set->schema.row_size;
    part parts[4] = { { "the header", 0, COFFER__MLDF_HEAD_SIZE } };
    size_t count = 1;
    if (check->has_schema && descriptors > 0)
        parts[count++] =
            (part){ "the field descriptors", set->header.descriptors, set->header.descriptors + descriptors };
    if (check->has_rows && rows > 0)
        parts[count++] = (part){ "the rows", set->header.metadata, set->header.metadata + rows };
    if (check->has_table && set->table_count > 0)
        parts[count++] = (part){ "the allocation table", set->header.table, set->file_size };
    qsort(parts, count, sizeof *parts, by_place);
    for (size_t i = 1; i < count; i++) {
        if (parts[i].from < parts[i - 1].to)
            coffer__report_add(check->report, COFFER_E_OVERLAP, COFFER_ERROR, parts[i].from,
                               "%s from %" PRIu64 " on overlap with %s up to %" PRIu64, parts[i].name,
                               parts[i].from, parts[i - 1].name, parts[i - 1].to);
    }
    if (set->header.data < COFFER__MLDF_HEAD_SIZE && check->has_table && set->table_count > 0)
        coffer__report_add(check->report, COFFER_E_OVERLAP, COFFER_ERROR, HEADER(DATA),
                           "the data region begins at %" PRIu64 ", inside the header of %d bytes",
                           set->header.data, COFFER__MLDF_HEAD_SIZE);
}

/* ---- All of it ---- */

static coffer_status check_contents(coffer__mldf_checker *check, coffer_error *err)
{
    coffer__mldf_sums sums = { 0 };
    bool known = false;
    coffer_status status = coffer__pool_new(&check->pool, check->opts->threads, err);
    if (!status && check->has_table)
        status = coffer__mldf_check_allocations(check, err);
    if (!status && check->has_schema)
        status = coffer__mldf_check_fields(check, err);
    if (!status)
        status = coffer__mldf_check_sums(&sums, &known, check, err);
    if (!status && check->has_rows)
        status = coffer__mldf_check_samples(check, known ? &sums : NULL, err);
    coffer__mldf_sums_free(&sums);
    coffer__pool_free(check->pool);
    return status;
}

static coffer_status check_all(coffer__mldf_checker *check, coffer_error *err)
{
    coffer_status status;
    check_header(check);
    locate_parts(check);
    status = find_sums(check, err);
    if (!status)
        status = coffer__mldf_check_guard(check, err);
    if (!status)
        status = locate_rows(check, err);
    if (status)
        return status;
    check_parts_overlap(check);
    return check_contents(check, err);
}

coffer_status coffer__mldf_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                 coffer_error *err)
{
    coffer__mldf_checker check = { .report = out, .opts = opts };
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status;
    coffer__mldf_prepare(&check.set, src, opts->limits, opts->key);
    coffer__note_interrupted(out, src);
    if (coffer__mldf_read_header(&check.set.header, src, &found) != COFFER_OK)
        status = coffer__report_take(out, COFFER_ERROR, &found, err);
    else
        status = check_all(&check, err);
    coffer__mldf_release(&check.set);
    if (!status)
        status = coffer__expect_settled(src, err);
    return status ? status : coffer__report_status(out, err);
}
