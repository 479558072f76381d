/* Writes compact tables: the JSON without its stacks, and the stacks as a call tree. */
#include "formats/mlyze/write/mlyze_tables_pack.h"

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/read/mlyze_tables.h"

#include <string.h>
#include <zstd.h>

/* Metadata is written once and small compared with the events. */
#define LEVEL 12
#define QUICK_LEVEL 1

typedef struct packing {
    coffer__buffer streams[COFFER__MLYZE_TABLE_STREAMS];
    const coffer__mlyze_stack_pool *pool;
    uint32_t *numbers; /* of the calls of the pool; 0 = not used by a listed stack */
    uint32_t calls, stacks;
} packing;

static void put(packing *work, int stream, uint64_t value)
{
    uint8_t bytes[COFFER__VARINT_MAX];
    coffer__buffer_append(&work->streams[stream], bytes, coffer__varint_write(bytes, value));
}

static uint64_t zigzag(uint64_t difference)
{
    return difference << 1 ^ (0 - (difference >> 63));
}

/* Marks the calls of listed stacks. A caller precedes what it calls. */
static void mark_calls(packing *work)
{
    const coffer__mlyze_stack_pool *pool = work->pool;
    for (size_t i = 0; i < pool->count; i++) {
        if (!pool->items[i].listed)
            continue;
        for (uint32_t call = pool->items[i].call; call && !work->numbers[call];
             call = pool->calls[call - 1].caller)
            work->numbers[call] = 1;
    }
}

static void put_calls(packing *work)
{
    const coffer__mlyze_stack_pool *pool = work->pool;
    for (size_t i = 1; i <= pool->call_count; i++) {
        const coffer__mlyze_pool_call *call = &pool->calls[i - 1];
        if (!work->numbers[i])
            continue;
        uint32_t number = ++work->calls;
        work->numbers[i] = number;
        put(work, COFFER__MLYZE_TABLE_CALLERS, number - work->numbers[call->caller]);
        put(work, COFFER__MLYZE_TABLE_FILES, call->frame.file_id);
        put(work, COFFER__MLYZE_TABLE_LINES, call->frame.line);
        put(work, COFFER__MLYZE_TABLE_FUNCTIONS, call->frame.func_id);
    }
}

static void put_stacks(packing *work)
{
    const coffer__mlyze_stack_pool *pool = work->pool;
    uint64_t id = UINT64_MAX, call = 0;
    for (size_t i = 0; i < pool->count; i++) {
        const coffer__mlyze_pool_stack *stack = &pool->items[i];
        if (!stack->listed)
            continue;
        put(work, COFFER__MLYZE_TABLE_STACKS, zigzag(stack->id - id - 1));
        put(work, COFFER__MLYZE_TABLE_STACKS, zigzag(work->numbers[stack->call] - call));
        id = stack->id;
        call = work->numbers[stack->call];
        work->stacks++;
    }
}

static coffer_status put_tree(packing *work, coffer_error *err)
{
    work->numbers = coffer__calloc(work->pool->call_count + 1, sizeof *work->numbers);
    if (!work->numbers)
        return coffer__fail_no_memory(err, work->pool->call_count * sizeof *work->numbers);
    mark_calls(work);
    put_calls(work);
    put_stacks(work);
    coffer__free(work->numbers);
    return COFFER_OK;
}

static coffer_status add_stream(coffer__buffer *out, const coffer__buffer *raw, int stream, int level,
                                coffer_error *err)
{
    size_t room = ZSTD_compressBound(raw->len), before = out->len;
    if (raw->failed || raw->len > UINT32_MAX)
        return coffer__fail_no_memory(err, raw->len);
    uint8_t *to = coffer__buffer_extend(out, room);
    if (!to)
        return coffer__fail_no_memory(err, room);
    size_t stored = ZSTD_compress(to, room, raw->data, raw->len, level);
    if (ZSTD_isError(stored) || stored >= raw->len) {
        stored = raw->len;
        if (stored > 0)
            memcpy(to, raw->data, stored);
    }
    out->len = before + stored;
    uint8_t *sizes = out->data + COFFER__MLYZE_TABLES_SIZES_AT + 8 * stream;
    coffer__store_u32(sizes, (uint32_t)raw->len);
    coffer__store_u32(sizes + 4, (uint32_t)stored);
    return COFFER_OK;
}

coffer_status coffer__mlyze_tables_pack(coffer__buffer *out, const coffer__mlyze_tables_source *from,
                                        coffer_error *err)
{
    packing work = { .pool = from->pool };
    coffer_status status = COFFER_OK;
    for (int i = 0; i < COFFER__MLYZE_TABLE_STREAMS; i++)
        coffer__buffer_init(&work.streams[i], SIZE_MAX);
    coffer__buffer_append(&work.streams[COFFER__MLYZE_TABLE_JSON], from->json, from->len);
    if (work.pool)
        status = put_tree(&work, err);
    uint8_t *head = status ? NULL : coffer__buffer_extend(out, COFFER__MLYZE_TABLES_DIRECTORY);
    if (!status && !head)
        status = coffer__fail_no_memory(err, COFFER__MLYZE_TABLES_DIRECTORY);
    if (!status) {
        memcpy(head, COFFER__MLYZE_TABLES_MAGIC, 4);
        coffer__store_u32(head + COFFER__MLYZE_TABLES_JSON_AT, (uint32_t)from->len);
        coffer__store_u32(head + COFFER__MLYZE_TABLES_HOLE_AT,
                          work.pool ? (uint32_t)from->hole : COFFER__MLYZE_NO_HOLE);
        coffer__store_u32(head + COFFER__MLYZE_TABLES_SPACES_AT, (uint32_t)from->spaces);
        coffer__store_u32(head + COFFER__MLYZE_TABLES_CALLS_AT, work.calls);
        coffer__store_u32(head + COFFER__MLYZE_TABLES_STACKS_AT, work.stacks);
    }
    for (int i = 0; !status && i < COFFER__MLYZE_TABLE_STREAMS; i++)
        status = add_stream(out, &work.streams[i], i, from->quick ? QUICK_LEVEL : LEVEL, err);
    for (int i = 0; i < COFFER__MLYZE_TABLE_STREAMS; i++)
        coffer__buffer_free(&work.streams[i]);
    return status;
}

/* ---- From text ---- */

/* The stacks of a text as paths whose first call is the frame that the text lists first. */
static coffer_status add_paths(coffer__mlyze_stack_pool *pool, const coffer__mlyze_stack_table *stacks,
                               coffer_error *err)
{
    size_t begin = 0;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < stacks->ids.count; i++) {
        uint32_t call = 0;
        for (size_t k = begin; !status && k < stacks->ends[i]; k++)
            status = coffer__mlyze_stack_pool_call(&call, pool, call, &stacks->frames[k], err);
        if (!status)
            status = coffer__mlyze_stack_pool_add_id(pool, stacks->ids.items[i], call, true, err);
        begin = stacks->ends[i];
    }
    return status;
}

/* Whether the stacks of the text are what coffer__mlyze_render_stacks makes of them. */
static coffer_status is_canonical(bool *out, const coffer__mlyze_metadata *metadata, coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    size_t begin = metadata->stacks_begin, len = metadata->stacks_end - begin;
    *out = false;
    if (len == 0)
        return COFFER_OK;
    coffer_status status = coffer__mlyze_render_stacks(&text, &metadata->stacks, false, err);
    *out = !status && text.len == len && memcmp(text.data, metadata->text + begin, len) == 0;
    coffer__buffer_free(&text);
    return status;
}

static coffer_status pack_with_tree(coffer__buffer *out, const coffer__mlyze_metadata *metadata,
                                    size_t spaces, coffer_error *err)
{
    coffer__mlyze_stack_pool pool = { 0 };
    coffer__buffer json = COFFER__BUFFER_INIT;
    size_t begin = metadata->stacks_begin, end = metadata->stacks_end;
    coffer__buffer_append(&json, metadata->text, begin);
    coffer__buffer_append(&json, "{}", 2);
    coffer__buffer_append(&json, metadata->text + end, metadata->text_len - end);
    coffer_status status =
        json.failed ? coffer__fail_no_memory(err, json.len) : add_paths(&pool, &metadata->stacks, err);
    coffer__mlyze_tables_source from = { (const char *)json.data, json.len, begin, spaces, &pool, false };
    if (!status)
        status = coffer__mlyze_tables_pack(out, &from, err);
    coffer__mlyze_stack_pool_free(&pool);
    coffer__buffer_free(&json);
    return status;
}

coffer_status coffer__mlyze_tables_from_text(coffer__buffer *out, const char *text, size_t len,
                                             const coffer_limits *limits, coffer_error *err)
{
    coffer__mlyze_metadata metadata = { 0 };
    char *copy = coffer__malloc(len + 1);
    bool canonical = false;
    if (!copy)
        return coffer__fail_no_memory(err, len);
    memcpy(copy, text, len);
    coffer_status status = coffer__mlyze_metadata_load(&metadata, copy, len, limits, NULL, err);
    if (!status)
        status = is_canonical(&canonical, &metadata, err);
    size_t spaces = len - metadata.text_len;
    for (size_t i = metadata.text_len; i < len; i++)
        canonical &= text[i] == ' ';
    if (!status && canonical)
        status = pack_with_tree(out, &metadata, spaces, err);
    coffer__mlyze_tables_source whole = { text, len, 0, 0, NULL, false };
    if (!status && !canonical)
        status = coffer__mlyze_tables_pack(out, &whole, err);
    coffer__mlyze_metadata_free(&metadata);
    return status;
}
