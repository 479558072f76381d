/* The flame graph for other programs: collapsed stacks, and a tree in JSON. */
#include "base/json_write.h"
#include "convert/traces/mlyze_export.h"
#include "flame_tree.h"

#include <inttypes.h>

/* Frames as in the files that convert writes. */
static void put_path(coffer__buffer *out, const flame_page *page, uint32_t index)
{
    uint32_t path[FLAME_DEEPEST];
    size_t depth = 0;
    for (; index != 0; index = flame_tree_at(page->tree, index)->parent)
        path[depth++] = index;
    while (depth-- > 0) {
        coffer__mlyze_put_frame(out, page->trace, &flame_tree_at(page->tree, path[depth])->frame, page->lines,
                                ';');
        if (depth)
            coffer__buffer_append(out, ";", 1);
    }
}

void flame_put_collapsed(coffer__buffer *out, const flame_page *page)
{
    for (uint32_t at = flame_first(page->tree); at != FLAME_NONE; at = flame_next(page->tree, at)) {
        uint64_t bytes = flame_tree_at(page->tree, at)->own_bytes;
        if (bytes == 0 || at == 0)
            continue;
        put_path(out, page, at);
        coffer__buffer_printf(out, " %" PRIu64 "\n", bytes);
    }
}

static void close_nodes(coffer__json_writer *writer, uint32_t count)
{
    for (; count > 0; count--) {
        coffer__json_close_array(writer);
        coffer__json_close_object(writer);
    }
}

void flame_put_json(coffer__buffer *out, const flame_page *page, unsigned indent)
{
    coffer__json_writer writer;
    uint32_t open = 0;
    coffer__json_writer_init(&writer, out, indent);
    for (uint32_t at = flame_first(page->tree); at != FLAME_NONE; at = flame_next(page->tree, at)) {
        const flame_node *node = flame_tree_at(page->tree, at);
        close_nodes(&writer, open - node->depth);
        coffer__json_open_object(&writer);
        coffer__json_key(&writer, "name");
        coffer__json_string(&writer, node->name);
        coffer__json_key(&writer, "value");
        coffer__json_write_u64(&writer, node->amount.bytes);
        coffer__json_key(&writer, "allocs");
        coffer__json_write_u64(&writer, node->amount.count);
        coffer__json_key(&writer, "place");
        coffer__buffer place = COFFER__BUFFER_INIT;
        trace_put_place(&place, page->trace, &node->frame);
        coffer__json_string_len(&writer, coffer__buffer_text(&place), place.len);
        coffer__buffer_free(&place);
        coffer__json_key(&writer, "children");
        coffer__json_open_array(&writer);
        open = node->depth + 1;
    }
    close_nodes(&writer, open);
}
