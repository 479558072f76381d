/* PATH.strings, the table entries of a recording: written in chunks, read after it has ended or was killed.
 */
#include "formats/mlyze/write/mlyze_parts.h"

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/cursor.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"

/* Writes PATH.strings: the new entries of the tables, in chunks. */

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

/* Reads PATH.strings after a recording has ended or was killed. */

typedef struct loading {
    coffer__mlyze_strings *out;
    uint32_t *calls; /* of each CALL, its position in the tables + 1 */
    size_t count, capacity;
} loading;

static bool read_numbers(uint64_t *out, size_t count, const uint8_t **at, const uint8_t *end)
{
    for (size_t i = 0; i < count; i++) {
        if (coffer__varint_read(&out[i], at, end) > COFFER__VARINT_OVERLONG)
            return false;
    }
    return true;
}

/* An entry that contradicts an earlier one is skipped and counted; running out of memory or limits is a
 * failure. */
static coffer_status take(coffer_status status, const coffer_error *failure, loading *work, coffer_error *err)
{
    if (status != COFFER_E_DUPLICATE)
        return status && err ? (*err = *failure, status) : status;
    work->out->bad_entries++;
    return COFFER_OK;
}

static coffer_status load_name(loading *work, coffer__mlyze_name_pool *names, const uint8_t *at,
                               const uint8_t *end, coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    uint64_t id;
    if (!read_numbers(&id, 1, &at, end)) {
        work->out->bad_entries++;
        return COFFER_OK;
    }
    coffer_status status =
        coffer__mlyze_name_pool_add_id(names, id, (const char *)at, (size_t)(end - at), "name", &failure);
    return take(status, &failure, work, err);
}

static coffer_status load_call(loading *work, const uint8_t *at, const uint8_t *end, coffer_error *err)
{
    uint64_t numbers[4] = { 0 };
    uint32_t call = 0, caller = 0;
    size_t room = work->capacity;
    bool good = read_numbers(numbers, 4, &at, end) && numbers[0] <= work->count;
    coffer_status status = COFFER_OK;
    if (work->count == room) {
        room = room ? room * 2 : 256;
        uint32_t *larger = coffer__realloc(work->calls, room * sizeof *larger);
        if (!larger)
            return coffer__fail_no_memory(err, room * sizeof *larger);
        work->calls = larger;
        work->capacity = room;
    }
    if (good) {
        coffer_mlyze_frame frame = { numbers[1], numbers[2], numbers[3] };
        caller = numbers[0] ? work->calls[numbers[0] - 1] : 0;
        status = coffer__mlyze_stack_pool_call(&call, &work->out->pools.stacks, caller, &frame, err);
    }
    work->out->bad_entries += !good;
    work->calls[work->count++] = call;
    return status;
}

static coffer_status load_stack(loading *work, const uint8_t *at, const uint8_t *end, coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    uint64_t numbers[3];
    if (!read_numbers(numbers, 3, &at, end) || numbers[1] > work->count) {
        work->out->bad_entries++;
        return COFFER_OK;
    }
    uint32_t call = numbers[1] ? work->calls[numbers[1] - 1] : 0;
    coffer_status status = coffer__mlyze_stack_pool_add_id(&work->out->pools.stacks, numbers[0], call,
                                                           (numbers[2] & 1) != 0, &failure);
    return take(status, &failure, work, err);
}

static coffer_status load_end(loading *work, const uint8_t *at, const uint8_t *end)
{
    uint64_t numbers[2];
    work->out->has_end = read_numbers(numbers, 2, &at, end);
    if (work->out->has_end) {
        work->out->end_events = numbers[0];
        work->out->end_part_size = numbers[1];
    }
    work->out->bad_entries += !work->out->has_end;
    return COFFER_OK;
}

static coffer_status load_entry(loading *work, uint8_t kind, const uint8_t *at, const uint8_t *end,
                                coffer_error *err)
{
    coffer__mlyze_strings *out = work->out;
    switch (kind) {
    case COFFER__MLYZE_ENTRY_FILE:
        return load_name(work, &out->pools.files, at, end, err);
    case COFFER__MLYZE_ENTRY_FUNCTION:
        return load_name(work, &out->pools.functions, at, end, err);
    case COFFER__MLYZE_ENTRY_CALL:
        return load_call(work, at, end, err);
    case COFFER__MLYZE_ENTRY_STACK:
        return load_stack(work, at, end, err);
    case COFFER__MLYZE_ENTRY_EXTRA:
        out->extra.len = 0;
        coffer__buffer_append(&out->extra, at, (size_t)(end - at));
        return out->extra.failed ? coffer__fail_no_memory(err, (uint64_t)(end - at)) : COFFER_OK;
    case COFFER__MLYZE_ENTRY_END:
        return load_end(work, at, end);
    default:
        out->unknown_entries++;
        return COFFER_OK;
    }
}

static coffer_status load_entries(loading *work, const uint8_t *at, const uint8_t *end, coffer_error *err)
{
    while (at < end) {
        uint8_t kind = *at++;
        uint64_t len;
        if (!read_numbers(&len, 1, &at, end) || len > (uint64_t)(end - at)) {
            work->out->bad_entries++;
            return COFFER_OK;
        }
        coffer_status status = load_entry(work, kind, at, at + len, err);
        if (status)
            return status;
        at += len;
    }
    return COFFER_OK;
}

/* *whole : false at the first incomplete chunk. */
static coffer_status load_chunk(loading *work, bool *whole, int fd, uint64_t at, uint64_t left,
                                const char *name, coffer_error *err)
{
    uint8_t header[COFFER__MLYZE_CHUNK_HEADER], *entries;
    uint32_t len;
    *whole = false;
    if (left < sizeof header)
        return COFFER_OK;
    coffer_status status = coffer__file_read_at(fd, header, sizeof header, at, name, err);
    if (status)
        return status;
    len = coffer__load_u32(header);
    if (len == 0 || len > left - sizeof header)
        return COFFER_OK;
    entries = coffer__malloc(len);
    if (!entries)
        return coffer__fail_no_memory(err, len);
    status = coffer__file_read_at(fd, entries, len, at + sizeof header, name, err);
    if (!status && coffer__crc32(0, entries, len) == coffer__load_u32(header + COFFER__MLYZE_CHUNK_CRC_AT)) {
        *whole = true;
        work->out->good_size = at + sizeof header + len;
        status = load_entries(work, entries, entries + len, err);
    }
    coffer__free(entries);
    return status;
}

coffer_status coffer__mlyze_strings_load(coffer__mlyze_strings *out, int fd, uint64_t size, const char *name,
                                         coffer_error *err)
{
    uint8_t header[COFFER__MLYZE_PARTS_HEADER];
    loading work = { .out = out };
    coffer_status status = COFFER_OK;
    bool whole = true;
    coffer__buffer_init(&out->extra, SIZE_MAX);
    if (fd < 0 || size < sizeof header)
        return COFFER_OK;
    status = coffer__file_read_at(fd, header, sizeof header, 0, name, err);
    if (status)
        return status;
    out->has_header = coffer__mlyze_parts_header(&out->start_time, header, COFFER__MLYZE_STRINGS_MAGIC) > 0;
    out->good_size = out->has_header ? sizeof header : 0;
    whole = out->has_header;
    while (!status && whole && out->good_size < size)
        status = load_chunk(&work, &whole, fd, out->good_size, size - out->good_size, name, err);
    coffer__free(work.calls);
    return status;
}

void coffer__mlyze_strings_free(coffer__mlyze_strings *strings)
{
    coffer__mlyze_pools_free(&strings->pools);
    coffer__buffer_free(&strings->extra);
}
