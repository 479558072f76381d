/* Bytes on their way into the file, and the two parts that are made last: header and field descriptors. */
#include "formats/mldf/write/mldf_output.h"

#include "base/checked.h"
#include "base/crc32.h"
#include "base/dtype.h"
#include "base/fail.h"

#include <inttypes.h>

coffer_status coffer__mldf_out_write(coffer__mldf_output *out, const void *bytes, size_t len,
                                     coffer_error *err)
{
    coffer_status status = out->sink ? coffer__sink_write(out->sink, bytes, len, err)
                                     : coffer__update_append(out->update, bytes, len, err);
    if (status)
        return status;
    if (out->summed)
        out->crc = coffer__crc32(out->crc, bytes, len);
    if (out->payload)
        out->tail_crc = 0;
    else if (out->guarded)
        out->tail_crc = coffer__crc32(out->tail_crc, bytes, len);
    out->position += len;
    return COFFER_OK;
}

coffer_status coffer__mldf_out_take(void *output, const void *bytes, size_t len, coffer_error *err)
{
    return coffer__mldf_out_write(output, bytes, len, err);
}

coffer_status coffer__mldf_out_zeros(coffer__mldf_output *out, uint64_t count, coffer_error *err)
{
    static const uint8_t zeros[4096];
    coffer_status status = COFFER_OK;
    while (!status && count > 0) {
        size_t len = count < sizeof zeros ? (size_t)count : sizeof zeros;
        status = coffer__mldf_out_write(out, zeros, len, err);
        count -= len;
    }
    return status;
}

coffer_status coffer__mldf_out_align(coffer__mldf_output *out, uint64_t alignment, coffer_error *err)
{
    uint64_t end;
    if (!coffer__align_up(&end, out->position, alignment))
        return coffer__fail(err, COFFER_E_LIMIT, out->position, "no room after %" PRIu64 " bytes",
                            out->position);
    return coffer__mldf_out_zeros(out, end - out->position, err);
}

coffer_status coffer__mldf_out_patch(coffer__mldf_output *out, uint64_t offset, const void *bytes, size_t len,
                                     coffer_error *err)
{
    return out->sink ? coffer__sink_patch(out->sink, offset, bytes, len, err)
                     : coffer__update_overwrite(out->update, offset, bytes, len, err);
}

void coffer__mldf_compose_head(uint8_t out[COFFER__MLDF_HEAD_SIZE], const coffer__mldf_header *head)
{
    uint8_t *header = out + COFFER__MLDF_HEADER_AT;
    memset(out, 0, COFFER__MLDF_HEAD_SIZE);
    memcpy(out, COFFER__MLDF_MAGIC, COFFER__MLDF_MAGIC_SIZE);
    coffer__store_u16(header, head->major);
    coffer__store_u16(header + COFFER__MLDF_MINOR_AT, head->minor);
    coffer__store_u32(header + COFFER__MLDF_FLAGS_AT, head->flags);
    coffer__store_u64(header + COFFER__MLDF_SAMPLES_AT, head->samples);
    coffer__store_u16(header + COFFER__MLDF_FIELDS_AT, head->fields);
    coffer__store_u32(header + COFFER__MLDF_PAGE_SIZE_AT, head->page_size);
    coffer__store_u64(header + COFFER__MLDF_DESCRIPTORS_AT, head->descriptors);
    coffer__store_u64(header + COFFER__MLDF_METADATA_AT, head->metadata);
    coffer__store_u64(header + COFFER__MLDF_DATA_AT, head->data);
    coffer__store_u64(header + COFFER__MLDF_TABLE_AT, head->table);
    coffer__store_u32(header + COFFER__MLDF_DATA_CRC_AT, head->data_crc);
    coffer__store_u32(header + COFFER__MLDF_TABLE_CRC_AT, head->table_crc);
}

static void compose_array(uint8_t *at, const coffer_mldf_field *field)
{
    at[0] = coffer__dtype_code(field->dtype);
    at[1] = (uint8_t)field->ndim;
    for (uint32_t i = 0; i < field->ndim; i++)
        coffer__store_u64(at + 8 + 8 * (size_t)i, field->dims[i]);
}

void coffer__mldf_compose_field(uint8_t out[COFFER__MLDF_STRIDE_TUTORIAL], const coffer_mldf_field *field,
                                const uint8_t *arguments)
{
    uint8_t *at = out + COFFER__MLDF_ARGUMENTS_AT;
    memset(out, 0, COFFER__MLDF_STRIDE_TUTORIAL);
    memcpy(out, field->name, strlen(field->name));
    coffer__store_u16(out + COFFER__MLDF_FIELD_TYPE_AT, field->type);
    coffer__store_u16(out + COFFER__MLDF_FIELD_FLAGS_AT, field->flags);
    coffer__store_u32(out + COFFER__MLDF_FIELD_ROW_SIZE_AT, field->row_size);
    if (arguments)
        memcpy(at, arguments, COFFER__MLDF_ARGUMENTS_SIZE);
    if (field->kind == COFFER_MLDF_ENTRY_OPAQUE)
        return;
    if (coffer__mldf_type_info_of(field->type)->has_array)
        compose_array(at, field);
    else if (field->type == COFFER_MLDF_IMAGE_JPEG)
        at[0] = field->jpeg_quality;
    else if (field->kind == COFFER_MLDF_ENTRY_AUDIO)
        coffer__store_u32(at, field->sample_rate);
    coffer__store_u64(at + COFFER__MLDF_DICTIONARY_AT, field->dictionary_offset);
    coffer__store_u32(at + COFFER__MLDF_DICTIONARY_AT + 8, field->dictionary_size);
}
