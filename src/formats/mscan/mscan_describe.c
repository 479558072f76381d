/* Describes and lists a scan. */
#include "formats/mscan/mscan_private.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "base/text.h"
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

static bool matches(const char *glob, const char *text, size_t len)
{
    return !glob || coffer__glob_match(glob, text ? text : "", len);
}

/* Records of each sequence, by index; coffer__free. */
static coffer_status count_records(uint64_t **out, const coffer_mscan *scan, coffer_error *err)
{
    size_t sequences = scan->metadata.sequence_count;
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer_mscan_stats *stats = NULL;
    coffer_status status = COFFER_OK;
    bool sorted = false;
    uint64_t first, *counts = coffer__calloc(sequences ? sequences : 1, sizeof *counts);

    if (!counts)
        return coffer__fail_no_memory(err, sequences * sizeof *counts);
    query.by = COFFER_MSCAN_BY_SEQUENCE;
    query.limits = &scan->limits;
    status = coffer_mscan_is_sorted(&sorted, scan, err);
    for (size_t i = 0; !status && sorted && i < sequences; i++) {
        const coffer_mscan_sequence *sequence = &scan->metadata.sequences[i];
        status = coffer_mscan_find_tokens(&first, &counts[i], scan, sequence->first_token,
                                          sequence->first_token + sequence->num_tokens, err);
    }
    if (!status && !sorted)
        status = coffer_mscan_stats_new(&stats, scan, &query, err);
    if (!status && !sorted)
        for (size_t i = 0; i < coffer_mscan_stats_count(stats); i++)
            counts[coffer_mscan_stats_at(stats, i)->key] = coffer_mscan_stats_at(stats, i)->count;
    coffer_mscan_stats_free(stats);
    if (status)
        coffer__free(counts);
    else
        *out = counts;
    return status;
}

static coffer_status list_sequences(coffer_node *entries, const coffer_mscan *scan, const char *glob,
                                    coffer_error *err)
{
    uint64_t *counts = NULL;
    coffer_status status = count_records(&counts, scan, err);
    for (size_t i = 0; !status && i < scan->metadata.sequence_count; i++) {
        const coffer_mscan_sequence *sequence = &scan->metadata.sequences[i];
        coffer_node *entry;
        if (!matches(glob, sequence->source, sequence->source_len))
            continue;
        entry = coffer_node_add_map(entries, NULL);
        coffer_node_add_u64(entry, "sequence_id", sequence->sequence_id, COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "num_tokens", sequence->num_tokens, COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "first_token", sequence->first_token, COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "records", counts[i], COFFER_UNIT_NONE);
        if (sequence->source)
            coffer_node_add_text_len(entry, "source", sequence->source, sequence->source_len);
        else
            coffer_node_add_null(entry, "source");
    }
    coffer__free(counts);
    return status;
}

static void list_params(coffer_node *entries, const coffer_mscan *scan, const char *glob)
{
    for (size_t i = 0; i < scan->metadata.param_count; i++) {
        const coffer_mscan_param *param = &scan->metadata.params[i];
        coffer_node *entry;
        if (!matches(glob, param->name, param->name_len))
            continue;
        entry = coffer_node_add_map(entries, NULL);
        coffer_node_add_u64(entry, "id", param->id, COFFER_UNIT_NONE);
        coffer_node_add_text_len(entry, "name", param->name, param->name_len);
    }
}

coffer_status coffer__mscan_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                 coffer_error *err)
{
    coffer_mscan_open_opts open_options = COFFER_MSCAN_OPEN_OPTS_INIT;
    const char *what = opts->what ? opts->what : "sequences";
    bool params = strcmp(what, "params") == 0;
    coffer_mscan *scan;
    coffer_status status;

    if (!params && strcmp(what, "sequences") != 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a scan lists sequences or params, not \"%s\"", what);
    open_options.limits = opts->limits;
    status = coffer_mscan_open(&scan, src, &open_options, err);
    if (status)
        return status;
    coffer_node *entries = coffer_node_add_list(out, "entries");
    if (params)
        list_params(entries, scan, opts->glob);
    else
        status = list_sequences(entries, scan, opts->glob, err);
    coffer_mscan_close(scan);
    return status ? status : coffer_node_status(out, err);
}
