/* Copying from one set to another: fields with their dictionaries, rows, payloads as stored.
 */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mldf/write/mldf_write.h"
#include "io/source_private.h"

#include <inttypes.h>

/* The number of the i-th field to copy. */
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
                            "field %s: its dictionary ends at %" PRIu64 ", file has %" PRIu64, field->name,
                            field->dictionary_offset + field->dictionary_size, set->file_size);
    bytes = coffer__malloc(field->dictionary_size);
    if (!bytes)
        return coffer__fail_no_memory(err, field->dictionary_size);
    status = coffer_source_read_at(bytes, set->source, field->dictionary_offset, field->dictionary_size, err);
    if (!status)
        status = coffer__mldf_verify_dictionary(set, field, bytes, err);
    if (status) {
        coffer__free(bytes);
        return status;
    }
    field->dictionary = bytes;
    return COFFER_OK;
}

/* The arguments of a type that is unknown say something to others. */
static coffer_status load_arguments(coffer_mldf_writer *writer, const coffer_mldf *set, const size_t *fields,
                                    size_t count, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < count && !status; i++) {
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
    /* Nothing in the file bounds their number. */
    if (set->schema.row_size == 0 && set->header.samples > 0)
        status = coffer__fail(err, COFFER_E_INCONSISTENT, COFFER__MLDF_HEADER_AT + COFFER__MLDF_SAMPLES_AT,
                              "%" PRIu64 " samples whose rows have no bytes", set->header.samples);
    for (; taken < count && !status; taken++) {
        copies[taken] = set->schema.fields[chosen(fields, taken)];
        copies[taken].flags &= known_flags;
        if (copies[taken].kind == COFFER_MLDF_ENTRY_OPAQUE)
            copies[taken].flags &= COFFER_MLDF_FIELD_OPTIONAL;
        status = load_dictionary(&copies[taken], set, err);
    }
    if (added)
        copies[count] = *added;
    if (!status)
        status = coffer__mldf_writer_columns(writer, copies, all, err);
    if (!status)
        status = load_arguments(writer, set, fields, count, err);
    for (size_t i = 0; i < taken; i++)
        coffer__free((void *)(uintptr_t)copies[i].dictionary);
    coffer__free(copies);
    return status;
}

/* ---- Rows ---- */

#define ROWS_AT_ONCE ((size_t)256 << 10) /* bytes */

coffer_status coffer__mldf_row_reader_init(coffer__mldf_row_reader *out, const coffer_mldf *set,
                                           coffer_error *err)
{
    coffer__mldf_row_reader reader = { .set = set };
    size_t row_size = set->schema.row_size ? set->schema.row_size : 1;
    reader.capacity = row_size < ROWS_AT_ONCE ? ROWS_AT_ONCE / row_size : 1;
    reader.rows = coffer__alloc_array(reader.capacity, row_size);
    if (!reader.rows)
        return coffer__fail_no_memory(err, reader.capacity * row_size);
    *out = reader;
    return COFFER_OK;
}

void coffer__mldf_row_reader_free(coffer__mldf_row_reader *reader)
{
    coffer__free(reader->rows);
    reader->rows = NULL;
}

coffer_status coffer__mldf_row_of(const uint8_t **out, coffer__mldf_row_reader *reader, uint64_t sample,
                                  coffer_error *err)
{
    const coffer_mldf *set = reader->set;
    size_t row_size = set->schema.row_size;
    if (sample - reader->first >= reader->count || sample < reader->first) {
        bool in_order = sample == reader->first + reader->count;
        uint64_t left = set->header.samples - sample;
        size_t count = in_order && left > reader->capacity ? reader->capacity : in_order ? (size_t)left : 1;
        coffer_status status =
            coffer_source_read_at(reader->rows, set->source, set->header.metadata + sample * row_size,
                                  count * row_size, err);
        if (status)
            return status;
        reader->first = sample;
        reader->count = count;
    }
    *out = reader->rows + (size_t)(sample - reader->first) * row_size;
    return COFFER_OK;
}

/* ---- Samples ---- */

void coffer__mldf_copier_free(coffer__mldf_copier *copier)
{
    coffer_free(copier->stored.data);
    coffer_free(copier->plain.data);
    coffer__mldf_row_reader_free(&copier->rows);
    coffer__free(copier->marks);
    coffer_mldf_close(copier->set);
}

coffer_status coffer__mldf_copier_init(coffer__mldf_copier *out, coffer_mldf_writer *writer,
                                       const coffer_mldf *set, const size_t *fields, coffer_error *err)
{
    coffer_mldf_open_opts options = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer__mldf_copier copier = { .writer = writer, .fields = fields };
    coffer_status status;
    /* Rows that were compared with their checksum once need not be again. */
    options.verify = !set->verified;
    options.key = set->has_key ? set->key : NULL;
    options.limits = &set->limits;
    status = coffer_mldf_open(&copier.set, set->source, &options, err);
    if (status)
        return status;
    copier.set->verify = true;
    copier.set->strict = true;
    status = coffer__mldf_row_reader_init(&copier.rows, copier.set, err);
    if (!status)
        status = coffer__mldf_read_marks(&copier.marks, &copier.mark_count, copier.set, err);
    if (status) {
        coffer__mldf_copier_free(&copier);
        return status;
    }
    coffer__mldf_sort_marks(copier.marks, &copier.mark_count);
    /* The key that opens the payloads is the one they are closed with. */
    if (set->has_key && !writer->has_key) {
        memcpy(writer->key, set->key, sizeof writer->key);
        writer->has_key = true;
    }
    *out = copier;
    return COFFER_OK;
}

coffer_status coffer__mldf_put_stored(coffer_mldf_writer *writer, const coffer__mldf_stored *from, size_t to,
                                      coffer_bytes *scratch, coffer_error *err)
{
    const char *name = writer->columns[to].name;
    coffer_status status;
    if (!(writer->columns[to].field.flags & COFFER_MLDF_FIELD_ENCRYPTED) || from->size == 0 ||
        (from->sample == writer->sample && from->field == to &&
         memcmp(from->id, writer->id, sizeof writer->id) == 0))
        return coffer__mldf_put_payload(writer, to, from->bytes, from->size, 0, err);
    if (!writer->has_key)
        return coffer__fail(err, COFFER_E_KEY_NEEDED, COFFER_OFFSET_NONE,
                            "sample %" PRIu64
                            ", field %s is encrypted for its sample number: a key is needed",
                            from->sample, name);
    status = coffer__mldf_bytes_reserve(scratch, from->size, err);
    if (status)
        return status;
    coffer__mldf_binding binding = coffer__mldf_bind(from->sample, (uint16_t)from->field, from->id);
    if (from->size < COFFER__MLDF_SEAL_SIZE ||
        !coffer__mldf_open_sealed(scratch->data, from->bytes, from->size, &binding, writer->key))
        return coffer__fail(err, COFFER_E_AUTHENTICATION_FAILED, COFFER_OFFSET_NONE,
                            "authentication failed for sample %" PRIu64 ", field %s", from->sample, name);
    return coffer__mldf_put_payload(writer, to, scratch->data, from->size - COFFER__MLDF_SEAL_SIZE,
                                    COFFER__MLDF_STEP_SEAL, err);
}

static coffer_status mark_value(coffer__mldf_copier *copier, size_t to, coffer_mldf_mark_kind kind,
                                coffer_error *err)
{
    coffer_mldf_writer *writer = copier->writer;
    coffer__mldf_mark mark = { writer->sample, 1, (uint16_t)to, (uint16_t)kind };
    if (!writer->guarded)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "a set without checksums has no place to record damage");
    return coffer__mldf_add_mark(writer, &mark, err);
}

/* Bytes whose checksum is wrong, which the caller accepts: the new file marks them. */
static coffer_status read_damaged(coffer__mldf_copier *copier, uint64_t sample, size_t from, size_t to,
                                  const coffer_error *damage, coffer_error *err)
{
    coffer_status status = coffer__source_accept_damage(copier->set->source, damage, err);
    if (!status)
        status = mark_value(copier, to, COFFER_MLDF_MARK_UNVERIFIED, err);
    if (status)
        return status;
    copier->set->verify = false;
    status = coffer_mldf_read_stored(&copier->stored, copier->set, sample, from, err);
    copier->set->verify = true;
    return status;
}

coffer_status coffer__mldf_copy_payload(coffer__mldf_copier *copier, uint64_t sample, size_t from, size_t to,
                                        coffer_error *err)
{
    coffer__mldf_stored stored = { .sample = sample, .field = from, .id = copier->set->guard.id };
    coffer_error damage = COFFER_ERROR_INIT;
    coffer_status status = coffer_mldf_read_stored(&copier->stored, copier->set, sample, from, &damage);
    bool damaged = status == COFFER_E_BAD_CHECKSUM;
    if (damaged)
        status = read_damaged(copier, sample, from, to, &damage, err);
    else if (status)
        coffer__fail_copy(err, &damage);
    if (status)
        return status;
    stored.bytes = copier->stored.data;
    stored.size = copier->stored.size;
    coffer_error sealed = COFFER_ERROR_INIT;
    status = coffer__mldf_put_stored(copier->writer, &stored, to, &copier->plain, &sealed);
    /* A damaged seal does not open, so the value cannot be sealed for its new place: it is absent. */
    if (damaged && status == COFFER_E_AUTHENTICATION_FAILED)
        return mark_value(copier, to, COFFER_MLDF_MARK_LOST, err);
    return status ? coffer__fail_copy(err, &sealed) : COFFER_OK;
}

coffer_status coffer__mldf_copy_sample(coffer__mldf_copier *copier, uint64_t sample, coffer_error *err)
{
    coffer_mldf_writer *writer = copier->writer;
    const coffer__mldf_schema *schema = &copier->set->schema;
    const uint8_t *row = NULL;
    coffer_status status = coffer__mldf_row_of(&row, &copier->rows, sample, err);
    if (!status)
        status =
            coffer__mldf_carry_marks(writer, copier->marks, copier->mark_count, sample, copier->fields, err);
    if (!status && copier->set->tables_wrong)
        status = mark_value(copier, COFFER__MLDF_MARK_ROW, COFFER_MLDF_MARK_UNVERIFIED, err);
    for (size_t to = 0; to < writer->column_count && !status; to++) {
        size_t from = chosen(copier->fields, to);
        const coffer_mldf_field *field = &schema->fields[from];
        uint8_t *entry = coffer__mldf_current_row(writer) + writer->columns[to].field.row_offset;
        coffer_mldf_entry found;
        memcpy(entry, row + field->row_offset, field->row_size);
        if (!coffer__mldf_has_payload(field->kind))
            continue;
        coffer__mldf_load_entry(&found, field->kind, entry);
        /* The place is that of the new file. */
        memset(entry, 0, 12);
        if (found.present)
            status = coffer__mldf_copy_payload(copier, sample, from, to, err);
    }
    return status ? status : coffer__mldf_end_row(writer, err);
}
