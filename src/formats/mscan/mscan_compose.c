/* Metadata and header of a scan that is written, and the commit of a new one. */
#include "formats/mscan/mscan_writer.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mscan/mscan_layout.h"
#include "io/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char map_key[] = "id_to_param_name_map";
static const char list_key[] = "sequences";

coffer_status coffer__mscan_names_init(coffer__id_names *names, const coffer__mscan_metadata *base,
                                       coffer_error *err)
{
    coffer_status status = coffer__id_names_init(names, err);
    for (size_t i = 0; !status && i < base->param_count && base->params[i].id < COFFER__MSCAN_PARAM_IDS; i++)
        coffer__id_names_borrow(names, (uint16_t)base->params[i].id, base->params[i].name,
                                base->params[i].name_len);
    return status;
}

static bool has_key(const coffer__json_value *value, const char *key)
{
    return value->key_len == strlen(key) && memcmp(value->key, key, value->key_len) == 0;
}

static void write_name(coffer__json_writer *json, uint64_t id, const char *text, size_t len)
{
    char key[24];
    snprintf(key, sizeof key, "%" PRIu64, id);
    coffer__json_key(json, key);
    coffer__json_string_len(json, text, len);
}

static void write_names(coffer__json_writer *json, const coffer__mscan_draft *draft)
{
    const coffer__mscan_metadata *base = draft->base;
    coffer__json_open_object(json);
    for (uint32_t id = 0; id < COFFER__MSCAN_PARAM_IDS; id++) {
        if (draft->names->by_id[id].text)
            write_name(json, id, draft->names->by_id[id].text, draft->names->by_id[id].len);
    }
    for (size_t i = 0; i < base->param_count; i++) {
        if (base->params[i].id >= COFFER__MSCAN_PARAM_IDS)
            write_name(json, base->params[i].id, base->params[i].name, base->params[i].name_len);
    }
    coffer__json_close_object(json);
}

static void write_u64(coffer__json_writer *json, const char *key, uint64_t value)
{
    coffer__json_key(json, key);
    coffer__json_write_u64(json, value);
}

/* A sequence of base, all its keys kept but what the draft changes. */
static void write_old_sequence(coffer__json_writer *json, const coffer__mscan_draft *draft, size_t index)
{
    const coffer__json_value *entry = draft->base->sequence_values[index], *value;
    coffer__mscan_extent extent = coffer__mscan_extent_of(entry);
    bool drop_extent =
        extent.has_range && !coffer__range_fits(extent.first_record, extent.num_records, draft->extent_limit);
    bool drop_crc = draft->bad_sequences && draft->bad_sequences[index];
    uint64_t id = draft->renumber ? index : draft->base->sequences[index].sequence_id;
    coffer__json_open_object(json);
    if (!coffer__json_find(entry, "sequence_id"))
        write_u64(json, "sequence_id", id);
    for (value = coffer__json_first(entry); value; value = coffer__json_next(entry, value)) {
        bool of_extent =
            has_key(value, "first_record") || has_key(value, "num_records") || has_key(value, "crc32");
        if ((drop_extent && of_extent) || (drop_crc && has_key(value, "crc32")))
            continue;
        coffer__json_key_len(json, value->key, value->key_len);
        if (has_key(value, "sequence_id"))
            coffer__json_write_u64(json, id);
        else
            coffer__json_write_value(json, value);
    }
    coffer__json_close_object(json);
}

/* Keys that a new sequence has its own values for. A source that is not a text is copied. */
static bool is_of_sequence(const coffer__json_value *value)
{
    return has_key(value, "sequence_id") || has_key(value, "num_tokens") || has_key(value, "first_record") ||
           has_key(value, "num_records") || has_key(value, "crc32") ||
           (has_key(value, "source") && value->kind == COFFER__JSON_STRING);
}

static void write_new_sequence(coffer__json_writer *json, const coffer__mscan_new_sequence *sequence)
{
    coffer__json_open_object(json);
    write_u64(json, "sequence_id", sequence->sequence_id);
    write_u64(json, "num_tokens", sequence->num_tokens);
    if (sequence->source) {
        coffer__json_key(json, "source");
        coffer__json_string_len(json, sequence->source, sequence->source_len);
    }
    for (const coffer__json_value *value = coffer__json_first(sequence->others); value;
         value = coffer__json_next(sequence->others, value)) {
        if (is_of_sequence(value))
            continue;
        coffer__json_key_len(json, value->key, value->key_len);
        coffer__json_write_value(json, value);
    }
    if (sequence->has_extent) {
        write_u64(json, "first_record", sequence->first_record);
        write_u64(json, "num_records", sequence->num_records);
        write_u64(json, "crc32", sequence->crc);
    }
    coffer__json_close_object(json);
}

static void write_sequences(coffer__json_writer *json, const coffer__mscan_draft *draft)
{
    coffer__json_open_array(json);
    for (size_t i = 0; i < draft->base->sequence_count; i++)
        write_old_sequence(json, draft, i);
    for (size_t i = 0; i < draft->added_count; i++)
        write_new_sequence(json, &draft->added[i]);
    coffer__json_close_array(json);
}

static void write_marks(coffer__json_writer *json, const coffer__mscan_draft *draft)
{
    coffer__json_key(json, COFFER__MSCAN_DAMAGE_KEY);
    coffer__json_open_array(json);
    for (size_t i = 0; i < draft->mark_count; i++) {
        const coffer__mscan_mark *mark = &draft->marks[i];
        coffer__json_open_object(json);
        coffer__json_key(json, "what");
        coffer__json_string(json, mark->in_metadata ? "metadata" : "records");
        coffer__json_key(json, "state");
        coffer__json_string(json, mark->unverified ? "unverified" : "damaged");
        if (!mark->in_metadata) {
            write_u64(json, "first_record", mark->first_record);
            write_u64(json, "num_records", mark->num_records);
        }
        if (mark->has_crc)
            write_u64(json, "crc32", mark->crc);
        coffer__json_close_object(json);
    }
    coffer__json_close_array(json);
}

/* Keys that are not copied from the base but written again. */
static bool is_rewritten(const coffer__json_value *value)
{
    return has_key(value, COFFER__MSCAN_SUMS_KEY) || has_key(value, COFFER__MSCAN_SEAL_KEY) ||
           has_key(value, COFFER__MSCAN_DAMAGE_KEY) || has_key(value, COFFER__MSCAN_TABLE_KEY);
}

coffer_status coffer__mscan_compose(coffer__buffer *out, const coffer__mscan_draft *draft, coffer_error *err)
{
    const coffer__json_value *root = draft->base->root, *value;
    bool has_map = false, has_list = false;
    coffer__json_writer json;

    coffer__json_writer_init(&json, out, 0);
    coffer__json_open_object(&json);
    for (value = coffer__json_first(root); value; value = coffer__json_next(root, value)) {
        bool is_map = has_key(value, map_key), is_list = has_key(value, list_key);
        if (is_rewritten(value))
            continue;
        has_map |= is_map;
        has_list |= is_list;
        coffer__json_key_len(&json, value->key, value->key_len);
        if (is_map)
            write_names(&json, draft);
        else if (is_list)
            write_sequences(&json, draft);
        else
            coffer__json_write_value(&json, value);
    }
    if (!has_map) {
        coffer__json_key(&json, map_key);
        write_names(&json, draft);
    }
    if (!has_list) {
        coffer__json_key(&json, list_key);
        write_sequences(&json, draft);
    }
    if (draft->mark_count > 0)
        write_marks(&json, draft);
    coffer__mscan_write_sums(&json, draft->sums, draft->sum_count);
    coffer__json_close_object(&json);
    return out->failed ? coffer__fail_no_memory(err, out->len) : COFFER_OK;
}

/* ---- An empty scan ---- */

static void write_scale(coffer__json_writer *json, const char *key, const coffer_mscan_quantization *given)
{
    coffer_mscan_quantization scale = COFFER_MSCAN_QUANTIZATION_INIT;
    if (!given)
        return;
    coffer__copy_options(&scale, sizeof scale, given);
    coffer__json_key(json, key);
    coffer__json_open_object(json);
    coffer__json_key(json, "kind");
    coffer__json_string(json, "linear");
    coffer__json_key(json, "scale");
    coffer__json_write_f64(json, scale.scale);
    coffer__json_key(json, "offset");
    coffer__json_write_f64(json, scale.offset);
    coffer__json_key(json, "scope");
    coffer__json_string(json, "file");
    coffer__json_close_object(json);
}

coffer_status coffer__mscan_compose_empty(coffer__mscan_metadata *out, const coffer_mscan_writer_opts *opts,
                                          const coffer__json_value *extra, const coffer_limits *limits,
                                          coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    const coffer__json_value *value;
    coffer__json_writer json;
    size_t len, with_nul;
    char *released;

    coffer__json_writer_init(&json, &text, 0);
    coffer__json_open_object(&json);
    coffer__json_key(&json, "format_version");
    coffer__json_string(&json, "1.1");
    coffer__json_key(&json, "model_name");
    coffer__json_string(&json, opts->model_name ? opts->model_name : "");
    if (opts->activation || opts->grad_norm) {
        coffer__json_key(&json, "quantization");
        coffer__json_open_object(&json);
        write_scale(&json, "activation", opts->activation);
        write_scale(&json, "grad_norm", opts->grad_norm);
        coffer__json_close_object(&json);
    }
    if (opts->block_size)
        write_u64(&json, "block_size", opts->block_size);
    for (value = coffer__json_first(extra); value; value = coffer__json_next(extra, value)) {
        coffer__json_key_len(&json, value->key, value->key_len);
        coffer__json_write_value(&json, value);
    }
    coffer__json_close_object(&json);
    len = text.len;
    coffer__buffer_append(&text, "", 1);
    if (text.failed) {
        coffer__buffer_free(&text);
        return coffer__fail_no_memory(err, len);
    }
    released = (char *)coffer__buffer_release(&text, &with_nul);
    return coffer__mscan_metadata_load(out, released, len, COFFER__MSCAN_HEADER_SIZE, limits, NULL, err);
}

/* ---- Room ---- */

uint64_t coffer__mscan_default_room(uint64_t json_len)
{
    return json_len / 4 > 16384 ? json_len / 4 : 16384;
}

coffer_status coffer__mscan_place_records(uint32_t *out, uint64_t json_len, uint64_t room, coffer_error *err)
{
    uint64_t end;
    if (!coffer__add_u64(&end, json_len, room) || !coffer__add_u64(&end, end, COFFER__MSCAN_HEADER_SIZE) ||
        !coffer__align_up(&end, end, COFFER__MSCAN_ALIGNMENT) || end > UINT32_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "metadata of %" PRIu64 " bytes, with room for %" PRIu64
                            " more, passes the header's 2^32",
                            json_len, room);
    *out = (uint32_t)end;
    return COFFER_OK;
}

/* Committing a new scan: metadata and header, around or in front of the records that were written. */

coffer_status coffer__mscan_writer_compose(coffer__buffer *out, coffer_mscan_writer *writer,
                                           coffer_error *err)
{
    coffer__mscan_draft draft = { .base = &writer->base,
                                  .names = &writer->names,
                                  .added = writer->sequences,
                                  .added_count = writer->sequence_count,
                                  .extent_limit = writer->extent_limit,
                                  .sums = writer->sums.sums,
                                  .sum_count = writer->sums.count,
                                  .marks = writer->base.marks,
                                  .mark_count = writer->base.mark_count };
    return coffer__mscan_compose(out, &draft, err);
}

coffer_status coffer__mscan_write_front(coffer__sink *sink, uint32_t area, uint64_t record_count,
                                        coffer__buffer *json, coffer_error *err)
{
    uint8_t header[COFFER__MSCAN_HEADER_SIZE];
    coffer__mscan_close_seal(json, area, record_count);
    coffer__mscan_write_header(header, area, (uint32_t)record_count);
    coffer_status status = coffer__sink_write(sink, header, sizeof header, err);
    if (!status)
        status = coffer__sink_write(sink, json->data, json->len, err);
    if (status)
        return status;
    return coffer__sink_fill(sink, ' ', area - sizeof header - json->len, err);
}

/* The metadata fits the room that was left: it goes there. */
static coffer_status patch_front(coffer_mscan_writer *writer, coffer__buffer *json, coffer_error *err)
{
    uint8_t header[COFFER__MSCAN_HEADER_SIZE];
    coffer__mscan_close_seal(json, writer->area, writer->record_count);
    coffer__mscan_write_header(header, writer->area, (uint32_t)writer->record_count);
    coffer_status status = coffer__sink_patch(writer->sink, 0, header, sizeof header, err);
    return status ? status : coffer__sink_patch(writer->sink, sizeof header, json->data, json->len, err);
}

/* The metadata outgrew the room: a second temporary file takes the first one's place. */
static coffer_status move_records(coffer_mscan_writer *writer, coffer__buffer *json, uint32_t area,
                                  coffer_error *err)
{
    coffer__sink_opts options = { .exclusive = !writer->overwrite, .rewrites = writer->rewrites };
    coffer__sink *larger = NULL;
    int fd = -1;
    coffer_status status = coffer__sink_create(&larger, writer->path, &options, err);
    if (!status)
        status = coffer__mscan_write_front(larger, area, writer->record_count, json, err);
    if (!status)
        status = coffer__sink_read_back(&fd, writer->sink, err);
    if (!status)
        status = coffer__sink_copy_file(larger, fd, writer->area,
                                        writer->record_count * COFFER__MSCAN_RECORD_SIZE, writer->path, err);
    if (status) {
        coffer__sink_discard(larger);
        return status;
    }
    coffer__sink_discard(writer->sink);
    writer->sink = larger;
    return COFFER_OK;
}

static coffer_status commit_new(coffer_mscan_writer *writer, coffer__buffer *json, coffer_error *err)
{
    uint64_t room = writer->reserve ? writer->reserve : coffer__mscan_default_room(json->len);
    uint64_t records_len = writer->record_count * COFFER__MSCAN_RECORD_SIZE;
    coffer__sink *sink;
    uint32_t area = 0;
    coffer_status status = coffer__mscan_place_records(&area, json->len, room, err);
    if (status)
        return status;
    if (writer->spool >= 0) {
        status = coffer__mscan_write_front(writer->sink, area, writer->record_count, json, err);
        if (!status)
            status = coffer__sink_copy_file(writer->sink, writer->spool, 0, records_len, writer->path, err);
    } else if (writer->area == 0)
        status = coffer__mscan_write_front(writer->sink, area, 0, json, err);
    else if (json->len <= writer->area - COFFER__MSCAN_HEADER_SIZE)
        status = patch_front(writer, json, err);
    else
        status = move_records(writer, json, area, err);
    if (!status && writer->rewrites)
        status = coffer__sink_lock(writer->sink, err);
    if (status)
        return status;
    sink = writer->sink;
    writer->sink = NULL; /* commit frees it */
    if (!writer->rewrites)
        return coffer__sink_commit(sink, err);
    int fd = -1;
    status = coffer__sink_commit_open(sink, &fd, err);
    if (fd >= 0)
        coffer__os_close(fd);
    return status;
}

coffer_status coffer_mscan_writer_commit(coffer_mscan_writer *writer, coffer_error *err)
{
    coffer__buffer json = COFFER__BUFFER_INIT;
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    if (status)
        goto out;
    if (writer->in_sequence) {
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "sequence %" PRIu64 " was begun and not ended", writer->next_sequence_id);
        goto out;
    }
    status = coffer__chunk_counter_end(&writer->sums, err);
    if (!status)
        status = coffer__mscan_writer_compose(&json, writer, err);
    if (status)
        goto out;
    status =
        writer->update ? coffer__mscan_commit_append(writer, &json, err) : commit_new(writer, &json, err);
out:
    coffer__buffer_free(&json);
    coffer__mscan_writer_free(writer);
    return status;
}
