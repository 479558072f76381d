/* A compressed trace that is cut anywhere: every complete event before the cut is read and counted. */
#include "formats/mlyze/mlyze_private.h"
#include "support/trace.h"

#include <lz4.h>
#include <stdio.h>
#include <string.h>

enum { EVENTS = 600, PER_BLOCK = 200, FLAGS = COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_CHECKSUMS };

/* ---- LZ4 ---- */

static size_t pack(uint8_t *out, size_t room, const uint8_t *in, size_t len)
{
    int packed = LZ4_compress_default((const char *)in, (char *)out, (int)len, (int)room);
    assert_true(packed > 0);
    return (size_t)packed;
}

static void every_piece_of_an_lz4_block_gives_the_beginning_of_its_content(void **state)
{
    uint8_t content[4000], packed[LZ4_COMPRESSBOUND(sizeof content)], out[sizeof content];
    size_t before = 0, len;
    (void)state;
    for (size_t i = 0; i < sizeof content; i++)
        content[i] = (uint8_t)(i < 600 ? i * i >> 3 : i % 700 < 400 ? content[i - 600] : 7);
    len = pack(packed, sizeof packed, content, sizeof content);
    for (size_t cut = 0; cut <= len; cut++) {
        size_t given = coffer__mlyze_lz4_prefix(out, sizeof out, packed, cut);
        assert_true(given >= before);
        assert_memory_equal(out, content, given);
        before = given;
    }
    assert_int_equal(before, sizeof content);
}

static void an_invalid_lz4_block_fails_at_once_within_its_memory(void **state)
{
    static const struct {
        uint8_t bytes[6];
        size_t len, given;
    } cases[] = {
        { { 0x00, 0x00, 0x00 }, 3, 0 },             /* a match 0 bytes back */
        { { 0x10, 'a', 0x02, 0x00 }, 4, 1 },        /* before the first byte */
        { { 0x10, 'a', 0x01 }, 3, 1 },              /* half an offset */
        { { 0xf0, 0xff }, 2, 0 },                   /* a length without an end */
        { { 0x1f, 'a', 0x01, 0x00, 0xff }, 5, 1 },  /* the same of a match */
        { { 0x1f, 'a', 0x01, 0x00, 0x80 }, 5, 16 }, /* longer than the room */
        { { 0xf0, 0x10, 'a', 'b' }, 4, 2 },         /* literals that are not all there */
    };
    uint8_t out[17];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(out, 0x55, sizeof out);
        assert_int_equal(coffer__mlyze_lz4_prefix(out, 16, cases[i].bytes, cases[i].len), cases[i].given);
        assert_int_equal(out[16], 0x55);
    }
}

/* ---- Traces ---- */

static void same_beginning(const coffer_mlyze_events *part, const coffer_mlyze_events *whole)
{
    assert_true(part->count <= whole->count);
    for (size_t i = 0; i < part->count; i++) {
        assert_int_equal(part->type[i], whole->type[i]);
        assert_int_equal(part->time[i], whole->time[i]);
        assert_int_equal(part->address[i], whole->address[i]);
        assert_int_equal(part->size[i], whole->size[i]);
        assert_int_equal(part->id[i], whole->id[i]);
        assert_int_equal(part->thread[i], whole->thread[i]);
    }
}

static coffer_mlyze_events read_bytes(const uint8_t *bytes, size_t len, coffer_error *damage)
{
    coffer_source *src = NULL;
    assert_int_equal(coffer_source_from_memory(&src, bytes, len, NULL), COFFER_OK);
    coffer_mlyze *trace = trace_open(src, NULL);
    coffer_mlyze_events all = trace_read_all(trace);
    uint64_t count = 0;
    assert_int_equal(coffer_mlyze_event_count(&count, trace, NULL), COFFER_OK);
    assert_int_equal(count, all.count);
    coffer_status status = coffer_mlyze_damage(trace, damage);
    assert_int_equal(status, damage->status);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    return all;
}

static void cut_everywhere(trace_builder *made)
{
    coffer_error none = COFFER_ERROR_INIT;
    coffer_mlyze_events whole = read_bytes(made->file.data, made->file.len, &none);
    size_t before = 0, in_cut_blocks = 0;
    assert_int_equal(none.status, COFFER_OK);
    for (size_t len = made->area; len < made->file.len; len++) {
        coffer_error damage = COFFER_ERROR_INIT;
        coffer_mlyze_events all = read_bytes(made->file.data, len, &damage);
        char said[64];
        snprintf(said, sizeof said, "%zu whole events", all.count);
        same_beginning(&all, &whole);
        assert_true(all.count >= before);
        assert_int_equal(damage.status, COFFER_E_TRUNCATED);
        assert_non_null(strstr(damage.text, said));
        in_cut_blocks += strstr(damage.text, "unverified") != NULL;
        before = all.count;
        trace_columns_free(&all);
    }
    assert_true(before > EVENTS - PER_BLOCK / 10);
    assert_true(in_cut_blocks > (made->file.len - made->area) / 2);
    trace_columns_free(&whole);
}

static void a_trace_cut_at_any_byte_has_every_whole_event_before_the_cut(void **state)
{
    trace_builder made;
    (void)state;
    trace_sample(&made, FLAGS, EVENTS, PER_BLOCK);
    trace_finish(&made);
    cut_everywhere(&made);
    trace_dispose(&made);
}

static void a_block_without_compression_may_be_cut_as_well(void **state)
{
    trace_builder made;
    (void)state;
    trace_begin(&made, FLAGS, NULL);
    for (uint64_t i = 0; i < EVENTS; i++) {
        trace_alloc(&made, i % 3, 16 + 16 * i, i, i % 2, (uint16_t)i);
        if (i % PER_BLOCK == PER_BLOCK - 1)
            trace_end_block(&made, false);
    }
    trace_finish(&made);
    cut_everywhere(&made);
    trace_dispose(&made);
}

/* A header that claims more bytes than the file has, before bytes that are not events. */
static void a_cut_block_of_nonsense_has_no_events(void **state)
{
    trace_builder made;
    coffer_error damage = COFFER_ERROR_INIT;
    (void)state;
    trace_sample(&made, FLAGS, EVENTS, PER_BLOCK);
    trace_finish(&made);
    uint8_t *content = made.file.data + made.area + COFFER__MLYZE_BLOCK_HEADER;
    memset(content, 0xff, 40);
    coffer_mlyze_events all =
        read_bytes(made.file.data, made.area + COFFER__MLYZE_BLOCK_HEADER + 40, &damage);
    assert_int_equal(all.count, 0);
    assert_non_null(strstr(damage.text, "(0 whole events before it)"));
    trace_columns_free(&all);
    trace_dispose(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_piece_of_an_lz4_block_gives_the_beginning_of_its_content),
        cmocka_unit_test(an_invalid_lz4_block_fails_at_once_within_its_memory),
        cmocka_unit_test(a_trace_cut_at_any_byte_has_every_whole_event_before_the_cut),
        cmocka_unit_test(a_block_without_compression_may_be_cut_as_well),
        cmocka_unit_test(a_cut_block_of_nonsense_has_no_events),
    };
    return cmocka_run_group_tests_name("mlyze_cut", tests, NULL, NULL);
}
