#include "formats/mscan/mscan_private.h"

#include "base/options.h"
#include "base/report.h"
#include "formats/mscan/mscan_damage.h"
#include "formats/mscan/mscan_sums.h"

#include <inttypes.h>
#include <string.h>

typedef struct subject {
    coffer_node *out;
    coffer__mscan_header header;
    coffer__mscan_metadata metadata;
    coffer__mscan_area area;
} subject;

static void describe_scales(coffer_node *out, const char *name, const coffer__mscan_scales *scales)
{
    switch (scales->scope) {
    case COFFER_MSCAN_SCALE_FILE:
        coffer_node_add_printf(out, name, "value = %g + %g * raw", scales->common.offset,
                               scales->common.scale);
        break;
    case COFFER_MSCAN_SCALE_PARAM:
        coffer_node_add_text(out, name, "value = offset + scale * raw, with a scale for each parameter");
        break;
    case COFFER_MSCAN_SCALE_SEQUENCE:
        coffer_node_add_text(out, name, "value = offset + scale * raw, with a scale for each sequence");
        break;
    case COFFER_MSCAN_SCALE_UNKNOWN:
        coffer_node_add_text(out, name, "raw integers: the file does not say how values were quantized");
        break;
    }
}

static bool is_known_key(const coffer__json_value *value)
{
    static const char *const known[] = { "format_version", "model_name",   "id_to_param_name_map",
                                         "sequences",      "quantization", "block_size",
                                         "checksums",      "front_crc32",  "damage" };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(value->key, known[i]) == 0)
            return true;
    }
    return false;
}

static void describe_other_keys(const subject *file)
{
    const coffer__json_value *root = file->metadata.root, *value;
    coffer_node *list = NULL;
    for (value = coffer__json_first(root); value; value = coffer__json_next(root, value)) {
        if (is_known_key(value))
            continue;
        if (!list)
            list = coffer_node_add_list(file->out, "other_keys");
        coffer_node_add_text_len(list, NULL, value->key, value->key_len);
    }
}

/* Only what its traces prove; most files could be anybody's. */
static const char *guess_writer(const subject *file)
{
    const coffer__mscan_metadata *metadata = &file->metadata;
    if (file->area.overwritten_head)
        return "MScanWriter of the Tiny-ONN scanner";
    if (metadata->seal.spelled ||
        (metadata->sequence_count > 0 && coffer__mscan_extent_of(metadata->sequence_values[0]).has_crc))
        return "coffer";
    if (strncmp(metadata->text, "{\n  \"format_version\": \"1.1\",\n  \"model_name\"", 43) == 0)
        return "the io module of the Tiny-ONN scanner";
    return NULL;
}

static void describe_state(const subject *file, const coffer_source *src)
{
    const char *writer = guess_writer(file);
    if (writer)
        coffer_node_add_text(file->out, "writer", writer);
    if (file->metadata.mark_count > 0)
        coffer_node_add_printf(file->out, "damage_marks", "%zu: see coffer check", file->metadata.mark_count);
    if (file->area.lost > 0)
        coffer_node_add_printf(file->out, "damage", "header says %lu records; %s: %" PRIu64,
                               (unsigned long)file->header.record_count,
                               file->area.overwritten_head ? "overwritten by metadata" : "missing",
                               file->area.lost);
    else if (file->area.trailing > 0)
        coffer_node_add_u64(file->out, "trailing_bytes", file->area.trailing, COFFER_UNIT_BYTES);
    if (coffer_source_interrupted_update(src))
        coffer_node_add_text(file->out, "state", "interrupted update, old state shown");
}

static void describe_all(const subject *file, const coffer_source *src)
{
    const coffer__mscan_metadata *metadata = &file->metadata;
    const coffer__json_value *version = coffer__json_find(metadata->root, "format_version");
    uint64_t metadata_end = COFFER__MSCAN_HEADER_SIZE + metadata->text_len, block_size;

    coffer_node_add_u64(file->out, "records", file->area.count, COFFER_UNIT_NONE);
    coffer_node_add_u64(file->out, "total_tokens", metadata->total_tokens, COFFER_UNIT_NONE);
    coffer_node_add_u64(file->out, "sequences", metadata->sequence_count, COFFER_UNIT_NONE);
    coffer_node_add_u64(file->out, "params", metadata->param_count, COFFER_UNIT_NONE);
    coffer_node_add_text_len(file->out, "model_name", metadata->model_name, metadata->model_name_len);
    if (version && version->kind == COFFER__JSON_STRING)
        coffer_node_add_text_len(file->out, "format_version", version->as.string, version->string_len);
    coffer_node_add_u64(file->out, "records_offset", file->area.start, COFFER_UNIT_OFFSET);
    coffer_node_add_u64(file->out, "metadata_bytes", metadata->text_len, COFFER_UNIT_BYTES);
    coffer_node_add_u64(file->out, "metadata_room", file->header.header_len - metadata_end,
                        COFFER_UNIT_BYTES);
    describe_scales(file->out, "activation", &metadata->scales[COFFER_MSCAN_ACTIVATION]);
    describe_scales(file->out, "grad_norm", &metadata->scales[COFFER_MSCAN_GRAD_NORM]);
    if (coffer__json_u64(&block_size, coffer__json_find(metadata->root, "block_size")))
        coffer_node_add_u64(file->out, "block_size", block_size, COFFER_UNIT_NONE);
    describe_other_keys(file);
    describe_state(file, src);
}

coffer_status coffer__mscan_describe(coffer_node *out, coffer_source *src, const coffer_describe_opts *opts,
                                     coffer_error *err)
{
    coffer_limits allowed = coffer__limits(opts->limits);
    subject file = { .out = out };
    coffer_status status = coffer__mscan_read_header(&file.header, src, err);
    if (!status)
        status = coffer__mscan_read_metadata(&file.metadata, src, &file.header, &allowed, NULL, err);
    if (status)
        return status;
    status = coffer__mscan_check_seal(&file.metadata, file.header.record_count, NULL, err);
    if (!status)
        status = coffer__mscan_locate_records(&file.area, src, &file.header, &file.metadata, err);
    if (!status) {
        describe_all(&file, src);
        status = coffer_node_status(out, err);
    }
    coffer__mscan_metadata_free(&file.metadata);
    return status;
}
