/* Writes PATH.strings: the new entries of the tables, in chunks. */
#include "formats/mlyze/write/mlyze_parts.h"

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/cursor.h"
#include "base/fail.h"

#define CHUNK_FULL ((size_t)1 << 20)

static void put_varint(coffer__buffer *out, uint64_t value)
{
    uint8_t bytes[COFFER__VARINT_MAX];
    coffer__buffer_append(out, bytes, coffer__varint_write(bytes, value));
}

static size_t varint_size(uint64_t value)
{
    uint8_t bytes[COFFER__VARINT_MAX];
    return coffer__varint_write(bytes, value);
}

/* Entries are appended after it. */
static size_t begin_chunk(coffer__buffer *out)
{
    size_t at = out->len;
    coffer__buffer_fill(out, 0, COFFER__MLYZE_CHUNK_HEADER);
    return at;
}

static void end_chunk(coffer__buffer *out, size_t at)
{
    if (out->failed)
        return;
    uint8_t *header = out->data + at, *entries = header + COFFER__MLYZE_CHUNK_HEADER;
    size_t len = out->len - at - COFFER__MLYZE_CHUNK_HEADER;
    coffer__store_u32(header, (uint32_t)len);
    coffer__store_u32(header + COFFER__MLYZE_CHUNK_CRC_AT, coffer__crc32(0, entries, len));
}

static void begin_entry(coffer__buffer *out, uint8_t kind, size_t len)
{
    coffer__buffer_append(out, &kind, 1);
    put_varint(out, len);
}

static void put_numbers(coffer__buffer *out, uint8_t kind, const uint64_t *numbers, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += varint_size(numbers[i]);
    begin_entry(out, kind, len);
    for (size_t i = 0; i < count; i++)
        put_varint(out, numbers[i]);
}

static void put_name(coffer__buffer *out, uint8_t kind, const coffer__mlyze_pool_name *name)
{
    begin_entry(out, kind, varint_size(name->id) + name->len);
    put_varint(out, name->id);
    coffer__buffer_append(out, name->text, name->len);
}

/* The next new entry; false at the end. Names come before their calls, calls before their stacks. */
static bool put_next(coffer__buffer *out, coffer__mlyze_logged *logged, const coffer__mlyze_pools *tables)
{
    const coffer__mlyze_stack_pool *stacks = &tables->stacks;
    if (logged->files < tables->files.count) {
        put_name(out, COFFER__MLYZE_ENTRY_FILE, &tables->files.items[logged->files++]);
    } else if (logged->functions < tables->functions.count) {
        put_name(out, COFFER__MLYZE_ENTRY_FUNCTION, &tables->functions.items[logged->functions++]);
    } else if (logged->calls < stacks->call_count) {
        const coffer__mlyze_pool_call *call = &stacks->calls[logged->calls++];
        uint64_t numbers[] = { call->caller, call->frame.file_id, call->frame.line, call->frame.func_id };
        put_numbers(out, COFFER__MLYZE_ENTRY_CALL, numbers, 4);
    } else if (logged->stacks < stacks->count) {
        const coffer__mlyze_pool_stack *stack = &stacks->items[logged->stacks++];
        uint64_t numbers[] = { stack->id, stack->call, stack->listed };
        put_numbers(out, COFFER__MLYZE_ENTRY_STACK, numbers, 3);
    } else {
        return false;
    }
    return true;
}

static bool all_logged(const coffer__mlyze_logged *logged, const coffer__mlyze_pools *tables)
{
    return logged->files == tables->files.count && logged->functions == tables->functions.count &&
           logged->calls == tables->stacks.call_count && logged->stacks == tables->stacks.count;
}

coffer_status coffer__mlyze_strings_log(coffer__buffer *out, coffer__mlyze_logged *logged,
                                        const coffer__mlyze_pools *tables, coffer_error *err)
{
    coffer__mlyze_logged now = *logged;
    while (!out->failed && !all_logged(&now, tables)) {
        size_t at = begin_chunk(out);
        while (out->len - at < CHUNK_FULL && put_next(out, &now, tables))
            ;
        end_chunk(out, at);
    }
    if (out->failed)
        return coffer__fail_no_memory(err, out->len);
    *logged = now;
    return COFFER_OK;
}

void coffer__mlyze_strings_put_extra(coffer__buffer *out, const char *json, size_t len)
{
    size_t at = begin_chunk(out);
    begin_entry(out, COFFER__MLYZE_ENTRY_EXTRA, len);
    coffer__buffer_append(out, json, len);
    end_chunk(out, at);
}

void coffer__mlyze_strings_put_end(coffer__buffer *out, uint64_t events, uint64_t part_size)
{
    uint64_t numbers[] = { events, part_size };
    size_t at = begin_chunk(out);
    put_numbers(out, COFFER__MLYZE_ENTRY_END, numbers, 2);
    end_chunk(out, at);
}
