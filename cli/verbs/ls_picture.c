/* The entries of a list as a treemap. */
#include "ls_picture.h"

#include "base/memory.h"
#include "draw/treemap.h"
#include "files.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

enum { NARROWEST = 200, WIDTH = 1200, HEIGHT = 700 };

static const char *text_of(const coffer_node *entry, const char *const *columns)
{
    for (; *columns; columns++) {
        const coffer_node *cell = coffer_node_find(entry, *columns);
        if (cell && coffer_node_get_kind(cell) == COFFER_NODE_TEXT)
            return coffer_node_get_text(cell, NULL);
    }
    return "";
}

static bool take_item(treemap_item *out, const coffer_node *entry)
{
    static const char *const names[] = { "name", "path", "text", NULL }, *const groups[] = { "dtype", "type",
                                                                                             NULL };
    for (const coffer_node *cell = coffer_node_first(entry); cell; cell = coffer_node_next(cell))
        if (coffer_node_get_unit(cell) == COFFER_UNIT_BYTES) {
            *out = (treemap_item){ text_of(entry, names), text_of(entry, groups), coffer_node_get_u64(cell) };
            return true;
        }
    return false;
}

int ls_draw(const cli_args *args, const char *file, const coffer_node *entries)
{
    const char *output = cli_value(args, "output");
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t width, height, bytes = 0;
    size_t total = entries ? (size_t)coffer_node_count(entries) : 0, count = 0;
    char subtitle[96];
    term_text size, number;
    if (!picture_can_write(output))
        return cli_usage(args, "%s: pictures end in .png or .svg", output);
    if (!cli_number(&width, args, "width", WIDTH, NARROWEST, PICTURE_MAX_SIDE) ||
        !cli_number(&height, args, "height", HEIGHT, NARROWEST, PICTURE_MAX_SIDE))
        return CLI_USAGE;
    treemap_item *items = coffer__alloc_array(total + 1, sizeof *items);
    for (const coffer_node *entry = items && entries ? coffer_node_first(entries) : NULL; entry;
         entry = coffer_node_next(entry))
        if (take_item(&items[count], entry))
            bytes += items[count++].size;
    int status = CLI_OK;
    if (count == 0) {
        status = cli_usage(args, "the list has no sizes to draw; --what chooses another list");
    } else {
        snprintf(subtitle, sizeof subtitle, "%s in %s entr%s", term_bytes(size, bytes),
                 term_count(number, count), count == 1 ? "y" : "ies");
        const treemap_look look = { cli_base_name(file), subtitle, (unsigned)width, (unsigned)height };
        if (treemap_draw(output, items, count, &look, &err))
            status = cli_fail(output, &err, NULL);
    }
    coffer__free(items);
    return status;
}
