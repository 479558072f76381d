/* Writes what follows the payloads of a new model: index, other sections and directory, and last the
 * header. */
#include "formats/mcf/mcf_quality.h"
#include "formats/mcf/mcf_writer.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#include <stdlib.h>

uint64_t coffer__mcf_index_size(uint64_t tensors, uint64_t dims, uint64_t name_bytes)
{
    return COFFER__MCF_INDEX_HEADER + tensors * COFFER__MCF_ENTRY + dims * sizeof(uint64_t) + name_bytes;
}

static coffer_status list_section(coffer_mcf_writer *writer, uint32_t type, uint32_t version, uint64_t offset,
                                  uint64_t size, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&writer->sections, &writer->section_capacity,
                                                     writer->section_count, sizeof *writer->sections, err);
    if (!status)
        writer->sections[writer->section_count++] = (coffer_mcf_section){ type, version, offset, size };
    return status;
}

static coffer_status align_section(coffer_mcf_writer *writer, coffer_error *err)
{
    uint64_t at = coffer__sink_position(writer->sink);
    return coffer__sink_fill(writer->sink, 0, (0 - at) % COFFER__MCF_SECTION_ALIGNMENT, err);
}

static coffer_status put_section(coffer_mcf_writer *writer, uint32_t type, uint32_t version,
                                 const uint8_t *bytes, size_t len, coffer_error *err)
{
    coffer_status status = align_section(writer, err);
    if (!status)
        status = list_section(writer, type, version, coffer__sink_position(writer->sink), len, err);
    if (status)
        return status;
    return coffer__sink_write(writer->sink, bytes, len, err);
}

/* ---- Index and QuantInfo ---- */

typedef struct named {
    const char *name;
    uint32_t name_len, tensor;
} named;

static int by_name(const void *a, const void *b)
{
    const named *x = a, *y = b;
    return coffer__mcf_compare_names(x->name, x->name_len, y->name, y->name_len);
}

static named *sort_tensors(const coffer_mcf_writer *writer)
{
    named *sorted = coffer__alloc_array(writer->tensor_count, sizeof *sorted);
    for (size_t i = 0; sorted && i < writer->tensor_count; i++)
        sorted[i] = (named){ (const char *)writer->names.data + writer->tensors[i].name_at,
                             writer->tensors[i].name_len, (uint32_t)i };
    if (sorted)
        qsort(sorted, writer->tensor_count, sizeof *sorted, by_name);
    return sorted;
}

/* Strings and dims are in the order of the entries, so that equal models have equal bytes. */
static void compose_index(coffer__buffer *out, const coffer_mcf_writer *writer, const named *sorted)
{
    size_t count = writer->tensor_count, dim_count = writer->dims.len / sizeof(uint64_t);
    uint64_t dims_at = COFFER__MCF_INDEX_HEADER + (uint64_t)count * COFFER__MCF_ENTRY;
    uint64_t strings_at = dims_at + writer->dims.len;
    uint8_t *bytes = coffer__buffer_extend(out, (size_t)strings_at + writer->names.len);
    uint32_t name_at = 0, dim_at = 0;
    if (!bytes)
        return;
    coffer__store_u32(bytes + COFFER__MCF_INDEX_VERSION_AT, COFFER__MCF_INDEX_VERSION);
    coffer__store_u32(bytes + COFFER__MCF_INDEX_FLAGS_AT,
                      COFFER__MCF_INDEX_SORTED | (writer->foreign_names ? 0 : COFFER__MCF_INDEX_UTF8));
    coffer__store_u32(bytes + COFFER__MCF_INDEX_COUNT_AT, (uint32_t)count);
    coffer__store_u32(bytes + COFFER__MCF_INDEX_DIM_COUNT_AT, (uint32_t)dim_count);
    coffer__store_u64(bytes + COFFER__MCF_INDEX_ENTRIES_AT, COFFER__MCF_INDEX_HEADER);
    coffer__store_u64(bytes + COFFER__MCF_INDEX_DIMS_AT, dims_at);
    coffer__store_u64(bytes + COFFER__MCF_INDEX_STRINGS_AT, strings_at);
    coffer__store_u64(bytes + COFFER__MCF_INDEX_STRINGS_SIZE_AT, writer->names.len);
    for (size_t i = 0; i < count; i++) {
        const coffer__mcf_new *tensor = &writer->tensors[sorted[i].tensor];
        uint8_t *entry = bytes + COFFER__MCF_INDEX_HEADER + i * COFFER__MCF_ENTRY;
        coffer__store_u32(entry + COFFER__MCF_ENTRY_NAME_AT, name_at);
        coffer__store_u32(entry + COFFER__MCF_ENTRY_NAME_LEN_AT, tensor->name_len);
        coffer__store_u32(entry + COFFER__MCF_ENTRY_DTYPE_AT, tensor->dtype);
        coffer__store_u32(entry + COFFER__MCF_ENTRY_RANK_AT, tensor->rank);
        coffer__store_u32(entry + COFFER__MCF_ENTRY_DIM_AT, dim_at);
        coffer__store_u32(entry + COFFER__MCF_ENTRY_RESERVED_AT, 0);
        coffer__store_u64(entry + COFFER__MCF_ENTRY_OFFSET_AT, tensor->offset);
        coffer__store_u64(entry + COFFER__MCF_ENTRY_SIZE_AT, tensor->size);
        if (tensor->rank > 0)
            memcpy(bytes + dims_at + (uint64_t)dim_at * sizeof(uint64_t),
                   writer->dims.data + (uint64_t)tensor->dim_at * sizeof(uint64_t),
                   tensor->rank * sizeof(uint64_t));
        if (tensor->name_len > 0)
            memcpy(bytes + strings_at + name_at, sorted[i].name, tensor->name_len);
        dim_at += tensor->rank;
        name_at += tensor->name_len;
    }
}

static void compose_quants(coffer__buffer *out, const coffer_mcf_writer *writer, const named *sorted)
{
    uint8_t bytes[COFFER__MCF_QUANT_RECORD] = { 0 };
    uint32_t count = 0;
    coffer__buffer_append(out, bytes, COFFER__MCF_QUANT_HEADER);
    for (size_t i = 0; i < writer->tensor_count; i++) {
        coffer__mcf_quant_record record = writer->tensors[sorted[i].tensor].quant;
        if (!writer->tensors[sorted[i].tensor].quantized)
            continue;
        record.tensor = (uint32_t)i;
        coffer__mcf_store_quant_record(bytes, &record);
        coffer__buffer_append(out, bytes, sizeof bytes);
        count++;
    }
    if (out->failed)
        return;
    coffer__store_u32(out->data + COFFER__MCF_QUANT_VERSION_AT, COFFER__MCF_SECTION_VERSION);
    coffer__store_u32(out->data + COFFER__MCF_QUANT_COUNT_AT, count);
}

static coffer_status put_quality(coffer_mcf_writer *writer, const named *sorted, coffer_error *err)
{
    coffer__mcf_quality_writer quality = { .records = COFFER__BUFFER_INIT, .strings = COFFER__BUFFER_INIT };
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    for (size_t i = 0; i < writer->tensor_count; i++) {
        const coffer__mcf_new *tensor = &writer->tensors[sorted[i].tensor];
        coffer__mcf_quality_record record = { .name = sorted[i].name,
                                              .name_len = tensor->name_len,
                                              .dtype = (uint16_t)tensor->dtype,
                                              .quality = tensor->quality,
                                              .importance_len = tensor->importance_len };
        if (!tensor->measured)
            continue;
        if (tensor->importance_len)
            record.importance = (const char *)writer->importances.data + tensor->importance_at;
        coffer__mcf_quality_add(&quality, &record);
    }
    if (quality.count == 0)
        return COFFER_OK;
    coffer_status status = coffer__mcf_quality_finish(&bytes, &quality, err);
    if (!status)
        status =
            put_section(writer, COFFER_MCF_QUALITY, COFFER__MCF_SECTION_VERSION, bytes.data, bytes.len, err);
    coffer__buffer_free(&bytes);
    return status;
}

static coffer_status put_index(coffer_mcf_writer *writer, const coffer__buffer *bytes, coffer_error *err)
{
    coffer_status status;
    if (bytes->len > writer->index_room)
        return put_section(writer, COFFER_MCF_TENSOR_INDEX, COFFER__MCF_SECTION_VERSION, bytes->data,
                           bytes->len, err);
    status = coffer__sink_patch(writer->sink, writer->index_at, bytes->data, bytes->len, err);
    return status ? status
                  : list_section(writer, COFFER_MCF_TENSOR_INDEX, COFFER__MCF_SECTION_VERSION,
                                 writer->index_at, bytes->len, err);
}

static coffer_status put_tensors(coffer_mcf_writer *writer, coffer_error *err)
{
    coffer__buffer index = COFFER__BUFFER_INIT, quants = COFFER__BUFFER_INIT;
    named *sorted = sort_tensors(writer);
    coffer_status status = COFFER_OK;
    if (sorted) {
        compose_index(&index, writer, sorted);
        compose_quants(&quants, writer, sorted);
    }
    if (!sorted || index.failed || quants.failed)
        status = coffer__fail_no_memory(err, writer->tensor_count * COFFER__MCF_ENTRY);
    if (!status)
        status = put_index(writer, &index, err);
    if (!status && quants.len > COFFER__MCF_QUANT_HEADER)
        status = put_section(writer, COFFER_MCF_QUANT_INFO, COFFER__MCF_SECTION_VERSION, quants.data,
                             quants.len, err);
    if (!status)
        status = put_quality(writer, sorted, err);
    coffer__free(sorted);
    coffer__buffer_free(&index);
    coffer__buffer_free(&quants);
    return status;
}

/* ---- Checksums ---- */

/* Every part of the file except Checksums; what lies between them is zero. */
static coffer_status plan_sums(coffer__mcf_sums *sums, const coffer_mcf_writer *writer, coffer_error *err)
{
    uint64_t end = 0;
    coffer_status status = coffer__mcf_sums_add(sums, 0, COFFER__MCF_HEADER_SIZE, err);
    for (size_t i = 0; !status && i < writer->section_count; i++) {
        if (writer->sections[i].type != COFFER_MCF_TENSOR_DATA)
            status = coffer__mcf_sums_add(sums, writer->sections[i].offset, writer->sections[i].size, err);
    }
    /* Payloads are in the order of the file; one that is shared is before its other names. */
    for (size_t i = 0; !status && i < writer->tensor_count; i++) {
        const coffer__mcf_new *tensor = &writer->tensors[i];
        if (tensor->size == 0 || tensor->offset < end)
            continue;
        end = tensor->offset + tensor->size;
        status = coffer__mcf_sums_add(sums, tensor->offset, tensor->size, err);
    }
    return status;
}

/* ---- Directory and header ---- */

static int by_type(const void *a, const void *b)
{
    uint32_t x = ((const coffer_mcf_section *)a)->type, y = ((const coffer_mcf_section *)b)->type;
    return (x > y) - (x < y);
}

static coffer_status put_directory(coffer_mcf_writer *writer, coffer__mcf_header *header, coffer_error *err)
{
    size_t len = writer->section_count * COFFER__MCF_DIRECTORY_ENTRY;
    uint8_t front[COFFER__MCF_HEADER_SIZE];
    uint8_t *bytes = coffer__malloc(len);
    coffer_status status;
    if (!bytes)
        return coffer__fail_no_memory(err, len);
    qsort(writer->sections, writer->section_count, sizeof *writer->sections, by_type);
    coffer__mcf_store_directory(bytes, writer->sections, writer->section_count);
    header->section_count = (uint32_t)writer->section_count;
    header->directory = coffer__sink_position(writer->sink);
    header->file_size = header->directory + len;
    coffer__mcf_store_header(front, header);
    status = coffer__sink_write(writer->sink, bytes, len, err);
    if (!status)
        status = coffer__sink_patch(writer->sink, 0, front, sizeof front, err);
    coffer__free(bytes);
    return status;
}

/* The copy is in the room after the header, or, when that is too small, follows the other sections. */
static coffer_status place_copy(uint64_t *place, uint64_t *size, coffer_mcf_writer *writer, coffer_error *err)
{
    uint64_t needed =
        COFFER__MCF_COPY_ENTRIES_AT + ((uint64_t)writer->section_count + 2) * COFFER__MCF_DIRECTORY_ENTRY;
    coffer_status status = COFFER_OK;
    *place = COFFER__MCF_COPY_PLACE;
    *size = writer->copy_room;
    if (needed > writer->copy_room) {
        status = align_section(writer, err);
        *place = coffer__sink_position(writer->sink);
        *size = needed;
        if (!status)
            status = coffer__sink_fill(writer->sink, 0, needed, err);
    }
    return status ? status
                  : list_section(writer, COFFER_MCF_DIRECTORY_COPY, COFFER__MCF_SECTION_VERSION, *place,
                                 *size, err);
}

static coffer_status put_copy(coffer_mcf_writer *writer, const coffer__mcf_header *header, uint64_t place,
                              uint64_t size, coffer_error *err)
{
    uint8_t *bytes = coffer__malloc((size_t)size);
    if (!bytes)
        return coffer__fail_no_memory(err, size);
    coffer__mcf_copy_store(bytes, (size_t)size, header, writer->sections);
    coffer_status status = coffer__sink_patch(writer->sink, place, bytes, (size_t)size, err);
    coffer__free(bytes);
    return status;
}

/* Reserves a place for Checksums: the room before the payloads when it is large enough, or the end. The sums
 * are computed when everything else is in the file. */
static coffer_status place_sums(uint64_t *place, coffer_mcf_writer *writer, uint64_t size, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    *place = writer->sums_at;
    if (size <= writer->sums_room)
        return list_section(writer, COFFER_MCF_CHECKSUMS, COFFER__MCF_SUMS_VERSION, *place, writer->sums_room,
                            err);
    status = align_section(writer, err);
    *place = coffer__sink_position(writer->sink);
    if (!status)
        status = coffer__sink_fill(writer->sink, 0, size, err);
    return status ? status
                  : list_section(writer, COFFER_MCF_CHECKSUMS, COFFER__MCF_SUMS_VERSION, *place, size, err);
}

static coffer_status put_protected(coffer_mcf_writer *writer, coffer__mcf_header *header, coffer_error *err)
{
    coffer__mcf_sums sums = { 0 };
    uint64_t copy_place = 0, copy_size = 0, place = 0;
    coffer_status status = place_copy(&copy_place, &copy_size, writer, err);
    if (!status)
        status = plan_sums(&sums, writer, err);
    if (status)
        goto out;
    /* One more range is the directory, whose chunks are known by its size. */
    uint64_t directory_len = ((uint64_t)writer->section_count + 1) * COFFER__MCF_DIRECTORY_ENTRY;
    uint64_t chunks = coffer__chunk_count(directory_len);
    status = coffer__mcf_sums_plan(&sums, err);
    if (status)
        goto out;
    uint64_t size = coffer__mcf_sums_size(&sums) + COFFER__MCF_SUMS_RANGE + chunks * sizeof(uint32_t);
    status = place_sums(&place, writer, size, err);
    if (!status)
        status = align_section(writer, err);
    if (!status)
        status = coffer__mcf_sums_add(&sums, coffer__sink_position(writer->sink), directory_len, err);
    if (!status)
        status = put_directory(writer, header, err);
    if (!status)
        status = put_copy(writer, header, copy_place, copy_size, err);
    if (!status)
        status = coffer__mcf_sums_plan(&sums, err);
    if (status)
        goto out;
    sums.file_size = header->file_size;
    sums.place = place;
    status = coffer__mcf_write_sums(writer, &sums, place, err);
out:
    coffer__mcf_sums_free(&sums);
    return status;
}

/* ---- Everything ---- */

static coffer_status end_area(coffer_mcf_writer *writer, coffer_error *err)
{
    uint64_t size = coffer__sink_position(writer->sink) - writer->area;
    coffer_status status = coffer__mcf_finish_sums(writer, err);
    if (!status)
        status = list_section(writer, COFFER_MCF_TENSOR_DATA, COFFER__MCF_SECTION_VERSION, writer->area, size,
                              err);
    return status ? status : put_tensors(writer, err);
}

/* The tensor or section of a record in the new file; false when it is not in it. sorted : all tensors. */
static bool find_damaged(uint64_t *offset, uint64_t *size, const coffer_mcf_writer *writer,
                         const named *sorted, const coffer_mcf_damage *damage)
{
    const coffer_mcf_section *section =
        coffer__mcf_first_section(writer->sections, writer->section_count, damage->section);
    if (damage->section) {
        *offset = section ? section->offset : 0;
        *size = section ? section->size : 0;
        return section != NULL;
    }
    if (damage->name_len > UINT32_MAX)
        return false;
    named key = { damage->name, (uint32_t)damage->name_len, 0 };
    const named *found = bsearch(&key, sorted, writer->tensor_count, sizeof key, by_name);
    if (found) {
        *offset = writer->tensors[found->tensor].offset;
        *size = writer->tensors[found->tensor].size;
    }
    return found != NULL;
}

/* Completes the records from the bytes of the new file, and drops those without bytes, or without a loss. */
static coffer_status settle_damage(coffer_mcf_writer *writer, coffer_error *err)
{
    size_t kept = 0;
    named *sorted = sort_tensors(writer);
    coffer_status status =
        sorted ? COFFER_OK : coffer__fail_no_memory(err, writer->tensor_count * sizeof *sorted);
    for (size_t i = 0; !status && i < writer->damage_count; i++) {
        coffer_mcf_damage damage = writer->damages[i];
        uint64_t offset = 0, size = 0;
        bool lost = damage.reason == COFFER_MCF_DAMAGE_LOST;
        if (find_damaged(&offset, &size, writer, sorted, &damage) ? lost || damage.begin >= size : !lost) {
            coffer__free(damage.name);
            continue;
        }
        if (damage.size > size - damage.begin)
            damage.size = size - damage.begin;
        if (!lost)
            status =
                coffer__mcf_crc_of_output(&damage.found, writer, offset + damage.begin, damage.size, err);
        writer->damages[kept++] = damage;
    }
    if (!status)
        writer->damage_count = kept;
    coffer__free(sorted);
    return status;
}

static coffer_status put_damage(coffer_mcf_writer *writer, coffer_error *err)
{
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    coffer_status status = writer->damage_count ? settle_damage(writer, err) : COFFER_OK;
    if (status || writer->damage_count == 0)
        return status;
    status = coffer__mcf_damages_encode(&bytes, writer->damages, writer->damage_count, err);
    if (!status)
        status =
            put_section(writer, COFFER_MCF_DAMAGE, COFFER__MCF_SECTION_VERSION, bytes.data, bytes.len, err);
    coffer__buffer_free(&bytes);
    return status;
}

coffer_status coffer__mcf_finish(coffer_mcf_writer *writer, coffer_error *err)
{
    coffer__mcf_header header = { .major = COFFER__MCF_MAJOR,
                                  .minor = COFFER__MCF_MINOR,
                                  .header_size = COFFER__MCF_HEADER_SIZE,
                                  .flags = writer->opts.flags | COFFER__MCF_FLAG_ALIGNED64 };
    coffer_status status = coffer__mcf_write_files(writer, err);
    if (!status && writer->tensor_count > 0)
        status = end_area(writer, err);
    for (size_t i = 0; !status && i < writer->late_count; i++)
        status = put_section(writer, writer->late[i].type, writer->late[i].version, writer->late[i].bytes,
                             writer->late[i].len, err);
    if (!status)
        status = put_damage(writer, err);
    if (!status && writer->section_count == 0)
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "a model needs at least one tensor or section");
    if (status)
        return status;
    if (!writer->opts.no_checksums)
        return put_protected(writer, &header, err);
    status = align_section(writer, err);
    return status ? status : put_directory(writer, &header, err);
}
