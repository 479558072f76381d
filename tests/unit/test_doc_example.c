/* The worked example of docs/formats/mscan.md: every number that the page gives must be true. */
#include "coffer/coffer.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE COFFER_SOURCE_ROOT "/docs/formats/mscan.md"

enum { LONGEST_EXAMPLE = 4096, LONGEST_LINE = 512, BYTES_A_LINE = 16 };

typedef struct doc_example {
    uint8_t bytes[LONGEST_EXAMPLE];
    size_t size;
    coffer_source *source;
    coffer_mscan *scan;
    coffer_mscan_stats *stats;
} doc_example;

static FILE *open_page(void)
{
    FILE *page = fopen(PAGE, "r");
    assert_non_null(page);
    return page;
}

/* One or more pairs of hexadecimal digits with single spaces between them. */
static size_t parse_hex(uint8_t *out, size_t capacity, const char *text)
{
    size_t count = 0;
    while (isxdigit((unsigned char)text[0]) && isxdigit((unsigned char)text[1])) {
        assert_true(count < capacity);
        char digits[3] = { text[0], text[1], '\0' };
        out[count++] = (uint8_t)strtoul(digits, NULL, 16);
        text += 2;
        if (text[0] != ' ' || text[1] == ' ')
            break;
        text++;
    }
    return count;
}

/* The printable characters at the end of a line of the dump must be those of its bytes. */
static void check_characters(const char *line, const uint8_t *bytes, size_t count)
{
    const char *bar = strchr(line, '|');
    assert_non_null(bar);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(bar[1 + i], bytes[i] >= 0x20 && bytes[i] < 0x7f ? bytes[i] : '.');
    assert_int_equal(bar[1 + count], '|');
}

static void parse_dump(doc_example *example)
{
    char line[LONGEST_LINE];
    bool inside = false;
    FILE *page = open_page();
    while (fgets(line, sizeof line, page)) {
        if (strncmp(line, "```", 3) == 0)
            inside = !inside && strcmp(line, "```hex\n") == 0;
        else if (inside) {
            assert_int_equal(strtoul(line, NULL, 16), example->size);
            size_t room = sizeof example->bytes - example->size;
            size_t count = parse_hex(example->bytes + example->size, room, line + 10);
            assert_in_range(count, 1, BYTES_A_LINE);
            check_characters(line, example->bytes + example->size, count);
            example->size += count;
        }
    }
    fclose(page);
    assert_true(example->size > 0);
}

static int set_up(void **state)
{
    doc_example *example = calloc(1, sizeof *example);
    coffer_mscan_query query = COFFER_MSCAN_QUERY_INIT;
    assert_non_null(example);
    parse_dump(example);
    assert_int_equal(coffer_source_from_memory(&example->source, example->bytes, example->size, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mscan_open(&example->scan, example->source, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_stats_new(&example->stats, example->scan, &query, NULL), COFFER_OK);
    *state = example;
    return 0;
}

static int tear_down(void **state)
{
    doc_example *example = *state;
    coffer_mscan_stats_free(example->stats);
    coffer_mscan_close(example->scan);
    coffer_source_close(example->source);
    free(example);
    return 0;
}

/* Splits "| a | b |" into its cells; gives their number. */
static size_t split_row(char *cells[], size_t capacity, char *line)
{
    size_t count = 0;
    char *rest = line;
    if (*rest++ != '|')
        return 0;
    for (char *end; count < capacity && (end = strchr(rest, '|')); rest = end + 1) {
        *end = '\0';
        while (*rest == ' ')
            rest++;
        char *last = end;
        while (last > rest && last[-1] == ' ')
            *--last = '\0';
        cells[count++] = rest;
    }
    return count;
}

/* A number is what the bytes give little-endian; text in quotes is the bytes themselves. */
static void check_value(const uint8_t *bytes, size_t count, const char *value)
{
    if (value[0] != '"') {
        uint64_t number = 0;
        for (size_t i = count; i-- > 0;)
            number = number << 8 | bytes[i];
        assert_int_equal(number, strtoull(value, NULL, 10));
        return;
    }
    const char *at = value + 1;
    for (size_t i = 0; i < count; i++, at++) {
        at += *at == '\\';
        assert_int_equal(*at, bytes[i]);
    }
    assert_string_equal(at, "\"");
}

static void every_row_of_the_byte_table_agrees_with_the_dump(void **state)
{
    const doc_example *example = *state;
    char line[LONGEST_LINE];
    size_t rows = 0;
    FILE *page = open_page();
    while (fgets(line, sizeof line, page)) {
        char *cells[4];
        uint8_t bytes[BYTES_A_LINE];
        if (strncmp(line, "| 0x", 4) != 0)
            continue;
        assert_int_equal(split_row(cells, 4, line), 4);
        size_t at = strtoul(cells[0], NULL, 16);
        size_t count = parse_hex(bytes, sizeof bytes, cells[1]);
        assert_true(count > 0 && at + count <= example->size);
        assert_memory_equal(bytes, example->bytes + at, count);
        check_value(bytes, count, cells[3]);
        rows++;
    }
    fclose(page);
    assert_true(rows >= 4 + 3 * 5);
}

static uint64_t fact(const doc_example *example, const char *name)
{
    const coffer_mscan *scan = example->scan;
    const coffer_mscan_group *total = coffer_mscan_stats_total(example->stats);
    const struct {
        const char *name;
        uint64_t value;
    } facts[] = {
        { "file size", example->size },
        { "records", coffer_mscan_record_count(scan) },
        { "parameters", coffer_mscan_param_count(scan) },
        { "sequences", coffer_mscan_sequence_count(scan) },
        { "total tokens", coffer_mscan_total_tokens(scan) },
        { "first token of sequence 1", coffer_mscan_sequence_at(scan, 1).first_token },
        { "sum of activations", total->column[COFFER_MSCAN_ACTIVATION].sum },
        { "sum of gradient norms", total->column[COFFER_MSCAN_GRAD_NORM].sum },
    };
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        if (strcmp(facts[i].name, name) == 0)
            return facts[i].value;
    fail_msg("the page gives a fact that the test does not know: %s", name);
    return 0;
}

static void every_fact_is_what_the_library_says(void **state)
{
    const doc_example *example = *state;
    char line[LONGEST_LINE];
    bool inside = false;
    size_t rows = 0;
    FILE *page = open_page();
    while (fgets(line, sizeof line, page)) {
        char *cells[2];
        if (strcmp(line, "| fact | value |\n") == 0)
            inside = true;
        else if (line[0] != '|')
            inside = false;
        else if (inside && line[1] == ' ') {
            assert_int_equal(split_row(cells, 2, line), 2);
            assert_int_equal(fact(example, cells[0]), strtoull(cells[1], NULL, 10));
            rows++;
        }
    }
    fclose(page);
    assert_int_equal(rows, 8);
}

static void check_finds_no_error_and_no_warning(void **state)
{
    const doc_example *example = *state;
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    opts.full = true;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_check(report, example->source, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    assert_int_equal(coffer_report_total(report, COFFER_WARNING), 0);
    coffer_report_free(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_byte_table_agrees_with_the_dump),
        cmocka_unit_test(every_fact_is_what_the_library_says),
        cmocka_unit_test(check_finds_no_error_and_no_warning),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
