/* Blocks of a trace: found, read, cut off, damaged. */
#include "support/trace.h"

#include "base/bytes.h"
#include "base/crc32.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMPRESSED (COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_CHECKSUMS)

static void assert_same_events(const coffer_mlyze_events *a, const coffer_mlyze_events *b, size_t count)
{
    assert_memory_equal(a->time, b->time, count * sizeof *a->time);
    assert_memory_equal(a->address, b->address, count * sizeof *a->address);
    assert_memory_equal(a->size, b->size, count * sizeof *a->size);
    assert_memory_equal(a->id, b->id, count * sizeof *a->id);
    assert_memory_equal(a->thread, b->thread, count * sizeof *a->thread);
    assert_memory_equal(a->type, b->type, count * sizeof *a->type);
}

static void compressed_and_plain_traces_hold_the_same_events(void **state)
{
    trace_builder plain, packed;
    (void)state;
    trace_sample(&plain, 0, 20000, 0);
    trace_sample(&packed, COMPRESSED, 20000, 300);
    coffer_source *plain_source = trace_source(&plain), *packed_source = trace_source(&packed);
    coffer_mlyze *a = trace_open(plain_source, NULL), *b = trace_open(packed_source, NULL);
    coffer_mlyze_events one = trace_read_all(a), other = trace_read_all(b);
    size_t blocks = 0;
    assert_int_equal(one.count, 20000);
    assert_int_equal(other.count, 20000);
    assert_same_events(&one, &other, 20000);
    assert_int_equal(coffer_mlyze_block_count(&blocks, b, NULL), COFFER_OK);
    assert_int_equal(blocks, 67);
    assert_int_equal(coffer_mlyze_block_count(&blocks, a, NULL), COFFER_OK);
    assert_true(blocks > 1);
    for (size_t i = 0; i < blocks; i++)
        assert_true(trace_block(a, i).raw_size <= COFFER__MLYZE_BLOCK_RAW_MAX);
    assert_int_equal(coffer_mlyze_damage(a, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_damage(b, NULL), COFFER_OK);
    trace_columns_free(&one);
    trace_columns_free(&other);
    coffer_mlyze_close(a);
    coffer_mlyze_close(b);
    coffer_source_close(plain_source);
    coffer_source_close(packed_source);
    trace_dispose(&plain);
    trace_dispose(&packed);
}

/* Opens the first `len` bytes and compares the events that are left with those of the whole. */
static void assert_prefix_reads(const trace_builder *of, size_t len, const coffer_mlyze_events *whole)
{
    trace_builder cut = *of;
    coffer_error err = COFFER_ERROR_INIT;
    uint8_t *copy = malloc(len);
    memcpy(copy, of->file.data, len);
    cut.file.data = copy;
    cut.file.len = len;
    coffer_source *src = trace_source(&cut);
    coffer_mlyze *trace = trace_open(src, NULL);
    coffer_mlyze_events left = trace_read_all(trace);
    char expected[60];
    assert_true(left.count <= whole->count);
    assert_same_events(&left, whole, left.count);
    if (len < of->file.len && coffer_mlyze_damage(trace, &err)) {
        assert_int_equal(err.status, COFFER_E_TRUNCATED);
        snprintf(expected, sizeof expected, "(%zu whole events", left.count);
        assert_non_null(strstr(err.text, expected));
    }
    trace_columns_free(&left);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    free(copy);
}

static void cut_everywhere(uint32_t flags)
{
    trace_builder t;
    trace_sample(&t, flags, 200, 40);
    coffer_source *src = trace_source(&t);
    coffer_mlyze *trace = trace_open(src, NULL);
    coffer_mlyze_events whole = trace_read_all(trace);
    for (size_t len = t.area; len <= t.file.len; len++)
        assert_prefix_reads(&t, len, &whole);
    trace_columns_free(&whole);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&t);
}

static void a_compressed_trace_cut_at_any_byte_reads_up_to_the_cut(void **state)
{
    (void)state;
    cut_everywhere(COMPRESSED);
}

static void a_plain_trace_cut_at_any_byte_reads_up_to_the_cut_event(void **state)
{
    (void)state;
    cut_everywhere(0);
}

/* ---- Damage ---- */

/* Where block `index` of a sample begins. */
static size_t block_place(const trace_builder *t, size_t index)
{
    size_t at = t->area;
    while (index-- > 0)
        at +=
            COFFER__MLYZE_BLOCK_HEADER + coffer__load_u32(t->file.data + at + COFFER__MLYZE_BLOCK_STORED_AT);
    return at;
}

/* Five blocks of 40 events; `value` is stored at `field` of the third block's header. */
static void assert_walk_stops(size_t field, uint32_t value, coffer_status expected, const char *words)
{
    coffer_error err = COFFER_ERROR_INIT;
    trace_builder t;
    trace_sample(&t, COMPRESSED, 200, 40);
    size_t place = block_place(&t, 2);
    coffer__store_u32(t.file.data + place + field, value);
    coffer_source *src = trace_source(&t);
    coffer_mlyze *trace = trace_open(src, NULL);
    coffer_mlyze_events left = trace_read_all(trace);
    assert_int_equal(coffer_mlyze_damage(trace, &err), expected);
    assert_int_equal(err.offset, place);
    if (!strstr(err.text, words) || !strstr(err.text, "80 whole events"))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    assert_int_equal(left.count, 80);
    trace_columns_free(&left);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&t);
}

static void a_header_that_cannot_be_one_ends_the_blocks(void **state)
{
    (void)state;
    assert_walk_stops(0, 0, COFFER_E_BAD_VALUE, "raw size of 0");
    assert_walk_stops(0, 65537, COFFER_E_BAD_VALUE, "raw size of 65537");
    assert_walk_stops(0, UINT32_MAX, COFFER_E_BAD_VALUE, "raw size");
    assert_walk_stops(COFFER__MLYZE_BLOCK_STORED_AT, 0, COFFER_E_BAD_VALUE, "stored size of 0");
    assert_walk_stops(COFFER__MLYZE_BLOCK_STORED_AT, UINT32_MAX, COFFER_E_BAD_VALUE, "stored size");
    assert_walk_stops(COFFER__MLYZE_BLOCK_COUNT_AT, 0, COFFER_E_BAD_VALUE, "0 events");
    assert_walk_stops(COFFER__MLYZE_BLOCK_COUNT_AT, 1000000, COFFER_E_BAD_VALUE, "1000000 events");
}

/* The third block cannot be read, and all others can. */
static void assert_block_lost(trace_builder *t, coffer_status expected, const char *words)
{
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = trace_source(t);
    coffer_mlyze *trace = trace_open(src, NULL);
    size_t blocks = 0;
    assert_int_equal(coffer_mlyze_block_count(&blocks, trace, NULL), COFFER_OK);
    assert_int_equal(blocks, 5);
    for (size_t i = 0; i < blocks; i++) {
        coffer_status status = coffer_mlyze_read_block(&events, trace, i, &err);
        assert_int_equal(status, i == 2 ? expected : COFFER_OK);
        assert_int_equal(events.count, i == 2 ? 0 : 40);
    }
    assert_int_equal(err.offset, block_place(t, 2));
    if (!strstr(err.text, words) || !strstr(err.text, "events 80 to 119 are lost"))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    coffer_mlyze_events_free(&events);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(t);
}

static void sum_block(trace_builder *t, size_t place)
{
    uint8_t *header = t->file.data + place;
    uint32_t stored = coffer__load_u32(header + COFFER__MLYZE_BLOCK_STORED_AT);
    coffer__store_u32(header + COFFER__MLYZE_BLOCK_CRC_AT,
                      coffer__crc32(0, header + COFFER__MLYZE_BLOCK_HEADER, stored));
}

static void a_damaged_block_is_lost_alone(void **state)
{
    trace_builder t;
    (void)state;
    trace_sample(&t, COMPRESSED, 200, 40);
    t.file.data[block_place(&t, 2) + COFFER__MLYZE_BLOCK_HEADER + 5] ^= 0x10;
    assert_block_lost(&t, COFFER_E_BAD_CHECKSUM, "checksum");

    trace_sample(&t, COMPRESSED, 200, 40); /* the third block is stored as it is: no event has this type */
    t.file.data[block_place(&t, 2) + COFFER__MLYZE_BLOCK_HEADER] = 9;
    sum_block(&t, block_place(&t, 2));
    assert_block_lost(&t, COFFER_E_BAD_VALUE, "unknown event type 9");

    trace_sample(&t, COMPRESSED, 200, 40);
    coffer__store_u32(t.file.data + block_place(&t, 2) + COFFER__MLYZE_BLOCK_COUNT_AT, 39);
    coffer__store_u32(t.file.data + block_place(&t, 3) + COFFER__MLYZE_BLOCK_COUNT_AT, 40);
    coffer_source *src = trace_source(&t);
    coffer_mlyze *trace = trace_open(src, NULL);
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    assert_int_equal(coffer_mlyze_read_block(&events, trace, 2, NULL), COFFER_E_SIZE_MISMATCH);
    assert_int_equal(coffer_mlyze_read_block(&events, trace, 5, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_mlyze_events_free(&events);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&t);
}

static void bytes_that_do_not_decompress_are_a_lost_block(void **state)
{
    trace_builder t;
    (void)state;
    trace_sample(&t, COMPRESSED, 200, 40);
    size_t place = block_place(&t, 1);
    uint32_t raw = coffer__load_u32(t.file.data + place);
    coffer__store_u32(t.file.data + place, raw + 1);
    coffer_source *src = trace_source(&t);
    coffer_mlyze *trace = trace_open(src, NULL);
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_mlyze_read_block(&events, trace, 1, &err), COFFER_E_BAD_VALUE);
    assert_non_null(strstr(err.text, "does not decompress"));
    coffer_mlyze_events_free(&events);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&t);
}

/* ---- Finding ---- */

static void assert_finds_events_and_times(uint32_t flags)
{
    trace_builder t;
    trace_sample(&t, flags, 20000, 300);
    coffer_source *src = trace_source(&t);
    coffer_mlyze *trace = trace_open(src, NULL);
    coffer_mlyze_events all = trace_read_all(trace);
    size_t blocks = 0, found = 0;
    assert_int_equal(coffer_mlyze_block_count(&blocks, trace, NULL), COFFER_OK);
    for (uint64_t event = 0; event < 20000; event += 97) {
        assert_int_equal(coffer_mlyze_block_of_event(&found, trace, event, NULL), COFFER_OK);
        coffer_mlyze_block block = trace_block(trace, found);
        assert_in_range(event, block.first_event, block.first_event + block.event_count - 1);
        uint64_t first = event; /* the first at that time */
        while (first > 0 && all.time[first - 1] == all.time[event])
            first--;
        assert_int_equal(coffer_mlyze_block_of_time(&found, trace, all.time[event], NULL), COFFER_OK);
        block = trace_block(trace, found);
        assert_in_range(first, block.first_event, block.first_event + block.event_count - 1);
    }
    assert_int_equal(coffer_mlyze_block_of_event(&found, trace, 20000, NULL), COFFER_OK);
    assert_int_equal(found, blocks);
    assert_int_equal(coffer_mlyze_block_of_time(&found, trace, all.time[19999] + 1, NULL), COFFER_OK);
    assert_int_equal(found, blocks);
    assert_int_equal(coffer_mlyze_block_of_time(&found, trace, 0, NULL), COFFER_OK);
    assert_int_equal(found, 0);
    trace_columns_free(&all);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&t);
}

static void the_block_of_an_event_and_of_a_time_is_found(void **state)
{
    (void)state;
    assert_finds_events_and_times(0);
    assert_finds_events_and_times(COMPRESSED);
}

/* ---- Oddities ---- */

static void an_event_larger_than_a_block_is_one_piece_of_a_plain_trace(void **state)
{
    const size_t large = 200000;
    uint8_t *body = calloc(large, 1);
    trace_builder t;
    (void)state;
    trace_begin(&t, COFFER__MLYZE_FLAG_EXTENSIONS, NULL);
    trace_marker(&t, 1, 0);
    trace_extension(&t, 5, 99, body, large);
    trace_marker(&t, 2, 1);
    trace_finish(&t);
    coffer_source *src = trace_source(&t);
    coffer_mlyze *trace = trace_open(src, NULL);
    coffer_mlyze_events all = trace_read_all(trace);
    assert_int_equal(all.count, 3);
    assert_int_equal(all.size[1], large);
    assert_int_equal(all.time[2], 8);
    assert_int_equal(coffer_mlyze_damage(trace, NULL), COFFER_OK);
    trace_columns_free(&all);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    t.file.len -= large / 2; /* cuts the large one */
    src = trace_source(&t);
    trace = trace_open(src, NULL);
    all = trace_read_all(trace);
    assert_int_equal(all.count, 1);
    assert_int_equal(coffer_mlyze_damage(trace, NULL), COFFER_E_TRUNCATED);
    trace_columns_free(&all);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&t);
    free(body);
}

static void more_blocks_than_the_limit_allows_end_the_events(void **state)
{
    coffer_mlyze_open_opts opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_mlyze *trace = NULL;
    uint64_t events = 0;
    trace_builder t;
    (void)state;
    trace_sample(&t, COMPRESSED, 200, 20);
    coffer_source *src = trace_source(&t);
    limits.entries = 4;
    opts.limits = &limits;
    assert_int_equal(coffer_mlyze_open(&trace, src, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_event_count(&events, trace, NULL), COFFER_OK);
    assert_int_equal(events, 80);
    assert_int_equal(coffer_mlyze_damage(trace, NULL), COFFER_E_LIMIT);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compressed_and_plain_traces_hold_the_same_events),
        cmocka_unit_test(a_compressed_trace_cut_at_any_byte_reads_up_to_the_cut),
        cmocka_unit_test(a_plain_trace_cut_at_any_byte_reads_up_to_the_cut_event),
        cmocka_unit_test(a_header_that_cannot_be_one_ends_the_blocks),
        cmocka_unit_test(a_damaged_block_is_lost_alone),
        cmocka_unit_test(bytes_that_do_not_decompress_are_a_lost_block),
        cmocka_unit_test(the_block_of_an_event_and_of_a_time_is_found),
        cmocka_unit_test(an_event_larger_than_a_block_is_one_piece_of_a_plain_trace),
        cmocka_unit_test(more_blocks_than_the_limit_allows_end_the_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
