/* Archive blocks and compact tables: the same events, names and answers in a fraction of the bytes. */
#include "formats/mlyze/mlyze_private.h"
#include "support/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { EVENTS = 600000 }; /* three blocks */

static coffer_mlyze_writer *create(const char *path, bool archive)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    coffer_mlyze_writer *writer = NULL;
    opts.overwrite = opts.no_index = true;
    opts.archive = archive;
    assert_int_equal(coffer_mlyze_writer_create(&writer, path, &opts, NULL), COFFER_OK);
    return writer;
}

static uint64_t add_stacks(coffer_mlyze_writer *writer, uint64_t count)
{
    coffer_mlyze_frame frame = { 0 };
    uint64_t stack = 0;
    for (uint64_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "function %llu", (unsigned long long)i);
        assert_int_equal(coffer_mlyze_writer_add_file(&frame.file_id, writer, "a.c", NULL), COFFER_OK);
        assert_int_equal(coffer_mlyze_writer_add_function(&frame.func_id, writer, name, NULL), COFFER_OK);
        frame.line = i;
        assert_int_equal(coffer_mlyze_writer_add_call(&stack, writer, i % 50 ? stack : COFFER_MLYZE_NO_STACK,
                                                      &frame, NULL),
                         COFFER_OK);
    }
    return stack;
}

/* Blocks of many sizes with short and long lives, addresses that are given out again, and what goes wrong in
 * real traces: address 0, a free of what is not live, an allocation at a live address. */
static void write_events(coffer_mlyze_writer *writer)
{
    static uint64_t live[4096];
    uint64_t random = 1, next = 0x1000, freed = 0;
    memset(live, 0, sizeof live);
    for (uint64_t i = 0; i < EVENTS; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint64_t *slot = &live[(random >> 40) % ((random >> 33) % 8 ? 64 : 4096)];
        uint64_t address = 0;
        coffer_status status;
        if (i % 10007 == 0)
            status = coffer_mlyze_writer_put_marker(writer, i / 3, 1, NULL);
        else if (i % 20011 == 0)
            status = coffer_mlyze_writer_put_free(writer, i / 3, 0x77 + 16 * i, NULL);
        else if (*slot && random >> 63) {
            status = coffer_mlyze_writer_put_free(writer, i / 3, *slot, NULL);
            freed = *slot;
            *slot = 0;
        } else {
            address = i % 5003 == 0 ? 0 : i % 7001 == 0 ? *slot : freed ? freed : (next += 48);
            freed = 0;
            *slot = address;
            status = coffer_mlyze_writer_put_alloc(writer, i / 3, address, random >> 32 & 127, i % 97,
                                                   (uint16_t)(i / 1000 % 3), NULL);
        }
        assert_int_equal(status, COFFER_OK);
    }
}

static void write_trace(const char *path, bool archive)
{
    coffer_mlyze_writer *writer = create(path, archive);
    coffer_error err = COFFER_ERROR_INIT;
    add_stacks(writer, 300);
    write_events(writer);
    if (coffer_mlyze_writer_commit(writer, &err))
        fail_msg("%s", err.text);
}

static coffer_mlyze *open_path(const char *path)
{
    coffer_mlyze *trace = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_mlyze_open_path(&trace, path, NULL, &err))
        fail_msg("%s", err.text);
    return trace;
}

static size_t block_count(const coffer_mlyze *trace)
{
    size_t count = 0;
    assert_int_equal(coffer_mlyze_block_count(&count, trace, NULL), COFFER_OK);
    return count;
}

static void assert_same_rows(const coffer_mlyze_events *all, const coffer_mlyze_events *some)
{
    size_t from = (size_t)some->first, count = some->count;
    assert_memory_equal(all->time + from, some->time, count * sizeof *some->time);
    assert_memory_equal(all->address + from, some->address, count * sizeof *some->address);
    assert_memory_equal(all->size + from, some->size, count * sizeof *some->size);
    assert_memory_equal(all->id + from, some->id, count * sizeof *some->id);
    assert_memory_equal(all->thread + from, some->thread, count * sizeof *some->thread);
    assert_memory_equal(all->type + from, some->type, count);
}

static void the_blocks_of_an_archive_have_the_same_events_in_any_order(void **state)
{
    const char *lz4 = temp_path(temp_folder, "lz4.mlyze"), *path = temp_path(temp_folder, "a.mlyze");
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    (void)state;
    write_trace(lz4, false);
    write_trace(path, true);
    coffer_mlyze *one = open_path(lz4), *two = open_path(path);
    coffer_mlyze_events all = trace_read_all(one);
    assert_string_equal(coffer_mlyze_form(one), "lz4");
    assert_string_equal(coffer_mlyze_form(two), "archive");
    assert_int_equal(block_count(two), 3);
    for (size_t i = block_count(two); i > 0; i--) {
        assert_int_equal(coffer_mlyze_read_block(&events, two, i - 1, NULL), COFFER_OK);
        assert_same_rows(&all, &events);
    }
    assert_int_equal(events.first, 0);
    coffer_mlyze_events_free(&events);
    trace_columns_free(&all);
    coffer_mlyze_close(one);
    coffer_mlyze_close(two);
    assert_int_equal(trace_whole_events(path), EVENTS);
}

static void archives_and_blocks_turn_into_each_other_byte_for_byte(void **state)
{
    const char *lz4 = temp_path(temp_folder, "lz4.mlyze"), *path = temp_path(temp_folder, "a.mlyze");
    const char *other = temp_path(temp_folder, "other.mlyze");
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    size_t len;
    (void)state;
    opts.overwrite = opts.no_index = true;
    for (int archive = 0; archive < 2; archive++) {
        coffer_mlyze *trace = open_path(archive ? lz4 : path);
        opts.archive = archive;
        assert_int_equal(coffer_mlyze_rewrite(trace, other, &opts, NULL), COFFER_OK);
        coffer_mlyze_close(trace);
        uint8_t *bytes = temp_read(archive ? path : lz4, &len);
        assert_true(temp_holds(other, bytes, len));
        free(bytes);
    }
}

/* ---- Damage ---- */

static uint64_t lost_after_repair(const uint8_t *bytes, size_t len, const char *saved)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    opts.overwrite = true;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_source_from_memory(&src, bytes, len, NULL), COFFER_OK);
    if (coffer__mlyze_repair(report, src, saved, &opts, &err))
        fail_msg("%s", err.text);
    coffer_report_free(report);
    coffer_source_close(src);
    int64_t left = trace_whole_events(saved);
    assert_true(left >= 0);
    return EVENTS - (uint64_t)left;
}

static void a_damaged_block_of_an_archive_loses_its_events_and_no_others(void **state)
{
    const char *path = temp_path(temp_folder, "a.mlyze"), *saved = temp_path(temp_folder, "saved.mlyze");
    coffer_mlyze_stats *stats = NULL;
    size_t len;
    (void)state;
    coffer_mlyze *trace = open_path(path);
    coffer_mlyze_block middle = trace_block(trace, 1);
    coffer_mlyze_close(trace);
    uint8_t *bytes = temp_read(path, &len);
    bytes[middle.offset + 1000] ^= 4;
    assert_int_equal(lost_after_repair(bytes, len, saved), middle.event_count);
    bytes[middle.offset] ^= 0xff; /* its header too: the next block is searched for */
    assert_int_equal(lost_after_repair(bytes, len, saved), middle.event_count);
    trace = open_path(saved);
    assert_string_equal(coffer_mlyze_form(trace), "archive");
    assert_int_equal(coffer_mlyze_stats_new(&stats, trace, NULL, NULL), COFFER_OK);
    const coffer_mlyze_totals *totals = coffer_mlyze_stats_totals(stats);
    assert_int_equal(totals->events, EVENTS - middle.event_count);
    assert_true(totals->unknown_frees > 0);
    coffer_mlyze_stats_free(stats);
    coffer_mlyze_close(trace);
    assert_int_equal(lost_after_repair(bytes, middle.offset, saved), EVENTS - middle.first_event);
    free(bytes);
}

static void damaged_tables_lose_names_and_no_events(void **state)
{
    const char *path = temp_path(temp_folder, "a.mlyze"), *saved = temp_path(temp_folder, "saved.mlyze");
    coffer_error err = COFFER_ERROR_INIT;
    size_t len;
    (void)state;
    uint8_t *bytes = temp_read(path, &len);
    memset(bytes + COFFER__MLYZE_HEADER_SIZE + 100, 0xff, 40);
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    opts.overwrite = true;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_source_from_memory(&src, bytes, len, NULL), COFFER_OK);
    assert_int_equal(coffer__mlyze_repair(report, src, saved, &opts, NULL), COFFER_OK);
    coffer_report_free(report);
    coffer_source_close(src);
    free(bytes);
    coffer_mlyze *trace = open_path(saved);
    uint64_t events = 0;
    assert_int_equal(coffer_mlyze_event_count(&events, trace, NULL), COFFER_OK);
    assert_int_equal(events, EVENTS);
    assert_int_equal(coffer_mlyze_stack_count(trace), 0);
    assert_int_equal(coffer_mlyze_repaired(trace, &err), COFFER_E_MISSING);
    coffer_mlyze_close(trace);
}

static uint64_t first_block(const char *path)
{
    coffer_mlyze *trace = open_path(path);
    uint64_t offset = trace_block(trace, 0).offset;
    coffer_mlyze_close(trace);
    return offset;
}

/* Corrects the checksum of a block that a test has changed. */
static void sum_block_again(uint8_t *bytes)
{
    coffer__mlyze_block block = { .raw_size = coffer__load_u32(bytes),
                                  .stored_size = coffer__load_u32(bytes + COFFER__MLYZE_BLOCK_STORED_AT),
                                  .event_count = coffer__load_u32(bytes + COFFER__MLYZE_BLOCK_COUNT_AT),
                                  .time = coffer__load_u64(bytes + COFFER__MLYZE_BLOCK_TIME_AT) };
    coffer__store_u32(bytes + COFFER__MLYZE_BLOCK_CRC_AT,
                      coffer__mlyze_block_sum(&block, bytes + COFFER__MLYZE_BLOCK_HEADER, true));
}

/* A free of an address that is not live, changed into that of a live block: reading is not affected, but an
 * analysis would not pair them. */
static void a_free_that_does_not_name_its_block_is_found(void **state)
{
    const char *path = temp_path(temp_folder, "small.mlyze");
    coffer_mlyze_writer *writer = create(path, true);
    size_t len, at;
    (void)state;
    add_stacks(writer, 1);
    assert_int_equal(coffer_mlyze_writer_put_alloc(writer, 1, 0x101, 5, 0, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_put_free(writer, 1, 0x123, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_commit(writer, NULL), COFFER_OK);
    assert_int_equal(trace_whole_events(path), 2);
    uint8_t *bytes = temp_read(path, &len);
    uint64_t offset = first_block(path);
    for (at = (size_t)offset; at + 1 < len && !(bytes[at] == 0xa3 && bytes[at + 1] == 0x02);)
        at++;
    assert_true(at + 1 < len);
    bytes[at] = 0x81; /* 0x101 */
    sum_block_again(bytes + offset);
    temp_write(path, bytes, len);
    free(bytes);
    assert_int_equal(trace_whole_events(path), -2);
}

static void wrong_numbers_of_allocations_are_found_and_cost_no_memory(void **state)
{
    const char *path = temp_path(temp_folder, "small.mlyze");
    coffer_mlyze_writer *writer = create(path, true);
    coffer_mlyze_stats *stats = NULL;
    size_t len;
    (void)state;
    add_stacks(writer, 1);
    assert_int_equal(coffer_mlyze_writer_put_alloc(writer, 1, 0x100, 5, 0, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_put_free(writer, 1, 0x100, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_commit(writer, NULL), COFFER_OK);
    assert_int_equal(trace_whole_events(path), 2);
    uint8_t *bytes = temp_read(path, &len);
    uint8_t *block = bytes + first_block(path);
    coffer__store_u64(block + COFFER__MLYZE_BLOCK_HEADER + COFFER__MLYZE_ARCHIVE_FIRST_AT, UINT64_C(1) << 60);
    sum_block_again(block);
    temp_write(path, bytes, len);
    free(bytes);
    assert_int_equal(trace_whole_events(path), -2);
    coffer_mlyze *trace = open_path(path);
    assert_int_equal(coffer_mlyze_stats_new(&stats, trace, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_stats_totals(stats)->events, 2);
    assert_int_equal(coffer_mlyze_stats_totals(stats)->live_allocs_at_end, 0);
    coffer_mlyze_stats_free(stats);
    coffer_mlyze_close(trace);
}

/* ---- Tables ---- */

static void compact_tables_give_the_text_of_a_plain_trace(void **state)
{
    const char *packed = temp_path(temp_folder, "t.mlyze"), *plain = temp_path(temp_folder, "p.mlyze");
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    size_t len, other_len;
    (void)state;
    coffer_mlyze_writer *writer = create(packed, false);
    for (uint64_t i = 0, last = add_stacks(writer, 1000); i <= last; i++)
        assert_int_equal(coffer_mlyze_writer_put_alloc(writer, i, 0, 1, i, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_commit(writer, NULL), COFFER_OK);
    coffer_mlyze *trace = open_path(packed);
    opts.plain = opts.no_checksums = true;
    assert_int_equal(coffer_mlyze_rewrite(trace, plain, &opts, NULL), COFFER_OK);
    coffer_mlyze *other = open_path(plain);
    assert_true(coffer_mlyze_flags(trace) & COFFER__MLYZE_FLAG_TABLES);
    const char *text = coffer_mlyze_metadata(trace, &len);
    const char *other_text = coffer_mlyze_metadata(other, &other_len);
    assert_int_equal(len, other_len);
    assert_memory_equal(text, other_text, len);
    assert_int_equal(coffer_mlyze_stack_count(trace), 1000);
    for (size_t i = 0; i < 1000; i++) {
        size_t depth, other_depth;
        const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, trace, i);
        const coffer_mlyze_frame *other_frames = coffer_mlyze_frames(&other_depth, other, i);
        assert_int_equal(depth, other_depth);
        assert_memory_equal(frames, other_frames, depth * sizeof *frames);
    }
    size_t packed_len;
    free(temp_read(packed, &packed_len));
    assert_true(packed_len < len / 10);
    coffer_mlyze_close(other);
    coffer_mlyze_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_blocks_of_an_archive_have_the_same_events_in_any_order),
        cmocka_unit_test(archives_and_blocks_turn_into_each_other_byte_for_byte),
        cmocka_unit_test(a_damaged_block_of_an_archive_loses_its_events_and_no_others),
        cmocka_unit_test(damaged_tables_lose_names_and_no_events),
        cmocka_unit_test(a_free_that_does_not_name_its_block_is_found),
        cmocka_unit_test(wrong_numbers_of_allocations_are_found_and_cost_no_memory),
        cmocka_unit_test(compact_tables_give_the_text_of_a_plain_trace),
    };
    return cmocka_run_group_tests_name("mlyze_archive", tests, temp_setup, temp_teardown);
}
