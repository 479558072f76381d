/* Checking a set: the header and the bounds of its parts. The parts have files of their own. */
#include "formats/mldf/mldf_check.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/format.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <stdlib.h>

/* The descriptors byte by byte, and the flags of the file against those of the fields. */

#define KNOWN_FIELD_FLAGS (COFFER_MLDF_FIELD_ZSTD | COFFER_MLDF_FIELD_ENCRYPTED | COFFER_MLDF_FIELD_OPTIONAL)
#define PAD_AT 72

/* Ranges of a descriptor that hold nothing. */
typedef struct unused {
    uint32_t from, to;
} unused;

static bool all_zero(const uint8_t *at, const unused *range)
{
    for (uint32_t i = range->from; i < range->to; i++) {
        if (at[i])
            return false;
    }
    return true;
}

/* Where the arguments of the type end. */
static uint32_t arguments_used(const coffer_mldf_field *field)
{
    const coffer__mldf_type_info *info = coffer__mldf_type_info_of(field->type);
    if (info->has_array)
        return COFFER__MLDF_DIMS_AT + field->ndim * (uint32_t)sizeof(uint64_t);
    if (field->kind == COFFER_MLDF_ENTRY_AUDIO)
        return sizeof(uint32_t);
    return field->type == COFFER_MLDF_IMAGE_JPEG;
}

static void check_unused(const coffer__mldf_checker *check, size_t index, const uint8_t *at)
{
    const coffer_mldf_field *field = &check->set.schema.fields[index];
    uint32_t dictionary = COFFER__MLDF_ARGUMENTS_AT + COFFER__MLDF_DICTIONARY_AT;
    bool known = field->kind != COFFER_MLDF_ENTRY_OPAQUE;
    bool has_array = known && coffer__mldf_type_info_of(field->type)->has_array;
    uint32_t used = COFFER__MLDF_ARGUMENTS_AT + (known ? arguments_used(field) : 0);
    unused ranges[] = {
        { (uint32_t)strnlen((const char *)at, COFFER__MLDF_NAME_SIZE), COFFER__MLDF_NAME_SIZE },
        { PAD_AT, COFFER__MLDF_ARGUMENTS_AT },
        { COFFER__MLDF_STRIDE_TUTORIAL, check->set.schema.stride },
        { COFFER__MLDF_ARGUMENTS_AT + 2, COFFER__MLDF_ARGUMENTS_AT + COFFER__MLDF_DIMS_AT },
        { used, dictionary },
        { dictionary + 12, COFFER__MLDF_STRIDE_TUTORIAL },
    };
    size_t count = known ? sizeof ranges / sizeof ranges[0] : 3;
    for (size_t i = 0; i < count; i++) {
        if ((i != 3 || has_array) && !all_zero(at, &ranges[i])) {
            coffer__report_add(check->report, COFFER_E_RESERVED_NOT_ZERO, COFFER_WARNING,
                               check->set.header.descriptors + index * check->set.schema.stride +
                                   ranges[i].from,
                               "field %s: bytes %lu to %lu of its descriptor should be 0", field->name,
                               (unsigned long)ranges[i].from, (unsigned long)ranges[i].to);
            return;
        }
    }
}

static void check_type(const coffer__mldf_checker *check, size_t index)
{
    const coffer_mldf_field *field = &check->set.schema.fields[index];
    const coffer__mldf_type_info *info = coffer__mldf_type_info_of(field->type);
    uint64_t place = check->set.header.descriptors + index * check->set.schema.stride;
    if (!info)
        coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_WARNING,
                           place + COFFER__MLDF_FIELD_TYPE_AT,
                           "field %s: type %u is not known, its %lu row bytes are carried as they are",
                           field->name, field->type, (unsigned long)field->row_size);
    else if (field->row_size != coffer__mldf_entry_size(info->kind))
        coffer__report_add(check->report, COFFER_E_SIZE_MISMATCH, COFFER_WARNING,
                           place + COFFER__MLDF_FIELD_ROW_SIZE_AT,
                           "field %s: %lu bytes in the row, %s takes %lu: they are carried as they are",
                           field->name, (unsigned long)field->row_size, info->name,
                           (unsigned long)coffer__mldf_entry_size(info->kind));
    if (field->flags & ~KNOWN_FIELD_FLAGS)
        coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_WARNING,
                           place + COFFER__MLDF_FIELD_FLAGS_AT,
                           "field %s: flags that this program does not know: 0x%x", field->name,
                           field->flags & ~KNOWN_FIELD_FLAGS);
}

static coffer_status check_dictionary(const coffer__mldf_checker *check, size_t index, coffer_error *err)
{
    const coffer_mldf *set = &check->set;
    const coffer_mldf_field *field = &set->schema.fields[index];
    uint64_t place = set->header.descriptors + index * set->schema.stride + COFFER__MLDF_ARGUMENTS_AT +
                     COFFER__MLDF_DICTIONARY_AT;
    coffer__mldf_allocation found;
    bool is_there = true;
    coffer_status status = COFFER_OK;
    if (field->dictionary_offset == 0 && field->dictionary_size == 0)
        return COFFER_OK;
    if (!coffer__range_fits(field->dictionary_offset, field->dictionary_size, set->file_size)) {
        coffer__report_add(check->report, COFFER_E_OUT_OF_BOUNDS, COFFER_ERROR, place,
                           "field %s: its dictionary takes %lu bytes at %" PRIu64 ", file has %" PRIu64,
                           field->name, (unsigned long)field->dictionary_size, field->dictionary_offset,
                           set->file_size);
        return COFFER_OK;
    }
    if (check->table_in_order)
        status = coffer__mldf_find_allocation(&found, NULL, &is_there, set, field->dictionary_offset,
                                              field->dictionary_size, err);
    if (!status && !is_there)
        coffer__report_add(check->report, COFFER_E_DANGLING_REFERENCE, COFFER_ERROR, place,
                           "field %s: its dictionary, %lu bytes at %" PRIu64
                           ", is not in the allocation table",
                           field->name, (unsigned long)field->dictionary_size, field->dictionary_offset);
    return status;
}

/* A flag of the file that no field has, or the other way round. */
static void check_flags(const coffer__mldf_checker *check, uint32_t of_file, uint16_t of_field,
                        const char *what, coffer_severity severity)
{
    const coffer_mldf *set = &check->set;
    bool says = (set->header.flags & of_file) != 0, found = false;
    for (size_t i = 0; i < set->schema.count && !found; i++)
        found = (set->schema.fields[i].flags & of_field) != 0;
    if (says != found)
        coffer__report_add(check->report, COFFER_E_INCONSISTENT, severity,
                           COFFER__MLDF_HEADER_AT + COFFER__MLDF_FLAGS_AT,
                           says ? "the file says that it is %s, no field does"
                                : "a field says that it is %s, the file does not",
                           what);
}

/* Checks the descriptors, and the flags of the file against those of the fields. */
static coffer_status check_fields(coffer__mldf_checker *check, coffer_error *err)
{
    const coffer_mldf *set = &check->set;
    size_t stride = set->schema.stride, len = set->schema.count * stride;
    uint8_t *bytes = coffer__malloc(len);
    coffer_status status;
    if (!bytes)
        return coffer__fail_no_memory(err, len);
    status = coffer_source_read_at(bytes, set->source, set->header.descriptors, len, err);
    for (size_t i = 0; !status && i < set->schema.count; i++) {
        check_type(check, i);
        check_unused(check, i, bytes + i * stride);
        status = check_dictionary(check, i, err);
    }
    check_flags(check, COFFER_MLDF_COMPRESSED, COFFER_MLDF_FIELD_ZSTD, "compressed", COFFER_WARNING);
    check_flags(check, COFFER_MLDF_ENCRYPTED, COFFER_MLDF_FIELD_ENCRYPTED, "encrypted", COFFER_ERROR);
    if ((set->header.flags & COFFER_MLDF_ENCRYPTED) && !coffer__mldf_has_id(&set->guard))
        coffer__report_add(
            check->report, COFFER_E_INCONSISTENT, COFFER_NOTE, COFFER__MLDF_HEADER_AT + COFFER__MLDF_FLAGS_AT,
            "encrypted values are not tied to this file: one of another file with the same key "
            "would be accepted; 'coffer split' or 'coffer concat' with the key ties them");
    coffer__free(bytes);
    return status;
}

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
        status = check_fields(check, err);
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
