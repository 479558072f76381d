/* The inner loop of the decoder, compiled for each instruction set. The includer defines
 * pack(word, bytes), which joins the 7-bit groups of the bytes of `word` that the mask `bytes` covers.
 *
 * ALLOC and FREE come in an order that no branch predictor learns, so both go one way: what only an ALLOC has
 * is decoded always and masked out of a FREE. Both varints of an ALLOC are taken from one load: the end of
 * the second one is all that the next event waits for. */
#ifndef COFFER_FORMATS_MLYZE_DECODE_LOOP_H
#define COFFER_FORMATS_MLYZE_DECODE_LOOP_H

#include "base/bytes.h"
#include "formats/mlyze/read/mlyze_decode.h"

#define TOP_BITS UINT64_C(0x8080808080808080)
#define TOP_BIT (UINT64_C(1) << 63)
#define LOOP_ROOM 32 /* type, 8 bytes of delta, address, 8 of size and stack, and what loads overlap */

static inline uint64_t pack(uint64_t word, uint64_t bytes);

static inline void decode_loop(coffer__mlyze_decoder *decoder)
{
    const uint8_t *at = decoder->at, *last;
    const coffer_mlyze_events out = *decoder->out;
    uint64_t time = decoder->time, all_deltas = 0;
    size_t n = out.count;

    if (decoder->end - at < LOOP_ROOM)
        return;
    last = decoder->end - LOOP_ROOM;
    do {
        const uint64_t type = at[0], head = coffer__load_u64(at + 1);
        const uint64_t is_free = 0 - type, is_alloc = ~is_free; /* all ones, or none */
        uint64_t delta = head & 0x7F;
        const uint8_t *body = at + 2;
        if (type > COFFER_MLYZE_FREE)
            break;
        if (head & 0x80) {
            const uint64_t ends = ~head & TOP_BITS;
            if (ends == 0)
                break;
            delta = pack(head, ends ^ (ends - 1));
            body = at + 2 + (__builtin_ctzll(ends) >> 3);
        }
        const uint64_t tail = coffer__load_u64(body + 8);
        const uint64_t ends = ~tail & TOP_BITS, second = ends & (ends - 1);
        const uint64_t stop = second | is_free; /* a FREE stops at once */
        if (stop == 0)
            break;
        const uint64_t tail_len = (unsigned)__builtin_ctzll(stop) >> 3; /* less 1 */
        const uint64_t size_bytes = ends ^ (ends - 1);
        time += delta;
        all_deltas |= delta;
        out.time[n] = time;
        out.address[n] = coffer__load_u64(body);
        out.size[n] = pack(tail & is_alloc, size_bytes);
        out.id[n] = pack(tail & is_alloc, (second ^ (second - 1)) & ~size_bytes);
        out.thread[n] = (uint16_t)(coffer__load_u16(body + 9 + tail_len) & is_alloc);
        out.type[n] = (uint8_t)type;
        n++;
        at = body + 8 + (3 & is_alloc) + tail_len;
    } while (at <= last);
    /* Deltas of this size wrap a 64-bit sum at most once in a block, which can be detected. */
    decoder->time_wrapped |= all_deltas >> 40 != 0 || time < decoder->time;
    decoder->at = at;
    decoder->time = time;
    decoder->out->count = n;
}

#endif
