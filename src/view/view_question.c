/* The arguments of questions. They come from a browser: every one is checked. */
#include "base/fail.h"
#include "view/view_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CELLS = 1024 };

const char *coffer__question_text(const coffer__question *question, const char *name)
{
    for (size_t i = 0; i < question->count; i++)
        if (strcmp(question->args[i].name, name) == 0)
            return question->args[i].value;
    return NULL;
}

static bool parse(uint64_t *out, const char *text)
{
    char *end = NULL;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

coffer_status coffer__question_number(uint64_t *out, const coffer__question *question, const char *name,
                                      uint64_t otherwise, uint64_t least, uint64_t most, coffer_error *err)
{
    const char *text = coffer__question_text(question, name);
    uint64_t value = otherwise;
    if (text && !parse(&value, text))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "%s is not an integer", name);
    if (value < least || value > most)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s is %" PRIu64 ", it goes from %" PRIu64 " to %" PRIu64, name, value, least,
                            most);
    *out = value;
    return COFFER_OK;
}

coffer_status coffer__question_range(uint64_t *begin, uint64_t *end, const coffer__question *question,
                                     const char *name, uint64_t all, coffer_error *err)
{
    char key[40];
    if (all == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "the file has no %ss", name);
    snprintf(key, sizeof key, "%s_begin", name);
    coffer_status status = coffer__question_number(begin, question, key, 0, 0, all - 1, err);
    snprintf(key, sizeof key, "%s_end", name);
    if (!status)
        status = coffer__question_number(end, question, key, all, *begin + 1, all, err);
    return status;
}

coffer_status coffer__question_file(size_t *out, const coffer__question *question,
                                    const coffer_chunks *chunks, coffer_error *err)
{
    uint64_t number = 0;
    coffer_status status =
        coffer__question_number(&number, question, "file", 0, 0, chunks->file_count - 1, err);
    *out = (size_t)number;
    return status;
}

coffer_status coffer__question_cells(uint64_t *width, uint64_t *height, const coffer__question *question,
                                     coffer_error *err)
{
    coffer_status status = coffer__question_number(width, question, "width", 256, 1, MOST_CELLS, err);
    return status ? status : coffer__question_number(height, question, "height", 256, 1, MOST_CELLS, err);
}

coffer_status coffer__question_tile(coffer__view_tile *out, const coffer__question *question, uint64_t rows,
                                    uint64_t columns, coffer_error *err)
{
    coffer__view_tile tile = { 0 };
    coffer_status status = coffer__question_range(&tile.row_begin, &tile.row_end, question, "row", rows, err);
    if (!status)
        status =
            coffer__question_range(&tile.column_begin, &tile.column_end, question, "column", columns, err);
    if (!status)
        status = coffer__question_cells(&tile.width, &tile.height, question, err);
    if (status)
        return status;
    uint64_t across = tile.column_end - tile.column_begin, down = tile.row_end - tile.row_begin;
    tile.width = across < tile.width ? across : tile.width;
    tile.height = down < tile.height ? down : tile.height;
    *out = tile;
    return COFFER_OK;
}

void coffer__view_add_tile(coffer_chunks *chunks, const coffer__view_tile *tile, bool sampled)
{
    coffer_node *map = coffer_node_add_map(chunks->view, "tile");
    coffer_node_add_u64(map, "width", tile->width, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "height", tile->height, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "column_begin", tile->column_begin, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "column_end", tile->column_end, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "row_begin", tile->row_begin, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "row_end", tile->row_end, COFFER_UNIT_NONE);
    coffer_node_add_bool(map, "sampled", sampled);
}
