#include "outside/arrays/entries.h"
#include "outside/arrays/mtx.h"

#include "base/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct reading {
    coffer_source *src;
    coffer__mtx mtx;
    coffer_status status;
    coffer_error err;
} reading;

static reading open_text(const char *text)
{
    reading out = { .err = COFFER_ERROR_INIT };
    coffer_limits limits = coffer__limits(NULL);
    assert_int_equal(coffer_source_from_memory(&out.src, text, strlen(text), NULL), COFFER_OK);
    out.status = coffer__mtx_open(&out.mtx, out.src, &limits, &out.err);
    return out;
}

static void close_text(reading *done)
{
    if (!done->status)
        coffer__mtx_close(&done->mtx);
    coffer_source_close(done->src);
}

/* Reads all entries, too. */
static void expect_status(const char *text, coffer_status expected)
{
    reading file = open_text(text);
    coffer_status status = file.status;
    bool more = true;
    while (!status && more)
        status = coffer__mtx_next(&more, &(coffer__mtx_entry){ 0 }, &file.mtx, &file.err);
    if (status != expected)
        fail_msg("%s\n gives %s (%s), expected %s", text, coffer_status_name(status), file.err.text,
                 coffer_status_name(expected));
    close_text(&file);
}

static coffer__mtx_entry next_entry(reading *file)
{
    coffer__mtx_entry entry;
    bool more;
    assert_int_equal(coffer__mtx_next(&more, &entry, &file->mtx, &file->err), COFFER_OK);
    assert_true(more);
    return entry;
}

static void coordinates_are_read_with_comments_and_blank_lines(void **state)
{
    (void)state;
    reading file = open_text("%%matrixmarket MATRIX Coordinate Complex General\r\n% a comment\n\n  3 4 2 \n"
                             "% another\n3 4 1.5 -2e3\n\n1 1 7 0\n\n");
    assert_int_equal(file.status, COFFER_OK);
    assert_true(file.mtx.coordinate);
    assert_int_equal(file.mtx.field, COFFER__MTX_COMPLEX);
    assert_int_equal(file.mtx.symmetry, COFFER__MTX_GENERAL);
    assert_int_equal(file.mtx.rows, 3);
    assert_int_equal(file.mtx.cols, 4);
    coffer__mtx_entry entry = next_entry(&file);
    assert_int_equal(entry.row, 2);
    assert_int_equal(entry.col, 3);
    assert_true(coffer__number_as_f64(&entry.imag) == -2000);
    entry = next_entry(&file);
    assert_true(coffer__number_as_f64(&entry.real) == 7);
    bool more;
    assert_int_equal(coffer__mtx_next(&more, &entry, &file.mtx, NULL), COFFER_OK);
    assert_false(more);
    close_text(&file);
}

static void an_array_goes_down_the_columns(void **state)
{
    (void)state;
    static const uint64_t general[][2] = { { 0, 0 }, { 1, 0 }, { 0, 1 }, { 1, 1 } };
    static const uint64_t skew[][2] = { { 1, 0 }, { 2, 0 }, { 2, 1 } };
    reading file = open_text("%%MatrixMarket matrix array integer general\n2 2\n1\n2\n3\n4\n");
    for (size_t i = 0; i < 4; i++) {
        coffer__mtx_entry entry = next_entry(&file);
        assert_int_equal(entry.row, general[i][0]);
        assert_int_equal(entry.col, general[i][1]);
        assert_int_equal(entry.real.as.u64, i + 1);
    }
    close_text(&file);
    file = open_text("%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3");
    for (size_t i = 0; i < 3; i++) {
        coffer__mtx_entry entry = next_entry(&file);
        assert_int_equal(entry.row, skew[i][0]);
        assert_int_equal(entry.col, skew[i][1]);
    }
    close_text(&file);
}

static void files_that_are_not_right_are_refused(void **state)
{
    (void)state;
#define COORDINATE "%%MatrixMarket matrix coordinate real general\n"
    expect_status("", COFFER_E_BAD_MAGIC);
    expect_status("%MatrixMarket matrix", COFFER_E_BAD_MAGIC);
    expect_status("%%MatrixMarket vector coordinate real general\n", COFFER_E_UNSUPPORTED);
    expect_status("%%MatrixMarket matrix sparse real general\n1 1 0\n", COFFER_E_BAD_VALUE);
    expect_status("%%MatrixMarket matrix array double general\n1 1\n1\n", COFFER_E_BAD_VALUE);
    expect_status("%%MatrixMarket matrix array real\n1 1\n1\n", COFFER_E_BAD_VALUE);
    expect_status("%%MatrixMarket matrix array pattern general\n1 1\n1\n", COFFER_E_BAD_VALUE);
    expect_status("%%MatrixMarket matrix array real hermitian\n1 1\n1\n", COFFER_E_BAD_VALUE);
    expect_status("%%MatrixMarket matrix array real symmetric\n1 2\n1\n1\n", COFFER_E_INCONSISTENT);
    expect_status(COORDINATE, COFFER_E_BAD_VALUE);
    expect_status(COORDINATE "2 2\n1 1 1\n", COFFER_E_BAD_VALUE);
    expect_status(COORDINATE "-1 2 0\n", COFFER_E_BAD_VALUE);
    expect_status(COORDINATE "2 2 1 1\n1 1 1\n", COFFER_E_BAD_VALUE);
    expect_status(COORDINATE "2 2 1\n", COFFER_E_TRUNCATED);
    expect_status(COORDINATE "2 2 2\n1 1 1.0000\n", COFFER_E_TRUNCATED);
    expect_status(COORDINATE "2 2 18446744073709551615\n1 1 1\n", COFFER_E_TRUNCATED);
    expect_status("%%MatrixMarket matrix array real general\n4294967296 4294967296\n1\n", COFFER_E_BAD_VALUE);
    expect_status(COORDINATE "2 2 1\n3 1 1\n", COFFER_E_OUT_OF_BOUNDS);
    expect_status(COORDINATE "2 2 1\n0 1 1\n", COFFER_E_OUT_OF_BOUNDS);
    expect_status(COORDINATE "2 2 1\n1 1.5 1\n", COFFER_E_BAD_VALUE);
    expect_status(COORDINATE "2 2 1\n1 1\n", COFFER_E_TRUNCATED);
    expect_status(COORDINATE "2 2 1\n1 1 x\n", COFFER_E_BAD_VALUE);
    expect_status(COORDINATE "2 2 1\n1 1 1 1\n", COFFER_E_BAD_VALUE);
    expect_status(COORDINATE "2 2 1\n1 1 1\n2 2 1\n", COFFER_E_TRAILING_BYTES);
    expect_status("%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 1.5\n", COFFER_E_BAD_VALUE);
    expect_status(COORDINATE "2 2 0\n", COFFER_OK);
}

/* ---- Entries ---- */

/* Places in an order of their own, each several times, through memory that holds only some of them. */
static void entries_come_in_order_and_summed(void **state)
{
    (void)state;
    const uint64_t count = 50000, places = 20011;
    for (int small = 0; small < 2; small++) {
        coffer__entries *entries = NULL;
        coffer__entry entry = { 0 };
        bool more;
        assert_int_equal(coffer__entries_new(&entries, COFFER_DTYPE_I64, count, small ? 1 : (uint64_t)1 << 30,
                                             NULL),
                         COFFER_OK);
        int64_t sum = 0, sum_out = 0;
        for (uint64_t i = 0; i < count; i++) {
            entry.place = i * 7919 % places << 20;
            entry.value.i64 = (int64_t)i - 1000;
            sum += entry.value.i64;
            assert_int_equal(coffer__entries_add(entries, &entry, NULL), COFFER_OK);
        }
        for (uint64_t i = 0; i < places; i++) {
            assert_int_equal(coffer__entries_next(&more, &entry, entries, NULL), COFFER_OK);
            assert_true(more);
            assert_int_equal(entry.place, i << 20);
            sum_out += entry.value.i64;
        }
        assert_int_equal(coffer__entries_next(&more, &entry, entries, NULL), COFFER_OK);
        assert_false(more);
        assert_int_equal(sum, sum_out);
        coffer__entries_free(entries);
    }
}

static void bits_of_one_place_stay_one_bit_and_integers_do_not_wrap(void **state)
{
    (void)state;
    coffer__entries *entries = NULL;
    coffer__entry entry = { .place = 3, .value.u64 = 1 };
    bool more;
    assert_int_equal(coffer__entries_new(&entries, COFFER_DTYPE_BOOL, 2, 0, NULL), COFFER_OK);
    coffer__entries_add(entries, &entry, NULL);
    coffer__entries_add(entries, &entry, NULL);
    assert_int_equal(coffer__entries_next(&more, &entry, entries, NULL), COFFER_OK);
    assert_int_equal(entry.value.u64, 1);
    coffer__entries_free(entries);
    assert_int_equal(coffer__entries_new(&entries, COFFER_DTYPE_U64, 2, 0, NULL), COFFER_OK);
    entry.value.u64 = UINT64_MAX;
    coffer__entries_add(entries, &entry, NULL);
    coffer__entries_add(entries, &entry, NULL);
    assert_int_equal(coffer__entries_next(&more, &entry, entries, NULL), COFFER_E_BAD_VALUE);
    coffer__entries_free(entries);
}

static void an_empty_list_has_no_entries(void **state)
{
    (void)state;
    coffer__entries *entries = NULL;
    bool more = true;
    assert_int_equal(coffer__entries_new(&entries, COFFER_DTYPE_F64, 0, 0, NULL), COFFER_OK);
    assert_int_equal(coffer__entries_next(&more, &(coffer__entry){ 0 }, entries, NULL), COFFER_OK);
    assert_false(more);
    coffer__entries_free(entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coordinates_are_read_with_comments_and_blank_lines),
        cmocka_unit_test(an_array_goes_down_the_columns),
        cmocka_unit_test(files_that_are_not_right_are_refused),
        cmocka_unit_test(entries_come_in_order_and_summed),
        cmocka_unit_test(bits_of_one_place_stay_one_bit_and_integers_do_not_wrap),
        cmocka_unit_test(an_empty_list_has_no_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
