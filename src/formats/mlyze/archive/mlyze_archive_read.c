/* Decodes the events of an archive block. */
#include "formats/mlyze/archive/mlyze_archive.h"

#include "base/checked.h"
#include "base/cursor.h"
#include "base/fail.h"
#include "formats/mlyze/read/mlyze_decode.h"

/* Why a block cannot be decoded. */
static const char ends_early[] = "a stream ends early", bad_name[] = "a free names a block that is not live",
                  bad_kind[] = "an event has an unknown kind", bad_place[] = "an address cannot be decoded",
                  bad_time[] = "its times pass 64 bits", bad_other[] = "a rare event cannot be decoded";

static inline bool take_byte(uint8_t *out, coffer__mlyze_stream_cursor *cursor)
{
    if (cursor->at == cursor->end)
        return false;
    *out = *cursor->at++;
    return true;
}

static inline bool take_varint(uint64_t *out, coffer__mlyze_stream_cursor *cursor)
{
    if (cursor->at < cursor->end && *cursor->at < 0x80) {
        *out = *cursor->at++;
        return true;
    }
    return coffer__varint_read(out, &cursor->at, cursor->end) <= COFFER__VARINT_OVERLONG;
}

/* The block that a free names. NULL, or what is wrong. */
static inline const char *take_name(uint32_t *out, coffer__mlyze_unpacker *u)
{
    uint64_t distance;
    uint8_t symbol;
    if (!take_byte(&symbol, &u->streams[COFFER__MLYZE_FREES]))
        return ends_early;
    uint32_t name = u->known - symbol;
    if (symbol == 0) {
        if (!take_varint(&distance, &u->streams[COFFER__MLYZE_FAR_FREES]))
            return ends_early;
        distance = coffer__mlyze_unzigzag(distance) + u->named;
        if (distance >= u->known)
            return bad_name;
        u->named = name = (uint32_t)distance;
    } else if (symbol > COFFER__MLYZE_AGE_MAX) {
        u->named = name = u->named + symbol - COFFER__MLYZE_NEAR_ZERO;
    }
    if (name >= u->known || u->classes[name] == COFFER__MLYZE_CLASS_GONE)
        return bad_name;
    *out = name;
    return NULL;
}

static inline const char *take_place(uint64_t *out, coffer__mlyze_unpacker *u, uint64_t size)
{
    coffer__mlyze_freed *freed = &u->model->freed[coffer__mlyze_class(size)];
    uint64_t distance = 0;
    uint8_t symbol;
    if (!take_byte(&symbol, &u->streams[COFFER__MLYZE_PLACES]))
        return ends_early;
    if (symbol >= COFFER__MLYZE_PLACE_FREED) {
        uint32_t n = (uint32_t)symbol - COFFER__MLYZE_PLACE_FREED;
        if (n >= freed->count)
            return bad_place;
        *out = coffer__mlyze_freed_take(freed, n);
        return NULL;
    }
    if (symbol != COFFER__MLYZE_PLACE_NEXT && !take_varint(&distance, &u->streams[COFFER__MLYZE_FAR_PLACES]))
        return ends_early;
    distance = coffer__mlyze_unzigzag(distance);
    *out = u->place + (symbol == COFFER__MLYZE_PLACE_FAR ? distance << 4 : distance);
    u->place = *out + coffer__mlyze_chunk(size);
    return NULL;
}

/* Stack, size and thread. */
static inline bool take_guesses(coffer_mlyze_events *out, size_t i, coffer__mlyze_unpacker *u)
{
    coffer__mlyze_guess *before = coffer__mlyze_guess_of(u->model, u->stack), *here;
    uint64_t stack = before->next, size, thread;
    uint8_t guess;
    if (!take_byte(&guess, &u->streams[COFFER__MLYZE_GUESSES]) || guess > 7)
        return false;
    if (!(guess & COFFER__MLYZE_GUESS_STACK)) {
        if (!take_varint(&stack, &u->streams[COFFER__MLYZE_STACKS]))
            return false;
        before->next = stack;
    }
    here = coffer__mlyze_guess_of(u->model, stack);
    size = here->size;
    if (!(guess & COFFER__MLYZE_GUESS_SIZE)) {
        if (!take_varint(&size, &u->streams[COFFER__MLYZE_SIZES]))
            return false;
        here->size = size;
    }
    if (!(guess & COFFER__MLYZE_GUESS_THREAD)) {
        if (!take_varint(&thread, &u->streams[COFFER__MLYZE_THREAD_NUMBERS]) || thread > UINT16_MAX)
            return false;
        u->thread = (uint16_t)thread;
    }
    u->stack = out->id[i] = stack;
    out->size[i] = size;
    out->thread[i] = u->thread;
    return true;
}

static inline const char *take_alloc(coffer_mlyze_events *out, size_t i, coffer__mlyze_unpacker *u,
                                     uint8_t kind)
{
    const char *wrong = NULL;
    uint64_t address = 0;
    uint32_t replaced = 0;
    if (u->known == u->import_count + u->alloc_count)
        return bad_kind;
    if (!take_guesses(out, i, u))
        return ends_early;
    if (kind == COFFER__MLYZE_KIND_REPLACE) {
        wrong = take_name(&replaced, u);
        if (wrong)
            return wrong;
        u->replaces = true;
        u->classes[replaced] = COFFER__MLYZE_CLASS_GONE;
        address = u->by_name ? 0 : u->values[replaced];
    } else if (!u->by_name && kind == COFFER__MLYZE_KIND_ALLOC) {
        wrong = take_place(&address, u, out->size[i]);
    }
    if (!u->by_name)
        u->values[u->known] = address;
    u->classes[u->known] =
        kind == COFFER__MLYZE_KIND_NO_PLACE ? COFFER__MLYZE_CLASS_GONE : coffer__mlyze_class(out->size[i]);
    u->known++;
    if (u->by_name && kind != COFFER__MLYZE_KIND_NO_PLACE)
        address = u->known;
    out->address[i] = address;
    out->type[i] = COFFER_MLYZE_ALLOC;
    return wrong;
}

static inline const char *take_free(coffer_mlyze_events *out, size_t i, coffer__mlyze_unpacker *u)
{
    uint32_t name = 0;
    const char *wrong = take_name(&name, u);
    if (wrong)
        return wrong;
    if (u->by_name) {
        out->address[i] = (uint64_t)name + 1;
    } else {
        out->address[i] = u->values[name];
        coffer__mlyze_freed_push(&u->model->freed[u->classes[name]], u->values[name]);
    }
    u->classes[name] = COFFER__MLYZE_CLASS_GONE;
    return NULL;
}

/* A free of an address that is not live. It does not name any allocation. */
static const char *take_stray(coffer_mlyze_events *out, size_t i, coffer__mlyze_unpacker *u)
{
    uint64_t distance;
    if (!take_varint(&distance, &u->streams[COFFER__MLYZE_FAR_FREES]))
        return ends_early;
    out->address[i] = u->by_name ? UINT64_MAX : distance;
    return NULL;
}

static const char *take_other(coffer_mlyze_events *out, size_t i, coffer__mlyze_unpacker *u)
{
    coffer__mlyze_stream_cursor *others = &u->streams[COFFER__MLYZE_OTHERS];
    coffer__mlyze_decoder decoder = { .at = others->at,
                                      .end = others->end,
                                      .time = u->time,
                                      .extensions = coffer__mlyze_has_extensions(&u->trace->header),
                                      .out = out };
    if (others->at == others->end || *others->at <= COFFER_MLYZE_FREE)
        return bad_other;
    out->count = i;
    if (coffer__mlyze_decode_event(&decoder) || decoder.time != u->time)
        return bad_other;
    others->at = decoder.at;
    return NULL;
}

static const char *take_rare(coffer_mlyze_events *out, size_t i, coffer__mlyze_unpacker *u, uint8_t kind)
{
    switch (kind) {
    case COFFER__MLYZE_KIND_OTHER:
        return take_other(out, i, u);
    case COFFER__MLYZE_KIND_REPLACE:
    case COFFER__MLYZE_KIND_NO_PLACE:
        return take_alloc(out, i, u, kind);
    case COFFER__MLYZE_KIND_STRAY:
    case COFFER__MLYZE_KIND_NO_FREE:
        out->type[i] = COFFER_MLYZE_FREE;
        out->size[i] = out->id[i] = out->address[i] = 0;
        out->thread[i] = 0;
        return kind == COFFER__MLYZE_KIND_STRAY ? take_stray(out, i, u) : NULL;
    default:
        return bad_kind;
    }
}

/* Decodes `count` events. Works on a copy, which the compiler keeps in registers. */
static const char *decode(coffer_mlyze_events *out, coffer__mlyze_unpacker *unpacker, size_t count)
{
    coffer__mlyze_unpacker u = *unpacker;
    coffer_mlyze_events columns = *out;
    const char *wrong = NULL;
    size_t i = 0;
    for (; i < count && !wrong; i++) {
        uint8_t kind = *u.streams[COFFER__MLYZE_KINDS].at++;
        uint64_t delta = 0;
        if (!take_varint(&delta, &u.streams[COFFER__MLYZE_DELTAS]))
            wrong = ends_early;
        if (__builtin_add_overflow(u.time, delta, &u.time))
            wrong = bad_time;
        columns.time[i] = u.time;
        if (kind == COFFER__MLYZE_KIND_ALLOC) {
            wrong = wrong ? wrong : take_alloc(&columns, i, &u, COFFER__MLYZE_KIND_ALLOC);
        } else if (kind == COFFER__MLYZE_KIND_FREE) {
            columns.type[i] = COFFER_MLYZE_FREE;
            columns.size[i] = columns.id[i] = 0;
            columns.thread[i] = 0;
            wrong = wrong ? wrong : take_free(&columns, i, &u);
        } else {
            wrong = wrong ? wrong : take_rare(&columns, i, &u, kind);
        }
    }
    u.event += (uint32_t)i;
    *unpacker = u;
    return wrong;
}

static const char *check_end(const coffer__mlyze_unpacker *u)
{
    for (int i = 0; i < COFFER__MLYZE_STREAMS; i++) {
        if (u->streams[i].at != u->streams[i].end)
            return "a stream has more than its events take";
    }
    if (u->known != u->import_count + u->alloc_count)
        return "it has fewer allocations than its directory says";
    for (uint32_t i = 0; i < u->import_count; i++) {
        if (u->classes[i] != COFFER__MLYZE_CLASS_GONE)
            return "it does not free a block that its directory lists";
    }
    return NULL;
}

coffer_status coffer__mlyze_unpack_some(coffer_mlyze_events *out, coffer__mlyze_unpacker *unpacker,
                                        size_t max, coffer_error *err)
{
    size_t left = unpacker->block.event_count - unpacker->event, count = left < max ? left : max;
    out->first = unpacker->block.first_event + unpacker->event;
    out->count = 0;
    unpacker->others_before = unpacker->streams[COFFER__MLYZE_OTHERS].at;
    const char *wrong = decode(out, unpacker, count);
    if (!wrong && unpacker->event == unpacker->block.event_count)
        wrong = check_end(unpacker);
    if (wrong)
        return coffer__mlyze_fail_block(err, COFFER_E_BAD_VALUE, &unpacker->block, wrong);
    out->count = count;
    return COFFER_OK;
}

coffer_status coffer__mlyze_unpack_block(coffer_mlyze_events *out, uint64_t *time, const coffer_mlyze *trace,
                                         const coffer__mlyze_block *block, coffer_error *err)
{
    coffer__mlyze_unpacker unpacker = { .raw = NULL };
    coffer_status status = coffer__mlyze_unpack_open(&unpacker, trace, block, false, err);
    if (!status)
        status = coffer__mlyze_events_reserve_rows(out, block->event_count, err);
    if (!status)
        status = coffer__mlyze_unpack_some(out, &unpacker, block->event_count, err);
    *time = unpacker.time;
    coffer__mlyze_unpacker_free(&unpacker);
    if (status)
        out->count = 0;
    return status;
}
