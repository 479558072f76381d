/* Output for a terminal: escapes, widths, colors, progress. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli.h"
#include "term.h"

#include "base/report.h"

#include <math.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char written[4096];
static FILE *open_written(void)
{
    memset(written, 0, sizeof written);
    FILE *out = fmemopen(written, sizeof written, "w");
    assert_non_null(out);
    return out;
}

static void assert_printed(const char *text, size_t len, size_t columns, const char *expected)
{
    FILE *out = open_written();
    term_print_text(out, text, len, columns);
    fclose(out);
    assert_string_equal(written, expected);
}

static void escape_sequences_in_a_file_reach_no_terminal(void **state)
{
    (void)state;
    assert_printed("\033[31mred\a\n", 10, 0, "\\x1b[31mred\\a\\n");
    assert_printed("\x7f", 1, 0, "\\u007f");
    assert_printed("\0", 1, 0, "\\x00");
    assert_printed("\xc2\x9b"
                   "1m",
                   4, 0, "\\u009b1m");
    assert_printed("a\xe2\x80\xae"
                   "b",
                   5, 0, "a\\u202eb");
}

static void invalid_utf8_is_shown_byte_by_byte(void **state)
{
    (void)state;
    assert_printed("a\xff\xc3", 3, 0, "a\\xff\\xc3");
    assert_printed("\xed\xa0\x80", 3, 0, "\\xed\\xa0\\x80");
}

static void text_is_cut_by_columns_not_bytes(void **state)
{
    (void)state;
    assert_printed("naïve", 6, 5, "naïve");
    assert_printed("naïve!", 7, 5, "naïv…");
    assert_printed("日本語", 9, 6, "日本語");
    assert_printed("日本語", 9, 5, "日本…");
    assert_printed("日本語", 9, 4, "日…");
    assert_printed("abc", 3, 1, "…");
    assert_printed("", 0, 5, "");
}

static void sizes_read_well(void **state)
{
    (void)state;
    term_text text;
    assert_string_equal(term_bytes(text, 0), "0 bytes");
    assert_string_equal(term_bytes(text, 1), "1 byte");
    assert_string_equal(term_bytes(text, 1023), "1023 bytes");
    assert_string_equal(term_bytes(text, 1024), "1.0 KiB");
    assert_string_equal(term_bytes(text, 1048575), "1.0 MiB");
    assert_string_equal(term_bytes(text, UINT64_MAX), "16.0 EiB");
    assert_string_equal(term_count(text, 0), "0");
    assert_string_equal(term_count(text, 999), "999");
    assert_string_equal(term_count(text, 1234567), "1,234,567");
    assert_string_equal(term_count(text, UINT64_MAX), "18,446,744,073,709,551,615");
}

static void durations_read_well(void **state)
{
    (void)state;
    term_text text;
    assert_string_equal(term_duration(text, 0), "0 s");
    assert_string_equal(term_duration(text, 0.000012), "12 µs");
    assert_string_equal(term_duration(text, 0.42), "420 ms");
    assert_string_equal(term_duration(text, 0.9999), "1.0 s");
    assert_string_equal(term_duration(text, 59.7), "1 min 0 s");
    assert_string_equal(term_duration(text, 192), "3 min 12 s");
    assert_string_equal(term_duration(text, 7500), "2 h 5 min");
    assert_string_equal(term_duration(text, 200000), "2 d 7 h");
    assert_string_equal(term_duration(text, NAN), "?");
    assert_string_equal(term_duration(text, INFINITY), "?");
}

static void a_table_aligns_by_columns_and_leaves_no_spaces_at_the_end(void **state)
{
    (void)state;
    FILE *out = open_written();
    term_table *table = term_table_new();
    term_table_column(table, "name", TERM_LEFT);
    term_table_column(table, "n", TERM_RIGHT);
    term_table_column(table, "note", TERM_LEFT);
    term_table_cell(table, "日本");
    term_table_cell(table, "1");
    term_table_cell(table, "x\ty");
    term_table_cell(table, "a");
    term_table_cellf(table, "%d", 1000);
    term_table_cell(table, "");
    term_table_print(table, out);
    fclose(out);
    assert_string_equal(written, "name     n  note\n"
                                 "日本     1  x\\ty\n"
                                 "a     1000\n");
}

static void a_table_without_titles_has_no_title_line(void **state)
{
    (void)state;
    FILE *out = open_written();
    term_table *table = term_table_new();
    term_table_column(table, NULL, TERM_LEFT);
    term_table_cell(table, "a");
    term_table_print(table, out);
    term_table_print(NULL, out);
    fclose(out);
    assert_string_equal(written, "a\n");
}

static void color_is_the_users_choice(void **state)
{
    (void)state;
    FILE *out = open_written();
    term_set_color("always");
    assert_string_equal(term_on(out, TERM_RED), "\033[31m");
    assert_string_equal(term_off(out), "\033[0m");
    term_set_color("never");
    assert_string_equal(term_on(out, TERM_RED), "");
    term_set_color("auto");
    assert_string_equal(term_on(out, TERM_RED), "");
    fclose(out);
}

static void a_background_uses_what_colors_there_are(void **state)
{
    (void)state;
    term_set_color("always");
    unsetenv("COLORTERM");
    FILE *out = open_written();
    term_background(out, 0, 255, 95);
    fclose(out);
    assert_string_equal(written, "\033[48;5;47m");
    setenv("COLORTERM", "truecolor", 1);
    out = open_written();
    term_background(out, 0, 255, 95);
    fclose(out);
    assert_string_equal(written, "\033[48;2;0;255;95m");
    unsetenv("COLORTERM");
    term_set_color("auto");
}

static void the_width_follows_columns(void **state)
{
    (void)state;
    setenv("COLUMNS", "123", 1);
    assert_int_equal(term_width(stdout), 123);
    setenv("COLUMNS", "nonsense", 1);
    FILE *out = open_written();
    assert_int_equal(term_width(out), 80);
    fclose(out);
    unsetenv("COLUMNS");
}

static void a_tree_is_printed_with_its_names_aligned(void **state)
{
    (void)state;
    coffer_node *root = NULL;
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    coffer_node_add_text(root, "model_name", "tiny\033[2J");
    coffer_node_add_u64(root, "size", 1048576, COFFER_UNIT_BYTES);
    coffer_node_add_u64(root, "flags", 255, COFFER_UNIT_FLAGS);
    coffer_node_add_bool(root, "sorted", true);
    coffer_node_add_null(root, "source");
    coffer_node *list = coffer_node_add_list(root, "shape");
    coffer_node_add_u64(list, NULL, 3, COFFER_UNIT_NONE);
    coffer_node_add_u64(list, NULL, 4, COFFER_UNIT_NONE);
    coffer_node *row = coffer_node_add_map(coffer_node_add_list(root, "rows"), NULL);
    coffer_node_add_text(row, "name", "a");
    coffer_node_add_f64(row, "mean", 0.25, COFFER_UNIT_NONE);
    coffer_node_add_i64(coffer_node_add_map(root, "inner"), "low", -5, COFFER_UNIT_NONE);
    FILE *out = open_written();
    cli_print_nodes(out, coffer_node_first(root));
    fclose(out);
    coffer_node_free(root);
    assert_string_equal(written, "  model name  tiny\\x1b[2J\n"
                                 "  size        1.0 MiB (1,048,576 bytes)\n"
                                 "  flags       0xff\n"
                                 "  sorted      yes\n"
                                 "  source      –\n"
                                 "  shape       3, 4\n"
                                 "  rows\n"
                                 "    name  mean\n"
                                 "    a     0.25\n"
                                 "  inner\n"
                                 "    low  -5\n");
}

static size_t columns_drawn(const char *line)
{
    size_t columns = 0;
    for (; *line; line++) {
        if (*line == '\033')
            line += strcspn(line, "mK");
        else if (*line != '\r' && (*line & 0xc0) != 0x80)
            columns++;
    }
    return columns;
}

static void a_progress_line_leaves_the_last_column_free(void **state)
{
    (void)state;
    int terminal, end, old = dup(STDERR_FILENO);
    assert_int_equal(openpty(&terminal, &end, NULL, NULL, NULL), 0);
    dup2(end, STDERR_FILENO);
    static const char *const widths[] = { "24", "40", "60", "200" };
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        char line[1024] = "";
        term_progress bar;
        setenv("COLUMNS", widths[i], 1);
        term_progress_start(&bar, "a long description of the current work", "records");
        bar.started -= 100;
        bar.progress.step(bar.progress.context, 123456789, 987654321);
        fputs("\n", stderr);
        bar.shown = false;
        term_line_shown(false);
        for (size_t len = 0; !strchr(line, '\n');) { /* stderr comes in pieces */
            ssize_t got = read(terminal, line + len, sizeof line - 1 - len);
            assert_true(got > 0);
            len += (size_t)got;
        }
        *strchr(line, '\n') = '\0';
        assert_true(columns_drawn(line) < strtoul(widths[i], NULL, 10));
        assert_non_null(strstr(line, "12 %"));
    }
    unsetenv("COLUMNS");
    dup2(old, STDERR_FILENO);
    close(old);
    close(end);
    close(terminal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escape_sequences_in_a_file_reach_no_terminal),
        cmocka_unit_test(invalid_utf8_is_shown_byte_by_byte),
        cmocka_unit_test(text_is_cut_by_columns_not_bytes),
        cmocka_unit_test(sizes_read_well),
        cmocka_unit_test(durations_read_well),
        cmocka_unit_test(a_table_aligns_by_columns_and_leaves_no_spaces_at_the_end),
        cmocka_unit_test(a_table_without_titles_has_no_title_line),
        cmocka_unit_test(color_is_the_users_choice),
        cmocka_unit_test(a_background_uses_what_colors_there_are),
        cmocka_unit_test(the_width_follows_columns),
        cmocka_unit_test(a_tree_is_printed_with_its_names_aligned),
        cmocka_unit_test(a_progress_line_leaves_the_last_column_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
