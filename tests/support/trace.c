#include "support/trace.h"

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/cursor.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>

const char trace_tables[] = "{\"stack_traces\": {\"0\": [{\"file_id\": 0, \"line\": 42, \"func_id\": 0}, "
                            "{\"file_id\": 1, \"line\": 123, \"func_id\": 1}], \"1\": [{\"file_id\": 1, "
                            "\"line\": 7, \"func_id\": 1}]}, "
                            "\"files\": {\"0\": \"main.c\", \"1\": \"work.c\"}, "
                            "\"functions\": {\"0\": \"main\", \"1\": \"work\", \"2\": \"phase two\"}}";

void trace_begin(trace_builder *to, uint32_t flags, const char *json)
{
    uint8_t header[COFFER__MLYZE_HEADER_SIZE] = { 0 };
    *to = (trace_builder){ .file = COFFER__BUFFER_INIT, .block = COFFER__BUFFER_INIT };
    json = json ? json : trace_tables;
    memcpy(header, COFFER__MLYZE_MAGIC, COFFER__MLYZE_MAGIC_SIZE);
    coffer__store_u32(header + COFFER__MLYZE_VERSION_AT, COFFER__MLYZE_VERSION);
    coffer__store_u64(header + COFFER__MLYZE_START_AT, UINT64_C(1700000000000000));
    coffer__store_u32(header + COFFER__MLYZE_METADATA_LENGTH_AT, (uint32_t)strlen(json));
    coffer__store_u32(header + COFFER__MLYZE_FLAGS_AT, flags);
    coffer__buffer_append(&to->file, header, sizeof header);
    coffer__buffer_append(&to->file, json, strlen(json));
    to->area = to->file.len;
}

static uint32_t flags_of(const trace_builder *of)
{
    return coffer__load_u32(of->file.data + COFFER__MLYZE_FLAGS_AT);
}

void trace_raw(trace_builder *to, const void *bytes, size_t len, uint32_t events)
{
    bool blocks = flags_of(to) & COFFER__MLYZE_FLAG_BLOCKS;
    coffer__buffer_append(blocks ? &to->block : &to->file, bytes, len);
    to->block_events += events;
    to->events += events;
}

static size_t put_head(uint8_t *out, trace_builder *to, uint8_t type, uint64_t delta)
{
    out[0] = type;
    to->time += delta;
    return 1 + coffer__varint_write(out + 1, delta);
}

void trace_alloc(trace_builder *to, uint64_t delta, uint64_t address, uint64_t size, uint64_t stack,
                 uint16_t thread)
{
    uint8_t bytes[64];
    size_t len = put_head(bytes, to, COFFER_MLYZE_ALLOC, delta);
    coffer__store_u64(bytes + len, address);
    len += 8;
    len += coffer__varint_write(bytes + len, size);
    len += coffer__varint_write(bytes + len, stack);
    coffer__store_u16(bytes + len, thread);
    trace_raw(to, bytes, len + 2, 1);
}

void trace_free(trace_builder *to, uint64_t delta, uint64_t address)
{
    uint8_t bytes[64];
    size_t len = put_head(bytes, to, COFFER_MLYZE_FREE, delta);
    coffer__store_u64(bytes + len, address);
    trace_raw(to, bytes, len + 8, 1);
}

void trace_gc(trace_builder *to, uint64_t delta, uint64_t objects, uint64_t bytes_freed)
{
    uint8_t bytes[64];
    size_t len = put_head(bytes, to, COFFER_MLYZE_GC, delta);
    len += coffer__varint_write(bytes + len, objects);
    len += coffer__varint_write(bytes + len, bytes_freed);
    trace_raw(to, bytes, len, 1);
}

void trace_marker(trace_builder *to, uint64_t delta, uint64_t name)
{
    uint8_t bytes[64];
    size_t len = put_head(bytes, to, COFFER_MLYZE_MARKER, delta);
    len += coffer__varint_write(bytes + len, name);
    trace_raw(to, bytes, len, 1);
}

void trace_extension(trace_builder *to, uint64_t delta, uint8_t type, const void *body, size_t body_len)
{
    uint8_t bytes[64];
    size_t len = put_head(bytes, to, type, delta);
    len += coffer__varint_write(bytes + len, body_len);
    trace_raw(to, bytes, len, 1);
    trace_raw(to, body, body_len, 0);
}

void trace_end_block(trace_builder *to, bool compressed)
{
    uint8_t header[COFFER__MLYZE_BLOCK_HEADER];
    size_t raw = to->block.len, stored = raw;
    char *packed = malloc((size_t)LZ4_compressBound((int)raw));
    assert_non_null(packed);
    memcpy(packed, to->block.data, raw);
    if (compressed) {
        stored = (size_t)LZ4_compress_default((const char *)to->block.data, packed, (int)raw,
                                              LZ4_compressBound((int)raw));
        assert_int_not_equal(stored, 0);
    }
    coffer__store_u32(header, (uint32_t)raw);
    coffer__store_u32(header + COFFER__MLYZE_BLOCK_STORED_AT, (uint32_t)stored);
    coffer__store_u32(header + COFFER__MLYZE_BLOCK_COUNT_AT, to->block_events);
    coffer__store_u32(header + COFFER__MLYZE_BLOCK_CRC_AT, coffer__crc32(0, packed, stored));
    coffer__store_u64(header + COFFER__MLYZE_BLOCK_TIME_AT, to->block_time);
    coffer__buffer_append(&to->file, header, sizeof header);
    coffer__buffer_append(&to->file, packed, stored);
    free(packed);
    to->block.len = 0;
    to->block_events = 0;
    to->block_time = to->time;
}

void trace_sum_header(trace_builder *to)
{
    uint8_t *header = to->file.data;
    size_t len = coffer__load_u32(header + COFFER__MLYZE_METADATA_LENGTH_AT);
    coffer__store_u32(header + COFFER__MLYZE_METADATA_CRC_AT,
                      coffer__crc32(0, header + COFFER__MLYZE_HEADER_SIZE, len));
    coffer__store_u32(header + COFFER__MLYZE_HEADER_CRC_AT,
                      coffer__crc32(0, header, COFFER__MLYZE_HEADER_CRC_AT));
}

void trace_finish(trace_builder *to)
{
    uint32_t flags = flags_of(to);
    if (to->block.len > 0)
        trace_end_block(to, true);
    if (flags & COFFER__MLYZE_FLAG_CHECKSUMS) {
        coffer__store_u64(to->file.data + COFFER__MLYZE_EVENT_COUNT_AT, to->events);
        coffer__store_u64(to->file.data + COFFER__MLYZE_EVENT_LENGTH_AT, to->file.len - to->area);
        trace_sum_header(to);
    }
    assert_false(to->file.failed || to->block.failed);
}

void trace_dispose(trace_builder *to)
{
    coffer__buffer_free(&to->file);
    coffer__buffer_free(&to->block);
}

void trace_sample(trace_builder *to, uint32_t flags, uint32_t events, uint32_t per_block)
{
    uint32_t random = 12345, live = 0;
    uint64_t addresses[64];
    trace_begin(to, flags, NULL);
    for (uint32_t i = 0; i < events; i++) {
        random = random * 1664525 + 1013904223;
        uint32_t dice = random >> 16;
        uint64_t delta = dice % 7 == 0 ? dice * 3 : dice % 5;
        if (i % 97 == 13) {
            trace_marker(to, delta, i % 3);
        } else if (i % 83 == 11) {
            trace_gc(to, delta, dice % 100, (uint64_t)dice * 1000);
        } else if (live == 64 || (live > 0 && dice % 2 == 0)) {
            uint32_t which = (dice / 2) % live;
            trace_free(to, delta, addresses[which]);
            addresses[which] = addresses[--live];
        } else {
            addresses[live] = UINT64_C(0x7f0000000000) + (uint64_t)i * 64;
            trace_alloc(to, delta, addresses[live++], dice % 11 == 0 ? (uint64_t)dice << 20 : dice % 5000,
                        dice % 2, (uint16_t)(dice % 3));
        }
        if (flags & COFFER__MLYZE_FLAG_BLOCKS && to->block_events == per_block)
            trace_end_block(to, (i / per_block) % 3 != 2);
    }
    trace_finish(to);
}

coffer_source *trace_source(const trace_builder *of)
{
    coffer_source *src = NULL;
    assert_int_equal(coffer_source_from_memory(&src, of->file.data, of->file.len, NULL), COFFER_OK);
    return src;
}

coffer_mlyze *trace_open(coffer_source *src, const char *index_path)
{
    coffer_mlyze_open_opts opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mlyze *trace = NULL;
    opts.index_path = index_path;
    if (coffer_mlyze_open(&trace, src, &opts, &err))
        fail_msg("the trace does not open: %s", err.text);
    return trace;
}

coffer_mlyze_block trace_block(const coffer_mlyze *trace, size_t index)
{
    coffer_mlyze_block block = COFFER_MLYZE_BLOCK_INIT;
    assert_int_equal(coffer_mlyze_get_block(&block, trace, index, NULL), COFFER_OK);
    return block;
}

coffer_mlyze_events trace_read_all(const coffer_mlyze *trace)
{
    coffer_mlyze_events all = COFFER_MLYZE_EVENTS_INIT, block = COFFER_MLYZE_EVENTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t events = 0;
    size_t blocks = 0;
    assert_int_equal(coffer_mlyze_event_count(&events, trace, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_block_count(&blocks, trace, NULL), COFFER_OK);
    all.time = calloc(events + 1, sizeof *all.time);
    all.address = calloc(events + 1, sizeof *all.address);
    all.size = calloc(events + 1, sizeof *all.size);
    all.id = calloc(events + 1, sizeof *all.id);
    all.thread = calloc(events + 1, sizeof *all.thread);
    all.type = calloc(events + 1, sizeof *all.type);
    for (size_t i = 0; i < blocks; i++) {
        if (coffer_mlyze_read_block(&block, trace, i, &err))
            fail_msg("block %zu: %s", i, err.text);
        assert_int_equal(block.first, all.count);
        assert_true(all.count + block.count <= events);
        memcpy(all.time + all.count, block.time, block.count * sizeof *all.time);
        memcpy(all.address + all.count, block.address, block.count * sizeof *all.address);
        memcpy(all.size + all.count, block.size, block.count * sizeof *all.size);
        memcpy(all.id + all.count, block.id, block.count * sizeof *all.id);
        memcpy(all.thread + all.count, block.thread, block.count * sizeof *all.thread);
        memcpy(all.type + all.count, block.type, block.count * sizeof *all.type);
        all.count += block.count;
    }
    coffer_mlyze_events_free(&block);
    assert_int_equal(all.count, events);
    return all;
}

void trace_columns_free(coffer_mlyze_events *events)
{
    free(events->time);
    free(events->address);
    free(events->size);
    free(events->id);
    free(events->thread);
    free(events->type);
    *events = (coffer_mlyze_events)COFFER_MLYZE_EVENTS_INIT;
}

coffer_report *trace_check(const trace_builder *of)
{
    coffer_source *src = trace_source(of);
    coffer_report *report = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    if (coffer_check(report, src, NULL, &err))
        fail_msg("the check does not run: %s", err.text);
    coffer_source_close(src);
    return report;
}

/* Errors other than what a repair has recorded as lost. */
static size_t count_errors(const coffer_report *report)
{
    size_t count = 0;
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        const coffer_finding *finding = coffer_report_at(report, i);
        count += finding->severity == COFFER_ERROR && strncmp(finding->text, "an earlier repair", 17) != 0;
    }
    return count;
}

int64_t trace_whole_events(const char *path)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    coffer_mlyze *trace = NULL;
    uint64_t events;
    int64_t result = -2;
    if (!temp_exists(path))
        return -1;
    opts.full = true;
    opts.threads = 1;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_source_open(&src, path, NULL, NULL), COFFER_OK);
    if (coffer_mlyze_open(&trace, src, NULL, NULL) == COFFER_OK &&
        coffer_mlyze_damage(trace, NULL) == COFFER_OK &&
        coffer_mlyze_event_count(&events, trace, NULL) == COFFER_OK &&
        coffer_check(report, src, &opts, NULL) == COFFER_OK && count_errors(report) == 0)
        result = (int64_t)events;
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    coffer_report_free(report);
    return result;
}
