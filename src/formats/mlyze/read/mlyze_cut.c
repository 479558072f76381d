#include "formats/mlyze/mlyze_private.h"

#include "base/memory.h"
#include "formats/mlyze/read/mlyze_decode.h"

#include <string.h>

/* ---- Truncated LZ4 ---- */

#define MIN_MATCH 4
#define LENGTH_MORE 15 /* half of a token: more bytes of the length follow */

/* An LZ4 block being read (lz4_Block_format.md of LZ4: sequences of literals and a match). */
typedef struct unpacking {
    const uint8_t *at, *end;
    uint8_t *out;
    size_t done, room;
} unpacking;

static bool take_length(size_t *len, unpacking *u)
{
    if (*len < LENGTH_MORE)
        return true;
    while (u->at < u->end) {
        uint8_t more = *u->at++;
        *len += more;
        if (more < UINT8_MAX)
            return true;
    }
    return false;
}

static bool copy_literals(unpacking *u, size_t len)
{
    size_t left = (size_t)(u->end - u->at), room = u->room - u->done;
    size_t fits = len < left ? len : left;
    fits = fits < room ? fits : room;
    memcpy(u->out + u->done, u->at, fits);
    u->at += fits;
    u->done += fits;
    return fits == len;
}

static bool copy_match(unpacking *u, size_t len)
{
    size_t offset;
    if (u->end - u->at < 2)
        return false;
    offset = coffer__load_u16(u->at);
    u->at += 2;
    if (offset == 0 || offset > u->done || !take_length(&len, u))
        return false;
    for (len += MIN_MATCH; len > 0 && u->done < u->room; len--, u->done++)
        u->out[u->done] = u->out[u->done - offset];
    return len == 0;
}

size_t coffer__mlyze_lz4_prefix(uint8_t *out, size_t room, const uint8_t *in, size_t len)
{
    unpacking u = { .at = in, .end = in + len, .room = room };
    bool good = true;
    u.out = out;
    while (good && u.at < u.end) {
        uint8_t token = *u.at++;
        size_t literals = token >> 4;
        good = take_length(&literals, &u) && copy_literals(&u, literals) && copy_match(&u, token & 15);
    }
    return u.done;
}

/* ---- Blocks ---- */

coffer_status coffer__mlyze_is_cut(bool *out, const coffer_mlyze *trace, const coffer__mlyze_block *block,
                                   coffer_error *err)
{
    coffer__mlyze_block header;
    coffer_status status;
    *out = false;
    if (!coffer__mlyze_has_blocks(&trace->header) || coffer__mlyze_has_archive(&trace->header) ||
        block->offset + COFFER__MLYZE_BLOCK_HEADER + block->stored_size != trace->area_end)
        return COFFER_OK;
    status = coffer__mlyze_load_block_header(&header, NULL, trace, block->offset, err);
    if (!status)
        *out = header.stored_size > block->stored_size;
    return status;
}

/* Counts the whole events. block : the header's values, reduced to the part that is left. */
static coffer_status measure(coffer__mlyze_block *block, coffer_mlyze_events *columns,
                             const coffer_mlyze *trace, coffer_error *err)
{
    const uint32_t said = block->event_count;
    const uint8_t *bytes = NULL;
    coffer__mlyze_decoder decoder = { .time = block->time,
                                      .extensions = coffer__mlyze_has_extensions(&trace->header),
                                      .out = columns };
    size_t len = 0;
    block->stored_size = (uint32_t)(trace->area_end - block->offset - COFFER__MLYZE_BLOCK_HEADER);
    coffer_status status = coffer__mlyze_cut_bytes(&bytes, &len, columns, trace, block, err);
    if (status)
        return status;
    decoder.at = bytes;
    decoder.end = bytes + len;
    coffer__mlyze_decode_events(&decoder);
    status = coffer_source_intact(trace->source, err);
    if (status)
        return status;
    block->event_count = (uint32_t)columns->count;
    block->raw_size = (uint32_t)(decoder.at - bytes);
    /* More events than the header says: not a block. */
    if (columns->count == 0 || columns->count > said)
        *block = (coffer__mlyze_block){ .offset = block->offset };
    return COFFER_OK;
}

coffer_status coffer__mlyze_find_cut_block(coffer__mlyze_block *out, const coffer_mlyze *trace,
                                           uint64_t offset, coffer_error *err)
{
    coffer_mlyze_events columns = COFFER_MLYZE_EVENTS_INIT;
    coffer__mlyze_block block = { .offset = offset };
    coffer_status status = coffer__mlyze_load_block_header(&block, NULL, trace, offset, err);
    if (!status)
        status = coffer__mlyze_events_reserve(&columns, err);
    if (!status)
        status = measure(&block, &columns, trace, err);
    coffer_mlyze_events_free(&columns);
    if (!status)
        *out = block;
    return status;
}
