/* The descriptors byte by byte, and the flags of the file against those of the fields. */
#include "formats/mldf/mldf_check.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>

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

coffer_status coffer__mldf_check_fields(coffer__mldf_checker *check, coffer_error *err)
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
