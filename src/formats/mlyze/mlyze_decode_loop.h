/* The inner loop of the decoder, compiled for each instruction set. The includer defines
 * pack(word, bytes), which joins the 7-bit groups of the bytes of `word` that the mask `bytes` covers.
 *
 * ALLOC and FREE come in an order that no branch predictor learns, so both go one way: what only an ALLOC has
 * is decoded always and masked out of a FREE. Both varints of an ALLOC are taken from one load: the end of
 * the second one is all that the next event waits for. */
#ifndef COFFER_FORMATS_MLYZE_DECODE_LOOP_H
#define COFFER_FORMATS_MLYZE_DECODE_LOOP_H

#include "base/bytes.h"
#include "formats/mlyze/mlyze_decode.h"

#define TOP_BITS UINT64_C(0x8080808080808080)
#define TOP_BIT (UINT64_C(1) << 63)
#define LOOP_ROOM 32 /* type, 8 bytes of delta, address, 8 of size and stack, and what loads overlap */

static inline uint64_t pack(uint64_t word, uint64_t bytes);

static inline void decode_loop(coffer__mlyze_decoder *decoder)
{
    const uint8_t *at = decoder->at, *const end = decoder->end;
    const coffer_mlyze_events out = *decoder->out;
    uint64_t time = decoder->time;
    size_t n = out.count;
    bool wrapped = false;

    while (end - at >= LOOP_ROOM) {
        const uint64_t type = at[0], head = coffer__load_u64(at + 1);
        const uint64_t is_alloc = type - 1; /* all ones, or none */
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
        if ((is_alloc & 1) && second == 0)
            break;
        const uint64_t size_bytes = ends ^ (ends - 1);
        const uint64_t id_bytes = (second ^ (second - 1)) & ~size_bytes;
        const uint64_t tail_len = ((unsigned)__builtin_ctzll(second | TOP_BIT) >> 3) + 1;
        time += delta;
        wrapped |= time < delta;
        out.time[n] = time;
        out.address[n] = coffer__load_u64(body);
        out.size[n] = pack(tail, size_bytes) & is_alloc;
        out.id[n] = pack(tail, id_bytes) & is_alloc;
        out.thread[n] = (uint16_t)(coffer__load_u16(body + 8 + tail_len) & is_alloc);
        out.type[n] = (uint8_t)type;
        n++;
        at = body + 8 + ((tail_len + 2) & is_alloc);
    }
    decoder->at = at;
    decoder->time = time;
    decoder->time_wrapped |= wrapped;
    decoder->out->count = n;
}

#endif
