#include "formats/mlyze/write/mlyze_write_copy.h"

#include "base/cursor.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/mlyze_private.h"
#include "formats/mlyze/read/mlyze_decode.h"

#include <inttypes.h>
#include <string.h>

void coffer__mlyze_part_as_trace(coffer_mlyze *out, coffer_source *part, bool full_sums,
                                 const coffer_limits *limits)
{
    *out = (coffer_mlyze){ .source = part,
                           .limits = *limits,
                           .area = COFFER__MLYZE_PARTS_HEADER,
                           .area_end = coffer_source_size(part) };
    out->header.version = COFFER__MLYZE_VERSION;
    out->header.flags = COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_CHECKSUMS |
                        COFFER__MLYZE_FLAG_EXTENSIONS | (full_sums ? COFFER__MLYZE_FLAG_FULL_SUMS : 0);
}

coffer_status coffer__mlyze_copy_init(coffer__mlyze_copy *copy, coffer__sink *sink, const coffer_mlyze *from,
                                      const coffer_mlyze_writer_opts *opts, coffer_error *err)
{
    copy->sink = sink;
    copy->from = from;
    copy->opts = opts;
    copy->start = coffer__sink_position(sink);
    coffer_status status = coffer__mlyze_events_reserve(&copy->columns, err);
    if (status)
        return status;
    copy->raw = coffer__malloc(sizeof *copy->raw);
    if (!copy->raw)
        return coffer__fail_no_memory(err, sizeof *copy->raw);
    return opts->plain ? COFFER_OK : coffer__mlyze_sealer_init(&copy->sealer, opts->level, err);
}

void coffer__mlyze_copy_free(coffer__mlyze_copy *copy)
{
    coffer__mlyze_sealer_free(&copy->sealer);
    coffer_mlyze_events_free(&copy->columns);
    coffer__free(copy->raw);
}

/* ---- Into blocks ---- */

static coffer_status flush_run(coffer__mlyze_copy *copy, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (copy->run_end > copy->run)
        status = coffer__sink_copy_source(copy->sink, copy->from->source, copy->run,
                                          copy->run_end - copy->run, NULL, err);
    copy->run = copy->run_end;
    return status;
}

static coffer_status keep_block(coffer__mlyze_copy *copy, const coffer__mlyze_block *block, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (copy->run_end != block->offset) {
        status = flush_run(copy, err);
        copy->run = block->offset;
    }
    copy->run_end = block->offset + COFFER__MLYZE_BLOCK_HEADER + block->stored_size;
    return status;
}

static coffer_status seal_block(coffer__mlyze_copy *copy, const coffer__mlyze_block *block,
                                const uint8_t *bytes, size_t len, coffer_error *err)
{
    coffer_status status = flush_run(copy, err);
    if (status)
        return status;
    if (len < block->raw_size || len > COFFER__MLYZE_BLOCK_RAW_MAX)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, block->offset,
                            "event %" PRIu64 " takes %" PRIu32
                            " bytes: a block of a compressed trace holds %d",
                            block->first_event, block->raw_size, COFFER__MLYZE_BLOCK_RAW_MAX);
    coffer__mlyze_seal(&copy->sealer, bytes, len, block->event_count, block->time);
    return coffer__sink_write(copy->sink, copy->sealer.block, copy->sealer.len, err);
}

/* ---- Into a plain trace ---- */

/* The block starts later than the previous event: the difference is added to the first delta, and all other
 * bytes stay. */
static coffer_status write_rebased(coffer__mlyze_copy *copy, uint64_t gap, const uint8_t *bytes, size_t len,
                                   coffer_error *err)
{
    uint8_t head[1 + COFFER__VARINT_MAX] = { bytes[0] };
    const uint8_t *rest = bytes + 1;
    uint64_t delta = 0;
    coffer_status status;
    coffer__varint_read(&delta, &rest, bytes + len); /* it was decoded before */
    size_t head_len = 1 + coffer__varint_write(head + 1, delta + gap);
    status = coffer__sink_write(copy->sink, head, head_len, err);
    return status ? status : coffer__sink_write(copy->sink, rest, (size_t)(bytes + len - rest), err);
}

/* It starts earlier: its events are encoded again, with times that never decrease. */
static coffer_status write_anew(coffer__mlyze_copy *copy, coffer_error *err)
{
    coffer__mlyze_raw *raw = copy->raw;
    coffer_status status = flush_run(copy, err);
    raw->time = copy->time;
    for (size_t done = 0; !status && done < copy->columns.count;) {
        const uint8_t *bytes = raw->bytes;
        coffer__mlyze_raw_clear(raw);
        done += coffer__mlyze_raw_add(raw, &copy->columns, done);
        size_t len = raw->len;
        if (!copy->opts->plain) {
            coffer__mlyze_seal(&copy->sealer, raw->bytes, raw->len, raw->count, raw->start);
            bytes = copy->sealer.block;
            len = copy->sealer.len;
        }
        status = coffer__sink_write(copy->sink, bytes, len, err);
    }
    return status;
}

/* Leaves out extension events; the time of what follows stays the same. */
static size_t drop_extensions(coffer_mlyze_events *columns)
{
    size_t kept = 0, all = columns->count;
    for (size_t i = 0; i < all; i++) {
        if (columns->type[i] > COFFER_MLYZE_MARKER)
            continue;
        columns->time[kept] = columns->time[i];
        columns->address[kept] = columns->address[i];
        columns->size[kept] = columns->size[i];
        columns->id[kept] = columns->id[i];
        columns->thread[kept] = columns->thread[i];
        columns->type[kept++] = columns->type[i];
    }
    columns->count = kept;
    return all - kept;
}

static coffer_status write_plain(coffer__mlyze_copy *copy, const coffer__mlyze_block *block,
                                 const uint8_t *bytes, size_t len, coffer_error *err)
{
    const coffer_mlyze_events *columns = &copy->columns;
    for (size_t i = 0; i < columns->count; i++) {
        if (columns->type[i] > COFFER_MLYZE_MARKER)
            return coffer__fail(err, COFFER_E_UNSUPPORTED, block->offset,
                                "event %" PRIu64
                                " is an extension of type %u: a plain trace cannot have it (drop them with "
                                "\"drop-extensions\")",
                                (block->first_event + i), columns->type[i]);
    }
    if (block->time < copy->time)
        return write_anew(copy, err);
    if (block->time == copy->time)
        return coffer__sink_write(copy->sink, bytes, len, err);
    return write_rebased(copy, block->time - copy->time, bytes, len, err);
}

/* ---- Both ---- */

static uint8_t highest_type(const coffer_mlyze_events *columns)
{
    uint8_t highest = 0;
    for (size_t i = 0; i < columns->count; i++)
        highest = columns->type[i] > highest ? columns->type[i] : highest;
    return highest;
}

static coffer_status copy_block(coffer__mlyze_copy *copy, const coffer__mlyze_block *block,
                                const uint8_t *bytes, size_t len, coffer_error *err)
{
    uint8_t highest = highest_type(&copy->columns);
    bool cut;
    coffer_status status = coffer__mlyze_is_cut(&cut, copy->from, block, err);
    if (status)
        return status;
    if (copy->opts->drop_extensions && highest > COFFER_MLYZE_MARKER) {
        copy->dropped += drop_extensions(&copy->columns);
        return write_anew(copy, err);
    }
    copy->extensions |= highest > COFFER_MLYZE_MARKER;
    if (copy->opts->plain)
        return write_plain(copy, block, bytes, len, err);
    /* Unknown extension events are not in the columns and cannot be encoded from them. */
    if (copy->sorts && block->time < copy->time && highest <= COFFER_MLYZE_RSS)
        return write_anew(copy, err);
    /* Blocks are sealed again where their checksums do not cover their headers. */
    bool sealed =
        coffer__mlyze_has_blocks(&copy->from->header) && coffer__mlyze_has_full_sums(&copy->from->header);
    if (sealed && !cut && (block->stored_size < block->raw_size ? copy->keep_packed : copy->keep_unpacked))
        return keep_block(copy, block, err);
    return seal_block(copy, block, bytes, len, err);
}

coffer_status coffer__mlyze_copy_block(coffer__mlyze_copy *copy, const coffer__mlyze_block *block,
                                       coffer_error *err)
{
    coffer__mlyze_decoder decoder;
    coffer_status status =
        coffer__mlyze_decode_block(&copy->columns, &decoder, copy->from, block, false, err);
    if (status)
        return status;
    size_t len = block->raw_size - (size_t)decoder.beyond;
    status = copy_block(copy, block, decoder.end - len, len, err);
    uint64_t end = copy->columns.count ? copy->columns.time[copy->columns.count - 1] : copy->time;
    copy->time = end > copy->time ? end : copy->time;
    return status;
}

coffer_status coffer__mlyze_copy_end(coffer__mlyze_copy *copy, uint64_t *area_len, coffer_error *err)
{
    coffer_status status = flush_run(copy, err);
    if (!status)
        *area_len = coffer__sink_position(copy->sink) - copy->start;
    return status;
}
