#include "io/chunk_sums.h"

#include "base/crc32.h"
#include "base/memory.h"
#include "support/temp.h"

#include <string.h>

enum { CHUNK = 1 << 20, SIZE = 3 * CHUNK + 17, LEAD = 100 };

static uint8_t *bytes; /* LEAD + SIZE + 50 */

static coffer_status read_at(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    (void)context;
    (void)err;
    memcpy(out, bytes + offset, len);
    return COFFER_OK;
}

static coffer_source *new_source(bool views)
{
    coffer_source_ops ops = { .struct_size = sizeof ops, .read_at = read_at };
    coffer_source *src = NULL;
    if (views)
        assert_int_equal(coffer_source_from_memory(&src, bytes, LEAD + SIZE + 50, NULL), COFFER_OK);
    else
        assert_int_equal(coffer_source_new(&src, &ops, NULL, LEAD + SIZE + 50, "calls", NULL), COFFER_OK);
    return src;
}

static int make_bytes(void **state)
{
    uint32_t random = 1;
    (void)state;
    bytes = coffer__malloc(LEAD + SIZE + 50);
    for (size_t i = 0; bytes && i < LEAD + SIZE + 50; i++) {
        random = random * 1103515245 + 12345;
        bytes[i] = (uint8_t)(random >> 16);
    }
    return bytes ? 0 : -1;
}

static int free_bytes(void **state)
{
    (void)state;
    coffer__free(bytes);
    return 0;
}

static coffer__chunk_sums compute(coffer_source *src, uint64_t size)
{
    coffer__chunk_sums sums = { 0 };
    assert_int_equal(coffer__chunk_sums_compute(&sums, src, LEAD, size, NULL, NULL), COFFER_OK);
    return sums;
}

static void each_chunk_has_its_crc(void **state)
{
    (void)state;
    for (int views = 0; views < 2; views++) {
        coffer_source *src = new_source(views);
        coffer__chunk_sums sums = compute(src, SIZE);
        assert_int_equal(sums.count, 4);
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(sums.sums[i], coffer__crc32(0, bytes + LEAD + i * CHUNK, CHUNK));
        assert_int_equal(sums.sums[3], coffer__crc32(0, bytes + LEAD + (size_t)3 * CHUNK, 17));
        coffer__chunk_sums_free(&sums);
        sums = compute(src, 0);
        assert_int_equal(sums.count, 0);
        coffer__chunk_sums_free(&sums);
        sums = compute(src, CHUNK);
        assert_int_equal(sums.count, 1);
        coffer__chunk_sums_free(&sums);
        coffer_source_close(src);
    }
}

static int note_last(void *context, uint64_t done, uint64_t total)
{
    uint64_t *last = context;
    last[0] = done;
    last[1] = total;
    return 0;
}

static void progress_is_in_bytes(void **state)
{
    uint64_t last[2] = { 0, 0 };
    coffer_progress progress = { .struct_size = sizeof progress, .step = note_last, .context = last };
    coffer__work_opts opts = { .progress = &progress };
    coffer__chunk_sums sums = { 0 };
    coffer_source *src = new_source(true);
    (void)state;
    assert_int_equal(coffer__chunk_sums_compute(&sums, src, LEAD, SIZE, &opts, NULL), COFFER_OK);
    assert_int_equal(last[0], 4 * CHUNK);
    assert_int_equal(last[1], 4 * CHUNK);
    coffer__chunk_sums_free(&sums);
    coffer_source_close(src);
}

static void a_range_outside_of_the_source_is_an_error(void **state)
{
    coffer_source *src = new_source(false);
    coffer__chunk_sums sums = { 0 };
    (void)state;
    assert_int_equal(coffer__chunk_sums_compute(&sums, src, 2 * LEAD, SIZE, NULL, NULL),
                     COFFER_E_OUT_OF_BOUNDS);
    assert_null(sums.sums);
    coffer_source_close(src);
}

static void sums_counted_while_writing_are_the_same(void **state)
{
    static const size_t steps[] = { 1000, CHUNK, CHUNK + 1, SIZE };
    coffer_source *src = new_source(true);
    coffer__chunk_sums sums = compute(src, SIZE);
    (void)state;
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
        coffer__chunk_counter counter = { 0 };
        for (size_t done = 0; done < SIZE; done += steps[s]) {
            size_t len = SIZE - done < steps[s] ? SIZE - done : steps[s];
            assert_int_equal(coffer__chunk_counter_add(&counter, bytes + LEAD + done, len, NULL), COFFER_OK);
        }
        assert_int_equal(coffer__chunk_counter_end(&counter, NULL), COFFER_OK);
        assert_int_equal(coffer__chunk_counter_end(&counter, NULL), COFFER_OK);
        assert_int_equal(counter.count, sums.count);
        assert_memory_equal(counter.sums, sums.sums, sums.count * sizeof *sums.sums);
        coffer__chunk_counter_free(&counter);
    }
    coffer__chunk_sums_free(&sums);
    coffer_source_close(src);
}

static void only_ranges_that_touch_a_damaged_chunk_fail(void **state)
{
    (void)state;
    for (int views = 0; views < 2; views++) {
        coffer_source *src = new_source(views);
        coffer__chunk_sums sums = compute(src, SIZE);
        coffer__chunk_verifier *verifier = NULL;
        coffer_error err = COFFER_ERROR_INIT;
        assert_int_equal(coffer__chunk_verifier_new(&verifier, src, &sums, NULL), COFFER_OK);
        assert_null(sums.sums);
        bytes[LEAD + CHUNK + 5] ^= 1;
        assert_int_equal(coffer__chunk_verify(verifier, LEAD, CHUNK, &err), COFFER_OK);
        assert_int_equal(coffer__chunk_verify(verifier, LEAD, CHUNK + 1, &err), COFFER_E_BAD_CHECKSUM);
        assert_int_equal(err.offset, LEAD + CHUNK);
        assert_int_equal(coffer__chunk_verify(verifier, LEAD + SIZE - 1, 1, &err), COFFER_OK);
        assert_int_equal(coffer__chunk_verify(verifier, LEAD + SIZE, 0, &err), COFFER_OK);
        assert_int_equal(coffer__chunk_verify(verifier, LEAD + SIZE, 1, &err), COFFER_E_BAD_CHECKSUM);
        assert_int_equal(coffer__chunk_verify(verifier, LEAD - 1, 1, &err), COFFER_E_BAD_CHECKSUM);
        bytes[LEAD + CHUNK + 5] ^= 1;
        assert_int_equal(coffer__chunk_verify(verifier, LEAD, SIZE, &err), COFFER_OK);
        coffer__chunk_verifier_free(verifier);
        coffer_source_close(src);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_chunk_has_its_crc),
        cmocka_unit_test(progress_is_in_bytes),
        cmocka_unit_test(a_range_outside_of_the_source_is_an_error),
        cmocka_unit_test(sums_counted_while_writing_are_the_same),
        cmocka_unit_test(only_ranges_that_touch_a_damaged_chunk_fail),
    };
    return cmocka_run_group_tests(tests, make_bytes, free_bytes);
}
