/* Lines of Python's instructions, from the tables that code objects have. */
#include "outside/profiles/memray.h"

enum { PYTHON_3_10 = 0x030a0000, PYTHON_3_11 = 0x030b0000 };

typedef struct line_table {
    const uint8_t *at, *end;
} line_table;

/* Reads past the end are zeros. */
static unsigned next_byte(line_table *table)
{
    return table->at < table->end ? *table->at++ : 0;
}

/* Six bits a byte, least significant first; 64 = more. */
static uint64_t next_varint(line_table *table)
{
    uint64_t value = 0;
    unsigned byte = 64;
    for (unsigned shift = 0; byte & 64 && shift < 60; shift += 6) {
        byte = next_byte(table);
        value |= (uint64_t)(byte & 63) << shift;
    }
    return value;
}

static int64_t next_signed(line_table *table)
{
    uint64_t value = next_varint(table);
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* An entry has a kind of location and its length in instructions of two bytes. */
static uint64_t find_3_11(line_table table, int64_t line, uint64_t instruction)
{
    enum { ONE_LINE_0 = 10, ONE_LINE_2 = 12, NO_COLUMNS = 13, LONG = 14, NO_LOCATION = 15 };
    uint64_t end = 0;
    while (table.at < table.end) {
        unsigned head = next_byte(&table), kind = head >> 3 & 15;
        if (kind == LONG || kind == NO_COLUMNS)
            line += next_signed(&table);
        if (kind >= ONE_LINE_0 && kind <= ONE_LINE_2)
            line += kind - ONE_LINE_0;
        for (int i = 0; kind == LONG && i < 3; i++)
            next_varint(&table); /* the last line and the columns */
        for (unsigned i = kind < ONE_LINE_0 ? 1 : kind <= ONE_LINE_2 ? 2 : 0; i > 0; i--)
            next_byte(&table);
        end += (head & 7) + 1;
        if (end > instruction / 2)
            return kind == NO_LOCATION || line < 0 ? 0 : (uint64_t)line;
    }
    return 0;
}

/* Pairs of bytes and lines: the lines of an entry hold for its own bytes in 3.10, after them before. */
static uint64_t find_older(line_table table, int64_t line, uint64_t instruction, bool own)
{
    enum { NO_LINE = -128 };
    uint64_t limit = own ? 2 * instruction : instruction, reached = 0;
    while (table.at + 1 < table.end) {
        reached += next_byte(&table);
        int byte = (int)next_byte(&table), delta = byte < 128 ? byte : byte - 256;
        if (!own && reached > limit)
            break;
        line += own && delta == NO_LINE ? 0 : delta;
        if (own && reached > limit)
            break;
    }
    return line < 0 ? 0 : (uint64_t)line;
}

uint64_t coffer__memray_line(uint32_t python, const uint8_t *table, size_t len, int64_t first_line,
                             int64_t instruction)
{
    line_table over = { table, table ? table + len : table };
    if (instruction < 0 || first_line < 0 || first_line > INT32_MAX)
        return 0;
    if (len == 0)
        return (uint64_t)first_line;
    return python >= PYTHON_3_11 ? find_3_11(over, first_line, (uint64_t)instruction)
                                 : find_older(over, first_line, (uint64_t)instruction, python >= PYTHON_3_10);
}
