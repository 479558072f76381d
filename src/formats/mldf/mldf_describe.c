/* Describing a set and listing its fields. */
#include "coffer/mldf_analyze.h"
#include "formats/mldf/mldf_private.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>

#define TABLE_READ_MAX ((uint64_t)1 << 20) /* entries: more of them are not read just to describe a file */
#define ENTRIES_AT_ONCE 4096
#define TABLES_SUMMED                                                                    \
    ((uint64_t)64 << 20) /* bytes of rows and table that are verified to describe a file \
                          */

void coffer__mldf_put_type(coffer_node *parent, const char *name, uint16_t type)
{
    const char *text = coffer_mldf_type_name(type);
    if (text)
        coffer_node_add_text(parent, name, text);
    else
        coffer_node_add_printf(parent, name, "%u", type);
}

/* Bytes of the payloads that the table names. */
static coffer_status sum_payloads(uint64_t *out, const coffer_mldf *set, coffer_error *err)
{
    uint8_t *scratch = coffer__alloc_array(ENTRIES_AT_ONCE, COFFER__MLDF_TABLE_ENTRY);
    uint64_t sum = 0;
    coffer_status status = COFFER_OK;
    if (!scratch)
        return coffer__fail_no_memory(err, ENTRIES_AT_ONCE * COFFER__MLDF_TABLE_ENTRY);
    for (uint64_t first = 0; !status && first < set->table_count; first += ENTRIES_AT_ONCE) {
        uint64_t left = set->table_count - first;
        size_t count = left < ENTRIES_AT_ONCE ? (size_t)left : ENTRIES_AT_ONCE;
        const uint8_t *entries = NULL;
        status = coffer__mldf_fetch_table(&entries, set, first, count, scratch, err);
        for (size_t i = 0; !status && i < count; i++)
            sum += coffer__mldf_load_allocation(entries + i * COFFER__MLDF_TABLE_ENTRY).size;
    }
    coffer__free(scratch);
    *out = sum;
    return status;
}

/* Where the parts are, and what belongs to none of them. */
static coffer_status describe_parts(coffer_node *out, const coffer_mldf *set, coffer_error *err)
{
    const coffer__mldf_header *header = &set->header;
    uint64_t descriptors = (uint64_t)set->schema.count * set->schema.stride, payloads = 0;
    uint64_t rows = header->samples * set->schema.row_size, table = set->file_size - header->table;
    uint64_t used = COFFER__MLDF_HEAD_SIZE + descriptors + rows + table;
    bool read_table = set->table_count <= TABLE_READ_MAX;
    coffer_status status = read_table ? sum_payloads(&payloads, set, err) : COFFER_OK;
    if (status)
        return status;
    coffer_node_add_u64(out, "payloads", set->table_count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "descriptor_bytes", descriptors, COFFER_UNIT_BYTES);
    coffer_node_add_u64(out, "row_bytes", rows, COFFER_UNIT_BYTES);
    coffer_node_add_u64(out, "table_bytes", table, COFFER_UNIT_BYTES);
    if (!read_table) {
        coffer_node_add_null(out, "payload_bytes");
        coffer_node_add_null(out, "unused_bytes");
        return COFFER_OK;
    }
    coffer_node_add_u64(out, "payload_bytes", payloads, COFFER_UNIT_BYTES);
    coffer_node_add_u64(out, "unused_bytes",
                        used > set->file_size || payloads > set->file_size - used
                            ? 0
                            : set->file_size - used - payloads,
                        COFFER_UNIT_BYTES);
    return COFFER_OK;
}

static void describe_schema(coffer_node *out, const coffer_mldf *set)
{
    coffer_node *list = coffer_node_add_list(out, "schema");
    for (size_t i = 0; i < set->schema.count; i++) {
        coffer_node *entry = coffer_node_add_map(list, NULL);
        coffer_node_add_text(entry, "name", set->schema.fields[i].name);
        coffer__mldf_put_type(entry, "type", set->schema.fields[i].type);
    }
}

/* Damage that shows without reading much: a description must not look right when it is not. */
static void describe_damage(coffer_node *out, coffer_mldf *set)
{
    const coffer__mldf_header *header = &set->header;
    uint64_t tables = header->samples * set->schema.row_size + (set->file_size - header->table);
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status = coffer__mldf_verify_front(set, &found);
    if (!status && tables <= TABLES_SUMMED && !set->region_only)
        status = coffer__mldf_verify_tables(set, &found);
    if (status)
        coffer_node_add_text(out, "damage", found.text);
}

static const char *guard_words(coffer__mldf_guard_state state)
{
    static const char *const words[] = {
        [COFFER__MLDF_GUARD_NONE] = "none",
        [COFFER__MLDF_GUARD_FINE] = "two copies",
        [COFFER__MLDF_GUARD_ONE_COPY] = "one of two copies is damaged",
        [COFFER__MLDF_GUARD_STALE] = "of an earlier state of the file",
        [COFFER__MLDF_GUARD_TRUNCATED] = "of a longer file",
        [COFFER__MLDF_GUARD_DIFFERS] = "the header differs from it",
    };
    return words[state];
}

static void put_crc(coffer_node *map, const char *name, bool known, uint32_t crc)
{
    if (known)
        coffer_node_add_printf(map, name, "%08lx", (unsigned long)crc);
    else
        coffer_node_add_null(map, name);
}

/* Pointers and checksums, as the tutorial's validate_file lists them, and ours. */
static coffer_status describe_internals(coffer_node *out, const coffer_mldf *set, coffer_error *err)
{
    const coffer__mldf_header *header = &set->header;
    coffer_node *map = coffer_node_add_map(out, "header");
    uint64_t end = 0;
    coffer_status status = coffer__mldf_data_end(&end, set, err);
    coffer_node_add_u64(map, "field_desc_ptr", header->descriptors, COFFER_UNIT_OFFSET);
    coffer_node_add_u64(map, "metadata_ptr", header->metadata, COFFER_UNIT_OFFSET);
    coffer_node_add_u64(map, "data_ptr", header->stated_data, COFFER_UNIT_OFFSET);
    coffer_node_add_u64(map, "alloc_table_ptr", header->stated_table, COFFER_UNIT_OFFSET);
    coffer_node_add_u64(map, "data_end", end, COFFER_UNIT_OFFSET);
    bool summed = (header->flags & COFFER_MLDF_CHECKSUMMED) != 0;
    put_crc(map, "data_crc32", summed, header->data_crc);
    put_crc(map, "table_crc32", coffer__mldf_has_sums(set), header->table_crc);
    coffer_node_add_text(map, "guard", guard_words(set->guard_state));
    if (coffer__mldf_has_id(&set->guard)) {
        char hex[2 * COFFER__MLDF_ID_SIZE + 1];
        for (size_t i = 0; i < COFFER__MLDF_ID_SIZE; i++)
            snprintf(hex + 2 * i, 3, "%02x", set->guard.id[i]);
        coffer_node_add_text(map, "file_id", hex);
    } else {
        coffer_node_add_null(map, "file_id");
    }
    coffer_node_add_bool(map, "recovery_blocks", set->guard.recovery_from != 0);
    coffer_node_add_u64(map, "marks", set->guard.mark_count, COFFER_UNIT_NONE);
    return status;
}

coffer_status coffer__mldf_describe(coffer_node *out, coffer_source *src, const coffer_describe_opts *opts,
                                    coffer_error *err)
{
    coffer_mldf_open_opts open_options = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_mldf *set = NULL;
    coffer_status status;
    open_options.limits = opts->limits;
    status = coffer_mldf_open(&set, src, &open_options, err);
    if (status)
        return status;
    const coffer__mldf_header *header = &set->header;
    coffer_node_add_u64(out, "samples", header->samples, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "fields", set->schema.count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "descriptor_stride", set->schema.stride, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "flags", header->flags, COFFER_UNIT_FLAGS);
    coffer_node_add_printf(out, "version", "%u.%u", header->major, header->minor);
    coffer_node_add_bool(out, "compressed", (header->flags & COFFER_MLDF_COMPRESSED) != 0);
    coffer_node_add_bool(out, "checksummed", (header->flags & COFFER_MLDF_CHECKSUMMED) != 0);
    coffer_node_add_bool(out, "encrypted", (header->flags & COFFER_MLDF_ENCRYPTED) != 0);
    coffer_node_add_u64(out, "page_size", header->page_size, COFFER_UNIT_BYTES);
    coffer_node_add_u64(out, "row_size", set->schema.row_size, COFFER_UNIT_BYTES);
    status = describe_parts(out, set, err);
    describe_schema(out, set);
    if (!status && opts->verbose)
        status = describe_internals(out, set, err);
    describe_damage(out, set);
    if (coffer_source_interrupted_update(src))
        coffer_node_add_text(out, "state", "interrupted update, old state shown");
    coffer_mldf_close(set);
    return status ? status : coffer_node_status(out, err);
}

/* ---- Listing the fields ---- */

static void put_shape(coffer_node *entry, const coffer_mldf_field *field)
{
    const coffer__mldf_type_info *info = coffer__mldf_type_info_of(field->type);
    if (!info || !info->has_array || field->dtype == COFFER_DTYPE_NONE) {
        coffer_node_add_null(entry, "dtype");
        coffer_node_add_null(entry, "shape");
        return;
    }
    coffer_node_add_text(entry, "dtype", coffer_dtype_name(field->dtype));
    coffer_node *shape = coffer_node_add_list(entry, "shape");
    for (uint32_t d = 0; d < field->ndim; d++)
        coffer_node_add_u64(shape, NULL, field->dims[d], COFFER_UNIT_NONE);
}

static void put_field(coffer_node *entries, const coffer_mldf_field *field)
{
    coffer_node *entry = coffer_node_add_map(entries, NULL);
    coffer_node_add_text(entry, "name", field->name);
    coffer__mldf_put_type(entry, "type", field->type);
    put_shape(entry, field);
    coffer_node_add_bool(entry, "optional", (field->flags & COFFER_MLDF_FIELD_OPTIONAL) != 0);
    coffer_node_add_bool(entry, "zstd", (field->flags & COFFER_MLDF_FIELD_ZSTD) != 0);
    coffer_node_add_bool(entry, "encrypted", (field->flags & COFFER_MLDF_FIELD_ENCRYPTED) != 0);
    coffer_node_add_u64(entry, "dictionary", field->dictionary_size, COFFER_UNIT_BYTES);
    coffer_node_add_u64(entry, "row_offset", field->row_offset, COFFER_UNIT_NONE);
    coffer_node_add_u64(entry, "row_size", field->row_size, COFFER_UNIT_BYTES);
}

static void list_fields(coffer_node *entries, const coffer_mldf *set, const char *glob)
{
    for (size_t i = 0; i < set->schema.count; i++) {
        const coffer_mldf_field *field = &set->schema.fields[i];
        if (!glob || coffer__glob_match(glob, field->name, strlen(field->name)))
            put_field(entries, field);
    }
}

static coffer_status list_table(coffer_node *entries, const coffer_mldf *set, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (uint64_t i = 0; i < set->table_count && !status; i++) {
        coffer_mldf_allocation found = COFFER_MLDF_ALLOCATION_INIT;
        status = coffer_mldf_allocation_at(&found, set, i, err);
        if (status)
            break;
        coffer_node *entry = coffer_node_add_map(entries, NULL);
        coffer_node_add_u64(entry, "offset", found.offset, COFFER_UNIT_OFFSET);
        coffer_node_add_u64(entry, "size", found.size, COFFER_UNIT_BYTES);
        if (found.has_crc32)
            coffer_node_add_printf(entry, "crc32", "%08lx", (unsigned long)found.crc32);
        else
            coffer_node_add_null(entry, "crc32");
    }
    return status;
}

/* ---- Samples ---- */

/* A text field that names the samples; COFFER_INDEX_NONE without one. */
static size_t name_field(const coffer_mldf *set)
{
    static const char *const names[] = { "path", "__key__", "name", "filename", "file", "key", "id" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t field = coffer_mldf_find_field(set, names[i]);
        if (field != COFFER_INDEX_NONE && set->schema.fields[field].kind == COFFER_MLDF_ENTRY_TEXT)
            return field;
    }
    return COFFER_INDEX_NONE;
}

static coffer_status list_sample(coffer_node *entries, coffer_bytes *bytes, const coffer_mldf *set,
                                 uint64_t sample, size_t name, const char *glob, coffer_error *err)
{
    uint64_t size = 0, values = 0;
    coffer_status status = COFFER_OK;
    bool named = name != COFFER_INDEX_NONE;
    for (size_t i = 0; !status && i < set->schema.count; i++) {
        coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
        status = coffer_mldf_entry_at(&entry, set, sample, i, err);
        size += coffer__mldf_has_payload(set->schema.fields[i].kind) && entry.present ? entry.size : 0;
        values += entry.present;
    }
    if (!status && named)
        status = coffer_mldf_read(bytes, NULL, set, sample, name, err);
    const char *text = named && !status ? (const char *)bytes->data : NULL;
    if (status || (glob && (!text || !coffer__glob_match(glob, text, bytes->size))))
        return status;
    coffer_node *entry = coffer_node_add_map(entries, NULL);
    coffer_node_add_u64(entry, "sample", sample, COFFER_UNIT_NONE);
    if (text)
        coffer_node_add_text_len(entry, "name", text, bytes->size);
    else
        coffer_node_add_null(entry, "name");
    coffer_node_add_u64(entry, "values", values, COFFER_UNIT_NONE);
    coffer_node_add_u64(entry, "size", size, COFFER_UNIT_BYTES);
    return COFFER_OK;
}

static coffer_status list_samples(coffer_node *entries, const coffer_mldf *set, const coffer_list_opts *opts,
                                  coffer_error *err)
{
    enum { ENTRY_BYTES = 512 }; /* of memory, about */
    coffer_bytes bytes = COFFER_BYTES_INIT;
    uint64_t *chosen = NULL, count = set->header.samples;
    size_t name = name_field(set);
    coffer_status status = COFFER_OK;
    if (opts->where_count)
        status = coffer_mldf_select(&chosen, &count, set, opts->where, opts->where_count, NULL, err);
    if (!status && count > set->limits.memory_bytes / ENTRY_BYTES)
        status =
            coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                         "%" PRIu64 " samples are too many to list at once: choose some with --where", count);
    for (uint64_t i = 0; !status && i < count; i++)
        status = list_sample(entries, &bytes, set, chosen ? chosen[i] : i, name, opts->glob, err);
    coffer_free(bytes.data);
    coffer_free(chosen);
    return status;
}

coffer_status coffer__mldf_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                coffer_error *err)
{
    coffer_mldf_open_opts open_options = COFFER_MLDF_OPEN_OPTS_INIT;
    bool table = opts->what && strcmp(opts->what, "table") == 0;
    bool samples = opts->what ? strcmp(opts->what, "samples") == 0 : opts->where_count > 0;
    coffer_mldf *set = NULL;
    coffer_status status;
    if (opts->what && !table && !samples && strcmp(opts->what, "fields") != 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a training set lists fields, samples or table, not \"%s\"", opts->what);
    if (opts->where_count && !samples)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "conditions choose samples, not the list \"%s\"", opts->what);
    if (table && opts->glob)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the entries of the allocation table have no names to choose by");
    open_options.limits = opts->limits;
    open_options.verify = samples;
    status = coffer_mldf_open(&set, src, &open_options, err);
    /* The payloads of a damaged file can still be listed. */
    if (!status && !table)
        status = coffer__mldf_verify_front(set, err);
    if (status) {
        coffer_mldf_close(set);
        return status;
    }
    coffer_node *entries = coffer_node_add_list(out, "entries");
    if (table)
        status = list_table(entries, set, err);
    else if (samples)
        status = list_samples(entries, set, opts, err);
    else
        list_fields(entries, set, opts->glob);
    coffer_mldf_close(set);
    return status ? status : coffer_node_status(out, err);
}
