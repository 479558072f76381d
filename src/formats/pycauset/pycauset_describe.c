/* Describes and lists a matrix: its metadata, their generations, the children of a block matrix. */
#include "formats/pycauset/pycauset_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>

static void describe_stale(coffer_node *out, const coffer_pycauset *matrix)
{
    const coffer_pycauset_value *cached = coffer__pycauset_get_key(matrix->metadata.root, "cached");
    coffer_node *stale = coffer_node_add_list(out, "stale");
    for (size_t i = 0; cached && cached->kind == COFFER_PYCAUSET_MAP && i < cached->count; i++) {
        const coffer_pycauset_value *entry = &cached->as.children[i];
        if (!coffer__pycauset_is_fresh(entry, matrix->metadata.root, matrix->view_signature))
            coffer_node_add_text_len(stale, NULL, entry->key, entry->key_len);
    }
}

static void describe_cached(coffer_node *out, const coffer_pycauset *matrix)
{
    const coffer_pycauset_value *cached = coffer__pycauset_get_key(matrix->metadata.root, "cached");
    if (!cached || cached->kind != COFFER_PYCAUSET_MAP)
        return;
    coffer_node *map = coffer_node_add_map(out, "cached");
    for (size_t i = 0; i < cached->count; i++) {
        const coffer_pycauset_value *entry = &cached->as.children[i];
        if (coffer__pycauset_is_fresh(entry, matrix->metadata.root, matrix->view_signature))
            coffer__pycauset_to_node(map, entry->key, coffer__pycauset_get_key(entry, "value"));
    }
}

static void describe_view(coffer_node *out, const coffer_pycauset_info *info)
{
    coffer_node *view = coffer_node_add_map(out, "view");
    coffer_node_add_bool(view, "transposed", info->transposed);
    coffer_node_add_bool(view, "conjugated", info->conjugated);
    coffer_node_add_f64(view, "scalar_real", info->scalar_real, COFFER_UNIT_NONE);
    coffer_node_add_f64(view, "scalar_imag", info->scalar_imag, COFFER_UNIT_NONE);
}

static void describe_payload(coffer_node *out, const coffer_pycauset *matrix)
{
    const coffer_pycauset_info *info = &matrix->info;
    if (info->type == COFFER_PYCAUSET_UNKNOWN)
        coffer__pycauset_to_node(out, "layout",
                                 coffer_pycauset_value_find(matrix->metadata.root, "payload_layout.kind"));
    else
        coffer_node_add_text(out, "layout", coffer_pycauset_layout_name(info->layout));
    if (info->type == COFFER_PYCAUSET_TRIANGULAR_FLOAT || info->type == COFFER_PYCAUSET_TRIANGULAR_INTEGER)
        coffer_node_add_bool(out, "has_diagonal", info->has_diagonal);
    if (info->type == COFFER_PYCAUSET_UNIT_VECTOR)
        coffer_node_add_u64(out, "unit_index", info->unit_index, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "payload_offset", info->payload_offset, COFFER_UNIT_OFFSET);
    coffer_node_add_u64(out, "payload_bytes", info->payload_needed, COFFER_UNIT_BYTES);
    if (info->payload_length != info->payload_needed)
        coffer_node_add_u64(out, "payload_length", info->payload_length, COFFER_UNIT_BYTES);
    coffer_node_add_bool(out, "checksums",
                         coffer__pycauset_get_key(matrix->metadata.root, COFFER__PYCAUSET_CHECKSUMS_KEY) !=
                             NULL);
}

static void describe_preamble(coffer_node *out, coffer_source *src)
{
    uint8_t bytes[COFFER__PYCAUSET_SLOT_A_AT];
    if (coffer_source_read_at(bytes, src, 0, sizeof bytes, NULL) != COFFER_OK)
        return;
    coffer_node *map = coffer_node_add_map(out, "preamble");
    coffer_node_add_text_len(map, "magic", (const char *)bytes, COFFER__PYCAUSET_MAGIC_SIZE);
    coffer_node_add_u64(map, "format_version", coffer__load_u32(bytes + COFFER__PYCAUSET_VERSION_AT),
                        COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "endian", bytes[COFFER__PYCAUSET_ENDIAN_AT], COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "header_bytes", coffer__load_u16(bytes + COFFER__PYCAUSET_HEADER_BYTES_AT),
                        COFFER_UNIT_BYTES);
    coffer_node_add_u64(map, "reserved", bytes[COFFER__PYCAUSET_RESERVED_AT], COFFER_UNIT_NONE);
}

static void describe_slot(coffer_node *out, const coffer__pycauset_header *header, coffer_source *src,
                          int which, bool verbose)
{
    const coffer__pycauset_slot *slot = &header->slots[which];
    coffer_node *map = coffer_node_add_map(out, which == 0 ? "A" : "B");
    coffer_error why = COFFER_ERROR_INIT;
    bool valid = coffer__pycauset_explain_slot(header, which, coffer_source_size(src), &why) == COFFER_OK;
    coffer_node_add_bool(map, "valid", valid);
    coffer_node_add_bool(map, "active", which == header->active);
    if (!valid)
        coffer_node_add_text(map, "why", why.text);
    coffer_node_add_u64(map, "generation", slot->generation, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "metadata_offset", slot->metadata_offset, COFFER_UNIT_OFFSET);
    coffer_node_add_u64(map, "metadata_length", slot->metadata_length, COFFER_UNIT_BYTES);
    if (!verbose)
        return;
    coffer_node_add_bool(map, "crc_ok", slot->crc_matches);
    coffer_node_add_u64(map, "payload_offset", slot->payload_offset, COFFER_UNIT_OFFSET);
    coffer_node_add_u64(map, "payload_length", slot->payload_length, COFFER_UNIT_BYTES);
    coffer_node_add_u64(map, "hot_offset", slot->hot_offset, COFFER_UNIT_OFFSET);
    coffer_node_add_u64(map, "hot_length", slot->hot_length, COFFER_UNIT_BYTES);
}

static void describe_slots(coffer_node *out, const coffer__pycauset_header *header, coffer_source *src,
                           bool verbose)
{
    if (verbose)
        describe_preamble(out, src);
    coffer_node *slots = coffer_node_add_map(out, "slots");
    describe_slot(slots, header, src, 0, verbose);
    describe_slot(slots, header, src, 1, verbose);
}

/* Bytes that compact would remove. */
static uint64_t dead_bytes(const coffer_pycauset *matrix)
{
    const coffer__pycauset_slot *slot = &matrix->header.slots[matrix->header.active];
    uint64_t size = coffer_source_size(matrix->source), kept;
    if (!coffer__align_up(&kept, COFFER__PYCAUSET_HEADER_SIZE + matrix->info.payload_needed,
                          COFFER__PYCAUSET_BLOCK_ALIGNMENT) ||
        !coffer__add_u64(&kept, kept, slot->metadata_length))
        return 0;
    return size > kept ? size - kept : 0;
}

static bool is_told_elsewhere(const char *key)
{
    static const char *const keys[] = { "cached",
                                        "cols",
                                        "data_type",
                                        "matrix_type",
                                        "payload_layout",
                                        "payload_uuid",
                                        "properties",
                                        "provenance",
                                        "rows",
                                        "view",
                                        COFFER__PYCAUSET_COMMIT_KEY,
                                        COFFER__PYCAUSET_ELEMENTS_KEY,
                                        COFFER__PYCAUSET_CHECKSUMS_KEY };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(key, keys[i]) == 0)
            return true;
    }
    return false;
}

static void describe_metadata(coffer_node *out, const coffer_pycauset *matrix)
{
    const coffer_pycauset_value *root = matrix->metadata.root;
    coffer_node *others = NULL;
    coffer__pycauset_to_node(out, "payload_uuid", coffer__pycauset_get_key(root, "payload_uuid"));
    describe_cached(out, matrix);
    for (size_t i = 0; i < 2; i++) {
        const char *key = i == 0 ? "properties" : "provenance";
        if (coffer__pycauset_get_key(root, key))
            coffer__pycauset_to_node(out, key, coffer__pycauset_get_key(root, key));
    }
    for (size_t i = 0; i < root->count; i++) {
        if (is_told_elsewhere(root->as.children[i].key))
            continue;
        if (!others)
            others = coffer_node_add_map(out, "other");
        coffer__pycauset_to_node(others, root->as.children[i].key, &root->as.children[i]);
    }
}

static void describe_types(coffer_node *out, const coffer_pycauset *matrix)
{
    const coffer_pycauset_info *info = &matrix->info;
    const coffer_pycauset_value *root = matrix->metadata.root;
    if (info->type == COFFER_PYCAUSET_UNKNOWN) {
        coffer__pycauset_to_node(out, "data_type", coffer__pycauset_get_key(root, "data_type"));
        coffer__pycauset_to_node(out, "matrix_type", coffer__pycauset_get_key(root, "matrix_type"));
        coffer_node_add_text(out, "note", "this version does not know the type: the values cannot be read");
        return;
    }
    coffer_node_add_text(out, "element_type",
                         info->dtype == COFFER_DTYPE_NONE ? "mixed" : coffer_dtype_name(info->dtype));
    coffer_node_add_text(out, "data_type", coffer_pycauset_dtype_name(info->dtype));
    coffer_node_add_text(out, "matrix_type", coffer_pycauset_type_name(info->type));
}

/* A file that cannot be opened still has slots to describe. */
static void describe_damaged(coffer_node *out, coffer_source *src, bool verbose)
{
    coffer__pycauset_header header;
    if (coffer__pycauset_read_header(&header, src, NULL) == COFFER_OK)
        describe_slots(out, &header, src, verbose);
}

coffer_status coffer__pycauset_describe(coffer_node *out, coffer_source *src,
                                        const coffer_describe_opts *opts, coffer_error *err)
{
    coffer_pycauset_open_opts open_options = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_pycauset *matrix = NULL;
    open_options.generation = opts->generation;
    open_options.limits = opts->limits;
    coffer_status status = coffer_pycauset_open(&matrix, src, &open_options, err);
    if (coffer__is_about_file(status))
        describe_damaged(out, src, opts->verbose);
    if (status)
        return status;
    const coffer_pycauset_info *info = &matrix->info;
    coffer_node_add_u64(out, "rows", info->rows, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "cols", info->cols, COFFER_UNIT_NONE);
    describe_types(out, matrix);
    coffer_node_add_printf(out, "active_slot", "%c", info->active_slot);
    coffer_node_add_u64(out, "generation", info->generation, COFFER_UNIT_NONE);
    if (info->damaged_slot && !info->newer_lost)
        coffer_node_add_printf(out, "damage", "slot %c is damaged: the state before this one is not named",
                               info->damaged_slot);
    if (info->newer_lost)
        coffer_node_add_printf(out, "damage",
                               "slot %c is damaged: this is generation %" PRIu64
                               ", and a newer one may be lost",
                               info->damaged_slot, info->generation);
    describe_stale(out, matrix);
    describe_payload(out, matrix);
    describe_view(out, info);
    coffer_node_add_u64(out, "metadata_bytes", matrix->metadata_length, COFFER_UNIT_BYTES);
    coffer_node_add_u64(out, "dead_bytes", dead_bytes(matrix), COFFER_UNIT_BYTES);
    describe_slots(out, &matrix->header, src, opts->verbose);
    describe_metadata(out, matrix);
    coffer_pycauset_close(matrix);
    return coffer_node_status(out, err);
}

/* Lists metadata, its generations and the children of a block matrix.
 */

static const char *const kind_names[] = {
    "", "bool", "i64", "u64", "f64", "string", "bytes", "array", "map"
};

static bool matches(const char *glob, const char *text, size_t len)
{
    return !glob || coffer__glob_match(glob, text, len);
}

/* One entry for each value that is not a map, by its path. */
static void list_values(coffer_node *entries, const coffer_pycauset_value *map, coffer__buffer *path,
                        const char *glob)
{
    for (size_t i = 0; i < map->count; i++) {
        const coffer_pycauset_value *value = &map->as.children[i];
        size_t back = coffer__pycauset_push_key(path, value);
        const char *text = coffer__buffer_text(path);
        if (value->kind == COFFER_PYCAUSET_MAP && value->count > 0) {
            list_values(entries, value, path, glob);
        } else if (matches(glob, text, path->len)) {
            coffer_node *entry = coffer_node_add_map(entries, NULL);
            coffer_node_add_text_len(entry, "path", text, path->len);
            coffer_node_add_text(entry, "kind", kind_names[value->kind]);
            coffer__pycauset_to_node(entry, "value", value);
        }
        path->len = back;
    }
}

static coffer_status list_metadata(coffer_node *entries, coffer_source *src, const coffer_list_opts *opts,
                                   coffer_error *err)
{
    coffer_pycauset_open_opts open_options = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer__buffer path = COFFER__BUFFER_INIT;
    coffer_pycauset *matrix = NULL;
    open_options.limits = opts->limits;
    coffer_status status = coffer_pycauset_open(&matrix, src, &open_options, err);
    if (status)
        return status;
    list_values(entries, matrix->metadata.root, &path, opts->glob);
    if (path.failed)
        status = coffer__fail_no_memory(err, path.len);
    coffer__buffer_free(&path);
    coffer_pycauset_close(matrix);
    return status;
}

static coffer_status list_generations(coffer_node *entries, coffer_source *src, const coffer_list_opts *opts,
                                      coffer_error *err)
{
    coffer_pycauset_history_opts history_opts = COFFER_PYCAUSET_HISTORY_OPTS_INIT;
    history_opts.limits = opts->limits;
    coffer_pycauset_history *history = NULL;
    coffer_status status = coffer_pycauset_history_open(&history, src, &history_opts, err);
    if (status)
        return status;
    for (size_t i = 0; i < coffer_pycauset_history_count(history); i++) {
        const coffer_pycauset_generation *facts = coffer_pycauset_history_at(history, i);
        coffer_node *entry = coffer_node_add_map(entries, NULL);
        coffer_node_add_u64(entry, "generation", facts->generation, COFFER_UNIT_NONE);
        coffer_node_add_bool(entry, "committed", facts->committed);
        coffer_node_add_bool(entry, "active", facts->active);
        coffer_node_add_u64(entry, "offset", facts->offset, COFFER_UNIT_OFFSET);
        coffer_node_add_u64(entry, "length", facts->length, COFFER_UNIT_BYTES);
        coffer_node_add_text(entry, "date", facts->date);
    }
    coffer_pycauset_history_close(history);
    return COFFER_OK;
}

static void list_block_row(coffer_node *entries, const coffer_pycauset_value *row, size_t index,
                           const char *glob)
{
    for (size_t i = 0; i < coffer_pycauset_value_count(row); i++) {
        const coffer_pycauset_value *child = coffer_pycauset_value_at(row, i);
        size_t len;
        const char *name = coffer_pycauset_value_text(coffer__pycauset_get_key(child, "path"), &len);
        if (!matches(glob, name ? name : "", len))
            continue;
        coffer_node *entry = coffer_node_add_map(entries, NULL);
        coffer_node_add_u64(entry, "block_row", index, COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "block_col", i, COFFER_UNIT_NONE);
        coffer__pycauset_to_node(entry, "path", coffer__pycauset_get_key(child, "path"));
        coffer__pycauset_to_node(entry, "payload_uuid", coffer__pycauset_get_key(child, "payload_uuid"));
    }
}

static coffer_status list_blocks(coffer_node *entries, coffer_source *src, const coffer_list_opts *opts,
                                 coffer_error *err)
{
    coffer_pycauset_open_opts open_options = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_pycauset *matrix = NULL;
    open_options.limits = opts->limits;
    coffer_status status = coffer_pycauset_open(&matrix, src, &open_options, err);
    if (status)
        return status;
    const coffer_pycauset_value *rows =
        coffer_pycauset_value_find(matrix->metadata.root, "block_manifest.children");
    for (size_t i = 0; i < coffer_pycauset_value_count(rows); i++)
        list_block_row(entries, coffer_pycauset_value_at(rows, i), i, opts->glob);
    coffer_pycauset_close(matrix);
    return COFFER_OK;
}

coffer_status coffer__pycauset_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                    coffer_error *err)
{
    static const struct {
        const char *name;
        coffer_status (*list)(coffer_node *entries, coffer_source *src, const coffer_list_opts *opts,
                              coffer_error *err);
    } lists[] = { { "metadata", list_metadata },
                  { "generations", list_generations },
                  { "blocks", list_blocks } };
    const char *what = opts->what ? opts->what : "metadata";
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (strcmp(what, lists[i].name) != 0)
            continue;
        coffer_status status = lists[i].list(coffer_node_add_list(out, "entries"), src, opts, err);
        return status ? status : coffer_node_status(out, err);
    }
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "a matrix lists metadata, generations or blocks, not \"%s\"", what);
}
