/* What a new set takes over from another: fields with their dictionaries. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mldf/mldf_write.h"

/* The number of the i-th field that is taken over. */
static size_t chosen(const size_t *fields, size_t i)
{
    return fields ? fields[i] : i;
}

static coffer_status load_dictionary(coffer_mldf_field *field, const coffer_mldf *set, coffer_error *err)
{
    coffer_status status;
    uint8_t *bytes;
    field->dictionary = NULL;
    if (field->dictionary_size == 0 || !(field->flags & COFFER_MLDF_FIELD_ZSTD))
        return COFFER_OK;
    if (!coffer__range_fits(field->dictionary_offset, field->dictionary_size, set->file_size))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, field->dictionary_offset,
                            "field %s: its dictionary ends at %llu, file has %llu", field->name,
                            (unsigned long long)field->dictionary_offset + field->dictionary_size,
                            (unsigned long long)set->file_size);
    bytes = coffer__malloc(field->dictionary_size);
    if (!bytes)
        return coffer__fail_no_memory(err, field->dictionary_size);
    if ((status = coffer_source_read_at(bytes, set->source, field->dictionary_offset, field->dictionary_size,
                                        err))) {
        coffer__free(bytes);
        return status;
    }
    field->dictionary = bytes;
    return COFFER_OK;
}

/* The arguments of a type that is not known say something to others. */
static coffer_status load_arguments(coffer_mldf_writer *writer, const coffer_mldf *set, const size_t *fields,
                                    size_t count, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < count && status == COFFER_OK; i++) {
        coffer__mldf_column *column = &writer->columns[i];
        uint64_t at = set->header.descriptors + (uint64_t)set->schema.stride * chosen(fields, i) +
                      COFFER__MLDF_ARGUMENTS_AT;
        if (column->field.kind != COFFER_MLDF_ENTRY_OPAQUE)
            continue;
        column->arguments = coffer__malloc(COFFER__MLDF_ARGUMENTS_SIZE);
        if (!column->arguments)
            return coffer__fail_no_memory(err, COFFER__MLDF_ARGUMENTS_SIZE);
        status = coffer_source_read_at(column->arguments, set->source, at, COFFER__MLDF_ARGUMENTS_SIZE, err);
    }
    return status;
}

coffer_status coffer__mldf_take_fields(coffer_mldf_writer *writer, const coffer_mldf *set,
                                       const size_t *fields, size_t count, const coffer_mldf_field *added,
                                       coffer_error *err)
{
    const uint16_t known_flags =
        COFFER_MLDF_FIELD_ZSTD | COFFER_MLDF_FIELD_ENCRYPTED | COFFER_MLDF_FIELD_OPTIONAL;
    size_t taken = 0, all = count + (added ? 1 : 0);
    coffer_mldf_field *copies = coffer__alloc_array(all ? all : 1, sizeof *copies);
    coffer_status status = COFFER_OK;
    if (!copies)
        return coffer__fail_no_memory(err, all * sizeof *copies);
    for (; taken < count && status == COFFER_OK; taken++) {
        copies[taken] = set->schema.fields[chosen(fields, taken)];
        copies[taken].flags &= known_flags;
        if (copies[taken].kind == COFFER_MLDF_ENTRY_OPAQUE)
            copies[taken].flags &= COFFER_MLDF_FIELD_OPTIONAL;
        status = load_dictionary(&copies[taken], set, err);
    }
    if (added)
        copies[count] = *added;
    if (status == COFFER_OK)
        status = coffer__mldf_writer_columns(writer, copies, all, err);
    if (status == COFFER_OK)
        status = load_arguments(writer, set, fields, count, err);
    for (size_t i = 0; i < taken; i++)
        coffer__free((void *)(uintptr_t)copies[i].dictionary);
    coffer__free(copies);
    return status;
}
