/* Opens a set: header and field descriptors, nothing that grows with the samples. */
#include "formats/mldf/mldf_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/format.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <sodium.h>

/* The header, and whether the parts it points to lie inside the file. */

#define ROW_SIZE_ANYWAY ((uint32_t)1 << 20) /* harmless in a file of any size */

coffer__mldf_header coffer__mldf_load_header(const uint8_t at[COFFER__MLDF_HEADER_SIZE])
{
    return (coffer__mldf_header){
        .major = coffer__load_u16(at),
        .minor = coffer__load_u16(at + COFFER__MLDF_MINOR_AT),
        .flags = coffer__load_u32(at + COFFER__MLDF_FLAGS_AT),
        .samples = coffer__load_u64(at + COFFER__MLDF_SAMPLES_AT),
        .fields = coffer__load_u16(at + COFFER__MLDF_FIELDS_AT),
        .pad = coffer__load_u16(at + COFFER__MLDF_FIELDS_AT + 2),
        .page_size = coffer__load_u32(at + COFFER__MLDF_PAGE_SIZE_AT),
        .descriptors = coffer__load_u64(at + COFFER__MLDF_DESCRIPTORS_AT),
        .metadata = coffer__load_u64(at + COFFER__MLDF_METADATA_AT),
        .data = coffer__load_u64(at + COFFER__MLDF_DATA_AT),
        .table = coffer__load_u64(at + COFFER__MLDF_TABLE_AT),
        .data_crc = coffer__load_u32(at + COFFER__MLDF_DATA_CRC_AT),
        .table_crc = coffer__load_u32(at + COFFER__MLDF_TABLE_CRC_AT),
        .stated_data = coffer__load_u64(at + COFFER__MLDF_DATA_AT),
        .stated_table = coffer__load_u64(at + COFFER__MLDF_TABLE_AT),
    };
}

/* The tutorial's writer seeks to the data region and writes nothing when no value has a payload. A table that
 * begins with the data says that there is nothing in it. */
static void settle_empty_data(coffer__mldf_header *header, uint64_t file_size)
{
    if (header->data != header->table || header->table <= file_size)
        return;
    header->data = header->table = file_size;
}

coffer_status coffer__mldf_read_header(coffer__mldf_header *out, coffer_source *src, coffer_error *err)
{
    uint64_t size = coffer_source_size(src);
    uint8_t bytes[COFFER__MLDF_HEAD_SIZE];
    size_t have = size < sizeof bytes ? (size_t)size : sizeof bytes;
    coffer__mldf_header header;
    coffer_status status = coffer_source_read_at(bytes, src, 0, have, err);
    if (status)
        return status;
    if (have < COFFER__MLDF_MAGIC_SIZE || memcmp(bytes, COFFER__MLDF_MAGIC, COFFER__MLDF_MAGIC_SIZE) != 0)
        return coffer__fail_magic(&coffer__mldf_format, bytes, have, err);
    if (have < sizeof bytes)
        return coffer__fail(err, COFFER_E_TRUNCATED, size,
                            "magic and header take %d bytes, file has %" PRIu64, COFFER__MLDF_HEAD_SIZE,
                            size);
    header = coffer__mldf_load_header(bytes + COFFER__MLDF_HEADER_AT);
    if (header.major != COFFER__MLDF_MAJOR)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, COFFER__MLDF_HEADER_AT,
                            "version %u.%u is too %s, this program reads %d.x", header.major, header.minor,
                            header.major > COFFER__MLDF_MAJOR ? "new" : "old", COFFER__MLDF_MAJOR);
    if (!(header.flags & COFFER_MLDF_LITTLE_ENDIAN))
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER__MLDF_HEADER_AT + COFFER__MLDF_FLAGS_AT,
                            "flags are 0x%lx: the file is not little-endian", (unsigned long)header.flags);
    memcpy(header.bytes, bytes, sizeof bytes);
    settle_empty_data(&header, size);
    *out = header;
    return COFFER_OK;
}

coffer_status coffer__mldf_check_descriptors(const coffer__mldf_header *header, uint64_t file_size,
                                             coffer_error *err)
{
    uint64_t len = (uint64_t)header->fields * COFFER__MLDF_STRIDE_TUTORIAL;
    if (!coffer__range_fits(header->descriptors, len, file_size))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER__MLDF_HEADER_AT + COFFER__MLDF_DESCRIPTORS_AT,
                            "%u field descriptors take %" PRIu64 " bytes at %" PRIu64 ", file has %" PRIu64,
                            header->fields, len, header->descriptors, file_size);
    if (len > 0 && header->descriptors < COFFER__MLDF_HEAD_SIZE)
        return coffer__fail(err, COFFER_E_OVERLAP, COFFER__MLDF_HEADER_AT + COFFER__MLDF_DESCRIPTORS_AT,
                            "the field descriptors begin at %" PRIu64 ", inside the header of %d bytes",
                            header->descriptors, COFFER__MLDF_HEAD_SIZE);
    return COFFER_OK;
}

coffer_status coffer__mldf_check_rows(const coffer__mldf_header *header, uint32_t row_size,
                                      uint64_t file_size, coffer_error *err)
{
    uint64_t len = 0;
    if (!coffer__mul_u64(&len, header->samples, row_size) ||
        (len > 0 && !coffer__range_fits(header->metadata, len, file_size)))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER__MLDF_HEADER_AT + COFFER__MLDF_METADATA_AT,
                            "the rows of %" PRIu64 " samples, %lu bytes each, at %" PRIu64
                            " do not fit: file has %" PRIu64,
                            header->samples, (unsigned long)row_size, header->metadata, file_size);
    return COFFER_OK;
}

coffer_status coffer__mldf_bound_row(uint32_t row_size, const coffer__mldf_header *header, uint64_t file_size,
                                     const coffer_limits *limits, coffer_error *err)
{
    if (row_size > limits->memory_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, header->descriptors,
                            "the fields make a row of %lu bytes, the limit is %" PRIu64,
                            (unsigned long)row_size, limits->memory_bytes);
    if (row_size > file_size && row_size > ROW_SIZE_ANYWAY)
        return coffer__fail(err, COFFER_E_LIMIT, header->descriptors,
                            "the fields make a row of %lu bytes, the whole file has %" PRIu64,
                            (unsigned long)row_size, file_size);
    return COFFER_OK;
}

coffer_status coffer__mldf_check_data(const coffer__mldf_header *header, uint64_t file_size,
                                      coffer_error *err)
{
    if (header->data > file_size)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER__MLDF_HEADER_AT + COFFER__MLDF_DATA_AT,
                            "the data region begins at %" PRIu64 ", file has %" PRIu64, header->data,
                            file_size);
    return COFFER_OK;
}

coffer_status coffer__mldf_check_table(const coffer__mldf_header *header, uint64_t file_size,
                                       coffer_error *err)
{
    if (header->table > file_size)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER__MLDF_HEADER_AT + COFFER__MLDF_TABLE_AT,
                            "the allocation table begins at %" PRIu64 ", file has %" PRIu64
                            ": it may have been cut",
                            header->table, file_size);
    if ((file_size - header->table) % COFFER__MLDF_TABLE_ENTRY != 0)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, header->table,
                            "the allocation table has %" PRIu64 " bytes, no multiple of %d",
                            (file_size - header->table), COFFER__MLDF_TABLE_ENTRY);
    return COFFER_OK;
}

/* Opening a set: header and field descriptors, and nothing that grows with the samples. */

COFFER__INIT_FUNCTION(coffer_mldf_field, COFFER_MLDF_FIELD_INIT)
COFFER__INIT_FUNCTION(coffer_mldf_entry, COFFER_MLDF_ENTRY_INIT)
COFFER__INIT_FUNCTION(coffer_mldf_open_opts, COFFER_MLDF_OPEN_OPTS_INIT)

static coffer_status load_parts(coffer_mldf *set, coffer_error *err)
{
    coffer_status status = coffer__mldf_read_header(&set->header, set->source, err);
    if (!status)
        status = coffer__mldf_check_data(&set->header, set->file_size, err);
    if (!status)
        status = coffer__mldf_check_table(&set->header, set->file_size, err);
    if (!status)
        status = coffer__mldf_read_schema(&set->schema, set->source, &set->header, &set->limits, NULL, err);
    if (!status)
        status = coffer__mldf_check_rows(&set->header, set->schema.row_size, set->file_size, err);
    if (!status)
        status =
            coffer__mldf_bound_row(set->schema.row_size, &set->header, set->file_size, &set->limits, err);
    if (status)
        return status;
    set->table_count = (set->file_size - set->header.table) / COFFER__MLDF_TABLE_ENTRY;
    status = coffer__mldf_read_guard(&set->guard, &set->guard_state, set->source, &set->header, false, err);
    return status ? status : coffer__mldf_find_region_only(set, err);
}

void coffer__mldf_prepare(coffer_mldf *set, coffer_source *src, const coffer_limits *limits,
                          const uint8_t *key)
{
    *set = (coffer_mldf){ .source = src,
                          .file_size = coffer_source_size(src),
                          .limits = coffer__limits(limits) };
    if (key) {
        set->has_key = sodium_init() >= 0;
        memcpy(set->key, key, sizeof set->key);
    }
}

void coffer__mldf_release(coffer_mldf *set)
{
    for (size_t i = 0; i < COFFER__MLDF_IDLE_DECODERS; i++)
        coffer__mldf_decoder_free(atomic_load(&set->idle[i]));
    for (size_t i = 0; set->dictionaries && i < set->schema.count; i++)
        coffer__mldf_dictionary_free(atomic_load(&set->dictionaries[i]));
    coffer__free(set->dictionaries);
    coffer__mldf_schema_free(&set->schema);
    sodium_memzero(set->key, sizeof set->key);
}

coffer_status coffer__mldf_settle_fields(coffer_mldf *set, coffer_error *err)
{
    bool any_dictionary = false;
    for (size_t i = 0; i < set->schema.count; i++) {
        any_dictionary |= set->schema.fields[i].dictionary_size > 0;
        set->any_encrypted |= (set->schema.fields[i].flags & COFFER_MLDF_FIELD_ENCRYPTED) != 0;
    }
    if (!any_dictionary)
        return COFFER_OK;
    set->dictionaries = coffer__calloc(set->schema.count, sizeof *set->dictionaries);
    return set->dictionaries ? COFFER_OK
                             : coffer__fail_no_memory(err, set->schema.count * sizeof *set->dictionaries);
}

/* Rows whose checksum is wrong are read like those of a set without checksums, when the caller accepts it. A
 * damaged header is never accepted, because it says where the rows are; copies of rows are marked, so there
 * must be some. */
static coffer_status verify_or_accept(coffer_mldf *set, bool accept, coffer_error *err)
{
    coffer_error damage = COFFER_ERROR_INIT;
    coffer_status status = coffer__mldf_verify_tables(set, &damage);
    if (status == COFFER_E_BAD_CHECKSUM && accept && set->header.samples > 0 &&
        set->guard_state != COFFER__MLDF_GUARD_DIFFERS) {
        set->tables_wrong = true;
        return coffer__source_accept_damage(set->source, &damage, err);
    }
    return status ? coffer__fail_copy(err, &damage) : COFFER_OK;
}

static coffer_status open_set(coffer_mldf **out, coffer_source *src, const coffer_mldf_open_opts *opts,
                              bool accept, coffer_error *err)
{
    coffer_mldf_open_opts options = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_mldf *set;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    set = coffer__malloc(sizeof *set);
    if (!set)
        return coffer__fail_no_memory(err, sizeof *set);
    coffer__mldf_prepare(set, src, options.limits, options.key);
    set->verify = options.verify;
    status = load_parts(set, err);
    if (!status)
        status = coffer__mldf_settle_fields(set, err);
    if (!status && set->verify)
        status = verify_or_accept(set, accept, err);
    /* Whatever was found, right or wrong, may be a mixture of an old and a new state. */
    if (!coffer__source_settled(src))
        status =
            coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE, "changed while it was opened, try again");
    if (status) {
        coffer_mldf_close(set);
        return status;
    }
    *out = set;
    return COFFER_OK;
}

coffer_status coffer_mldf_open(coffer_mldf **out, coffer_source *src, const coffer_mldf_open_opts *opts,
                               coffer_error *err)
{
    return open_set(out, src, opts, true, err);
}

coffer_status coffer__mldf_open_strict(coffer_mldf **out, coffer_source *src,
                                       const coffer_mldf_open_opts *opts, coffer_error *err)
{
    return open_set(out, src, opts, false, err);
}

coffer_status coffer_mldf_open_path(coffer_mldf **out, const char *path, const coffer_mldf_open_opts *opts,
                                    coffer_error *err)
{
    coffer_source *source = NULL;
    coffer_mldf *set = NULL;
    coffer_status status = coffer_source_open(&source, path, NULL, err);
    if (!status)
        status = coffer_mldf_open(&set, source, opts, err);
    if (status) {
        coffer_source_close(source);
        return status;
    }
    set->own_source = source;
    *out = set;
    return COFFER_OK;
}

void coffer_mldf_close(coffer_mldf *set)
{
    if (!set)
        return;
    coffer__mldf_release(set);
    coffer_source_close(set->own_source);
    coffer__free(set);
}

uint64_t coffer_mldf_sample_count(const coffer_mldf *set)
{
    return set->header.samples;
}

uint32_t coffer_mldf_flags(const coffer_mldf *set)
{
    return set->header.flags;
}

uint16_t coffer_mldf_version_minor(const coffer_mldf *set)
{
    return set->header.minor;
}

bool coffer_mldf_is_newer(const coffer_mldf *set)
{
    return set->header.minor > COFFER__MLDF_MINOR;
}

uint32_t coffer_mldf_page_size(const coffer_mldf *set)
{
    return set->header.page_size;
}

uint32_t coffer_mldf_descriptor_stride(const coffer_mldf *set)
{
    return set->schema.stride;
}

uint32_t coffer_mldf_row_size(const coffer_mldf *set)
{
    return set->schema.row_size;
}

size_t coffer_mldf_field_count(const coffer_mldf *set)
{
    return set->schema.count;
}

const coffer_mldf_field *coffer_mldf_field_at(const coffer_mldf *set, size_t index)
{
    return index < set->schema.count ? &set->schema.fields[index] : NULL;
}

size_t coffer_mldf_find_field(const coffer_mldf *set, const char *name)
{
    const coffer__mldf_schema *schema = &set->schema;
    size_t low = 0, high = schema->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, schema->fields[schema->sorted[middle]].name);
        if (order == 0)
            return schema->sorted[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return COFFER_INDEX_NONE;
}
