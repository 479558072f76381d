/* One value of one sample: its row entry and its payload are touched, and nothing else. */
#include "formats/mldf/mldf_private.h"

#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/options.h"
#include "base/report.h"
#include "io/source_private.h"

#include <inttypes.h>

coffer_status coffer__mldf_check_entry(uint32_t *crc, const coffer_mldf *set, uint64_t sample, size_t field,
                                       const coffer_mldf_entry *entry, coffer_error *err)
{
    const coffer__mldf_header *header = &set->header;
    coffer__mldf_allocation found;
    bool is_there = false;
    coffer_status status;
    if (crc)
        *crc = 0;
    if (!entry->present)
        return COFFER_OK;
    if (entry->offset < header->data || !coffer__range_fits(entry->offset, entry->size, header->table))
        return coffer__mldf_fail_value(
            err, COFFER_E_OUT_OF_BOUNDS, coffer__mldf_entry_place(set, sample, field), set, sample, field,
            "%lu bytes at %" PRIu64 " are not in the data region, %" PRIu64 " to %" PRIu64,
            (unsigned long)entry->size, entry->offset, header->data, header->table);
    if (!set->verify || (entry->size == 0 && entry->offset == header->data))
        return COFFER_OK;
    status = coffer__mldf_find_allocation(&found, NULL, &is_there, set, entry->offset, entry->size, err);
    if (status)
        return status;
    if (!is_there)
        return coffer__mldf_fail_value(err, COFFER_E_DANGLING_REFERENCE,
                                       coffer__mldf_entry_place(set, sample, field), set, sample, field,
                                       "%lu bytes at %" PRIu64 " are not in the allocation table",
                                       (unsigned long)entry->size, entry->offset);
    if (crc)
        *crc = found.crc;
    return COFFER_OK;
}

coffer_status coffer__mldf_check_crc(const coffer_mldf *set, const coffer__mldf_value *value,
                                     const uint8_t *stored, uint32_t crc, coffer_error *err)
{
    coffer_error damage = COFFER_ERROR_INIT;
    uint32_t found;
    if (!set->verify || value->size == 0 || !coffer__mldf_has_sums(set))
        return COFFER_OK;
    found = coffer__crc32(0, stored, value->size);
    if (found == crc)
        return COFFER_OK;
    coffer__mldf_fail_value(&damage, COFFER_E_BAD_CHECKSUM, value->offset, set, value->sample, value->field,
                            "the CRC-32 of its %lu bytes at %" PRIu64 " is %08lx, the table says %08lx",
                            (unsigned long)value->size, value->offset, (unsigned long)found,
                            (unsigned long)crc);
    return set->strict ? coffer__fail_copy(err, &damage)
                       : coffer__source_accept_damage(set->source, &damage, err);
}

coffer_status coffer__mldf_accept_undecoded(const coffer_mldf *set, const coffer__mldf_value *value,
                                            const uint8_t *stored, uint32_t crc, const coffer_error *why,
                                            coffer_error *err)
{
    coffer_error empty = COFFER_ERROR_INIT;
    bool damaged = set->verify && coffer__mldf_has_sums(set) && coffer__crc32(0, stored, value->size) != crc;
    if (set->strict || !damaged || why->status == COFFER_E_NO_MEMORY || why->status == COFFER_E_KEY_NEEDED)
        return coffer__fail_copy(err, why);
    coffer__fail(&empty, why->status, why->offset, "%s; the value is left empty", why->text);
    return coffer__source_accept_damage(set->source, &empty, err);
}

/* The row bytes of a scalar or of a type that is unknown. */
static coffer_status read_row_bytes(coffer_bytes *out, const coffer_mldf *set, uint64_t sample, size_t field,
                                    size_t spare, coffer_error *err)
{
    size_t len = set->schema.fields[field].row_size;
    coffer_status status = coffer__mldf_bytes_reserve(out, len + spare, err);
    if (!status)
        status = coffer_source_read_at(out->data, set->source, coffer__mldf_entry_place(set, sample, field),
                                       len, err);
    if (status)
        return status;
    out->size = len;
    return COFFER_OK;
}

/* Bytes as stored. */
static coffer_status read_payload(coffer_bytes *out, const coffer_mldf *set, const coffer__mldf_value *value,
                                  uint32_t crc, size_t spare, coffer_error *err)
{
    const uint8_t *view = coffer_source_view(set->source, value->offset, value->size);
    coffer_status status = coffer__mldf_bytes_reserve(out, value->size + spare, err);
    if (status)
        return status;
    if (view)
        memcpy(out->data, view, value->size);
    else
        status = coffer_source_read_at(out->data, set->source, value->offset, value->size, err);
    if (!status)
        status = coffer__mldf_check_crc(set, value, out->data, crc, err);
    if (!status)
        out->size = value->size;
    return status;
}

/* Through a decoder: from the mapping if there is one, otherwise by way of memory. */
static coffer_status read_decoded(coffer_bytes *out, const coffer_mldf *set, const coffer__mldf_value *value,
                                  uint32_t crc, size_t spare, coffer_error *err)
{
    coffer__mldf_room room = { .grows = out, .spare = spare };
    coffer__mldf_decoder *decoder = coffer__mldf_take_decoder(set, err);
    coffer_bytes own = COFFER_BYTES_INIT;
    const uint8_t *stored = coffer_source_view(set->source, value->offset, value->size);
    size_t size = 0;
    coffer_status status = COFFER_OK;
    if (!decoder)
        return COFFER_E_NO_MEMORY;
    if (!stored) {
        status = coffer__mldf_bytes_reserve(&own, value->size, err);
        if (!status)
            status = coffer_source_read_at(own.data, set->source, value->offset, value->size, err);
        stored = own.data;
    }
    if (!status)
        status = coffer__mldf_check_crc(set, value, stored, crc, err);
    if (!status)
        status = coffer__mldf_reserve(&room, 0, err);
    coffer_error why = COFFER_ERROR_INIT;
    if (!status && coffer__mldf_decode(&room, &size, decoder, set, value, stored, &why)) {
        size = 0;
        status = coffer__mldf_accept_undecoded(set, value, stored, crc, &why, err);
    }
    if (!status)
        out->size = size;
    coffer_free(own.data);
    coffer__mldf_give_decoder(set, decoder);
    return status;
}

/* Loads the entry of a field with payloads, from the mapping if there is one. */
static coffer_status look_at_entry(coffer_mldf_entry *out, const coffer_mldf *set, uint64_t sample,
                                   size_t field, coffer_error *err)
{
    const coffer_mldf_field *descriptor = &set->schema.fields[field];
    const uint8_t *at =
        coffer_source_view(set->source, coffer__mldf_entry_place(set, sample, field), descriptor->row_size);
    if (!at)
        return coffer__mldf_read_entry(out, set, sample, field, err);
    coffer__mldf_load_entry(out, descriptor->kind, at);
    return COFFER_OK;
}

/* Fails when the file was truncated while row and payload were read; called once, at the end. */
static coffer_status expect_intact(const coffer_mldf *set, const coffer__mldf_value *value, coffer_error *err)
{
    uint64_t row_end = coffer__mldf_entry_place(set, value->sample, value->field) +
                       set->schema.fields[value->field].row_size;
    uint64_t end = value->offset + value->size;
    if (coffer__source_surely_intact(set->source, end > row_end ? end : row_end))
        return COFFER_OK;
    return coffer_source_intact(set->source, err);
}

/* The cause of a bad value may be a truncated file. */
static coffer_status explain(const coffer_mldf *set, coffer_status status, coffer_error *err)
{
    coffer_error cut = COFFER_ERROR_INIT;
    if (!coffer__is_about_file(status) || coffer_source_intact(set->source, &cut) == COFFER_OK)
        return status;
    return coffer__fail_copy(err, &cut);
}

static coffer_status read_value(coffer_bytes *out, const coffer_mldf *set, uint64_t sample, size_t field,
                                const coffer_mldf_entry *entry, bool stored, size_t spare, coffer_error *err)
{
    coffer__mldf_value value = { sample, field, entry->offset, entry->size, false };
    uint32_t crc;
    coffer_status status = coffer__mldf_check_entry(&crc, set, sample, field, entry, err);
    if (status)
        return status;
    if (entry->present && !stored && !coffer__mldf_is_plain(set, field))
        status = read_decoded(out, set, &value, crc, spare, err);
    else
        status = read_payload(out, set, &value, crc, spare, err);
    return status ? status : expect_intact(set, &value, err);
}

coffer_status coffer__mldf_read_with_spare(coffer_bytes *out, coffer_mldf_entry *entry,
                                           const coffer_mldf *set, uint64_t sample, size_t field, bool stored,
                                           size_t spare, coffer_error *err)
{
    coffer_mldf_entry found;
    coffer_status status = coffer__mldf_check_index(set, sample, field, err);
    if (status)
        return status;
    out->size = 0;
    if (!coffer__mldf_has_payload(set->schema.fields[field].kind)) {
        if (entry)
            status = coffer__mldf_read_entry(entry, set, sample, field, err);
        if (status)
            return status;
        return read_row_bytes(out, set, sample, field, spare, err);
    }
    status = look_at_entry(&found, set, sample, field, err);
    if (status)
        return status;
    status = read_value(out, set, sample, field, &found, stored, spare, err);
    if (status)
        return explain(set, status, err);
    if (entry)
        *entry = found;
    return COFFER_OK;
}

coffer_status coffer_mldf_read(coffer_bytes *out, coffer_mldf_entry *entry, const coffer_mldf *set,
                               uint64_t sample, size_t field, coffer_error *err)
{
    coffer_mldf_entry found;
    if (!entry)
        return coffer__mldf_read_with_spare(out, NULL, set, sample, field, false, 0, err);
    coffer_status status = coffer__mldf_read_with_spare(out, &found, set, sample, field, false, 0, err);
    return status ? status : coffer__give_struct(entry, &found, sizeof found, err);
}

coffer_status coffer_mldf_read_stored(coffer_bytes *out, const coffer_mldf *set, uint64_t sample,
                                      size_t field, coffer_error *err)
{
    return coffer__mldf_read_with_spare(out, NULL, set, sample, field, true, 0, err);
}

const uint8_t *coffer_mldf_view(size_t *size, const coffer_mldf *set, uint64_t sample, size_t field)
{
    coffer_mldf_entry_kind kind;
    coffer_mldf_entry entry;
    const uint8_t *at;
    uint32_t crc;
    *size = 0;
    if (sample >= set->header.samples || field >= set->schema.count)
        return NULL;
    at = coffer_source_view(set->source, coffer__mldf_entry_place(set, sample, field),
                            set->schema.fields[field].row_size);
    kind = set->schema.fields[field].kind;
    if (!at || !coffer__mldf_has_payload(kind)) {
        *size = at ? set->schema.fields[field].row_size : 0;
        return at;
    }
    if (!coffer__mldf_is_plain(set, field))
        return NULL;
    coffer__mldf_load_entry(&entry, kind, at);
    coffer__mldf_value value = { sample, field, entry.offset, entry.size, false };
    if (!entry.present || coffer__mldf_check_entry(&crc, set, sample, field, &entry, NULL) != COFFER_OK ||
        !(at = coffer_source_view(set->source, entry.offset, entry.size)) ||
        coffer__mldf_check_crc(set, &value, at, crc, NULL) != COFFER_OK)
        return NULL;
    *size = entry.size;
    return at;
}
