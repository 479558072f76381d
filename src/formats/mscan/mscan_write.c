#include "formats/mscan/mscan_writer.h"

#include "base/buffer.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/utf8.h"
#include "io/file.h"
#include "io/os.h"
#include "io/temporary.h"

#include <inttypes.h>
#include <math.h>

#define PACK 4096 /* records packed at once */

/* ---- Beginning and ending ---- */

coffer_mscan_writer *coffer__mscan_writer_new(const char *path, coffer_error *err)
{
    coffer_mscan_writer *writer = coffer__calloc(1, sizeof *writer);
    char *copy = coffer__strdup(path);
    if (!writer || !copy) {
        coffer__free(writer);
        coffer__free(copy);
        coffer__fail_no_memory(err, sizeof *writer);
        return NULL;
    }
    writer->path = copy;
    writer->spool = -1;
    writer->extent_limit = UINT64_MAX;
    return writer;
}

void coffer__mscan_writer_free(coffer_mscan_writer *writer)
{
    if (!writer)
        return;
    coffer__sink_discard(writer->sink);
    coffer__update_close(writer->update);
    if (writer->spool >= 0)
        coffer__os_close(writer->spool);
    for (size_t i = 0; i < writer->sequence_count; i++)
        coffer__free(writer->sequences[i].source);
    coffer__free(writer->sequences);
    coffer__chunk_counter_free(&writer->sums);
    coffer__id_names_free(&writer->names);
    coffer__mscan_metadata_free(&writer->base);
    coffer__free(writer->path);
    coffer__free(writer);
}

void coffer_mscan_writer_discard(coffer_mscan_writer *writer)
{
    coffer__mscan_writer_free(writer);
}

/* extra_json must not have keys that the writer sets. */
static coffer_status check_extra(const coffer__json_value *extra, const coffer_mscan_writer_opts *opts,
                                 coffer_error *err)
{
    const char *const reserved[] = { "format_version",
                                     "model_name",
                                     "id_to_param_name_map",
                                     "sequences",
                                     COFFER__MSCAN_SUMS_KEY,
                                     COFFER__MSCAN_SEAL_KEY,
                                     COFFER__MSCAN_DAMAGE_KEY,
                                     opts->activation || opts->grad_norm ? "quantization" : NULL,
                                     opts->block_size ? "block_size" : NULL };
    if (extra->kind != COFFER__JSON_OBJECT)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "extra_json is not an object");
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        if (reserved[i] && coffer__json_find(extra, reserved[i]))
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "extra_json has the key \"%s\", which the writer sets", reserved[i]);
    }
    return COFFER_OK;
}

static coffer_status check_scale(const coffer_mscan_quantization *given, coffer_error *err)
{
    coffer_mscan_quantization scale = COFFER_MSCAN_QUANTIZATION_INIT;
    coffer_status status = coffer__take_options(&scale, sizeof scale, given, err);
    if (!status && (!isfinite(scale.scale) || !isfinite(scale.offset)))
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "scale %g and offset %g must be finite", scale.scale, scale.offset);
    return status;
}

static coffer_status check_options(const coffer_mscan_writer_opts *opts, coffer_error *err)
{
    coffer_status status = check_scale(opts->activation, err);
    if (!status)
        status = check_scale(opts->grad_norm, err);
    if (status)
        return status;
    if (opts->model_name && !coffer__utf8_valid(opts->model_name, strlen(opts->model_name)))
        return coffer__fail(err, COFFER_E_BAD_TEXT, COFFER_OFFSET_NONE, "model_name is not UTF-8");
    return COFFER_OK;
}

static coffer_status copy_base(coffer_mscan_writer *writer, const coffer_mscan_writer_opts *opts,
                               const coffer_limits *limits, coffer_error *err)
{
    const coffer__mscan_metadata *base = &writer->base;
    if (opts->model_name || opts->activation || opts->grad_norm || opts->block_size || opts->extra_json)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "metadata_json cannot be combined with other options for the metadata");
    size_t len = strlen(opts->metadata_json);
    char *text = coffer__strndup(opts->metadata_json, len);
    if (!text)
        return coffer__fail_no_memory(err, len + 1);
    coffer_status status =
        coffer__mscan_metadata_load(&writer->base, text, len, COFFER__MSCAN_HEADER_SIZE, limits, NULL, err);
    if (status)
        return status;
    writer->extent_limit = 0;
    writer->total_tokens = base->total_tokens;
    if (base->sequence_count > 0)
        writer->next_sequence_id = base->sequences[base->sequence_count - 1].sequence_id + 1;
    return coffer__mscan_names_init(&writer->names, base, err);
}

static coffer_status make_base(coffer_mscan_writer *writer, const coffer_mscan_writer_opts *opts,
                               coffer_error *err)
{
    coffer_limits limits = coffer__limits(opts->limits);
    coffer__json *extra = NULL;
    if (opts->metadata_json)
        return copy_base(writer, opts, &limits, err);
    coffer_status status = check_options(opts, err);
    if (status)
        return status;
    if (opts->extra_json)
        status = coffer__json_parse(&extra, opts->extra_json, strlen(opts->extra_json), 0, &limits, err);
    if (!status && extra)
        status = check_extra(coffer__json_root(extra), opts, err);
    if (!status)
        status = coffer__mscan_compose_empty(&writer->base, opts, extra ? coffer__json_root(extra) : NULL,
                                             &limits, err);
    if (!status)
        status = coffer__mscan_names_init(&writer->names, &writer->base, err);
    coffer__json_free(extra);
    return status;
}

COFFER__INIT_FUNCTION(coffer_mscan_writer_opts, COFFER_MSCAN_WRITER_OPTS_INIT)

coffer_status coffer_mscan_writer_create(coffer_mscan_writer **out, const char *path,
                                         const coffer_mscan_writer_opts *opts, coffer_error *err)
{
    return coffer__mscan_writer_begin(out, path, opts, false, err);
}

coffer_status coffer__mscan_writer_begin(coffer_mscan_writer **out, const char *path,
                                         const coffer_mscan_writer_opts *opts, bool rewrites,
                                         coffer_error *err)
{
    coffer_mscan_writer_opts options = COFFER_MSCAN_WRITER_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    coffer_mscan_writer *writer = coffer__mscan_writer_new(path, err);
    if (!writer)
        return COFFER_E_NO_MEMORY;
    writer->reserve = options.reserve_bytes;
    writer->overwrite = options.overwrite;
    writer->rewrites = rewrites;
    coffer__sink_opts sink_options = { .exclusive = !options.overwrite, .rewrites = rewrites };
    status = make_base(writer, &options, err);
    if (!status)
        status = coffer__sink_create(&writer->sink, path, &sink_options, err);
    if (!status && !coffer__sink_can_patch(writer->sink))
        status = coffer__temporary_unnamed(&writer->spool, err);
    if (status) {
        coffer__mscan_writer_free(writer);
        return status;
    }
    *out = writer;
    return COFFER_OK;
}

/* ---- Parameters ---- */

static coffer_status check_text(const char *what, const char *text, size_t len, coffer_error *err)
{
    size_t valid = coffer__utf8_valid_prefix(text, len);
    if (valid == len)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_BAD_TEXT, COFFER_OFFSET_NONE, "%s is not UTF-8 from byte %zu on", what,
                        valid);
}

coffer_status coffer_mscan_writer_add_param(uint16_t *id, coffer_mscan_writer *writer, const char *name,
                                            coffer_error *err)
{
    uint32_t found;
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    if (!status)
        status = check_text("parameter name", name, strlen(name), err);
    if (status)
        return status;
    found = coffer__id_names_find(&writer->names, name, strlen(name));
    if (found == COFFER__MSCAN_PARAM_IDS) {
        found = coffer__id_names_free_id(&writer->names);
        if (found == COFFER__MSCAN_PARAM_IDS)
            return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                "all %d parameter ids are taken, none is left for \"%s\"",
                                COFFER__MSCAN_PARAM_IDS, name);
        status = coffer__id_names_add(&writer->names, (uint16_t)found, name, strlen(name), err);
    }
    if (!status)
        *id = (uint16_t)found;
    return status;
}

coffer_status coffer_mscan_writer_add_param_id(coffer_mscan_writer *writer, uint16_t id, const char *name,
                                               coffer_error *err)
{
    const coffer__id_name *old = &writer->names.by_id[id];
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    if (!status)
        status = check_text("parameter name", name, strlen(name), err);
    if (status)
        return status;
    if (!old->text)
        return coffer__id_names_add(&writer->names, id, name, strlen(name), err);
    if (old->len == strlen(name) && memcmp(old->text, name, old->len) == 0)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE,
                        "parameter %u is \"%.60s\" and cannot be \"%.60s\" too", id, old->text, name);
}

/* ---- Sequences ---- */

static coffer_status add_sequence(coffer_mscan_writer *writer, const char *source, size_t source_len,
                                  coffer_error *err)
{
    coffer__mscan_new_sequence sequence = { .sequence_id = writer->next_sequence_id,
                                            .has_extent = true,
                                            .first_record = writer->record_count };
    coffer_status status = coffer__array_reserve_one(&writer->sequences, &writer->sequence_capacity,
                                                     writer->sequence_count, sizeof sequence, err);
    if (status)
        return status;
    if (source) {
        sequence.source_len = source_len;
        sequence.source = coffer__strndup(source, sequence.source_len);
        if (!sequence.source)
            return coffer__fail_no_memory(err, sequence.source_len + 1);
    }
    writer->sequences[writer->sequence_count++] = sequence;
    return COFFER_OK;
}

coffer_status coffer_mscan_writer_begin_sequence(coffer_mscan_writer *writer, const char *source,
                                                 coffer_error *err)
{
    return coffer_mscan_writer_begin_sequence_len(writer, source, source ? strlen(source) : 0, err);
}

coffer_status coffer_mscan_writer_begin_sequence_len(coffer_mscan_writer *writer, const char *source,
                                                     size_t source_len, coffer_error *err)
{
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    if (status)
        return status;
    if (writer->in_sequence)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "sequence %" PRIu64 " was not ended before the next began",
                            writer->next_sequence_id);
    if (writer->base.sequence_count > 0 && writer->next_sequence_id == 0)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "the last sequence_id is 2^64 - 1: none is left for another");
    if (source)
        status = check_text("source", source, source_len, err);
    if (!status)
        status = add_sequence(writer, source, source_len, err);
    if (status)
        return status;
    writer->in_sequence = true;
    writer->tokens_in_sequence = 0;
    return COFFER_OK;
}

/* Token 0 of the records is the global token `first`; `end` is past the last token that they may have. */
static coffer_status check_records(const coffer_mscan_writer *writer, const coffer_mscan_record *records,
                                   size_t count, uint64_t first, uint64_t end, coffer_error *err)
{
    if (count > COFFER__MSCAN_MAX_RECORDS - writer->record_count)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "%zu records after %" PRIu64 " pass the %lu that a file can count", count,
                            writer->record_count, (unsigned long)COFFER__MSCAN_MAX_RECORDS);
    for (size_t i = 0; i < count; i++) {
        if (!writer->names.by_id[records[i].param_id].text)
            return coffer__fail(err, COFFER_E_DANGLING_REFERENCE, COFFER_OFFSET_NONE,
                                "param_id %u of record %zu was not added", records[i].param_id, i);
        if (first + records[i].token_idx >= COFFER__MSCAN_MAX_TOKENS)
            return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                "token %" PRIu32 " of a sequence that begins at %" PRIu64
                                " passes the 2^32 a file can have",
                                records[i].token_idx, first);
        if (first + records[i].token_idx >= end)
            return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                                "token %" PRIu32 " of record %zu, the sequences have %" PRIu64,
                                records[i].token_idx, i, end);
    }
    return COFFER_OK;
}

/* Decides where the records of a new file start: after the metadata as it is so far, and room. */
static coffer_status place_first_record(coffer_mscan_writer *writer, coffer_error *err)
{
    coffer__buffer json = COFFER__BUFFER_INIT;
    coffer_status status = coffer__mscan_writer_compose(&json, writer, err);
    uint64_t room = writer->reserve ? writer->reserve : coffer__mscan_default_room(json.len);
    if (!status)
        status = coffer__mscan_place_records(&writer->area, json.len, room, err);
    if (!status && writer->spool < 0)
        status = coffer__sink_fill(writer->sink, ' ', writer->area, err);
    coffer__buffer_free(&json);
    return status;
}

static coffer_status emit(coffer_mscan_writer *writer, const uint8_t *packed, size_t len, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (writer->update)
        return coffer__mscan_append_records(writer, packed, len, err);
    if (writer->area == 0)
        status = place_first_record(writer, err);
    if (status)
        return status;
    if (writer->spool >= 0)
        return coffer__file_write(writer->spool, packed, len, "temporary file", err);
    return coffer__sink_write(writer->sink, packed, len, err);
}

/* Packs up to PACK records with global tokens and writes them. sequence : NULL outside a sequence. */
static coffer_status write_pack(coffer_mscan_writer *writer, coffer__mscan_new_sequence *sequence,
                                const coffer_mscan_record *records, size_t count, coffer_error *err)
{
    uint8_t packed[PACK * COFFER__MSCAN_RECORD_SIZE];
    size_t len = count * COFFER__MSCAN_RECORD_SIZE;
    uint32_t first = sequence ? (uint32_t)writer->total_tokens : 0;
    for (size_t i = 0; i < count; i++) {
        coffer_mscan_record record = records[i];
        if (sequence && record.token_idx >= writer->tokens_in_sequence)
            writer->tokens_in_sequence = (uint64_t)record.token_idx + 1;
        record.token_idx += first;
        coffer__mscan_store(packed + i * COFFER__MSCAN_RECORD_SIZE, &record);
    }
    coffer_status status = emit(writer, packed, len, err);
    if (!status)
        status = coffer__chunk_counter_add(&writer->sums, packed, len, err);
    if (status)
        return status;
    if (sequence) {
        sequence->crc = coffer__crc32(sequence->crc, packed, len);
        sequence->num_records += count;
    }
    writer->record_count += count;
    return COFFER_OK;
}

static coffer_status write_records(coffer_mscan_writer *writer, coffer__mscan_new_sequence *sequence,
                                   const coffer_mscan_record *records, size_t count, coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    coffer_status status = COFFER_OK;
    for (size_t done = 0; !status && done < count; done += PACK) {
        size_t some = count - done < PACK ? count - done : PACK;
        status = write_pack(writer, sequence, records + done, some, &failure);
    }
    return coffer__sticky_keep(&writer->sticky, status, &failure, err);
}

coffer_status coffer_mscan_writer_put_records(coffer_mscan_writer *writer, const coffer_mscan_record *records,
                                              size_t count, coffer_error *err)
{
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    if (status)
        return status;
    if (!writer->in_sequence)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "records are written inside a sequence; none was begun");
    status = check_records(writer, records, count, writer->total_tokens, UINT64_MAX, err);
    if (status)
        return status;
    return write_records(writer, &writer->sequences[writer->sequence_count - 1], records, count, err);
}

coffer_status coffer_mscan_writer_put_global(coffer_mscan_writer *writer, const coffer_mscan_record *records,
                                             size_t count, coffer_error *err)
{
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    if (status)
        return status;
    if (writer->in_sequence)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "sequence %" PRIu64 " was not ended before records with global tokens",
                            writer->next_sequence_id);
    status = check_records(writer, records, count, 0, writer->total_tokens, err);
    return status ? status : write_records(writer, NULL, records, count, err);
}

coffer_status coffer_mscan_writer_end_sequence(coffer_mscan_writer *writer, uint64_t num_tokens,
                                               coffer_error *err)
{
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    if (status)
        return status;
    if (!writer->in_sequence)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "no sequence was begun");
    if (num_tokens < writer->tokens_in_sequence)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                            "sequence %" PRIu64 " has a record of token %" PRIu64 ", but only %" PRIu64
                            " tokens",
                            writer->next_sequence_id, writer->tokens_in_sequence - 1, num_tokens);
    if (writer->total_tokens > COFFER__MSCAN_MAX_TOKENS ||
        num_tokens > COFFER__MSCAN_MAX_TOKENS - writer->total_tokens)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " tokens after %" PRIu64 " pass the 2^32 a file can have", num_tokens,
                            writer->total_tokens);
    writer->sequences[writer->sequence_count - 1].num_tokens = num_tokens;
    writer->total_tokens += num_tokens;
    writer->next_sequence_id++;
    writer->in_sequence = false;
    return COFFER_OK;
}
