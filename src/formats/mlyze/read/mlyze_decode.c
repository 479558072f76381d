/* One event at a time, every byte checked; the inner loops do the bulk. */
#include "formats/mlyze/read/mlyze_decode.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "base/cursor.h"
#include "base/fail.h"

#include <inttypes.h>

typedef void decode_kernel(coffer__mlyze_decoder *decoder);

/* An event being decoded. */
typedef struct event {
    const uint8_t *at, *end;
    uint64_t address, size, id;
    uint16_t thread;
    uint64_t overrun;        /* bytes of its body past `end` */
    coffer__mlyze_stop stop; /* why it is invalid */
    uint64_t overlong;
} event;

static bool fail(event *e, coffer__mlyze_stop why)
{
    if (e->stop == COFFER__MLYZE_STOP_END)
        e->stop = why;
    return false;
}

static bool take_varint(uint64_t *out, event *e)
{
    switch (coffer__varint_read(out, &e->at, e->end)) {
    case COFFER__VARINT_OK:
        return true;
    case COFFER__VARINT_OVERLONG:
        e->overlong++;
        return true;
    case COFFER__VARINT_TRUNCATED:
        return fail(e, COFFER__MLYZE_STOP_TRUNCATED);
    case COFFER__VARINT_OVERFLOW:
        break;
    }
    return fail(e, COFFER__MLYZE_STOP_VARINT);
}

static const uint8_t *take_bytes(event *e, size_t len)
{
    const uint8_t *bytes = e->at;
    if ((size_t)(e->end - e->at) < len) {
        fail(e, COFFER__MLYZE_STOP_TRUNCATED);
        return NULL;
    }
    e->at += len;
    return bytes;
}

static bool take_u64(uint64_t *out, event *e)
{
    const uint8_t *bytes = take_bytes(e, 8);
    if (bytes)
        *out = coffer__load_u64(bytes);
    return bytes;
}

static bool take_u16(uint16_t *out, event *e)
{
    const uint8_t *bytes = take_bytes(e, 2);
    if (bytes)
        *out = coffer__load_u16(bytes);
    return bytes;
}

static bool take_flag(uint64_t *out, event *e)
{
    const uint8_t *byte = take_bytes(e, 1);
    if (!byte)
        return false;
    if (*byte > 1)
        return fail(e, COFFER__MLYZE_STOP_BODY);
    *out = *byte;
    return true;
}

static bool take_fields(event *e, uint8_t type)
{
    switch (type) {
    case COFFER_MLYZE_ALLOC:
        return take_u64(&e->address, e) && take_varint(&e->size, e) && take_varint(&e->id, e) &&
               take_u16(&e->thread, e);
    case COFFER_MLYZE_FREE:
        return take_u64(&e->address, e);
    case COFFER_MLYZE_GC:
        return take_varint(&e->id, e) && take_varint(&e->size, e);
    case COFFER_MLYZE_MARKER:
        return take_varint(&e->id, e);
    case COFFER_MLYZE_OBJECT:
        return take_u64(&e->address, e) && take_varint(&e->id, e) &&
               (e->at == e->end || take_varint(&e->size, e));
    case COFFER_MLYZE_REFERENCE:
        return take_u64(&e->address, e) && take_u64(&e->size, e) && take_varint(&e->id, e);
    case COFFER_MLYZE_SNAPSHOT:
        return take_flag(&e->size, e) && take_varint(&e->id, e);
    case COFFER_MLYZE_THREAD:
        return take_u16(&e->thread, e) && take_varint(&e->id, e);
    case COFFER_MLYZE_RSS:
        return take_varint(&e->size, e);
    default:
        return true;
    }
}

/* A body may be longer than expected: later versions append to it. */
static bool take_extension(event *e, uint8_t type, uint64_t beyond)
{
    uint64_t len;
    size_t left;
    if (!take_varint(&len, e))
        return false;
    left = (size_t)(e->end - e->at);
    if (len > left && len - left > beyond)
        return fail(e, COFFER__MLYZE_STOP_TRUNCATED);
    e->overrun = len > left ? len - left : 0;
    if (type > COFFER_MLYZE_RSS) {
        e->size = len;
        e->at += len < left ? (size_t)len : left;
        return true;
    }
    const uint8_t *end = e->end, *body_end = len < left ? e->at + len : end;
    e->end = body_end;
    if (!take_fields(e, type)) {
        if (e->stop == COFFER__MLYZE_STOP_TRUNCATED)
            e->stop = COFFER__MLYZE_STOP_BODY;
        return false;
    }
    e->end = end;
    e->at = body_end;
    return true;
}

coffer__mlyze_stop coffer__mlyze_decode_event(coffer__mlyze_decoder *decoder)
{
    coffer_mlyze_events *out = decoder->out;
    event e = { .at = decoder->at + 1, .end = decoder->end };
    uint8_t type = *decoder->at;
    uint64_t delta, time;
    if (type > COFFER_MLYZE_MARKER && !decoder->extensions)
        return COFFER__MLYZE_STOP_TYPE;
    if (!take_varint(&delta, &e) ||
        !(type > COFFER_MLYZE_MARKER ? take_extension(&e, type, decoder->beyond) : take_fields(&e, type)))
        return e.stop;
    if (!coffer__add_u64(&time, decoder->time, delta))
        return COFFER__MLYZE_STOP_TIME;
    out->time[out->count] = decoder->time = time;
    out->address[out->count] = e.address;
    out->size[out->count] = e.size;
    out->id[out->count] = e.id;
    out->thread[out->count] = e.thread;
    out->type[out->count] = type;
    if (e.overlong > 0 && decoder->overlong == 0)
        decoder->first_overlong = out->count;
    decoder->overlong += e.overlong;
    out->count++;
    decoder->at = e.at;
    decoder->overrun = e.overrun;
    return COFFER__MLYZE_STOP_END;
}

static decode_kernel *choose_kernel(void)
{
#if defined(__x86_64__)
    coffer__cpu_level level = coffer__cpu();
    if (level == COFFER__CPU_AVX2 || level == COFFER__CPU_AVX512)
        return coffer__mlyze_decode_avx2;
#endif
    return coffer__mlyze_decode_generic;
}

coffer__mlyze_stop coffer__mlyze_decode_with_care(coffer__mlyze_decoder *decoder)
{
    coffer__mlyze_stop stop = COFFER__MLYZE_STOP_END;
    while (stop == COFFER__MLYZE_STOP_END && decoder->at < decoder->end)
        stop = coffer__mlyze_decode_event(decoder);
    return stop;
}

coffer__mlyze_stop coffer__mlyze_decode_events(coffer__mlyze_decoder *decoder)
{
    const coffer__mlyze_decoder begin = *decoder;
    const size_t count = decoder->out->count;
    decode_kernel *kernel = choose_kernel();
    coffer__mlyze_stop stop = COFFER__MLYZE_STOP_END;
    while (stop == COFFER__MLYZE_STOP_END && decoder->at < decoder->end) {
        kernel(decoder);
        if (decoder->at < decoder->end)
            stop = coffer__mlyze_decode_event(decoder);
    }
    if (!decoder->time_wrapped)
        return stop;
    *decoder = begin; /* the slow path finds the offset */
    decoder->out->count = count;
    return coffer__mlyze_decode_with_care(decoder);
}

coffer_status coffer__mlyze_fail_stop(coffer_error *err, coffer__mlyze_stop stop,
                                      const coffer__mlyze_decoder *decoder, uint64_t offset, uint64_t whole)
{
    uint64_t at = offset, events = whole;
    switch (stop) {
    case COFFER__MLYZE_STOP_TRUNCATED:
        return coffer__fail(err, COFFER_E_TRUNCATED, offset,
                            "truncated event at offset %" PRIu64 " (%" PRIu64 " whole events before it)", at,
                            events);
    case COFFER__MLYZE_STOP_TYPE:
        return coffer__fail(err, COFFER_E_BAD_VALUE, offset,
                            "unknown event type %u at offset %" PRIu64 " (%" PRIu64
                            " whole events before it)",
                            *decoder->at, at, events);
    case COFFER__MLYZE_STOP_BODY:
        return coffer__fail(err, COFFER_E_BAD_VALUE, offset,
                            "event of type %u at offset %" PRIu64 " has a body that does not fit its type "
                            "(%" PRIu64 " whole events before it)",
                            *decoder->at, at, events);
    case COFFER__MLYZE_STOP_VARINT:
        return coffer__fail(err, COFFER_E_BAD_VARINT, offset,
                            "event at offset %" PRIu64 " has a number of more than 64 bits (%" PRIu64
                            " whole events "
                            "before it)",
                            at, events);
    case COFFER__MLYZE_STOP_TIME:
        return coffer__fail(err, COFFER_E_BAD_VALUE, offset,
                            "the time of the event at offset %" PRIu64 " is past 64 bits (%" PRIu64
                            " whole events before "
                            "it)",
                            at, events);
    case COFFER__MLYZE_STOP_END:
        break;
    }
    return COFFER_OK;
}
