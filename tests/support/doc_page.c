#include "support/doc_page.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LONGEST_LINE = 512, BYTES_A_LINE = 16, HEX_COLUMN = 10 };

static FILE *open_page(const char *path)
{
    FILE *page = fopen(path, "r");
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

static void parse_line(doc_dump *dump, const char *line, bool after_gap)
{
    size_t at = strtoul(line, NULL, 16);
    if (after_gap) {
        assert_in_range(at, dump->size, sizeof dump->bytes);
        memset(dump->bytes + dump->size, 0, at - dump->size);
        dump->size = at;
    }
    assert_int_equal(at, dump->size);
    size_t count = parse_hex(dump->bytes + at, sizeof dump->bytes - at, line + HEX_COLUMN);
    assert_in_range(count, 1, BYTES_A_LINE);
    check_characters(line, dump->bytes + at, count);
    dump->size += count;
}

void doc_parse_dump(doc_dump *out, const char *path)
{
    char line[LONGEST_LINE];
    bool inside = false, after_gap = false;
    FILE *page = open_page(path);
    out->size = 0;
    while (fgets(line, sizeof line, page)) {
        if (strncmp(line, "```", 3) == 0) {
            inside = !inside && strcmp(line, "```hex\n") == 0;
        } else if (inside && line[0] == '*') {
            after_gap = true;
        } else if (inside) {
            parse_line(out, line, after_gap);
            after_gap = false;
        }
    }
    fclose(page);
    assert_true(out->size > 0);
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

static void check_value(const uint8_t *bytes, size_t count, const char *value)
{
    if (value[0] != '"') {
        uint64_t number = 0;
        for (size_t i = count; i-- > 0;)
            number = number << 8 | bytes[i];
        assert_int_equal(number, strtoull(value, NULL, 0));
        return;
    }
    const char *at = value + 1;
    for (size_t i = 0; i < count; i++, at++) {
        at += *at == '\\';
        assert_int_equal(*at, bytes[i]);
    }
    assert_string_equal(at, "\"");
}

size_t doc_check_byte_table(const char *path, const doc_dump *dump)
{
    char line[LONGEST_LINE];
    size_t rows = 0;
    FILE *page = open_page(path);
    while (fgets(line, sizeof line, page)) {
        char *cells[4];
        uint8_t bytes[BYTES_A_LINE];
        if (strncmp(line, "| 0x", 4) != 0)
            continue;
        assert_int_equal(split_row(cells, 4, line), 4);
        size_t at = strtoul(cells[0], NULL, 16);
        size_t count = parse_hex(bytes, sizeof bytes, cells[1]);
        assert_true(count > 0 && at + count <= dump->size);
        assert_memory_equal(bytes, dump->bytes + at, count);
        check_value(bytes, count, cells[3]);
        rows++;
    }
    fclose(page);
    return rows;
}

void doc_add_fact(doc_facts *facts, const char *name, uint64_t value)
{
    assert_true(facts->count < DOC_MOST_FACTS);
    facts->items[facts->count].name = name;
    facts->items[facts->count++].value = value;
}

static uint64_t find_fact(const doc_facts *facts, const char *name)
{
    for (size_t i = 0; i < facts->count; i++)
        if (strcmp(facts->items[i].name, name) == 0)
            return facts->items[i].value;
    fail_msg("the page gives a fact that the test does not know: %s", name);
    return 0;
}

void doc_check_facts(const char *path, const doc_facts *facts)
{
    char line[LONGEST_LINE];
    bool inside = false;
    size_t rows = 0;
    FILE *page = open_page(path);
    while (fgets(line, sizeof line, page)) {
        char *cells[2];
        if (strcmp(line, "| fact | value |\n") == 0)
            inside = true;
        else if (line[0] != '|')
            inside = false;
        else if (inside && line[1] == ' ') {
            assert_int_equal(split_row(cells, 2, line), 2);
            assert_int_equal(find_fact(facts, cells[0]), strtoull(cells[1], NULL, 0));
            rows++;
        }
    }
    fclose(page);
    assert_int_equal(rows, facts->count);
}
