/* The index file (mlyze_layout.h has its bytes). It is derived data: one that does not match the trace is
 * ignored, never an error. */
#include "formats/mlyze/mlyze_private.h"

#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/os.h"
#include "io/sink.h"
#include "io/source_private.h"

#include <errno.h>
#include <lz4.h>

/* Number of blocks whose headers are compared with the index before it is used. */
#define SAMPLES 16

static void make_header(uint8_t out[COFFER__MLYZE_INDEX_HEADER], const coffer_mlyze *trace, size_t count)
{
    memcpy(out, COFFER__MLYZE_INDEX_MAGIC, 4);
    coffer__store_u32(out + COFFER__MLYZE_INDEX_VERSION_AT, COFFER__MLYZE_INDEX_VERSION);
    coffer__store_u64(out + COFFER__MLYZE_INDEX_SIZE_AT, coffer_source_size(trace->source));
    coffer__store_u32(out + COFFER__MLYZE_INDEX_CRC_AT,
                      coffer__crc32(0, trace->header.bytes, sizeof trace->header.bytes));
    coffer__store_u32(out + COFFER__MLYZE_INDEX_COUNT_AT, (uint32_t)count);
}

static void load_entry(coffer_mlyze_index_entry *out, const uint8_t *bytes)
{
    out->offset = coffer__load_u64(bytes);
    out->first_event = coffer__load_u64(bytes + COFFER__MLYZE_ENTRY_EVENT_AT);
    out->time = coffer__load_u64(bytes + COFFER__MLYZE_ENTRY_TIME_AT);
    out->live_bytes = coffer__load_u64(bytes + COFFER__MLYZE_ENTRY_BYTES_AT);
    out->live_allocs = coffer__load_u64(bytes + COFFER__MLYZE_ENTRY_ALLOCS_AT);
    out->high_bytes = coffer__load_u64(bytes + COFFER__MLYZE_ENTRY_HIGH_AT);
    out->high_allocs = coffer__load_u64(bytes + COFFER__MLYZE_ENTRY_MOST_AT);
}

static void store_entry(uint8_t *out, const coffer_mlyze_index_entry *entry)
{
    coffer__store_u64(out, entry->offset);
    coffer__store_u64(out + COFFER__MLYZE_ENTRY_EVENT_AT, entry->first_event);
    coffer__store_u64(out + COFFER__MLYZE_ENTRY_TIME_AT, entry->time);
    coffer__store_u64(out + COFFER__MLYZE_ENTRY_BYTES_AT, entry->live_bytes);
    coffer__store_u64(out + COFFER__MLYZE_ENTRY_ALLOCS_AT, entry->live_allocs);
    coffer__store_u64(out + COFFER__MLYZE_ENTRY_HIGH_AT, entry->high_bytes);
    coffer__store_u64(out + COFFER__MLYZE_ENTRY_MOST_AT, entry->high_allocs);
}

/* Whether the entries can be consecutive blocks of this trace. */
static bool entries_fit(const coffer_mlyze_index_entry *entries, size_t count, const coffer_mlyze *trace)
{
    if (count > 0 && (entries[0].offset != trace->area || entries[0].first_event != 0 ||
                      entries[count - 1].offset >= trace->area_end))
        return false;
    for (size_t i = 1; i < count; i++) {
        if (entries[i].offset <= entries[i - 1].offset ||
            entries[i].first_event <= entries[i - 1].first_event ||
            entries[i].first_event - entries[i - 1].first_event > UINT32_MAX ||
            entries[i].offset - entries[i - 1].offset > UINT32_MAX)
            return false;
    }
    return true;
}

static bool read_entries(coffer_mlyze_index_entry *out, size_t count, coffer_source *file)
{
    const uint8_t *bytes = NULL;
    uint8_t *own = NULL;
    if (coffer__source_fetch_new(&bytes, &own, file, COFFER__MLYZE_INDEX_HEADER,
                                 count * COFFER__MLYZE_INDEX_ENTRY, NULL))
        return false;
    for (size_t i = 0; i < count; i++)
        load_entry(&out[i], bytes + i * COFFER__MLYZE_INDEX_ENTRY);
    coffer__free(own);
    return coffer_source_intact(file, NULL) == COFFER_OK;
}

bool coffer__mlyze_index_load(coffer_mlyze_index_entry **out, size_t *count, const coffer_mlyze *trace)
{
    uint8_t found[COFFER__MLYZE_INDEX_HEADER], expected[COFFER__MLYZE_INDEX_HEADER];
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    coffer_mlyze_index_entry *entries = NULL;
    coffer_source *file = NULL;
    size_t n;
    bool good = false;
    opts.ignore_journal = true;
    if (!trace->index_path || coffer_source_open(&file, trace->index_path, &opts, NULL))
        return false;
    if (coffer_source_read_at(found, file, 0, sizeof found, NULL))
        goto out;
    n = coffer__load_u32(found + COFFER__MLYZE_INDEX_COUNT_AT);
    make_header(expected, trace, n);
    if (memcmp(found, expected, sizeof found) != 0 || n > trace->limits.entries ||
        coffer_source_size(file) != COFFER__MLYZE_INDEX_HEADER + (uint64_t)n * COFFER__MLYZE_INDEX_ENTRY)
        goto out;
    entries = coffer__alloc_array(n ? n : 1, sizeof *entries);
    good = entries && read_entries(entries, n, file) && entries_fit(entries, n, trace);
    if (good) {
        *out = entries;
        *count = n;
    }
out:
    if (!good)
        coffer__free(entries);
    coffer_source_close(file);
    return good;
}

/* ---- Blocks from the index ---- */

/* The block of entry `i`, except raw_size, which the index does not have. */
static bool block_of_entry(coffer__mlyze_block *out, const coffer_mlyze_index_entry *entries, size_t i,
                           size_t count, const coffer_mlyze *trace)
{
    const coffer_mlyze_index_entry *entry = &entries[i];
    uint64_t room;
    if (i + 1 == count) {
        if (coffer__mlyze_read_block_header(out, NULL, trace, entry->offset, NULL) ||
            out->time != entry->time)
            return false;
        out->first_event = entry->first_event;
        return true;
    }
    room = entry[1].offset - entry->offset;
    if (room <= COFFER__MLYZE_BLOCK_HEADER ||
        room > COFFER__MLYZE_BLOCK_HEADER + LZ4_COMPRESSBOUND(COFFER__MLYZE_BLOCK_RAW_MAX))
        return false;
    *out = (coffer__mlyze_block){ .offset = entry->offset,
                                  .first_event = entry->first_event,
                                  .time = entry->time,
                                  .event_count = (uint32_t)(entry[1].first_event - entry->first_event),
                                  .stored_size = (uint32_t)(room - COFFER__MLYZE_BLOCK_HEADER) };
    return true;
}

bool coffer__mlyze_block_agrees(const coffer_mlyze *trace, coffer__mlyze_block *block)
{
    coffer__mlyze_block header;
    if (coffer__mlyze_read_block_header(&header, NULL, trace, block->offset, NULL) ||
        header.event_count != block->event_count || header.time != block->time ||
        header.stored_size != block->stored_size)
        return false;
    block->raw_size = header.raw_size;
    return true;
}

static bool samples_agree(const coffer__mlyze_map *map, const coffer_mlyze *trace)
{
    size_t samples = map->count < SAMPLES ? map->count : SAMPLES;
    for (size_t i = 0; i < samples; i++) {
        coffer__mlyze_block block = map->items[i * (map->count - 1) / (samples > 1 ? samples - 1 : 1)];
        if (!coffer__mlyze_block_agrees(trace, &block))
            return false;
    }
    return true;
}

/* Whether the map reaches the end of the events, or the offset where damage ends them. After a truncated
 * block it never does. */
static bool is_complete(const coffer__mlyze_map *map, const coffer_mlyze *trace)
{
    const coffer__mlyze_block *last = &map->items[map->count - 1];
    uint64_t end = last->offset + COFFER__MLYZE_BLOCK_HEADER + last->stored_size;
    coffer__mlyze_block next;
    coffer_status status;
    if (end == trace->area_end)
        return trace->header.event_count == 0 || trace->header.event_count == map->event_count;
    status = coffer__mlyze_read_block_header(&next, NULL, trace, end, NULL);
    return status && status != COFFER_E_TRUNCATED;
}

coffer_status coffer__mlyze_map_from_index(coffer__mlyze_map *map, const coffer_mlyze *trace,
                                           coffer_error *err)
{
    coffer_mlyze_index_entry *entries = NULL;
    coffer__mlyze_block block;
    size_t count = 0;
    if (!coffer__mlyze_index_load(&entries, &count, trace))
        return COFFER_OK;
    if (count > 0 && !(map->items = coffer__alloc_array(count, sizeof *map->items))) {
        coffer__free(entries);
        return coffer__fail_no_memory(err, (uint64_t)count * sizeof *map->items);
    }
    map->capacity = count;
    while (map->count < count && block_of_entry(&block, entries, map->count, count, trace)) {
        map->items[map->count++] = block;
        map->event_count += block.event_count;
    }
    if (count > 0 && map->count == count && samples_agree(map, trace) && is_complete(map, trace)) {
        map->from_index = true;
        map->entries = entries;
        return COFFER_OK;
    }
    map->count = 0;
    map->event_count = 0;
    coffer__free(entries);
    return COFFER_OK;
}

/* ---- Saving ---- */

/* Nobody may read more of the index than of the trace. */
static coffer_status protect(coffer__sink *sink, const coffer_mlyze *trace, coffer_error *err)
{
    const char *path = coffer__source_path(trace->source);
    struct stat st;
    int fd = -1;
    if (!path) /* memory or a callback: the caller chose where the index goes */
        return COFFER_OK;
    if (coffer__os_stat(path, &st) != 0)
        return coffer__fail_errno(err, "cannot examine the trace", errno);
    coffer_status status = coffer__sink_read_back(&fd, sink, err);
    return status ? status : coffer__file_take_after(fd, &st, trace->index_path, err);
}

void coffer__mlyze_index_save(const coffer_mlyze *trace, const coffer_mlyze_index_entry *entries,
                              size_t count)
{
    coffer__sink_opts opts = { .no_sync = true, .rewrites = true };
    uint8_t bytes[COFFER__MLYZE_INDEX_ENTRY];
    uint8_t header[COFFER__MLYZE_INDEX_HEADER];
    coffer__sink *sink = NULL;
    coffer_status status;
    if (!trace->index_path || count > UINT32_MAX ||
        coffer__sink_create(&sink, trace->index_path, &opts, NULL))
        return;
    make_header(header, trace, count);
    status = protect(sink, trace, NULL);
    if (!status)
        status = coffer__sink_write(sink, header, sizeof header, NULL);
    for (size_t i = 0; !status && i < count; i++) {
        store_entry(bytes, &entries[i]);
        status = coffer__sink_write(sink, bytes, sizeof bytes, NULL);
    }
    if (!status)
        coffer__sink_commit(sink, NULL);
    else
        coffer__sink_discard(sink);
}
