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
        assert_true(coffer_mlyze_block_at(a, i).raw_size <= COFFER__MLYZE_BLOCK_RAW_MAX);
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

static void a_compressed_trace_cut_at_any_byte_reads_up_to_the_cut_block(void **state)
{
    (void)state;
    cut_everywhere(COMPRESSED);
}

static void a_plain_trace_cut_at_any_byte_reads_up_to_the_cut_event(void **state)
{
    (void)state;
    cut_everywhere(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compressed_and_plain_traces_hold_the_same_events),
        cmocka_unit_test(a_compressed_trace_cut_at_any_byte_reads_up_to_the_cut_block),
        cmocka_unit_test(a_plain_trace_cut_at_any_byte_reads_up_to_the_cut_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
