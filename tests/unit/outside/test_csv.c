#include "outside/text/csv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct text {
    coffer_source *src;
    coffer__csv_reader *reader;
    char *copy; /* exactly as long as the text */
} text;

static text open_bytes(const char *bytes, size_t len)
{
    text out = { NULL, NULL, malloc(len + 1) };
    coffer_limits limits = COFFER_LIMITS_INIT;
    memcpy(out.copy, bytes, len);
    assert_int_equal(coffer_source_from_memory(&out.src, out.copy, len, NULL), COFFER_OK);
    assert_int_equal(coffer__csv_open(&out.reader, out.src, &limits, NULL), COFFER_OK);
    return out;
}

static text open_text(const char *bytes)
{
    return open_bytes(bytes, strlen(bytes));
}

static void close_text(text *done)
{
    coffer__csv_close(done->reader);
    coffer_source_close(done->src);
    free(done->copy);
}

static const coffer__csv_row *next(text *from)
{
    const coffer__csv_row *row;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer__csv_next(&row, from->reader, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    return row;
}

static void assert_field(const coffer__csv_row *row, size_t index, const char *expected)
{
    assert_true(index < row->count);
    assert_int_equal(row->fields[index].len, strlen(expected));
    assert_memory_equal(row->fields[index].text, expected, strlen(expected));
}

static coffer_status status_of(const char *bytes, coffer_error *err)
{
    text t = open_text(bytes);
    const coffer__csv_row *row;
    coffer_status status;
    do
        status = coffer__csv_next(&row, t.reader, err);
    while (status == COFFER_OK && row);
    close_text(&t);
    return status;
}

static void rows_and_fields_are_split_at_line_ends_and_commas(void **state)
{
    (void)state;
    text t = open_text("a,b,c\r\n1,,3\n\n4");
    const coffer__csv_row *row = next(&t);
    assert_int_equal(row->count, 3);
    assert_field(row, 2, "c");
    row = next(&t);
    assert_int_equal(row->count, 3);
    assert_field(row, 1, "");
    assert_int_equal(row->line, 2);
    assert_int_equal(row->offset, 7);
    row = next(&t);
    assert_int_equal(row->count, 1);
    assert_field(row, 0, "");
    row = next(&t);
    assert_field(row, 0, "4");
    assert_int_equal(row->line, 4);
    assert_null(next(&t));
    assert_null(next(&t));
    close_text(&t);
}

static void quotes_hold_commas_line_ends_and_quotes(void **state)
{
    (void)state;
    text t = open_text("\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\"\r\n\"\",x\n");
    const coffer__csv_row *row = next(&t);
    assert_int_equal(row->count, 3);
    assert_field(row, 0, "a,b");
    assert_field(row, 1, "say \"hi\"");
    assert_field(row, 2, "two\nlines");
    row = next(&t);
    assert_int_equal(row->line, 3);
    assert_field(row, 0, "");
    assert_field(row, 1, "x");
    assert_null(next(&t));
    close_text(&t);
}

static void a_byte_order_mark_is_not_part_of_the_first_field(void **state)
{
    (void)state;
    text t = open_text("\xef\xbb\xbf"
                       "a,b\n");
    assert_field(next(&t), 0, "a");
    close_text(&t);
}

static void an_empty_file_has_no_row_and_a_last_line_end_adds_none(void **state)
{
    (void)state;
    text t = open_text("");
    assert_null(next(&t));
    close_text(&t);
    t = open_text("x\n");
    assert_non_null(next(&t));
    assert_null(next(&t));
    close_text(&t);
}

static void wrong_quotes_are_errors_that_name_the_line(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(status_of("a\nb\nx,\"open", &err), COFFER_E_TRUNCATED);
    assert_non_null(strstr(err.text, "line 3"));
    assert_int_equal(status_of("a\nb\"c\"\n", &err), COFFER_E_BAD_VALUE);
    assert_non_null(strstr(err.text, "line 2, field 1"));
    assert_int_equal(status_of("x,\"a\"b\n", &err), COFFER_E_BAD_VALUE);
    assert_non_null(strstr(err.text, "line 1, field 2"));
}

static void a_row_may_be_longer_than_any_buffer(void **state)
{
    (void)state;
    const size_t long_len = 3000001;
    char *bytes = malloc(long_len + 100);
    size_t len = 0;
    len += (size_t)sprintf(bytes, "first,\"");
    memset(bytes + len, 'x', long_len);
    bytes[len + long_len / 2] = '\n';
    len += long_len;
    len += (size_t)sprintf(bytes + len, "\"\nsecond,2\n");
    text t = open_bytes(bytes, len);
    const coffer__csv_row *row = next(&t);
    assert_int_equal(row->count, 2);
    assert_int_equal(row->fields[1].len, long_len);
    assert_int_equal(row->fields[1].text[long_len / 2], '\n');
    row = next(&t);
    assert_field(row, 0, "second");
    assert_int_equal(row->line, 3);
    assert_null(next(&t));
    close_text(&t);
    free(bytes);
}

static void a_row_longer_than_the_limit_is_refused(void **state)
{
    (void)state;
    const size_t len = 1u << 20;
    char *bytes = malloc(len);
    coffer_source *src;
    coffer__csv_reader *reader;
    const coffer__csv_row *row;
    coffer_limits limits = COFFER_LIMITS_INIT;
    limits.string_bytes = len / 2;
    memset(bytes, 'x', len);
    assert_int_equal(coffer_source_from_memory(&src, bytes, len, NULL), COFFER_OK);
    assert_int_equal(coffer__csv_open(&reader, src, &limits, NULL), COFFER_OK);
    assert_int_equal(coffer__csv_next(&row, reader, NULL), COFFER_E_LIMIT);
    coffer__csv_close(reader);
    coffer_source_close(src);
    free(bytes);
}

static void a_row_of_too_many_fields_is_refused(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    char *bytes = malloc(COFFER__CSV_MAX_FIELDS + 2);
    memset(bytes, ',', COFFER__CSV_MAX_FIELDS + 1);
    bytes[COFFER__CSV_MAX_FIELDS - 1] = '\0';
    assert_int_equal(status_of(bytes, &err), COFFER_OK);
    bytes[COFFER__CSV_MAX_FIELDS - 1] = ',';
    bytes[COFFER__CSV_MAX_FIELDS] = '\0';
    assert_int_equal(status_of(bytes, &err), COFFER_E_LIMIT);
    free(bytes);
}

static void many_rows_pass_through_a_small_window(void **state)
{
    (void)state;
    enum { ROWS = 200000 };
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    for (unsigned i = 0; i < ROWS; i++)
        coffer__buffer_printf(&bytes, "%u,\"row \"\"%u\"\"\"\n", i, i);
    text t = open_bytes((const char *)bytes.data, bytes.len);
    for (unsigned i = 0; i < ROWS; i++) {
        char number[16], quoted[32];
        const coffer__csv_row *row = next(&t);
        snprintf(number, sizeof number, "%u", i);
        snprintf(quoted, sizeof quoted, "row \"%u\"", i);
        assert_field(row, 0, number);
        assert_field(row, 1, quoted);
        assert_int_equal(row->line, i + 1);
    }
    assert_null(next(&t));
    close_text(&t);
    coffer__buffer_free(&bytes);
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    static const char *const fields[] = { "plain",     "",     "a,b",      "\"",         "\"\"",
                                          "line\nend", "cr\r", " spaced ", "q\"mid\"dle" };
    const size_t count = sizeof fields / sizeof *fields;
    coffer__buffer out = COFFER__BUFFER_INIT;
    for (size_t i = 0; i < count; i++) {
        coffer__buffer_append(&out, ",", i ? 1 : 0);
        coffer__csv_put_text(&out, fields[i], strlen(fields[i]));
    }
    text t = open_bytes((const char *)out.data, out.len);
    const coffer__csv_row *row = next(&t);
    assert_int_equal(row->count, count);
    for (size_t i = 0; i < count; i++)
        assert_field(row, i, fields[i]);
    assert_null(next(&t));
    close_text(&t);
    coffer__buffer_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_fields_are_split_at_line_ends_and_commas),
        cmocka_unit_test(quotes_hold_commas_line_ends_and_quotes),
        cmocka_unit_test(a_byte_order_mark_is_not_part_of_the_first_field),
        cmocka_unit_test(an_empty_file_has_no_row_and_a_last_line_end_adds_none),
        cmocka_unit_test(wrong_quotes_are_errors_that_name_the_line),
        cmocka_unit_test(a_row_may_be_longer_than_any_buffer),
        cmocka_unit_test(a_row_longer_than_the_limit_is_refused),
        cmocka_unit_test(a_row_of_too_many_fields_is_refused),
        cmocka_unit_test(many_rows_pass_through_a_small_window),
        cmocka_unit_test(what_is_written_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
