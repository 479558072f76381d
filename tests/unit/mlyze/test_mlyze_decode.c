/* From bytes to columns. */
#include "support/trace.h"

#include "base/bytes.h"
#include "base/cpu.h"
#include "base/cursor.h"
#include "formats/mlyze/read/mlyze_blocks.h"
#include "formats/mlyze/read/mlyze_decode.h"

#include <stdlib.h>
#include <string.h>

typedef coffer__mlyze_stop decode_function(coffer__mlyze_decoder *decoder);

typedef struct result {
    coffer_mlyze_events events;
    coffer__mlyze_decoder decoder;
    coffer__mlyze_stop stop;
} result;

/* From a copy that ends where the bytes do, so that a read past them is seen. */
static void run(result *to, decode_function *decode, const uint8_t *bytes, size_t len, bool extensions,
                uint64_t time)
{
    uint8_t *copy = malloc(len ? len : 1);
    memcpy(copy, bytes, len);
    to->events = (coffer_mlyze_events)COFFER_MLYZE_EVENTS_INIT;
    assert_int_equal(coffer__mlyze_events_reserve(&to->events, NULL), COFFER_OK);
    to->decoder = (coffer__mlyze_decoder){
        .at = copy, .end = copy + len, .time = time, .extensions = extensions, .out = &to->events
    };
    to->stop = decode(&to->decoder);
    to->decoder.at = bytes + (to->decoder.at - copy);
    free(copy);
}

static void assert_same(const result *a, const result *b)
{
    size_t count = a->events.count;
    assert_int_equal(a->stop, b->stop);
    assert_ptr_equal(a->decoder.at, b->decoder.at);
    assert_int_equal(count, b->events.count);
    assert_int_equal(a->decoder.time, b->decoder.time);
    assert_memory_equal(a->events.time, b->events.time, count * sizeof(uint64_t));
    assert_memory_equal(a->events.address, b->events.address, count * sizeof(uint64_t));
    assert_memory_equal(a->events.size, b->events.size, count * sizeof(uint64_t));
    assert_memory_equal(a->events.id, b->events.id, count * sizeof(uint64_t));
    assert_memory_equal(a->events.thread, b->events.thread, count * sizeof(uint16_t));
    assert_memory_equal(a->events.type, b->events.type, count);
}

static coffer__mlyze_stop decode_generic_only(coffer__mlyze_decoder *decoder)
{
    coffer__mlyze_decode_generic(decoder);
    return coffer__mlyze_decode_with_care(decoder);
}

static void assert_all_ways_agree(const uint8_t *bytes, size_t len, bool extensions, uint64_t time)
{
    result slow, fast, generic;
    run(&slow, coffer__mlyze_decode_with_care, bytes, len, extensions, time);
    run(&fast, coffer__mlyze_decode_events, bytes, len, extensions, time);
    assert_same(&slow, &fast);
    if (slow.stop != COFFER__MLYZE_STOP_TIME) {
        run(&generic, decode_generic_only, bytes, len, extensions, time);
        assert_same(&slow, &generic);
        coffer_mlyze_events_free(&generic.events);
    }
    coffer_mlyze_events_free(&slow.events);
    coffer_mlyze_events_free(&fast.events);
}

static uint64_t any_number(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    uint64_t value = *random ^ *random >> 29;
    return value >> (*random >> 58);
}

static void the_fast_ways_decode_what_the_careful_one_does(void **state)
{
    uint64_t random = 1;
    (void)state;
    for (int round = 0; round < 200; round++) {
        trace_builder t;
        trace_begin(&t, COFFER__MLYZE_FLAG_EXTENSIONS, "{}");
        for (int i = 0; i < 300; i++) {
            uint64_t kind = any_number(&random) % 16;
            uint64_t delta = round % 2 ? any_number(&random) >> 20 : any_number(&random) % 200;
            uint8_t body[24];
            if (kind < 7)
                trace_alloc(&t, delta, any_number(&random), any_number(&random),
                            round % 3 ? any_number(&random) % 100000 : any_number(&random), (uint16_t)random);
            else if (kind < 13)
                trace_free(&t, delta, any_number(&random));
            else if (kind == 13)
                trace_gc(&t, delta, any_number(&random), any_number(&random));
            else if (kind == 14)
                trace_marker(&t, delta, any_number(&random));
            else {
                memset(body, (int)(random & 0x7F), sizeof body);
                trace_extension(&t, delta, (uint8_t)(9 + random % 100), body, random % sizeof body);
            }
        }
        trace_finish(&t);
        assert_all_ways_agree(t.file.data + t.area, t.file.len - t.area, true, 0);
        trace_dispose(&t);
    }
}

static void any_bytes_stop_every_way_at_the_same_place(void **state)
{
    uint8_t bytes[400];
    uint64_t random = 7;
    (void)state;
    for (int round = 0; round < 3000; round++) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = any_number(&random) % 4 ? (uint8_t)(any_number(&random) % 3) : (uint8_t)random;
        assert_all_ways_agree(bytes, sizeof bytes - (size_t)round % 64, round % 2, 0);
    }
}

static void every_type_fills_its_columns(void **state)
{
    uint8_t object[] = { 1, 0, 0, 0, 0, 0, 0, 0x80, 0x81, 1, 0x90, 3 };
    uint8_t reference[] = { 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 5 };
    trace_builder t;
    result r;
    (void)state;
    trace_begin(&t, COFFER__MLYZE_FLAG_EXTENSIONS, "{}");
    trace_alloc(&t, 3, UINT64_C(0xfedcba9876543210), 1000, 77, 65535);
    trace_free(&t, 0, 16);
    trace_gc(&t, 300, 5, 6000);
    trace_marker(&t, 1, 9);
    trace_extension(&t, 1, COFFER_MLYZE_OBJECT, object, sizeof object - 2); /* its size is optional */
    trace_extension(&t, 0, COFFER_MLYZE_OBJECT, object, sizeof object);
    trace_extension(&t, 1, COFFER_MLYZE_REFERENCE, reference, sizeof reference);
    trace_extension(&t, 1, COFFER_MLYZE_SNAPSHOT, "\1\7", 2);
    trace_extension(&t, 1, COFFER_MLYZE_THREAD, "\2\1\3", 3);
    trace_extension(&t, 1, COFFER_MLYZE_RSS, "\x80\1+later", 8);
    trace_extension(&t, 1, 77, "abc", 3);
    trace_finish(&t);
    run(&r, coffer__mlyze_decode_events, t.file.data + t.area, t.file.len - t.area, true, 100);
    assert_int_equal(r.stop, COFFER__MLYZE_STOP_END);
    assert_int_equal(r.events.count, 11);
    static const struct {
        uint64_t time, address, size, id;
        uint16_t thread;
        uint8_t type;
    } expected[11] = {
        { 103, UINT64_C(0xfedcba9876543210), 1000, 77, 65535, COFFER_MLYZE_ALLOC },
        { 103, 16, 0, 0, 0, COFFER_MLYZE_FREE },
        { 403, 0, 6000, 5, 0, COFFER_MLYZE_GC },
        { 404, 0, 0, 9, 0, COFFER_MLYZE_MARKER },
        { 405, UINT64_C(0x8000000000000001), 0, 129, 0, COFFER_MLYZE_OBJECT },
        { 405, UINT64_C(0x8000000000000001), 400, 129, 0, COFFER_MLYZE_OBJECT },
        { 406, 1, 2, 5, 0, COFFER_MLYZE_REFERENCE },
        { 407, 0, 1, 7, 0, COFFER_MLYZE_SNAPSHOT },
        { 408, 0, 0, 3, 258, COFFER_MLYZE_THREAD },
        { 409, 0, 128, 0, 0, COFFER_MLYZE_RSS },
        { 410, 0, 3, 0, 0, 77 },
    };
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(r.events.time[i], expected[i].time);
        assert_int_equal(r.events.address[i], expected[i].address);
        assert_int_equal(r.events.size[i], expected[i].size);
        assert_int_equal(r.events.id[i], expected[i].id);
        assert_int_equal(r.events.thread[i], expected[i].thread);
        assert_int_equal(r.events.type[i], expected[i].type);
    }
    coffer_mlyze_events_free(&r.events);
    trace_dispose(&t);
}

static void assert_stops(const char *bytes, size_t len, bool extensions, uint64_t time,
                         coffer__mlyze_stop expected)
{
    result r;
    run(&r, coffer__mlyze_decode_events, (const uint8_t *)bytes, len, extensions, time);
    assert_int_equal(r.stop, expected);
    if (expected != COFFER__MLYZE_STOP_END)
        assert_ptr_equal(r.decoder.at, bytes);
    coffer_mlyze_events_free(&r.events);
    assert_all_ways_agree((const uint8_t *)bytes, len, extensions, time);
}

#define BYTES(text) text, sizeof(text) - 1

static void an_invalid_event_ends_the_reading_at_its_start(void **state)
{
    (void)state;
    assert_stops(BYTES("\4\0\0"), false, 0, COFFER__MLYZE_STOP_TYPE);
    assert_stops(BYTES("\xff\0\0"), false, 0, COFFER__MLYZE_STOP_TYPE);
    assert_stops(BYTES("\xff\0\0"), true, 0, COFFER__MLYZE_STOP_END);
    assert_stops(BYTES("\x09\0\3ab"), true, 0, COFFER__MLYZE_STOP_TRUNCATED);
    assert_stops(BYTES("\x09\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"), true, 0,
                 COFFER__MLYZE_STOP_TRUNCATED);
    assert_stops(BYTES("\4\0\3abc"), true, 0, COFFER__MLYZE_STOP_BODY);
    assert_stops(BYTES("\6\0\2\2\0"), true, 0, COFFER__MLYZE_STOP_BODY);
    assert_stops(BYTES("\10\0\0"), true, 0, COFFER__MLYZE_STOP_BODY);
    assert_stops(BYTES("\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\2\0"), false, 0, COFFER__MLYZE_STOP_VARINT);
    assert_stops(BYTES("\3\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\0\0"), false, 0,
                 COFFER__MLYZE_STOP_VARINT);
    assert_stops(BYTES("\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\0"), false, 0, COFFER__MLYZE_STOP_END);
    assert_stops(BYTES("\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\0"), false, 1, COFFER__MLYZE_STOP_TIME);
    assert_stops(BYTES("\1\5\0\0\0\0\0\0\0\0"
                       "01234567890123456789012345678901234567890123456789"),
                 false, UINT64_MAX - 4, COFFER__MLYZE_STOP_TIME);
}

static void an_event_that_is_cut_anywhere_is_truncated(void **state)
{
    trace_builder t;
    (void)state;
    trace_begin(&t, 0, "{}");
    trace_alloc(&t, 300, 16, 3000, 200, 1);
    for (size_t len = 1; len < t.file.len - t.area; len++)
        assert_stops((const char *)t.file.data + t.area, len, false, 0, COFFER__MLYZE_STOP_TRUNCATED);
    trace_dispose(&t);
}

static void over_long_numbers_are_taken_and_counted(void **state)
{
    static const char bytes[] = "\3\0\1\3\x80\0\x81\x80\0\3\0\x80\1";
    result r;
    (void)state;
    run(&r, coffer__mlyze_decode_with_care, (const uint8_t *)bytes, sizeof bytes - 1, false, 0);
    assert_int_equal(r.stop, COFFER__MLYZE_STOP_END);
    assert_int_equal(r.events.count, 3);
    assert_int_equal(r.events.id[1], 1);
    assert_int_equal(r.decoder.overlong, 2);
    assert_int_equal(r.decoder.first_overlong, 1);
    coffer_mlyze_events_free(&r.events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fast_ways_decode_what_the_careful_one_does),
        cmocka_unit_test(any_bytes_stop_every_way_at_the_same_place),
        cmocka_unit_test(every_type_fills_its_columns),
        cmocka_unit_test(an_invalid_event_ends_the_reading_at_its_start),
        cmocka_unit_test(an_event_that_is_cut_anywhere_is_truncated),
        cmocka_unit_test(over_long_numbers_are_taken_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
