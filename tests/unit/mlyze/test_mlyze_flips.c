/* No single flipped bit of a trace that Coffer writes passes a check, and no repair hides one. */
#include "support/trace.h"

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A small trace with every kind of event, two blocks of stacks, a marker and a collection. */
static uint8_t *write_small(size_t *len, coffer_mlyze_writer_opts opts, uint64_t events)
{
    const char *path = temp_path(temp_folder, "small.mlyze");
    coffer_mlyze_writer *writer = NULL;
    coffer_mlyze_frame frame = { 0, 3, 0 };
    uint64_t outer, inner, name;
    opts.overwrite = opts.no_index = true;
    opts.start_time_us = 1700000000000000;
    opts.extra_json = "{\"command\":\"run\"}";
    assert_int_equal(coffer_mlyze_writer_create(&writer, path, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_add_file(&frame.file_id, writer, "a.c", NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_add_function(&frame.func_id, writer, "main", NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_add_call(&outer, writer, COFFER_MLYZE_NO_STACK, &frame, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_add_function(&frame.func_id, writer, "leaf", NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_add_call(&inner, writer, outer, &frame, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_add_function(&name, writer, "mark", NULL), COFFER_OK);
    for (uint64_t i = 0; i < events; i++) {
        uint64_t address = 4096 + 64 * i;
        assert_int_equal(coffer_mlyze_writer_put_alloc(writer, 10 * i, address, 100 + i, inner, 1, NULL),
                         COFFER_OK);
        if (i % 2)
            assert_int_equal(coffer_mlyze_writer_put_free(writer, 10 * i + 1, address, NULL), COFFER_OK);
    }
    if (events) {
        assert_int_equal(coffer_mlyze_writer_put_marker(writer, 10 * events, name, NULL), COFFER_OK);
        assert_int_equal(coffer_mlyze_writer_put_gc(writer, 10 * events + 5, 7, 8, NULL), COFFER_OK);
    }
    assert_int_equal(coffer_mlyze_writer_commit(writer, NULL), COFFER_OK);
    return temp_read(path, len);
}

/* True when check finds an error. */
static bool is_bad(const uint8_t *bytes, size_t len)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    const coffer_format *format = coffer_format_by_name("mlyze");
    opts.full = true;
    assert_int_equal(coffer_source_from_memory(&src, bytes, len, NULL), COFFER_OK);
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_format_check(report, format, src, &opts, NULL), COFFER_OK);
    bool bad = coffer_report_total(report, COFFER_ERROR) > 0;
    coffer_report_free(report);
    coffer_source_close(src);
    return bad;
}

static void assert_no_flip_passes(coffer_mlyze_writer_opts opts, uint64_t events)
{
    size_t len = 0;
    uint8_t *bytes = write_small(&len, opts, events);
    assert_false(is_bad(bytes, len));
    for (size_t i = 0; i < 8 * len; i++) {
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        if (!is_bad(bytes, len))
            fail_msg("bit %zu of byte %zu may be flipped", i % 8, i / 8);
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    free(bytes);
}

static void no_flipped_bit_of_a_compressed_trace_passes(void **state)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    (void)state;
    assert_no_flip_passes(opts, 3);
    assert_no_flip_passes(opts, 1);
    assert_no_flip_passes(opts, 0);
}

static void no_flipped_bit_of_an_archive_passes(void **state)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    (void)state;
    opts.archive = true;
    assert_no_flip_passes(opts, 3);
    assert_no_flip_passes(opts, 0);
    opts.recording = true;
    assert_no_flip_passes(opts, 1);
}

static void no_flipped_bit_of_a_plain_trace_passes(void **state)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    (void)state;
    opts.plain = true;
    assert_no_flip_passes(opts, 3);
    assert_no_flip_passes(opts, 0);
    opts.recording = true;
    assert_no_flip_passes(opts, 3);
    opts.plain = false;
    assert_no_flip_passes(opts, 3);
}

static uint8_t *repair(size_t *out_len, const uint8_t *bytes, size_t len)
{
    const char *path = temp_path(temp_folder, "repaired.mlyze");
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    opts.overwrite = true;
    assert_int_equal(coffer_source_from_memory(&src, bytes, len, NULL), COFFER_OK);
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    coffer_status status =
        coffer_format_repair(report, coffer_format_by_name("mlyze"), src, path, &opts, NULL);
    coffer_report_free(report);
    coffer_source_close(src);
    return status ? NULL : temp_read(path, out_len);
}

static void assert_no_repair_hides(coffer_mlyze_writer_opts opts, uint64_t events)
{
    size_t len = 0;
    uint8_t *bytes = write_small(&len, opts, events);
    for (size_t i = 36; i < 8 * len;
         i += 9) { /* one bit of most bytes; without the magic it is not a trace */
        size_t repaired_len = 0;
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        uint8_t *repaired = repair(&repaired_len, bytes, len);
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        bool same = repaired && repaired_len == len && memcmp(repaired, bytes, len) == 0;
        if (repaired && !same && !is_bad(repaired, repaired_len))
            fail_msg("the repair of bit %zu of byte %zu is clean and different", i % 8, i / 8);
        free(repaired);
    }
    free(bytes);
}

static void no_repair_makes_damage_look_intact(void **state)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    (void)state;
    assert_no_repair_hides(opts, 4);
    opts.plain = true;
    assert_no_repair_hides(opts, 4);
}

static uint8_t *rewrite(size_t *out_len, const uint8_t *bytes, size_t len, bool plain)
{
    const char *path = temp_path(temp_folder, "rewritten.mlyze");
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_mlyze *trace = NULL;
    opts.plain = plain;
    opts.overwrite = opts.no_index = true;
    assert_int_equal(coffer_source_from_memory(&src, bytes, len, NULL), COFFER_OK);
    coffer_status status = coffer_mlyze_open(&trace, src, NULL, NULL);
    if (!status)
        status = coffer_mlyze_rewrite(trace, path, &opts, NULL);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    return status ? NULL : temp_read(path, out_len);
}

static void assert_no_rewrite_hides(coffer_mlyze_writer_opts opts, bool plain)
{
    size_t len = 0, good_len = 0;
    uint8_t *bytes = write_small(&len, opts, 2), *good = rewrite(&good_len, bytes, len, plain);
    assert_non_null(good);
    for (size_t i = 0; i < 8 * len; i += 9) {
        size_t other_len = 0;
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        uint8_t *other = rewrite(&other_len, bytes, len, plain);
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        bool same = other && other_len == good_len && memcmp(other, good, good_len) == 0;
        if (other && !same && !is_bad(other, other_len))
            fail_msg("a copy after a flip of bit %zu of byte %zu is clean and different", i % 8, i / 8);
        free(other);
    }
    free(bytes);
    free(good);
}

static void no_copy_makes_damage_look_intact(void **state)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    (void)state;
    assert_no_rewrite_hides(opts, true);
    opts.plain = true;
    assert_no_rewrite_hides(opts, false);
}

/* ---- Order of frames ---- */

static void assert_order(const trace_builder *made, coffer_mlyze_order wanted, uint64_t innermost,
                         bool is_known)
{
    coffer_mlyze_open_opts opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    coffer_source *src = trace_source(made);
    coffer_mlyze *trace = NULL;
    size_t depth = 0;
    bool known;
    opts.stack_order = wanted;
    assert_int_equal(coffer_mlyze_open(&trace, src, &opts, NULL), COFFER_OK);
    const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, trace, 0);
    assert_int_equal(depth, 2);
    assert_int_equal(frames[0].line, innermost);
    coffer_mlyze_stack_order(trace, &known);
    assert_int_equal(known, is_known);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
}

static void the_order_of_frames_is_that_of_the_writer(void **state)
{
    static const char compact[] =
        "{\"stack_traces\":{\"0\":[{\"file_id\":0,\"line\":1,\"func_id\":0},{\"file_id\":0,\"line\":2,\"func_"
        "id\":0}]},\"files\":{\"0\":\"a\"},\"functions\":{\"0\":\"f\"}}";
    static const char spaced[] =
        "{\"stack_traces\": {\"0\": [{\"file_id\": 0, \"line\": 1, \"func_id\": 0}, {\"file_id\": 0, "
        "\"line\": "
        "2, \"func_id\": 0}]}, \"files\": {\"0\": \"a\"}, \"functions\": {\"0\": \"f\"}}";
    static const char marked[] =
        "{\"stack_order\":\"innermost-first\",\"stack_traces\":{\"0\":[{\"file_id\":0,\"line\":1,\"func_id\":"
        "0},{\"file_id\":0,\"line\":2,\"func_id\":0}]}}";
    const uint32_t old =
        COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_CHECKSUMS | COFFER__MLYZE_FLAG_COMPLETE;
    const struct {
        uint32_t flags;
        const char *json;
        coffer_mlyze_order wanted;
        uint64_t innermost;
        bool known;
    } cases[] = {
        { 0, spaced, COFFER_MLYZE_ORDER_AUTO, 2, true },
        { 0, compact, COFFER_MLYZE_ORDER_AUTO, 2, false },
        { 0, compact, COFFER_MLYZE_ORDER_INNERMOST_FIRST, 1, true },
        { 0, marked, COFFER_MLYZE_ORDER_AUTO, 1, true },
        { 0, marked, COFFER_MLYZE_ORDER_OUTERMOST_FIRST, 1, true },
        { old, compact, COFFER_MLYZE_ORDER_AUTO, 1, true },
        { old, spaced, COFFER_MLYZE_ORDER_AUTO, 2, true }, /* another writer's, compressed by Coffer 0.1 */
        { old, marked, COFFER_MLYZE_ORDER_AUTO, 1, true },
        { old, compact, COFFER_MLYZE_ORDER_OUTERMOST_FIRST, 2, true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        trace_builder made;
        trace_begin(&made, cases[i].flags, cases[i].json);
        trace_alloc(&made, 1, 16, 1, 0, 1);
        trace_finish(&made);
        assert_order(&made, cases[i].wanted, cases[i].innermost, cases[i].known);
        trace_dispose(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_flipped_bit_of_a_compressed_trace_passes),
        cmocka_unit_test(no_flipped_bit_of_an_archive_passes),
        cmocka_unit_test(no_flipped_bit_of_a_plain_trace_passes),
        cmocka_unit_test(no_repair_makes_damage_look_intact),
        cmocka_unit_test(no_copy_makes_damage_look_intact),
        cmocka_unit_test(the_order_of_frames_is_that_of_the_writer),
    };
    return cmocka_run_group_tests_name("mlyze_flips", tests, temp_setup, temp_teardown);
}
