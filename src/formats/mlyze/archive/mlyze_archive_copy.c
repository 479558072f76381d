/* Copies a block of an archive into LZ4 blocks, a plain trace or another archive. */
#include "base/cursor.h"
#include "base/fail.h"
#include "formats/mlyze/write/mlyze_write_copy.h"

#include <inttypes.h>

/* Events that are decoded at once. */
#define STEP 16384

coffer_status coffer__mlyze_copy_flush(coffer__mlyze_copy *copy, coffer_error *err)
{
    coffer__mlyze_raw *raw = copy->raw;
    const uint8_t *bytes = raw->bytes;
    size_t len = raw->len;
    if (raw->count > 0 && !copy->opts->plain) {
        coffer__mlyze_seal(&copy->sealer, raw->bytes, raw->len, raw->count, raw->start);
        bytes = copy->sealer.block;
        len = copy->sealer.len;
    }
    coffer_status status = len > 0 ? coffer__sink_write(copy->sink, bytes, len, err) : COFFER_OK;
    coffer__mlyze_raw_clear(raw);
    return status;
}

/* Adds the events [from, to), none of which is an extension. */
static coffer_status add_events(coffer__mlyze_copy *copy, size_t from, size_t to, coffer_error *err)
{
    coffer_mlyze_events some = copy->columns;
    coffer_status status = COFFER_OK;
    some.count = to;
    while (!status && from < to) {
        from += coffer__mlyze_raw_add(copy->raw, &some, from);
        if (from < to)
            status = coffer__mlyze_copy_flush(copy, err);
    }
    return status;
}

/* Adds an extension event with the bytes that it had. */
static coffer_status add_extension(coffer__mlyze_copy *copy, size_t i, const uint8_t *body, size_t len,
                                   coffer_error *err)
{
    coffer__mlyze_raw *raw = copy->raw;
    const uint64_t event = copy->columns.first + i, offset = copy->unpacker.block.offset;
    uint64_t time = copy->columns.time[i] > raw->time ? copy->columns.time[i] : raw->time;
    coffer_status status = COFFER_OK;
    if (copy->opts->plain)
        return coffer__mlyze_fail_extension(err, offset, event, copy->columns.type[i]);
    if (len > COFFER__MLYZE_BLOCK_RAW_MAX - 1 - COFFER__VARINT_MAX)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, offset,
                            "event %" PRIu64 " takes %zu bytes: a block of a compressed trace holds %d",
                            event, len, COFFER__MLYZE_BLOCK_RAW_MAX);
    if (raw->len + 1 + COFFER__VARINT_MAX + len > COFFER__MLYZE_BLOCK_RAW_MAX)
        status = coffer__mlyze_copy_flush(copy, err);
    raw->bytes[raw->len++] = copy->columns.type[i];
    raw->len += coffer__varint_write(raw->bytes + raw->len, time - raw->time);
    memcpy(raw->bytes + raw->len, body, len);
    raw->len += len;
    raw->count++;
    raw->time = time;
    return status;
}

static coffer_status add_all(coffer__mlyze_copy *copy, const coffer__mlyze_bodies *bodies, coffer_error *err)
{
    const coffer_mlyze_events *columns = &copy->columns;
    coffer__mlyze_body_walk walk;
    coffer_status status = COFFER_OK;
    size_t from = 0;
    coffer__mlyze_body_walk_begin(&walk, bodies);
    for (size_t i = 0; !status && i < columns->count; i++) {
        size_t len;
        const uint8_t *body = coffer__mlyze_body_walk_next(&len, &walk, columns->type[i]);
        if (columns->type[i] <= COFFER_MLYZE_MARKER)
            continue;
        status = add_events(copy, from, i, err);
        if (!status)
            status = add_extension(copy, i, body, len, err);
        from = i + 1;
    }
    return status ? status : add_events(copy, from, columns->count, err);
}

static coffer_status copy_some(coffer__mlyze_copy *copy, coffer_error *err)
{
    const coffer__mlyze_unpacker *unpacker = &copy->unpacker;
    coffer_mlyze_events *columns = &copy->columns;
    coffer__mlyze_bodies bodies = { .others_only = true };
    bool extensions = false;
    for (size_t i = 0; i < columns->count && !extensions; i++)
        extensions = columns->type[i] > COFFER_MLYZE_MARKER;
    if (extensions && copy->opts->drop_extensions) {
        copy->dropped += coffer__mlyze_drop_extensions(columns);
    } else if (extensions) {
        copy->extensions = true;
        bodies.bytes = unpacker->others_before;
        bodies.len = (size_t)(unpacker->streams[COFFER__MLYZE_OTHERS].at - unpacker->others_before);
    }
    return copy->opts->archive ? coffer__mlyze_packer_add(&copy->packer, columns, &bodies, err)
                               : add_all(copy, &bodies, err);
}

coffer_status coffer__mlyze_copy_archive_block(coffer__mlyze_copy *copy, const coffer__mlyze_block *block,
                                               coffer_error *err)
{
    coffer_status status = coffer__mlyze_unpack_open(&copy->unpacker, copy->from, block, false, err);
    while (!status && copy->unpacker.event < block->event_count) {
        status = coffer__mlyze_unpack_some(&copy->columns, &copy->unpacker, STEP, err);
        if (!status)
            status = copy_some(copy, err);
    }
    return status;
}
