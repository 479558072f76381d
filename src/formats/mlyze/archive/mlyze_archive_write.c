/* Collects events into archive blocks: pairs frees with allocations, then codes each column. */
#include "formats/mlyze/archive/mlyze_archive.h"

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sorted.h"

#include <stdlib.h>
#include <zstd.h>

#define LEVEL_DEFAULT 9
/* Rare events may have long bodies: the block ends when this much of them has been collected, so that its raw
 * size stays below COFFER__MLYZE_ARCHIVE_RAW_MAX. */
#define OTHERS_MAX ((size_t)1 << 24)
/* Larger blocks are a few percent smaller, smaller ones are decoded by more threads with less memory. */
#define ROWS ((size_t)1 << 18)

coffer_status coffer__mlyze_packer_init(coffer__mlyze_packer *packer, coffer__mlyze_put_bytes *put,
                                        void *put_context, int level, const coffer_limits *limits,
                                        coffer_error *err)
{
    coffer__mlyze_pending *pending = &packer->pending;
    const size_t row = 5 * sizeof(uint64_t) + sizeof(uint16_t) + sizeof(uint8_t);
    *packer = (coffer__mlyze_packer){ .put = put,
                                      .put_context = put_context,
                                      .level = level ? level : LEVEL_DEFAULT };
    for (int i = 0; i < COFFER__MLYZE_STREAMS; i++)
        coffer__buffer_init(&packer->streams[i], SIZE_MAX);
    coffer__buffer_init(&packer->block, SIZE_MAX);
    packer->budget.max = limits->memory_bytes < SIZE_MAX ? (size_t)limits->memory_bytes : SIZE_MAX;
    coffer__mlyze_live_init(&packer->live, coffer__mlyze_new_key(), &packer->budget);
    packer->model = coffer__malloc(sizeof *packer->model);
    packer->context = ZSTD_createCCtx();
    pending->time = coffer__alloc_array(ROWS, row);
    if (!packer->model || !packer->context || !pending->time)
        return coffer__fail_no_memory(err, ROWS * row);
    pending->address = pending->time + ROWS;
    pending->size = pending->address + ROWS;
    pending->id = pending->size + ROWS;
    pending->names = pending->id + ROWS;
    pending->thread = (uint16_t *)(pending->names + ROWS);
    pending->kind = (uint8_t *)(pending->thread + ROWS);
    return COFFER_OK;
}

void coffer__mlyze_packer_free(coffer__mlyze_packer *packer)
{
    if (!packer->put)
        return;
    coffer__mlyze_live_free(&packer->live);
    for (int i = 0; i < COFFER__MLYZE_STREAMS; i++)
        coffer__buffer_free(&packer->streams[i]);
    coffer__buffer_free(&packer->block);
    coffer__free(packer->pending.time);
    coffer__free(packer->imports);
    coffer__free(packer->model);
    ZSTD_freeCCtx(packer->context);
    *packer = (coffer__mlyze_packer){ .put = NULL };
}

/* ---- Bytes of streams ---- */

static inline void put_byte(coffer__mlyze_packer *packer, int stream, uint8_t byte)
{
    coffer__buffer *to = &packer->streams[stream];
    if (to->len < to->capacity)
        to->data[to->len++] = byte;
    else
        coffer__buffer_append(to, &byte, 1);
}

static inline void put_varint(coffer__mlyze_packer *packer, int stream, uint64_t value)
{
    uint8_t bytes[COFFER__VARINT_MAX];
    if (value < 0x80)
        put_byte(packer, stream, (uint8_t)value);
    else
        coffer__buffer_append(&packer->streams[stream], bytes, coffer__varint_write(bytes, value));
}

/* ---- Pairing ---- */

static coffer_status add_import(coffer__mlyze_packer *packer, const coffer__mlyze_held *block,
                                uint64_t address, coffer_error *err)
{
    if (block->order >= packer->first_alloc)
        return COFFER_OK;
    coffer_status status = coffer__array_reserve_one(&packer->imports, &packer->import_capacity,
                                                     packer->import_count, sizeof *packer->imports, err);
    if (!status)
        packer->imports[packer->import_count++] =
            (coffer__mlyze_import){ block->order, address, coffer__mlyze_class(block->size) };
    return status;
}

static coffer_status pair_alloc(coffer__mlyze_packer *packer, size_t i, coffer_error *err)
{
    coffer__mlyze_pending *pending = &packer->pending;
    uint64_t address = pending->address[i];
    coffer__mlyze_held block = { .size = pending->size[i], .order = packer->alloc_count++ }, old;
    coffer__mlyze_put what;
    pending->kind[i] = COFFER__MLYZE_KIND_NO_PLACE;
    if (address == 0)
        return COFFER_OK;
    coffer_status status =
        coffer__mlyze_live_put(&what, &packer->live, coffer__mlyze_hash(&packer->live.key, address), address,
                               &block, &old, err);
    if (status == COFFER_E_LIMIT)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "the live blocks do not fit into %zu bytes: an archive needs more memory",
                            packer->budget.max);
    if (status)
        return status;
    pending->kind[i] =
        what == COFFER__MLYZE_PUT_REPLACED ? COFFER__MLYZE_KIND_REPLACE : COFFER__MLYZE_KIND_ALLOC;
    if (what != COFFER__MLYZE_PUT_REPLACED)
        return COFFER_OK;
    pending->names[i] = old.order;
    return add_import(packer, &old, address, err);
}

static coffer_status pair_free(coffer__mlyze_packer *packer, size_t i, coffer_error *err)
{
    coffer__mlyze_pending *pending = &packer->pending;
    uint64_t address = pending->address[i];
    coffer__mlyze_held block;
    pending->kind[i] = address == 0 ? COFFER__MLYZE_KIND_NO_FREE : COFFER__MLYZE_KIND_STRAY;
    if (address == 0 || !coffer__mlyze_live_take(&block, &packer->live,
                                                 coffer__mlyze_hash(&packer->live.key, address), address))
        return COFFER_OK;
    pending->kind[i] = COFFER__MLYZE_KIND_FREE;
    pending->names[i] = block.order;
    return add_import(packer, &block, address, err);
}

/* ---- Coding ---- */

static int compare_imports(const void *a, const void *b)
{
    const coffer__mlyze_import *first = a, *second = b;
    return first->number < second->number ? -1 : first->number > second->number;
}

static void code_imports(coffer__mlyze_packer *packer)
{
    uint64_t number = 0, address = 0;
    if (packer->import_count > 1)
        qsort(packer->imports, packer->import_count, sizeof *packer->imports, compare_imports);
    for (size_t i = 0; i < packer->import_count; i++) {
        const coffer__mlyze_import *import = &packer->imports[i];
        put_varint(packer, COFFER__MLYZE_IMPORT_NUMBERS, import->number - number);
        put_varint(packer, COFFER__MLYZE_IMPORT_ADDRESSES, coffer__mlyze_zigzag(import->address - address));
        put_varint(packer, COFFER__MLYZE_IMPORT_CLASSES, import->size_class);
        number = import->number;
        address = import->address + ((uint64_t)import->size_class << 4);
    }
}

/* The number of a block within the archive block. */
static uint32_t local_name(const coffer__mlyze_packer *packer, uint64_t number)
{
    if (number >= packer->first_alloc)
        return (uint32_t)(packer->import_count + (number - packer->first_alloc));
    return (uint32_t)COFFER__LAST_UP_TO(packer->imports, packer->import_count, coffer__mlyze_import, number,
                                        number);
}

typedef struct coding {
    coffer__mlyze_packer *packer;
    uint32_t known, named;
    uint64_t place, stack;
    uint16_t thread;
    uint16_t *classes; /* of the blocks of this archive block */
} coding;

static uint32_t code_name(coding *code, uint64_t number)
{
    coffer__mlyze_packer *packer = code->packer;
    uint32_t name = local_name(packer, number), age = code->known - name;
    int64_t distance = (int64_t)name - (int64_t)code->named;
    if (age <= COFFER__MLYZE_AGE_MAX) {
        put_byte(packer, COFFER__MLYZE_FREES, (uint8_t)age);
        return name;
    }
    if (distance >= COFFER__MLYZE_NEAR_MIN && distance <= COFFER__MLYZE_NEAR_MAX) {
        put_byte(packer, COFFER__MLYZE_FREES, (uint8_t)(COFFER__MLYZE_NEAR_ZERO + distance));
    } else {
        put_byte(packer, COFFER__MLYZE_FREES, 0);
        put_varint(packer, COFFER__MLYZE_FAR_FREES, coffer__mlyze_zigzag((uint64_t)distance));
    }
    code->named = name;
    return name;
}

static void code_place(coding *code, uint64_t address, uint64_t size)
{
    coffer__mlyze_packer *packer = code->packer;
    coffer__mlyze_freed *freed = &packer->model->freed[coffer__mlyze_class(size)];
    uint64_t distance = address - code->place;
    for (uint32_t n = 0; n < freed->count; n++) {
        if (freed->items[(freed->top - 1 - n) % COFFER__MLYZE_FREED_DEPTH] == address) {
            put_byte(packer, COFFER__MLYZE_PLACES, (uint8_t)(COFFER__MLYZE_PLACE_FREED + n));
            coffer__mlyze_freed_take(freed, n);
            return;
        }
    }
    code->place = address + coffer__mlyze_chunk(size);
    if (distance == 0) {
        put_byte(packer, COFFER__MLYZE_PLACES, COFFER__MLYZE_PLACE_NEXT);
        return;
    }
    /* An arithmetic shift, which unzigzag and << 4 reverse. */
    bool is_far = distance % 16 == 0 && coffer__mlyze_zigzag(distance) >> 60 == 0;
    put_byte(packer, COFFER__MLYZE_PLACES, is_far ? COFFER__MLYZE_PLACE_FAR : COFFER__MLYZE_PLACE_ODD);
    if (is_far)
        distance = distance >> 4 | (distance >> 63 ? (uint64_t)15 << 60 : 0);
    put_varint(packer, COFFER__MLYZE_FAR_PLACES, coffer__mlyze_zigzag(distance));
}

static void code_guesses(coding *code, size_t i)
{
    coffer__mlyze_packer *packer = code->packer;
    const coffer__mlyze_pending *pending = &packer->pending;
    uint64_t stack = pending->id[i], size = pending->size[i];
    coffer__mlyze_guess *before = coffer__mlyze_guess_of(packer->model, code->stack);
    coffer__mlyze_guess *here = coffer__mlyze_guess_of(packer->model, stack);
    unsigned guess = before->next == stack ? COFFER__MLYZE_GUESS_STACK : 0;
    before->next = stack; /* before the size is looked at: both may be one row */
    guess |= here->size == size ? COFFER__MLYZE_GUESS_SIZE : 0u;
    guess |= pending->thread[i] == code->thread ? COFFER__MLYZE_GUESS_THREAD : 0u;
    put_byte(packer, COFFER__MLYZE_GUESSES, (uint8_t)guess);
    if (!(guess & COFFER__MLYZE_GUESS_STACK))
        put_varint(packer, COFFER__MLYZE_STACKS, stack);
    if (!(guess & COFFER__MLYZE_GUESS_SIZE))
        put_varint(packer, COFFER__MLYZE_SIZES, size);
    if (!(guess & COFFER__MLYZE_GUESS_THREAD))
        put_varint(packer, COFFER__MLYZE_THREAD_NUMBERS, pending->thread[i]);
    here->size = size;
    code->stack = stack;
    code->thread = pending->thread[i];
}

static void code_event(coding *code, size_t i)
{
    coffer__mlyze_packer *packer = code->packer;
    const coffer__mlyze_pending *pending = &packer->pending;
    uint8_t kind = pending->kind[i];
    put_byte(packer, COFFER__MLYZE_KINDS, kind);
    if (kind == COFFER__MLYZE_KIND_FREE) {
        uint32_t name = code_name(code, pending->names[i]);
        uint16_t size_class = name < packer->import_count ? packer->imports[name].size_class
                                                          : code->classes[name - packer->import_count];
        coffer__mlyze_freed_push(&packer->model->freed[size_class], pending->address[i]);
    } else if (kind == COFFER__MLYZE_KIND_STRAY) {
        put_varint(packer, COFFER__MLYZE_FAR_FREES, pending->address[i]);
    } else if (kind != COFFER__MLYZE_KIND_OTHER && kind != COFFER__MLYZE_KIND_NO_FREE) {
        code_guesses(code, i);
        if (kind == COFFER__MLYZE_KIND_REPLACE)
            code_name(code, pending->names[i]);
        else if (kind == COFFER__MLYZE_KIND_ALLOC)
            code_place(code, pending->address[i], pending->size[i]);
        code->classes[code->known - packer->import_count] = coffer__mlyze_class(pending->size[i]);
        code->known++;
    }
}

static coffer_status code_events(coffer__mlyze_packer *packer, coffer_error *err)
{
    coding code = { .packer = packer, .known = (uint32_t)packer->import_count };
    uint64_t time = packer->start;
    code.classes = coffer__alloc_array(packer->pending.count, sizeof *code.classes);
    if (!code.classes)
        return coffer__fail_no_memory(err, packer->pending.count * sizeof *code.classes);
    coffer__mlyze_model_clear(packer->model);
    code_imports(packer);
    for (size_t i = 0; i < packer->pending.count; i++) {
        put_varint(packer, COFFER__MLYZE_DELTAS, packer->pending.time[i] - time);
        time = packer->pending.time[i];
        code_event(&code, i);
    }
    coffer__free(code.classes);
    return COFFER_OK;
}

/* ---- Blocks ---- */

static coffer_status write_block(coffer__mlyze_packer *packer, coffer_error *err)
{
    uint8_t bytes[COFFER__MLYZE_BLOCK_HEADER];
    coffer__mlyze_block header = { .event_count = (uint32_t)packer->pending.count, .time = packer->start };
    coffer_status status = code_events(packer, err);
    if (!status)
        status = coffer__mlyze_pack_streams(packer, &header.raw_size, err);
    if (status)
        return status;
    header.stored_size = (uint32_t)packer->block.len;
    coffer__store_u32(bytes, header.raw_size);
    coffer__store_u32(bytes + COFFER__MLYZE_BLOCK_STORED_AT, header.stored_size);
    coffer__store_u32(bytes + COFFER__MLYZE_BLOCK_COUNT_AT, header.event_count);
    coffer__store_u32(bytes + COFFER__MLYZE_BLOCK_CRC_AT,
                      coffer__mlyze_block_sum(&header, packer->block.data, true));
    coffer__store_u64(bytes + COFFER__MLYZE_BLOCK_TIME_AT, header.time);
    status = packer->put(packer->put_context, bytes, sizeof bytes, err);
    return status ? status : packer->put(packer->put_context, packer->block.data, packer->block.len, err);
}

coffer_status coffer__mlyze_packer_end(coffer__mlyze_packer *packer, coffer_error *err)
{
    coffer_status status = packer->pending.count > 0 ? write_block(packer, err) : COFFER_OK;
    for (int i = 0; i < COFFER__MLYZE_STREAMS; i++)
        packer->streams[i].len = 0;
    packer->pending.count = packer->import_count = 0;
    packer->first_alloc = packer->alloc_count;
    packer->start = packer->time;
    return status;
}

/* ---- Adding ---- */

/* An event that is neither ALLOC nor FREE, as in a plain trace with delta 0. body : of an extension, from its
 * length on. */
static void put_other(coffer__mlyze_packer *packer, const coffer_mlyze_events *events, size_t i,
                      const uint8_t *body, size_t len)
{
    put_byte(packer, COFFER__MLYZE_OTHERS, events->type[i]);
    put_byte(packer, COFFER__MLYZE_OTHERS, 0);
    if (events->type[i] > COFFER_MLYZE_MARKER) {
        coffer__buffer_append(&packer->streams[COFFER__MLYZE_OTHERS], body, len);
        return;
    }
    put_varint(packer, COFFER__MLYZE_OTHERS, events->id[i]);
    if (events->type[i] == COFFER_MLYZE_GC)
        put_varint(packer, COFFER__MLYZE_OTHERS, events->size[i]);
}

static coffer_status add_event(coffer__mlyze_packer *packer, const coffer_mlyze_events *events, size_t i,
                               const uint8_t *body, size_t len, coffer_error *err)
{
    coffer__mlyze_pending *pending = &packer->pending;
    size_t at = pending->count;
    if (events->time[i] > packer->time)
        packer->time = events->time[i];
    pending->time[at] = packer->time;
    pending->address[at] = events->address[i];
    pending->size[at] = events->size[i];
    pending->id[at] = events->id[i];
    pending->thread[at] = events->thread[i];
    pending->kind[at] = COFFER__MLYZE_KIND_OTHER;
    coffer_status status = COFFER_OK;
    if (events->type[i] == COFFER_MLYZE_ALLOC)
        status = pair_alloc(packer, at, err);
    else if (events->type[i] == COFFER_MLYZE_FREE)
        status = pair_free(packer, at, err);
    else
        put_other(packer, events, i, body, len);
    pending->count++;
    if (status)
        return status;
    if (pending->count == ROWS || packer->streams[COFFER__MLYZE_OTHERS].len > OTHERS_MAX)
        return coffer__mlyze_packer_end(packer, err);
    return COFFER_OK;
}

coffer_status coffer__mlyze_packer_add(coffer__mlyze_packer *packer, const coffer_mlyze_events *events,
                                       const coffer__mlyze_bodies *bodies, coffer_error *err)
{
    coffer__mlyze_body_walk walk;
    coffer_status status = COFFER_OK;
    coffer__mlyze_body_walk_begin(&walk, bodies);
    for (size_t i = 0; !status && i < events->count; i++) {
        size_t len = 0;
        const uint8_t *body = coffer__mlyze_body_walk_next(&len, &walk, events->type[i]);
        status = add_event(packer, events, i, body, len, err);
    }
    return status;
}
