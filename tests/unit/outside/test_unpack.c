#include "outside/archives/unpack.h"
#include "support/temp.h"

#include <stdlib.h>
#include <string.h>

static const coffer__packing packings[] = { COFFER__PACKING_NONE, COFFER__PACKING_GZIP,
                                            COFFER__PACKING_ZSTD };

/* Packs in pieces of odd lengths. */
static void pack(coffer__buffer *out, coffer__packing packing, const uint8_t *bytes, size_t len)
{
    coffer__sink *sink = NULL;
    coffer__pack *to = NULL;
    assert_int_equal(coffer__sink_to_buffer(&sink, out, NULL), COFFER_OK);
    assert_int_equal(coffer__pack_open(&to, sink, packing, NULL), COFFER_OK);
    for (size_t at = 0; at < len;) {
        size_t some = (at % 7919) + 1 < len - at ? (at % 7919) + 1 : len - at;
        assert_int_equal(coffer__pack_write(to, bytes + at, some, NULL), COFFER_OK);
        at += some;
    }
    assert_int_equal(coffer__pack_finish(to, NULL), COFFER_OK);
    coffer__pack_close(to);
    assert_int_equal(coffer__sink_commit(sink, NULL), COFFER_OK);
}

static coffer_status unpack(coffer__buffer *out, const coffer__buffer *packed, uint64_t max,
                            const coffer_limits *limits, coffer_error *err)
{
    coffer_limits defaults = COFFER_LIMITS_INIT;
    coffer_source *src = NULL;
    assert_int_equal(coffer_source_from_memory(&src, packed->data, packed->len, NULL), COFFER_OK);
    coffer_status status = coffer__unpack_all(out, src, max, limits ? limits : &defaults, err);
    coffer_source_close(src);
    return status;
}

static uint8_t *noise(size_t len)
{
    uint8_t *bytes = malloc(len + 1);
    uint32_t random = 1;
    for (size_t i = 0; i < len; i++) {
        random = random * 1664525 + 1013904223;
        bytes[i] = (i / 5000) % 2 ? (uint8_t)(random >> 24) : 'a';
    }
    return bytes;
}

static void what_was_packed_comes_out_again(void **state)
{
    (void)state;
    static const size_t lengths[] = { 0, 1, 65536, 300001 };
    for (size_t p = 0; p < 3; p++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            coffer__buffer packed = COFFER__BUFFER_INIT, out = COFFER__BUFFER_INIT;
            uint8_t *bytes = noise(lengths[i]);
            pack(&packed, packings[p], bytes, lengths[i]);
            assert_int_equal(coffer__packing_of(packed.data, packed.len), packings[p]);
            assert_int_equal(unpack(&out, &packed, UINT64_MAX, NULL, NULL), COFFER_OK);
            assert_int_equal(out.len, lengths[i]);
            assert_memory_equal(coffer__buffer_text(&out), bytes, lengths[i]);
            coffer__buffer_free(&packed);
            coffer__buffer_free(&out);
            free(bytes);
        }
    }
}

static void several_members_are_one_text(void **state)
{
    (void)state;
    for (size_t p = 1; p < 3; p++) {
        coffer__buffer packed = COFFER__BUFFER_INIT, out = COFFER__BUFFER_INIT;
        pack(&packed, packings[p], (const uint8_t *)"hello ", 6);
        pack(&packed, packings[p], (const uint8_t *)"", 0);
        pack(&packed, packings[p], (const uint8_t *)"world", 5);
        assert_int_equal(unpack(&out, &packed, UINT64_MAX, NULL, NULL), COFFER_OK);
        assert_string_equal(coffer__buffer_text(&out), "hello world");
        coffer__buffer_free(&packed);
        coffer__buffer_free(&out);
    }
}

static void a_stream_that_is_cut_or_damaged_anywhere_is_refused(void **state)
{
    (void)state;
    for (size_t p = 1; p < 3; p++) {
        coffer__buffer packed = COFFER__BUFFER_INIT;
        uint8_t *bytes = noise(6000);
        pack(&packed, packings[p], bytes, 6000);
        size_t whole = packed.len;
        for (size_t len = 4; len < whole; len++) {
            coffer__buffer out = COFFER__BUFFER_INIT;
            packed.len = len;
            assert_int_equal(unpack(&out, &packed, UINT64_MAX, NULL, NULL), COFFER_E_TRUNCATED);
            coffer__buffer_free(&out);
        }
        packed.len = whole;
        for (size_t at = whole - 1; at > 30; at -= at > 100 ? 37 : 1) {
            coffer__buffer out = COFFER__BUFFER_INIT;
            packed.data[at] ^= 0x10;
            assert_int_not_equal(unpack(&out, &packed, UINT64_MAX, NULL, NULL), COFFER_OK);
            packed.data[at] ^= 0x10;
            coffer__buffer_free(&out);
        }
        coffer__buffer_free(&packed);
        free(bytes);
    }
}

static void bombs_stop_at_the_limit(void **state)
{
    (void)state;
    const size_t len = (size_t)1 << 24;
    uint8_t *zeros = calloc(1, len);
    for (size_t p = 1; p < 3; p++) {
        coffer__buffer packed = COFFER__BUFFER_INIT, out = COFFER__BUFFER_INIT;
        coffer_limits limits = COFFER_LIMITS_INIT;
        coffer_error err = COFFER_ERROR_INIT;
        pack(&packed, packings[p], zeros, len);
        assert_int_equal(unpack(&out, &packed, 1 << 20, NULL, &err), COFFER_E_LIMIT);
        assert_true(out.len < 1 << 21);
        out.len = 0;
        limits.unpacked_bytes = 1 << 20;
        coffer_status status = unpack(&out, &packed, UINT64_MAX, &limits, &err);
        assert_int_equal(status, COFFER_E_LIMIT);
        out.len = 0;
        limits.unpack_ratio = (uint32_t)(len / packed.len) + 1;
        assert_int_equal(unpack(&out, &packed, UINT64_MAX, &limits, &err), COFFER_OK);
        assert_int_equal(out.len, len);
        coffer__buffer_free(&packed);
        coffer__buffer_free(&out);
    }
    free(zeros);
}

static void the_beginning_can_be_looked_at(void **state)
{
    (void)state;
    for (size_t p = 0; p < 3; p++) {
        coffer__buffer packed = COFFER__BUFFER_INIT;
        coffer_source *src = NULL;
        uint8_t head[8];
        size_t got;
        pack(&packed, packings[p], (const uint8_t *)"massif", 6);
        assert_int_equal(coffer_source_from_memory(&src, packed.data, packed.len, NULL), COFFER_OK);
        assert_int_equal(coffer__unpack_head(head, sizeof head, &got, src, NULL), COFFER_OK);
        assert_int_equal(got, 6);
        assert_memory_equal(head, "massif", 6);
        coffer_source_close(src);
        coffer__buffer_free(&packed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_packed_comes_out_again),
        cmocka_unit_test(several_members_are_one_text),
        cmocka_unit_test(a_stream_that_is_cut_or_damaged_anywhere_is_refused),
        cmocka_unit_test(bombs_stop_at_the_limit),
        cmocka_unit_test(the_beginning_can_be_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
